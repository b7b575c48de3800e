//! What is asked: which collective, among whom, how much, and what the reduction allows.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::schedule::Space;
use crate::{Error, Graph, Result, Topology};

/// The collectives, named as MPI names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collective {
    /// Everybody gets every rank's block.
    Allgather,
    /// Allgather with a size for each rank.
    Allgatherv,
    /// Everybody has a block for everybody.
    Alltoall,
    /// Alltoall with a size for each pair.
    Alltoallv,
    /// Everybody gets the reduction of all vectors.
    Allreduce,
    /// Rank `r` gets part `r` of the reduction, parts of any size.
    ReduceScatter,
    /// Reduce_scatter with equal parts.
    ReduceScatterBlock,
    /// Everybody gets the root's vector.
    Bcast,
    /// The root gets the reduction of all vectors.
    Reduce,
    /// The root gets every rank's block.
    Gather,
    /// Gather with a size for each rank.
    Gatherv,
    /// Every rank gets a block of the root's.
    Scatter,
    /// Scatter with a size for each rank.
    Scatterv,
    /// Rank `r` gets the reduction of the vectors of ranks `0..=r`.
    Scan,
    /// Rank `r` gets the reduction of the vectors of ranks `0..r`; rank 0 gets nothing.
    Exscan,
    /// Everybody gets the block of each of its neighbours.
    NeighborAllgather,
    /// The same with a size for each rank.
    NeighborAllgatherv,
    /// Everybody has a block for each of its neighbours.
    NeighborAlltoall,
    /// The same with a size for each edge.
    NeighborAlltoallv,
    /// Nobody leaves before everybody has come.
    Barrier,
}

impl Collective {
    /// All of them.
    pub const ALL: [Collective; 20] = [
        Collective::Allgather,
        Collective::Allgatherv,
        Collective::Alltoall,
        Collective::Alltoallv,
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::ReduceScatterBlock,
        Collective::Bcast,
        Collective::Reduce,
        Collective::Gather,
        Collective::Gatherv,
        Collective::Scatter,
        Collective::Scatterv,
        Collective::Scan,
        Collective::Exscan,
        Collective::NeighborAllgather,
        Collective::NeighborAllgatherv,
        Collective::NeighborAlltoall,
        Collective::NeighborAlltoallv,
        Collective::Barrier,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Allgather => "allgather",
            Collective::Allgatherv => "allgatherv",
            Collective::Alltoall => "alltoall",
            Collective::Alltoallv => "alltoallv",
            Collective::Allreduce => "allreduce",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::ReduceScatterBlock => "reduce_scatter_block",
            Collective::Bcast => "bcast",
            Collective::Reduce => "reduce",
            Collective::Gather => "gather",
            Collective::Gatherv => "gatherv",
            Collective::Scatter => "scatter",
            Collective::Scatterv => "scatterv",
            Collective::Scan => "scan",
            Collective::Exscan => "exscan",
            Collective::NeighborAllgather => "neighbor_allgather",
            Collective::NeighborAllgatherv => "neighbor_allgatherv",
            Collective::NeighborAlltoall => "neighbor_alltoall",
            Collective::NeighborAlltoallv => "neighbor_alltoallv",
            Collective::Barrier => "barrier",
        }
    }

    /// The collective whose schedules this one uses: a vector form and its plain form share them.
    pub fn family(self) -> Collective {
        match self {
            Collective::Allgatherv => Collective::Allgather,
            Collective::Alltoallv => Collective::Alltoall,
            Collective::ReduceScatterBlock => Collective::ReduceScatter,
            Collective::Gatherv => Collective::Gather,
            Collective::Scatterv => Collective::Scatter,
            Collective::NeighborAllgatherv => Collective::NeighborAllgather,
            Collective::NeighborAlltoallv => Collective::NeighborAlltoall,
            other => other,
        }
    }

    /// Whether operands are combined.
    pub fn reduces(self) -> bool {
        matches!(self.family(), Collective::Allreduce | Collective::ReduceScatter | Collective::Reduce)
            || self.prefixes()
    }

    /// Whether rank `r` gets the reduction of the ranks before it.
    pub fn prefixes(self) -> bool {
        matches!(self, Collective::Scan | Collective::Exscan)
    }

    /// Whether one rank is special.
    pub fn rooted(self) -> bool {
        matches!(self.family(), Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Scatter)
    }

    /// Whether every rank has one vector, which the algorithm cuts into as many blocks as it likes.
    pub fn cuts(self) -> bool {
        matches!(self, Collective::Allreduce | Collective::Bcast | Collective::Reduce) || self.prefixes()
    }

    /// Whether blocks move along the edges of a graph.
    ///
    /// ```
    /// use allhands_schedule::Collective;
    /// assert!(Collective::NeighborAlltoallv.has_graph() && !Collective::Alltoallv.has_graph());
    /// ```
    pub fn has_graph(self) -> bool {
        matches!(self.family(), Collective::NeighborAllgather | Collective::NeighborAlltoall)
    }

    /// Whether a rank that calls it in MPI knows of the counts those of its own blocks only. (The root of a gatherv or a scatterv knows all.) So it is
    /// with all neighbourhood collectives: sizes are the same for ranks that are connected, and only for those.
    ///
    /// ```
    /// use allhands_schedule::Collective;
    /// assert!(Collective::Alltoallv.hides_counts() && !Collective::Allgatherv.hides_counts());
    /// ```
    pub fn hides_counts(self) -> bool {
        matches!(self, Collective::Alltoallv | Collective::Gatherv | Collective::Scatterv) || self.has_graph()
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Collective {
    type Err = Error;

    /// Also as MPI writes it: `MPI_Allreduce`, `Allreduce`.
    fn from_str(text: &str) -> Result<Collective> {
        let lower = text.trim().to_ascii_lowercase().replace('-', "_");
        let name = lower.strip_prefix("mpi_").unwrap_or(&lower);
        Collective::ALL.into_iter().find(|collective| collective.name() == name).ok_or_else(|| {
            let known: Vec<_> = Collective::ALL.iter().map(|collective| collective.name()).collect();
            Error::UnknownCollective { name: text.into(), meant: meant(name), known: known.join(", ") }
        })
    }
}

/// The collective that is spelt most like this, unless none is; words in another order are like it, too.
fn meant(name: &str) -> Option<&'static str> {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let away = |known: &str| {
        let spelt = distance(&name.chars().collect::<Vec<_>>(), &known.chars().collect::<Vec<_>>());
        // An order is a fault, too.
        spelt.min(1 + distance(&sorted(name), &sorted(known)))
    };
    let known = Collective::ALL.into_iter().map(Collective::name).map(|known| (away(known), known));
    known.min().filter(|(away, _)| *away <= name.chars().count() / 2).map(|(_, known)| known)
}

