use crate::*;

/// Calls of a rank that took so long each, by ours where there is an algorithm.
fn calls(collective: &str, id: u64, algorithm: Option<&str>, seconds: &[f64]) -> (Key, Tally) {
    let key = Key {
        collective: collective.into(),
        up_to_bytes: Some(8),
        on: Communicator { id, ranks: if id == Communicator::WORLD { 2 } else { 1 } },
        algorithm: algorithm.map(String::from),
        passed: algorithm.is_none().then(|| "an intercommunicator".into()),
    };
    let mut spread = Spread::default();
    seconds.iter().for_each(|seconds| spread.add(*seconds));
    let calls = seconds.len() as u64;
    (key, Tally { calls, bytes: 8 * calls, spread, why: "the caller's wish".into() })
}

fn side(calls: u64, mean: f64, deviation: f64) -> Side {
    Side { calls, seconds: mean, most_seconds: 1.5 * mean, mean_seconds: mean, deviation_seconds: deviation }
}

fn compared(collective: &str, ours: Side, mpi: Side) -> Compared {
    Compared {
        collective: collective.into(),
        up_to_bytes: Some(8),
        ours,
        mpi,
        on: Communicator { id: 0, ranks: 2 },
        calls: 100.0,
        // The first calls took 10 ms.
        spent_seconds: 0.01 + ours.calls as f64 * ours.mean_seconds + mpi.calls as f64 * mpi.mean_seconds,
        callers: 1,
    }
}

fn place() -> RankHost {
    RankHost { machine: "here".into(), cores: vec![0, 1], quota: 2, own_seconds: 0.5, all_seconds: 1.0, obstacle: None }
}

fn part(rows: Vec<(Key, Tally)>, compared: Vec<Compared>) -> Part {
    let met = vec![Communicator { id: 0, ranks: 2 }, Communicator { id: 1, ranks: 1 }];
    Part { place: place(), seconds: 1.0, requests_seconds: 0.05, met, rows, compared, sites: vec![] }
}

/// Two ranks: an allreduce that the second comes to late, a bcast that is the MPI's, and requests.
fn parts() -> Vec<Part> {
    let rank = |seconds: f64| {
        vec![
            calls("allreduce", 0, Some("ring"), &[seconds, seconds]),
            calls("bcast", 1, None, &[0.001]),
            (calls("iallreduce", 0, Some("ring"), &[]).0, Tally { calls: 3, bytes: 24, ..Tally::default() }),
        ]
    };
    vec![part(rank(0.2), Vec::new()), part(rank(0.1), Vec::new())]
}

fn job() -> Job {
    Job { mpi: "an <MPI> & more".into(), ..Job::default() }
}

fn whole() -> Whole {
    Whole::of(parts(), job())
}

/// The same with turns: allreduces gain, and bcasts lose.
fn by_turns() -> Whole {
    let all = || {
        vec![
            compared("allreduce", side(50, 0.001, 0.0001), side(50, 0.002, 0.0001)),
            compared("bcast", side(50, 0.0004, 0.00001), side(50, 0.0002, 0.00001)),
        ]
    };
    let rows = || vec![calls("allreduce", 0, Some("ring"), &[0.1]), calls("bcast", 0, Some("ring"), &[0.1])];
    Whole::of(vec![part(rows(), all()), part(rows(), all())], Job { compares: true, ..job() })
}

