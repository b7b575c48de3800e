//! Ranks that learn from times which the test makes up: no clock is read.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn subject(class: usize) -> Subject {
    Subject { collective: Collective::Allreduce, class: Some(class), commutative: true, rounds: None }
}

fn server(name: &str) -> Server {
    Server::parse(Collective::Allreduce, name).unwrap()
}

fn unlearned(name: &str) -> Unlearned {
    Unlearned { server: server(name), remembered: None, promised: None }
}

const NAMES: [&str; 4] = ["recursive-doubling", "nap", "rabenseifner", "mpi"];

/// So many ranks, each with what it has learned.
struct Ranks {
    all: Vec<Learner>,
    /// Seconds since the run began, and in calls.
    now: f64,
    in_calls: f64,
    /// Who served how often.
    served: [u64; 4],
    exchanges: u64,
    changes: u64,
    last: Option<Server>,
    /// Calls of a subject since it was asked.
    since: HashMap<usize, u64>,
    /// Of the next call, where sizes are told.
    size: usize,
    /// What an exchange takes, and to think of who might serve.
    exchange: Duration,
    thinking: Duration,
    /// How often it was asked who serves.
    asked: u64,
    /// How many calls are served alike after the last that was asked for.
    rest: u64,
    /// Seconds that the first one promises to take of the next call.
    promised: Option<f64>,
    /// How many times as long the MPI's own is expected to take.
    library: f64,
}

impl Ranks {
    fn new(ranks: usize, pace: Pace) -> Ranks {
        let began = Instant::now();
        let all = (0..ranks).map(|_| Learner::new(pace, began)).collect();
        Ranks {
            all,
            now: 1.0,
            in_calls: 0.0,
            served: [0; 4],
            exchanges: 0,
            changes: 0,
            last: None,
            since: HashMap::new(),
            size: 0,
            exchange: Duration::from_micros(1),
            thinking: Duration::ZERO,
            asked: 0,
            rest: 0,
            promised: None,
            library: 1.3,
        }
    }

    /// Everybody tells the times.
    fn exchange(&mut self) {
        let mut greatest = [0; WORDS];
        for learner in &mut self.all {
            let mut words = learner.words();
            words[1] = (self.now * 1e9) as u64;
            greatest.iter_mut().zip(words).for_each(|(most, word)| *most = (*most).max(word));
        }
        self.all.iter_mut().for_each(|learner| drop(learner.told(&greatest, self.exchange)));
        self.exchanges += 1;
        self.now += self.exchange.as_secs_f64();
    }

    /// A call of a subject, and those that are served alike, of which `most` come; `time` is that of a rank's call by somebody. How many calls it was.
    fn call(&mut self, subject: &Subject, most: u64, time: &mut dyn FnMut(usize, usize) -> f64) -> u64 {
        self.asked += 1;
        let first = Unlearned { promised: self.promised, ..unlearned(NAMES[0]) };
        let topics: Vec<usize> = self
            .all
            .iter_mut()
            .map(|learner| learner.topic(subject.clone(), || Some(first.clone())).unwrap())
            .collect();
        let topic = topics[0];
        assert!(topics.iter().all(|other| *other == topic));
        let due: Vec<bool> = self.all.iter().map(|learner| learner.exchange_is_due(topic)).collect();
        assert!(due.iter().all(|other| *other == due[0]), "ranks disagree on whether they tell each other times");
        if due[0] {
            self.exchange();
        }
        let mut thought = false;
        for learner in &mut self.all {
            if learner.asks_for_library(topic) {
                learner.propose_library(topic, Some(self.library));
            }
            if learner.asks_for_rivals(topic) {
                let open = NAMES[1..].iter().map(|name| (server(name), 1.3)).collect();
                learner.propose(topic, Rivals { open, ..Rivals::default() }, self.thinking);
                thought = true;
            }
        }
        self.now += if thought { self.thinking.as_secs_f64() } else { 0.0 };
        let (since, size) = (self.since.remove(&topic), self.size);
        let turns: Vec<Turn> =
            self.all.iter_mut().map(|learner| learner.turn(topic, since, Traffic { size, partners: 0 })).collect();
        assert!(turns.iter().all(|turn| *turn == turns[0]), "ranks disagree on who serves");
        let Turn { server, tried, rest, .. } = &turns[0];
        let who = NAMES.iter().position(|name| *name == server.to_string()).unwrap();
        self.rest = *rest;
        let calls = (1 + rest).min(most);
        self.since.insert(topic, calls);
        let mut slowest = 0.0f64;
        for (rank, learner) in self.all.iter_mut().enumerate() {
            let took = time(rank, who);
            slowest = slowest.max(took);
            if *tried {
                learner.took(Duration::from_secs_f64(took));
            }
        }
        self.served[who] += calls;
        self.in_calls += slowest * calls as f64;
        self.now += slowest * calls as f64;
        if !tried {
            self.changes += u64::from(self.last.as_ref().is_some_and(|last| last != server));
            self.last = Some(server.clone());
        }
        calls
    }

