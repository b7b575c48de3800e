//! `cargo xtask bench isolated`: collectives as programs call them, under the preload and without it, on three MPIs, in three worlds.
//!
//! The program is `bench/isolated.c`, which nobody has changed for us: the same file runs with and without `allhands exec`, in jobs
//! that take turns. A cell is the median over jobs of each job's median.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{LIBRARIES, MOST, machine};
use crate::launch::launch;
use crate::libraries::{self, Library};
use crate::{Result, build, mpi};

/// Where ranks find themselves.
#[derive(Clone, Copy)]
struct World {
    name: &'static str,
    ranks: usize,
    /// Processes that compute beside them.
    beside: usize,
    /// Whether the MPI is told to give cores away while it waits.
    yields: bool,
    /// Bytes at most.
    largest: usize,
    iterations: usize,
}

const WHOLE: usize = 4 << 20;
const SHORT: usize = 64 << 10;

const WORLDS: [World; 5] = [
    World { name: "idle", ranks: 2, beside: 0, yields: false, largest: WHOLE, iterations: 400 },
    World { name: "crowded", ranks: 4, beside: 0, yields: true, largest: SHORT, iterations: 400 },
    World { name: "crowded", ranks: 8, beside: 0, yields: true, largest: SHORT, iterations: 400 },
    World { name: "crowded", ranks: 4, beside: 0, yields: false, largest: SHORT, iterations: 20 },
    World { name: "shared", ranks: 2, beside: 2, yields: true, largest: SHORT, iterations: 200 },
];

impl World {
    fn title(&self) -> String {
        let World { name, ranks, beside, yields, .. } = self;
        let beside = if *beside > 0 { format!(", {beside} processes computing beside them") } else { String::new() };
        let yields = if *yields { "MPIs that yield" } else { "the MPIs' own settings" };
        format!("{name}: {ranks} ranks on {} cores{beside}, {yields}", machine::cores())
    }

    fn command(&self, library: &Library, program: &Path) -> Command {
        match self.yields {
            true => library.command(self.ranks, program),
            false => {
                let mut command = library.plain_command(self.ranks, program);
                // Open MPI's launcher wants to be told that ranks outnumber cores.
                command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
                command
            }
        }
    }
}

/// What is to be measured.
pub(crate) struct Wish {
    output: Option<PathBuf>,
    world: Option<String>,
    jobs: usize,
}

impl Wish {
    /// `[--world NAME] [--jobs N] [--output FILE]`, in any order.
    pub(crate) fn parse(words: &[&str]) -> Option<Wish> {
        let mut wish = Wish { output: None, world: None, jobs: 5 };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--output" => wish.output = Some(words.next()?.into()),
                "--world" => {
                    let name = words.next()?;
                    WORLDS.iter().find(|world| world.name == *name)?;
                    wish.world = Some((*name).into());
                }
                "--jobs" => wish.jobs = words.next()?.parse().ok().filter(|jobs| *jobs > 0)?,
                _ => return None,
            }
        }
        Some(wish)
    }
}

/// A collective and its bytes.
type Name = (String, usize);

/// The medians of jobs, in microseconds, of each cell.
type Times = BTreeMap<Name, Vec<f64>>;

/// What was measured on one MPI in one world.
struct Measured {
    library: &'static str,
    theirs: Times,
    ours: Times,
}

