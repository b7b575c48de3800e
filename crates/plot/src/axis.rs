//! An axis: from values to places between 0 and 1, and where its ticks stand.

/// What the numbers along an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Just numbers.
    Plain,
    /// Microseconds, shown in ns, µs, ms or s.
    Microseconds,
    /// Bytes, shown in B, KiB and so on.
    Bytes,
}

/// How an axis is scaled and called.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What is drawn along it.
    pub name: String,
    /// How its numbers are written.
    pub unit: Unit,
    /// The base of the logarithm; none: linear.
    pub logarithm: Option<u32>,
}

impl Axis {
    /// Equal distances for equal differences.
    pub fn linear(name: &str, unit: Unit) -> Axis {
        Axis { name: name.into(), unit, logarithm: None }
    }

    /// Logarithmic, with ticks at powers of 2 or of 10.
    pub fn logarithmic(name: &str, unit: Unit, base: u32) -> Axis {
        Axis { name: name.into(), unit, logarithm: Some(base) }
    }

    /// The axis over these values; those that a logarithm has no place for are left out.
    pub(super) fn over(&self, values: impl Iterator<Item = f64>) -> Range {
        let shown = values.filter(|value| value.is_finite() && (self.logarithm.is_none() || *value > 0.0));
        let (low, high) = ends(shown.map(|value| self.place(value)));
        // One value is a point in the middle.
        let room = if high > low { 0.0 } else { 1.0 };
        let (low, high) = match self.logarithm {
            None => (low.min(0.0), high + room),
            Some(_) => (low - room, high + room),
        };
        Range { axis: self.clone(), low, high }
    }

    fn place(&self, value: f64) -> f64 {
        match self.logarithm {
            None => value,
            Some(2) => value.log2(),
            Some(10) => value.log10(),
            Some(base) => value.ln() / f64::from(base).ln(),
        }
    }
}

/// An axis with its ends.
pub(super) struct Range {
    axis: Axis,
    low: f64,
    high: f64,
}

impl Range {
    /// The same with a little room at both ends, so that no line runs along the frame.
    pub(super) fn roomy(mut self) -> Range {
        let room = (self.high - self.low) * 0.06;
        self.low -= if self.axis.logarithm.is_some() { room } else { 0.0 };
        self.high += room;
        self
    }

    /// Between 0 and 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let value = if self.axis.logarithm.is_some() { value.max(1e-12) } else { value };
        (self.axis.place(value) - self.low) / (self.high - self.low)
    }

    /// Values with their text.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.axis.logarithm {
            Some(base) => self.powers(base),
            None => self.round(),
        };
        values.into_iter().map(|value| (value, self.text(value))).collect()
    }

    /// Powers of the base, every so many; where fewer than three fit, tens with 2 and 5 between.
    fn powers(&self, base: u32) -> Vec<f64> {
        let every = ((self.high - self.low) / 9.0).ceil().max(1.0) as usize;
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let mut powers: Vec<i32> = (first..=last).step_by(every).collect();
        // The last one stands, in place of one that is too near to it.
        if powers.last().is_some_and(|power| *power < last && powers.len() > 1) {
            powers.pop();
            powers.push(last);
        }
        let powers: Vec<f64> = powers.into_iter().map(|power| f64::from(base).powi(power)).collect();
        if powers.len() > 3 || base != 10 {
            return powers;
        }
        let between = (self.low.floor() as i32..=self.high.ceil() as i32)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        between.filter(|value| (self.low..=self.high).contains(&self.axis.place(*value))).collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten, at most nine.
    fn round(&self) -> Vec<f64> {
        let least = (self.high - self.low) / 8.0;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(least);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|index| index as f64 * step).collect()
    }

    fn text(&self, value: f64) -> String {
        match self.axis.unit {
            Unit::Plain => plain(value),
            Unit::Microseconds => microseconds(value),
            Unit::Bytes => bytes(value),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.axis.name
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() { (low, high) } else { (0.0, 1.0) }
}

/// `0.5`, `20`, `4096`: no more digits than a tick has.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn microseconds(value: f64) -> String {
    match value {
        ..1e-3 if value != 0.0 => format!("{value:.0e} µs"),
        1e-3..1.0 => format!("{} ns", plain(value * 1e3)),
        1e3..1e6 => format!("{} ms", plain(value * 1e-3)),
        1e6.. => format!("{} s", plain(value * 1e-6)),
        _ => format!("{} µs", plain(value)),
    }
}

fn bytes(value: f64) -> String {
    let power = value.max(1.0).log2() as i32 / 10;
    let unit = ["B", "KiB", "MiB", "GiB", "TiB"][power.clamp(0, 4) as usize];
    format!("{} {unit}", plain(value / 1024f64.powi(power.clamp(0, 4))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: Axis, values: &[f64]) -> Vec<String> {
        axis.over(values.iter().copied()).ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        let sizes = Axis::logarithmic("", Unit::Bytes, 2);
        assert_eq!(
            ticks(sizes, &[4.0, 1024.0]),
            ["4 B", "8 B", "16 B", "32 B", "64 B", "128 B", "256 B", "512 B", "1 KiB"]
        );
        let wide = ticks(Axis::logarithmic("", Unit::Bytes, 2), &[8.0, 1_048_576.0]);
        assert_eq!((wide.first().unwrap().as_str(), wide.last().unwrap().as_str()), ("8 B", "1 MiB"), "{wide:?}");
        let times = Axis::logarithmic("", Unit::Microseconds, 10);
        assert_eq!(ticks(times.clone(), &[3.0, 30.0]), ["5 µs", "10 µs", "20 µs"]);
        assert_eq!(ticks(times, &[0.1, 20_000.0]), ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
        assert_eq!(
            ticks(Axis::linear("", Unit::Plain), &[2.0, 80.0]),
            ["0", "10", "20", "30", "40", "50", "60", "70", "80"]
        );
    }

    #[test]
    fn places_lie_between_the_ends() {
        let range = Axis::logarithmic("", Unit::Plain, 2).over([4.0, 0.0, 64.0].into_iter());
        assert_eq!([4.0, 16.0, 64.0].map(|value| range.share(value)), [0.0, 0.5, 1.0]);
    }
}
