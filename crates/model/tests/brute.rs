//! The simulator against one that is too simple to be wrong: a list of events, searched from end to end.

mod random;

use std::collections::HashMap;

use allhands_model::{Amount, Level, Machine, Protocol, Simulator};
use allhands_schedule::{Collective, Ensemble, InlineVec, Problem, Recv, Round, Schedule, Send, Span, Topology};
use random::Random;

/// One message: its ends, by rank and round, and its bytes.
#[derive(Clone, Copy)]
struct Message {
    from: (usize, usize),
    to: (usize, usize),
    /// Which of the receives of that round.
    place: usize,
    bytes: u64,
}

/// What happens next; at the same time, in this order.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Event {
    Post(usize),
    Start(usize),
    Ready(usize),
    Inject(usize),
    /// Flows end.
    Flow,
}

/// Of each flow, which share of a link it gets: the slowest of those that have none yet gets what it can have, until all have some.
fn shares(flows: &[Flow]) -> Vec<f64> {
    let mut shares: Vec<Option<f64>> = vec![None; flows.len()];
    let on = |flow: &Flow, link: &Link| flow.links.contains(link);
    while shares.contains(&None) {
        let most = |flow: &Flow| {
            flow.links.iter().fold(flow.alone, |most, link| {
                let there = || (0..flows.len()).filter(|&other| on(&flows[other], link));
                let taken: f64 = there().filter_map(|other| shares[other]).sum();
                most.min((1.0 - taken) / there().filter(|&other| shares[other].is_none()).count() as f64)
            })
        };
        let open = (0..flows.len()).filter(|&index| shares[index].is_none()).map(|index| (most(&flows[index]), index));
        let (share, index) = open.min_by(|a, b| a.partial_cmp(b).unwrap()).unwrap();
        shares[index] = Some(share);
    }
    shares.into_iter().flatten().collect()
}

/// A node's link, and whether it is the one from the network.
type Link = (usize, bool, bool);

/// A message under way where messages are flows.
struct Flow {
    message: usize,
    links: Vec<Link>,
    /// Which share of a link it takes if nobody else is there.
    alone: f64,
    /// Seconds of a link that is its own which it still needs.
    left: f64,
}

