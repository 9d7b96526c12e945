//! Which state space it is, and its tensors as ours.
//!
//! | theirs | ours |
//! |--------|------|
//! | `Lambda` `[N, 2]`, or `Lambda_log_neg_re` and `Lambda_im` `[N]`; `log_dt` `[H]` or `[H, 2]`; `W` `[C, H, N, 2]` | DSS |
//! | `log_A_real`, `A_imag` `[H, N/2]`; `log_dt` `[H]`; `C` `[H, N/2, 2]` | S4D with S = H; B = 1 |
//! | `A_real`, `A_imag` `[S, N/2]`; `inv_dt` `[H, 1]`; `B` `[1, S, N/2, 2]`; `C` `[C, H, N/2, 2]` | S4D: λ = −exp(re) − i·im, so λ and B·C are conjugated; B is multiplied into C |
//! | the same with `P` `[1, S, N/2, 2]` and `l_kernel` | S4: A = Λ − PP*, all conjugated; C is C̃ for `l_kernel` steps |

use dss_format::MixerConfig;
use dss_format::mixer::{
    Delta, Discretisation, DssConfig, LambdaInit, S4Config, S4dConfig, Variant, ssm,
};
use dss_kernels::s4;

use super::choices::Choices;
use super::names::Names;
use super::tensors::Tensors;
use super::{DeltaTransform, ImportOptions, NamedArray};
use crate::error::{Error, Result};

pub(super) struct Kernel {
    kind: Kind,
    h: usize,
    /// States, stored or half of them stored.
    n: usize,
    /// C: kernels per channel.
    kernels: usize,
    /// S.
    ssms: usize,
    glu: bool,
    kernel_len: usize,
    delta_range: Option<(f64, f64)>,
    /// L.
    pub len: usize,
}

enum Kind {
    Dss {
        variant: Variant,
        delta: Delta,
    },
    MinimalS4d,
    S4d {
        discretisation: Discretisation,
        delta: DeltaTransform,
    },
    /// With the length that C̃ is stored for.
    S4 {
        delta: DeltaTransform,
        stored_len: usize,
    },
}

impl Kernel {
    /// From the tensors of the first layer.
    pub(super) fn recognise(
        tensors: &Tensors<'_>,
        names: &Names,
        h: usize,
        choices: &mut Choices,
        options: &ImportOptions,
    ) -> Result<Self> {
        let system = names.system(0);
        let place = format!("{system}.kernel");
        let name = |part: &str| format!("{place}.{part}");
        refuse_two_kernels(tensors, names, h)?;
        let glu = is_gated(tensors, names, h)?;
        let axis = |part: &str, axes: usize, axis: usize| -> Result<usize> {
            let shape = tensors.shape(&name(part))?;
            match shape.get(axis) {
                Some(size) if shape.len() == axes => Ok(*size),
                _ => {
                    let what = format!("{} must have {axes} axes, but is {shape:?}", name(part));
                    Err(Error::model(what))
                }
            }
        };
        let (mut kernel_len, mut kernels) = (0, 1);
        let (kind, n, ssms, len);
        if tensors.has(&name("Lambda")) || tensors.has(&name("Lambda_log_neg_re")) {
            let softmax = tensors.has(&name("Lambda"));
            kernels = axis("W", 4, 0)?;
            n = axis("W", 4, 2)?;
            ssms = 1;
            let variant = choices.variant(options.variant, softmax)?;
            let tied = tensors.shape(&name("log_dt"))?.len() == 1;
            let delta = if tied { Delta::Tied } else { Delta::Separate };
            kind = Kind::Dss { variant, delta };
            kernel_len = choices.kernel_len(options.kernel_len, kernels == 2)?;
            len = choices.len(options.len, softmax)?;
        } else if tensors.has(&name("log_A_real")) {
            kind = Kind::MinimalS4d;
            n = 2 * axis("log_A_real", 2, 1)?;
            ssms = h;
            len = choices.len(options.len, false)?;
        } else if tensors.has(&name("A_real")) {
            n = 2 * axis("A_real", 2, 1)?;
            ssms = axis("A_real", 2, 0)?;
            kernels = axis("C", 4, 0)?;
            let delta = choices.delta(options.delta)?;
            if tensors.has(&name("P")) {
                let rank = axis("P", 4, 0)?;
                if rank != 1 {
                    let what = "our S4 has a correction of rank 1";
                    return Err(Error::unsupported(format!("rank: {rank}"), what));
                }
                let stored = tensors.take_integer(&name("l_kernel"))?;
                let stored_len = usize::try_from(stored).ok().filter(|len| *len < 1 << 24);
                let stored_len = stored_len.ok_or_else(|| {
                    Error::model(format!("{} is {stored}, not a length", name("l_kernel")))
                })?;
                kind = Kind::S4 { delta, stored_len };
                len = match (options.len, stored_len) {
                    (None, 0) => choices.len(None, true)?,
                    (Some(len), _) | (None, len) => len,
                };
            } else {
                let discretisation = choices.discretisation(options.discretisation)?;
                kind = Kind::S4d { discretisation, delta };
                len = choices.len(options.len, false)?;
            }
        } else {
            return Err(Error::model(format!(
                "the kernel {place}.* has neither Lambda, Lambda_log_neg_re, log_A_real nor A_real: it is of another \
                 kind, or of an older version of that program"
            )));
        }
        if !(1..=2).contains(&kernels) {
            let what = format!(
                "{kernels} kernels per channel; our layers have one or, in two directions, two"
            );
            return Err(Error::unsupported("channels", what));
        }
        choices.agrees("bidirectional", None, kernels == 2, &place)?;
        let delta_range = choices.delta_range();
        Ok(Self { kind, h, n, kernels, ssms, glu, kernel_len, delta_range, len })
    }

