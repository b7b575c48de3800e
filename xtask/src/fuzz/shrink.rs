//! Makes a script that fails shorter: lines are taken out, many at a time and then fewer, as long as it fails without them.

use std::time::{Duration, Instant};

use super::job::{Program, Verdict};
use super::script::{Script, Setting};
use crate::Result;

/// While it is made shorter, a script that takes so long hangs.
const HANGS: Duration = Duration::from_secs(20);

/// What failed in company is tried so often alone.
const TRIES: usize = 3;

/// Whether a script fails without us, too, in one of a few tries: among others it may have ended well by chance.
pub(super) fn fails_without_us(program: &Program, setting: &Setting, script: &Script) -> Result<Option<String>> {
    for _ in 0..TRIES {
        if let Verdict::Failed(what) = program.without(setting, std::slice::from_ref(script), HANGS)?.verdict {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// No longer than this.
const MOST: Duration = Duration::from_secs(240);

/// The shortest script that was found to fail, with us or without, and what is said then; nothing if it does not fail alone.
pub(super) fn shrunk(
    program: &Program,
    setting: &Setting,
    script: &Script,
    ours: bool,
) -> Result<Option<(Script, String)>> {
    let failing = |lines: &[String]| -> Result<Option<String>> {
        let script = Script { name: script.name.clone(), lines: lines.to_vec() };
        let outcome =
            if ours { program.with(setting, &[script], HANGS) } else { program.without(setting, &[script], HANGS) };
        Ok(match outcome?.verdict {
            Verdict::Failed(what) => Some(what),
            Verdict::Passed => None,
        })
    };
    let mut said = None;
    for _ in 0..TRIES {
        said = said.map_or_else(|| failing(&script.lines), |said| Ok(Some(said)))?;
    }
    let Some(mut said) = said else { return Ok(None) };
    let begun = Instant::now();
    let mut lines = script.lines.clone();
    let mut step = lines.len().div_ceil(2);
    loop {
        let mut start = 0;
        let mut shorter = false;
        while start < lines.len() && begun.elapsed() < MOST {
            let end = (start + step).min(lines.len());
            let rest = [&lines[..start], &lines[end..]].concat();
            match failing(&rest)? {
                Some(what) => (lines, said, shorter) = (rest, what, true),
                None => start = end,
            }
        }
        if begun.elapsed() >= MOST || (step == 1 && !shorter) {
            return Ok(Some((Script { name: script.name.clone(), lines }, said)));
        }
        step = if shorter { step } else { step.div_ceil(2) }.min(lines.len()).max(1);
    }
}
