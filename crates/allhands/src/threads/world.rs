//! What the thread ranks of one run share: bells, where everybody is, who has failed or left, and plans being made.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::bell::{Bell, Patience};
use super::hub::Hub;
use crate::error::{Error, Result};

pub(crate) struct World {
    pub(crate) patience: Patience,
    timeout: Duration,
    bells: Vec<OnceLock<Bell>>,
    /// For each rank the number of the operation it is in; 0 in none.
    doing: Vec<Doing>,
    /// Names of operations by number.
    operations: Mutex<Vec<String>>,
    left: Vec<AtomicBool>,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    hubs: Mutex<HashMap<Key, Joining>>,
}

/// Written twice a run: ranks must not share a line, nor the pair of lines that is fetched together.
#[repr(align(128))]
struct Doing(AtomicU64);

/// A plan in the making: on which communicator, the how-manieth.
pub(crate) type Key = (u64, u64);

struct Joining {
    hub: Arc<Hub>,
    missing: usize,
}

/// A lock that a panicking rank held is still good: what is behind it is only added to.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(crate) fn new(ranks: usize, timeout: Duration) -> World {
        World {
            patience: Patience::for_ranks(ranks),
            timeout,
            bells: (0..ranks).map(|_| OnceLock::new()).collect(),
            doing: (0..ranks).map(|_| Doing(AtomicU64::new(0))).collect(),
            operations: Mutex::new(vec!["nothing".into()]),
            left: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            hubs: Mutex::new(HashMap::new()),
        }
    }

    /// The calling thread is this rank.
    pub(crate) fn enter(&self, rank: usize) {
        let _ = self.bells[rank].set(Bell::mine());
    }

    /// This rank is through.
    pub(crate) fn leave(&self, rank: usize) {
        self.left[rank].store(true, Ordering::Release);
        self.ring_all();
    }

    /// The collective cannot be completed: everybody who waits gets to know.
    pub(crate) fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        self.ring_all();
    }

    #[inline]
    pub(crate) fn ring(&self, rank: usize) {
        if let Some(bell) = self.bells[rank].get() {
            bell.ring();
        }
    }

    fn ring_all(&self) {
        (0..self.bells.len()).for_each(|rank| self.ring(rank));
    }

    /// Gives an operation a number.
    pub(crate) fn register(&self, name: String) -> u64 {
        let mut operations = lock(&self.operations);
        operations.push(name);
        operations.len() as u64 - 1
    }

    #[inline]
    pub(crate) fn begin(&self, rank: usize, operation: u64) {
        self.doing[rank].0.store(operation, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn end(&self, rank: usize) {
        self.doing[rank].0.store(0, Ordering::Relaxed);
    }

    fn operation(&self, rank: usize) -> String {
        lock(&self.operations)[self.doing[rank].0.load(Ordering::Relaxed) as usize].clone()
    }

    /// Waits as `rank` until `ready`, which may do work; `awaited` finds a rank that must act for it and is gone.
    pub(crate) fn wait(
        &self,
        rank: usize,
        ready: impl FnMut() -> bool,
        awaited: impl Fn(&dyn Fn(usize) -> bool) -> Option<usize>,
    ) -> Result<()> {
        let bell = self.bells[rank].get().expect("a rank enters before it waits");
        let mut began: Option<Instant> = None;
        bell.wait(self.patience, ready, || {
            if self.failed.load(Ordering::Acquire) {
                return lock(&self.failure).clone();
            }
            let gone = awaited(&|other| self.left[other].load(Ordering::Acquire));
            if let Some(gone) = gone {
                return Some(Error::Left { rank: gone, waiting: rank, operation: self.operation(rank) });
            }
            let after = began.get_or_insert_with(Instant::now).elapsed();
            (after >= self.timeout).then(|| self.stuck(rank, after))
        })
    }

    fn stuck(&self, rank: usize, after: Duration) -> Error {
        let mut places: Vec<(String, Vec<usize>)> = Vec::new();
        for other in 0..self.doing.len() {
            let place = match self.left[other].load(Ordering::Acquire) {
                true => "ended".into(),
                false => format!("in {}", self.operation(other)),
            };
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, ranks)) => ranks.push(other),
                None => places.push((place, vec![other])),
            }
        }
        let list = |ranks: &[usize]| ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let places: Vec<String> = places.iter().map(|(place, ranks)| format!("rank {} {place}", list(ranks))).collect();
        Error::Stuck { rank, operation: self.operation(rank), after, places: places.join(", ") }
    }

    /// Joins the plan that the ranks of a communicator make together, or names the rank that asked for another.
    pub(crate) fn join(&self, key: Key, members: &[usize], rank: usize, asked: &str) -> Result<Arc<Hub>> {
        let mut hubs = lock(&self.hubs);
        let joining = hubs.entry(key).or_insert_with(|| {
            let operation = self.register(asked.into());
            Joining { hub: Arc::new(Hub::new(rank, asked.into(), operation)), missing: members.len() }
        });
        let hub = joining.hub.clone();
        joining.missing -= 1;
        if joining.missing == 0 {
            hubs.remove(&key);
        }
        drop(hubs);
        if hub.asked() != asked {
            let error = Error::Mismatch { rank, asked: asked.into(), other: hub.first(), expected: hub.asked().into() };
            self.fail(error.clone());
            return Err(error);
        }
        Ok(hub)
    }
}
