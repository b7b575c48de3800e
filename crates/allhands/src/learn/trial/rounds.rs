//! Rounds of a trial: who takes turns in them, what they are expected to cost, and what they show.

use super::{Candidate, Field, Stage, Trial};
use crate::comm::hash;
use crate::server::Server;
use crate::stats::{Middle, median, middle, ratio, tenth};
use crate::tuning::Time;

/// After so many rounds, what takes longer than the fastest by more than a factor is tried no further. After none there are the first runs, which prepare
/// whatever is prepared once.
const SLACK: [(usize, f64); 6] = [(0, 10.0), (1, 2.0), (2, 1.5), (4, 1.25), (8, 1.12), (16, 1.0)];
/// From so many rounds on medians are compared; before, the fastest runs: what disturbs a run makes it longer.
pub(super) const ROUNDS_OF_MEDIANS: usize = 4;
/// The MPI's own is not compared for longer than that before others are thought of.
const ROUNDS_OF_THE_LIBRARY: usize = 8;
/// Who takes no more than this beside the other, as far as one can tell, may be the faster one.
const CLOSE: f64 = 0.97;
/// After so many rounds somebody who is this much faster serves at once.
const CLEARLY: f64 = 0.9;

/// Whether something may follow from what so many rounds have shown.
pub(super) fn decides(rounds: usize) -> bool {
    SLACK.iter().any(|(from, _)| *from == rounds)
}

impl Trial {
    /// Who takes turns in a round, in its order, which is drawn by the round's number: calls that come in a pattern fall into step with nobody.
    pub(super) fn order(&self, number: usize) -> Vec<usize> {
        let fresh = |index: &usize| number > 0 || *index != self.serving || self.beside;
        let mut order: Vec<usize> = self.on().filter(fresh).collect();
        for (place, last) in (1..order.len()).rev().enumerate() {
            let draw = hash(&[number as u64, place as u64]) >> 32;
            order.swap(last, draw as usize % (last + 1));
        }
        order
    }

    /// Who still takes turns.
    fn on(&self) -> impl Iterator<Item = usize> {
        (0..self.candidates.len()).filter(|index| self.candidates[*index].on)
    }

    /// What a round is expected to cost, in seconds.
    pub(super) fn cost(&self, number: usize) -> f64 {
        let usual = self.usual.unwrap_or(0.0);
        // Who serves has no first run to be compared with.
        let serving = self.candidates[self.serving].best().unwrap_or(usual);
        let expected = |index: &usize| {
            let candidate = &self.candidates[*index];
            let expected = match candidate.server {
                Server::Library => candidate.expected / self.surprise,
                _ => candidate.expected,
            };
            // What is gained by a try is not counted on.
            let factor = candidate.best().map_or(expected, |own| own / serving).max(1.0);
            usual * if self.beside { factor } else { factor - 1.0 }
        };
        self.order(number).iter().map(expected).sum()
    }

    /// So many rounds are through.
    pub(super) fn judge_rounds(&mut self, rounds: usize) -> bool {
        let slack = SLACK.iter().rev().find(|(from, _)| rounds >= *from).map_or(f64::INFINITY, |(_, slack)| *slack);
        let on: Vec<usize> = self.on().collect();
        if rounds == 0 {
            let most = slack * self.usual.unwrap_or(f64::INFINITY);
            for index in on {
                let hopeless = self.candidates[index].first.is_some_and(|first| first > most);
                self.candidates[index].on = index == self.serving || !hopeless;
            }
            return self.go_on(rounds);
        }
        let heard = on.iter().all(|&index| index == 0 || 2 * self.times(index).len() >= ROUNDS_OF_MEDIANS);
        let most = if self.field == Field::Library { ROUNDS_OF_THE_LIBRARY } else { usize::MAX };
        let (many, last) = (rounds >= ROUNDS_OF_MEDIANS && heard, rounds >= self.pace.most_rounds.min(most));
        // How many times as long as who serves somebody takes, in the same rounds.
        let beside = |index: usize| self.ratio(index, self.serving).median;
        let best = match many {
            true => on.iter().copied().min_by(|&one, &other| beside(one).total_cmp(&beside(other))),
            false => on.iter().copied().min_by(|&one, &other| self.least(one).total_cmp(&self.least(other))),
        };
        let best = best.unwrap_or(self.serving);
        for &index in &on {
            let ratio = self.ratio(index, best);
            let slower = match many {
                true => ratio.median > slack && (ratio.low > 1.0 || last),
                false => self.least(index).is_finite() && self.least(index) > slack * self.least(best),
            };
            // Who serves is compared with to the end.
            self.candidates[index].on = index == best || index == self.serving || !slower;
        }
        if many && !self.beside && self.ratio(best, self.serving).median < CLEARLY {
            self.serve_by(best);
        }
        let near = |index: usize| index != best && self.ratio(index, best).low < CLOSE;
        let open = !many || self.on().any(near);
        if open && !last {
            return self.go_on(rounds);
        }
        let better = self.ratio(best, self.serving).median < CLOSE;
        self.settle(if better { best } else { self.serving })
    }

