//! Where ranks ran, and what makes their times say less than they seem to: cores that they share, with each other or with others.

use std::collections::BTreeMap;

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
}

/// Others are there who have more of the cores than this; the kernel counts in hundredths of a second.
const BUSY: f64 = 0.1;
const LEAST_SECONDS: f64 = 0.05;

/// One sentence for each kind of trouble.
pub(crate) fn warnings(parts: &[Part]) -> Vec<String> {
    let mut machines: BTreeMap<&str, Vec<(usize, &Part)>> = BTreeMap::new();
    for (rank, part) in parts.iter().enumerate() {
        machines.entry(&part.place.machine).or_default().push((rank, part));
    }
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
        let place =
            RankHost { machine: machine.into(), cores: cores.to_vec(), quota: cores.len(), own_seconds, all_seconds };
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
