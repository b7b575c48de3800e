//! The drawing of `allhands explain`: messages and buffers, step by step, in columns grouped by region.
//!
//! ```text
//! step 1: 4 messages, 2 far
//!   1 block   0=>3  1->0  2=>1  3->2
//!
//!              node 0 | node 1
//!              P0  P1 | P2  P3
//!   output 0   0   .  | .   0a
//!   output 1   1a  1  | .   .
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Cell, Message, Picture, Sizes};
use crate::schedule::blocks_in;
use crate::{Ensemble, Problem, Schedule, Space, Span};

/// What a piece of text is, for whoever colours it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// A heading.
    Heading,
    /// A message or a number that crosses regions.
    Far,
    /// A block, by the step in which it arrived; 0 is what was there from the start.
    Step(usize),
    /// What is there only to guide the eye.
    Faint,
}

/// How to draw.
pub struct Drawing<'a> {
    /// Colours a piece of text. It must not change how wide it looks.
    pub paint: &'a dyn Fn(Ink, &str) -> String,
    /// Whether a letter beside a block says in which step it arrived: for paper without colours.
    pub letters: bool,
    /// How many columns there are. Buffers that need more are left out.
    pub width: usize,
    /// Shows bytes beside blocks.
    pub sizes: Option<Sizes>,
}

/// More rows than anybody reads.
const MOST_ROWS: usize = 64;

impl Default for Drawing<'_> {
    fn default() -> Self {
        Drawing { paint: &|_, text| text.into(), letters: true, width: 100, sizes: None }
    }
}

