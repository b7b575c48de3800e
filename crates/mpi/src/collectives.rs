//! MPI's own collectives, to compare with and to fall back to: each in the form that waits, and in the one that returns a request.
//!
//! Counts that an `int` does not hold need the library's `_c` functions: predefined operations do not work on derived
//! datatypes, so the way that messages go is not open.

use std::ffi::{c_int, c_longlong, c_void};

use crate::{Error, Handle, Mpi, Result};

/// Calls a function with `int` counts, or one with wide ones if some count needs them and there is one. The counts are named, so that
/// the arguments can be written once.
macro_rules! counted {
    ($mpi:ident, $name:literal, $small:expr, [$($large:ident)?], [$($count:ident),*], ($($arg:expr),*)) => {{
        let largest = [0, $($count),*].into_iter().max().unwrap_or_default();
        if largest <= c_int::MAX as usize {
            let function = $small;
            $(let $count = $count as c_int;)*
            // SAFETY: the caller vouches for the buffers, and the counts fit.
            $mpi.check($name, unsafe { function($($arg),*) })
        } else {
            counted!(@wide $mpi, $name, [$($large)?], [$($count),*], ($($arg),*), largest)
        }
    }};
    (@wide $mpi:ident, $name:literal, [], $counts:tt, $args:tt, $largest:ident) => {
        Err(Error::TooLarge { function: $name, count: $largest })
    };
    (@wide $mpi:ident, $name:literal, [$large:ident], [$($count:ident),*], ($($arg:expr),*), $largest:ident) => {
        match $mpi.raw().$large {
            Some(function) => {
                $(let $count = $count as c_longlong;)*
                // SAFETY: as above.
                $mpi.check($name, unsafe { function($($arg),*) })
            }
            None => Err(Error::TooLarge { function: $name, count: $largest }),
        }
    };
}