    /// Another round, unless nobody is left to compare with.
    fn go_on(&mut self, rounds: usize) -> bool {
        if self.on().count() < 2 {
            return self.settle(self.serving);
        }
        self.stage = Stage::Round { number: rounds, had: self.order(rounds).len() };
        false
    }

    fn settle(&mut self, winner: usize) -> bool {
        // Who was tried beside calls serves in the next run.
        if !self.beside {
            self.serve_by(winner);
        }
        if self.field == Field::Library {
            self.field = Field::Unthought;
        }
        self.stage = Stage::Settled;
        self.settled_calls = 0;
        self.settlements += 1;
        true
    }

    /// From now on somebody else serves; its time is that of who served, by the ratio of both.
    fn serve_by(&mut self, winner: usize) {
        let ratio = self.ratio(winner, self.serving).median;
        if winner != self.serving && ratio.is_finite() {
            self.usual = self.usual.map(|usual| usual * ratio);
        }
        self.serving = winner;
    }

    /// Who was tried in rounds, who serves first; times as they are beside who serves, in rounds that both took part in.
    pub(crate) fn tried(&self) -> Vec<Time> {
        let usual = self.usual.unwrap_or(0.0) * 1e6;
        if self.times(self.serving).is_empty() {
            return self.lost.clone();
        }
        let time = |index: usize| {
            let own = self.times(index);
            let scale = usual / median(self.times(self.serving));
            let median_us = usual * self.ratio(index, self.serving).median;
            let algorithm = self.candidates[index].server.to_string();
            Time {
                algorithm,
                median_us,
                p10_us: scale * tenth(own, 1),
                p90_us: scale * tenth(own, 9),
                samples: own.len(),
            }
        };
        let others = (0..self.candidates.len()).filter(|index| *index != self.serving);
        let all = std::iter::once(self.serving).chain(others);
        let tried = all.filter(|index| !self.times(*index).is_empty()).map(time);
        tried.chain(self.lost.iter().cloned()).collect()
    }

    /// How many times as long somebody takes as another: by rounds, or, where some turns say nothing, by those of each that do.
    fn ratio(&self, one: usize, other: usize) -> Middle {
        if self.yardstick.is_none() {
            return ratio(self.times(one), self.times(other));
        }
        let other = median(self.times(other));
        middle(&self.times(one).iter().map(|time| time / other).collect::<Vec<f64>>())
    }

    /// What somebody took in rounds; the one that others are measured by, what it takes on the whole, if no turn of its own says more.
    fn times(&self, index: usize) -> &[f64] {
        match (&self.yardstick, &self.candidates[index].times[..]) {
            (Some(yardstick), []) if index == 0 => std::slice::from_ref(&yardstick.usual),
            (_, times) => times,
        }
    }

    /// The fastest run of a candidate.
    fn least(&self, index: usize) -> f64 {
        self.candidates[index].best().unwrap_or(f64::INFINITY)
    }
}

impl Candidate {
    /// Its fastest run.
    pub(super) fn best(&self) -> Option<f64> {
        self.first.into_iter().chain(self.times.iter().copied()).reduce(f64::min)
    }
}
