//! What ranks tell each other about blocks that they carry: the sizes of an alltoallv, a gatherv or a scatterv, or along the edges of a graph, of which each rank
//! knows its own.
//!
//! - A block between two nodes passes through ranks of its source's node and of its destination's only, if the algorithm
//!   [says so](allhands_schedule::Knowledge::Node). So somebody of the same node knows its size, and nothing needs to be told from node to node.
//! - Else sizes travel [the way of their blocks](allhands_schedule::Knowledge::Path), ahead of them: the same algorithm moves one word for each block,
//!   and whoever hands a block on has handed on its size. (TuNA sends them round by round, as many messages; here all of them go first, so that the data
//!   move by a program that is compiled for them.)

use std::collections::HashMap;

use allhands_schedule::{Choice, Collective, Knowledge, Round, Schedule, Space};

use super::{Amount, RawCall, RawComm, RawPlan};
use crate::error::{Error, Result};
use crate::kernels::Type;
use crate::plan::Options;

/// Tells ranks the sizes of the blocks that they carry for each other. See [`RawComm::carried_counts`].
pub struct CarriedCounts {
    /// Goes before what it reads and writes.
    plan: RawPlan,
    /// Which sizes this rank tells: of its input's or output's blocks.
    told: Vec<(Space, usize)>,
    /// The blocks whose sizes it is told.
    carried: Vec<usize>,
    mine: Vec<u64>,
    theirs: Vec<u64>,
    way: Way,
}

/// How it is told.
enum Way {
    /// By ranks of its node: theirs are the sizes of what it carries.
    Node,
    /// By whoever hands blocks on: theirs are the sizes of what it gets, and what it carries is in the plan's scratch. It is this rank.
    Path(usize),
}

impl CarriedCounts {
    /// For calls like this one, of any counts, by an algorithm among the ranks of a communicator, all of which call this.
    pub(super) fn new(comm: &RawComm, choice: &Choice, call: &RawCall) -> Result<CarriedCounts> {
        match choice.knowledge() {
            Knowledge::Own | Knowledge::Node => CarriedCounts::in_the_node(comm, choice, call),
            Knowledge::Path => CarriedCounts::along_the_path(comm, choice, call),
            Knowledge::All => {
                let fact = format!("{choice} asks of ranks to know all counts; name another algorithm");
                Err(Error::Operation(fact))
            }
        }
    }

    fn along_the_path(comm: &RawComm, choice: &Choice, call: &RawCall) -> Result<CarriedCounts> {
        let (me, problem) = (comm.rank(), comm.problem(call)?);
        let prepared = choice.prepare(&problem)?;
        let extent = |space| problem.extent(space, me, prepared.blocks());
        let told: Vec<(Space, usize)> = (0..extent(Space::Input)).map(|position| (Space::Input, position)).collect();
        let words = RawCall {
            collective: call.collective.family(),
            amount: Amount::Each(1),
            element: Type::U64,
            operation: None,
            root: call.root,
            graph: None,
        };
        let plan = comm.plan(&words, &Options::new().unshared(true).algorithm(&choice.to_string()))?;
        let (mine, theirs) = (vec![0; told.len()], vec![0; extent(Space::Output)]);
        let carried = passing(&prepared.rank(me)).into_iter().map(|position| position % prepared.blocks()).collect();
        Ok(CarriedCounts { plan, told, carried, mine, theirs, way: Way::Path(me) })
    }

    fn in_the_node(comm: &RawComm, choice: &Choice, call: &RawCall) -> Result<CarriedCounts> {
        let (topology, me, mut problem) = (comm.0.topology(), comm.rank(), comm.problem(call)?);
        if choice.parameters.setting("straight").is_some() {
            // Whatever may be carried: what goes straight because of its size is known only then.
            problem.counts = vec![0; problem.blocks().unwrap_or(0)];
        }
        let prepared = choice.prepare(&problem)?;
        let node: Vec<usize> = topology.members(1, topology.region_of(1, me)).collect();
        let mine = node.iter().position(|&other| other == me).expect("we are of our own node");
        // Somebody of the node knows the size of what a rank of it carries: who gets it, else who gives it. By block: which of them, and where.
        let mut knows: HashMap<usize, (usize, Space, usize)> = HashMap::new();
        for space in [Space::Input, Space::Output] {
            for (teller, &rank) in node.iter().enumerate() {
                for position in 0..problem.extent(space, rank, prepared.blocks()) {
                    knows.insert(problem.block_at(space, rank, position, prepared.blocks()), (teller, space, position));
                }
            }
        }
        // By carrier and teller: of which blocks.
        let mut blocks = vec![vec![Vec::new(); node.len()]; node.len()];
        for (carrier, &rank) in node.iter().enumerate() {
            for block in passing(&prepared.rank(rank)) {
                let (teller, _, _) = knows.get(&block).ok_or_else(|| unknown(choice, block))?;
                blocks[carrier][*teller].push(block);
            }
        }
        let carried = blocks[mine].concat();
        let place = |block: &usize| {
            let (_, space, position) = knows[block];
            (space, position)
        };
        let told: Vec<(Space, usize)> = blocks.iter().flat_map(|by_teller| by_teller[mine].iter().map(place)).collect();
        let pairs = (0..node.len()).flat_map(|teller| (0..node.len()).map(move |carrier| (teller, carrier)));
        let amount = pairs.map(|(teller, carrier)| blocks[carrier][teller].len()).collect();
        let call = RawCall {
            collective: Collective::Alltoallv,
            amount: Amount::Listed(amount),
            element: Type::U64,
            operation: None,
            root: 0,
            graph: None,
        };
        let near = RawComm(comm.0.near(&node)?.into());
        let plan = near.plan(&call, &Options::new().unshared(true).algorithm("spread-out"))?;
        let (mine, theirs) = (vec![0; told.len()], vec![0; carried.len()]);
        Ok(CarriedCounts { plan, told, carried, mine, theirs, way: Way::Node })
    }

