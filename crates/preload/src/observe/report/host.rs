//! Where this rank runs, and who else uses its cores meanwhile, as the kernel tells.

use allhands_report::RankHost;

/// What the cores of this rank had done when it began.
pub(super) struct Seat {
    cores: Vec<usize>,
    /// Ticks that anybody had them, and seconds that this process had any.
    busy: u64,
    own: f64,
}

impl Seat {
    pub(super) fn new() -> Seat {
        let cores = cores();
        let busy = busy(&read("/proc/stat"), &cores);
        Seat { cores, busy, own: own() }
    }

    /// What it is now.
    pub(super) fn place(&self) -> RankHost {
        let busy = busy(&read("/proc/stat"), &self.cores);
        RankHost {
            machine: read("/proc/sys/kernel/hostname").trim().into(),
            quota: std::thread::available_parallelism().map_or(0, usize::from),
            own_seconds: own() - self.own,
            all_seconds: busy.saturating_sub(self.busy) as f64 / ticks(),
            cores: self.cores.clone(),
            obstacle: None,
        }
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Those that this process may run on: `Cpus_allowed_list: 0-3,8`.
fn cores() -> Vec<usize> {
    let status = read("/proc/self/status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    listed(list)
}

fn listed(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

/// Ticks that some cores were used: all but idle and waiting for disks. `cpu3 user nice system idle iowait irq softirq steal`
fn busy(stat: &str, cores: &[usize]) -> u64 {
    let core = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let core: usize = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
        let used = ticks.iter().enumerate().filter(|(place, _)| !matches!(place, 3 | 4)).map(|(_, ticks)| ticks);
        cores.contains(&core).then(|| used.sum::<u64>())
    };
    stat.lines().filter_map(core).sum()
}

/// In a second.
fn ticks() -> f64 {
    // SAFETY: it only asks.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

/// Seconds that this process had a core.
fn own() -> f64 {
    // SAFETY: an empty time, which the call fills.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!(listed("\t0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!((listed("5"), listed("")), (vec![5], vec![]));
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 1000 1000 4 5 6 7 8\ncpu1 1 0 0 9 9 0 0 0 0 0\ncpu10 5 0 0 0\nintr 1\n";
        assert_eq!([busy(stat, &[0]), busy(stat, &[0, 1]), busy(stat, &[10]), busy(stat, &[2])], [21, 22, 5, 0]);
    }

    #[test]
    fn a_rank_has_cores_and_spends_time_on_them() {
        let seat = Seat::new();
        let place = seat.place();
        assert!(!place.cores.is_empty() && place.quota > 0 && place.own_seconds >= 0.0 && !place.machine.is_empty());
    }
}
