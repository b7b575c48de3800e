//! The switch: every frame is held until it would have arrived.
//!
//! A port sends one frame after the other at its rate, the frame travels for the delay, and the receiver's port takes one frame
//! after the other at its rate. So there are latency, bandwidth and incast:
//!
//! ```text
//! sent    = max(now, sender free) + bytes / rate
//! arrived = max(sent + delay, receiver free + bytes / rate)
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::node::{self, Node};
use crate::settings::{Delay, Rate};
use crate::state::{self, Cluster};
use crate::words::Dial;
use crate::{Result, agent, system};

/// Longer than any frame.
const ROOM: usize = 16 * 1024;
/// Frames that are on their way at once; more are lost, as in any switch.
const MOST_UNDER_WAY: usize = 100_000;

/// Frames on their way, and when ports are free.
pub(crate) struct Traffic {
    delay: Delay,
    rate: Rate,
    sending: Vec<Duration>,
    receiving: Vec<Duration>,
    under_way: BinaryHeap<Reverse<Frame>>,
    /// Tells frames that arrive at the same time in which order they were sent.
    number: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    arrives: Duration,
    number: u64,
    to: usize,
    bytes: Vec<u8>,
}

impl Traffic {
    pub(crate) fn new(ports: usize, delay: Delay, rate: Rate) -> Traffic {
        Traffic {
            delay,
            rate,
            sending: vec![Duration::ZERO; ports],
            receiving: vec![Duration::ZERO; ports],
            under_way: BinaryHeap::new(),
            number: 0,
        }
    }

    /// A frame leaves a node.
    pub(crate) fn send(&mut self, now: Duration, from: usize, bytes: &[u8]) {
        let time = self.rate.time(bytes.len());
        let sent = self.sending[from].max(now) + time;
        self.sending[from] = sent;
        let ports = self.receiving.len();
        let targets = match node::destination(bytes) {
            Some(to) if to < ports => to..to + 1,
            Some(_) => 0..0,
            None => 0..ports,
        };
        for to in targets.filter(|to| *to != from) {
            if self.under_way.len() >= MOST_UNDER_WAY {
                return;
            }
            let arrives = (sent + self.delay.duration()).max(self.receiving[to] + time);
            self.receiving[to] = arrives;
            self.number += 1;
            self.under_way.push(Reverse(Frame { arrives, number: self.number, to, bytes: bytes.to_vec() }));
        }
    }

    /// When the next frame arrives.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.under_way.peek().map(|Reverse(frame)| frame.arrives)
    }

    /// A frame that has arrived by now, and where.
    pub(crate) fn arrived(&mut self, now: Duration) -> Option<(usize, Vec<u8>)> {
        self.next().filter(|arrives| *arrives <= now)?;
        self.under_way.pop().map(|Reverse(frame)| (frame.to, frame.bytes))
    }
}

