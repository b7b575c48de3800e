//! Communicators: ranks that call collectives together.

mod collectives;
mod learning;
mod one_off;
mod written;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use allhands_model::Allowance;
use allhands_schedule::{Choice, Collective, Graph, Prepared, Problem, Reduction, Space, Topology, Written};

use crate::choose::{self, Abilities, Decision, Evidence, Grounds, THREADS, Why};
use crate::company::{Answer, Asked, Company, Design, Wanted};
use crate::engine::{Connection, Engine, chunk_for};
use crate::error::{Error, Result};
use crate::kernels::{Element, Operation, Type};
use crate::layout::Amount;
use crate::log::{log, logs};
use crate::mpi_transport::{Communicator, Job, Lane, MpiTransport};
use crate::native::Native;
use crate::node::Chunk;
use crate::op::{self, Late, Op, Reducer};
use crate::plan::{Means, Options, Plan, PlanState};
use crate::program::{Buffers, compile};
use crate::rank::RankState;
use crate::raw::{Fellows, RawCall, RawOperation, RawPlan};
use crate::reproducible::Reproducible;
use crate::scheduled::Scheduled;
use crate::server::Server;
use crate::tuning::Tuning;
use crate::world::World;
use learning::Learning;
use one_off::OneOffs;
use written::check_sum;
pub use written::know_everywhere;
pub use written::read_schedule;

/// A group of ranks, as one of them sees it. It stays on its rank's thread.
pub struct Comm {
    rank: Arc<RankState>,
    /// Tells this communicator from others of the same run; the same on every member.
    id: u64,
    /// That of the communicator of the program's that it is, or was made from: whose failures concern it.
    scope: u64,
    /// Its ranks, and what is known of plans for them.
    company: Arc<Company>,
    /// What reaches the members that no memory reaches.
    far: Option<RefCell<Far>>,
    /// Where the MPI library's own collectives are called, once it is made. No other communicator uses it: collectives are told apart by
    /// their order alone.
    library: RefCell<Option<Arc<Communicator>>>,
    evidence: RefCell<Arc<Evidence>>,
    plans_made: Cell<u64>,
    one_offs: RefCell<OneOffs>,
    learning: RefCell<Option<Learning>>,
    /// Schedules of files that all members know.
    written: RefCell<Vec<Arc<Written>>>,
}

/// Tags for the messages of a communicator's plans.
pub(crate) struct Far {
    lane: Arc<Lane>,
    /// How often plans have used up the tags; then a lane is made that is ours alone.
    epoch: u64,
    /// The first tag of the first epoch, and how many it has.
    first: u64,
    tags: u64,
}

impl Far {
    /// With a share of a lane's tags, from a first one on.
    pub(crate) fn new(lane: Arc<Lane>, first: u64) -> Far {
        Far { epoch: 0, first, tags: lane.share(), lane }
    }

    /// The epoch of a plan, and its tag.
    fn tag(&self, plan: u64) -> (u64, u64) {
        match plan.checked_sub(self.tags) {
            None => (0, self.first + plan),
            Some(later) => {
                let all = self.lane.communicator.tags() + 1;
                (1 + later / all, later % all)
            }
        }
    }
}

/// What tells the messages of a plan from those of others.
#[derive(Clone)]
pub(crate) struct PlanSlot {
    key: u64,
    transport: Option<MpiTransport>,
}

/// Everything a plan is made from.
struct PlanRequest<'a> {
    collective: Collective,
    amount: Amount,
    element: (Type, usize),
    root: usize,
    graph: Option<Arc<Graph>>,
    reducer: Option<Arc<dyn Reducer>>,
    operation: String,
    predefined: Option<Operation>,
    commutative: bool,
    /// Whether the order of operands does not show in the result.
    exact: bool,
    /// Whether it sums up so that no order shows.
    sums: Option<Reproducible>,
    options: &'a Options,
    /// Where it was reserved before.
    place: Option<&'a PlanSlot>,
    /// What is done while others are waited for.
    on_idle: &'a dyn Fn(),
}

