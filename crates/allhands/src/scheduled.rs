//! A schedule at work: its programs, compiled when they are needed, and the engine that executes them.

use std::fmt::Write as _;

use std::sync::Arc;

use allhands_schedule::Counts;

use crate::company::Design;
use crate::engine::{Connection, Engine};
use crate::error::Result;
use crate::program::{Buffers, Program};
use crate::server::Server;

pub(crate) struct Scheduled {
    design: Arc<Design>,
    engine: Engine,
}

impl Scheduled {
    /// The engine is connected for the design's program for buffers apart.
    pub(crate) fn new(design: Arc<Design>, engine: Engine) -> Scheduled {
        Scheduled { design, engine }
    }

    pub(crate) fn design(&self) -> &Arc<Design> {
        &self.design
    }

    /// See [`Engine::disconnect`].
    pub(crate) fn disconnect(&mut self) -> bool {
        self.engine.disconnect()
    }

    /// See [`Engine::reconnect`].
    pub(crate) fn reconnect(&mut self, connection: Connection<'_>) -> Result<()> {
        self.engine.reconnect(connection, &self.design.apart)
    }

    /// See [`Engine::words_in_scratch`].
    pub(crate) fn words_in_scratch(&self, many: usize) -> Vec<u64> {
        self.engine.words_in_scratch(many)
    }

    /// How many elements the caller's input and output have.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.design.apart.input, self.design.apart.output)
    }

    pub(crate) fn server(&self) -> Server {
        self.design.server.clone()
    }

    /// What this rank sends, and how long it all takes in messages.
    pub(crate) fn cost(&self) -> String {
        let Design { prepared, schedule, apart, .. } = &*self.design;
        let (problem, cost) = (prepared.problem(), prepared.cost());
        let counts = Counts::of(problem, schedule);
        let most = if cost.exact { "" } else { "at most " };
        let bytes: usize = apart.sends.iter().map(|message| message.bytes).sum();
        let far = counts.far_sent.messages;
        let mut text = format!(
            "this rank sends {} messages ({far} far), {bytes} bytes, in {} rounds\n",
            counts.sent.messages, counts.rounds
        );
        let _ = writeln!(text, "critical path: {most}{} messages one after the other", cost.steps);
        text
    }

    pub(crate) fn program(&self, buffers: Buffers) -> &Program {
        program(&self.design, buffers)
    }

    /// Begins a run. An error says that the program for these buffers, made for the first of such runs, must not be run; nothing is begun then.
    ///
    /// # Safety
    /// As for [`Engine::begin`].
    #[inline(always)]
    pub(crate) unsafe fn begin(&mut self, buffers: Buffers, input: *const u8, output: *mut u8) -> Result<()> {
        if !self.engine.is_ready(buffers) {
            self.engine.get_ready(buffers, self.design.in_place()?);
        }
        // SAFETY: the caller's promise.
        unsafe { self.engine.begin(buffers, input, output) };
        Ok(())
    }

    /// See [`Engine::run_short`].
    #[inline(always)]
    pub(crate) fn run_short(&mut self) -> bool {
        self.engine.run_short(true)
    }

    pub(crate) fn step(&mut self, buffers: Buffers, patient: bool) -> Result<bool> {
        self.engine.step(program(&self.design, buffers), patient)
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

#[inline]
fn program(design: &Design, buffers: Buffers) -> &Program {
    match buffers {
        Buffers::Apart => &design.apart,
        Buffers::InPlace => design.in_place.get().expect("compiled before it is run"),
    }
}
