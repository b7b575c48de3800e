//! Figures 2b, 3 and 4: measured on Theta, simulated here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use allhands_model::Machine;
use allhands_model::formulas::{Postal, radix};
use allhands_schedule::{Collective, Topology};
use rayon::prelude::*;

use super::super::figure::{Compared, Effort, Figure, Picture, Table};
use super::super::numbers::{listed, rounded, size};
use super::super::timed::times;
use super::counted;
use crate::error::Result;
use allhands_plot::{Axis, Chart, Curve, Unit};

/// Seconds a byte: 64 processes share the 10 GB/s at which a node of Theta is assumed to send. It sets the scale of times and nothing else: who
/// wins, and by how much, follows from how many bytes a latency is worth.
const PER_BYTE: f64 = 64.0 / 10e9;

/// What copying a byte costs, as a share of sending it: assumed.
const COPYING: f64 = 0.1;

/// By how many per cent the modified Bruck takes less time than Cray's MPI_Alltoall: processes, radix, bytes, per cent.
const PRINTED: [(usize, usize, u64, f64); 4] =
    [(512, 22, 64, 50.46), (512, 22, 1024, 25.42), (4096, 64, 64, 53.58), (4096, 64, 1024, 39.85)];

/// How many bytes take as long as a latency: the one number that is fitted, by the paper's own cost (steps by latency, blocks by size) to its
/// four printed gains, among powers of the fourth root of 2.
fn latency_in_bytes() -> f64 {
    let error = |bytes: f64| -> f64 {
        let network = Postal { latency: bytes, per_byte: 1.0 };
        let gain = |ranks, radix, size| {
            let time = |radix| radix::time(network, ranks, radix, size);
            faster(time(radix), time(2).min(time(ranks)))
        };
        PRINTED.iter().map(|&(ranks, radix, size, printed)| (gain(ranks, radix, size) - printed).powi(2)).sum()
    };
    let candidates = (32..=56).map(|quarter| (f64::from(quarter) / 4.0).exp2());
    candidates.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(1024.0)
}

/// One port and one price for all messages, as the paper assumes.
fn network() -> Machine {
    Machine { copy: COPYING * PER_BYTE, ..Machine::postal(latency_in_bytes() * PER_BYTE, PER_BYTE) }
}

/// Microseconds by algorithm, at several sizes.
type Times = BTreeMap<String, Vec<f64>>;

