//! Which send belongs to which receive, and when each round can run.
//!
//! The n-th message from a to b is received by the n-th receive that b posts for a. Everything that follows
//! messages (verifier, counter, drawings) reads this pairing.

use std::collections::HashMap;

use crate::schedule::blocks_in;
use crate::verify::Fault;
use crate::{Local, Schedule, Topology};

/// One end of a message: a rank, one of its rounds, and the place in that round's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The rank.
    pub rank: usize,
    /// Its round.
    pub round: usize,
    /// The index among the sends, or the receives, of the round.
    pub index: usize,
}

/// The other end of every message.
#[derive(Clone, Debug)]
pub struct Matching {
    /// `receiver[rank][round][index]`: where that send goes.
    pub receiver: Vec<Vec<Vec<End>>>,
    /// `sender[rank][round][index]`: where that receive comes from.
    pub sender: Vec<Vec<Vec<End>>>,
}

impl Matching {
    /// Pairs the messages of all ranks, or names the first that has no partner of its size.
    pub fn new(schedules: &[Schedule]) -> Result<Matching, Fault> {
        let ranks = schedules.len();
        let mut waiting: HashMap<(usize, usize), Vec<End>> = HashMap::new();
        for (rank, schedule) in schedules.iter().enumerate() {
            for (round, step) in schedule.rounds.iter().enumerate() {
                for (index, send) in step.sends.iter().enumerate() {
                    if send.to >= ranks || send.to == rank {
                        return Err(Fault::Peer { rank, round, peer: send.to });
                    }
                    waiting.entry((rank, send.to)).or_default().push(End { rank, round, index });
                }
            }
        }
        let nobody = End { rank: usize::MAX, round: 0, index: 0 };
        let like = |count: fn(&crate::Round) -> usize| -> Vec<Vec<Vec<End>>> {
            let rounds = |schedule: &Schedule| schedule.rounds.iter().map(|round| vec![nobody; count(round)]).collect();
            schedules.iter().map(rounds).collect()
        };
        let mut matching =
            Matching { receiver: like(|round| round.sends.len()), sender: like(|round| round.recvs.len()) };
        let mut taken: HashMap<(usize, usize), usize> = HashMap::new();
        for (rank, schedule) in schedules.iter().enumerate() {
            for (round, step) in schedule.rounds.iter().enumerate() {
                for (index, recv) in step.recvs.iter().enumerate() {
                    if recv.from >= ranks || recv.from == rank {
                        return Err(Fault::Peer { rank, round, peer: recv.from });
                    }
                    let nth = taken.entry((recv.from, rank)).or_default();
                    let Some(&end) = waiting.get(&(recv.from, rank)).and_then(|sends| sends.get(*nth)) else {
                        return Err(Fault::NeverSent { rank, round, from: recv.from });
                    };
                    *nth += 1;
                    let sent = blocks_in(&schedules[end.rank].rounds[end.round].sends[end.index].spans);
                    let received = blocks_in(&recv.spans);
                    if sent != received {
                        return Err(Fault::Size { from: end.rank, sent, rank, round, received });
                    }
                    matching.sender[rank][round][index] = end;
                    matching.receiver[end.rank][end.round][end.index] = End { rank, round, index };
                }
            }
        }
        for (rank, rounds) in matching.receiver.iter().enumerate() {
            for (round, ends) in rounds.iter().enumerate() {
                if let Some(index) = ends.iter().position(|&end| end == nobody) {
                    return Err(Fault::NeverReceived {
                        rank,
                        round,
                        to: schedules[rank].rounds[round].sends[index].to,
                    });
                }
            }
        }
        Ok(matching)
    }

    /// The rounds that share a message with this one.
    pub fn partners(&self, rank: usize, round: usize) -> impl Iterator<Item = End> + '_ {
        self.receiver[rank][round].iter().chain(&self.sender[rank][round]).copied()
    }
}

/// When everything happens if a message takes one unit of time, a send waits for its receive, and work is free.
#[derive(Clone, Debug)]
pub struct Timing {
    /// `step[rank][round]`: in which step, counted from 1, the messages of a round are through.
    pub step: Vec<Vec<usize>>,
    /// The last step of all: the length of the critical path.
    pub steps: usize,
}

