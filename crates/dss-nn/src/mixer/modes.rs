//! Λ and Δ of a state space as plain numbers, for inspection: which modes grow, how fast the others fade.
//!
//! A mode fades as |e^{λΔ}| = e^{Re(λ)·Δ} per step: its half-life is ln 2 / (−Re(λ)·Δ) steps. With the bilinear rule it
//! is |(1 + λΔ/2)/(1 − λΔ/2)| per step. The modes of S4 are the eigenvalues of Λ − PP*, which no one can compute well
//! (those of HiPPO are −1, −2, …, −N, with eigenvectors that are all but parallel): it has Λ, but no half-lives here.

use std::f64::consts::LN_2;

use burn::module::Param;
use burn::tensor::Tensor;

/// One λ: real and imaginary part.
pub type Eigenvalue = [f64; 2];

/// Λ and Δ of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// Λ: `[S·N]`, system by system; of S4 and S4D one of each conjugate pair.
    pub lambda: Vec<Eigenvalue>,
    /// Δ_log of each channel for the real part of Λ: `[H]`.
    pub delta_log_re: Vec<f64>,
    /// The same for the imaginary part; equal to the other if they are tied.
    pub delta_log_im: Vec<f64>,
    /// Whether the two are the same parameter.
    pub tied: bool,
    /// S: channel h has the Λ of system h mod S.
    pub systems: usize,
    /// What a step does to a mode.
    pub step: ModeStep,
    /// Λ at initialisation, unless it was drawn at random.
    pub initial: Vec<Eigenvalue>,
    /// What that initialisation is called.
    pub initial_name: &'static str,
}

/// What a step does to a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeStep {
    /// Times e^{λΔ}.
    Exponential,
    /// Times (1 + λΔ/2)/(1 − λΔ/2).
    Bilinear,
    /// Λ is not all of the system: S4.
    LowRank,
}

impl Modes {
    /// How many modes have Re λ > 0.
    pub fn growing(&self) -> usize {
        self.lambda.iter().filter(|z| z[0] > 0.0).count()
    }

    /// Whether there is nothing but decay: Λ is real, and Δ is 1.
    pub fn are_decays(&self) -> bool {
        let mut delta_logs = self.delta_log_re.iter().chain(&self.delta_log_im);
        self.lambda.iter().all(|z| z[1] == 0.0) && delta_logs.all(|x| *x == 0.0)
    }

    /// Half-lives in steps of all modes with Re λ ≤ 0 in all their channels, `[modes·H/S]`; infinite for Re λ = 0. None of S4.
    pub fn half_lives(&self) -> Vec<f64> {
        if self.step == ModeStep::LowRank {
            return Vec::new();
        }
        let per_system = self.lambda.len() / self.systems;
        let fading = self.lambda.iter().enumerate().filter(|(_, z)| z[0] <= 0.0);
        let deltas = |system: usize| {
            let all = self.delta_log_re.iter().zip(&self.delta_log_im);
            all.skip(system).step_by(self.systems)
        };
        let half_lives = fading.flat_map(|(i, z)| {
            let deltas = deltas(i / per_system);
            deltas.map(|d| LN_2 / self.decay(*z, [d.0.exp(), d.1.exp()]))
        });
        half_lives.collect()
    }

    /// −ln of what is left after one step of a mode with Re λ ≤ 0.
    fn decay(&self, [re, im]: Eigenvalue, delta: [f64; 2]) -> f64 {
        let (x, y) = (re * delta[0], im * delta[1]);
        match self.step {
            // |1 − z/2|²/|1 + z/2|² = 1 − 2x/|1 + z/2|².
            ModeStep::Bilinear => {
                let (a, b) = (1.0 + 0.5 * x, 0.5 * y);
                0.5 * (2.0 * x.abs() / (a * a + b * b)).ln_1p()
            }
            ModeStep::Exponential | ModeStep::LowRank => x.abs(),
        }
    }
}

/// The numbers of a parameter in f64.
pub(super) fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f64> {
    param.val().into_data().iter::<f64>().collect()
}

/// Λ of log(−Re λ) and Im λ.
pub(super) fn left_lambda(re: &Param<Tensor<1>>, im: &Param<Tensor<1>>) -> Vec<Eigenvalue> {
    numbers(re).iter().zip(numbers(im)).map(|(re, im)| [-re.exp(), im]).collect()
}

/// λ as two numbers.
pub(super) fn pairs(lambda: &[dss_kernels::C64]) -> Vec<Eigenvalue> {
    lambda.iter().map(|z| [z.re, z.im]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(lambda: Vec<Eigenvalue>, re: Vec<f64>, im: Vec<f64>, step: ModeStep) -> Modes {
        let (tied, initial, initial_name) = (re == im, Vec::new(), "");
        let (delta_log_re, delta_log_im, systems) = (re, im, 1);
        Modes { lambda, delta_log_re, delta_log_im, tied, systems, step, initial, initial_name }
    }

    #[test]
    fn half_lives_by_hand() {
        let ln2 = 2f64.ln();
        let lambda = vec![[-0.5, 3.0], [0.25, 0.0], [0.0, 1.0]];
        let softmax = modes(lambda, vec![ln2, 0.0], vec![7.0, 8.0], ModeStep::Exponential);
        assert_eq!(softmax.growing(), 1);
        // λ = −½ at Δ = 2 halves in ln 2 steps, at Δ = 1 in twice as many; λ = i never; λ = ¼ does not fade.
        let found = softmax.half_lives();
        let known = [ln2, 2.0 * ln2, f64::INFINITY, f64::INFINITY];
        let equal = |(a, b): (&f64, f64)| *a == b || (a - b).abs() < 1e-15;
        assert!(found.len() == 4 && found.iter().zip(known).all(equal), "{found:?}");
    }

    #[test]
    fn half_lives_of_conjugate_pairs() {
        let delta = vec![0.0, 2f64.ln()];
        let of = |step| modes(vec![[-1.0, 3.0]], delta.clone(), delta.clone(), step).half_lives();
        assert!((of(ModeStep::Exponential)[1] - 0.5 * LN_2).abs() < 1e-15);
        // λ = −1 + 3i: |1 + λ/2|² = 0.25 + 2.25, |1 − λ/2|² = 2.25 + 2.25 at Δ = 1.
        let known = LN_2 / (0.5 * (4.5f64 / 2.5).ln());
        assert!((of(ModeStep::Bilinear)[0] / known - 1.0).abs() < 1e-14);
        assert!(of(ModeStep::LowRank).is_empty());
    }
}
