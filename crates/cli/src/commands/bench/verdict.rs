//! What a bench comes to, in one sentence.

use std::collections::BTreeMap;

use allhands_schedule::draw::Sizes;

use super::report::Timing;

/// Of lines that are sorted by size, the fastest of each first.
pub(super) fn verdict(lines: &[Timing]) -> String {
    let sizes: Vec<&[Timing]> = lines.chunk_by(|one, other| one.bytes == other.bytes).collect();
    let several = sizes.iter().any(|size| size.len() > 1);
    let (auto, mpi) = (lines.iter().any(Timing::is_auto), lines.iter().any(Timing::is_mpi));
    let ours = lines.iter().any(|line| !line.is_mpi());
    match (several, auto, mpi && ours) {
        (false, ..) => "Only one was measured: there is nothing to compare it with.".into(),
        (_, true, true) => beside_mpi("auto", &sizes, Timing::is_auto),
        (_, false, true) => beside_mpi("the best of ours", &sizes, |line| !line.is_mpi()),
        (_, true, false) => beside_the_best(&sizes),
        (_, false, false) => winners(&sizes),
    }
}

/// How many times as fast as the MPI's own the first that is meant is at every size, and where it is slower.
fn beside_mpi(who: &str, sizes: &[&[Timing]], meant: impl Fn(&Timing) -> bool) -> String {
    let meant: Vec<&Timing> = sizes.iter().filter_map(|size| size.iter().find(|line| meant(line))).collect();
    let times: Vec<f64> = meant.iter().filter_map(|line| line.times_mpi).collect();
    let slower = meant.iter().filter(|line| line.slower_than_mpi);
    let slower: Vec<String> =
        slower.map(|line| format!("{} ({:.2})", size(line), line.times_mpi.unwrap_or(1.0))).collect();
    format!("On average {who} is {}.", worth(&times, "the MPI's own", &slower))
}

/// `1.62 times as fast as the MPI's own, and slower nowhere`: the geometric mean, and where that does not hold.
pub(in crate::commands) fn worth(times: &[f64], whom: &str, slower: &[String]) -> String {
    let mean = (times.iter().map(|times| times.ln()).sum::<f64>() / times.len().max(1) as f64).exp();
    let slower = match slower {
        [] => "and slower nowhere".into(),
        places => format!("but slower at {}", joined(places)),
    };
    format!("{mean:.2} times as fast as {whom}, {slower}")
}

fn beside_the_best(sizes: &[&[Timing]]) -> String {
    let auto: Vec<&Timing> = sizes.iter().filter_map(|size| size.iter().find(|line| line.is_auto())).collect();
    let best = auto.iter().filter(|line| line.ties_with_best).count();
    let worst = auto.iter().filter(|line| !line.ties_with_best);
    let worst = worst.max_by(|one, other| one.ratio_to_best.total_cmp(&other.ratio_to_best));
    let of = if auto.len() == 1 { "size".into() } else { format!("{} sizes", auto.len()) };
    let best = match best {
        0 => format!(
            "auto is slower than the fastest at {}",
            if auto.len() == 1 { format!("this {of}") } else { format!("all {of}") }
        ),
        all if all == auto.len() && all == 1 => "auto is the fastest, or ties with it".into(),
        all if all == auto.len() => format!("auto is the fastest, or ties with it, at all {of}"),
        some => format!("auto is the fastest, or ties with it, at {some} of {of}"),
    };
    match worst {
        None => format!("{}.", capital(&best)),
        Some(line) => {
            format!("{}; at worst it takes {:.2} times as long, at {}.", capital(&best), line.ratio_to_best, size(line))
        }
    }
}

fn winners(sizes: &[&[Timing]]) -> String {
    let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
    for size in sizes {
        *wins.entry(&size[0].algorithm).or_default() += 1;
    }
    let mut wins: Vec<(&str, usize)> = wins.into_iter().collect();
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let ties = sizes.iter().filter(|size| size[1..].iter().any(|line| line.ties_with_best)).count();
    let wins: Vec<String> = wins.iter().map(|(name, count)| format!("{name} at {count}")).collect();
    let ties = if ties > 0 { format!(", with ties at {ties}") } else { String::new() };
    format!("Of {} the fastest is {}{ties}.", crate::screen::counted(sizes.len(), "size"), joined(&wins))
}

fn size(line: &Timing) -> String {
    Sizes::words(line.bytes as u64)
}

/// `a, b and c`.
fn joined(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        parts => parts.concat(),
    }
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::line;
    use super::*;

    #[test]
    fn the_verdict_fits_what_took_part() {
        let best = |line: Timing| Timing { ties_with_best: true, ..line };
        let told = [
            verdict(&[best(line(8, "auto (ring)", 1.0, None))]),
            verdict(&[
                best(line(8, "auto (ring)", 1.0, Some(2.0))),
                line(8, "mpi", 2.0, Some(1.0)),
                best(line(64, "auto (tree)", 2.0, Some(1.28))),
                line(64, "mpi", 2.5, Some(1.0)),
            ]),
            verdict(&[
                best(line(8, "ring", 1.0, Some(2.0))),
                line(8, "mpi", 2.0, Some(1.0)),
                best(line(262_144, "mpi", 2.0, Some(1.0))),
                line(262_144, "ring", 4.0, Some(0.5)),
            ]),
            verdict(&[
                best(line(8, "ring", 1.0, None)),
                best(line(8, "auto (tree)", 1.01, None)),
                best(line(64, "ring", 2.0, None)),
                Timing { ratio_to_best: 1.3, ..line(64, "auto (tree)", 2.6, None) },
            ]),
            verdict(&[best(line(8, "auto (ring)", 1.0, None)), line(8, "tree", 2.0, None)]),
            verdict(&[
                best(line(8, "ring", 1.0, None)),
                best(line(8, "tree", 1.01, None)),
                best(line(64, "tree", 2.0, None)),
                line(64, "ring", 2.6, None),
                best(line(512, "tree", 2.0, None)),
                line(512, "ring", 2.6, None),
            ]),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        Only one was measured: there is nothing to compare it with.
        On average auto is 1.60 times as fast as the MPI's own, and slower nowhere.
        On average the best of ours is 1.00 times as fast as the MPI's own, but slower at 256 KiB (0.50).
        Auto is the fastest, or ties with it, at 1 of 2 sizes; at worst it takes 1.30 times as long, at 64 B.
        Auto is the fastest, or ties with it.
        Of 3 sizes the fastest is tree at 2 and ring at 1, with ties at 1.
        ");
    }
}
