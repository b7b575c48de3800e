//! A communicator of ours with its plans.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allhands::learn::Grant;
use allhands::raw::{Fellows, PlanStore, RawCall, RawComm, RawPlan, Slot};
use allhands::{Options, Server};
use allhands_call::{Reason, Unserved, device};

use super::own_counts::{OwnCounts, OwnPlace};
use super::policy::{Chosen, MOST_WEIGHT, PlanPreference, Told};
use crate::job::Forced;
use crate::observe::{JobFacts, JobLessons};

/// A communicator of ours with its plans, and what is under way on it.
pub(crate) struct Group<Q> {
    plans: PlanStore<RawCall, Shape>,
    /// The plan of the last call of which all ranks know all, which the next one often needs again.
    last: Option<Slot>,
    /// Where that of the last call of all is, if a call like it needs nothing else: ranks may have to tell each other counts first.
    place: Option<FoundPlan>,
    /// What serves calls of which each rank knows its own counts.
    own_counts: Option<OwnCounts>,
    /// Whether it was asked before who serves a call.
    asked: bool,
    /// Whether the plan of the last call was made for it.
    pub(crate) fresh: bool,
    /// Whether who serves the last call is tried, so that its time is wanted; and who is to be tried beside it.
    pub(crate) tried: bool,
    beside: Option<Server>,
    /// When it began, if that was before its plan was found: ranks may tell each other counts first.
    began: Option<Instant>,
    /// Whether something may have been learned before it.
    pub(crate) told: bool,
    /// For those that are tried beside.
    scratch: Vec<u128>,
    /// What serves calls of one shape, left by a communicator that is gone.
    left: Option<(RawCall, Planned)>,
    /// What is under way. Before the communicator, which it was made from.
    queue: Q,
    comm: RawComm,
}

// SAFETY: everything that was made from the communicator is here, behind one lock, and so moves from thread to thread together.
unsafe impl<Q> Send for Group<Q> {}

/// Where a plan is.
#[derive(Clone, Copy)]
pub(crate) enum FoundPlan {
    /// Among those of calls of which all ranks know all.
    Known(Slot),
    /// Among those of calls of which each rank knows its own counts.
    OwnCounts(OwnPlace),
}

/// What serves calls of one shape.
#[derive(Default)]
struct Shape {
    /// Those who have served, or were tried; mostly one.
    planned: Vec<Planned>,
    /// Who serves now.
    serving: usize,
    grant: Grant,
    /// Whether a server was named for them: not always the same one, where ranks tell each other counts.
    forced: bool,
    /// Who was tried beside calls.
    beside: Vec<RawPlan>,
}

/// Somebody who serves.
enum Planned {
    Ours {
        plan: RawPlan,
        told: Told,
    },
    /// The MPI's own is faster, or forced.
    Theirs(Reason),
}

impl Planned {
    /// Lets go of what is shared with others; whether it can serve another communicator.
    fn retire(&mut self) -> bool {
        match self {
            Planned::Ours { plan, .. } => plan.retire(),
            Planned::Theirs(_) => false,
        }
    }

    fn server(&self) -> Server {
        match self {
            Planned::Ours { plan, .. } => plan.server(),
            Planned::Theirs(_) => Server::Library,
        }
    }
}

/// The plan for a call.
pub(crate) struct Found<'a, Q> {
    pub(crate) plan: &'a mut RawPlan,
    /// What observers are told of it.
    told: &'a Told,
    /// What is under way beside it.
    pub(crate) queue: &'a mut Q,
    /// Whether it is tried, so that its time is wanted; and when it began, if that was before it was found.
    pub(crate) tried: bool,
    pub(crate) began: Option<Instant>,
    /// Whether it was made for this call.
    pub(crate) fresh: bool,
}

impl<Q> Found<'_, Q> {
    /// Why it runs what it runs.
    pub(crate) fn chosen(&self) -> Arc<Chosen> {
        self.told.of(self.plan).clone()
    }
}

/// Somebody who is tried beside a call, on memory of no interest.
pub(crate) struct Beside {
    pub(crate) plan: RawPlan,
    /// After the plan, whose runs use it.
    scratch: Vec<u128>,
    /// For calls of which shape.
    slot: Slot,
}

impl Beside {
    /// Calls the MPI's own, if that is who is tried. This waits for the other ranks, who may wait for what this one has under way: others are to
    /// move that on.
    pub(crate) fn call_library(&mut self) -> Result<(), Unserved> {
        Ok(self.plan.call_library_on(&mut self.scratch)?)
    }

