//! Who sits where: nested regions, even or uneven, with any placement of ranks on seats.
//!
//! Seats are numbered through the machine, region after region, so that a region of any level is a run of seats.
//! A placement says which rank takes which seat. A regular machine with a sequential or cyclic placement takes
//! constant memory, so a million ranks cost nothing.
//!
//! ```
//! use allhands_schedule::Topology;
//! let topology: Topology = "64x2x8".parse()?; // nodes x sockets x ranks
//! assert_eq!((topology.ranks(), topology.depth()), (1024, 2));
//! let uneven = "3,5,4".parse::<Topology>()?.cyclic();
//! assert_eq!(uneven.to_string(), "[[0,3,6],[1,4,7,9,11],[2,5,8,10]]");
//! # Ok::<(), allhands_schedule::Error>(())
//! ```

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::{Error, Result};

/// Which rank sits in which region at which level.
///
/// Level 0 is everybody; level 1 has the outermost regions (nodes), level 2 what is inside them (sockets), and so on
/// down to [`depth`](Topology::depth). A flat topology has depth 0; algorithms that ask it for its nodes get one.
#[derive(Clone, Debug)]
pub struct Topology {
    ranks: usize,
    levels: Vec<Bounds>,
    placement: Placement,
}

/// Where the regions of one level begin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bounds {
    Even {
        size: usize,
    },
    /// The first seat of every region, and one past the last seat of all.
    Uneven {
        starts: Vec<usize>,
    },
}

#[derive(Clone, Debug)]
enum Placement {
    Sequential,
    /// Ranks dealt out to this many even nodes, one by one.
    Dealt {
        nodes: usize,
    },
    Listed {
        rank_at: Vec<usize>,
        seat_of: Vec<usize>,
    },
}

/// More ranks cannot be counted in the 32 bits that a rank has.
const MOST_RANKS: usize = u32::MAX as usize;

/// No machine has more levels, and whoever walks down a topology needs a bounded stack.
const MOST_LEVELS: usize = 64;

impl Topology {
    /// Ranks with nothing between them.
    pub fn flat(ranks: usize) -> Result<Topology> {
        Topology::nested(&[ranks])
    }

    /// `nodes` of `ranks_per_node` each.
    pub fn regular(nodes: usize, ranks_per_node: usize) -> Result<Topology> {
        Topology::nested(&[nodes, ranks_per_node])
    }

