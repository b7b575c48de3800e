use allhands_schedule::Topology;

use super::*;

fn cell(shape: (usize, usize), bytes: usize, times: &[(&str, f64)]) -> Cell {
    let time = |&(algorithm, median_us): &(&str, f64)| Time {
        algorithm: algorithm.into(),
        median_us,
        p10_us: median_us,
        p90_us: median_us,
        samples: 1,
    };
    Cell {
        collective: "allreduce".into(),
        nodes: shape.0,
        ranks_per_node: shape.1,
        bytes,
        times: times.iter().map(time).collect(),
    }
}

fn file(cells: &[Cell]) -> Tuning {
    Tuning { cells: cells.into(), ..Tuning::new("threads") }
}

fn best(tuning: &Tuning, nodes: usize, ranks: usize, bytes: usize) -> Option<(String, f64)> {
    let topology = Topology::regular(nodes, ranks).unwrap();
    let advice = tuning.advice(Collective::Allreduce, &topology, bytes);
    advice.first().map(|advice| (advice.server.to_string(), advice.microseconds))
}

#[test]
fn a_file_survives_being_written_and_read() {
    let mut tuning = file(&[cell((2, 4), 8, &[("nap", 1.5), ("mpi", 2.0)]), cell((2, 4), 64, &[("ring", 3.0)])]);
    tuning.about.insert("date".into(), "2026-11-15".into());
    let read: Tuning = tuning.to_string().parse().unwrap();
    assert_eq!((read.cells, read.about, read.transport), (tuning.cells, tuning.about, tuning.transport));
}

#[test]
fn what_was_measured_is_advised_and_between_sizes_lines_cross() {
    // nap grows by 4 over the range, tree by 16: they cross at 1 us * 4^x = 0.5 us * 16^x, a half of the way.
    let tuning =
        file(&[cell((2, 4), 16, &[("tree", 0.5), ("nap", 1.0)]), cell((2, 4), 256, &[("nap", 4.0), ("tree", 8.0)])]);
    assert_eq!(best(&tuning, 2, 4, 16), Some(("tree".into(), 0.5)));
    assert_eq!(best(&tuning, 2, 4, 256), Some(("nap".into(), 4.0)));
    assert_eq!(best(&tuning, 2, 4, 32).unwrap().0, "tree");
    assert_eq!(best(&tuning, 2, 4, 128).unwrap().0, "nap");
    assert!((best(&tuning, 2, 4, 64).unwrap().1 - 2.0).abs() < 1e-9);
}

#[test]
fn an_algorithm_that_was_left_out_is_no_faster_than_half_of_the_others() {
    let tuning = file(&[cell((2, 4), 16, &[("tree", 1.0), ("nap", 9.0)]), cell((2, 4), 256, &[("nap", 4.0)])]);
    assert_eq!(best(&tuning, 2, 4, 17).unwrap().0, "tree");
    // Known at one end only: as the others changed, by a factor of 2, from 10 to 20, halfway at the square root of 200.
    let tuning = file(&[
        cell((2, 4), 16, &[("tree", 1.0), ("nap", 2.0), ("ring", 10.0)]),
        cell((2, 4), 64, &[("tree", 2.0), ("nap", 4.0)]),
    ]);
    let advice = tuning.advice(Collective::Allreduce, &Topology::regular(2, 4).unwrap(), 32);
    let ring = advice.iter().find(|advice| advice.server.to_string() == "ring").unwrap();
    assert!((ring.microseconds - 200.0f64.sqrt()).abs() < 1e-9 && ring.cells == 1, "{advice:?}");
    // One that nobody can be compared with is as slow as the slowest.
    let tuning = file(&[cell((2, 4), 16, &[("ring", 1.0)]), cell((2, 4), 64, &[("tree", 2.0), ("nap", 4.0)])]);
    let advice = tuning.advice(Collective::Allreduce, &Topology::regular(2, 4).unwrap(), 32);
    let ring = advice.iter().find(|advice| advice.server.to_string() == "ring").unwrap();
    assert!((ring.microseconds - 2.0).abs() < 1e-9, "{advice:?}");
}

#[test]
fn shapes_in_between_are_interpolated_and_distant_ones_unknown() {
    let tuning = file(&[cell((2, 4), 8, &[("tree", 1.0)]), cell((8, 4), 8, &[("tree", 4.0)])]);
    assert!((best(&tuning, 4, 4, 8).unwrap().1 - 2.0).abs() < 0.1);
    assert_eq!(best(&tuning, 2, 4, 8), Some(("tree".into(), 1.0)));
    assert_eq!((best(&tuning, 64, 4, 8), best(&tuning, 1, 4, 8)), (None, None));
    assert_eq!((best(&tuning, 2, 4, 32).unwrap().0.as_str(), best(&tuning, 2, 4, 33)), ("tree", None));
}

