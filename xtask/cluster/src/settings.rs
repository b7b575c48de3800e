//! Values of the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a frame travels: `500us`, `2ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delay {
    pub(crate) micros: u64,
}

/// Bits per second: `100m`, `1g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rate {
    pub(crate) megabits: u64,
}

/// Nodes and ranks on each: `4x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub(crate) nodes: u8,
    pub(crate) ranks: u8,
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Delay, String> {
        let wrong = || format!("{text:?} is no delay between 1us and 1000ms; write 500us or 2ms");
        let (number, factor) = match text.strip_suffix("us") {
            Some(number) => (number, 1),
            None => (text.strip_suffix("ms").ok_or_else(wrong)?, 1000),
        };
        let micros = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        micros.filter(|micros| (1..=1_000_000).contains(micros)).map(|micros| Delay { micros }).ok_or_else(wrong)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let wrong = || format!("{text:?} is no rate between 1m and 100g; write 100m or 1g");
        let (number, factor) = match text.strip_suffix('m') {
            Some(number) => (number, 1),
            None => (text.strip_suffix('g').ok_or_else(wrong)?, 1000),
        };
        let megabits = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        megabits.filter(|rate| (1..=100_000).contains(rate)).map(|megabits| Rate { megabits }).ok_or_else(wrong)
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let wrong = || format!("{text:?} is no shape of at most 64x64; write 4x4 for four nodes of four ranks");
        let (nodes, ranks) = text.split_once('x').ok_or_else(wrong)?;
        let number = |text: &str| text.parse().ok().filter(|number| (1..=64).contains(number)).ok_or_else(wrong);
        Ok(Shape { nodes: number(nodes)?, ranks: number(ranks)? })
    }
}

impl Delay {
    pub(crate) fn duration(self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

impl Rate {
    /// How long a frame occupies a port.
    pub(crate) fn time(self, bytes: usize) -> Duration {
        Duration::from_nanos(bytes as u64 * 8 * 1000 / self.megabits)
    }
}

impl Shape {
    pub(crate) fn size(self) -> usize {
        usize::from(self.nodes) * usize::from(self.ranks)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.micros {
            micros if micros % 1000 == 0 => write!(f, "{}ms", micros / 1000),
            micros => write!(f, "{micros}us"),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.megabits {
            megabits if megabits % 1000 == 0 => write!(f, "{}g", megabits / 1000),
            megabits => write!(f, "{megabits}m"),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.nodes, self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        for text in ["500us", "2ms", "1us", "1000ms"] {
            let delay: Delay = text.parse().unwrap();
            assert_eq!(delay.to_string().parse::<Delay>(), Ok(delay));
        }
        assert_eq!("2ms".parse::<Delay>().unwrap().duration(), Duration::from_millis(2));
        assert_eq!("1g".parse::<Rate>().unwrap().time(1250), Duration::from_micros(10));
        assert_eq!("100m".parse::<Rate>().unwrap().time(1250), Duration::from_micros(100));
        assert_eq!("8x4".parse::<Shape>().unwrap().size(), 32);
    }

    #[test]
    fn what_is_no_value_is_said() {
        for text in ["2", "2s", "0us", "-1ms", "99999999999999999999us", "2000ms"] {
            assert!(text.parse::<Delay>().unwrap_err().contains("write 500us or 2ms"), "{text}");
        }
        for text in ["1", "0m", "101g"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["4", "0x4", "4x0", "65x1", "4x4x4"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }
}
