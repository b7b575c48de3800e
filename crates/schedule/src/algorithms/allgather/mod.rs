//! Allgathers: movements in which rank r begins with block r in place and receives each other block once. The registry
//! turns them into reduce_scatters, allreduces and barriers.

pub(crate) mod bine;
pub(crate) mod circulant;
pub(crate) mod circulant_lanes;
pub(crate) mod direct;
pub(crate) mod lanes;
pub(crate) mod leaders;
pub(crate) mod loc_bruck;
pub(crate) mod neighbor_exchange;
pub(crate) mod recursive_multiplying;
pub(crate) mod ring;
pub(crate) mod sparbit;
pub(crate) mod windows;
