//! MPI's own collectives that return before they are through.

use std::ffi::{c_int, c_longlong, c_void};

use crate::collectives::counted;
use crate::{Error, Handle, Mpi, Result};

/// Functions with counts that an `int` holds: what the method is given, the counts among it, and what MPI's function gets.
macro_rules! begun {
    ($($method:ident $name:literal like $blocking:literal
        ($($arg:ident: $type:ty),*) [$($count:ident),*] => ($($given:expr),*);)*) => {
        impl Mpi {$(
            #[doc = concat!("`", $name, "`")]
            ///
            /// # Safety
            #[doc = concat!("As [`Mpi::", $blocking, "`], and the buffers and arrays belong to MPI until the request is complete.")]
            #[allow(clippy::too_many_arguments)] // As MPI's has.
            pub unsafe fn $method(&self, $($arg: $type),*) -> Result<Handle> {
                let function = self.raw().$method.ok_or_else(|| self.lacks($name))?;
                $(let $count = self.count($name, $count)?;)*
                let mut request = 0;
                // SAFETY: the caller vouches for buffers and arrays.
                self.check($name, unsafe { function($($given,)* &mut request) })?;
                Ok(request)
            }
        )*}
    };
}

begun! {
    ibarrier "MPI_Ibarrier" like "barrier" (comm: Handle) [] => (comm);
    ibcast "MPI_Ibcast" like "bcast" (buffer: *mut c_void, count: usize, datatype: Handle, root: i32, comm: Handle) [count]
        => (buffer, count, datatype, root, comm);
    iallgatherv "MPI_Iallgatherv" like "allgatherv"
        (send: *const c_void, count: usize, receive: *mut c_void, counts: &[i32], offsets: &[i32], datatype: Handle,
         comm: Handle) [count]
        => (send, count, datatype, receive, counts.as_ptr(), offsets.as_ptr(), datatype, comm);
    ialltoall "MPI_Ialltoall" like "alltoall"
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, comm: Handle) [count]
        => (send, count, datatype, receive, count, datatype, comm);
    ialltoallv "MPI_Ialltoallv" like "alltoallv"
        (send: *const c_void, send_counts: &[i32], send_offsets: &[i32], receive: *mut c_void, counts: &[i32],
         offsets: &[i32], datatype: Handle, comm: Handle) []
        => (send, send_counts.as_ptr(), send_offsets.as_ptr(), datatype, receive, counts.as_ptr(), offsets.as_ptr(),
            datatype, comm);
    ireduce "MPI_Ireduce" like "reduce"
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, root: i32, comm: Handle)
        [count] => (send, receive, count, datatype, op, root, comm);
    ireduce_scatter "MPI_Ireduce_scatter" like "reduce_scatter"
        (send: *const c_void, receive: *mut c_void, counts: &[i32], datatype: Handle, op: Handle, comm: Handle) []
        => (send, receive, counts.as_ptr(), datatype, op, comm);
    ireduce_scatter_block "MPI_Ireduce_scatter_block" like "reduce_scatter_block"
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, comm: Handle) [count]
        => (send, receive, count, datatype, op, comm);
}

impl Mpi {
    /// `MPI_Iallreduce`
    ///
    /// # Safety
    /// As [`Mpi::allreduce`], and the buffers belong to MPI until the request is complete.
    pub unsafe fn iallreduce(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        op: Handle,
        comm: Handle,
    ) -> Result<Handle> {
        let raw = self.raw();
        let small = raw.iallreduce.ok_or_else(|| self.lacks("MPI_Iallreduce"))?;
        let mut request = 0;
        counted!(
            self,
            "MPI_Iallreduce",
            small,
            raw.iallreduce_c,
            [count],
            (send, receive, count, datatype, op, comm, &mut request)
        )?;
        Ok(request)
    }

    /// `MPI_Iallgather`, with the same count and type on both sides.
    ///
    /// # Safety
    /// As [`Mpi::allgather`], and the buffers belong to MPI until the request is complete.
    pub unsafe fn iallgather(
        &self,
        send: *const c_void,
        receive: *mut c_void,
        count: usize,
        datatype: Handle,
        comm: Handle,
    ) -> Result<Handle> {
        let raw = self.raw();
        let small = raw.iallgather.ok_or_else(|| self.lacks("MPI_Iallgather"))?;
        let mut request = 0;
        counted!(
            self,
            "MPI_Iallgather",
            small,
            raw.iallgather_c,
            [count],
            (send, count, datatype, receive, count, datatype, comm, &mut request)
        )?;
        Ok(request)
    }
}
