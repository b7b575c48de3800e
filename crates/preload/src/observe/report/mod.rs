//! What was called, who served it, and why: one report over all ranks, at `MPI_Finalize`.

mod calls;
mod html;
mod learning;
mod samples;
mod table;
mod units;
mod whole;

use std::path::Path;
use std::sync::Mutex;

use allhands_mpi::Mpi;

use super::lessons::Lessons;
use super::observer::{Observer, Served, Turn};
use calls::Calls;
use learning::Learning;
pub(super) use units::class;
use whole::{Part, Whole};

use allhands_call::locks::lock;

/// The calls of this rank, and where the report goes.
pub(super) struct Report {
    mpi: &'static Mpi,
    /// Nothing for the standard error, else a file.
    wanted: Option<String>,
    calls: Calls,
    /// The machine, and what was learned.
    learned: Mutex<Option<(Option<String>, Option<Learning>)>>,
}

impl Observer for Report {
    fn times(&self) -> bool {
        true
    }

    fn served(&self, call: &Served<'_>) {
        self.calls.note(call.name, call.bytes, &call.by, call.time);
        if let Some((collective, Turn { ours, counts: true })) = call.turn {
            self.calls.compared(collective, call.bytes, ours, call.time);
        }
    }

    fn learned(&self, lessons: &Lessons) {
        *lock(&self.learned) = Some((lessons.machine.clone(), Learning::of(lessons)));
    }

    fn publishes(&self) {
        if let Err(error) = self.publish() {
            eprintln!("allhands: there is no report: {error}");
        }
    }
}

impl Report {
    /// `wanted`: where it goes.
    pub(super) fn new(mpi: &'static Mpi, wanted: Option<&str>) -> Report {
        Report { mpi, wanted: wanted.map(String::from), calls: Calls::default(), learned: Mutex::default() }
    }

    /// Brings the calls of all ranks to the first, which writes them to where the user wants them. Collective over the world.
    fn publish(&self) -> allhands_mpi::Result<()> {
        let mpi = self.mpi;
        let mine = serde_json::to_string(&self.calls.part()).unwrap_or_default();
        let texts = gather(mpi, mine.into_bytes())?;
        if texts.is_empty() {
            return Ok(());
        }
        let parts: Vec<Part> = texts.iter().map(|text| serde_json::from_slice(text).unwrap_or_default()).collect();
        let name = mpi.library_version().unwrap_or_default();
        let name = name.split([',', ';']).next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let topology = std::env::var("ALLHANDS_TOPOLOGY").ok().filter(|text| !text.is_empty());
        let (machine, learned) = lock(&self.learned).take().unwrap_or_default();
        write(&Whole { machine, learned, ..Whole::of(parts, name, topology) }, self.wanted.as_deref());
        Ok(())
    }
}

/// Every rank's bytes on the first rank; nothing on the others.
fn gather(mpi: &Mpi, mine: Vec<u8>) -> allhands_mpi::Result<Vec<Vec<u8>>> {
    let world = mpi.world();
    let (me, ranks) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    // The program may have left receives for any message.
    let Some(own) = mpi.comm_split(world, Some(0), me as i32)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    // SAFETY: eight bytes, and as many as they say, from each of the others in turn.
    unsafe {
        if me > 0 {
            let length = (mine.len() as u64).to_ne_bytes();
            mpi.send(length.as_ptr(), length.len(), 0, 0, own)?;
            mpi.send(mine.as_ptr(), mine.len(), 0, 0, own)?;
        } else {
            all.push(mine);
            for rank in 1..ranks as i32 {
                let mut length = [0; 8];
                mpi.recv(length.as_mut_ptr(), length.len(), rank, 0, own)?;
                let mut text = vec![0; u64::from_ne_bytes(length) as usize];
                mpi.recv(text.as_mut_ptr(), text.len(), rank, 0, own)?;
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
        eprint!("{}", table::text(whole));
        return;
    };
    let path = Path::new(wanted);
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => serde_json::to_string_pretty(whole).unwrap_or_default() + "\n",
        Some("html") => html::page(whole),
        _ => table::text(whole),
    };
    if let Err(error) = replace(path, &text) {
        eprintln!("allhands: the report cannot be written to {wanted}: {error}; name another file in ALLHANDS_REPORT");
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
mod tests;
