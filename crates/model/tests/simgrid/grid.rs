//! All algorithms that SimGrid can express, on several shapes and sizes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use allhands_model::{Amount, Machine, simulate};
use allhands_schedule::{Choice, Collective, Prepared, Problem, Topology, algorithms};

use crate::cluster::{CLUSTER, machine};
use crate::{installed, trace};

/// Shapes and sizes in bytes. The short ones cost overheads, the long ones wait for their receivers and share links.
const GRID: [(&str, &[u64]); 7] = [
    ("2x4", &[1024, 16384]),
    ("4x4", &[8, 65536]),
    ("3x5", &[1024, 65536]),
    ("16", &[8, 1 << 20]),
    ("16x4", &[1024]),
    ("8x8", &[16384]),
    ("4,1,7,2", &[8, 16384]),
];

/// Here every setting that is worth trying is tried, by turns with one size and the other; elsewhere the default alone.
const ALL_SETTINGS: &str = "3x5";

/// At 16 nodes of 16 ranks, what once differed, and the microseconds of SimGrid 3.32.
const LARGE: [(Collective, &str, u64, f64); 7] = [
    (Collective::Bcast, "hierarchical:radix=16:far=pieces", 65536, 41.25),
    (Collective::Bcast, "hierarchical:radix=16:far=pieces", 1 << 20, 529.18),
    (Collective::Allgather, "recursive-multiplying:factors=8,2,2,2,2,2:order=farthest", 1024, 29.26),
    (Collective::Allgather, "recursive-multiplying:factors=8,2,2,2,2,2:order=farthest", 65536, 1112.46),
    (Collective::Alltoall, "node-aware", 8, 12.0),
    (Collective::Alltoall, "node-aware", 4096, 798.88),
    (Collective::Alltoall, "hierarchical", 8, 13.81),
];

/// What is chosen for long bcasts.
const CHOSEN: [(&str, &str, u64); 3] = [
    ("16x16", "pipeline:blocks=1:fan=2:trees=3:lanes=15:radix=4:turns=2", 65536),
    ("16x16", "pipeline:blocks=6:fan=2:trees=1:lanes=15:radix=16:turns=15", 1 << 20),
    ("64x16", "pipeline:blocks=8:fan=2:trees=1:lanes=15:radix=16:turns=15", 1 << 20),
];

struct Cell {
    shape: &'static str,
    topology: Topology,
    collective: Collective,
    choice: Choice,
    bytes: u64,
}

impl Cell {
    fn prepare(&self) -> Option<Prepared> {
        let problem = Problem::new(self.collective, self.topology.clone());
        self.choice.prepare(&problem).ok().filter(|prepared| !prepared.shares())
    }

    /// Our time in SimGrid's.
    fn compare(&self, machine: &Machine, folder: &std::path::Path) -> Option<f64> {
        let (prepared, amount) = (self.prepare()?, Amount::bytes(self.bytes));
        let node = |rank| if self.topology.depth() == 0 { rank } else { self.topology.region_of(1, rank) };
        let nodes: Vec<usize> = (0..self.topology.ranks()).map(node).collect();
        let theirs = CLUSTER.replay(&trace(&prepared, machine, amount), &nodes, folder);
        Some(simulate(&prepared, machine, amount).unwrap().seconds / theirs)
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (shape, sizes) in GRID {
        let topology: Topology = shape.parse().unwrap();
        // A vector form has the schedules of its plain form.
        for collective in Collective::ALL.into_iter().filter(|one| one.family() == *one) {
            let problem = Problem::new(collective, topology.clone());
            for algorithm in algorithms(collective) {
                let default = || vec![Choice::parse(collective, algorithm.name).unwrap()];
                let all = shape == ALL_SETTINGS;
                let choices = if all { Choice::variants(algorithm, &problem) } else { default() };
                for (at, choice) in choices.into_iter().enumerate() {
                    let sizes = sizes.iter().skip(at % 2).step_by(if all { 2 } else { 1 });
                    cells.extend(sizes.map(|&bytes| Cell {
                        shape,
                        topology: topology.clone(),
                        collective,
                        choice: choice.clone(),
                        bytes,
                    }));
                }
            }
        }
    }
    cells.extend(large().map(|(cell, _)| cell));
    cells.push(one("16x16", Collective::Alltoall, "modified-bruck:radix=256", 4096));
    cells.extend(CHOSEN.map(|(shape, name, bytes)| one(shape, Collective::Bcast, name, bytes)));
    cells
}

fn one(shape: &'static str, collective: Collective, name: &str, bytes: u64) -> Cell {
    let choice = Choice::parse(collective, name).unwrap();
    Cell { shape, topology: shape.parse().unwrap(), collective, choice, bytes }
}

fn large() -> impl Iterator<Item = (Cell, f64)> {
    LARGE.into_iter().map(|(collective, name, bytes, time)| (one("16x16", collective, name, bytes), time))
}

/// Also where there is no SimGrid.
#[test]
fn what_once_differed_takes_as_long_as_simgrid_found() {
    for (cell, microseconds) in large() {
        let ours = simulate(&cell.prepare().unwrap(), &machine(), Amount::bytes(cell.bytes)).unwrap().seconds * 1e6;
        let close = (ours / microseconds - 1.0).abs() < 0.003;
        assert!(close, "{} {}, {} B: {ours} beside {microseconds}", cell.collective, cell.choice, cell.bytes);
    }
}

#[test]
fn every_fifth_cell_takes_as_long_in_simgrid() {
    compare(5);
}

#[test]
#[ignore = "a minute and more: `cargo xtask simgrid` runs it, and `cargo xtask test --full`"]
fn every_cell_takes_as_long_in_simgrid() {
    compare(1);
}

/// Compares one cell of so many, evenly.
fn compare(step: usize) {
    if !installed() {
        return;
    }
    let (cells, machine): (Vec<Cell>, _) = (cells().into_iter().step_by(step).collect(), machine());
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let folder = tempfile::tempdir().unwrap();
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(ratio) = cell.compare(&machine, folder.path()) {
                        found.lock().unwrap().push((ratio, cell));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by(|a, b| (b.0 - 1.0).abs().total_cmp(&(a.0 - 1.0).abs()));
    let within = |most: f64| found.iter().filter(|(ratio, _)| (ratio - 1.0).abs() <= most).count();
    println!("{} cells: {} within 1 %, {} within 10 %", found.len(), within(0.01), within(0.1));
    for (ratio, cell) in &found[..10] {
        println!("{ratio:.3} {} {} {} {} B", cell.shape, cell.collective, cell.choice, cell.bytes);
    }
    assert!(found.len() > 900 / step && within(0.05) == found.len());
}
