//! Machines of exactly so many ranks: what one job can be made to look like.

use allhands::Topology;

use super::sample::Random;

/// Any shape: flat, one node, nodes of one, regular, uneven, two levels; in order, dealt out or shuffled.
pub(crate) fn draw(random: &mut Random, p: usize) -> Topology {
    let shape = match random.below(8) {
        0 => Topology::flat(p),
        1 => Topology::regular(1, p),
        2 => Topology::regular(p, 1),
        3 | 4 => {
            let size = random.pick(&divisors(p));
            Topology::regular(p / size, size)
        }
        5 | 6 => Topology::uneven(&parts(random, p)),
        _ => two_levels(random, p),
    };
    let shape = shape.expect("a machine with ranks");
    match random.below(4) {
        0 => shape.cyclic(),
        1 => shape.placed(shuffled(random, p)).expect("every rank once"),
        _ => shape,
    }
}

/// The shapes that algorithms ask for, one by one: whoever serves none of them serves no machine of `p` ranks.
pub(crate) fn all(p: usize) -> Vec<Topology> {
    let regular = divisors(p).into_iter().map(|size| Topology::regular(p / size, size));
    let nested = divisors(p).into_iter().flat_map(|node| {
        let sockets = move |socket: usize| Topology::nested(&[p / node, node / socket, socket]);
        divisors(node).into_iter().map(sockets)
    });
    let shapes: Vec<Topology> = [Topology::flat(p)].into_iter().chain(regular).chain(nested).flatten().collect();
    let cyclic: Vec<Topology> = shapes.iter().cloned().map(Topology::cyclic).collect();
    [shapes, cyclic].concat()
}

fn divisors(p: usize) -> Vec<usize> {
    (1..=p).filter(|size| p.is_multiple_of(*size)).collect()
}

/// Sizes of at least one that sum to `p`.
fn parts(random: &mut Random, p: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut left = p;
    while left > 0 {
        let size = 1 + random.below(left.min(1 + p / 2));
        sizes.push(size);
        left -= size;
    }
    sizes
}

/// Nodes with sockets of which some seats, chosen at random, are taken.
fn two_levels(random: &mut Random, p: usize) -> Result<Topology, allhands_schedule::Error> {
    let (nodes, sockets) = (1 + random.below(3), 1 + random.below(3));
    let machine = Topology::nested(&[nodes, sockets, p.div_ceil(nodes * sockets) + random.below(2)])?;
    let mut taken = shuffled(random, machine.ranks());
    taken.truncate(p);
    taken.sort_unstable();
    machine.of_members(&taken)
}

fn shuffled(random: &mut Random, p: usize) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..p).collect();
    for last in (1..p).rev() {
        ranks.swap(last, random.below(last + 1));
    }
    ranks
}
