//! What all ranks agree on in `MPI_Init`, before anything depends on it: who is under us, in which version, switched on or off, what
//! moves requests on, and whose settings count. After that no rank hands a call to the MPI for a reason that another may not have.

use allhands_mpi::Mpi;
use allhands_schedule::hash;

use super::mover::Mover;
use super::presence::{self, Company};
use super::settings::{Switch, wants_thread};

/// This build: other sources may choose other algorithms.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("ALLHANDS_SOURCES"));

/// What ranks have agreed on.
pub(crate) enum Agreed {
    /// Ours serve.
    Serve { mover: Option<Mover> },
    /// The MPI serves this job, and all ranks are there to tell of it.
    Watch,
    /// The MPI serves this job, and nobody knows more.
    Leave,
}

/// All ranks agree. Collective over the world, of those who are under us.
pub(crate) fn agree(mpi: &Mpi) -> Result<Agreed, String> {
    let wanted = Switch::of_this_process();
    let present = presence::company(wanted == Switch::Sure);
    let leave = |speaks: bool, fact: String| {
        if speaks && wanted != Switch::Off {
            allhands::raw::say(fact);
        }
        Ok(Agreed::Leave)
    };
    match present {
        Company::Everybody => {}
        Company::Some { here, of, speaks } => {
            let fact = "so the MPI serves all of it; start every program of the job with allhands exec";
            return leave(speaks, format!("{here} of the {of} ranks of this job run under it, {fact}"));
        }
        Company::Programs { speaks } => {
            let fact = "so the MPI serves it; if all of them run under allhands exec, say so with ALLHANDS=on";
            return leave(speaks, format!("this job has several programs on several machines, {fact}"));
        }
        Company::SomeOfThisMachine { here, of, speaks } => {
            let fact = "start every program of the job with allhands exec, or none";
            if speaks {
                allhands::raw::say(format_args!("{here} of the {of} ranks of this machine run under it; {fact}"));
            }
            mpi.abort(mpi.world(), 2);
        }
    }
    let mover = Mover::of(mpi, wants_thread());
    let words =
        outermost(mpi, Words::new(wanted != Switch::Off, mover.is_some())).map_err(|error| error.to_string())?;
    presence::withdraw();
    let first = mpi.comm_rank(mpi.world()) == Ok(0);
    match words.verdict() {
        Verdict::Serve { moved } => Ok(Agreed::Serve { mover: mover.filter(|_| moved) }),
        Verdict::Off => Ok(Agreed::Watch),
        Verdict::OffOnSome => {
            let fact = "ALLHANDS=off on some ranks of this job only, so the MPI serves all of it; set it on all ranks or on none";
            if first {
                allhands::raw::say(fact);
            }
            Ok(Agreed::Watch)
        }
        Verdict::Versions { off: true } => Ok(Agreed::Leave),
        Verdict::Versions { off: false } => {
            let fact = "ranks of this job run under different versions of it, so the MPI serves all of it; install one version";
            if first {
                allhands::raw::say(fact);
            }
            Ok(Agreed::Leave)
        }
    }
}

/// What ranks tell each other first: as many words in every version, of which all get the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Words([u64; 8]);

/// What follows from the greatest words.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// `moved`: whether all ranks have something that moves requests on.
    Serve {
        moved: bool,
    },
    Off,
    OffOnSome,
    /// `off`: on all ranks.
    Versions {
        off: bool,
    },
}

impl Words {
    fn new(on: bool, moved: bool) -> Words {
        Words::of(hash(BUILD.bytes()), on, moved)
    }

    /// The greatest of a word and of its complement tell whether all are the same.
    fn of(build: u64, on: bool, moved: bool) -> Words {
        Words([build, !build, u64::from(on), u64::from(!on), u64::from(!moved), 0, 0, 0])
    }

    fn verdict(&self) -> Verdict {
        let [build, other, on, off, unmoved, ..] = self.0;
        match (on, off) {
            _ if build != !other => Verdict::Versions { off: on == 0 },
            (0, _) => Verdict::Off,
            (_, 0) => Verdict::Serve { moved: unmoved == 0 },
            _ => Verdict::OffOnSome,
        }
    }
}

/// The greatest of all ranks' words, each by itself.
fn outermost(mpi: &Mpi, Words(mut words): Words) -> allhands_mpi::Result<Words> {
    let constants = mpi.constants();
    // SAFETY: so many words in place on every rank.
    unsafe {
        let own = mpi.in_place().cast_const();
        let (word, max) = (constants.types.uint64_t, constants.ops.max);
        mpi.allreduce(own, words.as_mut_ptr().cast(), words.len(), word, max, mpi.world())?;
    }
    Ok(Words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_all(ranks: &[Words]) -> Verdict {
        let mut all = Words([0; 8]);
        for Words(words) in ranks {
            all.0.iter_mut().zip(words).for_each(|(most, word)| *most = (*most).max(*word));
        }
        all.verdict()
    }

    #[test]
    fn ranks_find_out_in_what_they_differ() {
        let rank = Words::of;
        assert_eq!(of_all(&[rank(7, true, true), rank(7, true, true)]), Verdict::Serve { moved: true });
        assert_eq!(of_all(&[rank(7, true, true), rank(7, true, false)]), Verdict::Serve { moved: false });
        assert_eq!(of_all(&[rank(7, false, true), rank(7, false, true)]), Verdict::Off);
        assert_eq!(of_all(&[rank(7, true, true), rank(7, false, true)]), Verdict::OffOnSome);
        assert_eq!(of_all(&[rank(7, true, true), rank(8, true, true)]), Verdict::Versions { off: false });
        assert_eq!(of_all(&[rank(u64::MAX, true, true), rank(0, true, true)]), Verdict::Versions { off: false });
        assert_eq!(of_all(&[rank(7, false, true), rank(8, false, true)]), Verdict::Versions { off: true });
        assert_eq!(of_all(&[rank(0, true, true), rank(0, true, true)]), Verdict::Serve { moved: true });
    }
}
