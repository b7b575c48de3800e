//! Programs keep off memory that the network owns: where a posted message may land at any time until it is taken, and what
//! a send may read at any time until it is settled. Both ends of a pair agree on what messages go between them, in what order.

use super::*;
use allhands_schedule::{Choice, Collective, InlineVec, Knowledge, Reduction, Send, Topology, algorithms};
use proptest::prelude::*;

/// What the network owns at one point of a program.
#[derive(Default)]
struct Network {
    /// Where messages that were posted and not yet taken go as they are: it may write there, and others may not even read.
    landing: Vec<(usize, Segment)>,
    /// Where those go that are combined when they are taken: what is there is not yet what the round leaves there.
    combining: Vec<(usize, Segment)>,
    /// Messages that were sent and are not settled: it may read them.
    lent: Vec<(usize, Segment)>,
}

impl Network {
    fn read(&self, segment: &Segment) -> std::result::Result<(), String> {
        match self.landing.iter().find(|(_, part)| part.overlaps(segment)) {
            Some((take, part)) => Err(format!("{segment} is read while message {take} may land at {part}")),
            None => Ok(()),
        }
    }

    fn write(&self, segment: &Segment) -> std::result::Result<(), String> {
        self.read(segment)?;
        match self.lent.iter().find(|(_, part)| part.overlaps(segment)) {
            Some((send, part)) => Err(format!("{segment} is written while send {send} may read {part}")),
            None => Ok(()),
        }
    }
}

fn check(program: &Program) -> std::result::Result<(), String> {
    let mut network = Network::default();
    let mut posted = Vec::new();
    let mut taken = Vec::new();
    for (line, instruction) in program.code.iter().enumerate() {
        let step = |network: &mut Network,
                    posted: &mut Vec<usize>,
                    taken: &mut Vec<usize>|
         -> std::result::Result<(), String> {
            match instruction {
                Instruction::Post(take) => {
                    posted.push(*take);
                    let parts = &program.takes[*take].parts;
                    parts.iter().try_for_each(|part| network.write(part))?;
                    match program.takes[*take].combined {
                        false => network.landing.extend(parts.iter().map(|part| (*take, *part))),
                        true => network.combining.extend(parts.iter().map(|part| (*take, *part))),
                    }
                }
                Instruction::Send(send) => {
                    let parts = &program.sends[*send].parts;
                    parts.iter().try_for_each(|part| network.read(part))?;
                    network.lent.extend(parts.iter().map(|part| (*send, *part)));
                }
                Instruction::Take(message)
                | Instruction::TakeCombine(message, _)
                | Instruction::TakeWith { message, .. } => {
                    taken.push(*message);
                    network.landing.retain(|(take, _)| take != message);
                    network.combining.retain(|(take, _)| take != message);
                    program.takes[*message].parts.iter().try_for_each(|part| network.write(part))?;
                    if let Instruction::TakeWith { others, .. } = instruction {
                        others.iter().try_for_each(|other| network.read(other))?;
                        if others.iter().any(|other| network.combining.iter().any(|(_, part)| part.overlaps(other))) {
                            return Err("an operand is read before another message was combined with it".into());
                        }
                        let lengths = |parts: &[Segment]| parts.iter().map(|part| part.len).collect::<Vec<_>>();
                        if lengths(others) != lengths(&program.takes[*message].parts) {
                            return Err("operands are not cut as the message is".into());
                        }
                    }
                }
                Instruction::Settle(send) => network.lent.retain(|(lent, _)| lent != send),
                Instruction::Copy { from, to } => {
                    network.read(from)?;
                    network.write(to)?;
                }
                Instruction::Combine { from, into, .. } => {
                    network.read(from)?;
                    network.write(into)?;
                    if from.overlaps(into) {
                        return Err(format!("{from} is combined with itself"));
                    }
                }
                Instruction::Arrive { .. } | Instruction::Await { .. } => {}
            }
            Ok(())
        };
        step(&mut network, &mut posted, &mut taken).map_err(|fault| format!("line {line}: {fault}"))?;
    }
    let all: Vec<usize> = (0..program.takes.len()).collect();
    match () {
        _ if !network.landing.is_empty() || !network.lent.is_empty() => Err("something is still under way".into()),
        _ if posted != all || taken != all => Err(format!("posted {posted:?} and taken {taken:?}")),
        _ => Ok(()),
    }
}

