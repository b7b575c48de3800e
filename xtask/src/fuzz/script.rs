//! Scripts that are drawn from a seed, and the jobs that run them.
//!
//! Any script is a legal program, and stays one whichever lines are taken out of it: `crates/preload/tests/fuzz/fuzz.h` says why.

use std::fmt::Write;

/// So many seeds share a job, whose start takes longer than they do, and with it ranks and settings.
pub(super) const TOGETHER: u64 = 32;

/// Random numbers: splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A seed for a line.
    fn seed(&mut self) -> u64 {
        self.below(1 << 31)
    }
}

/// A script with the job that it runs in.
#[derive(Clone)]
pub(super) struct Script {
    pub(super) name: String,
    pub(super) lines: Vec<String>,
}

/// What the scripts of a job share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) ranks: usize,
    pub(super) threads: bool,
    pub(super) variables: Vec<(String, String)>,
}

/// The algorithms that may be forced, by collective.
pub(super) type Algorithms = Vec<(&'static str, Vec<String>)>;

impl Setting {
    /// That of the job with this seed in it.
    pub(super) fn drawn(seed: u64, ranks: Option<usize>, threads: bool, algorithms: &Algorithms) -> Setting {
        let mut draw = Draw(0x5e77_1465 ^ (seed / TOGETHER).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let drawn = draw.of(&[1, 2, 2, 3, 3, 4, 4, 4, 5, 5]);
        let ranks = ranks.unwrap_or(drawn);
        let threads = draw.once_in(5) && threads;
        // With more collectives and settings, the rest stays as it was.
        let (mut among_neighbors, mut later) = (Draw(!draw.0), Draw(draw.0.rotate_left(32)));
        let mut variables = Vec::new();
        let mut set = |name: &str, value: String| variables.push((name.to_string(), value));
        if draw.once_in(2) {
            let wishes: Vec<String> = algorithms
                .iter()
                .filter_map(|(collective, names)| {
                    let draw = if collective.starts_with("neighbor") { &mut among_neighbors } else { &mut draw };
                    let name = &names[draw.below(names.len() as u64) as usize];
                    draw.once_in(2).then(|| format!("{collective}={name}?"))
                })
                .collect();
            if !wishes.is_empty() {
                set("ALLHANDS_ALGORITHM", wishes.join(";"));
            }
        }
        let topologies: &[&str] = match ranks {
            2 => &["2x1"],
            3 => &["1,2", "3x1"],
            4 => &["2x2", "1,3", "4x1"],
            5 => &["2,3", "5x1", "1,4"],
            _ => &[],
        };
        if !topologies.is_empty() && draw.once_in(3) {
            set("ALLHANDS_TOPOLOGY", draw.of(topologies).into());
        }
        for (name, value, times) in [
            ("ALLHANDS_SINGLE_COPY", "off", 4),
            ("ALLHANDS_CHECK", "1", 8),
            ("ALLHANDS_COMPARE", "1", 8),
            ("ALLHANDS_TIMEOUT", "30", 8),
            ("ALLHANDS_REPORT", "/dev/null", 3),
        ] {
            if draw.once_in(times) {
                set(name, value.into());
            }
        }
        for (name, value, times) in [("ALLHANDS_PROGRESS", "thread", 4), ("ALLHANDS_REPRODUCIBLE", "1", 8)] {
            if later.once_in(times) {
                set(name, value.into());
            }
        }
        // Everybody is tried over and over.
        set("ALLHANDS_LEARN", "eager".into());
        Setting { ranks, threads, variables }
    }
}

const COLLECTIVES: [&str; 17] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
];

/// Where the reductions begin.
const MOVEMENTS: usize = 11;

/// What programs call most, and what we have served for the shortest time, come more often.
const OFTEN: [&str; 12] = [
    "allreduce",
    "allreduce",
    "allreduce",
    "allreduce",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "scan",
    "exscan",
    "alltoallv",
    "alltoallw",
];

/// Those of neighbours.
const NEIGHBORS: [&str; 5] =
    ["neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"];

/// How communicators get a topology.
const TOPOLOGIES: [&str; 5] = ["cart", "grid", "graph", "adjacent", "distributed"];

/// Kinds of elements and their bytes, of which those that operations know have a class.
const KINDS: [(&str, u64, &str); 27] = [
    ("char", 1, ""),
    ("byte", 1, "bits"),
    ("schar", 1, "integer"),
    ("uchar", 1, "integer"),
    ("short", 2, "integer"),
    ("ushort", 2, "integer"),
    ("int", 4, "integer"),
    ("unsigned", 4, "integer"),
    ("long", 8, "integer"),
    ("ulong", 8, "integer"),
    ("longlong", 8, "integer"),
    ("int8", 1, "integer"),
    ("uint16", 2, "integer"),
    ("int32", 4, "integer"),
    ("int64", 8, "integer"),
    ("uint64", 8, "integer"),
    ("float", 4, "float"),
    ("double", 8, "float"),
    ("longdouble", 16, "float"),
    ("floatcomplex", 8, "complex"),
    ("doublecomplex", 16, "complex"),
    ("bool", 1, "logical"),
    ("intint", 8, "pair"),
    ("doubleint", 16, "pair"),
    ("longint", 16, "pair"),
    ("affine", 8, "affine"),
    ("structure", 24, ""),
];

fn operations(class: &str) -> &'static [&'static str] {
    match class {
        "integer" => {
            &["sum", "sum", "sum", "prod", "max", "min", "band", "bor", "bxor", "land", "lor", "lxor", "modular"]
        }
        "float" => &["sum", "sum", "prod", "max", "min"],
        "complex" => &["sum"],
        "logical" => &["land", "lor", "lxor"],
        "bits" => &["band", "bor", "bxor"],
        "pair" => &["minloc", "maxloc"],
        "affine" => &["composed"],
        _ => &[],
    }
}