/// Builds the nodes, says `ready`, and carries their frames until it is told to end. It runs as a process of its own.
pub(crate) fn serve(nodes: u8, delay: Delay, rate: Rate, tied: bool) -> Result<()> {
    system::leave_terminal();
    let wrong = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let folder = state::folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let outcome = (|| {
        let hosts = folder.join("hosts");
        node::write_hosts(nodes.into(), &hosts)?;
        agent::write_script()?;
        let built: Result<Vec<Node>> =
            (0..usize::from(nodes)).map(|index| Node::new(index, nodes.into(), &hosts)).collect();
        let mut nodes = built?;
        let keepers: Vec<u32> = nodes.iter().map(Node::keeper).collect();
        let end = system::signals_to_end().map_err(wrong("no signals"))?;
        if tied {
            system::end_with_parent().map_err(wrong("it cannot be tied to its starter"))?;
        }
        system::be_urgent().map_err(wrong("no priority for the switch"))?;
        let dial = Dial::create(&state::dial(), delay.micros).map_err(wrong("no dial for the delay"))?;
        Cluster { switch: std::process::id(), keepers: keepers.clone(), delay, rate }.save()?;
        println!("ready");
        // Whoever reads what the starter printed has to see its end.
        let quiet = std::fs::File::options().write(true).open("/dev/null").map_err(wrong("/dev/null"))?;
        rustix::stdio::dup2_stdout(&quiet).map_err(|error| wrong("the output")(error.into()))?;
        rustix::stdio::dup2_stderr(&quiet).map_err(|error| wrong("the output")(error.into()))?;
        let traffic = Traffic::new(nodes.len(), delay, rate);
        let outcome = carry(&mut nodes, &end, &dial, traffic);
        node::end_all(&keepers, false);
        outcome
    })();
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

/// What else there is to wait for beside the nodes, by number.
const END: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// Carries frames until a signal comes, each for as long as the dial says when it leaves.
fn carry(nodes: &mut [Node], end: &std::os::fd::OwnedFd, dial: &Dial, mut traffic: Traffic) -> Result<()> {
    let wrong = |error: rustix::io::Errno| format!("the switch cannot wait for frames: {error}");
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(wrong)?;
    for (index, node) in nodes.iter().enumerate() {
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&poll, &node.device, data, epoll::EventFlags::IN).map_err(wrong)?;
    }
    epoll::add(&poll, end, epoll::EventData::new_u64(END), epoll::EventFlags::IN).map_err(wrong)?;
    // Waiting for events with a time may last until the next millisecond.
    let timer =
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC).map_err(wrong)?;
    epoll::add(&poll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN).map_err(wrong)?;
    let began = Instant::now();
    let mut events = Vec::with_capacity(nodes.len() + 2);
    let mut room = vec![0; ROOM];
    loop {
        while let Some((to, frame)) = traffic.arrived(began.elapsed()) {
            // A node that takes no frame loses it.
            let _ = nodes[to].device.write(&frame);
        }
        let wait = traffic
            .next()
            .map_or(Duration::ZERO, |next| next.saturating_sub(began.elapsed()).max(Duration::from_nanos(1)));
        // Also forgets that it has rung; nothing rings for a time of zero.
        let rings = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() },
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &rings).map_err(wrong)?;
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(wrong(error)),
        }
        traffic.delay = Delay { micros: dial.micros() };
        for event in &events {
            let from = match event.data.u64() {
                END => return Ok(()),
                TIMER => continue,
                index => index as usize,
            };
            loop {
                match nodes[from].device.read(&mut room) {
                    Ok(bytes) => traffic.send(began.elapsed(), from, &room[..bytes]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn frame(to: u8, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; bytes];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to + 1]);
        frame
    }

    /// 1,250 bytes take 10 us at this rate.
    fn traffic() -> Traffic {
        Traffic::new(3, Delay { micros: 500 }, Rate { megabits: 1000 })
    }

    fn arrivals(mut traffic: Traffic) -> Vec<(u64, usize)> {
        let mut arrivals = Vec::new();
        while let Some(next) = traffic.next() {
            assert!(traffic.arrived(next - Duration::from_nanos(1)).is_none(), "a frame came too early");
            let (to, _) = traffic.arrived(next).unwrap();
            arrivals.push((next.as_micros() as u64, to));
        }
        arrivals
    }

    #[test]
    fn a_frame_takes_its_length_and_the_delay() {
        let mut traffic = traffic();
        traffic.send(us(100), 0, &frame(1, 1250));
        assert_eq!(arrivals(traffic), [(610, 1)]);
    }

    #[test]
    fn a_port_sends_one_after_the_other() {
        let mut traffic = traffic();
        traffic.send(us(0), 0, &frame(1, 1250));
        traffic.send(us(0), 0, &frame(2, 1250));
        assert_eq!(arrivals(traffic), [(510, 1), (520, 2)]);
    }

    #[test]
    fn a_port_receives_one_after_the_other() {
        let mut traffic = traffic();
        traffic.send(us(0), 0, &frame(2, 1250));
        traffic.send(us(0), 1, &frame(2, 1250));
        assert_eq!(arrivals(traffic), [(510, 2), (520, 2)]);
    }

    #[test]
    fn no_frame_overtakes_another_when_the_delay_is_turned_down() {
        let mut traffic = traffic();
        traffic.send(us(0), 0, &frame(1, 1250));
        traffic.delay = Delay { micros: 50 };
        traffic.send(us(100), 0, &frame(1, 1250));
        traffic.send(us(700), 0, &frame(1, 1250));
        assert_eq!(arrivals(traffic), [(510, 1), (520, 1), (760, 1)]);
    }

    #[test]
    fn what_is_for_all_comes_to_all_others() {
        let mut traffic = traffic();
        traffic.send(us(0), 1, &[0xff; 125]);
        assert_eq!(arrivals(traffic), [(501, 0), (501, 2)]);
    }

    #[test]
    fn nobody_gets_what_is_for_nobody() {
        let mut traffic = traffic();
        traffic.send(us(0), 1, &frame(7, 100));
        assert_eq!(arrivals(traffic), []);
    }
}