fn check_all(
    problem: &Problem,
    choice: &Choice,
    amount: &Amount,
    element: usize,
) -> Option<std::result::Result<(), String>> {
    let prepared = choice.prepare(problem).ok()?;
    let schedules = prepared.ensemble().schedules;
    let compile = |schedule, buffers| super::compile(&prepared, schedule, element, amount, buffers).unwrap();
    let apart: Vec<Program> = schedules.iter().map(|schedule| compile(schedule, Buffers::Apart)).collect();
    let in_place: Vec<Program> = schedules.iter().map(|schedule| compile(schedule, Buffers::InPlace)).collect();
    for (which, programs) in [("apart", &apart), ("in place", &in_place)] {
        for (rank, program) in programs.iter().enumerate() {
            if let Err(fault) = check(program) {
                return Some(Err(format!("rank {rank} {which}: {fault}\n{program}")));
            }
        }
    }
    for (rank, (one, other)) in apart.iter().zip(&in_place).enumerate() {
        if !alike(one, other) || one.shared != other.shared {
            return Some(Err(format!("rank {rank} sends or takes something else in place than apart")));
        }
    }
    for (from, sender) in apart.iter().enumerate() {
        for (to, receiver) in apart.iter().enumerate() {
            let between = |messages: &[Message], peer| -> Vec<usize> {
                messages.iter().filter(|message| message.peer == peer).map(|message| message.bytes).collect()
            };
            let (sent, taken) = (between(&sender.sends, to), between(&receiver.takes, from));
            if sent != taken {
                return Some(Err(format!("rank {from} sends {sent:?} to {to}, which takes {taken:?}")));
            }
        }
    }
    Some(Ok(()))
}

