//! What the environment asks for. The first rank's decides for all; what is not understood, on whatever rank, ends the job.

use std::sync::Arc;
use std::time::Duration;

use allhands::learn::Setting;
use allhands::raw::{know_everywhere, switched};
use allhands::{Error, Server};
use allhands_mpi::Mpi;
use allhands_schedule::{Collective, Knowledge, Problem, Topology, Written};

use super::variables::{
    ALGORITHM, CHECK, COMPARE, LEARN, MACHINE, PROGRESS, REPORT, REPRODUCIBLE, SINGLE_COPY, SWITCH, TIMEOUT, TOPOLOGY,
    TUNING, nearest, unknown, value,
};

/// After the name of an algorithm: where it cannot serve a call, one is chosen as if none were named. Without it, that is an error.
const IF_IT_CAN: char = '?';

/// The file that is none.
const STANDARD_INPUT: &str = "-";

/// Where a parameter is out of its range it is so for any number of ranks.
const LARGE: &str = "8x8x8";

/// Whether the user wants a thread that moves requests on.
pub(super) fn wants_thread() -> bool {
    value(PROGRESS).eq_ignore_ascii_case("thread")
}

/// What the user wants of this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Switch {
    Off,
    On,
    /// On, and all programs of the job are under us.
    Sure,
}

impl Switch {
    pub(super) fn of_this_process() -> Switch {
        match switched(&value(SWITCH)) {
            Some(false) => Switch::Off,
            Some(true) => Switch::Sure,
            None => Switch::On,
        }
    }
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
    /// The schedules of files that are among them.
    written: Vec<Arc<Written>>,
    /// Where the report goes: nothing for the standard error, else a file.
    pub(crate) report: Option<Option<String>>,
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
    /// Those of the world's first rank; or what is wrong with what some rank has set, which is the same on every rank.
    pub(crate) fn agreed(mpi: &Mpi) -> Result<Settings, String> {
        let names =
            [ALGORITHM, REPORT, CHECK, TIMEOUT, COMPARE, LEARN, TOPOLOGY, TUNING, MACHINE, SINGLE_COPY, REPRODUCIBLE];
        let mine = names.map(value);
        let (me, ranks) =
            mpi.comm_rank(mpi.world()).and_then(|me| Ok((me, mpi.comm_size(mpi.world())?))).map_err(words)?;
        sound(mpi, me, ranks).map_err(words)?.map_or(Ok(()), Err)?;
        let first = shared(mpi, mine.join("\0"), 0).map_err(words)?;
        let others = others(mpi, &mine, &first).map_err(words)?;
        for ((name, value), other) in names.iter().zip(&mine).zip(others) {
            if let Some(rank) = other.filter(|_| me == 0) {
                let value = if value.is_empty() { "not set".into() } else { format!("{value:?}") };
                allhands::raw::say(format_args!(
                    "{name} is {value} on rank 0 and something else on rank {rank}; rank 0's counts for all"
                ));
            }
        }
        let mut settings = Settings::read(&first, ranks)?;
        settings.read_schedules(mpi, me)?;
        Ok(Settings { log: allhands::raw::logs(), ..settings })
    }

    /// Reads the schedules in files that the user names, on the first rank for all. Collective.
    fn read_schedules(&mut self, mpi: &Mpi, me: usize) -> Result<(), String> {
        for file in self.forced.iter().filter_map(|(_, forced)| forced.server.file()) {
            // What cannot be read is told as well, after another letter: all refuse it alike.
            let read = (me == 0).then(|| allhands::read_schedule(file));
            let told = match read {
                Some(Ok(written)) => format!("+{}", written.text()),
                Some(Err(error)) => format!("-{error}"),
                None => String::new(),
            };
            let told = shared(mpi, told, 0).map_err(words)?;
            let refused = |fact: &str| format!("{ALGORITHM} names @{file}: {fact}");
            let text = told.strip_prefix('+').ok_or_else(|| refused(told.get(1..).unwrap_or_default()))?;
            let written = Written::parse(file, text).map_err(|error| refused(&error.to_string()))?;
            self.written.push(Arc::new(written));
        }
        self.written.iter().for_each(|written| know_everywhere(written.clone()));
        Ok(())
    }

    /// What would serve a collective cannot do so, on ranks that sit like this.
    fn refusal(
        &self,
        collective: Collective,
        server: &Server,
        topology: &Topology,
    ) -> Option<allhands_schedule::Error> {
        let problem = Problem::new(collective, topology.clone());
        match server {
            Server::Schedule(choice) => choice.prepare(&problem).err(),
            Server::Written(_) => {
                let named = self.written.iter().find(|written| written.to_string() == server.to_string())?;
                named.prepare(&problem).err()
            }
            Server::Library => None,
        }
    }

