//! What it costs to make one rank's schedule, and to verify all of them. `cargo bench -p allhands-schedule`
//!
//! Medians of many repetitions, with the tenth and ninetieth percentile; memory is the most that was allocated at once
//! while the schedule was made, the schedule included. Preparing (checking the request) is part of the time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use allhands_schedule::{Choice, Collective, Counts, Problem, Topology, verify};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promises are the ones `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    println!("one rank's schedule at 65536x16 ranks (limits: 1 ms, 1 MiB)");
    println!(
        "{:<28} {:>12} {:>10} {:>10} {:>12} {:>8} {:>8}",
        "algorithm", "median", "p10", "p90", "memory", "rounds", "parts"
    );
    let machine = Topology::regular(65_536, 16).expect("a machine");
    let mut within = true;
    for (collective, algorithm) in [
        (Collective::Allgather, "bruck"),
        (Collective::Allgather, "loc-bruck"),
        (Collective::Allgather, "loc-bruck:fan=full"),
        (Collective::Allreduce, "nap"),
        (Collective::Allreduce, "nap:fan=full"),
    ] {
        let row = Row::measure(collective, algorithm, &machine, 777_777);
        println!("{:<28} {}", format!("{collective} {algorithm}"), row.text());
        within &= row.times[1] < Duration::from_millis(1) && row.memory < 1 << 20;
    }
    println!("{}\n", if within { "all within the limits" } else { "NOT within the limits" });

    println!("one rank's schedule as p grows: time follows the parts of that schedule (messages, spans), not p");
    println!(
        "{:<28} {:>12} {:>10} {:>10} {:>12} {:>8} {:>8} {:>10}",
        "algorithm, p", "median", "p10", "p90", "memory", "rounds", "parts", "ns/span"
    );
    for (collective, algorithm, largest) in [
        (Collective::Allgather, "bruck", 20),
        (Collective::Allgather, "loc-bruck", 20),
        (Collective::Allgather, "sparbit", 20),
        (Collective::Allreduce, "nap", 20),
        (Collective::Allreduce, "rabenseifner", 20),
        (Collective::ReduceScatter, "circulant", 20),
        (Collective::Alltoall, "modified-bruck", 16),
        (Collective::Barrier, "node-aware", 20),
    ] {
        for exponent in (4..=largest).step_by(2) {
            let topology = Topology::regular(1 << (exponent - 4), 16).expect("a machine");
            let row = Row::measure(collective, algorithm, &topology, (1 << exponent) / 3);
            let per_part = row.times[1].as_nanos() as f64 / row.parts as f64;
            println!("{:<28} {} {per_part:>10.1}", format!("{collective} {algorithm} 2^{exponent}"), row.text());
        }
    }

    println!("\nverifying all 1,024 ranks (limit for an allgather: 5 s)");
    for (collective, algorithm) in [
        (Collective::Allgather, "bruck"),
        (Collective::Allgather, "loc-bruck"),
        (Collective::Allgather, "sparbit"),
        (Collective::Allgather, "ring"),
        (Collective::Allreduce, "nap"),
        (Collective::Allreduce, "rabenseifner"),
        (Collective::Alltoall, "modified-bruck"),
    ] {
        let problem = Problem::new(collective, Topology::regular(64, 16).expect("a machine"));
        let begin = Instant::now();
        let ensemble = Choice::parse(collective, algorithm)
            .and_then(|choice| choice.prepare(&problem))
            .expect("served")
            .ensemble();
        let made = begin.elapsed();
        verify(&ensemble).expect("correct");
        println!(
            "{:<28} made in {made:>10.1?}, verified in {:>10.1?}",
            format!("{collective} {algorithm}"),
            begin.elapsed() - made
        );
    }
}

struct Row {
    /// p10, median, p90.
    times: [Duration; 3],
    memory: usize,
    rounds: usize,
    parts: usize,
}

impl Row {
    fn measure(collective: Collective, algorithm: &str, topology: &Topology, rank: usize) -> Row {
        let problem = Problem::new(collective, topology.clone());
        let choice = Choice::parse(collective, algorithm).expect("an algorithm");
        let make = || choice.prepare(&problem).expect("served").rank(rank);
        let before = NOW.load(Relaxed);
        MOST.store(before, Relaxed);
        let schedule = make();
        let memory = MOST.load(Relaxed) - before;
        let mut times: Vec<Duration> = Vec::new();
        let begin = Instant::now();
        while times.len() < 5 || (times.len() < 200 && begin.elapsed() < Duration::from_millis(500)) {
            let one = Instant::now();
            black_box(make());
            times.push(one.elapsed());
        }
        times.sort();
        let at = |tenths: usize| times[(times.len() - 1) * tenths / 10];
        let messages: usize = schedule.rounds.iter().map(|round| round.sends.len() + round.recvs.len()).sum();
        let parts = messages + schedule.rounds.iter().flat_map(|round| round.spans()).count();
        let rounds = Counts::of(&problem, &schedule).rounds;
        Row { times: [at(1), at(5), at(9)], memory, rounds, parts }
    }

    fn text(&self) -> String {
        let [p10, median, p90] = self.times.map(|time| format!("{:.1} us", time.as_secs_f64() * 1e6));
        format!(
            "{median:>12} {p10:>10} {p90:>10} {:>12} {:>8} {:>8}",
            format!("{:.1} KiB", self.memory as f64 / 1024.0),
            self.rounds,
            self.parts
        )
    }
}
