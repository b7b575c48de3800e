//! What is common to all communicators of one rank: the world it is in, and the runs it has under way.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use crate::error::Error;
use crate::plan::Core;
use crate::progress::{Entered, Helper};
use crate::world::World;

pub(crate) struct RankState {
    /// The thread that moves runs on while the rank computes, if there is one. First, because it ends before the rest goes.
    helper: RefCell<Option<Helper>>,
    pub(crate) world: Rc<World>,
    /// Plans with a run under way: they move on whenever this rank waits.
    under_way: RefCell<Vec<Rc<RefCell<Core>>>>,
    how_many: Cell<usize>,
    /// Whether this thread may be a rank of other worlds, too.
    several: Cell<bool>,
}

thread_local! {
    /// What this thread is a rank of: an MPI job can be joined more than once.
    static HERE: RefCell<Vec<Weak<RankState>>> = const { RefCell::new(Vec::new()) };
}

impl RankState {
    pub(crate) fn new(world: World) -> Rc<RankState> {
        let rank = Rc::new(RankState {
            world: Rc::new(world),
            under_way: RefCell::default(),
            how_many: Cell::new(0),
            several: Cell::new(false),
            helper: RefCell::default(),
        });
        HERE.with_borrow_mut(|here| {
            here.retain(|other| other.strong_count() > 0);
            here.push(Rc::downgrade(&rank));
            if here.len() > 1 {
                here.iter().filter_map(Weak::upgrade).for_each(|rank| rank.several.set(true));
            }
        });
        rank
    }

    /// From now on any one thread at a time may use this rank: none counts it among its own.
    pub(crate) fn leave_thread(&self) {
        HERE.with_borrow_mut(|here| here.retain(|other| !std::ptr::eq(other.as_ptr(), self)));
    }

    /// From now on a thread moves runs on while this rank computes.
    pub(crate) fn hire(self: &Rc<RankState>) {
        *self.helper.borrow_mut() = Some(Helper::new(Rc::as_ptr(self)));
    }

    /// To be held while anything of this rank is touched, so that the helper keeps off.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Entered> {
        // Nobody but this thread ever changes whether there is one.
        self.helper.borrow().as_ref().map(Helper::enter)
    }

    /// Moves every run of this thread that is under way on. Errors wait for the owner of the run.
    #[inline]
    pub(crate) fn progress(&self) {
        if self.how_many.get() > 0 {
            self.progress_all();
        }
        if self.several.get() {
            self.progress_others();
        }
    }

    /// The others would wait for ever for a rank that waits in another world.
    #[cold]
    fn progress_others(&self) {
        let mut index = 0;
        while let Some(rank) = HERE.with_borrow(|here| here.get(index).cloned()) {
            if let Some(rank) = rank.upgrade().filter(|rank| !std::ptr::eq(&**rank, self)) {
                let _inside = rank.enter();
                rank.progress_all();
            }
            index += 1;
        }
    }

    /// Moves those of this world on.
    pub(crate) fn progress_all(&self) {
        if let Ok(under_way) = self.under_way.try_borrow() {
            for core in under_way.iter() {
                if let Ok(mut core) = core.try_borrow_mut() {
                    let _ = core.progress();
                }
            }
        }
    }

    /// Whether every run under way is through.
    pub(crate) fn quiet(&self) -> bool {
        self.under_way.borrow().iter().all(|core| core.try_borrow().is_ok_and(|core| core.ended()))
    }

    pub(crate) fn enlist(&self, core: &Rc<RefCell<Core>>) {
        self.under_way.borrow_mut().push(core.clone());
        self.counted();
    }

    pub(crate) fn retire(&self, core: &Rc<RefCell<Core>>) {
        self.under_way.borrow_mut().retain(|other| !Rc::ptr_eq(other, core));
        self.counted();
    }

    fn counted(&self) {
        let runs = self.under_way.borrow().len();
        self.how_many.set(runs);
        if let Some(helper) = &*self.helper.borrow() {
            helper.runs(runs);
        }
    }

    /// A run that ends with an error cannot be completed by the others either.
    pub(crate) fn give_up(&self, error: Error) -> Error {
        self.world.fail(&error.to_string());
        error
    }
}
