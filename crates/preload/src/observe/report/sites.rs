//! From where in the program its collectives are called.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use allhands_call::locks::lock;
use allhands_report::{Site, SiteCalls};

/// More places than these are not told apart: a program may make code while it runs.
const MOST: usize = 1000;

/// Calls and seconds of this rank, by where they return to and what they call.
#[derive(Default)]
pub(super) struct Sites {
    calls: Mutex<HashMap<(usize, String), (u64, f64)>>,
}

impl Sites {
    pub(super) fn note(&self, from: usize, collective: &str, time: Duration) {
        let mut all = lock(&self.calls);
        let known = all.len();
        let key = (from, collective.to_owned());
        if known >= MOST && !all.contains_key(&key) {
            return;
        }
        let (calls, seconds) = all.entry(key).or_default();
        (*calls, *seconds) = (*calls + 1, *seconds + time.as_secs_f64());
    }

    /// What this rank tells the first: places that mean the same in every process.
    pub(super) fn part(&self) -> Vec<SiteCalls> {
        let all = lock(&self.calls);
        let told = |((from, collective), (calls, seconds)): (&(usize, String), &(u64, f64))| {
            let (module, base) = module(*from)?;
            let site = Site { collective: collective.clone(), module, offset: (from - base) as u64 };
            Some(SiteCalls { site, calls: *calls, seconds: *seconds })
        };
        all.iter().filter_map(told).collect()
    }

    /// The line of the program that a place is in, as far as this process knows the module, and the module its lines or functions.
    pub(super) fn line(&self, wanted: &str, offset: u64) -> Option<String> {
        let all = lock(&self.calls);
        let mut modules = all.keys().filter_map(|(from, _)| module(*from));
        let (_, base) = modules.find(|(name, _)| name == wanted)?;
        let mut found = None;
        // A call returns behind itself, which this looks up a byte before.
        backtrace::resolve((base + offset as usize) as *mut c_void, |symbol| {
            let function = symbol.name().map(|name| name.to_string());
            let file = symbol.filename().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            let place = match (file, symbol.lineno(), function) {
                (Some(file), Some(line), Some(function)) => Some(format!("{file}:{line} ({function})")),
                (Some(file), Some(line), None) => Some(format!("{file}:{line}")),
                (_, _, Some(function)) => Some(format!("{function} ({wanted})")),
                _ => None,
            };
            // The innermost of functions that were merged into each other comes first.
            found = found.take().or(place);
        });
        found
    }
}

/// The program or library that an address is in, and where it begins.
fn module(address: usize) -> Option<(String, usize)> {
    // SAFETY: all zeroes are such a value.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the function looks an address up, and reads nothing there.
    if unsafe { libc::dladdr(address as *const c_void, &mut about) } == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of what is loaded, which stays as long as that does.
    let path = unsafe { CStr::from_ptr(about.dli_fname) }.to_string_lossy().into_owned();
    let name = Path::new(&path).file_name()?.to_string_lossy().into_owned();
    Some((name, about.dli_fbase as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is inlined there, whose name lines would have instead, and no other function does the same.
    #[inline(never)]
    fn a_place_in_a_program() -> u64 {
        0x05ee_d0fa_91ac_e001
    }

    #[test]
    fn places_are_named_by_their_lines() {
        let sites = Sites::default();
        let here = a_place_in_a_program as fn() -> u64 as usize + 1;
        assert_ne!(a_place_in_a_program(), 0);
        sites.note(here, "allreduce", Duration::from_millis(1));
        sites.note(here, "allreduce", Duration::from_millis(2));
        sites.note(here, "bcast", Duration::from_millis(4));
        let mut part = sites.part();
        part.sort_by(|one, other| one.site.collective.cmp(&other.site.collective));
        assert_eq!(part.iter().map(|site| site.calls).collect::<Vec<_>>(), [2, 1]);
        let Site { module, offset, .. } = &part[0].site;
        let line = sites.line(module, *offset).unwrap();
        assert!(line.contains("a_place_in_a_program"), "{line}");
        assert_eq!(sites.line("another program", 16), None);
        assert!((part[0].seconds - 0.003).abs() < 1e-12);
    }

    #[test]
    fn what_lies_nowhere_is_not_told_and_there_is_an_end_to_places() {
        let sites = Sites::default();
        (1..2 * MOST).for_each(|from| sites.note(from, "barrier", Duration::ZERO));
        assert_eq!(lock(&sites.calls).len(), MOST);
        assert!(sites.part().is_empty());
    }
}
