//! Messages between two ranks. Buffers are bytes (`MPI_BYTE`), and any number of them: see [`Mpi::isend`].

use std::ffi::{c_int, c_void};

use crate::{Abi, Error, Handle, Handles, Mpi, Result, Statuses};

/// Room for a status of any library.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct RawStatus([c_int; 16]);

impl RawStatus {
    /// All zero.
    #[inline]
    pub const fn new() -> RawStatus {
        RawStatus([0; 16])
    }

    /// The integer at an offset in bytes, which the table keeps within the status.
    #[inline]
    fn int(&self, offset: c_int) -> c_int {
        self.0[offset as usize / 4 % 16]
    }
}

impl Default for RawStatus {
    fn default() -> RawStatus {
        RawStatus::new()
    }
}

/// What is known of a message that has arrived. For one that was sent, only the error means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who sent it.
    pub source: i32,
    /// With what tag.
    pub tag: i32,
    /// The error code, where a call reports several messages at once.
    pub error: i32,
    /// How many bytes it had.
    pub bytes: usize,
}

impl Mpi {
    /// Starts to send bytes. More of them than an `int` counts travel as one derived datatype.
    ///
    /// # Safety
    /// The bytes must stay as they are until the request is complete.
    #[inline]
    pub unsafe fn isend(&self, buffer: *const u8, bytes: usize, to: i32, tag: i32, comm: Handle) -> Result<Handle> {
        self.with_count(bytes, |count, datatype| {
            // SAFETY: the caller's promise.
            unsafe { self.isend_of(buffer, count, datatype, to, tag, comm) }
        })
    }

    /// Starts to receive up to this many bytes.
    ///
    /// # Safety
    /// The bytes must be writable, and neither read nor written until the request is complete.
    #[inline]
    pub unsafe fn irecv(&self, buffer: *mut u8, bytes: usize, from: i32, tag: i32, comm: Handle) -> Result<Handle> {
        self.with_count(bytes, |count, datatype| {
            // SAFETY: the caller's promise.
            unsafe { self.irecv_of(buffer, count, datatype, from, tag, comm) }
        })
    }

    /// Prepares a send that is started many times.
    ///
    /// # Safety
    /// Whenever the request is started, the bytes must stay as they are until it is complete.
    pub unsafe fn send_init(&self, buffer: *const u8, bytes: usize, to: i32, tag: i32, comm: Handle) -> Result<Handle> {
        self.with_count(bytes, |count, datatype| {
            // SAFETY: the caller's promise.
            unsafe { self.send_init_of(buffer, count, datatype, to, tag, comm) }
        })
    }

    /// Prepares a receive that is started many times.
    ///
    /// # Safety
    /// Whenever the request is started, the bytes must be writable, and neither read nor written until it is complete.
    pub unsafe fn recv_init(&self, buffer: *mut u8, bytes: usize, from: i32, tag: i32, comm: Handle) -> Result<Handle> {
        self.with_count(bytes, |count, datatype| {
            // SAFETY: the caller's promise.
            unsafe { self.recv_init_of(buffer, count, datatype, from, tag, comm) }
        })
    }

    /// Sends bytes, and returns when they may be changed.
    ///
    /// # Safety
    /// The bytes must be readable.
    pub unsafe fn send(&self, buffer: *const u8, bytes: usize, to: i32, tag: i32, comm: Handle) -> Result<()> {
        self.with_count(bytes, |count, datatype| {
            // SAFETY: the caller vouches for the buffer.
            let code = unsafe { (self.raw().send)(buffer.cast(), count, datatype, to, tag, comm) };
            self.check("MPI_Send", code)
        })
    }