/// When the last rank is through, found by brute force: one port a rank, an injection limit a node.
fn brute_force(ensemble: &Ensemble, machine: &Machine, block: u64) -> f64 {
    let (topology, ranks) = (&ensemble.problem.topology, ensemble.schedules.len());
    let messages = messages(ensemble, block);
    let cost = |message: &Message| {
        let level = machine.level(
            topology.shared_level(message.from.0, message.to.0),
            topology.depth(),
            topology.region_sizes(1).1,
        );
        *machine.levels[level].protocol(message.bytes)
    };
    // Where no rank sends two messages in a round, none of a rank's own can be in each other's way.
    let wide = ensemble.schedules.iter().flat_map(|schedule| &schedule.rounds).any(|round| round.sends.len() > 1);
    let mut clock = vec![0.0f64; ranks];
    let mut round = vec![0usize; ranks];
    let (mut posted, mut begun) = (vec![false; ranks], vec![false; ranks]);
    let mut port = vec![0.0f64; ranks];
    let mut receiving = vec![f64::NEG_INFINITY; ranks];
    let mut injection: HashMap<(usize, bool), f64> = HashMap::new();
    let mut sent: Vec<Option<f64>> = vec![None; messages.len()]; // when the sender is done with it
    let mut arrived: Vec<Option<f64>> = vec![None; messages.len()];
    let mut started = vec![false; messages.len()];
    let mut through_port = vec![f64::INFINITY; messages.len()]; // where messages are flows: when their sender has posted them
    let (mut flows, mut flowed): (Vec<Flow>, f64) = (vec![], 0.0);
    // Events of the same time come in batches: what one of them causes at its own time is of the next batch.
    let mut events: Vec<(f64, usize, Event)> = (0..ranks).map(|rank| (0.0, 0, Event::Post(rank))).collect();
    loop {
        let rates = shares(&flows);
        let ends = flows.iter().zip(&rates).map(|(flow, rate)| flowed + flow.left.max(0.0) / rate);
        let flow_ends = ends.fold(f64::INFINITY, f64::min);
        let first = (0..events.len()).min_by(|&a, &b| events[a].partial_cmp(&events[b]).unwrap());
        let first = first.filter(|&first| events[first].0 < flow_ends);
        let (now, batch, event) = match first {
            Some(first) => events.remove(first),
            None if flows.is_empty() => break,
            None => (flow_ends, 0, Event::Flow),
        };
        for (flow, rate) in flows.iter_mut().zip(&rates) {
            flow.left -= rate * (now - flowed);
        }
        flowed = now;
        let at = |time: f64, event: Event| (time, if time > now { 0 } else { batch + 1 }, event);
        let (mut starting, mut to_send, mut to_inject) = (None, vec![], vec![]);
        match event {
            Event::Flow => flows.retain(|flow| {
                let ends = flow.left <= 1e-18;
                if ends {
                    let cost = cost(&messages[flow.message]);
                    arrived[flow.message] = Some(now + cost.latency - cost.overhead);
                    sent[flow.message] = sent[flow.message].or(arrived[flow.message]);
                }
                !ends
            }),
            Event::Post(rank) if round[rank] == ensemble.schedules[rank].rounds.len() => continue,
            Event::Post(rank) => {
                posted[rank] = true;
                port[rank] = now;
                match wide {
                    true => events.push(at(now, Event::Start(rank))),
                    false => starting = Some(rank),
                }
            }
            Event::Start(rank) => starting = Some(rank),
            Event::Ready(index) => to_send.push(index),
            Event::Inject(index) => to_inject.push(index),
        }
        if let Some(rank) = starting {
            begun[rank] = true;
            let here = (rank, round[rank]);
            let there = |end: (usize, usize)| posted[end.0] && round[end.0] == end.1;
            // Sends first, then receives for which a sender has waited, each as listed.
            let concerned = |index: &usize| messages[*index].to == here || messages[*index].from == here;
            let mut concerned: Vec<usize> = (0..messages.len()).filter(concerned).collect();
            concerned.sort_by_key(|&index| if messages[index].from == here { 0 } else { 1 + messages[index].place });
            for index in concerned {
                let message = &messages[index];
                let rendezvous = cost(message).rendezvous;
                if machine.flows && message.from == here {
                    port[rank] += cost(message).overhead;
                    through_port[index] = port[rank];
                    sent[index] = (!rendezvous).then_some(port[rank]);
                }
                let sends = there(message.from) && begun[message.from.0];
                let ready = if rendezvous { sends && there(message.to) } else { message.from == here };
                if ready && !started[index] {
                    started[index] = true;
                    match message.from == here {
                        _ if machine.flows => events.push(at(now.max(through_port[index]), Event::Inject(index))),
                        true => to_send.push(index),
                        false if wide => events.push(at(now, Event::Ready(index))),
                        false => to_send.push(index),
                    }
                }
            }
        }
        for index in to_send {
            let (message, cost) = (&messages[index], cost(&messages[index]));
            let kept = cost.overhead + cost.per_byte * message.bytes as f64;
            let start = now.max(port[message.from.0]);
            port[message.from.0] = start + kept;
            if !cost.rendezvous {
                sent[index] = Some(start + kept);
            }
            events.push(at(start, Event::Inject(index)));
        }
        for index in to_inject {
            let (message, cost) = (&messages[index], cost(&messages[index]));
            let (from, to) = (topology.region_of(1, message.from.0), topology.region_of(1, message.to.0));
            let far = topology.shared_level(message.from.0, message.to.0) == 0;
            let left = cost.injection * message.bytes as f64;
            if machine.flows && left > 0.0 {
                let links = [(from, far, false), (to, far, true)].into_iter().take(1 + usize::from(far)).collect();
                flows.push(Flow { message: index, links, alone: cost.injection / cost.per_byte, left });
                continue;
            }
            let free = injection.entry((from, far)).or_default();
            let start = if cost.injection > 0.0 { now.max(*free) } else { now };
            if cost.injection > 0.0 {
                *free = start + cost.injection * message.bytes as f64;
            }
            let posted = if machine.flows { cost.overhead } else { 0.0 };
            arrived[index] = Some(start + cost.latency - posted + cost.per_byte * message.bytes as f64);
            sent[index] = sent[index].or(arrived[index]);
        }
        for rank in 0..ranks {
            let here = (rank, round[rank]);
            let mine = |index: &usize| messages[*index].from == here || messages[*index].to == here;
            // How long a flow takes is not known when its sender is done with it.
            let leaves = |index: usize| machine.flows && messages[index].from == here;
            let through = |index: usize| sent[index].is_some() && (arrived[index].is_some() || leaves(index));
            if !begun[rank] || !(0..messages.len()).filter(mine).all(through) {
                continue;
            }
            let mut done = clock[rank];
            let mut incoming: Vec<(f64, f64)> = vec![];
            for index in (0..messages.len()).filter(mine) {
                let (message, cost) = (&messages[index], cost(&messages[index]));
                if message.from == here {
                    done = done.max(sent[index].unwrap());
                }
                if message.to == here {
                    let kept = match machine.flows {
                        true if cost.rendezvous => 0.0,
                        true => cost.overhead,
                        false => cost.overhead + cost.per_byte * message.bytes as f64,
                    };
                    incoming.push((arrived[index].unwrap(), kept));
                }
            }
            if machine.flows {
                receiving[rank] = receiving[rank].max(port[rank]);
            }
            incoming.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (arrival, kept) in incoming {
                receiving[rank] = arrival.max(receiving[rank] + kept);
                done = done.max(receiving[rank]);
            }
            clock[rank] = done;
            round[rank] += 1;
            (posted[rank], begun[rank]) = (false, false);
            events.push(at(clock[rank], Event::Post(rank)));
        }
    }
    assert!((0..ranks).all(|rank| round[rank] == ensemble.schedules[rank].rounds.len()), "deadlock");
    clock.into_iter().fold(0.0, f64::max)
}

