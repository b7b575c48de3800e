//! The figures and tables of the papers, made again and compared.
//!
//! [`chosen`] finds recipes by name, [`Recipe::make`] makes a figure, [`write()`] writes its files and [`report()`] one page of many.
//!
//! ```
//! use allhands_reproduce::{Effort, chosen};
//! let recipes = chosen(&["loc-bruck-1".into()])?;
//! let figure = (recipes[0].make)(Effort::Quick)?;
//! assert_eq!(figure.verdict.words(), "matches");
//! # Ok::<(), allhands_reproduce::Error>(())
//! ```

mod drawn;
mod error;
mod figure;
mod jocksch;
mod loc_bruck;
mod nap;
mod numbers;
mod radix;
mod report;
mod sparbit;
mod timed;
mod write;

use std::path::{Path, PathBuf};

pub use error::{Error, Result};
pub use figure::{Effort, Figure, Recipe, Verdict};

/// Every figure and table there is, paper by paper.
fn recipes() -> impl Iterator<Item = &'static Recipe> {
    [loc_bruck::RECIPES, radix::RECIPES, sparbit::RECIPES, nap::RECIPES, jocksch::RECIPES].into_iter().flatten()
}

/// How many figures came to which verdict.
pub fn sums(made: &[(&Recipe, Figure)], effort: Effort) -> String {
    let count = |which: &str| made.iter().filter(|(_, figure)| figure.verdict.words() == which).count();
    let quick = effort.either(" with fewer ranks", "");
    format!(
        "{}{quick}: {} as in the paper, {} in shape, {} otherwise.",
        match made.len() {
            1 => "1 figure".into(),
            many => format!("{many} figures"),
        },
        count(Verdict::Matches.words()),
        count(Verdict::Shape(String::new()).words()),
        count(Verdict::Differs(String::new()).words())
    )
}

/// The recipes that are asked for, each once, in the order of the papers.
pub fn chosen(asked: &[String]) -> Result<Vec<&'static Recipe>> {
    let known = |name: &String| recipes().any(|recipe| recipe.id == name || recipe.paper.name() == name);
    if let Some(unknown) = asked.iter().find(|name| !known(name)) {
        let ids: Vec<&str> = recipes().map(|recipe| recipe.id).collect();
        return Err(Error::Named(format!(
            "no figure or paper is called {unknown}; there are {} (a paper's name alone stands for all of its figures)",
            ids.join(", ")
        )));
    }
    let wanted = |recipe: &&Recipe| {
        asked.is_empty() || asked.iter().any(|name| recipe.id == name || recipe.paper.name() == name)
    };
    Ok(recipes().filter(wanted).collect())
}

/// Makes the folder for what is written, if it is not there.
pub fn folder(path: &Path) -> Result<()> {
    write::folder(path)
}

/// Writes what a figure shows as SVG and CSV into a folder.
pub fn write(folder: &Path, recipe: &Recipe, figure: &Figure) -> Result<()> {
    write::figure(folder, recipe, figure)
}

