//! The second stream of models whose mixers carry one from layer to layer, before the first layer.

use dss_format::Positions;
use dss_format::mixer::LunaConfig;
use dss_kernels::frozen::{Norm, Scratch};

use crate::arrays::Arrays;
use crate::positions::PositionVectors;

pub(crate) struct SideStream {
    /// `[l, H]`, as the first layer gets it.
    pub start: Vec<f32>,
    /// Of the sequence.
    pub input_norm: Norm<f32>,
}

impl SideStream {
    pub(crate) fn new(h: usize, positions: Positions, mut arrays: Arrays<'_>) -> Self {
        let mut start = arrays.take("start");
        let scale = (h as f32).sqrt();
        start.iter_mut().for_each(|x| *x *= scale);
        if positions != Positions::None {
            start
                .chunks_exact_mut(h)
                .enumerate()
                .for_each(|(t, p)| PositionVectors::Fixed.add(t, p));
        }
        let mut norm = |name: &str| arrays.layer_norm(name, LunaConfig::NORM_EPS);
        let (own, input_norm) = (norm("norm"), norm("input_norm"));
        let mut normed = vec![0.0; start.len()];
        own.forward(&start, h, &mut normed, &mut Scratch::new(start.len() / h));
        Self { start: normed, input_norm }
    }
}
