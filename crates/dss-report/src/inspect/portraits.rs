//! What there is to see of layers that are not state spaces: attention for a made-up sequence, spectra of recurrent
//! matrices, kernels of dense convolutions, what a Fourier transform finds. Each mixer says what it has.

use dss_nn::Model;
use dss_nn::mixer::{StableEdge, Subject};
use dss_train::bridge;
use serde::Serialize;

use super::bank::{KernelBank, Peaks, peaks};
use super::causality::artificial_input;

/// Positions of the made-up sequence, at most: attention is drawn pixel by pixel.
const EXAMPLE: usize = 256;

/// One thing to see of one layer.
#[derive(Clone, Debug)]
pub struct LayerPortrait {
    /// The layer, from 0.
    pub layer: usize,
    /// What it is.
    pub name: &'static str,
    /// Its numbers.
    pub view: View,
}

/// The numbers of a portrait.
#[derive(Clone, Debug)]
pub enum View {
    /// Weights of attention.
    Attention(Weights),
    /// Eigenvalues of a matrix.
    Spectrum {
        /// (Re, Im).
        eigenvalues: Vec<[f64; 2]>,
        /// Where they lie when the state neither grows nor fades.
        edge: StableEdge,
    },
    /// Kernels of a dense convolution: C = 1, H = outputs · inputs.
    Kernels {
        /// The kernels.
        bank: KernelBank,
        /// Input channels: kernel i leads from channel i mod inputs.
        inputs: usize,
    },
    /// What a Fourier transform over the positions makes of a made-up sequence.
    Frequencies(Frequencies),
}

/// Outputs of a Fourier transform, from frequency 0 up.
#[derive(Clone, Debug)]
pub struct Frequencies {
    /// H: channels.
    pub channels: usize,
    /// `[frequencies, H]`
    pub values: Vec<f64>,
    /// The root mean square of all outputs over that of the inputs.
    pub gain: f64,
}

/// How much each row takes of each column: `[heads, rows, columns]`.
#[derive(Clone, Debug)]
pub struct Weights {
    /// How many heads there are.
    pub heads: usize,
    /// Positions that look.
    pub rows: usize,
    /// Positions that are looked at.
    pub columns: usize,
    /// `[heads, rows, columns]`.
    pub values: Vec<f64>,
}

/// The numbers of a portrait in short.
#[derive(Clone, Debug, Serialize)]
pub struct PortraitReport {
    /// The layer, from 0.
    pub layer: usize,
    /// What it is.
    pub name: &'static str,
    /// The numbers.
    #[serde(flatten)]
    pub numbers: PortraitNumbers,
}

/// What a portrait comes down to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum PortraitNumbers {
    /// Weights of attention, for a made-up sequence.
    Attention {
        /// How many heads there are.
        heads: usize,
        /// How many positions a position looks at: e to the entropy of its weights, the mean of all.
        positions_seen: f64,
        /// How many there are to look at.
        positions: usize,
        /// Mean distance to them in steps, where positions look at each other.
        distance: Option<f64>,
    },
    /// Eigenvalues of a matrix that is a step.
    Step {
        /// How many there are.
        eigenvalues: usize,
        /// The largest |λ|.
        radius: f64,
        /// How many have |λ| > 1.
        growing: usize,
    },
    /// Eigenvalues of a matrix that is a rate of change.
    Rate {
        /// How many there are.
        eigenvalues: usize,
        /// The largest Re λ.
        greatest_re: f64,
        /// How many have Re λ > 0.
        growing: usize,
    },
    /// Kernels of a dense convolution.
    Kernels {
        /// Where they peak.
        peaks: Peaks,
    },
    /// Outputs of a Fourier transform, for a made-up sequence.
    Frequencies {
        /// How many there are.
        frequencies: usize,
        /// The root mean square of all outputs over that of the inputs.
        gain: f64,
        /// The share of frequency 0, the mean of the sequence, in their squares.
        constant: f64,
        /// How many of them have half of the squares.
        half: usize,
    },
}

/// Of all layers of a model in f64.
pub fn portraits(model: &Model) -> Vec<LayerPortrait> {
    let l = model.io().len.min(EXAMPLE);
    let input = artificial_input(model.io().input, l, None, &model.device());
    let layers = model.portraits(input).into_iter().enumerate();
    let all = layers.flat_map(|(layer, portraits)| {
        portraits.into_iter().map(move |portrait| {
            let view = match portrait.subject {
                Subject::Attention(weights) => {
                    let [heads, rows, columns] = weights.dims();
                    let values = bridge::host(&weights);
                    View::Attention(Weights { heads, rows, columns, values })
                }
                Subject::Spectrum { eigenvalues, edge } => View::Spectrum { eigenvalues, edge },
                Subject::Kernels(kernels) => {
                    let [outputs, inputs, l] = kernels.dims();
                    let values = bridge::host(&kernels);
                    View::Kernels {
                        bank: KernelBank { c: 1, h: outputs * inputs, l, values },
                        inputs,
                    }
                }
                Subject::Frequencies { values, gain } => {
                    let [_, channels] = values.dims();
                    let values = bridge::host(&values);
                    View::Frequencies(Frequencies { channels, values, gain })
                }
            };
            LayerPortrait { layer, name: portrait.name, view }
        })
    });
    all.collect()
}

