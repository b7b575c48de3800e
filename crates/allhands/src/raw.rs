//! Collectives on plain memory, for callers that learn at run time what they are asked for: MPI's functions, and C.
//!
//! ```no_run
//! use allhands::Options;
//! use allhands::kernels::{Operation, Type};
//! use allhands::raw::{Amount, RawCall, RawComm};
//! use allhands_schedule::Collective;
//!
//! # let world = 0;
//! // SAFETY: a communicator of the MPI in this process.
//! let comm = unsafe { RawComm::from_mpi(world)? };
//! let call = RawCall {
//!     collective: Collective::Allreduce,
//!     amount: Amount::Each(3),
//!     element: Type::F64,
//!     operation: Some(Operation::Sum.into()),
//!     root: 0,
//!     graph: None,
//! };
//! let mut plan = comm.plan(&call, &Options::new())?;
//! let (x, mut y) = ([1.0_f64; 3], [0.0_f64; 3]);
//! // SAFETY: three aligned elements each.
//! unsafe { plan.run(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
//! # Ok::<(), allhands::Error>(())
//! ```

mod carried_counts;
mod greatest;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use allhands_model::Machine;
use allhands_schedule::{Choice, Collective, Graph, Problem, Topology};

pub use crate::choose::check_named;
pub use crate::comm::know_everywhere;
use crate::comm::{Comm, PlanSlot};
use crate::company::Company;
use crate::error::{Error, Result};
pub use crate::job::{NodeMemory, Obstacle, Surroundings, needs_reading};
use crate::kernels::{Operation, Type};
pub use crate::layout::Amount;
use crate::learn::{Lesson, Turn};
pub use crate::log::{log, logs, say};
pub use crate::node::ladder::Pauses;
use crate::op::Late;
use crate::plan::{Options, Plan};
use crate::program::Buffers;
use crate::rank::{Entered, RankState};
use crate::server::Server;
pub use crate::store::{PlanStore, Slot};
pub use crate::switch::switched;
pub use carried_counts::CarriedCounts;
pub(crate) use greatest::Greatest;

/// What an MPI calls itself, in a few words, as tuning files name their transport.
///
/// ```no_run
/// println!("{}", allhands::raw::transport(allhands_mpi::load()?)); // MPICH Version: 5.0.2
/// # Ok::<(), allhands_mpi::Error>(())
/// ```
pub fn transport(mpi: &allhands_mpi::Mpi) -> String {
    crate::job::version(mpi)
}

/// What is asked for, in values instead of types. Every rank must ask for the same.
///
/// ```
/// use allhands::kernels::Type;
/// use allhands::raw::{Amount, RawCall};
/// use allhands_schedule::Collective;
/// // 40 bytes from rank 2 for all.
/// let call = RawCall {
///     collective: Collective::Bcast,
///     amount: Amount::Each(40),
///     element: Type::U8,
///     operation: None,
///     root: 2,
///     graph: None,
/// };
/// # let _ = call;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawCall {
    /// Which collective.
    pub collective: Collective,
    /// How many elements.
    pub amount: Amount,
    /// Of which type. What is only moved may as well be bytes.
    pub element: Type,
    /// How they are combined, in a reduction.
    pub operation: Option<RawOperation>,
    /// The special rank of a rooted collective; 0 otherwise.
    pub root: usize,
    /// Who talks to whom in a neighbourhood collective: as much of the graph as concerns the ranks of this one's node, or all of it.
    pub graph: Option<Arc<Graph>>,
}

impl RawCall {
    /// What a plan for it weighs in a [`PlanStore`] on a communicator of so many ranks, in bytes: about what a rank keeps for it, but
    /// computed from the call alone, so that it is the same on all ranks.
    ///
    /// ```
    /// # use allhands::kernels::Type;
    /// # use allhands::raw::{Amount, RawCall};
    /// # use allhands_schedule::Collective;
    /// # let call = |count| RawCall { collective: Collective::Allgather, amount: Amount::Each(count), element: Type::U8, operation: None, root: 0, graph: None };
    /// assert!(call(1 << 20).weight(16) > 16 << 20);
    /// assert!(call(1).weight(16) < call(1).weight(1000));
    /// ```
    pub fn weight(&self, ranks: usize) -> u64 {
        let element = match self.operation {
            Some(RawOperation::Own { bytes, .. }) => bytes,
            _ => self.element.size(),
        };
        weight(self.collective, &self.amount, element, ranks)
    }
}