/// What a design is bound to for one plan.
struct Binding<'a> {
    /// Where it was reserved before.
    place: Option<&'a PlanSlot>,
    reducer: Option<Arc<dyn Reducer>>,
    sums: Option<Reproducible>,
    /// What is done while others are waited for.
    on_idle: &'a dyn Fn(),
}

/// What a collective is about besides its amount: a special rank, or who talks to whom.
#[derive(Default)]
struct About {
    root: usize,
    graph: Option<Arc<Graph>>,
}

impl From<usize> for About {
    fn from(root: usize) -> About {
        About { root, graph: None }
    }
}

impl From<&Arc<Graph>> for About {
    fn from(graph: &Arc<Graph>) -> About {
        About { root: 0, graph: Some(graph.clone()) }
    }
}

/// So many counts are told one by one.
const FEW: usize = 16;

impl<'a> PlanRequest<'a> {
    /// What a call asks for that says at run time what its elements are; and its operation, if that is the caller's own.
    fn raw(
        call: &RawCall,
        options: &'a Options,
        place: Option<&'a PlanSlot>,
        on_idle: &'a dyn Fn(),
    ) -> Result<(PlanRequest<'a>, Option<Arc<Late>>)> {
        let mut ask = PlanRequest {
            collective: call.collective,
            amount: call.amount.clone(),
            element: (call.element, call.element.size()),
            root: call.root,
            graph: call.graph.clone(),
            reducer: None,
            operation: String::new(),
            predefined: None,
            commutative: true,
            exact: false,
            sums: None,
            options,
            place,
            on_idle,
        };
        let mut own = None;
        match call.operation {
            None => {}
            Some(RawOperation::Predefined(operation)) => {
                ask.reducer = Some(op::predefined(call.element, operation)?);
                ask.operation = operation.name().into();
                ask.predefined = Some(operation);
                ask.exact = operation.is_exact_on(call.element);
            }
            Some(RawOperation::Own { bytes, commutative }) => {
                let late = Arc::new(Late::new(bytes));
                own = Some(late.clone());
                ask.element = (Type::U8, bytes);
                ask.reducer = Some(late);
                ask.operation = format!("elements of {bytes} bytes, {}", op::user_name(commutative));
                // Stands for what the MPI knows it by: such a plan says that the MPI's own is best, but never runs it.
                ask.predefined = Some(Operation::BitOr);
                ask.commutative = commutative;
            }
        }
        Ok((ask, own))
    }

    /// The same by sums that no order shows in, where that is asked for and there are such: elements are others while they travel, and
    /// combining them is exact.
    fn reproducible(mut self, always: bool) -> Self {
        let wanted = always || self.options.reproducible;
        if let Some(sums) = Reproducible::of(self.element.0, self.predefined).filter(|_| wanted) {
            self.operation = format!("reproducible sum of {}", self.element.0.name());
            self.element = (Type::U8, sums.bytes());
            self.reducer = Some(sums.reducer());
            (self.predefined, self.exact, self.sums) = (None, true, Some(sums));
        }
        self
    }

    /// Bytes of a block, or of the vector.
    fn bytes(&self) -> usize {
        self.element.1
            * match &self.amount {
                Amount::Each(count) => *count,
                Amount::Listed(counts) => counts.iter().sum::<usize>() / counts.len().max(1),
                Amount::Own { given, gotten, .. } => mean_of_own(given, gotten),
            }
    }

