//! The order in which the shards of a step are added up: a binary tree over their numbers.
//!
//! Addition of floats is not associative, so the sum is defined by its tree, which depends on the number of shards G
//! alone: node [a, b) is the sum of its halves [a, m) and [m, b), m = a + ⌈(b − a)/2⌉. A rank adds up the largest nodes
//! inside its own shards; what is above them is added where those of several ranks meet. However the shards are spread,
//! the same pairs are added.

use std::ops::Range;

/// The shards of one of `size` ranks: neighbours, as many as the others have or one more.
pub fn shards_of_rank(shards: usize, rank: usize, size: usize) -> Range<usize> {
    rank * shards / size..(rank + 1) * shards / size
}

fn halves(node: &Range<usize>) -> [Range<usize>; 2] {
    let middle = node.start + node.len().div_ceil(2);
    [node.start..middle, middle..node.end]
}

/// The largest nodes of the tree over `shards` leaves that lie inside `part`, in order.
pub fn nodes(shards: usize, part: &Range<usize>) -> Vec<Range<usize>> {
    fn walk(node: Range<usize>, part: &Range<usize>, found: &mut Vec<Range<usize>>) {
        if node.start >= part.end || node.end <= part.start {
            return;
        }
        if part.start <= node.start && node.end <= part.end {
            found.push(node);
        } else {
            halves(&node).into_iter().for_each(|half| walk(half, part, found));
        }
    }
    let mut found = Vec::new();
    walk(0..shards, part, &mut found);
    found
}

/// Gives the sum of a node, if it has it.
pub type KnownSums<'a, E> = dyn FnMut(&Range<usize>) -> Result<Option<Vec<f32>>, E> + 'a;

/// The sum of a node: what `known` gives for it, else that of its halves.
///
/// # Errors
/// Those of `known`.
///
/// # Panics
/// If `known` gives nothing for a leaf.
pub fn sum<E>(node: Range<usize>, known: &mut KnownSums<'_, E>) -> Result<Vec<f32>, E> {
    if let Some(value) = known(&node)? {
        return Ok(value);
    }
    assert!(node.len() > 1, "shard {} has no value", node.start);
    let [left, right] = halves(&node);
    let mut total = sum(left, known)?;
    let right = sum(right, known)?;
    total.iter_mut().zip(&right).for_each(|(a, b)| *a += b);
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Numbers whose sum depends on the order.
    fn leaf(shard: usize) -> Vec<f32> {
        (0..50)
            .map(|i| ((i * 31 + shard * 977) as f32 * 0.618).sin() * 10f32.powi(shard as i32 % 5))
            .collect()
    }

    fn leaves(node: &Range<usize>) -> Result<Option<Vec<f32>>, Infallible> {
        Ok((node.len() == 1).then(|| leaf(node.start)))
    }

    #[test]
    fn however_the_shards_are_spread_the_sum_has_the_same_bits() {
        for shards in [1, 2, 3, 7, 12, 16] {
            let Ok(whole) = sum(0..shards, &mut leaves);
            for size in 1..=shards {
                let parts: Vec<_> =
                    (0..size).map(|rank| shards_of_rank(shards, rank, size)).collect();
                assert!(parts.iter().all(|part| !part.is_empty()));
                let all: Vec<_> = parts.iter().flat_map(|part| nodes(shards, part)).collect();
                let covered: Vec<usize> = all.iter().cloned().flatten().collect();
                assert_eq!(covered, (0..shards).collect::<Vec<_>>());
                let Ok(spread) = sum(0..shards, &mut |node| {
                    let partial = all.contains(node).then(|| sum(node.clone(), &mut leaves));
                    partial.transpose()
                });
                assert_eq!(whole, spread, "{shards} shards, {size} ranks");
            }
        }
        let in_order = (1..12).fold(leaf(0), |mut sum, shard| {
            sum.iter_mut().zip(leaf(shard)).for_each(|(a, b)| *a += b);
            sum
        });
        let Ok(whole) = sum(0..12, &mut leaves);
        assert_ne!(whole, in_order, "the numbers should tell orders apart");
    }

    #[test]
    fn powers_of_two_have_one_node_each() {
        for (shards, size) in [(12, 1), (12, 2), (12, 4), (64, 16), (48, 16)] {
            for rank in 0..size {
                assert_eq!(nodes(shards, &shards_of_rank(shards, rank, size)).len(), 1);
            }
        }
        assert_eq!(nodes(12, &shards_of_rank(12, 0, 3)), [0..3, 3..4]);
    }
}