/// Of every plan: its program, decision and texts.
const PLAN_WEIGHT: u64 = 4096;
/// Of every rank that it may exchange messages with.
const RANK_WEIGHT: u64 = 256;

/// See [`RawCall::weight`].
pub(crate) fn weight(collective: Collective, amount: &Amount, element: usize, ranks: usize) -> u64 {
    let (ranks, element) = (ranks as u64, element as u64);
    let (elements, listed) = match amount {
        Amount::Each(count) => {
            // A rank of an alltoall has its share of all pairs.
            let blocks = if collective.cuts() || collective == Collective::Barrier { 1 } else { ranks };
            ((*count as u64).saturating_mul(blocks), 0)
        }
        Amount::Own { given, gotten, carried } => {
            let all = carried.iter().fold(0u64, |all, (_, count)| all.saturating_add(*count as u64));
            (all, 8 * (given.len() + gotten.len() + 2 * carried.len()) as u64)
        }
        Amount::Listed(counts) => {
            let all = counts.iter().fold(0u64, |all, &count| all.saturating_add(count as u64));
            // In an alltoall a rank has its share of all pairs.
            let shared = collective.family() == Collective::Alltoall || collective.has_graph();
            let share = if shared { all / ranks.max(1) } else { all };
            (share, 8 * counts.len() as u64)
        }
    };
    let fixed = PLAN_WEIGHT + RANK_WEIGHT * ranks + listed;
    elements.saturating_mul(element).saturating_add(fixed)
}

/// How elements are combined.
///
/// ```
/// use allhands::kernels::Operation;
/// use allhands::raw::RawOperation;
/// // Affine maps, of two words each.
/// let own = RawOperation::Own { bytes: 16, commutative: false };
/// assert_ne!(own, Operation::Sum.into());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawOperation {
    /// One of MPI's, on elements of the call's type.
    Predefined(Operation),
    /// The caller's own, which [`RawPlan::combine_by`] names, on elements of so many bytes, whatever the call's type. An element
    /// may be of any size, and is always combined as a whole. Where the operation does not commute, ranks are combined in order.
    Own {
        /// Of an element.
        bytes: usize,
        /// Whether operands may be combined in any order.
        commutative: bool,
    },
}

impl From<Operation> for RawOperation {
    fn from(operation: Operation) -> RawOperation {
        RawOperation::Predefined(operation)
    }
}

/// The ranks of an MPI communicator, bound to no thread: any thread may use it and its plans, one at a time, if all of them move
/// together. (The compiler is not told, since it could not see that they do.) Communicators may be used by different threads at the same
/// time where MPI was started with `MPI_THREAD_MULTIPLE`; otherwise every call here counts as one of MPI's.
pub struct RawComm(Rc<Comm>);

