//! C programs that begin, prepare and complete collectives in every way, on three MPIs: what they free meanwhile, two
//! groups, MPI sessions, and all of it with the preload switched off.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{exec, proven, report};
use crate::Result;
use crate::launch::launch;
use crate::libraries::Library;

const FOLDER: &str = "crates/preload/tests/programs";

/// Numbers of ranks. Three are told that they sit on two nodes.
const RANKS: [usize; 4] = [1, 2, 3, 5];

/// On two ranks, so many communicators come and go: half a millisecond each.
const CYCLES: &str = "10000";

/// What the report of more than one rank must show as ours.
pub(super) const SERVED: [&str; 20] = [
    "iallgather",
    "iallgatherv",
    "ialltoall",
    "ialltoallv",
    "iallreduce",
    "ireduce_scatter",
    "ireduce_scatter_block",
    "ibcast",
    "ireduce",
    "ibarrier",
    "allgather_init",
    "allgatherv_init",
    "alltoall_init",
    "alltoallv_init",
    "allreduce_init",
    "reduce_scatter_init",
    "reduce_scatter_block_init",
    "bcast_init",
    "reduce_init",
    "barrier_init",
];

/// What the report of `blocks` must show as ours, in each of its forms.
const BLOCKS: [&str; 24] = [
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "scan",
    "exscan",
    "alltoallv",
    "alltoallw",
    "igather",
    "igatherv",
    "iscatter",
    "iscatterv",
    "iscan",
    "iexscan",
    "ialltoallv",
    "ialltoallw",
    "gather_init",
    "gatherv_init",
    "scatter_init",
    "scatterv_init",
    "scan_init",
    "exscan_init",
    "alltoallv_init",
    "alltoallw_init",
];

/// Algorithms for it, on ranks that are told to sit on two nodes: none, those that need all counts, and those that do not.
const ALGORITHMS: [&str; 4] = [
    "",
    "gatherv=binomial;scatterv=hierarchical;alltoallv=bruck;gather=hierarchical;scatter=hierarchical;scan=hierarchical?;\
     exscan=hierarchical?",
    "gatherv=hierarchical;scatterv=linear;alltoallv=node-aware;gather=binomial;scatter=binomial;scan=linear:segments=4;\
     exscan=123-doubling",
    "gatherv=linear;scatterv=binomial;alltoallv=pairwise;gather=hierarchical:local=shared;scatter=linear;\
     scan=recursive-doubling;exscan=linear",
];

/// What the report of `neighbors` must show as ours, in each of its forms.
const NEIGHBORS: [&str; 15] = [
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "ineighbor_allgather",
    "ineighbor_allgatherv",
    "ineighbor_alltoall",
    "ineighbor_alltoallv",
    "ineighbor_alltoallw",
    "neighbor_allgather_init",
    "neighbor_allgatherv_init",
    "neighbor_alltoall_init",
    "neighbor_alltoallv_init",
    "neighbor_alltoallw_init",
];

/// Algorithms for it, on ranks that are told to sit on two nodes. The first is none: what the model says.
const AMONG_NEIGHBORS: [&str; 3] = [
    "",
    "neighbor_allgather=node-aware;neighbor_allgatherv=node-aware:lanes=2;neighbor_alltoall=node-aware;\
     neighbor_alltoallv=node-aware:straight=100",
    "neighbor_allgather=node-aware:straight=50;neighbor_allgatherv=direct;neighbor_alltoall=node-aware:lanes=2;\
     neighbor_alltoallv=node-aware",
];

/// More than it needs on two busy cores.
const MOST: Duration = Duration::from_secs(120);

