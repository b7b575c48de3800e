//! From what is asked to a plan: who serves it, what its program is, and how it is connected to those of the other ranks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use allhands_model::Allowance;
use allhands_schedule::{Choice, Collective, Graph, Prepared, Problem, Reduction, Space, Written};

use super::request::{About, Binding, PlanRequest};
use super::written::check_sum;
use super::{Comm, PlanSlot, hash};
use crate::choose::{self, Abilities, Decision, Evidence, Grounds, Why};
use crate::company::{Answer, Asked, Design, Wanted};
use crate::engine::{Connection, Engine, chunk_for};
use crate::error::{Error, Result};
use crate::kernels::Element;
use crate::layout::Amount;
use crate::log::{log, logs};
use crate::mpi_transport::{Communicator, Job};
use crate::native::Native;
use crate::node::Chunk;
use crate::op::Op;
use crate::plan::{Means, Options, Plan, PlanState};
use crate::program::{Buffers, compile};
use crate::raw::{RawCall, RawPlan};
use crate::scheduled::Scheduled;
use crate::server::Server;

impl Comm {
    /// A plan for a call that says at run time what its elements are.
    pub(crate) fn raw_plan(&self, call: &RawCall, options: &Options, on_idle: &dyn Fn()) -> Result<RawPlan> {
        self.raw_plan_at(None, call, options, on_idle)
    }

    /// The next place of a plan, for one that is made later.
    pub(crate) fn reserve(&self) -> Result<PlanSlot> {
        let _inside = self.rank.enter();
        let plan = self.next_plan();
        Ok(PlanSlot { key: self.key(plan), transport: self.mpi_transport(plan)? })
    }

    /// The same at a place that was reserved, if there is one.
    pub(crate) fn raw_plan_at(
        &self,
        place: Option<&PlanSlot>,
        call: &RawCall,
        options: &Options,
        on_idle: &dyn Fn(),
    ) -> Result<RawPlan> {
        let plan = |core, own| RawPlan::new(Plan::new(core, self.rank.clone()), own);
        // Many counts are no small thing to remember, and a plan for them none to make.
        let small = place.is_none() && matches!(call.amount, Amount::Each(_));
        let asked = small.then(|| Asked { call: call.clone(), options: options.clone() });
        let answer = asked.as_ref().and_then(|asked| self.company.answer(asked, &self.evidence.borrow()));
        if let Some(answer) = answer {
            return Ok(plan(self.again(answer, on_idle)?, None));
        }
        let (ask, own) = PlanRequest::raw(call, options, place, on_idle)?;
        let ask = ask.reproducible(self.rank.sums_reproducibly());
        let (reducer, sums) = (ask.reducer.clone(), ask.sums);
        let core = self.core(ask)?;
        // An operation of the caller's belongs to one plan, a file is looked at each time, and there may be a communicator for the library later.
        let lasts = own.is_none() && (options.only_ours || !options.unshared);
        let lasts = lasts && options.algorithm.as_deref().and_then(Written::file_of).is_none();
        if let Some(asked) = asked.filter(|_| lasts) {
            let _inside = self.rank.enter();
            if let Some(design) = core.borrow().design() {
                self.company.remember(asked, Answer { design: design.clone(), reducer, sums });
            }
        }
        Ok(plan(core, own))
    }

    /// One more plan like one that was made for these ranks before.
    fn again(&self, Answer { design, reducer, sums }: Answer, on_idle: &dyn Fn()) -> Result<Rc<RefCell<PlanState>>> {
        let _inside = self.rank.enter();
        let core = self.scheduled(&design, Binding { place: None, reducer, sums, on_idle })?;
        self.tell(design.prepared.problem().collective, design.bytes(), &design.algorithm, &design.reason);
        Ok(Rc::new(RefCell::new(core)))
    }

    /// Tells who serves calls like one from now on, if the user wants to know: the first rank speaks for all.
    fn tell(&self, collective: Collective, bytes: usize, algorithm: &str, why: &str) {
        if self.company.me == 0 && logs() {
            let moves = collective != Collective::Barrier;
            log(collective.name(), moves.then_some(bytes), self.size(), algorithm, why);
        }
    }

    /// See [`RawComm::along_edges`](raw::RawComm::along_edges).
    pub(crate) fn along_edges(&self, collective: Collective, graph: &Arc<Graph>) -> Result<(Choice, String)> {
        let problem = Problem::new(collective, self.company.topology.clone()).with_graph(graph.clone())?;
        let evidence = self.evidence.borrow().clone();
        Ok(evidence.along_edges(self.company.seating, &problem)?)
    }

