//! Machine files: TOML, units in the names, a source for every group of numbers.
//!
//! ```toml
//! schema = 2
//! name = "example"
//! description = "two levels"
//! source = "where copy and combine rates come from"
//! ports = 1                     # left out: any number
//! flows = true                  # left out: false; the bytes of messages travel side by side and keep no port
//! combine_ns_per_byte = 0.25
//! copy_ns_per_byte = 0.1
//!
//! [[level]]                     # between nodes
//! name = "network"
//! assumed = true                # left out: false; nobody has measured it
//! rough = true                  # left out: false; fitted to a few messages
//! [level.short]
//! latency_us = 1.9
//! ns_per_byte = 0.6
//! source = "measured: ..."
//! [level.rendezvous]
//! from_bytes = 8192
//! latency_us = 7.0
//! ns_per_byte = 0.2
//! overhead_us = 3.0             # left out: all of the latency
//! injection_ns_per_byte = 0.15  # left out: no limit
//! source = "measured: ..."
//!
//! [end]                         # so that a file that was cut off is no machine with fewer levels
//! levels = 1
//! ```

use serde::{Deserialize, Serialize};

use super::{Crowd, Level, Links, Machine, Protocol};
use crate::{Error, Result};

/// The schema that this version reads.
const SCHEMA: u32 = 2;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Text {
    schema: u32,
    name: String,
    description: String,
    /// Of the rates below.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    flows: bool,
    combine_ns_per_byte: f64,
    copy_ns_per_byte: f64,
    level: Vec<LevelText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<LinksText>,
    end: EndText,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct EndText {
    levels: usize,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LevelText {
    name: String,
    #[serde(default)]
    assumed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rough: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds_ranks: Option<usize>,
    #[serde(default)]
    meeting_us: f64,
    short: ProtocolText,
    #[serde(skip_serializing_if = "Option::is_none")]
    eager: Option<ProtocolText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rendezvous: Option<ProtocolText>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ProtocolText {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_bytes: Option<u64>,
    latency_us: f64,
    ns_per_byte: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crowd: Option<CrowdText>,
    #[serde(default)]
    injection_ns_per_byte: f64,
    source: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CrowdText {
    ranks: usize,
    latency_us: f64,
    ns_per_byte: f64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LinksText {
    node_ns_per_byte: f64,
    core_ns_per_byte: f64,
    core_latency_us: f64,
    leaf_nodes: Vec<usize>,
    source: String,
}

const US: f64 = 1e-6;
const NS: f64 = 1e-9;

impl Machine {
    /// Reads a machine file.
    ///
    /// ```
    /// use allhands_model::Machine;
    /// let error = Machine::parse("schema = 2\nname = 7\n[end]\nlevels = 1").unwrap_err();
    /// assert_eq!(error.to_string(), "machine file, line 2: name: invalid type: integer `7`, expected a string");
    /// ```
    pub fn parse(text: &str) -> Result<Machine> {
        is_current(text)?;
        is_whole(text)?;
        let read: Text = toml::from_str(text).map_err(|error| damaged(text, &error))?;
        is_schema(text, read.schema)?;
        if read.end.levels != read.level.len() {
            let fact = format!("levels: is {}, but {} are in the file; {REMEDY}", read.end.levels, read.level.len());
            return Err(Error::File { line: text.lines().count(), fact });
        }
        let unsourced = |source: &str, key: String| match source.trim() {
            "" => Err(Error::File { line: line_of(text, "source"), fact: format!("{key}.source: says nothing") }),
            _ => Ok(()),
        };
        unsourced(&read.source, read.name.clone())?;
        for level in &read.level {
            for protocol in [Some(&level.short), level.eager.as_ref(), level.rendezvous.as_ref()].into_iter().flatten()
            {
                unsourced(&protocol.source, level.name.clone())?;
            }
        }
        if let Some(links) = &read.links {
            unsourced(&links.source, "links".into())?;
        }
        let machine = Machine {
            name: read.name,
            description: read.description,
            ports: read.ports,
            flows: read.flows,
            combine: read.combine_ns_per_byte * NS,
            copy: read.copy_ns_per_byte * NS,
            levels: read.level.iter().map(LevelText::level).collect(),
            links: read.links.map(|links| Links {
                node: links.node_ns_per_byte * NS,
                core: links.core_ns_per_byte * NS,
                core_latency: links.core_latency_us * US,
                leaves: links.leaf_nodes,
            }),
        };
        machine.check()?;
        Ok(machine)
    }

    /// The machine as a file that [`Machine::parse`] reads. All of its numbers get the same source, in a sentence.
    ///
    /// ```
    /// use allhands_model::Machine;
    /// let lassen = Machine::shipped("lassen")?;
    /// let again = Machine::parse(&lassen.to_text("as shipped"))?;
    /// assert_eq!((again.name, again.levels.len()), (lassen.name, lassen.levels.len()));
    /// # Ok::<(), allhands_model::Error>(())
    /// ```
    pub fn to_text(&self, source: &str) -> String {
        let text = Text {
            schema: SCHEMA,
            name: self.name.clone(),
            description: self.description.clone(),
            source: source.into(),
            ports: self.ports,
            flows: self.flows,
            combine_ns_per_byte: self.combine / NS,
            copy_ns_per_byte: self.copy / NS,
            level: self.levels.iter().map(|level| LevelText::new(level, source)).collect(),
            links: self.links.as_ref().map(|links| LinksText {
                node_ns_per_byte: links.node / NS,
                core_ns_per_byte: links.core / NS,
                core_latency_us: links.core_latency / US,
                leaf_nodes: links.leaves.clone(),
                source: source.into(),
            }),
            end: EndText { levels: self.levels.len() },
        };
        toml::to_string(&text).expect("numbers, texts and lists of them are TOML")
    }
}

impl LevelText {
    fn new(level: &Level, source: &str) -> LevelText {
        let text = |index: usize| {
            let protocol = level.protocols.get(index)?;
            Some(ProtocolText {
                from_bytes: index.checked_sub(1).map(|before| level.protocols[before].up_to.saturating_add(1)),
                latency_us: protocol.latency / US,
                ns_per_byte: protocol.per_byte / NS,
                overhead_us: Some(protocol.overhead / US),
                crowd: protocol.crowd.map(|crowd| CrowdText {
                    ranks: crowd.ranks,
                    latency_us: crowd.latency / US,
                    ns_per_byte: crowd.per_byte / NS,
                }),
                injection_ns_per_byte: protocol.injection / NS,
                source: source.into(),
            })
        };
        let waits = |index: usize| level.protocols.get(index).is_some_and(|protocol| protocol.rendezvous);
        LevelText {
            name: level.name.clone(),
            assumed: level.assumed,
            rough: level.rough,
            holds_ranks: level.holds,
            meeting_us: level.meeting / US,
            short: text(0).expect("a level has a protocol: it was checked"),
            eager: text(1).filter(|_| !waits(1)),
            rendezvous: if waits(1) { text(1) } else { text(2) },
        }
    }

    fn level(&self) -> Level {
        let given = [Some((&self.short, false)), self.eager.as_ref().map(|eager| (eager, false))];
        let given: Vec<(&ProtocolText, bool)> =
            given.into_iter().chain([self.rendezvous.as_ref().map(|last| (last, true))]).flatten().collect();
        let up_to = |index: usize| match given.get(index + 1) {
            Some((next, _)) => next.from_bytes.unwrap_or(0).saturating_sub(1),
            None => u64::MAX,
        };
        let protocols = given.iter().enumerate().map(|(index, (text, rendezvous))| Protocol {
            up_to: up_to(index),
            rendezvous: *rendezvous,
            latency: text.latency_us * US,
            per_byte: text.ns_per_byte * NS,
            overhead: text.overhead_us.unwrap_or(text.latency_us) * US,
            crowd: text.crowd.as_ref().map(|crowd| Crowd {
                ranks: crowd.ranks,
                latency: crowd.latency_us * US,
                per_byte: crowd.ns_per_byte * NS,
            }),
            injection: text.injection_ns_per_byte * NS,
        });
        Level {
            name: self.name.clone(),
            assumed: self.assumed,
            rough: self.rough,
            holds: self.holds_ranks,
            meeting: self.meeting_us * US,
            protocols: protocols.collect(),
        }
    }
}

/// What helps a file that is not whole.
const REMEDY: &str = "copy it again, or make one with `allhands tune`";

/// Refuses files of another schema; before the rest is read, which may have another form.
fn is_current(text: &str) -> Result<()> {
    let line = text.lines().nth(line_of(text, "schema") - 1).and_then(|line| line.trim().strip_prefix("schema"));
    let found = line.and_then(|rest| rest.trim().strip_prefix('=')?.trim().parse().ok());
    found.map_or(Ok(()), |found| is_schema(text, found))
}

fn is_schema(text: &str, found: u32) -> Result<()> {
    let remedy = match found {
        SCHEMA => return Ok(()),
        1 => {
            "end the file with a line [end] and a line with the number of its levels, such as levels = 2, and write schema = 2"
        }
        _ => "make one with `allhands tune` of this version",
    };
    let fact = format!("schema: is {found}, but this version reads {SCHEMA}; {remedy}");
    Err(Error::File { line: line_of(text, "schema"), fact })
}

/// Refuses files that have been cut off.
fn is_whole(text: &str) -> Result<()> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let last: Vec<&str> = lines.rev().take(2).collect();
    if matches!(last[..], [levels, "[end]"] if levels.starts_with("levels")) {
        return Ok(());
    }
    let fact = format!("it does not end with [end] and the number of levels: it has been cut off; {REMEDY}");
    Err(Error::File { line: text.lines().count().max(1), fact })
}

/// What is wrong with a file, and where: the key as far as it is known.
fn damaged(text: &str, error: &toml::de::Error) -> Error {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let line = text[..at].matches('\n').count() + 1;
    let fact = error.message().trim().replace('\n', "; ");
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
    let fact = match key {
        Some(key) if !fact.contains(&format!("`{key}`")) => format!("{key}: {fact}"),
        _ => fact,
    };
    Error::File { line, fact }
}

fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(key)).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL: &str =
        "[[level]]\nname = 'n'\n[level.short]\nlatency_us = 1\nns_per_byte = 1\nsource = 's'\n[end]\nlevels = 1\n";

    fn head(first: &str) -> String {
        format!("{first}\nname = 'm'\ndescription = 'd'\nsource = 's'\ncombine_ns_per_byte = 0\ncopy_ns_per_byte = 0\n")
    }

    fn error(text: &str) -> String {
        Machine::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_damaged_file_is_named_by_key_and_line() {
        let text = head("schema = 2") + LEVEL;
        assert!(Machine::parse(&text).is_ok());
        let newer = error(&text.replace("schema = 2", "schema = 3"));
        assert_eq!(
            newer,
            "machine file, line 1: schema: is 3, but this version reads 2; make one with `allhands tune` of this version"
        );
        let older = error(&text.replace("schema = 2", "schema = 1").replace("[end]\nlevels = 1\n", ""));
        assert!(older.contains("schema: is 1") && older.contains("levels = 2, and write schema = 2"), "{older}");
        let short = error(&text.replace("levels = 1", "levels = 2"));
        assert!(short.contains("levels: is 2, but 1 are in the file; copy it again"), "{short}");
        let unknown = error(&text.replace("latency_us", "latency_ms"));
        assert!(unknown.contains("line 10") && unknown.contains("latency_ms"), "{unknown}");
        let missing = error(&text.replace("ns_per_byte = 1\n", ""));
        assert!(missing.contains("ns_per_byte"), "{missing}");
        let negative = error(&text.replace("latency_us = 1", "latency_us = -1"));
        assert!(negative.contains("machine \"m\": n has a time that is negative"), "{negative}");
        let silent = error(&text.replace("source = 's'\n", "source = ' '\n"));
        assert!(silent.contains("source: says nothing"), "{silent}");
        let flows = text.replace("source = 's'\ncombine", "source = 's'\nflows = true\ncombine");
        assert!(error(&flows).contains("machine \"m\": flows needs ports = 1"), "{}", error(&flows));
        let flows = flows.replace("flows = true", "flows = true\nports = 1");
        assert!(
            Machine::parse(&flows)
                .is_ok_and(|machine| machine.flows && machine.to_text("s").contains("flows = true\n"))
        );
        assert!(error("schema 1\n[end]\nlevels = 1").contains("line 1"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for name in Machine::shipped_names() {
            let machine = Machine::shipped(name).unwrap();
            let text = machine.to_text("a test");
            let again = Machine::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            let rounded = |machine: &Machine| {
                let digits = |seconds: f64| format!("{seconds:.9e}");
                let protocol = |one: &Protocol| {
                    let crowd = one.crowd.map(|crowd| (crowd.ranks, digits(crowd.latency), digits(crowd.per_byte)));
                    let times = [one.latency, one.per_byte, one.overhead, one.injection].map(digits);
                    (one.up_to, one.rendezvous, times, crowd)
                };
                let level = |one: &Level| {
                    let protocols: Vec<_> = one.protocols.iter().map(protocol).collect();
                    (one.name.clone(), (one.assumed, one.rough), one.holds, digits(one.meeting), protocols)
                };
                let links = machine
                    .links
                    .as_ref()
                    .map(|links| ([links.node, links.core, links.core_latency].map(digits), links.leaves.clone()));
                let levels: Vec<_> = machine.levels.iter().map(level).collect();
                let words = (machine.name.clone(), machine.description.clone());
                (words, (machine.ports, machine.flows), digits(machine.combine), digits(machine.copy), levels, links)
            };
            assert_eq!(rounded(&again), rounded(&machine), "{name}");
        }
    }

    #[test]
    fn a_file_that_was_cut_off_at_any_line_says_so() {
        for name in Machine::shipped_names() {
            let text = Machine::shipped_text(name).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert!(Machine::parse(text).is_ok(), "{name}");
            for kept in 0..lines.len() {
                let message = error(&lines[..kept].join("\n"));
                assert!(message.contains("cut off; copy it again, or make one with `allhands tune`"), "{message}");
            }
        }
    }
}
