//! The readable form of an ensemble: printed by `Display`, read back by `FromStr`, comfortable to write by hand.
//!
//! ```text
//! allhands schedule 1
//! collective allreduce
//! algorithm by hand                 # optional; any name
//! root 0                            # optional; 0 unless given
//! topology 1x2                      # any form that --topology takes
//! blocks 1                          # into how many blocks the data is cut
//!
//! rank 0
//!   round
//!     copy input[0] -> output[0]
//!   round                           # all messages of a round are posted together, then wait
//!     send 1: output[0]
//!     recv 1 combine: output[0]     # output = output op received
//! rank 1
//!   round
//!     send 0: input[0]
//!     recv 0: output[0]             # overwrites
//!     combine input[0] -> output[0] # output = output op input
//! end
//! ```
//!
//! A neighbourhood collective has a line `neighbors 0: from 1 2 to 2 2` for every rank: whom it gets blocks from, and whom it has blocks for, in
//! their order. Where a rank has several for another, they come in the order in which they are sent, unless `from 2.1 2.0` says which of them
//! is which. `counts 3 1 4` gives sizes where blocks differ, `reduction non-commutative identical` what is asked of a reduction.
//! A span is `space[first]` or `space[first..end]`, `end` not included; a message carries several, or none. `recv 1
//! combine-before` and `combine-before a -> b` put the other operand first: `b = a op b`. `meet 1` waits for this rank's
//! region of level 1. Blank lines, indentation and `# comments` are free. The last line is `end`, so that a file cut in
//! half is not mistaken for a shorter one. What a round means, exactly, is written on [`Round`].

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{
    Collective, Combine, Edge, Ensemble, Error, Graph, InlineVec, Local, Problem, Recv, Reduction, Result, Round,
    Schedule, Send, Space, Span, Topology,
};

const FIRST_LINE: &str = "allhands schedule 1";
const NAMELESS: &str = "by hand";
const CUT_SHORT: &str = "the file stops here without `end`: it is cut short, or its last line is missing";

/// No position, message or count of blocks is larger: 4096 ranks squared, and room for scratch.
/// A slip of the finger must not make the verifier ask for a terabyte.
const MOST_BLOCKS: usize = 1 << 28;

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{}[{}]", self.space, self.first),
            _ => write!(f, "{}[{}..{}]", self.space, self.first, self.end()),
        }
    }
}

impl fmt::Display for Send {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "send {}:", self.to)?;
        write_spans(f, &self.spans)
    }
}

impl fmt::Display for Recv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = self.combine.map(|how| format!(" {}", verb(how))).unwrap_or_default();
        write!(f, "recv {}{how}:", self.from)?;
        write_spans(f, &self.spans)
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Local::Copy { from, to } => write!(f, "copy {from} -> {to}"),
            Local::Combine { from, into, how } => write!(f, "{} {from} -> {into}", verb(*how)),
            Local::Meet { level } => write!(f, "meet {level}"),
        }
    }
}

fn verb(how: Combine) -> &'static str {
    match how {
        Combine::After => "combine",
        Combine::Before => "combine-before",
    }
}

fn write_spans(f: &mut fmt::Formatter<'_>, spans: &[Span]) -> fmt::Result {
    spans.iter().try_for_each(|span| write!(f, " {span}"))
}

/// One rank's part of the text form.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rank {}", self.rank)?;
        for round in &self.rounds {
            writeln!(f, "  round")?;
            round.sends.iter().try_for_each(|send| writeln!(f, "    {send}"))?;
            round.recvs.iter().try_for_each(|recv| writeln!(f, "    {recv}"))?;
            round.locals.iter().try_for_each(|local| writeln!(f, "    {local}"))?;
        }
        Ok(())
    }
}

