//! One block: a mixer and the passes over rows around it, and where the model has one a feed-forward part.

use dss_kernels::frozen::{Norm, Rows, Scratch};

use crate::error::Result;
use crate::linear::{RowBuffers, TwoLayers};
use crate::mixer::SequenceMixer;

pub(crate) struct Layer {
    pub mixer: Box<dyn SequenceMixer>,
    pub around: NormAndResidual,
    pub ff: Option<(Residual, TwoLayers)>,
}

/// What surrounds a mixer v = Mix(u): u = before(x), then x = after(x, u, v).
pub(crate) enum NormAndResidual {
    /// Norm and residual.
    Separate(Residual),
    /// Norm and residual in one pass with what follows the mixer.
    Fused(Rows<f32>),
}

/// x + f(norm(x)) or norm(x + f(x)).
pub(crate) struct Residual {
    pub norm: Norm<f32>,
    pub prenorm: bool,
    pub h: usize,
}

impl Layer {
    /// The mixer's input u `[R, H]`.
    pub(crate) fn before(&self, x: &[f32], u: &mut [f32], scratch: &mut Scratch<f32>) {
        match &self.around {
            NormAndResidual::Separate(residual) => residual.before(x, u, scratch),
            NormAndResidual::Fused(rows) => rows.before(x, u, scratch),
        }
    }

    /// x becomes the block's output, given u and the mixer's v; both are overwritten. All `[R, H]`.
    pub(crate) fn after(
        &self,
        x: &mut [f32],
        u: &mut [f32],
        v: &mut [f32],
        buffers: &mut RowBuffers,
    ) -> Result<()> {
        match &self.around {
            NormAndResidual::Separate(residual) => residual.after(x, v, &mut buffers.scratch),
            NormAndResidual::Fused(rows) => rows.after(x, u, v, &mut buffers.scratch),
        }
        if let Some((residual, ff)) = &self.ff {
            residual.before(x, u, &mut buffers.scratch);
            ff.forward(u, v, buffers)?;
            residual.after(x, v, &mut buffers.scratch);
        }
        Ok(())
    }
}

impl Residual {
    fn before(&self, x: &[f32], u: &mut [f32], scratch: &mut Scratch<f32>) {
        if self.prenorm {
            self.norm.forward(x, self.h, u, scratch);
        } else {
            u.copy_from_slice(x);
        }
    }

    fn after(&self, x: &mut [f32], v: &mut [f32], scratch: &mut Scratch<f32>) {
        if self.prenorm {
            x.iter_mut().zip(v).for_each(|(x, v)| *x += *v);
        } else {
            v.iter_mut().zip(&*x).for_each(|(v, x)| *v += x);
            self.norm.forward(v, self.h, x, scratch);
        }
    }
}
