//! Who talks to whom: the graph of a neighbourhood collective.
//!
//! Edges are directed, may be repeated, and may lead back to where they begin. A rank's blocks stand in the order of its edges: those that it
//! gives in the order of its outgoing edges, those that it gets in the order of its incoming ones. Which outgoing edge of one rank is which
//! incoming edge of another is part of the graph, because repeated edges differ in nothing else.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::{Error, Result, Topology};

/// Among some ranks, who has something for whom.
///
/// ```
/// use allhands_schedule::Graph;
/// let ring = Graph::parse("torus:5", 5)?;
/// assert_eq!(ring.destinations(0).collect::<Vec<_>>(), [4, 1]);
/// assert_eq!(ring.sources(4).collect::<Vec<_>>(), [3, 0]);
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    /// Of rank r the edges `outgoing[r]..outgoing[r + 1]` lead away.
    outgoing: Vec<usize>,
    edges: Vec<Edge>,
    /// Of rank r the edges `arriving[incoming[r]..incoming[r + 1]]` arrive.
    incoming: Vec<usize>,
    arriving: Vec<usize>,
    /// Tells graphs apart fast.
    fingerprint: u64,
}

/// From one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// Where it begins.
    pub from: usize,
    /// Which one it is among those that begin there.
    pub out: usize,
    /// Where it ends.
    pub to: usize,
    /// Which one it is among those that end there.
    pub into: usize,
}

/// How the edges of a grid that two ranks have twice, as in a ring of two, are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// What is sent one way comes from the other: MPI says so.
    Direction,
    /// The first that is sent is the first that comes: some MPIs do so.
    Order,
}

impl Graph {
    /// Of these edges. Those that begin at a rank are numbered from 0 on, and so are those that end there.
    ///
    /// ```
    /// use allhands_schedule::{Edge, Graph};
    /// // Rank 0 has two blocks for rank 1, which wants the second one first.
    /// let edges = [(0, 1), (1, 0)].map(|(out, into)| Edge { from: 0, out, to: 1, into });
    /// assert_eq!(Graph::new(2, edges.to_vec())?.incoming(1), [1, 0]);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn new(ranks: usize, mut edges: Vec<Edge>) -> Result<Graph> {
        edges.sort_unstable();
        if let Some(edge) = edges.iter().find(|edge| edge.from.max(edge.to) >= ranks) {
            let rank = edge.from.max(edge.to);
            return Err(wrong(format!("{edge} names rank {rank}"), format!("use ranks 0..={}", ranks.max(1) - 1)));
        }
        let numbered = |numbers: &mut dyn Iterator<Item = (usize, usize)>| {
            let mut next = vec![0; ranks];
            for (rank, number) in numbers {
                if next[rank] != number {
                    return Err(rank);
                }
                next[rank] += 1;
            }
            Ok(next
                .iter()
                .scan(0, |end, many| Some(std::mem::replace(end, *end + many)))
                .chain([edges.len()])
                .collect())
        };
        let remedy = || "number them from 0 on, each once".to_string();
        let outgoing = numbered(&mut edges.iter().map(|edge| (edge.from, edge.out))).map_err(|rank| {
            wrong(format!("the edges that begin at rank {rank} are not numbered one by one"), remedy())
        })?;
        let mut arriving: Vec<usize> = (0..edges.len()).collect();
        arriving.sort_unstable_by_key(|&edge| (edges[edge].to, edges[edge].into));
        let incoming =
            numbered(&mut arriving.iter().map(|&edge| (edges[edge].to, edges[edge].into))).map_err(|rank| {
                wrong(format!("the edges that end at rank {rank} are not numbered one by one"), remedy())
            })?;
        let words = edges.iter().flat_map(|edge| [edge.from, edge.to, edge.into]);
        let mix = |sum: u64, word: usize| (sum.rotate_left(23) ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let fingerprint = words.fold(ranks as u64, mix);
        Ok(Graph { outgoing, edges, incoming, arriving, fingerprint })
    }

