//! Complex numbers over a block of frequencies, the layout of everything that is vectorised over them.

use crate::lines::Lines;
use crate::real::Real;

/// Frequencies that are worked on at a time.
pub(crate) const BLOCK: usize = 64;

/// Real and imaginary parts over the frequencies of a block.
pub(crate) type Row = [[f64; BLOCK]; 2];

/// Rows that begin on a cache line.
pub(crate) struct Rows(Lines<f64>);

impl Rows {
    /// `count` rows of zeros.
    pub(crate) fn new(count: usize) -> Self {
        Self(Lines::new(count * 2 * BLOCK / f64::LINE))
    }

    pub(crate) fn get(&self) -> &[Row] {
        self.flat().as_chunks().0.as_chunks().0
    }

    pub(crate) fn get_mut(&mut self) -> &mut [Row] {
        self.flat_mut().as_chunks_mut().0.as_chunks_mut().0
    }

    /// `[count, 2·BLOCK]`
    pub(crate) fn flat(&self) -> &[f64] {
        self.0.as_slice()
    }

    /// `[count, 2·BLOCK]`
    pub(crate) fn flat_mut(&mut self) -> &mut [f64] {
        self.0.as_mut_slice()
    }
}
