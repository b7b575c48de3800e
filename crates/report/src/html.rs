//! The report as one page: no network, readable on a phone, light or dark as the reader likes.
//!
//! It is well-formed XML, so that a test can read it. Style and script stand in the page and contain no `<` and no `&`.

use std::borrow::Cow;

use crate::bottom::uncompared;
use crate::compared::Compared;
use crate::learning::{LEARNED, Learning};
use crate::sites::{ABOUT_SITES, SITES, SiteRow};
use crate::table::{CALLS, ESTIMATES, REQUESTS, by, is_estimate, sides, spent, waiting};
use crate::units::{size, time, up_to};
use crate::whole::{Row, Share, Whole};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// With a capital letter.
fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}", first.to_uppercase())
}

pub(crate) fn page(whole: &Whole) -> String {
    let title = format!("Collectives of {} ranks", whole.ranks);
    let (bars, calls) = (chart(&whole.shares), calls(whole));
    let (facts, compared, learned) = (facts(whole), compared(whole), learned(whole.learned.as_ref()));
    let sites = sites(whole);
    let (mpi, bottom) = (escaped(&whole.mpi), escaped(&whole.bottom_line));
    let notes: String = whole.notes().map(|note| format!("<p>{}</p>\n", escaped(&capital(&note)))).collect();
    let waits =
        whole.waits.iter().filter(|wait| wait.matters(whole)).map(|wait| waiting(whole, wait)).chain([spent(whole)]);
    let waits: String = waits.map(|sentence| format!("<p>{}</p>\n", escaped(&sentence))).collect();
    format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\"/>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>on {mpi}</p>
<p><strong>{bottom}</strong></p>
{notes}{facts}<h2>Where the time went</h2>
{waits}<p>Time that a rank spent in each collective, waiting for others included; the mean of all ranks.</p>
{bars}{sites}{compared}{learned}<h2>Calls</h2>
<p>{CALLS}</p>
{calls}<footer>allhands {version}</footer>
</main>
<script>
{SCRIPT}</script>
</body>
</html>
",
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// Where the program calls from, if that is known.
fn sites(whole: &Whole) -> String {
    let (shown, _) = whole.shown_sites();
    if shown.is_empty() {
        return String::new();
    }
    let row = |row: &SiteRow| {
        let [collective, calls, time, place] = row.cells();
        vec![word(&collective, ""), number(calls, row.calls), number(time, row.seconds), word(&place, "")]
    };
    let table = table(&SITES, shown.iter().map(row));
    format!("<h2>Where the program calls from</h2>\n<p>{}</p>\n{table}", capital(ABOUT_SITES))
}

/// What was learned, if anything was.
fn learned(learned: Option<&Learning>) -> String {
    let Some(learned) = learned else { return String::new() };
    let table =
        table(&LEARNED, learned.rows.iter().map(|lesson| lesson.cells().iter().map(|cell| word(cell, "")).collect()));
    format!("<h2>Learned</h2>\n<p>{}</p>\n{table}", escaped(&learned.summary()))
}

/// Text that stands in the page as it is.
fn escaped(text: &str) -> Cow<'_, str> {
    // No XML has control characters.
    let special = |letter: char| matches!(letter, '&' | '<' | '>' | '"' | '\'') || letter.is_control();
    if !text.contains(special) {
        return text.into();
    }
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe.into()
}

fn facts(whole: &Whole) -> String {
    let ((ours, mpi), (served, calls)) = (whole.time(), whole.calls());
    let percent = |part: f64, all: f64| if all > 0.0 { format!("{:.0} %", 100.0 * part / all) } else { "-".into() };
    let seats = match (&whole.topology, whole.machines) {
        (Some(topology), _) => format!("as if they sat on {topology}"),
        (None, 1) => "on one machine".into(),
        (None, machines) => format!("on {machines} machines"),
    };
    let fact = |name: &str, value: String, more: String| {
        format!("<div><dt>{name}</dt><dd>{value}<small>{}</small></dd></div>\n", escaped(&more))
    };
    [
        "<dl class=\"facts\">\n".into(),
        fact("Ranks", whole.ranks.to_string(), seats),
        fact("Run time", time(whole.seconds), "from MPI_Init to MPI_Finalize".into()),
        fact("In collectives", time(ours + mpi), format!("{} of the run time", percent(ours + mpi, whole.seconds))),
        fact("Served by us", percent(served as f64, calls as f64), format!("{served} of {calls} calls")),
        fact("Time in ours", percent(ours, ours + mpi), format!("{} of {}", time(ours), time(ours + mpi))),
        "</dl>\n".into(),
    ]
    .concat()
}

