//! What a reproduced figure is: a short text, pictures and tables, the paper's numbers beside ours, and a verdict that
//! follows from these.

use std::fmt::Display;

use super::numbers::rounded;
use crate::error::Result;

/// Where a figure is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paper {
    LocBruck,
    Radix,
    Sparbit,
    Nap,
    Jocksch,
}

impl Paper {
    /// As it is called on the command line, and where the ids of its figures begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Paper::LocBruck => "loc-bruck",
            Paper::Radix => "radix",
            Paper::Sparbit => "sparbit",
            Paper::Nap => "nap",
            Paper::Jocksch => "jocksch",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Paper::LocBruck => "A Locality-Aware Bruck Allgather",
            Paper::Radix => "Parameterized Radix-r Bruck Algorithm for All-to-all Communication",
            Paper::Sparbit => "Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather algorithm",
            Paper::Nap => "Node-Aware Improvements to Allreduce",
            Paper::Jocksch => "An optimisation of allreduce communication in message-passing systems",
        }
    }

    pub(crate) fn authors(self) -> &'static str {
        match self {
            Paper::LocBruck => "Bienz, Gautam and Kharel, EuroMPI/USA 2022",
            Paper::Radix => "Fan and Kumar",
            Paper::Sparbit => "Loch and Koslovski, SBAC-PAD 2021",
            Paper::Nap => "Bienz, Olson and Gropp, ExaMPI 2019",
            Paper::Jocksch => "Jocksch, Ohana, Lanti, Koutsaniti, Karakasis and Villard, 2021",
        }
    }
}

/// How one figure or table is made.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// `nap-10`: the paper's name and the number.
    pub id: &'static str,
    pub(crate) paper: Paper,
    /// `Figure 10`
    pub(crate) number: &'static str,
    /// What it shows.
    pub(crate) title: &'static str,
    /// Makes it.
    pub make: fn(Effort) -> Result<Figure>,
}

/// Titles of figures that are quick with fewer processes than the paper's title says.
const QUICK: [(&str, &str); 8] = [
    ("radix-2b", "512 processes (2048 in the paper), 512 bytes, by radix"),
    ("radix-3c", "512 processes (4096 in the paper), 64 bytes, by radix"),
    ("radix-3d", "512 processes (4096 in the paper), 1024 bytes, by radix"),
    ("radix-4a", "512 processes, radix 22 (4096 and 64 in the paper), by size"),
    ("nap-14", "Time on 4,096 processes (32,768 in the paper), by size"),
    ("nap-15", "Speedup of NAP on 4,096 processes (32,768 in the paper), by size"),
    ("jocksch-10", "Allgather and reduce_scatter on 20 nodes (160 in the paper), by size"),
    ("jocksch-13", "Allreduce with one task a node, 20 nodes: one port or many"),
];

impl Recipe {
    /// What is really drawn with so much effort.
    pub(crate) fn drawn(&self, effort: Effort) -> &'static str {
        let quick = QUICK.iter().find(|(id, _)| *id == self.id && effort == Effort::Quick);
        quick.map_or(self.title, |(_, title)| title)
    }
}

/// How much is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effort {
    /// Fewer ranks and sizes: a second or so a figure.
    Quick,
    /// As in the paper.
    Full,
}

impl Effort {
    /// One of two.
    pub(crate) fn either<T>(self, quick: T, full: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Full => full,
        }
    }
}

/// A figure or table, made again.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is and how it was made, in a few sentences; a blank line begins a new paragraph.
    pub(crate) text: String,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) tables: Vec<Table>,
    pub(crate) compared: Vec<Compared>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// A drawing.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// What tells it from the figure's others, in file names and above it: letters, digits and dashes; empty if there is one.
    pub(crate) name: String,
    pub(crate) svg: String,
    /// Whether it is shown only when asked for: schedules, which are large.
    pub(crate) opens: bool,
}

impl Picture {
    pub(crate) fn new(name: &str, svg: String) -> Picture {
        Picture { name: name.into(), svg, opens: false }
    }
}

/// Numbers, as they go to a CSV file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// As of pictures.
    pub(crate) name: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(name: &str, head: &[&str]) -> Table {
        Table { name: name.into(), head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [&dyn Display; N]) {
        self.rows.push(cells.iter().map(ToString::to_string).collect());
    }
}

/// What the paper says beside what was found here.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    pub(crate) what: String,
    pub(crate) paper: String,
    pub(crate) ours: String,
    pub(crate) agrees: Agreement,
    /// Why, where it is not the same.
    pub(crate) because: String,
}

/// How well the two agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// The same number, or a statement about a schedule that is true of ours.
    Same,
    /// What is said about times is true of our times: who wins, where lines cross, what grows.
    Holds,
    /// A time that was measured there and modelled here: close, but no more can be asked.
    Near,
    /// A time that was measured there and modelled here, and is another.
    Apart,
    /// A number that should be the same and is not, or a statement that is not true here.
    Fails,
}

impl Compared {
    /// Numbers that must be the same: counts.
    pub(crate) fn exact(what: &str, paper: impl Display, ours: impl Display) -> Compared {
        let (paper, ours) = (paper.to_string(), ours.to_string());
        let agrees = if paper == ours { Agreement::Same } else { Agreement::Fails };
        Compared { what: what.into(), paper, ours, agrees, because: String::new() }
    }