    pub(super) fn bidirectional(&self) -> bool {
        self.kernels == 2
    }

    /// The settings of our mixer.
    pub(super) fn mixer(&self) -> MixerConfig {
        let Self { n, ssms, glu, kernel_len, .. } = *self;
        let known = DssConfig::default();
        let (delta_min, delta_max) = self.delta_range.unwrap_or((known.delta_min, known.delta_max));
        match self.kind {
            Kind::Dss { variant, delta } => {
                let lambda_init =
                    if n > ssm::MAX_N { LambdaInit::Random } else { LambdaInit::default() };
                DssConfig {
                    n,
                    variant,
                    delta,
                    lambda_init,
                    ssms,
                    delta_min,
                    delta_max,
                    kernel_len,
                    glu,
                    ..known
                }
                .into()
            }
            Kind::MinimalS4d => {
                S4dConfig { n, ssms, delta_min, delta_max, glu, ..S4dConfig::default() }.into()
            }
            Kind::S4d { discretisation, .. } => {
                let defaults = S4dConfig::default();
                S4dConfig { n, ssms, delta_min, delta_max, glu, discretisation, ..defaults }.into()
            }
            Kind::S4 { .. } => {
                S4Config { n, ssms, delta_min, delta_max, glu, ..S4Config::default() }.into()
            }
        }
    }

    /// The arrays of layer i's mixer.
    pub(super) fn layer(
        &self,
        tensors: &Tensors<'_>,
        names: &Names,
        i: usize,
    ) -> Result<Vec<NamedArray>> {
        let Self { h, n, kernels: c, ssms, .. } = *self;
        let (system, block) = (names.system(i), names.block(i));
        let take =
            |part: &str, shape: &[usize]| tensors.take(&format!("{system}.kernel.{part}"), shape);
        let per_system = |rest: &[usize]| -> Vec<usize> {
            (ssms > 1).then_some(ssms).into_iter().chain(rest.iter().copied()).collect()
        };
        let pairs = n / 2;
        let mut all: Vec<NamedArray> = match self.kind {
            Kind::Dss { variant, delta } => {
                let lambda = if variant == Variant::Softmax {
                    take("Lambda", &[n, 2])?
                } else {
                    interleaved(&take("Lambda_log_neg_re", &[n])?, &take("Lambda_im", &[n])?)
                };
                let shape = if delta == Delta::Tied { vec![h] } else { vec![h, 2] };
                let delta_log = take("log_dt", &shape)?;
                vec![
                    ("lambda", vec![n, 2], lambda),
                    ("delta_log", shape, delta_log),
                    ("w", vec![c, h, n, 2], take("W", &[c, h, n, 2])?),
                ]
            }
            Kind::MinimalS4d => vec![
                ("lambda_re", per_system(&[pairs]), take("log_A_real", &[h, pairs])?),
                ("lambda_im", per_system(&[pairs]), take("A_imag", &[h, pairs])?),
                ("c", vec![1, h, pairs, 2], take("C", &[h, pairs, 2])?),
                ("delta_log", vec![h], take("log_dt", &[h])?),
            ],
            Kind::S4d { delta, .. } => {
                let b = take("B", &[ssms, pairs, 2])?;
                let mut products = take("C", &[c, h, pairs, 2])?;
                multiply_conjugated(&mut products, &b, h, ssms, pairs);
                vec![
                    ("lambda_re", per_system(&[pairs]), take("A_real", &[ssms, pairs])?),
                    ("lambda_im", per_system(&[pairs]), take("A_imag", &[ssms, pairs])?),
                    ("c", vec![c, h, pairs, 2], products),
                    ("delta_log", vec![h], log_delta(take("inv_dt", &[h])?, delta)),
                ]
            }
            Kind::S4 { delta, stored_len } => {
                if i > 0 {
                    let name = format!("{system}.kernel.l_kernel");
                    let found = tensors.take_integer(&name)?;
                    if found != stored_len as i64 {
                        let what =
                            format!("{name} is {found}, but that of layer 0 is {stored_len}");
                        return Err(Error::model(what));
                    }
                }
                let lambda_re = take("A_real", &[ssms, pairs])?;
                let lambda_im = take("A_imag", &[ssms, pairs])?;
                let p = conjugated(take("P", &[ssms, pairs, 2])?);
                let b = conjugated(take("B", &[ssms, pairs, 2])?);
                let c_stored = conjugated(take("C", &[c, h, pairs, 2])?);
                let delta_log = log_delta(take("inv_dt", &[h])?, delta);
                let params = s4::Params {
                    lambda_re: &lambda_re,
                    lambda_im: &lambda_im,
                    p: &p,
                    b: &b,
                    c: &c_stored,
                    delta_log: &delta_log,
                };
                let config = |len| s4::KernelConfig::new(h, n, len).channels(c).systems(ssms);
                let c_ours = match stored_len {
                    // Never used, so not yet corrected.
                    0 => s4::correct_length(&config(self.len), &params)?,
                    len if len == self.len => c_stored,
                    len => s4::change_length(&config(len), &params, self.len)?,
                };
                vec![
                    ("lambda_re", per_system(&[pairs]), lambda_re),
                    ("lambda_im", per_system(&[pairs]), lambda_im),
                    ("p", per_system(&[pairs, 2]), p),
                    ("b", per_system(&[pairs, 2]), b),
                    ("c", vec![c, h, pairs, 2], c_ours),
                    ("delta_log", vec![h], delta_log),
                ]
            }
        };
        all.push(("d", vec![h], tensors.take(&format!("{system}.D"), &[h])?));
        let (out, rows) = match self.glu {
            true => (format!("{block}.output_linear.0"), 2 * h),
            false => (format!("{block}.output_linear"), h),
        };
        let [(_, weight), (_, bias)] = tensors.linear(&out, h, rows)?;
        all.push(("out.weight", vec![rows, h], weight));
        all.push(("out.bias", vec![rows], bias));
        Ok(all)
    }
}

