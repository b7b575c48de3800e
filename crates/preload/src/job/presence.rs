//! Whether all ranks of a job run under this library, found out before anything waits for them.
//!
//! A job may consist of several programs, of which some were started without us: these never take part in what we agree on. Before a
//! rank calls its MPI's `MPI_Init` it binds a socket whose name says the job and the rank; it has no file and goes with the
//! process. `MPI_Init` lets ranks meet, so after it all sockets that will ever be there are there, and the ranks of a machine count the
//! same number in the kernel's list. The launcher says how many ranks the machine has.
//!
//! What can be known on which launcher:
//!
//! | | all ranks on one machine | on several |
//! | --- | --- | --- |
//! | Open MPI's | exactly | a job of several programs is left to the MPI, unless `ALLHANDS=on` says that all of them are under us |
//! | hydra, of MPICH and Intel MPI | exactly | of its own machine only: a job some of whose ranks there are not under us is ended with a sentence; one with such ranks on other machines only waits in `MPI_Init` for ever |
//! | others (Slurm) | nothing: all programs of a job must be under us, or none | the same |

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, PoisonError};

/// Who is there.
#[derive(Debug, PartialEq)]
pub(crate) enum Company {
    /// All ranks, as far as anybody can know.
    Everybody,
    /// So many of so many ranks of a job on one machine. All that are there know it; this one is to speak for them, or not.
    Some { here: usize, of: usize, speaks: bool },
    /// So many of so many of this machine's ranks, which those of other machines do not know.
    SomeOfThisMachine { here: usize, of: usize, speaks: bool },
    /// The job has several programs on several machines.
    Programs { speaks: bool },
}

/// What the launcher says of a job.
#[derive(Debug, PartialEq)]
struct Job {
    /// Tells it from others of this machine.
    name: String,
    rank: usize,
    ranks: usize,
    /// Of this machine.
    local: usize,
    /// How many programs it has, if that is known.
    programs: usize,
}

/// This rank's, until it has been counted.
static SOCKET: Mutex<Option<UnixDatagram>> = Mutex::new(None);

/// Lets the others see this rank. Before the MPI's own `MPI_Init`.
pub(crate) fn announce() {
    if let Some(job) = Job::of_this_process()
        && let Ok(address) = SocketAddr::from_abstract_name(format!("{}{}", job.prefix(), job.rank))
        && let Ok(socket) = UnixDatagram::bind_addr(&address)
    {
        *SOCKET.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    }
}

/// Counts the ranks that are there. After the MPI's own `MPI_Init`. `sure`: whether the user says that all are.
pub(crate) fn company(sure: bool) -> Company {
    let Some(job) = Job::of_this_process() else { return Company::Everybody };
    match std::fs::read_to_string("/proc/net/unix") {
        Ok(list) => job.company(&list, sure),
        Err(_) => Company::Everybody,
    }
}

