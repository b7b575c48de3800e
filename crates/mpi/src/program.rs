//! MPI as a program calls it: by names, which a library before the MPI may have taken.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::library::global_symbol;
use crate::{Error, Handle, Mpi, Result};

type Init = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type Allreduce = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int;

/// What a small program calls. Functions of [`Mpi`] are the library's own; these are the ones that a program without a word about
/// us would reach.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    mpi: &'static Mpi,
    init: Init,
    finalize: Finalize,
    allreduce: Allreduce,
}

impl Program {
    /// By the names that this process sees.
    pub fn new(mpi: &'static Mpi) -> Result<Program> {
        // SAFETY: whoever has MPI's names has MPI's C signatures; handles are passed as the crate's documentation says.
        unsafe {
            Ok(Program {
                mpi,
                init: std::mem::transmute::<*mut c_void, Init>(named(mpi, c"MPI_Init")?),
                finalize: std::mem::transmute::<*mut c_void, Finalize>(named(mpi, c"MPI_Finalize")?),
                allreduce: std::mem::transmute::<*mut c_void, Allreduce>(named(mpi, c"MPI_Allreduce")?),
            })
        }
    }

    /// `MPI_Init`
    pub fn init(&self) -> Result<()> {
        // SAFETY: null is allowed for both since MPI-2.
        self.mpi.check("MPI_Init", unsafe { (self.init)(null_mut(), null_mut()) })
    }

    /// `MPI_Allreduce` of as many words on every rank, on the world: their sums.
    pub fn sum(&self, mine: &[u64]) -> Result<Vec<u64>> {
        let (mut sums, constants) = (vec![0; mine.len()], self.mpi.constants());
        let count = c_int::try_from(mine.len()).unwrap_or(c_int::MAX);
        // SAFETY: both have at least so many words.
        let code = unsafe {
            let (from, to) = (mine.as_ptr().cast(), sums.as_mut_ptr().cast());
            (self.allreduce)(from, to, count, constants.types.uint64_t, constants.ops.sum, self.mpi.world())
        };
        self.mpi.check("MPI_Allreduce", code).map(|()| sums)
    }

    /// `MPI_Finalize`
    pub fn finalize(&self) -> Result<()> {
        // SAFETY: no arguments.
        self.mpi.check("MPI_Finalize", unsafe { (self.finalize)() })
    }
}

fn named(mpi: &Mpi, name: &CStr) -> Result<*mut c_void> {
    let address = global_symbol(name);
    let missing = || Error::MissingSymbol { path: mpi.path().into(), symbol: name.to_string_lossy().into_owned() };
    (!address.is_null()).then_some(address).ok_or_else(missing)
}
