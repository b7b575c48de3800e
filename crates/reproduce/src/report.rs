//! One page with everything: no network, no script; schedules open on a click.
//!
//! Every picture stands in a shadow root of its own, so that the styles and marks inside the SVG files do not meet.

use std::fmt::Write as _;

use super::figure::{Agreement, Compared, Effort, Figure, Paper, Picture, Recipe, Table, Verdict};
use super::write;
use allhands_plot::escape;

const PAGE: &str = include_str!("report.css");
const DARK: &str = include_str!("picture.css");

/// Longer tables are left to their files.
const MOST_ROWS: usize = 60;

/// The page.
pub(super) fn html(made: &[(&Recipe, Figure)], effort: Effort) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<title>The papers, reproduced</title>\n<link rel=\"icon\" href=\"data:,\">\n";
    let _ = write!(page, "<style>\n{PAGE}</style>\n</head>\n<body>\n<main>\n");
    opening(&mut page, made, effort);
    contents(&mut page, made, effort);
    let mut above = None;
    for (recipe, figure) in made {
        if above != Some(recipe.paper) {
            above = Some(recipe.paper);
            let (name, paper) = (recipe.paper.name(), recipe.paper);
            let _ = writeln!(page, "<h2 id=\"{name}\">{}</h2>", escape(paper.title()));
            let _ = writeln!(page, "<p class=\"authors\">{}</p>", escape(paper.authors()));
        }
        section(&mut page, recipe, figure, effort);
    }
    page += "<footer>Written by <code>allhands reproduce</code>. The pictures and numbers lie beside this page as SVG and CSV files.</footer>\n";
    page += "</main>\n</body>\n</html>\n";
    page
}

fn opening(page: &mut String, made: &[(&Recipe, Figure)], effort: Effort) {
    *page += "<header>\n<h1>The papers, reproduced</h1>\n<p class=\"lead\">What the papers draw is drawn here from schedules that the verifier has proved right. What they model is computed \
              from their equations, as printed and as corrected. What they measured is simulated on a description of their machine, or of one like \
              it. A verdict follows from the comparison below each figure, by a rule:</p>\n<dl class=\"rule\">\n";
    let verdicts = [
        (Verdict::Matches, "every number is the paper's, and everything it says of the schedule is true of ours"),
        (
            Verdict::Shape(String::new()),
            "what it says about times (who wins, where, what grows) is true of our times; the times are others",
        ),
        (
            Verdict::Differs(String::new()),
            "a number that should be equal is not, or something it says is not true here; the reason is given",
        ),
    ];
    for (verdict, meaning) in verdicts {
        let same = made.iter().filter(|(_, figure)| figure.verdict.words() == verdict.words()).count();
        let _ = writeln!(page, "<div><dt>{}<b>{same}</b></dt><dd>{meaning}</dd></div>", badge(&verdict));
    }
    *page += "</dl>\n";
    if effort == Effort::Quick {
        *page += "<p class=\"note\">Made with <code>--quick</code>: fewer ranks and sizes than in the papers, so some verdicts may be others than in full.</p>\n";
    }
    *page += "</header>\n";
}

fn badge(verdict: &Verdict) -> String {
    let words = verdict.words();
    let class = match verdict {
        Verdict::Matches => "same",
        Verdict::Shape(_) => "shape",
        Verdict::Differs(_) => "other",
    };
    format!("<span class=\"badge {class}\">{words}</span>")
}

fn contents(page: &mut String, made: &[(&Recipe, Figure)], effort: Effort) {
    *page += "<nav>\n";
    let papers = [Paper::LocBruck, Paper::Radix, Paper::Sparbit, Paper::Nap, Paper::Jocksch];
    for paper in papers.into_iter().filter(|paper| made.iter().any(|(recipe, _)| recipe.paper == *paper)) {
        let _ = writeln!(page, "<section><h3><a href=\"#{}\">{}</a></h3>\n<ol>", paper.name(), escape(paper.title()));
        for (recipe, figure) in made.iter().filter(|(recipe, _)| recipe.paper == paper) {
            let (Recipe { id, number, .. }, title) = (recipe, recipe.drawn(effort));
            let _ = writeln!(
                page,
                "<li><a href=\"#{id}\"><b>{number}</b> {}</a>{}</li>",
                escape(title),
                badge(&figure.verdict)
            );
        }
        *page += "</ol></section>\n";
    }
    *page += "</nav>\n";
}

