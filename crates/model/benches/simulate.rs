//! How fast the simulator is. `cargo bench -p allhands-model`; `-- 18 loc-bruck nap`: some algorithms only, every rank, up to 2^18
//!
//! One core simulates; making and flattening schedules uses all cores. Best of several repetitions: the machine may be busy. So times of
//! processors are printed beside those of the clock: a core does so many messages in a second that it has for them; all that is done in all
//! takes so many seconds of all cores together. Memory is the most that was allocated at once, in pieces of 4 KiB or more: counting the others, which come and go, would slow down what is measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use allhands_model::{Amount, Machine, Simulator, rank_choices};
use allhands_schedule::{Choice, Collective, Problem, Topology};

struct Counting;

/// Smaller pieces are not counted.
const COUNTED: usize = 4096;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn taken(size: usize) {
    if size >= COUNTED {
        MOST.fetch_max(NOW.fetch_add(size, Relaxed) + size, Relaxed);
    }
}

fn given_back(size: usize) {
    if size >= COUNTED {
        NOW.fetch_sub(size, Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promises are the ones `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given_back(layout.size());
        taken(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        given_back(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Repetitions of each simulation.
const REPETITIONS: usize = 3;

const ALGORITHMS: [(Collective, &str); 3] =
    [(Collective::Allgather, "bruck"), (Collective::Allgather, "loc-bruck"), (Collective::Allreduce, "nap")];

fn main() {
    let machines = [Machine::postal(1e-6, 1e-10), Machine::shipped("lassen").expect("shipped")];
    println!(
        "every rank simulated, 1 KiB (limits at 2^20 ranks: 10 s and 8 GiB in all; 10 million messages a second on one core)"
    );
    println!(
        "{:<12} {:<10} {:>5} {:>11} {:>9} {:>10} {:>10} {:>12} {:>14} {:>11} {:>8} {:>10}",
        "algorithm",
        "machine",
        "ranks",
        "messages",
        "make s",
        "simulate s",
        "in all s",
        "messages/s",
        "of a core's s",
        "in all cpu",
        "order",
        "memory MiB"
    );
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    // As on the command line: `-- 18 nap`, no more than 2^18 ranks.
    let most = named.iter().find_map(|name| name.parse().ok()).unwrap_or(20);
    let named: Vec<String> = named.into_iter().filter(|name| name.parse::<u32>().is_err()).collect();
    let wanted = |algorithm: &str| named.is_empty() || named.iter().any(|name| name == algorithm);
    for (collective, algorithm) in ALGORITHMS.into_iter().filter(|(_, algorithm)| wanted(algorithm)) {
        for machine in &machines {
            for exponent in (10..=most).step_by(2) {
                row(collective, algorithm, machine, exponent, 1024);
            }
        }
    }
    if !named.is_empty() {
        return;
    }
    println!(
        "\n1,048,576 ranks as `simulate` does it, 8 B on lassen: one node for all where 512 compared ones do the same (limit: 10 s)"
    );
    for (collective, algorithm) in ALGORITHMS {
        let problem = Problem::new(collective, Topology::regular(1 << 16, 16).expect("a machine"));
        let prepared = Choice::parse(collective, algorithm).expect("known").prepare(&problem).expect("servable");
        MOST.store(NOW.load(Relaxed), Relaxed);
        let before = NOW.load(Relaxed);
        let mut best = f64::INFINITY;
        let mut mode = "";
        for _ in 0..2 {
            let begin = Instant::now();
            let estimate = Simulator::new(&prepared).run(&machines[1], Amount::bytes(8)).expect("a time");
            best = best.min(begin.elapsed().as_secs_f64());
            mode = estimate.mode.name();
        }
        let memory = (MOST.load(Relaxed) - before) >> 20;
        println!("{algorithm:<12} {best:>8.3} s {memory:>6} MiB, {mode}");
    }
    println!("\none candidate for `rank_choices`, 8 B on lassen");
    for (collective, algorithm) in [
        (Collective::Allgather, "bruck"),
        (Collective::Allgather, "loc-bruck"),
        (Collective::Allreduce, "recursive-doubling"),
        (Collective::Allreduce, "nap"),
        (Collective::Allreduce, "ring"),
        (Collective::Alltoall, "modified-bruck"),
    ] {
        for (nodes, size) in [(2, 4), (2, 8), (16, 16), (256, 16)] {
            let problem = Problem::new(collective, Topology::regular(nodes, size).expect("a machine"));
            let choice = [Choice::parse(collective, algorithm).expect("known")];
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let begin = Instant::now();
                rank_choices(&problem, Amount::bytes(8), &machines[1], &choice).expect("an order");
                best = best.min(begin.elapsed().as_secs_f64());
            }
            println!("{collective:<10} {algorithm:<18} {:>5} ranks {:>10.3} ms", nodes * size, best * 1e3);
        }
    }
}

/// The system tells what a thread has had every few milliseconds only: less than this says nothing.
const TOLD: f64 = 0.05;

/// Seconds that processors have had for this thread, where the system tells; else none.
fn cpu_of_thread() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

/// The same for all threads of this process, in hundredths.
fn cpu_of_all() -> f64 {
    let told = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = told.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn row(collective: Collective, algorithm: &str, machine: &Machine, exponent: u32, bytes: u64) {
    let topology = Topology::regular(1 << (exponent - 4), 16).expect("a machine");
    let problem = Problem::new(collective, topology);
    let prepared = Choice::parse(collective, algorithm).expect("known").prepare(&problem).expect("servable");
    MOST.store(NOW.load(Relaxed), Relaxed);
    let before = NOW.load(Relaxed);
    let mut simulator = Simulator::new(&prepared).exact();
    let (begin, cpu) = (Instant::now(), cpu_of_all());
    let estimate = simulator.run(machine, Amount::bytes(bytes)).expect("a time");
    let (in_all, in_all_cpu) = (begin.elapsed().as_secs_f64(), cpu_of_all() - cpu);
    let (mut best, mut best_cpu) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..REPETITIONS {
        let (begin, cpu) = (Instant::now(), cpu_of_thread());
        simulator.run(machine, Amount::bytes(bytes)).expect("a time");
        best = best.min(begin.elapsed().as_secs_f64());
        best_cpu = best_cpu.min(cpu_of_thread() - cpu);
    }
    let memory = (MOST.load(Relaxed) - before) >> 20;
    let told = if best_cpu < TOLD { "-".into() } else { format!("{:.0}", estimate.messages as f64 / best_cpu) };
    println!(
        "{algorithm:<12} {:<10} {:>5} {:>11} {:>9.3} {:>10.4} {:>10.3} {:>12.0} {told:>14} {:>11.2} {:>8} {:>10}",
        machine.name,
        format!("2^{exponent}"),
        estimate.messages,
        (in_all - best).max(0.0),
        best,
        in_all,
        estimate.messages as f64 / best,
        in_all_cpu,
        if estimate.contended { "in time" } else { "any" },
        memory,
    );
}
