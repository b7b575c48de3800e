//! How fast two arrays are combined, beside a plain copy of the same bytes. `cargo bench -p allhands --bench kernels`
//!
//! Both are counted in payload: `n` bytes combined means `n` bytes of `from` went into `n` bytes of `into`; `n` bytes
//! copied means `n` bytes of `from` now stand in `into`. So ratio = time to copy n bytes / time to combine n bytes, on
//! the same two buffers. (A combine also has to read `into`, which a copy only overwrites.)
//!
//! The two are measured in turns, a few calls each; a sample is one turn, a row's GB/s are medians over the turns, and its
//! ratio is the median over the turns of that turn's ratio, with the tenth and ninetieth percentile. The copy is the
//! system's memcpy. A second table does the same for every instruction set the CPU has, a third compares three operands
//! with a copy followed by two. `--quick` takes fewer turns.

use std::hint::black_box;
use std::time::Instant;

use allhands::kernels::{Kernel, Kernel3, Level, Operation, Side, Type, kernel, kernel_at, kernel3};

const SIZES: [(&str, usize); 3] = [("L1, 16 KiB", 16 << 10), ("L2, 512 KiB", 512 << 10), ("4 MiB", 4 << 20)];
const TARGET: f64 = 0.8;

fn main() {
    let passes = if std::env::args().any(|argument| argument == "--quick") { 2 } else { 20 };

    println!("levels here: {}", Level::available().map(|level| level.name()).collect::<Vec<_>>().join(", "));
    println!("GB/s = payload bytes / time; ratio = copy time / combine time; sums should reach {TARGET}\n");
    let mut below = Vec::new();
    for ((label, _), rows) in SIZES.iter().zip(combine_and_copy(passes)) {
        println!("{label} (each of the two buffers)");
        println!(
            "{:<11} {:<12} {:>8} {:>7} {:>7} {:>8} {:>7} {:>7} {:>7} {:>6} {:>6}",
            "type", "operation", "combine", "p10", "p90", "copy", "p10", "p90", "ratio", "p10", "p90"
        );
        for (ty, operation, samples) in rows {
            let combine = spread(samples.iter().map(|sample| sample.combine));
            let copy = spread(samples.iter().map(|sample| sample.copy));
            let ratio = spread(samples.iter().map(Sample::ratio));
            let low = operation == Operation::Sum && ratio.median < TARGET;
            println!(
                "{:<11} {:<12} {:>8.1} {:>7.1} {:>7.1} {:>8.1} {:>7.1} {:>7.1} {:>7.2} {:>6.2} {:>6.2}{}",
                ty.name(),
                operation.name(),
                combine.median,
                combine.p10,
                combine.p90,
                copy.median,
                copy.p10,
                copy.p90,
                ratio.median,
                ratio.p10,
                ratio.p90,
                if low { "  below" } else { "" }
            );
            if low {
                below.push(format!("{ty} at {label}: {:.2}", ratio.median));
            }
        }
        println!();
    }
    match below.is_empty() {
        true => println!("every sum reaches {TARGET} of the copy's rate"),
        false => println!("sums below {TARGET} of the copy's rate: {}", below.join("; ")),
    }
    levels(5 * passes);
    three_operands(5 * passes);
}

type Rows = Vec<(Type, Operation, Vec<Sample>)>;

/// The rows of every size. Passes over all of them, so that a minute in which the machine was busy is a part of every row
/// and not the whole of one.
fn combine_and_copy(passes: usize) -> [Rows; SIZES.len()] {
    let mut sizes =
        SIZES.map(|_| rows().into_iter().map(|(ty, operation)| (ty, operation, Vec::new())).collect::<Rows>());
    for _ in 0..passes {
        for ((_, bytes), rows) in SIZES.iter().zip(&mut sizes) {
            for (ty, operation, samples) in rows {
                let kernel = kernel(*ty, *operation, Side::After).expect("a legal combination");
                samples.extend(measure(kernel, *ty, *bytes, 15));
            }
        }
    }
    sizes
}

/// Sums of everything that has one, then what else is worth knowing.
fn rows() -> Vec<(Type, Operation)> {
    let sums = Type::ALL.into_iter().map(|ty| (ty, Operation::Sum)).filter(|(ty, sum)| sum.is_legal_on(*ty));
    let others = [
        (Type::Bool, Operation::LogicalOr),
        (Type::I32, Operation::LogicalAnd),
        (Type::U8, Operation::BitXor),
        (Type::I64, Operation::Min),
        (Type::I8, Operation::Product),
        (Type::I64, Operation::Product),
        (Type::F16, Operation::Max),
        (Type::BF16, Operation::Max),
        (Type::F32, Operation::Product),
        (Type::F32, Operation::Min),
        (Type::F64, Operation::Min),
        (Type::C32, Operation::Product),
        (Type::C64, Operation::Product),
        (Type::FloatInt, Operation::MinLoc),
        (Type::DoubleInt, Operation::MinLoc),
        (Type::LongInt, Operation::MaxLoc),
        (Type::TwoInt, Operation::MinLoc),
        (Type::ShortInt, Operation::MaxLoc),
    ];
    sums.chain(others).collect()
}

