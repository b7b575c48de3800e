//! What a parameter is set to, as a value: text is what it is read from and printed as.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The value of a parameter.
///
/// It is read by its form alone. Whether a parameter may have it is for the algorithm to say, which knows the problem: so a word
/// that nobody knows can be read, too, and is refused with what would be legal.
///
/// ```
/// use allhands_schedule::{Factor, Setting};
/// assert_eq!("4".parse(), Ok(Setting::Number(4)));
/// assert_eq!("1,3".parse(), Ok(Setting::List(vec![1, 3])));
/// assert_eq!("shared".parse(), Ok(Setting::Word("shared".into())));
/// let factor = Factor { factor: 8, ports: vec![-7, 7] };
/// assert_eq!("8(-7,7)".parse(), Ok(Setting::Factors(vec![factor])));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// A number: a radix, a level, how many leaders. A list of one is written the same.
    Number(usize),
    /// Numbers: the ports of round after round, factors, levels.
    List(Vec<usize>),
    /// Factors with their ports, as cyclic shift has them.
    Factors(Vec<Factor>),
    /// A word.
    Word(String),
}

/// A factor of the ranks, with the ports of its steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    /// The factor.
    pub factor: usize,
    /// The ports of each step; negative in a reduce_scatter.
    pub ports: Vec<isize>,
}

impl Setting {
    /// The word, if it is one.
    pub fn word(&self) -> Option<&str> {
        match self {
            Setting::Word(word) => Some(word),
            Setting::Number(_) | Setting::List(_) | Setting::Factors(_) => None,
        }
    }

    /// The numbers, without their signs, in the order in which they are written: those that could make up for each other in one list.
    ///
    /// ```
    /// use allhands_schedule::Setting;
    /// let phases: Setting = "4(-3)2(1)4(1,1)".parse()?;
    /// assert_eq!(phases.numbers(), [vec![4], vec![3], vec![2], vec![1], vec![4], vec![1, 1]]);
    /// # Ok::<(), std::convert::Infallible>(())
    /// ```
    pub fn numbers(&self) -> Vec<Vec<usize>> {
        let magnitudes = |ports: &[isize]| ports.iter().map(|port| port.unsigned_abs()).collect();
        match self {
            Setting::Number(number) => vec![vec![*number]],
            Setting::List(list) => vec![list.clone()],
            Setting::Factors(factors) => {
                factors.iter().flat_map(|factor| [vec![factor.factor], magnitudes(&factor.ports)]).collect()
            }
            Setting::Word(_) => vec![],
        }
    }

    /// The same with other numbers in the place of its own, signs kept; nothing if there is none for one of them.
    pub(crate) fn with_numbers(&self, mut other: impl FnMut(usize) -> Option<usize>) -> Option<Setting> {
        let mut factor = |known: &Factor| {
            let factor = other(known.factor)?;
            let mut port = |port: &isize| {
                let size = isize::try_from(other(port.unsigned_abs())?).ok()?;
                Some(size * port.signum())
            };
            let ports = known.ports.iter().map(&mut port).collect::<Option<_>>()?;
            Some(Factor { factor, ports })
        };
        Some(match self {
            Setting::Factors(factors) => Setting::Factors(factors.iter().map(&mut factor).collect::<Option<_>>()?),
            Setting::Number(number) => Setting::Number(other(*number)?),
            Setting::List(list) => Setting::List(list.iter().map(|number| other(*number)).collect::<Option<_>>()?),
            Setting::Word(word) => Setting::Word(word.clone()),
        })
    }
}

impl FromStr for Setting {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Setting, Infallible> {
        let text = text.trim();
        if let Ok(number) = text.parse() {
            return Ok(Setting::Number(number));
        }
        if let Some(list) = text.split(',').map(|part| part.trim().parse().ok()).collect() {
            return Ok(Setting::List(list));
        }
        Ok(match factors(text) {
            Ok(factors) if !factors.is_empty() => Setting::Factors(factors),
            _ => Setting::Word(text.into()),
        })
    }
}

/// Reads factors with their ports; or says what is wrong with their form.
pub(crate) fn factors(text: &str) -> Result<Vec<Factor>, String> {
    let mut read = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (factor, after) = rest.split_once('(').ok_or("has a factor without ports in brackets")?;
        let (ports, after) = after.split_once(')').ok_or("has a bracket that is not closed")?;
        let factor: usize = factor.trim().parse().map_err(|_| no_factor(factor.trim()))?;
        let ports = ports.split([',', ' ']).filter(|port| !port.is_empty()).map(|port| port.parse().ok());
        let ports = ports.collect::<Option<_>>().ok_or_else(|| no_ports(factor))?;
        read.push(Factor { factor, ports });
        rest = after.trim_start();
    }
    Ok(read)
}

/// Whether there are such factors and ports.
pub(crate) fn legal(factors: &[Factor]) -> Result<(), String> {
    for Factor { factor, ports } in factors {
        if *factor < 2 {
            return Err(no_factor(&factor.to_string()));
        }
        if ports.is_empty() || ports.iter().any(|&port| port == 0 || port.unsigned_abs() >= *factor) {
            return Err(no_ports(*factor));
        }
    }
    Ok(())
}

fn no_factor(text: &str) -> String {
    format!("has {text:?} where a factor of at least 2 belongs")
}

fn no_ports(factor: usize) -> String {
    let most = factor.saturating_sub(1);
    format!("has ports of factor {factor} that are not numbers from 1 to {most}, or their negatives")
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => write!(f, "{number}"),
            Setting::List(list) => separated(f, list),
            Setting::Factors(factors) => factors.iter().try_for_each(|Factor { factor, ports }| {
                write!(f, "{factor}(")?;
                separated(f, ports)?;
                f.write_str(")")
            }),
            Setting::Word(word) => f.write_str(word),
        }
    }
}

fn separated(f: &mut fmt::Formatter<'_>, numbers: &[impl fmt::Display]) -> fmt::Result {
    for (index, number) in numbers.iter().enumerate() {
        write!(f, "{}{number}", if index == 0 { "" } else { "," })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Setting {
        let Ok(setting) = text.parse();
        setting
    }

    #[test]
    fn what_is_printed_reads_back_and_other_spellings_become_it() {
        for text in ["4", "1,3", "16(-3,-3)10(9)16(3,3)", "shared", "", "3,x", "8(1", "99999999999999999999999"] {
            assert_eq!(read(text).to_string(), text);
            assert_eq!(read(&read(text).to_string()), read(text));
        }
        assert_eq!(read(" 1, 3 "), read("1,3"));
        assert_eq!(read("8(1 2) 4(-1)").to_string(), "8(1,2)4(-1)");
    }

    #[test]
    fn numbers_are_changed_in_their_places() {
        let phases = read("16(-3,-3)10(9)");
        let doubled = phases.with_numbers(|number| Some(2 * number)).unwrap();
        assert_eq!(doubled.to_string(), "32(-6,-6)20(18)");
        assert_eq!(phases.with_numbers(|number| (number != 9).then_some(number)), None);
        assert_eq!(read("shared").with_numbers(|_| None), Some(read("shared")));
        assert_eq!(read("shared").numbers(), Vec::<Vec<usize>>::new());
    }
}
