//! Intel's benchmarks, as they are in its package, on Intel MPI and on MPICH: every collective they have runs to its end.
//! (The package's programs were built without IMB's own check of results: there is no option for it.)

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Extent, SERVED, exec, proven, report};
use crate::launch::launch;
use crate::libraries::Library;
use crate::{Result, mpi};

/// The programs, and the collectives they measure.
const PROGRAMS: [(&str, &[&str]); 2] = [("IMB-MPI1", &BLOCKING), ("IMB-NBC", &NON_BLOCKING)];

const BLOCKING: [&str; 14] = [
    "Bcast",
    "Allgather",
    "Allgatherv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Alltoall",
    "Alltoallv",
    "Reduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Allreduce",
    "Barrier",
];

/// Each of them is there twice: beside computation, and `_pure`, alone.
const NON_BLOCKING: [&str; 13] = [
    "Ibcast",
    "Iallgather",
    "Iallgatherv",
    "Igather",
    "Igatherv",
    "Iscatter",
    "Iscatterv",
    "Ialltoall",
    "Ialltoallv",
    "Ireduce",
    "Ireduce_scatter",
    "Iallreduce",
    "Ibarrier",
];

const MOST: Duration = Duration::from_secs(200);

pub(crate) fn run(allhands: &Path, libraries: &[Library], extent: Extent) -> Result<()> {
    let begun = Instant::now();
    for library in libraries.iter().filter(|library| ["mpich", "intel"].contains(&library.name)) {
        for (program, benchmarks) in PROGRAMS {
            let mut benchmarks: Vec<String> = benchmarks.iter().map(ToString::to_string).collect();
            if program == "IMB-NBC" && extent == Extent::Full {
                benchmarks.extend(NON_BLOCKING.map(|name| format!("{name}_pure")));
            }
            let sizes = if extent == Extent::Full { 2..=8 } else { 3..=3 };
            for ranks in sizes {
                one(allhands, library, program, &benchmarks, ranks)?;
            }
        }
    }
    eprintln!("xtask: Intel's benchmarks under the preload in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn one(allhands: &Path, library: &Library, program: &str, benchmarks: &[String], ranks: usize) -> Result<()> {
    let report = report(&format!("{program}-{}-{ranks}.txt", library.name));
    let settings = [
        ("ALLHANDS_REPORT", report.as_os_str()),
        // The binary has no path of its own.
        ("LD_LIBRARY_PATH", library.folder().as_os_str()),
    ];
    let mut command = exec(allhands, library, ranks, &settings);
    command.arg(mpi::environment("intel").join("bin").join(program));
    // Sizes up to 64 KiB, a few runs of each, and on all ranks only.
    command.args(["-npmin", &ranks.to_string(), "-msglog", "0:16", "-iter", "4", "-time", "1"]).args(benchmarks);
    let ended = launch(command, MOST)?;
    let title = format!("{}, {program} on {ranks} ranks", library.title);
    let measured = |benchmark: &&String| ended.out.contains(&format!("# Benchmarking {benchmark} "));
    if let Some(missing) = benchmarks.iter().find(|benchmark| !measured(benchmark)) {
        return Err(ended.fault(&format!("{title}: no {missing}")));
    }
    let right = ended.status.is_some_and(|status| status.success()) && ended.left.is_empty();
    if !right || !ended.out.contains("# All processes entering MPI_Finalize") {
        return Err(ended.fault(&format!("{title} failed")));
    }
    if program == "IMB-MPI1" {
        let measured: Vec<&str> = SERVED.into_iter().filter(|name| !name.ends_with("scan")).collect();
        proven(&report, &title, &measured)?;
    }
    eprintln!("xtask: {title}: {:.1} s", ended.time.as_secs_f64());
    Ok(())
}
