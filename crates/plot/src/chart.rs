//! Lines over two axes; names stand beside the ends of their lines.

use std::fmt::Write as _;

use super::axis::Range;
use super::{Axis, COLOURS, escape, heading, open};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 220.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 58.0;

/// More points than this are a line without marks.
const MOST_MARKS: usize = 40;

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart {
    /// In large letters.
    pub title: String,
    /// Below it, in small ones.
    pub subtitle: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is drawn, in the order of the colours.
    pub lines: Vec<Curve>,
}

/// One line, its points from left to right.
#[derive(Clone, Debug)]
pub struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
    /// Which of the colours; by its place among the lines if none is given.
    colour: Option<usize>,
    look: Look,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Look {
    Solid,
    Dashed,
    /// A limit: dashed, without a name.
    Bound,
}

impl Curve {
    /// A solid line with its name at the right end.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.into(), points, colour: None, look: Look::Solid }
    }

    /// A line that the others are compared with: dark, dashed, and named by the subtitle.
    pub fn bound(points: Vec<(f64, f64)>) -> Curve {
        Curve { look: Look::Bound, ..Curve::new("", points) }
    }

    /// The same line, dashed.
    pub fn dashed(self) -> Curve {
        Curve { look: Look::Dashed, ..self }
    }

    /// One of [`COLOURS`].
    pub fn colour(self, colour: usize) -> Curve {
        Curve { colour: Some(colour), ..self }
    }

    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, y)| *y)
    }
}

