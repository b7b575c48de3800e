//! Every kernel at every level against definitions written a second time, one element after the other.

use std::cmp::Ordering;
use std::fmt::Debug;

use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::*;

use super::*;

/// What a test needs to know of a type: values to try, the definition of its operations, and what makes results equal.
trait Reference: Element + Debug {
    fn draw(random: &mut Random) -> Self;
    /// One that makes no NaN, nor overflows.
    fn draw_ordinary(random: &mut Random) -> Self;
    fn reference(operation: Operation, a: Self, b: Self) -> Self;
    fn bits(self) -> (u64, u64);
}

macro_rules! integer_reference {
    ($($integer:ident, $wide:ident;)*) => {$(
        impl Reference for $integer {
            fn draw(random: &mut Random) -> Self {
                random.one_of(&[0, 1, 2, $integer::MIN, $integer::MAX, $integer::MAX - 1, (-1_i64) as $integer])
                    .unwrap_or(random.next() as $integer)
            }

            fn draw_ordinary(random: &mut Random) -> Self {
                random.next() as $integer
            }

            fn reference(operation: Operation, a: Self, b: Self) -> Self {
                let (x, y) = (a as $wide, b as $wide);
                match operation {
                    Operation::Sum => (x + y) as $integer,
                    Operation::Product => x.wrapping_mul(y) as $integer,
                    Operation::Min => if x <= y { a } else { b },
                    Operation::Max => if x >= y { a } else { b },
                    Operation::LogicalAnd => (a != 0 && b != 0) as $integer,
                    Operation::LogicalOr => (a != 0 || b != 0) as $integer,
                    Operation::LogicalXor => ((a != 0) != (b != 0)) as $integer,
                    Operation::BitAnd => (x & y) as $integer,
                    Operation::BitOr => (x | y) as $integer,
                    Operation::BitXor => (x ^ y) as $integer,
                    Operation::MinLoc | Operation::MaxLoc => unreachable!(),
                }
            }

            fn bits(self) -> (u64, u64) {
                (self as u64, 0)
            }
        }
    )*};
}

integer_reference! {
    i8, i128; i16, i128; i32, i128; i64, i128;
    u8, u128; u16, u128; u32, u128; u64, u128;
}

macro_rules! float_reference {
    ($($float:ident, $bits:ident, $nan:expr, $one:expr, |$a:ident, $b:ident| $sum:expr, $product:expr;)*) => {$(
        impl Reference for $float {
            fn draw(random: &mut Random) -> Self {
                let sign = 1 << ($bits::BITS - 1);
                let infinity = $float::INFINITY.to_bits();
                let special = [
                    0,
                    1,
                    infinity,
                    infinity - 1,
                    infinity + 1,
                    sign - 1,
                    $nan,
                    $float::MIN_POSITIVE.to_bits(),
                    $float::MIN_POSITIVE.to_bits() - 1,
                    $float::EPSILON.to_bits(),
                ];
                let magnitude = random.one_of(&special).unwrap_or(random.next() as $bits);
                $float::from_bits(magnitude ^ if random.next().is_multiple_of(2) { 0 } else { sign })
            }

            fn draw_ordinary(random: &mut Random) -> Self {
                // A number in 1..2 or -2..-1.
                let fraction = (random.next() as $bits) & ($one & $one.wrapping_neg()).wrapping_sub(1);
                $float::from_bits($one | fraction | (random.next() as $bits) << ($bits::BITS - 1))
            }

            fn reference(operation: Operation, $a: Self, $b: Self) -> Self {
                if $a.is_nan() || $b.is_nan() {
                    return $float::from_bits($nan);
                }
                let signs = $a.is_sign_negative().cmp(&$b.is_sign_negative()).reverse();
                let order = $a.partial_cmp(&$b).expect("numbers").then(signs);
                let result = match operation {
                    Operation::Sum => $sum,
                    Operation::Product => $product,
                    Operation::Min => if order == Ordering::Less { $a } else { $b },
                    Operation::Max => if order == Ordering::Greater { $a } else { $b },
                    _ => unreachable!(),
                };
                if result.is_nan() { $float::from_bits($nan) } else { result }
            }

            fn bits(self) -> (u64, u64) {
                (self.to_bits().into(), 0)
            }
        }
    )*};
}

