//! What the system does not let the ranks of a machine do together, why, and what can be done about it.
//!
//! Containers are where this is met: a seccomp filter forbids `process_vm_readv`, or every rank has a container of its own, whose
//! processes may not look at each other. Jobs run right all the same, by a slower way; who reads a report should know which.

use std::fs;
use std::io;

use libc::{EACCES, EFBIG, EMFILE, ENFILE, ENOSYS, EPERM, ESRCH};

/// What this rank could not do with the others of its machine.
///
/// ```
/// use allhands::raw::{Obstacle, Surroundings};
/// let here = Surroundings { ptrace_scope: Some(1), ..Surroundings::default() };
/// let obstacle = Obstacle::reading(&std::io::Error::from_raw_os_error(1), &here);
/// assert!(obstacle.fact.ends_with("kernel.yama.ptrace_scope is 1"));
/// assert_eq!(obstacle.remedy, "let the administrator set kernel.yama.ptrace_scope to 0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What is refused, what follows from it, and why.
    pub fact: String,
    /// What to do about it.
    pub remedy: String,
}

/// What decides what processes may do with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The kernel's `yama.ptrace_scope`, where it has that.
    pub ptrace_scope: Option<u32>,
    /// Whether a seccomp filter decides which system calls there are.
    pub filtered: bool,
    /// Whether this process may not even read itself, which no rule about other processes forbids.
    pub not_even_itself: bool,
    /// Whether the other process is in a user namespace of its own, as far as can be seen.
    pub apart: bool,
}

const ONE_CONTAINER: &str = "start the launcher inside of one container for all ranks of a machine";
const UNFILTERED: &str = "start the container with --cap-add SYS_PTRACE, or with --security-opt seccomp=unconfined";

impl Obstacle {
    /// That another process' memory cannot be read.
    pub fn reading(error: &io::Error, around: &Surroundings) -> Obstacle {
        let code = error.raw_os_error();
        let (why, remedy) = match (code, around.ptrace_scope) {
            _ if around.not_even_itself && around.filtered => {
                ("a seccomp filter forbids the call".into(), UNFILTERED.into())
            }
            (Some(ENOSYS), _) => (
                "this kernel does not have the call".into(),
                "use a kernel that is built with CONFIG_CROSS_MEMORY_ATTACH".into(),
            ),
            (Some(EPERM | EACCES), Some(scope @ 1..)) => (
                format!("kernel.yama.ptrace_scope is {scope}"),
                match scope {
                    3 => {
                        "let the administrator start the machine with kernel.yama.ptrace_scope at 0: 3 stays until then"
                    }
                    2 => {
                        "let the administrator set kernel.yama.ptrace_scope to 0, or give the container CAP_SYS_PTRACE"
                    }
                    _ => "let the administrator set kernel.yama.ptrace_scope to 0",
                }
                .into(),
            ),
            (Some(EPERM | EACCES), _) if around.apart => {
                ("the ranks have containers (user namespaces) of their own".into(), ONE_CONTAINER.into())
            }
            (Some(EPERM | EACCES), _) => (
                "the ranks belong to different users, or a security module forbids it".into(),
                "run all ranks as one user, or ask the administrator for what denies ptrace (SELinux: deny_ptrace)"
                    .into(),
            ),
            (Some(ESRCH) | None, _) => {
                ("the ranks have containers (process numbers) of their own".into(), ONE_CONTAINER.into())
            }
            _ => ("the kernel says so".into(), "ask the administrator why".into()),
        };
        let refused = format!("ranks may not read each other's memory (process_vm_readv: {})", words(error));
        Obstacle { fact: format!("{refused}, so long messages are copied twice: {why}"), remedy }
    }

    /// That no memory can be shared: it cannot be made, or not be opened by the others.
    pub(super) fn sharing(doing: Sharing, error: &io::Error, around: &Surroundings) -> Obstacle {
        let code = error.raw_os_error();
        let (why, remedy) = match (doing, code) {
            (Sharing::Making, Some(EPERM | EACCES | ENOSYS)) if around.filtered => (
                "a seccomp filter forbids the call".into(),
                "start the container with --security-opt seccomp=unconfined, or with a profile that allows memfd_create".into(),
            ),
            (Sharing::Making, Some(EFBIG)) => (
                "files may not be as long as that (ulimit -f)".into(),
                "start the job with `ulimit -f unlimited`".into(),
            ),
            (Sharing::Making, Some(EMFILE | ENFILE)) => {
                ("no more files can be opened (ulimit -n)".into(), "start the job with a greater `ulimit -n`".into())
            }
            (Sharing::Making, _) => ("the kernel says so".into(), "ask the administrator why".into()),
            (Sharing::Opening, _) => (
                "the ranks have containers (namespaces) of their own, or no /proc".to_owned(),
                ONE_CONTAINER.to_owned(),
            ),
        };
        let call = match doing {
            Sharing::Making => "memfd_create",
            Sharing::Opening => "/proc",
        };
        let refused = format!("ranks of a machine share no memory ({call}: {})", words(error));
        Obstacle { fact: format!("{refused}, so all their messages are the MPI's: {why}"), remedy }
    }
}

