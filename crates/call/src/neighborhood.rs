//! Who a rank's neighbours are, who all ranks' are, and what serves collectives among them.
//!
//! Of a cartesian grid and of a graph every rank knows everything; of a distributed graph it knows its own neighbours, and ranks of several nodes
//! tell all of them once. What serves follows from the whole graph; after that a rank keeps the edges of its own node.

use std::ffi::c_int;
use std::sync::Arc;

use allhands::raw::{Amount, RawCall, RawComm, RawPlan};
use allhands::{Error, Options};
use allhands_mpi::{Mpi, Neighborhood as Topology};
use allhands_schedule::{Choice, Collective, Edge, Graph, Pairing};

use crate::communicator::Communicator;
use crate::failure::{Reason, Unserved};

/// Graphs of more edges are the MPI's.
const MOST_EDGES: usize = 1 << 20;

/// The neighbours of a rank in the order of its blocks; none where a block has nobody, beyond the end of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbors {
    /// From whom it gets blocks.
    pub sources: Vec<Option<usize>>,
    /// For whom it has blocks.
    pub destinations: Vec<Option<usize>>,
}

impl Neighbors {
    /// Those of the calling rank. Waits for nobody.
    pub fn of(mpi: &Mpi, comm: &Communicator) -> Result<Neighbors, Unserved> {
        Neighbors::within(&mpi.neighborhood(comm.handle)?, comm)
    }

    fn within(topology: &Topology, comm: &Communicator) -> Result<Neighbors, Unserved> {
        let some = |list: &[c_int]| -> Vec<Option<usize>> {
            list.iter().map(|&rank| usize::try_from(rank).ok().filter(|rank| *rank < comm.size)).collect()
        };
        let both = |list: Vec<Option<usize>>| Neighbors { sources: list.clone(), destinations: list };
        Ok(match topology {
            Topology::None => return Err(Reason::Refused.into()),
            Topology::Cartesian { dims, periods } => both(Graph::cartesian_neighbors(dims, periods, comm.rank)),
            Topology::Graph(lists) => both(some(lists.get(comm.rank).map_or(&[], Vec::as_slice))),
            Topology::Distributed { sources, destinations } => {
                Neighbors { sources: some(sources), destinations: some(destinations) }
            }
        })
    }
}

/// What collectives among neighbours are served with, settled once for a communicator.
pub struct Neighborhood {
    /// Of this rank.
    pub neighbors: Neighbors,
    /// The edges that the ranks of this one's node have to do with.
    pub graph: Arc<Graph>,
    /// Whether it is the same for calls that wait and for those that do not.
    pub any_form: bool,
    /// Whether ranks of several nodes that give all neighbours blocks of one size all have the same size, without being told.
    pub(crate) one_size: bool,
    gather: (Choice, String),
    exchange: (Choice, String),
}

impl Neighborhood {
    /// Settles it for a communicator with ours for it. `blocking`: of calls that wait, as which some MPIs do not do everything they do in others.
    /// `together`: whether ranks may wait for each other here, which all of them do then. All ranks find the same.
    pub fn learn(
        mpi: &Mpi,
        comm: &Communicator,
        ours: &RawComm,
        blocking: bool,
        together: bool,
    ) -> Result<Neighborhood, Unserved> {
        let topology = mpi.neighborhood(comm.handle)?;
        let neighbors = Neighbors::within(&topology, comm)?;
        let unmatched = |error: allhands_schedule::Error| Reason::UnmatchedEdges(error.to_string().into());
        let mut any_form = true;
        let whole = match topology {
            Topology::None => return Err(Reason::Refused.into()),
            Topology::Cartesian { dims, periods } => {
                few(comm.size.saturating_mul(2 * dims.len()))?;
                // Two ranks are neighbours twice in a ring of two, and one is its own in a ring of itself.
                any_form = !dims.iter().zip(&periods).any(|(size, periodic)| *periodic && *size <= 2);
                let by_direction = any_form || mpi.pairs_by_direction(blocking)?;
                let pairing = if by_direction { Pairing::Direction } else { Pairing::Order };
                Graph::cartesian(&dims, &periods, pairing).map_err(unmatched)?
            }
            Topology::Graph(lists) => {
                few(lists.iter().map(Vec::len).sum())?;
                let list = |list: &Vec<c_int>| list.iter().filter_map(|&rank| usize::try_from(rank).ok()).collect();
                let mut lists: Vec<Vec<usize>> = lists.iter().map(list).collect();
                lists.resize(comm.size, Vec::new());
                let both = lists.into_iter().map(|list| (list.clone(), list)).collect::<Vec<_>>();
                Graph::from_lists(&both).map_err(unmatched)?
            }
            Topology::Distributed { .. } if !ours.is_apart() => own_part(&neighbors, comm).map_err(Error::from)?,
            Topology::Distributed { .. } if !together => return Err(Reason::UnknownNeighbors.into()),
            Topology::Distributed { .. } => Graph::from_lists(&all_told(mpi, comm, &neighbors)?).map_err(unmatched)?,
        };
        let whole = Arc::new(whole);
        let settled = |collective| ours.along_edges(collective, &whole);
        let (gather, exchange) = (settled(Collective::NeighborAllgather)?, settled(Collective::NeighborAlltoall)?);
        let one_size = ours.is_apart() && whole.is_connected();
        let graph = Arc::new(ours.part_of(&whole));
        Ok(Neighborhood { neighbors, graph, any_form, one_size, gather, exchange })
    }

