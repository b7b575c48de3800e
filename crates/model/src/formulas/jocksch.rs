//! The models of the cyclic shift algorithms (Jocksch et al. 2021), for nodes that send to r - 1 others at once.

use super::{Postal, ceil_log};

/// Eq. 1, allgather: `latency log_r p + per_byte (p - 1) / (r - 1) / p n`; n is what everybody holds at the end.
pub fn allgather_printed(network: Postal, nodes: usize, radix: usize, bytes: f64) -> f64 {
    network.time((nodes as f64).ln() / (radix as f64).ln(), volume(nodes, radix, bytes))
}

/// Eq. 1 with whole steps.
pub fn allgather(network: Postal, nodes: usize, radix: usize, bytes: f64) -> f64 {
    network.time(ceil_log(radix, nodes) as f64, volume(nodes, radix, bytes))
}

/// Eq. 2, reduce_scatter: Eq. 1, and what arrives is combined.
pub fn reduce_scatter_printed(network: Postal, combine: f64, nodes: usize, radix: usize, bytes: f64) -> f64 {
    allgather_printed(network, nodes, radix, bytes) + combine * volume(nodes, radix, bytes)
}

/// Eq. 2 with whole steps, and all ports' operands combined: a node has more ports than adders.
pub fn reduce_scatter(network: Postal, combine: f64, nodes: usize, radix: usize, bytes: f64) -> f64 {
    let combined = bytes * (nodes - 1) as f64 / nodes as f64;
    allgather(network, nodes, radix, bytes) + combine * combined
}

/// Bytes through each port.
fn volume(nodes: usize, radix: usize, bytes: f64) -> f64 {
    bytes * (nodes - 1) as f64 / (radix - 1) as f64 / nodes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_steps_cost_no_less_than_the_printed_form() {
        let network = Postal { latency: 1e-6, per_byte: 1e-9 };
        for nodes in 2..200 {
            for radix in 2..14 {
                let (printed, whole) =
                    (allgather_printed(network, nodes, radix, 1e4), allgather(network, nodes, radix, 1e4));
                assert!(whole >= printed - 1e-15);
                assert!(
                    reduce_scatter(network, 1e-9, nodes, radix, 1e4)
                        >= reduce_scatter_printed(network, 1e-9, nodes, radix, 1e4) - 1e-15
                );
            }
        }
    }
}
