//! Thread ranks: the embedded engine. Each rank is a thread of this process; nothing else need be installed.
//!
//! Messages of up to 2 KiB go through slots that one rank writes and one reads; longer ones are read once, straight from the
//! sender's buffer. A rank that waits spins briefly, then yields, then sleeps, so ranks may outnumber cores.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use allhands_schedule::Topology;

use crate::choose::{Evidence, THREADS, Texts};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::node;
use crate::node::board::EVERYBODY;
use crate::world::World;

/// Thread ranks with settings.
///
/// ```
/// use std::time::Duration;
/// use allhands::{Threads, Topology};
/// let ranks = Threads::new(Topology::flat(3)?).timeout(Duration::from_secs(5)).run(|comm| Ok(comm.rank()))?;
/// assert_eq!(ranks, [0, 1, 2]);
/// # Ok::<(), allhands::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Threads {
    topology: Topology,
    timeout: Duration,
}

impl Threads {
    /// One thread for each rank of the topology; a wait of more than a minute is an error.
    pub fn new(topology: Topology) -> Threads {
        Threads { topology, timeout: Duration::from_secs(60) }
    }

    /// How long a rank waits for others before it reports who is where. `Duration::MAX`: for ever.
    pub fn timeout(self, timeout: Duration) -> Threads {
        Threads { timeout, ..self }
    }

    /// Runs `body` on every rank; their results in rank order, or the error of the first rank that failed.
    pub fn run<R: Send>(&self, body: impl Fn(&Comm) -> Result<R> + Sync) -> Result<Vec<R>> {
        let ranks = self.topology.ranks();
        let failed = |reason: std::io::Error| Error::Memory { reason: reason.to_string() };
        let (memory, slot) = node::of_threads(ranks).map_err(failed)?;
        let evidence = Arc::new(Evidence::of_texts(&Texts::named(), Some(THREADS), true));
        let one = |rank: usize| {
            let world = World::of_threads(memory.clone(), slot, ranks, rank, self.timeout);
            let comm = Comm::of_world(world, self.topology.clone(), evidence.clone());
            match catch_unwind(AssertUnwindSafe(|| body(&comm))) {
                Ok(result) => result,
                Err(panic) => {
                    let error = Error::Panicked { rank, message: message_of(&*panic) };
                    Err(comm.give_up(error))
                }
            }
        };
        let results: Vec<Result<R>> = std::thread::scope(|scope| {
            let spawn = |rank: usize| {
                std::thread::Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, move || one_of(&one, rank))
            };
            let started = |rank: usize| {
                spawn(rank).map_err(|error| {
                    let error = Error::Spawn { rank, reason: error.to_string() };
                    // Nobody else takes this seat: through it the others get to know, before anybody waits for them.
                    let world = World::of_threads(memory.clone(), slot, ranks, rank, self.timeout);
                    world.fail(EVERYBODY, &error.to_string());
                    error
                })
            };
            let handles: Vec<_> = (0..ranks).map(started).collect();
            let join = |(rank, handle): (usize, Result<std::thread::ScopedJoinHandle<'_, Result<R>>>)| {
                handle?.join().unwrap_or_else(|panic| Err(Error::Panicked { rank, message: message_of(&*panic) }))
            };
            handles.into_iter().enumerate().map(join).collect()
        });
        // The cause before what followed from it.
        let distance = |error: &&Error| match error {
            Error::Abandoned { .. } => 2,
            Error::Left { .. } => 1,
            _ => 0,
        };
        let cause = results.iter().filter_map(|result| result.as_ref().err()).min_by_key(distance).cloned();
        match cause {
            Some(error) => Err(error),
            None => results.into_iter().collect(),
        }
    }
}

fn one_of<R>(one: &impl Fn(usize) -> R, rank: usize) -> R {
    one(rank)
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".into())
}

/// Runs `body` on thread ranks, one for each rank of the topology: [`Threads`] with its defaults.
///
/// ```
/// use allhands::{Op, Topology};
/// let sums = allhands::threads(Topology::regular(2, 4)?, |comm| {
///     let mut sum = [0];
///     comm.allreduce(&[comm.rank() as i64], &mut sum, Op::sum())?;
///     Ok(sum[0])
/// })?;
/// assert_eq!(sums, [28; 8]);
/// # Ok::<(), allhands::Error>(())
/// ```
pub fn threads<R: Send>(topology: Topology, body: impl Fn(&Comm) -> Result<R> + Sync) -> Result<Vec<R>> {
    Threads::new(topology).run(body)
}
