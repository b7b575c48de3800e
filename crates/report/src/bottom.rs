//! What it all comes to, in a sentence or two: first in every report.

use std::collections::BTreeMap;
use std::fmt;

use crate::compared::{Estimate, Instead};
use crate::units::{gain, time, up_to};
use crate::whole::{Served, Whole};

/// The bottom line: what is known, and never more.
pub(crate) struct Bottom {
    sentences: Vec<String>,
    /// What it rests on.
    pub(crate) instead: Option<Instead>,
}

/// Calls of one shape, and what they take by one and by the other.
pub(crate) struct Shape {
    /// `allreduce <= 8 B on world`
    pub(crate) name: String,
    pub(crate) collective: String,
    pub(crate) estimate: Estimate,
}

/// So many that lose are named.
const MOST_NAMED: usize = 3;

impl Bottom {
    pub(crate) fn of(whole: &Whole, compares: bool) -> Bottom {
        let (served, calls) = whole.calls();
        let took = time(whole.collectives_seconds);
        let how = "ALLHANDS_COMPARE=1 lets ours and the MPI's own take turns";
        match &whole.learned {
            _ if calls == 0 => Bottom::unknown(vec!["no collective was called".into()]),
            _ if whole.off => Bottom::unknown(vec![
                format!("collectives took {took}, all of them the MPI's own"),
                "`allhands report with.json this.json` puts a report of the same job with ours beside this one".into(),
            ]),
            _ if compares => Bottom::of_turns(whole),
            _ if served == 0 => {
                Bottom::unknown(vec![format!("collectives took {took}; none of them was ours to serve")])
            }
            Some(learned) if learned.estimate().is_some() => {
                let estimate = learned.estimate().unwrap_or_default();
                let mut bottom = Bottom::of_estimate(&estimate, "those of which both were timed, as it learned");
                bottom.sentences.push(format!("all collectives together took {took}"));
                bottom
            }
            _ => Bottom::unknown(vec![
                format!("collectives took {took}; what the MPI's own would have taken was not measured"),
                format!("{how}, or put a report under ALLHANDS=off beside this one with `allhands report`"),
            ]),
        }
    }

    /// Of a job in which both have taken turns.
    fn of_turns(whole: &Whole) -> Bottom {
        let part = |callers: usize| callers as f64 / whole.ranks.max(1) as f64;
        let known = || whole.compared.iter().filter_map(|one| Some((one, one.estimate()?)));
        if known().next().is_none() {
            let fact = "nothing could be compared: no kind of call came often enough for both to have two turns";
            return Bottom::unknown(vec![fact.into(), "let the job run longer".into()]);
        }
        let estimate: Estimate = known().map(|(one, estimate)| estimate.on(part(one.callers))).sum();
        let mut bottom = Bottom::of_estimate(&estimate, "by turns");
        let spent: f64 = known().map(|(one, _)| one.spent_seconds * part(one.callers)).sum();
        let rest = (whole.seconds - spent).max(0.0);
        // What ours has to make first, the MPI alone would not.
        let first: f64 = known().map(|(one, _)| one.first_seconds() * part(one.callers)).sum();
        bottom.sentences.extend(job(&estimate, rest + first + estimate.ours, rest + estimate.other));
        if first > 0.1 * estimate.ours {
            let more =
                format!("the first calls of each kind, which make plans, took {} and are not in it", time(first));
            bottom.sentences.insert(1, more);
        }
        let shapes: Vec<Shape> = known()
            .map(|(one, estimate)| Shape {
                name: format!("{} {} on {}", one.collective, up_to(one.up_to_bytes), whole.name(one.on)),
                collective: one.collective.clone(),
                estimate: estimate.on(part(one.callers)),
            })
            .collect();
        bottom.sentences.extend(losers(&shapes));
        bottom
    }

    /// Of two jobs that took so long, of which the first may have lost against the MPI alone.
    pub(crate) fn of_two(estimate: &Estimate, (ours, other): (f64, f64), shapes: Option<&[Shape]>) -> Bottom {
        let mut bottom = Bottom::of_estimate(estimate, "one run each");
        let job = format!("the job took {} instead of {}: {}", time(ours), time(other), by(ours, other));
        bottom.sentences.push(job);
        bottom.sentences.extend(shapes.and_then(losers));
        bottom
    }

    fn unknown(sentences: Vec<String>) -> Bottom {
        Bottom { sentences, instead: None }
    }

