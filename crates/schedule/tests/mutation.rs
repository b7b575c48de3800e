//! A verifier that accepts everything proves nothing: schedules with one thing changed at random must be rejected.
//!
//! A few changes leave a schedule correct (two independent rounds swapped, say). So the rule is: the verifier rejects the
//! mutant, or finds that it is no longer ordered or identical, or an independent judge of a few simple lines, which runs
//! it on sets of contributions with buffered messages in a random order, agrees that it still does what is asked.

mod common;

use std::collections::{BTreeMap, HashMap, VecDeque};

use allhands_schedule::{Collective, Combine, Ensemble, Local, Problem, Round, Space, Span, algorithms, verify};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Peer,
    SpanMoved,
    SpanLonger,
    SpanShorter,
    OtherSpace,
    SpansSwapped,
    CombineDropped,
    CombineAdded,
    CombineTurned,
    MessageDropped,
    MessagesSwapped,
    LocalDropped,
    LocalsSwapped,
    LocalTurned,
    RoundDropped,
    RoundsSwapped,
}

const CHANGES: [Change; 16] = [
    Change::Peer,
    Change::SpanMoved,
    Change::SpanLonger,
    Change::SpanShorter,
    Change::OtherSpace,
    Change::SpansSwapped,
    Change::CombineDropped,
    Change::CombineAdded,
    Change::CombineTurned,
    Change::MessageDropped,
    Change::MessagesSwapped,
    Change::LocalDropped,
    Change::LocalsSwapped,
    Change::LocalTurned,
    Change::RoundDropped,
    Change::RoundsSwapped,
];

/// Changes one thing; `None` if there is nothing of the kind.
fn mutate(ensemble: &Ensemble, change: Change, rank: Index, pick: Index, by: Index) -> Option<Ensemble> {
    let mut mutant = ensemble.clone();
    let p = ensemble.schedules.len();
    let rounds = &mut mutant.schedules[rank.index(p)].rounds;
    let count = rounds.len();
    match change {
        Change::RoundDropped => drop(rounds.remove((count > 0).then(|| pick.index(count))?)),
        Change::RoundsSwapped => {
            let at = (count > 1).then(|| pick.index(count - 1))?;
            rounds.swap(at, at + 1);
        }
        Change::Peer => {
            let mut peers: Vec<&mut usize> = rounds
                .iter_mut()
                .flat_map(|round| {
                    round
                        .sends
                        .iter_mut()
                        .map(|send| &mut send.to)
                        .chain(round.recvs.iter_mut().map(|recv| &mut recv.from))
                })
                .collect();
            let peer = at(&mut peers, pick)?;
            **peer = (**peer + 1 + by.index(p.max(2) - 1)) % p;
        }
        Change::SpanMoved | Change::SpanLonger | Change::SpanShorter | Change::OtherSpace => {
            let mut spans = all_spans(rounds);
            let span = at(&mut spans, pick)?;
            match change {
                Change::SpanMoved => {
                    span.first =
                        if by.index(2) == 0 { span.first + 1 } else { span.first.wrapping_sub(1).min(span.first + 2) }
                }
                Change::SpanLonger => span.count += 1,
                Change::SpanShorter => span.count -= 1,
                _ => {
                    span.space =
                        Space::ALL[(Space::ALL.iter().position(|&space| space == span.space)? + 1 + by.index(3)) % 4]
                }
            }
        }
        Change::SpansSwapped => {
            let lists = rounds.iter_mut().flat_map(|round| {
                round
                    .sends
                    .iter_mut()
                    .map(|send| &mut send.spans)
                    .chain(round.recvs.iter_mut().map(|recv| &mut recv.spans))
            });
            let mut lists: Vec<_> = lists.filter(|spans| spans.len() > 1).collect();
            let spans = at(&mut lists, pick)?;
            let i = by.index(spans.len() - 1);
            spans.swap(i, i + 1);
        }
        Change::CombineDropped | Change::CombineTurned => {
            let combines = rounds.iter_mut().flat_map(|round| round.recvs.iter_mut().map(|recv| &mut recv.combine));
            let mut combines: Vec<_> = combines.filter(|combine| combine.is_some()).collect();
            let combine = at(&mut combines, pick)?;
            **combine = if change == Change::CombineDropped { None } else { combine.map(turned) };
        }
        Change::CombineAdded => {
            let combines = rounds.iter_mut().flat_map(|round| {
                round.recvs.iter_mut().filter(|recv| !recv.spans.is_empty()).map(|recv| &mut recv.combine)
            });
            let mut combines: Vec<_> = combines.filter(|combine| combine.is_none()).collect();
            **at(&mut combines, pick)? = Some(Combine::After);
        }
        Change::MessageDropped => {
            let mut lists: Vec<(bool, usize, usize)> = Vec::new();
            for (index, round) in rounds.iter().enumerate() {
                lists.extend((0..round.sends.len()).map(|message| (true, index, message)));
                lists.extend((0..round.recvs.len()).map(|message| (false, index, message)));
            }
            let (sent, round, message) = *at(&mut lists, pick)?;
            if sent { drop(rounds[round].sends.remove(message)) } else { drop(rounds[round].recvs.remove(message)) }
        }
        Change::MessagesSwapped => {
            let mut with_several: Vec<_> = rounds.iter_mut().filter(|round| round.recvs.len() > 1).collect();
            let round = at(&mut with_several, pick)?;
            let i = by.index(round.recvs.len() - 1);
            round.recvs.swap(i, i + 1);
        }
        Change::LocalDropped => {
            let mut with_local: Vec<_> = rounds.iter_mut().filter(|round| !round.locals.is_empty()).collect();
            let round = at(&mut with_local, pick)?;
            let i = by.index(round.locals.len());
            round.locals.remove(i);
        }
        Change::LocalsSwapped => {
            let mut with_several: Vec<_> = rounds.iter_mut().filter(|round| round.locals.len() > 1).collect();
            let round = at(&mut with_several, pick)?;
            let i = by.index(round.locals.len() - 1);
            round.locals.swap(i, i + 1);
        }
        Change::LocalTurned => {
            let sides = rounds.iter_mut().flat_map(|round| {
                round.locals.iter_mut().filter_map(|local| match local {
                    Local::Combine { how, .. } => Some(how),
                    _ => None,
                })
            });
            let mut sides: Vec<_> = sides.collect();
            let side = at(&mut sides, pick)?;
            **side = turned(**side);
        }
    }
    (mutant != *ensemble).then_some(mutant)
}

