//! Datatypes that the program has made: what is known of one is kept until it is freed.
//!
//! Many are the bytes of their elements one after the other: vectors of three doubles, structures without gaps. Such memory is used as
//! it is, like that of a predefined type, where MPI would have to pack it first. That a type is so is proved, once, by packing bytes
//! that say where they are. It is a rank's own affair: what travels is the same either way.
//!
//! A freed type's handle may mean another one later. So what is kept hangs on an attribute of the type: MPI deletes it with
//! the type, whichever way that is freed, and says so before the handle can be used again. A type is looked at closely when it
//! is seen for the second time, because some programs make one for each call.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use allhands_mpi::{Handle, Mpi};

use crate::datatype::Datatype;
use crate::failure::{Reason, Unserved};
use crate::layout::Layout;
use crate::locks::lock;

/// What is known of a type.
#[derive(Clone, Copy)]
enum Known {
    /// It was seen once: a handle that may mean another type by now.
    Seen,
    /// MPI says when it is gone.
    Kept(Datatype),
}

static KNOWN: Mutex<BTreeMap<Handle, Known>> = Mutex::new(BTreeMap::new());
/// How many of those that were kept are gone.
static GONE: AtomicU64 = AtomicU64::new(0);

/// Handles that were only seen are forgotten where there are so many.
const MOST: usize = 1024;
/// Longer elements are packed by the MPI, whatever they are.
const LONGEST: usize = 1 << 20;

/// How many types that were known are gone: as long as nothing is added, what follows from their handles stays true.
#[inline]
pub fn gone() -> u64 {
    GONE.load(Ordering::Acquire)
}

/// Whether [`gone`] will say when a type is gone.
pub fn is_kept(datatype: Handle) -> bool {
    matches!(lock(&KNOWN).get(&datatype), Some(Known::Kept(_)))
}

/// A type that is not predefined.
pub(crate) fn of(mpi: &'static Mpi, handle: Handle) -> Result<Datatype, Unserved> {
    let known = lock(&KNOWN).get(&handle).copied();
    if let Some(Known::Kept(datatype)) = known {
        return Ok(datatype);
    }
    let mut datatype = asked(mpi, handle)?;
    // Nothing of MPI's is called while the lock is held: MPI may say at any time that a type is gone.
    let kept = known.is_some() && marked(mpi, handle);
    if kept {
        datatype.dense = is_dense(mpi, &datatype)?;
    }
    let mut all = lock(&KNOWN);
    if !kept && all.len() >= MOST {
        all.retain(|_, known| matches!(known, Known::Kept(_)));
    }
    all.insert(handle, if kept { Known::Kept(datatype) } else { Known::Seen });
    Ok(datatype)
}

/// What the MPI says of a type.
fn asked(mpi: &Mpi, handle: Handle) -> Result<Datatype, Unserved> {
    if handle == mpi.constants().handles.datatype_null {
        return Err(Reason::Refused.into());
    }
    let mut size = 0;
    // SAFETY: the program's handle, and the size is writable.
    if unsafe { (mpi.raw().type_size)(handle, &mut size) } != 0 {
        return Err(Reason::Refused.into());
    }
    // More bytes than an `int` counts are said to be `MPI_UNDEFINED`.
    let size = usize::try_from(size).or_else(|_| mpi.type_size_x(handle))?;
    let (_, extent) = mpi.type_extent(handle)?;
    Ok(Datatype { handle, size, extent, dense: false })
}

/// Sees to it that MPI says when a type is gone.
fn marked(mpi: &Mpi, handle: Handle) -> bool {
    static KEY: OnceLock<Option<c_int>> = OnceLock::new();
    // SAFETY: the function does what MPI asks of it, at any time.
    let key = *KEY.get_or_init(|| unsafe { mpi.type_keyval(freed) }.ok());
    key.is_some_and(|key| mpi.mark_type(handle, key).is_ok())
}

/// A type with our attribute is freed. MPI may hold locks of its own: nothing of it is called.
unsafe extern "C" fn freed(datatype: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    if let Ok(mpi) = allhands_mpi::load() {
        GONE.fetch_add(1, Ordering::AcqRel);
        lock(&KNOWN).remove(&mpi.abi().handle(datatype));
    }
    0
}

/// Whether the data of elements are all their bytes, in the order in which they lie.
fn is_dense(mpi: &Mpi, datatype: &Datatype) -> Result<bool, Unserved> {
    let Datatype { handle, size, extent, .. } = *datatype;
    let (lower, _) = mpi.type_extent(handle)?;
    let together = lower == 0 && Layout::of(mpi, handle, extent)?.together(size);
    if !together || !(1..=LONGEST).contains(&size) {
        return Ok(false);
    }
    // The digits of every byte's place, one after the other: if all come out as they went in, every byte is where it was.
    let digits = size.ilog2() / 8 + 1;
    for digit in 0..digits {
        let places: Vec<u8> = (0..size).map(|place| (place >> (8 * digit)) as u8).collect();
        let mut packed = vec![0u8; size];
        // SAFETY: one element lies in as many bytes from the first one on, and there is room for its data.
        let code = unsafe {
            let (from, to) = (places.as_ptr().cast(), packed.as_mut_ptr().cast());
            (mpi.raw().pack)(from, 1, handle, to, size as c_int, &mut 0, mpi.comm_self())
        };
        mpi.check("MPI_Pack", code)?;
        if packed != places {
            return Ok(false);
        }
    }
    Ok(true)
}
