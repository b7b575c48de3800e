//! Equal expressions mean equal bits: the classes that `Prepared::expression` tells apart are compared with the expressions themselves, written out
//! element by element by an interpreter of schedules that shares nothing with the verifier.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use allhands_schedule::{
    Choice, Collective, Combine, Ensemble, Error, Expression, Local, Prepared, Problem, Reduction, Round, Space, Span,
    Topology, algorithms,
};
use rayon::prelude::*;

/// An expression in writing: `2` is what rank 2 contributes, `(0 1)` is what ranks 0 and 1 contribute, combined.
type Written = Rc<str>;

/// The elements of every rank's output, for each length that was tried.
type Outputs = Vec<Vec<Vec<Written>>>;

/// Runs schedules on elements. Every rank goes on as far as it can; messages wait until they are received.
struct Interpreter<'a> {
    ensemble: &'a Ensemble,
    /// How many elements a vector has that is cut into blocks, or a block that is not listed in the counts.
    length: usize,
    /// The elements at each position, of a rank or in the shared memory of a node.
    memory: HashMap<(usize, Space, usize), Vec<Written>>,
    mail: HashMap<(usize, usize), VecDeque<Vec<Written>>>,
    /// How many meetings of a level a rank has come to.
    came: HashMap<(usize, usize), usize>,
    /// What each rank does next.
    next: Vec<Step>,
}

#[derive(Clone, Copy)]
enum Step {
    Send { round: usize },
    Receive { round: usize },
    Local { round: usize, index: usize },
    Meet { round: usize, index: usize },
}

impl Interpreter<'_> {
    /// The elements of every rank's output.
    fn outputs(ensemble: &Ensemble, length: usize) -> Vec<Vec<Written>> {
        let ranks = ensemble.problem.ranks();
        let mut interpreter = Interpreter {
            ensemble,
            length,
            memory: HashMap::new(),
            mail: HashMap::new(),
            came: HashMap::new(),
            next: vec![Step::Send { round: 0 }; ranks],
        };
        let mut somebody_moves = true;
        while somebody_moves {
            somebody_moves = false;
            for rank in 0..ranks {
                while interpreter.moves(rank) {
                    somebody_moves = true;
                }
            }
        }
        let whole = |rank| Span::output(0, ensemble.problem.extent(Space::Output, rank, ensemble.blocks));
        (0..ranks).map(|rank| interpreter.read(rank, &[whole(rank)])).collect()
    }

    /// Whether the rank can do what comes next, and has done it.
    fn moves(&mut self, rank: usize) -> bool {
        let ensemble = self.ensemble;
        let rounds = &ensemble.schedules[rank].rounds;
        self.next[rank] = match self.next[rank] {
            Step::Send { round } if round == rounds.len() => return false,
            Step::Send { round } => {
                for send in &rounds[round].sends {
                    let elements = self.read(rank, &send.spans);
                    self.mail.entry((rank, send.to)).or_default().push_back(elements);
                }
                Step::Receive { round }
            }
            Step::Receive { round } => {
                if !self.has_mail(rank, &rounds[round]) {
                    return false;
                }
                self.receive(rank, &rounds[round]);
                Step::Local { round, index: 0 }
            }
            Step::Local { round, index } => match rounds[round].locals.get(index) {
                None => Step::Send { round: round + 1 },
                Some(&Local::Meet { level }) => {
                    *self.came.entry((rank, level)).or_default() += 1;
                    Step::Meet { round, index }
                }
                Some(&Local::Copy { from, to }) => {
                    let elements = self.read(rank, &[from]);
                    self.write(rank, &[to], elements, None);
                    Step::Local { round, index: index + 1 }
                }
                Some(&Local::Combine { from, into, how }) => {
                    let elements = self.read(rank, &[from]);
                    self.write(rank, &[into], elements, Some(how));
                    Step::Local { round, index: index + 1 }
                }
            },
            Step::Meet { round, index } => {
                let Local::Meet { level } = rounds[round].locals[index] else { unreachable!("came to a meeting") };
                let topology = &ensemble.problem.topology;
                let came = |member| self.came.get(&(member, level)).copied().unwrap_or(0);
                let mut members = topology.members(level, topology.region_of(level, rank));
                if !members.all(|member| came(member) >= came(rank)) {
                    return false;
                }
                Step::Local { round, index: index + 1 }
            }
        };
        true
    }

    fn has_mail(&self, rank: usize, round: &Round) -> bool {
        round.recvs.iter().all(|recv| {
            let wanted = round.recvs.iter().filter(|other| other.from == recv.from).count();
            self.mail.get(&(recv.from, rank)).is_some_and(|messages| messages.len() >= wanted)
        })
    }

    fn receive(&mut self, rank: usize, round: &Round) {
        let mut arrived = Vec::new();
        for recv in &round.recvs {
            let message = self.mail.get_mut(&(recv.from, rank)).and_then(VecDeque::pop_front);
            arrived.push((recv, message.expect("mail")));
        }
        arrived.sort_by_key(|(recv, _)| recv.combine.is_some()); // stable: as listed
        for (recv, elements) in arrived {
            self.write(rank, &recv.spans, elements, recv.combine);
        }
    }

    fn read(&self, rank: usize, spans: &[Span]) -> Vec<Written> {
        let positions = spans.iter().flat_map(|span| (span.first..span.end()).map(|position| (span.space, position)));
        let elements = positions.flat_map(|(space, position)| match space {
            Space::Input => vec![rank.to_string().into(); self.size(rank, space, position)],
            _ => self.memory[&(self.owner(rank, space), space, position)].clone(),
        });
        elements.collect()
    }

    fn write(&mut self, rank: usize, spans: &[Span], elements: Vec<Written>, how: Option<Combine>) {
        let mut elements = elements.into_iter();
        for span in spans {
            for position in span.first..span.end() {
                let place = (self.owner(rank, span.space), span.space, position);
                let mut values: Vec<Written> = elements.by_ref().take(self.size(rank, span.space, position)).collect();
                if let Some(how) = how {
                    for (value, there) in values.iter_mut().zip(&self.memory[&place]) {
                        *value = match how {
                            Combine::After => format!("({there} {value})").into(),
                            Combine::Before => format!("({value} {there})").into(),
                        };
                    }
                }
                self.memory.insert(place, values);
            }
        }
        assert_eq!(elements.next(), None, "rank {rank} gets as much as it has room for");
    }

    fn owner(&self, rank: usize, space: Space) -> usize {
        if space == Space::Shared { self.ensemble.problem.topology.region_of(1, rank) } else { rank }
    }

    /// How many elements lie at a position.
    fn size(&self, rank: usize, space: Space, position: usize) -> usize {
        let Ensemble { problem, blocks, .. } = self.ensemble;
        let block = problem.block_at(space, rank, position, *blocks);
        let part = |whole: usize, parts: usize, number: usize| whole / parts + usize::from(number < whole % parts);
        let pieces = problem.pieces(*blocks);
        match problem.counts.get(block / pieces) {
            Some(&count) => part(count, pieces, block % pieces),
            None if problem.collective.cuts() => part(self.length, *blocks, block),
            None => part(self.length, pieces, block % pieces),
        }
    }
}

