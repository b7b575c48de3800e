//! Every algorithm of every collective inside one job of MPI ranks, against a naive reference: see `tests/suite`.
//!
//! ```text
//! mpirun -n 8 conformance --cases 400 --seed 7     as ranks of an MPI job
//! conformance --threads 8                          as thread ranks
//! mpirun -n 4 conformance --forever                until it is ended; every rank first prints its process
//! ```
//!
//! Rank 0 prints one line when all is right. Whatever is not is printed with its case, and the exit status is not zero.

#[path = "../tests/suite/mod.rs"]
mod suite;

use std::process::ExitCode;

use allhands::{Comm, Result, Topology};

const HELP: &str = "usage: conformance [--cases N] [--seed S] [--threads P] [--forever]";

struct Arguments {
    cases: usize,
    seed: u64,
    threads: Option<usize>,
    forever: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
        let mut arguments = Arguments { cases: 150, seed: 2026, threads: None, forever: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--cases" => arguments.cases = words.next()?.parse().ok()?,
                "--seed" => arguments.seed = words.next()?.parse().ok()?,
                "--threads" => arguments.threads = Some(words.next()?.parse().ok()?),
                "--forever" => arguments.forever = true,
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
    let outcome = match arguments.threads {
        Some(ranks) => Topology::flat(ranks)
            .map_err(allhands::Error::from)
            .and_then(|topology| allhands::threads(topology, |comm| run(comm, &arguments)).map(drop)),
        None => allhands::mpi(|comm| run(comm, &arguments)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one write, so that the lines of several ranks stay apart.
            let line = format!("conformance: {error}\n");
            eprint!("{line}");
            ExitCode::FAILURE
        }
    }
}

fn run(comm: &Comm, arguments: &Arguments) -> Result<()> {
    if arguments.forever {
        println!("rank {} is process {}", comm.rank(), std::process::id());
        for seed in arguments.seed.. {
            suite::job::job(comm, seed, 0)?;
        }
    }
    let report = suite::job::job(comm, arguments.seed, arguments.cases)?;
    if arguments.threads.is_none() {
        suite::library::library(comm, arguments.seed)?;
        suite::joins::joins()?;
        suite::one_offs::one_offs(comm)?;
    }
    comm.barrier()?;
    if comm.rank() == 0 {
        let (cases, algorithms) = (report.cases, report.algorithms);
        let not = match report.impossible.len() {
            0 => String::new(),
            some => format!(" ({some} cannot serve so many ranks)"),
        };
        println!(
            "conformance: {} ranks, {cases} cases of {algorithms} algorithms{not}, all right, {}",
            comm.size(),
            transport(arguments)
        );
    }
    Ok(())
}

/// What carried the messages.
fn transport(arguments: &Arguments) -> String {
    match arguments.threads {
        Some(_) => "thread ranks".into(),
        None => format!("MPI: {}", std::env::var("ALLHANDS_MPI").unwrap_or_else(|_| "as found".into())),
    }
}
