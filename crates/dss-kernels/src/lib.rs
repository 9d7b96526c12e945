//! Diagonal State Space numerics on plain slices: kernels, causal convolution and chunked scan with their backward, and
//! the recurrence. No framework.
//!
//! The mathematics is that of *Diagonal State Spaces are as Effective as Structured State Spaces* (Gupta, Gu, Berant
//! 2022), cited here by section and equation. A layer maps u to y = K * u, channel by channel, with kernels that are
//! sums of N complex exponentials. The same map is available in three forms that agree to rounding:
//!
//! | form | type | for |
//! |------|------|-----|
//! | kernel, then convolution | [`kernel::Kernel`], [`Conv`] | training on whole sequences |
//! | recurrence | [`Recurrence`] | streaming: constant time and memory per step |
//! | chunked scan | [`Scan`] | sequences of any length in bounded memory, forward and backward |
//!
//! [`block::Block`] is the convolution together with all that surrounds it in a network: norm, GELU, projection, residual.
//! [`attention`] is softmax attention, whole and step by step, to compare with, [`kernelised`] attention without a softmax,
//! [`fourier`] the mixing of FNet; [`recurrent`] runs recurrent nets.
//! [`frozen`] is what surrounds it alone, for a trained network that runs by whichever of the three forms.
//!
//! ```
//! use dss_kernels::kernel::{Kernel, KernelConfig, Params, Variant};
//! use dss_kernels::{Conv, Recurrence, init};
//!
//! # fn main() -> dss_kernels::Result<()> {
//! // H = 2 features, N = 4 modes, L = 64 steps: initialise as §3.3 says, in f32.
//! let (h, n, l) = (2, 4, 64);
//! let mut rng = rand_chacha::ChaCha8Rng::from_seed([7; 32]);
//! # use rand_chacha::rand_core::SeedableRng;
//! let lambda = init::skew_hippo(n)?;
//! let f32s = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
//! let lambda_re: Vec<f32> = lambda.iter().map(|z| z.re as f32).collect();
//! let lambda_im: Vec<f32> = lambda.iter().map(|z| z.im as f32).collect();
//! let delta_log = f32s(&init::delta_log(2 * h, init::DT_MIN, init::DT_MAX, &mut rng)?);
//! let w = f32s(&init::w(1, h, n, &mut rng));
//! let params = Params { lambda_re: &lambda_re, lambda_im: &lambda_im, delta_log: &delta_log, w: &w };
//!
//! // Whole sequence: K [H, L], then y = K * u over [B, L, H].
//! let config = KernelConfig::new(Variant::Softmax, h, n, l);
//! let mut k = vec![0.0; h * l];
//! Kernel::new(config)?.forward(&params, &mut k)?;
//! let u: Vec<f32> = (0..l * h).map(|i| (i as f32 * 0.1).sin()).collect();
//! let mut y = vec![0.0; l * h];
//! let mut conv = Conv::new(1, l, h)?;
//! conv.set_kernel(&k)?;
//! conv.forward(&u, &mut y)?;
//!
//! // One step at a time: the same outputs.
//! let model = Recurrence::new(config, &params)?;
//! let mut state = model.state();
//! let mut out = [0.0; 2];
//! for (u, y) in u.chunks(h).zip(y.chunks(h)) {
//!     model.step(&mut state, u, &mut out)?;
//!     assert!((out[0] - y[0]).abs() < 1e-5 && (out[1] - y[1]).abs() < 1e-5);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Glossary
//!
//! | letter | meaning |
//! |--------|---------|
//! | B, L, H | batch, length, features; activations are `[B, L, H]`, features innermost |
//! | N | modes (states) per feature |
//! | C | kernels per feature (2 when bidirectional) |
//! | Λ, λ | eigenvalues of the state matrix: `[S, N]` |
//! | S | systems, each with its Λ: feature h belongs to system h mod S; S = 1 shares one Λ among all features |
//! | Δ, Δ_log | sample time and its logarithm: `[H]`, or `[H, 2]` for separate real and imaginary parts |
//! | W, w | output weights: `[C, H, N]` complex, stored as a trailing axis of 2 |
//! | K | kernels: `[C, H, L]` |
//! | P, softmax(P) | λ_iΔk and its row-softmax (Alg. 1) |
//! | ζ | ±λΔ with Re ζ ≤ 0, the exponent of one step of a mode |
//! | q, c | a mode's scale, and its coefficient c = W·q |
//! | M | length of the transform, ≥ L |
//!
//! # Precision
//!
//! Everything is generic over [`Real`], f32 or f64. What is made of the parameters once per call is made in f64 and
//! rounded once: phases Im(λ)Δl reach 10⁶ rad, where f32 has no digits left. At L = 16384 and N = 64 the f32 kernel is
//! within 3.5e-7 of the f64 one (relative to its maximum), against 2.9e-5 for the same formula evaluated in f32
//! (`tests/suite/accuracy.rs` prints both).
//!
//! # Threads, SIMD, wasm
//!
//! With the feature `rayon` (default) calls use the current rayon pool; results are equal bit for bit whatever the
//! number of threads. AVX-512, AVX2 or NEON is chosen at run time ([`simd_name`]); `DSS_SIMD=portable` and
//! `DSS_SIMD=avx2` force less. On wasm it is chosen at compile time, by `-C target-feature=+simd128`. Different instruction sets may differ in the last bit. The crate builds for
//! `wasm32-unknown-unknown` without default features. The feature `dense` (default) adds `proposition1`.

mod activation;
pub mod attention;
pub mod block;
mod complex;
pub mod conv;
mod eigenvalues;
mod error;
pub mod fork;
pub mod fourier;
pub mod init;
pub mod kernel;
pub mod kernelised;
mod lines;
mod loops;
mod par;
pub mod plans;
mod product;
#[cfg(feature = "dense")]
pub mod proposition1;
mod rate;
mod real;
mod recurrence;
pub mod recurrent;
pub mod s4;
pub mod s4d;
mod scan;
pub mod ssm_softmax;

pub use block::{Block, frozen};
pub use complex::C64;
pub use conv::Conv;
pub use eigenvalues::eigenvalues;
pub use error::{Error, Result};
pub use par::limit_threads;
pub use rate::change_rate;
pub use real::{Real, simd_name};
pub use recurrence::{Recurrence, RecurrentState};
pub use scan::{Scan, ScanState};

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
