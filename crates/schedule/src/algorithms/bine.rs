//! Bine numbers: butterflies and trees whose members meet 1, 1, 3, 5, 11, 21, ... apart instead of 1, 2, 4, 8, 16, 32, ...
//! (De Sensi et al. 2025; the butterfly is Swing's, De Sensi et al. 2024.)
//!
//! In step k = 1, 2, ... even ranks meet the rank J(k) ahead of them and odd ranks the rank J(k) behind, around the end, with J(k) =
//! (1 - (-2)^k) / 3 = 1, -1, 3, -5, 11, ... Going forth and back, they get two thirds as far as members that double their distance,
//! and a message that goes less far crosses fewer borders between groups of ranks, wherever these lie.
//!
//! ```text
//! 16 ranks: rank 0 meets    1   15 (1 behind)   3   11 (5 behind)
//! doubling its distance     1    2              4    8
//! ```
//!
//! With a power of two of ranks and the farthest step first, whoever has met, by others too, are the same ranks for all of them: those with
//! the same last k digits of their *Bine number*, when the k nearest steps are left. So all of them have the same blocks or evaluate the same
//! expression, as in recursive doubling. (With the nearest first they would not: 0 has met 6 of 8 after two steps, and 1 has not.)

/// How far even ranks go in a step, the nearest first; odd ranks go as far in the other direction.
pub(crate) fn distance(step: usize) -> i64 {
    (1 - (-2i64).pow(step as u32 + 1)) / 3
}

/// Who meets whom in a step, for any even number of ranks.
pub(crate) fn partner(ranks: usize, me: usize, step: usize) -> usize {
    let sign = if me.is_multiple_of(2) { 1 } else { -1 };
    (me as i64 + sign * distance(step)).rem_euclid(ranks as i64) as usize
}

/// Who meets whom, among members who are a power of two; steps count from the nearest on.
#[derive(Clone, Copy)]
pub(crate) enum Butterfly {
    /// Members that differ in one digit.
    Doubling,
    Bine,
}

impl Butterfly {
    pub(crate) fn partner(self, members: usize, me: usize, step: usize) -> usize {
        match self {
            Butterfly::Doubling => me ^ 1 << step,
            Butterfly::Bine => partner(members, me, step),
        }
    }

    /// A number for each: partners in a step have the same digits below it and another one there.
    pub(crate) fn number(self, members: usize, me: usize) -> usize {
        match self {
            Butterfly::Doubling => me,
            // Those that meet in the farthest step have the same number, but for its first digit.
            Butterfly::Bine if me.is_multiple_of(2) => me / 2,
            Butterfly::Bine => partner(members, me, members.ilog2() as usize - 1) / 2 + members / 2,
        }
    }

    /// The digits of its number, the last one first: whoever met in the farthest steps is in a row.
    pub(crate) fn position(self, members: usize, me: usize) -> usize {
        let (number, digits) = (self.number(members, me), members.ilog2());
        if digits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - digits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_paper() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(distance), [1, -1, 3, -5, 11, -21, 43]);
    }

    #[test]
    fn partners_agree_and_differ_in_the_digit_of_the_step() {
        for (butterfly, bits) in
            [Butterfly::Doubling, Butterfly::Bine].into_iter().flat_map(|b| (0..12).map(move |n| (b, n)))
        {
            let members = 1 << bits;
            let mut numbers: Vec<usize> = (0..members).map(|me| butterfly.number(members, me)).collect();
            for (me, step) in (0..members).flat_map(|me| (0..bits).map(move |step| (me, step))) {
                let peer = butterfly.partner(members, me, step);
                assert_eq!(butterfly.partner(members, peer, step), me);
                assert_eq!((numbers[me] ^ numbers[peer]) % (2 << step), 1 << step, "{me} and {peer} of {members}");
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..members).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_thirds_as_far() {
        let ranks = 1 << 12;
        let far = |butterfly: Butterfly| {
            let each = |step| butterfly.partner(ranks, 0, step).min(ranks - butterfly.partner(ranks, 0, step));
            (0..12).map(each).sum::<usize>()
        };
        assert_eq!((far(Butterfly::Doubling), far(Butterfly::Bine)), (4095, 2730));
    }
}
