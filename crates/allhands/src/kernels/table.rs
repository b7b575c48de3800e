//! Which loop serves which type and operation.

use super::combine::half::{BF16, F16, RoundedTwo};
use super::combine::{Twice, complex, float, half, integer, pair};
use super::f16;
use super::level::Level;
use super::loops::Forms;
use super::operation::Operation;
use super::types::Type;

/// Padding inside an element keeps the compiler from making vector loops, so no level is faster than another.
const PADDED: Level = Level::Portable;

/// `None` where MPI defines nothing: exactly where [`Operation::is_legal_on`] says so (a test compares).
pub(super) fn forms(ty: Type, operation: Operation, level: Level) -> Option<Forms> {
    match ty {
        Type::I8 => signed::<i8, u8>(operation, level),
        Type::I16 => signed::<i16, u16>(operation, level),
        Type::I32 => signed::<i32, u32>(operation, level),
        Type::I64 => signed::<i64, u64>(operation, level),
        Type::U8 => unsigned::<u8>(operation, level),
        Type::U16 => unsigned::<u16>(operation, level),
        Type::U32 => unsigned::<u32>(operation, level),
        Type::U64 => unsigned::<u64>(operation, level),
        Type::F16 => match operation {
            Operation::Sum => Some(f16::forms::<float::Sum<f32>>(level)),
            Operation::Product => Some(f16::forms::<float::Product<f32>>(level)),
            Operation::Min => Some(Forms::of::<half::Min<F16>>(level)),
            Operation::Max => Some(Forms::of::<half::Max<F16>>(level)),
            _ => None,
        },
        Type::BF16 => match operation {
            Operation::Sum => Some(Forms::of::<RoundedTwo<float::Sum<f32>>>(level)),
            Operation::Product => Some(Forms::of::<RoundedTwo<float::Product<f32>>>(level)),
            Operation::Min => Some(Forms::of::<half::Min<BF16>>(level)),
            Operation::Max => Some(Forms::of::<half::Max<BF16>>(level)),
            _ => None,
        },
        Type::F32 => float::<f32>(operation, level),
        Type::F64 => float::<f64>(operation, level),
        Type::C32 => complex::<f32>(operation, level),
        Type::C64 => complex::<f64>(operation, level),
        Type::Bool => truth::<u8>(operation, level),
        Type::FloatInt => pair::<f32>(operation, level),
        Type::DoubleInt => pair::<f64>(operation, PADDED),
        Type::LongInt => pair::<i64>(operation, PADDED),
        Type::TwoInt => pair::<i32>(operation, level),
        Type::ShortInt => pair::<i16>(operation, PADDED),
    }
}

/// Only the order asks for the sign.
fn signed<S: integer::Integer, U: integer::Integer>(operation: Operation, level: Level) -> Option<Forms> {
    match operation {
        Operation::Min => Some(Forms::of::<integer::Min<S>>(level)),
        Operation::Max => Some(Forms::of::<integer::Max<S>>(level)),
        _ => unsigned::<U>(operation, level),
    }
}

fn unsigned<U: integer::Integer>(operation: Operation, level: Level) -> Option<Forms> {
    match operation {
        Operation::Sum => Some(Forms::of::<integer::Sum<U>>(level)),
        Operation::Product => Some(Forms::of::<integer::Product<U>>(level)),
        Operation::Min => Some(Forms::of::<integer::Min<U>>(level)),
        Operation::Max => Some(Forms::of::<integer::Max<U>>(level)),
        _ => truth::<U>(operation, level),
    }
}

fn truth<U: integer::Integer>(operation: Operation, level: Level) -> Option<Forms> {
    match operation {
        Operation::LogicalAnd => Some(Forms::of::<integer::LogicalAnd<U>>(level)),
        Operation::LogicalOr => Some(Forms::of::<integer::LogicalOr<U>>(level)),
        Operation::LogicalXor => Some(Forms::of::<integer::LogicalXor<U>>(level)),
        Operation::BitAnd => Some(Forms::of::<integer::And<U>>(level)),
        Operation::BitOr => Some(Forms::of::<integer::Or<U>>(level)),
        Operation::BitXor => Some(Forms::of::<integer::Xor<U>>(level)),
        _ => None,
    }
}

fn float<F: float::Float>(operation: Operation, level: Level) -> Option<Forms> {
    match operation {
        Operation::Sum => Some(Forms::of::<float::Sum<F>>(level)),
        Operation::Product => Some(Forms::of::<float::Product<F>>(level)),
        Operation::Min => Some(Forms::of::<float::Min<F>>(level)),
        Operation::Max => Some(Forms::of::<float::Max<F>>(level)),
        _ => None,
    }
}

fn complex<F: float::Float>(operation: Operation, level: Level) -> Option<Forms> {
    match operation {
        Operation::Sum => Some(Forms::of::<Twice<float::Sum<F>>>(level)),
        Operation::Product => Some(Forms::of::<complex::Product<F>>(level)),
        _ => None,
    }
}

fn pair<V: pair::Value>(operation: Operation, level: Level) -> Option<Forms> {
    match operation {
        Operation::MinLoc => Some(Forms::of::<pair::MinLoc<V>>(level)),
        Operation::MaxLoc => Some(Forms::of::<pair::MaxLoc<V>>(level)),
        _ => None,
    }
}
