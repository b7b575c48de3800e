//! Where ranks ran, and what makes their times say less than they seem to: cores that they share, with each other or with others.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{counted, listed};
use crate::whole::Part;

/// Where a rank ran, and beside whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankHost {
    /// The name of its machine.
    pub machine: String,
    /// The cores that it may run on.
    pub cores: Vec<usize>,
    /// How many of them it may use at a time: a container may have less than it sees. 0 where nobody knows.
    pub quota: usize,
    /// Seconds that it had a core.
    pub own_seconds: f64,
    /// Seconds that anybody had these cores, itself among them.
    pub all_seconds: f64,
    /// What it could not do with the other ranks of its machine.
    #[serde(default)]
    pub obstacle: Option<Obstacle>,
}

/// What the system did not let ranks do, so that they went a slower way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// What, what follows from it, and why.
    pub fact: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; {}", self.fact, self.remedy)
    }
}

/// A machine of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What it is called.
    pub name: String,
    /// Its ranks.
    pub ranks: usize,
    /// The cores that they have together; none where nobody knows.
    pub cores: Option<usize>,
}

/// The machines of a job, by name.
pub(crate) fn hosts(parts: &[Part]) -> Vec<Host> {
    let host = |(name, ranks): (&str, Vec<(usize, &Part)>)| Host {
        name: name.into(),
        ranks: ranks.len(),
        cores: cores(&ranks),
    };
    by_machine(parts).into_iter().map(host).collect()
}

/// What ranks could not do, each thing once.
pub(crate) fn obstacles(parts: &[Part]) -> Vec<Obstacle> {
    let mut all: Vec<Obstacle> = Vec::new();
    for obstacle in parts.iter().filter_map(|part| part.place.obstacle.as_ref()) {
        if !all.contains(obstacle) {
            all.push(obstacle.clone());
        }
    }
    all
}

/// The ranks of each machine.
fn by_machine(parts: &[Part]) -> BTreeMap<&str, Vec<(usize, &Part)>> {
    let mut machines: BTreeMap<&str, Vec<(usize, &Part)>> = BTreeMap::new();
    for (rank, part) in parts.iter().enumerate() {
        machines.entry(&part.place.machine).or_default().push((rank, part));
    }
    machines
}

/// Others are there who have more of the cores than this; the kernel counts in hundredths of a second.
const BUSY: f64 = 0.1;
const LEAST_SECONDS: f64 = 0.05;

/// One sentence for each kind of trouble.
pub(crate) fn warnings(parts: &[Part]) -> Vec<String> {
    let machines = by_machine(parts);
    let several = machines.len() > 1;
    let all = |of: fn(&[(usize, &Part)]) -> Option<String>| {
        let mut found = machines.iter().filter_map(|(name, ranks)| Some((name, of(ranks)?)));
        let (name, sentence) = found.next()?;
        let others = found.count();
        let place = if several { format!("on {name} ") } else { String::new() };
        let more =
            if others > 0 { format!("; and likewise on {}", counted(others, "other machine")) } else { String::new() };
        Some(format!("{place}{sentence}{more}"))
    };
    [crowded, doubled, busy].into_iter().filter_map(all).collect()
}

/// More ranks than cores.
fn crowded(ranks: &[(usize, &Part)]) -> Option<String> {
    let cores = cores(ranks)?;
    (ranks.len() > cores).then(|| {
        format!(
            "{} share {}: they take turns, so whoever spins while it waits keeps others from working, and looks many times slower than with cores of its own",
            counted(ranks.len(), "rank"),
            counted(cores, "core")
        )
    })
}

/// Cores of a machine that its ranks have together; none where nobody knows.
fn cores(ranks: &[(usize, &Part)]) -> Option<usize> {
    let mut cores: Vec<usize> = ranks.iter().flat_map(|(_, part)| part.place.cores.iter().copied()).collect();
    cores.sort_unstable();
    cores.dedup();
    let quota = ranks.iter().map(|(_, part)| part.place.quota).max().unwrap_or(0);
    // A quota is of all of them together, unless each is bound to a core of its own.
    let bound = ranks.iter().all(|(_, part)| part.place.cores.len() <= quota);
    let least = if bound || quota == 0 { cores.len() } else { cores.len().min(quota) };
    (least > 0).then_some(least)
}

/// Ranks that are bound to the same cores, fewer than they are, though the machine has enough.
fn doubled(ranks: &[(usize, &Part)]) -> Option<String> {
    let enough = cores(ranks).is_some_and(|cores| cores >= ranks.len());
    let mut bound: BTreeMap<&[usize], Vec<String>> = BTreeMap::new();
    for (rank, part) in ranks {
        bound.entry(&part.place.cores).or_default().push(rank.to_string());
    }
    let (cores, those) = bound.iter().find(|(cores, those)| !cores.is_empty() && those.len() > cores.len())?;
    let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
    enough.then(|| {
        let plural = if cores.len() == 1 { "core" } else { "cores" };
        format!(
            "ranks {} are bound to the same {plural} {}; let the launcher bind each to one of its own",
            listed(those),
            listed(&cores)
        )
    })
}

