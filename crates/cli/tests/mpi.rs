//! The built command under the launchers of MPIs. They are in the folder that `ALLHANDS_TEST_MPI` names, else in `.mpi` of the
//! workspace, where `cargo xtask mpi` puts them; without them these tests are skipped with a notice.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

const LIBRARIES: [&str; 3] = ["openmpi", "mpich", "intel"];

struct Outcome {
    success: bool,
    out: String,
    err: String,
}

/// The folders of the MPIs that are there.
fn installations() -> Vec<(&'static str, PathBuf)> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.mpi");
    let root = std::env::var_os("ALLHANDS_TEST_MPI").map_or(workspace, PathBuf::from);
    let there = |name: &'static str| {
        let folder = root.join(name);
        if folder.join("bin/mpirun").exists() {
            return folder.canonicalize().ok().map(|folder| (name, folder));
        }
        None
    };
    let found: Vec<_> = LIBRARIES.into_iter().filter_map(there).collect();
    if found.len() < LIBRARIES.len() {
        static ONCE: Once = Once::new();
        let notice = "skipped: MPI tests without their MPI; `cargo xtask mpi` installs three of them, `cargo xtask test` runs all tests\n";
        // Not by eprintln, which the test harness keeps to itself where a test passes.
        ONCE.call_once(|| drop(std::io::stderr().write_all(notice.as_bytes())));
    }
    found
}

/// Runs words separated by spaces on so many ranks.
fn run(mpi: &(&str, PathBuf), ranks: usize, line: &str, variables: &[(&str, &str)]) -> Outcome {
    run_each(mpi, &[(ranks, line)], variables)
}