#[test]
fn programs_keep_off_what_the_network_owns_and_agree_on_their_messages() {
    let topologies = [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "2x1",
        "3x1",
        "2x2",
        "3x2",
        "2x3",
        "4x2",
        "2x4",
        "3x3",
        "2x2x2",
        "[[0,1,2],[3],[4,5]]",
        "[[0,3],[1,2,4]]",
    ];
    let (mut programs, mut faults) = (0, Vec::new());
    for text in topologies {
        let topology: Topology = text.parse().unwrap();
        let p = topology.ranks();
        for collective in Collective::ALL {
            // Sizes that all differ tell messages apart that would otherwise look alike; some of them are nothing.
            let blocks = Problem::new(collective, topology.clone()).blocks().unwrap_or(p);
            let listed =
                |scale: usize| Amount::Listed((0..blocks).map(|block| block * block * 3 % 31 * scale).collect());
            let amounts = match collective {
                Collective::Allgatherv | Collective::Alltoallv | Collective::ReduceScatter => {
                    vec![listed(1), listed(0)]
                }
                Collective::Gatherv | Collective::Scatterv => vec![listed(1), listed(0)],
                Collective::NeighborAllgatherv | Collective::NeighborAlltoallv => vec![listed(1), listed(0)],
                Collective::Barrier => vec![Amount::Each(0)],
                _ => vec![Amount::Each(0), Amount::Each(1), Amount::Each(5), Amount::Each(64)],
            };
            for root in if collective.rooted() { vec![0, p - 1] } else { vec![0] } {
                for reduction in [true, false].map(|commutative| Reduction { commutative, identical: false }) {
                    if !reduction.commutative && !collective.reduces() {
                        continue;
                    }
                    for amount in &amounts {
                        let problem = Problem::new(collective, topology.clone()).with_root(root).unwrap();
                        let mut problem = problem.with_reduction(reduction);
                        if let Amount::Listed(counts) = amount {
                            problem = problem.with_counts(counts.clone()).unwrap();
                        }
                        for algorithm in algorithms(collective) {
                            for choice in Choice::variants(algorithm, &problem) {
                                match check_all(&problem, &choice, amount, 8) {
                                    None => {}
                                    Some(Ok(())) => programs += 2 * p,
                                    Some(Err(fault)) => {
                                        faults
                                            .push(format!("{collective} by {choice} on {text} of {amount:?}: {fault}"));
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    let some = faults.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    assert!(faults.is_empty(), "{} of {programs} programs:\n{some}", faults.len());
    assert!(programs > 10_000, "only {programs} programs were checked");
}

/// Rank 2 combines what ranks 0 and 1 send: the first message cannot meet the second before that has come.
#[test]
fn a_message_waits_for_an_operand_that_another_message_of_the_round_brings() {
    let problem = Problem::new(Collective::Allreduce, "3x1".parse().unwrap());
    let choice = Choice::parse(Collective::Allreduce, "nap:ports=4").unwrap();
    assert_eq!(check_all(&problem, &choice, &Amount::Each(1), 8), Some(Ok(())));
}

/// Rank 1's rounds of a plain allgather, changed by hand.
fn changed(change: impl FnOnce(&mut Schedule)) -> Result<Program> {
    let problem = Problem::new(Collective::Allgather, "4".parse().unwrap());
    let prepared = Choice::parse(Collective::Allgather, "ring").unwrap().prepare(&problem).unwrap();
    let mut schedule = prepared.rank(1);
    change(&mut schedule);
    compile(&prepared, &schedule, 8, &Amount::Each(3), Buffers::Apart)
}

fn refusal(change: impl FnOnce(&mut Schedule)) -> String {
    changed(change).unwrap_err().to_string()
}

#[test]
fn a_span_that_is_one_block_too_long_is_refused() {
    assert!(changed(|_| ()).is_ok());
    let said = refusal(|schedule| schedule.rounds[1].recvs[0].spans = InlineVec::from([Span::output(3, 2)]));
    assert_eq!(
        said,
        "the schedule of ring for allgather cannot be run on rank 1: in round 1 2 blocks from 3 on lie outside of output, which has 4; \
         name another algorithm, and report this as a mistake of allhands"
    );
    for (first, count) in [(4, 1), (0, 5), (usize::MAX, 1), (2, usize::MAX), (usize::MAX, usize::MAX)] {
        for space in Space::ALL {
            // Scratch is as long as a schedule makes it.
            if space == Space::Scratch && (first == 4 || count == 5) {
                continue;
            }
            let span = Span::new(space, first, count);
            refusal(|schedule| schedule.rounds[1].sends[0].spans = InlineVec::from([span]));
        }
    }
}

#[test]
fn what_a_rank_must_not_do_is_refused() {
    let output = |first| Span::output(first, 1);
    let said = refusal(|schedule| schedule.rounds[1].sends[0].to = 4);
    assert!(said.contains("for or from rank 4, and there are 4"), "{said}");
    let said = refusal(|schedule| schedule.rounds[1].recvs[0].spans = InlineVec::from([Span::input(0, 1)]));
    assert!(said.contains("block 0 of the input is written"), "{said}");
    let said = refusal(|schedule| schedule.rounds[1].recvs[0].combine = Some(Combine::After));
    assert!(said.contains("there is no operation"), "{said}");
    let said = refusal(|schedule| schedule.rounds[1].locals.push(Local::Meet { level: 1 }));
    assert!(said.contains("ranks meet at level 1"), "{said}");
    let shared = Span::new(Space::Shared, 0, 1);
    let said = refusal(|schedule| schedule.rounds[1].locals.push(Local::Copy { from: output(0), to: shared }));
    assert!(said.contains("memory is shared"), "{said}");
    // What arrives where the same round sends from would be half of each.
    let said = refusal(|schedule| schedule.rounds[2].recvs[0].spans = schedule.rounds[2].sends[0].spans.clone());
    assert!(said.contains("arrives where another is sent from"), "{said}");
}

#[test]
fn operands_of_different_lengths_are_refused() {
    let problem = Problem::new(Collective::ReduceScatter, "3".parse().unwrap()).with_counts(vec![1, 2, 3]).unwrap();
    let prepared = Choice::parse(Collective::ReduceScatter, "ring").unwrap().prepare(&problem).unwrap();
    let mut schedule = prepared.rank(0);
    let combine = Local::Combine { from: Span::input(1, 1), into: Span::scratch(2, 1), how: Combine::After };
    schedule.rounds.push(Round { locals: vec![combine], ..Round::default() });
    let refused = compile(&prepared, &schedule, 8, &Amount::Listed(vec![1, 2, 3]), Buffers::Apart);
    assert!(refused.as_ref().unwrap_err().to_string().contains("blocks of different lengths"), "{refused:?}");
}

#[test]
fn what_no_memory_could_hold_is_refused() {
    for (collective, count) in [
        (Collective::Alltoall, usize::MAX / 16),
        (Collective::Allgather, usize::MAX / 4),
        (Collective::Allreduce, usize::MAX / 8),
        (Collective::Bcast, usize::MAX),
    ] {
        let problem = Problem::new(collective, "4".parse().unwrap());
        let choice = algorithms(collective).next().unwrap().name;
        let prepared = Choice::parse(collective, choice).unwrap().prepare(&problem).unwrap();
        let refused = compile(&prepared, &prepared.rank(0), 8, &Amount::Each(count), Buffers::Apart);
        assert!(matches!(refused, Err(Error::TooLarge { ranks: 4, element: 8, .. })), "{refused:?}");
    }
    // Before anything is decided or compared, and all ranks go on.
    crate::threads("4".parse().unwrap(), |comm| {
        let refused = comm.alltoall_plan::<u64>(usize::MAX / 16).err().unwrap();
        assert_eq!(refused, Error::TooLarge { collective: "alltoall", ranks: 4, element: 8 });
        comm.barrier()
    })
    .unwrap();
}

fn topologies() -> impl Strategy<Value = Topology> {
    let uneven = prop::collection::vec(1usize..7, 1..7).prop_map(|sizes| Topology::uneven(&sizes).unwrap());
    let dealt = (1usize..6, 1usize..6).prop_map(|(nodes, ranks)| Topology::regular(nodes, ranks).unwrap().cyclic());
    let nested = (1usize..4, 1usize..4, 1usize..4).prop_map(|(a, b, c)| Topology::nested(&[a, b, c]).unwrap());
    prop_oneof![(1usize..30).prop_map(|ranks| Topology::flat(ranks).unwrap()), uneven, dealt, nested]
}

/// A collective on a random shape by a random algorithm and setting, with how much it moves.
fn requests() -> impl Strategy<Value = (Problem, Choice, Amount)> {
    let numbers = prop::collection::vec(0usize..9, 1..20);
    let request = (topologies(), 0..Collective::ALL.len(), any::<[prop::sample::Index; 3]>(), numbers, any::<bool>());
    request.prop_filter_map(
        "it cannot serve",
        |(topology, collective, [root, algorithm, setting], numbers, ordered)| {
            let (collective, p) = (Collective::ALL[collective], topology.ranks());
            let root = if collective.rooted() { root.index(p) } else { 0 };
            let reduction = Reduction { commutative: !ordered, identical: false };
            let mut problem = Problem::new(collective, topology).with_root(root).unwrap().with_reduction(reduction);
            let listed = |blocks| (0..blocks).map(|block| numbers[block % numbers.len()]).collect::<Vec<usize>>();
            let amount = match collective {
                Collective::Allgatherv | Collective::ReduceScatter => Amount::Listed(listed(p)),
                Collective::Gatherv | Collective::Scatterv => Amount::Listed(listed(p)),
                Collective::Alltoallv => Amount::Listed(listed(p * p)),
                Collective::Barrier => Amount::Each(0),
                _ => Amount::Each(numbers[0] * numbers[numbers.len() / 2]),
            };
            if let Amount::Listed(counts) = &amount {
                problem = problem.with_counts(counts.clone()).unwrap();
            }
            let all: Vec<_> = algorithms(collective).collect();
            let settings = Choice::variants(all[algorithm.index(all.len())], &problem);
            let choice = &settings[setting.index(settings.len())];
            choice.prepare(&problem).ok().map(|_| (problem.clone(), choice.clone(), amount))
        },
    )
}

/// Puts a number into the place of one of a schedule's own.
fn spoil(schedule: &mut Schedule, place: prop::sample::Index, number: usize) {
    let mut numbers: Vec<&mut usize> = Vec::new();
    for round in &mut schedule.rounds {
        for Send { to, spans } in round.sends.iter_mut() {
            numbers.push(to);
            numbers.extend(spans.iter_mut().flat_map(|span| [&mut span.first, &mut span.count]));
        }
        for Recv { from, spans, .. } in round.recvs.iter_mut() {
            numbers.push(from);
            numbers.extend(spans.iter_mut().flat_map(|span| [&mut span.first, &mut span.count]));
        }
        for local in &mut round.locals {
            match local {
                Local::Copy { from, to: into } | Local::Combine { from, into, .. } => {
                    numbers.extend([from, into].into_iter().flat_map(|span| [&mut span.first, &mut span.count]));
                }
                Local::Meet { level } => numbers.push(level),
            }
        }
    }
    if !numbers.is_empty() {
        let place = place.index(numbers.len());
        *numbers[place] = number;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_algorithm_keeps_to_its_memory_on_any_shape((problem, choice, amount) in requests(), element in 1usize..20) {
        let prepared = choice.prepare(&problem).unwrap();
        for rank in 0..prepared.problem().ranks() {
            let schedule = prepared.rank(rank);
            let [apart, in_place] = [Buffers::Apart, Buffers::InPlace]
                .map(|buffers| compile(&prepared, &schedule, element, &amount, buffers));
            prop_assert!(apart.is_ok() && in_place.is_ok(), "{apart:?}\n{in_place:?}");
            prop_assert!(alike(&apart.unwrap(), &in_place.unwrap()));
        }
    }

    /// Whatever a number of a schedule is changed into, there is a program that keeps to its memory, or a refusal; never a panic.
    #[test]
    fn a_spoilt_schedule_is_refused_or_harmless(
        (problem, choice, amount) in requests(),
        (rank, place) in any::<(prop::sample::Index, prop::sample::Index)>(),
        number in prop_oneof![0usize..70, Just(usize::MAX), Just(usize::MAX / 2), Just(1 << 33)],
    ) {
        let prepared = choice.prepare(&problem).unwrap();
        let mut schedule = prepared.rank(rank.index(prepared.problem().ranks()));
        spoil(&mut schedule, place, number);
        for buffers in [Buffers::Apart, Buffers::InPlace] {
            let Ok(program) = compile(&prepared, &schedule, 8, &amount, buffers) else { continue };
            let (input, output) = (program.input * 8, program.output * 8);
            for Segment { memory, at, len } in program.segments() {
                let limit = match (memory, buffers) {
                    (Memory::Input, Buffers::Apart) => input,
                    (Memory::Input, Buffers::InPlace) => 0,
                    (Memory::Output, Buffers::Apart) => output,
                    (Memory::Output, Buffers::InPlace) => input.max(output),
                    (Memory::Scratch, _) => program.scratch,
                    (Memory::Shared, _) => program.shared,
                };
                prop_assert!(u128::from(at as u64) + u128::from(len as u64) <= u128::from(limit as u64));
            }
        }
    }
}

/// What a rank knows without being told is enough where nobody carries what is for others: the program is the one of who knows all.
#[test]
fn a_rank_that_knows_its_own_counts_makes_the_program_of_one_that_knows_all() {
    let (p, root) = (5, 3);
    let count = |block: usize| block * block * 7 % 11;
    for (collective, algorithm) in [
        (Collective::Alltoallv, "spread-out"),
        (Collective::Alltoallv, "pairwise"),
        (Collective::Gatherv, "linear"),
        (Collective::Scatterv, "linear"),
        (Collective::NeighborAllgatherv, "direct"),
        (Collective::NeighborAlltoallv, "direct"),
        (Collective::Alltoallv, "bruck"),
        (Collective::Gatherv, "binomial"),
    ] {
        let problem = Problem::new(collective, Topology::flat(p).unwrap()).with_root(root).unwrap();
        let listed: Vec<usize> = (0..problem.blocks().unwrap()).map(count).collect();
        let choice = Choice::parse(collective, algorithm).unwrap();
        let all = choice.prepare(&problem.clone().with_counts(listed.clone()).unwrap()).unwrap();
        let alone = choice.prepare(&problem).unwrap();
        let mut refused = 0;
        for rank in 0..p {
            let of = |space| {
                let blocks = 0..problem.extent(space, rank, listed.len());
                blocks.map(|position| count(problem.block_at(space, rank, position, listed.len()))).collect()
            };
            let own = Amount::Own { given: of(Space::Input), gotten: of(Space::Output), carried: Vec::new() };
            let program = |prepared: &Prepared, amount: &Amount, buffers| {
                compile(prepared, &prepared.rank(rank), 8, amount, buffers).map(|program| program.to_string())
            };
            for buffers in [Buffers::Apart, Buffers::InPlace] {
                match program(&alone, &own, buffers) {
                    Ok(made) => assert_eq!(Ok(made), program(&all, &Amount::Listed(listed.clone()), buffers)),
                    Err(error) => {
                        assert!(error.to_string().contains("whose sizes this rank does not know"), "{error}");
                        refused += 1;
                    }
                }
            }
        }
        assert_eq!(refused > 0, choice.knowledge() != Knowledge::Own, "{collective} {algorithm}");
    }
}

/// There is time for it then, and a copy behind a send is made between its letters.
#[test]
fn a_rank_copies_its_own_block_while_messages_travel() {
    for (collective, algorithm) in [
        (Collective::Allgather, "ring"),
        (Collective::Allgather, "linear"),
        (Collective::Alltoall, "pairwise"),
        (Collective::Alltoall, "spread-out"),
        (Collective::Alltoallv, "pairwise"),
        (Collective::Alltoallv, "spread-out"),
    ] {
        for p in [2, 3, 5, 8] {
            let problem = Problem::new(collective, Topology::flat(p).unwrap());
            let problem = match collective {
                Collective::Alltoallv => problem.with_counts(vec![4; p * p]).unwrap(),
                _ => problem,
            };
            let prepared = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap();
            let amount = match collective {
                Collective::Alltoallv => Amount::Listed(vec![4; p * p]),
                _ => Amount::Each(4),
            };
            for rank in 0..p {
                let program = compile(&prepared, &prepared.rank(rank), 8, &amount, Buffers::Apart).unwrap();
                let copy = program.code.iter().position(|instruction| matches!(instruction, Instruction::Copy { .. }));
                let before = copy.and_then(|copy| program.code.get(copy.checked_sub(1)?));
                assert!(matches!(before, Some(Instruction::Send(_))), "{collective} {algorithm}\n{program}");
            }
        }
    }
}
