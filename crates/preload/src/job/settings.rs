//! What the environment asks for. The first rank's decides for all.

use std::time::Duration;

use allhands::Server;
use allhands::learn::Setting;
use allhands_mpi::Mpi;
use allhands_schedule::{Collective, Knowledge};

/// Of each process: these are agreed on before anything else.
pub(super) const SWITCH: &str = "ALLHANDS";
const PROGRESS: &str = "ALLHANDS_PROGRESS";

const ALGORITHM: &str = "ALLHANDS_ALGORITHM";
const REPORT: &str = "ALLHANDS_REPORT";
const CHECK: &str = "ALLHANDS_CHECK";
const TIMEOUT: &str = "ALLHANDS_TIMEOUT";
const COMPARE: &str = "ALLHANDS_COMPARE";
/// What these say is read where a job is joined, from the first rank, too.
const TOPOLOGY: &str = "ALLHANDS_TOPOLOGY";
const TUNING: &str = "ALLHANDS_TUNING";
const MACHINE: &str = "ALLHANDS_MACHINE";
const LEARN: &str = "ALLHANDS_LEARN";
const SINGLE_COPY: &str = "ALLHANDS_SINGLE_COPY";

/// After the name of an algorithm: where it cannot serve a call, one is chosen as if none were named. Without it, that is an error.
const IF_IT_CAN: char = '?';

/// Whether the user wants a thread that moves requests on.
pub(super) fn wants_thread() -> bool {
    std::env::var(PROGRESS).as_deref() == Ok("thread")
}

/// Who is to serve a collective, as the user wants it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forced {
    pub(crate) server: Server,
    /// Whether another may stand in where it cannot serve.
    pub(crate) if_it_can: bool,
}

/// Settings; the same on every rank.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Few, and asked in every call.
    forced: Vec<(Collective, Forced)>,
    /// Where the report goes: `1` for the standard error, else a file.
    pub(crate) report: Option<String>,
    /// Whether ranks compare their calls.
    pub(crate) check: bool,
    /// After how long a collective is late.
    pub(crate) timeout: Option<Duration>,
    /// Whether ours and the MPI's own take turns.
    pub(crate) compare: bool,
    /// Whether it is learned who serves, and where that is kept.
    pub(crate) learn: Setting,
    /// Whether decisions are logged; this process' own wish.
    pub(crate) log: bool,
}

impl Settings {
    /// Those of the world's first rank.
    pub(crate) fn agreed(mpi: &Mpi) -> Result<Settings, String> {
        let names = [ALGORITHM, REPORT, CHECK, TIMEOUT, COMPARE, LEARN, TOPOLOGY, TUNING, MACHINE, SINGLE_COPY];
        let mine = names.map(|name| std::env::var(name).unwrap_or_default());
        let first = shared(mpi, mine.join("\0")).map_err(|error| error.to_string())?;
        let others = others(mpi, &mine, &first).map_err(|error| error.to_string())?;
        for ((name, value), other) in names.iter().zip(&mine).zip(others) {
            if let Some(rank) = other.filter(|_| mpi.comm_rank(mpi.world()) == Ok(0)) {
                let value = if value.is_empty() { "not set".into() } else { format!("{value:?}") };
                eprintln!(
                    "allhands: {name} is {value} on rank 0 and something else on rank {rank}; rank 0's counts for all"
                );
            }
        }
        let settings = Settings::read(&first)?;
        Ok(Settings { log: allhands::raw::logs(), ..settings })
    }

    /// The values of the variables, in their order.
    fn read(text: &str) -> Result<Settings, String> {
        let mut values = text.split('\0');
        let mut next = || values.next().unwrap_or_default();
        let mut settings = Settings::parse(next())?;
        settings.report = Some(next().to_owned()).filter(|report| !matches!(report.as_str(), "" | "0"));
        settings.check = switch(CHECK, next())?;
        settings.timeout = seconds(next())?;
        settings.compare = switch(COMPARE, next())?;
        settings.learn = Setting::parse(next()).map_err(|error| error.to_string())?;
        // A comparison that nobody sees would be in vain.
        if settings.compare && settings.report.is_none() {
            settings.report = Some("1".into());
        }
        Ok(settings)
    }

