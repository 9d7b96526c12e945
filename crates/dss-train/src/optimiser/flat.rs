//! All gradients of a model, or all moments, as one vector, which is what ranks exchange.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::{DType, Device, Tensor, TensorData};
use dss_nn::Model;

use super::adamw::Moments;
use super::{AdamW, Depth, Gradients};

/// Where each trained parameter is: `[gradients in the order of the names | one mark per parameter]`. The mark is not 0
/// if there is a gradient: a parameter without one keeps its value, which a gradient of 0 would not do.
pub(crate) struct Layout {
    places: Vec<(String, Range<usize>)>,
    numbers: usize,
}

impl Layout {
    pub(crate) fn new(model: &Model) -> Self {
        let mut parameters = model.parameters();
        parameters.retain(|p| p.trained);
        parameters.sort_by(|a, b| a.name.cmp(&b.name));
        let mut numbers = 0;
        let place = |p: dss_nn::Parameter| {
            let start = numbers;
            numbers += p.shape.iter().product::<usize>();
            (p.name, start..numbers)
        };
        let places = parameters.into_iter().map(place).collect();
        Self { places, numbers }
    }

    /// The gradients in one vector.
    pub(crate) fn flatten(&self, gradients: &Gradients) -> Vec<f32> {
        let mut flat = vec![0.0; self.numbers + self.places.len()];
        for (i, (name, place)) in self.places.iter().enumerate() {
            let Some(gradient) = gradients.get(name) else { continue };
            let data = gradient.to_data();
            match data.as_slice::<f32>() {
                Ok(values) => flat[place.clone()].copy_from_slice(values),
                Err(_) => {
                    let values = flat[place.clone()].iter_mut().zip(data.iter::<f32>());
                    values.for_each(|(to, value)| *to = value);
                }
            }
            flat[self.numbers + i] = 1.0;
        }
        flat
    }

    /// The gradients of a vector, as slices of one tensor.
    pub(crate) fn gradients(&self, mut flat: Vec<f32>, device: &Device) -> Gradients {
        let marks = flat.split_off(self.numbers);
        let data = TensorData::new(flat, [self.numbers]);
        let all = Tensor::<1>::from_data(data, (device, DType::F32)).inner();
        let mut gradients = Gradients::default();
        for ((name, place), _) in self.places.iter().zip(marks).filter(|(_, mark)| *mark != 0.0) {
            gradients.insert(name.clone(), all.clone().slice([place.clone()]));
        }
        gradients
    }
}

impl AdamW {
    /// The parameters that have moments.
    pub(crate) fn names(&self) -> Vec<String> {
        self.moments.keys().cloned().collect()
    }

    /// All moments: m and v of each of the [`names`](Self::names).
    pub(crate) fn to_flat(&self) -> Vec<f32> {
        let values = |tensor: &Tensor<1>| tensor.to_data().iter::<f32>().collect::<Vec<_>>();
        self.moments
            .values()
            .flat_map(|Moments { m, v }| [values(m), values(v)])
            .flatten()
            .collect()
    }

    /// The optimiser with the moments of [`to_flat`](Self::to_flat), for parameters of the given sizes.
    ///
    /// # Panics
    /// If the numbers are not those of the names.
    pub(crate) fn from_flat(
        step: u64,
        names: &[String],
        sizes: &BTreeMap<String, usize>,
        numbers: &[f32],
        device: &Device,
    ) -> Self {
        let mut rest = numbers;
        let mut next = |size: usize| {
            let (values, others) = rest.split_at(size);
            rest = others;
            let data = TensorData::new(values.to_vec(), [size]);
            Tensor::<1>::from_data(data, (device, DType::F32)).inner()
        };
        let moments = names.iter().map(|name| {
            let size = sizes[name];
            (name.clone(), Moments { m: next(size), v: next(size) })
        });
        let moments = moments.collect();
        Self { step, moments, depth: Depth::default() }
    }
}

#[cfg(test)]
mod tests {
    use dss_nn::config::{InputKind, ModelConfig, ModelIo, OutputKind};

    use super::*;

    fn model(device: &Device) -> Model {
        let io = ModelIo {
            input: InputKind::Tokens { vocab: 5 },
            output: OutputKind::Sequence { outputs: 3 },
            len: 8,
        };
        Model::new(&ModelConfig { layers: 1, h: 4, ..ModelConfig::default() }, &io, 1, device)
            .unwrap()
    }

    #[test]
    fn gradients_come_back_and_missing_ones_stay_missing() {
        let device = Device::flex().autodiff();
        let model = model(&device);
        let layout = Layout::new(&model);
        let trained: Vec<_> = model.parameters().into_iter().filter(|p| p.trained).collect();
        let mut gradients = Gradients::default();
        for (i, p) in trained.iter().enumerate().skip(1) {
            let size: usize = p.shape.iter().product();
            let values: Vec<f32> = (0..size).map(|j| (i * 100 + j) as f32 * 0.1 - 3.0).collect();
            let data = TensorData::new(values, [size]);
            gradients.insert(p.name.clone(), Tensor::from_data(data, &device).inner());
        }
        let back = layout.gradients(layout.flatten(&gradients), &device);
        assert!(back.get(&trained[0].name).is_none());
        for p in &trained[1..] {
            let [a, b] = [&gradients, &back].map(|g| g.get(&p.name).unwrap().to_data());
            assert_eq!(a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap(), "{}", p.name);
        }
    }
}