#[test]
fn the_text_begins_with_the_bottom_line_and_fits_80_columns() {
    let text = whole().text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn turns_are_said_first_with_their_interval_and_what_loses() {
    let text = by_turns().text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_bottom_line_says_what_is_known_and_never_more() {
    let bottom = |parts: Vec<Part>, job: Job| Whole::of(parts, job).bottom_line;
    insta::assert_snapshot!(bottom(vec![part(Vec::new(), Vec::new())], job()), @"no collective was called");
    insta::assert_snapshot!(bottom(parts(), Job { off: true, ..job() }), @"collectives took 301.0 ms, all of them the MPI's own; `allhands report with.json this.json` puts a report of the same job with ours beside this one");
    insta::assert_snapshot!(whole().bottom_line, @"collectives took 301.0 ms; what the MPI's own would have taken was not measured; ALLHANDS_COMPARE=1 lets ours and the MPI's own take turns, or put a report under ALLHANDS=off beside this one with `allhands report`");
    insta::assert_snapshot!(bottom(parts(), Job { compares: true, ..job() }), @"nothing could be compared: no kind of call came often enough for both to have two turns; let the job run longer");
    // As much noise as difference.
    let noise = vec![compared("allreduce", side(50, 0.001, 0.01), side(50, 0.002, 0.01))];
    let rows = vec![calls("allreduce", 0, Some("ring"), &[0.1])];
    insta::assert_snapshot!(bottom(vec![part(rows, noise)], Job { compares: true, ..job() }), @"collectives took 100.0 ms instead of 200.0 ms (by turns, 95 %: 0 s to 501.9 ms), so no difference is certain");
}

#[test]
fn what_was_learned_of_both_is_used() {
    let tried = |algorithm: &str, median_us| Tried {
        algorithm: algorithm.into(),
        median_us,
        p10_us: median_us,
        p90_us: median_us,
        samples: 8,
    };
    let lesson = |tried: Vec<Tried>| Lesson {
        collective: "allreduce".into(),
        up_to_bytes: Some(8),
        ranks: 2,
        calls: 1000,
        server: "ring".into(),
        settled: true,
        tried,
        gained_seconds: 0.0,
        spent_seconds: 0.0,
    };
    let of = |tried| Whole::of(parts(), Job { learned: Learning::new(0.0, 0.0, vec![lesson(tried)]), ..job() });
    insta::assert_snapshot!(of(vec![tried("ring", 20.0), tried("mpi", 60.0)]).bottom_line, @"collectives took 20.0 ms instead of 60.0 ms (those of which both were timed, as it learned, 95 %: 20.0 ms to 20.0 ms); all collectives together took 301.0 ms");
    assert!(of(vec![tried("ring", 20.0), tried("linear", 60.0)]).bottom_line.contains("was not measured"));
}

#[test]
fn what_was_named_and_not_used_is_said() {
    let said = "what ALLHANDS_TUNING names is not used: it was made for another MPI";
    let whole = Whole::of(parts(), Job { unused: vec![said.into()], ..job() });
    assert_eq!(whole.warnings.iter().filter(|warning| *warning == said).count(), 1);
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!([whole.text(), whole.page()].map(one_line).iter().all(|text| text.contains(said)));
    assert!(Whole::parse(&whole.json()).is_ok_and(|read| read.warnings == whole.warnings));
}

#[test]
fn counts_are_by_communicator_and_of_all_ranks() {
    let rows = whole().rows;
    let row = |row: &Row| (row.key.collective.clone(), row.key.on.id, row.key.on.ranks, row.calls, row.bytes);
    assert_eq!(
        rows.iter().map(row).collect::<Vec<_>>(),
        [("allreduce".into(), 0, 2, 4, 32), ("bcast".into(), 1, 1, 2, 16), ("iallreduce".into(), 0, 2, 6, 48),]
    );
    // 0.4 and 0.2 s in allreduces.
    assert!((rows[0].seconds - 0.3).abs() < 1e-12);
}

#[test]
fn places_are_added_up_over_ranks_and_the_longest_come_first() {
    let calls = |collective: &str, offset, calls, seconds| SiteCalls {
        site: Site { collective: collective.into(), module: "solver".into(), offset },
        calls,
        seconds,
    };
    let mut parts = parts();
    parts[0].sites = vec![calls("allreduce", 0x40, 2, 0.2), calls("barrier", 0x80, 1, 0.5)];
    parts[1].sites = vec![calls("allreduce", 0x40, 3, 0.6)];
    parts[1].sites.extend((0..12).map(|place| calls("bcast", place, 1, 0.001)));
    let mut whole = Whole::of(parts, job());
    whole.locate(|module, offset| {
        assert_eq!(module, "solver");
        (offset == 0x40).then(|| "solver.c:214 (step)".into())
    });
    let text = whole.text();
    let told: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("where the program")).skip(2).take(3).collect();
    assert_eq!(told[0].split_whitespace().collect::<Vec<_>>(), ["collective", "calls", "time", "called", "from"]);
    assert!(told[1].starts_with("allreduce") && told[1].ends_with("5  400.0 ms  solver.c:214 (step)"), "{text}");
    assert!(told[2].starts_with("barrier") && told[2].ends_with("1  250.0 ms  solver+0x80"), "{text}");
    assert!(text.contains("and 2 places with less time"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    let page = whole.page();
    assert!(page.contains("solver.c:214 (step)"));
    // The script sorts every table by its headings.
    assert_eq!(
        page.matches("<th><button").count() + page.matches("<th class=\"number\"><button").count(),
        page.matches("<th").count() - page.matches("<thead").count()
    );
    assert_eq!(Whole::parse(&whole.json()).map(|read| read.sites), Ok(whole.sites));
}

#[test]
fn who_is_in_a_collective_longest_came_first() {
    let waits = whole().waits;
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].first_rank, waits[0].last_rank, waits[0].calls), (0, 1, 2));
}

#[test]
fn comparisons_of_communicators_are_not_mixed() {
    let on = |ranks| Compared {
        on: Communicator { id: 7 * ranks as u64, ranks },
        ..compared("allreduce", side(5, ranks as f64, 0.0), side(5, 1.0, 0.0))
    };
    let whole = Whole::of(vec![part(Vec::new(), vec![on(2), on(4)]), part(Vec::new(), vec![on(2), on(4)])], job());
    let found: Vec<(usize, u64, f64)> =
        whole.compared.iter().map(|one| (one.on.ranks, one.ours.calls, one.ours.seconds)).collect();
    assert_eq!(found, [(2, 10, 2.0), (4, 10, 4.0)]);
}

