//! The generator: random trees, kept when their length fits and they are new.

use std::collections::HashSet;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::expressions::Expressions;
use super::symbols::{CLOSE, MIN, SM};
use super::{Grammar, evaluate};
use crate::random;

/// An operator is drawn when a uniform u32 is below this: probability 1/4.
const OPERATOR_BELOW: u32 = 1 << 30;

/// Draws per random stream. Chunks are numbered, and kept in that order: threads cannot change the result.
const CHUNK_DRAWS: usize = 512;
/// Chunks between two counts of the trees.
const WAVE: u64 = 32;
/// After this many draws in a row without a new tree, the settings are assumed to allow no more.
const FRUITLESS_DRAWS: usize = 1 << 20;

/// One chunk: its trees in order, with a digest of each to know duplicates by.
struct Chunk {
    trees: Expressions,
    digests: Vec<[u8; 16]>,
}

/// Draws `count` different expressions in generation order, or fewer if no new ones can be found.
pub fn generate(
    grammar: &Grammar,
    count: usize,
    seed: u64,
    progress: &dyn Fn(&str),
) -> Expressions {
    let mut kept = Expressions::default();
    let mut seen = HashSet::with_capacity(count);
    let mut fruitless = 0;
    for wave in 0.. {
        let chunks: Vec<Chunk> = (wave * WAVE..(wave + 1) * WAVE)
            .into_par_iter()
            .map(|number| chunk(grammar, &mut random::stream("listops", seed, number)))
            .collect();
        for Chunk { trees, digests } in chunks {
            fruitless += CHUNK_DRAWS;
            for (i, digest) in digests.into_iter().enumerate() {
                if kept.len() == count || fruitless > FRUITLESS_DRAWS {
                    return kept;
                }
                if seen.insert(digest) {
                    kept.push(trees.codes(i), trees.labels()[i]);
                    fruitless = 0;
                }
            }
            if kept.len() == count || fruitless > FRUITLESS_DRAWS {
                return kept;
            }
        }
        progress(&format!("ListOps: {} of {count} expressions", kept.len()));
    }
    kept
}

fn chunk(grammar: &Grammar, rng: &mut ChaCha8Rng) -> Chunk {
    let mut chunk = Chunk { trees: Expressions::default(), digests: Vec::new() };
    let mut codes = Vec::with_capacity(grammar.max_length);
    for _ in 0..CHUNK_DRAWS {
        codes.clear();
        let fits = draw(grammar, 1, rng, &mut codes);
        if fits && codes.len() > grammar.min_length {
            let digest = Sha256::digest(&codes);
            chunk.digests.push(digest[..16].try_into().expect("16 of 32 bytes"));
            let value = evaluate(&codes).expect("generated trees are well formed");
            chunk.trees.push(&codes, value);
        }
    }
    chunk
}

/// Appends one node and its children in pre-order; false, in the middle of the work, once the tree is too long.
fn draw(grammar: &Grammar, depth: usize, rng: &mut ChaCha8Rng, codes: &mut Vec<u8>) -> bool {
    if depth >= grammar.max_depth || rng.random::<u32>() >= OPERATOR_BELOW {
        codes.push(rng.random_range(0..=9));
    } else {
        let place = codes.len();
        let arguments = rng.random_range(2..=grammar.max_args as u32);
        codes.push(CLOSE);
        for _ in 0..arguments {
            if !draw(grammar, depth + 1, rng, codes) {
                return false;
            }
        }
        codes[place] = rng.random_range(MIN..=SM);
        codes.push(CLOSE);
    }
    codes.len() < grammar.max_length
}

#[cfg(test)]
mod tests {
    use super::*;

    const LRA: Grammar = Grammar { max_depth: 10, max_args: 10, min_length: 500, max_length: 2000 };

    fn made(count: usize, seed: u64) -> Expressions {
        generate(&LRA, count, seed, &|_| {})
    }

