//! What follows from the facts: a line each, what to do, and whether a job would be served.

use std::fmt;

use allhands::raw::Obstacle;
use allhands_report::{Host, size};

use super::facts::{Facts, Job, Launch, Learned, Outcome, Report};
use crate::screen::counted;

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    Ok,
    Slower,
    Fails,
}

impl fmt::Display for Grade {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Grade::Ok => "ok",
            Grade::Slower => "slower",
            Grade::Fails => "fails",
        })
    }
}

/// One thing that was found, and what to do unless it is well.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) grade: Grade,
    fact: String,
    remedy: String,
}

fn ok(fact: impl Into<String>) -> Finding {
    Finding { grade: Grade::Ok, fact: fact.into(), remedy: String::new() }
}

fn slower(fact: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { grade: Grade::Slower, fact: fact.into(), remedy: remedy.into() }
}

fn fails(fact: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { grade: Grade::Fails, fact: fact.into(), remedy: remedy.into() }
}

/// All findings.
#[derive(Debug)]
pub(super) struct Page {
    title: String,
    findings: Vec<Finding>,
}

/// Of text.
const WIDTH: usize = 80;
/// Before every fact; grades stand there.
const INDENT: usize = 8;

/// Less of `/dev/shm` is too little for many an MPI with some ranks: containers have 64 MiB.
const LITTLE: u64 = 256 << 20;

impl Page {
    pub(super) fn of(facts: &Facts) -> Page {
        let container = facts.container.map_or(String::new(), |kind| format!(", in a container of {kind}"));
        let one = [library(facts), mpi(facts), launcher(facts)];
        let findings = one.into_iter().chain(settings(facts)).chain(job(facts)).chain(memory(facts));
        let findings = findings.chain([shm(facts), cores(facts), pages(facts), gpu(facts)]).chain(files(facts));
        Page { title: format!("allhands doctor on {}{container}", facts.host), findings: findings.collect() }
    }

    /// Whether a job would be served.
    pub(super) fn served(&self) -> bool {
        self.findings.iter().all(|finding| finding.grade != Grade::Fails)
    }

    /// At most 80 columns wide, but for words that are longer.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for Finding { grade, fact, remedy } in &self.findings {
            text += &lines(&format!("{grade:INDENT$}"), fact);
            if *grade != Grade::Ok {
                text += &lines(&format!("{:INDENT$}remedy: ", ""), remedy);
            }
        }
        text + &lines("", &self.verdict())
    }

    fn verdict(&self) -> String {
        let first = self.findings.iter().find(|finding| finding.grade == Grade::Fails);
        match first {
            Some(Finding { remedy, .. }) => format!("a job would not be served, or fail; to begin with, {remedy}"),
            None if self.findings.iter().any(|finding| finding.grade == Grade::Slower) => {
                "a job of this MPI would be served, slower than it could be".into()
            }
            None => "a job of this MPI would be served".into(),
        }
    }
}

/// A text after a word, with what does not fit below it.
fn lines(word: &str, text: &str) -> String {
    let (mut lines, mut line) = (String::new(), word.to_owned());
    let mut empty = true;
    for part in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + part.chars().count() > WIDTH {
            lines += &line;
            lines.push('\n');
            line = " ".repeat(word.chars().count());
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += part;
        empty = false;
    }
    lines + &line + "\n"
}

fn library(facts: &Facts) -> Finding {
    match &facts.library {
        Ok(path) => ok(format!("allhands {} with {}", facts.version, path.display())),
        Err(fact) => {
            let (fact, remedy) = fact.split_once("; ").unwrap_or((fact, "install allhands again"));
            fails(format!("allhands {}: {fact}", facts.version), remedy)
        }
    }
}

fn mpi(facts: &Facts) -> Finding {
    match &facts.mpi {
        Ok(mpi) => ok(format!("{} (MPI {}, {}): {}, {}", mpi.name, mpi.standard, mpi.abi, mpi.path.display(), mpi.how)),
        Err(fact) => {
            let remedy = "load the module of your MPI, put its mpirun in PATH, or name its library in ALLHANDS_MPI";
            fails(fact.rsplit_once("; ").map_or(fact.as_str(), |(fact, _)| fact), remedy)
        }
    }
}

fn launcher(facts: &Facts) -> Finding {
    match &facts.launch {
        Launch::Found(path) => ok(format!("launcher: {}, the first in PATH", path.display())),
        Launch::By { name, ranks } => {
            let ranks = ranks.map_or(String::new(), |ranks| format!(" of {}", counted(ranks, "rank")));
            ok(format!("launcher: {name} has started this job{ranks}"))
        }
        Launch::None => fails(
            "there is neither mpirun nor mpiexec in PATH, so no job was tried",
            "put your MPI's mpirun in PATH, or start the doctor with your launcher, such as `srun -n 2 allhands doctor`",
        ),
    }
}

