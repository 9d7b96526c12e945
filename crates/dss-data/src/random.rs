//! Random streams: every draw is a function of (purpose, seed, index), never of threads or time.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};

/// The stream `index` of a purpose and a seed.
pub(crate) fn stream(purpose: &str, seed: u64, index: u64) -> ChaCha8Rng {
    let key = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(purpose).finalize();
    let mut rng = ChaCha8Rng::from_seed(key.into());
    rng.set_stream(index);
    rng
}

/// A uniform permutation of 0..n (Fisher-Yates).
pub(crate) fn permutation(n: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let n = u32::try_from(n).expect("a data set has fewer than 2^32 examples");
    let mut order: Vec<u32> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i as usize, rng.random_range(0..=i) as usize);
    }
    order
}

/// Order of an epoch: a permutation of 0..n from (seed, epoch), independent of threads.
///
/// # Panics
/// If `n` does not fit in a `u32`.
pub fn epoch_order(n: usize, seed: u64, epoch: u64) -> Vec<u32> {
    permutation(n, &mut stream("epoch-order", seed, epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_every_example_once() {
        for n in [0, 1, 2, 7, 1000] {
            let mut order = epoch_order(n, 3, 4);
            order.sort_unstable();
            assert_eq!(order, (0..n as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seed_and_epoch_both_change_the_order() {
        let order = epoch_order(100, 1, 1);
        assert_eq!(order, epoch_order(100, 1, 1));
        assert_ne!(order, epoch_order(100, 1, 2));
        assert_ne!(order, epoch_order(100, 2, 1));
    }

    // Runs are resumed by recomputing the order, so it must never change. The numbers are those of the first run.
    #[test]
    fn the_order_is_pinned() {
        assert_eq!(epoch_order(8, 1112, 0), [3, 5, 4, 7, 6, 0, 2, 1]);
    }
}
