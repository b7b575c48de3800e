//! What only the kernel can do: namespaces, a node's network device, priorities, signals.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A node has its own network, hostname, System V memory and mounts.
const OWN: libc::c_int = libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWNS;

/// The error of a system call that returned -1.
fn check(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

pub(crate) fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::other("a name with a zero byte"))
}

/// Makes a command run as a new node, with memory of its own at `/dev/shm` and a common list of hosts, until this process ends.
pub(crate) fn as_new_node(command: &mut Command, name: &str, hosts: &Path) -> io::Result<()> {
    let (name, hosts) = (CString::new(name)?, c_string(hosts.as_os_str())?);
    let parent = std::process::id();
    let enter = move || {
        // SAFETY: system calls on strings that live as long as this closure; none of them allocates.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The parent may have ended before that was set.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            check(libc::unshare(OWN))?;
            check(libc::sethostname(name.as_ptr(), name.as_bytes().len()))?;
            let none = std::ptr::null();
            check(libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()))?;
            let (memory, options) = (c"tmpfs".as_ptr(), c"size=50%".as_ptr());
            check(libc::mount(memory, c"/dev/shm".as_ptr(), memory, 0, options.cast()))?;
            check(libc::mount(hosts.as_ptr(), c"/etc/hosts".as_ptr(), none, libc::MS_BIND, none.cast()))?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// A node, by the process that keeps it.
pub(crate) struct Namespaces(OwnedFd);

impl Namespaces {
    pub(crate) fn of(process: u32) -> io::Result<Namespaces> {
        // SAFETY: a system call with two numbers; what it returns is a new descriptor.
        let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) };
        let file = check(file as libc::c_int)?;
        // SAFETY: it is ours.
        Ok(Namespaces(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Makes a command run on the node, in the folder where it was given.
    pub(crate) fn host(self, command: &mut Command) -> io::Result<()> {
        let folder = c_string(std::env::current_dir()?.as_os_str())?;
        let enter = move || {
            // SAFETY: system calls on what lives as long as this closure.
            unsafe {
                check(libc::setns(self.0.as_raw_fd(), OWN))?;
                check(libc::chdir(folder.as_ptr()))?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }

    /// Does something in the network of the node.
    pub(crate) fn in_network<R>(&self, act: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let home = File::open("/proc/self/ns/net")?;
        // SAFETY: system calls with descriptors of namespaces.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) })?;
        let outcome = act();
        // SAFETY: as above. This thread has no business in the other network.
        check(unsafe { libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) })?;
        outcome
    }
}

/// A network device, `eth0`, whose frames are read from and written to the result.
pub(crate) fn network_device() -> io::Result<File> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"eth0") {
        *place = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is one that this call takes.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
    // SAFETY: two numbers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok(file)
}

/// Goes before everything else on this machine that has no such priority.
pub(crate) fn be_urgent() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 50 };
    // SAFETY: this process, and a valid priority.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) }).map(|_| ())
}

/// From now on the signals that end a process can be read from the result instead.
pub(crate) fn signals_to_end() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before it is used; what the last call returns is a new descriptor.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
        let file = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(file))
    }
}

/// From now on the end of the process that started this one is a signal to end.
pub(crate) fn end_with_parent() -> io::Result<()> {
    // SAFETY: two numbers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) })?;
    // SAFETY: asks for a number. Whose parent has ended is a child of the first process.
    if unsafe { libc::getppid() } == 1 { Err(io::Error::other("it has ended")) } else { Ok(()) }
}

/// Leaves the terminal and the process group of whoever started this process.
pub(crate) fn leave_terminal() {
    // SAFETY: no arguments; it fails only for the leader of a group, which has none to leave.
    unsafe { libc::setsid() };
}

/// Asks a process to end, or ends it; whether there was one.
pub(crate) fn signal(process: u32, signal: libc::c_int) -> bool {
    // SAFETY: two numbers, and the process is not 0 or -1, which would be many.
    process > 0 && unsafe { libc::kill(process as libc::pid_t, signal) } == 0
}

/// How long a process with priority may run without pause, in microseconds: then it is ended, so that it cannot take the machine away.
const LONGEST: libc::rlim_t = 2_000_000;

/// Guards the machine against [`Urgent`].
pub(crate) fn limit_priority() {
    let limit = libc::rlimit { rlim_cur: LONGEST, rlim_max: LONGEST };
    // SAFETY: a valid limit, for this process.
    unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limit) };
}

/// While there is one, this thread goes before those that do not take part in the race, by turns with those that do.
pub(crate) struct Urgent;

impl Urgent {
    pub(crate) fn new() -> Urgent {
        schedule(libc::SCHED_RR, 10);
        Urgent
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(policy: libc::c_int, priority: libc::c_int) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: this thread, and a valid priority. Without the right to do so nothing changes.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) };
}