    /// The values of the variables, in their order, on so many ranks.
    fn read(text: &str, ranks: usize) -> Result<Settings, String> {
        let mut values = text.split('\0');
        let mut next = || values.next().unwrap_or_default();
        let mut settings = Settings::parse(next())?;
        let report = next();
        settings.report = match switched(report) {
            Some(false) => None,
            Some(true) => Some(None),
            None => (!report.is_empty()).then(|| Some(report.to_owned())),
        };
        settings.check = switch(CHECK, next())?;
        settings.timeout = seconds(next())?;
        settings.compare = switch(COMPARE, next())?;
        settings.learn = learning(next())?;
        fitting(next(), ranks)?;
        let (_tuning, _machine) = (next(), next());
        switch(SINGLE_COPY, next())?;
        if switch(REPRODUCIBLE, next())? {
            settings.keeps_to_ours()?;
        }
        // A comparison that nobody sees would be in vain.
        if settings.compare && settings.report.is_none() {
            settings.report = Some(None);
        }
        Ok(settings)
    }

    /// Refuses what would let the MPI's own serve sums whose bits are to depend on no order.
    fn keeps_to_ours(&self) -> Result<(), String> {
        let fact = "the MPI's own sums depend on the order of operands";
        if self.compare {
            return Err(format!("{REPRODUCIBLE} and {COMPARE} are both set, but {fact}; set one of them"));
        }
        match self.forced.iter().find(|(collective, forced)| collective.reduces() && forced.server == Server::Library) {
            Some((collective, _)) => Err(format!(
                "{REPRODUCIBLE} is set and {ALGORITHM} asks for {collective}=mpi, but {fact}; set one of them"
            )),
            None => Ok(()),
        }
    }

    /// Those of a job that the MPI serves alone: all that is left is to tell what it did.
    pub(crate) fn of_watching(self) -> Settings {
        Settings { report: self.report, log: self.log, learn: Setting::Off, ..Settings::default() }
    }

    /// Whether algorithms that the user names can serve ranks that sit like the job's: known before anything is called. What depends on a
    /// call besides (an operation, a datatype) is said at that call.
    pub(crate) fn serve(&self, topology: &Topology) -> Result<(), String> {
        use allhands_schedule::Error;
        let large: Topology = LARGE.parse().map_err(|error| format!("{error}"))?;
        for (collective, Forced { server, if_it_can }) in &self.forced {
            let on = |topology: &Topology| self.refusal(*collective, server, topology);
            let named = format!("{collective}={server}");
            if let Some(error @ Error::Parameter { .. }) = on(&large) {
                return Err(misnamed(&named, &error));
            }
            // Of a graph nothing is known yet, nor of the root of a schedule in a file; on one rank there is nothing to serve.
            let unknown = collective.has_graph() || (collective.rooted() && server.file().is_some());
            let tried = topology.ranks() > 1 && !unknown && !if_it_can;
            let depends_on_call = |error: &Error| matches!(error, Error::NotGuaranteed { .. });
            if let Some(error) = on(topology).filter(|error| tried && !depends_on_call(error)) {
                let remedy = format!("or write {named}? to use it where it can serve");
                return Err(format!("{ALGORITHM}={named}: {error}; {remedy}"));
            }
        }
        Ok(())
    }

