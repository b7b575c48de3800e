//! Which cyclic shift is best on 160 nodes of 12 ranks, by size: Table 2 of Jocksch et al. 2021.

use allhands_model::{Amount, Machine, rank_choices};
use allhands_schedule::{Choice, Collective, Problem, Topology};

/// Bytes, phases, microseconds.
const PRINTED: [(u64, &str, f64); 12] = [
    (8, "160(12,12)", 82.11),
    (8192, "160(12,12)", 272.8),
    (16384, "160(-12,-12)160(12,12)", 299.7),
    (131072, "160(-12,-12)160(12,12)", 631.4),
    (262144, "16(-3,-3)10(9)16(3,3)", 862.7),
    (524288, "160(-2,-4,-10)160(10,4,2)", 1217.0),
    (1048576, "160(-2,-5,-8)160(8,5,2)", 1857.0),
    (2097152, "160(-1,-2,-2,-8)160(8,2,2,1)", 3149.0),
    (4194304, "160(-1,-1,-1,-2,-6)160(6,2,1,1,1)", 5677.0),
    (8388608, "160(-1,-1,-1,-1,-1,-4)160(4,1,1,1,1,1)", 11660.0),
    (16777216, "160(-1,-1,-1,-1,-1,-5)160(5,1,1,1,1,1)", 19970.0),
    (33554432, "160(-1,-1,-1,-1,-1,-1,-2)160(2,1,1,1,1,1,1)", 41850.0),
];

const NODES: usize = 160;
const PORTS: usize = 12;

pub(crate) fn print() -> super::Outcome {
    let machine = match std::env::var("MACHINE") {
        Ok(file) => Machine::parse(&std::fs::read_to_string(file)?)?,
        Err(_) => Machine::shipped("aries")?,
    };
    let problem = Problem::new(Collective::Allreduce, Topology::regular(NODES, PORTS)?);
    let candidates = candidates();
    println!("cyclic-shift on {}, 160x12, {} candidates; us", machine.name, candidates.len());
    println!("{:>9} {:<44} {:>9} {:>9} {:<44} {:>9}", "bytes", "Table 2", "printed", "ours", "our best", "time");
    for (bytes, phases, printed) in PRINTED {
        let theirs = [choice(phases)];
        let ranked = rank_choices(&problem, Amount::bytes(bytes), &machine, &candidates)?;
        let same = rank_choices(&problem, Amount::bytes(bytes), &machine, &theirs)?;
        let best = ranked.first().ok_or("nothing can serve")?;
        let name = best.choice.to_string();
        let name = name.trim_start_matches("cyclic-shift:phases=").split(':').next().unwrap_or_default();
        println!(
            "{bytes:>9} {phases:<44} {printed:>9.1} {:>9.1} {name:<44} {:>9.1}",
            same.first().map_or(f64::NAN, |same| same.seconds * 1e6),
            best.seconds * 1e6
        );
    }
    println!();
    Ok(())
}

fn choice(phases: &str) -> Choice {
    let text = format!("cyclic-shift:phases={phases}:local=shared");
    Choice::parse(Collective::Allreduce, &text).expect("legal")
}

/// The pure allgather and reduce_scatter with allgather, for every way of ascending ports that reaches all nodes with nothing to spare.
fn candidates() -> Vec<Choice> {
    let mut sequences = Vec::new();
    extend(&mut Vec::new(), &mut sequences);
    let list =
        |ports: &[usize], sign: &str| ports.iter().map(|port| format!("{sign}{port}")).collect::<Vec<_>>().join(",");
    let mut choices = Vec::new();
    for ascending in &sequences {
        let descending: Vec<usize> = ascending.iter().rev().copied().collect();
        choices.push(choice(&format!("{NODES}({})", list(&descending, ""))));
        choices.push(choice(&format!("{NODES}({}){NODES}({})", list(ascending, "-"), list(&descending, ""))));
    }
    choices.push(choice("16(-3,-3)10(9)16(3,3)"));
    choices
}

fn extend(ports: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    let reach = |ports: &[usize]| ports.iter().map(|port| port + 1).product::<usize>();
    if reach(ports) >= NODES {
        let spare = (0..ports.len()).any(|index| {
            let mut fewer = ports.clone();
            fewer[index] -= 1;
            reach(&fewer) >= NODES
        });
        if !spare {
            found.push(ports.clone());
        }
        // All ports at once is what the paper calls 12 12.
        if ports.iter().all(|&port| port == PORTS) && spare {
            found.push(ports.clone());
        }
        return;
    }
    for port in ports.last().copied().unwrap_or(1)..=PORTS {
        ports.push(port);
        extend(ports, found);
        ports.pop();
    }
}
