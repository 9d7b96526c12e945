//! One position through a mixer, as nodes: from u `[B, H]` and the state to v `[B, H]` and the next state.
//!
//! | mixer | state of all layers |
//! |-------|---------------------|
//! | `dss`, `s4d` | f32 `[2·layers, B, H, N]`: real and imaginary part of every mode (N/2 of them in `s4d`) |
//! | `s4` | f64 `[2·layers, B, H, N/2]` |
//! | `lru`, `s5` | f32 `[2·layers, B, N]` (N/2 in `s5`) |
//! | `gru` | f32 `[layers, B, H]` |
//! | `lstm` | f32 `[2·layers, B, H]`: h and c |

use std::f64::consts::FRAC_PI_2;

use dss_format::{Gelu, MixerConfig, ModelConfig};
use dss_kernels::C64;

use super::graph::{Attribute, DOUBLE, FLOAT, Graph};
use super::modes::{self, LowRank, Modes, SharedModes};
use super::reader::Arrays;
use crate::error::Result;

/// The mixers that have a step here.
pub(super) const WRITTEN: &str = "dss, s4d, s4, lru, s5, gru and lstm";

/// How a mixer's state looks: `parts` tensors `[B, ..shape]` per layer.
pub(super) struct StateForm {
    pub parts: usize,
    pub shape: Vec<usize>,
    /// FLOAT or DOUBLE.
    pub kind: i64,
}

impl StateForm {
    /// `None` for a mixer that is not written.
    pub(super) fn of(mixer: &MixerConfig, h: usize) -> Option<Self> {
        let (parts, shape, kind) = match mixer {
            MixerConfig::Dss(dss) => (2, vec![h, dss.n], FLOAT),
            MixerConfig::S4d(s4d) => (2, vec![h, s4d.n / 2], FLOAT),
            MixerConfig::S4(s4) => (2, vec![h, s4.n / 2], DOUBLE),
            MixerConfig::Lru(lru) => (2, vec![lru.n], FLOAT),
            MixerConfig::S5(s5) => (2, vec![s5.n / 2], FLOAT),
            MixerConfig::Gru(_) => (1, vec![h], FLOAT),
            MixerConfig::Lstm(_) => (2, vec![h], FLOAT),
            _ => return None,
        };
        Some(Self { parts, shape, kind })
    }
}

/// What a mixer did at one position.
pub(super) struct Step {
    /// Its output `[B, H]`.
    pub v: String,
    /// The parts of its next state, `[B, ..]` each.
    pub next: Vec<String>,
    /// Whether it reads the position, since some of its modes grow.
    pub grows: bool,
}

impl Graph {
    /// One part of the state of all layers.
    pub(super) fn part_of_state(&mut self, index: usize) -> String {
        let index = self.integers(&[], &[index as i64]);
        self.node("Gather", &["state", &index], &[Attribute::Int("axis", 0)])
    }

    /// The next state of all layers.
    pub(super) fn next_state(&mut self, parts: &[String]) {
        let first = self.integers(&[1], &[0]);
        let parts: Vec<String> =
            parts.iter().map(|part| self.node("Unsqueeze", &[part, &first], &[])).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.named("Concat", &parts, "next_state", &[Attribute::Int("axis", 0)]);
    }

