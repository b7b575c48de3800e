//! How the elements of a reduction are combined: by a kernel of ours, or by the MPI's `MPI_Reduce_local`.
//!
//! The MPI knows how a function of the user's is called, from C, from Fortran or with large counts, and has the operations of
//! types that no kernel of ours has. Plans know of such elements only how many bytes of data they have, and of the operation
//! only whether it commutes, which is the same on every rank; which operation it is, a run learns when it begins. So a plan
//! outlives the user's operations and datatypes, whose handles MPI may use again for others.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use allhands::kernels::Type;
use allhands::raw::{RawOperation, RawPlan};
use allhands_mpi::{Handle, Mpi};

use crate::datatype::Datatype;
use crate::failure::{Reason, Unserved};
use crate::layout::{Layout, Room};

use crate::types::Types;

/// How the elements of a reduction lie, and what combines them.
pub(crate) struct Reduction {
    pub(crate) datatype: Datatype,
    /// What their addresses are to be multiples of.
    pub(crate) align: usize,
    pub(crate) element: Type,
    pub(crate) operation: RawOperation,
    /// What is called, if it is no kernel.
    pub(crate) called: Option<Arc<Called>>,
}

impl Reduction {
    /// From what MPI asks to be the same on every rank.
    pub(crate) fn of(types: &Types, datatype: Handle, op: Handle) -> Result<Reduction, Unserved> {
        let ops = &types.mpi().constants().ops;
        if op == types.mpi().constants().handles.op_null || op == ops.replace || op == ops.no_op {
            return Err(Reason::Refused.into());
        }
        let operation = types.operation(op);
        if let Some(operation) = operation {
            let basic = types.basic(datatype).ok_or(Reason::Refused)?;
            if let Some(element) = basic.reduced_by(operation) {
                let operation = operation.into();
                let datatype = Datatype::element(datatype, element.size());
                return Ok(Reduction { datatype, align: element.align(), element, operation, called: None });
            }
            if !basic.allows(operation) {
                return Err(Reason::NoSuchOperation.into());
            }
        }
        let commutative = operation.is_some() || types.mpi().op_commutative(op).map_err(|_| Reason::Refused)?;
        Reduction::called(types, datatype, op, commutative)
    }

    fn called(types: &Types, datatype: Handle, op: Handle, commutative: bool) -> Result<Reduction, Unserved> {
        let mpi = types.mpi();
        let mut datatype = Datatype::of(types, datatype)?;
        let layout = Layout::of(mpi, datatype.handle, datatype.extent)?;
        let layout = Some(layout).filter(|layout| !layout.together(datatype.size));
        if layout.is_none() {
            datatype = Datatype::element(datatype.handle, datatype.size);
        }
        let operation = RawOperation::Own { bytes: datatype.size, commutative };
        let called = Called { mpi, op, commutative, datatype, layout, failure: AtomicI32::new(0) };
        Ok(Reduction { datatype, align: 1, element: Type::U8, operation, called: Some(Arc::new(called)) })
    }
}

/// An operation or datatype that the program has made, by its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// An operation.
    Operation(Handle),
    /// A datatype.
    Datatype(Handle),
}

/// An operation that the MPI performs.
pub struct Called {
    mpi: &'static Mpi,
    op: Handle,
    /// Which is all that a plan knows of it.
    commutative: bool,
    datatype: Datatype,
    /// `None`: elements are their data, one after the other.
    layout: Option<Layout>,
    /// The first code that was not 0.
    failure: AtomicI32,
}

impl Called {
    /// Makes this the operation of a plan's runs, of which none has failed yet.
    pub fn serve(self: &Arc<Called>, plan: &mut RawPlan) {
        self.failure.store(0, Ordering::Relaxed);
        let called = self.clone();
        plan.combine_by(move |left, right, count| {
            // SAFETY: so many elements on both sides, as the plan was made for.
            let code = unsafe { called.combine(left, right, count) };
            if code != 0 {
                let _ = called.failure.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
            }
        });
    }

    /// Whether a plan that was made for the operation serves what its handle means now: it may have been freed, and another one made.
    pub fn is_alike(&self) -> bool {
        self.mpi.op_commutative(self.op) == Ok(self.commutative)
    }

    /// What of it is the program's to free, while runs still call it.
    pub fn objects(&self, types: &Types) -> impl Iterator<Item = Object> + use<> {
        let op = types.operation(self.op).is_none().then_some(Object::Operation(self.op));
        let handle = self.datatype.handle;
        let datatype = types.basic(handle).is_none().then_some(Object::Datatype(handle));
        [op, datatype].into_iter().flatten()
    }

    /// What went wrong while it was called.
    pub fn outcome(&self) -> Result<(), Unserved> {
        Ok(self.mpi.check("MPI_Reduce_local", self.failure.load(Ordering::Relaxed))?)
    }

    /// `right = left op right` on the data of so many elements.
    ///
    /// # Safety
    /// As many are there; `right` is writable.
    unsafe fn combine(&self, left: *const u8, right: *mut u8, count: usize) -> c_int {
        let Some(layout) = &self.layout else {
            // SAFETY: the caller's promise.
            return unsafe { self.reduce(left, right, count) };
        };
        let most = layout.elements_at_once();
        let room = || layout.room(most.min(count));
        let (Some(one), Some(other)) = (room(), room()) else { return self.mpi.constants().errors.no_mem };
        let mut spread = [one, other];
        let mut done = 0;
        while done < count {
            let (part, at) = (most.min(count - done), done * self.datatype.size);
            // SAFETY: inside the caller's runs; there is room for as many elements as MPI lays them out.
            let code = unsafe { self.combine_spread(left.add(at), right.add(at), part, &mut spread) };
            if code != 0 {
                return code;
            }
            done += part;
        }
        0
    }

    /// The same by way of memory in which elements lie as their datatype says.
    ///
    /// # Safety
    /// As above; both rooms have place for so many.
    unsafe fn combine_spread(&self, left: *const u8, right: *mut u8, count: usize, spread: &mut [Room; 2]) -> c_int {
        let (raw, comm) = (self.mpi.raw(), self.mpi.comm_self());
        let (number, bytes) = (count as c_int, (count * self.datatype.size) as c_int);
        let [a, b] = spread.each_mut().map(Room::origin);
        // SAFETY: the caller's promise; MPI is told how much there is.
        unsafe {
            let unpack = |from: *const u8, to: *mut u8| {
                (raw.unpack)(from.cast(), bytes, &mut 0, to.cast(), number, self.datatype.handle, comm)
            };
            let mut code = unpack(left, a);
            if code == 0 {
                code = unpack(right, b);
            }
            if code == 0 {
                code = self.reduce(a, b, count);
            }
            if code == 0 {
                code =
                    (raw.pack)(b.cast_const().cast(), number, self.datatype.handle, right.cast(), bytes, &mut 0, comm);
            }
            code
        }
    }

    /// # Safety
    /// So many elements as the datatype lays them out.
    unsafe fn reduce(&self, left: *const u8, right: *mut u8, count: usize) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            (self.mpi.raw().reduce_local)(left.cast(), right.cast(), count as c_int, self.datatype.handle, self.op)
        }
    }
}
