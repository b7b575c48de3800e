//! The subcommands: one file each.

mod bench;
mod completions;
mod doctor;
mod exec;
mod explain;
mod list;
mod man;
mod report;
mod reproduce;
mod search;
mod simulate;
mod tune;
mod verify;

use clap::Parser;

use crate::failure::Result;
use crate::job;

/// Collective communication that knows where ranks sit: see what every algorithm does on any machine, prove it right before a
/// single byte has moved, and measure it.
#[derive(Debug, Parser)]
#[command(
    name = "allhands",
    version,
    after_help = "Examples:
  allhands list allgather
  allhands explain allgather --algorithm bruck --topology 4x4
  allhands verify allgather --ranks 1..64
  allhands simulate allreduce --machine lassen --topology 1024x16
  allhands search allgather --machine lassen --topology 8x4 --bytes 8
  allhands reproduce --quick
  allhands bench allreduce
  mpirun -n 8 allhands bench allreduce --algorithm all,mpi
  mpirun -n 8 allhands exec ./program
  allhands doctor
  allhands report with.json without.json

Exit codes: 0 all is well; 1 a schedule is wrong, or a rank or job fails; 2 the request cannot be served."
)]
pub(crate) enum Command {
    List(list::List),
    Explain(explain::Explain),
    Verify(verify::Verify),
    Simulate(simulate::Simulate),
    Search(search::Search),
    Reproduce(reproduce::Reproduce),
    Bench(bench::Bench),
    Tune(tune::Tune),
    Exec(exec::Exec),
    Doctor(doctor::Doctor),
    Report(report::Report),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Command::Verify(verify) => verify.run(),
            Command::Bench(bench) => bench.run(),
            Command::Tune(tune) => tune.run(),
            Command::Exec(exec) => exec.run(),
            Command::Doctor(doctor) => doctor.run(),
            // What one process does alone is done by a job's first.
            _ if !job::first() => Ok(()),
            Command::List(list) => list.run(),
            Command::Explain(explain) => explain.run(),
            Command::Simulate(simulate) => simulate.run(),
            Command::Search(search) => search.run(),
            Command::Reproduce(reproduce) => reproduce.run(),
            Command::Report(report) => report.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}
