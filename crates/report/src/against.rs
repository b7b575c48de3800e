//! Two reports beside each other: what one job took, and what the other, by shape and in sum.

use std::collections::BTreeMap;

use crate::bottom::{Bottom, Shape};
use crate::compared::Estimate;
use crate::table::{aligned, wrapped};
use crate::units::{time, up_to};
use crate::whole::{Communicator, Row, Whole};

/// A job beside another.
pub struct Against {
    bottom_line: String,
    warnings: Vec<String>,
    seconds: [f64; 2],
    collectives_seconds: [f64; 2],
    requests_seconds: [f64; 2],
    rows: Vec<Pair>,
}

/// Calls of one shape in both jobs: calls of all ranks, and seconds of a rank. `name`: that of their communicator.
struct Pair {
    collective: String,
    up_to_bytes: Option<u64>,
    calls: [u64; 2],
    seconds: [f64; 2],
    ours_is: String,
    name: String,
}

type Like = (Communicator, String, Option<u64>);

/// What calls of a shape took in one job, whoever served them: of all ranks calls, of a rank those that are timed, mean and deviation.
#[derive(Default)]
struct Sum {
    calls: u64,
    callers: usize,
    each: f64,
    seconds: f64,
    squares: f64,
    request: bool,
}

impl Sum {
    fn add(&mut self, row: &Row) {
        self.calls += row.calls;
        self.callers = self.callers.max(row.callers);
        self.each += row.each();
        self.seconds += row.seconds;
        self.squares += row.each() * row.deviation_seconds * row.deviation_seconds;
        self.request |= row.is_request();
    }

    fn side(&self) -> (f64, f64, f64) {
        (self.each, self.seconds / self.each.max(1.0), (self.squares / self.each.max(1.0)).sqrt())
    }
}

/// Where one of the jobs does not know all sizes of a collective, they are of no use in the other either.
fn sums(whole: &Whole, other: &Whole) -> BTreeMap<Like, Sum> {
    let sizeless = |row: &Row| {
        let mut both = whole.rows.iter().chain(&other.rows);
        let like = |known: &Row| (known.key.on, &known.key.collective) == (row.key.on, &row.key.collective);
        both.any(|known| like(known) && known.key.up_to_bytes.is_none())
    };
    let mut sums: BTreeMap<Like, Sum> = BTreeMap::new();
    for row in &whole.rows {
        let up_to_bytes = row.key.up_to_bytes.filter(|_| !sizeless(row));
        sums.entry((row.key.on, row.key.collective.clone(), up_to_bytes)).or_default().add(row);
    }
    sums
}

