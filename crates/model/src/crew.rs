//! Who works on a simulation: every core, or the thread that asks and nobody else.
//!
//! A search inside a rank must be that rank's alone: each process of a job that started a thread for every core would have as many times more threads
//! than cores, and a program that told MPI it has a single thread would have others. Nothing else in this crate asks for threads.

use rayon::prelude::*;

/// Who does the work. What comes out is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crew {
    /// The calling thread.
    Alone,
    /// The calling thread, and the threads of rayon.
    Everybody,
}

impl Crew {
    /// Two things, side by side if there is somebody for the second.
    pub(crate) fn beside<A: Send, B: Send>(self, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
        match self {
            Crew::Alone => (a(), b()),
            Crew::Everybody => rayon::join(a, b),
        }
    }

    /// What comes of each number, in their order.
    pub(crate) fn map<T: Send>(self, numbers: &[usize], make: impl Fn(usize) -> T + Sync) -> Vec<T> {
        match self {
            Crew::Alone => numbers.iter().map(|&number| make(number)).collect(),
            Crew::Everybody => numbers.par_iter().map(|&number| make(number)).collect(),
        }
    }

    /// Whether something holds for all numbers; whoever looks at some of them has one `T` for all of his.
    pub(crate) fn all<T: Default>(self, numbers: &[usize], holds: impl Fn(&mut T, usize) -> bool + Sync) -> bool {
        match self {
            Crew::Alone => {
                let mut own = T::default();
                numbers.iter().all(|&number| holds(&mut own, number))
            }
            Crew::Everybody => {
                numbers.par_iter().map_init(T::default, |own, &number| holds(own, number)).all(|holds| holds)
            }
        }
    }

    /// Least first.
    pub(crate) fn sort<T: Ord + Send>(self, items: &mut [T]) {
        match self {
            Crew::Alone => items.sort_unstable(),
            Crew::Everybody => items.par_sort_unstable(),
        }
    }

    /// The same, but alone where asking others for help takes longer than the work.
    pub(crate) fn if_worth(self, worth: bool) -> Crew {
        if worth { self } else { Crew::Alone }
    }
}
