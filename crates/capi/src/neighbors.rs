//! Making plans for collectives among neighbours, on communicators with a topology of MPI's.

use std::ffi::{c_char, c_int, c_void};

use allhands_call::Numbers;

use super::arguments::{Arguments, array, count, wide};
use super::error::Result;
use super::functions::allhands_plan;
use super::init::{MPI_Comm, MPI_Datatype, PlanTarget};

/// Makes a plan for an allgather among neighbours: a rank gets the blocks of those from which it has edges, in their order. As
/// `MPI_Neighbor_allgather_init`, on a communicator with a cartesian, graph or distributed graph topology. Nobody works in place. Ranks tell
/// each other here what they need to know; runs do not. Otherwise as `allhands_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_neighbor_allgather_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = (sendbuf, count(sendcount)?, arguments.datatype(sendtype)?);
            let receive = (recvbuf, count(recvcount)?, arguments.datatype(recvtype)?);
            Ok(arguments.caller.neighbor_allgather(send, receive)?)
        })
    }
}

/// A plan to gather blocks of different sizes from neighbours: as `MPI_Neighbor_allgatherv_init`, with arrays of 64-bit numbers, which are read at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_neighbor_allgatherv_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    displs: *const i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = (sendbuf, count(sendcount)?, arguments.datatype(sendtype)?);
            let receive = arguments.sized(recvcounts, displs, recvtype)?;
            Ok(arguments.caller.neighbor_allgatherv(send, (recvbuf, receive.0, receive.1, receive.2))?)
        })
    }
}

/// Makes a plan for an alltoall among neighbours: a rank has a block for each of those to which it has edges, and gets one from each from which it has
/// some. As `MPI_Neighbor_alltoall_init`; otherwise as `allhands_neighbor_allgather_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_neighbor_alltoall_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = (sendbuf, count(sendcount)?, arguments.datatype(sendtype)?);
            let receive = (recvbuf, count(recvcount)?, arguments.datatype(recvtype)?);
            Ok(arguments.caller.neighbor_alltoall(send, receive)?)
        })
    }
}

/// A plan to exchange blocks of different sizes with neighbours: as `MPI_Neighbor_alltoallv_init`, with arrays of 64-bit numbers, which are read at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_neighbor_alltoallv_init(
    sendbuf: *const c_void,
    sendcounts: *const i64,
    sdispls: *const i64,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    rdispls: *const i64,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let (sent, received) =
                (arguments.sized(sendcounts, sdispls, sendtype)?, arguments.sized(recvcounts, rdispls, recvtype)?);
            let (send, receive) = ((sendbuf, sent.0, sent.1, sent.2), (recvbuf, received.0, received.1, received.2));
            Ok(arguments.caller.neighbor_alltoallv(send, receive)?)
        })
    }
}

/// A plan to exchange blocks of different sizes and datatypes with neighbours: as `MPI_Neighbor_alltoallw_init`, with displacements in bytes. The datatype of a block of
/// nothing is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allhands_neighbor_alltoallw_init(
    sendbuf: *const c_void,
    sendcounts: *const i64,
    sdispls: *const i64,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const i64,
    rdispls: *const i64,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    options: *const c_char,
    plan: *mut *mut allhands_plan,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        PlanTarget { comm, options, plan }.make(|arguments| {
            let send = (sendbuf, wide(array(sendcounts)?), wide(array(sdispls)?), sendtypes.cast());
            let receive = (recvbuf, wide(array(recvcounts)?), wide(array(rdispls)?), recvtypes.cast());
            Ok(arguments.caller.neighbor_alltoallw(send, receive)?)
        })
    }
}

impl Arguments<'_> {
    /// Arrays of counts and places, and their datatype.
    fn sized(
        &self,
        counts: *const i64,
        places: *const i64,
        datatype: MPI_Datatype,
    ) -> Result<(Numbers, Numbers, MPI_Datatype)> {
        Ok((wide(array(counts)?), wide(array(places)?), self.datatype(datatype)?))
    }
}
