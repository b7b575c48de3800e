//! The figures of *Node-Aware Improvements to Allreduce* (Bienz, Olson and Gropp 2019).

mod drawn;
mod modelled;
mod simulated;

use super::figure::{Effort, Figure, Paper, Recipe};
use crate::error::Result;

const fn recipe(
    id: &'static str,
    number: &'static str,
    title: &'static str,
    make: fn(Effort) -> Result<Figure>,
) -> Recipe {
    Recipe { id, paper: Paper::Nap, number, title, make }
}

pub(super) const RECIPES: &[Recipe] = &[
    recipe("nap-3", "Figure 3", "Recursive doubling on 4 nodes of 4", drawn::figure_3),
    recipe("nap-4", "Figure 4", "The SMP allreduce on 4 nodes of 4", drawn::figure_4),
    recipe("nap-6", "Figure 6", "The NAP allreduce on 4 nodes of 4", drawn::figure_6),
    recipe("nap-7", "Figure 7", "The second inter-node step of NAP on 16 nodes of 4", drawn::figure_7),
    recipe("nap-8", "Figure 8", "NAP on 12 nodes of 4: no power of PPN", drawn::figure_8),
    recipe("nap-9", "Figure 9", "NAP on 11 nodes of 4: subgroups of different size", drawn::figure_9),
    recipe("nap-10", "Figure 10", "Modelled cost of reducing one value, by processes", modelled::figure_10),
    recipe("nap-11", "Figure 11", "Modelled cost on 32,768 processes, by size", modelled::figure_11),
    recipe("nap-12", "Figure 12", "Time to reduce one value, by processes", simulated::figure_12),
    recipe("nap-13", "Figure 13", "Speedup of NAP for one value, by processes", simulated::figure_13),
    recipe("nap-14", "Figure 14", "Time on 32,768 processes, by size", simulated::figure_14),
    recipe("nap-15", "Figure 15", "Speedup of NAP on 32,768 processes, by size", simulated::figure_15),
];