impl RawComm {
    /// As [`Comm::from_mpi`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn from_mpi(handle: usize) -> Result<RawComm> {
        // SAFETY: the caller's promise.
        Ok(RawComm(Rc::new(unsafe { Comm::from_mpi(handle)? })))
    }

    /// A communicator of which all ranks know by which call it was made: `creation` is the same on all of them, and never that of
    /// another communicator which has a rank with it in common. Where memory reaches all of them nothing needs to be told then, and
    /// making one waits for nobody; else there is none.
    ///
    /// ```no_run
    /// use allhands::raw::{Fellows, RawComm};
    /// # let (world, number) = (0, 1);
    /// // SAFETY: a communicator of the MPI in this process.
    /// if let Some(fellows) = unsafe { Fellows::of_mpi(world)? } {
    ///     let comm = RawComm::of_fellows(&fellows, number);
    /// #   let _ = comm;
    /// }
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn of_fellows(fellows: &Fellows, creation: u64) -> Option<RawComm> {
        let Fellows { rank, company } = fellows;
        let origin = rank.origin.as_ref().filter(|_| !company.apart)?;
        let id = fellows.number(creation);
        let comm = Comm::derived(rank.clone(), id, company.clone(), None, origin.evidence.clone());
        Some(RawComm(Rc::new(comm)))
    }

    /// Its ranks, for others of the same.
    pub fn fellows(&self) -> Fellows {
        self.0.fellows()
    }

    /// Whether another communicator of its ranks can [begin with](RawComm::renew) it: not if something that was made from it is still
    /// there, other than plans that are [retired](RawPlan::retire), nor if it has something of the MPI's that must end with it.
    pub fn is_renewable(&mut self) -> bool {
        Rc::get_mut(&mut self.0).is_some_and(Comm::is_renewable)
    }

    /// Becomes another communicator of the same ranks, if it [can](RawComm::is_renewable), where
    /// [`of_fellows`](RawComm::of_fellows) would make one; whether it has. Retired plans of it can be [adopted](RawComm::adopt) then. A
    /// rank's own affair: others may make a new one at the same time.
    ///
    /// ```no_run
    /// # use allhands::{Error, Options, raw::{RawCall, RawComm, RawPlan}};
    /// # fn example(mut old: RawComm, mut plan: RawPlan, call: &RawCall, number: u64) -> Result<(), Error> {
    /// // The program frees a communicator, and duplicates the world later.
    /// let fellows = old.fellows();
    /// let kept = plan.retire() && old.is_renewable();
    /// if kept && old.renew(&fellows, number) && !old.adopt(&mut plan, &|| ())? {
    ///     plan = old.plan(call, &Options::new())?; // something else decides by now
    /// }
    /// # drop(plan);
    /// # Ok(())
    /// # }
    /// ```
    pub fn renew(&mut self, fellows: &Fellows, creation: u64) -> bool {
        Rc::get_mut(&mut self.0).is_some_and(|comm| comm.renew(fellows.number(creation), fellows))
    }

    /// Makes a [retired](RawPlan::retire) plan one of this communicator in place of a new one for the same call and options, at a call
    /// where all ranks make theirs or adopt one. Not if another one would be made now; then nothing is changed.
    pub fn adopt(&self, plan: &mut RawPlan, on_idle: &dyn Fn()) -> Result<bool> {
        self.0.adopt(plan.0.state(), on_idle)
    }

    /// Whether it was derived from what its process has joined before: then it was made on every member, or on none.
    pub fn is_derived(&self) -> bool {
        self.0.is_derived()
    }

    /// This thread is alone with everything that communicators of these processes have in common, until what is returned is dropped;
    /// none if another thread is there. For callers that must not wait, such as those that MPI calls while it holds locks of its own:
    /// what they do with plans meanwhile waits for no thread.
    pub fn alone(&self) -> Option<Alone<'_>> {
        self.0.state().try_enter().map(Alone)
    }

    /// A plan for a call.
    pub fn plan(&self, call: &RawCall, options: &Options) -> Result<RawPlan> {
        self.plan_while(call, options, &|| ())
    }

    /// A plan, as by [`plan`](RawComm::plan); `on_idle` is done while other ranks are waited for, who may wait for what this rank has under way elsewhere.
    pub fn plan_while(&self, call: &RawCall, options: &Options, on_idle: &dyn Fn()) -> Result<RawPlan> {
        self.0.raw_plan(call, options, on_idle)
    }

    /// Takes the place of plans that this rank makes later, when it knows what they are for. Plans are told apart by the order in
    /// which ranks make them or reserve their place: this call is one of those that are in the same order on every rank, what becomes
    /// of the place is not. It waits for nobody.
    ///
    /// ```no_run
    /// # use allhands::{Error, Options, raw::{RawCall, RawComm}};
    /// # fn example(comm: &RawComm, call: &RawCall, later: impl Fn()) -> Result<(), Error> {
    /// let place = comm.reserve()?;
    /// later(); // other ranks may make other plans meanwhile
    /// let plan = place.plan(call, &Options::new().unshared(true))?;
    /// # let _ = plan;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self) -> Result<Reserved> {
        Ok(Reserved { comm: self.0.clone(), place: self.0.reserve()? })
    }

    /// Whether an algorithm can serve calls of the collective, root and graph of one; the same on every rank.
    pub fn serves(&self, choice: &Choice, like: &RawCall) -> bool {
        self.problem(like).is_ok_and(|problem| choice.prepare(&problem).is_ok())
    }

    /// What calls like this one ask of an algorithm, whatever their counts.
    fn problem(&self, like: &RawCall) -> Result<Problem> {
        let problem = Problem::new(like.collective, self.0.topology().clone()).with_root(like.root)?;
        Ok(match &like.graph {
            Some(graph) => problem.with_graph(graph.clone())?,
            None => problem,
        })
    }

    /// What tells ranks the sizes of blocks that they carry for each other in calls of the collective, root and graph of one, by an algorithm
    /// of which they need to [know](allhands_schedule::Knowledge) no more. All ranks call it in the same order as they make plans; it waits for nobody.
    ///
    /// ```no_run
    /// # use allhands::raw::{Amount, RawCall, RawComm};
    /// # use allhands_schedule::{Choice, Collective};
    /// # fn example(comm: &RawComm, call: &RawCall, given: Vec<usize>, gotten: Vec<usize>) -> Result<Amount, allhands::Error> {
    /// let bruck = Choice::parse(Collective::Alltoallv, "modified-bruck:radix=4").unwrap();
    /// let mut counts = comm.carried_counts(&bruck, call)?;
    /// counts.start(&given, &gotten)?;
    /// counts.plan().wait()?;
    /// let carried = counts.carried(&gotten)?;
    /// # Ok(Amount::Own { given, gotten, carried })
    /// # }
    /// ```
    pub fn carried_counts(&self, choice: &Choice, like: &RawCall) -> Result<CarriedCounts> {
        CarriedCounts::new(self, choice, like)
    }

    /// What serves neighbourhood collectives on a graph, of which ranks know sizes of their own, and why: settled from the graph alone, so that
    /// it is the same on every rank, all of which pass the whole graph. Aggregating what goes to a node pays for short blocks; from which size on they
    /// go straight is settled, too.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use allhands::raw::RawComm;
    /// # use allhands_schedule::{Collective, Graph};
    /// # fn example(comm: &RawComm) -> Result<(), allhands::Error> {
    /// let graph = Arc::new(Graph::square(comm.size()));
    /// let (choice, why) = comm.along_edges(Collective::NeighborAlltoall, &graph)?;
    /// println!("{choice}: {why}"); // node-aware:lanes=1:straight=4096: ...
    /// # Ok(())
    /// # }
    /// ```
    pub fn along_edges(&self, collective: Collective, graph: &Arc<Graph>) -> Result<(Choice, String)> {
        self.0.along_edges(collective, graph)
    }

    /// The part of a graph that the ranks of this one's node have to do with.
    pub fn part_of(&self, graph: &Graph) -> Graph {
        let (topology, me) = (self.0.topology(), self.rank());
        graph.around(|rank| topology.region_of(1, rank) == topology.region_of(1, me))
    }

    /// Who serves the next call like this one by what is [learned](crate::learn), if anything is. All ranks ask at the same call. Now and then they
    /// tell each other how long calls took, which `finish` waits for. `since`: how many calls like it were served since it was asked for them, if it was. `library`: whether
    /// the MPI's own may be called with what this rank gives it; if one rank says no, it is not tried from the next exchange on.
    ///
    /// ```no_run
    /// # use allhands::{Error, Options, raw::{RawCall, RawComm}};
    /// # fn example(comm: &RawComm, call: &RawCall, input: *const u8, output: *mut u8) -> Result<(), Error> {
    /// if let Some(turn) = comm.learn(call, Some(1), true, |exchange| exchange.wait())? {
    ///     let why = turn.why.as_deref().unwrap_or("nothing else is learned");
    ///     let mut plan = comm.plan(call, &Options::new().learned(&turn.server, why))?;
    ///     let began = std::time::Instant::now();
    ///     // SAFETY: as many elements as the call says.
    ///     unsafe { plan.run(input, output)? };
    ///     if turn.tried {
    ///         comm.took(began.elapsed());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn learn<E: From<Error>>(
        &self,
        call: &RawCall,
        since: Option<u64>,
        library: bool,
        finish: impl FnOnce(&mut RawPlan) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Turn>, E> {
        self.0.learn(call, since, library, finish)
    }

    /// The same for calls of which each rank knows its own counts: whatever these are, `serving` serves them without learning. How long calls
    /// take is judged by their sizes, which ranks tell each other with their times.
    ///
    /// ```no_run
    /// # use allhands::{Error, Options, Server, raw::{RawCall, RawComm, Reserved}};
    /// # use allhands_schedule::Collective;
    /// # fn example(comm: &RawComm, place: &Reserved, call: &RawCall) -> Result<(), Error> {
    /// let straight = Server::parse(Collective::Alltoallv, "spread-out").unwrap();
    /// let turn = comm.learn_of_own_counts(call, &straight, Some(1), true, |exchange| exchange.wait())?;
    /// let server = turn.map_or(straight, |turn| turn.server);
    /// let plan = place.plan(call, &Options::new().unshared(true).algorithm(&server.to_string()))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn learn_of_own_counts<E: From<Error>>(
        &self,
        call: &RawCall,
        serving: &Server,
        since: Option<u64>,
        library: bool,
        finish: impl FnOnce(&mut RawPlan) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Turn>, E> {
        self.0.learn_of_own_counts(call, serving, since, library, finish)
    }

    /// How long it took, on this rank, whose [turn](RawComm::learn) it was and who was tried.
    pub fn took(&self, time: Duration) {
        self.0.took(time);
    }

    /// This rank spent some time beside calls, to learn: on making plans, above all.
    pub fn spent_on_learning(&self, time: Duration) {
        self.0.spent_on_learning(time);
    }

    /// What was learned here so far, and the seconds that were spent on no call in particular.
    pub fn lessons(&self) -> (Vec<Lesson>, f64) {
        self.0.lessons()
    }

    /// The machine as the job has found it when it began, if it has found out anything.
    pub fn fitted(&self) -> Option<Machine> {
        self.0.fitted()
    }

    /// What the user names and is not used, a sentence each: see [`Evidence::unused`](crate::Evidence::unused).
    pub fn unused(&self) -> Vec<String> {
        self.0.unused()
    }

    /// What this rank could not do with the others of its machine when the job began; others may know of more.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        self.0.state().origin.as_ref()?.obstacle.as_ref()
    }

    /// Where they sit.
    pub fn topology(&self) -> &Topology {
        self.0.topology()
    }

    /// Whether some ranks are reached by MPI's messages only; the same on every rank.
    pub fn is_apart(&self) -> bool {
        self.0.is_apart()
    }

    /// Which rank this is.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.0.size()
    }
}