/// The text form; parsing it gives an equal ensemble back.
///
/// ```
/// use allhands_schedule::{Choice, Collective, Ensemble, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::regular(2, 2)?);
/// let bruck = Choice::parse(Collective::Allgather, "bruck")?.prepare(&problem)?.ensemble();
/// assert_eq!(bruck.to_string().parse::<Ensemble>()?, bruck);
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
impl fmt::Display for Ensemble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { collective, topology, root, graph, counts, reduction } = &self.problem;
        writeln!(f, "{FIRST_LINE}\ncollective {collective}\nalgorithm {}", self.algorithm)?;
        if *root != 0 || collective.rooted() {
            writeln!(f, "root {root}")?;
        }
        writeln!(f, "topology {topology}\nblocks {}", self.blocks)?;
        if let Some(graph) = graph {
            (0..graph.ranks()).try_for_each(|rank| writeln!(f, "neighbors {}", Neighbors::of(graph, rank)))?;
        }
        if !counts.is_empty() {
            let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
            writeln!(f, "counts {}", counts.join(" "))?;
        }
        if *reduction != Reduction::default() {
            let commutative = if reduction.commutative { "" } else { " non-commutative" };
            let identical = if reduction.identical { " identical" } else { "" };
            writeln!(f, "reduction{commutative}{identical}")?;
        }
        self.schedules.iter().try_for_each(|schedule| write!(f, "{schedule}"))?;
        writeln!(f, "end")
    }
}

/// A rank's line of a graph.
struct Neighbors {
    rank: usize,
    /// From whom, and which of the edges from there.
    sources: Vec<(usize, Option<usize>)>,
    destinations: Vec<usize>,
}

impl Neighbors {
    fn of(graph: &Graph, rank: usize) -> Neighbors {
        let edges: Vec<Edge> = graph.incoming(rank).iter().map(|&edge| graph.edge(edge)).collect();
        let before = |edge: &Edge| edges.iter().filter(|other| other.from == edge.from && other.out < edge.out).count();
        let mut next: BTreeMap<usize, usize> = BTreeMap::new();
        let in_order = edges.iter().all(|edge| {
            let next = next.entry(edge.from).or_default();
            *next += 1;
            before(edge) + 1 == *next
        });
        let source = |edge: &Edge| (edge.from, (!in_order).then(|| before(edge)));
        Neighbors {
            rank,
            sources: edges.iter().map(source).collect(),
            destinations: graph.destinations(rank).collect(),
        }
    }

    fn read(text: &str) -> Parsed<Neighbors> {
        let form = || format!("{text:?} is no list of neighbors; expected such as `neighbors 0: from 1 2 to 2 2`");
        let (rank, lists) = text.split_once(':').ok_or_else(form)?;
        let (sources, destinations) =
            lists.trim().strip_prefix("from").and_then(|rest| rest.split_once("to")).ok_or_else(form)?;
        let source = |text: &str| match text.split_once('.') {
            Some((rank, which)) => Ok((number(rank, "a rank")?, Some(number(which, "a place among edges")?))),
            None => Ok((number(text, "a rank")?, None)),
        };
        Ok(Neighbors {
            rank: number(rank.trim(), "a rank")?,
            sources: sources.split_whitespace().map(source).collect::<Parsed<_>>()?,
            destinations: destinations.split_whitespace().map(|rank| number(rank, "a rank")).collect::<Parsed<_>>()?,
        })
    }

    /// The graph of all ranks' lines.
    fn graph(lines: Vec<Neighbors>, ranks: usize) -> Parsed<Graph> {
        let mut lists = vec![None; ranks];
        for Neighbors { rank, sources, destinations } in lines {
            let list =
                lists.get_mut(rank).ok_or_else(|| format!("`neighbors {rank}` names no rank; there are {ranks}"))?;
            once(list, &format!("neighbors {rank}"), (sources, destinations))?;
        }
        let missing = |rank: usize| format!("the line `neighbors {rank}` is missing; every rank needs one");
        let lists = lists.into_iter().enumerate().map(|(rank, list)| list.ok_or_else(|| missing(rank)));
        let lists = lists.collect::<Parsed<Vec<_>>>()?;
        let plain: Vec<_> = (lists.iter())
            .map(|(sources, destinations)| (sources.iter().map(|(from, _)| *from).collect(), destinations.clone()))
            .collect();
        let graph = Graph::from_lists(&plain).map_err(|error| error.to_string())?;
        let mut edges: Vec<Edge> = (0..graph.edges()).map(|edge| graph.edge(edge)).collect();
        for (rank, (sources, _)) in lists.iter().enumerate() {
            for (into, &(from, which)) in sources.iter().enumerate() {
                let Some(which) = which else { continue };
                let mut ours = graph.outgoing(from).filter(|&edge| graph.edge(edge).to == rank);
                let edge = ours
                    .nth(which)
                    .ok_or_else(|| format!("rank {rank} has no block {from}.{which}: there are fewer"))?;
                edges[edge].into = into;
            }
        }
        Graph::new(ranks, edges).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Neighbors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: from", self.rank)?;
        for (from, which) in &self.sources {
            write!(f, " {from}")?;
            which.map_or(Ok(()), |which| write!(f, ".{which}"))?;
        }
        f.write_str(" to")?;
        self.destinations.iter().try_for_each(|to| write!(f, " {to}"))
    }
}

