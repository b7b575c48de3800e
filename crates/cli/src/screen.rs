//! Where output goes: colours and width of the terminal, or plain text into a file or pipe.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use allhands_schedule::draw::Ink;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Color, Style};
use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, Width, presets};
use indicatif::{ProgressBar, ProgressStyle};

use crate::job;

/// Where no terminal says otherwise, or one says nonsense.
const PLAIN_WIDTH: usize = 80;

/// No terminal is narrower.
const LEAST_WIDTH: usize = 40;

/// A launcher may give its processes a terminal of its own, which says nothing about where their output goes in the end.
pub(crate) fn set_up() {
    if job::launched().is_some() && std::env::var_os("CLICOLOR_FORCE").is_none() {
        ColorChoice::Never.write_global();
    }
}

/// Standard output that drops colours where they are not wanted.
pub(crate) fn stdout() -> AutoStream<io::StdoutLock<'static>> {
    anstream::stdout().lock()
}

/// Whether standard output shows colours.
pub(crate) fn coloured() -> bool {
    static COLOURED: LazyLock<bool> = LazyLock::new(|| AutoStream::choice(&io::stdout()) != ColorChoice::Never);
    *COLOURED
}

/// How many columns there are.
pub(crate) fn width() -> usize {
    static WIDTH: LazyLock<usize> = LazyLock::new(|| {
        let real = io::stdout().is_terminal() && job::launched().is_none();
        let terminal = if real { Table::new().width() } else { None };
        terminal.map(usize::from).filter(|width| *width >= LEAST_WIDTH).unwrap_or(PLAIN_WIDTH)
    });
    *WIDTH
}

/// Text in lines that fit, broken between words.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut taken = 0;
    for word in text.split_whitespace() {
        let letters = word.chars().count();
        if taken > 0 {
            let fits = taken + 1 + letters <= width();
            lines.push(if fits { ' ' } else { '\n' });
            taken = if fits { taken + 1 } else { 0 };
        }
        lines.push_str(word);
        taken += letters;
    }
    lines
}

/// One line on the standard error about what is measured here, if there is something to be said.
pub(crate) fn caution(said: Option<String>) {
    if let Some(said) = said {
        // With the standard error gone there is nobody to tell.
        let _ = io::stderr().write_all(format!("caution: {said}\n").as_bytes());
    }
}

/// The colours of drawings; plain text where there are none.
pub(crate) fn paint(ink: Ink, text: &str) -> String {
    if !coloured() || text.is_empty() {
        return text.into();
    }
    let style = style(ink);
    format!("{style}{text}{style:#}")
}

fn style(ink: Ink) -> Style {
    const STEPS: [AnsiColor; 6] = [
        AnsiColor::Blue,
        AnsiColor::Yellow,
        AnsiColor::Green,
        AnsiColor::Magenta,
        AnsiColor::Cyan,
        AnsiColor::BrightBlue,
    ];
    let coloured = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
    match ink {
        Ink::Heading => Style::new().bold(),
        Ink::Far => coloured(AnsiColor::Red).bold(),
        Ink::Step(0) => Style::new(),
        Ink::Step(step) => coloured(STEPS[(step - 1) % STEPS.len()]),
        Ink::Faint => Style::new().dimmed(),
    }
}

/// An empty table in the one style that all commands use.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(presets::NOTHING.header_separator(rule)).set_content_arrangement(ContentArrangement::Dynamic);
    // A rule may be one longer than the columns above it.
    table.set_width(u16::try_from(width() - 1).unwrap_or(u16::MAX));
    table.set_header(header.to_vec());
    table
}

/// The text of a table, in which no word is broken.
pub(crate) fn shown(mut table: Table) -> String {
    let cells = |row: &comfy_table::Row| row.cell_iter().map(|cell| longest_word(&cell.content())).collect::<Vec<_>>();
    let rows: Vec<Vec<usize>> = table.header().into_iter().chain(table.row_iter()).map(cells).collect();
    for (index, column) in table.column_iter_mut().enumerate() {
        if column.constraint().is_none() {
            let longest = rows.iter().filter_map(|row| row.get(index)).max().copied().unwrap_or(0);
            let least = u16::try_from(longest + PADDING).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
    table.trim_fmt()
}

/// Of a column, on both sides.
const PADDING: usize = 2;

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)
}

/// Columns of names, which nobody wants broken.
pub(crate) fn unbroken(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// What a rank that shows it is doing, in so many steps; hidden where the standard error is no terminal.
pub(crate) fn progress(doing: &'static str, steps: usize, shows: bool) -> ProgressBar {
    if !shows || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg} {eta}");
    let bar = ProgressBar::new(steps as u64).with_prefix(doing);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// `1 block`, `2 blocks`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