impl LayerPortrait {
    /// Its numbers in short.
    pub fn report(&self) -> PortraitReport {
        let numbers = match &self.view {
            View::Attention(weights) => weights.numbers(),
            View::Frequencies(frequencies) => frequencies.numbers(),
            View::Kernels { bank, .. } => PortraitNumbers::Kernels { peaks: peaks(bank.rows()) },
            View::Spectrum { eigenvalues, edge } => {
                let greatest = |f: fn(&[f64; 2]) -> f64| {
                    eigenvalues.iter().map(f).fold(f64::NEG_INFINITY, f64::max)
                };
                let count = eigenvalues.len();
                // Beyond rounding errors.
                let growing = |f: fn(&[f64; 2]) -> f64, edge: f64| {
                    eigenvalues.iter().filter(|z| f(z) > edge + 1e-9).count()
                };
                match edge {
                    StableEdge::UnitCircle => {
                        let size = |z: &[f64; 2]| z[0].hypot(z[1]);
                        let (radius, growing) = (greatest(size), growing(size, 1.0));
                        PortraitNumbers::Step { eigenvalues: count, radius, growing }
                    }
                    StableEdge::ImaginaryAxis => {
                        let re = |z: &[f64; 2]| z[0];
                        let (greatest_re, growing) = (greatest(re), growing(re, 0.0));
                        PortraitNumbers::Rate { eigenvalues: count, greatest_re, growing }
                    }
                }
            }
        };
        PortraitReport { layer: self.layer, name: self.name, numbers }
    }
}

impl Weights {
    /// The weights of one head.
    pub fn head(&self, i: usize) -> &[f64] {
        &self.values[i * self.rows * self.columns..][..self.rows * self.columns]
    }

    /// Absolute values count, as shares of their row's sum: what approximates attention may have some below 0.
    fn numbers(&self) -> PortraitNumbers {
        let (mut seen, mut distance) = (0.0, 0.0);
        for (i, row) in self.values.chunks_exact(self.columns).enumerate() {
            let sum: f64 = row.iter().map(|x| x.abs()).sum();
            let share = |x: &f64| x.abs() / sum.max(f64::MIN_POSITIVE);
            let shares = || row.iter().map(share);
            let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
            seen += shares().map(entropy).sum::<f64>().exp();
            let at = i % self.rows;
            distance += shares().enumerate().map(|(j, p)| p * at.abs_diff(j) as f64).sum::<f64>();
        }
        let count = (self.heads * self.rows) as f64;
        PortraitNumbers::Attention {
            heads: self.heads,
            positions_seen: seen / count,
            positions: self.columns,
            distance: (self.rows == self.columns).then_some(distance / count),
        }
    }
}

impl Frequencies {
    /// The root mean squares over the channels.
    pub fn sizes(&self) -> Vec<f64> {
        let size = |row: &[f64]| {
            let squares: f64 = row.iter().map(|x| x * x).sum();
            (squares / row.len() as f64).sqrt()
        };
        self.values.chunks_exact(self.channels).map(size).collect()
    }

    fn numbers(&self) -> PortraitNumbers {
        let mut squares: Vec<f64> = self.sizes().iter().map(|x| x * x).collect();
        let all = squares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let constant = squares[0] / all;
        squares.sort_by(|a, b| b.total_cmp(a));
        let mut sum = 0.0;
        let half = squares.iter().take_while(|x| {
            let before = sum;
            sum += **x;
            before < 0.5 * all
        });
        let (half, frequencies) = (half.count(), squares.len());
        PortraitNumbers::Frequencies { frequencies, gain: self.gain, constant, half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_in_short() {
        // One head looks at itself, the other evenly at both.
        let weights = Weights {
            heads: 2,
            rows: 2,
            columns: 2,
            values: vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5, 0.5, 0.5],
        };
        let PortraitNumbers::Attention { positions_seen, distance, .. } = weights.numbers() else {
            panic!("attention")
        };
        assert!((positions_seen - 1.5).abs() < 1e-12, "{positions_seen}");
        assert_eq!(distance, Some(0.25));
    }

    #[test]
    fn frequencies_in_short() {
        // Squares of 1, 4, 0 and 3 over the channels.
        let values = vec![1.0, 0.0, 0.0, -2.0, 0.0, 0.0, 3f64.sqrt(), 0.0];
        let found = Frequencies { channels: 2, values, gain: 2.0 }.numbers();
        let PortraitNumbers::Frequencies { frequencies, constant, half, .. } = found else {
            panic!("frequencies")
        };
        assert!((constant - 0.125).abs() < 1e-12, "{constant}");
        assert_eq!((frequencies, half), (4, 1));
    }

    #[test]
    fn spectra_in_short() {
        let portrait = |edge| LayerPortrait {
            layer: 0,
            name: "A",
            view: View::Spectrum { eigenvalues: vec![[0.6, 0.8], [-2.0, 0.0]], edge },
        };
        let PortraitNumbers::Step { radius, growing, eigenvalues } =
            portrait(StableEdge::UnitCircle).report().numbers
        else {
            panic!("a step")
        };
        assert_eq!((radius, growing, eigenvalues), (2.0, 1, 2));
        let PortraitNumbers::Rate { greatest_re, growing, .. } =
            portrait(StableEdge::ImaginaryAxis).report().numbers
        else {
            panic!("a rate")
        };
        assert_eq!((greatest_re, growing), (0.6, 1));
    }
}
