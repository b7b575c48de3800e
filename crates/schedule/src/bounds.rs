//! Lower bounds: what no schedule can beat, whatever its algorithm.
//!
//! | collective | rounds | blocks sent or received by the busiest rank |
//! | --- | --- | --- |
//! | allgather, alltoall, reduce_scatter | ceil(log_{k+1} p) | p - 1 |
//! | allreduce of B blocks | ceil(log_{k+1} p) | ceil(2 B (p-1) / p) |
//! | gather, scatter | ceil(log_{k+1} p) | p - 1 |
//! | bcast, reduce, scan, exscan of B blocks | ceil(log_{k+1} p) | B |
//! | neighbourhood collectives | 1, if somebody has another neighbour than itself | its blocks for others, or from them |
//! | barrier | ceil(log_{k+1} p) | 0 |
//!
//! With k ports, what a rank knows, or what has been told of it, grows at most (k+1)-fold in a round. For an allreduce,
//! spreading a sum to p ranks takes 2(p-1) messages for each block (one-way gossip), so one rank sends its share of them.
//! The same two arguments hold with nodes in the place of ranks: in a round of far messages a node of q ranks learns
//! from at most q k others. Where ranks of a node share memory, these are the only two: nothing near must be sent.

use serde::Serialize;

use crate::math::ceil_log;
use crate::{Collective, Edge, Graph, Local, Problem, Schedule};

/// What no schedule for a problem can beat.
///
/// ```
/// use allhands_schedule::{Bounds, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(16, 4)?);
/// let bounds = Bounds::new(&problem, 1, 64);
/// assert_eq!((bounds.steps, bounds.blocks), (6, 63));
/// assert_eq!((bounds.far_steps, bounds.far_blocks), (2, 15)); // the full-fan loc-bruck meets both
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// Messages one after the other on the critical path.
    pub steps: usize,
    /// Blocks that some rank has to send or receive.
    pub blocks: usize,
    /// Steps that have a message between nodes.
    pub far_steps: usize,
    /// Blocks that some rank has to send to another node or receive from one.
    pub far_blocks: usize,
}

impl Bounds {
    /// For ranks that send and receive at most `ports` messages in a round, and vectors cut into `blocks`.
    pub fn new(problem: &Problem, ports: usize, blocks: usize) -> Bounds {
        let topology = &problem.topology;
        let ports = ports.max(1);
        let (_, largest) = topology.region_sizes(1);
        if let Some(graph) = &problem.graph {
            return along_edges(problem, graph);
        }
        Bounds {
            steps: ceil_log(ports.saturating_add(1), problem.ranks()),
            blocks: busiest(problem, blocks),
            far_steps: ceil_log(ports.saturating_mul(largest).saturating_add(1), topology.regions(1)),
            far_blocks: busiest_far(problem, blocks),
        }
    }

    /// For schedules as they are: with their ports, and with what meetings in shared memory save.
    pub fn of(problem: &Problem, schedules: &[Schedule], blocks: usize) -> Bounds {
        let bounds = Bounds::new(problem, ports(schedules), blocks);
        let mut locals = schedules.iter().flat_map(|schedule| &schedule.rounds).flat_map(|round| &round.locals);
        match locals.any(|local| matches!(local, Local::Meet { .. })) {
            true => Bounds { steps: bounds.far_steps, blocks: bounds.far_blocks, ..bounds },
            false => bounds,
        }
    }
}

/// The most messages that a rank sends, or receives, in one round.
pub fn ports(schedules: &[Schedule]) -> usize {
    let rounds = schedules.iter().flat_map(|schedule| &schedule.rounds);
    rounds.map(|round| round.sends.len().max(round.recvs.len())).max().unwrap_or(0)
}

/// Of a neighbourhood collective: what each rank, and each node, gives to others and gets from them.
fn along_edges(problem: &Problem, graph: &Graph) -> Bounds {
    let topology = &problem.topology;
    let gathers = problem.collective.family() == Collective::NeighborAllgather;
    let crossing = |groups: usize, of: &dyn Fn(usize) -> usize, share: &dyn Fn(usize) -> usize| {
        let (mut left, mut entered) = (vec![Vec::new(); groups], vec![Vec::new(); groups]);
        for number in 0..graph.edges() {
            let Edge { from, to, .. } = graph.edge(number);
            if of(from) != of(to) {
                let block = if gathers { from } else { number };
                left[of(from)].push(block);
                entered[of(to)].push(block);
            }
        }
        let different = |mut blocks: Vec<usize>| {
            blocks.sort_unstable();
            blocks.dedup();
            blocks.len()
        };
        let most = |(group, blocks): (usize, Vec<usize>)| different(blocks).div_ceil(share(group));
        left.into_iter().enumerate().chain(entered.into_iter().enumerate()).map(most).max().unwrap_or(0)
    };
    let blocks = crossing(problem.ranks(), &|rank| rank, &|_| 1);
    let node = |rank| topology.region_of(1, rank);
    let far_blocks = crossing(topology.regions(1), &node, &|node| topology.region(1, node).len());
    Bounds { steps: blocks.min(1), blocks, far_steps: far_blocks.min(1), far_blocks }
}