    /// The same; ranks with nothing between them are on one node, as programs have it.
    ///
    /// ```
    /// use allhands_schedule::Topology;
    /// assert_eq!(Topology::flat(4)?.on_nodes(), Topology::regular(1, 4)?);
    /// assert_eq!(Topology::regular(2, 2)?.on_nodes(), Topology::regular(2, 2)?);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn on_nodes(&self) -> Topology {
        match self.depth() {
            0 => Topology::regular(1, self.ranks()).expect("as many ranks as there are"),
            _ => self.clone(),
        }
    }

    /// Even regions, outermost count first, ranks of the innermost region last: `[64, 2, 8]`.
    pub fn nested(counts: &[usize]) -> Result<Topology> {
        let text = || counts.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        let wrong = |fact: String| Error::Topology { text: text(), fact };
        check_levels(counts.len().saturating_sub(1)).map_err(wrong)?;
        let too_large = || wrong("more ranks than can be counted".into());
        let ranks = counts.iter().try_fold(1usize, |product, &count| product.checked_mul(count));
        let ranks = ranks.filter(|&ranks| ranks <= MOST_RANKS).ok_or_else(too_large)?;
        if ranks == 0 || counts.is_empty() {
            return Err(Error::Topology { text: text(), fact: "there are 0 ranks".into() });
        }
        let mut size = ranks;
        let levels = counts[..counts.len() - 1].iter().map(|count| {
            size /= count;
            Bounds::Even { size }
        });
        Ok(Topology { ranks, levels: levels.collect(), placement: Placement::Sequential })
    }

    /// Nodes of the sizes given.
    pub fn uneven(sizes: &[usize]) -> Result<Topology> {
        let wrong = |fact: &str| {
            let text = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            Err(Error::Topology { text, fact: fact.into() })
        };
        if sizes.is_empty() || sizes.contains(&0) {
            return wrong("a node has 0 ranks");
        }
        if sizes.iter().fold(0, |sum: usize, &size| sum.saturating_add(size)) > MOST_RANKS {
            return wrong("more ranks than can be counted");
        }
        let mut starts = vec![0];
        for size in sizes {
            starts.push(starts[starts.len() - 1] + size);
        }
        let ranks = starts[sizes.len()];
        Ok(Topology { ranks, levels: vec![Bounds::of(starts)], placement: Placement::Sequential })
    }

    /// The same machine with ranks dealt out to the nodes one by one, each node filled in order.
    pub fn cyclic(self) -> Topology {
        if let Some(Bounds::Even { size }) = self.levels.first() {
            let nodes = self.ranks / size;
            return Topology { placement: Placement::Dealt { nodes }, ..self };
        }
        if self.levels.is_empty() {
            return self;
        }
        let mut rank_at = vec![0; self.ranks];
        let mut next = 0;
        for turn in 0..self.ranks {
            for node in 0..self.regions(1) {
                let seats = self.region(1, node);
                if turn < seats.len() {
                    rank_at[seats.start + turn] = next;
                    next += 1;
                }
            }
        }
        let placed = self.ranks;
        Topology { ranks: placed, levels: self.levels, placement: Placement::listed(rank_at) }
    }

    /// The same machine with the ranks of `rank_at` on its seats, in order.
    pub fn placed(self, rank_at: Vec<usize>) -> Result<Topology> {
        let ranks = self.ranks;
        let wrong = |fact| Err(Error::Placement { fact, ranks });
        if rank_at.len() != ranks {
            return wrong(format!("{} ranks are listed for {ranks} seats", rank_at.len()));
        }
        let mut seen = vec![false; ranks];
        for &rank in &rank_at {
            if rank >= ranks {
                return wrong(format!("there is no rank {rank}"));
            }
            if std::mem::replace(&mut seen[rank], true) {
                return wrong(format!("rank {rank} is listed twice"));
            }
        }
        let sequential = rank_at.iter().enumerate().all(|(seat, &rank)| seat == rank);
        let placement = if sequential { Placement::Sequential } else { Placement::listed(rank_at) };
        Ok(Topology { placement, ..self })
    }

    /// Ranks grouped by where they are: `places[rank]` names its region at every level, outermost first. Regions are ordered
    /// by their lowest rank; levels that tell nothing apart are left out, except nodes.
    ///
    /// ```
    /// use allhands_schedule::Topology;
    /// let places = [[7, 0], [3, 0], [7, 1], [3, 1]].map(Vec::from); // node and socket of each rank
    /// assert_eq!(Topology::grouped(&places)?.to_string(), "[[[0],[2]],[[1],[3]]]");
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn grouped(places: &[Vec<u64>]) -> Result<Topology> {
        let depth = places.first().map_or(0, Vec::len);
        let wrong = |fact: String| Error::Topology { text: String::new(), fact };
        if places.is_empty() || places.iter().any(|place| place.len() != depth) {
            return Err(wrong("every rank needs a place, and all as many levels".into()));
        }
        // The lowest rank of a rank's region at a level stands for the region.
        let ranks = places.len();
        let mut lowest: HashMap<&[u64], usize> = HashMap::new();
        for (rank, place) in places.iter().enumerate() {
            (1..=depth).for_each(|level| {
                lowest.entry(&place[..level]).or_insert(rank);
            });
        }
        let region = |rank: usize, level: usize| lowest[&places[rank][..level]];
        let mut rank_at: Vec<usize> = (0..ranks).collect();
        rank_at.sort_by_key(|&rank| ((1..=depth).map(|level| region(rank, level)).collect::<Vec<_>>(), rank));
        let starts = |level: usize| {
            let begins =
                |seat: &usize| *seat == 0 || region(rank_at[*seat], level) != region(rank_at[*seat - 1], level);
            (0..ranks).filter(begins).chain(std::iter::once(ranks)).collect::<Vec<_>>()
        };
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for level in (1..=depth).map(starts) {
            if levels.last() != Some(&level) {
                levels.push(level);
            }
        }
        check_levels(levels.len()).map_err(wrong)?;
        let levels = levels.into_iter().map(Bounds::of).collect();
        Topology { ranks, levels, placement: Placement::Sequential }.placed(rank_at)
    }

    /// The machine as some of its ranks see it, renumbered in the order given: regions with none of them vanish.
    ///
    /// ```
    /// use allhands_schedule::Topology;
    /// let half = Topology::regular(3, 2)?.of_members(&[5, 0, 1])?;
    /// assert_eq!(half.to_string(), "[[1,2],[0]]");
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn of_members(&self, members: &[usize]) -> Result<Topology> {
        let ranks = members.len();
        let mut new_rank: Vec<Option<usize>> = vec![None; self.ranks];
        for (new, &old) in members.iter().enumerate() {
            let place = new_rank.get_mut(old).filter(|place| place.is_none());
            *place.ok_or_else(|| Error::Placement {
                fact: format!("rank {old} is no rank or is named twice"),
                ranks: self.ranks,
            })? = Some(new);
        }
        let seats: Vec<usize> = (0..self.ranks).filter(|&seat| new_rank[self.rank_at(seat)].is_some()).collect();
        if seats.is_empty() {
            return Err(Error::Topology { text: String::new(), fact: "there are 0 ranks".into() });
        }
        let level = |level: usize| {
            let region = |index: usize| self.region_of_seat(level, seats[index]);
            let mut starts: Vec<usize> =
                (0..ranks).filter(|&index| index == 0 || region(index) != region(index - 1)).collect();
            starts.push(ranks);
            Bounds::of(starts)
        };
        let levels = (1..=self.depth()).map(level).collect();
        let rank_at = seats.iter().filter_map(|&seat| new_rank[self.rank_at(seat)]).collect();
        Topology { ranks, levels, placement: Placement::Sequential }.placed(rank_at)
    }

    /// How many ranks there are; at least one.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// How many levels of regions there are below everybody: 0 flat, 1 nodes, 2 nodes and sockets.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// How many regions a level has. A level deeper than the topology has the regions of its deepest.
    pub fn regions(&self, level: usize) -> usize {
        match self.bounds(level) {
            None => 1,
            Some(Bounds::Even { size }) => self.ranks / size,
            Some(Bounds::Uneven { starts }) => starts.len() - 1,
        }
    }

    /// The seats of a region.
    pub fn region(&self, level: usize, index: usize) -> Range<usize> {
        match self.bounds(level) {
            None => 0..self.ranks,
            Some(Bounds::Even { size }) => index * size..(index + 1) * size,
            Some(Bounds::Uneven { starts }) => starts[index]..starts[index + 1],
        }
    }

    /// The region in which a seat lies.
    pub fn region_of_seat(&self, level: usize, seat: usize) -> usize {
        match self.bounds(level) {
            None => 0,
            Some(Bounds::Even { size }) => seat / size,
            Some(Bounds::Uneven { starts }) => starts.partition_point(|&start| start <= seat) - 1,
        }
    }

    /// The region in which a rank sits.
    pub fn region_of(&self, level: usize, rank: usize) -> usize {
        self.region_of_seat(level, self.seat_of(rank))
    }

    /// The rank on a seat.
    pub fn rank_at(&self, seat: usize) -> usize {
        match &self.placement {
            Placement::Sequential => seat,
            Placement::Dealt { nodes } => {
                let size = self.ranks / nodes;
                seat % size * nodes + seat / size
            }
            Placement::Listed { rank_at, .. } => rank_at[seat],
        }
    }

    /// The seat of a rank.
    pub fn seat_of(&self, rank: usize) -> usize {
        match &self.placement {
            Placement::Sequential => rank,
            Placement::Dealt { nodes } => rank % nodes * (self.ranks / nodes) + rank / nodes,
            Placement::Listed { seat_of, .. } => seat_of[rank],
        }
    }

    /// The ranks of a region, in seat order.
    pub fn members(&self, level: usize, index: usize) -> impl Iterator<Item = usize> + '_ {
        self.region(level, index).map(|seat| self.rank_at(seat))
    }

    /// The deepest level at which two ranks share a region: 0 when a message between them is far.
    pub fn shared_level(&self, a: usize, b: usize) -> usize {
        let (a, b) = (self.seat_of(a), self.seat_of(b));
        let same = |level: &usize| self.region_of_seat(*level, a) == self.region_of_seat(*level, b);
        (1..=self.depth()).take_while(same).last().unwrap_or(0)
    }

    /// Whether a message between two ranks crosses the outermost regions.
    pub fn far(&self, a: usize, b: usize) -> bool {
        self.depth() > 0 && self.shared_level(a, b) == 0
    }

    /// Whether seats and ranks are the same.
    pub fn is_sequential(&self) -> bool {
        match &self.placement {
            Placement::Sequential => true,
            Placement::Dealt { nodes } => *nodes == 1 || *nodes == self.ranks,
            Placement::Listed { .. } => false,
        }
    }

    /// The ranks that sit on a run of seats, as runs of consecutive ranks.
    pub fn rank_runs(&self, seats: Range<usize>) -> Vec<Range<usize>> {
        if self.is_sequential() {
            return vec![seats];
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        for rank in seats.map(|seat| self.rank_at(seat)) {
            match runs.last_mut() {
                Some(run) if run.end == rank => run.end += 1,
                _ => runs.push(rank..rank + 1),
            }
        }
        runs
    }

    /// The smallest and the largest region of a level.
    pub fn region_sizes(&self, level: usize) -> (usize, usize) {
        match self.bounds(level) {
            None => (self.ranks, self.ranks),
            Some(Bounds::Even { size }) => (*size, *size),
            Some(Bounds::Uneven { starts }) => {
                let sizes = || starts.windows(2).map(|pair| pair[1] - pair[0]);
                (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
            }
        }
    }

    fn bounds(&self, level: usize) -> Option<&Bounds> {
        let deepest = level.min(self.levels.len());
        deepest.checked_sub(1).map(|index| &self.levels[index])
    }

    fn write_region(&self, f: &mut fmt::Formatter<'_>, level: usize, index: usize) -> fmt::Result {
        let seats = self.region(level, index);
        f.write_str("[")?;
        if level == self.depth() {
            for seat in seats.clone() {
                let comma = if seat > seats.start { "," } else { "" };
                write!(f, "{comma}{}", self.rank_at(seat))?;
            }
        } else {
            let first = self.region_of_seat(level + 1, seats.start);
            let last = self.region_of_seat(level + 1, seats.end - 1);
            for inner in first..=last {
                f.write_str(if inner > first { "," } else { "" })?;
                self.write_region(f, level + 1, inner)?;
            }
        }
        f.write_str("]")
    }
}

/// Equal when the same ranks sit in the same regions in the same order, however that is stored.
impl PartialEq for Topology {
    fn eq(&self, other: &Topology) -> bool {
        self.ranks == other.ranks
            && self.levels == other.levels
            && (0..self.ranks).all(|seat| self.rank_at(seat) == other.rank_at(seat))
    }
}

impl Eq for Topology {}

impl Bounds {
    fn of(starts: Vec<usize>) -> Bounds {
        let size = starts[1] - starts[0];
        if starts.windows(2).all(|pair| pair[1] - pair[0] == size) {
            Bounds::Even { size }
        } else {
            Bounds::Uneven { starts }
        }
    }
}

impl Placement {
    fn listed(rank_at: Vec<usize>) -> Placement {
        let mut seat_of = vec![0; rank_at.len()];
        for (seat, &rank) in rank_at.iter().enumerate() {
            seat_of[rank] = seat;
        }
        Placement::Listed { rank_at, seat_of }
    }
}

/// Prints nested lists of ranks, outermost level first; parsing them gives an equal arrangement back.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_region(f, 0, 0)
    }
}

