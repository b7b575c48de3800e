//! Which allgather is best on the Yahoo cluster, by size and number of ranks: Figure 5 of the Sparbit paper.

use allhands_model::{Amount, Machine, Simulator};
use allhands_schedule::{Choice, Collective, Problem, Topology};
use rayon::prelude::*;

const ALGORITHMS: [(&str, char); 5] =
    [("sparbit", 'S'), ("ring", 'r'), ("neighbor-exchange", 'n'), ("bruck", 'b'), ("recursive-doubling", 'd')];

pub(crate) fn print() -> super::Outcome {
    let clusters = [
        ("yahoo", (16, 8), 256, [(46.43, 34.70), (19.12, 14.89)]),
        ("cervino", (5, 32), 320, [(39.64, 30.23), (30.83, 9.60)]),
    ];
    for (name, nodes, most, printed) in clusters {
        let machine = Machine::shipped(name)?;
        for (cyclic, (share, gain)) in [false, true].into_iter().zip(printed) {
            let map = Map::new(&machine, nodes, most, cyclic);
            let placement = if cyclic { "cyclic" } else { "sequential" };
            println!(
                "{name}, {placement}: rows 1 B to 1 MiB, columns 5, 8, 13, 16, ... ranks; S sparbit, r ring, n neighbor-exchange, b bruck, d recursive-doubling"
            );
            map.draw();
            let (won, mean) = map.won();
            println!(
                "sparbit wins {won:.2} % of {} cells (paper: {share} %), by {mean:.2} % on average (paper: {gain} %)\n",
                map.cells()
            );
        }
    }
    Ok(())
}

/// `times[column][row][algorithm]`.
struct Map {
    times: Vec<Vec<[f64; ALGORITHMS.len()]>>,
}

impl Map {
    fn new(machine: &Machine, (nodes, cores): (usize, usize), most: usize, cyclic: bool) -> Map {
        let mut ranks: Vec<usize> = (1..=most / 8).flat_map(|step| [8 * step - 3, 8 * step]).collect();
        ranks.sort_unstable();
        let column = |&ranks: &usize| {
            let topology = spread(ranks, nodes, cores, cyclic);
            let problem = Problem::new(Collective::Allgather, topology);
            let mut column = vec![[f64::INFINITY; ALGORITHMS.len()]; 21];
            for (index, (name, _)) in ALGORITHMS.iter().enumerate() {
                let choice = Choice::parse(Collective::Allgather, name).expect("known");
                let Ok(prepared) = choice.prepare(&problem) else { continue };
                let mut simulator = Simulator::new(&prepared);
                for (row, times) in column.iter_mut().enumerate() {
                    times[index] = simulator.run(machine, Amount::bytes(1 << row)).expect("a time").seconds;
                }
            }
            column
        };
        Map { times: ranks.par_iter().map(column).collect() }
    }

    fn cells(&self) -> usize {
        self.times.len() * 21
    }

    fn draw(&self) {
        for row in 0..21 {
            let best = |cell: &[f64; ALGORITHMS.len()]| {
                let index = (0..cell.len()).min_by(|&a, &b| cell[a].total_cmp(&cell[b])).unwrap_or(0);
                ALGORITHMS[index].1
            };
            let line: String = self.times.iter().map(|column| best(&column[row])).collect();
            println!("{:>8} {line}", 1u64 << row);
        }
    }

    /// The share of cells that Sparbit wins, and by how much it is faster than the second best there, in per cent.
    fn won(&self) -> (f64, f64) {
        let cells = self.times.iter().flatten();
        let gains = cells.filter_map(|cell| {
            let second = cell[1..].iter().copied().fold(f64::INFINITY, f64::min);
            (cell[0] < second * (1.0 - 1e-9)).then(|| 100.0 * (1.0 - cell[0] / second))
        });
        let gains: Vec<f64> = gains.collect();
        (100.0 * gains.len() as f64 / self.cells() as f64, gains.iter().sum::<f64>() / gains.len().max(1) as f64)
    }
}

/// Ranks on nodes: dealt out one by one; or node after node, each filled up to its cores, and all alike when there are more.
fn spread(ranks: usize, nodes: usize, cores: usize, cyclic: bool) -> Topology {
    if ranks <= nodes * cores && !cyclic {
        let sizes: Vec<usize> = (0..ranks).step_by(cores).map(|first| cores.min(ranks - first)).collect();
        return Topology::uneven(&sizes).expect("a machine");
    }
    let (each, more) = (ranks / nodes, ranks % nodes);
    let sizes: Vec<usize> = (0..nodes).map(|node| each + usize::from(node < more)).filter(|&size| size > 0).collect();
    let topology = Topology::uneven(&sizes).expect("a machine");
    if cyclic { topology.cyclic() } else { topology }
}
