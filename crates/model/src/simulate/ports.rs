//! Ports: of those that are free, a message takes the one that has been free for longest.

use crate::machine::Machine;

/// More ports than this are as good as any number.
const MOST_PORTS: usize = 256;

/// When a message arrives, and how long it keeps the port that takes it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    pub(super) at: f64,
    pub(super) keeps: f64,
}

/// When a message starts that is ready and keeps a port for so long. No ports: any number.
pub(super) fn start(ports: &mut [f64], ready: f64, keeps: f64) -> f64 {
    let Some(port) = longest_free(ports) else { return ready };
    let start = ready.max(*port);
    *port = start + keeps;
    start
}

fn longest_free(ports: &mut [f64]) -> Option<&mut f64> {
    match ports {
        [port] => Some(port),
        ports => ports.iter_mut().min_by(|a, b| a.total_cmp(b)),
    }
}

/// The receiving ports of all ranks.
pub(super) struct Receiving {
    /// Of each rank; none: any number.
    ports: usize,
    /// When each is free.
    free: Vec<f64>,
    /// Arrivals of a step, in order.
    queueing: Vec<Arrival>,
}

impl Receiving {
    pub(super) fn new(machine: &Machine, ranks: usize) -> Receiving {
        let ports = machine.ports.filter(|&ports| ports <= MOST_PORTS).unwrap_or(0);
        Receiving { ports, free: vec![f64::NEG_INFINITY; ranks * ports], queueing: Vec::new() }
    }

    /// The ports of a rank are not free before this.
    pub(super) fn keep(&mut self, rank: usize, until: f64) {
        self.free[rank * self.ports..(rank + 1) * self.ports].iter_mut().for_each(|free| *free = free.max(until));
    }

    /// When the last of a step's messages has passed a rank's ports; 0 if there are none.
    pub(super) fn take(&mut self, rank: usize, arrivals: &[Arrival]) -> f64 {
        if self.ports == 0 {
            return arrivals.iter().map(|arrival| arrival.at).fold(0.0, f64::max);
        }
        let free = &mut self.free[rank * self.ports..(rank + 1) * self.ports];
        let mut pass = |arrival: &Arrival| {
            let Some(port) = longest_free(free) else { return arrival.at };
            *port = arrival.at.max(*port + arrival.keeps);
            *port
        };
        match arrivals {
            [] => 0.0,
            [one] => pass(one),
            several => {
                self.queueing.clear();
                self.queueing.extend_from_slice(several);
                self.queueing.sort_by(|a, b| a.at.total_cmp(&b.at));
                self.queueing.iter().map(pass).fold(0.0, f64::max)
            }
        }
    }
}
