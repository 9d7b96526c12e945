//! From a checkpoint of annotated-s4 (flax), whose DSS and S4D layers have a Λ for every channel.
//!
//! | theirs, of a layer | ours |
//! |--------|------|
//! | `Lambda_re`, `Lambda_im` `[N, H]`; `W` `[1, H, N, 2]`; `log_step` `[1, H]` | DSS-softmax with S = H, one Δ per channel |
//! | `A_re`, `A_im` `[N, H]`; `C` `[N, H, 2]`; `log_step` `[1, H]` | S4D with S = H and 2N states: ours are conjugate pairs, and so C is halved |
//!
//! Re λ of their S4D counts as −1e-4 where it is greater, and their B is not used. Dense maps are stored `[in, out]`, a
//! gate as a second map. The GELU is the tanh form, LayerNorm has ε = 1e-6, and there is no norm after the last block.

use std::collections::BTreeMap;

use dss_format::mixer::{Delta, DssConfig, LambdaInit, S4dConfig, Variant, ssm};
use dss_format::{Gelu, InputKind, MixerConfig, ModelConfig, ModelIo, NormKind, OutputKind};
use serde_json::Value as Json;

use super::tensors::Tensors;
use super::{ImportOptions, Imported, NamedArray, Pooling, array, finished};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::settings::Settings;

/// The greatest Re λ of their S4D.
const GREATEST: f64 = -1e-4;
/// The length of a model whose kernels do not depend on it.
const ANY_LEN: usize = 1024;

/// Whether the names are those of flax's modules there.
pub(super) fn is_one(checkpoint: &Checkpoint<'_>) -> bool {
    checkpoint.names().any(|name| name.starts_with("layers_0.seq."))
}

/// Their kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dss,
    S4d,
}

pub(super) fn import(
    checkpoint: &Checkpoint<'_>,
    settings: Option<Settings>,
    options: &ImportOptions,
) -> Result<Imported> {
    let (tensors, settings) = (Tensors::new(checkpoint), settings.as_ref());
    let mut notes = Vec::new();
    let kind = recognise(&tensors)?;
    refuse(&tensors, settings, options)?;
    let prenorm = match (options.prenorm, flag(settings, "model.prenorm")?) {
        (Some(prenorm), _) | (None, Some(prenorm)) => prenorm,
        (None, None) => {
            notes.push("assumed prenorm = true, as that program's default; give --config".into());
            true
        }
    };
    if options.pooling.is_none() && flag(settings, "classification")?.is_none() {
        notes
            .push("assumed classification = true, the mean of all positions; give --config".into());
    }

    let h = tensors.rows("encoder.bias")?;
    let channels = tensors.rows("encoder.kernel")?;
    let outputs = tensors.rows("decoder.bias")?;
    let n = tensors.rows(&format!("layers_0.seq.{}", kind.lambda()[0]))?;
    let len = length(kind, settings, options, &mut notes)?;
    if [h, channels, outputs, n].contains(&0) {
        let what =
            format!("it has sizes of 0: H {h}, channels {channels}, outputs {outputs}, N {n}");
        return Err(Error::model(what));
    }
    let glu = tensors.has("layers_0.out2.kernel");

    let mut arrays = BTreeMap::new();
    let mut insert = |name: String, shape: &[usize], numbers: Vec<f64>| {
        arrays.insert(name, array(shape, numbers));
    };
    let (weight, bias) = dense(&tensors, "encoder", channels, h)?;
    insert("encoder.weight".into(), &[h, channels], weight);
    insert("encoder.bias".into(), &[h], bias);
    let layers = (0..).take_while(|i| tensors.has(&format!("layers_{i}.seq.D"))).count();
    for i in 0..layers {
        let (theirs, ours) = (format!("layers_{i}"), format!("layers.{i}"));
        for (name, shape, numbers) in kind.arrays(&tensors, &format!("{theirs}.seq"), h, n)? {
            insert(format!("{ours}.mixer.{name}"), &shape, numbers);
        }
        let d = tensors.take(&format!("{theirs}.seq.D"), &[h])?;
        insert(format!("{ours}.mixer.d"), &[h], d);
        let (mut weight, mut bias) = dense(&tensors, &format!("{theirs}.out"), h, h)?;
        if glu {
            let (gate, gate_bias) = dense(&tensors, &format!("{theirs}.out2"), h, h)?;
            weight.extend(gate);
            bias.extend(gate_bias);
        }
        let rows = bias.len();
        insert(format!("{ours}.mixer.out.weight"), &[rows, h], weight);
        insert(format!("{ours}.mixer.out.bias"), &[rows], bias);
        for (own, name) in [("gamma", "scale"), ("beta", "bias")] {
            let numbers = tensors.take(&format!("{theirs}.norm.{name}"), &[h])?;
            insert(format!("{ours}.norm.{own}"), &[h], numbers);
        }
    }
    let (weight, bias) = dense(&tensors, "decoder", h, outputs)?;
    insert("head.weight".into(), &[outputs, h], weight);
    insert("head.bias".into(), &[outputs], bias);
    tensors.refuse_surplus()?;

    let model = ModelConfig {
        layers,
        h,
        mixer: kind.mixer(h, n, glu),
        norm: NormKind::Layer,
        norm_eps: 1e-6,
        prenorm,
        last_norm: !prenorm,
        dropout: 0.0,
        ..ModelConfig::default()
    };
    let input = InputKind::Values { channels };
    let io = ModelIo { input, output: OutputKind::Sequence { outputs }, len };
    finished(&model, &io, arrays, "srush/annotated-s4", notes)
}

