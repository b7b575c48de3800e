//! The machines that come along.

use super::Machine;
use crate::{Error, Result};

/// Name and text of each.
const SHIPPED: [(&str, &str); 8] = [
    ("aries", include_str!("../../machines/aries.toml")),
    ("blue-waters", include_str!("../../machines/blue-waters.toml")),
    ("cervino", include_str!("../../machines/cervino.toml")),
    ("generic", include_str!("../../machines/generic.toml")),
    ("lassen", include_str!("../../machines/lassen.toml")),
    ("tapered", include_str!("../../machines/tapered.toml")),
    ("threads", include_str!("../../machines/threads.toml")),
    ("yahoo", include_str!("../../machines/yahoo.toml")),
];

impl Machine {
    /// One of the machines that come along.
    pub fn shipped(name: &str) -> Result<Machine> {
        Machine::parse(Machine::shipped_text(name)?)
    }

    /// Its file, with the source of every number.
    pub fn shipped_text(name: &str) -> Result<&'static str> {
        let found = SHIPPED.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| *text).ok_or_else(|| {
            let known: Vec<_> = Machine::shipped_names().collect();
            Error::UnknownMachine { name: name.into(), known: known.join(", ") }
        })
    }

    /// The names of all that come along.
    pub fn shipped_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_can_be_read_and_is_called_by_its_name() {
        for name in Machine::shipped_names() {
            assert_eq!(Machine::shipped(name).unwrap().name, name);
        }
    }
}
