//! Complex numbers. A sum is two sums of floats ([`super::Twice`]); a product is the schoolbook formula, each of its six
//! operations rounded, each NaN the one NaN. C's recovery of infinities (Annex G) is not done, nor does MPI ask for it.

use std::marker::PhantomData;

use num_complex::Complex;

use super::Combine;
use super::float::Float;

pub(in crate::kernels) struct Product<F>(PhantomData<F>);

impl<F: Float> Combine for Product<F> {
    type Item = Complex<F>;

    #[inline(always)]
    fn combine(a: Complex<F>, b: Complex<F>) -> Complex<F> {
        Complex { re: (a.re * b.re - a.im * b.im).canonical(), im: (a.re * b.im + a.im * b.re).canonical() }
    }
}
