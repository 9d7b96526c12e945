//! The two precisions, f32 and f64, and their SIMD vectors.

use crate::activation;
use crate::loops::Loops;
use num_complex::Complex;
use pulp::{Simd, WithSimd};
use std::any::TypeId;
use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Mul, Neg, Sub};
use std::sync::{Arc, OnceLock};

/// `f32` or `f64`: the precision of inputs, outputs and the O(L) work. What is made of the parameters once per call, the
/// O(H·N) work, is done in f64 whatever this is.
///
/// The trait is sealed; its methods are for this crate's loops.
pub trait Real:
    Copy
    + Default
    + Debug
    + Display
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Loops
    + 'static
{
    /// Elements in one 64-byte cache line: the number of channels that one FFT carries.
    const LINE: usize;
    /// Zero.
    const ZERO: Self;
    /// The largest finite value.
    const MAX: f64;
    /// Whether a recurrence has to keep its step as the sum of two numbers (see `recurrence/mod.rs`).
    #[doc(hidden)]
    const SPLIT: bool;
    /// A state's values below this are set to zero: products with them would be denormal numbers, which are slow.
    #[doc(hidden)]
    const TINY: Self;
    /// One SIMD register.
    #[doc(hidden)]
    type V<S: Simd>: Copy;

    /// The nearest representable number, saturated at the largest finite one.
    fn from_f64(x: f64) -> Self;
    /// The nearest representable number, infinite beyond the range.
    fn rounded(x: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    /// False for NaN and infinities.
    fn is_finite(self) -> bool;
    /// Distribution function Φ and density φ of the standard normal law; `fuse`: there is a fused multiply-add.
    #[doc(hidden)]
    fn normal(self, fuse: bool) -> (Self, Self);
    /// 1 / (1 + e^{-x})
    #[doc(hidden)]
    fn sigmoid(self, fuse: bool) -> Self;
    /// e^x for x ≤ 0 (1 above), NaN for NaN; what f32 cannot hold as a normal number is 0.
    #[doc(hidden)]
    fn exp_nonpositive(self, fuse: bool) -> Self;

    /// The complex Fourier transform of a length.
    #[doc(hidden)]
    fn transform(len: usize) -> Box<dyn Transform<Self>>;

    #[doc(hidden)]
    fn lanes<S: Simd>() -> usize {
        size_of::<Self::V<S>>() / size_of::<Self>()
    }
    #[doc(hidden)]
    fn vsplat<S: Simd>(s: S, x: Self) -> Self::V<S>;
    #[doc(hidden)]
    fn vadd<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    #[doc(hidden)]
    fn vsub<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    #[doc(hidden)]
    fn vmul<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// a·b + c, fused where the machine can.
    #[doc(hidden)]
    fn vfma<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    /// c − a·b, fused where the machine can.
    #[doc(hidden)]
    fn vfnma<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    #[doc(hidden)]
    fn vsum<S: Simd>(s: S, a: Self::V<S>) -> Self;
}

/// A complex Fourier transform, forwards and without a factor.
#[doc(hidden)]
pub trait Transform<T>: Send + Sync {
    /// How many numbers it works with besides its input.
    fn scratch_len(&self) -> usize;

    /// Transforms each of the consecutive sequences of its length in place.
    fn process(&self, buffer: &mut [Complex<T>], scratch: &mut [Complex<T>]);
}

impl<T: rustfft::FftNum> Transform<T> for Arc<dyn rustfft::Fft<T>> {
    fn scratch_len(&self) -> usize {
        self.get_inplace_scratch_len()
    }

    fn process(&self, buffer: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        self.process_with_scratch(buffer, scratch);
    }
}

/// Without hardware FMA the fused form is a library call: take the product and the sum instead.
#[inline(always)]
pub(crate) fn fuses<S: Simd>() -> bool {
    cfg!(not(target_arch = "wasm32")) && TypeId::of::<S>() != TypeId::of::<pulp::Scalar128b>()
}

macro_rules! real {
    ($t:ident, $v:ident, $line:literal, $max:expr) => {
        impl Real for $t {
            const LINE: usize = $line;
            const ZERO: Self = 0.0;
            const MAX: f64 = $max;
            const SPLIT: bool = size_of::<$t>() == 4;
            const TINY: Self = $t::MIN_POSITIVE / ($t::EPSILON * $t::EPSILON);
            type V<S: Simd> = S::$v;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x.clamp(-$max, $max) as $t
            }
            #[inline(always)]
            fn rounded(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn normal(self, fuse: bool) -> (Self, Self) {
                activation::$t::normal(fuse, self)
            }
            #[inline(always)]
            fn sigmoid(self, fuse: bool) -> Self {
                activation::$t::sigmoid(fuse, self)
            }
            #[inline(always)]
            fn exp_nonpositive(self, fuse: bool) -> Self {
                activation::$t::exp_nonpositive(fuse, self)
            }
            fn transform(len: usize) -> Box<dyn Transform<Self>> {
                Box::new(rustfft::FftPlanner::<$t>::new().plan_fft_forward(len))
            }
            pulp_ops!($t, $v);
        }
    };
}
macro_rules! pulp_ops {
    ($t:ident, f32s) => {
        pulp_ops!(
            $t,
            splat_f32s,
            add_f32s,
            sub_f32s,
            mul_f32s,
            mul_add_e_f32s,
            negate_mul_add_e_f32s,
            reduce_sum_f32s
        );
    };
    ($t:ident, f64s) => {
        pulp_ops!(
            $t,
            splat_f64s,
            add_f64s,
            sub_f64s,
            mul_f64s,
            mul_add_e_f64s,
            negate_mul_add_e_f64s,
            reduce_sum_f64s
        );
    };
    ($t:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident, $fma:ident, $fnma:ident, $sum:ident) => {
        #[inline(always)]
        fn vsplat<S: Simd>(s: S, x: Self) -> Self::V<S> {
            s.$splat(x)
        }
        #[inline(always)]
        fn vadd<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S> {
            s.$add(a, b)
        }
        #[inline(always)]
        fn vsub<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S> {
            s.$sub(a, b)
        }
        #[inline(always)]
        fn vmul<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S> {
            s.$mul(a, b)
        }
        #[inline(always)]
        fn vfma<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S> {
            if fuses::<S>() { s.$fma(a, b, c) } else { s.$add(s.$mul(a, b), c) }
        }
        #[inline(always)]
        fn vfnma<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S> {
            if fuses::<S>() { s.$fnma(a, b, c) } else { s.$sub(c, s.$mul(a, b)) }
        }
        #[inline(always)]
        fn vsum<S: Simd>(s: S, a: Self::V<S>) -> Self {
            s.$sum(a)
        }
    };
}
real!(f32, f32s, 16, f32::MAX as f64);
real!(f64, f64s, 8, f64::MAX);

/// Runs `op` with the widest instruction set of this machine, or the one that `DSS_SIMD` names.
pub(crate) fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    // A WebAssembly module loads only where all its instructions are known: without simd128 it has to have none of them.
    if cfg!(all(target_arch = "wasm32", not(target_feature = "simd128"))) {
        return Simd::vectorize(pulp::Scalar128b, op);
    }
    match arch() {
        // pulp's own fallback has one lane; four keep the loops vectorisable by the compiler.
        pulp::Arch::Scalar => Simd::vectorize(pulp::Scalar128b, op),
        arch => arch.dispatch(op),
    }
}

