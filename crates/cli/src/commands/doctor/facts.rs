//! What is known of this machine, its MPI and a job that was tried. Nothing is judged here.

use std::fs;
use std::path::{Path, PathBuf};

use allhands::Tuning;
use allhands::learn::{Memory, Setting};
use allhands::raw::{Surroundings, check_named, needs_reading, transport};
use allhands_report::{Host, Obstacle};
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use super::exec;

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Of this command.
    pub(super) version: &'static str,
    /// The name of this machine, and what kind of container this is, if it is known to be one.
    pub(super) host: String,
    pub(super) container: Option<&'static str>,
    /// The library that `allhands exec` uses, or why there is none.
    pub(super) library: Result<PathBuf, String>,
    pub(super) mpi: Result<Library, String>,
    /// Whether that fails with long messages where ranks may not read each other's memory.
    pub(super) needs_reading: bool,
    pub(super) launch: Launch,
    pub(super) job: Job,
    pub(super) around: Surroundings,
    /// `/dev/shm`, in bytes, if there is one.
    pub(super) shm: Option<u64>,
    /// The longest file that may be made, if there is a limit.
    pub(super) longest_file: Option<u64>,
    /// What may be run at once.
    pub(super) cores: usize,
    /// What the kernel says of large pages in shared memory.
    pub(super) huge_pages: Option<String>,
    /// Drivers of GPUs.
    pub(super) drivers: Vec<String>,
    /// Variables of ours that are set.
    pub(super) settings: Vec<(String, String)>,
    /// What is wrong with a file that one of them names.
    pub(super) misnamed: Option<String>,
    pub(super) learned: Option<Learned>,
}

/// An MPI library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Library {
    pub(super) name: String,
    /// The standard that it follows.
    pub(super) standard: String,
    pub(super) abi: String,
    pub(super) path: PathBuf,
    /// How it was found.
    pub(super) how: String,
}

/// Who starts jobs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Launch {
    None,
    /// It is in the path, and has started a job.
    Found(PathBuf),
    /// It has started this one.
    By {
        name: String,
        ranks: Option<usize>,
    },
}

/// What came of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum Job {
    #[default]
    NotTried,
    /// It has come to its end.
    Ran(Outcome),
    /// It has ended before.
    Ended { code: Option<i32>, said: Option<String> },
    /// It has not ended within so many seconds.
    Hung { seconds: u64 },
}

/// What a job has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// That the launcher has started, and that found each other.
    pub(super) launched: Option<usize>,
    pub(super) ranks: usize,
    /// Whether all sums were right on all ranks.
    pub(super) right: bool,
    /// What the library has written, if it has.
    pub(super) report: Option<Report>,
}

/// What the library has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    /// Calls that were ours, and all; why the others were not.
    pub(super) ours: u64,
    pub(super) calls: u64,
    pub(super) reasons: Vec<String>,
    pub(super) off: bool,
    pub(super) hosts: Vec<Host>,
    pub(super) obstacles: Vec<Obstacle>,
}

/// What jobs have learned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Learned {
    pub(super) path: PathBuf,
    /// How many shapes of calls, if there is a file; or what is wrong with it.
    pub(super) shapes: Result<Option<usize>, String>,
}

impl Facts {
    /// Those of this machine, with what came of a job.
    pub(super) fn here(launch: Launch, job: Job) -> Facts {
        let mpi = allhands_mpi::load().map_err(|error| error.to_string());
        let settings = settings();
        Facts {
            version: env!("CARGO_PKG_VERSION"),
            host: read("/proc/sys/kernel/hostname").trim().into(),
            container: container(),
            library: exec::library().map_err(|failure| failure.to_string()),
            learned: mpi.as_ref().ok().and_then(|mpi| learned(&transport(mpi), &settings)),
            needs_reading: mpi.as_ref().is_ok_and(|mpi| needs_reading(&transport(mpi))),
            mpi: mpi.map(Library::of),
            launch,
            job,
            around: Surroundings::here(None),
            shm: statvfs("/dev/shm").ok().map(|shm| shm.f_blocks * shm.f_frsize),
            longest_file: getrlimit(Resource::Fsize).current,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/shmem_enabled")),
            drivers: drivers(),
            settings,
            misnamed: check_named()
                .err()
                .map(|(variable, fact)| format!("what {variable} names cannot be used: {fact}")),
        }
    }

    /// What a variable of ours is set to.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Library {
    pub(super) fn of(mpi: &allhands_mpi::Mpi) -> Library {
        Library {
            name: transport(mpi),
            standard: mpi.version().map_or_else(|_| "?".into(), |(major, minor)| format!("{major}.{minor}")),
            abi: mpi.abi().to_string(),
            path: mpi.path().into(),
            how: mpi.how().to_string(),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Of this process, without the one that the doctor sets himself.
fn settings() -> Vec<(String, String)> {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let ours = |(name, value): &(String, String)| {
        (name == "ALLHANDS" || name.starts_with("ALLHANDS_")) && name != super::trial::REPORT && !value.is_empty()
    };
    let mut settings: Vec<(String, String)> = all.filter(ours).collect();
    settings.sort();
    settings
}

/// What jobs on an MPI have learned, if they keep it.
fn learned(transport: &str, settings: &[(String, String)]) -> Option<Learned> {
    let set = |name: &str| settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    // Who names a tuning file has tuned.
    if set("ALLHANDS_TUNING").is_some() && set("ALLHANDS_LEARN").is_none() {
        return None;
    }
    let setting = Setting::parse(set("ALLHANDS_LEARN").unwrap_or_default()).ok()?;
    let path = Memory::of(&setting, transport)?.path().to_owned();
    let shapes = match fs::read_to_string(&path) {
        Ok(text) => text.parse::<Tuning>().map(|known| Some(known.cells.len())).map_err(|error| error.to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    Some(Learned { path, shapes })
}

/// What kind of container this is, where it says so.
fn container() -> Option<&'static str> {
    let set = |name| std::env::var_os(name).is_some();
    match () {
        () if set("APPTAINER_NAME") || set("SINGULARITY_NAME") => Some("apptainer"),
        () if Path::new("/run/.containerenv").exists() => Some("podman"),
        () if Path::new("/.dockerenv").exists() => Some("docker"),
        () => None,
    }
}

/// `always within_size [never]`: never.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.into())
}

/// Those of GPUs that the kernel has.
fn drivers() -> Vec<String> {
    let nvidia = version(&read("/proc/driver/nvidia/version")).map(|version| format!("NVIDIA's {version}"));
    let amd = Path::new("/dev/kfd").exists().then(|| "AMD's".to_owned());
    let cards = fs::read_dir("/sys/class/drm").into_iter().flatten().flatten();
    let mut vendors = cards.map(|card| card.path().join("device/vendor")).map(|file| read(&file.to_string_lossy()));
    let intel = vendors.any(|vendor| vendor.trim() == "0x8086").then(|| "Intel's".to_owned());
    [nvidia, amd, intel].into_iter().flatten().collect()
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...`: 550.54.15.
fn version(text: &str) -> Option<&str> {
    let number = |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.split_whitespace().find(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!(chosen("always within_size advise [never] deny force\n").as_deref(), Some("never"));
        assert_eq!(chosen(""), None);
        let nvidia = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n";
        assert_eq!(version(nvidia), Some("550.54.15"));
        assert_eq!(version("GCC version:"), None);
    }
}
