//! Flows: messages whose bytes travel side by side, and share the links of their nodes as evenly as these allow (max-min fairness).
//!
//! Flows between the same links progress alike, so they are one group with one progress, at which each of them ends. Progress is
//! in seconds of a link that has nothing else to do, a rate is a share of it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::lanes::Cost;

/// Rates that differ by less than this share are one: sums in another order differ by that much.
const EQUAL: f64 = 1.0 + 1e-9;

pub(super) struct Flows {
    /// The links of each node: to the network, inside, from the network.
    links: Vec<Link>,
    groups: Vec<Group>,
    /// Groups by their links, and by the rate of a flow alone.
    known: HashMap<(usize, Option<usize>, u64), u32>,
    /// The groups that have flows.
    active: Vec<u32>,
    /// Up to when flows have progressed.
    now: f64,
    /// The group whose first flow ends next.
    due: Option<u32>,
    /// How often rates have changed: an end that was foreseen before does not come.
    turn: u32,
    changed: bool,
}

#[derive(Clone, Copy, Default)]
struct Link {
    /// What is left of it for groups that have no rate yet.
    left: f64,
    /// The flows of these groups.
    flows: f64,
}

struct Group {
    links: [Option<usize>; 2],
    alone: f64,
    rate: f64,
    progress: f64,
    /// At which progress each flow ends, as bits, which sort as positive numbers do, and which message that is.
    ends: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Group {
    fn first_end(&self) -> Option<f64> {
        self.ends.peek().map(|Reverse((end, _))| f64::from_bits(*end))
    }
}

impl Flows {
    pub(super) fn new(nodes: usize) -> Flows {
        Flows {
            links: vec![Link::default(); 3 * nodes],
            groups: Vec::new(),
            known: HashMap::new(),
            active: Vec::new(),
            now: 0.0,
            due: None,
            turn: 0,
            changed: false,
        }
    }

    /// A message begins to flow; the turn in which rates have to be found anew, unless that is known already.
    pub(super) fn begin(&mut self, message: usize, from: usize, to: usize, now: f64, cost: &Cost) -> Option<u32> {
        let (out, into) = (3 * from + usize::from(!cost.far), cost.far.then_some(3 * to + 2));
        let groups = &mut self.groups;
        let index = *self.known.entry((out, into, cost.share.to_bits())).or_insert_with(|| {
            let (links, alone, ends) = ([Some(out), into], cost.share, BinaryHeap::new());
            groups.push(Group { links, alone, rate: 0.0, progress: 0.0, ends });
            groups.len() as u32 - 1
        });
        self.progress(now);
        let group = &mut self.groups[index as usize];
        if group.ends.is_empty() {
            group.progress = 0.0;
            self.active.push(index);
        }
        group.ends.push(Reverse(((group.progress + cost.injection).to_bits(), message as u32)));
        let known = std::mem::replace(&mut self.changed, true);
        self.turn += u32::from(!known);
        (!known).then_some(self.turn)
    }

    /// Lets flows end that end now, and finds the rates of the others: the messages that have ended, and when and in which turn to come
    /// again. Nothing if it was foreseen in a turn that is over.
    pub(super) fn share(&mut self, turn: u32, now: f64, ended: &mut Vec<u32>) -> Option<(f64, u32)> {
        ended.clear();
        if turn != self.turn {
            return None;
        }
        self.progress(now);
        if let Some(due) = self.due.take().filter(|_| !self.changed) {
            let due = &mut self.groups[due as usize];
            due.progress = due.progress.max(due.first_end().unwrap_or(0.0));
        }
        let groups = &mut self.groups;
        self.active.retain(|&index| {
            let group = &mut groups[index as usize];
            while group.first_end().is_some_and(|end| end <= group.progress * EQUAL) {
                ended.extend(group.ends.pop().map(|Reverse((_, message))| message));
            }
            !group.ends.is_empty()
        });
        ended.sort_unstable();
        self.find_rates();
        self.changed = false;
        self.turn += 1;
        let remaining = |index: &u32| {
            let group = &self.groups[*index as usize];
            (group.first_end().map_or(0.0, |end| (end - group.progress).max(0.0) / group.rate), *index)
        };
        let (seconds, due) = self.active.iter().map(remaining).min_by(|a, b| a.0.total_cmp(&b.0))?;
        self.due = Some(due);
        Some((now + seconds, self.turn))
    }

    fn progress(&mut self, now: f64) {
        let passed = now - std::mem::replace(&mut self.now, now);
        if passed > 0.0 {
            for &index in &self.active {
                let group = &mut self.groups[index as usize];
                group.progress += group.rate * passed;
            }
        }
    }

    /// All rates rise together; those of a link that is full stay, and those of flows that are as fast as alone.
    fn find_rates(&mut self) {
        for &index in &self.active {
            let group = &self.groups[index as usize];
            for link in group.links.into_iter().flatten() {
                self.links[link] = Link { left: 1.0, flows: 0.0 };
            }
        }
        for &index in &self.active {
            let group = &self.groups[index as usize];
            for link in group.links.into_iter().flatten() {
                self.links[link].flows += group.ends.len() as f64;
            }
        }
        let mut rising = self.active.clone();
        while !rising.is_empty() {
            let most = |group: &Group, links: &[Link]| {
                let of_link = |link: usize| links[link].left / links[link].flows;
                group.links.into_iter().flatten().map(of_link).fold(group.alone, f64::min)
            };
            let all = rising.iter().map(|&index| most(&self.groups[index as usize], &self.links));
            let rate = all.fold(f64::INFINITY, f64::min);
            // What is full is found before anything is taken from it.
            let stays = |index: &u32| most(&self.groups[*index as usize], &self.links) <= rate * EQUAL;
            let (staying, others) = rising.into_iter().partition::<Vec<u32>, _>(stays);
            for index in staying {
                let group = &mut self.groups[index as usize];
                group.rate = rate;
                for link in group.links.into_iter().flatten() {
                    self.links[link].left -= rate * group.ends.len() as f64;
                    self.links[link].flows -= group.ends.len() as f64;
                }
            }
            rising = others;
        }
    }
}