/// `DSS_SIMD=portable` forces the fallback, `DSS_SIMD=avx2` forbids AVX-512; for tests and comparisons. What it does not
/// know it says, and ignores.
fn arch() -> pulp::Arch {
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();
    *ARCH.get_or_init(|| match std::env::var("DSS_SIMD").as_deref() {
        Ok("portable") => pulp::Arch::Scalar,
        #[cfg(target_arch = "x86_64")]
        Ok("avx2") => pulp::x86::V3::try_new().map_or(pulp::Arch::Scalar, pulp::Arch::V3),
        other => {
            if let Ok(name) = other
                && !name.is_empty()
            {
                eprintln!("warning: DSS_SIMD={name:?} is ignored; known are portable and avx2");
            }
            pulp::Arch::new()
        }
    })
}

/// Which instructions the loops of this crate use here: `avx512`, `avx2`, `neon`, `simd128` or `portable`.
pub fn simd_name() -> &'static str {
    struct Name;
    impl WithSimd for Name {
        type Output = &'static str;
        fn with_simd<S: Simd>(self, _: S) -> &'static str {
            match (S::F32_LANES, TypeId::of::<S>() == TypeId::of::<pulp::Scalar128b>()) {
                (_, true) => "portable",
                (16, _) => "avx512",
                (8, _) => "avx2",
                _ if cfg!(target_arch = "wasm32") => "simd128",
                _ => "neon",
            }
        }
    }
    dispatch(Name)
}

/// A complex SIMD register: real parts and imaginary parts of as many channels.
pub(crate) struct CV<T: Real, S: Simd> {
    pub re: T::V<S>,
    pub im: T::V<S>,
}

impl<T: Real, S: Simd> Clone for CV<T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Real, S: Simd> Copy for CV<T, S> {}

impl<T: Real, S: Simd> CV<T, S> {
    #[inline(always)]
    pub(crate) fn zero(s: S) -> Self {
        Self { re: T::vsplat(s, T::ZERO), im: T::vsplat(s, T::ZERO) }
    }
    #[inline(always)]
    pub(crate) fn add(self, s: S, b: Self) -> Self {
        Self { re: T::vadd(s, self.re, b.re), im: T::vadd(s, self.im, b.im) }
    }
    #[inline(always)]
    pub(crate) fn sub(self, s: S, b: Self) -> Self {
        Self { re: T::vsub(s, self.re, b.re), im: T::vsub(s, self.im, b.im) }
    }
    /// self·b
    #[inline(always)]
    pub(crate) fn mul(self, s: S, b: Self) -> Self {
        Self {
            re: T::vfnma(s, self.im, b.im, T::vmul(s, self.re, b.re)),
            im: T::vfma(s, self.im, b.re, T::vmul(s, self.re, b.im)),
        }
    }
    /// self·conj(b)
    #[inline(always)]
    pub(crate) fn mul_conj(self, s: S, b: Self) -> Self {
        Self {
            re: T::vfma(s, self.im, b.im, T::vmul(s, self.re, b.re)),
            im: T::vfnma(s, self.re, b.im, T::vmul(s, self.im, b.re)),
        }
    }
    /// The scalar b in every lane.
    #[inline(always)]
    pub(crate) fn splat(s: S, b: Complex<T>) -> Self {
        Self { re: T::vsplat(s, b.re), im: T::vsplat(s, b.im) }
    }
}
