//! From times by size to protocols: a few straight lines, each for a range of sizes, found without knowing where they change.

/// What a message of some bytes took, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// `latency + bytes * per_byte`, in seconds, for messages of `from` bytes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CostLine {
    pub(super) from: u64,
    pub(super) latency: f64,
    pub(super) per_byte: f64,
    /// The mean distance of the samples from the line, as a share of the time.
    pub(super) error: f64,
}

/// Short, eager, rendezvous.
const MOST_LINES: usize = 3;

/// A line through two points explains anything.
const FEWEST_SAMPLES: usize = 3;

/// Another line must take away so much of what the others leave unexplained.
const WORTH_A_LINE: f64 = 0.5;

/// Lines that are so close to their samples, as a share of the time, need no further ones.
const CLOSE: f64 = 0.01;

/// Samples further from a line than this count less: a few of them, disturbed, do not bend it.
const FAR: f64 = 0.1;

/// The fewest lines that explain the samples, which are in the order of sizes.
pub(super) fn fit(samples: &[Sample]) -> Vec<CostLine> {
    let mut best = cut(samples, 1);
    for lines in 2..=MOST_LINES {
        if samples.len() < lines * FEWEST_SAMPLES || loss_of(&best, samples) <= samples.len() as f64 * CLOSE * CLOSE {
            break;
        }
        let finer = cut(samples, lines);
        let worth = WORTH_A_LINE.powi((lines - best.len()) as i32);
        if loss_of(&finer, samples) < worth * loss_of(&best, samples) {
            best = finer;
        }
    }
    best
}

/// The best lines, so many of them: all places to cut are tried.
fn cut(samples: &[Sample], lines: usize) -> Vec<CostLine> {
    if lines == 1 {
        return vec![line(samples)];
    }
    let room = samples.len().saturating_sub((lines - 1) * FEWEST_SAMPLES);
    let ways = (FEWEST_SAMPLES..=room).map(|first| {
        let mut way = vec![line(&samples[..first])];
        way.extend(cut(&samples[first..], lines - 1));
        // A protocol begins above the largest size that is seen to travel by the one before.
        way[1].from = samples[first - 1].bytes + 1;
        way
    });
    let cost = |way: &Vec<CostLine>| loss_of(way, samples);
    ways.min_by(|one, other| cost(one).total_cmp(&cost(other))).unwrap_or_else(|| vec![line(samples)])
}

/// The line through samples that is the closest to them in shares of their times; what lies far off counts less. Neither
/// latency nor time per byte is negative.
pub(super) fn line(samples: &[Sample]) -> CostLine {
    let mut trust = vec![1.0; samples.len()];
    let (mut latency, mut per_byte) = (0.0, 0.0);
    for _ in 0..30 {
        (latency, per_byte) = weighted(samples, &trust);
        for (trust, sample) in trust.iter_mut().zip(samples) {
            let off = off(latency, per_byte, sample).abs();
            *trust = if off > FAR { FAR / off } else { 1.0 };
        }
    }
    let off = samples.iter().map(|sample| off(latency, per_byte, sample).abs());
    let error = off.sum::<f64>() / samples.len().max(1) as f64;
    CostLine { from: 0, latency, per_byte, error }
}

/// How far a sample is off a line, as a share of its time.
fn off(latency: f64, per_byte: f64, sample: &Sample) -> f64 {
    (latency + per_byte * sample.bytes as f64) / sample.seconds - 1.0
}

