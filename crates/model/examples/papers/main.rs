//! What the simulator makes of the papers' experiments, beside what they print.
//!
//! ```console
//! $ cargo run --release -p allhands-model --example papers -- [nap|table2]...
//! ```

mod table2;

use allhands_model::{Amount, Bound, Machine, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|one| one == name);
    if wanted("nap") {
        nap()?;
    }
    if wanted("table2") {
        table2::print()?;
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
