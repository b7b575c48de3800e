//! `cargo xtask bench isolated`: collectives as programs call them, under the preload and without it, on three MPIs, in three worlds.
//!
//! The program is `bench/isolated.c`, which nobody has changed for us: the same file runs with and without `allhands exec`, in jobs
//! that take turns. A cell is the median over jobs of each job's median. What every job printed is kept; the tables are made of that, also
//! from the file of a run before (`--from`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{LIBRARIES, MOST, machine, tables};
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
    /// What the program is told beside: whether the other collectives are measured, not the six, and whether they take turns.
    words: &'static [&'static str],
}

const WHOLE: usize = 4 << 20;
const SHORT: usize = 64 << 10;

const WORLDS: [World; 8] = [
    World { name: "idle", ranks: 2, beside: 0, yields: false, largest: WHOLE, iterations: 400, words: &[] },
    World { name: "turns", ranks: 2, beside: 0, yields: false, largest: WHOLE, iterations: 400, words: &["turns"] },
    World { name: "rest", ranks: 2, beside: 0, yields: false, largest: WHOLE, iterations: 400, words: &["rest"] },
    World {
        name: "rest",
        ranks: 2,
        beside: 0,
        yields: false,
        largest: WHOLE,
        iterations: 400,
        words: &["rest", "turns"],
    },
    World { name: "crowded", ranks: 4, beside: 0, yields: true, largest: SHORT, iterations: 400, words: &[] },
    World { name: "crowded", ranks: 8, beside: 0, yields: true, largest: SHORT, iterations: 400, words: &[] },
    World { name: "crowded", ranks: 4, beside: 0, yields: false, largest: SHORT, iterations: 20, words: &[] },
    World { name: "shared", ranks: 2, beside: 2, yields: true, largest: SHORT, iterations: 60, words: &[] },
];

impl World {
    fn title(&self) -> String {
        let World { name, ranks, beside, yields, .. } = self;
        let beside = if *beside > 0 { format!(", {beside} processes computing beside them") } else { String::new() };
        let yields = if *yields { "MPIs that yield" } else { "the MPIs' own settings" };
        let turns = if self.words.contains(&"turns") { ", collectives that take turns" } else { "" };
        format!("{name}: {ranks} ranks on {} cores{beside}, {yields}{turns}", machine::cores())
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

/// What is to be measured, or made of what was measured before.
pub(crate) struct Args {
    output: Option<PathBuf>,
    from: Option<PathBuf>,
    world: Option<String>,
    jobs: usize,
}

impl Args {
    /// `[--world NAME] [--jobs N] [--output FILE]` in any order, or `--from FILE`.
    pub(crate) fn parse(words: &[&str]) -> Option<Args> {
        let mut args = Args { output: None, from: None, world: None, jobs: JOBS };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--output" => args.output = Some(words.next()?.into()),
                "--from" => args.from = Some(words.next()?.into()),
                "--world" => {
                    let name = words.next()?;
                    WORLDS.iter().find(|world| world.name == *name)?;
                    args.world = Some((*name).into());
                }
                "--jobs" => args.jobs = words.next()?.parse().ok().filter(|jobs| *jobs > 0)?,
                _ => return None,
            }
        }
        // A file says what was measured: nothing is left to choose.
        let chosen = args.output.is_some() || args.world.is_some() || args.jobs != JOBS;
        Some(args).filter(|args| args.from.is_none() || !chosen)
    }
}

/// Jobs of each side, unless another number is asked for.
const JOBS: usize = 5;

/// A collective and its bytes.
type Name = (String, usize);

/// The medians of jobs, in microseconds, of each cell.
type Times = BTreeMap<Name, Vec<f64>>;

/// What was measured on one MPI.
#[derive(Default)]
struct Measured {
    library: String,
    theirs: Times,
    ours: Times,
}

/// What was measured in one world.
struct Chapter {
    title: String,
    measured: Vec<Measured>,
}