/// Nobody counts any more: all ranks have agreed, or none will.
pub(crate) fn withdraw() {
    *SOCKET.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

impl Job {
    fn of_this_process() -> Option<Job> {
        Job::of(|name| std::env::var(name).ok(), || ancestor("hydra_pmi_proxy"))
    }

    /// From the launcher's variables. Hydra gives a job no name: all its processes of a machine come from one proxy.
    fn of(variable: impl Fn(&str) -> Option<String>, proxy: impl Fn() -> Option<u32>) -> Option<Job> {
        let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
        if let (Some(local), Some(name)) = (number("OMPI_COMM_WORLD_LOCAL_SIZE"), variable("PMIX_NAMESPACE")) {
            let (rank, ranks) = (number("OMPI_COMM_WORLD_RANK")?, number("OMPI_COMM_WORLD_SIZE")?);
            return Some(Job { name, rank, ranks, local, programs: number("OMPI_NUM_APP_CTX").unwrap_or(1) });
        }
        let (local, rank, ranks) = (number("MPI_LOCALNRANKS")?, number("PMI_RANK")?, number("PMI_SIZE")?);
        Some(Job { name: format!("hydra-{}", proxy()?), rank, ranks, local, programs: 1 })
    }

    fn prefix(&self) -> String {
        format!("allhands/{}/", self.name)
    }

    /// Who is there, by the kernel's list of sockets.
    fn company(&self, list: &str, sure: bool) -> Company {
        let prefix = format!("@{}", self.prefix());
        let names = list.lines().filter_map(|line| line.split_whitespace().last()?.strip_prefix(&prefix));
        let ranks: Vec<usize> = names.filter_map(|rank| rank.parse().ok()).collect();
        let (here, of, speaks) = (ranks.len(), self.local, ranks.iter().min() == Some(&self.rank));
        match (here >= of, self.local == self.ranks) {
            // This rank cannot be seen itself, so there is nothing to count.
            _ if !ranks.contains(&self.rank) => Company::Everybody,
            (false, true) => Company::Some { here, of, speaks },
            (false, false) => Company::SomeOfThisMachine { here, of, speaks },
            (true, false) if self.programs > 1 && !sure => Company::Programs { speaks: self.rank == 0 },
            _ => Company::Everybody,
        }
    }
}

/// The number of the nearest ancestor of this process with a name, which the kernel cuts after 15 letters.
fn ancestor(name: &str) -> Option<u32> {
    let name = &name[..name.len().min(15)];
    let mut process = std::os::unix::process::parent_id();
    while process > 1 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ")?;
        if before.split_once('(')?.1 == name {
            return Some(process);
        }
        process = after.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rank: usize, ranks: usize, local: usize, programs: usize) -> Job {
        Job { name: "one@1".into(), rank, ranks, local, programs }
    }

    const LIST: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        ffff: 00000002 00000000 00000000 0002 01 17 @allhands/one@1/0\n\
        ffff: 00000002 00000000 00000000 0002 01 18 @allhands/one@1/2\n\
        ffff: 00000002 00000000 00000000 0002 01 19 @allhands/one@11/3\n\
        ffff: 00000002 00000000 00000000 0002 01 20 /run/something\n\
        ffff: 00000002 00000000 00000000 0002 01 21\n";

    #[test]
    fn ranks_of_a_job_are_counted() {
        assert_eq!(job(0, 2, 2, 1).company(LIST, false), Company::Everybody);
        assert_eq!(job(0, 3, 3, 1).company(LIST, false), Company::Some { here: 2, of: 3, speaks: true });
        assert_eq!(job(2, 3, 3, 1).company(LIST, true), Company::Some { here: 2, of: 3, speaks: false });
        assert_eq!(job(2, 9, 3, 2).company(LIST, false), Company::SomeOfThisMachine { here: 2, of: 3, speaks: false });
        assert_eq!(job(1, 3, 3, 1).company(LIST, false), Company::Everybody, "it has no socket itself");
    }

    #[test]
    fn several_programs_on_several_machines_are_left_to_the_mpi_unless_the_user_is_sure() {
        assert_eq!(job(0, 4, 2, 2).company(LIST, false), Company::Programs { speaks: true });
        assert_eq!(job(2, 4, 2, 2).company(LIST, false), Company::Programs { speaks: false });
        assert_eq!(job(0, 4, 2, 2).company(LIST, true), Company::Everybody);
        assert_eq!(job(0, 2, 2, 2).company(LIST, false), Company::Everybody);
    }

    #[test]
    fn launchers_say_which_job_it_is() {
        let of = |variables: &[(&str, &str)]| {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            Job::of(variable, || Some(77))
        };
        let open_mpi = [
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_NUM_APP_CTX", "3"),
            ("PMIX_NAMESPACE", "prterun-host-7@1"),
        ];
        let known = Job { name: "prterun-host-7@1".into(), rank: 1, ranks: 4, local: 2, programs: 3 };
        assert_eq!(of(&open_mpi), Some(known));
        let hydra = [("MPI_LOCALNRANKS", "3"), ("PMI_RANK", "2"), ("PMI_SIZE", "3")];
        assert_eq!(of(&hydra), Some(Job { name: "hydra-77".into(), rank: 2, ranks: 3, local: 3, programs: 1 }));
        assert_eq!(of(&[("SLURM_PROCID", "0")]), None);
    }

    #[test]
    fn ancestors_are_found_by_name() {
        let parent = std::os::unix::process::parent_id();
        let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap();
        assert_eq!(ancestor(name.trim()), Some(parent));
        assert_eq!(ancestor("no program has this name"), None);
    }
}