fn at<T>(items: &mut [T], pick: Index) -> Option<&mut T> {
    let count = items.len();
    (count > 0).then(|| &mut items[pick.index(count)])
}

fn turned(how: Combine) -> Combine {
    if how == Combine::After { Combine::Before } else { Combine::After }
}

fn all_spans(rounds: &mut [Round]) -> Vec<&mut Span> {
    rounds
        .iter_mut()
        .flat_map(|round| {
            let sent = round.sends.iter_mut().flat_map(|send| &mut send.spans);
            let received = round.recvs.iter_mut().flat_map(|recv| &mut recv.spans);
            let local = round.locals.iter_mut().flat_map(|local| match local {
                Local::Copy { from, to } => vec![from, to],
                Local::Combine { from, into, .. } => vec![from, into],
                Local::Meet { .. } => vec![],
            });
            sent.chain(received).chain(local)
        })
        .collect()
}

/// A value, as the judge sees it: contributions (rank, block), sorted.
type Bag = Vec<(usize, usize)>;

/// How far a rank of the judge is in its round.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Before,
    Posted,
    /// At this local operation.
    Local(usize),
    /// Waiting in the meeting that is this local operation, of this level.
    Meeting(usize, usize),
}

/// Runs an ensemble on bags, messages buffered, ranks in an order drawn from `seed`. `None` if it gets stuck or reads
/// what is not there; otherwise every rank's output. Behind the memories of the ranks are those that nodes share.
fn judge(ensemble: &Ensemble, mut seed: u64) -> Option<Vec<BTreeMap<usize, Bag>>> {
    let Ensemble { problem, schedules, blocks, .. } = ensemble;
    let p = schedules.len();
    let topology = &problem.topology;
    let owner = |rank: usize, space: Space| if space == Space::Shared { p + topology.region_of(1, rank) } else { rank };
    let mut memory: Vec<HashMap<(Space, usize), Bag>> = (0..p)
        .map(|rank| {
            let inputs = 0..problem.extent(Space::Input, rank, *blocks);
            inputs
                .map(|position| {
                    ((Space::Input, position), vec![(rank, problem.block_at(Space::Input, rank, position, *blocks))])
                })
                .collect()
        })
        .chain((0..topology.regions(1)).map(|_| HashMap::new()))
        .collect();
    // How many meetings of each level a rank has come to.
    let mut come = vec![vec![0usize; topology.depth() + 1]; p];
    let mut wires: HashMap<(usize, usize), VecDeque<Vec<Bag>>> = HashMap::new();
    let mut at = vec![(0, Phase::Before); p];
    loop {
        let open: Vec<usize> = (0..p).filter(|&rank| at[rank].0 < schedules[rank].rounds.len()).collect();
        if open.is_empty() {
            break;
        }
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let start = (seed >> 33) as usize % open.len();
        let mut moved = false;
        for &rank in open[start..].iter().chain(&open[..start]) {
            let round = &schedules[rank].rounds[at[rank].0];
            if at[rank].1 == Phase::Before {
                for send in &round.sends {
                    let cells = send.spans.iter().flat_map(|span| {
                        (span.first..span.end()).map(|position| (owner(rank, span.space), (span.space, position)))
                    });
                    let bags: Option<Vec<Bag>> =
                        cells.map(|(owner, place)| memory[owner].get(&place).cloned()).collect();
                    wires.entry((rank, send.to)).or_default().push_back(bags?);
                }
                at[rank].1 = Phase::Posted;
                moved = true;
            }
            if at[rank].1 == Phase::Posted {
                let mut wanted: HashMap<usize, usize> = HashMap::new();
                round.recvs.iter().for_each(|recv| *wanted.entry(recv.from).or_default() += 1);
                if wanted.iter().any(|(&from, &count)| wires.get(&(from, rank)).is_none_or(|wire| wire.len() < count)) {
                    continue;
                }
                let arrived: Vec<(usize, Vec<Bag>)> = round
                    .recvs
                    .iter()
                    .enumerate()
                    .map(|(index, recv)| (index, wires.get_mut(&(recv.from, rank)).unwrap().pop_front().unwrap()))
                    .collect();
                for combining in [false, true] {
                    for (index, bags) in &arrived {
                        let recv = &round.recvs[*index];
                        if recv.combine.is_some() == combining {
                            let positions = recv
                                .spans
                                .iter()
                                .flat_map(|span| (span.first..span.end()).map(|position| (span.space, position)));
                            for (place, bag) in positions.zip(bags) {
                                put(&mut memory[owner(rank, place.0)], place, bag.clone(), combining)?;
                            }
                        }
                    }
                }
                at[rank].1 = Phase::Local(0);
                moved = true;
            }
            while let Phase::Local(next) = at[rank].1
                && let Some(local) = round.locals.get(next)
            {
                let (from, to, combining) = match *local {
                    Local::Copy { from, to } => (from, to, false),
                    Local::Combine { from, into, .. } => (from, into, true),
                    Local::Meet { level } => {
                        come[rank][level] += 1;
                        at[rank].1 = Phase::Meeting(next, level);
                        moved = true;
                        continue;
                    }
                };
                for offset in 0..from.count {
                    let bag = memory[owner(rank, from.space)].get(&(from.space, from.first + offset)).cloned()?;
                    put(&mut memory[owner(rank, to.space)], (to.space, to.first + offset), bag, combining)?;
                }
                at[rank].1 = Phase::Local(next + 1);
            }
            if let Phase::Meeting(next, level) = at[rank].1 {
                let mut members = topology.members(level, topology.region_of(level, rank));
                if members.any(|member| come[member][level] < come[rank][level]) {
                    continue;
                }
                at[rank].1 = Phase::Local(next + 1);
                moved = true;
                continue;
            }
            at[rank] = (at[rank].0 + 1, Phase::Before);
            moved = true;
        }
        if !moved {
            return None;
        }
    }
    wires.values().all(VecDeque::is_empty).then(|| {
        let outputs = |cells: HashMap<(Space, usize), Bag>| {
            cells
                .into_iter()
                .filter(|((space, _), _)| *space == Space::Output)
                .map(|((_, position), bag)| (position, bag))
                .collect()
        };
        memory.into_iter().take(p).map(outputs).collect()
    })
}

