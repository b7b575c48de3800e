//! What the paper's library chooses from: the ports of each step.

use allhands_model::Machine;
use allhands_schedule::{Collective, Topology};
use rayon::prelude::*;

use super::super::timed::times;
use crate::error::Result;

/// Sequences of ascending ports, none above `most` or the other nodes, that reach all nodes with nothing to spare; and all ports in every step.
pub(super) fn sequences(nodes: usize, most: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    extend(nodes, most.min(nodes - 1), &mut Vec::new(), &mut found);
    found
}

fn reach(ports: &[usize]) -> usize {
    ports.iter().map(|port| port + 1).product()
}

fn extend(nodes: usize, most: usize, ports: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    if reach(ports) >= nodes {
        let spare = (0..ports.len()).any(|index| {
            let mut fewer = ports.clone();
            fewer[index] -= 1;
            reach(&fewer) >= nodes
        });
        if !spare || ports.iter().all(|&port| port == most) {
            found.push(ports.clone());
        }
        return;
    }
    for port in ports.last().copied().unwrap_or(1)..=most {
        ports.push(port);
        extend(nodes, most, ports, found);
        ports.pop();
    }
}

fn list<'a>(ports: impl IntoIterator<Item = &'a usize>, sign: &str) -> String {
    ports.into_iter().map(|port| format!("{sign}{port}")).collect::<Vec<_>>().join(",")
}

/// An allreduce in the paper's notation, for each sequence: allgather alone, and reduce_scatter with allgather.
pub(super) fn phases(nodes: usize, most: usize) -> Vec<String> {
    let forms = |ports: &Vec<usize>| {
        let up = list(ports.iter().rev(), "");
        [format!("{nodes}({up})"), format!("{nodes}({}){nodes}({up})", list(ports, "-"))]
    };
    sequences(nodes, most).iter().flat_map(forms).collect()
}

/// The ports of each step, from the one in which least is sent.
pub(super) fn lists(nodes: usize, most: usize) -> Vec<String> {
    sequences(nodes, most).iter().map(|ports| list(ports.iter().rev(), "")).collect()
}

/// The fastest of some algorithms at each size: which, and its microseconds.
pub(super) fn fastest(
    machine: &Machine,
    collective: Collective,
    topology: &Topology,
    algorithms: &[String],
    sizes: &[u64],
) -> Result<Vec<(usize, f64)>> {
    let of = |algorithm: &String| times(machine, collective, topology, algorithm, sizes);
    let all: Vec<Vec<f64>> = algorithms.par_iter().map(of).collect::<Result<_>>()?;
    let best = |size: usize| {
        let times = all.iter().map(|times| times[size]).enumerate();
        times.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NAN))
    };
    Ok((0..sizes.len()).map(best).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_reach_all_nodes_and_spare_nothing() {
        let all = sequences(160, 12);
        assert_eq!(all.len(), 33);
        assert!(all.iter().all(|ports| reach(ports) >= 160 && ports.is_sorted()));
        for of_table_2 in [&[12, 12][..], &[2, 4, 10], &[2, 5, 8], &[1, 1, 1, 2, 6], &[1, 1, 1, 1, 1, 1, 2]] {
            assert!(all.iter().any(|ports| ports == of_table_2), "{of_table_2:?}");
        }
        assert_eq!(phases(5, 1), ["5(1,1,1)", "5(-1,-1,-1)5(1,1,1)"]);
        assert_eq!(lists(3, 12), ["1,1", "2"]);
        assert_eq!(lists(12, 3), ["1,1,1,1", "2,1,1", "3,2", "3,3"]);
    }
}
