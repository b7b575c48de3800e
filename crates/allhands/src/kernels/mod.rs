//! Reductions: `into = into op from` on arrays, for all of MPI's types and operations.
//!
//! [`kernel`] looks a function up once, when a plan is made; the function is then called with plain pointers and counts.
//!
//! ```
//! use allhands::kernels::{Operation, Side, Type, kernel};
//!
//! let add = kernel(Type::F64, Operation::Sum, Side::After)?;
//! let (from, mut into) = ([1.0_f64, 2.0], [0.5_f64, 0.25]);
//! // SAFETY: two arrays of two aligned f64 that do not overlap.
//! unsafe { add(from.as_ptr().cast(), into.as_mut_ptr().cast(), 2) };
//! assert_eq!(into, [1.5, 2.25]);
//! # Ok::<(), allhands::kernels::KernelError>(())
//! ```
//!
//! # What comes out
//!
//! The result of a kernel depends on the operands' bits and on nothing else: not on the CPU, the position in the buffer,
//! the length, the form (two or three operands), or which operand is left.
//!
//! - Integers: sum and product wrap around. Logical results are 1 or 0, as in C.
//! - Floats: IEEE 754, round to nearest even, subnormals kept. Min and max are IEEE 754-2019 `minimum` and `maximum`:
//!   NaN if an operand is NaN, and -0 < +0.
//! - NaN: whenever a float result is NaN it is the positive quiet NaN without payload (`0x7fc00000` in f32). IEEE leaves
//!   sign and payload open and CPUs differ; here they do not.
//! - f16 and bf16: sum and product are computed in f32 and rounded back, to nearest even, at every combine.
//! - Complex: component-wise sums; the product is `(ac - bd) + (ad + bc)i`, every step rounded, nothing fused.
//! - MinLoc and MaxLoc: the value is min's or max's; the index is the lowest at which a value equal to it was found. -0
//!   and +0 are equal here, as are two NaNs. Padding bytes of a result have no meaning.

mod combine;
mod f16;
mod level;
mod loops;
mod operation;
mod table;
mod types;

#[cfg(test)]
mod assembly;
#[cfg(test)]
mod tests;

pub use level::Level;
pub use operation::{KernelError, Operation, Side};
pub use types::{Element, Pair, Type};

use loops::Forms;

/// `into = into op from` or `into = from op into`, element by element, `count` times.
///
/// # Safety
/// If `count` is 0 nothing is touched and the pointers may be anything. Otherwise:
/// - `from` can be read and `into` read and written for `count` elements of the kernel's type;
/// - both are aligned for that type (a debug build asserts it) and hold values of it (a `bool` is 0 or 1);
/// - they do not overlap, and nobody else writes `from` or touches `into` during the call.
pub type Kernel = unsafe fn(from: *const u8, into: *mut u8, count: usize);

/// `into = left op right`, element by element, `count` times: saves the copy that [`Kernel`] needs beforehand.
///
/// # Safety
/// As for [`Kernel`], with two operands that are read (they may overlap each other) and an `into` that is only written
/// and overlaps neither; what it held before need not be a value, only initialised bytes.
pub type Kernel3 = unsafe fn(left: *const u8, right: *const u8, into: *mut u8, count: usize);

/// The kernel for this type and operation, for the CPU this runs on.
///
/// ```
/// use allhands::kernels::{Operation, Side, Type, kernel};
///
/// let least = kernel(Type::I32, Operation::Min, Side::Before)?;
/// let (from, mut into) = ([3, -4], [2, 5]);
/// // SAFETY: two arrays of two aligned i32 that do not overlap.
/// unsafe { least((&raw const from).cast(), (&raw mut into).cast(), 2) };
/// assert_eq!(into, [2, -4]);
///
/// assert!(kernel(Type::F32, Operation::BitXor, Side::After).is_err());
/// # Ok::<(), allhands::kernels::KernelError>(())
/// ```
pub fn kernel(ty: Type, operation: Operation, side: Side) -> Result<Kernel, KernelError> {
    kernel_at(best(), ty, operation, side)
}

/// The three-operand kernel for this type and operation, for the CPU this runs on.
///
/// ```
/// use allhands::kernels::{Operation, Type, kernel3};
///
/// let or = kernel3(Type::U16, Operation::BitOr)?;
/// let (left, right, mut into) = ([1_u16, 2], [4_u16, 2], [0_u16; 2]);
/// // SAFETY: three arrays of two aligned u16 that do not overlap.
/// unsafe { or((&raw const left).cast(), (&raw const right).cast(), (&raw mut into).cast(), 2) };
/// assert_eq!(into, [5, 2]);
/// # Ok::<(), allhands::kernels::KernelError>(())
/// ```
pub fn kernel3(ty: Type, operation: Operation) -> Result<Kernel3, KernelError> {
    kernel3_at(best(), ty, operation)
}

/// As [`kernel`], with the instruction set forced: for tests and measurements.
///
/// ```
/// use allhands::kernels::{Level, Operation, Side, Type, kernel_at};
///
/// assert!(kernel_at(Level::Portable, Type::F16, Operation::Sum, Side::After).is_ok());
/// ```
pub fn kernel_at(level: Level, ty: Type, operation: Operation, side: Side) -> Result<Kernel, KernelError> {
    match side {
        // All predefined operations commute to the last bit; the tests hold both sides against the definition.
        Side::After | Side::Before => Ok(forms(level, ty, operation)?.accumulate),
    }
}

/// As [`kernel3`], with the instruction set forced: for tests and measurements.
///
/// ```
/// use allhands::kernels::{Level, Operation, Type, kernel3_at};
///
/// assert!(kernel3_at(Level::Portable, Type::C32, Operation::Product).is_ok());
/// ```
pub fn kernel3_at(level: Level, ty: Type, operation: Operation) -> Result<Kernel3, KernelError> {
    Ok(forms(level, ty, operation)?.combine)
}

fn forms(level: Level, ty: Type, operation: Operation) -> Result<Forms, KernelError> {
    if !level.is_available() {
        return Err(KernelError::Level { level });
    }
    table::forms(ty, operation, level).ok_or(KernelError::Illegal { operation, ty })
}

fn best() -> Level {
    Level::available().next_back().unwrap_or(Level::Portable)
}