/// The sizes of all figures.
const SIZES: [u64; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// The times of algorithms at all sizes; each is simulated once, however many figures ask.
fn simulated(ranks: usize, algorithms: &[String]) -> Result<Times> {
    type Kept = BTreeMap<(usize, String), Arc<Vec<f64>>>;
    static KEPT: Mutex<Kept> = Mutex::new(BTreeMap::new());
    // Not held while computing: a thread that waits for its share of the work may take up another figure.
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let (machine, topology) = (network(), Topology::flat(ranks)?);
    let one = |algorithm: &String| -> Result<(String, Vec<f64>)> {
        let key = (ranks, algorithm.clone());
        if let Some(known) = kept().get(&key).cloned() {
            return Ok((algorithm.clone(), known.to_vec()));
        }
        let times = times(&machine, Collective::Alltoall, &topology, algorithm, &SIZES)?;
        kept().insert(key, Arc::new(times.clone()));
        Ok((algorithm.clone(), times))
    };
    algorithms.par_iter().map(one).collect()
}

fn at(bytes: u64) -> usize {
    SIZES.iter().position(|size| *size == bytes).unwrap_or(0)
}

const BASIC: &str = "bruck";
const MODIFIED: &str = "modified-bruck";
const SPREAD: &str = "spread-out";

fn named(algorithm: &str, radix: usize) -> String {
    format!("{algorithm}:radix={radix}")
}

/// Both Brucks with these radices, at one size, beside what an MPI would choose.
struct Sweep {
    radices: Vec<usize>,
    basic: Vec<f64>,
    modified: Vec<f64>,
    /// The faster of spreading out and radix 2, between which MPICH and its kin choose.
    library: f64,
}

impl Sweep {
    fn new(ranks: usize, bytes: u64, radices: &[usize]) -> Result<Sweep> {
        let mut algorithms: Vec<String> =
            radices.iter().flat_map(|&radix| [named(BASIC, radix), named(MODIFIED, radix)]).collect();
        algorithms.push(SPREAD.into());
        let times = simulated(ranks, &algorithms)?;
        let time = |algorithm: String| times[&algorithm][at(bytes)];
        let of = |algorithm| radices.iter().map(|&radix| time(named(algorithm, radix))).collect::<Vec<f64>>();
        let library = time(SPREAD.into()).min(time(named(BASIC, 2)));
        Ok(Sweep { radices: radices.to_vec(), basic: of(BASIC), modified: of(MODIFIED), library })
    }

    /// The radix of least time.
    fn best(&self) -> usize {
        let index = (0..self.radices.len()).min_by(|&a, &b| self.modified[a].total_cmp(&self.modified[b]));
        index.map_or(2, |index| self.radices[index])
    }

    fn modified(&self, radix: usize) -> f64 {
        self.radices.iter().position(|known| *known == radix).map_or(f64::INFINITY, |index| self.modified[index])
    }

    fn chart(&self, ranks: usize, bytes: u64) -> Picture {
        let line = |times: &[f64]| self.radices.iter().zip(times).map(|(&radix, &time)| (radix as f64, time)).collect();
        let ends = [self.radices[0], self.radices[self.radices.len() - 1]].map(|radix| (radix as f64, self.library));
        let svg = Chart {
            title: format!("P = {ranks}, N = {bytes}"),
            subtitle: "simulated; dashed: the faster of spreading out and radix 2".into(),
            x: Axis::linear("radix", Unit::Plain),
            y: Axis::linear("", Unit::Microseconds),
            lines: vec![
                Curve::bound(ends.to_vec()),
                Curve::new("Bruck", line(&self.basic)),
                Curve::new("modified Bruck", line(&self.modified)),
            ],
        }
        .svg();
        Picture::new("", svg)
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new("", &["radix", "bruck us", "modified-bruck us", "faster of spread-out and radix 2, us"]);
        for (index, radix) in self.radices.iter().enumerate() {
            table.row([radix, &rounded(self.basic[index]), &rounded(self.modified[index]), &rounded(self.library)]);
        }
        table
    }
}

/// How times are found.
fn machine_in_words() -> String {
    format!(
        "Theta's message costs are not published, so times are simulated with one port and one price for all messages, as the paper assumes; packing and \
         rotating are copies at a tenth of the price of sending. One number is fitted: a latency takes as long as {:.0} bytes, which is closest to the four gains \
         that the paper prints. In place of Cray's MPI_Alltoall stands what the paper says MPIs choose between: the faster of spreading out and Bruck \
         with radix 2.",
        latency_in_bytes()
    )
}

const INEXACT: &str = "Measured on Theta against Cray's MPI there, simulated with one fitted number here.";

/// Per cent less time than the reference.
fn faster(time: f64, reference: f64) -> f64 {
    100.0 * (1.0 - time / reference)
}

pub(super) fn figure_2b(effort: Effort) -> Result<Figure> {
    let ranks = effort.either(512, 2048);
    let radices = [2, 4, 8, 16, 32, 48, 64];
    let sweep = Sweep::new(ranks, 512, &radices)?;
    let best = sweep.best();
    let root = (ranks as f64).sqrt().ceil();
    let compared = [
        Compared::shape(
            "the best of these radices lies near the root of P: within a factor of 1.5",
            "48, root 46",
            format!("{best}, root {root:.0}"),
            best as f64 / root < 1.5 && root / (best as f64) < 1.5,
        ),
        Compared::shape(
            "radix 2 is not the best",
            "yes",
            format!("{} us, the best {} us", rounded(sweep.modified(2)), rounded(sweep.modified(best))),
            best != 2,
        ),
    ];
    let (steps, blocks) = counted(2048, 46)?;
    let alike = if counted(2048, 48)? == (steps, blocks) { "48 does the same" } else { "48 does not" };
    Ok(Figure::new(&format!(
        "Radices doubled from 2 to 64, and 48, which the paper found best beside the root of 2048. Radix 46 sends {steps} messages of {blocks} blocks in all, and {alike}. {}",
        machine_in_words()
    ))
    .picture(sweep.chart(ranks, 512))
    .table(sweep.table())
    .compare(compared)
    .judged(INEXACT))
}

pub(super) fn figure_3(asked: usize, bytes: u64, effort: Effort) -> Result<Figure> {
    let ranks = effort.either(asked.min(512), asked);
    let (root, most) = if ranks == 512 { (22, 56) } else { (64, 80) };
    let mut radices: Vec<usize> = (8..=most).step_by(effort.either(16, 8)).chain([2, 4, root]).collect();
    radices.sort_unstable();
    radices.dedup();
    let sweep = Sweep::new(ranks, bytes, &radices)?;
    let printed = PRINTED.iter().find(|one| (one.0, one.2) == (asked, bytes)).map_or(0.0, |one| one.3);
    let best = sweep.best();
    let (near, least) = (sweep.modified(root), sweep.modified(best));
    let rotation =
        sweep.basic.iter().zip(&sweep.modified).map(|(basic, modified)| faster(*modified, *basic)).fold(0.0, f64::max);
    let gain = Compared::measured(
        &format!("radix {root}: less time than MPI_Alltoall"),
        printed,
        faster(near, sweep.library),
        " %",
        0.25,
    );
    let compared = [
        Compared::shape(
            &format!("radix {root} works well: at most a fifth above the best"),
            "yes",
            format!("{} of radix {best}'s time", rounded(near / least)),
            near <= 1.2 * least,
        ),
        Compared::shape(
            "radix 2 does not perform well",
            "in most cases",
            format!("{} of the best time", rounded(sweep.modified(2) / least)),
            sweep.modified(2) > 1.2 * least,
        ),
        Compared::shape(
            "modified Bruck gains on Bruck, but little: less than 15 %",
            "extremely limited",
            format!("at most {} %", rounded(rotation)),
            (0.0..15.0).contains(&rotation),
        ),
    ];
    Ok(Figure::new(&format!("Both Brucks by radix, {} a block. {}", size(bytes), machine_in_words()))
        .picture(sweep.chart(ranks, bytes))
        .table(sweep.table())
        .compare((ranks == asked).then_some(gain))
        .compare(compared)
        .judged(INEXACT))
}

pub(super) fn figure_4a(effort: Effort) -> Result<Figure> {
    let (ranks, radix) = effort.either((512, 22), (4096, 64));
    let algorithms = [named(MODIFIED, radix), named(BASIC, 2), SPREAD.into()];
    let all = simulated(ranks, &algorithms)?;
    let [tuned, binary, spread] = algorithms.each_ref().map(|name| &all[name]);
    let line = |times: &[f64]| SIZES.iter().zip(times).map(|(&bytes, &time)| (bytes as f64, time)).collect();
    let svg = Chart {
        title: format!("P = {ranks}, by bytes a block"),
        subtitle: "simulated".into(),
        x: Axis::logarithmic("bytes a block", Unit::Bytes, 2),
        y: Axis::logarithmic("", Unit::Microseconds, 10),
        lines: vec![
            Curve::new(&format!("modified Bruck, radix {radix}"), line(tuned)),
            Curve::new("Bruck, radix 2", line(binary)),
            Curve::new("spread-out", line(spread)),
        ],
    }
    .svg();
    let mut table =
        Table::new("", &["bytes", "modified-bruck us", "bruck, radix 2, us", "spread-out us", "faster by %"]);
    let gains: Vec<f64> =
        (0..SIZES.len()).map(|index| faster(tuned[index], binary[index].min(spread[index]))).collect();
    for (index, bytes) in SIZES.iter().enumerate() {
        let cells = [tuned[index], binary[index], spread[index], gains[index]].map(rounded);
        table.row([bytes, &cells[0], &cells[1], &cells[2], &cells[3]]);
    }
    let ahead: Vec<String> =
        SIZES.iter().zip(&gains).filter(|(_, gain)| **gain > 0.0).map(|(bytes, _)| size(*bytes)).collect();
    let long = SIZES.iter().zip(&gains).filter(|(bytes, _)| **bytes > 32).all(|(_, gain)| *gain > 0.0);
    let most = gains.iter().copied().fold(0.0, f64::max);
    let compared = [
        Compared::shape(
            "faster at all sizes but extremely short ones (here: from 64 B)",
            "yes",
            format!("at {}", listed(ahead)),
            long,
        ),
        Compared::measured("the largest gain, here and in the other figures", 57.0, most, " %", 0.25),
    ];
    Ok(Figure::new(&format!(
        "The radix is the root of P, the size goes from 16 bytes to 1 KiB. {}",
        machine_in_words()
    ))
    .picture(Picture::new("", svg))
    .table(table)
    .compare(compared)
    .judged(INEXACT))
}

pub(super) fn figure_4b(effort: Effort) -> Result<Figure> {
    let counts: Vec<usize> = effort.either(vec![256, 512], vec![512, 1024, 2048, 4096]);
    let mut table = Table::new(
        "",
        &["processes", "radix", "modified-bruck us", "bruck, radix 2, us", "spread-out us", "faster by %"],
    );
    let mut lines: [Vec<(f64, f64)>; 3] = Default::default();
    let mut gains = Vec::new();
    for &ranks in &counts {
        let radix = (ranks as f64).sqrt().ceil() as usize;
        let algorithms = [named(MODIFIED, radix), named(BASIC, 2), SPREAD.into()];
        let all = simulated(ranks, &algorithms)?;
        let times = algorithms.each_ref().map(|name| all[name][at(1024)]);
        lines.iter_mut().zip(times).for_each(|(line, time)| line.push((ranks as f64, time)));
        gains.push(faster(times[0], times[1].min(times[2])));
        let cells = times.map(rounded);
        table.row([&ranks, &radix, &cells[0], &cells[1], &cells[2], &rounded(gains[gains.len() - 1])]);
    }
    let [tuned, binary, spread] = lines;
    let svg = Chart {
        title: "1024 bytes a block, by processes".into(),
        subtitle: "simulated".into(),
        x: Axis::logarithmic("processes", Unit::Plain, 2),
        y: Axis::logarithmic("", Unit::Microseconds, 10),
        lines: vec![
            Curve::new("modified Bruck, radix root P", tuned),
            Curve::new("Bruck, radix 2", binary),
            Curve::new("spread-out", spread),
        ],
    }
    .svg();
    let words = listed(gains.iter().map(|gain| format!("{} %", rounded(*gain))));
    let compared = [Compared::shape(
        "faster for every number of processes",
        "much better",
        words,
        gains.iter().all(|gain| *gain > 0.0),
    )];
    Ok(Figure::new(&format!("The radix is the root of P, the size 1 KiB. {}", machine_in_words()))
        .picture(Picture::new("", svg))
        .table(table)
        .compare(compared)
        .judged(INEXACT))
}

#[cfg(test)]
mod tests {
    use super::super::super::timed::time;
    use super::*;

    /// Under one port and one price a simulation is the paper's cost, and the fit lies where two of its four numbers pull it each way.
    #[test]
    fn the_simulation_is_the_papers_cost() {
        let free = Machine { copy: 0.0, ..network() };
        let network = Postal { latency: free.levels[0].protocols[0].latency, per_byte: PER_BYTE };
        for radix in [2, 5, 8, 23] {
            let simulated =
                time(&free, Collective::Alltoall, &Topology::flat(64).unwrap(), &named(MODIFIED, radix), 64).unwrap();
            let formula = radix::time(network, 64, radix, 64) * 1e6;
            assert!((simulated / formula - 1.0).abs() < 1e-9, "{radix}: {simulated} beside {formula}");
        }
        assert!((1024.0..2048.0).contains(&latency_in_bytes()));
    }
}
