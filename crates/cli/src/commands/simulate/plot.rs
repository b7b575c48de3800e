//! Time against size as a picture that stands alone: both axes logarithmic, one line an algorithm, the lower bound dashed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use allhands_model::Machine;

use super::Line;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 220.0;
const TOP: f64 = 74.0;
const BOTTOM: f64 = 58.0;

/// Told apart also by people who see red and green alike.
const COLOURS: [&str; 12] = [
    "#2368c4", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#0a7ea4", "#57606a", "#bc4c00", "#116329",
    "#6639ba", "#a40e26",
];

/// Draws simulated times.
pub(super) fn svg(lines: &[Line], machine: &Machine) -> String {
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif">"#
    );
    svg.push_str(STYLE);
    let Some(first) = lines.first() else {
        svg.push_str("</svg>\n");
        return svg;
    };
    let title = format!("{} on {}, {}", first.collective, machine.name, first.topology);
    let _ = writeln!(svg, r#"<text class="title" x="{LEFT}" y="30">{}</text>"#, escape(&title));
    let _ = writeln!(
        svg,
        r#"<text class="subtitle" x="{LEFT}" y="50">{} ranks; simulated time until the last rank is through; dashed: the lower bound</text>"#,
        first.ranks
    );
    let axes = Axes::new(lines);
    axes.draw(&mut svg);
    let bound: BTreeMap<u64, f64> = lines.iter().map(|line| (line.bytes, line.bound_us)).collect();
    axes.line(&mut svg, "bound", "", &bound.into_iter().filter(|(_, time)| *time > 0.0).collect::<Vec<_>>());
    let mut algorithms: BTreeMap<&str, Vec<(u64, f64)>> = BTreeMap::new();
    for line in lines {
        algorithms.entry(&line.algorithm).or_default().push((line.bytes, line.time_us));
    }
    let mut ends: Vec<(&str, Vec<(u64, f64)>)> = algorithms.into_iter().collect();
    ends.sort_by(|a, b| last(&b.1).total_cmp(&last(&a.1)));
    let mut label = TOP - 14.0;
    for (index, (name, points)) in ends.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        axes.line(&mut svg, "time", colour, points);
        // Names stand beside the ends of their lines, as far as they have room.
        label = axes.y(last(points)).max(label + 15.0);
        let (x, end) = (WIDTH - RIGHT + 26.0, axes.y(last(points)));
        let _ = writeln!(
            svg,
            r#"<path class="leader" d="M{:.1} {end:.1}L{:.1} {label:.1}"/><text class="name" x="{x}" y="{:.1}" fill="{colour}">{}</text>"#,
            WIDTH - RIGHT + 4.0,
            x - 4.0,
            label + 4.0,
            escape(name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn last(points: &[(u64, f64)]) -> f64 {
    points.last().map_or(0.0, |(_, time)| *time)
}

struct Axes {
    sizes: (f64, f64),
    times: (f64, f64),
}

impl Axes {
    fn new(lines: &[Line]) -> Axes {
        let sizes = lines.iter().map(|line| (line.bytes.max(1) as f64).log2());
        let (low, high) = ends(sizes);
        let times = lines.iter().flat_map(|line| [line.time_us, line.bound_us]).filter(|time| *time > 0.0);
        let (least, most) = ends(times.map(f64::log10));
        // One size is a point in the middle.
        let room = if high > low { 0.0 } else { 1.0 };
        Axes { sizes: (low - room, high + room), times: (least.floor(), most.ceil().max(least.floor() + 1.0)) }
    }

    fn x(&self, bytes: u64) -> f64 {
        let share = ((bytes.max(1) as f64).log2() - self.sizes.0) / (self.sizes.1 - self.sizes.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, time: f64) -> f64 {
        let share = (time.max(1e-12).log10() - self.times.0) / (self.times.1 - self.times.0);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for power in self.times.0 as i32..=self.times.1 as i32 {
            let y = self.y(10f64.powi(power));
            let _ = writeln!(svg, r#"<path class="grid" d="M{LEFT} {y:.1}H{right}"/>"#);
            let _ =
                writeln!(svg, r#"<text class="tick end" x="{}" y="{:.1}">{}</text>"#, LEFT - 8.0, y + 4.0, time(power));
        }
        let every = ((self.sizes.1 - self.sizes.0) / 8.0).ceil().max(1.0) as usize;
        for power in (self.sizes.0.ceil() as i32..=self.sizes.1.floor() as i32).step_by(every) {
            let x = self.x(1u64 << power.clamp(0, 62));
            let _ = writeln!(svg, r#"<path class="grid" d="M{x:.1} {TOP}V{bottom}"/>"#);
            let _ =
                writeln!(svg, r#"<text class="tick middle" x="{x:.1}" y="{}">{}</text>"#, bottom + 20.0, size(power));
        }
        let _ = writeln!(
            svg,
            r#"<text class="tick middle" x="{}" y="{}">bytes of a block, or of the vector</text>"#,
            (LEFT + right) / 2.0,
            HEIGHT - 14.0
        );
    }

    fn line(&self, svg: &mut String, class: &str, colour: &str, points: &[(u64, f64)]) {
        let path: Vec<String> =
            points.iter().map(|&(bytes, time)| format!("{:.1} {:.1}", self.x(bytes), self.y(time))).collect();
        if path.is_empty() {
            return;
        }
        let _ = writeln!(svg, r#"<path class="{class}" stroke="{colour}" d="M{}"/>"#, path.join("L"));
        if class == "time" {
            for &(bytes, time) in points {
                let (x, y) = (self.x(bytes), self.y(time));
                let _ = writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="2.6" fill="{colour}"/>"#);
            }
        }
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() { (low, high) } else { (0.0, 1.0) }
}

fn time(power: i32) -> String {
    match power {
        ..-3 => format!("1e{power} µs"),
        -3..0 => format!("{} ns", 10i64.pow((power + 3) as u32)),
        0..3 => format!("{} µs", 10i64.pow(power as u32)),
        3..6 => format!("{} ms", 10i64.pow(power as u32 - 3)),
        _ => format!("{} s", 10i64.pow((power as u32 - 6).min(18))),
    }
}

fn size(power: i32) -> String {
    let unit = ["B", "KiB", "MiB", "GiB", "TiB"][(power / 10).clamp(0, 4) as usize];
    format!("{} {unit}", 1u64 << (power - power / 10 * 10).clamp(0, 62))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = r##"<style>
  .title { font-size: 17px; font-weight: 600; fill: #1b1f24 }
  .subtitle, .tick { font-size: 12px; fill: #57606a }
  .name { font-size: 12px }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  .grid { stroke: #e4e8ec; fill: none }
  .time { fill: none; stroke-width: 1.8; stroke-linejoin: round }
  .bound { fill: none; stroke: #1b1f24; stroke-width: 1.4; stroke-dasharray: 5 4 }
  .leader { stroke: #c8ced4; fill: none; stroke-width: 0.8 }
</style>
<rect width="100%" height="100%" fill="#fff"/>
"##;
