//! What can be reduced: MPI's types, and the Rust types they are.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

/// The type of one element.
///
/// ```
/// use allhands::kernels::{Element, Pair, Type};
///
/// assert_eq!(Type::BF16.size(), 2);
/// assert_eq!(Type::C32.name(), "c32");
/// assert_eq!(<Pair<f64> as Element>::TYPE, Type::DoubleInt);
/// assert_eq!(Type::DoubleInt.size(), 16, "padded as C pads it");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// IEEE binary16, [`half::f16`].
    F16,
    /// The upper half of an `f32`, [`half::bf16`].
    BF16,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// A complex number made of two `f32`: C's `float complex`.
    C32,
    /// A complex number made of two `f64`: C's `double complex`.
    C64,
    /// `bool`, one byte that is 0 or 1.
    Bool,
    /// MPI's `MPI_FLOAT_INT`: [`Pair<f32>`].
    FloatInt,
    /// MPI's `MPI_DOUBLE_INT`: [`Pair<f64>`].
    DoubleInt,
    /// MPI's `MPI_LONG_INT` where `long` has 64 bits: [`Pair<i64>`].
    LongInt,
    /// MPI's `MPI_2INT`: [`Pair<i32>`].
    TwoInt,
    /// MPI's `MPI_SHORT_INT`: [`Pair<i16>`].
    ShortInt,
}

impl Type {
    /// All of them.
    pub const ALL: [Type; 20] = [
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::F16,
        Type::BF16,
        Type::F32,
        Type::F64,
        Type::C32,
        Type::C64,
        Type::Bool,
        Type::FloatInt,
        Type::DoubleInt,
        Type::LongInt,
        Type::TwoInt,
        Type::ShortInt,
    ];

    /// Bytes of one element in an array, padding included.
    pub const fn size(self) -> usize {
        self.facts().size
    }

    /// What the address of an element is a multiple of.
    pub const fn align(self) -> usize {
        self.facts().align
    }

    /// The name in texts and tables.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    pub(super) const fn class(self) -> Class {
        self.facts().class
    }

    const fn facts(self) -> Facts {
        match self {
            Type::I8 => Facts::of::<i8>("i8", Class::Integer),
            Type::I16 => Facts::of::<i16>("i16", Class::Integer),
            Type::I32 => Facts::of::<i32>("i32", Class::Integer),
            Type::I64 => Facts::of::<i64>("i64", Class::Integer),
            Type::U8 => Facts::of::<u8>("u8", Class::Integer),
            Type::U16 => Facts::of::<u16>("u16", Class::Integer),
            Type::U32 => Facts::of::<u32>("u32", Class::Integer),
            Type::U64 => Facts::of::<u64>("u64", Class::Integer),
            Type::F16 => Facts::of::<f16>("f16", Class::Float),
            Type::BF16 => Facts::of::<bf16>("bf16", Class::Float),
            Type::F32 => Facts::of::<f32>("f32", Class::Float),
            Type::F64 => Facts::of::<f64>("f64", Class::Float),
            Type::C32 => Facts::of::<Complex<f32>>("c32", Class::Complex),
            Type::C64 => Facts::of::<Complex<f64>>("c64", Class::Complex),
            Type::Bool => Facts::of::<bool>("bool", Class::Bool),
            Type::FloatInt => Facts::of::<Pair<f32>>("float_int", Class::Pair),
            Type::DoubleInt => Facts::of::<Pair<f64>>("double_int", Class::Pair),
            Type::LongInt => Facts::of::<Pair<i64>>("long_int", Class::Pair),
            Type::TwoInt => Facts::of::<Pair<i32>>("2int", Class::Pair),
            Type::ShortInt => Facts::of::<Pair<i16>>("short_int", Class::Pair),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What MPI's rules about operations tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Integer,
    Float,
    Complex,
    Bool,
    Pair,
}

struct Facts {
    name: &'static str,
    size: usize,
    align: usize,
    class: Class,
}

impl Facts {
    const fn of<T>(name: &'static str, class: Class) -> Self {
        Self { name, size: size_of::<T>(), align: align_of::<T>(), class }
    }
}

/// A value and where it was found: what MinLoc and MaxLoc reduce. Laid out as C lays out `struct { V value; int index; }`.
///
/// ```
/// use allhands::kernels::Pair;
///
/// let found = Pair { value: 2.5_f64, index: 7 };
/// assert_eq!(found.index, 7);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair<V> {
    /// What is compared.
    pub value: V,
    /// Where it was; of equal values the lowest index remains.
    pub index: i32,
}

/// A Rust type whose arrays can be reduced. Sealed: the list is MPI's.
///
/// ```
/// use allhands::kernels::{Element, Type};
///
/// fn bytes<T: Element>(elements: &[T]) -> usize {
///     elements.len() * T::TYPE.size()
/// }
/// assert_eq!(bytes(&[1_i32, 2, 3]), 12);
/// ```
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// Its name at run time.
    const TYPE: Type;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $name:ident,)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: Type = Type::$name;
        }
        const _: () = assert!(Type::$name.size() == size_of::<$rust>() && Type::$name.align() == align_of::<$rust>());
    )*};
}

elements! {
    i8 => I8,
    i16 => I16,
    i32 => I32,
    i64 => I64,
    u8 => U8,
    u16 => U16,
    u32 => U32,
    u64 => U64,
    f16 => F16,
    bf16 => BF16,
    f32 => F32,
    f64 => F64,
    Complex<f32> => C32,
    Complex<f64> => C64,
    bool => Bool,
    Pair<f32> => FloatInt,
    Pair<f64> => DoubleInt,
    Pair<i64> => LongInt,
    Pair<i32> => TwoInt,
    Pair<i16> => ShortInt,
}
