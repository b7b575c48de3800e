//! The JSON form of schedules, for programs in other languages. What a round means is written on [`crate::Round`].
//!
//! ```text
//! {"collective": name, "algorithm": name, "ranks": p, "root": rank or null, "topology": nested lists of ranks,
//!  outermost level first, "edges": [[from, its block, to, its block], ...] or null, "blocks": n, "counts": {"steps", "maxima", "sent_by_all", "formula", "bound"}, "schedule": [
//!   {"rank": r, "scratch": positions, "rounds": [
//!     {"send": [{"to": rank, "spans": [[space, first, count], ...]}],
//!      "recv": [{"from": rank, "spans": [...], "combine": null | "after" | "before"}],
//!      "local": [["copy", span, span], ["combine", span, span], ["combine-before", span, span], ["meet", level]]}]}]}
//! ```
//!
//! Spaces are `input`, `output`, `scratch`, `shared`. `combine a b` means b = b op a, `combine-before a b` means
//! b = a op b; a received block is combined `after` or `before` what is there.

use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::{
    Bounds, Combine, Cost, Counts, Edge, Local, Problem, Recv, Round, Schedule, Send, Span, Topology, Traffic,
};

/// Schedules with what they are for and what they cost, to be serialised.
///
/// ```
/// use allhands_schedule::{Choice, Collective, Document, Problem, Topology};
/// let problem = Problem::new(Collective::Allgather, Topology::flat(2)?);
/// let bruck = Choice::parse(Collective::Allgather, "bruck")?.prepare(&problem)?.ensemble();
/// let json = serde_json::to_value(Document::of(&bruck)).unwrap();
/// assert_eq!(json["schedule"][0]["rounds"][1]["send"][0]["spans"][0], serde_json::json!(["output", 0, 1]));
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// What is asked.
    pub problem: &'a Problem,
    /// What made them.
    pub algorithm: &'a str,
    /// Into how many blocks the data is cut.
    pub blocks: usize,
    /// Of all ranks, or of some.
    pub schedules: &'a [Schedule],
    /// The length of the critical path, where it is known.
    pub steps: Option<usize>,
    /// The closed form of the cost, where there is one.
    pub formula: Option<Cost>,
}

impl<'a> Document<'a> {
    /// An ensemble of which nothing more is known.
    pub fn of(ensemble: &'a crate::Ensemble) -> Document<'a> {
        let crate::Ensemble { problem, algorithm, blocks, schedules } = ensemble;
        Document { problem, algorithm, blocks: *blocks, schedules, steps: None, formula: None }
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Problem { collective, topology, root, graph, .. } = self.problem;
        let edges = graph.as_ref().map(|graph| {
            let listed = |edge: Edge| [edge.from, edge.out, edge.to, edge.into];
            (0..graph.edges()).map(|edge| listed(graph.edge(edge))).collect::<Vec<_>>()
        });
        let mut object = serializer.serialize_struct("Document", 9)?;
        object.serialize_field("collective", collective.name())?;
        object.serialize_field("algorithm", self.algorithm)?;
        object.serialize_field("ranks", &self.problem.ranks())?;
        object.serialize_field("root", &collective.rooted().then_some(root))?;
        object.serialize_field("topology", topology)?;
        object.serialize_field("edges", &edges)?;
        object.serialize_field("blocks", &self.blocks)?;
        object.serialize_field("counts", &self.counts())?;
        object.serialize_field("schedule", &self.schedules)?;
        object.end()
    }
}

#[derive(Serialize)]
struct Summary {
    steps: Option<usize>,
    maxima: Counts,
    /// What the ranks of the schedule send together, by level.
    sent_by_all: Vec<Traffic>,
    formula: Option<Formula>,
    bound: Bounds,
}

#[derive(Serialize)]
struct Formula {
    steps: usize,
    messages: usize,
    blocks: usize,
    exact: bool,
}

impl Document<'_> {
    fn counts(&self) -> Summary {
        let Cost { steps, messages, blocks, exact } = self.formula.unwrap_or(Cost::NOTHING);
        Summary {
            steps: self.steps,
            maxima: Counts::maxima_of(self.problem, self.schedules),
            sent_by_all: Counts::sent_by_all(self.problem, self.schedules),
            formula: self.formula.map(|_| Formula { steps, messages, blocks, exact }),
            bound: Bounds::of(self.problem, self.schedules, self.blocks),
        }
    }
}

/// Lists of ranks in the order of their seats, nested as the levels are.
///
/// ```
/// let topology: allhands_schedule::Topology = "2x2x1".parse()?;
/// assert_eq!(serde_json::to_string(&topology).unwrap(), "[[[0],[1]],[[2],[3]]]");
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
impl Serialize for Topology {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Region { topology: self, level: 0, index: 0 }.serialize(serializer)
    }
}