/// Runs the programs on those libraries whose headers are installed with them.
pub(crate) fn run(allhands: &Path, libraries: &[Library]) -> Result<()> {
    let begun = Instant::now();
    for library in libraries.iter().filter(|library| library.is_native()) {
        let compiled = |name: &str| library.compile(&format!("{FOLDER}/{name}.c"));
        let (requests, lasting, waiting) = (compiled("requests")?, compiled("lasting")?, compiled("waiting")?);
        let (groups, sessions, blocks) = (compiled("groups")?, compiled("sessions")?, compiled("blocks")?);
        let mover = Mover::of(library);
        let job =
            |program, ranks| Job { allhands, library, program, ranks, words: vec![], served: &[], mover, as_two: None };
        for ranks in [1, 2, 5] {
            let served = if ranks > 1 { &BLOCKS[..] } else { &[] };
            Job { served, ..job(&blocks, ranks) }.run()?;
        }
        let neighbors = compiled("neighbors")?;
        for ranks in [1, 2, 5] {
            let served = if ranks > 1 { &NEIGHBORS[..] } else { &[] };
            Job { served, ..job(&neighbors, ranks) }.run()?;
        }
        for algorithms in AMONG_NEIGHBORS {
            Job { served: &NEIGHBORS, as_two: Some(algorithms), ..job(&neighbors, 4) }.run()?;
        }
        for algorithms in ALGORITHMS {
            // A request of an algorithm whose plans are made together is the MPI's.
            let shared = |form: &&&str| **form == "igather" && algorithms.contains("local=shared");
            let served: Vec<&str> = BLOCKS.iter().filter(|form| !shared(form)).copied().collect();
            Job { served: &served, as_two: Some(algorithms), ..job(&blocks, 4) }.run()?;
        }
        for ranks in RANKS {
            let words = if ranks == 2 { vec![CYCLES.into()] } else { vec![] };
            let served = if ranks > 1 { &SERVED[..] } else { &[] };
            Job { words, served, ..job(&requests, ranks) }.run()?;
        }
        Job { mover: Mover::Off, ..job(&requests, 2) }.run()?;
        if mover != Mover::Thread {
            Job { mover: Mover::Thread, served: &SERVED, ..job(&requests, 3) }.run()?;
        }
        if mover != Mover::Threads {
            Job { mover: Mover::None, ..job(&requests, 2) }.run()?;
        }
        Job { served: &["iallreduce"], ..job(&waiting, 2) }.run()?;
        for ranks in [1, 3] {
            job(&lasting, ranks).run()?;
        }
        for ranks in [2, 3, 4] {
            Job { served: &["allreduce", "iallreduce"], ..job(&groups, ranks) }.run()?;
        }
        // Without `MPI_Init` nothing is ours.
        job(&sessions, 2).run()?;
        Job { words: vec!["both".into()], served: &["allreduce", "bcast"], ..job(&sessions, 2) }.run()?;
    }
    eprintln!("xtask: requests under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What moves requests on in a job.
#[derive(Clone, Copy, PartialEq)]
enum Mover {
    /// The MPI's progress, whatever threads there are.
    Threads,
    /// The MPI's progress, where one thread calls it.
    OneThread,
    /// A thread of ours.
    Thread,
    /// Nothing: requests are the MPI's.
    None,
    /// We are switched off.
    Off,
}

impl Mover {
    /// The best that a library has.
    fn of(library: &Library) -> Mover {
        match library.name {
            "mpich" => Mover::OneThread,
            "intel" => Mover::Thread,
            _ => Mover::Threads,
        }
    }
}

/// A program under the preload.
struct Job<'a> {
    allhands: &'a Path,
    library: &'a Library,
    program: &'a Path,
    ranks: usize,
    words: Vec<String>,
    /// What the report must show as ours.
    served: &'a [&'a str],
    mover: Mover,
    /// Algorithms for ranks that are told to sit on two nodes.
    as_two: Option<&'a str>,
}

impl Job<'_> {
    fn run(self) -> Result<()> {
        let Job { library, program, ranks, .. } = self;
        let stem = program.file_stem().unwrap_or_default().to_string_lossy();
        let name = stem.trim_end_matches(library.name).trim_end_matches('-');
        let how = self.words.first().filter(|word| word.parse::<usize>().is_err());
        let mover = match self.mover {
            Mover::Threads | Mover::OneThread => "",
            Mover::Thread => ", with a progress thread,",
            Mover::None => ", requests left to the MPI,",
            Mover::Off => ", switched off,",
        };
        let algorithms = self.as_two.map(|algorithms| format!(" as 2x2 by {algorithms}")).unwrap_or_default();
        let how = how.map(|word| format!(" {word}")).unwrap_or_default() + &algorithms + mover;
        let title = format!("{}, {name}{how} on {ranks} ranks", library.title);
        let report = report(&format!("{stem}-{ranks}.txt"));
        let ended = launch(self.command(&report), MOST)?;
        let right = ended.out.contains(&format!("{name}: {ranks} ranks, all right"));
        if !right || !ended.status.is_some_and(|status| status.success()) || !ended.left.is_empty() {
            return Err(ended.fault(&format!("{title} failed")));
        }
        if self.mover == Mover::Off && !alone(&report) {
            return Err(format!("{title}: there is no report of the MPI alone"));
        }
        if !self.served.is_empty() {
            proven(&report, &title, self.served)?;
        }
        eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
        Ok(())
    }

    fn command(&self, report: &Path) -> Command {
        let algorithms = self.as_two.unwrap_or(if self.ranks == 3 { "alltoallv=spread-out" } else { "" });
        let settings = [("ALLHANDS_REPORT", report.as_os_str()), ("ALLHANDS_ALGORITHM", OsStr::new(algorithms))];
        let mut command = exec(self.allhands, self.library, self.ranks, &settings);
        match (self.ranks, self.as_two) {
            (_, Some(_)) => _ = command.env("ALLHANDS_TOPOLOGY", "2x2"),
            (3, _) => _ = command.env("ALLHANDS_TOPOLOGY", "1,2"),
            _ => {}
        }
        match self.mover {
            Mover::Threads => {}
            Mover::OneThread => _ = command.env("ONE_THREAD", "1"),
            Mover::Thread => _ = command.env("ALLHANDS_PROGRESS", "thread"),
            Mover::None => _ = command.env("THEIRS", "1"),
            Mover::Off => _ = command.env("ALLHANDS", "off"),
        }
        command.arg(self.program).args(&self.words);
        command
    }
}

/// Whether a report tells of calls, none of which was ours.
fn alone(report: &Path) -> bool {
    std::fs::read_to_string(report).is_ok_and(|table| table.contains("] ALLHANDS=off\n"))
}