    /// `allreduce=nap;allgather=loc-bruck:fan=full;bcast=binomial?`
    fn parse(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for preference in text.split(';').map(str::trim).filter(|preference| !preference.is_empty()) {
            let wrong = |fact: &str| {
                format!("{ALGORITHM}={text}: {fact}; write collective=algorithm, with semicolons between several")
            };
            let (collective, algorithm) =
                preference.split_once('=').ok_or_else(|| wrong(&format!("{preference:?} names no algorithm")))?;
            let collective: Collective = collective.trim().parse().map_err(|error| misnamed(text, &error))?;
            let algorithm = algorithm.trim();
            let name = algorithm.strip_suffix(IF_IT_CAN);
            let server = Server::parse(collective, name.unwrap_or(algorithm));
            let server = server.map_err(|error| misnamed(text, &error))?;
            if server.file() == Some(STANDARD_INPUT) {
                return Err(format!(
                    "{ALGORITHM}={text}: the standard input is the program's; write the schedule to a file"
                ));
            }
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

fn words(error: allhands_mpi::Error) -> String {
    error.to_string()
}

/// What a variable can be set to, where it is set to something else: with the nearest, if one is near.
fn not_understood(name: &str, value: &str, legal: &[&str]) -> String {
    let near = nearest(value, legal).map(|near| format!("; the nearest is {near}")).unwrap_or_default();
    format!("{name}={value} is not understood: set it to {}, or not at all{near}", legal.join(" or "))
}

/// An algorithm or one of its parameters that does not exist, with the nearest that does.
fn misnamed(text: &str, error: &allhands_schedule::Error) -> String {
    use allhands_schedule::Error;
    let (word, known) = match error {
        Error::UnknownAlgorithm { name, known, .. } => (name, known.split(", ").collect()),
        Error::Parameter { value, legal, .. } => (value, legal.split(" or ").collect()),
        _ => (&String::new(), Vec::new()),
    };
    let near = nearest(word, &known).map(|near| format!("; the nearest is {near}")).unwrap_or_default();
    format!("{ALGORITHM}={text}: {error}{near}")
}

fn switch(name: &str, value: &str) -> Result<bool, String> {
    match switched(value) {
        None if value.is_empty() => Ok(false),
        None => Err(not_understood(name, value, &["off", "on"])),
        Some(on) => Ok(on),
    }
}

fn learning(value: &str) -> Result<Setting, String> {
    Setting::parse(value).map_err(|error| {
        let near = nearest(value, &["off", "on", "frozen"]);
        format!("{error}{}", near.map(|near| format!("; the nearest is {near}")).unwrap_or_default())
    })
}

/// Whether a topology is one, of as many ranks as there are.
fn fitting(text: &str, ranks: usize) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let topology: Topology = text.parse().map_err(|error| format!("{TOPOLOGY}={text}: {error}"))?;
    match topology.ranks() {
        seats if seats == ranks => Ok(()),
        seats => Err(Error::Seats { topology: text.into(), seats, ranks }.to_string()),
    }
}

/// What is wrong with what this process alone can look at.
fn fault(first: bool) -> Option<String> {
    let (on, progress) = (value(SWITCH), value(PROGRESS));
    let of_progress = switched(&progress) == Some(false) || progress.is_empty() || wants_thread();
    match () {
        () if switched(&on).is_none() && !on.is_empty() => Some(not_understood(SWITCH, &on, &["off", "on"])),
        () if !of_progress => Some(not_understood(PROGRESS, &progress, &["thread", "off"])),
        () => unknown().or_else(|| {
            let named = first.then(allhands::raw::check_named)?;
            named.err().map(|(variable, fact)| format!("what {variable} names cannot be used: {fact}"))
        }),
    }
}

/// What is wrong on the first rank on which something is, for all of them. Collective.
fn sound(mpi: &Mpi, me: usize, ranks: usize) -> allhands_mpi::Result<Option<String>> {
    let mine = fault(me == 0);
    let mut word = if mine.is_some() { (ranks - me) as u64 } else { 0 };
    let constants = mpi.constants();
    // SAFETY: one word in place on every rank.
    unsafe {
        let (own, max) = (mpi.in_place().cast_const(), constants.ops.max);
        mpi.allreduce(own, (&raw mut word).cast(), 1, constants.types.uint64_t, max, mpi.world())?;
    }
    let Some(speaker) = (word > 0).then(|| ranks - word as usize) else { return Ok(None) };
    let fact = shared(mpi, mine.unwrap_or_default(), speaker)?;
    Ok(Some(if speaker == 0 { fact } else { format!("rank {speaker}: {fact}") }))
}

fn seconds(value: &str) -> Result<Option<Duration>, String> {
    if value.is_empty() || switched(value) == Some(false) {
        return Ok(None);
    }
    let time = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || format!("{TIMEOUT}={value} is no time; give it in seconds, such as 30 or 0.5");
    time.filter(|time| !time.is_zero()).map(Some).ok_or_else(wrong)
}

/// A rank's text.
fn shared(mpi: &Mpi, text: String, rank: usize) -> allhands_mpi::Result<String> {
    let (types, world) = (&mpi.constants().types, mpi.world());
    let mut length = text.len() as u64;
    // SAFETY: one word on every rank.
    unsafe { mpi.bcast((&raw mut length).cast(), 1, types.uint64_t, rank as i32, world)? };
    let mut bytes = text.into_bytes();
    bytes.resize(length as usize, 0);
    // The address of no bytes might be one that means something.
    if length > 0 {
        // SAFETY: as many bytes on every rank.
        unsafe { mpi.bcast(bytes.as_mut_ptr().cast(), bytes.len(), types.byte, rank as i32, world)? };
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
        for (text, tells) in [
            ("", false),
            ("alltoallv=mpi?", false),
            ("alltoallv=pairwise", false),
            ("alltoallv=bruck", false),
            ("alltoallv=node-aware:local=shared", true),
        ] {
            assert_eq!(Settings::parse(text).unwrap().tells_counts(Collective::Alltoallv), tells, "{text}");
        }
    }

    #[test]
    fn variables_come_in_their_order() {
        let read = |values: &[&str]| Settings::read(&values.join("\0"), 4);
        let settings = read(&["bcast=mpi", "report.html", "1", "0.5", "1", "off", "2x2", "", "", "off"]).unwrap();
        assert!(settings.leaves(Collective::Bcast));
        assert_eq!(settings.report, Some(Some("report.html".into())));
        assert_eq!((settings.check, settings.compare), (true, true));
        assert_eq!(settings.timeout, Some(Duration::from_millis(500)));
        for off in ["", "0", "off", "OFF", "No", "false"] {
            assert_eq!(read(&["", off, off, off, off, "", "", "", "", off]).unwrap(), Settings::default(), "{off}");
        }
        for on in ["1", "on", "Yes", "TRUE"] {
            assert_eq!(read(&["", on]).unwrap().report, Some(None), "{on}");
        }
        assert_eq!(read(&["", "", "", "", "1"]).unwrap().report, Some(None), "a comparison is seen");
        for (values, fact) in [
            (vec!["", "", "y"], "ALLHANDS_CHECK=y is not understood: set it to off or on, or not at all"),
            (vec!["", "", "", "soon"], "ALLHANDS_TIMEOUT=soon is no time; give it in seconds, such as 30 or 0.5"),
            (vec!["", "", "", "-1"], "ALLHANDS_TIMEOUT=-1 is no time; give it in seconds, such as 30 or 0.5"),
            (
                vec!["", "", "", "", "onn"],
                "ALLHANDS_COMPARE=onn is not understood: set it to off or on, or not at all; the nearest is on",
            ),
            (
                vec!["", "", "", "", "", "frosen"],
                "ALLHANDS_LEARN=frosen is not understood; set it to off, frozen, or a file whose name ends in .toml, or not at all; the nearest is frozen",
            ),
            (
                vec!["", "", "", "", "", "", "3x2"],
                "the topology 3x2 has 6 seats, but there are 4 ranks; give every rank one",
            ),
        ] {
            assert_eq!(read(&values).unwrap_err(), fact);
        }
    }

    #[test]
    fn algorithms_are_checked_before_they_are_called() {
        let serve = |text: &str, topology: &str| {
            let settings = Settings::parse(text).unwrap();
            settings.serve(&topology.parse().unwrap()).err()
        };
        assert_eq!(
            serve("allreduce=nap:fan=ful", "2x2").unwrap(),
            "ALLHANDS_ALGORITHM=allreduce=nap:fan=ful: nap: fan=ful is not known; legal is paper or full; the nearest is full"
        );
        let unservable = serve("allgather=neighbor-exchange", "3").unwrap();
        assert!(
            unservable.starts_with("ALLHANDS_ALGORITHM=allgather=neighbor-exchange: neighbor-exchange needs ")
                && unservable.ends_with("; or write allgather=neighbor-exchange? to use it where it can serve"),
            "{unservable}"
        );
        for (fine, topology) in [
            ("allgather=neighbor-exchange?", "3"),
            ("allgather=neighbor-exchange", "4"),
            ("allgather=neighbor-exchange", "1"),
            ("allgather=bruck:radix=8?", "4"),
            ("allreduce=cyclic-shift", "4"),
            ("allreduce=nap:fan=full;bcast=mpi;neighbor_alltoall=direct", "2x2"),
        ] {
            assert_eq!(serve(fine, topology), None, "{fine}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, fact, remedy) in [
            (
                "allreduce",
                "\"allreduce\" names no algorithm",
                "; write collective=algorithm, with semicolons between several",
            ),
            ("reduceall=nap", "reduceall", ""),
            ("allreduce=napp", "allreduce has no algorithm \"napp\"", "; the nearest is nap"),
            ("allreduce=@-", "the standard input is the program's", "; write the schedule to a file"),
        ] {
            let message = Settings::parse(text).unwrap_err();
            assert!(message.starts_with("ALLHANDS_ALGORITHM=") && message.contains(fact), "{message}");
            assert!(message.ends_with(remedy), "{message}");
        }
    }
}