/// Every algorithm with every setting that serves a problem.
fn served(problem: &Problem) -> Vec<Prepared> {
    let choices = algorithms(problem.collective).flat_map(|algorithm| Choice::variants(algorithm, problem));
    let serve = |choice: Choice| match choice.prepare(problem) {
        Ok(prepared) => Some(prepared),
        Err(Error::Unservable { .. } | Error::NotGuaranteed { .. }) => None,
        Err(error) => panic!("{choice}: {error}"),
    };
    choices.filter_map(serve).collect()
}

/// Asserts of everything that serves a problem: equal classes exactly where every element of every output is written alike, for all of these lengths.
/// Says how many there were, and how many classes.
fn compare(problem: &Problem, lengths: &[usize]) -> (usize, usize) {
    let mut first_of_class: HashMap<Expression, (Outputs, String)> = HashMap::new();
    let mut class_of_outputs: HashMap<Outputs, (Expression, String)> = HashMap::new();
    let all = served(problem);
    for prepared in &all {
        let name = format!("{} {} on {}, root {}", problem.collective, prepared.name(), problem.topology, problem.root);
        let class = prepared.expression().unwrap_or_else(|| panic!("{name} is small enough to have a class"));
        let ensemble = prepared.ensemble();
        let outputs: Outputs = lengths.iter().map(|&length| Interpreter::outputs(&ensemble, length)).collect();
        let (alike, other) = class_of_outputs.entry(outputs.clone()).or_insert_with(|| (class, name.clone()));
        assert_eq!(*alike, class, "{name} computes what {other} does, but they differ in class");
        let (expected, other) = first_of_class.entry(class).or_insert_with(|| (outputs.clone(), name.clone()));
        assert!(*expected == outputs, "{name} has the class of {other}, but computes something else");
    }
    (all.len(), first_of_class.len())
}

/// Several, since blocks of different numbers begin at the same elements of some vectors.
const LENGTHS: [usize; 3] = [24, 37, 50];

fn problems(collective: Collective, topology: &Topology) -> Vec<Problem> {
    let problem = Problem::new(collective, topology.clone());
    let p = problem.ranks();
    match collective {
        Collective::Reduce => [0, p - 1].map(|root| problem.clone().with_root(root).unwrap()).into(),
        // Some of the blocks are empty.
        Collective::ReduceScatter => vec![problem.with_counts((0..p).map(|rank| rank * 5 % 3).collect()).unwrap()],
        Collective::Allreduce => {
            let asking = |identical| problem.clone().with_reduction(Reduction { identical, commutative: true });
            [false, true].map(asking).into()
        }
        _ => vec![problem],
    }
}

