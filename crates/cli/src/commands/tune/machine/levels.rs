//! What the messages of one level cost: from times of pairs, crowds and fans to protocols.

use super::fit::{CostLine, Sample, at, fit, line, served};

/// Times of messages of one level.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// One pair, or where no crowd is told apart all pairs at once, by size.
    pub(super) pairs: Vec<Sample>,
    /// With so many ranks of a node sending at once, by size.
    pub(super) crowd: Option<(usize, Vec<Sample>)>,
    /// One rank exchanging messages with several others at once.
    pub(super) fans: Vec<Fan>,
}

/// One rank exchanging messages of so many bytes with so many others at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fan {
    pub(super) others: usize,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// How messages of some sizes travel, in seconds and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Protocol {
    pub(super) line: CostLine,
    /// How long a message keeps its port beside the time of its bytes, if it was measured.
    pub(super) overhead: Option<f64>,
    /// So many ranks, and the latency with all of them sending.
    pub(super) crowd: Option<(usize, f64)>,
    pub(super) injection: f64,
}

/// A crowd's time per byte that is longer by less than this is noise.
const SLOWER: f64 = 1.1;

/// The protocols of a level. Latency grows with a crowd as it was measured; what a crowd loses of the bandwidth is the node's limit.
pub(super) fn protocols(measured: &Measured) -> Vec<Protocol> {
    let lines = fit(&measured.pairs);
    let protocol = |(index, own): (usize, &CostLine)| {
        let crowded = measured.crowd.as_ref().map(|(ranks, samples)| (*ranks, line(&served(&lines, index, samples))));
        let crowd = crowded.map(|(ranks, crowded)| (ranks, crowded.latency.max(own.latency)));
        // The last of so many messages starts when the others have been injected.
        let injection = crowded.filter(|(ranks, crowded)| *ranks > 1 && crowded.per_byte > SLOWER * own.per_byte);
        let injection =
            injection.map_or(0.0, |(ranks, crowded)| (crowded.per_byte - own.per_byte) / (ranks - 1) as f64);
        Protocol { line: *own, overhead: overhead(&lines, index, &measured.fans), crowd, injection }
    };
    lines.iter().enumerate().map(protocol).collect()
}

/// What each further message of a fan adds beside its bytes, by the shortest that travel so.
fn overhead(lines: &[CostLine], index: usize, fans: &[Fan]) -> Option<f64> {
    let own = &lines[index];
    let mine = |fan: &&Fan| at(lines, fan.bytes).from == own.from;
    let bytes = fans.iter().filter(mine).map(|fan| fan.bytes).min()?;
    Some((further(fans, bytes)? - own.per_byte * bytes as f64).clamp(0.0, own.latency))
}

/// How much longer a fan takes with each further message of so many bytes.
fn further(fans: &[Fan], bytes: u64) -> Option<f64> {
    let mine = || fans.iter().filter(|fan| fan.bytes == bytes);
    let one = mine().find(|fan| fan.others == 1)?.seconds;
    let steps = |fan: &Fan| (fan.others - 1) as f64;
    let squares: f64 = mine().map(|fan| steps(fan) * steps(fan)).sum();
    (squares > 0.0).then(|| mine().map(|fan| steps(fan) * (fan.seconds - one)).sum::<f64>() / squares)
}

/// How many long messages a rank sends at once: as many as the widest fan carries in the time of one.
pub(super) fn ports(measured: &Measured) -> usize {
    let lines = fit(&measured.pairs);
    let Some(widest) = measured.fans.iter().max_by_key(|fan| (fan.bytes, fan.others)) else { return 1 };
    let line = at(&lines, widest.bytes);
    let (one, all) = (line.per_byte * widest.bytes as f64, widest.seconds - line.latency);
    match all > 0.0 {
        true => ((widest.others as f64 * one / all).round() as usize).clamp(1, widest.others),
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: [(u64, f64, f64); 2] = [(0, 2e-6, 0.5e-9), (8193, 8e-6, 0.1e-9)];

    fn time(bytes: u64) -> (f64, f64) {
        let (_, latency, per_byte) = ALONE.iter().rev().find(|line| line.0 <= bytes).unwrap();
        (*latency, per_byte * bytes as f64)
    }

    fn sizes() -> impl Iterator<Item = u64> {
        (3..=20).map(|power| 1 << power)
    }

    /// What the model of a machine with these protocols says: four ranks a node, 0.3 us between messages of a rank, 3 us with a
    /// crowd in place of 2, a node that injects a byte in 0.08 ns, so many ports.
    fn measured(ports: usize) -> Measured {
        let pairs = sizes().map(|bytes| Sample { bytes, seconds: time(bytes).0 + time(bytes).1 }).collect();
        let crowded = |bytes: u64| {
            let (latency, own) = time(bytes);
            Sample { bytes, seconds: 1.5 * latency + own + 3.0 * 0.08e-9 * bytes as f64 }
        };
        let fan = |others: usize, bytes: u64| {
            let (latency, own) = time(bytes);
            let after = ((others - 1) / ports) as f64;
            Fan { others, bytes, seconds: latency + own + after * (0.3e-6 + own) }
        };
        let fans = [1, 2, 4].into_iter().flat_map(|others| [8, 65536].map(|bytes| fan(others, bytes)));
        Measured { pairs, crowd: Some((4, sizes().map(crowded).collect())), fans: fans.collect() }
    }

    #[test]
    fn a_known_machine_is_found_again() {
        let found = protocols(&measured(1));
        assert_eq!(found.len(), 2);
        for (protocol, (from, latency, per_byte)) in found.iter().zip(ALONE) {
            let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
            assert_eq!(protocol.line.from, from);
            assert!(close(protocol.line.latency, latency) && close(protocol.line.per_byte, per_byte));
            assert!(close(protocol.overhead.unwrap(), 0.3e-6), "{protocol:?}");
            let (ranks, crowded) = protocol.crowd.unwrap();
            assert!(ranks == 4 && close(crowded, 1.5 * latency), "{protocol:?}");
            assert!(close(protocol.injection, 0.08e-9), "{protocol:?}");
        }
        assert_eq!(ports(&measured(1)), 1);
        assert_eq!(ports(&measured(4)), 4);
    }

    #[test]
    fn what_was_not_measured_is_left_open() {
        let bare = Measured { crowd: None, fans: vec![], ..measured(1) };
        for protocol in protocols(&bare) {
            assert_eq!((protocol.overhead, protocol.crowd, protocol.injection), (None, None, 0.0));
        }
        assert_eq!(ports(&bare), 1);
    }

    #[test]
    fn a_crowd_as_fast_as_one_pair_has_no_limit() {
        let mut same = measured(1);
        same.crowd = Some((4, same.pairs.clone()));
        assert!(protocols(&same).iter().all(|protocol| protocol.injection == 0.0));
    }
}