/// Others used the same cores.
fn busy(ranks: &[(usize, &Part)]) -> Option<String> {
    let mut bound: BTreeMap<&[usize], (f64, f64, f64)> = BTreeMap::new();
    for (_, part) in ranks {
        let (own, all, seconds) = bound.entry(&part.place.cores).or_default();
        *own += part.place.own_seconds;
        *all = all.max(part.place.all_seconds);
        *seconds = seconds.max(part.seconds);
    }
    let (mut others, mut room, mut cores) = (0.0, 0.0, 0);
    for (bound, (own, all, seconds)) in bound {
        others += (all - own).max(0.0);
        room += bound.len() as f64 * seconds;
        cores += bound.len();
    }
    (others > LEAST_SECONDS && others > BUSY * room).then(|| {
        let used = others / room * cores as f64;
        format!("the host was busy: other processes used {used:.1} of {} meanwhile", counted(cores, "core"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(machine: &str, cores: &[usize], own_seconds: f64, all_seconds: f64) -> Part {
        let (machine, cores, quota) = (machine.into(), cores.to_vec(), cores.len());
        let place = RankHost { machine, cores, quota, own_seconds, all_seconds, obstacle: None };
        Part { place, seconds: 1.0, ..Part::default() }
    }

    #[test]
    fn ranks_with_cores_of_their_own_are_not_warned_of() {
        assert!(warnings(&[rank("a", &[0, 1], 1.0, 2.0), rank("a", &[0, 1], 1.0, 2.0)]).is_empty());
        assert!(
            warnings(&[rank("a", &[0], 1.0, 1.0), rank("a", &[1], 1.0, 1.0), rank("b", &[0], 1.0, 1.0)]).is_empty()
        );
        // Nobody knows.
        assert!(warnings(&[Part::default(), Part::default()]).is_empty());
    }

    #[test]
    fn machines_are_counted_and_what_several_ranks_could_not_do_is_said_once() {
        let obstacle = |fact: &str| Obstacle { fact: fact.into(), remedy: "do this".into() };
        let mut parts = [rank("b", &[0], 1.0, 1.0), rank("a", &[0, 1], 1.0, 1.0), rank("b", &[1], 1.0, 1.0)];
        assert!(obstacles(&parts).is_empty());
        for (part, fact) in parts.iter_mut().zip(["refused", "none", "refused"]) {
            part.place.obstacle = Some(obstacle(fact));
        }
        assert_eq!(obstacles(&parts), [obstacle("refused"), obstacle("none")]);
        let host = |name: &str, ranks| Host { name: name.into(), ranks, cores: Some(2) };
        assert_eq!(hosts(&parts), [host("a", 1), host("b", 2)]);
    }

    #[test]
    fn more_ranks_than_cores_are_said() {
        let four = [(); 4].map(|()| rank("a", &[0, 1], 0.5, 2.0));
        let sentence = "4 ranks share 2 cores: they take turns, so whoever spins while it waits keeps others from working, and looks many times slower than with cores of its own";
        assert_eq!(warnings(&four), [sentence]);
        let mut all: Vec<Part> = four.into();
        all.extend([(); 4].map(|()| rank("b", &[0, 1], 0.5, 2.0)));
        assert_eq!(warnings(&all), [format!("on a {sentence}; and likewise on 1 other machine")]);
        // A container that sees 64 cores and may use two of them.
        let mut quota = [(); 3].map(|()| rank("a", &(0..64).collect::<Vec<_>>(), 0.5, 1.5));
        quota.iter_mut().for_each(|part| part.place.quota = 2);
        assert!(warnings(&quota)[0].starts_with("3 ranks share 2 cores: "));
    }

    #[test]
    fn ranks_on_one_core_are_named() {
        let three = [rank("a", &[4], 0.5, 1.0), rank("a", &[4], 0.5, 1.0), rank("a", &[5, 6, 7], 1.0, 1.0)];
        assert_eq!(
            warnings(&three),
            ["ranks 0 and 1 are bound to the same core 4; let the launcher bind each to one of its own"]
        );
    }

    #[test]
    fn a_busy_host_is_said() {
        let two = [rank("a", &[0, 1], 0.5, 1.9), rank("a", &[0, 1], 0.6, 1.9)];
        assert_eq!(warnings(&two), ["the host was busy: other processes used 0.8 of 2 cores meanwhile"]);
    }
}
