//! A communicator of the program, and ours for it.

use std::borrow::Cow;
use std::ffi::c_int;

use allhands::raw::{Fellows, RawComm};
use allhands_mpi::{Handle, Mpi};

use crate::failure::{Reason, Unserved};

/// A communicator of the program, as this rank sees it.
#[derive(Clone, Copy, Debug)]
pub struct Communicator {
    /// What the program calls it.
    pub handle: Handle,
    /// This rank.
    pub rank: usize,
    /// How many ranks it has; between two groups, this rank's own.
    pub size: usize,
    /// Whether it is between two groups.
    pub between_groups: bool,
    /// Tells it from all others that this process has met, earlier ones that had its handle among them.
    pub number: u64,
}

impl Communicator {
    /// As the program names it. What MPI would refuse, MPI shall refuse.
    pub fn of(mpi: &Mpi, handle: Handle, number: u64) -> Result<Communicator, Unserved> {
        if handle == mpi.constants().handles.comm_null {
            return Err(Reason::Refused.into());
        }
        let ranks = mpi.comm_rank(handle).and_then(|rank| Ok((rank, mpi.comm_size(handle)?)));
        let (rank, size) = ranks.map_err(|_| Reason::Refused)?;
        Ok(Communicator { handle, rank, size, between_groups: mpi.comm_test_inter(handle)?, number })
    }

    /// Its ranks, if our own communicators are known to have all of them; the same on every rank. Waits for nobody.
    pub fn fellows(&self) -> Result<Option<Fellows>, Cow<'static, str>> {
        // SAFETY: the program's communicator, which it is calling with, and not between two groups.
        unsafe { Fellows::of_mpi(self.handle) }.map_err(|error| error.to_string().into())
    }

    /// Makes ours for it: on all ranks, or on none of them. Collective.
    pub fn join(&self, mpi: &Mpi) -> Result<RawComm, Cow<'static, str>> {
        // SAFETY: as above.
        let joined = match unsafe { RawComm::from_mpi(self.handle) } {
            // It is so on every rank.
            Ok(comm) if comm.is_derived() => return Ok(comm),
            joined => joined,
        };
        let mut all = c_int::from(joined.is_ok());
        // SAFETY: one integer in place on every rank.
        let agreed = unsafe {
            let (own, constants) = (mpi.in_place().cast_const(), mpi.constants());
            mpi.allreduce(own, (&raw mut all).cast(), 1, constants.types.int, constants.ops.min, self.handle)
        };
        match (joined, agreed) {
            (Err(error), _) => Err(error.to_string().into()),
            (_, Err(error)) => Err(error.to_string().into()),
            (Ok(_), Ok(())) if all == 0 => Err("another rank could not join".into()),
            (Ok(comm), Ok(())) => Ok(comm),
        }
    }
}