    /// The mixer of a layer; `len` is the training length.
    ///
    /// # Panics
    /// If it is not one of those with a [`StateForm`].
    pub(super) fn mixer(
        &mut self,
        arrays: &Arrays<'_>,
        layer: &str,
        config: &ModelConfig,
        len: usize,
        u: &str,
        state: &[String],
    ) -> Result<Step> {
        let h = config.h;
        let mut grows = false;
        let (y, next, glu) = match &config.mixer {
            MixerConfig::Dss(dss) => {
                let norm_len = dss.shared().taps(len);
                let modes = modes::dss(dss, arrays, layer, h, norm_len);
                grows = !modes.growing.is_empty();
                let (y, next) = self.modes(layer, &modes, [h, norm_len], u, state);
                (y, next, dss.glu)
            }
            MixerConfig::S4d(s4d) => {
                let modes = modes::s4d(s4d, arrays, layer, h);
                let (y, next) = self.modes(layer, &modes, [h, len], u, state);
                (y, next, s4d.glu)
            }
            MixerConfig::S4(s4) => {
                let system = modes::s4(s4, arrays, layer, h, s4.shared().taps(len))?;
                let (y, next) = self.low_rank(layer, &system, h, u, state);
                (y, next, s4.glu)
            }
            MixerConfig::Lru(lru) => {
                let (y, next) = self.shared_modes(layer, &modes::lru(arrays, layer), h, u, state);
                (y, next, lru.glu)
            }
            MixerConfig::S5(s5) => {
                let (y, next) = self.shared_modes(layer, &modes::s5(arrays, layer), h, u, state);
                (y, next, s5.glu)
            }
            MixerConfig::Gru(_) => return Ok(self.gru(arrays, layer, h, u, state)),
            MixerConfig::Lstm(_) => return Ok(self.lstm(arrays, layer, h, u, state)),
            other => unreachable!("{} was refused", other.kind()),
        };
        let gelu = config.mixer.settings().ssm().map_or(Gelu::Erf, |ssm| ssm.gelu);
        let v = self.readout(arrays, layer, h, &y, u, (glu, gelu));
        Ok(Step { v, next, grows })
    }

    /// Out(GELU(y + D·u)) of y and u `[B, H]`.
    fn readout(
        &mut self,
        arrays: &Arrays<'_>,
        layer: &str,
        h: usize,
        y: &str,
        u: &str,
        (glu, gelu): (bool, Gelu),
    ) -> String {
        let name = format!("{layer}.mixer.d");
        let d = self.floats(&name, &[h], &arrays.get(&name));
        let through = self.node("Mul", &[u, &d], &[]);
        let v = self.node("Add", &[y, &through], &[]);
        let v = self.gelu(&v, gelu);
        let outputs = if glu { 2 * h } else { h };
        let v = self.linear(arrays, &format!("{layer}.mixer.out"), &v, h, outputs);
        if !glu {
            return v;
        }
        let [value, gate] = self.split(&v);
        let gate = self.node("Sigmoid", &[&gate], &[]);
        self.node("Mul", &[&value, &gate], &[])
    }

    /// s' = ā·s + u, y = Re Σ_n c_n·s'_n, with modes of each channel. Of modes that grow, at position k,
    /// s' = s + e^(ζk)·u and c_n·e^(ζ(L−1−k)) in the place of c_n.
    ///
    /// As in `dss_kernels::Recurrence`, ā is the sum of two f32 numbers: one alone is wrong by up to 6e-8 per step,
    /// always in the same direction.
    fn modes(
        &mut self,
        layer: &str,
        modes: &Modes,
        [h, len]: [usize; 2],
        u: &str,
        state: &[String],
    ) -> (String, Vec<String>) {
        let shape = [h, modes.n];
        let mut table = |name: &str, numbers: Vec<f64>| {
            self.floats(&format!("{layer}.{name}"), &shape, &numbers)
        };
        let low = |x: f64| x - f64::from(x as f32);
        let [re, im, re_low, im_low] = [
            table("a_re", modes.a.iter().map(|a| a.re).collect()),
            table("a_im", modes.a.iter().map(|a| a.im).collect()),
            table("a_re_low", modes.a.iter().map(|a| low(a.re)).collect()),
            table("a_im_low", modes.a.iter().map(|a| low(a.im)).collect()),
        ];
        let c_re = table("c_re", modes.c.iter().map(|c| c.re).collect());
        let c_im = table("c_im", modes.c.iter().map(|c| c.im).collect());
        let last = self.integers(&[1], &[2]);
        let wide = self.node("Unsqueeze", &[u, &last], &[]);
        let (s_re, s_im) = (&state[0], &state[1]);
        let high_re = self.products("Sub", [&re, s_re, &im, s_im]);
        let low_re = self.products("Sub", [&re_low, s_re, &im_low, s_im]);
        let high_im = self.products("Add", [&re, s_im, &im, s_re]);
        let low_im = self.products("Add", [&re_low, s_im, &im_low, s_re]);
        let mut next_re = self.node("Add", &[&high_re, &low_re], &[]);
        let mut next_im = self.node("Add", &[&high_im, &low_im], &[]);
        let mut c = [c_re, c_im];
        if modes.growing.is_empty() {
            next_re = self.node("Add", &[&next_re, &wide], &[]);
        } else {
            let [[in_re, in_im], out] = self.growing(layer, &modes.growing, [h, modes.n, len]);
            let [in_re, in_im] = [in_re, in_im].map(|part| self.node("Mul", &[&part, &wide], &[]));
            next_re = self.node("Add", &[&next_re, &in_re], &[]);
            next_im = self.node("Add", &[&next_im, &in_im], &[]);
            let [c_re, c_im] = c;
            c = [
                self.products("Sub", [&c_re, &out[0], &c_im, &out[1]]),
                self.products("Add", [&c_re, &out[1], &c_im, &out[0]]),
            ];
        }
        let terms = self.products("Sub", [&c[0], &next_re, &c[1], &next_im]);
        let y = self.node("ReduceSum", &[&terms, &last], &[Attribute::Int("keepdims", 0)]);
        (y, vec![next_re, next_im])
    }

