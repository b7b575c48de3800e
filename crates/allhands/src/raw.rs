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

mod call;
mod carried_counts;
mod greatest;
mod plan;

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
pub use crate::layout::Amount;
use crate::learn::{Lesson, Turn};
pub use crate::log::{log, logs, say};
pub use crate::node::ladder::Pauses;
use crate::plan::Options;
use crate::rank::{Entered, RankState};
use crate::server::Server;
pub use crate::store::{PlanStore, Slot};
pub use crate::switch::switched;
pub(crate) use call::weight;
pub use call::{RawCall, RawOperation};
pub use carried_counts::CarriedCounts;
pub(crate) use greatest::Greatest;
pub use plan::RawPlan;

/// What an MPI calls itself, in a few words, as tuning files name their transport.
///
/// ```no_run
/// println!("{}", allhands::raw::transport(allhands_mpi::load()?)); // MPICH Version: 5.0.2
/// # Ok::<(), allhands_mpi::Error>(())
/// ```
pub fn transport(mpi: &allhands_mpi::Mpi) -> String {
    crate::job::version(mpi)
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

#[cfg(test)]
mod own;
#[cfg(test)]
mod tests;