    fn lesson(&self) -> Lesson {
        self.all[0].lesson(0)
    }
}

/// Numbers in 0..1 from a seed.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn the_fastest_serves_in_the_end_and_what_that_took_is_bounded() {
    for (winner, times) in [
        (0, [10e-6, 11e-6, 14e-6, 25e-6]),
        (1, [10e-6, 8e-6, 12e-6, 12e-6]),
        (2, [10e-6, 9.8e-6, 5e-6, 20e-6]),
        (3, [10e-6, 12e-6, 15e-6, 6e-6]),
    ] {
        let mut ranks = Ranks::new(4, Pace::USUAL);
        let mut noise = random(7);
        let mut calls = 0;
        while calls < 20_000 {
            calls += ranks.call(&subject(8), 20_000 - calls, &mut |_, who| times[who] * (1.0 + 0.1 * noise()));
        }
        let lesson = ranks.lesson();
        assert!(lesson.settled, "{lesson:?}");
        assert_eq!(lesson.server.to_string(), NAMES[winner], "{lesson:?}");
        let spent: f64 = lesson.spent + ranks.exchanges as f64 * 1e-6;
        assert!(spent < 0.011 * ranks.in_calls, "{spent} of {}", ranks.in_calls);
        let least = ranks.served.iter().sum::<u64>() - ranks.served[winner];
        assert!(winner == 0 || least < 4000, "{:?}", ranks.served);
        assert!(ranks.changes <= 2, "{}", ranks.changes);
        assert!(winner == 0 || lesson.gained > 0.0);
    }
}

#[test]
fn who_is_hopeless_has_one_turn_or_two() {
    let mut ranks = Ranks::new(2, Pace::USUAL);
    let times = [10e-6, 40e-6, 11e-6, 7e-3];
    let mut calls = 0;
    while calls < 50_000 {
        calls += ranks.call(&subject(8), 50_000 - calls, &mut |_, who| times[who]);
    }
    assert_eq!(ranks.served[3], 1, "hopeless at first sight");
    assert!(ranks.served[1] <= 3, "{:?}", ranks.served);
    assert_eq!(ranks.lesson().server.to_string(), NAMES[0]);
}

#[test]
fn who_takes_three_times_as_long_has_no_third_turn_where_telling_times_is_cheap_beside_that() {
    let mut ranks = Ranks { exchange: Duration::from_micros(2500), ..Ranks::new(2, Pace::USUAL) };
    let mut calls = 0;
    while calls < 1000 {
        calls += ranks.call(&subject(8), 1000 - calls, &mut |_, who| [12e-3, 13e-3, 14e-3, 37e-3][who]);
    }
    assert!((1..=2).contains(&ranks.served[3]), "{:?}", ranks.served);
}