/// Prints the tables; with them, what every job printed goes into the file.
pub(crate) fn run(args: &Args) -> Result<()> {
    let text = match &args.from {
        Some(file) => std::fs::read_to_string(file).map_err(|error| {
            format!("{} cannot be read: {error}; name a file that --output has written", file.display())
        })?,
        None => measure(args)?,
    };
    let (head, raw) =
        text.split_once(RAW).ok_or("no line says where the jobs' output begins; name a file of this command")?;
    let chapters = chapters(raw)?;
    let head = head.split("\n## ").next().unwrap_or_default().trim_end();
    let mut tables = String::new();
    for Chapter { title, measured } in &chapters {
        let _ = write!(tables, "\n## {title}\n\n{}\n{}", summary(measured), table(measured));
    }
    if let Some(file) = &args.output {
        std::fs::write(file, format!("{head}\n{tables}\n{RAW}{raw}"))
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    }
    println!("{head}\n{tables}");
    Ok(())
}

/// Where what the jobs printed begins in a file.
const RAW: &str = "# What each job printed: collective, bytes, median, p10, p90 in microseconds\n";

/// What the machine is, and what every job printed.
fn measure(args: &Args) -> Result<String> {
    mpi::install()?;
    let allhands = build::installed()?;
    let libraries = LIBRARIES.into_iter().map(libraries::named).collect::<Result<Vec<_>>>()?;
    let mut raw = String::new();
    let before = machine::load();
    for world in WORLDS.iter().filter(|world| args.world.as_ref().is_none_or(|name| name == world.name)) {
        for library in &libraries {
            of_library(world, library, &allhands, args.jobs, &mut raw)?;
        }
    }
    let (machine, after) = (machine::description(), machine::load());
    Ok(format!("cargo xtask bench isolated\n\n{machine}load before: {before}; after: {after}\n{RAW}{raw}"))
}

fn of_library(world: &World, library: &Library, allhands: &Path, jobs: usize, raw: &mut String) -> Result<()> {
    let program = library.compile("bench/isolated.c")?;
    let computing = Computing::start(world.beside);
    for job in 0..2 * jobs {
        // Theirs, ours, ours, theirs: what comes and goes falls to both.
        let ours = matches!(job % 4, 1 | 2);
        let mut command = if ours { world.command(library, allhands) } else { world.command(library, &program) };
        if ours {
            command.arg("exec").arg(&program);
        }
        command.args([world.iterations.to_string(), world.largest.to_string()]);
        command.args(world.words);
        eprintln!("xtask: {}, {}, job {} of {}", library.title, world.title(), job + 1, 2 * jobs);
        let ended = launch(command, MOST)?;
        if !ended.status.is_some_and(|status| status.success()) {
            return Err(ended.fault(&format!("{}, {} failed", library.title, world.title())));
        }
        let side = if ours { OURS } else { THEIRS };
        let _ = writeln!(raw, "\n# {} | {} | {side}\n{}", library.title, world.title(), ended.out.trim_end());
    }
    drop(computing);
    Ok(())
}

const OURS: &str = "under allhands exec";
const THEIRS: &str = "alone";

