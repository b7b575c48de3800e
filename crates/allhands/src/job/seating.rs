//! On which socket and NUMA node this process may run, as the system says.

use std::path::Path;

/// A process that may run on several has no place of its own.
const ANYWHERE: u64 = u64::MAX;

/// The socket and the NUMA node.
pub(super) fn mine() -> (u64, u64) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return (ANYWHERE, ANYWHERE) };
    let cores: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let system = Path::new("/sys/devices/system/cpu");
    (common(&cores, |core| socket(system, core)), common(&cores, |core| numa(system, core)))
}

/// What is the same for all cores.
fn common(cores: &[usize], of: impl Fn(usize) -> Option<u64>) -> u64 {
    let mut all = cores.iter().map(|core| of(*core));
    match all.next().flatten() {
        Some(first) if all.all(|other| other == Some(first)) => first,
        _ => ANYWHERE,
    }
}

fn socket(system: &Path, core: usize) -> Option<u64> {
    let file = system.join(format!("cpu{core}/topology/physical_package_id"));
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A core's folder has a link named after its NUMA node.
fn numa(system: &Path, core: usize) -> Option<u64> {
    let entries = std::fs::read_dir(system.join(format!("cpu{core}"))).ok()?;
    entries.flatten().find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_one_socket_have_it_in_common_and_others_nothing() {
        let folder = std::env::temp_dir().join(format!("allhands-seating-{}", std::process::id()));
        for (core, package, node) in [(0, 0, 0), (1, 0, 1), (2, 1, 2)] {
            let cpu = folder.join(format!("cpu{core}"));
            std::fs::create_dir_all(cpu.join("topology")).unwrap();
            std::fs::create_dir_all(cpu.join(format!("node{node}"))).unwrap();
            std::fs::write(cpu.join("topology/physical_package_id"), format!("{package}\n")).unwrap();
        }
        let sockets = |cores: &[usize]| common(cores, |core| socket(&folder, core));
        assert_eq!((sockets(&[0, 1]), sockets(&[2]), sockets(&[1, 2])), (0, 1, ANYWHERE));
        assert_eq!(common(&[1], |core| numa(&folder, core)), 1);
        assert_eq!((sockets(&[3]), sockets(&[])), (ANYWHERE, ANYWHERE));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
