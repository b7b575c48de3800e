//! What a call says, in words: which function, root, amount and operation. Ranks whose words are the same have called the same.
//!
//! Words are made from the arguments alone, before anybody decides who serves the call, and also from arguments that MPI refuses.

use std::cell::OnceCell;

use allhands_mpi::Handle;

use crate::datatype::Datatype;
use crate::numbers::Numbers;
use crate::types::Types;

/// What the arguments of a call say; noted while they are read, if somebody wants to know.
#[derive(Default)]
pub struct CallDescription {
    /// Between the parentheses.
    arguments: OnceCell<String>,
    /// Where ranks know their own counts only: bytes for each rank, and from each.
    pub exchanged: OnceCell<(Vec<u64>, Vec<u64>)>,
}

/// More counts than this are not written out one by one.
const WRITTEN: usize = 8;

impl CallDescription {
    pub(crate) fn note(&self, arguments: &[Option<String>]) {
        let known: Vec<&str> = arguments.iter().flatten().map(String::as_str).collect();
        let _ = self.arguments.set(known.join(", "));
    }

    /// Blocks to or from a root: of those that a rank gives and gets, all have the same bytes.
    pub(crate) fn note_rooted(&self, root: i32, gives: Option<String>, gets: Option<String>) {
        let (block, other) = match (gives, gets) {
            (Some(gives), Some(gets)) => (Some(gets.clone()), Some(gives).filter(|gives| *gives != gets)),
            (gives, gets) => (gives.or(gets), None),
        };
        self.note(&[Some(format!("root {root}")), other.map(|gives| format!("sends {gives}")), block]);
    }

    /// Blocks whose bytes a rank knows of its own only; none where MPI refuses them.
    pub(crate) fn note_exchange(&self, given: Option<Vec<i128>>, expected: Option<Vec<i128>>, root: Option<i32>) {
        let unsigned = |each: Vec<i128>| each.into_iter().map(|bytes| u64::try_from(bytes).ok()).collect();
        let both = given.and_then(unsigned).zip(expected.and_then(unsigned));
        let refused = both.is_none().then(|| "counts that MPI refuses".into());
        self.note(&[root.map(|root| format!("root {root}")), refused]);
        let _ = both.map(|both| self.exchanged.set(both));
    }

    /// The call that these are the arguments of, such as `MPI_Reduce(root 1, 4 x double, sum)`. A function with large counts is the one without.
    pub fn words(&self, function: &str, refused: bool) -> String {
        let function = function.strip_suffix("_c").unwrap_or(function);
        let arguments = self.arguments.get().map_or("", String::as_str);
        let refused = match (refused, arguments) {
            (false, _) => "",
            (true, "") => "an argument that MPI refuses",
            (true, _) => ", an argument that MPI refuses",
        };
        format!("{function}({arguments}{refused})")
    }
}

impl Types {
    /// A part of what is moved: bytes, as types of other names may have the same.
    pub(crate) fn bytes_said(&self, number: i64, datatype: Handle) -> String {
        match Datatype::of(self, self.mpi().abi().handle(datatype)) {
            Ok(datatype) => format!("{} bytes", i128::from(number) * datatype.size as i128),
            Err(_) => format!("{number} of a datatype that MPI refuses"),
        }
    }

    /// The bytes of a part of what is moved; none if MPI refuses the datatype.
    pub(crate) fn size_said(&self, number: i64, datatype: Handle) -> Option<i128> {
        let datatype = Datatype::of(self, self.mpi().abi().handle(datatype)).ok()?;
        Some(i128::from(number) * datatype.size as i128)
    }

    /// The bytes of parts of what is moved; none if they cannot be read.
    ///
    /// # Safety
    /// There are so many numbers.
    pub(crate) unsafe fn each_said(&self, numbers: Numbers, ranks: usize, datatype: Handle) -> Option<Vec<i128>> {
        let size = Datatype::of(self, self.mpi().abi().handle(datatype)).ok()?.size;
        // SAFETY: the caller's promise.
        let numbers = unsafe { numbers.read(ranks) }.ok()?;
        Some(numbers.into_iter().map(|number| i128::from(number) * size as i128).collect())
    }

    /// `double`, in a reduction.
    pub(crate) fn element_said(&self, datatype: Handle) -> String {
        let handle = self.mpi().abi().handle(datatype);
        let name = self.basic(handle).and_then(|basic| basic.name());
        match (name, Datatype::of(self, handle)) {
            (Some(name), _) => name.into(),
            (None, Ok(datatype)) => format!("{}-byte element", datatype.size),
            (None, Err(_)) => "a datatype that MPI refuses".into(),
        }
    }

    /// `sum`
    pub(crate) fn operation_said(&self, op: Handle) -> String {
        let operation = self.operation(self.mpi().abi().handle(op));
        operation.map_or("an operation of the user's".into(), |operation| operation.name().into())
    }
}

/// Counts: all of them, or the first ones and a number that tells the others.
pub(crate) fn list(counts: &[i128]) -> String {
    let written: Vec<String> = counts.iter().take(WRITTEN).map(ToString::to_string).collect();
    let written = written.join("+");
    if counts.len() <= WRITTEN {
        return written;
    }
    let sum: i128 = counts.iter().sum();
    let bytes = counts.iter().flat_map(|count| count.to_le_bytes());
    format!("{written}+... = {sum} in {} blocks (#{:08x})", counts.len(), allhands_schedule::hash(bytes) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_phrase() {
        let said = CallDescription::default();
        said.note(&[Some("root 1".into()), None, Some("4 x double".into()), Some("sum".into())]);
        assert_eq!(said.words("MPI_Reduce", false), "MPI_Reduce(root 1, 4 x double, sum)");
        assert_eq!(said.words("MPI_Reduce_c", false), said.words("MPI_Reduce", false));
        let refused = said.words("MPI_Reduce", true);
        assert_eq!(refused, "MPI_Reduce(root 1, 4 x double, sum, an argument that MPI refuses)");
        assert_eq!(CallDescription::default().words("MPI_Barrier", false), "MPI_Barrier()");
    }

    #[test]
    fn long_lists_are_told_apart_by_a_number() {
        assert_eq!(list(&[1, 2, 3]), "1+2+3");
        let (mut one, mut other) = ([4; 20], [4; 20]);
        (one[18], other[19]) = (5, 5);
        let (one, other) = (list(&one), list(&other));
        assert!(one.starts_with("4+4+4+4+4+4+4+4+... = 81 in 20 blocks (#"), "{one}");
        assert_ne!(one, other);
    }
}
