//! `ALLHANDS_LOG`: one line for each decision, on the standard error or in a file.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use crate::switch::switched;

/// Where lines go.
enum Sink {
    Error,
    File(File),
}

/// Where the user wants them: switched on, the standard error; what is no switch is a file, to which they are appended.
fn sink() -> Option<&'static Sink> {
    static SINK: OnceLock<Option<Sink>> = OnceLock::new();
    let open = || match std::env::var("ALLHANDS_LOG").ok()?.as_str() {
        "" => None,
        word if switched(word) == Some(false) => None,
        word if switched(word) == Some(true) => Some(Sink::Error),
        path => match File::options().append(true).create(true).open(path) {
            Ok(file) => Some(Sink::File(file)),
            Err(error) => {
                say(format_args!("{path} cannot be written: {error}; name another file in ALLHANDS_LOG, or 1"));
                None
            }
        },
    };
    SINK.get_or_init(open).as_ref()
}

/// One line on the standard error, whoever is the rank: in one write, so that lines of several processes stay apart. With the standard error gone there is
/// nobody to tell.
///
/// ```
/// allhands::raw::say("something is worth knowing");
/// ```
pub fn say(line: impl fmt::Display) {
    let _ = std::io::stderr().write_all(format!("allhands: {line}\n").as_bytes());
}

/// Whether the user wants to know what is decided.
///
/// ```
/// if allhands::raw::logs() {
///     println!("ALLHANDS_LOG is set");
/// }
/// ```
pub fn logs() -> bool {
    sink().is_some()
}

/// Says what serves calls of a shape, and why, if the user wants to know: `allreduce of 8 bytes on 4 ranks: ring (the caller's wish)`.
/// To be called by the first rank of a communicator, when the shape is new.
///
/// ```
/// // Set ALLHANDS_LOG=1 to see it.
/// allhands::raw::log("bcast", Some(8), 4, "the MPI", "an intercommunicator");
/// ```
pub fn log(collective: &str, bytes: Option<usize>, ranks: usize, algorithm: &str, why: &str) {
    if logs() {
        note(&line(collective, bytes, ranks, algorithm, why));
    }
}

/// Says something else, in a line, if the user wants to know.
pub(crate) fn note(line: &str) {
    let Some(sink) = sink() else { return };
    // One write each, so that lines of several processes stay apart.
    match sink {
        Sink::Error => say(line),
        Sink::File(file) => drop({ file }.write_all(format!("{line}\n").as_bytes())),
    }
}

fn line(collective: &str, bytes: Option<usize>, ranks: usize, algorithm: &str, why: &str) -> String {
    let amount = bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
    let plural = if ranks == 1 { "" } else { "s" };
    format!("{collective}{amount} on {ranks} rank{plural}: {algorithm} ({why})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_one_line() {
        let text = line("allreduce", Some(8), 4, "ring:ports=2", "the caller's wish");
        assert_eq!(text, "allreduce of 8 bytes on 4 ranks: ring:ports=2 (the caller's wish)");
        assert_eq!(line("bcast", None, 1, "the MPI", "x"), "bcast on 1 rank: the MPI (x)");
    }
}