/// Prints the tables; with them, what every job printed goes into the file.
pub(crate) fn run(wish: &Wish) -> Result<()> {
    mpi::install()?;
    let allhands = build::installed()?;
    let libraries = LIBRARIES.into_iter().map(libraries::named).collect::<Result<Vec<_>>>()?;
    let mut raw = String::new();
    let mut tables =
        format!("cargo xtask bench isolated\n\n{}load before: {}\n", machine::description(), machine::load());
    for world in WORLDS.iter().filter(|world| wish.world.as_ref().is_none_or(|name| name == world.name)) {
        let mut measured = Vec::new();
        for library in &libraries {
            measured.push(of_library(world, library, &allhands, wish.jobs, &mut raw)?);
        }
        let _ = write!(tables, "\n## {}\n\n{}", world.title(), table(&measured));
    }
    let _ = writeln!(tables, "\nload after: {}", machine::load());
    if let Some(file) = &wish.output {
        let text =
            format!("{tables}\n# What each job printed: collective, bytes, median, p10, p90 in microseconds\n{raw}");
        std::fs::write(file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    println!("{tables}");
    Ok(())
}

fn of_library(world: &World, library: &Library, allhands: &Path, jobs: usize, raw: &mut String) -> Result<Measured> {
    let program = library.compile("bench/isolated.c")?;
    let mut measured = Measured { library: library.title, theirs: Times::new(), ours: Times::new() };
    let computing = Computing::start(world.beside);
    for job in 0..2 * jobs {
        // Theirs, ours, ours, theirs: what comes and goes falls to both.
        let ours = matches!(job % 4, 1 | 2);
        let mut command = if ours { world.command(library, allhands) } else { world.command(library, &program) };
        if ours {
            command.arg("exec").arg(&program);
        }
        command.args([world.iterations.to_string(), world.largest.to_string()]);
        eprintln!("xtask: {}, {}, job {} of {}", library.title, world.title(), job + 1, 2 * jobs);
        let ended = launch(command, MOST)?;
        if !ended.status.is_some_and(|status| status.success()) {
            return Err(ended.fault(&format!("{}, {} failed", library.title, world.title())));
        }
        let side = if ours { "under allhands exec" } else { "alone" };
        let _ = writeln!(raw, "\n# {}, {}, {side}\n{}", library.title, world.title(), ended.out.trim_end());
        add(&ended.out, if ours { &mut measured.ours } else { &mut measured.theirs })?;
    }
    drop(computing);
    Ok(measured)
}

/// Adds what a job printed.
fn add(printed: &str, times: &mut Times) -> Result<()> {
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let (Some(bytes), Some(median)) = (number(1), number(2)) else {
            return Err(format!("bench/isolated.c printed {line:?}"));
        };
        times.entry((fields[0].into(), bytes as usize)).or_default().push(median);
    }
    Ok(())
}

/// Threads that compute, until it is dropped.
struct Computing(std::sync::Arc<AtomicBool>);

impl Computing {
    fn start(threads: usize) -> Computing {
        let ended = std::sync::Arc::new(AtomicBool::new(false));
        for _ in 0..threads {
            let ended = ended.clone();
            std::thread::spawn(move || {
                let mut number = 1u64;
                while !ended.load(Ordering::Relaxed) {
                    number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
            });
        }
        Computing(ended)
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The spread of jobs: the largest median over the smallest.
fn spread(times: &[f64]) -> f64 {
    let (least, most) =
        times.iter().fold((f64::MAX, 0.0), |(least, most): (f64, f64), &time| (least.min(time), most.max(time)));
    most / least
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// For every cell the MPI's own time over ours, with both times; then their means, and the physical limit.
fn table(measured: &[Measured]) -> String {
    let mut text = String::from(
        "MPI's own / ours = times in us (spread of jobs); *best*: the fastest MPI's own / the slowest of ours\n\n| |",
    );
    measured.iter().for_each(|one| _ = write!(text, " {} |", one.library));
    text += " best |\n| --- |";
    text += &" ---: |".repeat(measured.len() + 1);
    text.push('\n');
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); measured.len() + 1];
    let names: Vec<&Name> = measured.first().map_or_else(Vec::new, |one| one.ours.keys().collect());
    let (limits, cells): (Vec<&Name>, Vec<&Name>) = names.into_iter().partition(|name| name.0.starts_with("limit"));
    for name in cells {
        let _ = write!(text, "| {} {} |", name.0, name.1);
        let (mut fastest, mut slowest) = (f64::MAX, 0.0f64);
        for (one, ratios) in measured.iter().zip(&mut ratios) {
            let (theirs, ours) = (one.theirs.get(name), one.ours.get(name));
            let (Some(theirs), Some(ours)) = (theirs, ours) else {
                text += " |";
                continue;
            };
            let (their, our) = (median(theirs), median(ours));
            let spreads = format!("({:.1}, {:.1})", spread(theirs), spread(ours));
            let _ = write!(text, " **{:.2}** = {their:.2} / {our:.2} {spreads} |", their / our);
            ratios.push(their / our);
            (fastest, slowest) = (fastest.min(their), slowest.max(our));
        }
        let _ = writeln!(text, " {:.2} |", fastest / slowest);
        ratios[measured.len()].push(fastest / slowest);
    }
    for (label, value) in [
        ("geometric mean", &geometric_mean as &dyn Fn(&[f64]) -> f64),
        ("least", &|ratios| ratios.iter().copied().fold(f64::INFINITY, f64::min)),
        ("below 0.95", &|ratios| ratios.iter().filter(|ratio| **ratio < 0.95).count() as f64),
    ] {
        let _ = write!(text, "| {label} |");
        ratios.iter().for_each(|ratios| _ = write!(text, " {:.2} |", value(ratios)));
        text.push('\n');
    }
    for name in limits {
        let _ = write!(text, "| {} {} |", name.0, name.1);
        let both =
            measured.iter().map(|one| one.theirs.get(name).into_iter().chain(one.ours.get(name)).flatten().copied());
        both.for_each(|times| _ = write!(text, " {:.2} |", median(&times.collect::<Vec<f64>>())));
        text += " |\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_medians_of_jobs_and_the_best_mpi_is_held_against_the_slowest_of_ours() {
        let mut one = Measured { library: "A", theirs: Times::new(), ours: Times::new() };
        for (theirs, ours) in [("4.0", "2.0"), ("9.0", "2.0"), ("4.0", "5.0")] {
            add(&format!("bcast 8 {theirs} 1 9\nlimit-bcast 8 0.5 0 1\n"), &mut one.theirs).unwrap();
            add(&format!("bcast 8 {ours} 1 9\nlimit-bcast 8 0.5 0 1\n"), &mut one.ours).unwrap();
        }
        let text = table(&[one]);
        assert!(text.contains("| bcast 8 | **2.00** = 4.00 / 2.00 (2.2, 2.5) | 2.00 |"), "{text}");
        assert!(text.contains("| limit-bcast 8 | 0.50 | |"), "{text}");
        assert!(text.contains("| geometric mean | 2.00 | 2.00 |"), "{text}");
        assert!(add("no numbers here", &mut Times::new()).is_err());
    }
}