impl FromStr for Ensemble {
    type Err = Error;

    fn from_str(text: &str) -> Result<Ensemble> {
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            reader.line(content).map_err(|fact| {
                let cut = text.lines().skip(index + 1).all(|later| later.trim().is_empty()) && !reader.ended;
                let hint = if cut { format!("; {CUT_SHORT}") } else { String::new() };
                Error::Text { line: index + 1, fact: format!("{fact}{hint}") }
            })?;
        }
        reader.finish().map_err(|fact| Error::Text { line: text.lines().count().max(1), fact })
    }
}

/// The line of a text, counted from 1, at which a rank begins, or one of its rounds.
///
/// ```
/// let text = "allhands schedule 1\nrank 0\n round\n\nrank 1 # the last\n round\n round\nend";
/// assert_eq!(allhands_schedule::line_of(text, 1, None), Some(5));
/// assert_eq!(allhands_schedule::line_of(text, 1, Some(1)), Some(7));
/// assert_eq!(allhands_schedule::line_of(text, 2, None), None);
/// ```
pub fn line_of(text: &str, rank: usize, round: Option<usize>) -> Option<usize> {
    let words = |line: &str| -> Vec<String> {
        line.split('#').next().unwrap_or_default().split_whitespace().map(String::from).collect()
    };
    let lines = || text.lines().enumerate().map(|(index, line)| (index + 1, words(line)));
    let (first, _) = lines().find(|(_, words)| *words == ["rank".to_string(), rank.to_string()])?;
    let Some(round) = round else { return Some(first) };
    let own = lines().skip(first).take_while(|(_, words)| words.first().is_none_or(|word| word != "rank"));
    own.filter(|(_, words)| *words == ["round"]).nth(round).map(|(line, _)| line)
}

/// What a line is refused with; the line number is added above.
type Parsed<T> = std::result::Result<T, String>;

/// The state of reading, line by line.
#[derive(Default)]
struct Reader {
    begun: bool,
    ended: bool,
    header: Header,
    problem: Option<Problem>,
    schedules: BTreeMap<usize, Vec<Round>>,
    rank: Option<usize>,
}

#[derive(Default)]
struct Header {
    collective: Option<Collective>,
    algorithm: Option<String>,
    root: Option<usize>,
    topology: Option<Topology>,
    blocks: Option<usize>,
    neighbors: Vec<Neighbors>,
    counts: Option<Vec<usize>>,
    reduction: Option<Reduction>,
}

impl Reader {
    fn line(&mut self, content: &str) -> Parsed<()> {
        if self.ended {
            return Err(format!("{content:?} comes after `end`; nothing may follow it"));
        }
        if !self.begun {
            let same = content.split_whitespace().eq(FIRST_LINE.split_whitespace());
            self.begun = same;
            return if same { Ok(()) } else { Err(format!("expected `{FIRST_LINE}`, found {content:?}")) };
        }
        let (word, rest) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
        let rest = rest.trim();
        match word {
            "end" if rest.is_empty() => {
                self.close_header()?;
                self.ended = true;
                Ok(())
            }
            "rank" => self.open_rank(rest),
            _ if self.problem.is_none() => self.header.line(word, rest),
            "round" if rest.is_empty() => {
                self.rounds()?.push(Round::default());
                Ok(())
            }
            _ => self.operation(word, rest),
        }
    }