float_reference! {
    f16, u16, 0x7e00_u16, 0x3c00_u16, |a, b|
        f16::from_f32_const(a.to_f32_const() + b.to_f32_const()),
        f16::from_f32_const(a.to_f32_const() * b.to_f32_const());
    bf16, u16, 0x7fc0_u16, 0x3f80_u16, |a, b|
        bf16::from_f32_const(a.to_f32_const() + b.to_f32_const()),
        bf16::from_f32_const(a.to_f32_const() * b.to_f32_const());
    f32, u32, 0x7fc0_0000_u32, 0x3f80_0000_u32, |a, b| a + b, a * b;
    f64, u64, 0x7ff8_0000_0000_0000_u64, 0x3ff0_0000_0000_0000_u64, |a, b| a + b, a * b;
}

macro_rules! complex_reference {
    ($($float:ident)*) => {$(
        impl Reference for Complex<$float> {
            fn draw(random: &mut Random) -> Self {
                Complex::new($float::draw(random), $float::draw(random))
            }

            fn draw_ordinary(random: &mut Random) -> Self {
                Complex::new($float::draw_ordinary(random), $float::draw_ordinary(random))
            }

            fn reference(operation: Operation, a: Self, b: Self) -> Self {
                let sum = |a, b| $float::reference(Operation::Sum, a, b);
                let product = |a, b| $float::reference(Operation::Product, a, b);
                match operation {
                    Operation::Sum => Complex::new(sum(a.re, b.re), sum(a.im, b.im)),
                    Operation::Product => Complex::new(
                        sum(product(a.re, b.re), -product(a.im, b.im)),
                        sum(product(a.re, b.im), product(a.im, b.re)),
                    ),
                    _ => unreachable!(),
                }
            }

            fn bits(self) -> (u64, u64) {
                (self.re.bits().0, self.im.bits().0)
            }
        }
    )*};
}

complex_reference! { f32 f64 }

impl Reference for bool {
    fn draw(random: &mut Random) -> Self {
        random.next().is_multiple_of(2)
    }

    fn draw_ordinary(random: &mut Random) -> Self {
        Self::draw(random)
    }

    fn reference(operation: Operation, a: Self, b: Self) -> Self {
        match operation {
            Operation::LogicalAnd | Operation::BitAnd => a && b,
            Operation::LogicalOr | Operation::BitOr => a || b,
            Operation::LogicalXor | Operation::BitXor => a != b,
            _ => unreachable!(),
        }
    }

    fn bits(self) -> (u64, u64) {
        (self.into(), 0)
    }
}

macro_rules! pair_reference {
    ($($value:ident)*) => {$(
        impl Reference for Pair<$value> {
            fn draw(random: &mut Random) -> Self {
                let index = random.one_of(&[0, 1, 2, i32::MIN, i32::MAX]).unwrap_or(random.next() as i32);
                Pair { value: $value::draw(random), index }
            }

            fn draw_ordinary(random: &mut Random) -> Self {
                Pair { value: (random.next() % 4) as $value, index: (random.next() % 100) as i32 }
            }

            #[allow(clippy::eq_op)]
            fn reference(operation: Operation, a: Self, b: Self) -> Self {
                let value = match operation {
                    Operation::MinLoc => $value::reference(Operation::Min, a.value, b.value),
                    Operation::MaxLoc => $value::reference(Operation::Max, a.value, b.value),
                    _ => unreachable!(),
                };
                let found = |pair: &Pair<$value>| pair.value == value || pair.value != pair.value;
                let index = [a, b].iter().filter(|pair| found(pair)).map(|pair| pair.index).min();
                Pair { value, index: index.expect("the value came from one of them") }
            }

            fn bits(self) -> (u64, u64) {
                (self.value.bits().0, self.index as u64)
            }
        }
    )*};
}

pair_reference! { f32 f64 i64 i32 i16 }

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Half of the time.
    fn one_of<T: Copy>(&mut self, values: &[T]) -> Option<T> {
        self.next().is_multiple_of(2).then(|| values[self.next() as usize % values.len()])
    }
}

/// Which operands a case draws.
#[derive(Clone, Copy, Debug)]
enum Draw {
    Anything,
    Ordinary,
    /// Ordinary but for one in a hundred.
    Rarely,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    count: usize,
    /// Elements before the first, so that loops begin at any distance from a vector's boundary.
    before: usize,
    draw: Draw,
}

impl Case {
    fn operand<T: Reference>(&self, which: u64) -> Vec<T> {
        let mut random = Random(self.seed ^ which << 32);
        let mut draw = || match self.draw {
            Draw::Anything => T::draw(&mut random),
            Draw::Ordinary => T::draw_ordinary(&mut random),
            Draw::Rarely if random.next().is_multiple_of(100) => T::draw(&mut random),
            Draw::Rarely => T::draw_ordinary(&mut random),
        };
        (0..self.before + self.count + 3).map(|_| draw()).collect()
    }