    /// `collectives took 41.0 ms instead of 63.0 ms (by turns, 95 %: 38.0 ms to 44.0 ms)`
    fn of_estimate(estimate: &Estimate, how: &str) -> Bottom {
        let instead = estimate.instead();
        let unsure = if estimate.is_sure() { "" } else { ", so no difference is certain" };
        let Instead { ours_seconds, mpi_seconds, low_seconds, high_seconds } = instead;
        let [ours, mpi, low, high] = [ours_seconds, mpi_seconds, low_seconds, high_seconds].map(time);
        let took = format!("collectives took {ours} instead of {mpi} ({how}, 95 %: {low} to {high}){unsure}");
        Bottom { sentences: vec![took], instead: Some(instead) }
    }
}

/// What that means for a job that would take so long with one and with the other.
fn job(estimate: &Estimate, ours: f64, other: f64) -> Option<String> {
    estimate.is_sure().then(|| format!("the job is about {}", by(ours, other)))
}

/// `12 % faster`
fn by(ours: f64, other: f64) -> String {
    let percent = |more: f64, less: f64| 100.0 * (more / less.max(1e-12) - 1.0);
    match ours < other {
        _ if percent(ours.max(other), ours.min(other)) < 0.5 => "as fast".into(),
        true => format!("{:.0} % faster", percent(other, ours)),
        false => format!("{:.0} % slower", percent(ours, other)),
    }
}

/// Which shapes lose, and what to do about it: a collective is handed to the MPI where all its shapes together lose.
fn losers(shapes: &[Shape]) -> Option<String> {
    let mut lose: Vec<&Shape> = shapes.iter().filter(|shape| shape.estimate.loses()).collect();
    if lose.is_empty() {
        return None;
    }
    let lost = |shape: &Shape| shape.estimate.ours - shape.estimate.other;
    lose.sort_by(|one, other| lost(other).total_cmp(&lost(one)));
    let names = lose
        .iter()
        .take(MOST_NAMED)
        .map(|shape| format!("{} ({})", shape.name, gain(shape.estimate.ours, shape.estimate.other)));
    let names: Vec<String> = names.chain((lose.len() > MOST_NAMED).then(|| "others".into())).collect();
    let mut sums: BTreeMap<&str, Vec<Estimate>> = BTreeMap::new();
    for shape in shapes {
        sums.entry(&shape.collective).or_default().push(shape.estimate);
    }
    let sum = |name: &str| sums[name].iter().copied().sum::<Estimate>();
    let mut all: Vec<&str> =
        lose.iter().map(|shape| shape.collective.as_str()).filter(|name| sum(name).loses()).collect();
    all.sort_unstable();
    all.dedup();
    let remedy = match all.as_slice() {
        [] => "their collectives gain in sum, so leave them".into(),
        all => {
            let wishes: Vec<String> = all.iter().map(|name| format!("{name}=mpi")).collect();
            format!("add ALLHANDS_ALGORITHM='{}'", wishes.join(";"))
        }
    };
    let count = match lose.len() {
        1 => "one shape loses".into(),
        2 => "two shapes lose".into(),
        many => format!("{many} shapes lose"),
    };
    Some(format!("{count}, {}: {remedy}", names.join(", ")))
}

impl fmt::Display for Bottom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join("; "))
    }
}

/// What was called in a job that compares, and was not compared: why, and how often each.
pub(crate) fn uncompared(whole: &Whole) -> Vec<String> {
    let (mut requests, mut others) = (BTreeMap::<&str, u64>::new(), BTreeMap::<String, BTreeMap<&str, u64>>::new());
    for row in &whole.rows {
        let name = row.key.collective.as_str();
        let compared = whole.compared.iter().any(|one| one.collective == name && one.on == row.key.on);
        match row.served() {
            _ if name.ends_with("_init") => {}
            _ if row.is_request() => *requests.entry(name).or_default() += row.calls,
            _ if compared => {}
            Served::Theirs(reason) if !reason.is_empty() && whole.compared.iter().all(|one| one.on != row.key.on) => {
                *others.entry(reason.into()).or_default().entry(name).or_default() += row.calls;
            }
            _ => *others.entry("too few calls".into()).or_default().entry(name).or_default() += row.calls,
        }
    }
    let counted = |names: &BTreeMap<&str, u64>| {
        let each = |(name, calls): (&&str, &u64)| format!("{name} ({calls} calls)");
        names.iter().map(each).collect::<Vec<_>>().join(", ")
    };
    let mut all: Vec<String> = others.iter().map(|(reason, names)| format!("{}: {reason}", counted(names))).collect();
    if !requests.is_empty() {
        all.insert(0, format!("{}: requests, which are not taken by turns", counted(&requests)));
    }
    all
}