/// The ranks of a communicator in their order, as this one of them knows them.
#[derive(Clone)]
pub struct Fellows {
    pub(crate) rank: Arc<RankState>,
    pub(crate) company: Arc<Company>,
}

/// See [`RawComm::alone`].
pub struct Alone<'a>(#[allow(dead_code, reason = "held until it is dropped")] Entered<'a>);

/// A place of plans that are made later: see [`RawComm::reserve`].
pub struct Reserved {
    comm: Rc<Comm>,
    place: PlanSlot,
}

impl Reserved {
    /// A plan at this place. There may be several, one after the other: all ranks run them in the same order, and each rank completes
    /// a run of one before it begins one of another. What ranks ask for is not compared, and the MPI library's own
    /// collective is never what serves.
    pub fn plan(&self, call: &RawCall, options: &Options) -> Result<RawPlan> {
        self.comm.raw_plan_at(Some(&self.place), call, options, &|| ())
    }
}

/// A [`Plan`] on plain memory.
pub struct RawPlan(Plan<u8>, Option<Own>);

/// The operation of a plan, if it is the caller's own.
struct Own {
    operation: Arc<Late>,
    /// Whether the plan performs it; else it only says that the MPI does best.
    performed: bool,
}

impl Own {
    /// Whether its plan can run.
    fn check(&self) -> Result<()> {
        let fact = match self.operation.is_set() {
            true if self.performed => return Ok(()),
            true => "the MPI library's own collective is to be called, with the operation that the MPI knows",
            false => "a plan with an operation of the caller's own was not told which; call combine_by",
        };
        Err(Error::Operation(fact.into()))
    }
}

