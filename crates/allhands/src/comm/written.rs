//! Schedules in files: `@FILE` where an algorithm is named. Rank 0 reads the file and tells the others what it says.

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allhands_schedule::{Error, Written};

use super::Comm;
use super::request::PlanRequest;
use crate::error::{Error as EngineError, Result};
use crate::server::Server;

/// Reads the schedule in a file, and proves it right; `-` is the standard input.
pub fn read_schedule(file: &str) -> allhands_schedule::Result<Written> {
    Written::parse(file, &text(file)?)
}

fn text(file: &str) -> allhands_schedule::Result<String> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(file).and_then(|mut opened| opened.read_to_string(&mut text)),
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => {
            let fact = format!(": it cannot be read: {error}; name a file that holds a schedule");
            Err(Error::Unreadable { file: Written::called(file).into(), fact })
        }
    }
}

/// What plans of all communicators of this process know.
static EVERYWHERE: Mutex<Vec<Arc<Written>>> = Mutex::new(Vec::new());

fn everywhere() -> MutexGuard<'static, Vec<Arc<Written>>> {
    EVERYWHERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on plans of all communicators of this process know a schedule as the algorithm that it is called, `@FILE`. Every process of a
/// job must be given the same, before a plan names it.
///
/// ```
/// use allhands::{Op, Options, Topology};
/// use allhands_schedule::{Choice, Collective, Problem, Written};
/// let problem = Problem::new(Collective::Allreduce, Topology::flat(2)?);
/// let tree = Choice::parse(Collective::Allreduce, "tree")?.prepare(&problem)?.ensemble();
/// allhands::raw::know_everywhere(Written::parse("tree.txt", &tree.to_string())?.into());
/// allhands::threads(Topology::flat(2)?, |comm| {
///     let mut sum = [0];
///     comm.allreduce_plan_with(1, Op::sum(), &Options::new().algorithm("@tree.txt"))?.run(&[21], &mut sum)?;
///     assert_eq!(sum, [42]);
///     Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn know_everywhere(written: Arc<Written>) {
    everywhere().push(written);
}

impl Comm {
    /// The schedule in a file, which plans of this communicator and of what is made from it then know as the algorithm `@FILE`. Every rank must
    /// call it; rank 0 reads the file, once, and tells the others. So does a plan that names such an algorithm for the first time.
    ///
    /// ```
    /// use allhands::{Op, Options, Topology};
    /// let file = std::env::temp_dir().join(format!("pair-{}.txt", std::process::id()));
    /// let text = "allhands schedule 1\ncollective allreduce\ntopology 2\nblocks 1\n
    ///     rank 0\n round\n send 1: input[0]\n recv 1: output[0]\n combine-before input[0] -> output[0]\n
    ///     rank 1\n round\n send 0: input[0]\n recv 0: output[0]\n combine input[0] -> output[0]\n end";
    /// std::fs::write(&file, text)?;
    /// let options = Options::new().algorithm(&format!("@{}", file.display()));
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let mut sum = [0.0; 3];
    ///     comm.allreduce_plan_with(3, Op::sum(), &options)?.run(&[1.0, 2.0, comm.rank() as f64], &mut sum)?;
    ///     assert_eq!(sum, [2.0, 4.0, 1.0]);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn written(&self, file: &str) -> Result<Arc<Written>> {
        if let Some(known) = self.known_schedule(file) {
            return Ok(known);
        }
        let read = if self.rank() == 0 { text(file) } else { Ok(String::new()) };
        // What cannot be read is told as well: all refuse it alike.
        let (told, is_read) = match &read {
            Ok(text) => (text.clone(), true),
            Err(Error::Unreadable { fact, .. }) => (fact.clone(), false),
            Err(error) => (error.to_string(), false),
        };
        let mut head = [told.len() as u64, u64::from(is_read)];
        self.bcast(&mut head, 0)?;
        let mut bytes = told.into_bytes();
        bytes.resize(head[0] as usize, 0);
        self.bcast(&mut bytes, 0)?;
        let told = String::from_utf8_lossy(&bytes);
        if head[1] == 0 {
            return Err(Error::Unreadable { file: Written::called(file).into(), fact: told.into() }.into());
        }
        let written = Arc::new(Written::parse(file, &told)?);
        self.know(written.clone());
        Ok(written)
    }

    /// From now on plans of this communicator, and of what is made from it, know a schedule as the algorithm that it is called, `@FILE`. Every rank must be
    /// given the same.
    pub fn know(&self, written: Arc<Written>) {
        let name = written.to_string();
        let mut known = self.written.borrow_mut();
        known.retain(|known| known.to_string() != name);
        known.push(written);
    }

    /// The schedule of a file that was read before.
    fn known_schedule(&self, file: &str) -> Option<Arc<Written>> {
        let name = Server::Written(file.into()).to_string();
        let find = |known: &[Arc<Written>]| known.iter().find(|known| known.to_string() == name).cloned();
        find(&self.written.borrow()).or_else(|| find(&everywhere()))
    }

    /// The schedule in a file, for a plan. One that waits for nobody cannot let rank 0 read it now.
    pub(super) fn written_for(&self, ask: &PlanRequest<'_>, file: &str) -> Result<Arc<Written>> {
        if ask.place.is_some() || (ask.options.unshared && self.known_schedule(file).is_none()) {
            return Err(EngineError::WrittenLater { file: file.into() });
        }
        self.written(file)
    }
}

/// Tells what a file says from what others say.
pub(super) fn check_sum(written: &Written) -> u64 {
    allhands_schedule::hash(written.text().bytes())
}
