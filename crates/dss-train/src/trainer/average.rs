//! The running average of a model's weights, and of its running statistics.

use std::collections::VecDeque;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;
use dss_nn::Model;

/// average ← d·average + (1 − d)·model, where d rises to `decay` over the first steps: min(decay, (1 + step)/(10 + step)).
pub(super) fn towards(average: Model, model: &Model, decay: f64, step: u64) -> Model {
    let decay = decay.min((1 + step) as f64 / (10 + step) as f64);
    let mut flat = Flat::default();
    model.visit(&mut flat);
    average.map(&mut Blend { new: flat.0, decay })
}

/// Every tensor as a vector, in the order of the modules.
#[derive(Default)]
struct Flat(VecDeque<Tensor<1>>);

impl ModuleVisitor for Flat {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push_back(param.val().inner().flatten(0, D - 1));
    }
}

struct Blend {
    new: VecDeque<Tensor<1>>,
    decay: f64,
}

impl ModuleMapper for Blend {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let new = self.new.pop_front().expect("both models have the same tensors");
        param.map(|old| {
            let (shape, trained) = (old.dims(), old.is_require_grad());
            let old = old.inner().flatten::<1>(0, D - 1);
            let mut blended = old.clone() * self.decay + new.clone() * (1.0 - self.decay);
            if !trained {
                // What a mixer drew once is the same in both, and must stay so to the last bit.
                blended = blended.mask_where(old.equal(new.clone()), new);
            }
            blended.reshape(shape).autodiff().set_require_grad(trained)
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use dss_nn::config::{BigbirdConfig, InputKind, ModelConfig, ModelIo, OutputKind};

    use super::*;

    #[test]
    fn every_tensor_moves_towards_the_model() {
        let device = Device::flex().autodiff();
        let io = ModelIo {
            input: InputKind::Tokens { vocab: 5 },
            output: OutputKind::Sequence { outputs: 3 },
            len: 8,
        };
        let config = ModelConfig { layers: 1, h: 4, ..ModelConfig::default() };
        let [a, b] = [1, 2].map(|seed| Model::new(&config, &io, seed, &device).unwrap());
        // The second step: (1 + 1)/(10 + 1) is below the decay asked for.
        for (decay, step, d) in [(0.75, 1000, 0.75), (0.75, 1, 2.0 / 11.0)] {
            let c = towards(a.clone(), &b, decay, step);
            let all = [&a, &b, &c].map(|model| model.named_tensors());
            for ((name, a), ((_, b), (_, c))) in all[0].iter().zip(all[1].iter().zip(&all[2])) {
                for ((a, b), c) in a.iter::<f64>().zip(b.iter::<f64>()).zip(c.iter::<f64>()) {
                    let error = (d * a + (1.0 - d) * b - c).abs();
                    assert!(error < 1e-6 * (1.0 + c.abs()), "{name}: {error}");
                }
            }
        }
    }

    /// The random blocks of BigBird are numbers of blocks: any drift would make them others.
    #[test]
    fn what_was_drawn_once_stays() {
        let device = Device::flex().autodiff();
        let io = ModelIo {
            input: InputKind::Tokens { vocab: 5 },
            output: OutputKind::Sequence { outputs: 3 },
            len: 90,
        };
        let mixer = BigbirdConfig { block: 1, ..BigbirdConfig::default() }.into();
        let config =
            ModelConfig { layers: 1, h: 4, mixer, bidirectional: true, ..ModelConfig::default() };
        let model = Model::new(&config, &io, 1, &device).unwrap();
        let blocks = |model: &Model| -> Vec<f32> {
            let mut all = model.named_tensors().into_iter();
            let (_, data) = all.find(|(name, _)| name.ends_with("blocks")).unwrap();
            data.iter::<f32>().collect()
        };
        let mut average = model.clone();
        for step in 0..50 {
            average = towards(average, &model, 0.7, step);
        }
        assert_eq!(blocks(&average), blocks(&model));
    }
}