    /// What is asked for, the same on every rank, for comparing calls.
    fn signature(&self, algorithm: &str) -> String {
        let rooted = if self.collective.rooted() { format!(", root {}", self.root) } else { String::new() };
        let operation = if self.collective.reduces() { format!(", {}", self.operation) } else { String::new() };
        let amount = match &self.amount {
            Amount::Each(count) => count.to_string(),
            Amount::Own { given, gotten, .. } => format!("{} counts of its own", given.len().max(gotten.len())),
            Amount::Listed(counts) if counts.len() <= FEW => format!("{counts:?}"),
            // Of an alltoallv there are as many as pairs of ranks: a number stands for them.
            Amount::Listed(counts) => {
                let all = counts.iter().fold(0u64, |all, &count| all.wrapping_add(count as u64));
                let number = mixed(counts.iter().map(|&count| count as u64));
                format!("{} counts, {all} in all, of check sum {number:x},", counts.len())
            }
        };
        let graph = self
            .graph
            .as_ref()
            .map(|graph| format!(" on a graph of {} edges and check sum {:x}", graph.edges(), graph.fingerprint()));
        let graph = graph.unwrap_or_default();
        format!("{} of {amount} x {}{operation}{rooted}{graph} by {algorithm}", self.collective, self.element.0.name())
    }
}

impl Comm {
    /// All ranks of a world without MPI.
    pub(crate) fn of_world(world: World, topology: Topology, evidence: Arc<Evidence>) -> Comm {
        let company = Company::new(&world, (0..topology.ranks()).collect(), world.me(), topology);
        Comm::new(RankState::new(world, None), (1, 1), Arc::new(company), None, evidence)
    }

    /// All ranks of an MPI job's world.
    pub(crate) fn of_job(rank: Arc<RankState>, company: Arc<Company>, evidence: Arc<Evidence>, job: &Job) -> Comm {
        let far = company.apart.then(|| Far::new(job.lane().clone(), 0));
        let comm = Comm::new(rank, (1, 1), company, far, evidence);
        *comm.library.borrow_mut() = Some(job.lane().communicator.clone());
        comm
    }

    /// Some ranks of an MPI job's world.
    pub(crate) fn derived(
        rank: Arc<RankState>,
        id: u64,
        company: Arc<Company>,
        far: Option<Far>,
        evidence: Arc<Evidence>,
    ) -> Comm {
        Comm::new(rank, (id, id), company, far, evidence)
    }

    /// Its ranks.
    pub(crate) fn fellows(&self) -> Fellows {
        Fellows { rank: self.rank.clone(), company: self.company.clone() }
    }

    /// See [`RawComm::is_renewable`](raw::RawComm::is_renewable).
    pub(crate) fn is_renewable(&mut self) -> bool {
        let _inside = self.rank.enter();
        self.is_derived()
            && self.far.is_none()
            && self.library.borrow().is_none()
            && self.one_offs.borrow().never_called()
            && self.learning.borrow().is_none()
            && self.written.borrow().is_empty()
    }

    /// Becomes another communicator of the same ranks, as if it were new.
    pub(crate) fn renew(&mut self, id: u64, Fellows { rank, company }: &Fellows) -> bool {
        let same = Arc::ptr_eq(company, &self.company) && Arc::ptr_eq(rank, &self.rank);
        let Some(origin) = rank.origin.as_ref().filter(|_| same && self.is_renewable()) else { return false };
        (self.id, self.scope) = (id, id);
        *self.evidence.borrow_mut() = origin.evidence.clone();
        self.plans_made.set(0);
        true
    }

    fn new(
        rank: Arc<RankState>,
        (id, scope): (u64, u64),
        company: Arc<Company>,
        far: Option<Far>,
        evidence: Arc<Evidence>,
    ) -> Comm {
        Comm {
            rank,
            id,
            scope,
            company,
            far: far.map(RefCell::new),
            library: RefCell::default(),
            evidence: RefCell::new(evidence),
            plans_made: Cell::new(0),
            one_offs: RefCell::new(OneOffs::new()),
            learning: RefCell::default(),
            written: RefCell::default(),
        }
    }

