//! The constants of each binary interface, in one table.
//!
//! A row is a field, the C expression that the interface's own header has for it, and its value in the standard ABI, in
//! MPICH's and in Open MPI's. Open MPI's predefined handles are addresses of variables, so their column names these.
//! `tests/header.rs` compiles the expressions against the headers and compares every row.

use std::ffi::{CStr, c_int};

use crate::{Abi, Handle};

/// What the table says about one constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A handle that is a number.
    Handle(Handle),
    /// A handle that is the address of this symbol.
    Symbol(&'static str),
    /// Any other number.
    Number(i64),
}

macro_rules! handles {
    ($(#[$doc:meta])* $group:ident { $($field:ident $name:literal = $standard:literal, $mpich:literal, $open:ident;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $group { $(#[doc = concat!("`", $name, "`")] pub $field: Handle,)* }

        impl $group {
            fn new<E>(abi: Abi, mut find: impl FnMut(&'static CStr) -> Result<Handle, E>) -> Result<$group, E> {
                Ok($group { $($field: match abi {
                    Abi::Standard => $standard,
                    Abi::Mpich => $mpich,
                    Abi::OpenMpi => find(symbol(concat!(stringify!($open), "\0")))?,
                },)* })
            }

            fn table(abi: Abi) -> Vec<(&'static str, Constant)> {
                vec![$(($name, match abi {
                    Abi::Standard => Constant::Handle($standard),
                    Abi::Mpich => Constant::Handle($mpich),
                    Abi::OpenMpi => Constant::Symbol(stringify!($open)),
                }),)*]
            }

            fn list(&self) -> Vec<(&'static str, Constant)> {
                vec![$(($name, Constant::Handle(self.$field)),)*]
            }
        }
    };
}

macro_rules! numbers {
    ($(#[$doc:meta])* $group:ident: $type:ty { $($field:ident $name:literal = $standard:literal, $mpich:literal, $open:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $group { $(#[doc = concat!("`", $name, "`")] pub $field: $type,)* }

        impl $group {
            fn new(abi: Abi) -> $group {
                match abi {
                    Abi::Standard => $group { $($field: $standard,)* },
                    Abi::Mpich => $group { $($field: $mpich,)* },
                    Abi::OpenMpi => $group { $($field: $open,)* },
                }
            }

            fn list(&self) -> Vec<(&'static str, Constant)> {
                vec![$(($name, Constant::Number(self.$field as i64)),)*]
            }
        }
    };
}

/// A name that ends in a zero byte, as the linker wants it.
fn symbol(name: &'static str) -> &'static CStr {
    CStr::from_bytes_until_nul(name.as_bytes()).unwrap_or_default()
}

handles! {
    /// Predefined handles other than datatypes and operations.
    Predefined {
        comm_world "MPI_COMM_WORLD" = 0x101, 0x44000000, ompi_mpi_comm_world;
        comm_self "MPI_COMM_SELF" = 0x102, 0x44000001, ompi_mpi_comm_self;
        comm_null "MPI_COMM_NULL" = 0x100, 0x04000000, ompi_mpi_comm_null;
        group_null "MPI_GROUP_NULL" = 0x108, 0x08000000, ompi_mpi_group_null;
        group_empty "MPI_GROUP_EMPTY" = 0x109, 0x48000000, ompi_mpi_group_empty;
        request_null "MPI_REQUEST_NULL" = 0x180, 0x2c000000, ompi_request_null;
        datatype_null "MPI_DATATYPE_NULL" = 0x200, 0x0c000000, ompi_mpi_datatype_null;
        op_null "MPI_OP_NULL" = 0x20, 0x18000000, ompi_mpi_op_null;
        info_null "MPI_INFO_NULL" = 0x130, 0x1c000000, ompi_mpi_info_null;
        errhandler_null "MPI_ERRHANDLER_NULL" = 0x140, 0x14000000, ompi_mpi_errhandler_null;
        errors_return "MPI_ERRORS_RETURN" = 0x143, 0x54000001, ompi_mpi_errors_return;
        errors_are_fatal "MPI_ERRORS_ARE_FATAL" = 0x141, 0x54000000, ompi_mpi_errors_are_fatal;
        file_null "MPI_FILE_NULL" = 0x118, 0x00000000, ompi_mpi_file_null;
    }
}

handles! {
    /// Predefined datatypes; one that the library lacks is its `MPI_DATATYPE_NULL`.
    Types {
        char "MPI_CHAR" = 0x243, 0x4c000101, ompi_mpi_char;
        signed_char "MPI_SIGNED_CHAR" = 0x244, 0x4c000118, ompi_mpi_signed_char;
        unsigned_char "MPI_UNSIGNED_CHAR" = 0x245, 0x4c000102, ompi_mpi_unsigned_char;
        byte "MPI_BYTE" = 0x247, 0x4c00010d, ompi_mpi_byte;
        wchar "MPI_WCHAR" = 0x23c, 0x4c00040e, ompi_mpi_wchar;
        short "MPI_SHORT" = 0x208, 0x4c000203, ompi_mpi_short;
        unsigned_short "MPI_UNSIGNED_SHORT" = 0x20c, 0x4c000204, ompi_mpi_unsigned_short;
        int "MPI_INT" = 0x209, 0x4c000405, ompi_mpi_int;
        unsigned "MPI_UNSIGNED" = 0x20d, 0x4c000406, ompi_mpi_unsigned;
        long "MPI_LONG" = 0x20a, 0x4c000807, ompi_mpi_long;
        unsigned_long "MPI_UNSIGNED_LONG" = 0x20e, 0x4c000808, ompi_mpi_unsigned_long;
        long_long "MPI_LONG_LONG" = 0x20b, 0x4c000809, ompi_mpi_long_long_int;
        unsigned_long_long "MPI_UNSIGNED_LONG_LONG" = 0x20f, 0x4c000819, ompi_mpi_unsigned_long_long;
        float "MPI_FLOAT" = 0x210, 0x4c00040a, ompi_mpi_float;
        double "MPI_DOUBLE" = 0x214, 0x4c00080b, ompi_mpi_double;
        long_double "MPI_LONG_DOUBLE" = 0x220, 0x4c00100c, ompi_mpi_long_double;
        int8_t "MPI_INT8_T" = 0x240, 0x4c000137, ompi_mpi_int8_t;
        int16_t "MPI_INT16_T" = 0x248, 0x4c000238, ompi_mpi_int16_t;
        int32_t "MPI_INT32_T" = 0x250, 0x4c000439, ompi_mpi_int32_t;
        int64_t "MPI_INT64_T" = 0x258, 0x4c00083a, ompi_mpi_int64_t;
        uint8_t "MPI_UINT8_T" = 0x241, 0x4c00013b, ompi_mpi_uint8_t;
        uint16_t "MPI_UINT16_T" = 0x249, 0x4c00023c, ompi_mpi_uint16_t;
        uint32_t "MPI_UINT32_T" = 0x251, 0x4c00043d, ompi_mpi_uint32_t;
        uint64_t "MPI_UINT64_T" = 0x259, 0x4c00083e, ompi_mpi_uint64_t;
        c_bool "MPI_C_BOOL" = 0x238, 0x4c00013f, ompi_mpi_c_bool;
        c_float_complex "MPI_C_FLOAT_COMPLEX" = 0x212, 0x4c000840, ompi_mpi_c_float_complex;
        c_double_complex "MPI_C_DOUBLE_COMPLEX" = 0x216, 0x4c001041, ompi_mpi_c_double_complex;
        c_long_double_complex "MPI_C_LONG_DOUBLE_COMPLEX" = 0x224, 0x4c002042, ompi_mpi_c_long_double_complex;
        float_int "MPI_FLOAT_INT" = 0x228, 0x8c000000, ompi_mpi_float_int;
        double_int "MPI_DOUBLE_INT" = 0x229, 0x8c000001, ompi_mpi_double_int;
        long_int "MPI_LONG_INT" = 0x22a, 0x8c000002, ompi_mpi_long_int;
        two_int "MPI_2INT" = 0x22b, 0x4c000816, ompi_mpi_2int;
        short_int "MPI_SHORT_INT" = 0x22c, 0x8c000003, ompi_mpi_short_int;
        long_double_int "MPI_LONG_DOUBLE_INT" = 0x22d, 0x8c000004, ompi_mpi_longdbl_int;
        aint "MPI_AINT" = 0x201, 0x4c000843, ompi_mpi_aint;
        offset "MPI_OFFSET" = 0x203, 0x4c000844, ompi_mpi_offset;
        count "MPI_COUNT" = 0x202, 0x4c000845, ompi_mpi_count;
        packed "MPI_PACKED" = 0x207, 0x4c00010f, ompi_mpi_packed;
        character "MPI_CHARACTER" = 0x21e, 0x4c00011a, ompi_mpi_character;
        logical "MPI_LOGICAL" = 0x218, 0x4c00041d, ompi_mpi_logical;
        integer "MPI_INTEGER" = 0x219, 0x4c00041b, ompi_mpi_integer;
        real "MPI_REAL" = 0x21a, 0x4c00041c, ompi_mpi_real;
        double_precision "MPI_DOUBLE_PRECISION" = 0x21c, 0x4c00081f, ompi_mpi_dblprec;
        complex "MPI_COMPLEX" = 0x21b, 0x4c00081e, ompi_mpi_cplex;
        double_complex "MPI_DOUBLE_COMPLEX" = 0x21d, 0x4c001022, ompi_mpi_dblcplex;
        integer1 "MPI_INTEGER1" = 0x2c1, 0x4c00012d, ompi_mpi_integer1;
        integer2 "MPI_INTEGER2" = 0x2c9, 0x4c00022f, ompi_mpi_integer2;
        integer4 "MPI_INTEGER4" = 0x2d1, 0x4c000430, ompi_mpi_integer4;
        integer8 "MPI_INTEGER8" = 0x2d9, 0x4c000831, ompi_mpi_integer8;
        real4 "MPI_REAL4" = 0x2d2, 0x4c000427, ompi_mpi_real4;
        real8 "MPI_REAL8" = 0x2da, 0x4c000829, ompi_mpi_real8;
        complex8 "MPI_COMPLEX8" = 0x2db, 0x4c000828, ompi_mpi_complex8;
        complex16 "MPI_COMPLEX16" = 0x2e3, 0x4c00102a, ompi_mpi_complex16;
        two_integer "MPI_2INTEGER" = 0x232, 0x4c000820, ompi_mpi_2integer;
        two_real "MPI_2REAL" = 0x230, 0x4c000821, ompi_mpi_2real;
        two_double_precision "MPI_2DOUBLE_PRECISION" = 0x231, 0x4c001023, ompi_mpi_2dblprec;
        cxx_bool "MPI_CXX_BOOL" = 0x239, 0x4c000133, ompi_mpi_cxx_bool;
        cxx_float_complex "MPI_CXX_FLOAT_COMPLEX" = 0x213, 0x4c000834, ompi_mpi_cxx_cplex;
        cxx_double_complex "MPI_CXX_DOUBLE_COMPLEX" = 0x217, 0x4c001035, ompi_mpi_cxx_dblcplex;
        cxx_long_double_complex "MPI_CXX_LONG_DOUBLE_COMPLEX" = 0x225, 0x4c002036, ompi_mpi_cxx_ldblcplex;
    }
}

handles! {
    /// Predefined operations; one that the library lacks is its `MPI_OP_NULL`.
    Ops {
        max "MPI_MAX" = 0x23, 0x58000001, ompi_mpi_op_max;
        min "MPI_MIN" = 0x22, 0x58000002, ompi_mpi_op_min;
        sum "MPI_SUM" = 0x21, 0x58000003, ompi_mpi_op_sum;
        prod "MPI_PROD" = 0x24, 0x58000004, ompi_mpi_op_prod;
        land "MPI_LAND" = 0x30, 0x58000005, ompi_mpi_op_land;
        band "MPI_BAND" = 0x28, 0x58000006, ompi_mpi_op_band;
        lor "MPI_LOR" = 0x31, 0x58000007, ompi_mpi_op_lor;
        bor "MPI_BOR" = 0x29, 0x58000008, ompi_mpi_op_bor;
        lxor "MPI_LXOR" = 0x32, 0x58000009, ompi_mpi_op_lxor;
        bxor "MPI_BXOR" = 0x2a, 0x5800000a, ompi_mpi_op_bxor;
        minloc "MPI_MINLOC" = 0x38, 0x5800000b, ompi_mpi_op_minloc;
        maxloc "MPI_MAXLOC" = 0x39, 0x5800000c, ompi_mpi_op_maxloc;
        replace "MPI_REPLACE" = 0x3c, 0x5800000d, ompi_mpi_op_replace;
        no_op "MPI_NO_OP" = 0x3d, 0x5800000e, ompi_mpi_op_no_op;
    }
}

numbers! {
    /// Special addresses, as integers.
    Addresses: isize {
        in_place "MPI_IN_PLACE" = 1, -1, 1;
        bottom "MPI_BOTTOM" = 0, 0, 0;
        status_ignore "MPI_STATUS_IGNORE" = 0, 1, 0;
        statuses_ignore "MPI_STATUSES_IGNORE" = 0, 1, 0;
    }
}

numbers! {
    /// Integers, and the layout of `MPI_Status`.
    Integers: c_int {
        any_source "MPI_ANY_SOURCE" = -1, -2, -1;
        any_tag "MPI_ANY_TAG" = -2, -1, -1;
        proc_null "MPI_PROC_NULL" = -3, -1, -2;
        root "MPI_ROOT" = -4, -3, -4;
        undefined "MPI_UNDEFINED" = -32766, -32766, -32766;
        keyval_invalid "MPI_KEYVAL_INVALID" = 0, 603979776, -1;
        tag_ub "MPI_TAG_UB" = 501, 1681915905, 0;
        comm_type_shared "MPI_COMM_TYPE_SHARED" = 221, 1, 0;
        thread_single "MPI_THREAD_SINGLE" = 0, 0, 0;
        thread_funneled "MPI_THREAD_FUNNELED" = 1024, 1, 1;
        thread_serialized "MPI_THREAD_SERIALIZED" = 2048, 2, 2;
        thread_multiple "MPI_THREAD_MULTIPLE" = 4096, 3, 3;
        max_error_string "MPI_MAX_ERROR_STRING" = 512, 512, 256;
        max_library_version_string "MPI_MAX_LIBRARY_VERSION_STRING" = 8192, 8192, 256;
        max_processor_name "MPI_MAX_PROCESSOR_NAME" = 256, 128, 256;
        ident "MPI_IDENT" = 201, 0, 0;
        congruent "MPI_CONGRUENT" = 202, 1, 1;
        similar "MPI_SIMILAR" = 203, 2, 2;
        unequal "MPI_UNEQUAL" = 204, 3, 3;
        combiner_named "MPI_COMBINER_NAMED" = 101, 1, 0;
        combiner_dup "MPI_COMBINER_DUP" = 102, 2, 1;
        cart "MPI_CART" = 211, 2, 1;
        graph "MPI_GRAPH" = 212, 1, 2;
        dist_graph "MPI_DIST_GRAPH" = 213, 3, 3;
        status_bytes "sizeof(MPI_Status)" = 32, 20, 24;
        status_source "offsetof(MPI_Status, MPI_SOURCE)" = 0, 8, 0;
        status_tag "offsetof(MPI_Status, MPI_TAG)" = 4, 12, 4;
        status_error "offsetof(MPI_Status, MPI_ERROR)" = 8, 16, 8;
        handle_bytes "sizeof(MPI_Request)" = 8, 4, 8;
    }
}

numbers! {
    /// Error classes.
    ErrorClasses: c_int {
        success "MPI_SUCCESS" = 0, 0, 0;
        buffer "MPI_ERR_BUFFER" = 1, 1, 1;
        count "MPI_ERR_COUNT" = 2, 2, 2;
        datatype "MPI_ERR_TYPE" = 3, 3, 3;
        tag "MPI_ERR_TAG" = 4, 4, 4;
        comm "MPI_ERR_COMM" = 5, 5, 5;
        rank "MPI_ERR_RANK" = 6, 6, 6;
        request "MPI_ERR_REQUEST" = 7, 19, 7;
        root "MPI_ERR_ROOT" = 8, 7, 8;
        group "MPI_ERR_GROUP" = 9, 8, 9;
        op "MPI_ERR_OP" = 10, 9, 10;
        arg "MPI_ERR_ARG" = 13, 12, 13;
        unknown "MPI_ERR_UNKNOWN" = 14, 13, 14;
        truncate "MPI_ERR_TRUNCATE" = 15, 14, 15;
        other "MPI_ERR_OTHER" = 16, 15, 16;
        intern "MPI_ERR_INTERN" = 17, 16, 17;
        in_status "MPI_ERR_IN_STATUS" = 19, 17, 18;
        pending "MPI_ERR_PENDING" = 18, 18, 19;
        keyval "MPI_ERR_KEYVAL" = 36, 48, 36;
        no_mem "MPI_ERR_NO_MEM" = 39, 34, 39;
        unsupported_operation "MPI_ERR_UNSUPPORTED_OPERATION" = 55, 44, 52;
        proc_failed "MPI_ERR_PROC_FAILED" = -1, 101, 75;
    }
}

/// All constants of the library that was loaded.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Predefined handles other than datatypes and operations.
    pub handles: Predefined,
    /// Predefined datatypes.
    pub types: Types,
    /// Predefined operations.
    pub ops: Ops,
    /// Special addresses.
    pub addresses: Addresses,
    /// Integers, and the layout of `MPI_Status`.
    pub integers: Integers,
    /// Error classes.
    pub errors: ErrorClasses,
}

impl Constants {
    /// The constants of an interface, with `find` to look up the symbols of Open MPI's. A handle proper which is not
    /// there is an error, with its name; a datatype or operation which is not there is that null handle.
    pub(crate) fn new(abi: Abi, find: impl Fn(&CStr) -> Option<Handle>) -> Result<Constants, &'static CStr> {
        let handles = Predefined::new(abi, |name| find(name).ok_or(name))?;
        let types = Types::new(abi, |name| Ok(find(name).unwrap_or(handles.datatype_null)))?;
        let ops = Ops::new(abi, |name| Ok(find(name).unwrap_or(handles.op_null)))?;
        Ok(Constants {
            handles,
            types,
            ops,
            addresses: Addresses::new(abi),
            integers: Integers::new(abi),
            errors: ErrorClasses::new(abi),
        })
    }

    /// Every constant's C expression and value.
    pub fn list(&self) -> Vec<(&'static str, Constant)> {
        let Constants { handles, types, ops, addresses, integers, errors } = self;
        [handles.list(), types.list(), ops.list(), addresses.list(), integers.list(), errors.list()].concat()
    }
}

/// The whole table of an interface, with no library at hand: C expressions and what they are.
pub fn constants(abi: Abi) -> Vec<(&'static str, Constant)> {
    [
        Predefined::table(abi),
        Types::table(abi),
        Ops::table(abi),
        Addresses::new(abi).list(),
        Integers::new(abi).list(),
        ErrorClasses::new(abi).list(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_lists_the_same_names_once() {
        let names = |abi| constants(abi).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let mut sorted = names(Abi::Standard);
        assert_eq!(sorted, names(Abi::Mpich));
        assert_eq!(sorted, names(Abi::OpenMpi));
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names(Abi::Standard).len());
    }

    #[test]
    fn a_missing_datatype_is_null_and_a_missing_communicator_an_error() {
        let find = |name: &CStr| match name.to_str() {
            Ok("ompi_mpi_2real") => None,
            Ok("ompi_mpi_datatype_null") => Some(7),
            _ => Some(1),
        };
        let constants = Constants::new(Abi::OpenMpi, find).unwrap();
        assert_eq!((constants.types.two_real, constants.types.real), (7, 1));
        assert_eq!(Constants::new(Abi::OpenMpi, |_| None).unwrap_err(), c"ompi_mpi_comm_world");
    }

    #[test]
    fn the_width_of_handles_is_the_table_s() {
        for abi in Abi::ALL {
            assert_eq!(Integers::new(abi).handle_bytes as usize, abi.handle_bytes());
            assert!(Integers::new(abi).status_bytes as usize <= size_of::<crate::RawStatus>());
        }
    }
}