    /// Of each rank whom it gets something from, and whom it has something for, in the order of the blocks. Where there are several edges from
    /// one rank to another, the first of the one is the first of the other.
    ///
    /// ```
    /// use allhands_schedule::Graph;
    /// let refused = Graph::from_lists(&[(vec![], vec![1]), (vec![], vec![])]).unwrap_err().to_string();
    /// assert!(refused.contains("rank 0 has 1 edge to rank 1, but rank 1 has 0 from rank 0"), "{refused}");
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn from_lists(lists: &[(Vec<usize>, Vec<usize>)]) -> Result<Graph> {
        let mut waiting: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for (to, (sources, _)) in lists.iter().enumerate() {
            for (into, &from) in sources.iter().enumerate() {
                waiting.entry((from, to)).or_default().push(into);
            }
        }
        waiting.values_mut().for_each(|list| list.reverse());
        let mut edges = Vec::new();
        let mismatch = |from: usize, to: usize| {
            let (sent, expected) = (
                lists.get(from).map_or(0, |(_, list)| list.iter().filter(|&&other| other == to).count()),
                lists.get(to).map_or(0, |(list, _)| list.iter().filter(|&&other| other == from).count()),
            );
            let plural = if sent == 1 { "edge" } else { "edges" };
            let fact =
                format!("rank {from} has {sent} {plural} to rank {to}, but rank {to} has {expected} from rank {from}");
            wrong(fact, "name every edge at both of its ends".into())
        };
        for (from, (_, destinations)) in lists.iter().enumerate() {
            for (out, &to) in destinations.iter().enumerate() {
                let into = waiting.get_mut(&(from, to)).and_then(Vec::pop).ok_or_else(|| mismatch(from, to))?;
                edges.push(Edge { from, out, to, into });
            }
        }
        let left = waiting.iter().filter(|(_, list)| !list.is_empty()).map(|(&ends, _)| ends).min();
        if let Some((from, to)) = left {
            return Err(mismatch(from, to));
        }
        Graph::new(lists.len(), edges)
    }

