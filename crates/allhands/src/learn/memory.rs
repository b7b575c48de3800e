//! What was learned, from one job to the next: a file in the form of a tuning file.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use allhands_model::Machine;

use super::Pace;
use crate::choose::machine_file;
use crate::error::{Error, Result};
use crate::tuning::{Cell, Tuning, TuningError};

/// The variable that says whether and where it is learned.
pub(crate) const LEARN: &str = "ALLHANDS_LEARN";

/// What `ALLHANDS_LEARN` says.
///
/// ```
/// use allhands::learn::Setting;
/// assert_eq!(Setting::parse("OFF")?, Setting::Off);
/// assert_eq!(Setting::parse("")?, Setting::On { file: None });
/// assert_eq!(Setting::parse("site.toml")?, Setting::On { file: Some("site.toml".into()) });
/// assert!(Setting::parse("of").unwrap_err().to_string().contains("off, frozen, or a file"));
/// # Ok::<(), allhands::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nothing is learned, nor is what was learned followed.
    Off,
    /// What was learned is followed, and never changes.
    Frozen,
    /// As calls come; what is learned is kept in this file, else under the user's cache folder.
    On {
        /// Where.
        file: Option<PathBuf>,
    },
    /// For tests: at any cost, from the first call on and over again; nothing is kept.
    Eager,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting::On { file: None }
    }
}

impl Setting {
    /// Reads a value of `ALLHANDS_LEARN`: nothing, `on`, `off`, `frozen`, `eager`, or a file's name, which has a folder or ends in `.toml`.
    pub fn parse(value: &str) -> Result<Setting> {
        match value.to_ascii_lowercase().as_str() {
            "" | "on" | "1" | "yes" | "true" => Ok(Setting::On { file: None }),
            "off" | "0" | "no" | "false" => Ok(Setting::Off),
            "frozen" => Ok(Setting::Frozen),
            "eager" => Ok(Setting::Eager),
            text if text.contains('/') || text.ends_with(".toml") => Ok(Setting::On { file: Some(value.into()) }),
            _ => Err(Error::Setting {
                name: LEARN,
                value: value.into(),
                remedy: "set it to off, frozen, or a file whose name ends in .toml, or not at all",
            }),
        }
    }

    /// How soon things are tried; none where nothing is.
    pub(crate) fn pace(&self) -> Option<Pace> {
        match self {
            Setting::Off | Setting::Frozen => None,
            Setting::On { .. } => Some(Pace::USUAL),
            Setting::Eager => Some(Pace::EAGER),
        }
    }
}

/// The file that keeps what was learned, on a machine with an MPI.
///
/// It is written beside and renamed, under a lock, so that jobs which end at the same time lose nothing of each other's.
#[derive(Clone, Debug)]
pub struct Memory {
    path: PathBuf,
    transport: String,
    /// Whether the user has named it: then it may be a site's, which users cannot write.
    named: bool,
    /// Whether it is only read.
    frozen: bool,
}

/// Others have the file for less than this.
const PATIENCE: Duration = Duration::from_secs(2);