/// A region as lists of its ranks, nested as its levels are.
struct Region<'a> {
    topology: &'a Topology,
    level: usize,
    index: usize,
}

impl Serialize for Region<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Region { topology, level, index } = *self;
        if level == topology.depth() {
            return serializer.collect_seq(topology.members(level, index));
        }
        let seats = topology.region(level, index);
        let inner = |seat| topology.region_of_seat(level + 1, seat);
        let regions = inner(seats.start)..=inner(seats.end - 1);
        serializer.collect_seq(regions.map(|index| Region { topology, level: level + 1, index }))
    }
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Schedule", 3)?;
        object.serialize_field("rank", &self.rank)?;
        object.serialize_field("scratch", &self.scratch())?;
        object.serialize_field("rounds", &self.rounds)?;
        object.end()
    }
}

impl Serialize for Round {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Round", 3)?;
        object.serialize_field("send", &self.sends[..])?;
        object.serialize_field("recv", &self.recvs[..])?;
        object.serialize_field("local", &self.locals)?;
        object.end()
    }
}

impl Serialize for Send {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Send", 2)?;
        object.serialize_field("to", &self.to)?;
        object.serialize_field("spans", &self.spans[..])?;
        object.end()
    }
}

impl Serialize for Recv {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let combine = self.combine.map(|how| match how {
            Combine::After => "after",
            Combine::Before => "before",
        });
        let mut object = serializer.serialize_struct("Recv", 3)?;
        object.serialize_field("from", &self.from)?;
        object.serialize_field("spans", &self.spans[..])?;
        object.serialize_field("combine", &combine)?;
        object.end()
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.space.name(), self.first, self.count).serialize(serializer)
    }
}

impl Serialize for Local {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Local::Copy { from, to } => ("copy", from, to).serialize(serializer),
            Local::Combine { from, into, how: Combine::After } => ("combine", from, into).serialize(serializer),
            Local::Combine { from, into, how: Combine::Before } => ("combine-before", from, into).serialize(serializer),
            Local::Meet { level } => {
                let mut list = serializer.serialize_seq(Some(2))?;
                list.serialize_element("meet")?;
                list.serialize_element(level)?;
                list.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Collective, Ensemble};
    use serde_json::{json, to_value};

    const ALL_KINDS: &str = "allhands schedule 1
        collective reduce
        algorithm x
        root 1
        topology [[[1],[0]],[[2,3]]]
        blocks 2
        rank 0
          round
            send 1: input[0..2] scratch[4]
            recv 2 combine: shared[0]
            recv 3 combine-before: output[1]
            recv 3:
            copy input[0] -> output[0]
            combine input[0] -> output[0]
            combine-before input[0] -> output[0]
            meet 1
          round
        rank 1
        rank 2
        rank 3
        end";

    #[test]
    fn the_form_is_the_documented_one() {
        let ensemble: Ensemble = ALL_KINDS.parse().unwrap();
        let json = to_value(Document::of(&ensemble)).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        let mut documented =
            ["collective", "algorithm", "ranks", "root", "topology", "edges", "blocks", "counts", "schedule"];
        documented.sort_unstable();
        assert_eq!(keys, documented);
        assert_eq!(json["root"], json!(1));
        assert_eq!(json["topology"], json!([[[1], [0]], [[2, 3]]]));
        let rank = json!({"rank": 0, "scratch": 5, "rounds": [
            {"send": [{"to": 1, "spans": [["input", 0, 2], ["scratch", 4, 1]]}],
             "recv": [{"from": 2, "spans": [["shared", 0, 1]], "combine": "after"},
                      {"from": 3, "spans": [["output", 1, 1]], "combine": "before"},
                      {"from": 3, "spans": [], "combine": null}],
             "local": [["copy", ["input", 0, 1], ["output", 0, 1]], ["combine", ["input", 0, 1], ["output", 0, 1]],
                       ["combine-before", ["input", 0, 1], ["output", 0, 1]], ["meet", 1]]},
            {"send": [], "recv": [], "local": []}]});
        assert_eq!(json["schedule"][0], rank);
        assert_eq!(json["counts"]["maxima"]["sent"], json!({"messages": 1, "blocks": 3}));
        assert_eq!(json["counts"]["sent_by_all"][1], json!({"messages": 1, "blocks": 3}));
        assert_eq!(json["counts"]["formula"], json!(null));
    }

    #[test]
    fn only_rooted_collectives_have_a_root() {
        let mut ensemble: Ensemble = ALL_KINDS.parse().unwrap();
        ensemble.problem.collective = Collective::Allreduce;
        assert_eq!(to_value(Document::of(&ensemble)).unwrap()["root"], json!(null));
    }
}
