//! Communicators and groups.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::{Abi, DeleteFunction, Handle, Mpi, Result};

/// What two communicators have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// They are one.
    Ident,
    /// The same processes in the same order.
    Congruent,
    /// The same processes in another order.
    Similar,
    /// Other processes.
    Unequal,
}

impl Mpi {
    /// This process' rank.
    pub fn comm_rank(&self, comm: Handle) -> Result<usize> {
        self.integer("MPI_Comm_rank", |rank| {
            // SAFETY: the rank is writable, and the handle is MPI's (see `Handle`).
            unsafe { (self.raw().comm_rank)(comm, rank) }
        })
        .map(|rank| rank as usize)
    }

    /// How many processes there are.
    pub fn comm_size(&self, comm: Handle) -> Result<usize> {
        self.integer("MPI_Comm_size", |size| {
            // SAFETY: the size is writable, and the handle is MPI's (see `Handle`).
            unsafe { (self.raw().comm_size)(comm, size) }
        })
        .map(|size| size as usize)
    }

    /// How many processes there are in the other group of an intercommunicator.
    pub fn comm_remote_size(&self, comm: Handle) -> Result<usize> {
        self.integer("MPI_Comm_remote_size", |size| {
            // SAFETY: the size is writable, and the handle is MPI's (see `Handle`).
            unsafe { (self.raw().comm_remote_size)(comm, size) }
        })
        .map(|size| size as usize)
    }

    /// A communicator of the same processes with its own messages. Collective.
    pub fn comm_dup(&self, comm: Handle) -> Result<Handle> {
        self.handle("MPI_Comm_dup", |new| {
            // SAFETY: the handle is writable and zero.
            unsafe { (self.raw().comm_dup)(comm, new) }
        })
    }

    /// One communicator for each color, in the order of the keys; no color, no communicator. Collective.
    pub fn comm_split(&self, comm: Handle, color: Option<i32>, key: i32) -> Result<Option<Handle>> {
        let color = color.unwrap_or(self.constants().integers.undefined);
        let new = self.handle("MPI_Comm_split", |new| {
            // SAFETY: the handle is writable and zero.
            unsafe { (self.raw().comm_split)(comm, color, key, new) }
        })?;
        Ok((new != self.constants().handles.comm_null).then_some(new))
    }

    /// One communicator for each machine with shared memory, in the order of the keys. Collective.
    pub fn comm_split_shared(&self, comm: Handle, key: i32) -> Result<Handle> {
        let (kind, info) = (self.constants().integers.comm_type_shared, self.constants().handles.info_null);
        self.handle("MPI_Comm_split_type", |new| {
            // SAFETY: the handle is writable and zero.
            unsafe { (self.raw().comm_split_type)(comm, kind, key, info, new) }
        })
    }

    /// Frees a communicator. Collective.
    pub fn comm_free(&self, mut comm: Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Comm_free", unsafe { (self.raw().comm_free)(&mut comm) })
    }

    /// What two communicators have in common.
    pub fn comm_compare(&self, one: Handle, other: Handle) -> Result<Comparison> {
        let result = self.integer("MPI_Comm_compare", |result| {
            // SAFETY: the result is writable.
            unsafe { (self.raw().comm_compare)(one, other, result) }
        })?;
        let integers = &self.constants().integers;
        Ok(match result {
            _ if result == integers.ident => Comparison::Ident,
            _ if result == integers.congruent => Comparison::Congruent,
            _ if result == integers.similar => Comparison::Similar,
            _ => Comparison::Unequal,
        })
    }

    /// Whether the communicator joins two groups.
    pub fn comm_test_inter(&self, comm: Handle) -> Result<bool> {
        self.integer("MPI_Comm_test_inter", |flag| {
            // SAFETY: the flag is writable.
            unsafe { (self.raw().comm_test_inter)(comm, flag) }
        })
        .map(|flag| flag != 0)
    }

    /// Makes the calls on this communicator return their errors, instead of ending the program.
    pub fn comm_errors_return(&self, comm: Handle) -> Result<()> {
        // SAFETY: two handles by value.
        let code = unsafe { (self.raw().comm_set_errhandler)(comm, self.errors_return()) };
        self.check("MPI_Comm_set_errhandler", code)
    }

    /// The highest tag, at least 32767.
    pub fn tag_ub(&self, comm: Handle) -> Result<i32> {
        let mut address: *const c_int = null_mut();
        let mut flag = 0;
        let key = self.constants().integers.tag_ub;
        // SAFETY: the attribute is an address, which the library writes to ours.
        let code = unsafe { (self.raw().comm_get_attr)(comm, key, (&raw mut address).cast::<c_void>(), &mut flag) };
        self.check("MPI_Comm_get_attr", code)?;
        // SAFETY: a predefined attribute's address is that of an integer which lives as long as MPI.
        Ok(if flag != 0 && !address.is_null() { unsafe { *address } } else { 32767 })
    }

    /// The group of a communicator, to be freed with [`Mpi::group_free`].
    pub fn comm_group(&self, comm: Handle) -> Result<Handle> {
        self.handle("MPI_Comm_group", |group| {
            // SAFETY: the handle is writable and zero.
            unsafe { (self.raw().comm_group)(comm, group) }
        })
    }

