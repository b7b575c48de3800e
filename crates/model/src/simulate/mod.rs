//! Schedules on a machine, in simulated time. The model is written in the crate's documentation.

mod engine;
mod event;
mod flows;
mod lanes;
mod links;
mod lockstep;
mod noise;
mod ports;
mod queue;

use allhands_schedule::{Ensemble, Prepared, Problem, Schedule};

pub use self::noise::Noise;

use self::engine::Engine;
use self::lanes::Lanes;
use crate::crew::Crew;
use crate::flat::{Cast, Everybody, Flat};
use crate::sizes::Sizes;
use crate::symmetry::{Check, OneNode};
use crate::{Amount, Error, Machine, Result};

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
    /// From the start until the first rank is through.
    pub first_seconds: f64,
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
    crew: Crew,
    kept: Option<Flattened>,
}

struct Flattened {
    flat: Flat,
    mode: Mode,
    /// Whether another size needs no other arrays.
    scales: bool,
    /// Whether participants are ranks: where messages of several nodes meet, those of the lower rank go first.
    as_ranks: bool,
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
        Simulator {
            problem,
            blocks,
            make,
            exact: false,
            check: Check::Thorough,
            rounded: false,
            noise: Noise::default(),
            crew: Crew::Everybody,
            kept: None,
        }
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

    /// On the calling thread, without the help of others.
    pub(crate) fn alone(self) -> Simulator<'a> {
        Simulator { crew: Crew::Alone, ..self }
    }

    /// The time on a machine.
    pub fn run(&mut self, machine: &Machine, amount: Amount) -> Result<Estimate> {
        machine.check()?;
        // Who comes first to a link between nodes is decided among all ranks.
        let linked = machine.links.is_some() || machine.flows;
        self.keep(amount, self.exact || linked, linked).map_err(|error| self.in_ranks(error, linked))?;
        let Some(Flattened { flat, mode, as_ranks, .. }) = &self.kept else { unreachable!("just kept") };
        let finish = finish(flat, machine, &self.noise).map_err(|error| self.in_ranks(error, *as_ranks))?;
        Ok(Estimate {
            seconds: finish.last,
            mean_seconds: finish.mean,
            first_seconds: finish.first,
            messages: flat.messages.len() as u64,
            far_messages: flat.tally.far_messages,
            shares: flat.tally.shares,
            mode: *mode,
            contended: finish.timed,
        })
    }

    /// Sees to it that the arrays for this size are there.
    fn keep(&mut self, amount: Amount, exact: bool, as_ranks: bool) -> Result<()> {
        let mut sizes = Sizes::new(self.problem, self.blocks, amount);
        if self.rounded {
            sizes.round();
        }
        if let Some(kept) = &mut self.kept {
            let mode_fits = (!exact || kept.mode == Mode::Exact) && as_ranks == kept.as_ranks;
            if mode_fits && (kept.amount == amount || (kept.scales && sizes.equal())) {
                kept.flat.unit = sizes.unit;
                kept.amount = amount;
                return Ok(());
            }
        }
        self.kept = None;
        let topology = &self.problem.topology;
        let one_node = OneNode::new(topology).filter(|node| !exact && !node.few(self.check));
        let symmetric = one_node.and_then(|node| node.flat(&*self.make, &sizes, self.check, self.crew));
        let (flat, mode) = match symmetric {
            Some(flat) => (flat?, Mode::Symmetric),
            None => {
                let everybody = Everybody::new(topology, as_ranks);
                (Flat::new(&*self.make, &sizes, topology, &everybody, self.crew)?, Mode::Exact)
            }
        };
        self.kept = Some(Flattened { flat, mode, scales: sizes.equal(), as_ranks, amount });
        Ok(())
    }

    /// An error that names a rank, not a participant.
    fn in_ranks(&self, error: Error, as_ranks: bool) -> Error {
        let rank = |participant| Everybody::new(&self.problem.topology, as_ranks).rank(participant);
        match error {
            Error::Deadlock { rank: participant } => Error::Deadlock { rank: rank(participant) },
            Error::Unmatched { rank: participant } => Error::Unmatched { rank: rank(participant) },
            other => other,
        }
    }
}

/// When all ranks are through.
struct Finish {
    last: f64,
    mean: f64,
    first: f64,
    /// Whether the order in time mattered.
    timed: bool,
}

impl Finish {
    fn of(clocks: impl Iterator<Item = f64>, timed: bool) -> Finish {
        let (mut last, mut first, mut sum, mut count) = (0.0f64, f64::INFINITY, 0.0, 0);
        for clock in clocks {
            (last, first) = (last.max(clock), first.min(clock));
            sum += clock;
            count += 1;
        }
        Finish { last, mean: sum / f64::from(count.max(1)), first: first.min(last), timed }
    }
}

/// Runs all ranks: wave after wave where that gives the same, otherwise event by event.
fn finish(flat: &Flat, machine: &Machine, noise: &Noise) -> Result<Finish> {
    let lanes = Lanes::new(flat, machine);
    let timed = lanes.order_matters(flat, machine);
    match flat.waves.as_ref().filter(|_| !timed) {
        Some(waves) => Ok(lockstep::run(flat, waves, machine, &lanes, noise)),
        None => Engine::new(flat, machine, &lanes, noise, timed).run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allhands_schedule::{Choice, Collective, Topology, algorithms};

    /// Of every algorithm and setting that has waves, on several shapes: the same times, to the last bit.
    #[test]
    fn waves_and_events_give_the_same_times() {
        let machines = ["lassen", "blue-waters", "cervino"].map(|name| Machine::shipped(name).unwrap().uncontended());
        let shapes = ["13", "4x3", "3,5,4", "3x2x2", "8x4"].map(|text| text.parse::<Topology>().unwrap());
        let noise = Noise { seed: 5, message: 0.3, late: 1e-6 };
        let (mut without, mut reordered, mut compared) = (0, 0, 0);
        for (topology, collective) in shapes.iter().flat_map(|shape| Collective::ALL.map(|one| (shape, one))) {
            let problem = Problem::new(collective, topology.clone());
            let variants = algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem));
            for prepared in variants.filter_map(|choice| choice.prepare(&problem).ok()) {
                let mut simulator = Simulator::new(&prepared).exact();
                if simulator.keep(Amount::bytes(6000), true, false).is_err() {
                    continue;
                }
                let flat = &simulator.kept.as_ref().unwrap().flat;
                let Some(waves) = &flat.waves else {
                    without += usize::from(!flat.tally.shares);
                    continue;
                };
                reordered += usize::from(waves.reordered());
                for (machine, ports) in
                    machines.iter().flat_map(|one| [Some(1), Some(3), None].map(|ports| (one, ports)))
                {
                    let machine = Machine { ports, ..machine.clone() };
                    let lanes = Lanes::new(flat, &machine);
                    if lanes.order_matters(flat, &machine) {
                        continue;
                    }
                    let together = lockstep::run(flat, waves, &machine, &lanes, &noise);
                    let apart = Engine::new(flat, &machine, &lanes, &noise, false).run().unwrap();
                    let choice = prepared.name();
                    assert_eq!((together.last, together.mean), (apart.last, apart.mean), "{collective} {choice}");
                    assert_eq!(together.first, apart.first, "{collective} {choice}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 2000 && reordered > 100, "{compared} compared, {reordered} reordered");
        assert!(without < 20, "{without} of the registry have no waves");
    }
}