/// Nothing where nothing is set.
fn settings(facts: &Facts) -> Option<Finding> {
    if let Some(fact) = &facts.misnamed {
        return Some(fails(fact, "name a file that `allhands tune` has written, or unset the variable"));
    }
    let set: Vec<String> = facts.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!set.is_empty()).then(|| ok(format!("set: {}", set.join(" "))))
}

/// Nothing where there is nobody to start one, or no MPI, which is said already.
fn job(facts: &Facts) -> Option<Finding> {
    let alone = "see whether `mpirun -n 2 hostname` works: if not, it is the launcher or the machine";
    Some(match &facts.job {
        Job::NotTried if facts.launch == Launch::None => return None,
        Job::Ended { .. } if facts.mpi.is_err() => return None,
        Job::NotTried => fails("no job was tried", "see to what fails above first"),
        Job::Hung { seconds } => fails(
            format!("a job has not come to its end within {seconds} s"),
            "try `ALLHANDS=off mpirun -n 2 allhands doctor`: if that hangs, too, it is the MPI; else tell us",
        ),
        Job::Ended { code, said } => {
            let code = code.map_or(String::new(), |code| format!(" (exit code {code})"));
            let said_so = said.as_deref().map_or(String::new(), |said| format!(": {said}"));
            let limited = facts.longest_file.map(|_| "start jobs with `ulimit -f unlimited`: longer files end MPIs");
            let remedy = remedy(said.as_deref().unwrap_or_default()).or(limited).unwrap_or(alone);
            fails(format!("a job has failed{code}{said_so}"), remedy)
        }
        Job::Ran(outcome) => ran(outcome),
    })
}

/// What helps where launchers are known to say something.
fn remedy(said: &str) -> Option<&'static str> {
    let known = [
        (
            "as root",
            "run it as another user, or set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, as in a container",
        ),
        ("not enough slots", "ask for more cores, or start jobs with `mpirun --oversubscribe`"),
        ("ALLHANDS", "correct the variable, or unset it"),
    ];
    known.into_iter().find(|(words, _)| said.contains(words)).map(|(_, remedy)| remedy)
}

fn ran(outcome: &Outcome) -> Finding {
    let Outcome { launched, ranks, right, report } = outcome;
    if *ranks == 1 && launched.is_some_and(|launched| launched > 1) {
        return fails(
            format!("of {} processes that were started each is alone", launched.unwrap_or_default()),
            "start jobs with the launcher of the MPI above, or name the launcher's own MPI in ALLHANDS_MPI",
        );
    }
    if !right {
        return fails("a job of sums has got wrong results", "set ALLHANDS=off, and tell us");
    }
    let Some(Report { ours, calls, reasons, off, .. }) = report else {
        let fact = "a job was right, but the library has told nothing of it";
        return fails(fact, "look at what it says: `ALLHANDS_REPORT=1 mpirun -n 2 allhands exec ./program`");
    };
    let forced = "unset the variables that force the MPI's own (ALLHANDS_ALGORITHM, ALLHANDS_TUNING), or tell us";
    let reason = reasons.first().map_or("nobody says why", String::as_str);
    let (because, remedy) = reason.split_once("; ").unwrap_or((reason, forced));
    match ours {
        0 if *off => fails("a job was right, but ALLHANDS=off leaves it to the MPI", "unset ALLHANDS"),
        0 if *ranks == 1 => {
            fails("a job of one rank has nothing to do", "start it with more, such as `mpirun -n 2 allhands doctor`")
        }
        0 => fails(format!("a job was right, but the MPI has served all of it: {because}"), remedy),
        _ => ok(format!(
            "a job of {} on {}: the ranks agree, the sums are right, {ours} of {calls} calls were ours",
            counted(*ranks, "rank"),
            counted(hosts(outcome).len().max(1), "machine"),
        )),
    }
}

fn hosts(outcome: &Outcome) -> &[Host] {
    outcome.report.as_ref().map_or(&[], |report| &report.hosts)
}

/// Whether ranks share memory, and read each other's, which their MPI may depend on.
fn memory(facts: &Facts) -> Vec<Finding> {
    let mut findings = near(facts);
    let unread = |finding: &Finding| finding.fact.contains("may not read");
    if facts.needs_reading && findings.iter().any(unread) {
        findings.push(fails(
            "long messages of MPICH itself fail where ranks may not read each other's memory, with allhands and without it",
            "set MPIR_CVAR_CH4_CMA_ENABLE=0",
        ));
    }
    findings
}