    /// Begins a run.
    pub(crate) fn start(&mut self) -> Result<(), Unserved> {
        // SAFETY: it stays beside the plan, which goes first.
        unsafe { self.plan.start_on(&mut self.scratch)? };
        Ok(())
    }
}

/// How a plan is found, and others are waited for.
pub(crate) struct Way<'a, M, F> {
    /// By whom the user wants it.
    pub(crate) forced: Option<&'a Forced>,
    /// Whether it may be learned who serves.
    pub(crate) learns: bool,
    /// Done again and again while others are waited for.
    pub(crate) on_idle: M,
    /// Waits for a plan's run.
    pub(crate) finish: F,
}

/// What is left of a group whose communicator is gone: one to come of the same ranks can begin with it, which spares it most of what
/// making one takes. This is a rank's own affair: what is taken over is numbered, compared and connected as if it were new, at the calls where it
/// would be made, so that other ranks may make theirs.
pub(super) struct Remains {
    comm: RawComm,
    left: Option<(RawCall, Planned)>,
}

// SAFETY: as for groups.
unsafe impl Send for Remains {}

impl Remains {
    /// Which rank it was, and of how many.
    pub(super) fn seat(&self) -> (usize, usize) {
        (self.comm.rank(), self.comm.size())
    }

    /// A group for another communicator, if it has the same ranks.
    pub(super) fn renewed<Q: Default>(mut self, fellows: &Fellows, creation: u64) -> Option<Group<Q>> {
        self.comm.renew(fellows, creation).then(|| Group { left: self.left, ..Group::new(self.comm) })
    }
}

impl<Q: Default> Group<Q> {
    pub(super) fn new(comm: RawComm) -> Group<Q> {
        Group {
            left: None,
            plans: PlanStore::new(MOST_WEIGHT),
            last: None,
            place: None,
            own_counts: None,
            asked: false,
            fresh: false,
            tried: false,
            beside: None,
            began: None,
            told: false,
            scratch: Vec::new(),
            queue: Q::default(),
            comm,
        }
    }

    /// Another call: nothing is known of it.
    #[inline]
    fn begin(&mut self) {
        (self.fresh, self.tried, self.beside, self.began, self.told) = (false, false, None, None, false);
    }

