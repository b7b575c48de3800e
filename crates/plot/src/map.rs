//! Cells in rows and columns, each with a colour and a text that shows on hovering.

use std::fmt::Write as _;

use super::{escape, heading, open};

const LEFT: f64 = 78.0;
const TOP: f64 = 74.0;
const WIDE: f64 = 800.0;
const ROW: f64 = 16.0;

/// What a map shows.
#[derive(Clone, Debug)]
pub struct Map {
    /// In large letters.
    pub title: String,
    /// Below it, in small ones.
    pub subtitle: String,
    /// Names of the columns, of which as many are written as have room.
    pub columns: Vec<String>,
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// What columns are, under them.
    pub across: String,
    /// Row by row.
    pub cells: Vec<Vec<Cell>>,
    /// Colours and what they mean.
    pub key: Vec<(String, String)>,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// As CSS writes it.
    pub colour: String,
    /// What a pointer that rests on it is told.
    pub tip: String,
}

impl Map {
    /// Draws it.
    pub fn svg(&self) -> String {
        let column = WIDE / self.columns.len().max(1) as f64;
        let bottom = TOP + ROW * self.rows.len() as f64;
        let mut svg = String::new();
        open(&mut svg, LEFT + WIDE + 22.0, bottom + 76.0);
        heading(&mut svg, LEFT, &self.title, &self.subtitle);
        for (row, name) in self.rows.iter().enumerate() {
            let y = TOP + ROW * row as f64;
            let _ = writeln!(
                svg,
                r#"<text class="tick end" x="{}" y="{:.1}">{}</text>"#,
                LEFT - 8.0,
                y + ROW - 4.0,
                escape(name)
            );
            for (index, Cell { colour, tip }) in self.cells[row].iter().enumerate() {
                let x = LEFT + column * index as f64;
                let _ = writeln!(
                    svg,
                    r#"<path d="M{x:.1} {y:.1}h{:.1}v{:.1}h-{:.1}z" fill="{colour}"><title>{}</title></path>"#,
                    column - 0.6,
                    ROW - 0.6,
                    column - 0.6,
                    escape(tip)
                );
            }
        }
        self.under(&mut svg, column, bottom);
        svg.push_str("</svg>\n");
        svg
    }

    /// Names of columns, and the key.
    fn under(&self, svg: &mut String, column: f64, bottom: f64) {
        let every = (34.0 / column).ceil().max(1.0) as usize;
        for (index, name) in self.columns.iter().enumerate().filter(|(index, _)| (index + 1) % every == 0 || every == 1)
        {
            let x = LEFT + column * (index as f64 + 0.5);
            let _ = writeln!(
                svg,
                r#"<text class="tick middle" x="{x:.1}" y="{:.1}">{}</text>"#,
                bottom + 16.0,
                escape(name)
            );
        }
        let middle = LEFT + WIDE / 2.0;
        let across = escape(&self.across);
        let _ = writeln!(svg, r#"<text class="tick middle" x="{middle}" y="{:.1}">{across}</text>"#, bottom + 34.0);
        let mut x = LEFT;
        for (name, colour) in &self.key {
            let y = bottom + 48.0;
            let _ = writeln!(
                svg,
                r#"<rect x="{x:.1}" y="{y:.1}" width="14" height="14" rx="3" fill="{colour}"/><text class="tick" x="{:.1}" y="{:.1}">{}</text>"#,
                x + 20.0,
                y + 11.0,
                escape(name)
            );
            x += 44.0 + 6.6 * name.chars().count() as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_colour_and_tip() {
        let cell = |colour: &str| Cell { colour: colour.into(), tip: format!("it is {colour}") };
        let map = Map {
            title: "t".into(),
            subtitle: "s".into(),
            columns: vec!["5".into(), "8".into()],
            rows: vec!["1 B".into()],
            across: "ranks".into(),
            cells: vec![vec![cell("#111"), cell("#222")]],
            key: vec![("ring".into(), "#111".into())],
        };
        let svg = map.svg();
        assert_eq!(svg.matches("<title>it is #").count(), 2);
        assert!(svg.contains("fill=\"#222\"") && svg.contains(">ring<") && svg.contains(">ranks<"));
    }
}
