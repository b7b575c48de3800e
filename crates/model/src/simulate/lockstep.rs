//! Ranks that go through waves of steps together, where nothing is shared and both ends of every message are in the same wave.
//!
//! When a wave begins it is known when each of its ranks has come to its step, and so when each of its messages arrives; with these
//! it is known when each rank has come to its next step. Nothing waits in a queue, and memory is read in order.

use super::Finish;
use super::lanes::Lanes;
use super::noise::Noise;
use super::ports::{self, Arrival, Receiving};
use crate::flat::{Flat, Waves};
use crate::machine::Machine;

#[derive(Clone, Copy)]
struct Rank {
    /// When it has come to its step.
    clock: f64,
    /// When it is done with the messages it sends in the step.
    done: f64,
}

pub(super) fn run(flat: &Flat, waves: &Waves, machine: &Machine, lanes: &Lanes, noise: &Noise) -> Finish {
    let begin = |rank| Rank { clock: noise.late(rank), done: 0.0 };
    let mut ranks: Vec<Rank> = (0..flat.len()).map(begin).collect();
    let mut arrivals = vec![Arrival::default(); flat.message_of.len()];
    let mut receiving = Receiving::new(machine, flat.len());
    let mut sending = vec![0.0; machine.ports.filter(|&ports| ports < flat.widest).unwrap_or(0)];
    for wave in 0..waves.len() {
        for step in waves.steps(wave) {
            send(flat, step, lanes, noise, &mut ranks, &mut sending, &mut arrivals);
        }
        for step in waves.steps(wave) {
            let rank = flat.who[step] as usize;
            let (this, next) = (&flat.steps[step], &flat.steps[step + 1]);
            let slots = this.first_slot as usize..next.first_slot as usize;
            let received = receiving.take(rank, &arrivals[slots]);
            let state = &mut ranks[rank];
            state.clock = state.clock.max(state.done).max(received) + lanes.work(this);
        }
    }
    Finish::of(ranks.iter().map(|rank| rank.clock), false)
}

/// The messages of a step arrive.
fn send(
    flat: &Flat,
    step: usize,
    lanes: &Lanes,
    noise: &Noise,
    ranks: &mut [Rank],
    sending: &mut [f64],
    arrivals: &mut [Arrival],
) {
    let messages = flat.steps[step].first_message as usize..flat.steps[step + 1].first_message as usize;
    let now = ranks[flat.who[step] as usize].clock;
    let mut done = now;
    sending.fill(now);
    for index in messages {
        let message = &flat.messages[index];
        let cost = lanes.of(message);
        let ready = if cost.rendezvous { now.max(ranks[message.to as usize].clock) } else { now };
        let keeps = cost.keeps;
        let start = ports::start(sending, ready, keeps);
        let latency = cost.latency + noise.of_message(index, cost.latency);
        let at = start + latency + cost.transfer;
        done = done.max(if cost.rendezvous { at } else { start + keeps });
        arrivals[message.slot as usize] = Arrival { at, keeps };
    }
    ranks[flat.who[step] as usize].done = done;
}