impl FromStr for Topology {
    type Err = Error;

    fn from_str(text: &str) -> Result<Topology> {
        let text = text.trim();
        let wrong = |fact: String| Error::Topology { text: text.into(), fact };
        if text.starts_with('[') {
            let value: serde_json::Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            return from_lists(&value).map_err(|error| match error {
                Lists::Shape(fact) => wrong(fact),
                Lists::Placement(error) => error,
            });
        }
        let number = |part: &str| {
            let parsed = part.trim().parse::<usize>();
            parsed.map_err(|_| wrong(format!("{part:?} is not a count")))
        };
        if text.contains(',') {
            let sizes: Vec<usize> = text.split(',').map(number).collect::<Result<_>>()?;
            return Topology::uneven(&sizes);
        }
        let counts: Vec<usize> = text.split(['x', 'X']).map(number).collect::<Result<_>>()?;
        Topology::nested(&counts)
    }
}

fn check_levels(levels: usize) -> std::result::Result<(), String> {
    if levels <= MOST_LEVELS { Ok(()) } else { Err(format!("{levels} levels are more than {MOST_LEVELS}")) }
}

enum Lists {
    Shape(String),
    Placement(Error),
}

fn from_lists(value: &serde_json::Value) -> std::result::Result<Topology, Lists> {
    let mut depth = 0;
    let mut innermost = value;
    while let Some(first) = innermost.as_array().and_then(|list| list.first()) {
        innermost = first;
        depth += 1;
    }
    check_levels(depth.max(1) - 1).map_err(Lists::Shape)?;
    let mut starts = vec![vec![]; depth.max(1) - 1];
    let mut rank_at = Vec::new();
    walk(value, &mut starts, 0, &mut rank_at)?;
    let ranks = rank_at.len();
    let close = |mut starts: Vec<usize>| {
        starts.push(ranks);
        Bounds::of(starts)
    };
    let levels = starts.into_iter().map(close).collect();
    Topology { ranks, levels, placement: Placement::Sequential }.placed(rank_at).map_err(Lists::Placement)
}

