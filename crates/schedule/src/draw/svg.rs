//! A picture that stands alone: ranks as columns grouped by region, steps as rows, near messages blue, far ones red.

use std::fmt::Write as _;

use super::{Message, Picture};
use crate::Ensemble;

const COLUMN: usize = 44;
const ROW: usize = 96;
const GAP: usize = 20;
const LEFT: usize = 76;
const TOP: usize = 124;
const BOTTOM: usize = 28;

/// More ranks, and more steps, make a picture that no screen shows: the first so many are drawn.
const MOST_RANKS: usize = 64;
const MOST_STEPS: usize = 48;

/// Draws a run as SVG; of many ranks or steps the first, and says so.
pub fn svg(ensemble: &Ensemble, picture: &Picture) -> String {
    let places = Places::new(ensemble);
    let steps = (picture.steps.len() - 1).min(MOST_STEPS);
    let (width, height) = (places.width.max(420), TOP + steps * ROW + BOTTOM);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif">"#
    );
    svg.push_str(STYLE);
    title(&mut svg, ensemble, picture, &places, steps);
    regions(&mut svg, ensemble, &places, height);
    for step in 0..=steps {
        let y = TOP + step * ROW;
        if step > 0 {
            let _ = writeln!(svg, r#"<text class="step" x="14" y="{}">step {step}</text>"#, y - ROW / 2 + 4);
        }
        for x in places.columns.iter().flatten() {
            let _ = writeln!(svg, r#"<circle class="rank" cx="{x}" cy="{y}" r="4"/>"#);
        }
    }
    for (number, step) in picture.steps.iter().enumerate().take(steps + 1).skip(1) {
        let y = TOP + (number - 1) * ROW;
        // Far ones last: they are what the picture is about.
        for far in [false, true] {
            for message in step.messages.iter().filter(|message| message.far == far) {
                arrow(&mut svg, &places, message, y);
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

const STYLE: &str = r##"<style>
  .title { font-size: 17px; font-weight: 600; fill: #1b1f24 }
  .subtitle, .step, .region { font-size: 12px; fill: #57606a }
  .name { font-size: 12px; fill: #1b1f24; text-anchor: middle }
  .region { text-anchor: middle }
  .box { fill: #f3f5f8; stroke: #d5dae0 }
  .line { stroke: #d5dae0 }
  .rank { fill: #57606a }
  .near, .far { fill: none; stroke-width: 1.6; stroke-opacity: 0.8 }
  .near { stroke: #2368c4; marker-end: url(#near) }
  .far { stroke: #d1242f; stroke-width: 2; marker-end: url(#far) }
  .count { font-size: 10px; text-anchor: middle; paint-order: stroke; stroke: #fff; stroke-width: 3px }
  .count.is-near { fill: #2368c4 }
  .count.is-far { fill: #d1242f }
</style>
<defs>
  <marker id="near" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" fill="#2368c4"/></marker>
  <marker id="far" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 0L8 4L0 8z" fill="#d1242f"/></marker>
</defs>
<rect width="100%" height="100%" fill="#fff"/>
"##;

/// Where ranks stand.
struct Places {
    /// By rank; none: not drawn.
    columns: Vec<Option<usize>>,
    /// By node: left and right edge, of those of which ranks are drawn.
    nodes: Vec<(usize, usize)>,
    width: usize,
}

impl Places {
    fn new(ensemble: &Ensemble) -> Places {
        let topology = &ensemble.problem.topology;
        let mut columns = vec![None; topology.ranks()];
        let mut nodes = Vec::new();
        let (mut x, mut drawn) = (LEFT, 0);
        for node in 0..topology.regions(1) {
            // Whole nodes, but for the first.
            if node > 0 && drawn + topology.members(1, node).count() > MOST_RANKS {
                break;
            }
            let left = x;
            for rank in topology.members(1, node).take(MOST_RANKS) {
                columns[rank] = Some(x + COLUMN / 2);
                x += COLUMN;
                drawn += 1;
            }
            nodes.push((left, x));
            x += GAP;
        }
        Places { columns, nodes, width: x }
    }

    fn drawn(&self) -> usize {
        self.columns.iter().flatten().count()
    }
}

fn title(svg: &mut String, ensemble: &Ensemble, picture: &Picture, places: &Places, drawn_steps: usize) {
    let messages = || picture.steps.iter().flat_map(|step| &step.messages);
    let (all, far) = (messages().count(), messages().filter(|message| message.far).count());
    let title = escape(&format!("{} {}", ensemble.problem.collective, ensemble.algorithm));
    let steps = picture.report.timing.steps;
    let ranks = ensemble.problem.ranks();
    let _ = writeln!(svg, r#"<title>{title}</title>"#);
    let _ = writeln!(svg, r#"<text class="title" x="14" y="30">{title}</text>"#);
    let _ = writeln!(
        svg,
        r##"<text class="subtitle" x="14" y="52">{ranks} ranks · {steps} steps · {all} messages: <tspan fill="#2368c4">{} near</tspan>, <tspan fill="#d1242f">{far} far</tspan> · labels count blocks</text>"##,
        all - far
    );
    let (drawn, steps) = (places.drawn(), picture.steps.len() - 1);
    if drawn == ranks && drawn_steps == steps {
        return;
    }
    let of_ranks = if drawn < ranks {
        format!(" and {drawn} of {ranks} ranks, with the messages among them")
    } else {
        String::new()
    };
    let _ = writeln!(
        svg,
        r#"<text class="subtitle" x="14" y="66">a part is drawn: {drawn_steps} of {steps} steps{of_ranks}</text>"#
    );
}

fn regions(svg: &mut String, ensemble: &Ensemble, places: &Places, height: usize) {
    let several = places.nodes.len() > 1;
    for (node, &(left, right)) in places.nodes.iter().enumerate() {
        let (width, bottom) = (right - left, height - 14);
        let _ =
            writeln!(svg, r#"<rect class="box" x="{left}" y="70" width="{width}" height="{}" rx="8"/>"#, bottom - 70);
        if several {
            let middle = left + width / 2;
            let _ = writeln!(svg, r#"<text class="region" x="{middle}" y="87">node {node}</text>"#);
        }
    }
    for rank in 0..ensemble.problem.ranks() {
        let Some(x) = places.columns[rank] else { continue };
        let _ = writeln!(svg, r#"<text class="name" x="{x}" y="108">{rank}</text>"#);
        let _ = writeln!(svg, r#"<line class="line" x1="{x}" y1="{TOP}" x2="{x}" y2="{}"/>"#, height - BOTTOM);
    }
}

/// From the sender at the top of the row to the receiver at its bottom. Labels of several ports stand one below the other.
fn arrow(svg: &mut String, places: &Places, message: &Message, y: usize) {
    let (Some(from), Some(to)) = (places.columns[message.from], places.columns[message.to]) else { return };
    let (top, end) = (y + 5, y + ROW - 6);
    let class = if message.far { "far" } else { "near" };
    let (leave, arrive) = (top + ROW / 3, end - ROW / 3);
    let _ = writeln!(
        svg,
        r#"<path class="{class}" d="M{from} {top}C{from} {leave} {to} {arrive} {to} {end}"><title>{} to {}: {} blocks</title></path>"#,
        message.from, message.to, message.blocks
    );
    if message.blocks > 0 {
        let label = top + 14 + 11 * (message.index % 5);
        let _ = writeln!(svg, r#"<text class="count is-{class}" x="{from}" y="{label}">{}</text>"#, message.blocks);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Collective, Problem};

    const PAIR: &str = "allhands schedule 1
        collective allgather
        algorithm a<b & c
        topology 2x1
        blocks 2
        rank 0
          round
            copy input[0] -> output[0]
            round
            send 1: output[0]
            recv 1: output[1]
        rank 1
          round
            copy input[0] -> output[1]
            round
            send 0: output[1]
            recv 0: output[0]
        end";

    #[test]
    fn far_messages_are_red_and_the_title_is_escaped() {
        let ensemble: Ensemble = PAIR.parse().unwrap();
        let svg = svg(&ensemble, &Picture::new(&ensemble).unwrap());
        assert_eq!(svg.matches("<path class=\"far\"").count(), 2);
        assert!(svg.contains("allgather a&lt;b &amp; c") && !svg.contains("a<b"));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(!svg.contains("a part is drawn"));
    }

    #[test]
    fn of_many_ranks_and_steps_a_part_is_drawn_and_said() {
        let drawn = |topology: &str, name: &str| {
            let problem = Problem::new(Collective::Allgather, topology.parse().unwrap());
            let ensemble = Choice::parse(Collective::Allgather, name).unwrap().prepare(&problem).unwrap().ensemble();
            svg(&ensemble, &Picture::new(&ensemble).unwrap())
        };
        let wide = drawn("24x5", "bruck");
        assert!(wide.contains("a part is drawn: 7 of 7 steps and 60 of 120 ranks, with the messages among them"));
        assert_eq!((wide.matches(">node ").count(), wide.matches("class=\"name\"").count()), (12, 60));
        let long = drawn("61", "ring");
        assert!(long.contains("a part is drawn: 48 of 60 steps<") && long.contains(">step 48<"));
        assert!(drawn("100", "bruck").contains("64 of 100 ranks"));
    }
}
