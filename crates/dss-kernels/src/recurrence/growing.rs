//! Modes with Re λ > 0, in f64: they are few, and their powers move with the position.

use super::{PERIOD, Recurrence, RecurrentState};
use crate::complex::{C64, exp};
use crate::kernel::KernelConfig;
use crate::real::Real;

/// s of one mode, and the powers e^{ζk}, e^{ζ(L−1−k)} of the last step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct GrowingMode {
    pub s: C64,
    fall: C64,
    rise: C64,
}

impl GrowingMode {
    /// The mode after `position` steps, its powers made as those steps would have made them.
    pub(super) fn at(position: usize, norm_len: usize, zeta: &[C64; 3], s: C64) -> Self {
        let mut mode = Self { s, ..Self::default() };
        if let Some(last) = position.checked_sub(1) {
            for k in last / PERIOD * PERIOD..=last {
                mode.move_to(k, norm_len, zeta);
            }
        }
        mode
    }

    /// The powers of step k, from those of the step before; `zeta`: ζ, e^ζ and e^{−ζ}.
    #[inline(always)]
    fn move_to(&mut self, k: usize, norm_len: usize, &[zeta, down, up]: &[C64; 3]) {
        // A steep mode's power would overflow on the way back up.
        if k.is_multiple_of(PERIOD) || zeta.re < -8.0 {
            self.fall = exp(zeta * k as f64);
            self.rise = exp(zeta * (norm_len - 1 - k) as f64);
        } else {
            self.fall *= down;
            self.rise *= up;
        }
    }
}

impl<T: Real> Recurrence<T> {
    /// y += the part of the modes with Re λ > 0 in step k.
    pub(super) fn growing_step(
        &self,
        state: &mut RecurrentState<T>,
        k: usize,
        u: &[T],
        y: &mut [T],
    ) {
        let KernelConfig { channels, h: features, norm_len, .. } = self.config;
        let modes = self.growing.len();
        for h in 0..features {
            for at in h * modes..(h + 1) * modes {
                let mode = &mut state.growing[at];
                mode.move_to(k, norm_len, &self.growing_zeta[at]);
                mode.s += mode.fall * u[h].to_f64();
                for channel in 0..channels {
                    let c = self.growing_c[at * channels + channel];
                    y[channel * features + h] += T::from_f64((c * mode.rise * mode.s).re);
                }
            }
        }
    }
}