    pub(super) fn core(&self, ask: PlanRequest<'_>) -> Result<Rc<RefCell<PlanState>>> {
        let _inside = self.rank.enter();
        let ask = ask.reproducible(self.rank.sums_reproducibly());
        let library = self.library_serves(&ask);
        let evidence = self.evidence.borrow().clone();
        // Ranks tell each other of a file before anything that is a rank's own affair.
        let written = ask.options.algorithm.as_deref().and_then(Written::file_of);
        let written = written.map(|file| self.written_for(&ask, file)).transpose()?;
        let wanted = Wanted {
            collective: ask.collective,
            amount: ask.amount.clone(),
            element: ask.element,
            root: ask.root,
            graph: ask.graph.clone(),
            operation: ask.operation.clone(),
            predefined: ask.predefined,
            commutative: ask.commutative,
            exact: ask.exact,
            options: ask.options.clone(),
            library,
            evidence: Arc::as_ptr(&evidence) as usize,
            written: written.as_deref().map(check_sum),
        };
        let (collective, bytes) = (ask.collective, ask.bytes());
        let told = |algorithm: &str, why: &str| self.tell(collective, bytes, algorithm, why);
        let design = match self.company.known(&wanted) {
            Some(design) => design,
            None => {
                let problem = self.problem(&ask)?;
                let decision = match &ask.options.algorithm {
                    Some(name) => {
                        let server = Server::parse(ask.collective, name)?;
                        Decision::asked(server, ask.options.learned.as_deref())
                    }
                    None => evidence.choose(self.company.seating, &problem, bytes, self.abilities(&ask))?,
                };
                let prepared = match &decision.server {
                    Server::Schedule(choice) => choice.prepare(&problem)?,
                    Server::Written(file) => match &written {
                        Some(written) => written.prepare(&problem)?,
                        None => return Err(Error::WrittenLater { file: file.clone() }),
                    },
                    Server::Library if ask.options.memory.is_some() => return Err(Error::LibraryMemory),
                    Server::Library if ask.place.is_some() => return Err(Error::LibraryLater),
                    Server::Library => {
                        let reason = decision.why.to_string();
                        let core = self.native(&ask, &problem, decision.why)?;
                        told(&Server::Library.to_string(), &reason);
                        return Ok(Rc::new(RefCell::new(core)));
                    }
                };
                let design = Arc::new(self.design(&ask, prepared, written.as_deref(), decision, evidence)?);
                self.company.keep(wanted, &design);
                design
            }
        };
        let PlanRequest { place, reducer, sums, on_idle, .. } = ask;
        let core = self.scheduled(&design, Binding { place, reducer, sums, on_idle })?;
        told(&design.algorithm, &design.reason);
        Ok(Rc::new(RefCell::new(core)))
    }

    /// Whether the MPI library's own collective could serve. It knows nothing of places: its collectives begin in the same order on every rank.
    fn library_serves(&self, ask: &PlanRequest<'_>) -> bool {
        ask.place.is_none()
            && self.may_call_library(ask.options)
            && Native::serves(ask.collective, ask.element.0, ask.predefined)
    }

    pub(super) fn abilities(&self, ask: &PlanRequest<'_>) -> Abilities {
        let shares = self.company.shares && !ask.options.unshared;
        let allowance = Allowance { shares, memory: ask.options.memory };
        Abilities { library: self.library_serves(ask), allowance }
    }

    /// What is asked of a schedule.
    pub(super) fn problem(&self, ask: &PlanRequest<'_>) -> Result<Problem> {
        // Where nothing is rounded, ranks that evaluate different expressions get the same bits, too.
        let identical = ask.options.identical && !ask.exact;
        let reduction = Reduction { commutative: ask.commutative, identical };
        let mut problem =
            Problem::new(ask.collective, self.company.topology.clone()).with_root(ask.root)?.with_reduction(reduction);
        if let Some(graph) = &ask.graph {
            problem = problem.with_graph(graph.clone())?;
        }
        match &ask.amount {
            Amount::Listed(counts) => problem = problem.with_counts(counts.clone())?,
            // At a reserved place sizes are in bytes, and settle what goes straight.
            Amount::Each(count) if problem.graph.is_some() && ask.place.is_some() => {
                problem.counts = vec![*count; problem.blocks().unwrap_or(0)];
            }
            Amount::Own { given, gotten, carried } if ask.collective != Collective::Alltoallv => {
                problem.counts = self.known_sizes(&problem, given, gotten, carried);
            }
            _ => {}
        }
        ask.amount.fits(&problem, ask.element.1)?;
        Ok(problem)
    }