/// D tells two kernels for two purposes from two directions.
fn refuse_two_kernels(tensors: &Tensors<'_>, names: &Names, h: usize) -> Result<()> {
    let name = format!("{}.D", names.system(0));
    let shape = tensors.shape(&name)?;
    let count = if shape.len() == 2 { shape[0] } else { 1 };
    if count == 1 {
        return Ok(());
    }
    let wide = tensors.shape(&format!("{}.output_linear.weight", names.block(0)));
    let channels = wide.is_ok_and(|shape| shape.get(1).is_some_and(|inputs| *inputs != h));
    let option = if channels { format!("channels: {count}") } else { "hyper_act".to_owned() };
    Err(Error::unsupported(
        option,
        format!("our layers have one D per channel, but {name} is {shape:?}"),
    ))
}

/// Whether the output projection is gated.
fn is_gated(tensors: &Tensors<'_>, names: &Names, h: usize) -> Result<bool> {
    let gated = format!("{}.output_linear.0.weight", names.block(0));
    if !tensors.has(&gated) {
        return Ok(false);
    }
    let rows = tensors.rows(&gated)?;
    if rows == h {
        let what = "an activation after the output projection; ours are linear or gated";
        return Err(Error::unsupported("postact or final_act", what));
    }
    Ok(true)
}

fn interleaved(re: &[f64], im: &[f64]) -> Vec<f64> {
    re.iter().zip(im).flat_map(|(re, im)| [*re, *im]).collect()
}

fn conjugated(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.iter_mut().skip(1).step_by(2).for_each(|im| *im = -*im);
    numbers
}

/// c `[C, H, N/2]` becomes the conjugate of b·c, with b `[S, N/2]` of system h mod S.
fn multiply_conjugated(c: &mut [f64], b: &[f64], h: usize, ssms: usize, pairs: usize) {
    for (i, row) in c.chunks_exact_mut(2 * pairs).enumerate() {
        let b = &b[(i % h % ssms) * 2 * pairs..][..2 * pairs];
        for (c, b) in row.chunks_exact_mut(2).zip(b.chunks_exact(2)) {
            let (re, im) = (c[0] * b[0] - c[1] * b[1], c[0] * b[1] + c[1] * b[0]);
            (c[0], c[1]) = (re, -im);
        }
    }
}

fn log_delta(mut stored: Vec<f64>, transform: DeltaTransform) -> Vec<f64> {
    if transform == DeltaTransform::Softplus {
        // log(log(1 + e^x)), which is x where e^x is small.
        stored.iter_mut().for_each(|x| {
            let softplus = x.max(0.0) + (-x.abs()).exp().ln_1p();
            *x = if *x < -30.0 { *x } else { softplus.ln() };
        });
    }
    stored
}