    /// Receives up to this many bytes.
    ///
    /// # Safety
    /// The bytes must be writable.
    pub unsafe fn recv(&self, buffer: *mut u8, bytes: usize, from: i32, tag: i32, comm: Handle) -> Result<Status> {
        self.with_count(bytes, |count, datatype| {
            let mut status = RawStatus::new();
            // SAFETY: the caller vouches for the buffer; the status has room for any library's.
            let code = unsafe { (self.raw().recv)(buffer.cast(), count, datatype, from, tag, comm, &mut status) };
            self.check("MPI_Recv", code)?;
            Ok(self.status(&status))
        })
    }

    /// Sends bytes to one rank and receives up to so many from another.
    ///
    /// # Safety
    /// The first bytes must be readable, the second writable, and they must not overlap.
    #[allow(clippy::too_many_arguments)] // As MPI's has.
    pub unsafe fn sendrecv(
        &self,
        send: *const u8,
        send_bytes: usize,
        to: i32,
        send_tag: i32,
        receive: *mut u8,
        receive_bytes: usize,
        from: i32,
        receive_tag: i32,
        comm: Handle,
    ) -> Result<Status> {
        self.with_count(send_bytes, |send_count, send_type| {
            self.with_count(receive_bytes, |count, datatype| {
                let mut status = RawStatus::new();
                // SAFETY: the caller vouches for the buffers; the status has room for any library's.
                let code = unsafe {
                    (self.raw().sendrecv)(
                        send.cast::<c_void>(),
                        send_count,
                        send_type,
                        to,
                        send_tag,
                        receive.cast(),
                        count,
                        datatype,
                        from,
                        receive_tag,
                        comm,
                        &mut status,
                    )
                };
                self.check("MPI_Sendrecv", code)?;
                Ok(self.status(&status))
            })
        })
    }

    /// Starts a prepared request.
    ///
    /// # Safety
    /// As the call that prepared it says.
    #[inline]
    pub unsafe fn start(&self, request: &mut Handle) -> Result<()> {
        // SAFETY: the caller vouches for the buffer; the handle is writable.
        self.check("MPI_Start", unsafe { (self.raw().start)(request) })
    }

    /// Starts prepared requests.
    ///
    /// # Safety
    /// As the calls that prepared them say.
    #[inline]
    pub unsafe fn startall(&self, requests: &mut Handles) -> Result<()> {
        // SAFETY: the caller vouches for the buffers; the array has the library's layout.
        self.check("MPI_Startall", unsafe { (self.raw().startall)(requests.count(), requests.as_mut_ptr()) })
    }

    /// What is known of a request's message if it is complete. The request is then freed and null, or, if it was prepared,
    /// ready to be started again.
    #[inline]
    pub fn test(&self, request: &mut Handle) -> Result<Option<Status>> {
        let mut flag = 0;
        let mut status = RawStatus::new();
        // SAFETY: request, flag and status are writable, and the status has room for any library's.
        let code = unsafe { (self.raw().test)(request, &mut flag, &mut status) };
        self.check("MPI_Test", code)?;
        Ok(if flag != 0 { Some(self.status(&status)) } else { None })
    }

    /// How many bytes a message of bytes has brought, if it is complete; `expected` of them cost no further call.
    #[inline]
    pub fn test_bytes(&self, request: &mut Handle, expected: usize) -> Result<Option<usize>> {
        let mut flag = 0;
        let mut status = RawStatus::new();
        // SAFETY: request, flag and status are writable, and the status has room for any library's.
        let code = unsafe { (self.raw().test)(request, &mut flag, &mut status) };
        self.check("MPI_Test", code)?;
        if flag == 0 {
            return Ok(None);
        }
        // Where these libraries keep the count. One that kept something else there would be asked, as others are.
        let kept = match self.abi() {
            Abi::OpenMpi => Some(status.int(16) as u32 as u64 | (status.int(20) as u32 as u64) << 32),
            Abi::Mpich => Some(status.int(0) as u32 as u64 | ((status.int(4) as u32 >> 1) as u64) << 32),
            Abi::Standard => None,
        };
        Ok(Some(if kept == Some(expected as u64) { expected } else { self.status(&status).bytes }))
    }