    fn check<T: Reference>(&self) {
        let (from, into) = (self.operand::<T>(1), self.operand::<T>(2));
        let inside = self.before..self.before + self.count;
        for operation in Operation::ALL.into_iter().filter(|operation| operation.is_legal_on(T::TYPE)) {
            let expect = |left: &[T], right: &[T], got: &[T], what: &dyn Debug| {
                for (i, got) in got.iter().enumerate() {
                    let expected =
                        if inside.contains(&i) { T::reference(operation, left[i], right[i]) } else { into[i] };
                    assert_eq!(
                        got.bits(),
                        expected.bits(),
                        "{} {operation} {what:?}, item {i} of {self:?}: {:?} and {:?} gave {got:?}, not {expected:?}",
                        T::TYPE,
                        left[i],
                        right[i]
                    );
                }
            };
            for level in Level::available() {
                for side in [Side::After, Side::Before] {
                    let kernel = kernel_at(level, T::TYPE, operation, side).expect("legal");
                    let mut got = into.clone();
                    // SAFETY: `inside` is within both vectors, which are aligned and two allocations.
                    unsafe {
                        kernel(
                            from[inside.clone()].as_ptr().cast(),
                            got[inside.clone()].as_mut_ptr().cast(),
                            self.count,
                        )
                    };
                    match side {
                        Side::After => expect(&into, &from, &got, &(level, side)),
                        Side::Before => expect(&from, &into, &got, &(level, side)),
                    }
                }
                let kernel = kernel3_at(level, T::TYPE, operation).expect("legal");
                let right = self.operand::<T>(3);
                let mut got = into.clone();
                // SAFETY: as above, of three vectors.
                unsafe {
                    kernel(
                        from[inside.clone()].as_ptr().cast(),
                        right[inside.clone()].as_ptr().cast(),
                        got[inside.clone()].as_mut_ptr().cast(),
                        self.count,
                    )
                };
                expect(&from, &right, &got, &(level, "three operands"));
            }
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let longest = if cfg!(miri) { 40 } else { 1200 };
    let draw = prop_oneof![Just(Draw::Anything), Just(Draw::Ordinary), Just(Draw::Rarely)];
    (any::<u64>(), prop_oneof![3 => 0..=40_usize, 3 => 0..=200_usize.min(longest), 1 => 0..=longest], 0..8_usize, draw)
        .prop_map(|(seed, count, before, draw)| Case { seed, count, before, draw })
}

/// Whether the order in which operands are combined shows in the result of some of them.
fn order_shows<T: Reference>(operation: Operation) -> bool {
    let mut random = Random(7);
    let combine = |a, b| T::reference(operation, a, b);
    (0..if cfg!(miri) { 100 } else { 10_000 }).any(|_| {
        let [a, b, c] = std::array::from_fn(|_| T::draw(&mut random));
        let results = [[a, b, c], [a, c, b], [b, c, a]].map(|[x, y, z]| combine(combine(x, y), z).bits());
        results.iter().any(|bits| *bits != results[0])
    })
}

macro_rules! every_type {
    ($($test:ident: $rust:ty,)*) => {
        proptest! {
            #![proptest_config(ProptestConfig {
                cases: if cfg!(miri) { 2 } else { 300 },
                failure_persistence: None,
                ..ProptestConfig::default()
            })]
            $(
                #[test]
                fn $test(case in cases()) {
                    case.check::<$rust>();
                }
            )*
        }

        #[test]
        fn every_type_is_tested() {
            let tested = [$(<$rust as Element>::TYPE,)*];
            assert_eq!(tested, Type::ALL);
        }

        #[test]
        fn the_order_of_operands_shows_exactly_where_something_is_rounded() {
            $(
                for operation in Operation::ALL.into_iter().filter(|operation| operation.is_legal_on(<$rust>::TYPE)) {
                    let exact = operation.is_exact_on(<$rust>::TYPE);
                    assert_eq!(order_shows::<$rust>(operation), !exact, "{operation} on {}", <$rust>::TYPE);
                }
            )*
        }
    };
}

every_type! {
    i8_is_as_defined: i8,
    i16_is_as_defined: i16,
    i32_is_as_defined: i32,
    i64_is_as_defined: i64,
    u8_is_as_defined: u8,
    u16_is_as_defined: u16,
    u32_is_as_defined: u32,
    u64_is_as_defined: u64,
    f16_is_as_defined: f16,
    bf16_is_as_defined: bf16,
    f32_is_as_defined: f32,
    f64_is_as_defined: f64,
    c32_is_as_defined: Complex<f32>,
    c64_is_as_defined: Complex<f64>,
    bool_is_as_defined: bool,
    float_int_is_as_defined: Pair<f32>,
    double_int_is_as_defined: Pair<f64>,
    long_int_is_as_defined: Pair<i64>,
    two_int_is_as_defined: Pair<i32>,
    short_int_is_as_defined: Pair<i16>,
}

