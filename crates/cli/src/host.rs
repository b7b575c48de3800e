//! Where the ranks run: fewer cores than ranks, and others that keep cores busy. What is measured then is said with a caution.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use allhands::Comm;

use crate::screen::counted;

/// Words of a set of cores: 1024 of them.
const WORDS: usize = 16;

/// What a rank tells of its place: the host, its load in hundredths, how many cores it may use at once, and which.
const TOLD: usize = 3 + WORDS;

/// A load below this is nobody's work.
const IDLE: f64 = 0.5;

/// One host, as all ranks on it see it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Host {
    ranks: usize,
    cores: usize,
    /// What ran before we began, in cores.
    load: f64,
}

/// The load of this host when the command began, in cores. Asked for before ranks run: they are no strangers.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// The caution for so many thread ranks of this process.
pub(crate) fn of_threads(ranks: usize, load: f64) -> Option<String> {
    let cores = std::thread::available_parallelism().map_or(ranks, usize::from);
    caution(&[Host { ranks, cores, load }])
}

/// The caution for the ranks of a job, the same on all of them. Every rank must call it.
pub(crate) fn of_job(comm: &Comm, load: f64) -> allhands::Result<Option<String>> {
    let mut all = vec![0; TOLD * comm.size()];
    comm.allgather(&told(load), &mut all)?;
    Ok(caution(&hosts(all.chunks(TOLD))))
}

fn told(load: f64) -> [u64; TOLD] {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let mut told = [0; TOLD];
    told[0] = hasher.finish();
    told[1] = (load * 100.0) as u64;
    told[2] = std::thread::available_parallelism().map_or(0, usize::from) as u64;
    for core in cores(list) {
        told[3 + core / 64] |= 1 << (core % 64);
    }
    told
}

/// `0-3,8`: the cores 0, 1, 2, 3 and 8.
fn cores(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().filter(|core| *core < 64 * WORDS).collect()
}

fn hosts<'a>(told: impl Iterator<Item = &'a [u64]>) -> Vec<Host> {
    let mut by_name: BTreeMap<u64, Vec<&[u64]>> = BTreeMap::new();
    told.for_each(|told| by_name.entry(told[0]).or_default().push(told));
    let host = |ranks: &Vec<&[u64]>| {
        let bits = |words: &[u64]| words.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let together: Vec<u64> = (3..TOLD).map(|word| ranks.iter().fold(0, |all, told| all | told[word])).collect();
        // A quota allows fewer at once than a rank may choose from, for all of them together.
        let quota = ranks.iter().filter(|told| told[2] > 0 && (told[2] as usize) < bits(&told[3..]));
        let quota = quota.map(|told| told[2] as usize).min().unwrap_or(usize::MAX);
        let cores = match bits(&together) {
            0 => ranks.len(),
            cores => cores.min(quota),
        };
        let load = ranks.iter().map(|told| told[1]).max().unwrap_or(0) as f64 / 100.0;
        Host { ranks: ranks.len(), cores, load }
    };
    by_name.values().map(host).collect()
}

/// One line on the most crowded host, if one is.
fn caution(hosts: &[Host]) -> Option<String> {
    let crowding = |host: &&Host| (host.ranks as f64 + host.load) / host.cores.max(1) as f64;
    let host = hosts.iter().max_by(|one, other| crowding(one).total_cmp(&crowding(other)))?;
    let mut said = Vec::new();
    if host.ranks > host.cores {
        let them = if host.cores == 1 { "it" } else { "them" };
        let cores = counted(host.cores, "core");
        said.push(format!("{} ranks share {cores} and wait for their turn on {them}", host.ranks));
    }
    if host.load >= IDLE && host.load + host.ranks as f64 > host.cores as f64 {
        said.push(format!("others keep {:.1} of {} busy", host.load, counted(host.cores, "core")));
    }
    let of = if hosts.len() > 1 { "on one host " } else { "" };
    (!said.is_empty()).then(|| format!("{of}{}: compare these times with each other only", said.join(", and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_and_busy_hosts_are_told_in_one_line() {
        let host = |ranks, cores, load| Host { ranks, cores, load };
        assert_eq!(caution(&[host(2, 4, 1.9)]), None);
        assert_eq!(caution(&[host(4, 4, 0.3)]), None);
        assert_eq!(
            caution(&[host(8, 2, 0.0)]).unwrap(),
            "8 ranks share 2 cores and wait for their turn on them: compare these times with each other only"
        );
        assert_eq!(
            caution(&[host(2, 2, 1.25)]).unwrap(),
            "others keep 1.2 of 2 cores busy: compare these times with each other only"
        );
        let both = caution(&[host(4, 4, 0.0), host(4, 1, 3.0)]).unwrap();
        assert!(
            both.starts_with("on one host 4 ranks share 1 core ") && both.contains(", and others keep 3.0 of 1 core")
        );
    }

    /// As `bench` and `tune` say it, whatever runs here now.
    #[test]
    fn a_made_up_load_is_told() {
        let said = of_threads(1, 9999.0).unwrap();
        assert!(
            said.contains("others keep 9999.0 of ")
                && said.ends_with(" busy: compare these times with each other only")
        );
        let alone = allhands::threads(allhands::Topology::flat(2).unwrap(), |comm| of_job(comm, 9999.0)).unwrap();
        assert!(alone.iter().all(|said| said.as_ref().is_some_and(|said| said.contains("others keep 9999.0 of "))));
        assert_eq!(of_threads(1, 0.0), None);
    }

    #[test]
    fn ranks_bound_to_one_core_share_it() {
        assert_eq!(cores(" 0-3,8"), [0, 1, 2, 3, 8]);
        assert!(cores("").is_empty() && cores("x").is_empty());
        let rank = |name: u64, at_once: u64, cores: u64| {
            let mut told = [0; TOLD];
            (told[0], told[2], told[3]) = (name, at_once, cores);
            told
        };
        let seen = |ranks: &[[u64; TOLD]]| hosts(ranks.iter().map(|told| &told[..]))[0].cores;
        assert_eq!(seen(&[rank(1, 1, 1), rank(1, 1, 1)]), 1);
        assert_eq!(seen(&[rank(1, 1, 1), rank(1, 1, 2)]), 2);
        // Eight to choose from, but two at once.
        assert_eq!(seen(&[rank(1, 2, 255), rank(1, 2, 255)]), 2);
        assert_eq!(hosts([rank(1, 1, 1), rank(2, 1, 1)].iter().map(|told| &told[..])).len(), 2);
    }
}
