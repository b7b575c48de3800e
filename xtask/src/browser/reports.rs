//! Reports: that of the preload, and that of `allhands reproduce`.

use std::path::Path;
use std::time::Duration;

use super::allhands;
use super::chromium::Chromium;
use crate::launch::launch;
use crate::{Result, libraries, mpi};

/// A job's report has its tables, and sorts them by a click.
pub(super) fn preload(chromium: &mut Chromium, exec: &Path, folder: &Path) -> Result<()> {
    mpi::install()?;
    let library = libraries::named("mpich")?;
    let program = library.compile("xtask/src/diagnostics/mistakes.c")?;
    let page = folder.join("report.html");
    let _ = std::fs::remove_file(&page);
    let mut command = library.command(3, exec);
    command.arg("exec").arg(program).arg("often");
    command.env("ALLHANDS_COMPARE", "1").env("ALLHANDS_REPORT", &page);
    let ended = launch(command, Duration::from_secs(60))?;
    if !ended.status.is_some_and(|status| status.success()) {
        return Err(ended.fault("a job with ALLHANDS_REPORT fails"));
    }
    chromium.open(&page)?;
    let rows = "document.querySelectorAll('table:last-of-type tbody tr').length";
    if chromium.value(rows)?.as_u64() < Some(3) {
        return Err("the preload's report has no table of calls".into());
    }
    chromium.click("table:last-of-type th:nth-child(2) button")?;
    chromium.until("document.querySelector('th[aria-sort=ascending]') !== null")?;
    chromium.clean("the preload's report")?;
    eprintln!("xtask: the preload's report opens and sorts");
    Ok(())
}

/// The figures and tables of the papers that the report must have.
const FIGURES: [&str; 5] = [
    "loc-bruck-1 loc-bruck-2 loc-bruck-4 loc-bruck-5 loc-bruck-6 loc-bruck-7 loc-bruck-8 loc-bruck-9 loc-bruck-10",
    "radix-1 radix-2a radix-2b radix-3a radix-3b radix-3c radix-3d radix-4a radix-4b",
    "sparbit-1 sparbit-3 sparbit-5a sparbit-5b sparbit-5c sparbit-5d sparbit-table-1 sparbit-table-2",
    "nap-3 nap-4 nap-6 nap-7 nap-8 nap-9 nap-10 nap-11 nap-12 nap-13 nap-14 nap-15",
    "jocksch-1 jocksch-2 jocksch-3 jocksch-4 jocksch-5 jocksch-6 jocksch-7 jocksch-8 jocksch-9 jocksch-10 jocksch-11 \
     jocksch-12 jocksch-13 jocksch-14 jocksch-table-1 jocksch-table-2",
];

/// Every figure of the papers is there, can be seen, and has a verdict; a schedule opens by a click.
pub(super) fn reproduce(chromium: &mut Chromium, exec: &Path, folder: &Path) -> Result<()> {
    let output = folder.join("reproduced");
    allhands(exec, &["reproduce", "--quick", "--output", &output.to_string_lossy()].map(String::from))?;
    chromium.open(&output.join("report.html"))?;
    for id in FIGURES.iter().flat_map(|ids| ids.split_whitespace()) {
        let shown = chromium.value(&format!("({SHOWN})(document.getElementById('{id}'))"))?;
        if shown != "" {
            return Err(format!("the report of the papers: {id} {}", shown.as_str().unwrap_or("cannot be judged")));
        }
    }
    let drawing =
        "document.querySelector('details.schedule .picture').shadowRoot.querySelector('svg').checkVisibility()";
    if chromium.value(drawing)? != false {
        return Err("the report of the papers shows a schedule before it is asked for".into());
    }
    chromium.click("details.schedule summary")?;
    chromium.until(drawing)?;
    chromium.clean("the report of the papers")?;
    chromium.size(390, 844)?;
    chromium.clean("the report of the papers on a phone")?;
    eprintln!("xtask: the report of the papers has every figure, with a verdict");
    Ok(())
}

/// What is wrong with a figure, if anything: every drawing that is not behind a click has a size, and so has the verdict.
const SHOWN: &str = "article => {
    if (!article) return 'is missing';
    const seen = one => { const { width, height } = one.getBoundingClientRect(); return width > 0 && height > 0; };
    const drawings = [...article.querySelectorAll('.picture')];
    const open = drawings.filter(one => !one.closest('details'));
    if (!open.every(one => one.shadowRoot && seen(one.shadowRoot.querySelector('svg')))) return 'has a drawing that cannot be seen';
    if (drawings.length + article.querySelectorAll('table').length === 0) return 'shows nothing';
    const verdict = article.querySelector('h3 .badge');
    return verdict && seen(verdict) && verdict.textContent.length > 0 ? '' : 'has no verdict';
}";
