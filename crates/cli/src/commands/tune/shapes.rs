//! Which shapes and sizes are measured: those of a tuning, and between them those of an evaluation.

use std::time::Duration;

use allhands::{Comm, Topology};

/// Nodes, and ranks on each.
pub(super) type Shape = (usize, usize);

/// The shape of a topology: its nodes, and the ranks of the smallest.
fn whole(topology: &Topology) -> Shape {
    (topology.regions(1), topology.region_sizes(1).0)
}

/// Powers of two up to a number, three, and the number. Between two and four nothing is alike: three is the first that is no power.
fn steps(most: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |power| Some(power * 2)).take_while(|power| *power < most);
    let mut steps: Vec<usize> = powers.chain([3.min(most), most]).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// The shapes a machine is tuned for: nodes and ranks in such steps; the whole machine first.
pub(super) fn tuned(topology: &Topology) -> Vec<Shape> {
    let (nodes, ranks) = whole(topology);
    let mut shapes: Vec<Shape> = steps(nodes)
        .into_iter()
        .flat_map(|nodes| steps(ranks).into_iter().map(move |ranks| (nodes, ranks)))
        .filter(|(nodes, ranks)| nodes * ranks > 1)
        .collect();
    shapes.sort_by_key(|(nodes, ranks)| std::cmp::Reverse(nodes * ranks));
    shapes
}

/// The whole machine, and one rank or node less: all of them are evaluated at other sizes than were tuned.
pub(super) fn held_out(topology: &Topology) -> Vec<Shape> {
    let (nodes, ranks) = whole(topology);
    let (fewer_nodes, fewer_ranks) = (nodes.saturating_sub(1), ranks.saturating_sub(1));
    let mut shapes = vec![(nodes, ranks)];
    for shape in [(nodes, fewer_ranks), (fewer_nodes, ranks), (1, fewer_ranks)] {
        if shape.0 * shape.1 > 1 && !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    shapes
}

/// Three times each but the last: sizes in between.
pub(super) fn sizes_between(sizes: &[usize]) -> Vec<usize> {
    let last = sizes.last().copied().unwrap_or(0);
    sizes.iter().map(|size| 3 * size).filter(|size| *size < last).collect()
}

/// The ranks that make up a shape; none for a rank that is not among them. Every rank must call it.
pub(super) fn part(comm: &Comm, shape: Shape) -> allhands::Result<Option<Comm>> {
    let topology = comm.topology();
    let node = topology.region_of(1, comm.rank());
    let place = topology.members(1, node).position(|rank| rank == comm.rank()).unwrap_or(usize::MAX);
    let among = node < shape.0 && place < shape.1;
    let part = comm.split(u64::from(!among), topology.seat_of(comm.rank()) as u64)?;
    Ok(among.then_some(part))
}

/// How long ranks sleep that have nothing to do, before they look again whether the others are through.
const NAP: Duration = Duration::from_micros(500);

/// Waits for everybody, asleep: those who are not among a shape's ranks must not take cores from those who are.
pub(super) fn rest(comm: &Comm) -> allhands::Result<()> {
    let mut through = comm.barrier_plan()?;
    let mut pending = through.start(&[], &mut [])?;
    while !pending.test()? {
        std::thread::sleep(NAP);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_tuned_in_powers_of_two_and_three_and_evaluated_in_between() {
        let topology = Topology::regular(2, 4).unwrap();
        assert_eq!(tuned(&topology), [(2, 4), (2, 3), (1, 4), (2, 2), (1, 3), (1, 2), (2, 1)]);
        assert_eq!(held_out(&topology), [(2, 4), (2, 3), (1, 4), (1, 3)]);
        assert_eq!(steps(16), [1, 2, 3, 4, 8, 16]);
        assert_eq!(steps(2), [1, 2]);
        let sizes = [8, 64, 512, 4096, 32768, 262_144, 1_048_576];
        assert_eq!(sizes_between(&sizes), [24, 192, 1536, 12288, 98304, 786_432]);
    }

    #[test]
    fn a_shape_takes_the_first_ranks_of_the_first_nodes() {
        let shapes = allhands::threads(Topology::regular(3, 4).unwrap().cyclic(), |comm| {
            Ok(part(comm, (2, 3))?.map(|part| (comm.rank(), part.topology().to_string())))
        });
        let among: Vec<(usize, String)> = shapes.unwrap().into_iter().flatten().collect();
        // Dealt out one by one, node 0 has ranks 0 3 6 9 and node 1 has ranks 1 4 7 10.
        assert_eq!(among.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1, 3, 4, 6, 7]);
        assert!(among.iter().all(|(_, topology)| topology == "[[0,1,2],[3,4,5]]"), "{among:?}");
    }
}
