//! Communicators: ranks that call collectives together.

mod collectives;
mod learning;
mod making;
mod one_off;
mod request;
mod written;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use allhands_schedule::{Topology, Written};

use self::learning::Learning;
use self::one_off::OneOffs;
pub use self::written::{know_everywhere, read_schedule};
use crate::choose::{Evidence, THREADS};
use crate::company::Company;
use crate::error::{Error, Result};
use crate::mpi_transport::{Communicator, Job, Lane, MpiTransport};
use crate::rank::RankState;
use crate::raw::Fellows;
use crate::tuning::Tuning;
use crate::world::World;

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
}

impl Drop for Comm {
    fn drop(&mut self) {
        // Plans end inside the gate.
        let _inside = self.rank.enter();
        self.one_offs.borrow_mut().clear();
        self.leave_lessons();
    }
}

/// A number that differs for different inputs, and is the same on every rank.
pub(crate) fn hash(words: &[u64]) -> u64 {
    allhands_schedule::hash(words.iter().flat_map(|word| word.to_le_bytes()))
}