fn busiest(problem: &Problem, blocks: usize) -> usize {
    let p = problem.ranks();
    if p == 1 {
        return 0;
    }
    match problem.collective.family() {
        Collective::Allreduce => share(2, p - 1, blocks, p),
        Collective::Barrier => 0,
        collective if collective.cuts() => blocks,
        _ => (p - 1) * problem.pieces(blocks),
    }
}

/// The ranks of a node share what has to cross its border, at best equally.
fn busiest_far(problem: &Problem, blocks: usize) -> usize {
    let (topology, p) = (&problem.topology, problem.ranks());
    let nodes = topology.regions(1);
    if nodes == 1 {
        return 0;
    }
    let (smallest, _) = topology.region_sizes(1);
    match problem.collective.family() {
        Collective::Allgather | Collective::ReduceScatter => {
            ((p - smallest) * problem.pieces(blocks)).div_ceil(smallest)
        }
        Collective::Alltoall => p - smallest,
        Collective::Allreduce => share(2, nodes - 1, blocks, p),
        Collective::Bcast | Collective::Reduce => {
            let home = topology.region_of(1, problem.root);
            let others = (0..nodes).filter(|&node| node != home);
            let poorest = others.map(|node| topology.region(1, node).len()).min().unwrap_or(1);
            blocks.div_ceil(poorest)
        }
        Collective::Gather | Collective::Scatter => {
            let home = topology.region(1, topology.region_of(1, problem.root)).len();
            (p - home).div_ceil(home)
        }
        // The last rank's node needs something of every other.
        Collective::Scan | Collective::Exscan => {
            blocks.div_ceil(topology.region(1, topology.region_of(1, p - 1)).len())
        }
        _ => 0,
    }
}

/// `ceil(a b c / d)`, exact where the product exceeds 64 bits.
fn share(a: usize, b: usize, c: usize, d: usize) -> usize {
    usize::try_from((a as u128 * b as u128 * c as u128).div_ceil(d as u128)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Counts, Topology, algorithms, verify};

    fn bounds(collective: Collective, topology: &str, ports: usize, blocks: usize) -> Bounds {
        Bounds::new(&Problem::new(collective, topology.parse().unwrap()), ports, blocks)
    }

    #[test]
    fn the_table_of_the_bounds() {
        let at = |collective, blocks| bounds(collective, "16", 1, blocks).blocks;
        assert_eq!(
            [Collective::Allgather, Collective::Alltoall, Collective::ReduceScatter].map(|c| at(c, 16)),
            [15; 3]
        );
        assert_eq!([16, 1, 8].map(|blocks| at(Collective::Allreduce, blocks)), [30, 2, 15]);
        assert_eq!([at(Collective::Bcast, 7), at(Collective::Reduce, 7), at(Collective::Barrier, 0)], [7, 7, 0]);
        assert_eq!([1, 2, 3, 15].map(|ports| bounds(Collective::Allgather, "16", ports, 16).steps), [4, 3, 2, 1]);
        assert_eq!(
            bounds(Collective::Allreduce, "1", 1, 5),
            Bounds { steps: 0, blocks: 0, far_steps: 0, far_blocks: 0 }
        );
    }

    #[test]
    fn nodes_bound_far_messages() {
        let far = |collective, topology| {
            let bounds = bounds(collective, topology, 1, topology.parse::<Topology>().unwrap().ranks());
            (bounds.far_steps, bounds.far_blocks)
        };
        assert_eq!(far(Collective::Allgather, "4x4"), (1, 3));
        assert_eq!(far(Collective::Allgather, "5x4"), (1, 4));
        assert_eq!(far(Collective::Allgather, "6x4"), (2, 5));
        assert_eq!(far(Collective::Alltoall, "4x4"), (1, 12));
        assert_eq!(far(Collective::Allreduce, "4x4"), (1, 6));
        assert_eq!(far(Collective::Allgather, "1,3"), (1, 3));
        assert_eq!(far(Collective::Bcast, "1,3"), (1, 2));
        assert_eq!(far(Collective::Allgather, "16"), (0, 0));
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        assert_eq!(bounds(Collective::Allreduce, "65536x16", usize::MAX, usize::MAX).steps, 1);
    }

    #[test]
    fn nothing_in_the_registry_beats_them() {
        for text in ["1", "2", "7", "8", "4x2", "2x4", "3,1,2", "2x2x2"] {
            for collective in Collective::ALL {
                let problem = Problem::new(collective, text.parse().unwrap());
                for choice in algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem)) {
                    let Ok(prepared) = choice.prepare(&problem) else { continue };
                    let ensemble = prepared.ensemble();
                    let bounds = Bounds::of(&problem, &ensemble.schedules, ensemble.blocks);
                    let steps = verify(&ensemble).unwrap().timing.steps;
                    let counts = Counts::maxima(&ensemble);
                    let say = || format!("{collective} {choice} on {text}: {bounds:?} {counts:?}");
                    assert!(steps >= bounds.steps, "{}", say());
                    assert!(counts.sent.blocks.max(counts.received.blocks) >= bounds.blocks, "{}", say());
                    assert!(counts.far_sent.blocks.max(counts.far_received.blocks) >= bounds.far_blocks, "{}", say());
                }
            }
        }
    }
}