#[test]
fn medians_that_say_something_else_than_the_sums_have_a_star() {
    let few_long = Side { mean_seconds: 0.01, ..side(50, 0.001, 0.0) };
    let one = compared("allreduce", few_long, side(50, 0.002, 0.0));
    let text = Whole::of(vec![part(vec![calls("allreduce", 0, Some("ring"), &[0.1])], vec![one])], job()).text();
    assert!(text.contains("5.00x slower *"), "{text}");
    assert!(text.contains("\n* the medians say something else: some calls took much longer than most\n"), "{text}");
}

#[test]
fn a_report_is_read_as_it_was_written() {
    let text = by_turns().json();
    assert_eq!(Whole::parse(&text).unwrap().json(), text);
    let half = &text[..text.len() / 2];
    assert_eq!(Whole::parse(half).err(), Some(Unreadable::Cut));
    for other in ["", "{", "[]", "{}", "a table", "{\"allhands_report\": \"1\"}", "{\"allhands_report\": 1}"] {
        assert!(matches!(Whole::parse(other), Err(Unreadable::Other | Unreadable::Cut)), "{other}");
    }
    assert_eq!(Whole::parse("{\"allhands_report\": 7}").err(), Some(Unreadable::Form(7)));
}

#[test]
fn parts_survive_their_journey() {
    let text = serde_json::to_string(&parts()).unwrap();
    let back: Vec<Part> = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}

#[test]
fn two_jobs_are_compared_by_shape_and_in_sum() {
    let rank = |seconds: f64| vec![calls("allreduce", 0, Some("ring"), &[seconds, 1.1 * seconds, 0.9 * seconds])];
    let of = |seconds: f64, off| {
        Whole::of(vec![part(rank(seconds), Vec::new()), part(rank(seconds), Vec::new())], Job { off, ..job() })
    };
    let text = Against::new(&of(0.02, false), &of(0.01, true)).text(["a.json", "b.json"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
    // Nothing to advise where both are ours.
    assert!(!Against::new(&of(0.02, false), &of(0.01, false)).text(["a", "b"]).contains("ALLHANDS_ALGORITHM"));
    let alone = Whole::of(vec![part(rank(0.1), Vec::new())], job());
    let text = Against::new(&of(0.02, false), &alone).text(["a", "b"]);
    assert!(text.contains("note: the jobs have 2 and 1 ranks, so their times do not compare"), "{text}");
}

#[test]
fn the_page_is_well_formed_and_says_what_the_text_says() {
    for whole in [whole(), by_turns()] {
        let page = whole.page();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
        let texts = |name: &str| {
            let found = document.descendants().filter(|node| node.has_tag_name(name));
            let text = |node: roxmltree::Node<'_, '_>| {
                node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text().map(str::trim)).collect()
            };
            found.map(text).collect::<Vec<String>>()
        };
        assert_eq!(texts("h1"), ["Collectives of 2 ranks"]);
        assert_eq!(texts("p")[0], "on an <MPI> & more");
        assert_eq!(texts("strong"), [whole.bottom_line.as_str()]);
        let cells = texts("td");
        let rows = 9 * whole.rows.len() + 7 * whole.compared.len();
        assert_eq!(cells.len(), rows);
        for outside in ["http", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "the page reaches out: {outside}");
        }
    }
    let page = whole().page();
    assert!(!page.contains("took turns"), "nothing is compared");
}

#[test]
fn nothing_called_makes_no_empty_table() {
    let whole = Whole::of(vec![part(Vec::new(), Vec::new())], job());
    let text = whole.text();
    assert!(!text.contains("collective  ") && !whole.page().contains("<table>\n<thead><tr></tr>"), "{text}");
}

#[test]
fn a_models_time_beside_a_measured_one_is_explained() {
    let mut parts = parts();
    parts[0].rows[0].1.why = "the model of generic: 0.45 us; runner-up ring, 3 % more".into();
    let text = Whole::of(parts, job()).text();
    assert!(
        text.contains("a model's time is that of a call to which all ranks come at once, each on a core"),
        "{text}"
    );
    assert!(!whole().text().contains("a model's time"));
}

#[test]
fn what_the_system_refuses_is_said_in_every_form_and_read_again() {
    let obstacle = Obstacle { fact: "ranks may not read: a filter".into(), remedy: "start it <so>".into() };
    let mut parts = parts();
    parts.iter_mut().for_each(|part| part.place.obstacle = Some(obstacle.clone()));
    let whole = Whole::of(parts, job());
    let sentence = "slower: ranks may not read: a filter; start it <so>\n";
    assert_eq!(whole.text().matches(sentence).count(), 1, "{}", whole.text());
    assert!(whole.page().contains("<p>Slower: ranks may not read: a filter; start it &lt;so&gt;</p>"));
    let read = Whole::parse(&whole.json()).unwrap();
    assert_eq!((read.obstacles(), read.hosts()[0].cores), (&[obstacle][..], Some(2)));
    let beside = Against::new(&whole, &self::whole()).text(["one", "other"]);
    assert!(beside.contains("note: in the first ranks may not read: a filter; start it <so>\n"), "{beside}");
}
