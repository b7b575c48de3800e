//! Requests of the MPI that stand for runs of ours: receives of nothing from this rank itself, each with a tag of its own.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use allhands_mpi::{Handle, Mpi};

/// Such a request, and what completes it.
#[derive(Clone, Copy)]
pub(super) struct Proxy {
    /// What the program holds.
    pub(super) request: Handle,
    pub(super) persistent: bool,
    number: usize,
    comm: Handle,
    tag: c_int,
}

/// Every MPI has so many tags; beyond, there is another communicator.
const TAGS: usize = 32_000;

#[derive(Default)]
pub(super) struct Proxies {
    /// Of this rank alone.
    comms: Vec<Handle>,
    /// Those that no request uses any more.
    free: Vec<usize>,
    used: usize,
}

impl Proxies {
    /// A receive that has begun, or with `persistent` one that is to be started.
    pub(super) fn make(&mut self, mpi: &Mpi, persistent: bool) -> allhands_mpi::Result<Proxy> {
        let number = self.free.last().copied().unwrap_or(self.used);
        if number / TAGS == self.comms.len() {
            // Splitting copies none of the program's attributes.
            let comm = mpi.comm_split(mpi.comm_self(), Some(0), 0)?;
            self.comms.push(comm.unwrap_or_else(|| mpi.comm_self()));
        }
        let (comm, tag) = (self.comms[number / TAGS], (number % TAGS) as c_int);
        let (raw, byte) = (mpi.raw(), mpi.constants().types.byte);
        let mut request = 0;
        let function = if persistent { raw.recv_init } else { raw.irecv };
        // SAFETY: nothing is received, from this rank.
        mpi.check("MPI_Irecv", unsafe { function(null_mut(), 0, byte, 0, tag, comm, &mut request) })?;
        if self.free.pop().is_none() {
            self.used += 1;
        }
        Ok(Proxy { request, persistent, number, comm, tag })
    }

    /// No request uses it any more.
    pub(super) fn free(&mut self, proxy: Proxy) {
        self.free.push(proxy.number);
    }

    pub(super) fn end(&mut self, mpi: &Mpi) {
        for comm in self.comms.drain(..) {
            let _ = mpi.comm_free(comm);
        }
        (self.free, self.used) = (Vec::new(), 0);
    }
}

impl Proxy {
    /// Completes the request: the receive is there, so the message waits for nobody.
    pub(super) fn complete(self, mpi: &Mpi) {
        let byte = mpi.constants().types.byte;
        // SAFETY: nothing is sent, to this rank.
        let code = unsafe { (mpi.raw().send)(null(), 0, byte, 0, self.tag, self.comm) };
        if let Err(error) = mpi.check("MPI_Send", code) {
            allhands::raw::say(format_args!("a request cannot be completed: {error}"));
        }
    }
}