/// Letters to insert, to leave out or to change.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut left = row + 1;
        let mut corner = std::mem::replace(&mut above[0], left);
        for (column, against) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != against);
            corner = above[column + 1];
            left = changed.min(left + 1).min(corner + 1);
            above[column + 1] = left;
        }
    }
    above[other.len()]
}

/// What the reduction allows and asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Whether operands may be combined in another order than that of the ranks.
    pub commutative: bool,
    /// Whether every rank must get the same bits, also where rounding depends on the order.
    pub identical: bool,
}

impl Default for Reduction {
    fn default() -> Reduction {
        Reduction { commutative: true, identical: false }
    }
}

/// What is asked of an algorithm. Every rank has the same one.
///
/// ```
/// use allhands_schedule::{Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(4, 4)?);
/// assert_eq!(problem.ranks(), 16);
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which collective.
    pub collective: Collective,
    /// Among whom.
    pub topology: Topology,
    /// The special rank of a rooted collective; 0 otherwise.
    pub root: usize,
    /// Who talks to whom in a neighbourhood collective; none otherwise.
    pub graph: Option<Arc<Graph>>,
    /// Sizes of the blocks, where they differ: one for each rank (allgatherv, reduce_scatter, gatherv, scatterv, neighbor_allgatherv), for each pair,
    /// source-major (alltoallv), or for each edge (neighbor_alltoallv). Empty means equal.
    pub counts: Vec<usize>,
    /// What the reduction allows.
    pub reduction: Reduction,
}

impl Problem {
    /// With root 0, equal counts and a commutative reduction; in a neighbourhood collective with the [graph of a square](Graph::square).
    pub fn new(collective: Collective, topology: Topology) -> Problem {
        let graph = collective.has_graph().then(|| Arc::new(Graph::square(topology.ranks())));
        Problem { collective, topology, root: 0, graph, counts: Vec::new(), reduction: Reduction::default() }
    }

