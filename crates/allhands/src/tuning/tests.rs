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

#[test]
fn a_file_survives_being_written_and_read() {
    let mut tuning = file(&[cell((2, 4), 8, &[("nap", 1.5), ("mpi", 2.0)]), cell((2, 4), 64, &[("ring", 3.0)])]);
    tuning.about.insert("date".into(), "2026-11-15".into());
    let read: Tuning = tuning.to_string().parse().unwrap();
    assert_eq!((read.cells, read.about, read.transport), (tuning.cells, tuning.about, tuning.transport));
}

/// Cells around a place: their shapes, sizes and how much they count, all together 1.
fn around(tuning: &Tuning, topology: &str, bytes: usize) -> Vec<(usize, usize, usize, f64)> {
    let near = tuning.around(Collective::Allreduce, &topology.parse().unwrap(), bytes);
    let all: f64 = near.iter().map(|near| near.weight).sum();
    let of = |near: &Near<'_>| {
        (near.cell.nodes, near.cell.ranks_per_node, near.cell.bytes, (near.weight / all * 1e6).round() / 1e6)
    };
    near.iter().map(of).collect()
}

#[test]
fn between_places_the_nearest_count_and_far_away_nothing_does() {
    let cells = [(2, 4, 16), (2, 4, 256), (8, 4, 16), (2, 2, 16), (1, 8, 16)];
    let tuning = file(&cells.map(|(nodes, ranks, bytes)| cell((nodes, ranks), bytes, &[("nap", 1.0)])));
    assert_eq!(around(&tuning, "2x4", 16), [(2, 4, 16, 1.0)]);
    assert_eq!(around(&tuning, "2x4", 32), [(2, 4, 16, 0.75), (2, 4, 256, 0.25)]);
    assert_eq!(around(&tuning, "2x4", 4), [(2, 4, 16, 1.0)]);
    assert_eq!(around(&tuning, "2x4", 3), []);
    assert_eq!(around(&tuning, "2x4", 1024), [(2, 4, 256, 1.0)]);
    assert_eq!(around(&tuning, "2x4", 1025), []);
    assert_eq!(around(&tuning, "4x4", 16), [(2, 4, 16, 0.5), (8, 4, 16, 0.5)]);
    let [one, other] = around(&tuning, "2x3", 16)[..] else { panic!("two shapes are near") };
    assert_eq!(((one.0, one.1), (other.0, other.1)), ((2, 4), (2, 2)));
    assert!(one.3 > other.3 && (one.3 + other.3 - 1.0).abs() < 1e-5, "{one:?} {other:?}");
    assert_eq!(around(&tuning, "64x4", 16), []);
    assert_eq!(around(&tuning, "7", 16), [(1, 8, 16, 1.0)], "one node is another machine than several");
    assert_eq!(around(&tuning, "2,4", 16), [(2, 4, 16, 1.0)]);
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
    let cell = one.cell(Collective::Allreduce, &"2x4".parse().unwrap(), 64).unwrap();
    assert_eq!(cell.known()[0], (Server::parse(Collective::Allreduce, "nap").unwrap(), 1.5));
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
