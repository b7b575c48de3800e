//! Thread ranks against the least that such a thing can cost, measured in the same run. `cargo bench -p allhands --bench threads`
//!
//! - two ranks: an 8-byte allreduce and a barrier beside two threads that exchange 8 bytes by flags (limit: 2 times);
//! - eight ranks on however many cores there are: a barrier beside `std::sync::Barrier`, and an 8-byte allreduce by recursive
//!   doubling, which has three exchanges, beside three such barriers (limit: 2 times);
//! - two ranks, 4 MiB allreduce: the memory traffic bound is two vectors read or written per rank, at the copy rate of two
//!   threads measured here (aim: at least 0.6 of it).
//!
//! Each pair takes turns, a batch each; the figures are medians over batches with the tenth and ninetieth percentile.

use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use allhands::{Comm, Op, Options, Topology};

const BATCHES: usize = 60;

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores, load {}", load.trim());
    two_ranks();
    eight_ranks();
    bandwidth();
}

/// p10, median and p90.
fn spread(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [1, 5, 9].map(|tenths| times[(times.len() - 1) * tenths / 10])
}

fn row(what: &str, unit: &str, ours: Vec<f64>, peer: &str, theirs: Vec<f64>) {
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    let (ours, theirs, ratio) = (spread(ours), spread(theirs), spread(ratios));
    let text = |[p10, median, p90]: [f64; 3]| format!("{median:8.3} ({p10:.3}..{p90:.3})");
    println!("{what:<34} {} {unit}   {peer:<28} {} {unit}   ratio {}", text(ours), text(theirs), text(ratio));
}

/// Alternates two bodies on all ranks, a batch each, and returns microseconds per call on rank 0.
fn alternate(
    ranks: usize,
    calls: usize,
    ours: impl Fn(&Comm) -> Box<dyn FnMut()> + Sync,
    theirs: impl Fn(usize) -> Box<dyn FnMut() + Send> + Sync,
) -> (Vec<f64>, Vec<f64>) {
    let results = allhands::threads(Topology::flat(ranks).expect("ranks"), |comm| {
        let (mut one, mut other) = (ours(comm), theirs(comm.rank()));
        let mut times = (Vec::new(), Vec::new());
        for batch in 0..BATCHES + 5 {
            let time = |body: &mut dyn FnMut()| {
                let begin = Instant::now();
                (0..calls).for_each(|_| body());
                begin.elapsed().as_secs_f64() * 1e6 / calls as f64
            };
            let (first, second) = (time(&mut one), time(&mut other));
            if batch >= 5 {
                times.0.push(first);
                times.1.push(second);
            }
        }
        Ok(times)
    });
    results.expect("ranks ran").swap_remove(0)
}

/// Two threads that write a value and a flag each and wait for the other's.
struct Flags([Row; 2]);

#[repr(align(64))]
#[derive(Default)]
struct Row {
    flag: AtomicU64,
    value: AtomicU64,
}

