//! How fast messages are where a job runs, found out when a world is made: by a few of them, in a few milliseconds.
//!
//! The first rank sends messages to a few ranks of other nodes and to one of its own, which send them back, and tells all ranks how long that
//! took: all must choose alike. It alone looks at the clock. A message of no bytes says that there are no more, so that no limit on time can make
//! them disagree; everybody else waits to be told.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use allhands_model::{Fit, Machine, Measured};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Topology;

use crate::error::Result;
use crate::node::Arrived;
use crate::node::board::EVERYBODY;
use crate::world::{Way, World};

/// Both messages and letters are this long where they are short.
const SHORT: usize = 8;

/// Between nodes: above what most networks send without asking.
const FAR: Trial = Trial { long: 32 << 10, most: 10, time: Duration::from_millis(5), slowest: f64::MAX };
/// Inside a node: what fits into a slot, and often enough that all slots have been used before. What takes longer than this has waited for a core, not
/// for a letter.
const NEAR: Trial = Trial { long: 4 << 10, most: 100, time: Duration::from_millis(1), slowest: 5e-6 };
/// No plan has sent a message yet, so any tag would do. Every MPI has this one.
const TAG: i32 = 32_766;

/// How messages are tried.
struct Trial {
    /// Bytes of a long one.
    long: usize,
    /// So often for each length, if there is time.
    most: u32,
    /// None is begun so long after the first, which may have waited until the other rank had come, or until a connection was made: with Open MPI
    /// over TCP that takes tens of milliseconds, which the job's first messages would take anyway.
    time: Duration,
    /// Seconds after which a message says nothing.
    slowest: f64,
}

/// Who answers the first rank, as all ranks know.
#[derive(Debug, PartialEq)]
pub(super) struct Partners {
    /// The first of them is the one that single messages go to.
    far: Vec<usize>,
    near: Option<usize>,
}

/// As many ranks of other nodes are sent something at once, at most.
const AT_ONCE: usize = 8;

impl Partners {
    /// The first ones there are. Inside a node, one that shares memory, unless ranks take turns on their cores: the model adds the time of
    /// turns itself.
    pub(super) fn of(topology: &Topology, homes: &[usize], cores: usize) -> Partners {
        let others = || 1..topology.ranks();
        let near = |rank: &usize| !topology.far(0, *rank) && homes[*rank] == homes[0];
        Partners {
            far: others().filter(|rank| topology.far(0, *rank)).take(AT_ONCE).collect(),
            near: others().find(near).filter(|_| cores >= topology.ranks()),
        }
    }

    /// Whether there is anybody.
    pub(super) fn are_any(&self) -> bool {
        !self.far.is_empty() || self.near.is_some()
    }
}

/// What this process, as a first rank, has found out: with its first communicator, and never again.
static FOUND: Mutex<Fit> = Mutex::new(Fit { far: None, near: None });

/// What a few messages take, the same on every rank. Collective over a communicator of the world's ranks that nobody else uses.
pub(super) fn find(mpi: &Mpi, comm: Handle, world: &World, key: u64, partners: &Partners) -> Result<Fit> {
    let me = world.me();
    let mut fit = Fit::default();
    if me == 0 {
        fit = *FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    }
    // Whom a rank exchanges messages with: the first one with the partners, and they with it.
    let others = |partners: &[usize]| match me {
        0 => partners.to_vec(),
        _ if partners.contains(&me) => vec![0],
        _ => Vec::new(),
    };
    if let &[other] = &others(partners.near.as_slice())[..]
        && let Way::Near(place) = world.way(other, true)
    {
        let trial = Trial { long: NEAR.long.min(world.node.body()), ..NEAR };
        fit.near = take_part(&[Letters { world, other, place, key }], &trial, me, fit.near)?;
    }
    let far: Vec<Messages<'_>> =
        others(&partners.far).into_iter().map(|other| Messages { mpi, comm, other: other as i32 }).collect();
    if !far.is_empty() {
        fit.far = take_part(&far, &FAR, me, fit.far)?;
    }
    if me == 0 {
        *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = fit;
    }
    let mut words = words(&fit);
    // SAFETY: as many words on every rank.
    unsafe {
        mpi.bcast(words.as_mut_ptr().cast(), words.as_flattened().len(), mpi.constants().types.uint64_t, 0, comm)?
    };
    let [far, near] = measured(words);
    Ok(Fit { far, near: near.map(as_in_a_plan) })
}