    /// What serves a collective, and why.
    pub fn choice(&self, collective: Collective) -> (&Choice, &str) {
        let (choice, why) = match collective.family() {
            Collective::NeighborAllgather => &self.gather,
            _ => &self.exchange,
        };
        (choice, why)
    }
}

fn few(edges: usize) -> Result<(), Unserved> {
    match edges <= MOST_EDGES {
        true => Ok(()),
        false => Err(Reason::ManyEdges.into()),
    }
}

/// The edges of one rank, where nobody carries blocks of others. Of those that two ranks have several times, the first at one end is the first at the other.
fn own_part(neighbors: &Neighbors, comm: &Communicator) -> allhands_schedule::Result<Graph> {
    let Communicator { rank: me, size, .. } = *comm;
    let (mut begun, mut ended) = (vec![0; size], vec![0; size]);
    let next = |many: &mut usize| std::mem::replace(many, *many + 1);
    let mut edges = Vec::new();
    let mut to_itself = Vec::new();
    for to in neighbors.destinations.iter().flatten().copied() {
        let out = next(&mut begun[me]);
        match to == me {
            true => to_itself.push(out),
            false => edges.push(Edge { from: me, out, to, into: next(&mut ended[to]) }),
        }
    }
    let mut to_itself = to_itself.into_iter();
    for from in neighbors.sources.iter().flatten().copied() {
        let into = next(&mut ended[me]);
        let out = match from == me {
            true => to_itself.next().unwrap_or(usize::MAX),
            false => next(&mut begun[from]),
        };
        edges.push(Edge { from, out, to: me, into });
    }
    Graph::new(size, edges)
}

/// A rank's sources and destinations.
type Lists = (Vec<usize>, Vec<usize>);

/// Those of every rank. Collective.
fn all_told(mpi: &Mpi, comm: &Communicator, neighbors: &Neighbors) -> Result<Vec<Lists>, Unserved> {
    let known = |list: &[Option<usize>]| list.iter().flatten().map(|&rank| rank as u32).collect::<Vec<u32>>();
    let (sources, destinations) = (known(&neighbors.sources), known(&neighbors.destinations));
    let degrees = [sources.len() as u32, destinations.len() as u32];
    let mut all_degrees = vec![[0u32; 2]; comm.size];
    let word = mpi.constants().types.uint32_t;
    // SAFETY: two words of each rank.
    unsafe { mpi.allgather(degrees.as_ptr().cast(), all_degrees.as_mut_ptr().cast(), 2, word, comm.handle)? };
    let lengths: Vec<usize> = all_degrees.iter().map(|[one, other]| *one as usize + *other as usize).collect();
    few(lengths.iter().sum())?;
    let mine = [sources, destinations].concat();
    let counts: Vec<c_int> = lengths.iter().map(|&length| length as c_int).collect();
    let starts: Vec<c_int> = counts.iter().scan(0, |end, many| Some(std::mem::replace(end, *end + many))).collect();
    let mut all = vec![0u32; lengths.iter().sum::<usize>().max(1)];
    // The address of no words might be one that means something.
    let given = if mine.is_empty() { all_degrees.as_ptr().cast() } else { mine.as_ptr().cast() };
    // SAFETY: as many words of each rank as it has said.
    unsafe { mpi.allgatherv(given, mine.len(), all.as_mut_ptr().cast(), &counts, &starts, word, comm.handle)? };
    let mut rest = all.into_iter().map(|rank| rank as usize);
    let mut take = |many: u32| rest.by_ref().take(many as usize).collect::<Vec<_>>();
    Ok(all_degrees.into_iter().map(|[incoming, outgoing]| (take(incoming), take(outgoing))).collect())
}

/// A plan for one call among neighbours by an algorithm, if ranks tell each other now what they need to know for it: who waits for that calls `finish`.
/// All ranks make it in the same order as other plans.
pub fn plan(
    comm: &RawComm,
    call: &RawCall,
    choice: &Choice,
    finish: impl FnOnce(&mut RawPlan) -> Result<(), Unserved>,
) -> Result<RawPlan, Unserved> {
    let place = comm.reserve()?;
    let (mut call, like) = (call.clone(), call);
    if choice.knowledge().is_told()
        && let Amount::Own { given, gotten, carried } = &mut call.amount
    {
        let mut told = comm.carried_counts(choice, like)?;
        told.start(given, gotten)?;
        finish(told.plan())?;
        *carried = told.carried(gotten)?;
    }
    Ok(place.plan(&call, &Options::new().unshared(true).algorithm(&choice.to_string()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(rank: usize, size: usize) -> Communicator {
        Communicator { handle: 0, rank, size, between_groups: false, number: 0 }
    }

    #[test]
    fn a_rank_s_own_edges_are_those_of_the_whole() {
        for seed in 0..50 {
            let whole = Graph::random(7, 4, seed);
            for rank in 0..7 {
                let some = |ranks: &mut dyn Iterator<Item = usize>| ranks.map(Some).collect();
                let neighbors = Neighbors {
                    sources: some(&mut whole.sources(rank)),
                    destinations: some(&mut whole.destinations(rank)),
                };
                let part = own_part(&neighbors, &comm(rank, 7)).unwrap();
                assert!(part.sources(rank).eq(whole.sources(rank)));
                assert!(part.destinations(rank).eq(whole.destinations(rank)));
            }
        }
        let lost = Neighbors { sources: vec![Some(0)], destinations: vec![] };
        assert!(own_part(&lost, &comm(0, 2)).is_err(), "what comes from itself is not sent");
    }
}