    /// The plan for a call, made at the first one of its shape.
    #[inline]
    pub(crate) fn plan<M: Fn(&mut Q), F: FnOnce(&mut RawPlan, &mut Q) -> Result<(), Unserved>>(
        &mut self,
        call: &RawCall,
        way: Way<'_, M, F>,
    ) -> Result<Found<'_, Q>, Unserved> {
        self.begin();
        let like = |slot: &Slot| self.plans.key(*slot).is_some_and(|known| known == call);
        let slot = match self.last.filter(like).or_else(|| self.plans.find(call)) {
            Some(slot) => slot,
            None => {
                let weight = call.weight(self.comm.size());
                let (slot, dropped) = self.plans.insert(call.clone(), Shape::default(), weight);
                drop(dropped);
                slot
            }
        };
        self.last = Some(slot);
        self.place = Some(FoundPlan::Known(slot)).filter(|_| !call.collective.hides_counts());
        let shape = self.plans.at(slot).expect("it was just found, or made");
        if !shape.grant.spend() {
            self.ask(slot, call, way)?;
        }
        let shape = self.plans.at(slot).expect("it is still there");
        match &mut shape.planned[shape.serving] {
            Planned::Ours { plan, told } => {
                Ok(Found { plan, told, queue: &mut self.queue, tried: self.tried, began: None, fresh: self.fresh })
            }
            Planned::Theirs(_) if self.tried => Err(Reason::Tried.into()),
            Planned::Theirs(why) => Err(why.clone().into()),
        }
    }

    /// Asks who serves the next calls of a shape, and sees to it that there is a plan. All ranks do so at the same call.
    fn ask<M: Fn(&mut Q), F: FnOnce(&mut RawPlan, &mut Q) -> Result<(), Unserved>>(
        &mut self,
        slot: Slot,
        call: &RawCall,
        Way { forced, learns, on_idle, finish }: Way<'_, M, F>,
    ) -> Result<(), Unserved> {
        let Group { plans, comm, queue, asked, left, .. } = self;
        let shape = plans.at(slot).expect("it was just found, or made");
        let learns = learns && forced.is_none();
        // Many communicators have one call: there is something to learn about from the second one on.
        let alone = !std::mem::replace(asked, true);
        let since = shape.grant.since_asked();
        let turn = match learns && !alone {
            // An MPI may not know of devices.
            true => comm.learn(call, since, !device::any(), |exchange| finish(exchange, queue))?,
            false => None,
        };
        let Some(turn) = turn else {
            if shape.planned.is_empty() {
                let preference = PlanPreference { forced, ..PlanPreference::default() };
                shape.forced = forced.is_some();
                let left = left.take().filter(|_| !shape.forced);
                let planned = match adopted(comm, queue, call, left, &on_idle)? {
                    Some(planned) => planned,
                    None => made(comm, queue, call, preference, on_idle)?,
                };
                shape.planned.push(planned);
                self.fresh = true;
            }
            shape.serving = 0;
            if !(learns && alone) {
                shape.grant.last_for_ever();
            }
            return Ok(());
        };
        let known = shape.planned.iter().position(|planned| planned.server() == turn.server);
        shape.serving = match known {
            Some(known) => known,
            None => {
                let began = Instant::now();
                let learned = turn.why.as_deref().map(|why| (&turn.server, why));
                let planned =
                    made(comm, queue, call, PlanPreference { learned, ..PlanPreference::default() }, on_idle)?;
                shape.planned.push(planned);
                self.fresh = true;
                if turn.tried {
                    comm.spent_on_learning(began.elapsed());
                }
                shape.planned.len() - 1
            }
        };
        shape.grant.renew(turn.rest);
        (self.tried, self.beside, self.told) = (turn.tried, turn.beside, turn.told);
        Ok(())
    }

    /// How long it took on this rank whose time is wanted.
    pub(crate) fn took(&mut self, time: Duration) {
        self.tried = false;
        self.comm.took(time);
    }

    /// Who is to be tried beside the last call, if anybody is: made at the first try, by all ranks at the same call. It goes [back](Group::tried_beside).
    pub(crate) fn take_beside(&mut self, call: &RawCall, on_idle: impl Fn(&mut Q)) -> Result<Option<Beside>, Unserved> {
        let (Some(server), Some(slot)) = (self.beside.take(), self.last) else { return Ok(None) };
        let Group { plans, comm, queue, scratch, .. } = self;
        let Some(shape) = plans.at(slot) else { return Ok(None) };
        let plan = match shape.beside.iter().position(|plan| plan.server() == server) {
            Some(known) => shape.beside.swap_remove(known),
            None => {
                let began = Instant::now();
                let queue = RefCell::new(queue);
                // The MPI's own has a communicator already.
                let options = Options::new().unshared(server == Server::Library).learned(&server, "a try beside calls");
                let plan = comm.plan_while(call, &options, &|| on_idle(&mut queue.borrow_mut()))?;
                comm.spent_on_learning(began.elapsed());
                plan
            }
        };
        Ok(Some(Beside { plan, scratch: std::mem::take(scratch), slot }))
    }

    /// Takes back who was tried beside a call, with the time that this took.
    pub(crate) fn tried_beside(&mut self, Beside { plan, scratch, slot }: Beside, time: Duration) {
        self.comm.took(time);
        self.scratch = scratch;
        if let Some(shape) = self.plans.at(slot) {
            shape.beside.push(plan);
        }
    }

    /// Finds out who serves a call of which each rank knows its own counts, and lets ranks tell each other what they need to know for it; the call with that, if
    /// there is anything. All ranks ask at the same calls.
    pub(crate) fn tell_own_counts<M, F: Fn(&mut RawPlan, &mut Q) -> Result<(), Unserved>>(
        &mut self,
        call: &RawCall,
        preference: PlanPreference<'_>,
        Way { forced, learns, finish, .. }: Way<'_, M, F>,
    ) -> Result<Option<RawCall>, Unserved> {
        self.begin();
        let Group { own_counts, comm, queue, .. } = self;
        let own_counts = match own_counts {
            Some(known) => known,
            none => none.insert(OwnCounts::new(comm)?),
        };
        let prepared = own_counts.prepare(comm, call, preference)?;
        if let Some((serving, since)) = own_counts.pass(prepared) {
            let turn = match learns && forced.is_none() {
                // An MPI may not know of devices.
                true => {
                    comm.learn_of_own_counts(call, &serving, since, !device::any(), |exchange| finish(exchange, queue))?
                }
                false => None,
            };
            let began = Instant::now();
            own_counts.follow(prepared, comm, call, turn.as_ref())?;
            if let Some(turn) = turn {
                (self.tried, self.told) = (turn.tried, turn.told);
                if turn.tried {
                    comm.spent_on_learning(began.elapsed());
                    self.began = Some(Instant::now());
                }
            }
        }
        if let Some(reason) = own_counts.left_to_the_library(prepared, self.tried) {
            return Err(reason.into());
        }
        let Some(told) = own_counts.tell(call)? else { return Ok(None) };
        finish(told.plan(), queue)?;
        own_counts.informed(call)
    }

    /// The plan for a call of which each rank knows its own counts, after they were told. Waits for nobody.
    pub(crate) fn plan_of_own_counts(
        &mut self,
        call: &RawCall,
        preference: PlanPreference<'_>,
    ) -> Result<Found<'_, Q>, Unserved> {
        let own_counts = self.own_counts.as_mut().expect("counts are told first");
        self.fresh = own_counts.make(call, preference)?;
        self.place = own_counts.place().map(FoundPlan::OwnCounts);
        let (plan, told) = own_counts.made().expect("it was just found, or made");
        let (queue, tried, began, fresh) = (&mut self.queue, self.tried, self.began, self.fresh);
        Ok(Found { plan, told, queue, tried, began, fresh })
    }

    /// What was learned here.
    pub(crate) fn learned(&self, lessons: &mut JobLessons) {
        let learned = self.comm.lessons();
        if !learned.0.is_empty() || learned.1 > 0.0 {
            lessons.learned.add(self.comm.topology(), learned);
        }
        lessons.facts.get_or_insert_with(|| JobFacts {
            machine: self.comm.fitted(),
            unused: self.comm.unused(),
            obstacle: self.comm.obstacle().cloned(),
        });
    }

    /// Where the plan of the last call is.
    pub(crate) fn place(&self) -> Option<FoundPlan> {
        self.place
    }

    /// The plan at a place for one more call, if it is still there and nobody is to be asked who serves.
    #[inline]
    pub(crate) fn placed(&mut self, place: FoundPlan) -> Option<&mut RawPlan> {
        let slot = match place {
            FoundPlan::Known(slot) => slot,
            FoundPlan::OwnCounts(place) => return self.own_counts.as_mut()?.placed(place),
        };
        let shape = self.plans.at(slot)?;
        match &mut shape.planned[shape.serving] {
            Planned::Ours { plan, .. } => shape.grant.spend().then_some(plan),
            Planned::Theirs(_) => None,
        }
    }

    /// Ends it, since its communicator is gone. One shape of calls, of which all ranks know all, is what most communicators that come and go have.
    pub(super) fn end(mut self) -> Option<Remains> {
        let mut shapes = self.plans.clear();
        let left = match shapes.pop() {
            Some((call, mut shape)) if shapes.is_empty() && !shape.forced && shape.grant.since_asked().is_none() => {
                let planned = shape.planned.pop();
                planned.and_then(|mut planned| planned.retire().then_some((call, planned)))
            }
            _ => None,
        };
        let Group { mut comm, own_counts, queue, .. } = self;
        drop((shapes, own_counts, queue));
        comm.is_renewable().then_some(Remains { comm, left })
    }

    /// Its ranks.
    pub(super) fn fellows(&self) -> Fellows {
        self.comm.fellows()
    }

    /// The communicator, and what is under way on it.
    pub(crate) fn parts(&mut self) -> (&RawComm, &mut Q) {
        (&self.comm, &mut self.queue)
    }
}

