//! One-off calls: collectives that are called without a plan. Calls of one shape use one plan, made at the first of them, or take turns on a few while it is
//! [learned](crate::learn) who is fastest.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use allhands_schedule::Collective;

use super::Comm;
use super::request::About;
use crate::error::Result;
use crate::kernels::Element;
use crate::layout::Amount;
use crate::learn::{Grant, Turn};
use crate::op::Op;
use crate::plan::{Options, Plan, PlanState};
use crate::raw::{RawCall, RawOperation, RawPlan};
use crate::server::Server;
use crate::store::{PlanStore, Slot};

/// What plans of one-off calls weigh together, at most.
const MOST_CACHED: u64 = 32 << 20;

/// The one-off calls of a communicator.
pub(super) struct OneOffs {
    shapes: PlanStore<Shape, Served>,
    /// Whether there was a call before: many communicators have one, so there is something to learn about from the second one on.
    called: bool,
    /// Whether it may be learned who serves: not where the program follows a tuning file.
    pub(super) learns: bool,
    /// For those that are tried beside calls.
    scratch: Vec<u128>,
}

/// Calls that are served alike: those that ask for the same, by the same operation.
#[derive(PartialEq, Eq, Hash)]
struct Shape {
    call: RawCall,
    /// The address of an operation of the caller's own.
    own_operation: Option<usize>,
}

/// What serves calls of one shape.
#[derive(Default)]
struct Served {
    /// Those who have served, or were tried; mostly one.
    plans: Vec<Rc<RefCell<PlanState>>>,
    /// Which of them serves now.
    serving: usize,
    grant: Grant,
    /// Who was tried beside calls.
    beside: Vec<RawPlan>,
    /// Keeps a user's operation, whose address is part of the shape, alive.
    _operation: Option<Box<dyn Any>>,
}

/// A collective that is called, with everything but its buffers.
struct Call<'a, T> {
    shape: Shape,
    op: Option<&'a Op<T>>,
}

impl<T: Element> Call<'_, T> {
    /// Whether it may be learned who serves it. Where counts are hidden they are told first, and all of them are known then; an operation of the caller's own
    /// may do anything.
    fn teaches(&self) -> bool {
        self.shape.own_operation.is_none() && !self.shape.call.collective.hides_counts()
    }

    fn plan(&self, comm: &Comm, options: &Options) -> Result<Rc<RefCell<PlanState>>> {
        let RawCall { collective, amount, root, graph, .. } = &self.shape.call;
        let about = About { root: *root, graph: graph.clone() };
        comm.core(comm.ask(*collective, amount.clone(), self.op, about, options)?)
    }
}

impl OneOffs {
    pub(super) fn new() -> OneOffs {
        OneOffs { shapes: PlanStore::new(MOST_CACHED), called: false, learns: true, scratch: Vec::new() }
    }

    /// Whether there were none.
    pub(super) fn never_called(&self) -> bool {
        !self.called
    }

    /// Forgets the plans. To be called inside the gate.
    pub(super) fn clear(&mut self) {
        drop(self.shapes.clear());
    }
}

impl Comm {
    /// Makes or finds the plan for a call, and runs it.
    pub(super) fn one_off<T: Element>(
        &self,
        collective: Collective,
        amount: Amount,
        op: Option<Op<T>>,
        about: impl Into<About>,
        run: impl FnOnce(&mut Plan<T>) -> Result<()>,
    ) -> Result<()> {
        let _inside = self.rank.enter();
        let About { root, graph } = about.into();
        let operation = op.as_ref().map(|op| match op.identity() {
            (Some(operation), _) => (RawOperation::Predefined(operation), None),
            (None, address) => {
                (RawOperation::Own { bytes: size_of::<T>(), commutative: op.commutative() }, Some(address))
            }
        });
        let (operation, own_operation) = operation.map_or((None, None), |(operation, own)| (Some(operation), own));
        let call = RawCall { collective, amount, element: T::TYPE, operation, root, graph };
        let call = Call { shape: Shape { call, own_operation }, op: op.as_ref() };
        let found = self.one_offs.borrow_mut().shapes.find(&call.shape);
        let slot = match found {
            Some(slot) => slot,
            None => self.new_shape(&call),
        };
        let (core, turn) = self.serving(slot, &call)?;
        let began = turn.as_ref().is_some_and(|turn| turn.tried).then(Instant::now);
        run(&mut Plan::new(core, self.rank.clone()))?;
        if let Some(began) = began {
            self.took(began.elapsed());
        }
        match turn.and_then(|turn| turn.beside) {
            Some(server) => self.try_beside(slot, &call.shape.call, &server),
            None => Ok(()),
        }
    }

