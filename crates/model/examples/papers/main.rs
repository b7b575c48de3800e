//! What the simulator makes of the papers' experiments, beside what they print.
//!
//! ```console
//! $ cargo run --release -p allhands-model --example papers -- [nap|loc-bruck|radix|table2|sparbit]...
//! ```

mod sparbit;
mod table2;

use allhands_model::formulas::{Postal, loc_bruck, radix};
use allhands_model::{Amount, Bound, Machine, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|one| one == name);
    if wanted("nap") {
        nap()?;
    }
    if wanted("loc-bruck") {
        loc_bruck_on_lassen()?;
    }
    if wanted("radix") {
        radix_r();
    }
    if wanted("table2") {
        table2::print()?;
    }
    if wanted("sparbit") {
        sparbit::print()?;
    }
    Ok(())
}

/// Microseconds.
fn time(
    machine: &Machine,
    collective: Collective,
    topology: &Topology,
    name: &str,
    bytes: u64,
) -> Result<f64, Box<dyn std::error::Error>> {
    let problem = Problem::new(collective, topology.clone());
    let prepared = Choice::parse(collective, name)?.prepare(&problem)?;
    Ok(simulate(&prepared, machine, Amount::bytes(bytes))?.seconds * 1e6)
}

fn nap() -> Outcome {
    let machine = Machine::shipped("blue-waters")?;
    println!("NAP on blue-waters, 8 B, 16 ranks a node, us: simulated (modelled target)");
    println!("{:>6} {:>22} {:>16} {:>16} {:>8}", "ranks", "recursive-doubling", "smp", "nap", "bound");
    let targets = [
        (256, [12.6, 14.5, 9.1]),
        (4096, [21.7, 22.3, 14.9]),
        (32768, [28.6, 28.1, 19.7]),
        (65536, [30.9, 30.0, 20.6]),
    ];
    for (ranks, targets) in targets {
        let topology = Topology::regular(ranks / 16, 16)?;
        let mut row = format!("{ranks:>6}");
        for (name, target) in ["recursive-doubling", "smp", "nap"].into_iter().zip(targets) {
            let time = time(&machine, Collective::Allreduce, &topology, name, 8)?;
            row += &format!(" {:>16}", format!("{time:.1} ({target})"));
        }
        let bound = Bound::new(&Problem::new(Collective::Allreduce, topology), &machine, Amount::bytes(8), false);
        println!("{row} {:>8.1}", bound.seconds() * 1e6);
    }
    println!("\n32,768 ranks, us");
    println!("{:>8} {:>10} {:>10} {:>10}", "bytes", "smp", "nap", "smp/nap");
    let topology = Topology::regular(2048, 16)?;
    for bytes in (3..=15).map(|power| 1 << power) {
        let [smp, nap] = ["smp", "nap"].map(|name| time(&machine, Collective::Allreduce, &topology, name, bytes));
        let (smp, nap) = (smp?, nap?);
        println!("{bytes:>8} {smp:>10.1} {nap:>10.1} {:>10.2}", smp / nap);
    }
    println!();
    Ok(())
}

fn loc_bruck_on_lassen() -> Outcome {
    let lassen = Machine::shipped("lassen")?;
    let plain = lassen.uncontended();
    let (near, far) = (&lassen.levels[2], &lassen.levels[0]);
    println!("loc-Bruck on lassen, us; alone: no injection limit; by messages: the formula, even shares or padded");
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9}",
        "bytes", "shape", "bruck", "loc", "ratio", "alone", "loc", "ratio", "formula", "even", "padded"
    );
    let shapes = [(4, 16, 4), (4, 64, 8), (4, 16, 16), (4, 256, 16), (4, 1024, 16), (64, 1024, 16), (1024, 1024, 16)];
    for (bytes, regions, size) in shapes {
        let topology = Topology::regular(regions, size)?;
        let on = |machine, name| time(machine, Collective::Allgather, &topology, name, bytes);
        let times = [on(&lassen, "bruck")?, on(&lassen, "loc-bruck")?, on(&plain, "bruck")?, on(&plain, "loc-bruck")?];
        let bruck = loc_bruck::bruck_by_messages(far, regions * size, bytes) * 1e6;
        let loc = |share| loc_bruck::loc_bruck_by_messages(near, far, regions, size, bytes, share) * 1e6;
        println!(
            "{bytes:>6} {:>9} {:>9.1} {:>9.1} {:>6.2} {:>9.1} {:>9.1} {:>6.2} {bruck:>9.1} {:>9.1} {:>9.1}",
            format!("{regions}x{size}"),
            times[0],
            times[1],
            times[0] / times[1],
            times[2],
            times[3],
            times[2] / times[3],
            loc(loc_bruck::Share::Even),
            loc(loc_bruck::Share::Padded)
        );
    }
    println!();
    Ok(())
}

fn radix_r() {
    println!("radix-r alltoall, 1 us and 10 GB/s; measured best in the paper: 22 (512), 48 (2048), 64 (4096)");
    println!(
        "{:>6} {:>6} {:>6} {:>8} {:>12} {:>12} {:>12}",
        "ranks", "bytes", "best", "sqrt P", "best us", "radix 2 us", "spread-out"
    );
    let network = Postal { latency: 1e-6, per_byte: 1e-10 };
    for ranks in [512, 2048, 4096] {
        for bytes in [64, 256, 1024] {
            let best = radix::best(network, ranks, bytes);
            let us = |radix| radix::time(network, ranks, radix, bytes) * 1e6;
            println!(
                "{ranks:>6} {bytes:>6} {best:>6} {:>8.1} {:>12.1} {:>12.1} {:>12.1}",
                (ranks as f64).sqrt(),
                us(best),
                us(2),
                us(ranks)
            );
        }
    }
    println!();
}
