//! A plan for a case with its buffers: every way of running it, each checked against the reference.

use allhands::kernels::Element;
use allhands::{Comm, Op, Pending, Plan, Result};

use super::case::Case;
use super::sample::Sample;

/// A way of running a plan once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Blocking,
    InPlace,
    /// With a few tests, not the same number on every rank, before the wait.
    NonBlocking,
    NonBlockingInPlace,
    /// On the caller's buffers, with a few tests.
    During,
}

impl How {
    /// All of them by turns, so that each follows each.
    pub(crate) fn of(run: usize) -> How {
        match run % 6 {
            0 | 3 => How::Blocking,
            1 => How::InPlace,
            2 => How::NonBlocking,
            4 => How::During,
            _ => How::NonBlockingInPlace,
        }
    }
}

/// A case being played, whatever its type.
pub(crate) trait Play {
    /// Runs the plan once, and checks the result.
    fn run(&mut self, how: How, run: usize) -> Result<()>;

    /// Calls the collective without a plan, and checks the result.
    fn call(&mut self, comm: &Comm, run: usize) -> Result<()>;

    /// Runs the plan again and again with nothing between two runs, and checks all results when all are through.
    fn back_to_back(&mut self, runs: usize) -> Result<()>;

    /// Starts a run whose result nobody waits for: dropped on some ranks and forgotten on others.
    fn lose(&mut self, run: usize) -> Result<()>;

    /// Starts a run; `check` it when it is through.
    fn start(&mut self, run: usize) -> Result<Box<dyn Ending + '_>>;

    /// Checks the result of a run that was started.
    fn check(&self, run: usize);
}

/// A run under way, whatever its type.
pub(crate) trait Ending {
    fn test(&mut self) -> Result<bool>;
    fn wait(self: Box<Self>) -> Result<()>;
}

impl<T: Element> Ending for Pending<'_, T> {
    fn test(&mut self) -> Result<bool> {
        Pending::test(self)
    }

    fn wait(self: Box<Self>) -> Result<()> {
        Pending::wait(*self)
    }
}

pub(crate) struct Player<T> {
    case: Case,
    me: usize,
    plan: Plan<T>,
    op: Op<T>,
    combine: fn(T, T) -> T,
    /// Of the run that was started last.
    output: Vec<T>,
}

impl<T: Sample> Player<T> {
    pub(crate) fn new(case: Case, me: usize, plan: Plan<T>, op: Op<T>, combine: fn(T, T) -> T) -> Player<T> {
        Player { case, me, plan, op, combine, output: Vec::new() }
    }

    fn input(&self, run: usize) -> Vec<T> {
        self.case.input(self.me, run)
    }

    fn wanted(&self, run: usize) -> Vec<T> {
        self.case.wanted(self.me, run, self.combine)
    }

    fn compare(&self, output: &[T], wanted: &[T], how: &str, run: usize) {
        let place = || format!("{}, rank {}, {how} run {run}", self.case, self.me);
        assert_eq!(output.len(), wanted.len(), "{}: so many elements", place());
        if let Some(index) = (0..wanted.len()).find(|&index| output[index] != wanted[index]) {
            let (got, right, len) = (output[index], wanted[index], wanted.len());
            panic!("{}: element {index} of {len} is {got:?} and should be {right:?}", place());
        }
    }
}

/// An output in which nothing is right yet.
fn blank<T: Sample>(wanted: &[T]) -> Vec<T> {
    vec![T::sample(3); wanted.len()]
}

impl<T: Sample> Play for Player<T> {
    fn run(&mut self, how: How, run: usize) -> Result<()> {
        let (input, wanted) = (self.input(run), self.wanted(run));
        let mut output = blank(&wanted);
        let mut buffer = self.case.in_place(self.me, &input, wanted.len());
        match how {
            How::Blocking => self.plan.run(&input, &mut output)?,
            How::InPlace => self.plan.run_in_place(&mut buffer)?,
            How::NonBlocking => {
                let mut pending = self.plan.start(&input, &mut output)?;
                for _ in 0..self.me % 3 {
                    pending.test()?;
                }
                pending.wait()?;
            }
            How::NonBlockingInPlace => self.plan.start_in_place(&mut buffer)?.wait()?,
            How::During => self.plan.during(&input, &mut output, |run| {
                for _ in 0..self.me % 3 {
                    run.test()?;
                }
                Ok(())
            })?,
        }
        let result = match how {
            How::Blocking | How::NonBlocking | How::During => &output,
            How::InPlace | How::NonBlockingInPlace => &buffer[..wanted.len()],
        };
        self.compare(result, &wanted, &format!("{how:?}"), run);
        Ok(())
    }

    fn call(&mut self, comm: &Comm, run: usize) -> Result<()> {
        let (input, wanted) = (self.input(run), self.wanted(run));
        let mut output = blank(&wanted);
        self.case.call(comm, &input, &mut output, self.op.clone())?;
        self.compare(&output, &wanted, "called", run);
        Ok(())
    }

    fn back_to_back(&mut self, runs: usize) -> Result<()> {
        let inputs: Vec<Vec<T>> = (0..runs).map(|run| self.input(run)).collect();
        let mut outputs = vec![blank(&self.wanted(0)); runs];
        for (input, output) in inputs.iter().zip(&mut outputs) {
            self.plan.run(input, output)?;
        }
        for (run, output) in outputs.iter().enumerate() {
            self.compare(output, &self.wanted(run), "back-to-back", run);
        }
        Ok(())
    }

    fn lose(&mut self, run: usize) -> Result<()> {
        let input = self.input(run);
        let mut output = blank(&self.wanted(run));
        let pending = self.plan.start(&input, &mut output)?;
        if (run + self.me).is_multiple_of(2) {
            drop(pending)
        } else {
            std::mem::forget(pending)
        }
        Ok(())
    }

    fn start(&mut self, run: usize) -> Result<Box<dyn Ending + '_>> {
        let input = self.input(run);
        self.output = blank(&self.wanted(run));
        Ok(Box::new(self.plan.start(&input, &mut self.output)?))
    }

    fn check(&self, run: usize) {
        self.compare(&self.output, &self.wanted(run), "started", run);
    }
}
