//! What can be known to be wrong with arguments before a plan is made.

use std::ffi::{CStr, c_char, c_int, c_void};

use allhands_call::{Caller, Numbers};
use allhands_mpi::Handle;

use super::error::{Result, allhands_code::*, fault};

/// The arguments of one call.
pub(crate) struct Arguments<'a> {
    pub(crate) caller: Caller<'a>,
}

impl Arguments<'_> {
    pub(crate) fn in_place(&self, send: *const c_void) -> bool {
        send == self.caller.types.mpi().in_place().cast_const()
    }

    pub(crate) fn datatype(&self, handle: Handle) -> Result<Handle> {
        let mpi = self.caller.types.mpi();
        let handle = mpi.abi().handle(handle);
        if handle == mpi.constants().handles.datatype_null {
            return fault(ALLHANDS_ERR_TYPE, "a datatype is MPI_DATATYPE_NULL; pass that of the buffer's elements");
        }
        Ok(handle)
    }

    /// What is sent; in place, the rest means nothing.
    pub(crate) fn send(
        &self,
        buffer: *const c_void,
        number: i64,
        datatype: Handle,
    ) -> Result<(*const c_void, i64, Handle)> {
        if self.in_place(buffer) {
            return Ok((buffer, 0, datatype));
        }
        Ok((buffer, count(number)?, self.datatype(datatype)?))
    }

    /// A block that goes to or comes from the root, where it may stay in place: then the rest means nothing.
    pub(crate) fn own(
        &self,
        root: c_int,
        buffer: *const c_void,
        number: i64,
        datatype: Handle,
    ) -> Result<(i64, Handle)> {
        match (self.in_place(buffer), self.is_root(root)) {
            (false, _) => Ok((count(number)?, self.datatype(datatype)?)),
            (true, true) => Ok((0, datatype)),
            (true, false) => fault(
                ALLHANDS_ERR_ARGUMENT,
                format!("MPI_IN_PLACE is for the root, which is rank {root}; pass a buffer on other ranks"),
            ),
        }
    }

    /// What the root says of the blocks of all ranks; other ranks' words mean nothing.
    pub(crate) fn every(&self, root: c_int, number: i64, datatype: Handle) -> Result<(i64, Handle)> {
        if !self.is_root(root) {
            return Ok((0, datatype));
        }
        Ok((count(number)?, self.datatype(datatype)?))
    }

    /// The same of blocks that differ in size.
    pub(crate) fn listed(
        &self,
        root: c_int,
        numbers: *const i64,
        places: *const i64,
        datatype: Handle,
    ) -> Result<(Numbers, Numbers, Handle)> {
        if !self.is_root(root) {
            return Ok((wide(numbers), wide(places), datatype));
        }
        Ok((wide(array(numbers)?), wide(array(places)?), self.datatype(datatype)?))
    }

    /// Blocks of a datatype each, in an array of the MPI's handles. What there is nothing of may be of none.
    ///
    /// # Safety
    /// The arrays are null, or have a number, or a handle, for each rank.
    pub(crate) unsafe fn mixed(
        &self,
        numbers: *const i64,
        places: *const i64,
        datatypes: *const Handle,
    ) -> Result<(Numbers, Numbers, *const c_void)> {
        let (numbers, places, datatypes) = (array(numbers)?, array(places)?, datatypes.cast::<c_void>());
        if datatypes.is_null() {
            return fault(
                ALLHANDS_ERR_ARGUMENT,
                "an array of datatypes is NULL; pass one with a datatype for each rank",
            );
        }
        let abi = self.caller.types.mpi().abi();
        for rank in 0..self.caller.comm.size {
            // SAFETY: the caller's promise.
            unsafe {
                if *numbers.add(rank) != 0 {
                    self.datatype(abi.read_handle(datatypes.byte_add(rank * abi.handle_bytes())))?;
                }
            }
        }
        Ok((wide(numbers), wide(places), datatypes))
    }

    /// Datatype and operation of a reduction.
    pub(crate) fn reduction(&self, datatype: Handle, op: Handle) -> Result<(Handle, Handle)> {
        let mpi = self.caller.types.mpi();
        let op = mpi.abi().handle(op);
        if op == mpi.constants().handles.op_null {
            return fault(ALLHANDS_ERR_OP, "the operation is MPI_OP_NULL; pass one such as MPI_SUM");
        }
        Ok((self.datatype(datatype)?, op))
    }

    pub(crate) fn root(&self, root: c_int) -> Result<c_int> {
        let size = self.caller.comm.size;
        match usize::try_from(root) {
            Ok(rank) if rank < size => Ok(root),
            _ => fault(
                ALLHANDS_ERR_ARGUMENT,
                format!("root {root} is no rank of the communicator; its ranks are 0 to {}", size - 1),
            ),
        }
    }

    fn is_root(&self, root: c_int) -> bool {
        usize::try_from(root) == Ok(self.caller.comm.rank)
    }
}

/// A count.
pub(crate) fn count(count: i64) -> Result<i64> {
    match count {
        0.. => Ok(count),
        _ => fault(ALLHANDS_ERR_ARGUMENT, format!("the count {count} is negative; pass 0 or more")),
    }
}

/// An array with a number for each rank.
pub(crate) fn array(numbers: *const i64) -> Result<*const i64> {
    if numbers.is_null() {
        return fault(
            ALLHANDS_ERR_ARGUMENT,
            "an array of counts or displacements is NULL; pass one with a number for each rank",
        );
    }
    Ok(numbers)
}

/// Numbers of 64 bits.
pub(crate) fn wide(numbers: *const i64) -> Numbers {
    Numbers::Wide(numbers)
}

/// The algorithm that options name, if they do. The text stays as long as the call.
///
/// # Safety
/// Null, or the address of a text that ends in a zero byte.
pub(crate) unsafe fn algorithm<'a>(text: *const c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    match unsafe { CStr::from_ptr(text) }.to_str().map(str::trim) {
        Ok("") => Ok(None),
        Ok(algorithm) => Ok(Some(algorithm)),
        Err(_) => fault(ALLHANDS_ERR_ALGORITHM, "the options are no text; pass NULL or the name of an algorithm"),
    }
}
