//! Small cases with the times that follow by hand from what `cluster.toml` says, where our model and SimGrid could differ.

use std::fmt::Write;

use allhands_model::{Amount, Simulator};
use allhands_schedule::{Collective, Ensemble, InlineVec, Problem, Recv, Round, Schedule, Send, Span, Topology};

use crate::cluster::{CLUSTER, machine};
use crate::installed;

const MIB: usize = 1 << 20;

/// A message: its round, from whom, to whom, and how many bytes.
type Message = (usize, usize, usize, usize);

/// The rounds of all ranks; a rank takes part in those in which it has messages.
fn schedules(topology: &Topology, messages: &[Message]) -> Ensemble {
    let schedule = |rank: usize| {
        let round = |round: usize| {
            let (mut sends, mut recvs) = (vec![], vec![]);
            for &(_, from, to, bytes) in messages.iter().filter(|message| message.0 == round) {
                let spans = InlineVec::from([Span::scratch(0, bytes)]);
                if from == rank {
                    sends.push(Send { to, spans: spans.clone() });
                }
                if to == rank {
                    recvs.push(Recv { from, spans, combine: None });
                }
            }
            Round { sends: sends.into(), recvs: recvs.into(), ..Round::default() }
        };
        Schedule { rank, rounds: (0..2).map(round).filter(|round| !round.is_empty()).collect() }
    };
    let schedules = (0..topology.ranks()).map(schedule).collect();
    let problem = Problem::new(Collective::Allgather, topology.clone());
    Ensemble { problem, algorithm: "by hand".into(), blocks: topology.ranks(), schedules }
}

fn trace(ensemble: &Ensemble) -> String {
    let mut text = String::new();
    for Schedule { rank, rounds } in &ensemble.schedules {
        writeln!(text, "{rank} init").unwrap();
        for round in rounds {
            for recv in round.recvs.iter() {
                writeln!(text, "{rank} irecv {} 0 {} 6", recv.from, recv.spans[0].count).unwrap();
            }
            for send in round.sends.iter() {
                writeln!(text, "{rank} isend {} 0 {} 6", send.to, send.spans[0].count).unwrap();
            }
            writeln!(text, "{rank} waitall {}", round.recvs.len() + round.sends.len()).unwrap();
        }
        writeln!(text, "{rank} finalize").unwrap();
    }
    text
}

/// Every rank to every other, the next one first.
fn all_to_all(ranks: usize, bytes: usize) -> Vec<Message> {
    (1..ranks).flat_map(|far| (0..ranks).map(move |rank| (0, rank, (rank + far) % ranks, bytes))).collect()
}

/// What is looked at, on so many nodes of so many ranks, and the microseconds that it takes.
fn cases() -> Vec<(&'static str, [usize; 2], Vec<Message>, f64)> {
    let mib = MIB as f64 * 1e-3; // as many microseconds at 1 ns a byte
    let out: Vec<Message> = (0..16).map(|rank| (0, rank, 16 + rank, MIB)).collect();
    let back: Vec<Message> = (0..16).map(|rank| (0, 16 + rank, rank, MIB)).collect();
    let sixteen = 2.2032 + 16.0 * 0.05 * mib;
    vec![
        ("far, short", [2, 1], vec![(0, 0, 1, 8)], 2.4032 + 0.0016),
        ("far, the longest that does not wait", [2, 1], vec![(0, 0, 1, 8191)], 2.4032 + 1.6382),
        ("far, the shortest that waits", [2, 1], vec![(0, 0, 1, 8192)], 2.2032 + 1.6384),
        ("near, short", [1, 2], vec![(0, 0, 1, 8)], 0.9016 + 0.0008),
        ("near, the shortest that waits", [1, 2], vec![(0, 0, 1, 8192)], 0.7016 + 0.8192),
        // Overheads pass one after the other, at both ends; bytes do not.
        ("two short ones from a rank", [3, 1], vec![(0, 0, 1, 8), (0, 0, 2, 8)], 0.2 + 2.4048),
        ("two short ones to a rank", [3, 1], vec![(0, 1, 0, 8), (0, 2, 0, 8)], 2.4048 + 0.2),
        ("two long ones from a rank", [3, 1], vec![(0, 0, 1, MIB), (0, 0, 2, MIB)], 0.2 + 2.2032 + 0.2 * mib),
        ("two long ones to a rank", [3, 1], vec![(0, 1, 0, MIB), (0, 2, 0, MIB)], 2.2032 + 0.2 * mib),
        // A rank sends all before it receives: 15 overheads, and 15 more, by when all have come.
        ("short ones among 16", [16, 1], all_to_all(16, 8), 30.0 * 0.2),
        ("near beside far", [2, 2], vec![(0, 0, 1, MIB), (0, 0, 2, MIB)], 0.2 + 2.2032 + 0.2 * mib),
        ("long near ones do not share memory", [1, 16], all_to_all(16, MIB), 14.0 * 0.2 + 0.7016 + 0.1 * mib),
        (
            "four flows fill the link of a node",
            [2, 4],
            (0..4).map(|rank| (0, rank, 4 + rank, MIB)).collect(),
            2.2032 + 0.2 * mib,
        ),
        ("16 flows out of a node", [2, 16], out.clone(), sixteen),
        ("16 flows out of a node, 16 into it", [2, 16], [out, back].concat(), sixteen),
        (
            "16 flows from four nodes into one",
            [5, 4],
            (0..16).map(|rank| (0, 4 + rank, rank % 4, MIB)).collect(),
            sixteen,
        ),
        // The overhead of its sender is over when the receiver comes.
        ("a long one for a rank that is late", [3, 1], vec![(0, 2, 1, 8), (1, 0, 1, MIB)], 2.4048 + 2.0032 + 0.2 * mib),
        ("a short one for a rank that is late", [3, 1], vec![(0, 2, 1, 8), (1, 0, 1, 8)], 2.4048 + 0.2),
    ]
}

#[test]
fn small_cases_take_as_long_as_by_hand() {
    let (folder, simgrid) = (tempfile::tempdir().unwrap(), installed());
    for (what, [nodes, size], messages, microseconds) in cases() {
        let topology = Topology::regular(nodes, size).unwrap();
        let ensemble = schedules(&topology, &messages);
        let ours = Simulator::of(&ensemble).run(&machine(), Amount::bytes(1)).unwrap().seconds * 1e6;
        assert!((ours - microseconds).abs() < 1e-6, "{what}: {ours} is not {microseconds}");
        if simgrid {
            let nodes: Vec<usize> = (0..topology.ranks()).map(|rank| rank / size).collect();
            let theirs = CLUSTER.replay(&trace(&ensemble), &nodes, folder.path()) * 1e6;
            // On a link that is shared the 16 bytes of every envelope are, too, which we do not model: 0.0128 us of 16.
            assert!((theirs - ours).abs() < 0.02, "{what}: {ours} beside SimGrid's {theirs}");
        }
    }
}
