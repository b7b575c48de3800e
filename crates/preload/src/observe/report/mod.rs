//! What was called, who served it, and why: one report over all ranks, at `MPI_Finalize`.

mod calls;
mod host;
mod samples;
mod sites;

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use allhands::learn::{Learned, Lessons};
use allhands_call::Communicator;
use allhands_call::locks::lock;
use allhands_model::Machine;
use allhands_mpi::Mpi;
use allhands_report::{Job, Learning, Lesson, Obstacle, Part, RankHost, Tried, Whole};

use super::lessons::{JobFacts, JobLessons};
use super::observer::{Observer, Served};
use calls::Calls;
use host::Seat;

/// The calls of this rank, and where the report goes.
pub(super) struct Report {
    mpi: &'static Mpi,
    /// Nothing for the standard error, else a file.
    wanted: Option<String>,
    /// Whether ours are switched off, and whether they take turns with the MPI's own.
    off: bool,
    compares: bool,
    calls: Calls,
    seat: Seat,
    /// What was learned, of the machine, too.
    learned: Mutex<Option<JobLessons>>,
}

impl Observer for Report {
    fn times(&self) -> bool {
        true
    }

    fn meets(&self, comm: &Communicator, lineage: Option<u64>) {
        self.calls.meets(comm, lineage);
    }

    fn served(&self, call: &Served<'_>) {
        self.calls.note(call);
    }

    fn spends(&self, time: Duration) {
        self.calls.spends(time);
    }

    fn forgets(&self, comm: &Communicator) {
        self.calls.forgets(comm);
    }

    fn learned(&self, lessons: &JobLessons) {
        *lock(&self.learned) = Some(lessons.clone());
    }

    fn publishes(&self) {
        if let Err(error) = self.publish() {
            allhands::raw::say(format_args!("there is no report: {error}"));
        }
    }
}

impl Report {
    /// `wanted`: where it goes.
    pub(super) fn new(mpi: &'static Mpi, wanted: Option<&str>, (off, compares): (bool, bool)) -> Report {
        Report {
            mpi,
            wanted: wanted.map(String::from),
            off,
            compares,
            calls: Calls::default(),
            seat: Seat::new(),
            learned: Mutex::default(),
        }
    }

    /// Brings the calls of all ranks to the first, which writes them to where the user wants them. Collective over the world.
    fn publish(&self) -> allhands_mpi::Result<()> {
        let mpi = self.mpi;
        let lessons = lock(&self.learned).take().unwrap_or_default();
        let learned = learning(&lessons.learned);
        let JobFacts { machine, unused, obstacle } = lessons.facts.unwrap_or_default();
        let obstacle = obstacle.map(|obstacle| Obstacle { fact: obstacle.fact, remedy: obstacle.remedy });
        let place = RankHost { obstacle, ..self.seat.place() };
        let mine = Part { place, ..self.calls.part() };
        let mine = serde_json::to_string(&mine).unwrap_or_default();
        let texts = gather(mpi, mine.into_bytes())?;
        if texts.is_empty() {
            return Ok(());
        }
        let parts: Vec<Part> = texts.iter().map(|text| serde_json::from_slice(text).unwrap_or_default()).collect();
        let name = mpi.library_version().unwrap_or_default();
        let name = name.split([',', ';']).next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let topology = std::env::var("ALLHANDS_TOPOLOGY").ok().filter(|text| !text.is_empty());
        let machine = machine.as_ref().map(Machine::to_string);
        let job = Job { mpi: name, off: self.off, topology, compares: self.compares, machine, unused, learned };
        let mut whole = Whole::of(parts, job);
        whole.locate(|module, offset| self.calls.sites.line(module, offset));
        write(&whole, self.wanted.as_deref());
        Ok(())
    }
}

/// What was learned, as the report has it.
fn learning(lessons: &Lessons) -> Option<Learning> {
    let (gained, spent) = lessons.sums();
    let row = |Learned { ranks, lesson, .. }: &Learned| Lesson {
        collective: lesson.collective.name().into(),
        up_to_bytes: lesson.bytes,
        ranks: *ranks,
        calls: lesson.calls,
        server: lesson.server.to_string(),
        settled: lesson.settled,
        tried: lesson
            .tried
            .iter()
            .map(|time| Tried {
                algorithm: time.algorithm.clone(),
                median_us: time.median_us,
                p10_us: time.p10_us,
                p90_us: time.p90_us,
                samples: time.samples,
            })
            .collect(),
        gained_seconds: lesson.gained,
        spent_seconds: lesson.spent,
    };
    Learning::new(gained, spent, lessons.all.iter().map(row).collect())
}

/// Of a report, as one message: MPICH's long ones fail where ranks may not read each other's memory.
const PIECE: usize = 4096;

/// Every rank's bytes on the first rank; nothing on the others.
fn gather(mpi: &Mpi, mine: Vec<u8>) -> allhands_mpi::Result<Vec<Vec<u8>>> {
    let world = mpi.world();
    let (me, ranks) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    // The program may have left receives for any message.
    let Some(own) = mpi.comm_split(world, Some(0), me as i32)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    // SAFETY: eight bytes, and as many as they say, in as long pieces, from each of the others in turn.
    unsafe {
        if me > 0 {
            let length = (mine.len() as u64).to_ne_bytes();
            mpi.send(length.as_ptr(), length.len(), 0, 0, own)?;
            for piece in mine.chunks(PIECE) {
                mpi.send(piece.as_ptr(), piece.len(), 0, 0, own)?;
            }
        } else {
            all.push(mine);
            for rank in 1..ranks as i32 {
                let mut length = [0; 8];
                mpi.recv(length.as_mut_ptr(), length.len(), rank, 0, own)?;
                let mut text = vec![0; u64::from_ne_bytes(length) as usize];
                for piece in text.chunks_mut(PIECE) {
                    mpi.recv(piece.as_mut_ptr(), piece.len(), rank, 0, own)?;
                }
                all.push(text);
            }
        }
    }
    mpi.comm_free(own)?;
    Ok(all)
}

/// To the standard error, or into a file.
fn write(whole: &Whole, wanted: Option<&str>) {
    let Some(wanted) = wanted else {
        // In one piece: other ranks may say something, too.
        let _ = std::io::stderr().write_all(whole.text().as_bytes());
        return;
    };
    let path = Path::new(wanted);
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => whole.json(),
        Some("html") => whole.page(),
        _ => whole.text(),
    };
    if let Err(error) = replace(path, &text) {
        allhands::raw::say(format_args!(
            "the report cannot be written to {wanted}: {error}; name another file in ALLHANDS_REPORT"
        ));
    }
}

/// Readers see the file as it was, or all of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&name);
    // A terminal or a pipe cannot be replaced.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return std::fs::write(path, text);
    }
    let written = std::fs::write(part, text).and_then(|()| std::fs::rename(part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.txt");
        for text in ["one", "two"] {
            replace(&path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        assert!(replace(&folder.path().join("nowhere/report.txt"), "three").is_err());
        replace(Path::new("/dev/null"), "no file").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }
}
