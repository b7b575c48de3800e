//! A Fourier filter whose messages are very unequal: two of 90,464 bytes, all others empty. With and without reordering of ranks.
//!
//! ```text
//! fourier_filter [--ranks 8] [--runs 200]          on thread ranks
//! mpirun -n 8 fourier_filter [--runs 200]          as ranks of an MPI job, beside the MPI's own collectives
//! ```
//!
//! Every result is checked. Rank 0 prints medians with quartiles, of runs that take turns; the time of a run is its slowest rank's.

mod filter;

use std::process::ExitCode;

use allhands::{Result, Topology};
use allhands_mpi::Launcher;

use filter::{Times, measure, quantile};

const HELP: &str = "usage: fourier_filter [--ranks P] [--runs N]";

struct Arguments {
    ranks: usize,
    runs: usize,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
        let mut arguments = Arguments { ranks: 8, runs: 200 };
        while let Some(word) = words.next() {
            let number = words.next()?.parse().ok().filter(|number| *number > 0)?;
            match word.as_str() {
                "--ranks" => arguments.ranks = number,
                "--runs" => arguments.runs = number,
                _ => return None,
            }
        }
        Some(arguments)
    }
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one write, so that the lines of several ranks stay apart.
            let line = format!("fourier_filter: {error}\n");
            eprint!("{line}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let runs = arguments.runs;
    if Launcher::from_environment().is_some() {
        return allhands::mpi(|comm| {
            let times = measure(comm, runs, true)?;
            if comm.rank() == 0 {
                print(&times, comm.size(), "ranks of an MPI job");
            }
            Ok(())
        });
    }
    let times = allhands::threads(Topology::flat(arguments.ranks)?, |comm| measure(comm, runs, false))?;
    print(&times[0], arguments.ranks, "thread ranks");
    Ok(())
}

fn print(all: &[Times], ranks: usize, kind: &str) {
    let runs = all.first().map_or(0, |times| times.allgatherv.len());
    println!(
        "fourier_filter: {ranks} {kind}, two messages of 90464 bytes, the rest empty; {runs} runs each, all right"
    );
    println!("{:<16} {:>34} {:>34}", "us: median (half of the runs)", "reduce_scatter", "allgatherv");
    for Times { name, reduce_scatter, allgatherv } in all {
        println!("{name:<16} {:>34} {:>34}", spread(reduce_scatter), spread(allgatherv));
    }
}

fn spread(times: &[f64]) -> String {
    let [median, low, high] = [0.5, 0.25, 0.75].map(|share| quantile(times, share));
    format!("{median:.1} ({low:.1} to {high:.1})")
}