fn two_ranks() {
    let flags: &'static Flags = Box::leak(Box::new(Flags([Row::default(), Row::default()])));
    let by_flags = |me: usize| -> Box<dyn FnMut() + Send> {
        let mut run = 0;
        Box::new(move || {
            run += 1;
            let (mine, other) = (&flags.0[me], &flags.0[1 - me]);
            mine.value.store(run, Ordering::Relaxed);
            mine.flag.store(run, Ordering::Release);
            let mut tries = 0u32;
            while other.flag.load(Ordering::Acquire) < run {
                spin_loop();
                tries += 1;
                if tries > 3_000 {
                    std::thread::yield_now();
                }
            }
            std::hint::black_box(other.value.load(Ordering::Relaxed) + run);
        })
    };
    let allreduce = |comm: &Comm| -> Box<dyn FnMut()> {
        let mut plan = comm.allreduce_plan::<u64>(1, Op::sum()).expect("a plan");
        let (x, mut y) = ([1], [0]);
        Box::new(move || plan.run(&x, &mut y).expect("a sum"))
    };
    let barrier = |comm: &Comm| -> Box<dyn FnMut()> {
        let mut plan = comm.barrier_plan().expect("a plan");
        Box::new(move || plan.run(&[], &mut []).expect("a barrier"))
    };
    let (ours, theirs) = alternate(2, 2_000, allreduce, by_flags);
    row("2 ranks, 8-byte allreduce", "us", ours, "exchange of flags", theirs);
    let flags: &'static Flags = Box::leak(Box::new(Flags([Row::default(), Row::default()])));
    let by_flags = |me: usize| -> Box<dyn FnMut() + Send> {
        let mut run = 0;
        Box::new(move || {
            run += 1;
            flags.0[me].flag.store(run, Ordering::Release);
            let mut tries = 0u32;
            while flags.0[1 - me].flag.load(Ordering::Acquire) < run {
                spin_loop();
                tries += 1;
                if tries > 3_000 {
                    std::thread::yield_now();
                }
            }
        })
    };
    let (ours, theirs) = alternate(2, 2_000, barrier, by_flags);
    row("2 ranks, barrier", "us", ours, "exchange of flags", theirs);
}

fn eight_ranks() {
    let std_barrier: &'static Barrier = Box::leak(Box::new(Barrier::new(8)));
    let meetings = |count: usize| {
        move |_: usize| -> Box<dyn FnMut() + Send> {
            Box::new(move || {
                for _ in 0..count {
                    std_barrier.wait();
                }
            })
        }
    };
    let barrier = |comm: &Comm| -> Box<dyn FnMut()> {
        let mut plan = comm.barrier_plan().expect("a plan");
        Box::new(move || plan.run(&[], &mut []).expect("a barrier"))
    };
    let allreduce = |comm: &Comm| -> Box<dyn FnMut()> {
        let options = Options::new().algorithm("recursive-doubling");
        let mut plan = comm.allreduce_plan_with::<u64>(1, Op::sum(), &options).expect("a plan");
        let (x, mut y) = ([1], [0]);
        Box::new(move || plan.run(&x, &mut y).expect("a sum"))
    };
    let (ours, theirs) = alternate(8, 60, barrier, meetings(3));
    row("8 ranks, barrier (3 exchanges)", "us", ours, "std::sync::Barrier, 3 times", theirs);
    let (ours, theirs) = alternate(8, 60, allreduce, meetings(3));
    row("8 ranks, 8-byte allreduce (3)", "us", ours, "std::sync::Barrier, 3 times", theirs);
}

fn bandwidth() {
    const ELEMENTS: usize = 4 << 20 >> 3;
    let allreduce = |comm: &Comm| -> Box<dyn FnMut()> {
        let mut plan = comm.allreduce_plan::<f64>(ELEMENTS, Op::sum()).expect("a plan");
        if comm.rank() == 0 {
            print!("{}", plan.explain());
        }
        let (x, mut y) = (vec![1.0; ELEMENTS], vec![0.0; ELEMENTS]);
        Box::new(move || plan.run(&x, &mut y).expect("a sum"))
    };
    // A copy reads a vector and writes one: the traffic of the bound, two vectors per rank.
    let barrier: &'static Barrier = Box::leak(Box::new(Barrier::new(2)));
    let copy = |_: usize| -> Box<dyn FnMut() + Send> {
        let (from, mut to) = (vec![1.0f64; ELEMENTS], vec![0.0f64; ELEMENTS]);
        Box::new(move || {
            barrier.wait();
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
        })
    };
    let (ours, theirs) = alternate(2, 5, allreduce, copy);
    let of_bound: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| theirs / ours).collect();
    row("2 ranks, 4 MiB allreduce", "us", ours, "4 MiB copy on both cores", theirs);
    let [p10, median, p90] = spread(of_bound);
    println!("4 MiB allreduce reaches {median:.2} ({p10:.2}..{p90:.2}) of the memory-traffic bound");
}