#[test]
fn load_that_comes_and_goes_changes_nothing() {
    // Times as they were recorded in jobs beside which another process computed for a third of the time: calls take up to eight times
    // as long then, whoever serves.
    for seed in 0..20 {
        let mut ranks = Ranks::new(4, Pace::USUAL);
        let mut noise = random(seed);
        let times = [10e-6, 8e-6, 12e-6, 20e-6];
        let mut calls = 0;
        while calls < 60_000 {
            let loaded = (calls / 10_000) % 3 == 1;
            calls += ranks.call(&subject(8), 60_000 - calls, &mut |_, who| {
                let load = if loaded { 1.0 + 7.0 * noise() } else { 1.0 + 0.05 * noise() };
                times[who] * load
            });
        }
        assert_eq!(ranks.lesson().server.to_string(), NAMES[1], "seed {seed}: {:?}", ranks.lesson());
        assert!(ranks.changes <= 2, "seed {seed}: {} changes", ranks.changes);
        assert!(ranks.served[1] > 50_000, "seed {seed}: {:?}", ranks.served);
    }
}

#[test]
fn who_becomes_faster_is_found_when_times_drift() {
    let mut ranks = Ranks::new(2, Pace::USUAL);
    let (before, after) = ([10e-6, 12e-6, 15e-6, 20e-6], [40e-6, 12e-6, 15e-6, 20e-6]);
    let mut calls = 0;
    while calls < 40_000 {
        let times = if calls < 10_000 { before } else { after };
        calls += ranks.call(&subject(8), 40_000 - calls, &mut |_, who| times[who]);
    }
    assert_eq!(ranks.lesson().server.to_string(), NAMES[1]);
}

#[test]
fn what_was_remembered_is_followed_unless_it_takes_another_time() {
    for (took, settled) in [(11e-6, true), (30e-6, false)] {
        let mut learner = Learner::new(Pace::USUAL, Instant::now());
        let topic =
            learner.topic(subject(8), || Some(Unlearned { remembered: Some(10e-6), ..unlearned("nap") })).unwrap();
        let (mut calls, mut since) = (0, 0);
        while calls < 200 {
            if learner.exchange_is_due(topic) {
                let mut words = learner.words();
                words[1] = 1_000_000_000;
                learner.told(&words, Duration::ZERO);
            }
            let turn = learner.turn(topic, Some(since), Traffic::default());
            since = 1 + turn.rest;
            if turn.tried {
                learner.took(Duration::from_secs_f64(took));
            }
            calls += 1 + turn.rest;
        }
        assert_eq!(learner.lesson(topic).settled, settled);
        assert_eq!(learner.asks_for_library(topic), !settled);
    }
}

/// As a program calls that has one kind of calls after the other: more of them than times can be told at once.
fn in_phases(phases: usize, calls: u64, exchange: Duration) -> Ranks {
    let mut ranks = Ranks { exchange, ..Ranks::new(2, Pace::USUAL) };
    for class in 0..phases {
        let mut left = calls;
        while left > 0 {
            left -= ranks.call(&subject(class), left, &mut |_, who| [1.0e-6, 0.7e-6, 1.3e-6, 1.5e-6][who]);
        }
    }
    ranks
}

#[test]
fn times_that_cannot_be_told_yet_do_not_make_every_call_ask() {
    let ranks = in_phases(40, 1000, Duration::from_secs(1));
    // What one takes is told by the next.
    assert_eq!(ranks.exchanges, 2);
    assert!(ranks.asked < 40 * 60, "{}", ranks.asked);
}

#[test]
fn what_comes_late_is_learned_about_as_well() {
    let ranks = in_phases(40, 50_000, Duration::from_micros(10));
    let lessons = ranks.all[0].lessons().0;
    let learned = lessons.iter().filter(|lesson| lesson.settled && lesson.server == server(NAMES[1])).count();
    assert!(learned >= 36, "{learned}");
    let lost: f64 = lessons.iter().map(|lesson| lesson.spent - lesson.gained).sum::<f64>() + ranks.all[0].lessons().1;
    assert!(lost < 0.011 * ranks.in_calls, "{lost} of {}", ranks.in_calls);
}

