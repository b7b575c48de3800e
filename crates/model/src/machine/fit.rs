//! A machine of which most is assumed, made to agree with the few numbers that were measured where a job runs.

use std::fmt;

use super::{Level, Machine, Protocol};

/// What a few messages took where a job runs; `None`: nobody tried.
///
/// ```
/// use allhands_model::{Fit, Machine, Measured};
/// let far = Measured { bytes: 8, seconds: 512e-6, long: Some((32 << 10, 544e-6)), gap: Some(15e-6) };
/// let fit = Fit { far: Some(far), near: None };
/// let machine = Machine::shipped("generic")?.fitted(&fit);
/// assert_eq!(machine.name, "generic, fitted here");
/// assert_eq!(machine.description, "between nodes 512 us, 15.0 us a message and 1.04 GB/s, the rest as on generic");
/// # Ok::<(), allhands_model::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    /// Between two nodes.
    pub far: Option<Measured>,
    /// Between two ranks of a node.
    pub near: Option<Measured>,
}

/// What messages between two ranks took, one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Bytes of a short message.
    pub bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Bytes of a long message and the seconds that it took, if there was time to try one.
    pub long: Option<(u64, f64)>,
    /// Seconds that one of several messages at once kept a rank, which sent them to different ranks and received their answers, if that was tried.
    pub gap: Option<f64>,
}

/// Messages that one by rendezvous takes: the question, the answer, and what it is about.
const MESSAGES_OF_A_RENDEZVOUS: f64 = 3.0;
/// Seconds that a message takes, at least and at most; anything else is a clock gone wrong.
const LATENCIES: [f64; 2] = [1e-9, 10.0];
/// Seconds that a byte takes, at least and at most.
const TIMES_OF_A_BYTE: [f64; 2] = [1e-12, 1e-5];
/// Whether a message has waited for its receiver cannot be seen, only how long it took. If it had, and its bytes would then have taken less
/// than this share of the time that they would have taken otherwise, it has not.
const TOO_SOON: f64 = 0.02;

impl Machine {
    /// The same machine, but with messages that take as long as was measured: this one says what was not. What makes no sense is as if
    /// nobody had tried. Overheads of messages that do not wait grow to the gap between them, if that was measured: a network's delay keeps no rank busy.
    /// Copying and combining take as much longer as the bytes of messages inside a node, which are copied by the same memory: else what goes through shared
    /// memory would seem faster only because nobody has measured it.
    pub fn fitted(&self, fit: &Fit) -> Machine {
        let mut machine = self.clone();
        let mut found = Vec::new();
        let inside = |machine: &Machine| Some(machine.levels.get(1)?.protocols.last()?.per_byte);
        let (outer, inner) = machine.levels.split_at_mut(1.min(self.levels.len()));
        for (place, level, measured, far) in
            [("between nodes", outer.first_mut(), fit.far, true), ("inside a node", inner.first_mut(), fit.near, false)]
        {
            if let (Some(level), Some(measured)) = (level, measured)
                && let Some(speed) = level.fit(measured, far)
            {
                found.push(format!("{place} {speed}"));
            }
        }
        if found.is_empty() {
            return machine;
        }
        if let (Some(before @ f64::MIN_POSITIVE..), Some(now)) = (inside(self), inside(&machine)) {
            (machine.copy, machine.combine) = (self.copy * now / before, self.combine * now / before);
        }
        machine.name = format!("{}, fitted here", self.name);
        machine.description = format!("{}, the rest as on {}", found.join(", "), self.name);
        machine
    }
}

/// What was found out about a level.
struct Speed {
    latency: f64,
    /// Where it is longer than was assumed.
    gap: Option<f64>,
    per_byte: Option<f64>,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds: f64| match seconds {
            short if short < 1e-3 => format!("{} us", three_digits(short * 1e6)),
            long => format!("{} ms", three_digits(long * 1e3)),
        };
        let gap = self.gap.map(|gap| format!("{} a message", time(gap)));
        let rate = self.per_byte.map(|per_byte| format!("{} GB/s", three_digits(1e-9 / per_byte)));
        let all: Vec<String> = [Some(time(self.latency)), gap, rate].into_iter().flatten().collect();
        let (last, before) = all.split_last().expect("there is a latency");
        match before.is_empty() {
            true => f.write_str(last),
            false => write!(f, "{} and {last}", before.join(", ")),
        }
    }
}

