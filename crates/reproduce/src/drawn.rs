//! Schedules as pictures: who sends to whom in each step, and how the buffers fill.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use allhands_schedule::draw::{self, Message};
use allhands_schedule::{Choice, Collective, Ensemble, Problem, Space, Topology};

use super::figure::Picture;
use crate::error::{Error, Result};
use allhands_plot::{COLOURS, escape};

/// All ranks of an algorithm, verified, and what happens in each step.
pub(super) struct Run {
    pub(super) ensemble: Ensemble,
    pub(super) picture: draw::Picture,
}

impl Run {
    /// `Run::new(Collective::Allgather, "bruck", "4x4")`
    pub(super) fn new(collective: Collective, algorithm: &str, topology: &str) -> Result<Run> {
        let problem = Problem::new(collective, topology.parse::<Topology>()?);
        Run::of(Choice::parse(collective, algorithm)?.prepare(&problem)?.ensemble())
    }

    pub(super) fn of(ensemble: Ensemble) -> Result<Run> {
        let picture = draw::Picture::new(&ensemble)
            .map_err(|fault| Error::Wrong(format!("{} is wrong: {fault}", ensemble.algorithm)))?;
        Ok(Run { ensemble, picture })
    }

    /// Messages one after the other, at most.
    pub(super) fn steps(&self) -> usize {
        self.picture.report.timing.steps
    }

    /// The messages of a step; the first is 1.
    pub(super) fn messages(&self, step: usize) -> &[Message] {
        &self.picture.steps[step].messages
    }

    /// The blocks that a message carries: positions of the sender's spans.
    pub(super) fn blocks(&self, message: &Message) -> Vec<usize> {
        let sends = &self.ensemble.schedules[message.from].rounds[message.round].sends;
        sends[message.index].spans.iter().flat_map(|span| span.first..span.end()).collect()
    }

    /// How many positions of the output a rank holds after a step.
    pub(super) fn held(&self, rank: usize, step: usize) -> usize {
        let written = self.picture.steps[..=step].iter().flat_map(|step| step.written.keys());
        let mut positions: Vec<usize> = written
            .filter(|(space, _, owner)| *space == Space::Output && *owner == rank)
            .map(|(_, position, _)| *position)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions.len()
    }

    /// Who sends to whom, opened on demand.
    pub(super) fn schedule(&self, name: &str) -> Picture {
        Picture { name: name.into(), svg: draw::svg(&self.ensemble, &self.picture), opens: true }
    }

    /// What every rank's output holds in the end, coloured by the step in which it came.
    pub(super) fn buffers(&self, name: &str) -> Picture {
        Picture { name: name.into(), svg: buffers(self), opens: false }
    }
}

const CELL: usize = 30;
const ROW: usize = 22;
const LEFT: usize = 14;
const TOP: usize = 104;
const GAP: usize = 14;

fn buffers(run: &Run) -> String {
    let topology = &run.ensemble.problem.topology;
    let mut held: BTreeMap<(usize, usize), (String, usize)> = BTreeMap::new();
    for (number, step) in run.picture.steps.iter().enumerate() {
        for (&(space, position, rank), cell) in &step.written {
            if space == Space::Output {
                held.insert((rank, position), (cell.to_string(), number));
            }
        }
    }
    let rows = held.keys().map(|(_, position)| position + 1).max().unwrap_or(0);
    let widest = held.values().map(|(text, _)| text.chars().count()).max().unwrap_or(0);
    let cell = CELL.max(8 * widest + 8);
    let mut body = String::new();
    let mut x = LEFT;
    for node in 0..topology.regions(1) {
        let left = x;
        for rank in topology.members(1, node) {
            let middle = x + cell / 2;
            let _ = writeln!(body, r#"<text class="name" x="{middle}" y="{}">{rank}</text>"#, TOP - 10);
            for position in 0..rows {
                let Some((text, step)) = held.get(&(rank, position)) else { continue };
                position_of(&mut body, (x, TOP + position * ROW), cell, text, *step);
            }
            x += cell;
        }
        if topology.regions(1) > 1 {
            let middle = (left + x) / 2;
            let _ = writeln!(body, r#"<text class="region" x="{middle}" y="{}">node {node}</text>"#, TOP - 28);
        }
        x += GAP;
    }
    let title = escape(&format!("{} {}", run.ensemble.problem.collective, run.ensemble.algorithm));
    let steps = run.picture.steps.len() - 1;
    let (width, height) = (x.max(LEFT + 150 + 74 * steps), TOP + rows * ROW + 16);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif">"#
    );
    svg += STYLE;
    let _ = writeln!(svg, r#"<text class="title" x="{LEFT}" y="26">{title}: what each rank holds</text>"#);
    for step in 0..=steps {
        let x = LEFT + 74 * step;
        let word = if step == 0 { "start".into() } else { format!("step {step}") };
        let _ = writeln!(
            svg,
            r#"<rect x="{x}" y="38" width="12" height="12" rx="3" fill="{}"/><text class="subtitle" x="{}" y="48">{word}</text>"#,
            colour(step),
            x + 17
        );
    }
    svg + &body + "</svg>\n"
}

/// One position of one rank.
fn position_of(svg: &mut String, (x, y): (usize, usize), cell: usize, text: &str, step: usize) {
    let _ = writeln!(
        svg,
        r#"<rect x="{}" y="{}" width="{}" height="{}" rx="4" fill="{}"/><text class="held" x="{}" y="{}">{}</text>"#,
        x + 1,
        y + 1,
        cell - 2,
        ROW - 2,
        colour(step),
        x + cell / 2,
        y + ROW / 2 + 4,
        escape(text)
    );
}

fn colour(step: usize) -> &'static str {
    if step == 0 { "#424a53" } else { COLOURS[(step - 1) % COLOURS.len()] }
}

const STYLE: &str = r##"
<style>
  .title { font-size: 17px; font-weight: 600; fill: #1b1f24 }
  .subtitle, .region { font-size: 12px; fill: #57606a }
  .name { font-size: 12px; fill: #1b1f24; text-anchor: middle }
  .region { text-anchor: middle }
  .held { font-size: 11px; fill: #fff; text-anchor: middle }
</style>
<rect class="ground" width="100%" height="100%" fill="#fff"/>
"##;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_show_what_came_when() {
        let run = Run::new(Collective::Allgather, "bruck", "2x2").unwrap();
        assert_eq!((run.steps(), run.held(0, 0), run.held(0, 1), run.held(0, 2)), (2, 1, 2, 4));
        let svg = run.buffers("").svg;
        assert_eq!(svg.matches("class=\"held\"").count(), 16);
        assert!(svg.contains(">step 2<") && !svg.contains(">step 3<"));
        assert!(run.schedule("").opens && run.messages(1).len() == 4 && run.blocks(&run.messages(1)[0]) == [0]);
    }
}
