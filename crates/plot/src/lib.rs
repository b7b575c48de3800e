//! Pictures of numbers that stand alone, as SVG: lines over axes, and maps of cells.

mod axis;
mod chart;
mod map;

pub use axis::{Axis, Unit};
pub use chart::{Chart, Curve};
pub use map::{Cell, Map};

use allhands_schedule::Collective;

/// Sizes as every command asks for them: of a block, or of the vector that a collective cuts.
pub fn size_axis(collective: Collective) -> Axis {
    let name = if collective.cuts() { "bytes of the vector" } else { "bytes of a block" };
    Axis::logarithmic(name, Unit::Bytes, 2)
}

/// Told apart also by people who see red and green alike.
pub const COLOURS: [&str; 12] = [
    "#2368c4", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#0a7ea4", "#57606a", "#bc4c00", "#116329",
    "#6639ba", "#a40e26",
];

/// The first line of a picture, and what all of them look like.
fn open(svg: &mut String, width: f64, height: f64) {
    *svg += &format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif">"#
    );
    svg.push('\n');
    svg.push_str(STYLE);
}

fn heading(svg: &mut String, x: f64, title: &str, subtitle: &str) {
    *svg += &format!("<text class=\"title\" x=\"{x}\" y=\"30\">{}</text>\n", escape(title));
    *svg += &format!("<text class=\"subtitle\" x=\"{x}\" y=\"50\">{}</text>\n", escape(subtitle));
}

/// Text as it stands between tags or in an attribute.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = r##"<style>
  .title { font-size: 17px; font-weight: 600; fill: #1b1f24 }
  .subtitle, .tick { font-size: 12px; fill: #57606a }
  .name { font-size: 12px }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  .grid { stroke: #e4e8ec; fill: none }
  .time { fill: none; stroke-width: 1.8; stroke-linejoin: round }
  .dashed { stroke-dasharray: 6 4 }
  .bound { fill: none; stroke: #1b1f24; stroke-width: 1.4; stroke-dasharray: 5 4 }
  .leader { stroke: #c8ced4; fill: none; stroke-width: 0.8 }
</style>
<rect class="ground" width="100%" height="100%" fill="#fff"/>
"##;
