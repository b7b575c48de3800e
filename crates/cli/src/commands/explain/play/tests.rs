//! What the page is given is what was counted elsewhere.

use allhands_schedule::Counts;

use super::*;

fn view(problem: &Problem, machine: &Machine) -> Data {
    let view = FirstView {
        problem,
        shape: "asked".into(),
        choice: None,
        bytes: None,
        allowance: Allowance::default(),
        machine,
    };
    data(&view).unwrap()
}

fn problem(collective: Collective, topology: &str) -> Problem {
    Problem::new(collective, topology.parse().unwrap())
}

fn score(collective: Collective, algorithm: &str, topology: &str) -> (Problem, Score) {
    let problem = problem(collective, topology);
    let prepared = Choice::parse(collective, algorithm).unwrap().prepare(&problem).unwrap();
    let score = Score::new(&prepared, &Machine::shipped("lassen").unwrap(), &[8]).unwrap();
    (problem, score)
}

/// Sender, receiver and weight of all messages, step by step.
fn messages(score: &Score) -> Vec<Vec<(usize, usize, usize)>> {
    let mut numbers = code::numbers(&score.messages).into_iter();
    let mut next = || numbers.next().expect("another number");
    let mut steps = Vec::new();
    for _ in 0..score.steps {
        let (count, mut from) = (next(), 0);
        let message = |_| {
            from += next();
            (from, next(), next())
        };
        steps.push((0..count).map(message).collect());
    }
    assert_eq!(numbers.next(), None);
    steps
}

/// Messages and weight: near, far.
fn totals(problem: &Problem, score: &Score) -> [(usize, usize); 2] {
    let mut totals = [(0, 0); 2];
    for (from, to, weight) in messages(score).into_iter().flatten() {
        let side = &mut totals[usize::from(problem.topology.far(from, to))];
        *side = (side.0 + 1, side.1 + weight);
    }
    totals
}

/// The step, how it came, and the contributions of what every cell of every rank holds in the end.
fn ends(problem: &Problem, score: &Score) -> Vec<Vec<(usize, usize, u32)>> {
    let mut numbers = code::numbers(&score.cells).into_iter();
    let mut next = || numbers.next().expect("another number");
    let mut cell = || {
        if !problem.collective.reduces() {
            let code = next();
            return (code.saturating_sub(1) / 3, code.saturating_sub(1) % 3, u32::from(code > 0));
        }
        let mut end = (0, 0, 1);
        for _ in 0..next() {
            let (code, set) = (next(), &score.sets[next()]);
            end = (end.0 + code / 3, code % 3, set.chunks(2).map(|run| run[1] - run[0]).sum());
        }
        end
    };
    let ends = (0..problem.ranks()).map(|_| (0..score.rows).map(|_| cell()).collect()).collect();
    assert_eq!(numbers.next(), None);
    ends
}

#[test]
fn counts_of_known_schedules() {
    // Distances 1, 2, 4 and 8 with as many blocks: 4, 8, 16 and 16 of 16 ranks cross nodes of 4.
    let (problem, bruck) = score(Collective::Allgather, "bruck", "4x4");
    assert_eq!(totals(&problem, &bruck), [(20, 28), (44, 212)]);
    assert_eq!(messages(&bruck).iter().map(Vec::len).collect::<Vec<_>>(), [16; 4]);
    let (problem, loc_bruck) = score(Collective::Allgather, "loc-bruck", "4x4");
    // One rank of a node has nothing to fetch.
    assert_eq!(totals(&problem, &loc_bruck)[1], (12, 48));
    let (problem, ring) = score(Collective::Allgather, "ring", "4x4");
    assert_eq!((ring.steps, totals(&problem, &ring)), (15, [(180, 180), (60, 60)]));
    let (problem, nap) = score(Collective::Allreduce, "nap", "4x4");
    assert_eq!(totals(&problem, &nap)[1], (12, 12));
    let (problem, pairwise) = score(Collective::Alltoall, "pairwise", "2x4");
    assert_eq!((pairwise.steps, totals(&problem, &pairwise)), (7, [(24, 24), (32, 32)]));
}

#[test]
fn cells_say_when_and_how_a_block_came() {
    // On a ring the block of the rank before comes first; rank 0 and rank 2 are the first of their nodes.
    let (problem, ring) = score(Collective::Allgather, "ring", "2x2");
    let all = ends(&problem, &ring);
    assert_eq!(all[0], [(0, 0, 1), (3, 2, 1), (2, 2, 1), (1, 2, 1)]);
    assert_eq!(all[1], [(1, 1, 1), (0, 0, 1), (3, 1, 1), (2, 1, 1)]);
    let (problem, tree) = score(Collective::Reduce, "binomial", "4x1");
    let all = ends(&problem, &tree);
    assert_eq!((all[0][0], all[1][0], all[2][0], all[3][0]), ((2, 2, 4), (0, 0, 1), (1, 2, 2), (0, 0, 1)));
    let (_, shared) = score(Collective::Allgather, "loc-bruck:local=shared", "2x2");
    assert!(shared.shares && shared.cells.len() >= 16);
}