fn put(memory: &mut HashMap<(Space, usize), Bag>, place: (Space, usize), mut bag: Bag, combining: bool) -> Option<()> {
    if combining {
        bag.extend(memory.get(&place)?.iter().copied());
        bag.sort_unstable();
    }
    memory.insert(place, bag);
    Some(())
}

/// What every rank's output should be.
fn wanted(problem: &Problem, blocks: usize) -> Vec<BTreeMap<usize, Bag>> {
    let p = problem.ranks();
    let bag = |me: usize, block: usize| match problem.collective.family() {
        Collective::Allgather | Collective::Gather | Collective::NeighborAllgather => {
            vec![(block / problem.pieces(blocks), block)]
        }
        Collective::NeighborAlltoall => {
            let graph = problem.graph.as_ref().unwrap();
            vec![((0..p).find(|&rank| graph.outgoing(rank).contains(&block)).unwrap(), block)]
        }
        Collective::Alltoall => vec![(block / p, block)],
        Collective::Bcast | Collective::Scatter => vec![(problem.root, block)],
        Collective::Scan => (0..=me).map(|rank| (rank, block)).collect(),
        Collective::Exscan => (0..me).map(|rank| (rank, block)).collect(),
        _ => (0..p).map(|rank| (rank, block)).collect(),
    };
    let output = |rank| {
        (0..problem.extent(Space::Output, rank, blocks))
            .map(|position| (position, bag(rank, problem.block_at(Space::Output, rank, position, blocks))))
            .collect()
    };
    (0..p).map(output).collect()
}

