//! The language of compositions: what the ranks of a grid of regions do in each step.

use std::fmt;
use std::str::FromStr;

/// Regions of one size, and how many ranks each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// How many regions.
    pub regions: usize,
    /// How many ranks each has.
    pub seats: usize,
}

/// Whom the ranks of a move ask. All ranks on the same seat of their regions do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Those on the next seats of their own region, `stride` apart.
    Near,
    /// Those on the same seat of the next regions, `stride` apart.
    Far,
    /// The same, for the blocks of ranks on that seat only.
    Lane,
    /// Those on the same seat of the next regions, `stride` apart, which are dealt to the seats in turn: each region is asked by one rank.
    Fan,
}

impl Kind {
    const NAMES: [(Kind, &str); 4] =
        [(Kind::Near, "near"), (Kind::Far, "far"), (Kind::Lane, "lane"), (Kind::Fan, "fan")];

    fn name(self) -> &'static str {
        Kind::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Messages that all ranks send at the same time: `near2`, `far1x3`, `fan4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Move {
    /// Whom a rank asks.
    pub kind: Kind,
    /// How far they are apart, in seats or in regions.
    pub stride: usize,
    /// How many they are; of a fan, those that a whole region asks, and as many as it has ranks where none is named.
    pub times: Option<usize>,
}

impl Move {
    /// Whom the rank on a seat asks: how many regions on, and on which seat. Nobody asks himself.
    pub(crate) fn sources(self, grid: Grid, seat: usize) -> impl Iterator<Item = (usize, usize)> {
        let Grid { regions, seats } = grid;
        let (first, step, last) = match self.kind {
            Kind::Fan => (seat + 1, seats, self.times.unwrap_or(seats)),
            Kind::Near | Kind::Far | Kind::Lane => (1, 1, self.times.unwrap_or(1)),
        };
        let asked = move |multiple: usize| match self.kind {
            Kind::Near => (0, (seat + multiple * self.stride) % seats),
            Kind::Far | Kind::Lane | Kind::Fan => (multiple * self.stride % regions, seat),
        };
        (first..=last).step_by(step).map(asked).filter(move |asked| *asked != (0, seat))
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.name(), self.stride)?;
        self.times.map_or(Ok(()), |times| write!(f, "x{times}"))
    }
}

/// What all ranks do at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Messages: `near1`, `lane1+near2`.
    Talk(Vec<Move>),
    /// The ranks of each region share what they have, through memory: `share`.
    Share,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step::Talk(moves) = self else { return f.write_str("share") };
        for (index, one) in moves.iter().enumerate() {
            write!(f, "{}{one}", if index == 0 { "" } else { "+" })?;
        }
        Ok(())
    }
}

/// More than this many strides, or that far apart, are of no use to anybody.
const MOST: usize = 1 << 20;

impl FromStr for Move {
    type Err = String;

    fn from_str(text: &str) -> Result<Move, String> {
        let wrong = || {
            format!(
                "has {text:?} where near1, far1, lane1 or fan1 could be, with another number, or near1x2 for two at once"
            )
        };
        let known = Kind::NAMES.into_iter().find_map(|(kind, name)| Some((kind, text.strip_prefix(name)?)));
        let (kind, numbers) = known.ok_or_else(wrong)?;
        let number = |text: &str| text.parse().ok().filter(|number| (1..=MOST).contains(number)).ok_or_else(wrong);
        let (stride, times) = numbers.split_once('x').map_or((numbers, None), |(stride, times)| (stride, Some(times)));
        Ok(Move { kind, stride: number(stride)?, times: times.map(number).transpose()? })
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        match text {
            "share" => Ok(Step::Share),
            moves => Ok(Step::Talk(moves.split('+').map(|one| one.trim().parse()).collect::<Result<_, _>>()?)),
        }
    }
}

/// Reads steps that are separated by commas.
pub(crate) fn read(text: &str) -> Result<Vec<Step>, String> {
    text.split(',').map(|step| step.trim().parse()).collect()
}

/// Steps as they are read.
pub(crate) fn written(steps: &[Step]) -> String {
    steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_anything_else_refused_by_its_name() {
        for text in ["near1", "near1,near2,fan1,near1,near2", "lane1+near2,far3x2", "share,fan2x7,share"] {
            assert_eq!(written(&read(text).unwrap()), text);
        }
        for (text, named) in
            [("", "\"\""), ("near", "near"), ("far0", "far0"), ("near1,fat2", "fat2"), ("near1x", "near1x")]
        {
            let said = read(text).unwrap_err();
            assert!(said.contains(named), "{text}: {said}");
        }
    }

    #[test]
    fn a_fan_asks_every_region_once_and_nobody_asks_himself() {
        let grid = Grid { regions: 9, seats: 4 };
        let fan: Move = "fan1x8".parse().unwrap();
        let mut asked: Vec<usize> = (0..4).flat_map(|seat| fan.sources(grid, seat)).map(|(far, _)| far).collect();
        asked.sort_unstable();
        assert_eq!(asked, [1, 2, 3, 4, 5, 6, 7, 8]);
        let all = |text: &str, seat| text.parse::<Move>().unwrap().sources(grid, seat).collect::<Vec<_>>();
        assert_eq!(all("near1x5", 3), [(0, 0), (0, 1), (0, 2), (0, 0)]);
        assert_eq!(all("far3x3", 2), [(3, 2), (6, 2)]);
        assert_eq!(all("fan2", 3), [(8, 3)]);
    }
}