/// A number as it is said: 0.312, 9.05, 12.2, 512.
fn three_digits(number: f64) -> String {
    let decimals = (2.0 - number.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{number:.decimals$}")
}

impl Level {
    /// Makes messages take as long as was measured; `far`: whether they go over a wire, whose rate no copying changes. What was found
    /// out, unless it makes no sense.
    fn fit(&mut self, measured: Measured, far: bool) -> Option<Speed> {
        let short = *self.protocol(measured.bytes);
        let latency = measured.seconds - short.per_byte * measured.bytes as f64;
        // Where even the bytes of a short message take long, they are part of what was measured.
        let latency = if latency > 0.0 { latency } else { measured.seconds / 2.0 };
        if !within(latency, LATENCIES) {
            return None;
        }
        let gap = measured.gap.filter(|gap| within(*gap, LATENCIES) && *gap > short.overhead);
        for protocol in &mut self.protocols {
            let messages = if protocol.rendezvous { MESSAGES_OF_A_RENDEZVOUS } else { 1.0 };
            protocol.latency = (protocol.latency + messages * (latency - short.latency)).max(latency);
            // What is sent after asking travels while its rank does something else.
            let busy = gap.filter(|_| !protocol.rendezvous).unwrap_or(0.0);
            protocol.overhead = protocol.overhead.max(busy).min(protocol.latency);
            if let Some(crowd) = &mut protocol.crowd {
                crowd.latency = (crowd.latency + messages * (latency - short.latency)).max(protocol.latency);
            }
        }
        self.rough = true;
        self.meeting *= latency / short.latency.max(LATENCIES[0]);
        let per_byte = measured.long.and_then(|(bytes, seconds)| self.fit_bytes(bytes, seconds, far));
        Some(Speed { latency, gap, per_byte })
    }

    /// Makes bytes take as long as those of a long message took, where latencies are right already. Seconds of a byte, unless they make
    /// no sense.
    fn fit_bytes(&mut self, bytes: u64, seconds: f64, far: bool) -> Option<f64> {
        let mut index = self.protocols.partition_point(|protocol| protocol.up_to < bytes).min(self.protocols.len() - 1);
        let rest = |protocol: &Protocol| (seconds - protocol.latency) / bytes as f64;
        let mut per_byte = rest(&self.protocols[index]);
        let waits = self.protocols[index].rendezvous && bytes < self.protocols[index].up_to;
        let eager = index.checked_sub(1).filter(|_| waits);
        let eager = eager.filter(|&eager| per_byte < TOO_SOON * rest(&self.protocols[eager]));
        if let Some(eager) = eager {
            (index, per_byte) = (eager, rest(&self.protocols[eager]));
        }
        if !within(per_byte, TIMES_OF_A_BYTE) {
            return None;
        }
        // It has not waited: so long a message travels like shorter ones.
        if let Some(eager) = eager {
            self.protocols[eager].up_to = bytes;
        }
        let (before, last) = (self.protocols[index].per_byte, self.protocols.len() - 1);
        let (wire, longest) = (self.protocols[last].injection, self.protocols[last].per_byte);
        let scaled = |time: f64| if before > 0.0 { time * per_byte / before } else { time };
        for protocol in &mut self.protocols {
            let fitted = |time: f64| match far {
                // Beside the wire there are copies, which take as long as ever.
                true if time >= before => per_byte + (time - before),
                true => (per_byte - (before - time)).max(scaled(time)),
                false => scaled(time),
            };
            protocol.per_byte = fitted(protocol.per_byte);
            if let Some(crowd) = &mut protocol.crowd {
                crowd.per_byte = fitted(crowd.per_byte);
            }
        }
        // What the ranks of a node share is the wire: as much slower as its longest messages are. Then others share it, too; only of the shortest it
        // is still too little to be worth simulating.
        if wire > 0.0 && longest > 0.0 {
            let slower = wire * (self.protocols[last].per_byte / longest - 1.0);
            for protocol in &mut self.protocols[1.min(last)..] {
                protocol.injection = (protocol.injection + slower).clamp(0.0, protocol.per_byte);
            }
        }
        Some(per_byte)
    }
}

fn within(time: f64, [least, most]: [f64; 2]) -> bool {
    // No number is within anything.
    time >= least && time <= most
}

#[cfg(test)]
mod tests;