/// Writes the page that has all of them, report.html, into a folder; gives its name.
pub fn report(folder: &Path, made: &[(&Recipe, Figure)], effort: Effort) -> Result<PathBuf> {
    let page = folder.join("report.html");
    write::file(&page, &report::html(made, effort))?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_recipe_makes_a_figure_that_is_judged() {
        recipes().for_each(|recipe| {
            let id = recipe.id;
            let figure = (recipe.make)(Effort::Quick).unwrap_or_else(|failure| panic!("{id}: {failure}"));
            assert!(!figure.text.is_empty() && !figure.compared.is_empty(), "{id}");
            assert!(!figure.pictures.is_empty() || !figure.tables.is_empty(), "{id}");
            assert!(figure.pictures.iter().all(|picture| picture.svg.starts_with("<svg")), "{id}");
            assert!(figure.tables.iter().all(|table| table.rows.iter().all(|row| row.len() == table.head.len())));
            assert!(figure.verdict == figure::Verdict::Matches || !figure.verdict.why().is_empty(), "{id}");
            let parts: Vec<&str> = figure.pictures.iter().map(|picture| picture.name.as_str()).collect();
            assert_eq!(parts.iter().collect::<BTreeSet<_>>().len(), parts.len(), "{id}: {parts:?}");
        });
    }

    /// What the papers draw and count is ours to the last number; where it is not, the paper's own equation is on our side.
    #[test]
    fn what_is_printed_exactly_is_the_same() {
        let made = |id: &str| {
            let recipe = recipes().find(|recipe| recipe.id == id).unwrap();
            (recipe.make)(Effort::Quick).unwrap()
        };
        for id in ["loc-bruck-1", "loc-bruck-2", "loc-bruck-4", "loc-bruck-5", "loc-bruck-6", "radix-2a", "sparbit-3"] {
            let figure = made(id);
            assert_eq!(figure.verdict, figure::Verdict::Matches, "{id}");
        }
        let numbers = |id: &str, what: &str| {
            let compared = made(id).compared;
            let one = compared.iter().find(|one| one.what == what).unwrap_or_else(|| panic!("{id}: {what}"));
            (one.paper.clone(), one.ours.clone())
        };
        let same = |number: &str| (number.to_string(), number.to_string());
        assert_eq!(numbers("loc-bruck-1", "values in them"), same("15"));
        assert_eq!(numbers("loc-bruck-5", "values that a process sends to other regions, at most"), same("4"));
        assert_eq!(numbers("loc-bruck-6", "P7 receives from, values of regions"), same("P55: 13, 14, 15, 0"));
        assert_eq!(numbers("radix-1", "steps with radix 2"), same("3"));
        assert_eq!(numbers("radix-1", "steps with radix 4"), ("5".into(), "4".into()));
        assert_eq!(numbers("radix-1", "Equation 2 with radix 4, and the schedule"), same("4"));
        assert_eq!(
            numbers("sparbit-table-1", "yahoo sequential: the printed sets add up to the printed total"),
            same("746")
        );
    }

    /// The number of processes in a title is that of the picture below it.
    #[test]
    fn quick_titles_say_what_is_drawn() {
        let titled = |id: &str, words: &str, drawn: &str| {
            let recipe = recipes().find(|recipe| recipe.id == id).unwrap();
            assert!(recipe.drawn(Effort::Quick).contains(words), "{id}: {}", recipe.drawn(Effort::Quick));
            assert_eq!(recipe.drawn(Effort::Full), recipe.title);
            let figure = (recipe.make)(Effort::Quick).unwrap();
            assert!(figure.pictures[0].svg.contains(drawn), "{id}");
        };
        for id in ["radix-2b", "radix-3a", "radix-3b", "radix-3c", "radix-3d", "radix-4a"] {
            titled(id, "512 processes", "P = 512");
        }
        titled("jocksch-10", "20 nodes", "20 nodes of 12 tasks");
        titled("jocksch-13", "20 nodes", "20 nodes of one task");
    }

    #[test]
    fn ids_are_unique_and_begin_with_their_paper() {
        let ids: BTreeSet<&str> = recipes().map(|recipe| recipe.id).collect();
        assert_eq!(ids.len(), recipes().count());
        assert!(recipes().all(|recipe| recipe.id.starts_with(&format!("{}-", recipe.paper.name()))));
    }

    #[test]
    fn figures_are_chosen_by_id_and_by_paper() {
        let ids = |asked: &[&str]| -> Vec<&str> {
            let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
            chosen(&asked).unwrap().into_iter().map(|recipe| recipe.id).collect()
        };
        assert_eq!(ids(&["loc-bruck-7", "loc-bruck-1", "loc-bruck-7"]), ["loc-bruck-1", "loc-bruck-7"]);
        assert_eq!(ids(&["loc-bruck"]).len(), loc_bruck::RECIPES.len());
        assert_eq!(ids(&[]).len(), recipes().count());
        let refused = chosen(&["loc-bruck-77".into()]).unwrap_err().to_string();
        assert!(refused.contains("called loc-bruck-77; there are loc-bruck-1, "), "{refused}");
    }
}