fn recognise(tensors: &Tensors<'_>) -> Result<Kind> {
    let has = |part: &str| tensors.has(&format!("layers_0.seq.{part}"));
    if has("P") {
        let what = "its low-rank layers keep all N states, our S4 one of each conjugate pair";
        return Err(Error::unsupported("layer: s4 of annotated-s4", what));
    }
    match (has("W"), has("C")) {
        (true, false) => Ok(Kind::Dss),
        (false, true) => Ok(Kind::S4d),
        _ => {
            let what = "layers_0.seq.* has neither W, as its DSS, nor C, as its S4D: another layer";
            Err(Error::unsupported("layer of annotated-s4", what))
        }
    }
}

/// What ours do not do.
fn refuse(
    tensors: &Tensors<'_>,
    settings: Option<&Settings>,
    options: &ImportOptions,
) -> Result<()> {
    if flag(settings, "classification")? == Some(false) {
        let what = "its generating models read x/255, one position late";
        return Err(Error::unsupported("classification: false", what));
    }
    if tensors.has("encoder.embedding") || flag(settings, "model.embedding")? == Some(true) {
        let what = "its embedding of token 0 is a vector of zeros, whatever is stored";
        return Err(Error::unsupported("embedding: true of annotated-s4", what));
    }
    match options.pooling {
        None | Some(Pooling::Mean) => Ok(()),
        Some(_) => Err(Error::unsupported("pool", "its classifiers read the mean")),
    }
}

fn flag(settings: Option<&Settings>, path: &str) -> Result<Option<bool>> {
    let found = settings.map(|settings| settings.get(path)).transpose()?.flatten();
    Ok(found.as_ref().and_then(Json::as_bool))
}

fn length(
    kind: Kind,
    settings: Option<&Settings>,
    options: &ImportOptions,
    notes: &mut Vec<String>,
) -> Result<usize> {
    let said = settings.map(|settings| settings.get("model.layer.l_max")).transpose()?.flatten();
    let said = said.and_then(|len| usize::try_from(len.as_u64()?).ok());
    match options.len.or(said.filter(|len| (1..1 << 40).contains(len))) {
        Some(len) => Ok(len),
        None if kind == Kind::Dss => Err(Error::Unknown(
            "the softmax is normalised over l_max positions, which neither tensors nor configuration say: give it \
             with --len"
                .into(),
        )),
        None => {
            notes.push(format!("assumed len = {ANY_LEN}: any serves this kernel; give --len"));
            Ok(ANY_LEN)
        }
    }
}

impl Kind {
    /// Names of the parts of Λ.
    fn lambda(self) -> [&'static str; 2] {
        match self {
            Self::Dss => ["Lambda_re", "Lambda_im"],
            Self::S4d => ["A_re", "A_im"],
        }
    }

    fn mixer(self, h: usize, n: usize, glu: bool) -> MixerConfig {
        let ssm_gelu = Gelu::Tanh;
        match self {
            Self::Dss => {
                let known = DssConfig::default();
                let lambda_init =
                    if n > ssm::MAX_N { LambdaInit::Random } else { known.lambda_init };
                let (variant, delta) = (Variant::Softmax, Delta::Tied);
                let config =
                    DssConfig { n, ssms: h, variant, delta, lambda_init, glu, ssm_gelu, ..known };
                config.into()
            }
            Self::S4d => {
                S4dConfig { n: 2 * n, ssms: h, glu, ssm_gelu, ..S4dConfig::default() }.into()
            }
        }
    }

    /// The kernel's arrays.
    fn arrays(
        self,
        tensors: &Tensors<'_>,
        seq: &str,
        h: usize,
        n: usize,
    ) -> Result<Vec<NamedArray>> {
        let [re, im] = self.lambda();
        let re = transposed(&tensors.take(&format!("{seq}.{re}"), &[n, h])?, h);
        let im = transposed(&tensors.take(&format!("{seq}.{im}"), &[n, h])?, h);
        let delta_log = tensors.take(&format!("{seq}.log_step"), &[h])?;
        // Without a leading S where there is one system.
        let per_channel =
            |rest: &[usize]| if h > 1 { [&[h][..], rest].concat() } else { rest.to_vec() };
        let kernel = match self {
            Self::Dss => {
                let lambda = re.iter().zip(&im).flat_map(|(re, im)| [*re, *im]).collect();
                let w = tensors.take(&format!("{seq}.W"), &[1, h, n, 2])?;
                vec![("lambda", per_channel(&[n, 2]), lambda), ("w", vec![1, h, n, 2], w)]
            }
            Self::S4d => {
                tensors.ignore(&format!("{seq}.B_re"));
                tensors.ignore(&format!("{seq}.B_im"));
                let stored = tensors.take(&format!("{seq}.C"), &[n, h, 2])?;
                let rows = (0..h).flat_map(|h_| (0..n).map(move |n_| 2 * (n_ * h + h_)));
                let c = rows.flat_map(|at| [0.5 * stored[at], 0.5 * stored[at + 1]]).collect();
                let re = re.iter().map(|re| (-re.min(GREATEST)).ln()).collect();
                vec![
                    ("lambda_re", per_channel(&[n]), re),
                    ("lambda_im", per_channel(&[n]), im),
                    ("c", vec![1, h, n, 2], c),
                ]
            }
        };
        Ok(kernel.into_iter().chain([("delta_log", vec![h], delta_log)]).collect())
    }
}

/// Weight `[out, in]` and bias of a map that is stored `[in, out]`.
fn dense(
    tensors: &Tensors<'_>,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let kernel = tensors.take(&format!("{name}.kernel"), &[inputs, outputs])?;
    Ok((transposed(&kernel, outputs), tensors.take(&format!("{name}.bias"), &[outputs])?))
}

/// `[rows, columns]` -> `[columns, rows]`.
fn transposed(x: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|column| x.iter().skip(column).step_by(columns).copied()).collect()
}
