//! What Fortran needs besides: its handles are integers, and its `MPI_IN_PLACE` is a variable.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use allhands_mpi::{Abi, Handle};

use super::init::{MPI_Comm, MPI_Datatype, MPI_Op};

/// A handle that Fortran has as an integer. MPICH's are integers in C, too.
fn from_fortran(names: [&CStr; 2], integer: c_int) -> Handle {
    let Ok(mpi) = allhands_mpi::load() else { return 0 };
    let function = names.iter().find_map(|name| mpi.symbol(name)).filter(|_| mpi.abi() != Abi::Mpich);
    match function {
        // SAFETY: MPI's function of that name, whose signature this is.
        Some(function) => mpi
            .abi()
            .handle(unsafe { transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> Handle>(function)(integer) }),
        None => mpi.abi().handle(integer as u32 as Handle),
    }
}

/// For Fortran: the communicator that is this integer there (`comm%MPI_VAL` of `mpi_f08`). C has `MPI_Comm_f2c`.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_comm_f2c(comm: c_int) -> MPI_Comm {
    from_fortran([c"PMPI_Comm_f2c", c"PMPI_Comm_fromint"], comm)
}

/// For Fortran: the datatype that is this integer there.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_type_f2c(datatype: c_int) -> MPI_Datatype {
    from_fortran([c"PMPI_Type_f2c", c"PMPI_Type_fromint"], datatype)
}

/// For Fortran: as many datatypes that are integers there, as C has them in an array: for `allhands_alltoallw_init`. `handles` has a word
/// for each, of which an MPI whose handles are shorter leaves some as they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_types_f2c(datatypes: *const c_int, number: i64, handles: *mut MPI_Datatype) {
    let Ok(mpi) = allhands_mpi::load() else { return };
    let (abi, handles) = (mpi.abi(), handles.cast::<c_void>());
    for i in 0..usize::try_from(number).unwrap_or(0) {
        // SAFETY: the program's arrays are as long as it says.
        unsafe { abi.write_handle(handles.byte_add(i * abi.handle_bytes()), allhands_type_f2c(*datatypes.add(i))) };
    }
}

/// For Fortran: the operation that is this integer there.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_op_f2c(op: c_int) -> MPI_Op {
    from_fortran([c"PMPI_Op_f2c", c"PMPI_Op_fromint"], op)
}

/// For Fortran: what C calls `MPI_IN_PLACE`, to be passed for a send buffer.
#[unsafe(no_mangle)]
pub extern "C" fn allhands_in_place() -> *mut c_void {
    allhands_mpi::load().map_or(null_mut(), |mpi| mpi.in_place())
}