    /// The state that all communicators of its world have in common.
    pub(crate) fn state(&self) -> &Arc<RankState> {
        &self.rank
    }

    /// Whether it is one of several communicators of a world, and took nothing but a number to make.
    pub(crate) fn is_derived(&self) -> bool {
        self.scope != 1
    }

    /// Whether some members are reached by MPI's messages only.
    pub(crate) fn is_apart(&self) -> bool {
        self.company.apart
    }

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

    /// This rank cannot go on: those who wait for it get to know.
    pub(crate) fn give_up(&self, error: Error) -> Error {
        self.rank.give_up(self.scope, error)
    }

    /// This rank, from 0.
    pub fn rank(&self) -> usize {
        self.company.me
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.company.members.len()
    }

    /// What carries their messages: `threads`, or what the MPI library calls itself.
    pub fn transport(&self) -> String {
        match &self.rank.world.job {
            None => THREADS.into(),
            Some(job) => crate::job::version(job.mpi()),
        }
    }

    /// From now on what a tuning file has measured decides where a call names no algorithm, for this communicator and what is made
    /// from it; where it is silent, the model. Every rank must follow the same file. At the start that is the one that
    /// `ALLHANDS_TUNING` names.
    pub fn follow(&self, tuning: Tuning) {
        let followed = self.evidence.borrow().with_tuning(tuning);
        *self.evidence.borrow_mut() = Arc::new(followed);
        let _inside = self.rank.enter();
        let mut one_offs = self.one_offs.borrow_mut();
        one_offs.clear();
        one_offs.learns = false;
    }

    /// Where they sit.
    pub fn topology(&self) -> &Topology {
        &self.company.topology
    }

