//! What a message costs on a machine: per level and protocol, with what ranks of a node share.

mod file;
mod fit;
mod shipped;

pub use fit::{Fit, Measured};

use std::fmt;

use crate::{Error, Result};

/// A machine: the cost of messages by level, of copying and combining, and of what is shared.
///
/// Numbers are in seconds and bytes here, and in the units their names say in a machine file.
///
/// ```
/// use allhands_model::Machine;
/// let lassen = Machine::shipped("lassen")?;
/// assert_eq!(lassen.levels.len(), 3); // between nodes, between sockets, inside a socket
/// assert!(Machine::shipped("laptop").unwrap_err().to_string().contains("shipped are aries, blue-waters"));
/// # Ok::<(), allhands_model::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Messages that a rank sends at once, and receives at once; `None`: any number.
    pub ports: Option<usize>,
    /// Whether every message is a flow of its own: its bytes travel beside those of others and keep no port.
    pub flows: bool,
    /// Seconds to combine a byte of one operand with another.
    pub combine: f64,
    /// Seconds to copy a byte.
    pub copy: f64,
    /// The levels, outermost first: between nodes, then what is inside them.
    pub levels: Vec<Level>,
    /// The switches, where they are told.
    pub links: Option<Links>,
}

/// Its name and what it is: `lassen: POWER9 nodes ...`.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.description)
    }
}

/// What messages between ranks that share a region cost, but no smaller one.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// What it is called: network, node, socket.
    pub name: String,
    /// Whether nobody has measured it, and its numbers are those of another level.
    pub assumed: bool,
    /// Whether its numbers were fitted to a few messages, of ranks that had nothing else to do: of what takes about as long by them, fewer steps are
    /// safer.
    pub rough: bool,
    /// How many ranks a region of this level holds.
    pub holds: Option<usize>,
    /// Seconds from the last rank's coming to a meeting of such a region until all may go on.
    pub meeting: f64,
    /// By size, ascending; the last serves any size.
    pub protocols: Vec<Protocol>,
}

/// How messages of some sizes travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// The largest size, in bytes, that travels so.
    pub up_to: u64,
    /// Whether the transfer waits for the receiver.
    pub rendezvous: bool,
    /// Seconds for an empty message.
    pub latency: f64,
    /// Seconds for each byte.
    pub per_byte: f64,
    /// Seconds for which a message keeps its sender's and its receiver's port, beside those of its bytes.
    pub overhead: f64,
    /// The same when many ranks of the sender's node send far messages.
    pub crowd: Option<Crowd>,
    /// Seconds for which a byte keeps the sender's node from injecting others.
    pub injection: f64,
}

/// Latency and time per byte when so many ranks of a node send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    /// How many.
    pub ranks: usize,
    /// Seconds for an empty message.
    pub latency: f64,
    /// Seconds for each byte.
    pub per_byte: f64,
}

/// Switches: nodes under leaves, leaves under one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// Seconds a byte keeps the link between a node and its leaf, each way.
    pub node: f64,
    /// Seconds a byte keeps the link between a leaf and the core, each way.
    pub core: f64,
    /// Seconds that the way over the core adds.
    pub core_latency: f64,
    /// Nodes under each leaf, in order; further leaves are as the last.
    pub leaves: Vec<usize>,
}

