//! Pages of facts that are made up.

use allhands::raw::Surroundings;
use allhands_report::Obstacle as Told;

use super::super::facts::Library;
use super::*;

/// A machine on which all is well.
fn well() -> Facts {
    let report = Report {
        ours: 18,
        calls: 18,
        hosts: vec![Host { name: "one".into(), ranks: 2, cores: Some(4) }],
        ..Report::default()
    };
    Facts {
        version: "1.2.3",
        host: "one".into(),
        container: None,
        library: Ok("/opt/allhands/lib/liballhands_preload.so".into()),
        mpi: Ok(Library {
            name: "MPICH Version: 5.0.2".into(),
            standard: "5.0".into(),
            abi: "MPICH's ABI".into(),
            path: "/opt/mpich/lib/libmpi.so.12".into(),
            how: "which belongs to /opt/mpich/bin/mpiexec".into(),
        }),
        needs_reading: false,
        launch: Launch::Found("/opt/mpich/bin/mpirun".into()),
        job: Job::Ran(Outcome { launched: Some(2), ranks: 2, right: true, report: Some(report) }),
        around: Surroundings::default(),
        shm: Some(24 << 30),
        longest_file: None,
        cores: 4,
        huge_pages: Some("never".into()),
        drivers: Vec::new(),
        settings: Vec::new(),
        misnamed: None,
        learned: Some(Learned { path: "/home/one/.cache/allhands/learned/here.toml".into(), shapes: Ok(Some(12)) }),
    }
}

fn report(facts: &mut Facts) -> &mut Report {
    match &mut facts.job {
        Job::Ran(Outcome { report: Some(report), .. }) => report,
        _ => panic!("the job has run"),
    }
}

/// Where the kernel refuses a call with a code.
fn refused(code: i32, around: Surroundings) -> Facts {
    let mut facts = Facts { around, ..well() };
    let Obstacle { fact, remedy } = Obstacle::reading(&std::io::Error::from_raw_os_error(code), &around);
    report(&mut facts).obstacles = vec![Told { fact, remedy }];
    facts
}

/// The page, of which every line fits, and whether a job would be served.
fn page(facts: &Facts) -> String {
    let page = Page::of(facts);
    let text = page.text();
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    format!("{text}exit code {}", i32::from(!page.served()))
}

#[test]
fn all_is_well() {
    insta::assert_snapshot!(page(&well()));
}

#[test]
fn no_mpi() {
    let facts = Facts {
        mpi: Err("no MPI library was found (looked at the libraries of this process); install one".into()),
        launch: Launch::None,
        job: Job::NotTried,
        learned: None,
        ..well()
    };
    insta::assert_snapshot!(page(&facts));
}

#[test]
fn ptrace_scopes() {
    let scope = |scope| page(&refused(1, Surroundings { ptrace_scope: Some(scope), ..Surroundings::default() }));
    insta::assert_snapshot!([2, 3].map(scope).join("\n\n"));
}

#[test]
fn a_filter_of_system_calls() {
    let around = Surroundings { filtered: true, not_even_itself: true, ..Surroundings::default() };
    let mut facts = Facts { container: Some("docker"), ..refused(1, around) };
    let with = page(&facts);
    facts.needs_reading = true;
    assert!(!Page::of(&facts).served() && Page::of(&facts).text().contains("set MPIR_CVAR_CH4_CMA_ENABLE=0"));
    facts.job = Job::Ended { code: Some(1), said: None };
    insta::assert_snapshot!(format!("{with}\n\n{}", page(&facts)));
}

#[test]
fn a_small_tmpfs_and_files_that_are_limited() {
    let mut facts = Facts { container: Some("docker"), shm: Some(64 << 20), longest_file: Some(1 << 20), ..well() };
    let fact = "ranks of a machine share no memory (memfd_create: File too large), so all their messages are the MPI's: files may not be as long as that (ulimit -f)";
    report(&mut facts).obstacles =
        vec![Told { fact: fact.into(), remedy: "start the job with `ulimit -f unlimited`".into() }];
    insta::assert_snapshot!(page(&facts));
}