/// As on a cluster: few calls of many kinds, each of which takes milliseconds, as telling times does; and thinking takes longer still.
#[test]
fn few_calls_are_enough_to_see_that_the_mpi_alone_is_faster() {
    for (factor, winner) in [(0.75, 3), (1.4, 0), (4.0, 0)] {
        let mut ranks = Ranks {
            exchange: Duration::from_micros(2500),
            thinking: Duration::from_millis(40),
            ..Ranks::new(2, Pace::USUAL)
        };
        let mut noise = random(11);
        // Of a kind: how many calls of it may come before it is asked again.
        let mut granted = [0u64; 32];
        for _ in 0..200 {
            for (kind, granted) in granted.iter_mut().enumerate() {
                let usual = 1.5e-3 + 2e-4 * kind as f64;
                let times = [usual, 1.1 * usual, 1.2 * usual, factor * usual];
                if *granted > 0 {
                    (*granted, ranks.now) = (*granted - 1, ranks.now + usual);
                    continue;
                }
                ranks.call(&subject(kind), 1, &mut |_, who| times[who] * (0.95 + 0.1 * noise()));
                *granted = ranks.rest;
                let topic = ranks.all[0].topics.iter().position(|topic| topic.subject == subject(kind)).unwrap();
                ranks.since.insert(topic, 1 + ranks.rest);
            }
        }
        let lessons = ranks.all[0].lessons().0;
        let right = lessons.iter().filter(|lesson| lesson.server == server(NAMES[winner])).count();
        assert!(right >= 31, "{factor}: {right} {lessons:?}");
        let lost = lessons.iter().map(|lesson| lesson.spent - lesson.gained).sum::<f64>() + ranks.all[0].lessons().1;
        assert!(lost < 0.0075 * ranks.now, "{factor}: {lost} of {}", ranks.now);
    }
}

#[test]
fn where_calls_take_much_longer_than_was_promised_the_mpi_alone_is_tried_early() {
    for promises in [false, true] {
        let mut ranks = Ranks {
            exchange: Duration::from_micros(2500),
            thinking: Duration::from_millis(40),
            library: 3.0,
            ..Ranks::new(2, Pace::USUAL)
        };
        let mut noise = random(5);
        let (mut granted, mut found) = ([0u64; 32], None);
        for call in 0..200 {
            for (kind, granted) in granted.iter_mut().enumerate() {
                let promised = 1.5e-3 + 1e-4 * kind as f64;
                // All take twice as long as promised, but one that takes ten times as long.
                let (usual, theirs) =
                    if kind == 17 { (10.0 * promised, promised) } else { (2.0 * promised, 4.0 * promised) };
                ranks.promised = promises.then_some(promised);
                if *granted > 0 {
                    (*granted, ranks.now) = (*granted - 1, ranks.now + usual);
                    continue;
                }
                ranks.call(&subject(kind), 1, &mut |_, who| {
                    [usual, 1.1 * usual, 1.2 * usual, theirs][who] * (0.95 + 0.1 * noise())
                });
                *granted = ranks.rest;
                let topic = ranks.all[0].topics.iter().position(|topic| topic.subject == subject(kind)).unwrap();
                ranks.since.insert(topic, 1 + ranks.rest);
                if kind == 17 && ranks.all[0].lesson(topic).server == Server::Library {
                    found = found.or(Some(call));
                }
            }
        }
        let lost = ranks.all[0].lessons().0.iter().map(|lesson| lesson.spent - lesson.gained).sum::<f64>()
            + ranks.all[0].lessons().1;
        assert!(lost < 0.0075 * ranks.now, "{promises}: {lost} of {}", ranks.now);
        assert!(if promises { found < Some(100) && found.is_some() } else { found.is_none() }, "{promises}: {found:?}");
    }
}

#[test]
fn where_a_rank_has_what_the_mpi_must_not_touch_its_own_never_serves() {
    for refused in [0, 5000] {
        let mut ranks = Ranks::new(3, Pace::USUAL);
        let (times, mut calls, mut late) = ([10e-6, 12e-6, 15e-6, 5e-6], 0, 0);
        while calls < 40_000 {
            ranks.all[1].refuses_library |= calls >= refused;
            let before = ranks.served[3];
            calls += ranks.call(&subject(8), 40_000 - calls, &mut |_, who| times[who]);
            late += if calls > refused + 3000 { ranks.served[3] - before } else { 0 };
        }
        assert_eq!(late, 0, "{:?}", ranks.served);
        assert!((refused == 0) == (ranks.served[3] == 0), "{:?}", ranks.served);
        assert_ne!(ranks.lesson().server, Server::Library);
    }
}

