//! Schedules on a machine, in simulated time. The model is written in the crate's documentation.

mod engine;
mod noise;
mod queue;

use allhands_schedule::{Ensemble, Prepared, Problem, Schedule};

pub use self::noise::Noise;

use self::engine::Engine;
use crate::flat::{Everybody, Flat};
use crate::sizes::Sizes;
use crate::symmetry::{Check, OneNode};
use crate::{Amount, Machine, Result};

/// How a time was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every rank was simulated.
    Exact,
    /// The ranks of one node stood for all: every node was found to do the same, up to rotation.
    Symmetric,
}

impl Mode {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Exact => "exact",
            Mode::Symmetric => "symmetric",
        }
    }
}

/// What a simulation found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// From the start until the last rank is through.
    pub seconds: f64,
    /// The mean over ranks of when they are through.
    pub mean_seconds: f64,
    /// Messages that were simulated.
    pub messages: u64,
    /// Far messages that the busiest rank sends.
    pub far_messages: usize,
    /// Whether ranks meet or share memory.
    pub shares: bool,
    /// How the time was found.
    pub mode: Mode,
    /// Whether the order in time decided who waited for what is shared.
    pub contended: bool,
}

/// Simulates an algorithm on a machine, one node for all where all do the same.
///
/// ```
/// use allhands_model::{Amount, Machine, simulate};
/// use allhands_schedule::{Choice, Collective, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(256, 16)?);
/// let lassen = Machine::shipped("lassen")?;
/// let time = |name: &str| -> Result<f64, Box<dyn std::error::Error>> {
///     let prepared = Choice::parse(Collective::Allgather, name)?.prepare(&problem)?;
///     Ok(simulate(&prepared, &lassen, Amount::bytes(4))?.seconds)
/// };
/// assert!(time("bruck")? > 2.9 * time("loc-bruck")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate(prepared: &Prepared, machine: &Machine, amount: Amount) -> Result<Estimate> {
    Simulator::new(prepared).run(machine, amount)
}

/// An algorithm that is simulated several times: what depends on neither machine nor size is kept.
pub struct Simulator<'a> {
    problem: &'a Problem,
    blocks: usize,
    make: Box<dyn Fn(usize) -> Schedule + Sync + 'a>,
    exact: bool,
    check: Check,
    /// Blocks as if they were equal where a vector cannot be cut evenly.
    rounded: bool,
    noise: Noise,
    kept: Option<Kept>,
}

struct Kept {
    flat: Flat,
    mode: Mode,
    /// Whether another size needs no other arrays.
    scales: bool,
    amount: Amount,
}

impl<'a> Simulator<'a> {
    /// Of an algorithm.
    pub fn new(prepared: &'a Prepared) -> Simulator<'a> {
        Simulator::with(prepared.problem(), prepared.blocks(), Box::new(|rank| prepared.rank(rank)))
    }

    /// Of schedules by hand.
    pub fn of(ensemble: &'a Ensemble) -> Simulator<'a> {
        let make = Box::new(|rank: usize| ensemble.schedules[rank].clone());
        Simulator::with(&ensemble.problem, ensemble.blocks, make)
    }

    fn with(problem: &'a Problem, blocks: usize, make: Box<dyn Fn(usize) -> Schedule + Sync + 'a>) -> Simulator<'a> {
        let noise = Noise::default();
        Simulator { problem, blocks, make, exact: false, check: Check::Thorough, rounded: false, noise, kept: None }
    }

    /// Simulates every rank, also where one node could stand for all.
    pub fn exact(self) -> Simulator<'a> {
        Simulator { exact: true, ..self }
    }

    /// With random delays; every rank is simulated.
    pub fn noise(self, noise: Noise) -> Simulator<'a> {
        Simulator { noise, exact: self.exact || !noise.is_silent(), ..self }
    }

    /// For ranking many candidates: lets one node stand for all after comparing a few, and cuts vectors as if evenly.
    pub(crate) fn roughly(self) -> Simulator<'a> {
        Simulator { check: Check::Quick, rounded: true, ..self }
    }

    /// The time on a machine.
    pub fn run(&mut self, machine: &Machine, amount: Amount) -> Result<Estimate> {
        machine.check()?;
        self.keep(amount, self.exact || machine.links.is_some())?;
        let Some(Kept { flat, mode, .. }) = &self.kept else { unreachable!("just kept") };
        let finish = Engine::new(flat, machine, &self.noise).run()?;
        Ok(Estimate {
            seconds: finish.last,
            mean_seconds: finish.mean,
            messages: flat.messages.len() as u64,
            far_messages: flat.tally.far_messages,
            shares: flat.tally.shares,
            mode: *mode,
            contended: finish.timed,
        })
    }

    /// Sees to it that the arrays for this size are there.
    fn keep(&mut self, amount: Amount, exact: bool) -> Result<()> {
        let mut sizes = Sizes::new(self.problem, self.blocks, amount);
        if self.rounded {
            sizes.round();
        }
        if let Some(kept) = &mut self.kept {
            let mode_fits = !exact || kept.mode == Mode::Exact;
            if mode_fits && (kept.amount == amount || (kept.scales && sizes.equal())) {
                kept.flat.unit = sizes.unit;
                kept.amount = amount;
                return Ok(());
            }
        }
        self.kept = None;
        let topology = &self.problem.topology;
        let one_node = OneNode::new(topology).filter(|_| !exact);
        let symmetric = one_node.and_then(|node| node.flat(&*self.make, &sizes, self.check));
        let (flat, mode) = match symmetric {
            Some(flat) => (flat?, Mode::Symmetric),
            None => (Flat::new(&*self.make, &sizes, topology, &Everybody(topology))?, Mode::Exact),
        };
        self.kept = Some(Kept { flat, mode, scales: sizes.equal(), amount });
        Ok(())
    }
}
