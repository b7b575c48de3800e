use std::cell::RefCell;

use super::*;
use crate::node;

/// Two ranks on one node, as threads.
fn pair<R: Send>(body: impl Fn(&World) -> Result<R> + Sync) -> Vec<R> {
    let (memory, slot) = node::of_threads(2).unwrap();
    std::thread::scope(|scope| {
        let rank = |me: usize| {
            let (memory, body) = (memory.clone(), &body);
            scope.spawn(move || body(&World::of_threads(memory, slot, 2, me, Duration::from_secs(60))).unwrap())
        };
        let ranks: Vec<_> = (0..2).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn two_ranks_find_out_how_fast_letters_are_however_little_time_there_is() {
    for millis in [0, 10] {
        let trial = Trial { long: 2048, time: Duration::from_millis(millis), slowest: f64::MAX, ..NEAR };
        let found = pair(|world| {
            let other = 1 - world.me();
            take_part(&[Letters { world, other, place: other, key: 7 }], &trial, world.me(), None)
        });
        let first = found[0].unwrap();
        assert!(first.seconds > 0.0 && first.long.is_none_or(|(bytes, time)| bytes == 2048 && time > 0.0), "{first:?}");
        assert_eq!(found[1], None);
    }
}

#[test]
fn what_is_known_is_not_found_out_again() {
    let known = Measured { bytes: 8, seconds: 1.0, long: None, gap: None };
    let found = pair(|world| {
        let other = 1 - world.me();
        let known = (world.me() == 0).then_some(known);
        take_part(&[Letters { world, other, place: other, key: 7 }], &NEAR, world.me(), known)
    });
    assert_eq!(found, [Some(known), None]);
}

/// A network on which an answer takes as long as is said for the number of messages before it; and what was sent.
struct Network<D> {
    delay: D,
    sent: RefCell<Vec<usize>>,
}

fn network<D: Fn(usize) -> Duration>(delay: D) -> Network<D> {
    Network { delay, sent: RefCell::default() }
}

impl<D: Fn(usize) -> Duration> Wire for Network<D> {
    fn send(&self, _: &[u8], bytes: usize) -> Result<()> {
        self.sent.borrow_mut().push(bytes);
        Ok(())
    }

    fn receive(&self, _: &mut [u8]) -> Result<usize> {
        std::thread::sleep((self.delay)(self.sent.borrow().len() - 1));
        Ok(SHORT)
    }
}

#[test]
fn a_slow_network_is_tried_twice() {
    let slow = [network(|_| FAR.time + FAR.time / 5)];
    let found = take_part(&slow, &FAR, 0, None).unwrap().unwrap();
    assert_eq!(*slow[0].sent.borrow(), [SHORT, SHORT, 0]);
    assert!(found.seconds >= FAR.time.as_secs_f64() / 2.0 && found.long.is_none(), "{found:?}");
    let waited = [network(|_| FAR.time)];
    assert_eq!(take_part(&waited, &NEAR, 0, None), Ok(None), "that was no letter's time");
    assert_eq!(*waited[0].sent.borrow(), [SHORT, SHORT, 0]);
}

/// However long it takes until a connection is made, something long is tried after it: without that, nothing is known of bytes.
#[test]
fn a_connection_that_takes_long_leaves_time_for_long_messages() {
    let long = || {
        let wire = [network(|before| if before == 0 { 4 * FAR.time } else { FAR.time / 4 })];
        let found = take_part(&wire, &FAR, 0, None).unwrap().unwrap();
        let sent = wire[0].sent.borrow();
        assert!(sent.starts_with(&[SHORT, SHORT]) && sent.contains(&FAR.long) == found.long.is_some(), "{sent:?}");
        found.long.is_some()
    };
    // A machine on which others compute may sleep for all the time that there is, but not each time.
    assert!((0..100).any(|_| long()));
}

/// Answers come one by one, and as long after each other as a wire says.
#[test]
fn the_gap_is_that_between_answers() {
    let wires = [10, 2, 2, 2].map(|millis| network(move |_| Duration::from_millis(millis)));
    let gap = |wires: &[Network<_>]| take_part(wires, &FAR, 0, None).unwrap().unwrap().gap;
    assert!(gap(&wires).is_some_and(|gap| gap >= 2e-3), "{:?}", gap(&wires));
    assert_eq!(gap(&wires[..1]), None);
}

#[test]
fn partners_are_the_first_of_other_nodes_and_of_the_same() {
    let of = |topology: &str, homes: &[usize], cores: usize| {
        let Partners { far, near } = Partners::of(&topology.parse().unwrap(), homes, cores);
        (far, near)
    };
    assert_eq!(of("2x2", &[0; 4], 4), (vec![2, 3], Some(1)));
    assert_eq!(of("2x2", &[0; 4], 2), (vec![2, 3], None), "ranks take turns");
    assert_eq!(of("4", &[0; 4], 4), (vec![], Some(1)));
    assert_eq!(of("4", &[0, 1, 2, 3], 4), (vec![], None), "no memory is shared");
    assert_eq!(of("4x1", &[0, 1, 2, 3], 4), (vec![1, 2, 3], None));
    assert_eq!(of("1", &[0], 1), (vec![], None));
    assert_eq!(of("12x1", &[0; 12], 12).0, (1..9).collect::<Vec<_>>(), "a few will do");
    let cyclic = Topology::regular(2, 2).unwrap().cyclic();
    assert_eq!(Partners::of(&cyclic, &[0, 1, 0, 1], 4), Partners { far: vec![1, 3], near: Some(2) });
}

#[test]
fn numbers_are_told_as_they_are() {
    let one = Measured { bytes: 8, seconds: 0.1 + 0.2, long: Some((4096, 1.0 / 3.0)), gap: Some(1e-9) };
    let other = Measured { long: None, gap: None, ..one };
    for fit in [
        Fit::default(),
        Fit { far: Some(one), near: None },
        Fit { far: Some(other), near: Some(one) },
        Fit { far: None, near: Some(other) },
    ] {
        assert_eq!(measured(words(&fit)), [fit.far, fit.near]);
    }
}
