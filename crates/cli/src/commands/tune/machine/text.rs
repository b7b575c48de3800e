//! The machine file of what was measured: every number with its evidence.

use std::fmt::Write;

use super::levels::{Protocol, protocols};
use super::{Found, Level};

/// The file's text; its times rounded to a tenth of a nanosecond.
pub(super) fn text(found: &Found, name: &str, description: &str) -> String {
    let mut text = format!(
        "# Written by `allhands tune`: what messages cost here. `allhands simulate --machine FILE` takes it.\n\
         schema = 2\nname = {}\ndescription = {}\nsource = {}\nports = {}\ncombine_ns_per_byte = {:.5}\ncopy_ns_per_byte = {:.5}\n",
        quoted(name),
        quoted(description),
        quoted(&format!("measured: {}", found.rates)),
        found.ports,
        found.combine * 1e9,
        found.copy * 1e9
    );
    for level in &found.levels {
        write_level(&mut text, level);
    }
    let _ = writeln!(text, "\n[end]\nlevels = {}", found.levels.len());
    text
}

fn write_level(text: &mut String, level: &Level) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n[[level]]\nname = {}", quoted(&level.name));
    if level.assumed {
        let _ = writeln!(text, "assumed = true");
    }
    if let Some(holds) = level.holds {
        let _ = writeln!(text, "holds_ranks = {holds}\nmeeting_us = {:.4}", level.meeting * 1e6);
    }
    let found = protocols(&level.measured);
    let names: &[&str] = match found.len() {
        ..=1 => &["short"],
        2 => &["short", "rendezvous"],
        _ => &["short", "eager", "rendezvous"],
    };
    for (protocol, name) in found.iter().zip(names) {
        write_protocol(text, protocol, name, &level.evidence);
    }
}

fn write_protocol(text: &mut String, protocol: &Protocol, name: &str, evidence: &str) {
    let us = |seconds: f64| seconds * 1e6;
    let ns = |seconds: f64| seconds * 1e9;
    let line = &protocol.line;
    let mut source = format!("measured: {evidence}; fit to the medians, off by {:.1} %", 100.0 * line.error);
    let _ = writeln!(text, "\n[level.{name}]");
    if line.from > 0 {
        let _ = writeln!(text, "from_bytes = {}", line.from);
    }
    let _ = writeln!(text, "latency_us = {:.4}\nns_per_byte = {:.5}", us(line.latency), ns(line.per_byte));
    if let Some(overhead) = protocol.overhead {
        let _ = writeln!(text, "overhead_us = {:.4}", us(overhead));
        source += "; overhead: what each further message of one rank at once adds";
    }
    if let Some((ranks, latency)) = protocol.crowd {
        let (latency, per_byte) = (us(latency), ns(line.per_byte));
        let _ = writeln!(text, "crowd = {{ ranks = {ranks}, latency_us = {latency:.4}, ns_per_byte = {per_byte:.5} }}");
        source += &format!("; crowd: {ranks} ranks of two nodes, pair by pair at once");
    }
    if protocol.injection > 0.0 {
        let _ = writeln!(text, "injection_ns_per_byte = {:.5}", ns(protocol.injection));
        source += "; injection: what the crowd loses of the bandwidth";
    }
    if name == "rendezvous" {
        source += "; that the longest messages wait for their receivers is assumed";
    }
    let _ = writeln!(text, "source = {}", quoted(&source));
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    format!("\"{}\"", text.chars().map(plain).collect::<String>().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use allhands_model::Machine;

    use super::super::fit::Sample;
    use super::super::levels::Measured;
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let time = |bytes: u64| if bytes <= 4096 { 1e-6 + 1e-9 * bytes as f64 } else { 5e-6 + 0.25e-9 * bytes as f64 };
        let pairs = (3..=20).map(|power| Sample { bytes: 1 << power, seconds: time(1 << power) }).collect();
        let level = |name: &str, holds, crowd| Level {
            name: name.into(),
            assumed: false,
            holds,
            meeting: 2e-6,
            measured: Measured { pairs: Vec::clone(&pairs), crowd, fans: vec![] },
            evidence: "exchanges of \"two\"".into(),
        };
        let crowd = pairs.iter().map(|sample: &Sample| Sample { seconds: 2.0 * sample.seconds, ..*sample }).collect();
        let found = Found {
            levels: vec![level("network", None, Some((3, crowd))), level("node", Some(4), None)],
            ports: 2,
            copy: 0.1e-9,
            combine: 0.2e-9,
            rates: "by hand".into(),
        };
        let text = text(&found, "a \"host\"", "of\na test");
        let machine = Machine::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-4;
        assert_eq!((machine.name.as_str(), machine.description.as_str()), ("a \"host\"", "of a test"));
        assert!(machine.ports == Some(2) && close(machine.copy, 0.1e-9) && close(machine.combine, 0.2e-9));
        let (network, node) = (&machine.levels[0], &machine.levels[1]);
        assert!(close(node.meeting, 2e-6) && node.holds == Some(4) && network.holds.is_none());
        for level in [network, node] {
            assert_eq!(level.protocols.len(), 2);
            assert!(level.protocols[0].up_to == 4096 && level.protocols[1].rendezvous);
            assert!(close(level.protocols[0].latency, 1e-6) && close(level.protocols[1].per_byte, 0.25e-9));
            // Not measured: a message keeps its port for all of its time.
            assert_eq!(level.protocols[0].overhead, level.protocols[0].latency);
        }
        let crowd = network.protocols[1].crowd.unwrap();
        assert!(crowd.ranks == 3 && close(crowd.latency, 1e-5) && close(crowd.per_byte, 0.25e-9));
        // Three messages in twice the time of one: the other two kept the last for as long as it takes.
        assert!(close(network.protocols[1].injection, 0.125e-9));
        assert!(text.contains("assumed") && text.contains("exchanges of"));
    }
}
