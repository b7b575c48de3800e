//! Derived datatypes and users' operations.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::communicators::not_copied;
use crate::{DeleteFunction, Error, Handle, Handles, Mpi, Result};

/// The function of a user's operation: input, input and output, address of the count, address of the datatype (which
/// [`Abi::read_handle`](crate::Abi::read_handle) reads).
pub type UserFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut c_void);

/// Messages of more bytes than an `int` counts are made of blocks of this size and a rest.
const BLOCK: usize = 1 << 20;

impl Mpi {
    /// `count` elements of a type, side by side.
    pub fn type_contiguous(&self, count: usize, element: Handle) -> Result<Handle> {
        let count = self.count("MPI_Type_contiguous", count)?;
        self.handle("MPI_Type_contiguous", |new| {
            // SAFETY: the handle is writable and zero.
            unsafe { (self.raw().type_contiguous)(count, element, new) }
        })
    }

    /// Blocks of `lengths` elements at `offsets` bytes; the arrays must be equally long.
    pub fn type_create_hindexed(&self, lengths: &[i32], offsets: &[isize], element: Handle) -> Result<Handle> {
        let count = self.equal_lengths("MPI_Type_create_hindexed", lengths.len(), offsets.len())?;
        self.handle("MPI_Type_create_hindexed", |new| {
            // SAFETY: both arrays have `count` elements; the handle is writable and zero.
            unsafe { (self.raw().type_create_hindexed)(count, lengths.as_ptr(), offsets.as_ptr(), element, new) }
        })
    }

    /// Blocks of `lengths` elements at `offsets` bytes, each of its own type; the arrays must be equally long.
    pub fn type_create_struct(&self, lengths: &[i32], offsets: &[isize], elements: &[Handle]) -> Result<Handle> {
        self.equal_lengths("MPI_Type_create_struct", lengths.len(), elements.len())?;
        let count = self.equal_lengths("MPI_Type_create_struct", lengths.len(), offsets.len())?;
        let mut types = Handles::filled(self.abi(), elements.len(), self.constants().handles.datatype_null);
        elements.iter().enumerate().for_each(|(index, &element)| types.set(index, element));
        let types = types.as_ptr().cast();
        self.handle("MPI_Type_create_struct", |new| {
            // SAFETY: the three arrays have `count` elements; the handle is writable and zero.
            unsafe { (self.raw().type_create_struct)(count, lengths.as_ptr(), offsets.as_ptr(), types, new) }
        })
    }

    /// Makes a type ready for messages.
    pub fn type_commit(&self, mut datatype: Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Type_commit", unsafe { (self.raw().type_commit)(&mut datatype) })
    }

    /// Frees a type; communication that is under way keeps it.
    pub fn type_free(&self, mut datatype: Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Type_free", unsafe { (self.raw().type_free)(&mut datatype) })
    }

    /// A key for attributes of datatypes that a duplicate does not get; `gone` is called when one is deleted, be it with its datatype.
    ///
    /// # Safety
    /// The function can be called then, with whatever it is given.
    pub unsafe fn type_keyval(&self, gone: DeleteFunction) -> Result<c_int> {
        self.integer("MPI_Type_create_keyval", |key| {
            // SAFETY: the key is writable, and both functions have the types that MPI calls.
            unsafe { (self.raw().type_create_keyval)(not_copied, gone, key, null_mut()) }
        })
    }

    /// Gives a type an attribute, of which only its end matters.
    pub fn mark_type(&self, datatype: Handle, key: c_int) -> Result<()> {
        // Any value but null, which might mean that there is none.
        let value = std::ptr::dangling_mut::<c_void>();
        // SAFETY: handle and key are MPI's.
        self.check("MPI_Type_set_attr", unsafe { (self.raw().type_set_attr)(datatype, key, value) })
    }

    /// How many bytes of data a type has.
    pub fn type_size(&self, datatype: Handle) -> Result<usize> {
        self.integer("MPI_Type_size", |size| {
            // SAFETY: the size is writable.
            unsafe { (self.raw().type_size)(datatype, size) }
        })
        .map(|size| usize::try_from(size).unwrap_or_default())
    }