impl Machine {
    /// The same where ranks outnumber cores, with so many ranks, and so many nodes, on a core: 4 and 0.5, if eight ranks are one
    /// node of two cores. What a core does for a byte it does for nobody else meanwhile: messages of a node start that much later one
    /// after the other, inside it by what both ends do, and who copies, combines or begins a message waits for the others of its core who
    /// do the same. And a rank that waits for another of its node goes on when the ranks of its core have had their
    /// turns, which takes [`Machine::HANDOVER`] each: many messages at once cost little there, and one after the other much.
    ///
    /// ```
    /// use allhands_model::Machine;
    /// let machine = Machine::shipped("generic")?;
    /// let crowded = machine.crowded(4.0, 0.5);
    /// let (free, shared) = (&machine.levels[1].protocols[0], &crowded.levels[1].protocols[0]);
    /// assert_eq!(shared.injection, 2.0 * free.per_byte * 0.5);
    /// assert_eq!(shared.latency, free.latency + 4.0 * Machine::HANDOVER);
    /// assert_eq!(crowded.copy, 4.0 * machine.copy);
    /// # Ok::<(), allhands_model::Error>(())
    /// ```
    pub fn crowded(&self, ranks_of_a_core: f64, nodes_of_a_core: f64) -> Machine {
        let mut machine = self.clone();
        machine.copy *= ranks_of_a_core.max(1.0);
        machine.combine *= ranks_of_a_core.max(1.0);
        // Between nodes a network takes longer than handing over, and brings what one end has copied.
        let near = usize::from(machine.levels.len() > 1);
        let (far, near) = machine.levels.split_at_mut(near);
        for protocol in far.iter_mut().flat_map(|level| &mut level.protocols) {
            protocol.injection = protocol.injection.max(protocol.per_byte * nodes_of_a_core);
        }
        let turns = ranks_of_a_core * Machine::HANDOVER;
        for level in near {
            level.meeting += turns;
            let mut copied = 0.0;
            for protocol in &mut level.protocols {
                // Whose memory is read waits for its reader, too; that saves a copy but not the work, which is the kernel's then.
                let (work, waits) = match protocol.rendezvous {
                    true => (protocol.per_byte.max(copied), 2.0),
                    false => (protocol.per_byte, 1.0),
                };
                copied = protocol.per_byte;
                protocol.injection = protocol.injection.max(2.0 * work * nodes_of_a_core);
                protocol.latency += waits * turns;
                protocol.overhead *= ranks_of_a_core.max(1.0);
            }
        }
        machine
    }

    /// Seconds for which a rank that gives its core away and gets it back keeps the others waiting: measured with ranks that exchange
    /// flags, two and four of them on a core.
    pub const HANDOVER: f64 = 1.6e-6;
}

impl Machine {
    /// A machine on which every message costs `latency + bytes * per_byte`, waits for its receiver, keeps its ports for all
    /// of that time, and work is free: the postal model.
    ///
    /// ```
    /// use allhands_model::{Amount, Machine, simulate};
    /// use allhands_schedule::{Choice, Collective, Problem, Topology};
    /// let problem = Problem::new(Collective::Allgather, Topology::flat(8)?);
    /// let ring = Choice::parse(Collective::Allgather, "ring")?.prepare(&problem)?;
    /// let machine = Machine::postal(1e-6, 1e-9);
    /// let time = simulate(&ring, &machine, Amount::bytes(1000))?.seconds;
    /// assert!((time - 7.0 * (1e-6 + 1000.0 * 1e-9)).abs() < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn postal(latency: f64, per_byte: f64) -> Machine {
        let protocol = Protocol {
            up_to: u64::MAX,
            rendezvous: true,
            latency,
            per_byte,
            overhead: latency,
            crowd: None,
            injection: 0.0,
        };
        let level = Level {
            name: "network".into(),
            assumed: false,
            rough: false,
            holds: None,
            meeting: 0.0,
            protocols: vec![protocol],
        };
        Machine {
            name: "postal".into(),
            description: "every message costs a latency and a time for each byte".into(),
            ports: Some(1),
            flows: false,
            combine: 0.0,
            copy: 0.0,
            levels: vec![level],
            links: None,
        }
    }

    /// The machine without what the ranks of a node share: no injection limit, no crowd, no links.
    pub fn uncontended(&self) -> Machine {
        let mut machine = Machine { links: None, ..self.clone() };
        for protocol in machine.levels.iter_mut().flat_map(|level| &mut level.protocols) {
            protocol.injection = 0.0;
            protocol.crowd = None;
        }
        machine
    }

    /// The level at which ranks talk whose deepest common region, at `depth` of `depths`, has `size` ranks.
    ///
    /// A topology that tells of nodes only leaves open where in the node its ranks sit: on the deepest level that holds them.
    pub fn level(&self, depth: usize, depths: usize, size: usize) -> usize {
        let last = self.levels.len() - 1;
        match depth {
            0 => 0,
            1 if depths == 1 => {
                let holds = |level: &usize| self.levels[*level].holds.is_some_and(|holds| holds >= size);
                (1..=last).rev().find(holds).unwrap_or(1.min(last))
            }
            _ => depth.min(last),
        }
    }

    /// Refuses numbers that make no sense.
    pub fn check(&self) -> Result<()> {
        let wrong =
            |key: String, fact: &str| Err(Error::Machine { machine: self.name.clone(), key, fact: fact.into() });
        let sound = |time: f64| time.is_finite() && time >= 0.0;
        if self.levels.is_empty() {
            return wrong("levels".into(), "are missing; give at least the one between nodes");
        }
        if self.ports == Some(0) {
            return wrong("ports".into(), "is 0; give at least 1, or leave it out for any number");
        }
        if self.flows && self.ports != Some(1) {
            return wrong(
                "flows".into(),
                "needs ports = 1: the overheads of a rank's messages pass one after the other",
            );
        }
        if self.flows && self.links.is_some() {
            return wrong("flows".into(), "cannot be beside links; what a node's flows share is injection_ns_per_byte");
        }
        if ![self.combine, self.copy].into_iter().all(sound) {
            return wrong("combine or copy".into(), "is negative or no number");
        }
        for level in &self.levels {
            let protocols = &level.protocols;
            if protocols.is_empty() || !protocols.is_sorted_by(|a, b| a.up_to < b.up_to) {
                return wrong(level.name.clone(), "has thresholds that do not rise: short, eager, rendezvous");
            }
            for Protocol { latency, per_byte, overhead, crowd, injection, .. } in protocols {
                let crowd = crowd.map_or([0.0; 2], |crowd| [crowd.latency, crowd.per_byte]);
                if ![*latency, *per_byte, *overhead, *injection, crowd[0], crowd[1], level.meeting]
                    .into_iter()
                    .all(sound)
                {
                    return wrong(level.name.clone(), "has a time that is negative or no number");
                }
                if overhead > latency {
                    return wrong(level.name.clone(), "has an overhead above the latency, of which it is a part");
                }
            }
        }
        match &self.links {
            Some(links) if links.leaves.is_empty() || links.leaves.contains(&0) => {
                wrong("links.leaves".into(), "names a leaf without nodes")
            }
            Some(links) if ![links.node, links.core, links.core_latency].into_iter().all(sound) => {
                wrong("links".into(), "has a time that is negative or no number")
            }
            _ => Ok(()),
        }
    }
}