    /// The processes of a group with these ranks in it, in this order; to be freed with [`Mpi::group_free`].
    pub fn group_incl(&self, group: Handle, ranks: &[i32]) -> Result<Handle> {
        let count = self.count("MPI_Group_incl", ranks.len())?;
        self.handle("MPI_Group_incl", |new| {
            // SAFETY: the array has this many elements; the handle is writable and zero.
            unsafe { (self.raw().group_incl)(group, count, ranks.as_ptr(), new) }
        })
    }

    /// A communicator of a group of a communicator's processes. Collective over the group; calls of several threads at once need
    /// different tags.
    pub fn comm_create_group(&self, comm: Handle, group: Handle, tag: i32) -> Result<Handle> {
        const NAME: &str = "MPI_Comm_create_group";
        let create = self.raw().comm_create_group.ok_or_else(|| self.lacks(NAME))?;
        self.handle(NAME, |new| {
            // SAFETY: the handle is writable and zero.
            unsafe { create(comm, group, tag, new) }
        })
    }

    /// Frees a group.
    pub fn group_free(&self, mut group: Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Group_free", unsafe { (self.raw().group_free)(&mut group) })
    }

    /// The ranks that processes of one communicator have in another; none if some of them are not in it.
    pub fn translate_ranks(&self, from: Handle, ranks: &[i32], to: Handle) -> Result<Option<Vec<usize>>> {
        let from = self.comm_group(from)?;
        let result = self.comm_group(to).and_then(|to| {
            let result = self.group_translate_ranks(from, ranks, to);
            self.group_free(to)?;
            result
        });
        self.group_free(from)?;
        result
    }

    /// The ranks that processes of one group have in another; none if some of them are not in it.
    pub fn group_translate_ranks(&self, from: Handle, ranks: &[i32], to: Handle) -> Result<Option<Vec<usize>>> {
        let mut there = vec![0; ranks.len()];
        let count = self.count("MPI_Group_translate_ranks", ranks.len())?;
        // SAFETY: both arrays have this many elements.
        let code = unsafe { (self.raw().group_translate_ranks)(from, count, ranks.as_ptr(), to, there.as_mut_ptr()) };
        self.check("MPI_Group_translate_ranks", code)?;
        let undefined = self.constants().integers.undefined;
        let all_there = there.iter().all(|&rank| rank != undefined);
        Ok(all_there.then(|| there.iter().map(|&rank| rank as usize).collect()))
    }

    /// A key for attributes of communicators that a duplicate does not get; `gone` is called when one is deleted, be it with its
    /// communicator.
    ///
    /// # Safety
    /// The function can be called then, with whatever it is given.
    pub unsafe fn comm_keyval(&self, gone: DeleteFunction) -> Result<c_int> {
        self.integer("MPI_Comm_create_keyval", |key| {
            // SAFETY: the key is writable, and both functions have the types that MPI calls.
            unsafe { (self.raw().comm_create_keyval)(not_copied, gone, key, null_mut()) }
        })
    }

    /// Lets `gone` be called at the beginning of `MPI_Finalize`, before anything of MPI ends.
    ///
    /// # Safety
    /// The function can be called then, with whatever it is given.
    pub unsafe fn at_finalize(&self, gone: DeleteFunction) -> Result<()> {
        // SAFETY: the caller's promise.
        let key = unsafe { self.comm_keyval(gone)? };
        // Any value but null, which might mean that there is none.
        let value = std::ptr::dangling_mut::<c_void>();
        // SAFETY: handle and key are MPI's; it deletes the attributes of this communicator first.
        self.check("MPI_Comm_set_attr", unsafe { (self.raw().comm_set_attr)(self.comm_self(), key, value) })
    }

    /// The communicator's Fortran handle, if the library tells.
    pub fn comm_c2f(&self, comm: Handle) -> Option<i32> {
        match self.raw().comm_c2f {
            // SAFETY: a handle by value.
            Some(comm_c2f) => Some(unsafe { comm_c2f(comm) }),
            // The two are the same integer in MPICH's interface, whose header has a macro for it.
            None => (self.abi() == Abi::Mpich).then_some(comm as u32 as i32),
        }
    }

    /// The communicator of a Fortran handle, if the library tells.
    pub fn comm_f2c(&self, comm: i32) -> Option<Handle> {
        match self.raw().comm_f2c {
            // SAFETY: an integer by value; the upper half of a narrow result is cleared.
            Some(comm_f2c) => Some(self.abi().handle(unsafe { comm_f2c(comm) })),
            None => (self.abi() == Abi::Mpich).then_some(comm as u32 as Handle),
        }
    }

    /// The handle that a call writes.
    #[inline]
    pub(crate) fn handle(&self, function: &'static str, call: impl FnOnce(*mut Handle) -> c_int) -> Result<Handle> {
        let mut handle = 0;
        let code = call(&mut handle);
        self.check(function, code)?;
        Ok(handle)
    }

    /// The integer that a call writes.
    pub(crate) fn integer(&self, function: &'static str, call: impl FnOnce(*mut c_int) -> c_int) -> Result<c_int> {
        let mut integer = 0;
        let code = call(&mut integer);
        self.check(function, code)?;
        Ok(integer)
    }
}

/// Of attributes that a duplicate does not get.
pub(crate) unsafe extern "C" fn not_copied(
    _: Handle,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives the address of an integer.
    unsafe { *copied = 0 };
    0
}