#[test]
fn outsiders_are_tried_beside_calls_and_serve_in_the_next_run_only() {
    let mut learner = Learner::new(Pace::USUAL, Instant::now());
    let topic = learner.topic(subject(8), || Some(unlearned(NAMES[0]))).unwrap();
    let (mut beside, mut calls, mut since) = (0, 0, 0);
    while calls < 20_000 {
        let now = 1.0 + calls as f64 * 1e-3;
        if learner.exchange_is_due(topic) {
            let mut words = learner.words();
            words[1] = (now * 1e9) as u64;
            learner.told(&words, Duration::ZERO);
        }
        if learner.asks_for_library(topic) {
            learner.propose_library(topic, None);
        }
        if learner.asks_for_rivals(topic) {
            let (open, outside) = (vec![(server("nap"), 1.1)], vec![(server("mpi"), 1.5)]);
            learner.propose(topic, Rivals { open, beside: outside, ..Rivals::default() }, Duration::ZERO);
        }
        let turn = learner.turn(topic, Some(since), Traffic::default());
        since = 1 + turn.rest;
        assert_ne!(turn.server, Server::Library, "it evaluates something else");
        assert!(!(turn.tried && turn.beside.is_some()));
        beside += u64::from(turn.beside.is_some());
        let who = turn.beside.as_ref().unwrap_or(&turn.server);
        let took = if *who == Server::Library {
            20e-6
        } else if *who == server("nap") {
            90e-6
        } else {
            100e-6
        };
        learner.took(Duration::from_secs_f64(took));
        calls += 1 + turn.rest;
    }
    let lesson = learner.lesson(topic);
    assert_eq!(lesson.server, server("nap"), "{lesson:?}");
    assert_eq!(lesson.tried[0].algorithm, "mpi");
    assert!((lesson.tried[0].median_us - 20.0).abs() < 1.0, "{lesson:?}");
    assert!(beside >= 8);
}

proptest! {
    /// Whatever times ranks see, and whoever is called how often: all always do the same.
    #[test]
    fn ranks_never_disagree(seed in any::<u64>(), ranks in 1usize..6, eager in any::<bool>(), subjects in 1usize..5) {
        let mut ranks = Ranks::new(ranks, if eager { Pace::EAGER } else { Pace::USUAL });
        let (mut times, mut draw) = (random(seed), random(seed ^ 1));
        for _ in 0..3000 {
            let class = (draw() * subjects as f64) as usize;
            ranks.call(&subject(class), 1, &mut |_, _| 1e-6 * (1.0 + 1e4 * times().powi(9)));
        }
        prop_assert!(ranks.exchanges > 0);
    }
}

#[test]
fn sizes_that_come_in_a_pattern_deceive_nobody() {
    // Four sizes, for each of which the candidates take another time, but one of them the least on the whole.
    let own = Subject { class: None, ..subject(0) };
    for pattern in [&[0, 1][..], &[0, 0, 1], &[0, 1, 2], &[0, 3], &[3, 0, 0, 0], &[1, 2, 3, 0, 0], &[2]] {
        for (winner, factors) in
            [(0, [1.0, 1.2, 1.3, 1.5]), (1, [1.0, 0.8, 1.3, 1.5]), (2, [1.0, 0.9, 0.5, 2.0]), (3, [1.0, 1.1, 1.2, 0.7])]
        {
            let mut ranks = Ranks::new(3, Pace::USUAL);
            let mut noise = random(pattern.len() as u64);
            for call in 0..20_000 {
                let class = pattern[call % pattern.len()];
                // The rank of the longest call tells its size.
                ranks.size = 8 << (4 * class);
                let length = [10e-6, 30e-6, 100e-6, 1e-3][class];
                ranks.call(&own, 1, &mut |_, who| length * factors[who] * (1.0 + 0.1 * noise()));
            }
            let lesson = ranks.lesson();
            assert!(lesson.settled && lesson.bytes.is_none(), "{pattern:?} {lesson:?}");
            assert_eq!(lesson.server.to_string(), NAMES[winner], "{pattern:?} {lesson:?}");
            assert!(lesson.spent < 0.011 * ranks.in_calls, "{pattern:?} {lesson:?} {}", ranks.in_calls);
        }
    }
}