/// All levels on the same operands, so that a failure here is about the levels and not about a definition.
#[test]
fn all_levels_agree_on_all_f16_and_bf16_sums_and_products_with_a_few_partners() {
    let all: Vec<u16> = (0..=u16::MAX).step_by(if cfg!(miri) { 4099 } else { 1 }).collect();
    let partners = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0x3c01, 0xbbff, 0x7bff, 0xfc00, 0x7d55, 0x3555];
    for ty in [Type::F16, Type::BF16] {
        for operation in [Operation::Sum, Operation::Product, Operation::Min, Operation::Max] {
            for partner in partners {
                let partner = vec![partner; all.len()];
                let results = Level::available().map(|level| {
                    let kernel = kernel3_at(level, ty, operation).expect("legal");
                    let mut into = vec![0_u16; all.len()];
                    // SAFETY: three vectors of one length, of 16-bit values.
                    unsafe {
                        kernel(all.as_ptr().cast(), partner.as_ptr().cast(), into.as_mut_ptr().cast(), all.len())
                    };
                    into
                });
                let results: Vec<_> = results.collect();
                assert!(results.iter().all(|result| *result == results[0]), "{ty} {operation} {:#06x}", partner[0]);
            }
        }
    }
}

#[test]
fn the_reference_knows_ieee_zeros_and_nans() {
    let min = |a: f64, b: f64| f64::reference(Operation::Min, a, b).to_bits();
    assert_eq!(min(0.0, -0.0), (-0.0_f64).to_bits());
    assert_eq!(min(-0.0, 0.0), (-0.0_f64).to_bits());
    assert_eq!(min(1.0, -f64::NAN), 0x7ff8_0000_0000_0000);
    let zeros = [Pair { value: -0.0_f32, index: 5 }, Pair { value: 0.0, index: 3 }];
    let found = Pair::<f32>::reference(Operation::MinLoc, zeros[0], zeros[1]);
    assert_eq!((found.value.to_bits(), found.index), ((-0.0_f32).to_bits(), 3), "a tie, and the smaller zero");
}

#[test]
fn there_are_kernels_exactly_where_mpi_defines_them() {
    for ty in Type::ALL {
        for operation in Operation::ALL {
            let found = kernel(ty, operation, Side::After).map(|_| ());
            let expected = operation.is_legal_on(ty).then_some(()).ok_or(KernelError::Illegal { operation, ty });
            assert_eq!(found, expected);
            assert_eq!(kernel3(ty, operation).map(|_| ()), expected);
        }
    }
    let legal = Type::ALL.iter().flat_map(|ty| Operation::ALL.map(|operation| operation.is_legal_on(*ty)));
    assert_eq!(legal.filter(|legal| *legal).count(), 8 * 10 + 4 * 4 + 2 * 2 + 6 + 5 * 2);
}

#[test]
fn a_level_this_cpu_lacks_is_an_error_that_says_what_it_has() {
    for level in [Level::Avx2, Level::Avx512, Level::Avx512Fp16] {
        let found = kernel_at(level, Type::I32, Operation::Sum, Side::After).map(|_| ());
        assert_eq!(found, level.is_available().then_some(()).ok_or(KernelError::Level { level }));
    }
    assert!(KernelError::Level { level: Level::Avx512 }.to_string().contains("it has portable"));
}

#[test]
fn zero_elements_may_be_anywhere() {
    for ty in Type::ALL {
        for operation in Operation::ALL.into_iter().filter(|operation| operation.is_legal_on(ty)) {
            for level in Level::available() {
                let kernel = kernel_at(level, ty, operation, Side::After).expect("legal");
                let kernel3 = kernel3_at(level, ty, operation).expect("legal");
                // SAFETY: nothing is touched when there are no elements.
                unsafe {
                    kernel(std::ptr::null(), std::ptr::null_mut(), 0);
                    kernel3(std::ptr::null(), std::ptr::without_provenance(1), std::ptr::null_mut(), 0);
                }
            }
        }
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "aligned as their type")]
fn a_debug_build_refuses_operands_that_are_not_aligned() {
    let from = [0_u64; 2];
    let mut into = [0_u64; 2];
    let add = kernel_at(Level::Portable, Type::F64, Operation::Sum, Side::After).expect("legal");
    // SAFETY: one element fits after the first byte; that it is not aligned is found before it is touched.
    unsafe { add(from.as_ptr().byte_add(1).cast(), into.as_mut_ptr().cast(), 1) };
}
