//! Logarithms and powers whose every bit is the same on every machine.
//!
//! Every rank of a job interpolates for itself, and two of them that got different bits could choose different algorithms, which never end. The functions of
//! the standard library are those of whatever C library is there, and differ in the last bit from one to the next, and on one between processors with and
//! without fused operations. Those of the crate `libm` are written in Rust: sums, products and quotients, which IEEE 754 rounds in one way only, and which
//! Rust neither fuses nor reorders.

/// The natural logarithm.
pub(crate) fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// The logarithm to base 2.
pub(super) fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// What has this natural logarithm.
pub(crate) fn exp(x: f64) -> f64 {
    libm::exp(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of every magnitude that times and sizes have, from a sequence that is the same everywhere.
    fn numbers() -> impl Iterator<Item = f64> {
        let next =
            |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        std::iter::successors(Some(15), next).take(20_000).map(|state| {
            let mantissa = 1.0 + (state >> 12) as f64 / (1u64 << 52) as f64;
            mantissa * f64::from_bits((1023 - 40 + (state >> 5) % 110) << 52)
        })
    }

    fn ulps(one: f64, other: f64) -> u64 {
        one.to_bits().abs_diff(other.to_bits())
    }

    #[test]
    fn they_are_those_of_the_standard_library_but_for_the_last_bit() {
        for x in numbers() {
            assert!(ulps(ln(x), x.ln()) <= 2, "ln {x}");
            assert!(ulps(log2(x), x.log2()) <= 2, "log2 {x}");
            let small = x.ln() * 2.0;
            assert!(ulps(exp(small), small.exp()) <= 2, "exp {small}");
        }
        assert_eq!((ln(1.0), log2(4.0), log2(0.125), exp(0.0)), (0.0, 2.0, -3.0, 1.0));
    }

    /// All bits of many results, folded into one number: the same on every machine, with every compiler.
    #[test]
    fn their_bits_are_written_down() {
        let fold = |function: fn(f64) -> f64| {
            numbers()
                .fold(0u64, |sum, x| sum.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ function(x).to_bits())
        };
        let bits = [fold(ln), fold(log2), fold(|x| exp(ln(x) / 3.0))];
        assert_eq!(bits, [0xac1a_3f55_d353_d9c0, 0x9029_cec9_64c5_f02b, 0xe928_e316_5647_965f], "{bits:x?}");
        // Two of these end in another bit on a common C library.
        assert_eq!(
            [ln(3.0), log2(3.0), exp(1.0)].map(f64::to_bits),
            [0x3ff1_93ea_7aad_030a, 0x3ff9_5c01_a39f_bd68, 0x4005_bf0a_8b14_576a]
        );
    }
}