/// Times, bytes of long messages, times of those, gaps, of far messages and of near ones; no number where there is none.
fn words(fit: &Fit) -> [[u64; 4]; 2] {
    [fit.far, fit.near].map(|one| {
        let number = |number: Option<f64>| number.unwrap_or(f64::NAN).to_bits();
        let (bytes, seconds) = one.and_then(|one| one.long).unzip();
        [number(one.map(|one| one.seconds)), bytes.unwrap_or(0), number(seconds), number(one.and_then(|one| one.gap))]
    })
}

/// What such words say.
fn measured(words: [[u64; 4]; 2]) -> [Option<Measured>; 2] {
    words.map(|[seconds, bytes, long, gap]| {
        let number = |bits: u64| Some(f64::from_bits(bits)).filter(|number| !number.is_nan());
        let long = number(long).map(|long| (bytes, long));
        Some(Measured { bytes: SHORT as u64, seconds: number(seconds)?, long, gap: number(gap) })
    })
}

/// A bare letter takes less than one that a plan sends: by what the plan does for it, which keeps its rank for as long as `generic` says.
fn as_in_a_plan(bare: Measured) -> Measured {
    let machine = Machine::shipped("generic").expect("it is shipped");
    let node = machine.levels.last().expect("it has levels");
    let work = |bytes: u64| node.protocol(bytes).overhead;
    Measured {
        seconds: bare.seconds + work(bare.bytes),
        long: bare.long.map(|(bytes, seconds)| (bytes, seconds + work(bytes))),
        ..bare
    }
}

/// What goes between two ranks, both ways.
trait Wire {
    /// Sends the first so many bytes of a buffer.
    fn send(&self, buffer: &[u8], bytes: usize) -> Result<()>;
    /// Waits for bytes; how many came.
    fn receive(&self, buffer: &mut [u8]) -> Result<usize>;
}

/// As one of some ranks: the first one measures, unless it knows from before, and the others, to each of whom it has a wire, answer.
fn take_part(wires: &[impl Wire], trial: &Trial, me: usize, known: Option<Measured>) -> Result<Option<Measured>> {
    let mut buffer = vec![0; trial.long];
    if me > 0 {
        loop {
            match wires[0].receive(&mut buffer)? {
                0 => return Ok(None),
                bytes => wires[0].send(&buffer, bytes)?,
            }
        }
    }
    let found = match known {
        Some(_) => known,
        None => measure(wires, trial, &mut buffer)?,
    };
    for wire in wires {
        wire.send(&buffer, 0)?;
    }
    Ok(found)
}