    fn open_rank(&mut self, rest: &str) -> Parsed<()> {
        let ranks = self.close_header()?;
        let rank = number(rest, "a rank")?;
        if rank >= ranks {
            return Err(format!("there is no rank {rank}; the topology has 0..={}", ranks - 1));
        }
        if self.schedules.insert(rank, Vec::new()).is_some() {
            return Err(format!("rank {rank} comes twice; each rank has one list of rounds"));
        }
        self.rank = Some(rank);
        Ok(())
    }

    /// Puts the header together when the first rank begins, and says how many ranks there are.
    fn close_header(&mut self) -> Parsed<usize> {
        if self.problem.is_none() {
            self.problem = Some(self.header.problem()?);
        }
        Ok(self.problem.as_ref().map_or(0, Problem::ranks))
    }

    fn rounds(&mut self) -> Parsed<&mut Vec<Round>> {
        let rounds = self.rank.and_then(|rank| self.schedules.get_mut(&rank));
        rounds.ok_or_else(|| "a round belongs to a rank; expected `rank 0` before it".into())
    }

    fn operation(&mut self, word: &str, rest: &str) -> Parsed<()> {
        let operation = Operation::read(word, rest)?;
        let round = self.rounds()?.last_mut().ok_or_else(|| format!("expected `round` before `{word}`"))?;
        if !matches!(operation, Operation::Local(_)) && !round.locals.is_empty() {
            return Err(format!(
                "`{word}` comes after a copy, combine or meet of its round, but the messages of a round go first; put it before them, or begin a new round"
            ));
        }
        match operation {
            Operation::Send(send) => round.sends.push(send),
            Operation::Recv(recv) => round.recvs.push(recv),
            Operation::Local(local) => round.locals.push(local),
        }
        Ok(())
    }

    fn finish(self) -> Parsed<Ensemble> {
        if !self.begun {
            return Err(format!("the file is empty; expected `{FIRST_LINE}`"));
        }
        if !self.ended {
            return Err(CUT_SHORT.into());
        }
        let problem = self.problem.ok_or("expected `rank 0`")?;
        if let Some(missing) = (0..problem.ranks()).find(|rank| !self.schedules.contains_key(rank)) {
            let ranks = problem.ranks();
            return Err(format!("rank {missing} is missing; each of the {ranks} ranks needs a `rank` line"));
        }
        Ok(Ensemble {
            problem,
            algorithm: self.header.algorithm.unwrap_or_default(),
            blocks: self.header.blocks.unwrap_or_default(),
            schedules: self.schedules.into_iter().map(|(rank, rounds)| Schedule { rank, rounds }).collect(),
        })
    }
}

impl Header {
    fn line(&mut self, word: &str, rest: &str) -> Parsed<()> {
        match word {
            "collective" => once(&mut self.collective, word, rest.parse().map_err(|error: Error| error.to_string())?),
            "algorithm" => once(&mut self.algorithm, word, rest.to_string()),
            "root" => once(&mut self.root, word, number(rest, "a rank")?),
            "topology" => once(&mut self.topology, word, rest.parse().map_err(|error: Error| error.to_string())?),
            "blocks" => once(&mut self.blocks, word, limited(rest, "a number of blocks")?),
            "neighbors" => {
                self.neighbors.push(Neighbors::read(rest)?);
                Ok(())
            }
            "counts" => {
                let counts: Parsed<Vec<usize>> =
                    rest.split_whitespace().map(|count| number(count, "a count")).collect();
                once(&mut self.counts, word, counts?)
            }
            "reduction" => once(&mut self.reduction, word, reduction(rest)?),
            _ => Err(format!(
                "{word:?} is not known here; expected collective, algorithm, root, topology, blocks, neighbors, counts, reduction or rank"
            )),
        }
    }

