//! MPI's own collectives, to compare with and to fall back to.
//!
//! Counts that an `int` does not hold need the library's `_c` functions: predefined operations do not work on derived
//! datatypes, so the way that messages go is not open.

use std::ffi::{c_int, c_longlong, c_void};

use crate::{Error, Handle, Mpi, Result};

/// Calls `function(args)` with `int` counts, or `large(args)` with wide ones if some count needs them. The counts are
/// named, so that the arguments can be written once.
macro_rules! counted {
    ($mpi:ident, $name:literal, $small:expr, $large:expr, [$($count:ident),*], ($($arg:expr),*)) => {{
        let largest = [$($count),*].into_iter().max().unwrap_or_default();
        if largest <= c_int::MAX as usize {
            let function = $small;
            $(let $count = $count as c_int;)*
            // SAFETY: the caller vouches for the buffers, and the counts fit.
            $mpi.check($name, unsafe { function($($arg),*) })
        } else if let Some(function) = $large {
            $(let $count = $count as c_longlong;)*
            // SAFETY: as above.
            $mpi.check($name, unsafe { function($($arg),*) })
        } else {
            Err(Error::TooLarge { function: $name, count: largest })
        }
    }};
}

pub(crate) use counted;

impl Mpi {
    /// Waits for all.
    pub fn barrier(&self, comm: Handle) -> Result<()> {
        // SAFETY: a handle by value.
        self.check("MPI_Barrier", unsafe { (self.raw().barrier)(comm) })
    }

    /// `MPI_Bcast`
    ///
    /// # Safety
    /// The buffer must have `count` elements of the type, writable unless this is the root.
    pub unsafe fn bcast(
        &self,
        buffer: *mut c_void,
        count: usize,
        datatype: Handle,
        root: i32,
        comm: Handle,
    ) -> Result<()> {
        let raw = self.raw();
        counted!(self, "MPI_Bcast", raw.bcast, raw.bcast_c, [count], (buffer, count, datatype, root, comm))
    }

    /// `MPI_Allgather`, with the same count and type on both sides.
    ///
    /// # Safety
    /// The buffers must have `count` and `count` times the communicator's size elements; the first may be
    /// [`Mpi::in_place`].
    pub unsafe fn allgather(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        comm: Handle,
    ) -> Result<()> {
        let raw = self.raw();
        counted!(
            self,
            "MPI_Allgather",
            raw.allgather,
            raw.allgather_c,
            [count],
            (send, count, datatype, receive, count, datatype, comm)
        )
    }

    /// `MPI_Allgatherv`, with the same type on both sides.
    ///
    /// # Safety
    /// The first buffer must have `count` elements or be [`Mpi::in_place`], the second those that counts and offsets (of
    /// as many ranks as the communicator has) say.
    #[allow(clippy::too_many_arguments)] // As MPI's has.
    pub unsafe fn allgatherv(
        &self,
        send: *const c_void,
        count: usize,
        receive: *mut c_void,
        counts: &[i32],
        offsets: &[i32],
        datatype: Handle,
        comm: Handle,
    ) -> Result<()> {
        let count = self.count("MPI_Allgatherv", count)?;
        let (counts, offsets) = (counts.as_ptr(), offsets.as_ptr());
        // SAFETY: the caller vouches for buffers and arrays.
        let code = unsafe { (self.raw().allgatherv)(send, count, datatype, receive, counts, offsets, datatype, comm) };
        self.check("MPI_Allgatherv", code)
    }

    /// `MPI_Alltoall`, with the same count (for each rank) and type on both sides.
    ///
    /// # Safety
    /// Both buffers must have `count` times the communicator's size elements; the first may be [`Mpi::in_place`].
    pub unsafe fn alltoall(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        comm: Handle,
    ) -> Result<()> {
        let raw = self.raw();
        counted!(
            self,
            "MPI_Alltoall",
            raw.alltoall,
            raw.alltoall_c,
            [count],
            (send, count, datatype, receive, count, datatype, comm)
        )
    }

    /// `MPI_Alltoallv`, with the same type on both sides.
    ///
    /// # Safety
    /// The buffers must have the elements that their counts and offsets (of as many ranks as the communicator has) say;
    /// the first may be [`Mpi::in_place`].
    #[allow(clippy::too_many_arguments)] // As MPI's has.
    pub unsafe fn alltoallv(
        &self,
        send: *const c_void,
        send_counts: &[i32],
        send_offsets: &[i32],
        receive: *mut c_void,
        counts: &[i32],
        offsets: &[i32],
        datatype: Handle,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the caller vouches for buffers and arrays.
        let code = unsafe {
            (self.raw().alltoallv)(
                send,
                send_counts.as_ptr(),
                send_offsets.as_ptr(),
                datatype,
                receive,
                counts.as_ptr(),
                offsets.as_ptr(),
                datatype,
                comm,
            )
        };
        self.check("MPI_Alltoallv", code)
    }

    /// `MPI_Allreduce`
    ///
    /// # Safety
    /// Both buffers must have `count` elements of the type; the first may be [`Mpi::in_place`].
    pub unsafe fn allreduce(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        op: Handle,
        comm: Handle,
    ) -> Result<()> {
        let raw = self.raw();
        counted!(
            self,
            "MPI_Allreduce",
            raw.allreduce,
            raw.allreduce_c,
            [count],
            (send, receive, count, datatype, op, comm)
        )
    }

    /// `MPI_Reduce`
    ///
    /// # Safety
    /// Both buffers must have `count` elements of the type; the second only at the root, where the first may be
    /// [`Mpi::in_place`].
    #[allow(clippy::too_many_arguments)] // As MPI's has.
    pub unsafe fn reduce(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        op: Handle,
        root: i32,
        comm: Handle,
    ) -> Result<()> {
        let raw = self.raw();
        counted!(
            self,
            "MPI_Reduce",
            raw.reduce,
            raw.reduce_c,
            [count],
            (send, receive, count, datatype, op, root, comm)
        )
    }

    /// `MPI_Reduce_scatter`
    ///
    /// # Safety
    /// The first buffer must have the elements of all counts (of as many ranks as the communicator has) or be
    /// [`Mpi::in_place`], the second those of this rank's, or of all if in place.
    pub unsafe fn reduce_scatter(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        counts: &[i32],
        datatype: Handle,
        op: Handle,
        comm: Handle,
    ) -> Result<()> {
        // SAFETY: the caller vouches for buffers and array.
        let code = unsafe { (self.raw().reduce_scatter)(send, receive, counts.as_ptr(), datatype, op, comm) };
        self.check("MPI_Reduce_scatter", code)
    }

    /// `MPI_Reduce_scatter_block`
    ///
    /// # Safety
    /// The first buffer must have `count` times the communicator's size elements or be [`Mpi::in_place`], the second
    /// `count`, or as many as the first if in place.
    pub unsafe fn reduce_scatter_block(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        op: Handle,
        comm: Handle,
    ) -> Result<()> {
        let raw = self.raw();
        let small = raw.reduce_scatter_block.ok_or_else(|| self.lacks("MPI_Reduce_scatter_block"))?;
        counted!(
            self,
            "MPI_Reduce_scatter_block",
            small,
            raw.reduce_scatter_block_c,
            [count],
            (send, receive, count, datatype, op, comm)
        )
    }

    #[cold]
    pub(crate) fn lacks(&self, symbol: &str) -> Error {
        Error::MissingSymbol { path: self.path().to_owned(), symbol: symbol.to_owned() }
    }
}