    /// MPI's cartesian grid: ranks in row-major order, for each dimension the neighbour before and the one after; none beyond an end that is not
    /// periodic.
    ///
    /// ```
    /// use allhands_schedule::{Graph, Pairing};
    /// let line = Graph::cartesian(&[3], &[false], Pairing::Direction)?;
    /// assert_eq!(line.destinations(0).collect::<Vec<_>>(), [1]);
    /// assert_eq!(line.destinations(1).collect::<Vec<_>>(), [0, 2]);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn cartesian(dims: &[usize], periodic: &[bool], pairing: Pairing) -> Result<Graph> {
        lattice(dims, periodic, &along(dims.len()), pairing)
    }

    /// The neighbours that a rank of such a grid has room for: for each dimension the one before and the one after, or nobody.
    ///
    /// ```
    /// use allhands_schedule::Graph;
    /// assert_eq!(Graph::cartesian_neighbors(&[3], &[false], 0), [None, Some(1)]);
    /// ```
    pub fn cartesian_neighbors(dims: &[usize], periodic: &[bool], rank: usize) -> Vec<Option<usize>> {
        along(dims.len()).iter().map(|offset| beside(dims, periodic, rank, offset)).collect()
    }

    /// As it is named on the command line: `grid:4x4x2` or `torus:4x4x2` (as MPI's cartesian grids; with `:corners` all ranks around),
    /// `random:DEGREE` or `random:DEGREE:SEED`.
    pub fn parse(text: &str, ranks: usize) -> Result<Graph> {
        let refuse = |fact: &str| {
            let forms = "write grid:4x4x2, torus:4x4x2, either with :corners, or random:DEGREE:SEED";
            Err(wrong(format!("{text:?} {fact}"), forms.into()))
        };
        let mut parts = text.split(':');
        let (kind, rest) = (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>());
        let number = |text: &str| text.parse::<usize>().ok();
        match (kind, &*rest) {
            ("grid" | "torus", [dims] | [dims, "corners"]) => {
                let Some(dims) = dims.split('x').map(number).collect::<Option<Vec<_>>>() else {
                    return refuse("has dimensions that are no numbers");
                };
                let seats = dims.iter().try_fold(1usize, |all, &one| all.checked_mul(one));
                if seats != Some(ranks) {
                    return refuse(&format!("is not a grid of {ranks} ranks"));
                }
                let periodic = vec![kind == "torus"; dims.len()];
                match rest.len() {
                    1 => Graph::cartesian(&dims, &periodic, Pairing::Direction),
                    _ => lattice(&dims, &periodic, &around(dims.len()), Pairing::Direction),
                }
            }
            ("random", [degree] | [degree, _]) => {
                let seed = rest.get(1).map_or(Some(1), |seed| number(seed));
                match (number(degree), seed) {
                    (Some(degree), Some(seed)) => Ok(Graph::random(ranks, degree, seed as u64)),
                    _ => refuse("has a degree or seed that is no number"),
                }
            }
            _ => refuse("is no graph"),
        }
    }

    /// What is asked where nothing is said: a grid of two dimensions, as square as the ranks allow, periodic.
    pub fn square(ranks: usize) -> Graph {
        let rows =
            (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks.is_multiple_of(*rows)).last();
        let rows = rows.unwrap_or(1);
        Graph::cartesian(&[ranks / rows, rows], &[true, true], Pairing::Direction).expect("a grid is a graph")
    }

    /// Every rank has so many others for which it has something, drawn from a seed: the same one may be drawn twice, and itself.
    ///
    /// ```
    /// use allhands_schedule::Graph;
    /// let graph = Graph::random(8, 3, 1);
    /// assert_eq!((graph.edges(), graph.destinations(5).count()), (24, 3));
    /// ```
    pub fn random(ranks: usize, degree: usize, seed: u64) -> Graph {
        let mut state = seed;
        // SplitMix64.
        let mut draw = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) as usize
        };
        let mut lists = vec![(Vec::new(), Vec::new()); ranks];
        for from in 0..ranks {
            for _ in 0..degree {
                let to = draw() % ranks;
                lists[from].1.push(to);
                // Sources come in any order.
                let place = draw() % (lists[to].0.len() + 1);
                lists[to].0.insert(place, from);
            }
        }
        Graph::from_lists(&lists).expect("every edge has both ends")
    }

    /// A number that tells it from other graphs; the same on every rank.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.outgoing.len() - 1
    }

    /// How many edges there are.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    /// An edge, by its number: they are numbered by the rank where they begin, then by their place there.
    pub fn edge(&self, number: usize) -> Edge {
        self.edges[number]
    }

    /// The numbers of the edges that begin at a rank.
    pub fn outgoing(&self, rank: usize) -> Range<usize> {
        self.outgoing[rank]..self.outgoing[rank + 1]
    }

    /// The numbers of the edges that end at a rank, in its order.
    pub fn incoming(&self, rank: usize) -> &[usize] {
        &self.arriving[self.incoming[rank]..self.incoming[rank + 1]]
    }

    /// Whom a rank has something for, in the order of its blocks.
    pub fn destinations(&self, rank: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.edges[self.outgoing(rank)].iter().map(|edge| edge.to)
    }

    /// Whom a rank gets something from, in the order of its blocks.
    pub fn sources(&self, rank: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.incoming(rank).iter().map(|&edge| self.edges[edge].from)
    }

    /// The edges that begin or end at some of the ranks: what those know of it. Blocks of theirs stay where they are.
    ///
    /// ```
    /// use allhands_schedule::Graph;
    /// let ring = Graph::parse("torus:8", 8)?;
    /// assert_eq!(ring.around(|rank| rank < 2).edges(), 6);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn around(&self, whose: impl Fn(usize) -> bool) -> Graph {
        let (mut out, mut into) = (vec![0; self.ranks()], vec![0; self.ranks()]);
        let mut edges: Vec<Edge> =
            self.edges.iter().filter(|edge| whose(edge.from) || whose(edge.to)).copied().collect();
        let next = |many: &mut usize| std::mem::replace(many, *many + 1);
        for edge in &mut edges {
            edge.out = next(&mut out[edge.from]);
        }
        edges.sort_unstable_by_key(|edge| (edge.to, edge.into));
        for edge in &mut edges {
            edge.into = next(&mut into[edge.to]);
        }
        Graph::new(self.ranks(), edges).expect("edges of a graph, numbered anew")
    }

    /// Whether every edge can be reached from every other, in whichever direction. Then all ranks that have edges move blocks of one size in a collective
    /// with one size for all of a rank's neighbours.
    ///
    /// ```
    /// use allhands_schedule::Graph;
    /// assert!(Graph::parse("torus:6", 6)?.is_connected());
    /// assert!(!Graph::from_lists(&[(vec![1], vec![1]), (vec![0], vec![0]), (vec![2], vec![2])])?.is_connected());
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn is_connected(&self) -> bool {
        let mut parents: Vec<usize> = (0..self.ranks()).collect();
        let root = |parents: &mut Vec<usize>, mut rank: usize| {
            while parents[rank] != rank {
                parents[rank] = parents[parents[rank]];
                rank = parents[rank];
            }
            rank
        };
        for edge in &self.edges {
            let (one, other) = (root(&mut parents, edge.from), root(&mut parents, edge.to));
            parents[one] = other;
        }
        let mut roots = self.edges.iter().map(|edge| root(&mut parents, edge.from));
        let first = roots.next();
        roots.all(|other| Some(other) == first)
    }

    /// How many ordered pairs of nodes have an edge from the one to the other. No schedule in which every block crosses straight from its node to
    /// where it is wanted has fewer messages between nodes.
    ///
    /// ```
    /// use allhands_schedule::{Graph, Topology};
    /// let torus = Graph::parse("torus:4x4", 16)?;
    /// assert_eq!(torus.far_pairs(&Topology::regular(4, 4)?), 8); // rows of four: each talks to the one before and the one after
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn far_pairs(&self, topology: &Topology) -> usize {
        let node = |rank| topology.region_of(1, rank);
        different(self.far_edges(topology).map(|edge| (node(edge.from), node(edge.to))))
    }

    /// How many ordered pairs of ranks on different nodes have an edge from the one to the other: the messages between nodes where every rank sends
    /// straight to its neighbours.
    ///
    /// ```
    /// use allhands_schedule::{Graph, Topology};
    /// let torus = Graph::parse("torus:4x4", 16)?;
    /// assert_eq!(torus.far_neighbors(&Topology::regular(4, 4)?), 32);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn far_neighbors(&self, topology: &Topology) -> usize {
        different(self.far_edges(topology).map(|edge| (edge.from, edge.to)))
    }

    fn far_edges<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = &'a Edge> {
        self.edges.iter().filter(|edge| topology.far(edge.from, edge.to))
    }
}

