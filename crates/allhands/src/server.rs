//! Who serves a call.

use std::fmt;

use allhands_schedule::{Choice, Collective, Result, Written};

/// Who serves a call: a schedule of ours, one that somebody wrote, or the MPI library.
///
/// ```
/// use allhands::Server;
/// use allhands_schedule::Collective;
/// let server = Server::parse(Collective::Bcast, "cyclic-shift:radix=4")?;
/// assert_eq!(server.choice().unwrap().algorithm.name, "cyclic-shift");
/// assert_eq!(Server::parse(Collective::Bcast, "mpi")?, Server::Library);
/// assert_eq!(Server::parse(Collective::Bcast, "@mine.txt")?, Server::Written("mine.txt".into()));
/// assert_eq!(server.to_string(), "cyclic-shift:radix=4");
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    /// An algorithm of ours, with its parameters.
    Schedule(Choice),
    /// The schedule in a file; `-` is the standard input.
    Written(String),
    /// The MPI library's own collective.
    Library,
}

/// The name that the MPI library goes by among algorithms.
const LIBRARY: &str = "mpi";

impl Server {
    /// Reads an algorithm of a collective as `allhands list` names it, with or without parameters; `mpi` is the MPI library, and `@FILE` the
    /// schedule that a file holds.
    pub fn parse(collective: Collective, text: &str) -> Result<Server> {
        match text {
            LIBRARY => Ok(Server::Library),
            _ => match Written::file_of(text) {
                Some(file) => Ok(Server::Written(file.into())),
                None => Choice::parse(collective, text).map(Server::Schedule),
            },
        }
    }

    /// The file of a schedule, if it is one.
    ///
    /// ```
    /// use allhands::Server;
    /// use allhands_schedule::Collective;
    /// assert_eq!(Server::parse(Collective::Allreduce, "@mine.txt")?.file(), Some("mine.txt"));
    /// # Ok::<(), allhands_schedule::Error>(())
    /// ```
    pub fn file(&self) -> Option<&str> {
        match self {
            Server::Written(file) => Some(file),
            Server::Schedule(_) | Server::Library => None,
        }
    }

    /// The algorithm, if it is one of ours.
    pub fn choice(&self) -> Option<&Choice> {
        match self {
            Server::Schedule(choice) => Some(choice),
            Server::Written(_) | Server::Library => None,
        }
    }
}

/// As it is read.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::Schedule(choice) => choice.fmt(f),
            Server::Written(file) => write!(f, "@{file}"),
            Server::Library => f.write_str(LIBRARY),
        }
    }
}