/// Every schedule of the pages has the messages that were counted, and every result in the end.
#[test]
fn every_schedule_is_complete_and_counted_alike() {
    let machine = Machine::shipped("generic").unwrap();
    for collective in Collective::ALL.into_iter().filter(|one| one.family() == *one) {
        let asked = problem(collective, "2,3,1");
        let Data { shapes, sizes, .. } = view(&asked, &machine);
        for (shape, (name, problem)) in shapes.iter().zip(others(&asked, &machine)) {
            assert_eq!((&shape.name, shape.ranks), (&name, problem.ranks()));
            assert!(!shape.scores.is_empty(), "{collective} on {name}");
            for score in &shape.scores {
                let text = [&*score.algorithm, &*score.setting].join(":");
                let ensemble = Choice::parse(collective, text.trim_end_matches(':'))
                    .unwrap()
                    .prepare(&problem)
                    .unwrap()
                    .ensemble();
                let sent = ensemble.schedules.iter().map(|schedule| Counts::of(&problem, schedule));
                let counted = sent.fold([(0, 0); 2], |[near, far], counts| {
                    let add = |(messages, blocks), traffic: allhands_schedule::Traffic| {
                        (messages + traffic.messages, blocks + traffic.blocks)
                    };
                    [add(near, counts.near_sent), add(far, counts.far_sent)]
                });
                assert_eq!(totals(&problem, score), counted, "{collective} {text} on {name}");
                complete(&problem, score, &format!("{collective} {text} on {name}"));
                assert_eq!(score.us.len(), sizes.len());
            }
        }
    }
}

fn others(asked: &Problem, machine: &Machine) -> Vec<(String, Problem)> {
    let (shape, allowance) = ("asked".into(), Allowance::default());
    problems(&FirstView { problem: asked, shape, choice: None, bytes: None, allowance, machine }).unwrap()
}

fn complete(problem: &Problem, score: &Score, what: &str) {
    for (rank, cells) in ends(problem, score).into_iter().enumerate() {
        for (row, (step, how, contributions)) in cells.into_iter().enumerate() {
            let wanted = match problem.collective.family() {
                _ if problem.graph.is_some() => {
                    problem.graph.as_ref().is_some_and(|graph| graph.sources(rank).any(|source| source == row))
                }
                Collective::ReduceScatter | Collective::Scatter => rank == row / score.pieces,
                Collective::Reduce | Collective::Gather => rank == problem.root,
                _ => true,
            };
            let all = match problem.collective {
                Collective::Scan => rank + 1,
                // A rank begins with its own, and may pass on what it got with that.
                Collective::Exscan if contributions == rank as u32 + 1 => rank + 1,
                Collective::Exscan => rank,
                collective if collective.reduces() => problem.ranks(),
                _ => 1,
            } as u32;
            assert!(!wanted || contributions == all, "{what}: cell {row} of rank {rank} has {contributions} of {all}");
            assert!(step <= score.steps && how < 3, "{what}");
        }
    }
}

#[test]
fn a_page_stands_alone_and_is_not_heavy() {
    let machine = Machine::shipped("generic").unwrap();
    for collective in [Collective::Allgather, Collective::Alltoall, Collective::Allreduce, Collective::ReduceScatter] {
        let problem = problem(collective, "4x16");
        let (shape, allowance) = ("4x16".into(), Allowance::default());
        let view =
            FirstView { problem: &problem, shape, choice: None, bytes: Some(1000), allowance, machine: &machine };
        let page = page(&view).unwrap();
        assert!(page.len() < 3 << 20, "{collective}: {} bytes", page.len());
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http:") && !elsewhere.contains("https:") && !page.contains("src="));
        assert!(!page.contains("{data}") && page.matches("</script>").count() == 2);
    }
}

#[test]
fn counts_and_roots_stay_where_they_belong() {
    let machine = Machine::shipped("generic").unwrap();
    let uneven = problem(Collective::Allgatherv, "2x2").with_counts(vec![3, 0, 1, 5]).unwrap();
    let Data { shapes, .. } = view(&uneven, &machine);
    let [shape] = &shapes[..] else { panic!("{} shapes", shapes.len()) };
    let ring = shape.scores.iter().find(|score| score.algorithm == "ring").unwrap();
    assert_eq!(totals(&uneven, ring).iter().map(|side| side.1).sum::<usize>(), 3 * 9);
    let rooted = problem(Collective::Bcast, "4x4").with_root(9).unwrap();
    let roots: Vec<_> = view(&rooted, &machine).shapes.iter().map(|shape| (shape.ranks, shape.root)).collect();
    assert!(roots.iter().all(|&(ranks, root)| root == if ranks > 9 { 9 } else { 0 }), "{roots:?}");
}

#[test]
fn what_was_asked_for_comes_first() {
    let (problem, machine) = (problem(Collective::Allgather, "2x4"), Machine::shipped("lassen").unwrap());
    let choice = Choice::parse(Collective::Allgather, "bruck:ports=2,1,1").unwrap();
    let (choice, allowance) = (Some(&choice), Allowance::default());
    let view =
        FirstView { problem: &problem, shape: "2x4".into(), choice, bytes: Some(1000), allowance, machine: &machine };
    let data = data(&view).unwrap();
    assert_eq!(data.asked, Some(["bruck".into(), "ports=2,1,1".into()]));
    assert_eq!(data.sizes[data.size], 1000);
    assert_eq!(data.shapes.iter().filter(|shape| shape.name == "2x4").count(), 1);
    let has = |shape: &Shape| shape.scores.iter().any(|score| score.setting == "ports=2,1,1");
    assert!(has(&data.shapes[0]) && !has(&data.shapes[1]));
}
