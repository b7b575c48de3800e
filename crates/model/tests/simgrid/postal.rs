//! The postal model: a host for every rank, sends that wait for their receives, no overheads.

use allhands_model::{Amount, Machine, simulate};
use allhands_schedule::{Choice, Collective, Problem, Topology};

use crate::{Network, installed, trace};

/// Latency and time per byte of the way between two hosts of the platform below.
const LATENCY: f64 = 2e-6;
const PER_BYTE: f64 = 1e-9;

/// SimGrid sends as many more with every message.
const ENVELOPE: f64 = 16.0;

const POSTAL: Network = Network {
    platform,
    settings: &[
        "--cfg=smpi/send-is-detached-thresh:0",
        "--cfg=smpi/os:0:0:0",
        "--cfg=smpi/or:0:0:0",
        "--cfg=smpi/ois:0:0:0",
    ],
};

fn platform(nodes: usize) -> String {
    let last = nodes - 1;
    format!(
        r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{last}" speed="1Gf" bw="1GBps" lat="1us"/>
</platform>
"#
    )
}

#[test]
fn one_message_at_a_time_takes_as_long_in_simgrid() {
    if !installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::postal(LATENCY + ENVELOPE * PER_BYTE, PER_BYTE);
    for (collective, name) in [
        (Collective::Allgather, "bruck"),
        (Collective::Allgather, "ring"),
        (Collective::Allgather, "sparbit"),
        (Collective::Allreduce, "recursive-doubling"),
        (Collective::Bcast, "binomial"),
        (Collective::Alltoall, "pairwise"),
    ] {
        let problem = Problem::new(collective, Topology::flat(16).unwrap());
        let prepared = Choice::parse(collective, name).unwrap().prepare(&problem).unwrap();
        let nodes: Vec<usize> = (0..16).collect();
        for amount in [1, 1024, 65536].map(Amount::bytes) {
            let ours = simulate(&prepared, &machine, amount).unwrap().seconds;
            let theirs = POSTAL.replay(&trace(&prepared, &machine, amount), &nodes, folder.path());
            assert!((theirs / ours - 1.0).abs() < 0.01, "{collective} {name}, {amount:?}: {ours} beside {theirs}");
        }
    }
}