impl Against {
    /// One beside the other.
    pub fn new(one: &Whole, other: &Whole) -> Against {
        let (mut mine, mut theirs) = (sums(one, other), sums(other, one));
        let (mut rows, mut shapes) = (Vec::new(), Vec::new());
        let all: std::collections::BTreeSet<Like> = mine.keys().chain(theirs.keys()).cloned().collect();
        let mut alike = true;
        for like in all {
            let (a, b) = (mine.remove(&like).unwrap_or_default(), theirs.remove(&like).unwrap_or_default());
            let (on, collective, up_to_bytes) = like;
            alike &= a.calls == b.calls;
            let known = if one.communicators.contains(&on) { one } else { other };
            let name = format!("{collective} {} on {}", up_to(up_to_bytes), known.name(on));
            let both = a.each.min(b.each) >= 2.0 && !a.request && !b.request;
            let estimate = both.then(|| Estimate::new(a.each.min(b.each), a.side(), b.side()));
            let ours_is = match &estimate {
                Some(estimate) => estimate.verdict(),
                None if a.request || b.request || a.calls == 0 || b.calls == 0 => "-".into(),
                None => "too few".into(),
            };
            if let Some(estimate) = estimate {
                let estimate = estimate.on(a.callers as f64 / one.ranks.max(1) as f64);
                shapes.push(Shape { name, collective: collective.clone(), estimate });
            }
            let (calls, seconds, name) = ([a.calls, b.calls], [a.seconds, b.seconds], known.name(on));
            rows.push(Pair { collective, up_to_bytes, calls, seconds, ours_is, name });
        }
        let sum: Estimate = shapes.iter().map(|shape| shape.estimate).sum();
        // What can be done about a loss depends on who lost against whom.
        let advised = (!one.off && other.off).then_some(shapes.as_slice());
        let mut warnings = Vec::new();
        if one.ranks != other.ranks {
            warnings
                .push(format!("the jobs have {} and {} ranks, so their times do not compare", one.ranks, other.ranks));
        } else if !alike {
            warnings.push("the jobs did not call the same: sums are of the calls that both made".into());
        }
        if one.mpi != other.mpi {
            warnings.push(format!("the jobs ran on {} and on {}", one.mpi, other.mpi));
        }
        let [ours, theirs] = [one, other].map(|job| {
            let obstacles = job.obstacles.iter().map(ToString::to_string);
            obstacles.chain(job.warnings.iter().cloned()).collect::<Vec<String>>()
        });
        for warning in &ours {
            let title = if theirs.contains(warning) { "both" } else { "the first" };
            warnings.push(format!("in {title} {warning}"));
        }
        let alone = theirs.iter().filter(|warning| !ours.contains(warning));
        warnings.extend(alone.map(|warning| format!("in the second {warning}")));
        let bottom_line = match shapes.is_empty() {
            true => "nothing can be compared: no shape was called twice in both jobs".into(),
            false => Bottom::of_two(&sum, (one.seconds, other.seconds), advised).to_string(),
        };
        Against {
            bottom_line,
            warnings,
            seconds: [one.seconds, other.seconds],
            collectives_seconds: [one.collectives_seconds, other.collectives_seconds],
            requests_seconds: [one.requests_seconds, other.requests_seconds],
            rows,
        }
    }

    /// As text: of two jobs that go by these names.
    pub fn text(&self, names: [&str; 2]) -> String {
        let mut text = wrapped(&format!("allhands: {} beside {}", names[0], names[1]), 0);
        text += &wrapped(&self.bottom_line, 0);
        for warning in &self.warnings {
            text += &wrapped(&format!("note: {warning}"), 2);
        }
        text += &wrapped("one run each: what differs from run to run is not in the interval; repeat them to see it", 0);
        let line = |what: &str, [one, other]: [f64; 2]| {
            let verdict = if one.max(other) > 0.0 { crate::units::gain(one, other) } else { "-".into() };
            [what.into(), time(one), time(other), verdict]
        };
        let sums = [
            line("the job", self.seconds),
            line("a rank in collectives", self.collectives_seconds),
            line("in point-to-point and requests", self.requests_seconds),
        ];
        text += "\n";
        text += &aligned(["", "the first", "the second", "the first is"], sums.into_iter(), 1..3);
        let mut done: Vec<&str> = Vec::new();
        for name in self.rows.iter().map(|row| row.name.as_str()) {
            if done.contains(&name) {
                continue;
            }
            done.push(name);
            text += &format!("\n{name}\n");
            let rows = self.rows.iter().filter(|row| row.name == name).map(Pair::cells);
            text += &aligned(["collective", "bytes", "calls", "the first", "the second", "the first is"], rows, 1..5);
        }
        text
    }
}

impl Pair {
    fn cells(&self) -> [String; 6] {
        let [one, other] = self.calls;
        let calls = if one == other { one.to_string() } else { format!("{one}, {other}") };
        let [a, b] = self.seconds.map(|seconds| if seconds == 0.0 { "-".into() } else { time(seconds) });
        [self.collective.clone(), up_to(self.up_to_bytes), calls, a, b, self.ours_is.clone()]
    }
}