#[test]
fn the_judge_accepts_what_the_registry_makes() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..300 {
        let (problem, choice) = common::cases(20).new_tree(&mut runner).unwrap().current();
        if let Ok(prepared) = choice.prepare(&problem) {
            let ensemble = prepared.ensemble();
            assert_eq!(judge(&ensemble, 7), Some(wanted(&problem, ensemble.blocks)), "{} {choice}", problem.collective);
        }
    }
}

#[test]
fn one_thing_changed_at_random_is_noticed() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (
        common::cases(24),
        prop::sample::select(CHANGES.to_vec()),
        any::<Index>(),
        any::<Index>(),
        any::<Index>(),
        any::<u64>(),
    );
    let mut killed: BTreeMap<(Collective, &str), usize> = BTreeMap::new();
    let mut tally: BTreeMap<Change, (usize, usize)> = BTreeMap::new();
    for _ in 0..54_000 {
        let ((problem, choice), change, rank, pick, by, seed) = strategy.new_tree(&mut runner).unwrap().current();
        let Ok(prepared) = choice.prepare(&problem) else { continue };
        let ensemble = prepared.ensemble();
        let Some(mutant) = mutate(&ensemble, change, rank, pick, by) else { continue };
        let (mutants, survivors) = tally.entry(change).or_default();
        *mutants += 1;
        let before = verify(&ensemble)
            .unwrap_or_else(|fault| panic!("{} {choice} on {}: {fault}", problem.collective, problem.topology));
        let Ok(after) = verify(&mutant) else {
            *killed.entry((problem.collective, choice.algorithm.name)).or_default() += 1;
            continue;
        };
        if (before.ordered && !after.ordered) || (before.identical && !after.identical) {
            continue;
        }
        *survivors += 1;
        // A barrier moves nothing that the judge could look at; what the verifier knows of it is tested by hand.
        let harmless = problem.collective == Collective::Barrier
            || judge(&mutant, seed) == Some(wanted(&problem, ensemble.blocks));
        assert!(
            harmless,
            "{} {choice} on {}: {change:?} makes it wrong, and the verifier accepts it",
            problem.collective, problem.topology
        );
    }
    for (change, (mutants, survivors)) in &tally {
        println!("{change:?}: {mutants} mutants, {survivors} still correct");
        assert!(*mutants > 100, "{change:?} was hardly tried");
        // What only changes an order, or drops a round that may be empty, can be harmless; so can another space with the
        // same value. All else is fatal.
        use Change::{
            CombineTurned, LocalTurned, LocalsSwapped, MessagesSwapped, OtherSpace, RoundDropped, RoundsSwapped,
        };
        // In shared memory several positions can hold the same value, so that a span may move from one to another; and on uneven
        // nodes `nap` has a local step that its result does not need: rarely.
        let allowed = usize::from([Change::SpanMoved, Change::LocalDropped].contains(change));
        let can_be_harmless =
            [CombineTurned, LocalTurned, LocalsSwapped, MessagesSwapped, OtherSpace, RoundDropped, RoundsSwapped];
        let few = *survivors * 500 <= allowed * *mutants;
        assert!(can_be_harmless.contains(change) || few, "{change:?}: {survivors} of {mutants} survive");
    }
    for collective in common::FAMILIES {
        for algorithm in algorithms(collective) {
            let killed = killed.get(&(collective, algorithm.name)).copied().unwrap_or(0);
            assert!(killed > 20, "{collective} {}: only {killed} mutants were rejected", algorithm.name);
        }
    }
}