#[test]
fn classes_are_equal_exactly_where_expressions_are() {
    let shapes =
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "12", "2x2", "3x2", "2x4", "4x3", "4x4", "3,1,2", "2x2x2"];
    let shapes = shapes.into_iter().chain(["[[4,1],[0,3,2]]"]).map(|text| text.parse::<Topology>().unwrap());
    let shapes: Vec<Topology> = shapes.flat_map(|shape| [shape.clone(), shape.cyclic()]).collect();
    let reductions = Collective::ALL.into_iter().filter(|collective| collective.reduces());
    let problems: Vec<Problem> =
        reductions.flat_map(|collective| shapes.iter().flat_map(move |shape| problems(collective, shape))).collect();
    let counts: Vec<(usize, usize)> = problems.par_iter().map(|problem| compare(problem, &LENGTHS)).collect();
    let served: usize = counts.iter().map(|(served, _)| served).sum();
    let classes: usize = counts.iter().map(|(_, classes)| classes).sum();
    assert!(served > 5_000 && classes < served * 2 / 3, "{served} in {classes} classes");
}

/// The class of an algorithm, by its name.
fn class(collective: Collective, shape: &str, choice: &str) -> Expression {
    let problem = Problem::new(collective, shape.parse().unwrap());
    let prepared = Choice::parse(collective, choice).unwrap().prepare(&problem).unwrap();
    prepared.expression().unwrap_or_else(|| panic!("{choice} on {shape} is small enough"))
}

#[test]
fn algorithms_that_can_take_turns() {
    let alike = |collective, shape, choices: &[&str]| {
        let first = class(collective, shape, choices[0]);
        choices.iter().for_each(|choice| assert_eq!(class(collective, shape, choice), first, "{choice} on {shape}"));
    };
    // Pairs of neighbours, pairs of pairs, and so on, in however many blocks, whoever combines.
    let pairs = ["tree", "recursive-doubling", "rabenseifner", "smp", "nap"];
    for shape in ["2", "4", "8", "32", "4x4", "8x4"] {
        alike(Collective::Allreduce, shape, &pairs);
    }
    // One after the other, by one rank or by each for its slice.
    let in_turn = ["smp:local=shared", "smp:slices=8:local=shared", "smp:local=shared:reduction=chunks"];
    for shape in ["8", "4x4", "8x4"] {
        alike(Collective::Allreduce, shape, &in_turn);
    }
    alike(Collective::Allreduce, "8", &["smp:local=shared", "nap:local=shared"]);
    alike(Collective::Allreduce, "8", &["circulant", "multi-lane", "cyclic-shift:phases=8(-1,-1,-1)8(1,1,1)"]);
    alike(Collective::ReduceScatterBlock, "8x4", &["sparbit:messages=packed", "sparbit:messages=blocks"]);
    alike(Collective::ReduceScatterBlock, "8", &["linear", "loc-bruck:local=shared"]);
    alike(Collective::Scan, "8x4", &["linear", "linear:segments=16"]);
    // Of two ranks all is the same.
    alike(Collective::Reduce, "2", &["binomial", "reduce-scatter-gather:pieces=ring", "cyclic-shift"]);
    alike(Collective::Scan, "2", &["linear", "recursive-doubling", "hierarchical"]);
}

#[test]
fn algorithms_that_cannot() {
    let differ = |collective, shape, one, other| {
        assert_ne!(class(collective, shape, one), class(collective, shape, other), "{one} and {other} on {shape}");
    };
    differ(Collective::Allreduce, "8", "recursive-doubling", "ring");
    differ(Collective::Allreduce, "8", "recursive-doubling", "smp:local=shared");
    differ(Collective::Allreduce, "4x4", "nap", "nap:local=shared");
    // Each rank begins with its own contribution: ranks have different bits, and none those of a tree.
    differ(Collective::Allreduce, "2", "tree", "cyclic-shift");
    differ(Collective::Reduce, "4", "binomial", "cyclic-shift");
    differ(Collective::ReduceScatterBlock, "8", "pairwise", "ring");
    differ(Collective::Scan, "4", "linear", "recursive-doubling");
}

#[test]
fn none_where_nothing_is_reduced_and_where_it_would_take_long() {
    let expression = |collective, shape: &str, choice| {
        let problem = Problem::new(collective, shape.parse().unwrap());
        Choice::parse(collective, choice).unwrap().prepare(&problem).unwrap().expression()
    };
    assert_eq!(expression(Collective::Allgather, "4x4", "bruck"), None);
    assert_eq!(expression(Collective::Barrier, "4x4", "dissemination"), None);
    for shape in ["1000", "65536x16"] {
        assert_eq!(expression(Collective::Allreduce, shape, "ring"), None);
        assert_eq!(expression(Collective::Allreduce, shape, "recursive-doubling"), None);
    }
    // What is small, and what sends little, is not too much.
    for shape in ["256", "64x2", "2x32", "8x8"] {
        assert!(expression(Collective::Allreduce, shape, "recursive-doubling").is_some(), "{shape}");
        assert!(expression(Collective::Allreduce, shape, "smp").is_some(), "{shape}");
    }
    assert!(expression(Collective::Allreduce, "8x8", "rabenseifner").is_some());
    assert!(expression(Collective::Allreduce, "1x64", "smp:local=shared").is_some());
}