impl Drawing<'_> {
    /// All ranks, step by step.
    pub fn steps(&self, ensemble: &Ensemble, picture: &Picture) -> String {
        let buffers = Buffers::new(ensemble, picture, self);
        let mut text = String::new();
        let mut held: BTreeMap<(Space, usize, usize), (Cell, usize)> = BTreeMap::new();
        for (number, step) in picture.steps.iter().enumerate() {
            if number > 0 {
                self.messages(&mut text, ensemble, number, &step.messages);
            } else if buffers.is_some() && !step.written.is_empty() {
                let _ = writeln!(text, "{}", (self.paint)(Ink::Heading, "start"));
            } else {
                continue;
            }
            held.extend(step.written.iter().map(|(&place, cell)| (place, (cell.clone(), number))));
            if let Some(buffers) = &buffers {
                text.push('\n');
                buffers.draw(&mut text, self, &held);
            }
            text.push('\n');
        }
        match &buffers {
            Some(buffers) => text.push_str(&buffers.legend(self)),
            None if ensemble.blocks > 0 => {
                let _ = writeln!(text, "The buffers do not fit into {} columns: they are not drawn.", self.width);
            }
            None => {}
        }
        text
    }

    /// One rank, round by round, with its spans in full.
    pub fn rank(&self, problem: &Problem, schedule: &Schedule, blocks: usize) -> String {
        let mut text = String::new();
        let rank = schedule.rank;
        for (index, round) in schedule.rounds.iter().enumerate() {
            let heading = format!("round {index}");
            let _ = writeln!(text, "{}", (self.paint)(Ink::Heading, &heading));
            let mut line = |peer: usize, operation: String, spans: &[Span]| {
                let far = problem.topology.far(rank, peer);
                let count = self.size_of(problem, blocks, rank, spans);
                let operation = if far { (self.paint)(Ink::Far, &operation) } else { operation };
                let note = format!("# {}{count}", if far { "far, " } else { "" });
                let _ = writeln!(text, "  {operation}  {}", (self.paint)(Ink::Faint, &note));
            };
            round.sends.iter().for_each(|send| line(send.to, send.to_string(), &send.spans));
            round.recvs.iter().for_each(|recv| line(recv.from, recv.to_string(), &recv.spans));
            round.locals.iter().for_each(|local| {
                let _ = writeln!(text, "  {local}");
            });
        }
        text
    }

    fn messages(&self, text: &mut String, ensemble: &Ensemble, number: usize, messages: &[Message]) {
        let far = messages.iter().filter(|message| message.far).count();
        let count = counted(messages.len(), "message");
        let note = if far > 0 { format!(", {far} far") } else { String::new() };
        let heading = (self.paint)(Ink::Heading, &format!("step {number}"));
        let _ = writeln!(text, "{heading}: {count}{}", (self.paint)(Ink::Far, &note));
        let mut groups: BTreeMap<(usize, u64, String), Vec<&Message>> = BTreeMap::new();
        for message in messages {
            let spans = &ensemble.schedules[message.from].rounds[message.round].sends[message.index].spans;
            let (problem, blocks) = (&ensemble.problem, ensemble.blocks);
            let bytes = self.sizes.map_or(0, |sizes| sizes.of(problem, blocks, message.from, spans));
            let size = self.size_of(problem, blocks, message.from, spans);
            groups.entry((message.blocks, bytes, size)).or_default().push(message);
        }
        let margin = groups.keys().map(|(_, _, size)| size.len()).max().unwrap_or(0);
        for ((_, _, size), group) in groups {
            let mut column = 2 + margin;
            let _ = write!(text, "  {size:margin$}");
            for message in group {
                let arrow = if message.far { "=>" } else { "->" };
                let one = format!("{}{arrow}{}", message.from, message.to);
                if column + 2 + one.len() > self.width {
                    let _ = write!(text, "\n  {:margin$}", "");
                    column = 2 + margin;
                }
                column += 2 + one.len();
                let _ = write!(text, "  {}", if message.far { (self.paint)(Ink::Far, &one) } else { one });
            }
            text.push('\n');
        }
    }

    fn size_of(&self, problem: &Problem, blocks: usize, rank: usize, spans: &[Span]) -> String {
        let count = counted(blocks_in(spans), "block");
        match self.sizes {
            Some(sizes) => format!("{count} ({})", Sizes::words(sizes.of(problem, blocks, rank, spans))),
            None => count,
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The letter of a step: a to z, then plus signs.
fn letter(step: usize) -> char {
    match u8::try_from(step) {
        Ok(0) => ' ',
        Ok(step @ 1..=26) => char::from(b'a' + step - 1),
        _ => '+',
    }
}

/// The columns and rows that a run needs.
struct Buffers {
    /// Ranks in seat order, node by node.
    nodes: Vec<Vec<usize>>,
    /// Positions of the output, then those of scratch and shared memory that are used.
    rows: Vec<(Space, usize)>,
    /// How many positions the output has on each rank.
    extents: Vec<usize>,
    margin: usize,
    cell: usize,
    reduces: bool,
}

impl Buffers {
    /// `None` where there is nothing to draw or no room for it.
    fn new(ensemble: &Ensemble, picture: &Picture, drawing: &Drawing<'_>) -> Option<Buffers> {
        let topology = &ensemble.problem.topology;
        let ranks = topology.ranks();
        let mut rows: Vec<(Space, usize)> = picture
            .steps
            .iter()
            .flat_map(|step| step.written.keys().map(|&(space, position, _)| (space, position)))
            .collect();
        rows.sort_unstable();
        rows.dedup();
        let cells = picture.steps.iter().flat_map(|step| step.written.values());
        let widest = cells.map(|cell| cell.to_string().len()).max()?;
        let cell = (widest + usize::from(drawing.letters)).max(format!("P{}", ranks - 1).len()).max(3);
        let label = |&(space, position): &(Space, usize)| format!("{space} {position}").len();
        let margin = rows.iter().map(label).max()?;
        let nodes: Vec<Vec<usize>> = (0..topology.regions(1)).map(|node| topology.members(1, node).collect()).collect();
        let width = 2 + margin + ranks * (cell + 1) + 2 * nodes.len();
        let reduces = ensemble.problem.collective.reduces();
        let extents = (0..ranks).map(|rank| ensemble.problem.extent(Space::Output, rank, ensemble.blocks)).collect();
        (width <= drawing.width && rows.len() <= MOST_ROWS).then_some(Buffers {
            nodes,
            rows,
            extents,
            margin,
            cell,
            reduces,
        })
    }

    fn draw(&self, text: &mut String, drawing: &Drawing<'_>, held: &BTreeMap<(Space, usize, usize), (Cell, usize)>) {
        let Buffers { margin, cell, .. } = *self;
        if self.nodes.len() > 1 {
            self.row(text, "", drawing, |ranks| {
                let width = ranks.len() * (cell + 1);
                let node = self.nodes.iter().position(|node| node == ranks).unwrap_or(0);
                let name = Some(format!("node {node}")).filter(|name| name.len() < width).unwrap_or(node.to_string());
                format!(" {name:<0$}", width - 1)
            });
        }
        self.row(text, "", drawing, |ranks| {
            ranks.iter().map(|rank| format!(" {:<cell$}", format!("P{rank}"))).collect()
        });
        for &(space, position) in &self.rows {
            let label = format!("{space} {position}");
            self.row(text, &format!("{label:<margin$}"), drawing, |ranks| {
                let one = |&rank: &usize| match held.get(&(space, position, rank)) {
                    Some((value, step)) => {
                        let letter = if drawing.letters { letter(*step).to_string() } else { String::new() };
                        let value = format!("{value}{letter}");
                        format!(" {}", (drawing.paint)(Ink::Step(*step), &format!("{value:<cell$}")))
                    }
                    None if space == Space::Output && position < self.extents[rank] => format!(" {:<cell$}", "."),
                    None => format!(" {:cell$}", ""),
                };
                ranks.iter().map(one).collect()
            });
        }
    }

    fn row(&self, text: &mut String, label: &str, drawing: &Drawing<'_>, node: impl Fn(&[usize]) -> String) {
        let margin = self.margin;
        let nodes: Vec<String> = self.nodes.iter().map(|ranks| node(ranks)).collect();
        let line = format!("  {label:<margin$} {}", nodes.join(&(drawing.paint)(Ink::Faint, "|")));
        let _ = writeln!(text, "{}", line.trim_end());
    }

    fn legend(&self, drawing: &Drawing<'_>) -> String {
        let arrived = if drawing.letters { "A letter" } else { "The colour" };
        let combined = if self.reduces { "0-3 is combined from ranks 0 to 3, x5 from five ranks.\n" } else { "" };
        format!("{arrived} says in which step a block arrived; . is still empty.\n{combined}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collective, Round, Send, Topology};

    /// One rank sends its block around, so that the drawing depends on no algorithm.
    fn ring(topology: &str) -> Ensemble {
        let topology: Topology = topology.parse().unwrap();
        let p = topology.ranks();
        let schedule = |rank: usize| {
            let mut rounds = vec![Round::default()];
            rounds[0].copy(Span::input(0, 1), Span::output(rank, 1));
            for step in 1..p {
                let mut round = Round::default();
                round
                    .sends
                    .push(Send { to: (rank + 1) % p, spans: [Span::output((rank + p + 1 - step) % p, 1)].into() });
                round.recv((rank + p - 1) % p, vec![Span::output((rank + p - step) % p, 1)], None);
                rounds.push(round);
            }
            Schedule { rank, rounds }
        };
        let schedules = (0..p).map(schedule).collect();
        Ensemble {
            problem: Problem::new(Collective::Allgather, topology),
            algorithm: "ring".into(),
            blocks: p,
            schedules,
        }
    }

    #[test]
    fn blocks_go_round_the_ring() {
        let ensemble = ring("2x2");
        let picture = Picture::new(&ensemble).unwrap();
        assert_eq!(picture.far_steps(), 3);
        insta::assert_snapshot!(Drawing::default().steps(&ensemble, &picture));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let ensemble = ring("4x8");
        let picture = Picture::new(&ensemble).unwrap();
        let drawing = Drawing { width: 60, sizes: Some(Sizes::new(2048)), ..Drawing::default() };
        let text = drawing.steps(&ensemble, &picture);
        assert!(
            text.contains("1 block (2 KiB)") && text.contains("7=>8") && text.contains("do not fit into 60 columns")
        );
        assert!(text.lines().all(|line| line.len() <= 70) && !text.contains("P0"));
    }

    #[test]
    fn ink_colours_far_messages_and_steps() {
        let ensemble = ring("2x1");
        let paint = |ink: Ink, text: &str| format!("<{ink:?} {text}>");
        let drawing = Drawing { paint: &paint, letters: false, ..Drawing::default() };
        let text = drawing.steps(&ensemble, &Picture::new(&ensemble).unwrap());
        assert!(
            text.contains("<Far 0=>1>") && text.contains("<Step(1) 0  >") && text.contains("<Step(0) 0  >"),
            "{text}"
        );
        let rank = drawing.rank(&ensemble.problem, &ensemble.schedules[0], ensemble.blocks);
        assert!(rank.contains("<Far send 1: output[0]>  <Faint # far, 1 block>"), "{rank}");
    }
}