const WAYS: [&str; 10] =
    ["wait", "test", "waitall", "waitany", "waitsome", "testall", "testany", "testsome", "status", "backwards"];

const SENDS: [&str; 10] =
    ["send", "ssend", "rsend", "irsend", "bsend", "ibsend", "isend", "issend", "persistent", "freed"];

const RECEIVES: [&str; 6] = ["recv", "irecv", "probe", "iprobe", "mprobe", "improbe"];

const POLLS: [&str; 23] = [
    "iprobe",
    "improbe",
    "iprobe",
    "improbe",
    "probe",
    "mprobe",
    "recv",
    "test",
    "testany",
    "testsome",
    "testall",
    "waitany",
    "waitall",
    "status",
    "ssend",
    "sendrecv",
    "barrier",
    "allreduce",
    "gather",
    "scatter",
    "scan",
    "alltoallw",
    "ibarrier",
];

/// More of those that a rank waits in.
const MEETINGS: [&str; 3] = ["dup", "split", "fence"];

/// A script that is being drawn.
struct Writer {
    draw: Draw,
    lines: Vec<String>,
    /// The id that a persistent request on the first line has.
    first: u64,
    /// Of persistent requests so far.
    ids: Vec<u64>,
    threads: bool,
    thread: u64,
}

impl Script {
    pub(super) fn drawn(seed: u64, threads: bool) -> Script {
        let draw = Draw(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0xa11_4a2d5);
        let mut writer = Writer { draw, lines: Vec::new(), first: 1, ids: Vec::new(), threads, thread: 0 };
        for slot in 1..=writer.draw.below(4) {
            writer.turn();
            writer.group(slot);
        }
        let length = 10 + writer.draw.below(40);
        for _ in 0..length {
            writer.turn();
            writer.line();
        }
        let mut lines = writer.lines;
        let mut among = Script::among_neighbors(seed, threads);
        let mut places: Vec<usize> =
            among.lines.iter().map(|_| among.draw.below(lines.len() as u64 + 1) as usize).collect();
        places.sort_unstable();
        for (place, line) in places.into_iter().zip(among.lines).rev() {
            lines.insert(place, line);
        }
        Script { name: seed.to_string(), lines }
    }

    /// Lines that are put among the others in every second script, drawn by themselves: the others are what they were without them.
    fn among_neighbors(seed: u64, threads: bool) -> Writer {
        let draw = Draw(seed.wrapping_mul(0x9fb2_1c65_1e98_df25) ^ 0x6e16_4b02);
        let mut writer = Writer { draw, lines: Vec::new(), first: 1001, ids: Vec::new(), threads, thread: 0 };
        if writer.draw.once_in(2) {
            return writer;
        }
        let slots: Vec<u64> = (0..1 + writer.draw.below(3)).map(|_| 1 + writer.draw.below(7)).collect();
        for &slot in &slots {
            writer.turn();
            writer.topology(slot);
        }
        for _ in 0..4 + writer.draw.below(16) {
            writer.turn();
            let slot = writer.draw.of(&slots);
            match writer.draw.below(20) {
                0 => writer.topology(slot),
                1 => {
                    let (copy, how) = (writer.draw.of(&slots), writer.draw.of(&["dup", "idup"]));
                    let seed = writer.draw.seed();
                    writer.push(format!("group slot={copy} from={slot} how={how} seed={seed}"));
                }
                2 | 3 => writer.again(),
                4 => writer.complete(),
                _ => writer.neighbors(slot),
            }
        }
        writer
    }
}