    /// `MPI_Type_size_x`: the bytes of one element of any datatype, also of one whose bytes an `int` cannot count.
    pub fn type_size_x(&self, datatype: Handle) -> Result<usize> {
        if let Some(type_size_x) = self.raw().type_size_x {
            let mut size = 0;
            // SAFETY: the size is writable.
            self.check("MPI_Type_size_x", unsafe { type_size_x(datatype, &mut size) })?;
            return Ok(usize::try_from(size).unwrap_or_default());
        }
        self.type_size(datatype)
    }

    /// Lower bound and extent of a type, in bytes.
    pub fn type_extent(&self, datatype: Handle) -> Result<(isize, isize)> {
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: both numbers are writable.
        let code = unsafe { (self.raw().type_get_extent)(datatype, &mut lower, &mut extent) };
        self.check("MPI_Type_get_extent", code)?;
        Ok((lower, extent))
    }

    /// Where the data of a type begin and how far they reach, in bytes, whatever its bounds say.
    pub fn type_true_extent(&self, datatype: Handle) -> Result<(isize, isize)> {
        let (mut lower, mut extent) = (0, 0);
        // SAFETY: both numbers are writable.
        let code = unsafe { (self.raw().type_get_true_extent)(datatype, &mut lower, &mut extent) };
        self.check("MPI_Type_get_true_extent", code)?;
        Ok((lower, extent))
    }

    /// An operation of one's own.
    ///
    /// # Safety
    /// The function must do what MPI asks of it: combine as many elements as the count says, of the type that is said.
    pub unsafe fn op_create(&self, function: UserFunction, commutes: bool) -> Result<Handle> {
        self.handle("MPI_Op_create", |new| {
            // SAFETY: the caller vouches for the function; the handle is writable and zero.
            unsafe { (self.raw().op_create)(function, commutes.into(), new) }
        })
    }

    /// Frees an operation of one's own.
    pub fn op_free(&self, mut op: Handle) -> Result<()> {
        // SAFETY: the handle is writable.
        self.check("MPI_Op_free", unsafe { (self.raw().op_free)(&mut op) })
    }

    /// Whether operands of an operation may be exchanged.
    pub fn op_commutative(&self, op: Handle) -> Result<bool> {
        self.integer("MPI_Op_commutative", |answer| {
            // SAFETY: the answer is writable.
            unsafe { (self.raw().op_commutative)(op, answer) }
        })
        .map(|answer| answer != 0)
    }

    /// A committed type of this many bytes, more than an `int` counts.
    ///
    /// It serves in place of the `_c` functions, which Open MPI 5.0 does not have, and is made of bytes, as the other
    /// side's may be counted otherwise.
    pub(crate) fn many_bytes(&self, bytes: usize) -> Result<Handle> {
        let byte = self.constants().types.byte;
        let blocks = i32::try_from(bytes / BLOCK)
            .map_err(|_| Error::TooLarge { function: "MPI_Type_create_struct", count: bytes })?;
        let rest = (bytes % BLOCK) as i32;
        let block = self.type_contiguous(BLOCK, byte)?;
        let all = self.type_create_struct(&[blocks, rest], &[0, (bytes - rest as usize) as isize], &[block, byte]);
        self.type_free(block)?;
        let all = all?;
        self.type_commit(all)?;
        Ok(all)
    }

    /// A count as MPI's `int`.
    #[inline]
    pub(crate) fn count(&self, function: &'static str, count: usize) -> Result<c_int> {
        c_int::try_from(count).map_err(|_| Error::TooLarge { function, count })
    }

    fn equal_lengths(&self, function: &'static str, one: usize, other: usize) -> Result<c_int> {
        if one != other {
            let message = format!("its arrays have {one} and {other} elements, but must have equally many");
            return Err(Error::Call { function, code: self.constants().errors.arg, class: crate::Class::Arg, message });
        }
        self.count(function, one)
    }
}
