//! What a plan is made from, whatever its elements are.

use std::rc::Rc;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::choose::Why;
use crate::company::Design;
use crate::engine::Connection;
use crate::error::{Error, Result};
use crate::native::Native;
use crate::program::Buffers;
use crate::reproducible::Reproducible;
use crate::scheduled::Scheduled;
use crate::server::Server;

/// The part of a plan that does not know the element type.
pub(crate) struct PlanState {
    pub(super) means: Means,
    /// Whose failure concerns it.
    pub(super) scope: u64,
    pub(super) collective: &'static str,
    pub(super) ranks: usize,
    /// Elements of the caller's input and output.
    pub(super) input: usize,
    pub(super) output: usize,
    /// What it is, for error messages.
    pub(super) signature: Rc<str>,
    /// The run under way that is not blocking.
    pub(super) under_way: Option<Buffers>,
    /// Input and output of runs that are not on the caller's memory.
    pub(super) own: Option<(Buffer, Buffer)>,
    /// How the caller's elements become those that travel, which are always in the plan's own memory, and back.
    pub(super) sums: Option<Reproducible>,
    /// Where the run under way rounds its sums to, when it is through.
    pub(super) rounds_to: Option<*mut u8>,
    /// How that run ended, if it has.
    pub(super) outcome: Option<Result<()>>,
    /// It is being moved on, or an operation of the user's panicked while it was.
    pub(super) moving: bool,
    /// A run was not completed: messages of it may still come, which are not those of another run.
    pub(super) broken: bool,
    /// It is connected to nobody: see [`RawPlan::retire`](crate::raw::RawPlan::retire).
    pub(super) retired: bool,
}

/// What performs the collective.
pub(crate) enum Means {
    /// A schedule of ours.
    Schedule(Box<Scheduled>),
    /// The MPI library, and why.
    Library(Box<(Native, Why)>),
}

impl PlanState {
    pub(crate) fn new(
        means: Means,
        sums: Option<Reproducible>,
        scope: u64,
        collective: &'static str,
        ranks: usize,
        signature: &str,
    ) -> PlanState {
        let (input, output) = match &means {
            Means::Schedule(scheduled) => scheduled.lengths(),
            Means::Library(library) => (library.0.input, library.0.output),
        };
        PlanState {
            means,
            scope,
            collective,
            ranks,
            input,
            output,
            signature: signature.into(),
            under_way: None,
            own: None,
            sums,
            rounds_to: None,
            outcome: None,
            moving: false,
            broken: false,
            retired: false,
        }
    }

    /// What it was made from, if it is ours.
    pub(crate) fn design(&self) -> Option<&Arc<Design>> {
        match &self.means {
            Means::Schedule(scheduled) => Some(scheduled.design()),
            Means::Library(_) => None,
        }
    }

    pub(crate) fn scope(&self) -> u64 {
        self.scope
    }