    /// The ranks that give the same `color`, ordered by `key` and, where keys are equal, by rank.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::regular(2, 2)?, |comm| {
    ///     let half = comm.split(comm.rank() as u64 % 2, 0)?;
    ///     let mut sum = [comm.rank() as u32];
    ///     half.allreduce_in_place(&mut sum, Op::sum())?;
    ///     assert_eq!(sum[0], if comm.rank() % 2 == 0 { 2 } else { 4 });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn split(&self, color: u64, key: u64) -> Result<Comm> {
        let mut all = vec![0; 2 * self.size()];
        self.allgather(&[color, key], &mut all)?;
        let mut chosen: Vec<usize> = (0..self.size()).filter(|rank| all[2 * rank] == color).collect();
        chosen.sort_by_key(|&rank| (all[2 * rank + 1], rank));
        let colors = {
            let mut colors: Vec<u64> = all.iter().step_by(2).copied().collect();
            colors.sort_unstable();
            colors.dedup();
            colors
        };
        let place = colors.iter().position(|&known| known == color).expect("our own color is among them");
        let me = chosen.iter().position(|&rank| rank == self.company.me).expect("we are among our own color");
        let topology = self.company.topology.of_members(&chosen)?;
        let members: Arc<[usize]> = chosen.iter().map(|&rank| self.company.members[rank]).collect();
        self.made_of(self.next_id(place as u64), members, me, topology)
    }

    /// A communicator of some of the members, who all call this.
    fn made_of(&self, id: u64, members: Arc<[usize]>, me: usize, topology: Topology) -> Result<Comm> {
        let company = Arc::new(Company::new(&self.rank.world, members, me, topology));
        let far = match &self.rank.world.job {
            Some(job) if company.apart => {
                let lane = Lane::new(job.communicator_of(&company.members, id)?);
                let first = lane.draw().unwrap_or_default();
                Some(Far::new(lane, first))
            }
            _ => None,
        };
        let evidence = self.evidence.borrow().clone();
        let made = Comm::new(self.rank.clone(), (id, self.scope), company, far, evidence);
        made.written.replace(self.written.borrow().clone());
        made.one_offs.borrow_mut().learns = self.one_offs.borrow().learns;
        Ok(made)
    }

    /// The ranks of this one's node, who are these. All ranks call it.
    pub(crate) fn near(&self, node: &[usize]) -> Result<Comm> {
        let me = node.iter().position(|&rank| rank == self.company.me).expect("we are of our own node");
        let topology = self.company.topology.of_members(node)?;
        let members: Arc<[usize]> = node.iter().map(|&rank| self.company.members[rank]).collect();
        let index = self.company.topology.region_of(1, self.company.me);
        self.made_of(self.next_id(index as u64), members, me, topology)
    }

    /// The same ranks, as if they sat as the topology says. Every rank must call it.
    ///
    /// Ranks of an MPI job that the topology puts into different nodes exchange MPI messages, also where they could share
    /// memory: that is how a machine of many nodes is tried on one.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let two_by_two = comm.seated(Topology::regular(2, 2)?)?;
    ///     let mut sum = [1];
    ///     two_by_two.allreduce_in_place(&mut sum, Op::sum())?;
    ///     assert_eq!((sum[0], two_by_two.topology().depth()), (4, 1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn seated(&self, topology: Topology) -> Result<Comm> {
        if topology.ranks() != self.size() {
            let (seats, ranks) = (topology.ranks(), self.size());
            return Err(Error::Seats { topology: topology.to_string(), seats, ranks });
        }
        self.made_of(self.next_id(0), self.company.members.clone(), self.company.me, topology)
    }

    /// Numbers a communicator alike on all its members: by the parent's number, how many plans it has made, and a place.
    fn next_id(&self, place: u64) -> u64 {
        hash(&[self.id, self.next_plan(), place])
    }

    fn next_plan(&self) -> u64 {
        self.plans_made.replace(self.plans_made.get() + 1)
    }

    /// What reaches far members, for a plan of this number; a new communicator when MPI has no more tags.
    fn mpi_transport(&self, plan: u64) -> Result<Option<MpiTransport>> {
        let Some(far) = &self.far else { return Ok(None) };
        let mut far = far.borrow_mut();
        let (epoch, tag) = far.tag(plan);
        // Not every number is a plan's with messages: the first of an epoch may be passed over.
        if epoch != far.epoch {
            far.lane = Lane::new(self.rank.world.gate.away(|| far.lane.communicator.duplicate())?);
            far.epoch = epoch;
        }
        Ok(Some(MpiTransport::new(&far.lane, tag, self.rank.world.me())))
    }

    fn core(&self, ask: PlanRequest<'_>) -> Result<Rc<RefCell<PlanState>>> {
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

    fn abilities(&self, ask: &PlanRequest<'_>) -> Abilities {
        let shares = self.company.shares && !ask.options.unshared;
        let allowance = Allowance { shares, memory: ask.options.memory };
        Abilities { library: self.library_serves(ask), allowance }
    }

    /// What is asked of a schedule.
    fn problem(&self, ask: &PlanRequest<'_>) -> Result<Problem> {
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

    fn plan<T: Element>(
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

    fn ask<'a, T: Element>(
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

/// Elements of a block of those that a rank knows alone, on average.
fn mean_of_own(given: &[usize], gotten: &[usize]) -> usize {
    let (all, blocks) = (given.iter().chain(gotten), given.len() + gotten.len());
    all.sum::<usize>() / blocks.max(1)
}

impl Drop for Comm {
    fn drop(&mut self) {
        // Plans end inside the gate.
        let _inside = self.rank.enter();
        self.one_offs.borrow_mut().clear();
        self.leave_lessons();
    }
}

/// A number that differs for different lists, and is the same on every rank: one step a word, for long ones.
fn mixed(words: impl IntoIterator<Item = u64>) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    words.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// A number that differs for different inputs, and is the same on every rank.
pub(crate) fn hash(words: &[u64]) -> u64 {
    allhands_schedule::hash(words.iter().flat_map(|word| word.to_le_bytes()))
}