/// Least squares of these shares.
fn weighted(samples: &[Sample], trust: &[f64]) -> (f64, f64) {
    let (mut one, mut x, mut xx, mut y, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (sample, trust) in samples.iter().zip(trust) {
        let (bytes, weight) = (sample.bytes as f64, trust / (sample.seconds * sample.seconds));
        one += weight;
        x += weight * bytes;
        xx += weight * bytes * bytes;
        y += weight * sample.seconds;
        xy += weight * bytes * sample.seconds;
    }
    let determinant = one * xx - x * x;
    if determinant <= one * xx * 1e-12 {
        return (if one > 0.0 { y / one } else { 0.0 }, 0.0);
    }
    let (latency, per_byte) = ((xx * y - x * xy) / determinant, (one * xy - x * y) / determinant);
    match (latency < 0.0, per_byte < 0.0) {
        (true, _) => (0.0, xy / xx),
        (_, true) => (y / one, 0.0),
        _ => (latency, per_byte),
    }
}

/// What lines leave unexplained: squares near them, straight further off.
fn loss_of(lines: &[CostLine], samples: &[Sample]) -> f64 {
    let loss = |sample: &Sample| {
        let line = at(lines, sample.bytes);
        let off = off(line.latency, line.per_byte, sample).abs();
        if off > FAR { FAR * (2.0 * off - FAR) } else { off * off }
    };
    samples.iter().map(loss).sum()
}

/// The line that serves a size.
pub(super) fn at(lines: &[CostLine], bytes: u64) -> &CostLine {
    let index = lines.iter().rposition(|line| line.from <= bytes).unwrap_or(0);
    &lines[index]
}

/// Samples that each line serves.
pub(super) fn served(lines: &[CostLine], index: usize, samples: &[Sample]) -> Vec<Sample> {
    let until = lines.get(index + 1).map_or(u64::MAX, |next| next.from);
    samples.iter().filter(|sample| (lines[index].from..until).contains(&sample.bytes)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lassen's numbers, as its machine file has them: from, latency, per byte.
    const LASSEN: [(u64, f64, f64); 3] = [(0, 1.19e-6, 0.33e-9), (257, 3.7e-6, 0.26e-9), (8193, 9.3e-6, 0.083e-9)];

    fn samples(lines: &[(u64, f64, f64)], mut noise: impl FnMut() -> f64) -> Vec<Sample> {
        let sizes = (3..=20).map(|power| 1u64 << power);
        let mut sample = |bytes: u64| {
            let (_, latency, per_byte) = lines.iter().rev().find(|line| line.0 <= bytes).unwrap();
            Sample { bytes, seconds: (latency + per_byte * bytes as f64) * noise() }
        };
        sizes.map(&mut sample).collect()
    }

    /// Numbers from 0 to 1, the same in every run.
    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn exact_times_give_the_protocols_back() {
        for count in 1..=3 {
            let found = fit(&samples(&LASSEN[..count], || 1.0));
            assert_eq!(found.len(), count);
            for (line, (from, latency, per_byte)) in found.iter().zip(LASSEN) {
                assert_eq!(line.from, from);
                assert!((line.latency / latency - 1.0).abs() < 1e-6, "{line:?}");
                assert!((line.per_byte / per_byte - 1.0).abs() < 1e-6, "{line:?}");
            }
        }
    }

    #[test]
    fn noise_of_three_per_cent_moves_thresholds_nowhere_and_times_by_five() {
        for seed in 1..=50 {
            let mut state = seed;
            let noisy = samples(&LASSEN, || 0.97 + 0.06 * random(&mut state));
            let found = fit(&noisy);
            assert_eq!(found.iter().map(|line| line.from).collect::<Vec<_>>(), [0, 257, 8193], "seed {seed}");
            for sample in samples(&LASSEN, || 1.0) {
                let line = at(&found, sample.bytes);
                assert!(off(line.latency, line.per_byte, &sample).abs() < 0.05, "seed {seed}: {sample:?} {line:?}");
            }
            assert!((found[2].per_byte / LASSEN[2].2 - 1.0).abs() < 0.06, "seed {seed}: {found:?}");
        }
    }

    #[test]
    fn noise_alone_makes_protocols_at_most_once_in_twenty_five() {
        let several = |seed: &u64| {
            let mut state = *seed;
            fit(&samples(&LASSEN[..1], || 0.9 + 0.2 * random(&mut state))).len() > 1
        };
        assert!((1..=50).filter(several).count() <= 2);
    }

    #[test]
    fn two_samples_that_were_disturbed_do_not_bend_a_line() {
        let mut disturbed = samples(&LASSEN[..1], || 1.0);
        disturbed[4].seconds *= 5.0;
        disturbed[15].seconds *= 3.0;
        let line = line(&disturbed);
        assert!((line.latency / LASSEN[0].1 - 1.0).abs() < 0.03, "{line:?}");
        assert!((line.per_byte / LASSEN[0].2 - 1.0).abs() < 0.10, "{line:?}");
    }

    #[test]
    fn odd_inputs_give_numbers() {
        let falling = [(8, 3e-6), (16, 2e-6), (32, 1e-6)].map(|(bytes, seconds)| Sample { bytes, seconds });
        let line = line(&falling);
        assert!(line.latency > 0.0 && line.per_byte == 0.0);
        assert_eq!(fit(&falling[..1])[0], CostLine { from: 0, latency: 3e-6, per_byte: 0.0, error: 0.0 });
    }
}
