//! The figures and tables of *An optimisation of allreduce communication in message-passing systems* (Jocksch et al. 2021).

mod drawn;
mod filter;
mod lines;
mod ports;
mod simulated;
mod tables;
mod uneven;

use super::figure::{Effort, Figure, Paper, Recipe};
use crate::error::Result;

const fn recipe(
    id: &'static str,
    number: &'static str,
    title: &'static str,
    make: fn(Effort) -> Result<Figure>,
) -> Recipe {
    Recipe { id, paper: Paper::Jocksch, number, title, make }
}

pub(super) const RECIPES: &[Recipe] = &[
    recipe("jocksch-1", "Figure 1", "Recursive doubling and cyclic shift: who sends to whom", drawn::figure_1),
    recipe("jocksch-2", "Figure 2", "Recursive doubling and cyclic shift: how buffers fill", drawn::figure_2),
    recipe("jocksch-3", "Figure 3", "An allreduce of short messages: lines that need not be sent", lines::figure_3),
    recipe("jocksch-4", "Figure 4", "Recursive multiplying with four and two ports", drawn::figure_4),
    recipe("jocksch-5", "Figure 5", "Cyclic shift for reduce_scatter on 5 nodes", drawn::figure_5),
    recipe("jocksch-6", "Figure 6", "Small messages paired with large ones", uneven::figure_6),
    recipe("jocksch-7", "Figure 7", "Messages of sizes 1, 1, 0, 2, step by step", uneven::figure_7),
    recipe("jocksch-8", "Figure 8", "A partial reduce_scatter and allgather on 8 nodes", lines::figure_8),
    recipe("jocksch-9", "Figure 9", "The same in groups of 2 and 4", lines::figure_9),
    recipe("jocksch-table-1", "Table 1", "Steps and sizes on 39 nodes, by factors", tables::table_1),
    recipe("jocksch-table-2", "Table 2", "Ports by size on 160 nodes", tables::table_2),
    recipe("jocksch-10", "Figure 10", "Allgather and reduce_scatter on 160 nodes, by size", simulated::figure_10),
    recipe("jocksch-11", "Figure 11", "Allreduce on 160 nodes, by size", simulated::figure_11),
    recipe("jocksch-12", "Figure 12", "Allreduce of 8 bytes, 4 KiB and 32 MiB, by nodes", simulated::figure_12),
    recipe("jocksch-13", "Figure 13", "Allreduce with one task a node: one port or many", simulated::figure_13),
    recipe("jocksch-14", "Figure 14", "A Fourier filter: two messages, the rest empty", filter::figure_14),
];