    fn problem(&mut self) -> Parsed<Problem> {
        let missing = |word: &str, example: &str| {
            format!("the line `{word}` is missing; expected it before the first rank, such as `{word} {example}`")
        };
        let collective = self.collective.ok_or_else(|| missing("collective", "allgather"))?;
        let topology = self.topology.take().ok_or_else(|| missing("topology", "2x2"))?;
        self.blocks.ok_or_else(|| missing("blocks", "4"))?;
        self.algorithm.get_or_insert_with(|| NAMELESS.into());
        let (ranks, lines) = (topology.ranks(), std::mem::take(&mut self.neighbors));
        let graph =
            (collective.has_graph() || !lines.is_empty()).then(|| Neighbors::graph(lines, ranks)).transpose()?;
        let problem = Problem::new(collective, topology).with_root(self.root.unwrap_or(0));
        let problem = problem.and_then(|problem| match graph {
            Some(graph) => problem.with_graph(graph.into()),
            None => Ok(problem),
        });
        let problem = problem.and_then(|problem| match self.counts.take() {
            Some(counts) => problem.with_counts(counts),
            None => Ok(problem),
        });
        let problem = problem.map_err(|error| error.to_string())?;
        Ok(problem.with_reduction(self.reduction.unwrap_or_default()))
    }
}

fn once<T>(slot: &mut Option<T>, word: &str, value: T) -> Parsed<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("`{word}` is given twice; expected it once")),
    }
}

fn reduction(text: &str) -> Parsed<Reduction> {
    let mut reduction = Reduction::default();
    for word in text.split_whitespace() {
        match word {
            "non-commutative" => reduction.commutative = false,
            "identical" => reduction.identical = true,
            _ => return Err(format!("{word:?} is no property of a reduction; expected non-commutative or identical")),
        }
    }
    Ok(reduction)
}

enum Operation {
    Send(Send),
    Recv(Recv),
    Local(Local),
}

impl Operation {
    fn read(word: &str, rest: &str) -> Parsed<Operation> {
        Ok(match word {
            "send" => {
                let (peer, list) = message(word, rest)?;
                Operation::Send(Send { to: number(peer, "a rank")?, spans: spans(list)? })
            }
            "recv" => {
                let (head, list) = message(word, rest)?;
                let (peer, how) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
                let combine = match how.trim() {
                    "" => None,
                    other => Some(combine(other).ok_or_else(|| {
                        format!("{other:?} is no way to receive; expected nothing, combine or combine-before")
                    })?),
                };
                Operation::Recv(Recv { from: number(peer, "a rank")?, spans: spans(list)?, combine })
            }
            "copy" => {
                let (from, to) = pair(word, rest)?;
                Operation::Local(Local::Copy { from, to })
            }
            "meet" => Operation::Local(Local::Meet { level: number(rest, "a level")? }),
            _ => match combine(word) {
                Some(how) => {
                    let (from, into) = pair(word, rest)?;
                    Operation::Local(Local::Combine { from, into, how })
                }
                None => {
                    return Err(format!(
                        "{word:?} is not known here; expected send, recv, copy, combine, combine-before, meet, round, rank or end"
                    ));
                }
            },
        })
    }
}

fn combine(word: &str) -> Option<Combine> {
    [Combine::After, Combine::Before].into_iter().find(|&how| verb(how) == word)
}

/// The two sides of the colon of a message.
fn message<'a>(word: &str, rest: &'a str) -> Parsed<(&'a str, &'a str)> {
    let sides = rest.split_once(':').map(|(head, list)| (head.trim(), list.trim()));
    sides.ok_or_else(|| format!("expected a colon, such as `{word} 1: output[0]`"))
}

/// The two sides of the arrow of a local operation: one span each.
fn pair(word: &str, rest: &str) -> Parsed<(Span, Span)> {
    let sides = rest.split_once("->").map(|(from, to)| (spans(from), spans(to)));
    match sides {
        Some((Err(fact), _) | (_, Err(fact))) => Err(fact),
        Some((Ok(from), Ok(to))) if from.len() == 1 && to.len() == 1 => Ok((from[0], to[0])),
        _ => Err(format!("expected two spans and an arrow, such as `{word} input[0] -> output[0]`")),
    }
}