/// A bar for each collective, as long as the time in it, in the colours of who served it.
fn chart(shares: &[Share]) -> String {
    let longest = shares.iter().map(|share| share.ours_seconds + share.mpi_seconds).fold(1e-12, f64::max);
    let mut text = String::from("<div class=\"panel\">\n");
    for Share { collective, ours_seconds, mpi_seconds } in shares {
        let (ours, mpi) = (100.0 * ours_seconds / longest, 100.0 * mpi_seconds / longest);
        let (ours_time, mpi_time) = (time(*ours_seconds), time(*mpi_seconds));
        text += &format!(
            "<div class=\"bar\"><b>{name}</b><svg width=\"100%\" height=\"16\" role=\"img\">\
             <title>{name}: {ours_time} in ours, {mpi_time} in the MPI's own</title>\
             <rect class=\"ours\" width=\"{ours:.2}%\" height=\"16\"/>\
             <rect class=\"theirs\" x=\"{ours:.2}%\" width=\"{mpi:.2}%\" height=\"16\"/></svg>\
             <span>{all}</span></div>\n",
            name = escaped(collective),
            all = time(ours_seconds + mpi_seconds),
        );
    }
    text + "<div class=\"key\"><span><i class=\"ours\"></i>ours</span><span><i class=\"theirs\"></i>the MPI's own</span></div>\n</div>\n"
}

/// A cell: what it says, what it is sorted by, and its class.
type Cell = (String, String, &'static str);

fn word(text: &str, class: &'static str) -> Cell {
    (text.into(), text.into(), class)
}

fn number(text: String, value: impl ToString) -> Cell {
    (text, value.to_string(), "number")
}

/// Nothing where nothing was called.
fn calls(whole: &Whole) -> String {
    if whole.rows.is_empty() {
        return String::new();
    }
    let headings = ["collective", "bytes", "communicator", "calls", "data", "time", "a call", "served by", "why"];
    let table = table(
        &headings,
        whole.rows.iter().map(|row| {
            let (by, why) = by(row);
            let Row { key, calls, bytes, seconds, .. } = row;
            let timed = |seconds: f64| match row.is_request() {
                true => number("-".into(), -1),
                false => number(time(seconds), seconds),
            };
            vec![
                word(&key.collective, ""),
                number(up_to(key.up_to_bytes), key.up_to_bytes.map_or(-1.0, |bytes| bytes as f64)),
                word(&whole.name(key.on), ""),
                number(calls.to_string(), calls),
                number(size(*bytes), bytes),
                timed(*seconds),
                timed(seconds / row.each().max(1.0)),
                word(by, if key.algorithm.is_some() { "served" } else { "served theirs" }),
                word(why, "why"),
            ]
        }),
    );
    let estimates = whole.rows.iter().any(|row| is_estimate(by(row).1)).then_some(ESTIMATES);
    let requests = whole.rows.iter().any(Row::is_request).then_some(REQUESTS);
    let words: String =
        [requests, estimates].iter().flatten().map(|words| format!("<p>{}</p>\n", escaped(words))).collect();
    words + &table
}

/// Nothing where nothing was compared.
fn compared(whole: &Whole) -> String {
    if whole.compared.is_empty() {
        return String::new();
    }
    let headings = ["collective", "bytes", "communicator", "calls", "ours", "the MPI's", "ours is"];
    let row = |one: &Compared| {
        let [collective, bytes, calls, ours, mpi, verdict] = sides(one);
        let class = match &verdict {
            said if said.contains("faster") => "good",
            said if said.contains("slower") => "bad",
            _ => "",
        };
        vec![
            word(&collective, ""),
            number(bytes, one.up_to_bytes.map_or(-1.0, |bytes| bytes as f64)),
            word(&whole.name(one.on), ""),
            number(calls, one.ours.calls),
            number(ours, one.ours.seconds),
            number(mpi, one.mpi.seconds),
            (verdict, (one.mpi.mean_seconds / one.ours.mean_seconds.max(1e-12)).to_string(), class),
        ]
    };
    let table = table(&headings, whole.compared.iter().map(row));
    let odd = match whole.compared.iter().any(Compared::is_odd) {
        true => "<p>* The medians say something else: some calls took much longer than most.</p>\n",
        false => "",
    };
    let left: String =
        uncompared(whole).iter().map(|left| format!("<p>Not compared: {}</p>\n", escaped(left))).collect();
    format!(
        "<h2>Ours against the MPI's own</h2>
<p>They took turns: the median of a rank's calls, nine of ten below (the mean of all ranks), and what ours is worth by the sums.</p>
{table}{odd}{left}"
    )
}

fn table(headings: &[&str], rows: impl Iterator<Item = Vec<Cell>>) -> String {
    let mut text = String::from("<div class=\"panel wide\"><table>\n<thead><tr>");
    // Numbers stand to the right, their headings too.
    let rows: Vec<Vec<Cell>> = rows.collect();
    for (column, heading) in headings.iter().enumerate() {
        let class = match rows.first().map(|row| row[column].2) {
            Some("number") => " class=\"number\"",
            _ => "",
        };
        text += &format!("<th{class}><button type=\"button\">{}</button></th>", escaped(heading));
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        text += "<tr>";
        for (heading, (cell, value, class)) in headings.iter().zip(row) {
            let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
            let (heading, value, cell) = (escaped(heading), escaped(&value), escaped(&cell));
            text += &format!("<td{class} data-label=\"{heading}\" data-value=\"{value}\">{cell}</td>");
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_leave_its_place() {
        assert_eq!(escaped("a plain one"), "a plain one");
        assert_eq!(escaped("<b a=\"1\" c='2'>&\u{1}"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp; ");
    }

    #[test]
    fn style_and_script_need_no_escapes() {
        assert!(![STYLE, SCRIPT].iter().any(|text| text.contains(['<', '&'])));
    }
}