    /// The sizes of blocks as far as this rank knows them; nothing follows from the others.
    fn known_sizes(
        &self,
        problem: &Problem,
        given: &[usize],
        gotten: &[usize],
        carried: &[(usize, usize)],
    ) -> Vec<usize> {
        let blocks = problem.blocks().unwrap_or(0);
        let mut sizes = vec![0; blocks];
        for (space, known) in [(Space::Input, given), (Space::Output, gotten)] {
            let positions = problem.extent(space, self.company.me, blocks).min(known.len());
            for (position, &size) in known[..positions].iter().enumerate() {
                sizes[problem.block_at(space, self.company.me, position, blocks)] = size;
            }
        }
        carried.iter().for_each(|&(block, size)| sizes[block] = size);
        sizes
    }

    /// A plan that the MPI library performs.
    fn native(&self, ask: &PlanRequest<'_>, problem: &Problem, why: Why) -> Result<PlanState> {
        let signature = ask.signature(&Server::Library.to_string());
        let job = self.rank.world.job.as_ref();
        let plan = |communicator| {
            let mpi = job.map(Job::mpi);
            Native::new(mpi, communicator, problem, self.company.me, &ask.amount, ask.element.0, ask.predefined)
        };
        // What cannot be is refused before others are waited for.
        plan(None)?;
        self.join(&signature, None)?;
        let native = plan(if ask.options.only_ours { None } else { self.library(ask.options)? })?;
        let means = Means::Library(Box::new((native, why)));
        Ok(PlanState::new(means, None, self.scope, ask.collective.name(), self.size(), &signature))
    }

    /// Whether a plan may turn out to be the MPI library's own. What waits for nobody needs a communicator that is there, unless the
    /// plan is not run then. Every rank makes the same plans in the same order, so all find the same.
    fn may_call_library(&self, options: &Options) -> bool {
        self.rank.world.job.is_some() && (options.only_ours || !options.unshared || self.library.borrow().is_some())
    }

    /// Where the MPI library's own collectives are called; made by the first plan that does.
    fn library(&self, options: &Options) -> Result<Option<Arc<Communicator>>> {
        let Some(job) = &self.rank.world.job else { return Ok(None) };
        if let Some(made) = &*self.library.borrow() {
            return Ok(Some(made.clone()));
        }
        if options.unshared {
            let text = "the MPI library's own collective needs a communicator, for which ranks wait for each other; \
                        make a plan of it without `unshared` first, or name another algorithm";
            return Err(Error::Operation(text.into()));
        }
        let made = self.rank.world.gate.away(|| job.communicator_of(&self.company.members, self.id))?;
        *self.library.borrow_mut() = Some(made.clone());
        Ok(Some(made))
    }

    /// What plans by a schedule of ours have in common.
    fn design(
        &self,
        ask: &PlanRequest<'_>,
        prepared: Prepared,
        written: Option<&Written>,
        Decision { server, why, .. }: Decision,
        evidence: Arc<Evidence>,
    ) -> Result<Design> {
        let element = ask.element.1;
        if ask.options.algorithm.is_some() {
            let allowance = Allowance { shares: true, memory: ask.options.memory };
            allowance.check(&prepared, choose::amount(prepared.problem(), ask.bytes()))?;
        }
        let schedule = prepared.rank(self.company.me);
        // What is refused here may be this rank's alone: the others get to know.
        let apart = compile(&prepared, &schedule, element, &ask.amount, Buffers::Apart)
            .map_err(|error| self.rank.give_up(self.scope, error))?;
        let algorithm = prepared.name();
        // Of a file, what it says counts, too.
        let said = written.map(|written| format!("{algorithm} of check sum {:x}", check_sum(written)));
        let by_model = matches!(why, Why::Fastest { grounds: Grounds::Model { .. }, .. });
        Ok(Design {
            prepared,
            schedule,
            amount: ask.amount.clone(),
            element,
            apart,
            in_place: OnceLock::new(),
            reason: why.to_string(),
            signature: ask.signature(said.as_ref().unwrap_or(&algorithm)),
            algorithm,
            server,
            machine: evidence.fitted_words().filter(|_| by_model),
            evidence,
        })
    }