#[test]
fn more_ranks_than_cores() {
    let mut facts = well();
    facts.launch = Launch::By { name: "MPICH's mpiexec".into(), ranks: Some(8) };
    report(&mut facts).hosts = vec![Host { name: "one".into(), ranks: 8, cores: Some(2) }];
    facts.drivers = vec!["NVIDIA's 550.54.15".into()];
    facts.settings = vec![("ALLHANDS_LEARN".into(), "frozen".into())];
    insta::assert_snapshot!(page(&facts));
}

#[test]
fn every_way_in_which_a_job_fails_has_a_remedy() {
    let outcome = |ranks, right, report| Job::Ran(Outcome { launched: Some(2), ranks, right, report });
    let off = Report { calls: 18, off: true, ..Report::default() };
    let passed = |reason: &str| Report { calls: 18, reasons: vec![reason.into()], ..Report::default() };
    let (theirs, secluded) = (passed("the caller's wish"), passed("ranks share no memory; set this"));
    let ended = |said: &str| Job::Ended { code: Some(1), said: Some(said.into()) };
    for (job, fact, remedy) in [
        (Job::NotTried, "no job was tried", "above"),
        (Job::Hung { seconds: 60 }, "within 60 s", "ALLHANDS=off"),
        (ended("an attempt to run as root."), "(exit code 1): an attempt to run as root.", "OMPI_ALLOW_RUN_AS_ROOT=1"),
        (ended("There are not enough slots available"), "slots", "--oversubscribe"),
        (ended("there is no variable ALLHANDS_REPROT"), "ALLHANDS_REPROT", "unset it"),
        (ended("no route"), "no route", "`mpirun -n 2 hostname` works"),
        (outcome(1, true, None), "of 2 processes that were started each is alone", "launcher of the MPI"),
        (outcome(2, false, None), "wrong results", "tell us"),
        (outcome(2, true, None), "has told nothing", "ALLHANDS_REPORT=1"),
        (outcome(2, true, Some(off)), "ALLHANDS=off leaves it", "unset ALLHANDS"),
        (outcome(2, true, Some(theirs)), "served all of it: the caller's wish", "ALLHANDS_ALGORITHM"),
        (outcome(2, true, Some(secluded)), "served all of it: ranks share no memory", "set this"),
    ] {
        let facts = Facts { job, ..well() };
        let found = super::job(&facts).unwrap();
        assert!(found.grade == Grade::Fails && found.fact.contains(fact), "{found:?}");
        assert!(found.remedy.contains(remedy), "{found:?}");
        assert!(!Page::of(&facts).served() && Page::of(&facts).text().contains("a job would not be served, or fail; "));
    }
}

#[test]
fn a_limit_on_files_is_what_ends_mpis() {
    let job = Job::Ended { code: Some(25), said: Some("File size limit exceeded (signal 25)".into()) };
    let found = super::job(&Facts { job, longest_file: Some(1 << 20), ..well() }).unwrap();
    assert!(found.grade == Grade::Fails && found.remedy.contains("ulimit -f unlimited"));
}

#[test]
fn files_that_cannot_be_used_are_said() {
    let learned = Some(Learned { path: "here.toml".into(), shapes: Err("it has 3 cells of 4".into()) });
    let found = files(&Facts { learned, ..well() }).unwrap();
    assert!(found.grade == Grade::Slower && found.fact.ends_with("here.toml: it has 3 cells of 4"));
    let facts = Facts { misnamed: Some("what ALLHANDS_TUNING names cannot be used: no.toml".into()), ..well() };
    assert_eq!(settings(&facts).unwrap().grade, Grade::Fails);
    let settings = vec![("ALLHANDS_TUNING".into(), "here.toml".into())];
    assert!(files(&Facts { settings, ..well() }).unwrap().fact.ends_with("what was measured: here.toml"));
}
