//! Many cases inside one running job: the communicator is reseated, split, and used for several collectives at once.
//!
//! Every rank draws the same numbers, so all of them serve the same case without having to tell each other.

use std::collections::BTreeSet;

use allhands::{Comm, Result, Topology};
use allhands_schedule::{Algorithm, Collective, algorithms};

use super::case::{Case, Kind};
use super::player::{Ending, How, Play};
use super::sample::Random;
use super::{barrier, seats};

/// What a job served.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) cases: usize,
    /// Algorithms, each counted once for every collective that it serves.
    pub(crate) algorithms: usize,
    /// Those that cannot serve this number of ranks, however they sit.
    pub(crate) impossible: Vec<String>,
}

/// What is done with a case.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    /// Every way of running a plan, by turns, and calls without one.
    Ways,
    /// Hundreds of runs with nothing between them.
    BackToBack,
    /// Messages of 100 KB and of 3 MB.
    Large,
    /// Results that nobody waits for.
    Lost,
    /// On parts of the communicator.
    Split,
    /// Together with other collectives, on this communicator and on parts of it.
    Together,
}

const SCENARIOS: [Scenario; 8] = [
    Scenario::Ways,
    Scenario::Ways,
    Scenario::Ways,
    Scenario::BackToBack,
    Scenario::Large,
    Scenario::Lost,
    Scenario::Split,
    Scenario::Together,
];