#[test]
fn numbers_in_settings_count_where_they_were_measured() {
    let at = |bytes, times: &[(&str, f64)]| cell((2, 4), bytes, times);
    let tuning = file(&[
        at(8, &[("nap", 3.0), ("ring", 4.0), ("cyclic-shift:phases=8(1,3)", 1.0), ("cyclic-shift:phases=8(7)", 2.0)]),
        at(128, &[("nap", 3.0), ("ring", 4.0), ("cyclic-shift:phases=8(7)", 2.0)]),
        cell((2, 2), 8, &[("nap", 3.0), ("ring", 4.0), ("cyclic-shift:phases=8(7)", 2.0)]),
    ]);
    assert_eq!(best(&tuning, 2, 4, 8).unwrap().0, "cyclic-shift:phases=8(1,3)");
    assert_eq!(best(&tuning, 2, 4, 32).unwrap().0, "cyclic-shift:phases=8(7)");
    assert!(["nap", "ring"].contains(&best(&tuning, 2, 3, 8).unwrap().0.as_str()));
}

#[test]
fn an_algorithm_that_folds_is_not_taken_for_a_smooth_one() {
    // Recursive doubling takes 2 steps with 4 ranks, 3 with 8, and 4 with 6; a ring takes as many as the line says.
    let times = |doubling, ring| [("recursive-doubling", doubling), ("ring", ring)];
    let tuning = file(&[cell((2, 4), 8, &times(2.0, 2.4)), cell((2, 2), 8, &times(1.0, 1.2))]);
    let topology = Topology::regular(2, 3).unwrap();
    let advice = tuning.advice(Collective::Allreduce, &topology, 8);
    assert_eq!(advice[0].server.to_string(), "ring");
    let line = |at_8: f64, at_4: f64| {
        let part = (3.0f64 / 2.0).log2();
        (at_8.ln() * part + at_4.ln() * (1.0 - part)).exp()
    };
    // One more than the steps, and what the bytes add: 8 of them in each step.
    let byte = 8.0 / 4096.0;
    let unlike = (5.0 + 4.0 * byte) / line(4.0 + 3.0 * byte, 3.0 + 2.0 * byte);
    assert!((advice[1].microseconds / (line(2.0, 1.0) * unlike) - 1.0).abs() < 1e-6, "{advice:?}");
    assert_eq!(best(&tuning, 2, 4, 8).unwrap().0, "recursive-doubling");
    // What MPI does there nobody knows: as the best of the others does.
    let known = |mpi, doubling| [("mpi", mpi), ("recursive-doubling", doubling)];
    let tuning = file(&[cell((2, 4), 8, &known(1.9, 2.0)), cell((2, 2), 8, &known(0.95, 1.0))]);
    let advice = tuning.advice(Collective::Allreduce, &topology, 8);
    assert_eq!(advice[0].server, Server::Library);
    assert!((advice[0].microseconds / (line(1.9, 0.95) * unlike) - 1.0).abs() < 1e-6, "{advice:?}");
}

#[test]
fn the_mpis_own_changes_as_the_best_of_the_others_and_not_as_the_worst() {
    // A ring is as a line says, recursive doubling is not: where the ring is the best, the MPI's own is taken for no worse.
    let times = |mpi, ring, doubling| [("mpi", mpi), ("ring", ring), ("recursive-doubling", doubling)];
    let tuning = file(&[cell((2, 4), 8, &times(1.9, 2.0, 2.0)), cell((2, 2), 8, &times(0.95, 1.0, 1.0))]);
    let advice = tuning.advice(Collective::Allreduce, &Topology::regular(2, 3).unwrap(), 8);
    let names: Vec<String> = advice.iter().map(|advice| advice.server.to_string()).collect();
    assert_eq!(names, ["mpi", "ring", "recursive-doubling"]);
    assert!((advice[0].microseconds / advice[1].microseconds - 0.95).abs() < 1e-9, "{advice:?}");
}

#[test]
fn the_shapes_own_numbers_are_carried_to_other_shapes() {
    let read = |collective, name| Server::parse(collective, name).unwrap();
    for (collective, name, there) in [
        (Collective::Allreduce, "mpi", Some("mpi")),
        (Collective::Allreduce, "nap:local=shared", Some("nap:local=shared")),
        (Collective::Bcast, "cyclic-shift:radix=4", Some("cyclic-shift:radix=3")),
        (Collective::Bcast, "cyclic-shift:radix=8", Some("cyclic-shift:radix=6")),
        (
            Collective::Allgather,
            "multi-leader:leaders=4:level=1:local=shared",
            Some("multi-leader:leaders=3:level=1:local=shared"),
        ),
        (
            Collective::Allreduce,
            "cyclic-shift:phases=2(-1,1):local=shared",
            Some("cyclic-shift:phases=2(-1,1):local=shared"),
        ),
        (Collective::Bcast, "cyclic-shift:radix=5", None),
    ] {
        let carried = super::advice::carried(&read(collective, name), (2, 4), (2, 3));
        assert_eq!(carried, there.map(|there| read(collective, there)), "{name}");
    }
    // All at once, with 4 ranks; with 2 that is the default, and known by its name.
    let bcast = |shape, times: &[(&str, f64)]| Cell { collective: "bcast".into(), ..cell(shape, 64, times) };
    let tuning = file(&[
        bcast((1, 4), &[("cyclic-shift:radix=4", 1.0), ("binomial", 2.0), ("cyclic-shift", 2.0)]),
        bcast((1, 2), &[("binomial", 1.0), ("cyclic-shift", 0.9)]),
    ]);
    let advice = tuning.advice(Collective::Bcast, &Topology::regular(1, 3).unwrap(), 64);
    assert_eq!(advice[0].server.to_string(), "cyclic-shift:radix=3", "{advice:?}");
}

