//! AdamW as PyTorch defines it, with all constants in f64.
//!
//! ```text
//! p ← p·(1 − η·decay)
//! m ← m + (g − m)·(1 − β₁)          v ← v·β₂ + g²·(1 − β₂)
//! p ← p − η/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
//! ```
//!
//! Λ, Δ_log and W have learning rates of their own and no decay (§4, appendix); everything else has the task's. Burn's
//! own AdamW keeps β and ε in f32, too coarse for a comparison with reference traces in f64.

use std::collections::{BTreeMap, HashMap};

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::Tensor;
use dss_nn::{Model, ParamGroup, Parameter};

use super::{Depth, Gradients};

const BETA_1: f64 = 0.9;

/// First and second moments of one parameter, flat.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    pub(super) m: Tensor<1>,
    pub(super) v: Tensor<1>,
}

/// The optimiser: how many steps it has made, and the moments by parameter name.
#[derive(Clone, Debug, Default)]
pub struct AdamW {
    pub(super) step: u64,
    pub(super) moments: BTreeMap<String, Moments>,
    pub(super) depth: Depth,
}

/// The learning rates and constants of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of Λ, and of P and B in S4.
    pub lambda: f64,
    /// Of Δ_log.
    pub delta: f64,
    /// Of W, and of C in S4 and S4D.
    pub w: f64,
    /// Of everything else.
    pub other: f64,
    /// Decay of everything else.
    pub weight_decay: f64,
    /// β₂.
    pub beta2: f64,
    /// ε.
    pub eps: f64,
}

impl Rates {
    /// Nothing moves; β₂ and ε are PyTorch's defaults.
    pub const AT_REST: Self = Self {
        lambda: 0.0,
        delta: 0.0,
        w: 0.0,
        other: 0.0,
        weight_decay: 0.0,
        beta2: 0.999,
        eps: 1e-8,
    };

    /// Learning rate and decay of a group.
    fn for_group(&self, group: ParamGroup) -> (f64, f64) {
        match group {
            ParamGroup::Lambda => (self.lambda, 0.0),
            ParamGroup::Delta => (self.delta, 0.0),
            ParamGroup::W => (self.w, 0.0),
            ParamGroup::Other => (self.other, self.weight_decay),
        }
    }
}

/// What a step did besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Names of the Δ_log that reached their bound, and how many entries of each.
    pub bounded: Vec<(String, usize)>,
}

impl AdamW {
    /// One step with gradients times `scale`; every Δ_log is then held within ±`delta_bound` (0: no bound).
    pub fn step(
        &mut self,
        model: Model,
        gradients: &Gradients,
        scale: f64,
        rates: &Rates,
        delta_bound: f64,
    ) -> (Model, Update) {
        self.step += 1;
        let mut apply = Apply {
            parameters: model.parameters().into_iter().map(|p| (p.id, p)).collect(),
            adamw: self,
            gradients,
            scale,
            rates,
            delta_bound,
            update: Update::default(),
        };
        let model = model.map(&mut apply);
        (model, apply.update)
    }

    /// The same optimiser with rates by depth.
    pub fn with_depth(self, depth: Depth) -> Self {
        Self { depth, ..self }
    }

    /// Its rates by depth.
    pub(crate) fn depth(&self) -> Depth {
        self.depth
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// p after one step.
    fn updated(
        &mut self,
        name: &str,
        p: Tensor<1>,
        g: Tensor<1>,
        lr: f64,
        decay: f64,
        rates: &Rates,
    ) -> Tensor<1> {
        let Rates { beta2, eps, .. } = *rates;
        let Moments { m, v } = self
            .moments
            .remove(name)
            .unwrap_or_else(|| Moments { m: g.zeros_like(), v: g.zeros_like() });
        let t = self.step as f64;
        let m = m.clone() + (g.clone() - m).mul_scalar(1.0 - BETA_1);
        let v = v.mul_scalar(beta2) + (g.clone() * g).mul_scalar(1.0 - beta2);
        let root = (1.0 - beta2.powf(t)).sqrt();
        let size = lr / (1.0 - BETA_1.powf(t));
        let direction = m.clone() / v.clone().sqrt().div_scalar(root).add_scalar(eps);
        self.moments.insert(name.to_owned(), Moments { m, v });
        let p = if decay == 0.0 { p } else { p.mul_scalar(1.0 - lr * decay) };
        p - direction.mul_scalar(size)
    }
}

/// Walks over the parameters and updates each that has a gradient.
struct Apply<'a> {
    parameters: HashMap<ParamId, Parameter>,
    adamw: &'a mut AdamW,
    gradients: &'a Gradients,
    scale: f64,
    rates: &'a Rates,
    delta_bound: f64,
    update: Update,
}

impl ModuleMapper for Apply<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(Parameter { name, group, .. }) = self.parameters.remove(&param.id) else {
            return param;
        };
        let Some(gradient) = self.gradients.get(&name).cloned() else { return param };
        let Some(factor) = self.adamw.depth.rate_factor(&name) else { return param };
        let gradient = if self.scale == 1.0 { gradient } else { gradient.mul_scalar(self.scale) };
        let (lr, decay) = self.rates.for_group(group);
        let lr = lr * factor;
        param.map(|tensor| {
            let shape = tensor.dims();
            let p = tensor.inner().flatten(0, D - 1);
            let mut p = self.adamw.updated(&name, p, gradient, lr, decay, self.rates);
            let bound = self.delta_bound;
            if group == ParamGroup::Delta && bound > 0.0 {
                let beyond = p.to_data().iter::<f64>().filter(|x| x.abs() > bound).count();
                if beyond > 0 {
                    p = p.clamp(-bound, bound);
                    self.update.bounded.push((name, beyond));
                }
            }
            p.reshape(shape).autodiff().require_grad()
        })
    }
}