    /// Who serves.
    pub(crate) fn server(&self) -> Server {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.server(),
            Means::Library(_) => Server::Library,
        }
    }

    /// Lets go of what it shares with other ranks; whether it can be [connected anew](PlanState::reconnect).
    pub(super) fn disconnect(&mut self) -> bool {
        let failed = self.moving || self.broken || matches!(self.outcome, Some(Err(_)));
        let sound = self.under_way.is_none() && !failed;
        self.retired = match &mut self.means {
            Means::Schedule(scheduled) => sound && scheduled.disconnect(),
            Means::Library(_) => false,
        };
        self.retired
    }

    /// What it was made from, if it is connected to nobody.
    pub(crate) fn retired_design(&self) -> Option<&Arc<Design>> {
        self.design().filter(|_| self.retired)
    }

    /// Connects it to other ranks once more, in a scope, as if it were new.
    pub(crate) fn reconnect(&mut self, scope: u64, connection: Connection<'_>) -> Result<()> {
        let Means::Schedule(scheduled) = &mut self.means else { unreachable!("schedules are disconnected") };
        scheduled.reconnect(connection)?;
        (self.scope, self.outcome, self.retired) = (scope, None, false);
        Ok(())
    }

    /// See [`Engine::words_in_scratch`](crate::engine::Engine::words_in_scratch).
    pub(crate) fn words_in_scratch(&self, many: usize) -> Vec<u64> {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.words_in_scratch(many),
            Means::Library(_) => Vec::new(),
        }
    }

    /// At the beginning of a run that somebody waits for: see [`Engine::run_short`](crate::engine::Engine::run_short).
    #[inline(always)]
    pub(super) fn run_short(&mut self) -> bool {
        match &mut self.means {
            Means::Schedule(scheduled) => scheduled.run_short(),
            Means::Library(_) => false,
        }
    }

    pub(super) fn step(&mut self, buffers: Buffers, patient: bool) -> Result<bool> {
        match &mut self.means {
            Means::Schedule(scheduled) => scheduled.step(buffers, patient),
            Means::Library(library) => library.0.test(),
        }
    }

    pub(super) fn awaited(&self, buffers: Buffers, gone: &dyn Fn(usize) -> bool) -> Option<usize> {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.awaited(buffers, gone),
            Means::Library(_) => None,
        }
    }

    /// Whether MPI brings what the run waits for.
    pub(super) fn awaits_far(&self, buffers: Buffers) -> bool {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.awaits_far(buffers),
            Means::Library(_) => true,
        }
    }

    /// Ends a run that cannot be completed.
    pub(super) fn abandon(&mut self) {
        self.broken = true;
        self.rounds_to = None;
        match &mut self.means {
            Means::Schedule(scheduled) => scheduled.abandon(),
            // MPI cannot take a collective back: it may keep the buffers.
            Means::Library(library) if library.0.active() => std::mem::forget(self.own.take()),
            Means::Library(_) => {}
        }
    }

    /// Moves the run under way on; `true` when there is none or it is through. An error stays with the run's owner.
    pub(crate) fn progress(&mut self) -> Result<bool> {
        let Some(buffers) = self.under_way else { return Ok(true) };
        if self.outcome.is_none() {
            if std::mem::replace(&mut self.moving, true) {
                let text = "an operation panicked in an earlier step, and left a run half done";
                return Err(Error::Operation(text.into()));
            }
            self.outcome = match self.step(buffers, false) {
                Ok(false) => None,
                ended => Some(ended.map(|_| ())),
            };
            self.moving = false;
            if matches!(self.outcome, Some(Ok(())))
                && let Some(output) = self.rounds_to.take()
            {
                // SAFETY: who began the run keeps the output until it is through.
                unsafe { self.round_to(output, self.output) };
            }
        }
        self.outcome.clone().transpose().map(|ended| ended.is_some())
    }

    /// Whether the run under way, if there is one, is through.
    pub(crate) fn ended(&self) -> bool {
        self.under_way.is_none() || self.outcome.is_some() || self.moving
    }

    pub(super) fn check(&self, which: &'static str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        Err(Error::Length { which, collective: self.collective, given, needed })
    }

    /// Bytes of an element.
    pub(super) fn element(&self) -> usize {
        match &self.means {
            Means::Schedule(scheduled) => scheduled.design().element,
            Means::Library(library) => library.0.element(),
        }
    }

    /// Elements of one buffer for both.
    pub(super) fn longer(&self) -> usize {
        self.input.max(self.output)
    }

    /// The plan's own input and output: each has room for either side of the collective.
    pub(super) fn own_buffers(&mut self) -> (*mut u8, *mut u8) {
        let bytes = self.longer() * self.element();
        let (input, output) = self.own.get_or_insert_with(|| (Buffer::new(bytes), Buffer::new(bytes)));
        (input.as_ptr(), output.as_ptr())
    }

    /// Makes sums of the caller's input in the plan's own buffers, which are given back.
    ///
    /// # Safety
    /// As for [`Plan::run_at`](super::Plan::run_at).
    pub(super) unsafe fn sum_up(
        &mut self,
        sums: Reproducible,
        buffers: Buffers,
        input: *const u8,
    ) -> (*mut u8, *mut u8) {
        let (own_input, own_output) = self.own_buffers();
        let to = if buffers == Buffers::Apart { own_input } else { own_output };
        // That of a run that could not be begun.
        self.rounds_to = None;
        // SAFETY: the caller's promise, and buffers that have room for it.
        unsafe { sums.begin(input, to, self.input) };
        (own_input, own_output)
    }

    /// Rounds so many of the plan's own results to the caller's elements.
    ///
    /// # Safety
    /// They can be written.
    pub(super) unsafe fn round_to(&self, output: *mut u8, count: usize) {
        if let (Some(sums), Some((_, own))) = (self.sums, &self.own) {
            // SAFETY: the caller's promise; there are as many results.
            unsafe { sums.end(own.as_ptr(), output, count) };
        }
    }
}
