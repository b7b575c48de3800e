//! What developers run: `cargo xtask test` checks everything that CI checks.
#![forbid(unsafe_code)]

mod bench;
mod browser;
mod build;
mod capi;
mod cluster;
mod conformance;
mod debian;
mod diagnostics;
mod dist;
#[cfg(test)]
mod documentation;
mod failures;
mod fortran;
mod fuzz;
mod header;
mod install;
mod launch;
mod libraries;
mod mpi;
mod preload;
mod test;

use std::process::ExitCode;

const HELP: &str = "usage: cargo xtask test [LIBRARY] [--cases C] [--full]
       cargo xtask mpi
       cargo xtask conformance [LIBRARY] [-n RANKS] [--cases C] [--full]
       cargo xtask failures [LIBRARY]
       cargo xtask preload [LIBRARY] [--full] [--mpi4py | --every-algorithm | --programs | --requests | --imb |
                           --only probing|progress|alias|throws|shapes|turns|mixed|learning|reproducible]
       cargo xtask fuzz [LIBRARY] [--seconds N] [--seed S] [--ranks R] [--found] [--theirs]
                        [--without WORD]...
       cargo xtask diagnostics [LIBRARY]
       cargo xtask capi [LIBRARY]
       cargo xtask browser
       cargo xtask simgrid
       cargo xtask header
       cargo xtask install --prefix DIR
       cargo xtask dist | wheel
       cargo xtask bench mpi [--output FILE] [--quick]
       cargo xtask bench preload [--output FILE]
       cargo xtask bench isolated [--world idle|turns|rest|crowded|shared] [--jobs N] [--output FILE] | --from FILE
       cargo xtask cluster up|run|down|race|table ... (--help says more)

  test          format, lints, every test, the documentation's examples, loom's models of what threads share, a sweep of
                the command itself, what would be published, licences, and all of the following; --full leaves nothing out
  mpi           installs the MPI libraries of the tests, and mpi4py, in .mpi, unless they are there
  conformance   every algorithm inside jobs of 1, 2, 3, 4, 7 and 8 ranks, on every MPI library, with at least C cases each
  failures      a rank that is killed, no MPI, the wrong launcher: ended with a message, nothing left behind
  preload       programs under `allhands exec`: mpi4py's own tests, also with every algorithm in turn; programs in C and Fortran
                that check every call, those with requests apart; Intel's benchmarks; a part of each, or one of them, or (by hand)
                all there is
  fuzz          random legal MPI programs without us and with us, on each of three MPIs for N seconds (60); what hangs or fails with us
                only is made shorter and kept in target/fuzz. --seed repeats one script, or begins there if N is given; --found
                runs those that failed once; --theirs shortens what fails without us as well; --without leaves lines out that have such
                a word, as `how=replace`, when that is known to fail
  diagnostics   what the preload says of calls that differ between ranks, of ranks that are late, and what it compares
  capi          the C API installed, compiled against and run on three MPIs, and from Fortran where there is a compiler
  browser       the pages that we make, played, clicked and counted in Chromium, which is installed where that is allowed, else
                skipped
  simgrid       our simulator beside SimGrid, cell by cell; it is unpacked in .mpi where Debian's packages can be had, else skipped
  header        makes allhands.h anew from the source of the C API
  install       builds for release; installs the command, its libraries, their header and pkg-config file (below DESTDIR, if set)
  dist          the same tree for machines with glibc 2.28 and newer, packed into a tarball in target/dist
  wheel         what pip installs, likewise; installed into new environments and tried on three MPIs
  bench mpi     our collectives beside those of three MPIs, on two ranks; what plans cost; tables in Markdown, all times in FILE
  bench preload what the preload adds to a call, beside the Rust API and the MPI's own functions
  bench isolated  collectives as programs call them: alone, on new data; with and without the preload, on idle, crowded and shared cores
  cluster       an emulated cluster on this machine, which needs Linux and root: builds it, runs MPI jobs on it, removes it; races
                our collectives against those of three MPIs on it";

/// What went wrong, in one sentence and, where a program said more, with its output.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test", ref rest @ ..] => conformance::Args::parse(rest).map(|args| test::test(&args)),
        ["mpi"] => Some(mpi::install()),
        ["conformance", ref rest @ ..] => conformance::Args::parse(rest).map(|args| conformance::by_hand(&args)),
        ["failures", ref rest @ ..] => conformance::Args::parse(rest).map(|args| failures::by_hand(&args)),
        ["preload", ref rest @ ..] => preload::Args::parse(rest).map(|args| preload::by_hand(&args)),
        ["fuzz", ref rest @ ..] => fuzz::Args::parse(rest).map(|args| fuzz::by_hand(&args)),
        ["cluster", ref rest @ ..] => Some(cluster::run(rest)),
        ["capi", ref rest @ ..] => conformance::Args::parse(rest).map(|args| capi::by_hand(&args)),
        ["install", ref rest @ ..] => install::Args::parse(rest).map(|args| install::install(&args)),
        ["dist"] => Some(dist::tarball()),
        ["wheel"] => Some(dist::wheel()),
        ["browser"] => Some(browser::run()),
        ["simgrid"] => Some(test::simgrid()),
        ["header"] => Some(header::write()),
        ["diagnostics", ref rest @ ..] => conformance::Args::parse(rest).map(|args| diagnostics::by_hand(&args)),
        ["bench", "mpi", ref rest @ ..] => bench::Args::parse(rest).map(|args| bench::run(&args)),
        ["bench", "isolated", ref rest @ ..] => {
            bench::isolated::Args::parse(rest).map(|args| bench::isolated::run(&args))
        }
        ["bench", "preload", ref rest @ ..] => bench::Args::parse(rest).map(|args| bench::preload(&args)),
        _ => None,
    };
    match outcome {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(fault)) => {
            eprintln!("xtask: {fault}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}
