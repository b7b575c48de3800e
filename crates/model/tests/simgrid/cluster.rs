//! A cluster of nodes with several ranks: SimGrid's form of it, and ours, which is `cluster.toml`.

use allhands_model::Machine;

use crate::Network;

pub(crate) fn machine() -> Machine {
    Machine::parse(include_str!("cluster.toml")).unwrap()
}

pub(crate) const CLUSTER: Network = Network {
    platform,
    settings: &[
        // Messages of 8 KiB and more wait for their receivers. A rank is kept by what it sends, and by what it receives that has not waited.
        "--cfg=smpi/async-small-thresh:8192",
        "--cfg=smpi/send-is-detached-thresh:8192",
        "--cfg=smpi/os:0:0.2e-6:0",
        "--cfg=smpi/or:0:0.2e-6:0",
        "--cfg=smpi/ois:0:0.2e-6:0",
    ],
};

/// The flows of a node go together through a link each way; one alone is as fast as the backbone, or as memory.
fn platform(nodes: usize) -> String {
    let last = nodes - 1;
    format!(
        r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{last}" speed="1Gf"
           bw="20GBps" lat="1us" sharing_policy="SPLITDUPLEX" bb_bw="5GBps" bb_lat="0" bb_sharing_policy="FATPIPE"
           loopback_bw="10GBps" loopback_lat="500ns"/>
</platform>
"#
    )
}
