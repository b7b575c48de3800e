//! A schedule at work: its programs, compiled when they are needed, and the engine that executes them.

use std::fmt::Write as _;

use allhands_schedule::{Choice, Counts, Prepared, Schedule};

use crate::engine::Engine;
use crate::error::Result;
use crate::layout::Amount;
use crate::program::{Buffers, Program, alike, compile, unexecutable};

pub(crate) struct Scheduled {
    prepared: Prepared,
    schedule: Schedule,
    amount: Amount,
    element: usize,
    engine: Engine,
    apart: Program,
    in_place: Option<Program>,
}

impl Scheduled {
    /// `apart` is the schedule's program for buffers apart, which the engine is connected for.
    pub(crate) fn new(
        prepared: Prepared,
        schedule: Schedule,
        amount: Amount,
        element: usize,
        engine: Engine,
        apart: Program,
    ) -> Scheduled {
        Scheduled { prepared, schedule, amount, element, engine, apart, in_place: None }
    }

    /// How many elements the caller's input and output have.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.apart.input, self.apart.output)
    }

    pub(crate) fn choice(&self) -> &Choice {
        self.prepared.choice()
    }

    /// What this rank sends, and how long it all takes in messages.
    pub(crate) fn cost(&self) -> String {
        let (problem, cost) = (self.prepared.problem(), self.prepared.cost());
        let counts = Counts::of(problem, &self.schedule);
        let most = if cost.exact { "" } else { "at most " };
        let bytes: usize = self.apart.sends.iter().map(|message| message.bytes).sum();
        let far = counts.far_sent.messages;
        let mut text = format!(
            "this rank sends {} messages ({far} far), {bytes} bytes, in {} rounds\n",
            counts.sent.messages, counts.rounds
        );
        let _ = writeln!(text, "critical path: {most}{} messages one after the other", cost.steps);
        text
    }

    pub(crate) fn program(&self, buffers: Buffers) -> &Program {
        match buffers {
            Buffers::Apart => &self.apart,
            Buffers::InPlace => self.in_place.as_ref().expect("compiled before it is run"),
        }
    }

    /// Begins a run. An error says that the program for these buffers, made for the first of such runs, must not be run; nothing is begun then.
    ///
    /// # Safety
    /// As for [`Engine::begin`].
    pub(crate) unsafe fn begin(&mut self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        if buffers == Buffers::InPlace && self.in_place.is_none() {
            let program = compile(&self.prepared, &self.schedule, self.element, &self.amount, buffers)?;
            // The engine is connected for the messages, and has the shared memory, of the other.
            if !alike(&self.apart, &program) {
                let fact = "in place it sends, takes or shares something else".into();
                return Err(unexecutable(&self.prepared, self.schedule.rank, fact));
            }
            self.engine.grow_scratch(program.scratch);
            self.in_place = Some(program);
        }
        // SAFETY: the caller's promise.
        unsafe { self.engine.begin(buffers, input, output) };
        Ok(())
    }

    #[inline]
    pub(crate) fn step(&mut self, buffers: Buffers, patient: bool) -> Result<bool> {
        let program = match buffers {
            Buffers::Apart => &self.apart,
            Buffers::InPlace => self.in_place.as_ref().expect("compiled before it is run"),
        };
        self.engine.step(program, patient)
    }

    /// A rank that has to act before the run can go on, and of which `gone` is true.
    pub(crate) fn awaited(&self, buffers: Buffers, gone: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.engine.awaited(self.program(buffers), gone)
    }

    /// Whether MPI brings what the run waits for.
    pub(crate) fn awaits_far(&self, buffers: Buffers) -> bool {
        self.engine.awaits_far(self.program(buffers))
    }

    /// Gives up: nobody reads or writes this rank's memory any more when this returns.
    pub(crate) fn abandon(&mut self) {
        self.engine.abandon();
    }
}
