//! Random layers and signals for the property tests.

use super::Owned;
use dss_kernels::init;
use dss_kernels::kernel::{Delta, KernelConfig, Variant};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub fn normal(n: usize, rng: &mut impl Rng) -> Vec<f64> {
    init::w(1, 1, n.div_ceil(2), rng)[..n].to_vec()
}

/// A layer as it might be in the middle of training; softmax ones have some Re λ > 0 if `growing`.
pub fn layer(config: &KernelConfig, growing: bool, rng: &mut impl Rng) -> Owned<f64> {
    let KernelConfig { variant, delta, channels, h, n, systems, .. } = *config;
    let hippo = init::skew_hippo(n).unwrap().repeat(systems);
    let mut re: Vec<f64> = hippo.iter().map(|l| l.re * rng.random_range(0.5..1.5)).collect();
    if variant == Variant::Softmax {
        if growing {
            for x in re.iter_mut().skip(1).step_by(3) {
                *x = -*x * rng.random_range(0.05..1.0);
            }
        }
    } else {
        re = re.iter().map(|x| (-x).ln()).collect();
    }
    let per = if delta == Delta::Tied { 1 } else { 2 };
    Owned {
        lambda_re: re,
        lambda_im: hippo.iter().map(|l| l.im * rng.random_range(0.9..1.1)).collect(),
        delta_log: init::delta_log(h * per, 0.001, 0.1, rng).unwrap(),
        w: init::w(channels, h, n, rng),
    }
}