/// Whether the MPI of this name fails with long messages inside of a machine where ranks may not read each other's memory. MPICH reads it
/// since 5.0 without a try, unless it is told not to.
///
/// ```
/// assert!(!allhands::raw::needs_reading("Open MPI v5.0.11"));
/// ```
pub fn needs_reading(mpi: &str) -> bool {
    let told = std::env::var("MPIR_CVAR_CH4_CMA_ENABLE").ok();
    reads_untried(mpi, told.as_deref())
}

fn reads_untried(mpi: &str, told: Option<&str>) -> bool {
    let version = mpi.strip_prefix("MPICH Version:").and_then(|version| version.trim().split('.').next());
    let recent = version.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= 5);
    recent && told.and_then(crate::switch::switched) != Some(false)
}

/// What is done to share memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sharing {
    Making,
    Opening,
}

/// What the system says, without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.into())
}

impl Surroundings {
    /// Those of this process, and of another that it wanted to look at.
    pub fn here(other: Option<u32>) -> Surroundings {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).map(str::trim);
        let word = 0x616c_6c68_616e_6473_u64;
        let space = |process: &str| fs::read_link(format!("/proc/{process}/ns/user")).ok();
        Surroundings {
            ptrace_scope: number("/proc/sys/kernel/yama/ptrace_scope"),
            filtered: seccomp.is_some_and(|mode| mode != "0"),
            not_even_itself: crate::node::readable(std::process::id(), &raw const word as usize, word).is_err(),
            apart: other.is_some_and(|other| space("self") != space(&other.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn why_memory_cannot_be_read_is_told_from_what_is_around() {
        let none = Surroundings::default();
        let filter = Surroundings { filtered: true, not_even_itself: true, ..none };
        let scope = |scope| Surroundings { ptrace_scope: Some(scope), ..none };
        for (code, around, why, remedy) in [
            (EPERM, filter, "a seccomp filter forbids the call", "--cap-add SYS_PTRACE"),
            (ENOSYS, filter, "a seccomp filter forbids the call", "--cap-add SYS_PTRACE"),
            (ENOSYS, none, "this kernel does not have the call", "CONFIG_CROSS_MEMORY_ATTACH"),
            // A filter that lets it through is no reason.
            (EPERM, Surroundings { filtered: true, ..scope(1) }, "ptrace_scope is 1", "to 0"),
            (EPERM, scope(2), "ptrace_scope is 2", "CAP_SYS_PTRACE"),
            (EPERM, scope(3), "ptrace_scope is 3", "start the machine"),
            (EPERM, Surroundings { apart: true, ..scope(0) }, "(user namespaces) of their own", "one container"),
            (EPERM, scope(0), "different users", "deny_ptrace"),
            (ESRCH, none, "(process numbers) of their own", "one container"),
        ] {
            let obstacle = Obstacle::reading(&error(code), &around);
            assert!(obstacle.fact.contains(why), "{obstacle:?}");
            assert!(obstacle.remedy.contains(remedy), "{obstacle:?}");
        }
        // A process of that number, but another one.
        let other = Obstacle::reading(&io::Error::other("another process"), &none);
        assert!(other.fact.contains("(process_vm_readv: another process)") && other.fact.contains("process numbers"));
    }

    #[test]
    fn why_memory_cannot_be_shared_is_told() {
        let filter = Surroundings { filtered: true, ..Surroundings::default() };
        let sharing = |doing, code| Obstacle::sharing(doing, &error(code), &filter);
        assert_eq!(
            sharing(Sharing::Making, EPERM).fact,
            "ranks of a machine share no memory (memfd_create: Operation not permitted), so all their messages are the MPI's: a seccomp filter forbids the call"
        );
        assert!(sharing(Sharing::Making, EFBIG).remedy.contains("ulimit -f"));
        assert!(sharing(Sharing::Making, EMFILE).remedy.contains("ulimit -n"));
        assert!(sharing(Sharing::Opening, EACCES).fact.contains("containers"));
    }

    #[test]
    fn mpich_reads_since_its_version_5_unless_it_is_told_not_to() {
        assert!(reads_untried("MPICH Version: 5.0.2", None) && reads_untried("MPICH Version: 5.0.2", Some("1")));
        assert!(!reads_untried("MPICH Version: 5.0.2", Some("0")) && !reads_untried("MPICH Version: 4.3.1", None));
        assert!(!reads_untried("Intel(R) MPI Library 2021.18", None));
    }

    #[test]
    fn a_process_sees_what_is_around_it() {
        let here = Surroundings::here(Some(std::process::id()));
        assert!(!here.apart && (here.filtered || !here.not_even_itself));
    }
}
