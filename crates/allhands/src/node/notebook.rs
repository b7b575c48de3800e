//! What one rank of a node has found out by thinking, for the others: who is first writes down what all would find.
//!
//! It changes how long a rank thinks, never what it finds: a note holds what follows from its key alone. So it does no harm if two ranks write the
//! same note, if one that is being written is overlooked, or if there is no page left.
//!
//! A page is taken by moving its state from BLANK to BEGUN, written by who took it, and WRITTEN for ever; pages are taken in order, so behind a blank one all
//! are. A process that dies while it writes leaves a page that nobody reads.
//!
//! Memory ordering: WRITTEN is stored with Release after the note, and loaded with Acquire before it is read. Who takes a page is alone with it
//! by the compare-exchange; nobody has read it before, so that needs no order.

use std::sync::{Arc, Weak};

use super::memory::Mapping;
use super::sync::{AtomicU32, Ordering, UnsafeCell};

const BLANK: u32 = 0;
const BEGUN: u32 = 1;
const WRITTEN: u32 = 2;

#[cfg(not(loom))]
const PAGES: usize = 64;
#[cfg(loom)]
const PAGES: usize = 2;
/// What a note can hold: a page is a kibibyte.
const LONGEST: usize = 980;

/// In memory that all ranks of the node see; all zeros is an empty one.
#[repr(C)]
pub(super) struct Pages([Page; PAGES]);

#[repr(C, align(128))]
struct Page {
    state: AtomicU32,
    note: UnsafeCell<Note>,
}

#[repr(C)]
struct Note {
    key: [u64; 2],
    length: u32,
    text: [u8; LONGEST],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Page>() == 1024);

// SAFETY: a note is written by the one who took its page, and read after it was written.
unsafe impl Sync for Pages {}

impl Pages {
    /// What is noted under a key.
    fn read(&self, key: [u64; 2]) -> Option<String> {
        for page in &self.0 {
            match page.state.load(Ordering::Acquire) {
                BLANK => return None,
                WRITTEN => {}
                _ => continue,
            }
            let text = page.note.with(|note| {
                // SAFETY: it was written before its state, and is not changed any more.
                let note = unsafe { &*note };
                let text = note.text.get(..note.length as usize).filter(|_| note.key == key)?;
                Some(String::from_utf8_lossy(text).into_owned())
            });
            if text.is_some() {
                return text;
            }
        }
        None
    }

    /// Notes something, if there is room.
    fn write(&self, key: [u64; 2], text: &str) {
        if text.len() > LONGEST {
            return;
        }
        let take =
            |page: &&Page| page.state.compare_exchange(BLANK, BEGUN, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let Some(page) = self.0.iter().find(take) else { return };
        page.note.with_mut(|note| {
            // SAFETY: who takes a page is alone with it until it is written.
            let note = unsafe { &mut *note };
            note.key = key;
            note.length = text.len() as u32;
            note.text[..text.len()].copy_from_slice(text.as_bytes());
        });
        page.state.store(WRITTEN, Ordering::Release);
    }
}

/// The notebook of a node, for as long as its memory is there.
pub(crate) struct Notebook {
    memory: Weak<Mapping>,
    at: usize,
}

impl std::fmt::Debug for Notebook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notebook").finish_non_exhaustive()
    }
}

impl Notebook {
    pub(crate) const BYTES: usize = size_of::<Pages>();

    /// In the memory of a node, from a place on that is aligned for pages.
    pub(crate) fn new(memory: &Arc<Mapping>, at: usize) -> Notebook {
        assert!(memory.len() >= at + Notebook::BYTES && at.is_multiple_of(align_of::<Page>()));
        Notebook { memory: Arc::downgrade(memory), at }
    }

    /// What some rank has noted under a key.
    pub(crate) fn read(&self, key: [u64; 2]) -> Option<String> {
        self.with(|pages| pages.read(key))?
    }

    /// Notes something for the others, if there is room: a page for each of the first few questions.
    pub(crate) fn write(&self, key: [u64; 2], text: &str) {
        self.with(|pages| pages.write(key, text));
    }

    fn with<R>(&self, act: impl FnOnce(&Pages) -> R) -> Option<R> {
        let memory = self.memory.upgrade()?;
        // SAFETY: the memory, which stays meanwhile, holds the pages there, for which zeros are valid; they are only changed through atomics and cells.
        Some(act(unsafe { &*memory.as_ptr().add(self.at).cast() }))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn memory() -> Arc<Mapping> {
        Arc::new(Mapping::private(Notebook::BYTES).unwrap())
    }

    #[test]
    fn what_is_noted_is_found_by_its_whole_key() {
        let memory = memory();
        let notebook = Notebook::new(&memory, 0);
        assert_eq!(notebook.read([1, 2]), None);
        notebook.write([1, 2], "one");
        notebook.write([1, 3], "another");
        assert_eq!(notebook.read([1, 2]).as_deref(), Some("one"));
        assert_eq!(notebook.read([1, 3]).as_deref(), Some("another"));
        assert_eq!(notebook.read([2, 2]), None);
        drop(memory);
        assert_eq!(notebook.read([1, 2]), None, "and it keeps no memory");
        notebook.write([2, 2], "nowhere");
    }

    #[test]
    fn what_finds_no_room_is_not_noted() {
        let memory = memory();
        let notebook = Notebook::new(&memory, 0);
        notebook.write([0, 0], &"x".repeat(LONGEST + 1));
        assert_eq!(notebook.read([0, 0]), None);
        (0..PAGES as u64 + 1).for_each(|number| notebook.write([number, 0], &"y".repeat(LONGEST)));
        assert!((0..PAGES as u64).all(|number| notebook.read([number, 0]).is_some_and(|text| text.len() == LONGEST)));
        assert_eq!(notebook.read([PAGES as u64, 0]), None);
    }

    #[test]
    fn threads_find_nothing_or_all_of_it() {
        let memory = memory();
        let notebook = Notebook::new(&memory, 0);
        let text = |number: u64| char::from(b'a' + number as u8 % 26).to_string().repeat(1 + number as usize * 15);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let notebook = &notebook;
                scope.spawn(move || {
                    for number in (0..30).map(|step| (step + thread * 7) % 30) {
                        match notebook.read([number, 9]) {
                            Some(found) => assert_eq!(found, text(number)),
                            None => notebook.write([number, 9], &text(number)),
                        }
                    }
                });
            }
        });
        assert!((0..10).all(|number| notebook.read([number, 9]).is_none_or(|found| found == text(number))));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        loom::model(|| {
            let page = || Page {
                state: AtomicU32::new(BLANK),
                note: UnsafeCell::new(Note { key: [0; 2], length: 0, text: [0; LONGEST] }),
            };
            let pages = loom::sync::Arc::new(Pages([page(), page()]));
            let other = thread::spawn({
                let pages = pages.clone();
                move || pages.write([1, 2], "the same")
            });
            pages.write([1, 2], "the same");
            let found = pages.read([1, 2]);
            other.join().unwrap();
            // One's own note is there, and whole, whoever took the first page.
            assert_eq!(found.as_deref(), Some("the same"));
            assert_eq!(pages.read([1, 2]).as_deref(), Some("the same"));
            assert_eq!(pages.read([2, 1]), None);
        });
    }
}
