//! Preloaded into ranks: a rank that yields sleeps until one of its sockets can be read, or for 50 us.
//!
//! On an emulated cluster ranks outnumber cores, and a rank that waits for a message from another node waits for milliseconds.
//! Libraries poll and yield in a loop, which keeps the cores from those who have work, among them the one that carries the
//! messages. The same for every library that is compared.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How long a yield lasts at most: near messages wake nobody.
const NAP: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
/// How often the sockets are looked for, which takes hundreds of system calls; one that is not known yet wakes nobody.
const REFRESH: Duration = Duration::from_millis(200);
/// Libraries have few files open.
const MOST_FILES: i32 = 256;

/// What a thread waits for.
struct Sockets {
    known: Vec<libc::pollfd>,
    since: Option<Instant>,
}

thread_local! {
    static SOCKETS: RefCell<Sockets> = const { RefCell::new(Sockets { known: Vec::new(), since: None }) };
}

impl Sockets {
    fn refresh(&mut self) {
        if self.since.is_some_and(|since| since.elapsed() < REFRESH) {
            return;
        }
        self.since = Some(Instant::now());
        self.known.clear();
        for file in 0..MOST_FILES {
            if is_network_socket(file) {
                self.known.push(libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 });
            }
        }
    }

    fn wait(&mut self) {
        // SAFETY: the array is as long as it says; the time is valid; no signal mask.
        unsafe { libc::ppoll(self.known.as_mut_ptr(), self.known.len() as libc::nfds_t, &NAP, std::ptr::null()) };
    }
}

/// Whether this is a connection to another node: a launcher's pipe that nobody reads would always be ready.
fn is_network_socket(file: i32) -> bool {
    // SAFETY: all zeros is a valid address, of no family.
    let mut address: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the address has room for any family's, and the length says so.
    let code = unsafe { libc::getpeername(file, (&raw mut address).cast(), &mut length) };
    code == 0 && i32::from(address.ss_family) == libc::AF_INET
}

/// Instead of the C library's.
#[unsafe(no_mangle)]
pub extern "C" fn sched_yield() -> libc::c_int {
    // A thread that is ending has no sockets any more.
    let _ = SOCKETS.try_with(|sockets| {
        if let Ok(mut sockets) = sockets.try_borrow_mut() {
            sockets.refresh();
            sockets.wait();
        }
    });
    0
}
