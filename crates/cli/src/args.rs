//! Arguments that several commands share, and how their text becomes values.

use std::ops::RangeInclusive;
use std::path::Path;
use std::{fmt, fs};

use allhands::Tuning;
use allhands_model::Machine;
use allhands_schedule::{Collective, Graph, Problem, Reduction, Topology};
use clap::Args;

use crate::failure::{Failure, Result};
use crate::screen;

/// More ranks than this are not made and drawn together.
pub(crate) const MOST_DRAWN: usize = 4096;

/// More ranks than this are not verified: some algorithms send a message for each pair of them.
pub(crate) const MOST_VERIFIED: usize = 1024;

/// Of more ranks than this, not even one is made alone: a ring has a round for each of them.
const MOST_RANKS: usize = 1 << 21;

/// Where the ranks sit.
#[derive(Args, Debug)]
pub(crate) struct Seating {
    /// The machine: ranks (16), nodes x ranks (4x16), nodes x sockets x ranks (64x2x8), uneven nodes (3,5,4), or nested
    /// lists of ranks ([[0,2],[1,3]])
    #[arg(long, value_name = "T")]
    topology: Option<String>,

    /// Which rank takes which seat: sequential, cyclic (dealt out to the nodes one by one), or a file that lists the ranks
    /// in the order of the seats, with white space between and # comments
    #[arg(long, value_name = "sequential|cyclic|FILE", default_value = "sequential", hide_default_value = true)]
    placement: String,
}

impl Seating {
    /// The topology, if one is given.
    pub(crate) fn resolve(&self) -> Result<Option<Topology>> {
        match &self.topology {
            Some(text) => {
                let topology: Topology = text.parse()?;
                at_most(topology.ranks(), MOST_RANKS, "ask for fewer")?;
                Ok(Some(self.place(topology)?))
            }
            None if self.placement != "sequential" => {
                Err(Failure::Usage("--placement needs a --topology to place ranks on".into()))
            }
            None => Ok(None),
        }
    }

    /// The topology as it was written.
    pub(crate) fn written(&self) -> &str {
        self.topology.as_deref().unwrap_or_default()
    }

    fn place(&self, topology: Topology) -> Result<Topology> {
        match self.placement.as_str() {
            "sequential" => Ok(topology),
            "cyclic" => Ok(topology.cyclic()),
            file => Ok(topology.placed(placement(file)?)?),
        }
    }
}

/// As a reader sees it: `4x4`, `4x4, cyclic`.
impl fmt::Display for Seating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.written())?;
        if self.placement == "sequential" { Ok(()) } else { write!(f, ", {}", self.placement) }
    }
}

/// Short where a list of all ranks would be long.
pub(crate) fn shape(topology: &Topology) -> String {
    let even = |level: usize| topology.region_sizes(level).0 == topology.region_sizes(level).1;
    if !(1..=topology.depth()).all(even) {
        return format!("{} ranks on {} nodes", topology.ranks(), topology.regions(1));
    }
    let mut counts = Vec::new();
    for level in 1..=topology.depth() {
        counts.push(topology.regions(level) / topology.regions(level - 1));
    }
    counts.push(topology.ranks() / topology.regions(topology.depth()));
    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    let placement = if topology.is_sequential() { "" } else { ", not sequential" };
    format!("{}{placement}", counts.join("x"))
}

/// The ranks that a placement file lists.
fn placement(file: &str) -> Result<Vec<usize>> {
    let text = read(Path::new(file), "placement file (sequential and cyclic need no file)")?;
    let words = text.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    let number = |word: &str| {
        word.parse().map_err(|_| {
            Failure::Usage(format!(
                "placement file {file}: {word:?} is not a rank; list the ranks as numbers with white space between"
            ))
        })
    };
    words.map(number).collect()
}

/// The text of a file.
pub(crate) fn read(path: &Path, what: &str) -> Result<String> {
    fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read the {what} {}: {error}", path.display())))
}

/// A machine that comes along, or the one of a file.
pub(crate) fn machine(name: &str) -> Result<Machine> {
    let wrong = |error: allhands_model::Error| Failure::Usage(format!("--machine {name}: {error}"));
    let path = Path::new(name);
    if path.extension().is_some() || path.components().count() > 1 {
        let text = read(path, "machine file")?;
        if text.parse::<Tuning>().is_ok() {
            let beside = allhands::machine_file(path);
            return Err(Failure::Usage(format!(
                "--machine {name} is a tuning file; name the machine file that `allhands tune` wrote beside it, {}",
                beside.display()
            )));
        }
        return Machine::parse(&text).map_err(wrong);
    }
    Machine::shipped(name).map_err(|error| Failure::Usage(error.to_string()))
}

/// What a choice and a simulation are about: ranks with nothing between them sit on one node.
pub(crate) fn seated(problem: Problem) -> Problem {
    Problem { topology: problem.topology.on_nodes(), ..problem }
}

/// As programs ask by default: the same bits on every rank.
pub(crate) fn identical(problem: Problem) -> Problem {
    Problem { reduction: Reduction { commutative: true, identical: true }, ..problem }
}

/// Says what is assumed where a machine that was measured on one node is asked about several.
pub(crate) fn assumes(machine: &Machine, problem: &Problem) {
    let unknown = machine.levels.first().is_some_and(|level| level.assumed) && problem.topology.regions(1) > 1;
    screen::caution(
        unknown
            .then(|| format!("{} was measured on one node: what messages between nodes cost is assumed", machine.name)),
    );
}

/// The collective and what belongs to it.
#[derive(Args, Debug)]
pub(crate) struct Details {
    /// The special rank of a rooted collective [default: 0]
    #[arg(long, value_name = "R", requires = "collective")]
    root: Option<usize>,