/// Serves at least `cases` cases, and every algorithm of every collective at least once if it can serve so many ranks at all.
pub(crate) fn job(world: &Comm, seed: u64, cases: usize) -> Result<Report> {
    let mut random = Random(seed);
    let pairs: Vec<(Collective, &'static Algorithm)> = Collective::ALL
        .into_iter()
        .flat_map(|collective| algorithms(collective).map(move |algorithm| (collective, algorithm)))
        .collect();
    let (mut served, mut impossible) = (BTreeSet::new(), BTreeSet::new());
    let mut seated = world.seated(world.topology().clone())?;
    let mut done = 0;
    // Every round begins elsewhere: what follows what differs, and a job that is cut short still sees all of them.
    for round in 0.. {
        if round > 0 && done >= cases {
            break;
        }
        let first = random.below(pairs.len());
        for index in 0..pairs.len() {
            if round > 0 && done >= cases {
                break;
            }
            let (collective, algorithm) = pairs[(first + index) % pairs.len()];
            let key = (collective.name(), algorithm.name);
            if impossible.contains(&key) {
                continue;
            }
            let scenario = random.pick(&SCENARIOS);
            let Some(case) = find(&mut random, seated.topology(), collective, algorithm, scenario) else {
                impossible.insert(key);
                continue;
            };
            if case.topology != *seated.topology() {
                seated = world.seated(case.topology.clone())?;
            }
            let outcome = serve(&case, scenario, world, &seated, &mut random);
            outcome.inspect_err(|error| {
                let (rank, ranks) = (world.rank(), world.size());
                let line = format!("conformance: rank {rank} of {ranks}: {case}, {scenario:?}: {error}\n");
                eprint!("{line}");
            })?;
            served.insert(key);
            done += 1;
        }
    }
    assert!(served.is_disjoint(&impossible) && served.len() + impossible.len() == pairs.len(), "one is missing");
    let impossible = impossible.into_iter().map(|(collective, name)| format!("{collective} {name}")).collect();
    Ok(Report { cases: done, algorithms: served.len(), impossible })
}

/// A case for the present seats, or for others; `None` when there are none on which the algorithm could serve.
fn find(
    random: &mut Random,
    present: &Topology,
    collective: Collective,
    algorithm: &'static Algorithm,
    scenario: Scenario,
) -> Option<Case> {
    let p = present.ranks();
    for attempt in 0..40 {
        let stay = attempt < 3 && random.below(2) == 0;
        let topology = if stay { present.clone() } else { seats::draw(random, p) };
        let kind = if collective.reduces() && random.below(4) == 0 { Kind::ComposeU64 } else { Kind::draw(random) };
        let size = size(random, scenario, kind);
        if let Some(case) = Case::draw(random, topology, collective, algorithm, kind, size) {
            return Some(case);
        }
    }
    // Chance alone must not leave an algorithm out.
    let kind = Kind::SumI64;
    let size = size(random, scenario, kind);
    seats::all(p).into_iter().find_map(|topology| {
        (0..20).find_map(|_| Case::draw(random, topology.clone(), collective, algorithm, kind, size))
    })
}

/// About how many elements a vector has.
fn size(random: &mut Random, scenario: Scenario, kind: Kind) -> usize {
    match scenario {
        Scenario::Large => random.pick(&[100_000, 100_000, 100_000, 3_000_000]) / kind.bytes(),
        Scenario::BackToBack => random.pick(&[0, 1, 2, 8, 33]),
        _ => random.pick(&[0, 1, 2, 3, 8, 33, 257, 700]),
    }
}

fn serve(case: &Case, scenario: Scenario, world: &Comm, seated: &Comm, random: &mut Random) -> Result<()> {
    if case.collective == Collective::Barrier {
        return barrier::check(case, seated);
    }
    match scenario {
        Scenario::Ways => ways(case, seated, 7),
        Scenario::BackToBack => case.player(seated)?.back_to_back(200),
        Scenario::Large => ways(case, seated, 3),
        Scenario::Lost => lost(case, seated),
        Scenario::Split => {
            let part = part(seated, random)?;
            let (mut fork, at) = (random.fork(part.color), part.comm.topology().clone());
            match another(&mut fork, at, case.collective) {
                Some(inner) => ways(&inner, &part.comm, 6)?,
                None => part.comm.barrier()?,
            }
            // The whole still works while the part is there.
            ways(case, seated, 2)
        }
        Scenario::Together => together(case, world, seated, random),
    }
}

/// Every way by turns; then twice by a call, whose second plan is the first one's.
fn ways(case: &Case, comm: &Comm, runs: usize) -> Result<()> {
    let mut player = case.player(comm)?;
    for run in 0..runs {
        player.run(How::of(run), run)?;
    }
    player.call(comm, runs)?;
    player.call(comm, runs + 1)
}

fn lost(case: &Case, comm: &Comm) -> Result<()> {
    let mut player = case.player(comm)?;
    for run in 0..6 {
        player.lose(2 * run)?;
        player.run(How::of(run), 2 * run + 1)?;
    }
    // The plan ends with a run under way.
    player.lose(12)
}

struct Part {
    comm: Comm,
    color: u64,
}

/// Every second rank, the node, or everybody the other way round.
fn part(comm: &Comm, random: &mut Random) -> Result<Part> {
    let me = comm.rank() as u64;
    let (color, key) = match random.below(3) {
        0 => (me % 2, me),
        1 => (comm.topology().region_of(1, comm.rank()) as u64, me),
        _ => (0, comm.size() as u64 - me),
    };
    Ok(Part { comm: comm.split(color, key)?, color })
}

/// A small case of any algorithm that serves these seats.
fn another(random: &mut Random, topology: Topology, collective: Collective) -> Option<Case> {
    let known: Vec<&'static Algorithm> = algorithms(collective).collect();
    (0..20).find_map(|_| {
        let (algorithm, kind) = (random.pick(&known), Kind::draw(random));
        let size = size(random, Scenario::Ways, kind);
        Case::draw(random, topology.clone(), collective, algorithm, kind, size)
    })
}

/// Three collectives under way on three communicators, tested and waited for in another order on every rank.
fn together(case: &Case, world: &Comm, seated: &Comm, random: &mut Random) -> Result<()> {
    let part = part(seated, random)?;
    let movers: Vec<Collective> = Collective::ALL.into_iter().filter(|one| *one != Collective::Barrier).collect();
    let collective = random.pick(&movers);
    let on_world = another(random, world.topology().clone(), collective);
    let on_part = another(&mut random.fork(part.color), part.comm.topology().clone(), collective);
    let mut players: Vec<Box<dyn Play>> = vec![case.player(seated)?];
    for (case, comm) in [(on_world, world), (on_part, &part.comm)] {
        if let Some(case) = case {
            players.push(case.player(comm)?);
        }
    }
    for run in 0..8 {
        let mut under_way: Vec<Box<dyn Ending + '_>> =
            players.iter_mut().map(|player| player.start(run)).collect::<Result<_>>()?;
        let turn = (seated.rank() + run) % under_way.len();
        under_way.rotate_left(turn);
        if seated.rank() % 3 == 1 {
            under_way.reverse();
        }
        if let Some(last) = under_way.last_mut() {
            last.test()?;
        }
        if run % 2 == 1 {
            // A blocking collective while others are under way.
            world.barrier()?;
        }
        under_way.into_iter().try_for_each(|pending| pending.wait())?;
        players.iter().for_each(|player| player.check(run));
    }
    Ok(())
}