/// The shortest time that a message took, and the shortest gap between those to several. Two short ones are sent to each in any case, the first of which may
/// make connections; after that, none for which there is no time left, but for one long one, if there is any. Long ones have the greater part of the time.
fn measure<W: Wire>(wires: &[W], trial: &Trial, buffer: &mut [u8]) -> Result<Option<Measured>> {
    // How long it takes until the first answer has come, and all have.
    let mut ask = |wires: &[W], bytes: usize| -> Result<(Duration, Duration)> {
        let begin = Instant::now();
        wires.iter().try_for_each(|wire| wire.send(buffer, bytes))?;
        wires[0].receive(buffer)?;
        let first = begin.elapsed();
        wires[1..].iter().try_for_each(|wire| wire.receive(buffer).map(drop))?;
        Ok((first, begin.elapsed()))
    };
    let (connected, _) = ask(wires, SHORT)?;
    let begun = Instant::now();
    let (first, mut all) = ask(wires, SHORT)?;
    let mut short = connected.min(first);
    for number in 2..trial.most {
        if begun.elapsed() + short > trial.time / 3 {
            break;
        }
        // By turns alone, and with the others.
        let asked = if number % 2 == 0 { &wires[..1] } else { wires };
        let (first, last) = ask(asked, SHORT)?;
        short = short.min(first);
        if asked.len() == wires.len() {
            all = all.min(last);
        }
    }
    let mut long: Option<Duration> = None;
    for _ in 0..trial.most {
        // The first is begun whenever there is time left: without it nothing is known of bytes.
        if begun.elapsed() + long.unwrap_or_default() > trial.time {
            break;
        }
        let (took, _) = ask(&wires[..1], trial.long)?;
        long = Some(long.map_or(took, |long| long.min(took)));
    }
    let one_way = |trip: Duration| Some(trip.as_secs_f64() / 2.0).filter(|seconds| *seconds <= trial.slowest);
    let long = long.and_then(one_way).map(|seconds| (trial.long as u64, seconds));
    let gap = (wires.len() > 1).then(|| all.saturating_sub(short).as_secs_f64() / (wires.len() - 1) as f64);
    Ok(one_way(short).map(|seconds| Measured { bytes: SHORT as u64, seconds, long, gap }))
}

/// MPI's messages.
struct Messages<'a> {
    mpi: &'a Mpi,
    comm: Handle,
    other: i32,
}

impl Wire for Messages<'_> {
    fn send(&self, buffer: &[u8], bytes: usize) -> Result<()> {
        // SAFETY: the buffer has these bytes.
        unsafe { self.mpi.send(buffer[..bytes].as_ptr(), bytes, self.other, TAG, self.comm)? };
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        // SAFETY: the buffer may be written.
        let status = unsafe { self.mpi.recv(buffer.as_mut_ptr(), buffer.len(), self.other, TAG, self.comm)? };
        Ok(status.bytes)
    }
}

/// Letters between neighbours.
struct Letters<'a> {
    world: &'a World,
    other: usize,
    /// Where the other sits in the node.
    place: usize,
    key: u64,
}

impl Letters<'_> {
    fn wait(&self, ready: impl FnMut() -> bool) -> Result<()> {
        let gone = |gone: &dyn Fn(usize) -> bool| Some(self.other).filter(|rank| gone(*rank));
        let gate = &self.world.gate;
        // Nobody else knows this world yet; but who waits must be inside.
        let shared = gate.is_shared();
        if shared {
            gate.enter();
        }
        let outcome = self.world.wait(EVERYBODY, "finding out how fast messages are", &|| false, ready, gone);
        if shared {
            gate.leave();
        }
        outcome
    }
}

impl Wire for Letters<'_> {
    fn send(&self, buffer: &[u8], bytes: usize) -> Result<()> {
        let buffer = &buffer[..bytes];
        // SAFETY: the letter has room for as many bytes, which are not in the buffer.
        let fill = |at: *mut u8| unsafe { at.copy_from_nonoverlapping(buffer.as_ptr(), bytes) };
        self.wait(|| self.world.node.neighbour(self.place).send(self.key, bytes, true, fill))
    }

    fn receive(&self, buffer: &mut [u8]) -> Result<usize> {
        let mut came = None;
        let mut read = |arrived: Arrived<'_>| match arrived {
            Arrived::Bytes(payload) => {
                assert!(payload.len <= buffer.len(), "both ranks try the same letters");
                payload.each(|begin, at, len| {
                    // SAFETY: the stretch can be read while this runs, is not in the buffer, and ends where it ends or before.
                    unsafe { buffer.as_mut_ptr().add(begin).copy_from_nonoverlapping(at, len) };
                });
                payload.len
            }
            Arrived::Reference(..) => unreachable!("a letter that fits is never referred to"),
        };
        self.wait(|| {
            came = self.world.node.neighbour(self.place).take(self.key, &mut read);
            came.is_some()
        })?;
        Ok(came.expect("waited for"))
    }
}

#[cfg(test)]
mod tests;