/// What the jobs of a file have measured, world by world.
fn chapters(raw: &str) -> Result<Vec<Chapter>> {
    let mut chapters: Vec<Chapter> = Vec::new();
    for job in raw.split("\n# ").filter(|job| !job.trim().is_empty()) {
        let (head, printed) = job.split_once('\n').unwrap_or((job, ""));
        let fields: Vec<&str> = head.split(" | ").map(str::trim).collect();
        let [library, title, side] = fields[..] else {
            return Err(format!("{head:?} is not `MPI | world | side`; name a file of this command"));
        };
        let known = chapters.iter().position(|chapter| chapter.title == title).unwrap_or(chapters.len());
        if known == chapters.len() {
            chapters.push(Chapter { title: title.into(), measured: Vec::new() });
        }
        let all = &mut chapters[known].measured;
        let known = all.iter().position(|measured| measured.library == library).unwrap_or(all.len());
        if known == all.len() {
            all.push(Measured { library: library.into(), ..Measured::default() });
        }
        let measured = &mut all[known];
        add(printed, if side == OURS { &mut measured.ours } else { &mut measured.theirs })?;
    }
    Ok(chapters)
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

/// For every collective and size the MPIs' own times over ours, in the order of the MPIs; what is below 0.95 is marked.
fn summary(measured: &[Measured]) -> String {
    let Some(first) = measured.first() else { return String::new() };
    let names = || first.ours.keys().filter(|name| !name.0.starts_with(LIMIT) && name.1 > 0);
    let mut sizes: Vec<usize> = names().map(|name| name.1).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut collectives: Vec<&str> = names().map(|name| &*name.0).collect();
    collectives.dedup();
    let ratio = |one: &Measured, name: &Name| Some(median(one.theirs.get(name)?) / median(one.ours.get(name)?));
    let cell = |name: Name| {
        let ratios = measured.iter().filter_map(|one| ratio(one, &name));
        let shown = ratios.map(|ratio| match ratio {
            ..0.95 => format!("**{ratio:.2}**"),
            _ => format!("{ratio:.1}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    let mut text = String::from("| MPI's own / ours |");
    sizes.iter().for_each(|size| _ = write!(text, " {} |", tables::size(*size)));
    text += "\n| --- |";
    text += &" --- |".repeat(sizes.len());
    for collective in collectives {
        let _ = write!(text, "\n| {collective} |");
        sizes.iter().for_each(|size| _ = write!(text, " {} |", cell((collective.into(), *size))));
    }
    text += "\n";
    let barrier = cell(("barrier".into(), 0));
    if !barrier.is_empty() {
        let _ = writeln!(text, "\nbarrier: {barrier}");
    }
    text
}

/// For every cell the MPI's own time over ours, with both times; then their means, and how far both are from the same by hand.
fn table(measured: &[Measured]) -> String {
    let mut text = String::from(
        "MPI's own / ours = times in us (spread of jobs); *best*: the fastest MPI's own / the median of ours\n\n| |",
    );
    measured.iter().for_each(|one| _ = write!(text, " {} |", one.library));
    text += " best |\n| --- |";
    text += &" ---: |".repeat(measured.len() + 1);
    text.push('\n');
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); measured.len() + 1];
    // The MPI's own, and ours, over the limit.
    let (mut their_distance, mut our_distance) = (ratios.clone(), ratios.clone());
    let names: Vec<&Name> = measured.first().map_or_else(Vec::new, |one| one.ours.keys().collect());
    let (limits, cells): (Vec<&Name>, Vec<&Name>) = names.into_iter().partition(|name| name.0.starts_with(LIMIT));
    for name in cells {
        let _ = write!(text, "| {} {} |", name.0, name.1);
        let (mut fastest, mut all_ours, mut all_limits) = (f64::MAX, Vec::new(), Vec::new());
        for (index, one) in measured.iter().enumerate() {
            let (theirs, ours) = (one.theirs.get(name), one.ours.get(name));
            let (Some(theirs), Some(ours)) = (theirs, ours) else {
                text += " |";
                continue;
            };
            let (their, our) = (median(theirs), median(ours));
            let spreads = format!("({:.1}, {:.1})", spread(theirs), spread(ours));
            let _ = write!(text, " **{:.2}** = {their:.2} / {our:.2} {spreads} |", their / our);
            ratios[index].push(their / our);
            fastest = fastest.min(their);
            all_ours.push(our);
            if let Some(limit) = one.limit(name) {
                their_distance[index].push(their / limit);
                our_distance[index].push(our / limit);
                all_limits.push(limit);
            }
        }
        let best = fastest / median(&all_ours);
        let _ = writeln!(text, " {best:.2} |");
        ratios[measured.len()].push(best);
        if !all_limits.is_empty() {
            their_distance[measured.len()].push(fastest / median(&all_limits));
            our_distance[measured.len()].push(median(&all_ours) / median(&all_limits));
        }
    }
    let mean = |ratios: &[f64]| tables::geometric_mean(ratios.iter().copied());
    let least = |ratios: &[f64]| ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let below = |ratios: &[f64]| ratios.iter().filter(|ratio| **ratio < 0.95).count() as f64;
    row(&mut text, "geometric mean", &ratios, &mean);
    row(&mut text, "least", &ratios, &least);
    row(&mut text, "below 0.95", &ratios, &below);
    if !our_distance[measured.len()].is_empty() {
        row(&mut text, "MPI's own / limit, geometric mean", &their_distance, &mean);
        row(&mut text, "ours / limit, geometric mean", &our_distance, &mean);
    }
    for name in limits {
        let _ = write!(text, "| {} {} |", name.0, name.1);
        measured.iter().for_each(|one| _ = write!(text, " {:.2} |", one.of_both(name).unwrap_or(f64::NAN)));
        text += " |\n";
    }
    text
}

fn row(text: &mut String, label: &str, columns: &[Vec<f64>], value: &dyn Fn(&[f64]) -> f64) {
    let _ = write!(text, "| {label} |");
    columns.iter().for_each(|column| _ = write!(text, " {:.2} |", value(column)));
    text.push('\n');
}

/// What the names of what is done by hand begin with.
const LIMIT: &str = "limit-";

impl Measured {
    /// How long it takes by hand.
    fn limit(&self, name: &Name) -> Option<f64> {
        self.of_both(&(format!("{LIMIT}{}", name.0), name.1))
    }

    /// The median over all jobs, for what is the same with and without us.
    fn of_both(&self, name: &Name) -> Option<f64> {
        let times: Vec<f64> = self.theirs.get(name).into_iter().chain(self.ours.get(name)).flatten().copied().collect();
        (!times.is_empty()).then(|| median(&times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_medians_of_jobs_and_the_best_mpi_is_held_against_the_median_of_ours() {
        let mut one = Measured { library: "A".into(), ..Measured::default() };
        for (theirs, ours) in [("4.0", "2.0"), ("9.0", "2.0"), ("4.0", "5.0")] {
            add(&format!("bcast 8 {theirs} 1 9\nlimit-bcast 8 0.5 0 1\n"), &mut one.theirs).unwrap();
            add(&format!("bcast 8 {ours} 1 9\nlimit-bcast 8 0.5 0 1\n"), &mut one.ours).unwrap();
        }
        let text = table(&[one]);
        assert!(text.contains("| bcast 8 | **2.00** = 4.00 / 2.00 (2.2, 2.5) | 2.00 |"), "{text}");
        assert!(text.contains("| limit-bcast 8 | 0.50 | |"), "{text}");
        assert!(text.contains("| geometric mean | 2.00 | 2.00 |"), "{text}");
        assert!(
            text.contains(
                "| MPI's own / limit, geometric mean | 8.00 | 8.00 |\n| ours / limit, geometric mean | 4.00 | 4.00 |"
            ),
            "{text}"
        );
        assert!(add("no numbers here", &mut Times::new()).is_err());
    }

    #[test]
    fn tables_are_made_of_what_a_file_says() {
        let raw = "\n# A | idle | alone\nbcast 8 4.0 1 9\nbcast 2048 3.0 1 9\nbarrier 0 1.0 1 1\n\n\
                   # A | idle | under allhands exec\nbcast 8 2.0 1 9\nbcast 2048 6.0 1 9\nbarrier 0 0.5 1 1\n\n\
                   # B | idle | alone\nbcast 8 3.0 1 9\n\n# B | idle | under allhands exec\nbcast 8 2.0 1 9\n\n\
                   # A | crowded | alone\nbcast 8 1.0 1 9\n";
        let chapters = chapters(raw).unwrap();
        let titles: Vec<&str> = chapters.iter().map(|chapter| &*chapter.title).collect();
        assert_eq!(titles, ["idle", "crowded"]);
        let text = summary(&chapters[0].measured);
        assert!(text.contains("| MPI's own / ours | 8 B | 2 KiB |\n"), "{text}");
        assert!(text.contains("| bcast | 2.0 1.5 | **0.50** |\n\nbarrier: 2.0\n"), "{text}");
        assert!(super::chapters("\n# a head without fields\n").is_err());
    }
}