/// The n-th send from a to b belongs to the n-th receive that b posts for a.
fn messages(ensemble: &Ensemble, block: u64) -> Vec<Message> {
    let mut receives: HashMap<(usize, usize), std::collections::VecDeque<(usize, usize)>> = HashMap::new();
    for schedule in &ensemble.schedules {
        for (round, step) in schedule.rounds.iter().enumerate() {
            for (place, recv) in step.recvs.iter().enumerate() {
                receives.entry((recv.from, schedule.rank)).or_default().push_back((round, place));
            }
        }
    }
    let mut messages = vec![];
    for schedule in &ensemble.schedules {
        for (round, step) in schedule.rounds.iter().enumerate() {
            for send in &step.sends {
                let (to_round, place) = receives.get_mut(&(schedule.rank, send.to)).unwrap().pop_front().unwrap();
                let bytes = send.spans.iter().map(|span| span.count as u64).sum::<u64>() * block;
                messages.push(Message { from: (schedule.rank, round), to: (send.to, to_round), place, bytes });
            }
        }
    }
    // In this order messages that are ready at the same time are served: by round, then by rank.
    messages.sort_by_key(|message: &Message| (message.from.1, message.from.0));
    messages
}

/// Random messages in a random order that cannot deadlock: each common round is taken in order by all who are in it.
fn random_schedules(random: &mut Random, topology: &Topology) -> Ensemble {
    let ranks = topology.ranks();
    let mut rounds: Vec<Vec<Round>> = vec![vec![]; ranks];
    for _ in 0..1 + random.below(6) {
        let mut common = vec![Round::default(); ranks];
        for _ in 0..random.below(2 * ranks) {
            let (from, to) = (random.below(ranks), random.below(ranks));
            if from != to {
                let spans = InlineVec::from([Span::scratch(0, random.below(9))]);
                common[from].sends.push(Send { to, spans: spans.clone() });
                common[to].recvs.push(Recv { from, spans, combine: None });
            }
        }
        for (rank, round) in common.into_iter().enumerate().filter(|(_, round)| !round.is_empty()) {
            rounds[rank].push(round);
        }
    }
    let schedules = rounds.into_iter().enumerate().map(|(rank, rounds)| Schedule { rank, rounds }).collect();
    let problem = Problem::new(Collective::Allgather, topology.clone());
    Ensemble { problem, algorithm: "random".into(), blocks: ranks, schedules }
}

/// Times that are no multiples of each other, so that no two events fall together by accident.
fn random_machine(random: &mut Random) -> Machine {
    let mut machine = Machine::postal(1.0, 1.0);
    let mut protocol = |up_to: u64, rendezvous: bool| {
        let latency = 1e-6 * (1.0 + random.unit());
        let overhead = latency * random.unit();
        let injection = if random.below(3) == 0 { 0.0 } else { 1e-9 * random.unit() };
        let per_byte = 1e-9 * random.unit();
        Protocol { up_to, rendezvous, latency, per_byte, overhead, crowd: None, injection }
    };
    let mut level = |name: &str| {
        let protocols = vec![protocol(200, false), protocol(500, false), protocol(u64::MAX, true)];
        Level { name: name.into(), assumed: false, rough: false, holds: None, meeting: 0.0, protocols }
    };
    machine.levels = vec![level("network"), level("node")];
    machine
}

/// How many of 600 random cases were decided by the order in time; each takes as long as by brute force.
fn compare(seed: u64, flows: bool) -> usize {
    let mut random = Random(seed);
    let mut contended = 0;
    for case in 0..600 {
        let topology = Topology::regular(1 + random.below(4), 1 + random.below(4)).unwrap();
        let (ensemble, machine) = (random_schedules(&mut random, &topology), random_machine(&mut random));
        let machine = Machine { flows, ..machine };
        let block = 100;
        let wanted = brute_force(&ensemble, &machine, block);
        let estimate = Simulator::of(&ensemble).exact().run(&machine, Amount::bytes(block)).unwrap();
        let close = (estimate.seconds - wanted).abs() <= 1e-9 * wanted;
        assert!(close, "case {case} on {topology}: {} is not {wanted}\n{ensemble}", estimate.seconds);
        contended += usize::from(estimate.contended);
    }
    contended
}

#[test]
fn random_schedules_take_as_long_as_by_brute_force() {
    let contended = compare(1, false);
    assert!(contended > 300, "{contended}");
}

#[test]
fn random_flows_take_as_long_as_by_brute_force() {
    assert_eq!(compare(2, true), 600);
}