/// How many different ones there are.
fn different(pairs: impl Iterator<Item = (usize, usize)>) -> usize {
    let mut pairs: Vec<(usize, usize)> = pairs.collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len()
}

/// Ranks of a grid in row-major order, each with the neighbours at these offsets that there are; offsets come in opposite pairs.
fn lattice(dims: &[usize], periodic: &[bool], offsets: &[Vec<isize>], pairing: Pairing) -> Result<Graph> {
    let ranks = dims.iter().try_fold(1usize, |all, &one| all.checked_mul(one)).unwrap_or(usize::MAX);
    if ranks == 0 || ranks.saturating_mul(offsets.len().max(1)) > MOST_EDGES {
        let fact = format!("a grid of {} has no ranks, or too many", named(dims));
        return Err(wrong(fact, format!("use at most {MOST_EDGES} edges")));
    }
    let neighbors = |rank: usize| offsets.iter().map(move |offset| beside(dims, periodic, rank, offset));
    if pairing == Pairing::Order {
        let list = |rank| neighbors(rank).flatten().collect::<Vec<_>>();
        return Graph::from_lists(&(0..ranks).map(|rank| (list(rank), list(rank))).collect::<Vec<_>>());
    }
    let opposite: Vec<usize> = (offsets.iter())
        .map(|offset| offsets.iter().position(|other| other.iter().zip(offset).all(|(a, b)| *a == -b)))
        .map(|found| found.expect("offsets come in opposite pairs"))
        .collect();
    let mut edges = Vec::new();
    for from in 0..ranks {
        let there = neighbors(from).enumerate().filter_map(|(way, other)| other.map(|to| (way, to)));
        for (out, (way, to)) in there.enumerate() {
            let into = neighbors(to).take(opposite[way]).flatten().count();
            edges.push(Edge { from, out, to, into });
        }
    }
    Graph::new(ranks, edges)
}

/// The rank at an offset from another, if there is one.
fn beside(dims: &[usize], periodic: &[bool], rank: usize, offset: &[isize]) -> Option<usize> {
    let (mut stride, mut other) = (1, 0);
    for (dimension, (&size, &step)) in dims.iter().zip(offset).enumerate().rev() {
        let at = (rank / stride % size) as isize + step;
        let at = if periodic[dimension] { at.rem_euclid(size as isize) } else { at };
        if at < 0 || at >= size as isize {
            return None;
        }
        other += at as usize * stride;
        stride *= size;
    }
    Some(other)
}

/// The offsets along each dimension: the one before, and the one after.
fn along(dimensions: usize) -> Vec<Vec<isize>> {
    let step = |dimension: usize, by: isize| {
        let mut offset = vec![0; dimensions];
        offset[dimension] = by;
        offset
    };
    (0..dimensions).flat_map(|one| [step(one, -1), step(one, 1)]).collect()
}

/// The offsets to all ranks around, corners included.
fn around(dimensions: usize) -> Vec<Vec<isize>> {
    let all = 3usize.pow(dimensions as u32);
    let offset = |number: usize| -> Vec<isize> {
        (0..dimensions).rev().map(|dimension| (number / 3usize.pow(dimension as u32) % 3) as isize - 1).collect()
    };
    (0..all).map(offset).filter(|offset| offset.iter().any(|&step| step != 0)).collect()
}