    /// With another graph; before the counts.
    ///
    /// ```
    /// use allhands_schedule::{Collective, Graph, Problem, Topology};
    /// let ring = Graph::parse("torus:16", 16)?;
    /// let problem = Problem::new(Collective::NeighborAlltoall, Topology::regular(4, 4)?).with_graph(ring.into())?;
    /// assert_eq!(problem.blocks(), Some(32));
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn with_graph(self, graph: Arc<Graph>) -> Result<Problem> {
        if !self.collective.has_graph() {
            let fact = format!("{} has no graph", self.collective);
            return Err(Error::Graph { fact, remedy: "leave it out, or ask for a neighbourhood collective".into() });
        }
        if graph.ranks() != self.ranks() {
            let fact = format!("a graph of {} ranks for {}", graph.ranks(), self.ranks());
            return Err(Error::Graph { fact, remedy: "give one of as many".into() });
        }
        Ok(Problem { graph: Some(graph), ..self })
    }

    /// With another root.
    pub fn with_root(self, root: usize) -> Result<Problem> {
        if root >= self.ranks() {
            return Err(Error::Root { root, ranks: self.ranks() });
        }
        Ok(Problem { root, ..self })
    }

    /// With sizes that differ.
    pub fn with_counts(self, counts: Vec<usize>) -> Result<Problem> {
        let ranks = self.ranks();
        let none = |vector: Option<Collective>| {
            Err(Error::NoCounts { collective: self.collective.name(), vector: vector.map(Collective::name) })
        };
        let wanted = match self.collective {
            Collective::Allgatherv | Collective::ReduceScatter | Collective::Gatherv | Collective::Scatterv => ranks,
            Collective::NeighborAllgatherv => ranks,
            Collective::Alltoallv => ranks * ranks,
            Collective::NeighborAlltoallv => self.edges(),
            Collective::NeighborAllgather => return none(Some(Collective::NeighborAllgatherv)),
            Collective::NeighborAlltoall => return none(Some(Collective::NeighborAlltoallv)),
            Collective::Allgather => return none(Some(Collective::Allgatherv)),
            Collective::Alltoall => return none(Some(Collective::Alltoallv)),
            Collective::Gather => return none(Some(Collective::Gatherv)),
            Collective::Scatter => return none(Some(Collective::Scatterv)),
            Collective::ReduceScatterBlock => return none(Some(Collective::ReduceScatter)),
            _ => return none(None),
        };
        if counts.len() != wanted {
            return Err(Error::Counts { collective: self.collective.name(), given: counts.len(), ranks, wanted });
        }
        Ok(Problem { counts, ..self })
    }

    /// With another reduction.
    pub fn with_reduction(self, reduction: Reduction) -> Problem {
        Problem { reduction, ..self }
    }

    /// How many ranks take part.
    pub fn ranks(&self) -> usize {
        self.topology.ranks()
    }

    fn edges(&self) -> usize {
        self.graph.as_ref().map_or(0, |graph| graph.edges())
    }

    /// How many blocks there are, where that is not the algorithm's to say: one for each rank, for each pair, or for each edge. An algorithm
    /// may cut each of an allgather or a reduce_scatter into as many [pieces](Problem::pieces).
    ///
    /// ```
    /// use allhands_schedule::{Collective, Problem, Topology};
    /// let four = Topology::flat(4)?;
    /// let blocks = |collective| Problem::new(collective, four.clone()).blocks();
    /// assert_eq!([Collective::Gather, Collective::Alltoall, Collective::Scan].map(blocks), [Some(4), Some(16), None]);
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn blocks(&self) -> Option<usize> {
        match self.collective.family() {
            _ if self.collective.cuts() => None,
            Collective::Alltoall => Some(self.ranks() * self.ranks()),
            Collective::NeighborAlltoall => Some(self.edges()),
            Collective::Barrier => Some(0),
            _ => Some(self.ranks()),
        }
    }

