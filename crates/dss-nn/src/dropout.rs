//! Dropout that drops a whole channel of a sequence (tied over the length), from a stream of its own for every place.

use burn::tensor::{DType, Device, Tensor};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::composed::constant;
use crate::random::keyed;

/// What a pass's masks are drawn from: the same key, the same masks, whatever ran before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DropoutKey {
    /// The run's seed.
    pub seed: u64,
    /// The optimiser step.
    pub step: u64,
    /// The micro-batch within the step.
    pub micro: u32,
}

/// The last word of the key of phases: masks have those from 1 on.
const PHASE: u64 = 1 << 32;

impl DropoutKey {
    /// The masks of the places `first` and `first` + 1 of a layer, of 0 (with probability p) and 1/(1 − p).
    pub(crate) fn masks(
        self,
        layer: usize,
        first: u64,
        p: f64,
        shape: [usize; 2],
        device: &Device,
        dtype: DType,
    ) -> [Tensor<2>; 2] {
        [0, 1].map(|slot| {
            let place = (layer as u64) << 32 | u64::from(self.micro);
            // Distinct from the streams of parameters, whose last word is 0.
            let mut rng = keyed([self.seed, self.step, place, first + slot + 1]);
            let keep = 1.0 / (1.0 - p);
            let draw = |_| if rng.random::<f64>() < p { 0.0 } else { keep };
            constant((0..shape[0] * shape[1]).map(draw).collect(), shape, device, dtype)
        })
    }

    /// The phase of a stage's shuffle, from −`most` to `most`: one for the whole batch.
    pub(crate) fn phase(self, stage: usize, most: usize) -> i64 {
        let place = (stage as u64) << 32 | u64::from(self.micro);
        let most = most as i64;
        keyed([self.seed, self.step, place, PHASE]).random_range(-most..=most)
    }
}

/// What the mixer of a layer draws from in a training pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LayerKey {
    /// The pass.
    pub pass: DropoutKey,
    /// The layer's place in its stack.
    pub layer: usize,
}

impl LayerKey {
    /// The stream of this pass and layer with a number of its own, above those of the dropout masks (1 to 6).
    pub(crate) fn stream(self, number: u64) -> ChaCha8Rng {
        let DropoutKey { seed, step, micro } = self.pass;
        keyed([seed, step, (self.layer as u64) << 32 | u64::from(micro), number])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_mean_one_and_streams_of_their_own() {
        let mask = |seed, step, micro, layer, slot: usize| -> Vec<f32> {
            let key = DropoutKey { seed, step, micro };
            let masks = key.masks(layer, 0, 0.25, [100, 200], &Device::flex(), DType::F32);
            masks[slot].to_data().try_into_vec().unwrap()
        };
        let first = mask(1, 2, 3, 4, 0);
        assert_eq!(first, mask(1, 2, 3, 4, 0));
        let others = [
            mask(2, 2, 3, 4, 0),
            mask(1, 3, 3, 4, 0),
            mask(1, 2, 4, 4, 0),
            mask(1, 2, 3, 5, 0),
            mask(1, 2, 3, 4, 1),
        ];
        for other in &others {
            assert_ne!(&first, other);
        }
        let keep = 1.0f32 / 0.75;
        assert!(first.iter().all(|&x| x == 0.0 || (x - keep).abs() < 1e-6));
        let mean = first.iter().sum::<f32>() / first.len() as f32;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
