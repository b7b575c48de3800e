//! What schedules do, counted: the numbers in the papers.

use serde::Serialize;

use crate::blockset::BlockSet;
use crate::schedule::{Ensemble, Schedule, blocks_in};
use crate::{Local, Problem, Space};

/// Messages and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// How many messages.
    pub messages: usize,
    /// How many blocks they carry.
    pub blocks: usize,
}

impl Traffic {
    fn add(&mut self, blocks: usize) {
        self.messages += 1;
        self.blocks += blocks;
    }

    fn max(self, other: Traffic) -> Traffic {
        Traffic { messages: self.messages.max(other.messages), blocks: self.blocks.max(other.blocks) }
    }
}

/// One rank's counts, or the maximum of each over all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Rounds in which a message is sent or received.
    pub rounds: usize,
    /// The most messages sent in one round.
    pub ports: usize,
    /// All that is sent.
    pub sent: Traffic,
    /// All that is received.
    pub received: Traffic,
    /// Sent across the outermost regions.
    pub far_sent: Traffic,
    /// Received across the outermost regions.
    pub far_received: Traffic,
    /// Sent inside them.
    pub near_sent: Traffic,
    /// Received inside them.
    pub near_received: Traffic,
    /// Sent, by the deepest level that sender and receiver share: `[0]` is across the outermost regions.
    pub sent_per_level: Vec<Traffic>,
    /// Blocks combined.
    pub combines: usize,
    /// Blocks copied.
    pub copies: usize,
    /// Positions of scratch touched.
    pub scratch: usize,
}

impl Counts {
    /// Counts one rank's schedule.
    pub fn of(problem: &Problem, schedule: &Schedule) -> Counts {
        let topology = &problem.topology;
        let mut counts = Counts { sent_per_level: vec![Traffic::default(); topology.depth() + 1], ..Counts::default() };
        let mut scratch = BlockSet::default();
        for round in &schedule.rounds {
            counts.rounds += usize::from(round.communicates());
            counts.ports = counts.ports.max(round.sends.len());
            for send in &round.sends {
                let blocks = blocks_in(&send.spans);
                let far = topology.far(schedule.rank, send.to);
                counts.sent.add(blocks);
                if far { &mut counts.far_sent } else { &mut counts.near_sent }.add(blocks);
                counts.sent_per_level[topology.shared_level(schedule.rank, send.to)].add(blocks);
            }
            for recv in &round.recvs {
                let blocks = blocks_in(&recv.spans);
                let far = topology.far(schedule.rank, recv.from);
                counts.received.add(blocks);
                if far { &mut counts.far_received } else { &mut counts.near_received }.add(blocks);
                counts.combines += if recv.combine.is_some() { blocks } else { 0 };
            }
            for local in &round.locals {
                match local {
                    Local::Copy { from, .. } => counts.copies += from.count,
                    Local::Combine { from, .. } => counts.combines += from.count,
                    Local::Meet { .. } => {}
                }
            }
            for (span, _) in round.spans().filter(|(span, _)| span.space == Space::Scratch) {
                scratch.insert(span.first..span.end());
            }
        }
        counts.scratch = scratch.len();
        counts
    }

    /// The maximum of each count over all ranks.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective, Counts, Problem, Topology};
    /// let problem = Problem::new(Collective::Allgather, Topology::regular(4, 4)?);
    /// let far = |algorithm| {
    ///     let ensemble = Choice::parse(Collective::Allgather, algorithm)?.prepare(&problem)?.ensemble();
    ///     let far = Counts::maxima(&ensemble).far_received;
    ///     Ok((far.messages, far.blocks))
    /// };
    /// assert_eq!(far("bruck")?, (4, 15)); // Example 2.1 of the locality-aware Bruck paper
    /// assert_eq!(far("loc-bruck")?, (1, 4));
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn maxima(ensemble: &Ensemble) -> Counts {
        Counts::maxima_of(&ensemble.problem, &ensemble.schedules)
    }

    /// The maximum of each count over some ranks.
    pub fn maxima_of(problem: &Problem, schedules: &[Schedule]) -> Counts {
        let each = schedules.iter().map(|schedule| Counts::of(problem, schedule));
        each.reduce(Counts::max).unwrap_or_default()
    }

    /// What some ranks send together, by the deepest level that sender and receiver share: `[0]` is across the outermost regions.
    ///
    /// ```
    /// use allhands_schedule::{Choice, Collective, Counts, Problem, Topology};
    /// let groups_of_nodes: Topology = "3x4x2".parse()?;
    /// let problem = Problem::new(Collective::Allgather, groups_of_nodes);
    /// let ring = Choice::parse(Collective::Allgather, "ring")?.prepare(&problem)?.ensemble();
    /// let sent = Counts::sent_by_all(&problem, &ring.schedules);
    /// assert_eq!([sent[0].blocks, sent[1].blocks, sent[2].blocks], [3 * 23, 9 * 23, 12 * 23]); // groups, nodes, inside a node
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn sent_by_all(problem: &Problem, schedules: &[Schedule]) -> Vec<Traffic> {
        let mut levels = vec![Traffic::default(); problem.topology.depth() + 1];
        for schedule in schedules {
            for (all, one) in levels.iter_mut().zip(Counts::of(problem, schedule).sent_per_level) {
                all.messages += one.messages;
                all.blocks += one.blocks;
            }
        }
        levels
    }

    fn max(self, other: Counts) -> Counts {
        let levels = self.sent_per_level.iter().zip(&other.sent_per_level);
        Counts {
            rounds: self.rounds.max(other.rounds),
            ports: self.ports.max(other.ports),
            sent: self.sent.max(other.sent),
            received: self.received.max(other.received),
            far_sent: self.far_sent.max(other.far_sent),
            far_received: self.far_received.max(other.far_received),
            near_sent: self.near_sent.max(other.near_sent),
            near_received: self.near_received.max(other.near_received),
            sent_per_level: levels.map(|(mine, theirs)| mine.max(*theirs)).collect(),
            combines: self.combines.max(other.combines),
            copies: self.copies.max(other.copies),
            scratch: self.scratch.max(other.scratch),
        }
    }
}