    /// Into how many pieces the block of each rank is cut, one after the other, when there are `blocks` of all ranks together.
    ///
    /// ```
    /// use allhands_schedule::{Collective, Problem, Topology};
    /// let pieces = |collective| Problem::new(collective, Topology::flat(4).unwrap()).pieces(12);
    /// assert_eq!([Collective::Allgatherv, Collective::Bcast].map(pieces), [3, 1]);
    /// ```
    pub fn pieces(&self, blocks: usize) -> usize {
        match self.collective.family() {
            Collective::Allgather | Collective::ReduceScatter => (blocks / self.ranks()).max(1),
            _ => 1,
        }
    }

    /// How many positions a space the caller owns has on a rank, when vectors are cut into `blocks`.
    /// Scratch and shared memory have no bound of their own.
    pub fn extent(&self, space: Space, rank: usize, blocks: usize) -> usize {
        let p = self.ranks();
        let at_root = |extent| if rank == self.root { extent } else { 0 };
        match (self.collective.family(), space) {
            (_, Space::Scratch | Space::Shared) => usize::MAX,
            (Collective::Barrier, _) => 0,
            (Collective::Allgather, Space::Input) | (Collective::ReduceScatter, Space::Output) => self.pieces(blocks),
            (Collective::Gather, Space::Input) | (Collective::Scatter, Space::Output) => 1,
            (Collective::Gather, Space::Output) | (Collective::Scatter, Space::Input) => at_root(p),
            (Collective::Alltoall, _) => p,
            (Collective::NeighborAllgather, Space::Input) => 1,
            (Collective::NeighborAllgather | Collective::NeighborAlltoall, space) => {
                let degree = |graph: &Graph| match space {
                    Space::Input => graph.outgoing(rank).len(),
                    _ => graph.incoming(rank).len(),
                };
                self.graph.as_deref().map_or(0, degree)
            }
            (Collective::Exscan, Space::Output) if rank == 0 => 0,
            (Collective::Bcast, Space::Input) | (Collective::Reduce, Space::Output) => at_root(blocks),
            _ => blocks,
        }
    }

    /// The block whose size a position has on a rank, when there are `blocks`.
    pub fn block_at(&self, space: Space, rank: usize, position: usize, blocks: usize) -> usize {
        let p = self.ranks();
        match (self.collective.family(), space) {
            (_, Space::Scratch | Space::Shared) => position % blocks.max(1),
            (Collective::Allgather, Space::Input) | (Collective::ReduceScatter, Space::Output) => {
                rank * self.pieces(blocks) + position
            }
            (Collective::Gather, Space::Input) | (Collective::Scatter, Space::Output) => rank,
            (Collective::Alltoall, Space::Input) => rank * p + position,
            (Collective::Alltoall, Space::Output) => position * p + rank,
            (Collective::NeighborAllgather, Space::Input) => rank,
            (Collective::NeighborAllgather | Collective::NeighborAlltoall, space) => {
                let Some(graph) = &self.graph else { return position };
                match space {
                    Space::Input => graph.outgoing(rank).start + position,
                    _ if self.collective.family() == Collective::NeighborAlltoall => graph.incoming(rank)[position],
                    _ => graph.edge(graph.incoming(rank)[position]).from,
                }
            }
            _ => position,
        }
    }

    /// The rank that a block comes from, when there are `blocks`; `None` where several contribute.
    ///
    /// ```
    /// use allhands_schedule::{Collective, Problem, Topology};
    /// let of = |collective| Problem::new(collective, Topology::flat(4).unwrap()).contributor(6, 16);
    /// assert_eq!([Collective::Alltoall, Collective::Bcast, Collective::Allreduce].map(of), [Some(1), Some(0), None]);
    /// ```
    pub fn contributor(&self, block: usize, blocks: usize) -> Option<usize> {
        match self.collective.family() {
            Collective::Allgather => Some(block / self.pieces(blocks)),
            Collective::Gather | Collective::NeighborAllgather => Some(block),
            Collective::Alltoall => Some(block / self.ranks()),
            Collective::NeighborAlltoall => self.graph.as_ref().map(|graph| graph.edge(block).from),
            Collective::Bcast | Collective::Scatter => Some(self.root),
            _ => None,
        }
    }

    /// The size of a block that is not cut into pieces, in units of the counts: 1 each where counts are equal.
    pub fn block_size(&self, block: usize) -> usize {
        self.counts.get(block).copied().unwrap_or(1)
    }
}