    /// The first call of a shape.
    #[cold]
    fn new_shape<T: Element>(&self, Call { shape, op }: &Call<'_, T>) -> Slot {
        let operation = op.map(|op| Box::new(op.clone()) as Box<dyn Any>);
        let weight = shape.call.weight(self.size());
        let shape = Shape { call: shape.call.clone(), own_operation: shape.own_operation };
        let served = Served { _operation: operation, ..Served::default() };
        let (slot, gone) = self.one_offs.borrow_mut().shapes.insert(shape, served, weight);
        drop(gone);
        slot
    }

    /// The plan for the next call of a shape; and whose turn it is, where that was just asked.
    fn serving<T: Element>(&self, slot: Slot, call: &Call<'_, T>) -> Result<(Rc<RefCell<PlanState>>, Option<Turn>)> {
        let mut one_offs = self.one_offs.borrow_mut();
        let OneOffs { shapes, called, learns, .. } = &mut *one_offs;
        let served = shapes.at(slot).expect("it was just found, or made");
        if served.grant.spend() {
            return Ok((served.plans[served.serving].clone(), None));
        }
        let learns = *learns && call.teaches();
        let first = !std::mem::replace(called, true);
        let turn = match learns && !first {
            true => self.learn(&call.shape.call, served.grant.since_asked(), true, RawPlan::wait)?,
            false => None,
        };
        let Some(turn) = turn else {
            if served.plans.is_empty() {
                served.plans.push(call.plan(self, &Options::default())?);
            }
            served.serving = 0;
            if !(learns && first) {
                served.grant.last_for_ever();
            }
            return Ok((served.plans[0].clone(), None));
        };
        let known = served.plans.iter().position(|plan| plan.borrow().server() == turn.server);
        served.serving = match known {
            Some(known) => known,
            None => {
                let began = Instant::now();
                let options = turn.why.as_deref().map(|why| Options::new().learned(&turn.server, why));
                served.plans.push(call.plan(self, &options.unwrap_or_default())?);
                if turn.tried {
                    self.spent_on_learning(began.elapsed());
                }
                served.plans.len() - 1
            }
        };
        served.grant.renew(turn.rest);
        Ok((served.plans[served.serving].clone(), Some(turn)))
    }

    /// Tries somebody beside a call that is through, on memory of no interest: made at the first try, by all ranks at the same call.
    fn try_beside(&self, slot: Slot, call: &RawCall, server: &Server) -> Result<()> {
        let mut one_offs = self.one_offs.borrow_mut();
        let OneOffs { shapes, scratch, .. } = &mut *one_offs;
        let Some(Served { beside, .. }) = shapes.at(slot) else { return Ok(()) };
        let known = beside.iter().position(|plan| plan.server() == *server);
        let known = match known {
            Some(known) => known,
            None => {
                let began = Instant::now();
                // The MPI's own has a communicator already.
                let options = Options::new().unshared(*server == Server::Library).learned(server, "a try beside calls");
                beside.push(self.raw_plan(call, &options, &|| ())?);
                self.spent_on_learning(began.elapsed());
                beside.len() - 1
            }
        };
        let plan = &mut beside[known];
        let began = Instant::now();
        plan.run_on(scratch)?;
        self.took(began.elapsed());
        Ok(())
    }
}
