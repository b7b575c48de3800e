//! Which steps a search tries, and how it changes them.

use allhands_schedule::{Choice, Grid, Kind, Move, Step};

/// Distances up to here are all tried; beyond, powers of two and what divides evenly.
const ALL_UP_TO: usize = 8;

/// Distances below a number.
fn distances(below: usize) -> Vec<usize> {
    let worth = |distance: &usize| {
        below <= ALL_UP_TO || distance.is_power_of_two() || below.is_multiple_of(*distance) || *distance == below - 1
    };
    (1..below).filter(worth).collect()
}

/// How many are asked at once: none or few, or all.
fn at_once(most: usize) -> Vec<Option<usize>> {
    let mut times: Vec<usize> = [2, 3, 4, 7, 15, most].into_iter().filter(|times| (2..=most).contains(times)).collect();
    times.sort_unstable();
    times.dedup();
    std::iter::once(None).chain(times.into_iter().map(Some)).collect()
}

fn moves(kind: Kind, below: usize) -> Vec<Move> {
    let one = |stride: usize| {
        let times = at_once((below - 1) / stride);
        times.into_iter().map(move |times| Move { kind, stride, times })
    };
    distances(below).into_iter().flat_map(one).collect()
}

/// Fans of as many regions as there are seats, as one less, and as several ports reach; strides as windows grow.
fn fans(grid: Grid) -> Vec<Move> {
    let Grid { regions, seats } = grid;
    let mut fans = Vec::new();
    let grown = [seats, seats + 1, 2 * seats, 2 * seats + 1].into_iter().flat_map(|factor| {
        std::iter::successors(Some(1), move |stride| Some(stride * factor.max(2)))
            .take_while(|stride| *stride < regions)
    });
    let mut strides: Vec<usize> = grown.chain(distances(regions)).collect();
    strides.sort_unstable();
    strides.dedup();
    for stride in strides {
        let reached = (regions - 1) / stride;
        let mut times =
            vec![1, 2, 3, seats.saturating_sub(1), seats, 2 * seats - 1, 2 * seats, 3 * seats, 4 * seats, reached];
        times.retain(|times| (1..=reached.max(1)).contains(times));
        times.sort_unstable();
        times.dedup();
        fans.extend(times.into_iter().map(|times| Move { kind: Kind::Fan, stride, times: Some(times) }));
    }
    fans
}

/// The steps that are worth trying after any others.
pub(super) fn worth_trying(grid: Grid, shares: bool, sums: bool) -> Vec<Step> {
    let Grid { regions, seats } = grid;
    let near = if shares { Vec::new() } else { moves(Kind::Near, seats) };
    let mut far = moves(Kind::Far, regions);
    // On a region of one rank all of these are the same.
    if seats > 1 {
        far.extend(fans(grid));
    }
    let lanes = if sums || seats == 1 { Vec::new() } else { moves(Kind::Lane, regions) };
    let single = |one: &Move| one.times.is_none();
    let mut steps: Vec<Step> = near.iter().chain(&far).chain(&lanes).map(|one| Step::Talk(vec![*one])).collect();
    // Near and far at the same time, one of each.
    let both = far.iter().filter(|one| one.kind == Kind::Far).chain(&lanes).filter(|one| single(one));
    for (beside, near) in both.flat_map(|one| near.iter().filter(|near| single(near)).map(move |near| (one, near))) {
        steps.push(Step::Talk(vec![*beside, *near]));
    }
    if shares && seats > 1 {
        steps.push(Step::Share);
    }
    steps
}

/// The same with one of its steps left out, doubled, exchanged with the next, done together with it, or with another number in it.
pub(super) fn changed(choice: &Choice) -> Vec<Choice> {
    let Some(setting) = choice.parameters.setting("steps") else { return Vec::new() };
    let text = setting.to_string();
    let Ok(steps) = text.split(',').map(str::parse).collect::<Result<Vec<Step>, _>>() else { return Vec::new() };
    let mut others: Vec<Vec<Step>> = Vec::new();
    for place in 0..steps.len() {
        let with = |new: &[Step], taken: usize| [&steps[..place], new, &steps[place + taken..]].concat();
        others.push(with(&[], 1));
        if let Some(next) = steps.get(place + 1) {
            others.push(with(&[next.clone(), steps[place].clone()], 2));
            if let (Step::Talk(one), Step::Talk(other)) = (&steps[place], next) {
                others.push(with(&[Step::Talk([one.clone(), other.clone()].concat())], 2));
            }
        }
        let Step::Talk(moves) = &steps[place] else { continue };
        for (index, one) in moves.iter().enumerate() {
            let mut set = |other: Move| {
                let mut moves = moves.clone();
                moves[index] = other;
                others.push(with(&[Step::Talk(moves)], 1));
            };
            for stride in [one.stride - 1, one.stride + 1, 2 * one.stride, one.stride / 2] {
                if stride > 0 {
                    set(Move { stride, ..*one });
                }
            }
            let times = one.times.unwrap_or(1);
            for times in [times - 1, times + 1, 2 * times] {
                if times > 0 {
                    set(Move { times: Some(times), ..*one });
                }
            }
            for kind in [Kind::Far, Kind::Lane].into_iter().filter(|kind| one.kind != Kind::Near && *kind != one.kind) {
                set(Move { kind, ..*one });
            }
        }
    }
    let named = |steps: Vec<Step>| {
        let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let old = format!("steps={text}");
        let name = choice.to_string().replace(&old, &format!("steps={}", steps.join(",")));
        Choice::parse(choice.algorithm.collective, &name).ok()
    };
    others.into_iter().filter(|steps| !steps.is_empty()).filter_map(named).collect()
}