    /// e^(ζk) and e^(ζ(L−1−k)) at position k, real and imaginary part, `[B, H, N]` in f32: angles are as large as L, so the
    /// powers are made in f64.
    fn growing(&mut self, layer: &str, zeta: &[C64], [h, n, len]: [usize; 3]) -> [[String; 2]; 2] {
        let mut table = |part: &str, of: fn(&C64) -> f64| {
            let numbers: Vec<f64> = zeta.iter().map(of).collect();
            self.doubles(&format!("{layer}.zeta_{part}"), &[h, n], &numbers)
        };
        let (re, im) = (table("re", |z| z.re), table("im", |z| z.im));
        let last = self.doubles(&format!("{layer}.last"), &[], &[len as f64 - 1.0]);
        let quarter = self.doubles(&format!("{layer}.quarter"), &[], &[FRAC_PI_2]);
        let wide = self.integers(&[2], &[1, 2]);
        let k = self.node("Unsqueeze", &["position", &wide], &[]);
        let left = self.node("Sub", &[&last, &k], &[]);
        [k, left].map(|k| {
            let (size, angle) =
                (self.node("Mul", &[&re, &k], &[]), self.node("Mul", &[&im, &k], &[]));
            let size = self.node("Exp", &[&size], &[]);
            let ahead = self.node("Add", &[&angle, &quarter], &[]);
            // ONNX Runtime has the sine of f64, but not the cosine.
            [ahead, angle].map(|angle| {
                let part = self.node("Sin", &[&angle], &[]);
                let part = self.node("Mul", &[&size, &part], &[]);
                self.node("Cast", &[&part], &[Attribute::Int("to", FLOAT)])
            })
        })
    }

    /// x' = ā·x − q·Re(r·x) + B̄·u, y = Re Σ_n c_n·x'_n, in f64 as in `dss_kernels::s4::Recurrence`: the rank-one term is
    /// large, and what f32 loses of it in each step would add up.
    fn low_rank(
        &mut self,
        layer: &str,
        system: &LowRank,
        h: usize,
        u: &str,
        state: &[String],
    ) -> (String, Vec<String>) {
        let LowRank { a, q, r, b, c, n } = system;
        let tables = [("a", a), ("q", q), ("r", r), ("b", b), ("c", c)];
        let [a, q, r, b, c] = tables.map(|(name, values)| {
            let mut table = |part: &str, of: fn(&C64) -> f64| {
                let numbers: Vec<f64> = values.iter().map(of).collect();
                self.doubles(&format!("{layer}.{name}_{part}"), &[h, *n], &numbers)
            };
            [table("re", |z| z.re), table("im", |z| z.im)]
        });
        let last = self.integers(&[1], &[2]);
        let wide = self.node("Cast", &[u], &[Attribute::Int("to", DOUBLE)]);
        let wide = self.node("Unsqueeze", &[&wide, &last], &[]);
        let (x_re, x_im) = (&state[0], &state[1]);
        let terms = self.products("Sub", [&r[0], x_re, &r[1], x_im]);
        let through = self.node("ReduceSum", &[&terms, &last], &[Attribute::Int("keepdims", 1)]);
        let decayed = [
            self.products("Sub", [&a[0], x_re, &a[1], x_im]),
            self.products("Add", [&a[0], x_im, &a[1], x_re]),
        ];
        let next = [0, 1].map(|part| {
            let more = self.products("Sub", [&b[part], &wide, &q[part], &through]);
            self.node("Add", &[&decayed[part], &more], &[])
        });
        let terms = self.products("Sub", [&c[0], &next[0], &c[1], &next[1]]);
        let y = self.node("ReduceSum", &[&terms, &last], &[Attribute::Int("keepdims", 0)]);
        let y = self.node("Cast", &[&y], &[Attribute::Int("to", FLOAT)]);
        (y, next.into())
    }

