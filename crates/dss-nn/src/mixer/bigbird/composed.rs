//! BigBird out of Burn tensor operations: the key blocks of each query block are put side by side.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use super::BlockSpec;
use crate::mixer::heads::{cut, flags, integers, join, padded, split};

/// q, k, v `[B, L, Q]` -> `[B, L, Q]`; hidden keys have weight 0, positions beyond a length give 0.
///
/// Blocks that no sequence of the batch has are not there; a block that sees them sees nothing in them.
pub(super) fn bigbird(
    [q, k, v]: [Tensor<3>; 3],
    lengths: Option<&[usize]>,
    spec: &BlockSpec,
) -> Tensor<3> {
    let [batch, l, width] = q.dims();
    let BlockSpec { heads, block, blocks, ref random } = *spec;
    let (present, d, device) = (l.div_ceil(block), width / heads, q.device());
    let size = present * block;
    let [q, k, v] = [q * (1.0 / (d as f64).sqrt()), k, v].map(|x| split(padded(x, size), heads));
    let sequences = if lengths.is_some() || size > l { batch } else { 1 };
    let length = |b: usize| lengths.map_or(l, |lengths| lengths[b]);

    // The blocks that see all.
    let global = |i: usize| {
        let rows = q.clone().narrow(2, i * block, block); // [B, heads, block, d]
        let logits = rows.matmul(k.clone().swap_dims(2, 3));
        let hidden = (0..sequences).flat_map(|b| (0..size).map(move |j| j >= length(b)));
        let shape = [sequences, 1, 1, size];
        let hidden = flags(hidden.collect(), shape, logits.dims(), &device);
        softmax(logits.mask_fill(hidden, f64::NEG_INFINITY), 3).matmul(v.clone())
    };
    let mut parts = vec![global(0)];

    // Those between: [B, heads·m, block, d] see [B, heads·m, slots·block, d].
    let m = present.min(blocks - 1) - 1;
    if m > 0 {
        let drawn = random.len() / (heads * (blocks - 2));
        let slots = 5 + drawn;
        let mut picked = Vec::with_capacity(heads * m * slots);
        for head in 0..heads {
            for i in 1..=m {
                let row = (head * (blocks - 2) + i - 1) * drawn;
                let random = random[row..][..drawn].iter().map(|&j| j as usize);
                let start = picked.len();
                for j in [0, blocks - 1, i - 1, i, i + 1].into_iter().chain(random) {
                    let again = picked[start..].contains(&Some((head, j)));
                    picked.push((!again && j < present).then_some((head, j)));
                }
            }
        }
        let block_of = |x: &Tensor<4>| {
            let number = |(head, j): (usize, usize)| (head * present + j) as i64;
            let numbers = picked.iter().map(|&place| place.map_or(0, number)).collect();
            let x = x.clone().reshape([batch, heads * present, block * d]);
            x.select(1, integers(numbers, &device)).reshape([batch, heads * m, slots * block, d])
        };
        let rows = q.clone().narrow(2, block, m * block).reshape([batch, heads * m, block, d]);
        let logits = rows.matmul(block_of(&k).swap_dims(2, 3));
        let hidden = (0..sequences).flat_map(|b| {
            picked.iter().flat_map(move |place| {
                (0..block).map(move |t| place.is_none_or(|(_, j)| j * block + t >= length(b)))
            })
        });
        let shape = [sequences, heads * m, 1, slots * block];
        let hidden = flags(hidden.collect(), shape, logits.dims(), &device);
        let weights = softmax(logits.mask_fill(hidden, f64::NEG_INFINITY), 3);
        parts.push(weights.matmul(block_of(&v)).reshape([batch, heads, m * block, d]));
    }
    if present == blocks {
        parts.push(global(blocks - 1));
    }
    cut(join(Tensor::cat(parts, 2).narrow(2, 0, l)), lengths)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::tensor::{DType, Device, TensorData};
    use dss_format::Form;

    use super::*;
    use crate::mixer::attention::{AttentionSpec, attend};
    use crate::random::{normal, stream};

    /// Where every block sees all others, this is attention.
    #[test]
    fn all_blocks_are_attention() {
        let (blocks, block, heads) = (7, 3, 2);
        // More than a block can draw, some of them twice.
        let random = (0..heads * (blocks - 2)).flat_map(|_| 0..blocks as u32).collect();
        let spec = BlockSpec { heads, block, blocks, random };
        for l in [19, 21] {
            let qkv = ["q", "k", "v"].map(|name| {
                let numbers = TensorData::new(normal(2 * l * 8, &mut stream(1, name)), [2, l, 8]);
                Tensor::<3>::from_data(numbers, (&Device::flex(), DType::F64))
            });
            for lengths in [None, Some([l, 4]), Some([11, l])] {
                let lengths = lengths.map(Arc::<[usize]>::from);
                let found = bigbird(qkv.clone(), lengths.as_deref(), &spec);
                let (both, causal) = ([lengths.clone(), lengths.clone()], false);
                let spec = AttentionSpec { heads, causal };
                let known = attend(Form::Composed, qkv.clone(), both, spec);
                let error: f64 = (found - known).abs().max().into_scalar();
                assert!(error < 1e-14, "{l} {lengths:?}: {error:e}");
            }
        }
    }
}