    /// A plan that a schedule of ours performs.
    fn scheduled(&self, design: &Arc<Design>, binding: Binding<'_>) -> Result<PlanState> {
        let Binding { place, reducer, sums, on_idle } = binding;
        self.connected(design, place, on_idle, |connection| {
            let engine = Engine::new(connection, &design.apart, reducer)?;
            let means = Means::Schedule(Box::new(Scheduled::new(design.clone(), engine)));
            let collective = design.prepared.problem().collective.name();
            Ok(PlanState::new(means, sums, self.scope, collective, self.size(), &design.signature))
        })
    }

    /// See [`RawComm::adopt`](raw::RawComm::adopt).
    pub(crate) fn adopt(&self, plan: &RefCell<PlanState>, on_idle: &dyn Fn()) -> Result<bool> {
        let _inside = self.rank.enter();
        let mut plan = plan.borrow_mut();
        let decides = |design: &&Arc<Design>| Arc::ptr_eq(&design.evidence, &self.evidence.borrow());
        let Some(design) = plan.retired_design().filter(decides).cloned() else { return Ok(false) };
        self.connected(&design, None, on_idle, |connection| plan.reconnect(self.scope, connection))?;
        self.tell(design.prepared.problem().collective, design.bytes(), &design.algorithm, &design.reason);
        Ok(true)
    }

    /// Connects something to what the other ranks make from a design, at a place or at that of the next plan.
    fn connected<R>(
        &self,
        design: &Design,
        place: Option<&PlanSlot>,
        on_idle: &dyn Fn(),
        connect: impl FnOnce(Connection<'_>) -> Result<R>,
    ) -> Result<R> {
        let Design { prepared, signature, .. } = design;
        let (PlanSlot { key, transport }, chunk) = match place {
            Some(place) => (place.clone(), None),
            None => {
                // All members find the same: they are neighbours, and the size is that of the call.
                let clear = prepared.shares() && !self.company.apart;
                let clear = if clear { chunk_for(&self.company.topology, design.all_bytes()) } else { None };
                let (plan, key, chunk) = self.join(signature, clear)?;
                (PlanSlot { key, transport: self.mpi_transport(plan)? }, chunk)
            }
        };
        let connection = Connection {
            world: self.rank.world.clone(),
            scope: self.scope,
            key,
            company: &self.company,
            transport,
            shares: prepared.shares(),
            chunk,
            operation: signature,
            on_idle: &|| {
                self.rank.progress();
                on_idle();
            },
        };
        connect(connection)
    }

    /// Compares a plan with what the neighbours ask for; its number and the key of its messages, and a chunk of memory: see
    /// [`World::join`].
    fn join(&self, signature: &str, clear: Option<usize>) -> Result<(u64, u64, Option<Chunk>)> {
        let plan = self.next_plan();
        let key = self.key(plan);
        let chunk = self.rank.world.join(self.scope, key, &self.company.members, signature, clear)?;
        Ok((plan, key, chunk))
    }

    /// The key of a plan's messages.
    fn key(&self, plan: u64) -> u64 {
        hash(&[self.id, plan]) & !1
    }

    pub(super) fn plan<T: Element>(
        &self,
        collective: Collective,
        amount: Amount,
        op: Option<Op<T>>,
        about: impl Into<About>,
        options: &Options,
    ) -> Result<Plan<T>> {
        let ask = self.ask(collective, amount, op.as_ref(), about.into(), options)?;
        Ok(Plan::new(self.core(ask)?, self.rank.clone()))
    }

    pub(super) fn ask<'a, T: Element>(
        &self,
        collective: Collective,
        amount: Amount,
        op: Option<&Op<T>>,
        About { root, graph }: About,
        options: &'a Options,
    ) -> Result<PlanRequest<'a>> {
        let predefined = op.and_then(|op| op.identity().0);
        Ok(PlanRequest {
            collective,
            amount,
            element: (T::TYPE, size_of::<T>()),
            root,
            graph,
            reducer: op.map(Op::reducer).transpose()?,
            operation: op.map(Op::name).unwrap_or_default(),
            predefined,
            commutative: op.is_none_or(Op::commutative),
            exact: predefined.is_some_and(|operation| operation.is_exact_on(T::TYPE)),
            sums: None,
            options,
            place: None,
            on_idle: &|| (),
        })
    }
}
