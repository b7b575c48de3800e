//! Which algorithm serves a call that names none: what a tuning file has measured, else rules of thumb.
//!
//! The decision rests on what all ranks know alike: the problem, the size, and evidence that rank 0 has read for all.

use std::rc::Rc;

use allhands_schedule::{Choice, Collective, Problem, Result};

use crate::native;
use crate::tuning::Tuning;

/// What decisions rest on; the same on every rank.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    tuning: Option<Tuning>,
}

/// An algorithm, and why.
#[derive(Debug)]
pub(crate) struct Decision {
    /// With its parameters; `mpi` is the MPI library's own.
    pub(crate) algorithm: String,
    pub(crate) why: String,
}

/// The variable that names a tuning file.
pub(crate) const VARIABLE: &str = "ALLHANDS_TUNING";

/// The tuning file that the user names; a file that cannot be read is read as one that says why.
pub(crate) fn named_file() -> Option<String> {
    let path = std::env::var_os(VARIABLE)?;
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| format!("{}: {error}", path.display())))
}

impl Evidence {
    /// From the text of a tuning file for this transport; or what is wrong with it.
    fn of(text: &str, transport: &str) -> std::result::Result<Evidence, String> {
        let tuning: Tuning = text.parse().map_err(|error: crate::tuning::TuningError| error.to_string())?;
        if tuning.transport != transport {
            let made = &tuning.transport;
            return Err(format!("it was made for {made}, but this is {transport}; make one with `allhands tune`"));
        }
        Ok(Evidence { tuning: Some(tuning) })
    }

    /// What the tuning file that the user names says; a warning, and nothing, if it is no good. `speaks`: whether to warn.
    pub(crate) fn of_text(text: Option<&str>, transport: &str, speaks: bool) -> Rc<Evidence> {
        let Some(text) = text else { return Rc::default() };
        Rc::new(Evidence::of(text, transport).unwrap_or_else(|fact| {
            if speaks {
                eprintln!("allhands: the file that {VARIABLE} names is not used: {fact}");
            }
            Evidence::default()
        }))
    }

    /// From a tuning file that was read already.
    pub(crate) fn tuned(tuning: Tuning) -> Evidence {
        Evidence { tuning: Some(tuning) }
    }

    /// The algorithm for a problem; `library`: whether MPI's own collective could serve.
    pub(crate) fn choose(&self, problem: &Problem, bytes: usize, library: bool) -> Result<Decision> {
        match self.measured(problem, bytes, library) {
            Some(decision) => Ok(decision),
            None => by_rule(problem, bytes),
        }
    }

    /// The fastest of those that were measured and can serve.
    fn measured(&self, problem: &Problem, bytes: usize, library: bool) -> Option<Decision> {
        let advice = self.tuning.as_ref()?.advice(problem.collective, &problem.topology, bytes);
        let serves = |algorithm: &str| match algorithm {
            native::NAME => library,
            name => Choice::parse(problem.collective, name).is_ok_and(|choice| choice.prepare(problem).is_ok()),
        };
        let mut able = advice.into_iter().filter(|advice| serves(&advice.algorithm));
        let best = able.next()?;
        let mut why = format!("the tuning file: {:.2} us, from {} cells", best.microseconds, best.cells);
        if let Some(second) = able.next() {
            let more = 100.0 * (second.microseconds / best.microseconds - 1.0);
            why += &format!("; runner-up {}, {more:.0} % more", second.algorithm);
        }
        Some(Decision { algorithm: best.algorithm, why })
    }
}

/// Below this many bytes the number of messages matters, above it their size.
const LONG: usize = 16 * 1024;

/// Whether to cut a vector up so that every rank sends less of it. Two ranks send no less for it, and save only combining:
/// measured on two processes of one node, whole vectors are faster up to half a megabyte.
fn cut(collective: Collective, ranks: usize, bytes: usize) -> bool {
    match (collective, ranks) {
        (Collective::Bcast, ..=2) => false,
        (Collective::Allreduce, ..=2) => bytes > 32 * LONG,
        _ => bytes > LONG,
    }
}

fn by_rule(problem: &Problem, bytes: usize) -> Result<Decision> {
    let long = cut(problem.collective.family(), problem.ranks(), bytes);
    let candidates: &[&str] = match (problem.collective.family(), long) {
        (Collective::Allgather, false) => &["bruck"],
        (Collective::Allgather, true) => &["ring"],
        (Collective::Alltoall, false) if bytes <= 256 => &["modified-bruck"],
        (Collective::Alltoall, _) => &["spread-out"],
        (Collective::Allreduce, false) => &["recursive-doubling"],
        (Collective::Allreduce, true) if problem.ranks().is_power_of_two() => &["rabenseifner", "circulant"],
        (Collective::Allreduce, true) => &["circulant", "rabenseifner"],
        (Collective::ReduceScatter, _) => &["circulant", "linear"],
        (Collective::Bcast, false) => &["binomial"],
        (Collective::Bcast, true) => &["scatter-allgather"],
        (Collective::Reduce, false) => &["binomial"],
        (Collective::Reduce, true) => &["reduce-scatter-gather", "binomial"],
        _ => &["dissemination"],
    };
    let size = if long { "long" } else { "short" };
    let mut refused = None;
    for name in candidates {
        match Choice::parse(problem.collective, name)?.prepare(problem) {
            Ok(_) => {
                let why = format!("a rule of thumb for {size} messages ({bytes} bytes), not a measurement");
                return Ok(Decision { algorithm: (*name).into(), why });
            }
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.expect("there is a candidate for every collective"))
}
