//! The figures of *A Locality-Aware Bruck Allgather* (Bienz, Gautam and Kharel 2022).

mod drawn;
mod modelled;
mod simulated;

use super::figure::{Paper, Recipe};

const fn recipe(
    id: &'static str,
    number: &'static str,
    title: &'static str,
    make: fn(super::figure::Effort) -> crate::error::Result<super::figure::Figure>,
) -> Recipe {
    Recipe { id, paper: Paper::LocBruck, number, title, make }
}

pub(super) const RECIPES: &[Recipe] = &[
    recipe("loc-bruck-1", "Figure 1", "Who sends to whom in Bruck's allgather", drawn::figure_1),
    recipe("loc-bruck-2", "Figure 2", "What every process holds after each step of Bruck", drawn::figure_2),
    recipe("loc-bruck-4", "Figure 4", "Who sends to whom in the locality-aware Bruck", drawn::figure_4),
    recipe("loc-bruck-5", "Figure 5", "What every process holds in the locality-aware Bruck", drawn::figure_5),
    recipe("loc-bruck-6", "Figure 6", "The second non-local step of 64 processes", drawn::figure_6),
    recipe("loc-bruck-7", "Figure 7", "Modelled cost on Lassen, by nodes", modelled::figure_7),
    recipe("loc-bruck-8", "Figure 8", "Modelled cost on Lassen, by size", modelled::figure_8),
    recipe("loc-bruck-9", "Figure 9", "Four allgathers on Quartz", simulated::figure_9),
    recipe("loc-bruck-10", "Figure 10", "Four allgathers on Lassen", simulated::figure_10),
];