/// The same where ranks are given different words: the first so many of them, then others. One job at a time: ranks that wait take whole cores.
fn run_each((name, root): &(&str, PathBuf), jobs: &[(usize, &str)], variables: &[(&str, &str)]) -> Outcome {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // On a busy machine MPICH's launcher writes to a helper that has ended already where ranks end at once, and dies of the signal
    // without a word; it goes on where the signal is ignored.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' PIPE; exec \"$0\" \"$@\""]);
    command.arg(root.join(if *name == "intel" { "bin/mpiexec.hydra" } else { "bin/mpirun" }));
    command.env_remove("ALLHANDS_MPI").env_remove("ALLHANDS_TOPOLOGY");
    match *name {
        "openmpi" => {
            command.args(["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        "mpich" => {
            command.env("MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
        }
        _ => {
            command.env("I_MPI_ROOT", root).env("I_MPI_PIN", "0").env("I_MPI_FABRICS", "shm");
            command.env("I_MPI_THREAD_YIELD", "2").env("I_MPI_SPIN_COUNT", "1");
        }
    }
    // What jobs learn is not for those of the user.
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command.envs(variables.iter().copied());
    for (place, (ranks, line)) in jobs.iter().enumerate() {
        command.args((place > 0).then_some(":")).args(["-n", &ranks.to_string()]);
        command.arg(env!("CARGO_BIN_EXE_allhands")).args(line.split_whitespace());
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // What is printed here fits into a pipe.
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("the launcher is ours").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{name}: still running after a minute: {jobs:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("it has ended");
    Outcome {
        success: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn bench_runs_on_the_ranks_of_the_job() {
    for mpi in installations() {
        for (collective, topology, names) in
            [("allgather", "--topology 2x2", "all,mpi"), ("allreduce", "", "auto,mpi,ring")]
        {
            let line =
                format!("bench {collective} --algorithm {names} {topology} --bytes 8..64 --iterations 2 --format json");
            let bench = run(&mpi, 4, &line, &[]);
            assert!(bench.success, "{}: {}{}", mpi.0, bench.out, bench.err);
            let lines: Vec<Value> = serde_json::from_str(&bench.out).expect("one array, by one rank");
            assert!(lines.iter().all(|line| line["ranks"] == 4 && line["iterations"] == 2), "{}", bench.out);
            assert!(lines.iter().all(|line| line["transport"].as_str().is_some_and(|name| name.contains("MPI"))));
            for name in ["auto", "ring", "mpi"] {
                let of = |line: &&Value| line["algorithm"].as_str().is_some_and(|is| is.starts_with(name));
                assert!(lines.iter().filter(of).count() >= 2, "{name} is not in {}", bench.out);
            }
        }
        let table = run(&mpi, 1, "bench bcast --algorithm auto --bytes 8 --iterations 2", &[]);
        assert!(table.success && table.out.starts_with("bcast on 1 rank of "), "{}{}", table.out, table.err);
        assert!(table.out.contains("(libmpi.so."), "the header names the library: {}", table.out);
        let beside = run(&mpi, 2, "bench allreduce --algorithm auto,mpi --bytes 8..64 --iterations 2", &[]);
        assert!(beside.out.contains("  x MPI") && beside.out.contains("\nOn average auto is "), "{}", beside.out);
        assert!(beside.out.lines().all(|line| line.trim_end().chars().count() <= 80), "{}", beside.out);
    }
}

/// Refused, with this said as often and nothing else of ours.
fn refused(outcome: &Outcome, words: &str, times: usize) {
    assert!(!outcome.success, "{}", outcome.out);
    let errors = outcome.err.matches("error: ").count();
    assert_eq!((errors, outcome.err.matches(words).count()), (times, times), "{}{}", outcome.out, outcome.err);
}

#[test]
fn what_all_ranks_refuse_is_said_once_and_what_fails_inside_by_each() {
    for mpi in installations() {
        let said = "2x3 has 6 seats, but the job has 4 ranks";
        refused(&run(&mpi, 4, "bench allgather --topology 2x3", &[]), said, 1);
        refused(&run(&mpi, 4, "bench allgather --algorithm no-such", &[]), "no-such", 1);
        refused(&run(&mpi, 4, "bench allgather --algorithm neighbor-exchange --topology 3", &[]), "3 has 3 seats", 1);
        refused(&run(&mpi, 3, "bench allgather --algorithm neighbor-exchange", &[]), "an even number", 1);
        refused(&run(&mpi, 2, "bench", &[]), "required arguments", 1);
        let nowhere = [("ALLHANDS_MPI", "/nowhere/libmpi.so.12")];
        refused(&run(&mpi, 2, "bench allgather", &nowhere), "cannot be opened", 1);
        // Some launchers end the others before they have said the same.
        let inside = run(&mpi, 2, "bench allgather", &[("ALLHANDS_TOPOLOGY", "3")]);
        assert!(!inside.success && inside.err.contains("error: rank "), "{}{}", inside.out, inside.err);
        assert!(inside.err.contains("the topology 3 has 3 seats, but there are 2 ranks"), "{}", inside.err);
    }
}

/// Two ranks of four ask for something else: who finds that out says so, a line each, before those who only hear of it.
#[test]
fn errors_of_several_ranks_are_a_line_each_and_the_cause_comes_first() {
    for mpi in installations() {
        let line = |bytes: usize| format!("bench bcast --algorithm binomial --bytes {bytes} --iterations 1");
        let ended = run_each(&mpi, &[(2, &line(8)), (2, &line(64))], &[]);
        let told = format!("{}: {}{}", mpi.0, ended.out, ended.err);
        assert!(!ended.success, "{told}");
        let errors: Vec<&str> = ended.err.lines().filter(|line| line.contains("error: ")).collect();
        // Nothing of one rank's is in the midst of another's. The launcher may put something of its own before it.
        assert!(!errors.is_empty() && errors.iter().all(|line| line.matches("error: rank ").count() == 1), "{told}");
        assert!(errors[0].contains(" asks for bcast of ") && errors[0].contains(", where rank "), "{told}");
        assert!(!ended.err.contains("panicked"), "{told}");
    }
}

#[test]
fn a_schedule_by_hand_runs_on_the_ranks_of_the_job() {
    let written = |name: &str, text: &str| {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).expect("the temporary directory can be written");
        path.display().to_string()
    };
    let line = ["explain", "allreduce", "--algorithm", "ring", "--topology", "2x2", "--format", "schedule"];
    let ring = Command::new(env!("CARGO_BIN_EXE_allhands")).args(line).output().expect("the command runs");
    let ring = String::from_utf8(ring.stdout).expect("text");
    let right = written("ring-by-hand.txt", &ring);
    let wrong = written("ring-gone-wrong.txt", &ring.replacen("send 1:", "send 2:", 1));
    for mpi in installations() {
        let bench = format!("bench --file {right} --algorithm auto,mpi --bytes 8..64 --iterations 2 --format json");
        let bench = run(&mpi, 4, &bench, &[]);
        assert!(bench.success, "{}: {}{}", mpi.0, bench.out, bench.err);
        let lines: Vec<Value> = serde_json::from_str(&bench.out).expect("one array, by one rank");
        let ours = |line: &&Value| line["algorithm"] == format!("@{right}") && line["ranks"] == 4;
        assert_eq!((lines.len(), lines.iter().filter(ours).count()), (6, 2), "{}", bench.out);
        refused(&run(&mpi, 4, &format!("bench --file {wrong}"), &[]), "ring-gone-wrong.txt, line ", 1);
        refused(&run(&mpi, 3, &format!("bench --file {right}"), &[]), "has 4 seats, but the job has 3 ranks", 1);
        refused(&run(&mpi, 2, "bench --file nowhere.txt", &[]), "nowhere.txt: it cannot be read", 1);
    }
}

#[test]
fn what_one_process_does_is_done_once() {
    for mpi in installations() {
        let list = run(&mpi, 3, "list bcast", &[]);
        assert!(list.success && list.out.matches("scatter-allgather").count() == 2, "{}{}", list.out, list.err);
        let explain = run(&mpi, 3, "explain bcast --algorithm binomial --topology 4", &[]);
        assert!(explain.success && explain.out.matches("lower bound").count() == 1, "{}", explain.out);
        let help = run(&mpi, 3, "--help", &[]);
        assert!(help.success && help.out.matches("Examples:").count() == 1, "{}", help.out);
    }
}

#[test]
fn verify_shares_its_work_and_prints_one_total() {
    let alone = Command::new(env!("CARGO_BIN_EXE_allhands")).args(["verify", "--ranks", "1..6"]).output();
    let alone = String::from_utf8(alone.expect("the command runs").stdout).expect("text");
    for mpi in installations() {
        let verify = run(&mpi, 4, "verify --ranks 1..6", &[]);
        assert!(verify.success, "{}{}", verify.out, verify.err);
        assert_eq!(verify.out.replace('\r', ""), alone);
        refused(&run(&mpi, 4, "verify allgather --algorithm neighbor-exchange --ranks 5", &[]), "an even number", 1);
    }
}
