//! What the ranks of a race do: every way to perform a collective, in turns, each from a start that all ranks agree on. What `auto` is
//! they find out in trials before, as a tuning does at the installation of a library.

use std::path::{Path, PathBuf};
use std::time::Duration;

use allhands::{Comm, Error, Op, Options, Plan};
use allhands_mpi::Mpi;
use serde::{Deserialize, Serialize};

use super::meeting::{self, Meeting, Run};
use crate::settings::Delay;
use crate::system;
use crate::words::Dial;

/// Turns before those that count.
const WARM_UP: usize = 2;
/// Turns that every cell gets, however long they take.
const LEAST: usize = 5;

/// Turns of each candidate before the race, the first of which does not count.
const TRIALS: usize = 6;
/// The MPI's own is left its calls where it is faster than ours by more than this share.
const CLEARLY: f64 = 0.95;

/// What a way is called that is tried before.
pub(crate) const TRIAL: &str = "trial";

/// The collectives that race, and the papers' algorithms for them, besides `auto` and `mpi`.
pub(crate) const COLLECTIVES: [(&str, &[&str]); 5] = [
    ("allgather", &["bruck", "ring", "sparbit", "loc-bruck"]),
    ("allreduce", &["recursive-doubling", "rabenseifner", "smp", "nap"]),
    ("alltoall", &["spread-out", "pairwise", "bruck"]),
    ("reduce_scatter_block", &["pairwise", "recursive-halving", "cyclic-shift"]),
    ("bcast", &["binomial"]),
];

/// What the ranks are told.
#[derive(Serialize, Deserialize)]
pub(crate) struct Programme {
    /// Where they meet.
    pub(crate) meeting: PathBuf,
    /// Where they turn the delay.
    pub(crate) dial: PathBuf,
    /// Turns that count, of each way at each delay.
    pub(crate) turns: usize,
    /// What a cell may take at each delay.
    pub(crate) seconds: f64,
    pub(crate) cells: Vec<Cell>,
}

/// A collective and a size, at some delays.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) collective: String,
    pub(crate) bytes: usize,
    /// With what `auto` can be there.
    pub(crate) delays: Vec<(Delay, Vec<String>)>,
}

/// What is measured of one way at one delay.
struct Way {
    name: &'static str,
    algorithm: String,
    delay: Delay,
    /// Which of the plans.
    plan: usize,
    times: Vec<Duration>,
    thrown_away: usize,
}

/// Races on the ranks of this job; the first prints a line for every way.
pub(crate) fn race(programme: &Path) -> crate::Result<()> {
    let read = std::fs::read(programme).map_err(|error| error.to_string());
    let told: Programme = read
        .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()))
        .map_err(|error| format!("{} is no programme of a race: {error}", programme.display()))?;
    let dial = Dial::open(&told.dial).map_err(|error| format!("the delay cannot be turned: {error}"))?;
    let race = |comm: &Comm| {
        let meeting = Meeting::join(&told.meeting, comm.rank(), comm.size());
        let meeting = meeting.map_err(|error| Error::Operation(format!("the meeting cannot be joined: {error}")))?;
        system::limit_priority();
        let mpi = allhands_mpi::load().map_err(|error| Error::Operation(error.to_string()))?;
        let mut track = Track { meeting, dial: &dial, mpi, me: comm.rank() };
        told.cells.iter().try_for_each(|cell| track.cell(comm, cell, &told))
    };
    allhands::mpi(race).map_err(|error| error.to_string())
}

fn plan(comm: &Comm, collective: &str, count: usize, algorithm: &str) -> Result<Plan<u64>, Error> {
    let options = Options::new().algorithm(algorithm);
    match collective {
        "allgather" => comm.allgather_plan_with(count, &options),
        "alltoall" => comm.alltoall_plan_with(count, &options),
        "allreduce" => comm.allreduce_plan_with(count, Op::sum(), &options),
        "reduce_scatter_block" => comm.reduce_scatter_block_plan_with(count, Op::sum(), &options),
        _ => comm.bcast_plan_with(count, 0, &options),
    }
}

/// Element `index` of the block that `from` has for `to`.
fn element(from: usize, to: usize, index: usize) -> u64 {
    (from as u64 * 1_000_003 + to as u64 * 10_007 + index as u64 * 101).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}

/// What a rank gives, and what it must get.
fn buffers(collective: &str, (me, ranks): (usize, usize), count: usize) -> (Vec<u64>, Vec<u64>) {
    let block = |from: usize, to: usize| (0..count).map(move |index| element(from, to, index));
    let summed = |to: usize| {
        (0..count).map(move |index| (0..ranks).fold(0, |sum: u64, from| sum.wrapping_add(element(from, to, index))))
    };
    match collective {
        "allgather" => (block(me, 0).collect(), (0..ranks).flat_map(|from| block(from, 0)).collect()),
        "alltoall" => {
            ((0..ranks).flat_map(|to| block(me, to)).collect(), (0..ranks).flat_map(|from| block(from, me)).collect())
        }
        "allreduce" => (block(me, 0).collect(), summed(0).collect()),
        "reduce_scatter_block" => ((0..ranks).flat_map(|to| block(me, to)).collect(), summed(me).collect()),
        _ => (Vec::new(), block(0, 0).collect()),
    }
}