/// What lets ranks go on: the run of all rounds of all ranks, in an order that respects messages and meetings.
///
/// `visit` is called twice for each round: when its sends are posted, and when its messages are through; and for each
/// local operation in between. It may stop the run with a fault.
pub(crate) fn run(
    schedules: &[Schedule],
    topology: &Topology,
    matching: &Matching,
    mut visit: impl FnMut(Event<'_>) -> Result<(), Fault>,
) -> Result<Timing, Fault> {
    let ranks = schedules.len();
    let mut state = vec![State::default(); ranks];
    let mut entered: Vec<Vec<usize>> = schedules.iter().map(|schedule| vec![0; schedule.rounds.len()]).collect();
    let mut step = entered.clone();
    let mut meetings: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    let mut ready: Vec<usize> = (0..ranks).rev().collect();
    while let Some(rank) = ready.pop() {
        while let Some(round) = schedules[rank].rounds.get(state[rank].round) {
            let at = state[rank].round;
            if state[rank].phase == Phase::Before {
                visit(Event::Post { rank, round: at })?;
                state[rank].phase = Phase::Posted;
                entered[rank][at] = state[rank].time;
                ready.extend(matching.partners(rank, at).map(|end| end.rank));
            }
            if state[rank].phase == Phase::Posted {
                let there = |end: &End| {
                    let peer = &state[end.rank];
                    peer.round > end.round || (peer.round == end.round && peer.phase != Phase::Before)
                };
                if !matching.partners(rank, at).all(|end| there(&end)) {
                    break;
                }
                let latest = matching.partners(rank, at).map(|end| entered[end.rank][end.round]).max();
                state[rank].time = latest.map_or(state[rank].time, |latest| latest.max(state[rank].time) + 1);
                step[rank][at] = state[rank].time;
                visit(Event::Through { rank, round: at })?;
                state[rank].phase = Phase::Local(0);
            }
            let Phase::Local(mut next) = state[rank].phase else { break };
            while let Some(local) = round.locals.get(next) {
                if let Local::Meet { level } = *local {
                    if level > topology.depth() {
                        return Err(Fault::Level { rank, round: at, level, depth: topology.depth() });
                    }
                    let region = topology.region_of(level, rank);
                    let here = meetings.entry((level, region)).or_default();
                    if !state[rank].meeting {
                        here.push(rank);
                        state[rank].meeting = true;
                    }
                    if here.len() < topology.region(level, region).len() {
                        break;
                    }
                    let members = std::mem::take(here);
                    visit(Event::Met { members: &members })?;
                    let time = members.iter().map(|&member| state[member].time).max().unwrap_or(0);
                    for &member in &members {
                        state[member].time = time;
                        state[member].meeting = false;
                        let Phase::Local(at) = &mut state[member].phase else { unreachable!("a meeting is local") };
                        *at += 1;
                    }
                    ready.extend(members.iter().filter(|&&member| member != rank));
                } else {
                    visit(Event::Local { rank, round: at, local })?;
                    state[rank].phase = Phase::Local(next + 1);
                }
                let Phase::Local(at) = state[rank].phase else { unreachable!("still local") };
                next = at;
            }
            if next < round.locals.len() {
                break;
            }
            state[rank] = State { round: at + 1, phase: Phase::Before, ..state[rank] };
        }
    }
    if let Some(rank) = (0..ranks).find(|&rank| state[rank].round < schedules[rank].rounds.len()) {
        let round = state[rank].round;
        let lacking = |end: &End| state[end.rank].round < end.round;
        let peer = match state[rank].phase {
            Phase::Posted => matching.partners(rank, round).find(lacking).map(|end| end.rank),
            _ => None,
        };
        return Err(Fault::Deadlock { rank, round, peer });
    }
    let steps = state.iter().map(|state| state.time).max().unwrap_or(0);
    Ok(Timing { step, steps })
}

/// What happens in a run.
pub(crate) enum Event<'a> {
    /// The sends and receives of a round are posted.
    Post { rank: usize, round: usize },
    /// Its messages are through.
    Through { rank: usize, round: usize },
    /// A local operation, not a meeting.
    Local { rank: usize, round: usize, local: &'a Local },
    /// These ranks have met.
    Met { members: &'a [usize] },
}

#[derive(Clone, Copy, Default)]
struct State {
    round: usize,
    phase: Phase,
    time: usize,
    meeting: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Phase {
    #[default]
    Before,
    Posted,
    Local(usize),
}
