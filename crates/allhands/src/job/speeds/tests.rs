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
        let trial = Trial { long: 2048, until: Duration::from_millis(millis), slowest: f64::MAX, ..NEAR };
        let found = pair(|world| {
            let other = 1 - world.me();
            take_part(&Letters { world, other, place: other, key: 7 }, &trial, Instant::now(), world.me(), None)
        });
        let first = found[0].unwrap();
        assert!(first.seconds > 0.0 && first.long.is_none_or(|(bytes, time)| bytes == 2048 && time > 0.0), "{first:?}");
        assert_eq!(found[1], None);
    }
}

#[test]
fn what_is_known_is_not_found_out_again() {
    let known = Measured { bytes: 8, seconds: 1.0, long: None };
    let found = pair(|world| {
        let other = 1 - world.me();
        let known = (world.me() == 0).then_some(known);
        take_part(&Letters { world, other, place: other, key: 7 }, &NEAR, Instant::now(), world.me(), known)
    });
    assert_eq!(found, [Some(known), None]);
}

/// A network whose clock stands still but for its own delay: so few messages go over it.
#[test]
fn a_slow_network_is_tried_twice() {
    struct Slow(std::cell::RefCell<Vec<usize>>);
    impl Wire for Slow {
        fn send(&self, _: &[u8], bytes: usize) -> Result<()> {
            self.0.borrow_mut().push(bytes);
            Ok(())
        }
        fn receive(&self, _: &mut [u8]) -> Result<usize> {
            std::thread::sleep(Duration::from_millis(4));
            Ok(SHORT)
        }
    }
    let slow = Slow(std::cell::RefCell::default());
    let found = take_part(&slow, &FAR, Instant::now(), 0, None).unwrap().unwrap();
    assert_eq!(slow.0.into_inner(), [SHORT, SHORT, 0]);
    assert!(found.seconds >= 2e-3 && found.long.is_none(), "{found:?}");
    let waited = Slow(std::cell::RefCell::default());
    assert_eq!(take_part(&waited, &NEAR, Instant::now(), 0, None), Ok(None), "that was no letter's time");
    assert_eq!(waited.0.into_inner(), [SHORT, SHORT, 0]);
}

#[test]
fn partners_are_the_first_of_another_node_and_of_the_same() {
    let of = |topology: &str, homes: &[usize], cores: usize| {
        let Partners { far, near } = Partners::of(&topology.parse().unwrap(), homes, cores);
        (far, near)
    };
    assert_eq!(of("2x2", &[0; 4], 4), (Some(2), Some(1)));
    assert_eq!(of("2x2", &[0; 4], 2), (Some(2), None), "ranks take turns");
    assert_eq!(of("4", &[0; 4], 4), (None, Some(1)));
    assert_eq!(of("4", &[0, 1, 2, 3], 4), (None, None), "no memory is shared");
    assert_eq!(of("4x1", &[0, 1, 2, 3], 4), (Some(1), None));
    assert_eq!(of("1", &[0], 1), (None, None));
    let cyclic = Topology::regular(2, 2).unwrap().cyclic();
    assert_eq!(Partners::of(&cyclic, &[0, 1, 0, 1], 4), Partners { far: Some(1), near: Some(2) });
}

#[test]
fn numbers_are_told_as_they_are() {
    let one = Measured { bytes: 8, seconds: 0.1 + 0.2, long: Some((4096, 1.0 / 3.0)) };
    let other = Measured { long: None, ..one };
    for fit in [
        Fit::default(),
        Fit { far: Some(one), near: None },
        Fit { far: Some(other), near: Some(one) },
        Fit { far: None, near: Some(other) },
    ] {
        assert_eq!(measured(words(&fit)), [fit.far, fit.near]);
    }
}