fn near(facts: &Facts) -> Vec<Finding> {
    let report = match &facts.job {
        Job::Ran(Outcome { report: Some(report), ranks: 2.., .. }) if report.ours > 0 => report,
        // What does not even let a process read itself is known without a job.
        _ if facts.around.not_even_itself => {
            let error = std::io::Error::from_raw_os_error(NOT_PERMITTED);
            let Obstacle { fact, remedy } = Obstacle::reading(&error, &facts.around);
            return vec![slower(fact, remedy)];
        }
        _ => return Vec::new(),
    };
    let mut findings: Vec<Finding> =
        report.obstacles.iter().map(|obstacle| slower(&obstacle.fact, &obstacle.remedy)).collect();
    let unshared = |obstacle: &allhands_report::Obstacle| obstacle.fact.contains("share no memory");
    if !report.obstacles.iter().any(unshared) {
        let limit = facts.longest_file.map_or("without a limit".into(), |most| format!("up to {}", size(most)));
        findings.insert(0, ok(format!("ranks of a machine share memory (memfd, {limit})")));
    }
    if facts.setting("ALLHANDS_SINGLE_COPY").is_some() {
        findings.push(ok("whether ranks read each other's memory is as ALLHANDS_SINGLE_COPY says"));
    } else if report.obstacles.is_empty() {
        findings.push(ok("ranks read each other's memory (process_vm_readv), so long messages are copied once"));
    }
    findings
}

/// `EPERM`
const NOT_PERMITTED: i32 = 1;

fn shm(facts: &Facts) -> Finding {
    let use_of_it = "allhands does not use it, but the MPI may";
    match facts.shm {
        None => slower(format!("there is no /dev/shm; {use_of_it}"), "mount a tmpfs there"),
        Some(bytes) if bytes < LITTLE => slower(
            format!("/dev/shm has {} only; {use_of_it}, and then goes slower ways or fails", size(bytes)),
            "start the container with --shm-size=1g or --ipc=host, or let the administrator enlarge the tmpfs",
        ),
        Some(bytes) => ok(format!("/dev/shm has {}; {use_of_it}", size(bytes))),
    }
}

fn cores(facts: &Facts) -> Finding {
    let known = match &facts.job {
        Job::Ran(outcome) => hosts(outcome),
        _ => &[],
    };
    let crowding = |host: &&Host| host.cores.filter(|cores| host.ranks > *cores).map(|cores| host.ranks - cores);
    if let Some(Host { name, ranks, cores: Some(cores) }) =
        known.iter().filter(|host| crowding(host).is_some()).max_by_key(crowding)
    {
        let place = if known.len() > 1 { format!(" on {name}") } else { String::new() };
        return slower(
            format!("{} share {}{place} and take turns", counted(*ranks, "rank"), counted(*cores, "core")),
            format!("start at most {} on a machine, or give the job or container more cores", counted(*cores, "rank")),
        );
    }
    match known {
        [Host { ranks, cores: Some(cores), .. }] if facts.launch_is_ours() => {
            ok(format!("{}: one for each of {}", counted(*cores, "core"), counted(*ranks, "rank")))
        }
        _ => ok(format!("{}: jobs of more ranks than that on this machine take turns", counted(facts.cores, "core"))),
    }
}

impl Facts {
    /// Whether the job that was looked at is the user's own.
    fn launch_is_ours(&self) -> bool {
        matches!(self.launch, Launch::By { .. })
    }
}

fn pages(facts: &Facts) -> Finding {
    ok(match facts.huge_pages.as_deref() {
        Some("never" | "deny") => "shared memory has pages of the usual size (no huge pages for it)".into(),
        Some("advise") => "shared memory has pages of the usual size (huge ones for who asks only)".into(),
        Some(other) => format!("shared memory may have huge pages (transparent, {other})"),
        None => "this kernel does not say whether shared memory has huge pages".into(),
    })
}

fn gpu(facts: &Facts) -> Finding {
    ok(match facts.drivers.join(" and ") {
        drivers if drivers.is_empty() => "there is no driver of a GPU".into(),
        drivers => format!("drivers of GPUs: {drivers}; what lies on one is copied through the host's memory"),
    })
}

/// What algorithms are chosen by.
fn files(facts: &Facts) -> Option<Finding> {
    if let Some(tuning) = facts.setting("ALLHANDS_TUNING").filter(|_| facts.misnamed.is_none()) {
        return Some(ok(format!("algorithms are chosen by what was measured: {tuning}")));
    }
    let Learned { path, shapes } = facts.learned.as_ref()?;
    let path = path.display();
    Some(match shapes {
        Ok(Some(shapes)) => ok(format!("jobs have learned who is fastest for {}: {path}", counted(*shapes, "shape"))),
        Ok(None) => ok(format!("jobs have learned nothing yet; they will keep it in {path}")),
        Err(fact) => slower(
            format!("what jobs have learned is not used: {path}: {fact}"),
            "remove the file, or name another in ALLHANDS_LEARN",
        ),
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
