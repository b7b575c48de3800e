//! What can be checked of the pages that people read: that links lead somewhere, and that the book has all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Markdown files of a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect()
}

/// What links of a page name that are not of another site: `[words](here)`.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains("://")).map(Into::into).collect()
}

#[test]
fn links_are_found() {
    assert_eq!(links("[a](b.md), ![c](d/e.svg#f) [g](https://h) [i](#j) [k]"), ["b.md", "d/e.svg"]);
}

#[test]
fn links_lead_to_files() {
    for page in [pages(&root()), pages(&root().join("docs"))].concat() {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            assert!(page.parent().unwrap().join(&link).exists(), "{} links to {link}", page.display());
        }
    }
}

#[test]
fn the_book_has_all_pages() {
    let docs = root().join("docs");
    let listed: BTreeSet<PathBuf> =
        links(&fs::read_to_string(docs.join("SUMMARY.md")).unwrap()).iter().map(|link| docs.join(link)).collect();
    let written = pages(&docs).into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, written);
}