    /// `allreduce=nap;allgather=loc-bruck:fan=full;bcast=binomial?`
    fn parse(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for wish in text.split(';').map(str::trim).filter(|wish| !wish.is_empty()) {
            let wrong = |fact: &str| {
                format!("{ALGORITHM}={text}: {fact}; write collective=algorithm, with semicolons between several")
            };
            let (collective, algorithm) =
                wish.split_once('=').ok_or_else(|| wrong(&format!("{wish:?} names no algorithm")))?;
            let collective: Collective = collective.trim().parse().map_err(|error| wrong(&format!("{error}")))?;
            let algorithm = algorithm.trim();
            let name = algorithm.strip_suffix(IF_IT_CAN);
            let server = Server::parse(collective, name.unwrap_or(algorithm));
            let server = server.map_err(|error| wrong(&format!("{error}")))?;
            settings.forced.retain(|(known, _)| *known != collective);
            settings.forced.push((collective, Forced { server, if_it_can: name.is_some() }));
        }
        Ok(settings)
    }

    /// Who is to serve a collective, if the user says so.
    pub(crate) fn forced(&self, collective: Collective) -> Option<&Forced> {
        self.forced.iter().find(|(known, _)| *known == collective).map(|(_, forced)| forced)
    }

    /// Whether the MPI serves a collective, because the user says so.
    pub(crate) fn leaves(&self, collective: Collective) -> bool {
        self.forced(collective).is_some_and(|forced| forced.server == Server::Library)
    }

    /// Whether ranks tell each other the counts of a call of which each knows its own: where the user wants an algorithm that cannot do
    /// without.
    pub(crate) fn tells_counts(&self, collective: Collective) -> bool {
        let choice = self.forced(collective).and_then(|forced| forced.server.choice());
        choice.is_some_and(|choice| choice.knowledge() == Knowledge::All)
    }
}

fn switch(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("{name}={value} is not understood; set it to 1, or not at all")),
    }
}

fn seconds(value: &str) -> Result<Option<Duration>, String> {
    if matches!(value, "" | "0") {
        return Ok(None);
    }
    let time = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || format!("{TIMEOUT}={value} is no time; give it in seconds, such as 30 or 0.5");
    time.filter(|time| !time.is_zero()).map(Some).ok_or_else(wrong)
}

