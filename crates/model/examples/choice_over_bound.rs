//! How far the choices are from what no algorithm can beat: a table over shapes and sizes, and geometric means.
//!
//! Where even one candidate is too large to be simulated for a choice, the time is a quick estimate, marked ~, and not among the means.
//!
//! `cargo run --release -p allhands-model --example choice_over_bound -- generic`, or the path of a machine file.

use std::error::Error;

use allhands_model::{Allowance, Amount, Bound, Machine, best_choices};
use allhands_schedule::{Collective, Problem, Topology};

const SHAPES: [(usize, usize); 5] = [(4, 4), (8, 4), (16, 16), (64, 16), (1024, 16)];
/// Bytes of the whole vector, or of all blocks together that a rank ends with.
const SIZES: [u64; 6] = [8, 1 << 10, 1 << 16, 1 << 20, 1 << 23, 1 << 26];
const COLLECTIVES: [Collective; 6] = [
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Allgather,
    Collective::ReduceScatter,
    Collective::Alltoall,
];

fn mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

fn main() -> Result<(), Box<dyn Error>> {
    let named = std::env::args().nth(1).unwrap_or_else(|| "generic".into());
    let machine = match std::fs::read_to_string(&named) {
        Ok(text) => Machine::parse(&text)?,
        Err(_) => Machine::shipped(&named)?,
    };
    println!("{}: time of the choice by our simulator / lower bound\n", machine.name);
    println!("| collective | shape | {} |", SIZES.map(|bytes| bytes.to_string()).join(" | "));
    println!("| --- | --- |{}", " --- |".repeat(SIZES.len()));
    let mut all = Vec::new();
    for collective in COLLECTIVES {
        let mut of_this = Vec::new();
        for (nodes, ranks) in SHAPES {
            let problem = Problem::new(collective, Topology::regular(nodes, ranks)?);
            let mut cells = String::new();
            for bytes in SIZES {
                let blocks = if collective.cuts() || collective.rooted() { 1 } else { problem.ranks() as u64 };
                let amount = Amount::bytes((bytes / blocks).max(1));
                let best = best_choices(&problem, amount, &machine, Allowance::default())?;
                let shares = best[0].choice.shares();
                let ratio = best[0].seconds / Bound::new(&problem, &machine, amount, shares).seconds();
                let about = if best[0].simulated { "" } else { "~" };
                cells += &format!(" {about}{ratio:.2} {} |", best[0].choice.algorithm.name);
                of_this.extend(best[0].simulated.then_some(ratio));
            }
            println!("| {collective} | {nodes}x{ranks} |{cells}");
        }
        println!("| {collective} | geometric mean | {:.2} |{}", mean(&of_this), " |".repeat(SIZES.len() - 1));
        all.extend(of_this);
    }
    println!("\ngeometric mean of {} cells: {:.2}", all.len(), mean(&all));
    Ok(())
}
