//! From where programs call their collectives.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::units::time;
use crate::whole::{Part, Whole};

/// A place that calls a collective.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// As programs call it, without `MPI_`.
    pub collective: String,
    /// The program or library that it is in.
    pub module: String,
    /// Where the call returns to, in bytes from the module's begin.
    pub offset: u64,
}

/// The blocking calls of one rank from a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteCalls {
    /// Which place.
    #[serde(flatten)]
    pub site: Site,
    /// How many.
    pub calls: u64,
    /// What they took.
    pub seconds: f64,
}

/// The same of all ranks, as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SiteRow {
    #[serde(flatten)]
    pub(crate) site: Site,
    /// The line, or what else is known of it.
    pub(crate) line: Option<String>,
    /// Calls of all ranks together.
    pub(crate) calls: u64,
    /// Time of a rank, the mean of all.
    pub(crate) seconds: f64,
}

pub(crate) const SITES: [&str; 4] = ["collective", "calls", "time", "called from"];
pub(crate) const ABOUT_SITES: &str =
    "where the program calls from: blocking calls of all ranks together, and the time of a rank, the mean of all";

/// So many places are looked up, and shown.
const SHOWN: usize = 12;

/// Longer names of functions are cut.
const LONGEST: usize = 44;

impl SiteRow {
    pub(crate) fn cells(&self) -> [String; 4] {
        let Site { collective, module, offset } = &self.site;
        let place = self.line.clone().unwrap_or_else(|| format!("{module}+{offset:#x}"));
        let place = match place.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}...", &place[..end]),
            None => place,
        };
        [collective.clone(), self.calls.to_string(), time(self.seconds), place]
    }
}

/// The places of all ranks, where most time is spent first.
pub(crate) fn merged(parts: &[Part]) -> Vec<SiteRow> {
    let mut all: HashMap<&Site, (u64, f64)> = HashMap::new();
    for one in parts.iter().flat_map(|part| &part.sites) {
        let (calls, seconds) = all.entry(&one.site).or_default();
        (*calls, *seconds) = (*calls + one.calls, *seconds + one.seconds / parts.len() as f64);
    }
    let row =
        |(site, (calls, seconds)): (&Site, (u64, f64))| SiteRow { site: site.clone(), line: None, calls, seconds };
    let mut rows: Vec<SiteRow> = all.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then_with(|| one.site.cmp(&other.site)));
    rows
}

impl Whole {
    /// Looks up the lines of the places that matter most: `line` knows them by module and offset.
    pub fn locate(&mut self, line: impl Fn(&str, u64) -> Option<String>) {
        for row in self.sites.iter_mut().take(SHOWN) {
            row.line = line(&row.site.module, row.site.offset);
        }
    }

    /// Those that are shown, and how many are not.
    pub(crate) fn shown_sites(&self) -> (&[SiteRow], usize) {
        let shown = self.sites.len().min(SHOWN);
        (&self.sites[..shown], self.sites.len() - shown)
    }
}
