//! A cluster is built, used and removed, and nothing of it is left, also when whoever uses it is interrupted. Skipped, with a word,
//! where nodes cannot be made.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const STATE: &str = "/run/allhands-cluster";

fn cluster(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_allhands-cluster"));
    command.args(words).stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    cluster(words).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Whether this machine lets us make nodes.
fn possible() -> bool {
    let namespaces = Command::new("unshare").args(["--net", "--uts", "--ipc", "--mount", "true"]).output();
    let device = std::fs::File::options().read(true).write(true).open("/dev/net/tun");
    let ip = Command::new("ip").arg("-V").output();
    namespaces.is_ok_and(|done| done.status.success()) && device.is_ok() && ip.is_ok()
}

/// The processes that keep nodes.
fn keepers() -> Vec<u32> {
    let text = std::fs::read_to_string(format!("{STATE}/cluster.json")).unwrap_or_default();
    let list = text.split_once("\"keepers\":[").and_then(|(_, rest)| rest.split_once(']')).map_or("", |(list, _)| list);
    list.split(',').filter_map(|number| number.parse().ok()).collect()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not even after a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn gone(keepers: &[u32]) -> bool {
    let there = |keeper: &u32| Path::new(&format!("/proc/{keeper}")).exists();
    !Path::new(STATE).exists() && !keepers.iter().any(there)
}

fn kill(child: &Child, signal: &str) {
    let line = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &line]).status().expect("a shell").success());
}

#[test]
fn nothing_is_left_of_a_cluster() {
    if !possible() {
        eprintln!("skipped: nodes cannot be made here; that needs root, /dev/net/tun and iproute2");
        return;
    }
    if Path::new(STATE).exists() {
        eprintln!("skipped: there is a cluster of somebody else's");
        return;
    }
    let up = run(&["up", "3", "--delay", "1ms"]);
    assert!(up.status.success(), "{}", said(&up));
    let first = keepers();
    assert_eq!(first.len(), 3);

    let again = run(&["up", "2"]);
    assert!(!again.status.success() && said(&again).contains("`cluster down`"), "{}", said(&again));

    // The stand-in for ssh: on the node, in the same folder, with memory of its own.
    let words = ["agent", "-x", "node2", "hostname;", "pwd;", "ls", "/dev/shm;", "cat", "/proc/net/dev"];
    let there = run(&words);
    let text = said(&there);
    let here = std::env::current_dir().expect("a folder");
    assert!(text.starts_with(&format!("node2\n{}\nInter", here.display())), "{text}");
    assert!(text.contains("eth0") && there.status.success(), "{text}");
    let nowhere = run(&["agent", "node7", "hostname"]);
    assert!(said(&nowhere).contains("there are node0 to node2"), "{}", said(&nowhere));

    // Frames go there and back, and take their time: 1 ms each way.
    let began = Instant::now();
    let script = "exec 3<>/dev/tcp/node1/9 || true";
    run(&["agent", "node0", "bash", "-c", &format!("'{script}'")]);
    assert!(began.elapsed() >= Duration::from_millis(2), "a connection that was refused took less than the delay");

    let missing = run(&["run", "--mpi", "openmpi", "4x1", "--", "hostname"]);
    assert!(said(&missing).contains("4x1 needs 4 nodes, and the cluster has 3"), "{}", said(&missing));

    let down = run(&["down"]);
    assert!(down.status.success(), "{}", said(&down));
    wait_until("the nodes are gone", || gone(&first));
    assert!(said(&run(&["down"])).contains("there is no cluster"));

    // A race that is killed takes its cluster with it.
    let mut race = cluster(&["race", "--shape", "2x1", "--iterations", "100000"]);
    let mut race = race.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    wait_until("the race has a cluster", || keepers().len() == 2 || race.try_wait().ok().flatten().is_some());
    let second = keepers();
    kill(&race, "KILL");
    let _ = race.wait();
    wait_until("the nodes of the race are gone", || gone(&second));
}
