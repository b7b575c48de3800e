//! Operations of reductions: MPI's, and the user's own.

use std::sync::{Arc, Mutex, PoisonError};

use allhands_schedule::Combine;

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::kernels::{Element, Kernel, Kernel3, KernelError, Operation, Side, Type, kernel, kernel3};

/// How the elements of a reduction are combined.
///
/// ```
/// use allhands::Op;
/// let sum: Op<f64> = Op::sum();
/// let last = Op::user(false, |_left: i32, right: i32| right); // does not commute: ranks are combined in order
/// assert!(sum.commutative() && !last.commutative());
/// ```
#[derive(Clone)]
pub struct Op<T> {
    kind: OpKind<T>,
}

#[derive(Clone)]
enum OpKind<T> {
    Predefined(Operation),
    User { combine: Arc<dyn Fn(T, T) -> T + Send + Sync>, commutative: bool },
}

macro_rules! predefined {
    ($($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {
        $($(#[$doc])* pub fn $name() -> Op<T> { Op { kind: OpKind::Predefined(Operation::$operation) } })*
    };
}

impl<T: Element> Op<T> {
    predefined! {
        /// Integers wrap around.
        sum = Sum;
        /// Integers wrap around.
        product = Product;
        /// NaN if one operand is.
        min = Min;
        /// NaN if one operand is.
        max = Max;
        /// 1 if both are not 0.
        logical_and = LogicalAnd;
        /// 1 if one is not 0.
        logical_or = LogicalOr;
        /// 1 if exactly one is not 0.
        logical_xor = LogicalXor;
        /// Bit by bit.
        bit_and = BitAnd;
        /// Bit by bit.
        bit_or = BitOr;
        /// Bit by bit.
        bit_xor = BitXor;
        /// The least value and the lowest index at which it is found, of pairs.
        min_loc = MinLoc;
        /// The greatest value and the lowest index at which it is found, of pairs.
        max_loc = MaxLoc;
    }

    /// One of MPI's operations.
    pub fn predefined(operation: Operation) -> Op<T> {
        Op { kind: OpKind::Predefined(operation) }
    }

    /// `left op right`, associative. Where it does not commute, only algorithms that keep rank order are used.
    pub fn user(commutative: bool, combine: impl Fn(T, T) -> T + Send + Sync + 'static) -> Op<T> {
        Op { kind: OpKind::User { combine: Arc::new(combine), commutative } }
    }

    /// Whether operands may be combined in any order.
    pub fn commutative(&self) -> bool {
        match &self.kind {
            OpKind::Predefined(_) => true,
            OpKind::User { commutative, .. } => *commutative,
        }
    }

    /// A name that is the same on every rank, for comparing calls.
    pub(crate) fn name(&self) -> String {
        match &self.kind {
            OpKind::Predefined(operation) => operation.name().into(),
            OpKind::User { commutative, .. } => user_name(*commutative).into(),
        }
    }

    /// What tells this operation from others on this rank, for the cache of plans.
    pub(crate) fn identity(&self) -> (Option<Operation>, usize) {
        match &self.kind {
            OpKind::Predefined(operation) => (Some(*operation), 0),
            OpKind::User { combine, .. } => (None, Arc::as_ptr(combine).cast::<()>() as usize),
        }
    }

    pub(crate) fn reducer(&self) -> Result<Arc<dyn Reducer>> {
        Ok(match &self.kind {
            OpKind::Predefined(operation) => predefined(T::TYPE, *operation)?,
            OpKind::User { combine, .. } => Arc::new(User { combine: combine.clone() }),
        })
    }
}

/// What operations of users are called, the same on every rank.
pub(crate) fn user_name(commutative: bool) -> &'static str {
    if commutative { "user" } else { "user, non-commutative" }
}

/// What performs one of MPI's operations on elements of a type.
pub(crate) fn predefined(element: Type, operation: Operation) -> Result<Arc<dyn Reducer>> {
    debug_assert!(element.size().is_power_of_two());
    let wrong = |error: KernelError| Error::Operation(error.to_string());
    let side = |side| kernel(element, operation, side).map_err(wrong);
    let both = kernel3(element, operation).map_err(wrong)?;
    let shift = element.size().trailing_zeros();
    Ok(Arc::new(Predefined { after: side(Side::After)?, before: side(Side::Before)?, both, shift }))
}

/// Combines runs of bytes that hold elements of one type.
pub(crate) trait Reducer: Send + Sync {
    /// `into = into op from`, or `from op into`.
    ///
    /// # Safety
    /// `bytes` of whole elements, readable and `into` writable, aligned, not overlapping.
    unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, side: Combine);

    /// `into = left op right`.
    ///
    /// # Safety
    /// As for [`combine`](Reducer::combine).
    unsafe fn combine_into(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize);
}

struct Predefined {
    after: Kernel,
    before: Kernel,
    both: Kernel3,
    /// Elements have a power of two of bytes: counting them needs no division.
    shift: u32,
}

impl Reducer for Predefined {
    unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, side: Combine) {
        let kernel = if side == Combine::After { self.after } else { self.before };
        // SAFETY: the caller promises what the kernel asks for.
        unsafe { kernel(from, into, bytes >> self.shift) };
    }

    unsafe fn combine_into(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        // SAFETY: as above.
        unsafe { (self.both)(left, right, into, bytes >> self.shift) };
    }
}

struct User<T> {
    combine: Arc<dyn Fn(T, T) -> T + Send + Sync>,
}

impl<T: Element> Reducer for User<T> {
    unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, side: Combine) {
        let (from, into) = (from.cast::<T>(), into.cast::<T>());
        for index in 0..bytes / size_of::<T>() {
            // SAFETY: inside the runs the caller named; `T` is plain data.
            unsafe {
                let (other, own) = (*from.add(index), *into.add(index));
                *into.add(index) =
                    if side == Combine::After { (self.combine)(own, other) } else { (self.combine)(other, own) };
            }
        }
    }

    unsafe fn combine_into(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        let (left, right, into) = (left.cast::<T>(), right.cast::<T>(), into.cast::<T>());
        for index in 0..bytes / size_of::<T>() {
            // SAFETY: as above.
            unsafe { *into.add(index) = (self.combine)(*left.add(index), *right.add(index)) };
        }
    }
}