/// Who is left to serve such calls, instead of one made anew, where no server is named.
fn adopted<Q>(
    comm: &RawComm,
    queue: &mut Q,
    call: &RawCall,
    left: Option<(RawCall, Planned)>,
    on_idle: impl Fn(&mut Q),
) -> Result<Option<Planned>, Unserved> {
    let Some((_, Planned::Ours { mut plan, told })) = left.filter(|(known, _)| known == call) else { return Ok(None) };
    let queue = RefCell::new(queue);
    let adopted = comm.adopt(&mut plan, &|| on_idle(&mut queue.borrow_mut()))?;
    Ok(adopted.then_some(Planned::Ours { plan, told }))
}

/// Somebody to serve calls, as wished. All ranks make it at the same call.
fn made<Q>(
    comm: &RawComm,
    queue: &mut Q,
    call: &RawCall,
    preference: PlanPreference<'_>,
    on_idle: impl Fn(&mut Q),
) -> Result<Planned, Unserved> {
    let queue = RefCell::new(queue);
    let made =
        preference.plan_in_silence(|options| comm.plan_while(call, options, &|| on_idle(&mut queue.borrow_mut())))?;
    Ok(match made {
        Ok((plan, fact)) => Planned::Ours { plan, told: Told::later(fact) },
        Err(reason) => Planned::Theirs(reason),
    })
}