    /// Begins to tell what this rank knows of a call: sizes of the blocks that it gives, and that it gets.
    pub fn start(&mut self, given: &[usize], gotten: &[usize]) -> Result<()> {
        for (word, (space, position)) in self.mine.iter_mut().zip(&self.told) {
            *word = if *space == Space::Input { given[*position] } else { gotten[*position] } as u64;
        }
        // SAFETY: as many words as the plan says, which stay as long as it.
        unsafe { self.plan.start(self.mine.as_ptr().cast(), self.theirs.as_mut_ptr().cast()) }
    }

    /// What tells them.
    pub fn plan(&mut self) -> &mut RawPlan {
        &mut self.plan
    }

    /// What was told, when that is through: for [`Amount::Own`]. Where that shows that somebody sends another number of bytes than this rank, which gets so many of each,
    /// receives, it is an error.
    pub fn carried(&self, gotten: &[usize]) -> Result<Vec<(usize, usize)>> {
        let words = match self.way {
            Way::Node => self.theirs.clone(),
            Way::Path(me) => {
                let unlike = |(sent, expected): (&u64, &usize)| *sent as usize != *expected;
                if let Some(other) = self.theirs.iter().zip(gotten).position(unlike) {
                    let (expected, came) = (gotten[other], self.theirs[other] as usize);
                    return Err(Error::Size { rank: me, other, expected, came });
                }
                self.plan.words_in_scratch(self.carried.len())
            }
        };
        let mut carried: Vec<(usize, usize)> =
            self.carried.iter().copied().zip(words.into_iter().map(|size| size as usize)).collect();
        carried.sort_unstable();
        Ok(carried)
    }
}

/// An algorithm that needs to know more than a node does.
fn unknown(choice: &Choice, block: usize) -> Error {
    Error::Operation(format!(
        "{choice} carries block {block}, whose size nobody of the node knows; name another algorithm"
    ))
}

