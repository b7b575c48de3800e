//! Allreduces that are more than a reversed allgather and an allgather.

mod acting;
pub(crate) mod addition_chain;
pub(crate) mod bine;
mod chains;
pub(crate) mod cyclic_shift;
pub(crate) mod nap;
pub(crate) mod rabenseifner;
pub(crate) mod whole;