/// The first rank's text.
fn shared(mpi: &Mpi, text: String) -> allhands_mpi::Result<String> {
    let (types, world) = (&mpi.constants().types, mpi.world());
    let mut length = text.len() as u64;
    // SAFETY: one word on every rank.
    unsafe { mpi.bcast((&raw mut length).cast(), 1, types.uint64_t, 0, world)? };
    let mut bytes = text.into_bytes();
    bytes.resize(length as usize, 0);
    // The address of no bytes might be one that means something.
    if length > 0 {
        // SAFETY: as many bytes on every rank.
        unsafe { mpi.bcast(bytes.as_mut_ptr().cast(), bytes.len(), types.byte, 0, world)? };
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// For each variable, a rank that has set it to something else than the first one. (Launchers may hand a variable to the first machine
/// only, so a rank on which it is not set has no other wish.)
fn others(mpi: &Mpi, mine: &[String], first: &str) -> allhands_mpi::Result<Vec<Option<u64>>> {
    let me = mpi.comm_rank(mpi.world())? as u64;
    let unlike = |(mine, first): (&String, &str)| if mine.is_empty() || mine == first { 0 } else { me + 1 };
    let mut words: Vec<u64> = mine.iter().zip(first.split('\0')).map(unlike).collect();
    let constants = mpi.constants();
    // SAFETY: as many words in place on every rank.
    unsafe {
        let (own, word) = (mpi.in_place().cast_const(), constants.types.uint64_t);
        mpi.allreduce(own, words.as_mut_ptr().cast(), words.len(), word, constants.ops.max, mpi.world())?;
    }
    Ok(words.into_iter().map(|word| word.checked_sub(1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forced(settings: &Settings, collective: Collective) -> Option<(String, bool)> {
        settings.forced(collective).map(|forced| (forced.server.to_string(), forced.if_it_can))
    }

    #[test]
    fn algorithms_are_forced_by_collective() {
        let settings = Settings::parse(" allreduce=nap ; allgather=loc-bruck:fan=full;bcast=mpi;").unwrap();
        assert_eq!(forced(&settings, Collective::Allreduce), Some(("nap".into(), false)));
        assert_eq!(forced(&settings, Collective::Allgather), Some(("loc-bruck:fan=full".into(), false)));
        assert_eq!(forced(&settings, Collective::Allgatherv), None);
        let leaves = [Collective::Bcast, Collective::Allreduce, Collective::Allgatherv].map(|one| settings.leaves(one));
        assert_eq!(leaves, [true, false, false]);
        let lenient = Settings::parse("allgather=neighbor-exchange?").unwrap();
        assert_eq!(forced(&lenient, Collective::Allgather), Some(("neighbor-exchange".into(), true)));
        assert!(Settings::parse("allgather=neighbour?").is_err());
        assert_eq!(Settings::parse("").unwrap(), Settings::default());
    }

    #[test]
    fn counts_are_told_where_the_user_wants_an_algorithm_that_needs_all() {
        for (text, tells) in
            [("", false), ("alltoallv=mpi?", false), ("alltoallv=pairwise", false), ("alltoallv=bruck", true)]
        {
            assert_eq!(Settings::parse(text).unwrap().tells_counts(Collective::Alltoallv), tells, "{text}");
        }
    }

    #[test]
    fn variables_come_in_their_order() {
        let settings = Settings::read(&["bcast=mpi", "report.html", "1", "0.5", "1", "off"].join("\0")).unwrap();
        assert!(settings.leaves(Collective::Bcast));
        assert_eq!(settings.report.as_deref(), Some("report.html"));
        assert_eq!((settings.check, settings.compare), (true, true));
        assert_eq!(settings.timeout, Some(Duration::from_millis(500)));
        assert_eq!(Settings::read(&["", "0", "0", "0", "0"].join("\0")).unwrap(), Settings::default());
        assert_eq!(
            Settings::read(&["", "", "", "", "1"].join("\0")).unwrap().report.as_deref(),
            Some("1"),
            "a comparison is seen"
        );
        for (values, fact) in [
            (["", "", "yes", "", ""], "ALLHANDS_CHECK=yes is not understood; set it to 1, or not at all"),
            (["", "", "", "soon", ""], "ALLHANDS_TIMEOUT=soon is no time; give it in seconds, such as 30 or 0.5"),
            (["", "", "", "-1", ""], "ALLHANDS_TIMEOUT=-1 is no time; give it in seconds, such as 30 or 0.5"),
            (["", "", "", "", "2"], "ALLHANDS_COMPARE=2 is not understood; set it to 1, or not at all"),
        ] {
            assert_eq!(Settings::read(&values.join("\0")).unwrap_err(), fact);
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, fact) in [
            ("allreduce", "\"allreduce\" names no algorithm"),
            ("reduceall=nap", "reduceall"),
            ("allreduce=bruck", "allreduce has no algorithm \"bruck\""),
        ] {
            let message = Settings::parse(text).unwrap_err();
            assert!(message.starts_with("ALLHANDS_ALGORITHM=") && message.contains(fact), "{message}");
            assert!(message.ends_with("write collective=algorithm, with semicolons between several"), "{message}");
        }
    }
}