    /// A statement about a schedule or a formula, and whether it is true of ours.
    pub(crate) fn stated(what: &str, paper: impl Display, ours: impl Display, holds: bool) -> Compared {
        let agrees = if holds { Agreement::Same } else { Agreement::Fails };
        Compared { agrees, ..Compared::shape(what, paper, ours, holds) }
    }

    /// A statement about times, and whether it is true here.
    pub(crate) fn shape(what: &str, paper: impl Display, ours: impl Display, holds: bool) -> Compared {
        let agrees = if holds { Agreement::Holds } else { Agreement::Fails };
        Compared { what: what.into(), paper: paper.to_string(), ours: ours.to_string(), agrees, because: String::new() }
    }

    /// A number that was measured there and modelled here: near if it is within so large a share of the paper's.
    pub(crate) fn measured(what: &str, paper: f64, ours: f64, unit: &str, share: f64) -> Compared {
        let near = (ours - paper).abs() <= share * paper.abs();
        Compared {
            what: what.into(),
            paper: format!("{paper}{unit}"),
            ours: format!("{}{unit}", rounded(ours)),
            agrees: if near { Agreement::Near } else { Agreement::Apart },
            because: String::new(),
        }
    }

    /// Why it is not the same.
    pub(crate) fn because(self, because: &str) -> Compared {
        Compared { because: because.into(), ..self }
    }
}

/// What the comparison comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every number is the paper's.
    Matches,
    /// What the paper says is true here; why its numbers are not ours.
    Shape(String),
    /// Something that the paper says is not true here; what, and why.
    Differs(String),
}

impl Verdict {
    /// Follows from the comparisons alone.
    fn of(compared: &[Compared], inexact: &str) -> Verdict {
        let fails: Vec<String> = compared.iter().filter(|one| one.agrees == Agreement::Fails).map(said).collect();
        if !fails.is_empty() {
            return Verdict::Differs(fails.join(" "));
        }
        match compared.iter().all(|one| one.agrees == Agreement::Same) {
            true => Verdict::Matches,
            false => Verdict::Shape(inexact.into()),
        }
    }

    /// In a word or three.
    pub fn words(&self) -> &'static str {
        match self {
            Verdict::Matches => "matches",
            Verdict::Shape(_) => "matches in shape",
            Verdict::Differs(_) => "differs",
        }
    }

    /// Why it does not match.
    pub fn why(&self) -> &str {
        match self {
            Verdict::Matches => "",
            Verdict::Shape(why) | Verdict::Differs(why) => why,
        }
    }
}

fn said(one: &Compared) -> String {
    let Compared { what, paper, ours, because, .. } = one;
    let why = if because.is_empty() { String::new() } else { format!(": {because}") };
    format!("{what}: {paper} in the paper, {ours} here{}", if why.is_empty() { ".".into() } else { why })
}

impl Figure {
    /// A figure with its text; what it shows is added, and [`Figure::judged`] last.
    pub(crate) fn new(text: &str) -> Figure {
        let nothing = Verdict::Shape("nothing was compared".into());
        Figure { text: text.into(), pictures: Vec::new(), tables: Vec::new(), compared: Vec::new(), verdict: nothing }
    }

    pub(crate) fn picture(mut self, picture: Picture) -> Figure {
        self.pictures.push(picture);
        self
    }

    pub(crate) fn table(mut self, table: Table) -> Figure {
        self.tables.push(table);
        self
    }

    pub(crate) fn compare(mut self, compared: impl IntoIterator<Item = Compared>) -> Figure {
        self.compared.extend(compared);
        self
    }

    /// Reaches the verdict; `inexact` says why no more than the shape can match, where that is so.
    pub(crate) fn judged(mut self, inexact: &str) -> Figure {
        if !self.compared.is_empty() {
            self.verdict = Verdict::of(&self.compared, inexact);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_from_comparisons() {
        let same = Compared::exact("steps", 4, 4);
        let holds = Compared::shape("who wins", "nap", "nap", true);
        let judged = |compared: &[&Compared]| {
            Figure::new("").compare(compared.iter().map(|one| (*one).clone())).judged("no such machine").verdict
        };
        assert_eq!(judged(&[&same]), Verdict::Matches);
        assert_eq!(judged(&[&same, &holds]), Verdict::Shape("no such machine".into()));
        let near = Compared::measured("time", 10.0, 10.4, " us", 0.05);
        let apart = Compared::measured("time", 10.0, 10.6, " us", 0.05);
        assert_eq!((near.agrees, apart.agrees), (Agreement::Near, Agreement::Apart));
        assert_eq!(judged(&[&same, &near, &apart]).words(), "matches in shape");
        let fails = Compared::exact("steps", 5, 4).because("its own Equation 2 gives 4.");
        assert_eq!(
            judged(&[&same, &fails, &holds]),
            Verdict::Differs("steps: 5 in the paper, 4 here: its own Equation 2 gives 4.".into())
        );
        assert_eq!(judged(&[&Compared::shape("who wins", "nap", "smp", false)]).words(), "differs");
        assert_eq!(judged(&[]).words(), "matches in shape");
    }
}