    /// Whether a request is complete: as [`Mpi::test`], for those that do not ask about the message.
    #[inline]
    pub fn test_done(&self, request: &mut Handle) -> Result<bool> {
        let mut flag = 0;
        // SAFETY: request and flag are writable.
        let code = unsafe { (self.raw().test)(request, &mut flag, self.status_ignore()) };
        self.check("MPI_Test", code)?;
        Ok(flag != 0)
    }

    /// Waits until a request is complete.
    #[inline]
    pub fn wait(&self, request: &mut Handle) -> Result<Status> {
        let mut status = RawStatus::new();
        // SAFETY: request and status are writable, and the status has room for any library's.
        self.check("MPI_Wait", unsafe { (self.raw().wait)(request, &mut status) })?;
        Ok(self.status(&status))
    }

    /// Whether all requests are complete.
    #[inline]
    pub fn testall(&self, requests: &mut Handles) -> Result<bool> {
        let mut flag = 0;
        let ignore = self.statuses_ignore();
        // SAFETY: the array has the library's layout; the flag is writable.
        let code = unsafe { (self.raw().testall)(requests.count(), requests.as_mut_ptr(), &mut flag, ignore) };
        self.check("MPI_Testall", code)?;
        Ok(flag != 0)
    }

    /// Waits until all requests are complete. An error is `MPI_ERR_IN_STATUS` at best: [`Mpi::waitall_statuses`] tells
    /// which. MPICH returns it only if `MPI_COMM_WORLD` and `MPI_COMM_SELF` return errors, whatever the communicator of
    /// the requests says; the calls on one request do as that communicator says.
    #[inline]
    pub fn waitall(&self, requests: &mut Handles) -> Result<()> {
        // SAFETY: the array has the library's layout.
        let code = unsafe { (self.raw().waitall)(requests.count(), requests.as_mut_ptr(), self.statuses_ignore()) };
        self.check("MPI_Waitall", code)
    }

    /// Waits until all requests are complete, with a status for each: as many as there are requests. An error is that of
    /// the first request that has one.
    pub fn waitall_statuses(&self, requests: &mut Handles, statuses: &mut Statuses) -> Result<()> {
        const FUNCTION: &str = "MPI_Waitall";
        if statuses.len() < requests.len() {
            let message = format!("there are {} statuses for {} requests", statuses.len(), requests.len());
            let code = self.constants().errors.arg;
            return Err(Error::Call { function: FUNCTION, code, class: crate::Class::Arg, message });
        }
        // SAFETY: both arrays have the library's layout and are long enough.
        let code = unsafe { (self.raw().waitall)(requests.count(), requests.as_mut_ptr(), statuses.as_mut_ptr()) };
        if code == self.constants().errors.in_status || self.class(code) == crate::Class::InStatus {
            let errors = (0..requests.len()).map(|index| statuses.get(self, index).error);
            let pending = self.constants().errors.pending;
            if let Some(first) = errors.into_iter().find(|&error| error != 0 && error != pending) {
                return Err(self.failed(FUNCTION, first));
            }
        }
        self.check(FUNCTION, code)
    }

    /// Frees a request, complete or not.
    pub fn request_free(&self, request: &mut Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Request_free", unsafe { (self.raw().request_free)(request) })
    }

    /// Asks for a request to be cancelled; it must be completed nevertheless.
    pub fn cancel(&self, request: &mut Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Cancel", unsafe { (self.raw().cancel)(request) })
    }

    /// What is known of a message that could be received; also a way to let MPI make progress.
    pub fn iprobe(&self, from: i32, tag: i32, comm: Handle) -> Result<Option<Status>> {
        let mut flag = 0;
        let mut status = RawStatus::new();
        // SAFETY: flag and status are writable, and the status has room for any library's.
        let code = unsafe { (self.raw().iprobe)(from, tag, comm, &mut flag, &mut status) };
        self.check("MPI_Iprobe", code)?;
        Ok(if flag != 0 { Some(self.status(&status)) } else { None })
    }