fn spans(mut list: &str) -> Parsed<InlineVec<Span>> {
    let mut spans = InlineVec::new();
    let mut blocks = 0;
    list = list.trim();
    while !list.is_empty() {
        let (one, rest) =
            list.split_once(']').ok_or_else(|| format!("{list:?} is no span; expected one such as output[0..2]"))?;
        let span = span(one)?;
        blocks += span.count;
        if blocks > MOST_BLOCKS {
            return Err(format!("more than {MOST_BLOCKS} blocks in one message; expected fewer"));
        }
        spans.push(span);
        list = rest.trim();
    }
    Ok(spans)
}

/// `space[first` or `space[first..end`: the bracket that closes it is already gone.
fn span(text: &str) -> Parsed<Span> {
    let wrong = || format!("\"{text}]\" is no span; expected one such as output[3] or output[0..2]");
    let (name, range) = text.split_once('[').ok_or_else(wrong)?;
    let space = Space::ALL
        .into_iter()
        .find(|space| space.name() == name.trim())
        .ok_or_else(|| format!("{:?} is no space; expected input, output, scratch or shared", name.trim()))?;
    let (first, end) = match range.split_once("..") {
        Some((first, end)) => (limited(first, "a position")?, limited(end, "a position")?),
        None => {
            let first = limited(range, "a position")?;
            (first, first + 1)
        }
    };
    let backwards = || format!("{first}..{end} runs backwards; expected first..end with first <= end");
    Ok(Span::new(space, first, end.checked_sub(first).ok_or_else(backwards)?))
}

fn number(text: &str, what: &str) -> Parsed<usize> {
    text.trim().parse().map_err(|_| format!("{:?} is not {what}; expected a whole number", text.trim()))
}