impl Writer {
    /// Whose line the next one is.
    fn turn(&mut self) {
        self.thread = if self.threads { self.draw.below(2) } else { 0 };
    }

    fn push(&mut self, mut line: String) {
        if self.thread > 0 {
            write!(line, " thread={}", self.thread).unwrap_or_default();
        }
        self.lines.push(line);
    }

    fn line(&mut self) {
        match self.draw.below(100) {
            0..=37 => self.collective(),
            38..=52 => self.message(),
            53..=56 => self.shift(),
            57..=66 => self.relay(),
            67..=78 => self.complete(),
            79..=83 => self.again(),
            84..=89 => {
                let slot = 1 + self.draw.below(7);
                self.group(slot);
            }
            90..=91 => {
                let slot = 1 + self.draw.below(7);
                self.push(format!("free slot={slot}"));
            }
            92..=96 => self.window(),
            97 => {
                let (group, count, seed) = (self.place(), self.draw.below(3000), self.draw.seed());
                self.push(format!("file group={group} count={count} seed={seed}"));
            }
            _ => {
                let (group, count) = (self.place(), self.draw.below(100));
                self.push(format!("local group={group} count={count}"));
            }
        }
    }

    /// Of the next line, whose request is persistent.
    fn id(&mut self) -> u64 {
        let id = self.first + self.lines.len() as u64;
        self.ids.push(id);
        id
    }

    /// A communicator that may be there; the world most often.
    fn place(&mut self) -> u64 {
        if self.draw.once_in(3) { 0 } else { self.draw.below(8) }
    }

    /// How many elements of so many bytes.
    fn count(&mut self, bytes: u64) -> u64 {
        let most = 300 * 1024 / bytes;
        match self.draw.below(20) {
            0 => 0,
            1..=4 => 1,
            5..=10 => 2 + self.draw.below(20),
            11..=14 => 12 * (1 + self.draw.below(30)),
            15..=17 => (500 + self.draw.below(5000)).min(most),
            _ => 12 * (1 + self.draw.below(most / 12)),
        }
    }

    fn collective(&mut self) {
        let name = if self.draw.once_in(2) { self.draw.of(&OFTEN) } else { self.draw.of(&COLLECTIVES) };
        let reduces = COLLECTIVES[MOVEMENTS..].contains(&name);
        let (kind, bytes, class) = loop {
            let drawn = self.draw.of(&KINDS);
            if !reduces || !operations(drawn.2).is_empty() {
                break drawn;
            }
        };
        let operation = if reduces { self.draw.of(operations(class)) } else { "none" };
        // Users' operations are written for one type.
        let (kind, bytes) = if operation == "modular" { ("int64", 8) } else { (kind, bytes) };
        let form = self.draw.of(&["blocking", "blocking", "begun", "begun", "begun", "persistent"]);
        let (group, count, root, seed) = (self.place(), self.count(bytes), self.draw.below(10), self.draw.seed());
        let mut line = format!("collective group={group} name={name} form={form}");
        let mut add = |key: &str, value: String| write!(line, " {key}={value}").unwrap_or_default();
        if name != "barrier" {
            add("kind", kind.into());
            add("count", count.to_string());
        }
        if reduces {
            add("op", operation.into());
        }
        add("root", root.to_string());
        let ways =
            [("inplace", 4), ("large", 3), ("bottom", 8), ("early", 4), ("unread", 2), ("alike", 2), ("turned", 4)];
        for (key, times) in ways {
            if self.draw.once_in(times) {
                add(key, "1".into());
            }
        }
        self.call(line, form, seed);
    }

