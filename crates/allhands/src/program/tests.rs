//! Programs keep off memory that the network owns: where a posted message may land at any time until it is taken, and what
//! a send may read at any time until it is settled. Both ends of a pair agree on what messages go between them, in what order.

use super::*;
use allhands_schedule::{Choice, Collective, Reduction, Topology, algorithms};

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
    fn read(&self, segment: &Segment) -> Result<(), String> {
        match self.landing.iter().find(|(_, part)| part.overlaps(segment)) {
            Some((take, part)) => Err(format!("{segment} is read while message {take} may land at {part}")),
            None => Ok(()),
        }
    }

    fn write(&self, segment: &Segment) -> Result<(), String> {
        self.read(segment)?;
        match self.lent.iter().find(|(_, part)| part.overlaps(segment)) {
            Some((send, part)) => Err(format!("{segment} is written while send {send} may read {part}")),
            None => Ok(()),
        }
    }
}

fn check(program: &Program) -> Result<(), String> {
    let mut network = Network::default();
    let mut posted = Vec::new();
    let mut taken = Vec::new();
    for (line, instruction) in program.code.iter().enumerate() {
        let step = |network: &mut Network, posted: &mut Vec<usize>, taken: &mut Vec<usize>| -> Result<(), String> {
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

/// Peers and bytes, in order.
fn envelopes(messages: &[Message]) -> Vec<(usize, usize)> {
    messages.iter().map(|message| (message.peer, message.bytes)).collect()
}

fn check_all(problem: &Problem, choice: &Choice, amount: &Amount, element: usize) -> Option<Result<(), String>> {
    let prepared = choice.prepare(problem).ok()?;
    let schedules = prepared.ensemble().schedules;
    let compile = |schedule, buffers| super::compile(problem, schedule, prepared.blocks(), element, amount, buffers);
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
        if envelopes(&one.sends) != envelopes(&other.sends)
            || envelopes(&one.takes) != envelopes(&other.takes)
            || one.shared != other.shared
        {
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
    let collectives = [
        Collective::Allgather,
        Collective::Allgatherv,
        Collective::Alltoall,
        Collective::Alltoallv,
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::ReduceScatterBlock,
        Collective::Bcast,
        Collective::Reduce,
        Collective::Barrier,
    ];
    let (mut programs, mut faults) = (0, Vec::new());
    for text in topologies {
        let topology: Topology = text.parse().unwrap();
        let p = topology.ranks();
        for collective in collectives {
            // Sizes that all differ tell messages apart that would otherwise look alike; some of them are nothing.
            let blocks = if collective.family() == Collective::Alltoall { p * p } else { p };
            let listed =
                |scale: usize| Amount::Listed((0..blocks).map(|block| block * block * 3 % 31 * scale).collect());
            let amounts = match collective {
                Collective::Allgatherv | Collective::Alltoallv | Collective::ReduceScatter => {
                    vec![listed(1), listed(0)]
                }
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
