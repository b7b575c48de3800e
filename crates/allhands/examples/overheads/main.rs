//! What a plan costs beyond its messages, measured on MPI ranks beside the same thing done by hand.
//!
//! ```text
//! mpirun -n 2 overheads                  everything
//! mpirun -n 8 overheads hand creation    some of it: hand, packing, creation, cached, native, overlap
//! mpirun -n 2 overheads --quick          fewer turns, to try
//! ALLHANDS_PROGRESS=thread mpirun -n 2 overheads overlap
//! ```
//!
//! Rank 0 prints a line for each result: a word, then `name=value` pairs. Times are medians of the slowest rank's, ratios the
//! medians of the ratios of neighbouring batches; in brackets the tenth and ninetieth percentile.

mod cached;
mod creation;
mod hand;
mod native;
mod overlap;
mod packing;
mod turns;

use std::process::ExitCode;

use allhands::{Comm, Result};
use allhands_mpi::Mpi;

/// What every part gets.
struct Bench<'a> {
    comm: &'a Comm,
    mpi: &'static Mpi,
    /// Of a measurement.
    turns: usize,
}

impl Bench<'_> {
    /// Prints on rank 0.
    fn say(&self, line: String) {
        if self.comm.rank() == 0 {
            println!("{line}");
        }
    }
}

type Part = fn(&Bench<'_>) -> Result<()>;

const PARTS: [(&str, Part); 6] = [
    ("hand", hand::measure),
    ("packing", packing::measure),
    ("creation", creation::measure),
    ("cached", cached::measure),
    ("native", native::measure),
    ("overlap", overlap::measure),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let quick = words.iter().any(|word| word == "--quick");
    let asked: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--quick").collect();
    if asked.iter().any(|word| PARTS.iter().all(|(name, _)| name != word)) {
        eprintln!("usage: overheads [hand] [packing] [creation] [cached] [native] [overlap] [--quick]");
        return ExitCode::from(2);
    }
    let outcome = allhands::mpi(|comm| {
        let mpi = allhands_mpi::load()?;
        let bench = Bench { comm, mpi, turns: if quick { 20 } else { 300 } };
        // Of the machine, whichever of them this process may use.
        // SAFETY: asks for a number.
        let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let version = mpi.library_version()?;
        let version = version.split([',', ';', '\n']).next().unwrap_or_default();
        bench.say(format!("job ranks={} cores={cores} mpi=\"{}\"", comm.size(), version.trim()));
        for (_, part) in PARTS.iter().filter(|(name, _)| asked.is_empty() || asked.contains(name)) {
            part(&bench)?;
        }
        comm.barrier()
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one write, so that the lines of several ranks stay apart.
            let line = format!("overheads: {error}\n");
            eprint!("{line}");
            ExitCode::FAILURE
        }
    }
}