/// No grid of more is made.
const MOST_EDGES: usize = 1 << 28;

fn named(dims: &[usize]) -> String {
    dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

fn wrong(fact: String, remedy: String) -> Error {
    Error::Graph { fact, remedy }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Graph) -> bool {
        self.fingerprint == other.fingerprint && self.outgoing == other.outgoing && self.edges == other.edges
    }
}

impl Eq for Graph {}

impl Hash for Graph {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the edge from rank {} to rank {}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_two_is_told_apart_by_direction_or_by_order() {
        let ring = |pairing| Graph::cartesian(&[2], &[true], pairing).unwrap();
        assert_eq!(ring(Pairing::Direction).incoming(0), [3, 2]);
        assert_eq!(ring(Pairing::Order).incoming(0), [2, 3]);
        let alone = Graph::cartesian(&[1], &[true], Pairing::Direction).unwrap();
        assert_eq!(alone.incoming(0), [1, 0]);
    }

    #[test]
    fn a_grid_has_the_neighbours_of_mpi() {
        let grid = Graph::cartesian(&[2, 3], &[false, true], Pairing::Direction).unwrap();
        assert_eq!(grid.destinations(0).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(grid.sources(4).collect::<Vec<_>>(), [1, 3, 5]);
        let corners = Graph::parse("torus:3x3x3:corners", 27).unwrap();
        assert!((0..27).all(|rank| corners.destinations(rank).count() == 26));
        assert_eq!(Graph::parse("grid:3x3:corners", 9).unwrap().edges(), 4 * 3 + 4 * 5 + 8);
        let back = |graph: &Graph| {
            (0..graph.edges()).all(|number| {
                let Edge { from, to, .. } = graph.edge(number);
                graph.destinations(to).any(|other| other == from)
            })
        };
        assert!(back(&grid) && back(&corners));
    }

    #[test]
    fn the_neighbours_of_a_grid_are_those_of_its_graph() {
        for (dims, periods) in [(vec![3, 4], [true, false]), (vec![1, 5], [true, true]), (vec![2, 2], [false, true])] {
            let graph = Graph::cartesian(&dims, &periods, Pairing::Direction).unwrap();
            for rank in 0..dims.iter().product() {
                let list: Vec<usize> =
                    Graph::cartesian_neighbors(&dims, &periods, rank).into_iter().flatten().collect();
                assert!(graph.destinations(rank).eq(list.iter().copied()), "{dims:?} rank {rank}");
                assert!(graph.sources(rank).eq(list), "{dims:?} rank {rank}");
            }
        }
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        for (text, part) in [
            ("grid:2x2", "is not a grid of 6 ranks"),
            ("grid:2xthree", "no numbers"),
            ("torus", "is no graph"),
            ("random:x", "no number"),
            ("grid:99999999999x99999999999", "is not a grid of 6 ranks"),
            ("", "is no graph"),
        ] {
            let refused = Graph::parse(text, 6).unwrap_err().to_string();
            assert!(refused.contains(part) && refused.contains("grid:4x4x2"), "{refused}");
        }
        let edge = |from, out, to, into| Edge { from, out, to, into };
        for edges in [vec![edge(0, 1, 1, 0)], vec![edge(0, 0, 1, 1)], vec![edge(0, 0, 2, 0)], vec![edge(0, 0, 1, 0); 2]]
        {
            assert!(Graph::new(2, edges).is_err());
        }
        assert!(Graph::cartesian(&[1 << 40, 1 << 40], &[true; 2], Pairing::Order).is_err());
    }

    #[test]
    fn some_ranks_keep_their_blocks_where_they_are() {
        for seed in 0..50 {
            let graph = Graph::random(9, 4, seed);
            let part = graph.around(|rank| rank % 3 == 1);
            for rank in (0..9).filter(|rank| rank % 3 == 1) {
                assert!(graph.destinations(rank).eq(part.destinations(rank)));
                assert!(graph.sources(rank).eq(part.sources(rank)));
                let outs = |graph: &Graph| graph.incoming(rank).iter().map(|&one| graph.edge(one)).collect::<Vec<_>>();
                let (all, some) = (outs(&graph), outs(&part));
                for (one, other) in all.iter().zip(&some).filter(|(one, _)| one.from % 3 == 1) {
                    assert_eq!(one, other);
                }
            }
        }
    }
}