impl RawPlan {
    pub(crate) fn new(plan: Plan<u8>, own: Option<Arc<Late>>) -> RawPlan {
        let performed = !plan.is_library();
        RawPlan(plan, own.map(|operation| Own { operation, performed }))
    }

    /// From now on the plan's [own operation](RawOperation::Own) is this one: for so many elements `right = left op right`,
    /// where `left` can be read and `right` read and written. Each run may have another one, all ranks the same.
    ///
    /// ```no_run
    /// # fn example(mut plan: allhands::raw::RawPlan) {
    /// // Elements of one byte, of which the right one counts.
    /// plan.combine_by(|_left, _right, _count| ());
    /// # }
    /// ```
    pub fn combine_by(&mut self, operation: impl Fn(*const u8, *mut u8, usize) + Send + Sync + 'static) {
        if let Some(own) = &self.1 {
            own.operation.set(Arc::new(operation));
        }
    }

    /// Lets go of what it shares with other ranks, when its communicator is gone: to run it is an error until it is
    /// [adopted](RawComm::adopt). Whether it has; not if a run is under way or went wrong, nor where MPI carries messages.
    pub fn retire(&mut self) -> bool {
        self.1.is_none() && self.0.retire()
    }

    /// Runs the collective to its end.
    ///
    /// # Safety
    /// The input can be read and the output written for as many elements as the call says for this rank, both aligned for the
    /// element type and not overlapping. An operation of the caller's own touches its operands only.
    #[inline]
    pub unsafe fn run(&mut self, input: *const u8, output: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.run_at(Buffers::Apart, input, output) }
    }

    /// Runs it once, with the input in the output's place: in an allgather at this rank's block, else from the start.
    ///
    /// # Safety
    /// As for [`run`](RawPlan::run), for the longer of both.
    pub unsafe fn run_in_place(&mut self, buffer: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.run_at(Buffers::InPlace, buffer, buffer) }
    }

    /// Calls the MPI library's own collective, which the plan must be for, on memory that holds nothing of interest, to see how long it takes: `scratch` grows to
    /// what it needs. At once: unlike [`run`](RawPlan::run) it does not wait for what is under way on the communicator, which the MPI's progress is
    /// to move on meanwhile.
    ///
    /// ```no_run
    /// # fn example(mut plan: allhands::raw::RawPlan) -> Result<(), allhands::Error> {
    /// assert!(plan.is_library());
    /// plan.call_library_on(&mut Vec::new())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_library_on(&mut self, scratch: &mut Vec<u128>) -> Result<()> {
        self.check()?;
        let (input, output) = self.0.on(scratch);
        // SAFETY: as many bytes each as the plan has, apart, and aligned for every element.
        unsafe { self.0.call_library_at(Buffers::Apart, input, output) }
    }

    /// Runs the collective to its end on such memory, whoever serves.
    pub(crate) fn run_on(&mut self, scratch: &mut Vec<u128>) -> Result<()> {
        self.check()?;
        let (input, output) = self.0.on(scratch);
        // SAFETY: as above; it is borrowed until this returns.
        unsafe { self.0.run_at(Buffers::Apart, input, output) }
    }

    /// Begins a run on such memory. `scratch` must stay as it is until the run is through, or the plan dropped. Not for an operation of the caller's own.
    ///
    /// # Safety
    /// So it does.
    pub unsafe fn start_on(&mut self, scratch: &mut Vec<u128>) -> Result<()> {
        self.check()?;
        let (input, output) = self.0.on(scratch);
        // SAFETY: as above, and the caller's promise.
        unsafe { self.0.start_at(Buffers::Apart, input, output) }
    }

    /// Begins the collective on the caller's memory, which it may read and write until [`test`](RawPlan::test) is true or
    /// [`wait`](RawPlan::wait) has returned. It moves on whenever a plan of this communicator is tested, waited for or run. A run
    /// that is still under way is waited for first, as it is when the plan is dropped.
    ///
    /// ```no_run
    /// # use allhands::raw::RawPlan;
    /// # fn example(mut plan: RawPlan) -> Result<(), allhands::Error> {
    /// let (x, mut y) = (vec![1.0_f64; 3], vec![0.0_f64; 3]);
    /// // SAFETY: three aligned elements each, which stay until the wait is over.
    /// unsafe { plan.start(x.as_ptr().cast(), y.as_mut_ptr().cast())? };
    /// while !plan.test()? {
    ///     // Something else.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As for [`run`](RawPlan::run), until then. After an error the MPI library, if the plan is its own, may keep the memory.
    pub unsafe fn start(&mut self, input: *const u8, output: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.start_at(Buffers::Apart, input, output) }
    }

    /// Begins a run, with the input in the output's place.
    ///
    /// # Safety
    /// As for [`start`](RawPlan::start), for the longer of both.
    pub unsafe fn start_in_place(&mut self, buffer: *mut u8) -> Result<()> {
        self.check()?;
        // SAFETY: the caller's promise.
        unsafe { self.0.start_at(Buffers::InPlace, buffer, buffer) }
    }

    /// Moves on without waiting; whether no run is under way any more. An error ends the run.
    pub fn test(&mut self) -> Result<bool> {
        self.0.test()
    }

    /// Waits for the run under way, if there is one.
    pub fn wait(&mut self) -> Result<()> {
        self.0.wait()
    }

    /// Lets the MPI move on what it has under way, the program's messages and requests above all: for callers that wait by testing, while
    /// other ranks may wait for those first.
    ///
    /// ```no_run
    /// # fn example(mut plan: allhands::raw::RawPlan) -> Result<(), allhands::Error> {
    /// while !plan.test()? {
    ///     plan.drive_mpi();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn drive_mpi(&self) {
        self.0.drive_mpi();
    }

    /// So many words at the beginning of its scratch: the positions that its schedule uses, in ascending order, if an element is a word.
    fn words_in_scratch(&self, many: usize) -> Vec<u64> {
        self.0.state().borrow().words_in_scratch(many)
    }

    /// Whether a plan whose operation is the caller's own can run.
    #[inline]
    fn check(&self) -> Result<()> {
        self.1.as_ref().map_or(Ok(()), Own::check)
    }

    /// The algorithm that runs, with its parameters; `mpi` is the MPI library's own.
    pub fn algorithm(&self) -> String {
        self.0.algorithm()
    }

    /// Who serves: a schedule, or the MPI library.
    pub fn server(&self) -> Server {
        self.0.server()
    }

    /// Whether the MPI library serves.
    pub fn is_library(&self) -> bool {
        self.0.is_library()
    }

    /// Why that one.
    pub fn why(&self) -> String {
        self.0.why()
    }

    /// Which algorithm runs, why, and what it costs.
    pub fn explain(&self) -> String {
        self.0.explain()
    }
}

#[cfg(test)]
mod own;
#[cfg(test)]
mod tests;