    #[test]
    fn threads_do_not_matter_and_the_seed_does() {
        let here = made(300, 1);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| made(300, 1)), here);
        }
        let mut shorter = Expressions::default();
        (0..100).for_each(|i| shorter.push(here.codes(i), here.labels()[i]));
        assert_eq!(made(100, 1), shorter);
        assert_ne!(made(100, 2), shorter);
    }

    /// Figures of the original generator, measured over 6,000 trees; the bounds are four standard errors of the
    /// difference to the 4,000 trees here.
    #[test]
    fn statistics_are_those_of_the_original() {
        let n = 4000;
        let trees = made(n, 7);
        let near = |what: &str, got: f64, expected: f64, sd: f64| {
            let bound = 4.0 * sd * (1.0 / n as f64 + 1.0 / 6000.0).sqrt();
            assert!((got - expected).abs() < bound, "{what}: {got}, expected {expected} ± {bound}");
        };
        let mut lengths: Vec<f64> = (0..n).map(|i| trees.codes(i).len() as f64).collect();
        assert!(lengths.iter().all(|&l| (501.0..=1999.0).contains(&l)));
        near("mean length", lengths.iter().sum::<f64>() / n as f64, 1033.0, 405.0);
        lengths.sort_unstable_by(f64::total_cmp);
        let quantiles =
            [(0.05, 537.0), (0.25, 697.0), (0.5, 953.0), (0.75, 1303.0), (0.95, 1816.0)];
        for (p, expected) in quantiles {
            // The share of trees that are shorter than the expected quantile.
            let share = lengths.partition_point(|&l| l < expected) as f64 / n as f64;
            near("share below a length quantile", share, p, (p * (1.0 - p)).sqrt());
        }
        let labels = [0.178, 0.077, 0.075, 0.082, 0.096, 0.087, 0.076, 0.072, 0.091, 0.165];
        for (label, p) in labels.into_iter().enumerate() {
            let share = trees.labels().iter().filter(|&&l| usize::from(l) == label).count();
            near("label", share as f64 / n as f64, p, f64::sqrt(p * (1.0 - p)));
        }
        let total: f64 = lengths.iter().sum();
        let mut counts = [0.0; 15];
        (0..n).flat_map(|i| trees.codes(i)).for_each(|&code| counts[code as usize] += 1.0);
        for (code, count) in counts.into_iter().enumerate() {
            let expected = [0.0715, 0.142, 0.0355][(code >= 10) as usize + (code > 10) as usize];
            assert!((count / total - expected).abs() < 0.0008, "{code}: {}", count / total);
        }
    }

    #[test]
    fn acceptance_is_8_2_percent() {
        let draws = 40 * CHUNK_DRAWS;
        let kept = (0..40).map(|i| chunk(&LRA, &mut random::stream("test", 1, i)).trees.len());
        let rate = kept.sum::<usize>() as f64 / draws as f64;
        // 8.2 % ± four standard errors (here, and of 6,000 kept trees there).
        let bound = 4.0 * (0.082 * 0.918 / draws as f64 + 0.082 * 0.918 / 73_000.0).sqrt();
        assert!((rate - 0.082).abs() < bound + 0.0005, "{rate}");
    }

    #[test]
    fn depth_and_arguments_are_bounded() {
        let grammar = Grammar { max_depth: 3, max_args: 4, min_length: 3, max_length: 40 };
        let trees = generate(&grammar, 500, 3, &|_| {});
        assert_eq!(trees.len(), 500);
        for i in 0..trees.len() {
            let mut open: Vec<usize> = Vec::new();
            for &code in trees.codes(i) {
                if code == CLOSE {
                    assert!((2..=4).contains(&open.pop().unwrap()));
                    continue;
                }
                if let Some(arguments) = open.last_mut() {
                    *arguments += 1;
                }
                if code > CLOSE {
                    open.push(0);
                    assert!(open.len() <= 2);
                }
            }
        }
        let different: HashSet<&[u8]> = (0..500).map(|i| trees.codes(i)).collect();
        assert_eq!(different.len(), 500);
    }

    #[test]
    fn an_exhausted_grammar_ends() {
        // Two digits under one of four operators: 400 trees and no more.
        let grammar = Grammar { max_depth: 2, max_args: 2, min_length: 3, max_length: 5 };
        assert_eq!(generate(&grammar, 1000, 0, &|_| {}).len(), 400);
    }
}