/// Both forms of a collective: their methods, MPI's names and, where we know them, the functions with wide counts; what the methods
/// are given, the counts among it, and what MPI's function gets.
macro_rules! collectives {
    ($(
        $(#[$doc:meta])*
        $method:ident $name:literal [$($large:ident)?], $begun:ident $begun_name:literal [$($begun_large:ident)?]
        ($($arg:ident: $type:ty),*) counts $counts:tt => ($($given:expr),*);
    )*) => {
        impl Mpi {$(
            $(#[$doc])*
            #[allow(clippy::too_many_arguments)] // As MPI's has.
            pub unsafe fn $method(&self, $($arg: $type),*) -> Result<()> {
                counted!(self, $name, self.raw().$method, [$($large)?], $counts, ($($given),*))
            }

            #[doc = concat!("`", $begun_name, "`")]
            ///
            /// # Safety
            #[doc = concat!("As [`Mpi::", stringify!($method), "`], and the buffers and arrays belong to MPI until the request is complete.")]
            #[allow(clippy::too_many_arguments)] // As MPI's has.
            pub unsafe fn $begun(&self, $($arg: $type),*) -> Result<Handle> {
                let function = self.raw().$begun.ok_or_else(|| self.lacks($begun_name))?;
                let mut request = 0;
                counted!(self, $begun_name, function, [$($begun_large)?], $counts, ($($given,)* &mut request))?;
                Ok(request)
            }
        )*}
    };
}

collectives! {
    /// `MPI_Bcast`
    ///
    /// # Safety
    /// The buffer must have `count` elements of the type, writable unless this is the root.
    bcast "MPI_Bcast" [bcast_c], ibcast "MPI_Ibcast" []
        (buffer: *mut c_void, count: usize, datatype: Handle, root: i32, comm: Handle)
        counts [count] => (buffer, count, datatype, root, comm);

    /// `MPI_Allgather`, with the same count and type on both sides.
    ///
    /// # Safety
    /// The buffers must have `count` and `count` times the communicator's size elements; the first may be
    /// [`Mpi::in_place`].
    allgather "MPI_Allgather" [allgather_c], iallgather "MPI_Iallgather" [iallgather_c]
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, comm: Handle)
        counts [count] => (send, count, datatype, receive, count, datatype, comm);

    /// `MPI_Allgatherv`, with the same type on both sides.
    ///
    /// # Safety
    /// The first buffer must have `count` elements or be [`Mpi::in_place`], the second those that counts and offsets (of
    /// as many ranks as the communicator has) say.
    allgatherv "MPI_Allgatherv" [], iallgatherv "MPI_Iallgatherv" []
        (send: *const c_void, count: usize, receive: *mut c_void, counts: &[i32], offsets: &[i32], datatype: Handle,
         comm: Handle)
        counts [count] => (send, count, datatype, receive, counts.as_ptr(), offsets.as_ptr(), datatype, comm);

    /// `MPI_Alltoall`, with the same count (for each rank) and type on both sides.
    ///
    /// # Safety
    /// Both buffers must have `count` times the communicator's size elements; the first may be [`Mpi::in_place`].
    alltoall "MPI_Alltoall" [alltoall_c], ialltoall "MPI_Ialltoall" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, comm: Handle)
        counts [count] => (send, count, datatype, receive, count, datatype, comm);

    /// `MPI_Alltoallv`, with the same type on both sides.
    ///
    /// # Safety
    /// The buffers must have the elements that their counts and offsets (of as many ranks as the communicator has) say;
    /// the first may be [`Mpi::in_place`].
    alltoallv "MPI_Alltoallv" [], ialltoallv "MPI_Ialltoallv" []
        (send: *const c_void, send_counts: &[i32], send_offsets: &[i32], receive: *mut c_void, counts: &[i32],
         offsets: &[i32], datatype: Handle, comm: Handle)
        counts [] => (send, send_counts.as_ptr(), send_offsets.as_ptr(), datatype, receive, counts.as_ptr(), offsets.as_ptr(),
            datatype, comm);

    /// `MPI_Allreduce`
    ///
    /// # Safety
    /// Both buffers must have `count` elements of the type; the first may be [`Mpi::in_place`].
    allreduce "MPI_Allreduce" [allreduce_c], iallreduce "MPI_Iallreduce" [iallreduce_c]
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, comm: Handle)
        counts [count] => (send, receive, count, datatype, op, comm);

    /// `MPI_Reduce`
    ///
    /// # Safety
    /// Both buffers must have `count` elements of the type; the second only at the root, where the first may be
    /// [`Mpi::in_place`].
    reduce "MPI_Reduce" [reduce_c], ireduce "MPI_Ireduce" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, root: i32,
         comm: Handle)
        counts [count] => (send, receive, count, datatype, op, root, comm);

    /// `MPI_Gather`, with the same count (from each rank) and type on both sides.
    ///
    /// # Safety
    /// The first buffer must have `count` elements or, at the root, be [`Mpi::in_place`]; the second, at the root, `count` times the
    /// communicator's size.
    gather "MPI_Gather" [], igather "MPI_Igather" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, root: i32, comm: Handle)
        counts [count] => (send, count, datatype, receive, count, datatype, root, comm);

    /// `MPI_Gatherv`, with the same type on both sides.
    ///
    /// # Safety
    /// The first buffer must have `count` elements or, at the root, be [`Mpi::in_place`]; the second, at the root, those that counts
    /// and offsets (of as many ranks as the communicator has) say.
    gatherv "MPI_Gatherv" [], igatherv "MPI_Igatherv" []
        (send: *const c_void, count: usize, receive: *mut c_void, counts: &[i32], offsets: &[i32], datatype: Handle,
         root: i32, comm: Handle)
        counts [count] => (send, count, datatype, receive, counts.as_ptr(), offsets.as_ptr(), datatype, root, comm);

    /// `MPI_Scatter`, with the same count (for each rank) and type on both sides.
    ///
    /// # Safety
    /// The first buffer must have, at the root, `count` times the communicator's size elements; the second `count`.
    scatter "MPI_Scatter" [], iscatter "MPI_Iscatter" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, root: i32, comm: Handle)
        counts [count] => (send, count, datatype, receive, count, datatype, root, comm);

    /// `MPI_Scatterv`, with the same type on both sides.
    ///
    /// # Safety
    /// The first buffer must have, at the root, the elements that counts and offsets (of as many ranks as the communicator has) say; the
    /// second `count`.
    scatterv "MPI_Scatterv" [], iscatterv "MPI_Iscatterv" []
        (send: *const c_void, counts: &[i32], offsets: &[i32], receive: *mut c_void, count: usize, datatype: Handle,
         root: i32, comm: Handle)
        counts [count] => (send, counts.as_ptr(), offsets.as_ptr(), datatype, receive, count, datatype, root, comm);

    /// `MPI_Scan`
    ///
    /// # Safety
    /// Both buffers must have `count` elements of the type; the first may be [`Mpi::in_place`].
    scan "MPI_Scan" [], iscan "MPI_Iscan" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, comm: Handle)
        counts [count] => (send, receive, count, datatype, op, comm);

    /// `MPI_Exscan`
    ///
    /// # Safety
    /// Both buffers must have `count` elements of the type; the first may be [`Mpi::in_place`].
    exscan "MPI_Exscan" [], iexscan "MPI_Iexscan" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, comm: Handle)
        counts [count] => (send, receive, count, datatype, op, comm);

    /// `MPI_Reduce_scatter`
    ///
    /// # Safety
    /// The first buffer must have the elements of all counts (of as many ranks as the communicator has) or be
    /// [`Mpi::in_place`], the second those of this rank's, or of all if in place.
    reduce_scatter "MPI_Reduce_scatter" [], ireduce_scatter "MPI_Ireduce_scatter" []
        (send: *const c_void, receive: *mut c_void, counts: &[i32], datatype: Handle, op: Handle, comm: Handle)
        counts [] => (send, receive, counts.as_ptr(), datatype, op, comm);

    /// `MPI_Reduce_scatter_block`
    ///
    /// # Safety
    /// The first buffer must have `count` times the communicator's size elements or be [`Mpi::in_place`], the second
    /// `count`, or as many as the first if in place.
    reduce_scatter_block "MPI_Reduce_scatter_block" [reduce_scatter_block_c], ireduce_scatter_block "MPI_Ireduce_scatter_block" []
        (send: *const c_void, receive: *mut c_void, count: usize, datatype: Handle, op: Handle, comm: Handle)
        counts [count] => (send, receive, count, datatype, op, comm);
}

impl Mpi {
    /// Waits for all.
    pub fn barrier(&self, comm: Handle) -> Result<()> {
        // SAFETY: a handle by value.
        self.check("MPI_Barrier", unsafe { (self.raw().barrier)(comm) })
    }

    /// `MPI_Ibarrier`
    pub fn ibarrier(&self, comm: Handle) -> Result<Handle> {
        let function = self.raw().ibarrier.ok_or_else(|| self.lacks("MPI_Ibarrier"))?;
        // SAFETY: a handle by value; the request's is writable.
        self.handle("MPI_Ibarrier", |request| unsafe { function(comm, request) })
    }

    #[cold]
    pub(crate) fn lacks(&self, symbol: &str) -> Error {
        Error::MissingSymbol { path: self.path().to_owned(), symbol: symbol.to_owned() }
    }
}