/// One rank, where it races.
struct Track<'a> {
    meeting: Meeting,
    dial: &'a Dial,
    mpi: &'static Mpi,
    me: usize,
}

/// A collective of a size on one rank: what it gives and must get, and the plans for it.
struct Stage<'a> {
    comm: &'a Comm,
    cell: &'a Cell,
    input: Vec<u64>,
    expected: Vec<u64>,
    output: Vec<u64>,
    plans: Vec<(String, Plan<u64>)>,
}

impl<'a> Stage<'a> {
    fn new(comm: &'a Comm, cell: &'a Cell) -> Stage<'a> {
        let (input, expected) = buffers(&cell.collective, (comm.rank(), comm.size()), cell.bytes / 8);
        let output = vec![0; expected.len()];
        Stage { comm, cell, input, expected, output, plans: Vec::new() }
    }

    /// Which plan is by this algorithm.
    fn plan(&mut self, algorithm: &str) -> Result<usize, Error> {
        if let Some(known) = self.plans.iter().position(|(known, _)| known == algorithm) {
            return Ok(known);
        }
        let plan = plan(self.comm, &self.cell.collective, self.cell.bytes / 8, algorithm)?;
        self.plans.push((algorithm.into(), plan));
        Ok(self.plans.len() - 1)
    }
}

impl Track<'_> {
    fn cell(&mut self, comm: &Comm, cell: &Cell, told: &Programme) -> Result<(), Error> {
        let algorithms = COLLECTIVES.iter().find(|(name, _)| *name == cell.collective).map_or(&[][..], |known| known.1);
        let (mut stage, mut ways) = (Stage::new(comm, cell), Vec::new());
        for (delay, candidates) in &cell.delays {
            let auto = self.tried(&mut stage, *delay, candidates, told)?;
            for name in ["auto", "mpi"].iter().chain(algorithms) {
                let index = match stage.plan(if *name == "auto" { &auto } else { name }) {
                    Ok(index) => index,
                    Err(error) if ["auto", "mpi"].contains(name) => return Err(error),
                    // A paper's algorithm that cannot serve here does not race.
                    Err(_) => continue,
                };
                let (algorithm, times) = (stage.plans[index].1.algorithm(), Vec::new());
                ways.push(Way { name, algorithm, delay: *delay, plan: index, times, thrown_away: 0 });
            }
        }
        self.measure(&mut stage, told, &mut ways)?;
        for way in ways.iter().filter(|_| self.me == 0) {
            println!("{}", way.line(&cell.collective, cell.bytes));
        }
        Ok(())
    }

    /// The best of some candidates in a few trials, or the MPI's own if that is clearly faster. All ranks see the same times, so all of
    /// them choose alike.
    fn tried(
        &mut self,
        stage: &mut Stage<'_>,
        delay: Delay,
        candidates: &[String],
        told: &Programme,
    ) -> Result<String, Error> {
        let mut trials: Vec<Way> = Vec::new();
        for algorithm in std::iter::once("mpi").chain(candidates.iter().map(String::as_str)) {
            let plan = stage.plan(algorithm)?;
            trials.push(Way {
                name: TRIAL,
                algorithm: algorithm.into(),
                delay,
                plan,
                times: Vec::new(),
                thrown_away: 0,
            });
        }
        self.turn_delay(delay);
        let (mut dice, mut began, budget) = (Dice(2), None, Duration::from_secs_f64(told.seconds));
        for turn in 0..TRIALS {
            let mut order: Vec<usize> = (0..trials.len()).collect();
            dice.shuffle(&mut order);
            let mut now = Duration::ZERO;
            for index in order {
                let run = self.run(stage, trials[index].plan, turn > 0)?;
                now = run.start + run.time;
                began.get_or_insert(run.start);
                if turn > 0 {
                    trials[index].times.push(run.time);
                }
            }
            if turn >= TRIALS / 2 && now > budget + began.unwrap_or_default() {
                break;
            }
        }
        for trial in trials.iter().filter(|_| self.me == 0) {
            println!("{}", trial.line(&stage.cell.collective, stage.cell.bytes));
        }
        let (theirs, ours) = trials.split_first().expect("the MPI's own is one");
        let best = ours.iter().min_by_key(|trial| trial.median()).expect("there are candidates");
        let clearly = theirs.median() < best.median().mul_f64(CLEARLY);
        Ok(if clearly { "mpi".into() } else { best.algorithm.clone() })
    }

    /// Lets delays, and at each the ways, take turns, in orders that are shuffled alike on every rank.
    fn measure(&mut self, stage: &mut Stage<'_>, told: &Programme, ways: &mut [Way]) -> Result<(), Error> {
        let mut dice = Dice(1);
        let budget = Duration::from_secs_f64(told.seconds * stage.cell.delays.len() as f64);
        // All ranks see the same times, so all of them end with the same turn.
        let (mut began, mut spent) = (None, Duration::ZERO);
        for turn in 0..WARM_UP + 2 * told.turns {
            let enough = ways.iter().all(|way| way.times.len() >= told.turns);
            if enough || (turn >= WARM_UP + LEAST && spent > budget) {
                break;
            }
            let mut delays: Vec<Delay> = stage.cell.delays.iter().map(|(delay, _)| *delay).collect();
            dice.shuffle(&mut delays);
            for delay in delays {
                self.turn_delay(delay);
                let mut order: Vec<usize> = (0..ways.len()).filter(|&index| ways[index].delay == delay).collect();
                dice.shuffle(&mut order);
                for index in order {
                    let way = &mut ways[index];
                    let run = self.run(stage, way.plan, turn >= WARM_UP)?;
                    spent = run.start + run.time - *began.get_or_insert(run.start);
                    match (turn < WARM_UP, run.late) {
                        (true, _) => {}
                        (false, true) => way.thrown_away += 1,
                        (false, false) => way.times.push(run.time),
                    }
                }
            }
        }
        Ok(())
    }

    /// One run of one plan, which must give what is expected.
    fn run(&mut self, stage: &mut Stage<'_>, index: usize, urgent: bool) -> Result<Run, Error> {
        let mpi = self.mpi;
        let move_on = || {
            let _ = mpi.iprobe(mpi.constants().integers.any_source, 0, mpi.world());
        };
        let Stage { cell, input, expected, output, plans, .. } = stage;
        let (algorithm, plan) = &mut plans[index];
        output.fill(u64::MAX);
        if cell.collective == "bcast" && self.me == 0 {
            output.copy_from_slice(expected);
        }
        let act = || match cell.collective.as_str() {
            "bcast" => plan.run_in_place(output),
            _ => plan.run(input, output),
        };
        let run = self.meeting.run(urgent, act, &move_on)?;
        if output == expected {
            return Ok(run);
        }
        Err(Error::Operation(format!("{} by {algorithm} gave a wrong result on rank {}", cell.collective, self.me)))
    }

    /// From now on frames travel for so long; those under way have arrived.
    fn turn_delay(&mut self, delay: Delay) {
        let before = self.dial.micros();
        // All have read it.
        self.meeting.come(|_| ());
        let dial = self.dial;
        self.meeting.come(|_| dial.set(delay.micros));
        if before != delay.micros {
            meeting::sleep(Duration::from_micros(2 * before.max(delay.micros) + 500));
        }
    }
}