impl Memory {
    /// The one that a setting asks for, with an MPI; none where nothing is kept, or there is no place for it.
    pub fn of(setting: &Setting, transport: &str) -> Option<Memory> {
        let file = match setting {
            Setting::Off | Setting::Eager => return None,
            Setting::Frozen => None,
            Setting::On { file } => file.clone(),
        };
        let named = file.is_some();
        let path = match file {
            Some(file) => file,
            None => {
                let folder = folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
                folder.join(format!("{}-{}.toml", slug(&machine()), slug(transport)))
            }
        };
        Some(Memory { path, transport: transport.into(), named, frozen: *setting == Setting::Frozen })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says, if there is one; a warning if it cannot be read.
    pub(crate) fn recall(&self) -> Option<String> {
        self.text().unwrap_or_else(|fact| {
            crate::log::say(format_args!("what was learned earlier is not used: {fact}"));
            None
        })
    }

    /// What it says; nothing if there is none.
    fn text(&self) -> std::result::Result<Option<String>, String> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", self.path.display())),
        }
    }

    /// Keeps what was learned, beside what is known of other calls. The error is a sentence for the user, and no reason to end anything.
    ///
    /// ```
    /// use allhands::learn::{Memory, Setting};
    /// use allhands::{Cell, Time, Tuning};
    /// let file = std::env::temp_dir().join(format!("learned-{}.toml", std::process::id()));
    /// let memory = Memory::of(&Setting::On { file: Some(file.clone()) }, "MPICH 5.0.1").unwrap();
    /// let time = Time { algorithm: "nap".into(), median_us: 3.0, p10_us: 2.9, p90_us: 3.3, samples: 16 };
    /// let cell = Cell { collective: "allreduce".into(), nodes: 2, ranks_per_node: 4, bytes: 64, times: vec![time] };
    /// memory.keep(vec![cell], None)?;
    /// let kept: Tuning = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    /// assert_eq!((kept.cells.len(), kept.transport.as_str()), (1, "MPICH 5.0.1"));
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), String>(())
    /// ```
    pub fn keep(&self, cells: Vec<Cell>, machine: Option<&Machine>) -> std::result::Result<(), String> {
        if self.frozen {
            return Ok(());
        }
        let path = self.path.display();
        let kept = match cells.is_empty() {
            true => Ok(()),
            false => self.merged(cells, machine),
        };
        match kept.and_then(|()| machine.map_or(Ok(()), |machine| self.keep_machine(machine))) {
            Ok(()) => Ok(()),
            // A site's file is the site's.
            Err(error)
                if self.named
                    && matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
            {
                Ok(())
            }
            Err(error) => Err(format!(
                "what was learned is not kept in {path}: {error}; name another file in {LEARN}, or set it to off"
            )),
        }
    }

    fn merged(&self, cells: Vec<Cell>, machine: Option<&Machine>) -> std::io::Result<()> {
        self.make_folder()?;
        let beside = |ending: &str| PathBuf::from(format!("{}{ending}", self.path.display()));
        let _lock = locked(&beside(".lock"))?;
        let mut known = match self.text().unwrap_or_default().map(|text| text.parse::<Tuning>()) {
            None => Tuning::new(&self.transport),
            Some(Ok(known)) if known.transport == self.transport => known,
            Some(Err(TuningError::Schema { .. })) => {
                return Err(std::io::Error::other("it is of another version, which is left as it is"));
            }
            // What cannot be used is kept for who wants to look at it.
            Some(_) => {
                fs::rename(&self.path, beside(".unused"))?;
                Tuning::new(&self.transport)
            }
        };
        known.learn(cells);
        let words = machine.map_or("as assumed".into(), Machine::to_string);
        known.about.insert("machine".into(), words);
        write_beside(&self.path, &known.to_string())
    }

    /// Keeps the machine beside what was learned on it, for `allhands simulate --machine` and for who names both. What a job on one node
    /// assumes of the network replaces nothing that one on several has measured.
    fn keep_machine(&self, machine: &Machine) -> std::io::Result<()> {
        let path = machine_file(&self.path);
        let known = fs::read_to_string(&path).ok().and_then(|text| Machine::parse(&text).ok());
        let assumes = |machine: &Machine| machine.levels.first().is_none_or(|network| network.assumed);
        if assumes(machine) && known.is_some_and(|known| !assumes(&known)) {
            return Ok(());
        }
        self.make_folder()?;
        write_beside(
            &path,
            &machine.to_text("a few messages when a job began, and for the rest the machine it is named after"),
        )
    }

    fn make_folder(&self) -> std::io::Result<()> {
        match self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => fs::create_dir_all(folder),
            None => Ok(()),
        }
    }
}