#[test]
fn what_only_one_shape_knows_is_no_faster_than_half_of_the_others_on_the_other() {
    let tuning = file(&[
        cell((2, 4), 8, &[("ring", 1.0), ("smp", 1.1), ("tree", 8.0)]),
        cell((2, 2), 8, &[("smp", 1.1), ("tree", 8.0)]),
    ]);
    assert_eq!(best(&tuning, 2, 3, 8).unwrap().0, "smp");
}

#[test]
fn damaged_and_foreign_files_are_told_apart() {
    let said = |text: &str| text.parse::<Tuning>().unwrap_err().to_string();
    let good = file(&[cell((2, 4), 8, &[("nap", 1.5)])]).to_string();
    let half = &good[..good.len() / 2];
    assert!(said(half).starts_with("this is not a tuning file: line"), "{}", said(half));
    let two = file(&[cell((2, 4), 8, &[("nap", 1.5)]), cell((2, 4), 64, &[("ring", 3.0)])]).to_string();
    let one = &two[..two.rfind("[[cell]]").unwrap()];
    assert!(said(one).contains("says that it has 2 cells, but 1 are there"), "{}", said(one));
    assert!(said("hello").contains("make one with `allhands tune`"));
    assert!(said("").contains("schema"));
    assert!(said(&good.replace("schema = 1", "schema = 7")).contains("schema 7"));
    let nonsense = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        said(&good.replace(from, to))
    };
    assert!(nonsense("nap", "warp-drive").contains("cell 1 of this tuning file (allreduce on 2x4 at 8 bytes)"));
    assert!(nonsense("median_us = 1.5", "median_us = -1.0").contains("nap took -1 us"));
    assert!(nonsense("\"allreduce\"", "\"allsing\"").contains("there is no collective allsing"));
    assert!(nonsense("nodes = 2", "knots = 2").contains("knots"));
}

#[test]
fn files_merge_and_the_later_one_wins_among_equals() {
    let mut one = file(&[cell((2, 4), 8, &[("nap", 1.0)]), cell((2, 4), 64, &[("nap", 2.0)])]);
    one.merge(file(&[cell((2, 4), 64, &[("nap", 1.5)]), cell((2, 4), 512, &[("ring", 3.0)])])).unwrap();
    assert_eq!(one.cells.len(), 3);
    assert_eq!(best(&one, 2, 4, 64), Some(("nap".into(), 1.5)));
    assert!(one.merge(Tuning::new("Open MPI")).unwrap_err().to_string().contains("threads and Open MPI"));
    let again: Tuning = one.to_string().parse().unwrap();
    assert_eq!(again.cells, one.cells);
}

#[test]
fn more_samples_win_and_the_rest_is_scaled() {
    let mut sure = cell((2, 4), 64, &[("nap", 2.0), ("tree", 4.0)]);
    sure.times.iter_mut().for_each(|time| time.samples = 100);
    // A machine twice as slow that day; it alone knows ring and smp.
    let slow = cell((2, 4), 64, &[("ring", 3.0), ("nap", 4.0), ("tree", 8.0), ("smp", 10.0)]);
    for swapped in [false, true] {
        let (mut one, other) = (file(std::slice::from_ref(&sure)), file(std::slice::from_ref(&slow)));
        if swapped {
            let mut merged = other;
            merged.merge(one).unwrap();
            one = merged;
        } else {
            one.merge(other).unwrap();
        }
        let times: Vec<(&str, f64, usize)> =
            one.cells[0].times.iter().map(|time| (time.algorithm.as_str(), time.median_us, time.samples)).collect();
        assert_eq!(times, [("ring", 1.5, 1), ("nap", 2.0, 100), ("tree", 4.0, 100), ("smp", 5.0, 1)]);
    }
}

#[test]
fn facts_of_merged_files_stand_side_by_side() {
    let told = |host: &str| {
        let mut tuning = Tuning::new("threads");
        tuning.about.insert("host".into(), host.into());
        tuning
    };
    let mut merged = told("a");
    for host in ["b", "a", "b"] {
        merged.merge(told(host)).unwrap();
    }
    assert_eq!(merged.about["host"], "a; b");
}