/// The same numbers on every rank.
struct Dice(u64);

impl Dice {
    fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            things.swap(last, (self.0 >> 33) as usize % (last + 1));
        }
    }
}

impl Way {
    fn line(&self, collective: &str, bytes: usize) -> String {
        let times: Vec<String> = self.times.iter().map(|time| format!("{:.0}", time.as_secs_f64() * 1e6)).collect();
        let Way { name, algorithm, delay, thrown_away, .. } = self;
        let kind = if *name == TRIAL { TRIAL } else { "run" };
        format!(
            "{delay} {kind} {collective} {bytes} {name} {algorithm} thrown-away={thrown_away} us={}",
            times.join(",")
        )
    }

    fn median(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_what_is_given() {
        let (count, ranks) = (3, 4);
        let all = |collective: &str| -> Vec<(Vec<u64>, Vec<u64>)> {
            (0..ranks).map(|me| buffers(collective, (me, ranks), count)).collect()
        };
        let gathered = all("allgather");
        assert_eq!(gathered[2].1, gathered.iter().flat_map(|(input, _)| input.clone()).collect::<Vec<_>>());
        let exchanged = all("alltoall");
        assert_eq!(exchanged[1].1[2 * count..3 * count], exchanged[2].0[count..2 * count]);
        let scattered = all("reduce_scatter_block");
        let sum = (0..ranks).fold(0u64, |sum, from| sum.wrapping_add(scattered[from].0[3 * count + 1]));
        assert_eq!(scattered[3].1[1], sum);
        let reduced = all("allreduce");
        let sum = (0..ranks).fold(0u64, |sum, from| sum.wrapping_add(reduced[from].0[2]));
        assert_eq!(reduced[0].1[2], sum);
        assert_eq!(all("bcast")[3].1.len(), count);
    }
}
