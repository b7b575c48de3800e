//! Which binary interface a library speaks.

use std::ffi::c_void;
use std::fmt;

/// Any MPI handle (communicator, datatype, operation, request, group, ...) of any of the interfaces; see the
/// [crate's documentation](crate) for why this works.
///
/// Every call of [`Mpi`](crate::Mpi) takes handles that the same MPI has given and that are not freed, as in C: where they
/// are addresses, as in Open MPI, the library follows them. The type cannot tell, so that handles of a program's own MPI
/// calls can be used as they are; calls are marked unsafe for their buffers, not for their handles.
pub type Handle = usize;

/// The binary interfaces that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abi {
    /// The interface of the MPI 5 standard: `libmpi_abi.so`.
    Standard,
    /// MPICH's, which Intel MPI, MVAPICH and Cray MPICH share: `libmpi.so.12`.
    Mpich,
    /// Open MPI's since its version 3: `libmpi.so.40`.
    OpenMpi,
}

impl Abi {
    /// All of them.
    pub const ALL: [Abi; 3] = [Abi::Standard, Abi::Mpich, Abi::OpenMpi];

    /// How many bytes a handle has in this interface's arrays.
    #[inline]
    pub const fn handle_bytes(self) -> usize {
        match self {
            Abi::Standard | Abi::OpenMpi => 8,
            Abi::Mpich => 4,
        }
    }

    /// The handle in a register or word whose upper half may hold anything.
    #[inline]
    pub const fn handle(self, word: usize) -> Handle {
        match self {
            Abi::Standard | Abi::OpenMpi => word,
            Abi::Mpich => word & 0xffff_ffff,
        }
    }

    /// The handle at an address, such as the datatype that a callback of a user's operation is given.
    ///
    /// # Safety
    /// `address` must point to a handle of this interface, aligned for it.
    #[inline]
    pub unsafe fn read_handle(self, address: *const c_void) -> Handle {
        match self {
            // SAFETY: the caller vouches for a handle, which has 8 bytes in these interfaces.
            Abi::Standard | Abi::OpenMpi => unsafe { address.cast::<usize>().read() },
            // SAFETY: the caller vouches for a handle, which has 4 bytes in this one.
            Abi::Mpich => unsafe { address.cast::<u32>().read() as usize },
        }
    }

    /// Writes a handle to an address, with as many bytes as the interface's handles have.
    ///
    /// # Safety
    /// `address` must point to a writable handle of this interface, aligned for it.
    #[inline]
    pub unsafe fn write_handle(self, address: *mut c_void, handle: Handle) {
        match self {
            // SAFETY: the caller vouches for a handle, which has 8 bytes in these interfaces.
            Abi::Standard | Abi::OpenMpi => unsafe { address.cast::<usize>().write(handle) },
            // SAFETY: the caller vouches for a handle, which has 4 bytes in this one; the upper half is zero.
            Abi::Mpich => unsafe { address.cast::<u32>().write(handle as u32) },
        }
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abi::Standard => "the standard ABI",
            Abi::Mpich => "MPICH's ABI",
            Abi::OpenMpi => "Open MPI's ABI",
        })
    }
}

/// What the file name and the symbols of a library say about its interface. `has` tells whether a symbol is there.
///
/// The name comes first: a standard library exports much of what its native sibling does. Open MPI's symbol comes before
/// MPICH's names, for Open MPI 1.10 was a `libmpi.so.12` too.
pub(crate) fn detect(file_name: &str, has: impl Fn(&std::ffi::CStr) -> bool) -> Option<Abi> {
    if file_name.starts_with("libmpi_abi.so") {
        return Some(Abi::Standard);
    }
    let major = file_name.strip_prefix("libmpi.so.").map(|rest| rest.split('.').next().unwrap_or(rest));
    if has(c"ompi_mpi_comm_world") {
        return matches!(major, None | Some("40")).then_some(Abi::OpenMpi);
    }
    // Every MPICH's header defines MPI_DUP_FN as this function, so every library of the family exports it.
    (matches!(major, None | Some("12")) && has(c"MPIR_Dup_fn")).then_some(Abi::Mpich)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[&str] = &[];

    fn found(file: &str, symbols: &[&str]) -> Option<Abi> {
        detect(file, |name| symbols.contains(&name.to_str().unwrap_or_default()))
    }

    #[test]
    fn the_file_name_tells_the_standard_abi_and_symbols_the_others() {
        assert_eq!(found("libmpi_abi.so.1", &["MPIR_Dup_fn"]), Some(Abi::Standard));
        assert_eq!(found("libmpi_abi.so.0", NONE), Some(Abi::Standard));
        assert_eq!(found("libmpi.so.40.40.7", &["ompi_mpi_comm_world"]), Some(Abi::OpenMpi));
        assert_eq!(found("libmpi.so.12.3.1", &["MPIR_Dup_fn"]), Some(Abi::Mpich));
        assert_eq!(found("libmpich.so.12", &["MPIR_Dup_fn"]), Some(Abi::Mpich));
        assert_eq!(found("libmpi_cray.so.12", &["MPIR_Dup_fn"]), Some(Abi::Mpich));
        assert_eq!(found("a.out", &["ompi_mpi_comm_world"]), Some(Abi::OpenMpi));
    }

    #[test]
    fn libraries_of_other_times_are_not_taken_for_what_they_are_not() {
        assert_eq!(found("libmpi.so.20", &["ompi_mpi_comm_world"]), None);
        assert_eq!(found("libmpi.so.12", &["ompi_mpi_comm_world"]), None, "Open MPI 1.10");
        assert_eq!(found("libmpi.so.99", NONE), None);
        assert_eq!(found("libmpi.so.12", NONE), None);
    }

    #[test]
    fn narrow_handles_are_read_and_written_without_their_neighbours() {
        let mut words = [0xdead_beef_u32, 0x4400_0000, 0xdead_beef];
        let address = (&raw mut words[1]).cast();
        // SAFETY: the address is that of a 4-byte handle.
        unsafe {
            assert_eq!(Abi::Mpich.read_handle(address), 0x4400_0000);
            Abi::Mpich.write_handle(address, 0x8c00_0001);
        }
        assert_eq!(words, [0xdead_beef, 0x8c00_0001, 0xdead_beef]);
        assert_eq!(Abi::Mpich.handle(0xffff_ffff_8c00_0001), 0x8c00_0001);
        assert_eq!(Abi::OpenMpi.handle(usize::MAX), usize::MAX);
    }
}
