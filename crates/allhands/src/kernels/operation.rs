//! What can be done with two elements, and on which types MPI allows it.

use std::fmt;

use thiserror::Error;

use super::level::Level;
use super::types::{Class, Type};

/// One of MPI's predefined operations.
///
/// ```
/// use allhands::kernels::{Operation, Type};
///
/// assert!(Operation::Sum.is_legal_on(Type::C64));
/// assert!(!Operation::Max.is_legal_on(Type::C64), "complex numbers have no order");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// `a + b`; integers wrap around.
    Sum,
    /// `a * b`; integers wrap around.
    Product,
    /// The smaller one. Floats: IEEE 754-2019 `minimum`, so NaN if one is NaN, and -0 < +0.
    Min,
    /// The larger one. Floats: IEEE 754-2019 `maximum`, so NaN if one is NaN, and -0 < +0.
    Max,
    /// C's `a && b`: 1 or 0.
    LogicalAnd,
    /// C's `a || b`: 1 or 0.
    LogicalOr,
    /// C's `!a != !b`: 1 or 0.
    LogicalXor,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a ^ b`
    BitXor,
    /// The value as by [`Min`](Self::Min), and the lowest index at which a value equal to it was found.
    MinLoc,
    /// The value as by [`Max`](Self::Max), and the lowest index at which a value equal to it was found.
    MaxLoc,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 12] = [
        Operation::Sum,
        Operation::Product,
        Operation::Min,
        Operation::Max,
        Operation::LogicalAnd,
        Operation::LogicalOr,
        Operation::LogicalXor,
        Operation::BitAnd,
        Operation::BitOr,
        Operation::BitXor,
        Operation::MinLoc,
        Operation::MaxLoc,
    ];

    /// The name in texts and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Sum => "sum",
            Operation::Product => "product",
            Operation::Min => "min",
            Operation::Max => "max",
            Operation::LogicalAnd => "logical-and",
            Operation::LogicalOr => "logical-or",
            Operation::LogicalXor => "logical-xor",
            Operation::BitAnd => "bit-and",
            Operation::BitOr => "bit-or",
            Operation::BitXor => "bit-xor",
            Operation::MinLoc => "minloc",
            Operation::MaxLoc => "maxloc",
        }
    }

    /// Whether `a op b` is `b op a`. True of all of these, to the last bit: a NaN that is made is always the same NaN.
    pub const fn commutative(self) -> bool {
        true
    }

    /// Whether MPI defines it on this type. (One more than MPI: bitwise on bool, where it is the logical one.)
    pub const fn is_legal_on(self, ty: Type) -> bool {
        use Operation::*;
        match ty.class() {
            Class::Integer => !matches!(self, MinLoc | MaxLoc),
            Class::Float => matches!(self, Sum | Product | Min | Max),
            Class::Complex => matches!(self, Sum | Product),
            Class::Bool => matches!(self, LogicalAnd | LogicalOr | LogicalXor | BitAnd | BitOr | BitXor),
            Class::Pair => matches!(self, MinLoc | MaxLoc),
        }
    }

    /// Whether operands give the same bits in whatever order they are combined, where it [is legal](Operation::is_legal_on): nothing is
    /// rounded. Minima and maxima are, also those of floats: of two zeros the negative one is the smaller, and every NaN
    /// becomes the same.
    ///
    /// ```
    /// use allhands::kernels::{Operation, Type};
    ///
    /// assert!(Operation::Product.is_exact_on(Type::I32), "integers wrap around");
    /// assert!(Operation::Max.is_exact_on(Type::F64));
    /// assert!(!Operation::Sum.is_exact_on(Type::F64));
    /// ```
    pub const fn is_exact_on(self, ty: Type) -> bool {
        !matches!((ty.class(), self), (Class::Float | Class::Complex, Operation::Sum | Operation::Product))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// On which side of the value in place the other operand stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// `into = into op from`
    After,
    /// `into = from op into`
    Before,
}

impl From<allhands_schedule::Combine> for Side {
    fn from(combine: allhands_schedule::Combine) -> Self {
        match combine {
            allhands_schedule::Combine::After => Side::After,
            allhands_schedule::Combine::Before => Side::Before,
        }
    }
}

/// Why there is no such kernel.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelError {
    /// MPI does not define the operation on the type.
    #[error("{operation} is not defined on {ty}; on {ty} there are {}; {operation} works on {}",
        list(legal_on(*ty)), list(types_of(*operation)))]
    Illegal {
        /// The operation asked for.
        operation: Operation,
        /// The type asked for.
        ty: Type,
    },
    /// A level was forced that this CPU does not have.
    #[error("this CPU has no {level}; it has {}", list(Level::available()))]
    Level {
        /// The level asked for.
        level: Level,
    },
}

impl KernelError {
    /// The operations that would be legal on the type that was asked for.
    ///
    /// ```
    /// use allhands::kernels::{Operation, Side, Type, kernel};
    ///
    /// let error = kernel(Type::C64, Operation::Max, Side::After).unwrap_err();
    /// assert_eq!(error.legal_operations(), [Operation::Sum, Operation::Product]);
    /// ```
    pub fn legal_operations(&self) -> Vec<Operation> {
        match self {
            KernelError::Illegal { ty, .. } => legal_on(*ty).collect(),
            KernelError::Level { .. } => Vec::new(),
        }
    }
}

fn legal_on(ty: Type) -> impl Iterator<Item = Operation> {
    Operation::ALL.into_iter().filter(move |operation| operation.is_legal_on(ty))
}

fn types_of(operation: Operation) -> impl Iterator<Item = Type> {
    Type::ALL.into_iter().filter(move |&ty| operation.is_legal_on(ty))
}

fn list(names: impl Iterator<Item = impl ToString>) -> String {
    names.map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_what_would_be_legal() {
        let error = KernelError::Illegal { operation: Operation::Min, ty: Type::C32 };
        assert_eq!(
            error.to_string(),
            "min is not defined on c32; on c32 there are sum, product; min works on i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64"
        );
    }

    #[test]
    fn the_schedules_sides_are_ours() {
        assert_eq!(Side::from(allhands_schedule::Combine::Before), Side::Before);
        assert_eq!(Side::from(allhands_schedule::Combine::After), Side::After);
    }
}