/// The positions in scratch of what passes through a rank, which are blocks.
fn passing(schedule: &Schedule) -> Vec<usize> {
    let spans = schedule.rounds.iter().flat_map(Round::spans).map(|(span, _)| span);
    let scratch = spans.filter(|span| span.space == Space::Scratch);
    let mut blocks: Vec<usize> = scratch.flat_map(|span| span.first..span.end()).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use allhands_schedule::{Graph, Knowledge, Problem, Topology};

    use super::*;

    /// A call of counts that are not known yet.
    fn call(collective: Collective) -> RawCall {
        RawCall { collective, amount: Amount::Each(0), element: Type::U8, operation: None, root: 0, graph: None }
    }

    /// What rank `s` sends to rank `d` in a run: nothing for some, and something else the next time.
    fn sent(s: usize, d: usize, run: usize) -> usize {
        (5 * s + 3 * d + 7 * run) % 4 * (1 + (s * d + run) % 3 * 200)
    }

    fn byte(s: usize, d: usize, run: usize, i: usize) -> u8 {
        (90 * s + 11 * d + 3 * run + i) as u8
    }

    #[test]
    fn ranks_that_are_told_what_they_carry_exchange_everything() {
        let mut tried = 0;
        for text in ["3", "2x2", "1,3", "3x2", "2,1,3", "[[0,3],[1,2,4]]"] {
            let topology: Topology = text.parse().unwrap();
            for (algorithm, knowledge) in [
                ("spread-out", Knowledge::Own),
                ("pairwise", Knowledge::Own),
                ("node-aware", Knowledge::Node),
                ("hierarchical", Knowledge::Node),
                ("multi-leader:leaders=2", Knowledge::Node),
                ("bruck", Knowledge::Path),
                ("bruck:radix=3:ports=all", Knowledge::Path),
                ("modified-bruck", Knowledge::Path),
                ("modified-bruck:radix=3", Knowledge::Path),
                ("modified-bruck:ports=all", Knowledge::Path),
            ] {
                let choice = Choice::parse(Collective::Alltoallv, algorithm).unwrap();
                assert_eq!(choice.knowledge(), knowledge, "{algorithm}");
                if choice.prepare(&Problem::new(Collective::Alltoallv, topology.clone())).is_err() {
                    continue;
                }
                tried += 1;
                crate::threads(topology.clone(), |comm| {
                    let comm = RawComm(comm.split(0, 0)?.into());
                    let (me, p, place) = (comm.rank(), comm.size(), comm.reserve()?);
                    let mut counts = comm.carried_counts(&choice, &call(Collective::Alltoallv))?;
                    for run in 0..5 {
                        let given: Vec<usize> = (0..p).map(|d| sent(me, d, run)).collect();
                        let gotten: Vec<usize> = (0..p).map(|s| sent(s, me, run)).collect();
                        counts.start(&given, &gotten)?;
                        counts.plan().wait()?;
                        let amount = Amount::Own {
                            given: given.clone(),
                            gotten: gotten.clone(),
                            carried: counts.carried(&gotten)?,
                        };
                        let call = RawCall {
                            collective: Collective::Alltoallv,
                            amount,
                            element: Type::U8,
                            operation: None,
                            root: 0,
                            graph: None,
                        };
                        let mut plan = place.plan(&call, &Options::new().unshared(true).algorithm(algorithm))?;
                        let x: Vec<u8> = (0..p).flat_map(|d| (0..given[d]).map(move |i| byte(me, d, run, i))).collect();
                        let wanted: Vec<u8> =
                            (0..p).flat_map(|s| (0..sent(s, me, run)).map(move |i| byte(s, me, run, i))).collect();
                        let mut y = vec![0; wanted.len()];
                        // SAFETY: as many bytes as the counts say.
                        unsafe { plan.run(x.as_ptr(), y.as_mut_ptr())? };
                        assert_eq!(y, wanted, "run {run} on rank {me} of {text} by {algorithm}");
                    }
                    Ok(())
                })
                .unwrap();
            }
        }
        assert!(tried > 20, "{tried}");
    }

    /// Bytes along an edge in a run, by its source and its place there; of an allgather by the source alone.
    fn along(gathers: bool, from: usize, out: usize, run: usize) -> usize {
        sent(from, if gathers { 0 } else { out + 1 }, run)
    }

    #[test]
    fn ranks_that_know_the_edges_of_their_node_alone_exchange_everything() {
        let texts = ["3", "2x2", "1,3", "3x2", "2,1,3", "[[0,3],[1,2,4]]", "4x3"];
        let algorithms = ["direct", "node-aware", "node-aware:straight=300", "node-aware:straight=1"];
        for (number, text) in texts.into_iter().enumerate() {
            let topology: Topology = text.parse().unwrap();
            let p = topology.ranks();
            let whole = Graph::random(p, number % 4 + 1, number as u64);
            for (algorithm, gathers) in algorithms.into_iter().flat_map(|one| [(one, false), (one, true)]) {
                let collective = if gathers { Collective::NeighborAllgather } else { Collective::NeighborAlltoall };
                let choice = Choice::parse(collective, algorithm).unwrap();
                crate::threads(topology.clone(), |comm| {
                    let comm = RawComm(comm.split(0, 0)?.into());
                    let (me, place) = (comm.rank(), comm.reserve()?);
                    let part = Arc::new(comm.part_of(&whole));
                    let like = RawCall { graph: Some(part.clone()), ..call(collective) };
                    let mut counts = comm.carried_counts(&choice, &like)?;
                    for run in 0..4 {
                        let outs = if gathers { 1 } else { whole.outgoing(me).len() };
                        let given: Vec<usize> = (0..outs).map(|out| along(gathers, me, out, run)).collect();
                        let edges: Vec<_> = whole.incoming(me).iter().map(|&edge| whole.edge(edge)).collect();
                        let gotten: Vec<usize> =
                            edges.iter().map(|edge| along(gathers, edge.from, edge.out, run)).collect();
                        counts.start(&given, &gotten)?;
                        counts.plan().wait()?;
                        let carried = counts.carried(&gotten)?;
                        let amount = Amount::Own { given: given.clone(), gotten, carried };
                        let (element, graph) = (Type::U8, Some(part.clone()));
                        let call = RawCall { collective, amount, element, operation: None, root: 0, graph };
                        let mut plan = place.plan(&call, &Options::new().unshared(true).algorithm(algorithm))?;
                        let block = |from: usize, out: usize| {
                            let out = if gathers { 0 } else { out };
                            (0..along(gathers, from, out, run)).map(move |i| byte(from, out, run, i))
                        };
                        let x: Vec<u8> = (0..outs).flat_map(|out| block(me, out)).collect();
                        let wanted: Vec<u8> = edges.iter().flat_map(|edge| block(edge.from, edge.out)).collect();
                        let mut y = vec![0; wanted.len()];
                        // SAFETY: as many bytes as the counts say.
                        unsafe { plan.run(x.as_ptr(), y.as_mut_ptr())? };
                        assert_eq!(y, wanted, "run {run} on rank {me} of {text} by {algorithm}");
                    }
                    Ok(())
                })
                .unwrap();
            }
        }
    }

    #[test]
    fn what_a_root_gathers_or_scatters_is_told() {
        for text in ["3", "2x2", "1,3", "3x2", "2,1,3", "[[0,3],[1,2,4]]"] {
            let topology: Topology = text.parse().unwrap();
            let names = ["node-aware", "node-aware:straight=200", "binomial", "hierarchical"];
            let cases = names.map(|one| [(one, false), (one, true)]).concat();
            for (number, (algorithm, gathers)) in cases.into_iter().enumerate() {
                let root = number % topology.ranks();
                let collective = if gathers { Collective::Gatherv } else { Collective::Scatterv };
                let choice = Choice::parse(collective, algorithm).unwrap();
                crate::threads(topology.clone(), |comm| {
                    let comm = RawComm(comm.split(0, 0)?.into());
                    let (me, p, place) = (comm.rank(), comm.size(), comm.reserve()?);
                    let like = RawCall { root, ..call(collective) };
                    let mut counts = comm.carried_counts(&choice, &like)?;
                    for run in 0..4 {
                        let all = |of: &dyn Fn(usize) -> usize| (0..p).map(of).collect::<Vec<_>>();
                        let at_root = if me == root { all(&|rank| sent(rank, 1, run)) } else { vec![] };
                        let own = vec![sent(me, 1, run)];
                        let (given, gotten) = if gathers { (own, at_root) } else { (at_root, own) };
                        counts.start(&given, &gotten)?;
                        counts.plan().wait()?;
                        let carried = counts.carried(&gotten)?;
                        let amount = Amount::Own { given, gotten, carried };
                        let call = RawCall { amount, ..like.clone() };
                        let mut plan = place.plan(&call, &Options::new().unshared(true).algorithm(algorithm))?;
                        let block = |rank: usize| (0..sent(rank, 1, run)).map(move |i| byte(rank, 1, run, i));
                        let everything: Vec<u8> = if me == root { (0..p).flat_map(block).collect() } else { vec![] };
                        let mine: Vec<u8> = block(me).collect();
                        let (x, wanted) = if gathers { (mine, everything) } else { (everything, mine) };
                        let mut y = vec![0; wanted.len()];
                        // SAFETY: as many bytes as the counts say.
                        unsafe { plan.run(x.as_ptr(), y.as_mut_ptr())? };
                        assert_eq!(y, wanted, "run {run} on rank {me} of {text} by {algorithm} with root {root}");
                    }
                    Ok(())
                })
                .unwrap();
            }
        }
    }

    #[test]
    fn what_asks_for_all_counts_is_refused() {
        crate::threads(Topology::regular(2, 2).unwrap(), |comm| {
            let comm = RawComm(comm.split(0, 0)?.into());
            let shared = Choice::parse(Collective::Alltoallv, "node-aware:local=shared").unwrap();
            let refused = comm.carried_counts(&shared, &call(Collective::Alltoallv)).err().unwrap().to_string();
            assert!(refused.contains("asks of ranks to know all counts; name another algorithm"), "{refused}");
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_block_that_is_sent_and_received_with_other_sizes_is_found_before_it_moves() {
        let found = crate::threads(Topology::flat(5).unwrap(), |comm| {
            let comm = RawComm(comm.split(0, 0)?.into());
            let bruck = Choice::parse(Collective::Alltoallv, "modified-bruck").unwrap();
            let mut counts = comm.carried_counts(&bruck, &call(Collective::Alltoallv))?;
            // Rank 1 believes that rank 4 has nine bytes for it.
            let wrong = |from: usize| if (from, comm.rank()) == (4, 1) { 9 } else { 3 };
            let gotten: Vec<usize> = (0..5).map(wrong).collect();
            counts.start(&[3; 5], &gotten)?;
            counts.plan().wait()?;
            Ok(counts.carried(&gotten).err().map(|error| error.to_string()))
        })
        .unwrap();
        let said: Vec<&String> = found.iter().flatten().collect();
        assert!(found[1].is_some() && said.len() == 1, "{found:?}");
        for word in ["rank 1", "rank 4", "9 bytes", "3"] {
            assert!(said[0].contains(word), "{}", said[0]);
        }
    }
}