/// `right = left op right` for a number of elements, as MPI's functions of users have it.
pub(crate) type Combination = Arc<dyn Fn(*const u8, *mut u8, usize) + Send + Sync>;

/// An operation on elements of which only the size is known, named anew for each run.
pub(crate) struct Late {
    element: usize,
    now: Mutex<(Option<Combination>, Buffer)>,
}

impl Late {
    pub(crate) fn new(element: usize) -> Late {
        Late { element, now: Mutex::new((None, Buffer::new(0))) }
    }

    pub(crate) fn set(&self, combination: Combination) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(combination);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).0.is_some()
    }
}

impl Reducer for Late {
    unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, side: Combine) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(combination), aside) = &mut *now else { unreachable!("asked for before a run begins") };
        let count = bytes / self.element;
        if side == Combine::Before {
            return combination(from, into, count);
        }
        if aside.len() < bytes {
            *aside = Buffer::new(bytes);
        }
        // SAFETY: the caller's runs, and a buffer that is long enough. Also where the operation commutes its operands are not
        // exchanged: all ranks are to evaluate the same expression.
        unsafe {
            std::ptr::copy_nonoverlapping(from, aside.as_ptr(), bytes);
            combination(into, aside.as_ptr(), count);
            std::ptr::copy_nonoverlapping(aside.as_ptr(), into, bytes);
        }
    }

    unsafe fn combine_into(&self, left: *const u8, right: *const u8, into: *mut u8, bytes: usize) {
        // SAFETY: the caller's runs.
        unsafe {
            std::ptr::copy_nonoverlapping(right, into, bytes);
            self.combine(left, into, bytes, Combine::Before);
        }
    }
}