fn walk(
    value: &serde_json::Value,
    starts: &mut [Vec<usize>],
    level: usize,
    rank_at: &mut Vec<usize>,
) -> std::result::Result<(), Lists> {
    let shape = |fact: &str| Err(Lists::Shape(fact.into()));
    let Some(list) = value.as_array() else { return shape("lists are nested to different depths") };
    if list.is_empty() {
        return shape("a region has 0 ranks");
    }
    for inner in list {
        if level < starts.len() {
            starts[level].push(rank_at.len());
            walk(inner, starts, level + 1, rank_at)?;
        } else {
            match inner.as_u64() {
                Some(rank) => rank_at.push(rank as usize),
                None => return shape("lists are nested to different depths, or hold something that is not a rank"),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_round_trips_through_nested_lists() {
        for text in ["1", "16", "4x4", "2x2x3", "3,5,4", "1x7", "7x1"] {
            for cyclic in [false, true] {
                let parsed: Topology = text.parse().unwrap();
                let topology = if cyclic { parsed.cyclic() } else { parsed };
                let again: Topology = topology.to_string().parse().unwrap();
                assert_eq!(again, topology);
                assert_eq!((again.ranks(), again.depth()), (topology.ranks(), topology.depth()));
                for rank in 0..topology.ranks() {
                    assert_eq!(topology.rank_at(topology.seat_of(rank)), rank);
                    assert_eq!(again.seat_of(rank), topology.seat_of(rank));
                    for level in 0..=topology.depth() {
                        let region = topology.region_of(level, rank);
                        assert!(topology.members(level, region).any(|member| member == rank));
                    }
                }
            }
        }
    }

    #[test]
    fn sockets_nest_in_nodes() {
        let topology: Topology = "2x2x2".parse().unwrap();
        assert_eq!(topology.to_string(), "[[[0,1],[2,3]],[[4,5],[6,7]]]");
        assert_eq!([0, 1, 2, 4].map(|other| topology.shared_level(0, other)), [2, 2, 1, 0]);
        assert!(topology.far(3, 4) && !topology.far(3, 2));
        assert_eq!("2x2x2".parse::<Topology>().unwrap().cyclic().to_string(), "[[[0,2],[4,6]],[[1,3],[5,7]]]");
    }

    #[test]
    fn bad_topologies_say_what_is_wrong_and_what_would_be_legal() {
        let message = |text: &str| text.parse::<Topology>().unwrap_err().to_string();
        for (text, fact) in [
            ("0", "0 ranks"),
            ("4x0", "0 ranks"),
            ("", "not a count"),
            ("3,0", "a node has 0 ranks"),
            ("4xx4", "not a count"),
            ("99999999999x99999999999", "more ranks"),
            ("[[0,1],2]", "different depths"),
            ("[[0,1],[]]", "0 ranks"),
        ] {
            assert!(message(text).contains(fact) && message(text).contains("4x16"), "{text}: {}", message(text));
        }
        for text in ["18446744073709551615,2", "4294967295,1"] {
            assert!(message(text).contains("more ranks"), "{}", message(text));
        }
        for text in [["1"; 66].join("x"), "[".repeat(66) + "0" + &"]".repeat(66)] {
            assert!(message(&text).contains("65 levels"), "{}", message(&text));
        }
        assert_eq!(["1"; 65].join("x").parse::<Topology>().unwrap().depth(), 64);
        assert!(message("[[0,1],[1,2]]").contains("rank 1 is listed twice"));
    }

    #[test]
    fn a_placement_must_be_a_permutation() {
        let place = |ranks: &[usize]| Topology::regular(2, 2).unwrap().placed(ranks.to_vec());
        assert_eq!(place(&[3, 1, 2, 0]).unwrap().to_string(), "[[3,1],[2,0]]");
        assert!(place(&[0, 1, 1, 2]).unwrap_err().to_string().contains("rank 1 is listed twice"));
        assert!(place(&[0, 1, 2]).unwrap_err().to_string().contains("3 ranks are listed for 4 seats"));
        assert!(place(&[0, 1, 2, 4]).unwrap_err().to_string().contains("there is no rank 4"));
    }
}
