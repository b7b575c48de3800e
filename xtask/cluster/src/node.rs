//! Nodes: namespaces, each kept by a process that sleeps, with one network device whose other end is the switch.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::system::{self, Namespaces};
use crate::{Result, state};

/// Longer frames than Ethernet's: fewer of them, each of which costs the switch time.
const FRAME: usize = 9000;

pub(crate) struct Node {
    keeper: Child,
    /// Frames of the node.
    pub(crate) device: File,
}

/// What a node is called.
pub(crate) fn name(index: usize) -> String {
    format!("node{index}")
}

/// Private addresses, which nobody outside the nodes can see.
fn address(index: usize) -> String {
    format!("10.77.0.{}", index + 1)
}

/// The last byte tells the node: see [`destination`].
fn hardware_address(index: usize) -> String {
    format!("02:00:00:00:00:{:02x}", index + 1)
}

/// The node that a frame is for, or `None` if it is for all.
pub(crate) fn destination(frame: &[u8]) -> Option<usize> {
    match frame {
        [2, 0, 0, 0, 0, last @ (1..), ..] => Some(usize::from(*last) - 1),
        _ => None,
    }
}

/// The names and addresses of all nodes.
pub(crate) fn write_hosts(nodes: usize, file: &Path) -> Result<()> {
    let lines = (0..nodes).map(|index| format!("{} {}\n", address(index), name(index)));
    let text = "127.0.0.1 localhost\n".to_owned() + &lines.collect::<String>();
    fs::write(file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))
}

impl Node {
    /// One of so many nodes. It ends with this process.
    pub(crate) fn new(index: usize, nodes: usize, hosts: &Path) -> Result<Node> {
        let wrong = |what: &str| {
            let name = name(index);
            let what = what.to_owned();
            move |error: std::io::Error| format!("{name}: {what}: {error}")
        };
        let mut keeper = Command::new("sleep");
        keeper.arg("infinity").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        system::as_new_node(&mut keeper, &name(index), hosts).map_err(wrong("no namespaces"))?;
        let keeper = keeper.spawn().map_err(wrong("no namespaces"))?;
        let namespaces = Namespaces::of(keeper.id()).map_err(wrong("the namespaces are gone"))?;
        let device =
            namespaces.in_network(system::network_device).map_err(wrong("no network device of /dev/net/tun"))?;
        let mut ip = Command::new("ip");
        ip.args(["-batch", "-"]).stdin(Stdio::piped());
        namespaces.host(&mut ip).map_err(wrong("cannot be entered"))?;
        let mut ip = ip.spawn().map_err(wrong("`ip` cannot be started; install iproute2"))?;
        if let Some(mut input) = ip.stdin.take() {
            input.write_all(addresses(index, nodes).as_bytes()).map_err(wrong("`ip` does not listen"))?;
        }
        let done = ip.wait().map_err(wrong("`ip` is gone"))?;
        if !done.success() {
            return Err(format!("{}: `ip` could not give it an address", name(index)));
        }
        Ok(Node { keeper, device })
    }

    pub(crate) fn keeper(&self) -> u32 {
        self.keeper.id()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// What `ip` is told: addresses, and those of all the others, so that nobody asks for them.
fn addresses(index: usize, nodes: usize) -> String {
    let mut text = format!(
        "link set lo up\nlink set eth0 addrgenmode none\nlink set eth0 address {} mtu {FRAME} txqueuelen 10000\naddr add {}/24 dev eth0\nlink set eth0 up\n",
        hardware_address(index),
        address(index)
    );
    for other in (0..nodes).filter(|other| *other != index) {
        text +=
            &format!("neigh replace {} lladdr {} dev eth0 nud permanent\n", address(other), hardware_address(other));
    }
    text
}

/// Ends everything that runs on the nodes of these processes, which are spared if they are to be kept.
pub(crate) fn end_all(keepers: &[u32], keep: bool) {
    let network = |process: u32| fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|data| data.ino());
    let own = network(std::process::id());
    let networks: BTreeSet<u64> = keepers.iter().filter_map(|&keeper| network(keeper)).collect();
    for _ in 0..50 {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let there = |process: &u32| network(*process).is_some_and(|it| networks.contains(&it) && Some(it) != own);
        let doomed: Vec<u32> = numbers.filter(there).filter(|it| !keep || !keepers.contains(it)).collect();
        if doomed.is_empty() {
            return;
        }
        doomed.iter().for_each(|&process| {
            system::signal(process, libc::SIGKILL);
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The node of a name, in the cluster that is there.
pub(crate) fn enter(host: &str, command: &mut Command) -> Result<()> {
    let cluster = state::current().ok_or("there is no cluster; build one with `cluster up`")?;
    let index = host.strip_prefix("node").and_then(|number| number.parse::<usize>().ok());
    let keeper = index.and_then(|index| cluster.keepers.get(index));
    let keeper = keeper.ok_or_else(|| {
        format!("{host} is no node; there are node0 to node{}", cluster.keepers.len().saturating_sub(1))
    })?;
    let entered = Namespaces::of(*keeper).and_then(|namespaces| namespaces.host(command));
    entered.map_err(|error| format!("{host} cannot be entered: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_find_their_node() {
        for index in [0, 1, 63] {
            let text = hardware_address(index);
            let mut frame: Vec<u8> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            frame.extend([0; 60]);
            assert_eq!(destination(&frame), Some(index));
        }
        assert_eq!(destination(&[0xff; 60]), None);
        assert_eq!(destination(&[2, 0, 0, 0, 0, 0, 1]), None);
    }

    #[test]
    fn nodes_know_each_other() {
        let text = addresses(1, 3);
        assert!(text.contains("addr add 10.77.0.2/24 dev eth0"), "{text}");
        assert!(text.contains("neigh replace 10.77.0.1 lladdr 02:00:00:00:00:01"), "{text}");
        assert!(text.contains("neigh replace 10.77.0.3 lladdr 02:00:00:00:00:03"), "{text}");
        assert_eq!(text.matches("neigh").count(), 2);
    }
}
