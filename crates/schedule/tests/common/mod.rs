//! Random problems and settings, from numbers that proptest draws and shrinks.

use allhands_schedule::{Choice, Collective, Graph, Problem, Topology, algorithms};
use proptest::prelude::*;

/// One of each family: vector forms use the same schedules.
pub(crate) const FAMILIES: [Collective; 13] = [
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Allreduce,
    Collective::ReduceScatter,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::Scan,
    Collective::Exscan,
    Collective::NeighborAllgather,
    Collective::NeighborAlltoall,
    Collective::Barrier,
];

/// Flat, regular, uneven or nested, placed sequentially, cyclically or at random, of at most `most` ranks.
pub(crate) fn topologies(most: usize) -> impl Strategy<Value = Topology> {
    let flat = (1..=most).prop_map(|p| Topology::flat(p).unwrap());
    let regular = (1..=most)
        .prop_flat_map(move |nodes| (Just(nodes), 1..=(most / nodes).max(1)))
        .prop_map(|(nodes, q)| Topology::regular(nodes, q).unwrap());
    let uneven =
        prop::collection::vec(1usize..=9, 1..=(most / 9).max(1)).prop_map(|sizes| Topology::uneven(&sizes).unwrap());
    let nested =
        prop::collection::vec(prop::collection::vec(1usize..=4, 1..=3), 1..=(most / 12).max(1)).prop_map(|nodes| {
            let mut next = 0;
            let mut socket = |size: &usize| {
                next += size;
                format!("[{}]", (next - size..next).map(|rank| rank.to_string()).collect::<Vec<_>>().join(","))
            };
            let lists: Vec<String> = nodes
                .iter()
                .map(|node| format!("[{}]", node.iter().map(&mut socket).collect::<Vec<_>>().join(",")))
                .collect();
            format!("[{}]", lists.join(",")).parse().unwrap()
        });
    let shapes = prop_oneof![flat, regular, uneven, nested];
    (shapes, 0..3, any::<u64>()).prop_map(|(topology, placement, seed)| match placement {
        0 => topology,
        1 => topology.cyclic(),
        _ => {
            let mut ranks: Vec<usize> = (0..topology.ranks()).collect();
            let mut state = seed | 1;
            for i in (1..ranks.len()).rev() {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ranks.swap(i, (state >> 33) as usize % (i + 1));
            }
            topology.placed(ranks).unwrap()
        }
    })
}

/// A problem, and a choice for it: one of the settings the registry proposes, or one made of random numbers.
pub(crate) fn cases(most: usize) -> impl Strategy<Value = (Problem, Choice)> {
    let collective = prop::sample::select(FAMILIES.to_vec());
    (
        collective,
        topologies(most),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        prop::collection::vec(1usize..=6, 1..6),
        any::<bool>(),
    )
        .prop_map(|(collective, topology, which, setting, root, numbers, random)| {
            let p = topology.ranks();
            let problem = Problem::new(collective, topology);
            let problem = if collective.rooted() { problem.with_root(root.index(p)).unwrap() } else { problem };
            let problem = match collective.has_graph() && random {
                true => problem.with_graph(Graph::random(p, numbers[0] - 1, numbers.len() as u64).into()).unwrap(),
                false => problem,
            };
            let known: Vec<_> = algorithms(collective).collect();
            let algorithm = known[which.index(known.len())];
            let has = |name: &str| algorithm.parameters.iter().any(|parameter| parameter.name == name);
            let own = match () {
                _ if !random || p == 1 => None,
                _ if has("phases") => Some(random_phases(p, &numbers)),
                _ if has("radices") => Some(format!("radices={}", reaching(p, &numbers, 1))),
                _ if has("ports") => Some(format!("ports={}", reaching(p, &numbers, 0))),
                _ => None,
            };
            let choice = match own {
                Some(own) => Choice::parse(collective, &format!("{}:{own}", algorithm.name)).unwrap(),
                None => {
                    let variants = Choice::variants(algorithm, &problem);
                    variants[setting.index(variants.len())].clone()
                }
            };
            (problem, choice)
        })
}

/// Numbers repeated until ports + 1 (or radices, of which `plus` is taken off) multiply to p.
fn ports_reaching(p: usize, numbers: &[usize]) -> Vec<usize> {
    let (mut ports, mut product) = (Vec::new(), 1);
    for &number in numbers.iter().cycle() {
        if product >= p {
            break;
        }
        ports.push(number);
        product *= number + 1;
    }
    ports
}

fn reaching(p: usize, numbers: &[usize], plus: usize) -> String {
    ports_reaching(p, numbers).iter().map(|port| (port + plus).to_string()).collect::<Vec<_>>().join(",")
}

/// Factors of p in some order, each with some reduce_scatter steps; the first of them opened or not.
fn random_phases(p: usize, numbers: &[usize]) -> String {
    let mut factors = Vec::new();
    let mut rest = p;
    let mut seed = numbers.iter().cycle();
    while rest > 1 {
        let divisors: Vec<usize> = (2..=rest).filter(|divisor| rest.is_multiple_of(*divisor)).collect();
        let factor = divisors[seed.next().unwrap() * 7 % divisors.len()];
        factors.push(factor);
        rest /= factor;
    }
    let ports = |factor: usize| -> Vec<usize> {
        let small: Vec<usize> = numbers.iter().map(|number| (*number).min(factor - 1)).collect();
        ports_reaching(factor, &small)
    };
    let list =
        |ports: &[usize], sign: &str| ports.iter().map(|port| format!("{sign}{port}")).collect::<Vec<_>>().join(",");
    let opened = numbers[0] % (factors.len() + 1);
    let mut text = String::new();
    let mut closing = String::new();
    for (index, &factor) in factors.iter().enumerate() {
        let up = ports(factor);
        let down: Vec<usize> = up.iter().rev().copied().take(numbers[index % numbers.len()] % (up.len() + 1)).collect();
        if index < opened {
            let down = if down.is_empty() { vec![up[0]] } else { down };
            text += &format!("{factor}({})", list(&down, "-"));
            closing = format!("{factor}({})", list(&up, "")) + &closing;
        } else {
            let down = if down.is_empty() { String::new() } else { list(&down, "-") + "," };
            text += &format!("{factor}({down}{})", list(&up, ""));
        }
    }
    text + &closing
}
