//! What tells the blocks where in the sequence a position is.

use dss_format::fixed_position;

/// Vectors that are added to the encoder's output.
pub(crate) enum PositionVectors {
    None,
    /// Sines and cosines.
    Fixed,
    /// `[L, H]`
    Learned(Vec<f32>),
}

impl PositionVectors {
    /// Adds that of position t to x `[H]`.
    pub(crate) fn add(&self, t: usize, x: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Fixed => {
                let vector = fixed_position(t, x.len());
                x.iter_mut().zip(vector).for_each(|(x, p)| *x += p as f32);
            }
            Self::Learned(table) => {
                let vector = &table[t * x.len()..][..x.len()];
                x.iter_mut().zip(vector).for_each(|(x, p)| *x += p);
            }
        }
    }
}
