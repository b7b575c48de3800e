//! The table of counts that ends a text.

use std::io::Write;

use allhands_schedule::draw::Sizes;
use allhands_schedule::{Bounds, Cost, Counts, Problem, Traffic};

use crate::failure::Result;
use crate::screen;

/// What was counted, for the table beside the closed form and the lower bound.
pub(super) struct Costs {
    pub(super) counts: Counts,
    /// Known only when all ranks are.
    pub(super) steps: Option<usize>,
    pub(super) far_steps: Option<usize>,
    /// By level; the same.
    pub(super) sent_by_all: Option<Vec<Traffic>>,
    pub(super) ports: usize,
    pub(super) bound: Bounds,
}

impl Costs {
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        problem: &Problem,
        blocks: usize,
        formula: Option<Cost>,
        sizes: Option<Sizes>,
        header: [&str; 4],
    ) -> Result<()> {
        let bound = self.bound;
        let Counts { sent, received, far_sent, far_received, combines, copies, scratch, .. } = &self.counts;
        let in_bytes = |count: usize| match sizes.filter(|_| problem.counts.is_empty()) {
            Some(sizes) => format!("{count} ({})", Sizes::words(sizes.of_blocks(problem, blocks, count))),
            None => count.to_string(),
        };
        // What a person wrote has none.
        let by_formula = |count: &dyn Fn(Cost) -> String| match formula {
            Some(cost) if cost.exact => count(cost),
            Some(cost) => format!("≤ {}", count(cost)),
            None => String::new(),
        };
        let mut table = screen::table(&header);
        let mut row = |name: &str, counted: String, formula: String, bound: String| {
            table.add_row([name.to_string(), counted, formula, bound]);
        };
        let nothing = String::new;
        if let Some(steps) = self.steps {
            row("steps", steps.to_string(), by_formula(&|cost| cost.steps.to_string()), bound.steps.to_string());
        } else {
            row(
                "rounds",
                self.counts.rounds.to_string(),
                by_formula(&|cost| cost.steps.to_string()),
                bound.steps.to_string(),
            );
        }
        row("ports", self.ports.to_string(), nothing(), nothing());
        row("messages sent", sent.messages.to_string(), by_formula(&|cost| cost.messages.to_string()), nothing());
        row("blocks sent", in_bytes(sent.blocks), by_formula(&|cost| in_bytes(cost.blocks)), in_bytes(bound.blocks));
        row("blocks received", in_bytes(received.blocks), nothing(), in_bytes(bound.blocks));
        if problem.topology.regions(1) > 1 {
            let far = |traffic: &Traffic| traffic.messages.to_string();
            if let Some(steps) = self.far_steps {
                row("far steps", steps.to_string(), nothing(), bound.far_steps.to_string());
            }
            if let (Some(sent), Some(graph)) = (&self.sent_by_all, &problem.graph) {
                let least = graph.far_pairs(&problem.topology).to_string();
                row("far messages of all ranks", sent[0].messages.to_string(), nothing(), least);
            }
            row("far messages sent", far(far_sent), nothing(), nothing());
            row("far messages received", far(far_received), nothing(), nothing());
            row("far blocks sent", in_bytes(far_sent.blocks), nothing(), nothing());
            row("far blocks received", in_bytes(far_received.blocks), nothing(), nothing());
            // Where nodes are uneven, only the larger of the two is bound to be so large.
            let most = far_sent.blocks.max(far_received.blocks);
            row("far blocks, the larger", in_bytes(most), nothing(), in_bytes(bound.far_blocks));
            for (level, sent) in self.sent_by_all.iter().flatten().enumerate() {
                let name = match level {
                    0 => "far blocks of all ranks".to_string(),
                    _ => format!("blocks of all inside level {level}"),
                };
                row(&name, in_bytes(sent.blocks), nothing(), nothing());
            }
        }
        for (name, count) in [("blocks combined", combines), ("blocks copied", copies), ("scratch blocks", scratch)] {
            if *count > 0 {
                row(name, in_bytes(*count), nothing(), nothing());
            }
        }
        writeln!(out, "{}", screen::shown(table))?;
        Ok(())
    }
}