#[test]
fn short_calls_do_not_decide_for_long_ones_that_take_the_time_nor_old_sizes_for_new_ones() {
    let own = Subject { class: None, ..subject(0) };
    let mut ranks = Ranks::new(3, Pace::USUAL);
    let mut noise = random(3);
    // By length of the call: the second is better for short calls, the third for long ones.
    let mut call = |ranks: &mut Ranks, long: bool| {
        ranks.size = if long { 1 << 20 } else { 8 };
        let (length, factors) = if long { (1e-3, [1.0, 1.5, 0.7, 1.5]) } else { (10e-6, [1.0, 0.5, 1.6, 1.5]) };
        ranks.call(&own, 1, &mut |_, who| length * factors[who] * (1.0 + 0.1 * noise()));
    };
    for number in 0..20_000 {
        call(&mut ranks, number % 4 == 0);
    }
    assert_eq!(ranks.lesson().server.to_string(), NAMES[2], "{:?}", ranks.lesson());
    // From now on there are short ones only.
    (0..200_000).for_each(|_| call(&mut ranks, false));
    assert_eq!(ranks.lesson().server.to_string(), NAMES[1], "{:?}", ranks.lesson());
    assert!(ranks.changes <= 3, "{}", ranks.changes);
    // Sizes that are new.
    let mut ranks = Ranks::new(3, Pace::USUAL);
    (0..20_000).for_each(|_| call(&mut ranks, true));
    assert_eq!(ranks.lesson().server.to_string(), NAMES[2]);
    (0..200_000).for_each(|_| call(&mut ranks, false));
    assert_eq!(ranks.lesson().server.to_string(), NAMES[1], "{:?}", ranks.lesson());
}

/// The greatest number of partners that any rank has told counts, and who follows from it serves at once, with its reason.
#[test]
fn who_follows_from_what_was_told_serves_without_a_try() {
    let subject = Subject { collective: Collective::Alltoallv, class: None, commutative: true, rounds: None };
    let server = |name| Server::parse(Collective::Alltoallv, name).unwrap();
    let mut ranks: Vec<Learner> = (0..2).map(|_| Learner::new(Pace::EAGER, Instant::now())).collect();
    let mut served = Vec::new();
    for call in 0..12u64 {
        let topics = ranks.iter_mut().map(|one| {
            one.topic(subject.clone(), || {
                Some(Unlearned { server: server("node-aware"), remembered: None, promised: None })
            })
        });
        let topic = topics.map(Option::unwrap).max().unwrap();
        if ranks[0].exchange_is_due(topic) {
            let words: Vec<[u64; WORDS]> = ranks.iter_mut().map(Learner::words).collect();
            let greatest = std::array::from_fn(|place| words[0][place].max(words[1][place]));
            ranks.iter_mut().for_each(|one| drop(one.told(&greatest, Duration::from_micros(1))));
        }
        for one in &mut ranks {
            if one.asks_for_rivals(topic) {
                assert_eq!(one.serving(topic).1.partners, 5);
                let instead = Some((server("spread-out"), "five are few".to_string()));
                let open = vec![(server("node-aware"), 1.3)];
                one.propose(topic, Rivals { instead, open, beside: Vec::new() }, Duration::ZERO);
            }
        }
        let since = (call > 0).then_some(1);
        let turns = (0..2).map(|rank| ranks[rank].turn(topic, since, Traffic { size: 64, partners: 3 + 2 * rank }));
        let turns: Vec<Turn> = turns.collect();
        assert_eq!(turns[0], turns[1]);
        let reason = turns[0].why.clone().filter(|_| turns[0].server == server("spread-out"));
        served.push((turns[0].server.to_string(), reason));
        ranks.iter_mut().for_each(|one| one.took(Duration::from_micros(10)));
    }
    let first = served.iter().position(|(name, _)| name == "spread-out").expect("it serves");
    assert!(served[..first].iter().all(|(name, _)| name == "node-aware") && first < 10, "{served:?}");
    assert!(served[first..].iter().any(|(_, why)| why.as_deref() == Some("five are few")), "{served:?}");
}
