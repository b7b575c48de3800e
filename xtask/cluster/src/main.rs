//! An emulated cluster: nodes are namespaces of this machine, and a switch holds every frame between them as long as a network would.
//!
//! MPI libraries run on it unchanged, believe that they are on several nodes, and pay a real delay between them. It needs Linux and
//! root. Everything hangs on one process: when that ends, in whatever way, so do the nodes, their addresses and what runs on them.
//! Traffic stays inside the namespaces.

mod agent;
mod job;
mod node;
mod race;
mod settings;
mod state;
mod switch;
mod system;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use settings::{Delay, Rate, Shape};
use state::Life;

/// What went wrong, in one sentence.
type Result<T> = std::result::Result<T, String>;

/// An emulated cluster on one Linux machine: builds it, runs MPI jobs on it, removes it.
#[derive(Parser)]
#[command(name = "cargo xtask cluster", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds a cluster of so many nodes.
    Up {
        /// How many nodes.
        #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
        nodes: u8,
        /// How long a frame travels from node to node: 500us, 2ms.
        #[arg(long, default_value = "2ms")]
        delay: Delay,
        /// Bits per second of a node's port, in each direction: 100m, 1g.
        #[arg(long, default_value = "1g")]
        rate: Rate,
    },
    /// Runs a program on the nodes, under an MPI of .mpi: `run --mpi openmpi 4x4 -- PROGRAM ARGUMENTS`.
    Run {
        /// openmpi, mpich or intel.
        #[arg(long)]
        mpi: job::Mpi,
        /// Nodes x ranks on each.
        shape: Shape,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    /// Removes the cluster, and ends what runs on it.
    Down,
    /// Races our collectives against those of three MPIs, on clusters of its own.
    Race(race::Args),
    /// Prints the tables of a race that was run before, and draws its plot.
    Table {
        /// What the race has written.
        file: PathBuf,
        /// Where the plot goes, as SVG.
        #[arg(long)]
        plot: Option<PathBuf>,
    },
    /// A rank of a race.
    #[command(hide = true)]
    Racer { program: PathBuf },
    /// What carries frames between nodes, and what holds the cluster together.
    #[command(hide = true)]
    Switch {
        nodes: u8,
        delay: Delay,
        rate: Rate,
        /// Whether it ends with the process that started it.
        #[arg(long)]
        tied: bool,
    },
    /// Stands in for ssh.
    #[command(hide = true)]
    Agent {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Up { nodes, delay, rate } => state::up(nodes, delay, rate, Life::UntilDown)
            .map(|()| eprintln!("cluster: {nodes} nodes, {delay} apart, {rate} each")),
        Command::Run { mpi, shape, program } => job::run(mpi, shape, &program),
        Command::Down => state::down(),
        Command::Race(args) => race::run(&args),
        Command::Table { file, plot } => race::show(&file, plot.as_deref()),
        Command::Racer { program } => race::racer::race(&program),
        Command::Switch { nodes, delay, rate, tied } => switch::serve(nodes, delay, rate, tied),
        Command::Agent { words } => agent::enter(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("cluster: {fault}");
            ExitCode::FAILURE
        }
    }
}