/// Writes a file under another name and renames it: nobody reads half of it.
fn write_beside(path: &Path, text: &str) -> std::io::Result<()> {
    let part = PathBuf::from(format!("{}.{}.part", path.display(), std::process::id()));
    let written = File::create(&part).and_then(|mut file| file.write_all(text.as_bytes()));
    let written = written.and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// A lock on a file, which ends with what is returned. Who cannot lock goes on: some file systems have no locks.
fn locked(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    let began = Instant::now();
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK || began.elapsed() > PATIENCE {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(file)
}

/// The user's folder for what may be lost.
fn folder(cache: Option<std::ffi::OsString>, home: Option<std::ffi::OsString>) -> Option<PathBuf> {
    let given = |folder: Option<std::ffi::OsString>| folder.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = given(cache).or_else(|| given(home).map(|home| home.join(".cache")))?;
    Some(cache.join("allhands").join("learned"))
}

/// What kind of machine this is: its processor, and how many of them.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    let processors = text.lines().filter(|line| line.starts_with("processor")).count();
    format!("{} {processors}", model.unwrap_or(std::env::consts::ARCH))
}

/// Letters and digits, with dashes between.
fn slug(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::Time;

    fn cell(bytes: usize, algorithm: &str) -> Cell {
        let time = Time { algorithm: algorithm.into(), median_us: 3.0, p10_us: 2.9, p90_us: 3.3, samples: 16 };
        Cell { collective: "allreduce".into(), nodes: 2, ranks_per_node: 4, bytes, times: vec![time] }
    }

    fn at(path: &Path) -> Memory {
        Memory::of(&Setting::On { file: Some(path.into()) }, "MPICH 5").unwrap()
    }

    fn known(path: &Path) -> Tuning {
        fs::read_to_string(path).unwrap().parse().unwrap()
    }

    /// A folder of this test's own.
    fn fresh(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("allhands-memory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn jobs_that_end_at_the_same_time_lose_nothing() {
        let folder = fresh("together");
        let path = folder.join("deeper").join("learned.toml");
        std::thread::scope(|scope| {
            for job in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for size in 0..8 {
                        at(path).keep(vec![cell(8 * job + size, "nap")], None).unwrap();
                    }
                });
            }
        });
        assert_eq!(known(&path).cells.len(), 64);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_job_on_one_node_leaves_the_network_that_another_has_measured() {
        let folder = fresh("machine");
        let path = folder.join("learned.toml");
        let kept = || Machine::parse(&fs::read_to_string(folder.join("learned.machine.toml")).unwrap()).unwrap();
        let machine = |name: &str, assumed| {
            let mut machine = Machine { name: name.into(), ..Machine::shipped("generic").unwrap() };
            machine.levels[0].assumed = assumed;
            machine
        };
        for (found, left) in [
            (machine("one node", true), "one node"),
            (machine("two nodes", false), "two nodes"),
            (machine("one node again", true), "two nodes"),
            (machine("three nodes", false), "three nodes"),
        ] {
            at(&path).keep(vec![], Some(&found)).unwrap();
            assert_eq!(kept().name, left);
        }
        assert!(!path.exists(), "nothing else was learned");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_used_is_kept_aside_and_other_versions_are_left() {
        let folder = fresh("damaged");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("learned.toml");
        at(&path).keep(vec![cell(8, "nap"), cell(16, "nap")], Some(&Machine::shipped("generic").unwrap())).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        at(&path).keep(vec![cell(32, "nap")], None).unwrap();
        assert_eq!(known(&path).cells.len(), 1);
        assert_eq!(fs::read_to_string(folder.join("learned.toml.unused")).unwrap(), whole[..whole.len() / 2]);
        fs::write(&path, "schema = 99\n").unwrap();
        let refused = at(&path).keep(vec![cell(32, "nap")], None).unwrap_err();
        assert!(refused.contains("of another version, which is left as it is"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "schema = 99\n");
        // A folder stands where the file should be: no job fails by it.
        let taken = folder.join("taken.toml");
        fs::create_dir(&taken).unwrap();
        assert!(
            at(&taken).keep(vec![cell(8, "nap")], None).unwrap_err().contains("name another file in ALLHANDS_LEARN")
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_newer_counts_and_what_only_the_older_knows_stays() {
        let folder = fresh("newer");
        let path = folder.join("learned.toml");
        at(&path).keep(vec![cell(8, "nap"), cell(64, "nap")], None).unwrap();
        at(&path).keep(vec![cell(8, "recursive-doubling")], None).unwrap();
        let known = known(&path);
        let names = |cell: &Cell| cell.times.iter().map(|time| time.algorithm.clone()).collect::<Vec<_>>();
        assert_eq!(known.cells.len(), 2);
        assert_eq!(names(&known.cells[0]).len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_are_told_apart_by_machine_and_mpi() {
        let home = Some("/home/one".into());
        assert_eq!(folder(None, home.clone()), Some("/home/one/.cache/allhands/learned".into()));
        assert_eq!(folder(Some("/cache".into()), home.clone()), Some("/cache/allhands/learned".into()));
        assert_eq!(folder(Some("relative".into()), home), Some("/home/one/.cache/allhands/learned".into()));
        assert_eq!(folder(None, None), None);
        assert_eq!(slug("Intel(R) MPI Library 2021.16"), "intel-r-mpi-library-2021.16");
        for eager in ["eager", "off"] {
            assert!(Memory::of(&Setting::parse(eager).unwrap(), "MPICH").is_none());
        }
    }
}
