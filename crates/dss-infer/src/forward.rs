//! Whole sequences, by convolution.

use dss_kernels::Conv;
use dss_kernels::block::{Pool as KernelPool, pool_forward};
use dss_kernels::frozen::{Scratch, gelu};

use crate::config::{OutputKind, Pool};
use crate::error::{Error, Result};
use crate::model::{Head, Input, Model};

/// Kernels and buffers for sequences of one length, to be used again and again.
pub struct Plan<'a> {
    model: &'a Model,
    l: usize,
    /// `[C, H, taps]` per layer.
    kernels: Vec<Vec<f32>>,
    conv: Conv<f32>,
    /// `[L, H]` each.
    x: Vec<f32>,
    u: Vec<f32>,
    v: Vec<f32>,
    scratch: Scratch<f32>,
}

impl Model {
    /// What the model says about a whole sequence: `[O]`, or `[L, O]` of a model that answers at every position.
    ///
    /// # Errors
    /// If the input does not fit the model, or is longer than its kernels ([`Error::PastEnd`]). A model of pairs needs
    /// [`Self::forward_pair`].
    pub fn forward(&self, input: Input<'_>) -> Result<Vec<f32>> {
        self.plan(self.check_input(input)?)?.forward(input)
    }

    /// What a model of pairs says about two sequences: `[O]`.
    pub fn forward_pair(&self, first: Input<'_>, second: Input<'_>) -> Result<Vec<f32>> {
        let Head::Pair { hidden, out } = &self.head else {
            return Err(Error::input("this model takes single sequences, not pairs"));
        };
        let h = self.config().h;
        let mut features = vec![0.0; 4 * h];
        for (i, input) in [first, second].into_iter().enumerate() {
            let mut plan = self.plan(self.check_input(input)?)?;
            plan.hidden(input)?;
            plan.pool(&mut features[i * h..][..h]);
        }
        for i in 0..h {
            let (a, b) = (features[i], features[h + i]);
            (features[2 * h + i], features[3 * h + i]) = (a - b, a * b);
        }
        let mut scratch = Scratch::new(1);
        let (mut inner, mut logits) = (vec![0.0; h], vec![0.0; out.outputs()]);
        hidden.forward(&features, &mut inner, &mut scratch)?;
        gelu(&mut inner);
        out.forward(&inner, &mut logits, &mut scratch)?;
        finite(&logits)?;
        Ok(logits)
    }

    /// Kernels and buffers for sequences of length l.
    ///
    /// # Errors
    /// [`Error::PastEnd`] if the kernels of the model end before l.
    pub fn plan(&self, l: usize) -> Result<Plan<'_>> {
        self.check_len(l)?;
        let (h, taps) = (self.config().h, self.config().taps(l));
        let conv = Conv::new(1, l, h)?;
        let kernels = self.layers.iter().map(|layer| layer.mixer.kernel(self.sizes(), taps));
        let kernels = kernels.collect::<Result<_>>()?;
        let zeros = || vec![0.0; l * h];
        let (x, u, v) = (zeros(), zeros(), zeros());
        Ok(Plan { model: self, l, kernels, conv, x, u, v, scratch: Scratch::parallel(l) })
    }
}

impl Plan<'_> {
    /// As [`Model::forward`], of a sequence of the plan's length.
    pub fn forward(&mut self, input: Input<'_>) -> Result<Vec<f32>> {
        let model = self.model;
        let Head::Linear(head) = &model.head else {
            return Err(Error::input("this model takes pairs of sequences"));
        };
        self.hidden(input)?;
        let mut logits;
        if let OutputKind::Position { outputs } = model.meta().io.output {
            logits = vec![0.0; self.l * outputs];
            head.forward(&self.x, &mut logits, &mut self.scratch)?;
        } else {
            let mut pooled = vec![0.0; model.config().h];
            self.pool(&mut pooled);
            logits = vec![0.0; head.outputs()];
            head.forward(&pooled, &mut logits, &mut self.scratch)?;
        }
        finite(&logits)?;
        Ok(logits)
    }

    /// x becomes the activations before the head.
    fn hidden(&mut self, input: Input<'_>) -> Result<()> {
        let Self { model, l, kernels, conv, x, u, v, scratch } = self;
        let positions = model.check_input(input)?;
        if positions != *l {
            let what = format!("the plan is for {l} positions, but the input has {positions}");
            return Err(Error::input(what));
        }
        model.encode(input, x, scratch)?;
        for (layer, k) in model.layers.iter().zip(kernels) {
            layer.rows.before(x, u, scratch);
            if model.config().bidirectional {
                conv.set_kernel_bidirectional(k)?;
            } else {
                conv.set_kernel(k)?;
            }
            conv.forward(u, v)?;
            layer.rows.after(x, u, v, scratch);
        }
        model.norm.forward(x, model.config().h, u, scratch);
        std::mem::swap(x, u);
        Ok(())
    }

    /// One vector of all activations.
    fn pool(&self, pooled: &mut [f32]) {
        let pool = match self.model.config().pool {
            Pool::Mean => KernelPool::Mean,
            Pool::Last => KernelPool::Last,
        };
        pool_forward(pool, &self.x, self.l, self.model.config().h, &[self.l], pooled);
    }
}

fn finite(logits: &[f32]) -> Result<()> {
    if logits.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(Error::Overflow) }
}
