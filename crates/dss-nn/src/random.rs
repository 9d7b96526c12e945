//! Random numbers from named streams: what a parameter or a mask gets depends on its name and the seed, and on nothing
//! that was drawn before.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::StandardNormal;

/// The stream of the parameter `name` under `seed`.
pub(crate) fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    keyed([seed, fnv1a(name), 0, 0])
}

/// The stream of a 256-bit key.
pub(crate) fn keyed(key: [u64; 4]) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(key) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(bytes)
}

/// `count` numbers ~ N(0, 1).
pub(crate) fn normal(count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..count).map(|_| rng.sample(StandardNormal)).collect()
}

/// `count` numbers ~ U(−bound, bound).
pub(crate) fn uniform(count: usize, bound: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..count).map(|_| bound * (2.0 * rng.random::<f64>() - 1.0)).collect()
}

/// FNV-1a, 64 bits.
fn fnv1a(text: &str) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_their_own() {
        let draw = |seed, name| normal(4, &mut stream(seed, name));
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn uniform_stays_within_its_bound() {
        let x = uniform(10_000, 0.25, &mut stream(3, "x"));
        assert!(x.iter().all(|x| x.abs() <= 0.25));
        assert!(x.iter().any(|x| *x > 0.24) && x.iter().any(|x| *x < -0.24));
    }
}