fn limited(text: &str, what: &str) -> Parsed<usize> {
    let number = number(text, what)?;
    if number > MOST_BLOCKS {
        Err(format!("{number} is too large; expected at most {MOST_BLOCKS}"))
    } else {
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, algorithms, verify};
    use proptest::prelude::*;

    const BY_HAND: &str = "\
allhands schedule 1   # two ranks add up

collective allreduce
topology 1x2
blocks 1
rank 1
  round
    send 0 : input[0]
    recv 0: output[0..1]
combine input[0] -> output[0]
rank 0
  round
    copy input[ 0 ] -> output[0]
  round
  round
    send 1: output[0]
    recv 1 combine: output[0]
end
";

    #[test]
    fn a_schedule_written_by_hand_is_read_and_right() {
        let ensemble: Ensemble = BY_HAND.parse().unwrap();
        assert_eq!(ensemble.algorithm, "by hand");
        assert_eq!(ensemble.schedules[0].rounds.len(), 3, "the empty round survives");
        assert_eq!(ensemble.to_string().parse::<Ensemble>().unwrap(), ensemble);
        let report = verify(&ensemble).unwrap();
        assert_eq!((report.ordered, report.identical, report.timing.steps), (true, true, 1));
    }

    #[test]
    fn every_algorithm_and_setting_round_trips() {
        for text in ["1", "2", "5", "2x3", "3,1,2", "2x2x2", "[[3,0],[2,1]]"] {
            let topology: Topology = text.parse().unwrap();
            for collective in Collective::ALL {
                let root = topology.ranks() - 1;
                let problem = Problem::new(collective, topology.clone()).with_root(root).unwrap();
                for choice in algorithms(collective).flat_map(|algorithm| Choice::variants(algorithm, &problem)) {
                    let Ok(prepared) = choice.prepare(&problem) else { continue };
                    let ensemble = prepared.ensemble();
                    assert_eq!(ensemble.to_string().parse::<Ensemble>().as_ref(), Ok(&ensemble), "{choice} on {text}");
                }
            }
        }
    }

    #[test]
    fn sizes_and_properties_of_the_reduction_round_trip() {
        let problem = Problem::new(Collective::ReduceScatter, Topology::flat(2).unwrap()).with_counts(vec![3, 1]);
        let reduction = Reduction { commutative: false, identical: true };
        let problem = problem.unwrap().with_reduction(reduction);
        let schedules = (0..2).map(|rank| Schedule { rank, rounds: vec![Round::default(); rank] }).collect();
        let ensemble = Ensemble { problem, algorithm: "none".into(), blocks: 2, schedules };
        assert_eq!(ensemble.to_string().parse::<Ensemble>().unwrap(), ensemble);
    }

    #[test]
    fn every_way_to_be_wrong_names_the_line_and_what_was_expected() {
        for (from, to, line, fact) in [
            ("allhands schedule 1", "allhands schedule 2", 1, "expected `allhands schedule 1`"),
            ("collective allreduce", "", 6, "the line `collective` is missing"),
            ("collective allreduce", "collective allsum", 3, "known are allgather"),
            ("collective allreduce", "colective allreduce", 3, "\"colective\" is not known here"),
            ("topology 1x2", "", 6, "the line `topology` is missing"),
            ("topology 1x2", "topology 1y2", 4, "4x16"),
            ("topology 1x2", "topology 1x3", 18, "rank 2 is missing"),
            ("topology 1x2", "topology 1x1", 6, "there is no rank 1"),
            ("topology 1x2", "topology 1x2\nroot 2", 7, "root 2 is not a rank"),
            ("topology 1x2", "topology 1x2\ncounts 1 2", 7, "no counts"),
            ("topology 1x2", "topology 1x2\nreduction fast", 5, "expected non-commutative or identical"),
            ("blocks 1", "", 6, "the line `blocks` is missing"),
            ("blocks 1", "blocks 1\nblocks 1", 6, "given twice"),
            ("blocks 1", "blocks many", 5, "expected a whole number"),
            ("blocks 1", "blocks 18446744073709551615", 5, "too large"),
            ("blocks 1", "blocks 1\nround", 6, "not known here"),
            ("rank 0", "rank 1", 11, "rank 1 comes twice"),
            ("rank 0", "rank zero", 11, "\"zero\" is not a rank"),
            ("rank 1\n  round\n", "rank 1\n", 7, "expected `round` before `send`"),
            ("send 0 :", "send 0", 8, "expected a colon"),
            ("send 0 :", "sent 0:", 8, "expected send, recv"),
            ("send 0 :", "send -1:", 8, "\"-1\" is not a rank"),
            ("recv 0:", "recv 0 add:", 9, "expected nothing, combine or combine-before"),
            ("output[0..1]", "output[1..0]", 9, "runs backwards"),
            ("output[0..1]", "outptu[0..1]", 9, "\"outptu\" is no space"),
            ("output[0..1]", "output(0)", 9, "is no span"),
            ("output[0..1]", "output[0..99999999999999]", 9, "too large"),
            ("output[0..1]", "output[18446744073709551615]", 9, "too large"),
            ("output[0..1]", "output[99999999999999999999999]", 9, "not a position"),
            ("-> output[0]\nrank 0", "output[0]\nrank 0", 10, "an arrow"),
            ("-> output[0]\nrank 0", "-> output[0] output[1]\nrank 0", 10, "two spans"),
            ("rank 0\n", "  send 0: input[0]\nrank 0\n", 11, "begin a new round"),
            ("end\n", "", 17, "without `end`"),
            ("end\n", "end\nround\n", 19, "nothing may follow"),
            ("end\n", "meet all\nend\n", 18, "\"all\" is not a level"),
        ] {
            assert!(BY_HAND.contains(from), "{from}");
            let text = BY_HAND.replacen(from, to, 1);
            match text.parse::<Ensemble>() {
                Err(Error::Text { line: found, fact: found_fact }) => {
                    assert!(found_fact.contains(fact), "{to}: {found_fact}");
                    assert_eq!(found, line, "{to}: {found_fact}");
                }
                other => panic!("{to}: {other:?}"),
            }
        }
        assert!("".parse::<Ensemble>().unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn no_file_cut_short_is_taken_for_a_whole_one() {
        for cut in 1..BY_HAND.len() - "d\n".len() {
            let error = BY_HAND[..cut].parse::<Ensemble>().unwrap_err().to_string();
            assert!(error.contains("without `end`"), "cut at {cut}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(cut in 0..BY_HAND.len(), noise in "[a-z0-9 \\[\\].:>#\n-]{0,12}") {
            let (head, tail) = BY_HAND.split_at(cut);
            let _ = format!("{head}{noise}{tail}").parse::<Ensemble>();
        }
    }
}
