//! Whole sequences.

use dss_format::{OutputKind, Pool};
use dss_kernels::block::{Pool as KernelPool, pool_forward};
use dss_kernels::frozen::Scratch;

use crate::error::{Error, Result};
use crate::linear::RowBuffers;
use crate::mixer::Workspace;
use crate::model::{Input, Model};

/// What does not depend on the input, and buffers, for sequences of one length: for repeated use.
pub struct Plan<'a> {
    model: &'a Model,
    l: usize,
    /// Of the mixer of each layer.
    prepared: Vec<Vec<f32>>,
    workspace: Workspace,
    /// `[L, H]` each; one row more with cls pooling.
    x: Vec<f32>,
    u: Vec<f32>,
    v: Vec<f32>,
    buffers: RowBuffers,
}

impl Model {
    /// The answer to a whole sequence: `[O]`, or `[L, O]` of a model that answers at every position.
    ///
    /// # Errors
    /// If the input does not fit the model, or is longer than its kernels ([`Error::PastEnd`]). A model of pairs needs
    /// [`Self::forward_pair`].
    pub fn forward(&self, input: Input<'_>) -> Result<Vec<f32>> {
        self.plan(self.check_input(input)?)?.forward(input)
    }

    /// The answer of a model of pairs to two sequences: `[O]`.
    pub fn forward_pair(&self, first: Input<'_>, second: Input<'_>) -> Result<Vec<f32>> {
        if !matches!(self.meta().io.output, OutputKind::Pair { .. }) {
            return Err(Error::input("this model takes single sequences, not pairs"));
        }
        let h = self.features();
        let mut features = vec![0.0; 4 * h];
        for (i, input) in [first, second].into_iter().enumerate() {
            let mut plan = self.plan(self.check_input(input)?)?;
            plan.hidden(input)?;
            plan.vector(&mut features[i * h..][..h])?;
        }
        for i in 0..h {
            let (a, b) = (features[i], features[h + i]);
            (features[2 * h + i], features[3 * h + i]) = (a - b, a * b);
        }
        let mut logits = vec![0.0; self.outputs()];
        let mut buffers = RowBuffers::new(Scratch::new(1));
        self.numbers.head.forward(&features, &mut logits, &mut buffers)?;
        finite(&logits)?;
        Ok(logits)
    }

    /// Kernels and buffers for sequences of length l.
    ///
    /// # Errors
    /// [`Error::PastEnd`] if the model takes shorter ones only.
    pub fn plan(&self, l: usize) -> Result<Plan<'_>> {
        self.check_len(l)?;
        let h = self.numbers.stack.as_ref().map_or(self.config().h, |stack| stack.channels());
        let rows = self.config().positions_for(l);
        let layers = &self.numbers.layers;
        let prepared = layers.iter().map(|layer| layer.mixer.prepare(rows));
        let prepared = prepared.collect::<Result<_>>()?;
        let workspace = match layers.first() {
            Some(layer) => layer.mixer.workspace(rows)?,
            None => Box::new(()),
        };
        let zeros = || vec![0.0; rows * h];
        let (x, u, v) = (zeros(), zeros(), zeros());
        let buffers = RowBuffers::new(Scratch::parallel(rows));
        Ok(Plan { model: self, l, prepared, workspace, x, u, v, buffers })
    }
}

impl Plan<'_> {
    /// As [`Model::forward`], of a sequence of the plan's length.
    pub fn forward(&mut self, input: Input<'_>) -> Result<Vec<f32>> {
        let (model, head) = (self.model, &self.model.numbers.head);
        let output = model.meta().io.output;
        if matches!(output, OutputKind::Pair { .. }) {
            return Err(Error::input("this model takes pairs of sequences"));
        }
        self.hidden(input)?;
        let mut logits;
        if let OutputKind::Position { outputs } = output {
            logits = vec![0.0; self.l * outputs];
            head.forward(&self.x, &mut logits, &mut self.buffers)?;
        } else {
            let mut pooled = vec![0.0; model.features()];
            self.vector(&mut pooled)?;
            logits = vec![0.0; model.outputs()];
            head.forward(&pooled, &mut logits, &mut self.buffers)?;
        }
        finite(&logits)?;
        Ok(logits)
    }

    /// x becomes the activations before the head; in a model of stages, those before the stages.
    fn hidden(&mut self, input: Input<'_>) -> Result<()> {
        let Self { model, l, prepared, workspace, x, u, v, buffers } = self;
        let positions = model.check_input(input)?;
        if positions != *l {
            let what = format!("the plan is for {l} positions, but the input has {positions}");
            return Err(Error::input(what));
        }
        let numbers = &model.numbers;
        if numbers.stack.is_some() {
            return model.encode(input, x, &mut buffers.scratch);
        }
        let h = model.config().h;
        let (first, rest) = x.split_at_mut(model.config().positions_for(0) * h);
        if let Some(cls) = &numbers.cls {
            first.copy_from_slice(cls);
        }
        model.encode(input, rest, &mut buffers.scratch)?;
        x.chunks_exact_mut(h).enumerate().for_each(|(t, x)| numbers.positions.add(t, x));
        if let (Some(side), Some(layer)) = (&numbers.side, numbers.layers.first()) {
            side.input_norm.forward(x, h, u, &mut buffers.scratch);
            std::mem::swap(x, u);
            layer.mixer.set_side(workspace, &side.start);
        }
        for (layer, prepared) in numbers.layers.iter().zip(prepared) {
            layer.before(x, u, &mut buffers.scratch);
            layer.mixer.mix(prepared, workspace, u, v)?;
            layer.after(x, u, v, buffers)?;
        }
        numbers.norm.forward(x, h, u, &mut buffers.scratch);
        std::mem::swap(x, u);
        Ok(())
    }

    /// The vector that the head reads of a sequence.
    fn vector(&mut self, vector: &mut [f32]) -> Result<()> {
        match &self.model.numbers.stack {
            Some(stack) => {
                vector.copy_from_slice(&stack.features(&self.x, &mut self.buffers.scratch)?);
            }
            None => self.pool(vector),
        }
        Ok(())
    }

    /// One vector of all activations.
    fn pool(&self, pooled: &mut [f32]) {
        let (pool, length) = match self.model.config().pool {
            Pool::Mean => (KernelPool::Mean, self.l),
            Pool::Last => (KernelPool::Last, self.l),
            // The first position.
            Pool::Cls => (KernelPool::Last, 1),
        };
        let h = self.model.config().h;
        pool_forward(pool, &self.x, self.x.len() / h, h, &[length], pooled);
    }
}

fn finite(logits: &[f32]) -> Result<()> {
    if logits.iter().all(|x| x.is_finite()) { Ok(()) } else { Err(Error::Overflow) }
}