fn section(page: &mut String, recipe: &Recipe, figure: &Figure, effort: Effort) {
    let (Recipe { id, number, .. }, title) = (recipe, recipe.drawn(effort));
    let _ = writeln!(page, "<article id=\"{id}\">");
    let _ = writeln!(page, "<h3><a href=\"#{id}\">{number}</a> {}{}</h3>", escape(title), badge(&figure.verdict));
    for paragraph in figure.text.split("\n\n") {
        let _ = writeln!(page, "<p>{}</p>", escape(paragraph));
    }
    if !figure.verdict.why().is_empty() {
        let _ = writeln!(page, "<p class=\"why\">{}</p>", escape(figure.verdict.why()));
    }
    for one in &figure.pictures {
        picture(page, recipe, one);
    }
    comparison(page, &figure.compared);
    for one in &figure.tables {
        table(page, recipe, one, figure.pictures.is_empty());
    }
    *page += "</article>\n";
}

fn picture(page: &mut String, recipe: &Recipe, picture: &Picture) {
    let Picture { name, svg, opens } = picture;
    let file = write::name(recipe, name, "svg");
    // A schedule keeps its size: one of many ranks is scrolled.
    let size = if *opens { "svg { max-width: none; }" } else { "" };
    let drawing = format!(
        "<div class=\"picture\" data-file=\"{file}\"><template shadowrootmode=\"open\">{}<style>{DARK}{size}</style></template></div>",
        svg.trim_end()
    );
    if *opens {
        let words = if name.is_empty() { "the schedule".into() } else { name.replace('-', " ") };
        let _ = writeln!(
            page,
            "<details class=\"schedule\"><summary>{}: who sends to whom in each step</summary>\n{drawing}\n</details>",
            escape(&words)
        );
    } else {
        let _ = writeln!(page, "{drawing}");
    }
}

fn comparison(page: &mut String, compared: &[Compared]) {
    if compared.is_empty() {
        return;
    }
    *page += "<div class=\"wide\"><table class=\"compared\">\n<thead><tr><th>what</th><th>paper</th><th>here</th><th></th></tr></thead>\n<tbody>\n";
    for Compared { what, paper, ours, agrees, because } in compared {
        let (class, word) = match agrees {
            Agreement::Same => ("same", "same"),
            Agreement::Holds => ("shape", "holds"),
            Agreement::Near => ("shape", "near"),
            Agreement::Apart => ("apart", "another"),
            Agreement::Fails => ("other", "differs"),
        };
        let told = because.is_empty() || matches!(agrees, Agreement::Same | Agreement::Holds);
        let why = if told { String::new() } else { format!("<small>{}</small>", escape(because)) };
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{}{why}</th><td data-of=\"paper\">{}</td><td data-of=\"here\">{}</td><td class=\"{class}\">{word}</td></tr>",
            escape(what),
            escape(paper),
            escape(ours)
        );
    }
    *page += "</tbody></table></div>\n";
}

/// Open from the start if there is nothing else to see.
fn table(page: &mut String, recipe: &Recipe, table: &Table, open: bool) {
    let file = write::name(recipe, &table.name, "csv");
    let shown = table.rows.len().min(MOST_ROWS);
    let words =
        if table.name.is_empty() { "numbers".into() } else { format!("numbers: {}", table.name.replace('-', " ")) };
    let _ = writeln!(
        page,
        "<details class=\"numbers\"{}><summary>{} <a href=\"{file}\">{file}</a></summary>\n<div class=\"wide\"><table>\n<thead><tr>",
        if open { " open" } else { "" },
        escape(&words)
    );
    for name in &table.head {
        let _ = write!(page, "<th>{}</th>", escape(name));
    }
    *page += "</tr></thead>\n<tbody>\n";
    for row in &table.rows[..shown] {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    *page += "</tbody></table></div>\n";
    if shown < table.rows.len() {
        let _ = writeln!(page, "<p>{} more rows are in the file.</p>", table.rows.len() - shown);
    }
    *page += "</details>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_figure_with_its_verdict_and_needs_nothing_else() {
        let recipe = Recipe {
            id: "nap-99",
            paper: Paper::Nap,
            number: "Figure 99",
            title: "a < b",
            make: |_| Ok(Figure::new("")),
        };
        let mut numbers = Table::new("", &["n"]);
        (0..70).for_each(|row| numbers.row([&row]));
        let figure = Figure::new("First.\n\nSecond.")
            .picture(Picture { name: "all-ranks".into(), svg: "<svg></svg>\n".into(), opens: true })
            .table(numbers)
            .compare([Compared::exact("steps", 5, 4).because("a slip.")])
            .judged("");
        let page = html(&[(&recipe, figure)], Effort::Full);
        for part in [
            "<article id=\"nap-99\">",
            "href=\"#nap-99\"",
            "<p>Second.</p>",
            "a &lt; b",
            "<summary>all ranks: who",
            "<small>a slip.</small>",
            "steps: 5 in the paper, 4 here: a slip.",
            "href=\"nap-99.csv\"",
            "10 more rows",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("badge other").count(), 3, "in the rule, the contents and the section");
        assert!(!page.contains("<script") && !page.contains("src="));
        assert!(page.replace("http://www.w3.org/2000/svg", "").matches("http").count() == 0);
    }
}