    fn neighbors(&mut self, group: u64) {
        let (name, (kind, bytes, _)) = (self.draw.of(&NEIGHBORS), self.draw.of(&KINDS));
        let form = self.draw.of(&["blocking", "blocking", "begun", "begun", "begun", "persistent"]);
        let (count, seed) = (self.count(bytes), self.draw.seed());
        let mut line = format!("collective group={group} name={name} form={form} kind={kind} count={count}");
        for (key, times) in [("large", 3), ("bottom", 8), ("early", 4), ("turned", 4)] {
            if self.draw.once_in(times) {
                write!(line, " {key}=1").unwrap_or_default();
            }
        }
        self.call(line, form, seed);
    }

    /// The line of a collective, to which its seed is added, once or more often.
    fn call(&mut self, mut line: String, form: &str, seed: u64) {
        if form == "persistent" {
            let id = self.id();
            write!(line, " id={id}").unwrap_or_default();
        }
        self.push(format!("{line} seed={seed}"));
        // Calls like the last one go another way than the first, as do those that are under way twice; also if just the counts of a
        // vector form are others.
        if form != "persistent" && self.draw.once_in(4) {
            for again in 1..=1 + self.draw.below(3) {
                let seed = if self.draw.once_in(4) { self.draw.seed() } else { seed };
                self.push(format!("{line} seed={seed} again={again}"));
            }
        }
    }

    fn message(&mut self) {
        let (kind, bytes, _) = self.draw.of(&KINDS);
        let (send, receive) = (self.draw.of(&SENDS), self.draw.of(&RECEIVES));
        let (group, count, from, to) = (self.place(), self.count(bytes), self.draw.below(10), self.draw.below(10));
        let (any, longer, seed) = (self.draw.below(4), self.draw.below(2), self.draw.seed());
        let mut line = format!(
            "message group={group} from={from} to={to} send={send} receive={receive} kind={kind} count={count} any={any} \
             longer={longer}"
        );
        if send == "persistent" {
            let id = self.id();
            write!(line, " id={id}").unwrap_or_default();
        }
        self.push(format!("{line} seed={seed}"));
    }

    fn shift(&mut self) {
        let (kind, bytes, _) = self.draw.of(&KINDS);
        let how = self.draw.of(&["sendrecv", "replace", "begun"]);
        let (group, count, by, seed) = (self.place(), self.count(bytes), self.draw.below(5), self.draw.seed());
        self.push(format!("shift group={group} how={how} by={by} kind={kind} count={count} seed={seed}"));
    }

    fn relay(&mut self) {
        // There should be something under way.
        if self.draw.once_in(2) {
            let (group, count, seed) = (self.place(), self.draw.below(40_000), self.draw.seed());
            self.push(format!(
                "collective group={group} name=allreduce form=begun kind=int count={count} op=sum seed={seed}"
            ));
        }
        let poll = if self.draw.once_in(6) { self.draw.of(&MEETINGS) } else { self.draw.of(&POLLS) };
        let (group, at, way, seed) = (self.place(), self.draw.below(10), self.draw.of(&WAYS), self.draw.seed());
        self.push(format!("relay group={group} at={at} poll={poll} way={way} seed={seed}"));
    }

    fn complete(&mut self) {
        let (way, ranks, seed) = (self.draw.of(&WAYS), self.draw.below(32), self.draw.seed());
        let some = u64::from(!self.draw.once_in(3));
        self.push(format!("complete way={way} ranks={ranks} some={some} seed={seed}"));
    }

    /// A persistent request is started again or freed.
    fn again(&mut self) {
        if self.ids.is_empty() {
            return self.complete();
        }
        let id = self.ids[self.draw.below(self.ids.len() as u64) as usize];
        if self.draw.once_in(5) {
            self.push(format!("release of={id}"));
        } else {
            let seed = self.draw.seed();
            self.push(format!("start of={id} seed={seed}"));
        }
    }

    fn group(&mut self, slot: u64) {
        let hows = [
            "dup",
            "dup",
            "idup",
            "split",
            "split",
            "split",
            "shared",
            "create_group",
            "create",
            "cart",
            "inter",
            "merge",
        ];
        let (how, from, seed) = (self.draw.of(&hows), self.place(), self.draw.seed());
        self.push(format!("group slot={slot} from={from} how={how} seed={seed}"));
    }

    fn topology(&mut self, slot: u64) {
        let (how, from, seed) = (self.draw.of(&TOPOLOGIES), self.place(), self.draw.seed());
        self.push(format!("group slot={slot} from={from} how={how} seed={seed}"));
    }

