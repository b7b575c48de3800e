//! The files of a figure: SVG and CSV, named by its id.

use std::fs;
use std::path::Path;

use super::figure::{Figure, Recipe, Table};
use crate::error::{Error, Result};

/// Makes the folder, if it is not there.
pub(super) fn folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| {
        Error::Named(format!(
            "cannot make the folder {}: {error}; name one that can be written with --output",
            path.display()
        ))
    })
}

/// Writes one file.
pub(super) fn file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::Named(format!("cannot write {}: {error}", path.display())))
}

/// Writes what a figure shows.
pub(super) fn figure(folder: &Path, recipe: &Recipe, figure: &Figure) -> Result<()> {
    let pictures = figure.pictures.iter().map(|picture| (name(recipe, &picture.name, "svg"), picture.svg.clone()));
    let tables = figure.tables.iter().map(|table| (name(recipe, &table.name, "csv"), csv(table)));
    for (name, text) in pictures.chain(tables) {
        file(&folder.join(&name), &text)?;
    }
    Ok(())
}

/// `nap-10.svg`, or `nap-10-corrected.svg`.
pub(super) fn name(recipe: &Recipe, part: &str, ending: &str) -> String {
    match part {
        "" => format!("{}.{ending}", recipe.id),
        part => format!("{}-{part}.{ending}", recipe.id),
    }
}

/// Cells with commas, quotes or line ends stand in quotes.
fn csv(table: &Table) -> String {
    let cell = |text: &String| match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.clone(),
    };
    let line = |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
    std::iter::once(&table.head).chain(&table.rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_commas_stand_in_quotes() {
        let mut table = Table::new("", &["algorithm", "time, us"]);
        table.row([&"say \"nap\"", &1.5]);
        assert_eq!(csv(&table), "algorithm,\"time, us\"\n\"say \"\"nap\"\"\",1.5\n");
    }
}