impl Chart {
    /// Draws it.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        open(&mut svg, WIDTH, HEIGHT);
        heading(&mut svg, LEFT, &self.title, &self.subtitle);
        let frame = Frame::new(self);
        frame.axes(&mut svg);
        for bound in self.lines.iter().filter(|line| line.look == Look::Bound) {
            frame.line(&mut svg, bound, "", None);
        }
        let named = self.lines.iter().filter(|line| line.look != Look::Bound).enumerate();
        let mut named: Vec<(&Curve, &str)> =
            named.map(|(index, line)| (line, COLOURS[line.colour.unwrap_or(index) % COLOURS.len()])).collect();
        named.sort_by(|(a, _), (b, _)| b.last().total_cmp(&a.last()));
        let ways: Vec<Vec<(f64, f64)>> = named.iter().map(|(line, _)| frame.way(line)).collect();
        // Names stand beside the ends of their lines, as far as they have room.
        let mut label = TOP - 14.0;
        for (index, (line, colour)) in named.into_iter().enumerate() {
            let together: Vec<usize> = (0..ways.len()).filter(|&other| coincide(&ways[index], &ways[other])).collect();
            let turn = together.iter().position(|&other| other == index).unwrap_or(0);
            frame.line(&mut svg, line, colour, Some((turn, together.len())).filter(|_| together.len() > 1));
            frame.marks(&mut svg, line, colour, index);
            let Some(&(x, y)) = line.points.last() else { continue };
            let (end, from) = (frame.y(y), frame.x(x));
            label = end.max(label + 15.0);
            name(&mut svg, (from + 4.0, end), label, line, colour);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn name(svg: &mut String, (from, end): (f64, f64), label: f64, line: &Curve, colour: &str) {
    let x = WIDTH - RIGHT + 26.0;
    let _ = writeln!(
        svg,
        r#"<path class="leader" d="M{from:.1} {end:.1}L{:.1} {label:.1}"/><text class="name" x="{x}" y="{:.1}" fill="{colour}">{}</text>"#,
        x - 4.0,
        label + 4.0,
        escape(&line.name)
    );
}

/// The axes in place.
struct Frame {
    x: Range,
    y: Range,
}

impl Frame {
    fn new(chart: &Chart) -> Frame {
        let points = || chart.lines.iter().flat_map(|line| &line.points);
        Frame { x: chart.x.over(points().map(|(x, _)| *x)), y: chart.y.over(points().map(|(_, y)| *y)).roomy() }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, text) in self.y.ticks() {
            let y = self.y(value);
            let _ = writeln!(svg, r#"<path class="grid" d="M{LEFT} {y:.1}H{right}"/>"#);
            let _ = writeln!(svg, r#"<text class="tick end" x="{}" y="{:.1}">{text}</text>"#, LEFT - 8.0, y + 4.0);
        }
        for (value, text) in self.x.ticks() {
            let x = self.x(value);
            let _ = writeln!(svg, r#"<path class="grid" d="M{x:.1} {TOP}V{bottom}"/>"#);
            let _ = writeln!(svg, r#"<text class="tick middle" x="{x:.1}" y="{}">{text}</text>"#, bottom + 20.0);
        }
        let middle = (LEFT + right) / 2.0;
        let (name, low) = (escape(self.x.name()), HEIGHT - 14.0);
        let _ = writeln!(svg, r#"<text class="tick middle" x="{middle}" y="{low}">{name}</text>"#);
        let _ = writeln!(svg, r#"<text class="tick" x="{LEFT}" y="{}">{}</text>"#, TOP - 8.0, escape(self.y.name()));
    }

    fn way(&self, line: &Curve) -> Vec<(f64, f64)> {
        line.points.iter().map(|&(x, y)| (self.x(x), self.y(y))).collect()
    }

    /// The line itself. Of lines that coincide each shows in its turn, dash by dash.
    fn line(&self, svg: &mut String, line: &Curve, colour: &str, turn: Option<(usize, usize)>) {
        let mut shown = self.way(line);
        if let ([(_, y)], Look::Bound) = (&shown[..], line.look) {
            // A limit at one size is a limit all the same.
            shown = vec![(LEFT, *y), (WIDTH - RIGHT, *y)];
        }
        if shown.is_empty() {
            return;
        }
        let path: Vec<String> = shown.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (class, mut stroke) = match line.look {
            Look::Bound => ("bound", String::new()),
            Look::Solid => ("time", format!(r#" stroke="{colour}""#)),
            Look::Dashed => ("time dashed", format!(r#" stroke="{colour}""#)),
        };
        if let Some((turn, of)) = turn {
            stroke += &format!(
                r#" style="stroke-dasharray: {DASH} {}; stroke-dashoffset: -{}""#,
                DASH * (of - 1),
                DASH * turn
            );
        }
        let _ = writeln!(svg, r#"<path class="{class}"{stroke} d="M{}"/>"#, path.join("L"));
    }

    /// A mark at every point, of another form than the next line's.
    fn marks(&self, svg: &mut String, line: &Curve, colour: &str, form: usize) {
        let shown = self.way(line);
        if shown.len() > MOST_MARKS {
            return;
        }
        for (x, y) in shown {
            let form = match form % 4 {
                0 => format!("M{:.1} {y:.1}a2.8 2.8 0 1 0 5.6 0a2.8 2.8 0 1 0 -5.6 0z", x - 2.8),
                1 => format!("M{:.1} {:.1}h5v5h-5z", x - 2.5, y - 2.5),
                2 => format!("M{x:.1} {:.1}l3.4 6h-6.8z", y - 3.8),
                _ => format!("M{x:.1} {:.1}l3.6 3.6l-3.6 3.6l-3.6 -3.6z", y - 3.6),
            };
            let _ = writeln!(svg, r#"<path class="mark" fill="{colour}" d="{form}"/>"#);
        }
    }
}

/// Of lines that coincide, in points.
const DASH: usize = 9;

/// Whether nobody could tell two lines apart.
fn coincide(one: &[(f64, f64)], other: &[(f64, f64)]) -> bool {
    let near =
        |(one, other): (&(f64, f64), &(f64, f64))| (one.0 - other.0).abs() < 1.5 && (one.1 - other.1).abs() < 1.5;
    one.len() == other.len() && one.iter().zip(other).all(near)
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    #[test]
    fn every_line_is_drawn_and_named_and_bounds_are_not() {
        let points = vec![(1.0, 1.0), (4.0, 100.0)];
        let chart = Chart {
            title: "a < b".into(),
            subtitle: String::new(),
            x: Axis::logarithmic("size", Unit::Bytes, 2),
            y: Axis::logarithmic("", Unit::Microseconds, 10),
            lines: vec![
                Curve::new("one", points.clone()),
                Curve::new("two", points.clone()).dashed(),
                Curve::bound(points),
            ],
        };
        let svg = chart.svg();
        assert_eq!((svg.matches("class=\"time").count(), svg.matches("class=\"bound").count()), (2, 1));
        assert_eq!((svg.matches("class=\"name").count(), svg.matches("class=\"mark").count()), (2, 4));
        assert!(svg.contains("a &lt; b") && svg.contains(">one<") && svg.contains(">two<"));
    }

    #[test]
    fn lines_that_coincide_show_by_turns_and_a_bound_at_one_size_is_drawn() {
        let chart = |lines| Chart {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::logarithmic("", Unit::Bytes, 2),
            y: Axis::logarithmic("", Unit::Microseconds, 10),
            lines,
        };
        let points = vec![(1.0, 1.0), (4.0, 100.0)];
        let apart = Curve::new("apart", vec![(1.0, 2.0), (4.0, 300.0)]);
        let svg = chart(vec![Curve::new("one", points.clone()), Curve::new("two", points), apart]).svg();
        assert_eq!(svg.matches("stroke-dasharray: 9 9; stroke-dashoffset: -0").count(), 1);
        assert_eq!(svg.matches("stroke-dasharray: 9 9; stroke-dashoffset: -9").count(), 1);
        let svg = chart(vec![Curve::new("one", vec![(8.0, 2.0)]), Curve::bound(vec![(8.0, 1.0)])]).svg();
        let bound = svg.lines().find(|line| line.contains("class=\"bound\"")).unwrap();
        assert!(bound.contains("d=\"M78.0 ") && bound.contains("L680.0 "), "{bound}");
    }
}