impl Level {
    /// The protocol by which so many bytes travel.
    pub fn protocol(&self, bytes: u64) -> &Protocol {
        let index = self.protocols.partition_point(|protocol| protocol.up_to < bytes);
        &self.protocols[index.min(self.protocols.len() - 1)]
    }
}

impl Protocol {
    /// This protocol as it is when `senders` ranks of the node send far messages: on the line through what was measured with one
    /// and with a crowd.
    pub fn among(&self, senders: usize) -> Protocol {
        let Some(crowd) = self.crowd else { return *self };
        let share = senders.saturating_sub(1) as f64 / crowd.ranks.saturating_sub(1).max(1) as f64;
        let between = |alone: f64, crowded: f64| alone + share * (crowded - alone);
        let latency = between(self.latency, crowd.latency).max(0.0);
        let per_byte = between(self.per_byte, crowd.per_byte).max(0.0);
        let overhead = if self.overhead == self.latency { latency } else { self.overhead.min(latency) };
        Protocol { latency, per_byte, overhead, crowd: None, ..*self }
    }

    /// Seconds from sending to arriving when nothing is in the way.
    pub fn time(&self, bytes: u64) -> f64 {
        self.latency + self.per_byte * bytes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_sit_on_the_deepest_level_that_holds_them() {
        let lassen = Machine::shipped("lassen").unwrap();
        assert_eq!([16, 20, 21, 40].map(|size| lassen.level(1, 1, size)), [2, 2, 1, 1]);
        assert_eq!([0, 1, 2, 3].map(|depth| lassen.level(depth, 2, 8)), [0, 1, 2, 2]);
        assert_eq!(Machine::postal(1.0, 1.0).level(1, 1, 4), 0);
    }

    #[test]
    fn a_crowd_is_met_halfway() {
        let far = Machine::shipped("blue-waters").unwrap().levels[0].protocols[0];
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(far.among(1).latency, 1.92e-6) && close(far.among(16).latency, 2.27e-6));
        assert!(close(far.among(8).latency, 1.92e-6 + 0.35e-6 * 7.0 / 15.0));
    }
}