    /// Who talks to whom in a neighbourhood collective: grid:4x4x2 or torus:4x4x2 (the neighbours of MPI's cartesian grids; with
    /// :corners all around), random:DEGREE:SEED [default: a torus of two dimensions, as square as the ranks allow]
    #[arg(long, value_name = "KIND:...", requires = "collective")]
    graph: Option<String>,

    /// Sizes of the blocks where they differ: one for each rank (allgatherv, reduce_scatter, gatherv, scatterv, neighbor_allgatherv),
    /// for each pair, source-major (alltoallv), or for each edge (neighbor_alltoallv)
    #[arg(long, value_name = "A,B,...", requires = "collective")]
    counts: Option<String>,
}

impl Details {
    /// Whether a root is given.
    pub(crate) fn has_root(&self) -> bool {
        self.root.is_some()
    }

    /// Whether a graph is given.
    pub(crate) fn has_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// What is asked.
    pub(crate) fn problem(&self, collective: Collective, topology: Topology) -> Result<Problem> {
        if self.root.is_some() && !collective.rooted() {
            return Err(Failure::Usage(format!("{collective} has no root; leave out --root")));
        }
        let mut problem = Problem::new(collective, topology).with_root(self.root.unwrap_or(0))?;
        if let Some(graph) = &self.graph {
            let graph = Graph::parse(graph, problem.ranks())?;
            problem = problem.with_graph(graph.into())?;
        }
        match &self.counts {
            Some(text) => Ok(problem.with_counts(numbers(text)?)?),
            None => Ok(problem),
        }
    }
}

fn numbers(text: &str) -> Result<Vec<usize>> {
    let number = |part: &str| {
        let wrong = |_| {
            Failure::Usage(format!(
                "--counts {text}: {part:?} is not a count; write numbers with commas between, such as 3,1,4"
            ))
        };
        part.trim().parse().map_err(wrong)
    };
    text.split(',').map(number).collect()
}

/// Refuses what would take too much memory, and says what to do instead.
pub(crate) fn at_most(ranks: usize, most: usize, remedy: &str) -> Result<()> {
    if ranks <= most {
        return Ok(());
    }
    Err(Failure::Usage(format!("{ranks} ranks are more than the {most} that are served here; {remedy}")))
}

/// `8`, `1..64` or `1..=64`: both ends included.
pub(crate) fn ranks(text: &str) -> Result<RangeInclusive<usize>> {
    let wrong = |fact: &str| {
        Failure::Usage(format!("--ranks {text}: {fact}; write a number (8) or a range with both ends included (1..64)"))
    };
    let number = |part: &str| part.trim().parse::<usize>().map_err(|_| wrong("not a number of ranks"));
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?),
        None => (number(text)?, number(text)?),
    };
    match (first, last) {
        (0, _) => Err(wrong("0 ranks do nothing")),
        _ if first > last => Err(wrong("the range is empty")),
        _ => {
            at_most(last, MOST_VERIFIED, "ask for fewer")?;
            Ok(first..=last)
        }
    }
}

/// Names with parameters, separated by blanks or by commas between names.
pub(crate) fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        // A comma inside a list of numbers belongs to the parameter before it.
        match names.last_mut() {
            Some(last) if word.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
                *last += &format!(",{word}")
            }
            _ => names.push(word.into()),
        }
    }
    names
}

/// A size, or a range of them that goes up in a factor: `4K`, `8..1M`; none above `most`.
pub(crate) fn sizes(text: &str, factor: u64, most: u64) -> Result<Vec<u64>> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (bytes(from)?, bytes(to.strip_prefix('=').unwrap_or(to))?);
    if from > to || to > most {
        let most = most >> 30;
        return Err(Failure::Usage(format!(
            "--bytes {text}: not a range up to {most}G; write a size (4K) or a range (8..1M)"
        )));
    }
    let up = |size: &u64| Some((size * factor).max(factor)).filter(|next| *next < to);
    let mut sizes: Vec<u64> = std::iter::successors(Some(from), up).collect();
    if to > from {
        sizes.push(to);
    }
    Ok(sizes)
}

/// `8`, `4K`, `1M`, `2G`: powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64> {
    size("--bytes", text)
}

/// The same for another option.
pub(crate) fn size(option: &str, text: &str) -> Result<u64> {
    let wrong = || Failure::Usage(format!("{option} {text}: not a size; write bytes such as 8, 4K, 1M or 2G"));
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends() {
        for (text, range) in [("8", 8..=8), ("1..64", 1..=64), ("1..=64", 1..=64), ("3..3", 3..=3)] {
            assert_eq!(ranks(text).unwrap(), range);
        }
        for text in ["", "0", "0..4", "5..4", "x", "1..", "..4", "1...4", "-1", "5000"] {
            assert!(ranks(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_of_sizes_go_up_in_a_factor_and_end_where_they_say() {
        let all = |text| sizes(text, 8, 1 << 30).unwrap();
        assert_eq!(all("8..1M"), [8, 64, 512, 4096, 32768, 262_144, 1 << 20]);
        assert_eq!((all("0..100"), all("4K"), all("8..=64")), (vec![0, 8, 64, 100], vec![4096], vec![8, 64]));
        for wrong in ["64..8", "2G", "8..2G", "8..", "x"] {
            assert!(sizes(wrong, 8, 1 << 30).is_err(), "{wrong}");
        }
        assert!(sizes("8..2G", 8, 1 << 30).unwrap_err().to_string().contains("not a range up to 1G"));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(["8", "4K", "1M", "2GiB", "0"].map(|text| bytes(text).unwrap()), [8, 4096, 1 << 20, 2 << 30, 0]);
        for text in ["", "K", "4X", "-1", "1.5K", "99999999999999999999", "18446744073709551615K", "4é"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