/// Does it pay to choose at run time?
fn levels(turns: usize) {
    let levels: Vec<Level> = Level::available().collect();
    println!("\nratio to the copy at every level");
    print!("{:<24}", "");
    SIZES.iter().for_each(|(label, _)| print!("   {label:<width$}", width = 12 * levels.len()));
    print!("\n{:<11} {:<12}", "type", "operation");
    for _ in SIZES {
        print!("  ");
        levels.iter().for_each(|level| print!(" {:>11}", level.name()));
    }
    println!();
    for (ty, operation) in rows() {
        print!("{:<11} {:<12}", ty.name(), operation.name());
        for (_, bytes) in SIZES {
            print!("  ");
            for &level in &levels {
                let kernel = kernel_at(level, ty, operation, Side::After).expect("a legal combination");
                let samples = measure(kernel, ty, bytes, turns);
                print!(" {:>11.2}", spread(samples.iter().map(Sample::ratio)).median);
            }
        }
        println!();
    }
}

/// Do three operands save the pass they are meant to save?
fn three_operands(turns: usize) {
    let sizes = [("L1, 8 KiB", 8 << 10), SIZES[1], SIZES[2]];
    println!("\ninto = left op right: time to copy left and then combine right / time of the three-operand kernel");
    println!("{:<11} {:<12} {:>14} {:>14} {:>14}", "type", "operation", sizes[0].0, sizes[1].0, sizes[2].0);
    let (sum, product) = (Operation::Sum, Operation::Product);
    for (ty, operation) in [
        (Type::I32, sum),
        (Type::F16, sum),
        (Type::BF16, sum),
        (Type::F32, sum),
        (Type::F64, sum),
        (Type::C64, product),
    ] {
        print!("{:<11} {:<12}", ty.name(), operation.name());
        for (_, bytes) in sizes {
            let two = kernel(ty, operation, Side::After).expect("a legal combination");
            let three = kernel3(ty, operation).expect("a legal combination");
            print!(" {:>14.2}", saved(two, three, ty, bytes, turns));
        }
        println!();
    }
}

fn saved(two: Kernel, three: Kernel3, ty: Type, bytes: usize, turns: usize) -> f64 {
    let (left, right, mut into) = (Buffer::new(bytes, 0), Buffer::new(bytes, 256), Buffer::new(bytes, 512));
    let (count, calls) = (bytes / ty.size(), ((1 << 20) / bytes).max(1));
    let ratios = (0..turns + 3).map(|_| {
        let twice = time(calls, || {
            // SAFETY: all buffers hold `bytes` aligned zeros, values of every type; they are three allocations.
            unsafe {
                std::ptr::copy_nonoverlapping(black_box(left.start()), black_box(into.start_mut()), bytes);
                two(black_box(right.start()), black_box(into.start_mut()), black_box(count));
            }
        });
        let once = time(calls, || {
            // SAFETY: as above.
            unsafe { three(black_box(left.start()), black_box(right.start()), into.start_mut(), black_box(count)) }
        });
        twice / once
    });
    spread(ratios.skip(3)).median
}

/// One turn, in payload bytes per nanosecond.
struct Sample {
    combine: f64,
    copy: f64,
}

impl Sample {
    fn ratio(&self) -> f64 {
        self.combine / self.copy
    }
}

fn measure(kernel: Kernel, ty: Type, bytes: usize, turns: usize) -> Vec<Sample> {
    // Zeros, so that no float grows into infinity or becomes subnormal, where some CPUs are slow. Different distances from
    // a page boundary, so that loads do not wait for stores that only look like theirs (4K aliasing).
    let from = Buffer::new(bytes, 0);
    let mut into = Buffer::new(bytes, 256);
    let count = bytes / ty.size();
    let calls = ((1 << 20) / bytes).max(1);

    let mut samples = Vec::with_capacity(turns);
    for turn in 0..turns + 3 {
        into.clear();
        let combine = time(calls, || {
            // SAFETY: both buffers hold `bytes` aligned initialised bytes, all zero or results of combining zeros, which
            // are values of every type; they are two allocations.
            unsafe { kernel(black_box(from.start()), black_box(into.start_mut()), black_box(count)) }
        });
        let copy = time(calls, || {
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(black_box(from.start()), black_box(into.start_mut()), black_box(bytes))
            }
        });
        // The first turns warm the caches and the clock.
        if turn >= 3 {
            samples.push(Sample { combine: bytes as f64 / combine, copy: bytes as f64 / copy });
        }
    }
    samples
}

/// Nanoseconds per call.
fn time(calls: usize, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        run();
    }
    start.elapsed().as_nanos() as f64 / calls as f64
}

struct Spread {
    p10: f64,
    median: f64,
    p90: f64,
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let [p10, median, p90] = [1, 5, 9].map(|tenth| values[(values.len() - 1) * tenth / 10]);
    Spread { p10, median, p90 }
}

/// Zeros at a known distance from a page boundary.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Buffer {
    fn new(bytes: usize, distance: usize) -> Self {
        const PAGE: usize = 4096;
        let memory = vec![1; bytes + 2 * PAGE];
        let start = memory.as_ptr().align_offset(PAGE) + distance;
        let mut buffer = Self { memory, start, bytes };
        buffer.clear();
        buffer
    }

    fn clear(&mut self) {
        self.memory[self.start..][..self.bytes].fill(0);
    }

    fn start(&self) -> *const u8 {
        self.memory[self.start..][..self.bytes].as_ptr()
    }

    fn start_mut(&mut self) -> *mut u8 {
        self.memory[self.start..][..self.bytes].as_mut_ptr()
    }
}
