//! The algorithms: one family a file. The lines at the end of this page are the registry.

pub(crate) mod allgather;
pub(crate) mod reorder;

use crate::Collective;
use crate::registry::{Algorithm, Make, Promise};
use allgather::windows;

/// Every algorithm, in the order in which `allhands list` shows them.
pub(crate) static LINES: &[Algorithm] = &[
    Algorithm {
        name: "bruck",
        collective: Collective::Allgather,
        parameters: windows::BRUCK,
        needs: "any p",
        ordered: Promise::Always,
        identical: Promise::Always,
        source: "Bruck et al. 1997; ports: Jocksch et al.",
        make: Make::Gather(windows::bruck),
        cost: windows::bruck_cost,
        variants: windows::bruck_variants,
    },
    Algorithm {
        name: "circulant",
        collective: Collective::Allreduce,
        parameters: windows::CIRCULANT,
        needs: "any p",
        ordered: Promise::Never,
        identical: Promise::Always,
        source: "Träff 2024",
        make: Make::Both(windows::circulant),
        cost: windows::circulant_cost,
        variants: |_| vec![String::new()],
    },
];