    /// What a library's status says.
    #[inline]
    pub fn status(&self, raw: &RawStatus) -> Status {
        let integers = &self.constants().integers;
        Status {
            source: raw.int(integers.status_source),
            tag: raw.int(integers.status_tag),
            error: raw.int(integers.status_error),
            bytes: self.bytes(raw),
        }
    }

    #[inline]
    fn bytes(&self, raw: &RawStatus) -> usize {
        let byte = self.constants().types.byte;
        let mut count: c_int = 0;
        // SAFETY: the status is the library's or zero, and the count is writable.
        let code = unsafe { (self.raw().get_count)(raw, byte, &mut count) };
        if code == 0 && count >= 0 { count as usize } else { self.very_many_bytes(raw) }
    }

    /// The count of a message that an `int` does not hold, which `MPI_Get_count` says with `MPI_UNDEFINED`; 0 for the
    /// status of a send, where that too may happen.
    #[cold]
    fn very_many_bytes(&self, raw: &RawStatus) -> usize {
        let mut count = 0;
        let Some(get_elements_x) = self.raw().get_elements_x else { return 0 };
        // SAFETY: as for `MPI_Get_count`.
        let code = unsafe { get_elements_x(raw, self.constants().types.byte, &mut count) };
        if code == 0 { usize::try_from(count).unwrap_or_default() } else { 0 }
    }

    /// Calls with the count and the datatype for this many bytes.
    #[inline]
    fn with_count<T>(&self, bytes: usize, call: impl FnOnce(c_int, Handle) -> Result<T>) -> Result<T> {
        let Ok(count) = c_int::try_from(bytes) else {
            return self.with_many(bytes, call);
        };
        call(count, self.constants().types.byte)
    }

    #[cold]
    fn with_many<T>(&self, bytes: usize, call: impl FnOnce(c_int, Handle) -> Result<T>) -> Result<T> {
        let datatype = self.many_bytes(bytes)?;
        let result = call(1, datatype);
        // Communication that is under way keeps the type.
        self.type_free(datatype)?;
        result
    }
}

/// Defines, for one of MPI's functions that begin or prepare a message, the call on any datatype, and the one on a single element
/// of a derived one.
macro_rules! on_datatypes {
    ($($name:literal $function:ident: $of:ident, $typed:ident, $pointer:ty;)*) => {
        impl Mpi {$(
            #[doc = concat!("`", $name, "` of one element of a datatype, which may be freed once this returns.")]
            ///
            /// # Safety
            #[doc = concat!("As for [`Mpi::", stringify!($function), "`], for the bytes that the datatype covers.")]
            pub unsafe fn $typed(
                &self,
                buffer: $pointer,
                datatype: Handle,
                peer: i32,
                tag: i32,
                comm: Handle,
            ) -> Result<Handle> {
                // SAFETY: the caller's promise.
                unsafe { self.$of(buffer, 1, datatype, peer, tag, comm) }
            }

            #[inline]
            unsafe fn $of(
                &self,
                buffer: $pointer,
                count: c_int,
                datatype: Handle,
                peer: i32,
                tag: i32,
                comm: Handle,
            ) -> Result<Handle> {
                self.handle($name, |request| {
                    // SAFETY: the caller vouches for the buffer; the request is writable and zero.
                    unsafe { (self.raw().$function)(buffer.cast(), count, datatype, peer, tag, comm, request) }
                })
            }
        )*}
    };
}

on_datatypes! {
    "MPI_Isend" isend: isend_of, isend_typed, *const u8;
    "MPI_Irecv" irecv: irecv_of, irecv_typed, *mut u8;
    "MPI_Send_init" send_init: send_init_of, send_init_typed, *const u8;
    "MPI_Recv_init" recv_init: recv_init_of, recv_init_typed, *mut u8;
}