    /// x' = λ·x + B u, y = Re(C x'), with modes that all channels share.
    fn shared_modes(
        &mut self,
        layer: &str,
        modes: &SharedModes,
        h: usize,
        u: &str,
        state: &[String],
    ) -> (String, Vec<String>) {
        let SharedModes { re, im, b, c } = modes;
        let n = re.len();
        let mut table = |name: &str, shape: &[usize], numbers: &[f64]| {
            self.floats(&format!("{layer}.{name}"), shape, numbers)
        };
        let (re, im) = (table("a_re", &[n], re), table("a_im", &[n], im));
        let (b, c) = (table("b", &[2 * n, h], b), table("c", &[h, 2 * n], c));
        let transposed = || [Attribute::Int("transB", 1)];
        let z = self.node("Gemm", &[u, &b], &transposed());
        let [z_re, z_im] = self.split(&z);
        let (x_re, x_im) = (&state[0], &state[1]);
        let next_re = self.products("Sub", [&re, x_re, &im, x_im]);
        let next_re = self.node("Add", &[&next_re, &z_re], &[]);
        let next_im = self.products("Add", [&re, x_im, &im, x_re]);
        let next_im = self.node("Add", &[&next_im, &z_im], &[]);
        let both = self.node("Concat", &[&next_re, &next_im], &[Attribute::Int("axis", 1)]);
        let y = self.node("Gemm", &[&both, &c], &transposed());
        (y, vec![next_re, next_im])
    }

    /// What `N` gates get of the input and of the state.
    fn gates<const N: usize>(
        &mut self,
        arrays: &Arrays<'_>,
        layer: &str,
        h: usize,
        [u, state]: [&str; 2],
    ) -> [[String; N]; 2] {
        [("input", u), ("hidden", state)].map(|(name, x)| {
            let all = self.linear(arrays, &format!("{layer}.mixer.{name}"), x, h, N * h);
            self.split(&all)
        })
    }

    /// r = σ(z₁ + a₁), g = σ(z₂ + a₂), c = tanh(z₃ + r·a₃), h' = c + g·(h − c)
    fn gru(
        &mut self,
        arrays: &Arrays<'_>,
        layer: &str,
        h: usize,
        u: &str,
        state: &[String],
    ) -> Step {
        let before = &state[0];
        let [z, a] = self.gates::<3>(arrays, layer, h, [u, before]);
        let [r, g] = [0, 1].map(|i| {
            let sum = self.node("Add", &[&z[i], &a[i]], &[]);
            self.node("Sigmoid", &[&sum], &[])
        });
        let reset = self.node("Mul", &[&r, &a[2]], &[]);
        let sum = self.node("Add", &[&z[2], &reset], &[]);
        let c = self.node("Tanh", &[&sum], &[]);
        let kept = self.node("Sub", &[before, &c], &[]);
        let kept = self.node("Mul", &[&g, &kept], &[]);
        let v = self.node("Add", &[&c, &kept], &[]);
        Step { next: vec![v.clone()], v, grows: false }
    }

    /// i = σ(a₁), f = σ(a₂), g = tanh(a₃), o = σ(a₄), c' = f·c + i·g, h' = o·tanh(c')
    fn lstm(
        &mut self,
        arrays: &Arrays<'_>,
        layer: &str,
        h: usize,
        u: &str,
        state: &[String],
    ) -> Step {
        let [z, a] = self.gates::<4>(arrays, layer, h, [u, &state[0]]);
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| {
            let sum = self.node("Add", &[&z[gate], &a[gate]], &[]);
            self.node(if gate == 2 { "Tanh" } else { "Sigmoid" }, &[&sum], &[])
        });
        let c = self.products("Add", [&f, &state[1], &i, &g]);
        let bent = self.node("Tanh", &[&c], &[]);
        let v = self.node("Mul", &[&o, &bent], &[]);
        Step { next: vec![v.clone(), c], v, grows: false }
    }
}