    fn window(&mut self) {
        let slot = self.draw.below(3);
        if self.draw.once_in(3) {
            let (group, how) = (self.place(), self.draw.of(&["create", "allocate"]));
            return self.push(format!("window slot={slot} group={group} how={how}"));
        }
        let (how, op) =
            (self.draw.of(&["fence", "lock", "lockall", "post"]), self.draw.of(&["put", "get", "accumulate", "fetch"]));
        let (by, seed) = (self.draw.below(5), self.draw.seed());
        self.push(format!("access slot={slot} how={how} op={op} by={by} seed={seed}"));
    }
}

/// A file for the interpreter, and for `Case::parse`.
pub(super) fn written(setting: &Setting, scripts: &[Script], about: &str) -> String {
    let mut text = String::new();
    let mut add = |line: &str| writeln!(text, "{line}").unwrap_or_default();
    for line in about.lines() {
        add(&format!("# {line}"));
    }
    add(&format!("ranks {}", setting.ranks));
    for (name, value) in &setting.variables {
        add(&format!("set {name}={value}"));
    }
    if setting.threads {
        add("threads");
    }
    for script in scripts {
        add(&format!("script {}", script.name));
        script.lines.iter().for_each(|line| add(line));
    }
    text
}

/// What `written` has written. A line that is none of the header's belongs to a script.
pub(super) fn parsed(text: &str) -> Option<(Setting, Vec<Script>)> {
    let mut setting = Setting { ranks: 0, threads: false, variables: Vec::new() };
    let mut scripts: Vec<Script> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("script ") {
            scripts.push(Script { name: name.into(), lines: Vec::new() });
        } else if let Some(ranks) = line.strip_prefix("ranks ") {
            setting.ranks = ranks.parse().ok()?;
        } else if let Some((name, value)) = line.strip_prefix("set ").and_then(|rest| rest.split_once('=')) {
            setting.variables.push((name.into(), value.into()));
        } else if line == "threads" {
            setting.threads = true;
        } else {
            scripts.last_mut()?.lines.push(line.into());
        }
    }
    (setting.ranks > 0 && !scripts.is_empty()).then_some((setting, scripts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_draws_the_same_script_and_settings() {
        let algorithms = vec![("allreduce", vec!["tree".to_string(), "ring".to_string()])];
        for seed in 0..200 {
            assert_eq!(Script::drawn(seed, false).lines, Script::drawn(seed, false).lines);
            let setting = |seed| Setting::drawn(seed, None, true, &algorithms);
            assert_eq!(setting(seed), setting(seed / TOGETHER * TOGETHER));
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let variables = vec![("ALLHANDS_ALGORITHM".to_string(), "allreduce=tree?;bcast=linear?".to_string())];
        let setting = Setting { ranks: 3, threads: true, variables };
        let scripts = [Script::drawn(7, true), Script::drawn(8, true)];
        let (again, read) = parsed(&written(&setting, &scripts, "two lines\nabout it")).expect("it can be read");
        assert_eq!(again, setting);
        assert!(scripts.iter().zip(&read).all(|(one, other)| one.name == other.name && one.lines == other.lines));
    }

    #[test]
    fn every_collective_is_drawn_in_every_form() {
        let lines: Vec<String> = (0..300).flat_map(|seed| Script::drawn(seed, false).lines).collect();
        for name in COLLECTIVES.iter().chain(&NEIGHBORS) {
            for form in ["blocking", "begun", "persistent"] {
                let words = format!(" name={name} form={form} ");
                assert!(lines.iter().any(|line| line.contains(&words)), "no{words}");
            }
        }
    }

    #[test]
    fn every_topology_is_drawn() {
        let lines: Vec<String> = (0..300).flat_map(|seed| Script::drawn(seed, false).lines).collect();
        for how in TOPOLOGIES {
            assert!(lines.iter().any(|line| line.contains(&format!(" how={how} "))), "no {how}");
        }
    }

    #[test]
    fn every_operation_is_drawn() {
        let lines: Vec<String> = (0..300).flat_map(|seed| Script::drawn(seed, false).lines).collect();
        for operation in [
            "collective",
            "message",
            "shift",
            "relay",
            "group",
            "free",
            "complete",
            "start",
            "release",
            "window",
            "access",
            "file",
            "local",
        ] {
            assert!(lines.iter().any(|line| line.split(' ').next() == Some(operation)), "no {operation}");
        }
    }
}
