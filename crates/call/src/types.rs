//! MPI's predefined datatypes and operations, and what they are here.

use allhands::kernels::{Operation, Type};
use allhands_mpi::{Handle, Mpi};

use crate::handles::Handles;

/// A predefined datatype.
#[derive(Clone, Copy)]
pub struct Basic {
    /// Bytes of data, and from one element to the next.
    pub size: usize,
    pub extent: usize,
    /// What it is in a reduction, if there is a kernel for it.
    element: Option<Type>,
    allowed: Allowed,
}

/// Which operations MPI allows.
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    /// Those that the kernels know.
    All,
    /// `MPI_BYTE` is no number.
    Bits,
    /// A truth value.
    Logic,
    /// A number with a fraction.
    Real,
    Complex,
    /// A value and an index.
    Pair,
    /// Letters, and what is packed.
    None,
}

/// The predefined datatypes and operations of an MPI.
pub struct Types {
    mpi: &'static Mpi,
    basic: Handles<Basic>,
    operations: Handles<Operation>,
}

impl Types {
    /// Looked up once: those that this MPI has.
    pub fn new(mpi: &'static Mpi) -> Types {
        let null = mpi.constants().handles.datatype_null;
        let mut basic = Handles::default();
        for (handle, element, allowed) in datatypes(mpi) {
            let (Ok(size), Ok((0, extent))) = (mpi.type_size(handle), mpi.type_extent(handle)) else { continue };
            let extent = extent as usize;
            // A kernel steps through memory as its type does.
            let element = element.filter(|element| element.size() == extent);
            if handle != null && size > 0 {
                basic.insert(handle, Basic { size, extent, element, allowed });
            }
        }
        let nothing = mpi.constants().handles.op_null;
        let operations = operations(mpi).into_iter().filter(|(handle, _)| *handle != nothing).collect();
        Types { mpi, basic, operations }
    }

    /// The MPI whose types these are.
    #[inline]
    pub fn mpi(&self) -> &'static Mpi {
        self.mpi
    }

    /// The predefined datatype of this handle.
    #[inline]
    pub fn basic(&self, datatype: Handle) -> Option<Basic> {
        self.basic.get(&datatype).copied()
    }

    /// The predefined operation of this handle.
    #[inline]
    pub fn operation(&self, op: Handle) -> Option<Operation> {
        self.operations.get(&op).copied()
    }
}

impl Basic {
    /// What a program calls it, where there is a kernel for it.
    pub fn name(&self) -> Option<&'static str> {
        Some(match self.element? {
            Type::I32 => "int",
            Type::F32 => "float",
            Type::F64 => "double",
            other => other.name(),
        })
    }

    /// The kernels' type, if they have this operation on it and MPI allows it.
    #[inline]
    pub fn reduced_by(&self, operation: Operation) -> Option<Type> {
        self.element.filter(|element| self.allows(operation) && operation.is_legal_on(*element))
    }

    /// Whether MPI allows an operation on it.
    pub fn allows(&self, operation: Operation) -> bool {
        use Operation::{
            BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc, Product, Sum,
        };
        match self.allowed {
            Allowed::All => self.element.is_some_and(|element| operation.is_legal_on(element)),
            Allowed::Bits => matches!(operation, BitAnd | BitOr | BitXor),
            Allowed::Logic => matches!(operation, LogicalAnd | LogicalOr | LogicalXor),
            Allowed::Real => matches!(operation, Sum | Product | Min | Max),
            Allowed::Complex => matches!(operation, Sum | Product),
            Allowed::Pair => matches!(operation, MinLoc | MaxLoc),
            Allowed::None => false,
        }
    }
}

fn datatypes(mpi: &Mpi) -> Vec<(Handle, Option<Type>, Allowed)> {
    let types = &mpi.constants().types;
    let number = |handle, element| (handle, Some(element), Allowed::All);
    let only_moved = |handle| (handle, None, Allowed::None);
    vec![
        number(types.signed_char, Type::I8),
        number(types.unsigned_char, Type::U8),
        number(types.short, Type::I16),
        number(types.unsigned_short, Type::U16),
        number(types.int, Type::I32),
        number(types.unsigned, Type::U32),
        number(types.long, Type::I64),
        number(types.unsigned_long, Type::U64),
        number(types.long_long, Type::I64),
        number(types.unsigned_long_long, Type::U64),
        number(types.float, Type::F32),
        number(types.double, Type::F64),
        number(types.int8_t, Type::I8),
        number(types.int16_t, Type::I16),
        number(types.int32_t, Type::I32),
        number(types.int64_t, Type::I64),
        number(types.uint8_t, Type::U8),
        number(types.uint16_t, Type::U16),
        number(types.uint32_t, Type::U32),
        number(types.uint64_t, Type::U64),
        number(types.c_float_complex, Type::C32),
        number(types.c_double_complex, Type::C64),
        number(types.float_int, Type::FloatInt),
        number(types.double_int, Type::DoubleInt),
        number(types.long_int, Type::LongInt),
        number(types.two_int, Type::TwoInt),
        number(types.short_int, Type::ShortInt),
        number(types.aint, Type::I64),
        number(types.offset, Type::I64),
        number(types.count, Type::I64),
        number(types.integer, Type::I32),
        number(types.real, Type::F32),
        number(types.double_precision, Type::F64),
        number(types.complex, Type::C32),
        number(types.double_complex, Type::C64),
        number(types.integer1, Type::I8),
        number(types.integer2, Type::I16),
        number(types.integer4, Type::I32),
        number(types.integer8, Type::I64),
        number(types.real4, Type::F32),
        number(types.real8, Type::F64),
        number(types.complex8, Type::C32),
        number(types.complex16, Type::C64),
        number(types.two_integer, Type::TwoInt),
        number(types.cxx_float_complex, Type::C32),
        number(types.cxx_double_complex, Type::C64),
        (types.byte, Some(Type::U8), Allowed::Bits),
        (types.c_bool, Some(Type::Bool), Allowed::Logic),
        (types.cxx_bool, Some(Type::Bool), Allowed::Logic),
        only_moved(types.char),
        only_moved(types.wchar),
        only_moved(types.packed),
        only_moved(types.character),
        (types.logical, None, Allowed::Logic),
        (types.long_double, None, Allowed::Real),
        (types.c_long_double_complex, None, Allowed::Complex),
        (types.cxx_long_double_complex, None, Allowed::Complex),
        (types.long_double_int, None, Allowed::Pair),
        (types.two_real, None, Allowed::Pair),
        (types.two_double_precision, None, Allowed::Pair),
    ]
}

fn operations(mpi: &Mpi) -> [(Handle, Operation); 12] {
    let ops = &mpi.constants().ops;
    [
        (ops.sum, Operation::Sum),
        (ops.prod, Operation::Product),
        (ops.min, Operation::Min),
        (ops.max, Operation::Max),
        (ops.land, Operation::LogicalAnd),
        (ops.lor, Operation::LogicalOr),
        (ops.lxor, Operation::LogicalXor),
        (ops.band, Operation::BitAnd),
        (ops.bor, Operation::BitOr),
        (ops.bxor, Operation::BitXor),
        (ops.minloc, Operation::MinLoc),
        (ops.maxloc, Operation::MaxLoc),
    ]
}
