//! Settings that the tensors do not show: from an option, from the configuration, or assumed with a note.

use dss_format::mixer::{Discretisation, Variant};
use serde_json::Value as Json;

use super::names::{Names, Program};
use super::{DeltaTransform, Pooling};
use crate::error::{Error, Result};
use crate::settings::Settings;

/// The length of a model whose kernels do not depend on it.
const ANY_LEN: usize = 1024;

pub(super) struct Choices {
    settings: Option<Settings>,
    program: Program,
    layers: usize,
    pub notes: Vec<String>,
}

/// A setting of theirs, the values that ours have too, and what to say of any other.
type Allowed = (&'static str, &'static [&'static str], &'static str);

const DSS_LAYER: &[Allowed] = &[
    (
        "version",
        &["softmax", "exp", "exp-no-scale"],
        "our kernels are softmax, exp and exp-no-scale",
    ),
    ("hyper_act", &["null"], "our layers have no second kernel for an activation"),
    ("channels", &["1"], "our layers have one kernel per channel"),
    ("activation", &["gelu"], "our layers have GELU"),
    ("postact", &["null", "glu"], "our projections are linear or gated"),
    ("weight_norm", &["false", "null"], "our projections have plain weights"),
];

const S4_LAYER: &[Allowed] = &[
    ("mode", &["diag", "s4d", "nplr", "dplr"], "our mixers are S4D and S4"),
    ("channels", &["1"], "our layers have one kernel per channel"),
    ("rank", &["1"], "our S4 has a correction of rank 1"),
    ("gate", &["null"], "our layers have no such gate"),
    ("bottleneck", &["null"], "our layers have no projection before the state space"),
    ("activation", &["gelu"], "our layers have GELU"),
    ("mult_act", &["null", "id"], "our layers have no second activation"),
    ("final_act", &["glu", "null", "id"], "our projections are linear or gated"),
    ("postact", &["glu", "null", "id"], "our projections are linear or gated"),
    ("weight_norm", &["false", "null"], "our projections have plain weights"),
    ("layer", &["fftconv"], "our mixers are S4D and S4"),
    ("disc", &["zoh", "bilinear"], "our S4D has zoh and bilinear"),
    ("dt_transform", &["exp", "softplus"], "Δ is known as exp or softplus"),
    ("real_transform", &["exp"], "our Re λ is −exp"),
    ("imag_transform", &["none", "null"], "our Im λ is stored as it is"),
    ("is_real", &["false", "null"], "our λ are complex"),
    ("dt_tie", &["true"], "our channels have one Δ each"),
    ("dt_fast", &["false", "null"], "our Δ is stored as its logarithm"),
    ("bandlimit", &["null"], "our kernels have no band limit"),
    ("decay", &["null"], "our kernels have no further decay"),
    ("shift", &["false", "null"], "our kernels have no shift"),
];

const MODEL: &[Allowed] = &[
    ("residual", &["R"], "our blocks add what they read, without weights"),
    ("pool.pool", &["1", "null"], "our blocks keep every position"),
    ("pool.stride", &["1", "null"], "our blocks keep every position"),
    ("pool.expand", &["1", "null"], "our blocks have one width"),
];

impl Choices {
    pub(super) fn new(settings: Option<Settings>, names: &Names) -> Self {
        Self { settings, program: names.program, layers: names.layers, notes: Vec::new() }
    }

    fn setting(&self, path: &str) -> Result<Option<Json>> {
        match &self.settings {
            Some(settings) => settings.get(path),
            None => Ok(None),
        }
    }

    /// A setting of the layers, and where it was.
    fn of_layer(&self, key: &str) -> Result<Option<(String, Json)>> {
        self.either(&format!("model.layer.{key}"), &format!("layer.{key}"))
    }

    /// A setting of the stack.
    fn of_model(&self, key: &str) -> Result<Option<(String, Json)>> {
        self.either(&format!("model.{key}"), key)
    }

    fn either(&self, first: &str, second: &str) -> Result<Option<(String, Json)>> {
        for path in [first, second] {
            if let Some(found) = self.setting(path)? {
                return Ok(Some((path.to_owned(), found)));
            }
        }
        Ok(None)
    }

    fn decoder(&self, key: &str) -> Result<Option<Json>> {
        self.setting(&format!("decoder.{key}"))
    }

    /// Settings that ours do not have.
    pub(super) fn refuse_settings(&self) -> Result<()> {
        let layer = match self.program {
            Program::Dss => DSS_LAYER,
            _ => S4_LAYER,
        };
        for (key, allowed, what) in layer {
            self.check(self.of_layer(key)?, allowed, what)?;
        }
        for (key, allowed, what) in MODEL {
            self.check(self.of_model(key)?, allowed, what)?;
        }
        if let Some((path, found)) = self.of_model("n_layers")?
            && found.as_u64() != Some(self.layers as u64)
        {
            let what = format!("the configuration says {found}, the tensors have {}", self.layers);
            return Err(Error::model(format!("{path}: {what}")));
        }
        Ok(())
    }

    fn check(&self, found: Option<(String, Json)>, allowed: &[&str], what: &str) -> Result<()> {
        let Some((path, found)) = found else { return Ok(()) };
        let word = word(&found);
        if allowed.contains(&word.as_str()) {
            return Ok(());
        }
        Err(Error::unsupported(format!("{path}: {word}"), what))
    }

    fn assume<T>(&mut self, value: T, words: &str, instead: &str) -> T {
        self.notes
            .push(format!("assumed {words}: neither tensors nor configuration say; {instead}"));
        value
    }

    /// What the tensors show is what option and configuration say.
    pub(super) fn agrees(
        &self,
        key: &str,
        option: Option<bool>,
        seen: bool,
        where_seen: &str,
    ) -> Result<()> {
        let said = match key {
            "bidirectional" => self.of_layer(key)?,
            _ => self.of_model(key)?,
        };
        let said = said.and_then(|(_, value)| value.as_bool());
        match option.or(said) {
            Some(said) if said != seen => Err(Error::model(format!(
                "{key} is said to be {said}, but the tensors ({where_seen}) show {seen}"
            ))),
            _ => Ok(()),
        }
    }

    pub(super) fn prenorm(&mut self, option: Option<bool>) -> Result<bool> {
        if let Some(prenorm) = option {
            return Ok(prenorm);
        }
        match self.of_model("prenorm")? {
            Some((path, found)) => found.as_bool().ok_or_else(|| {
                Error::model(format!("{path} must be true or false, but is {found}"))
            }),
            None => Ok(self.assume(false, "prenorm = false", "give --prenorm or --config")),
        }
    }

    pub(super) fn pooling(&mut self, option: Option<Pooling>) -> Result<Pooling> {
        // The pair head of theirs is fixed, and so is the mean of example.py.
        if self.decoder("_name_")?.as_ref().and_then(Json::as_str) == Some("retrieval") {
            let gelu = [("activation", "gelu", "our head of pairs has GELU")];
            let nli = [("nli", "true", "our head of pairs reads a, b, a − b and a·b")];
            for (key, allowed, what) in gelu.into_iter().chain(nli) {
                let found = self.decoder(key)?.map(|found| (format!("decoder.{key}"), found));
                self.check(found, &[allowed], what)?;
            }
        }
        if let Some(pooling) = option {
            return Ok(pooling);
        }
        match self.decoder("mode")? {
            Some(mode) => match word(&mode).as_str() {
                "pool" => Ok(Pooling::Mean),
                "last" => Ok(Pooling::Last),
                other => Err(Error::unsupported(
                    format!("decoder.mode: {other}"),
                    "our heads read the mean or the last position",
                )),
            },
            None if matches!(self.program, Program::S4Example | Program::S4dExample) => {
                Ok(Pooling::Mean)
            }
            None => Ok(self.assume(Pooling::Mean, "pool = mean", "give --pool or --config")),
        }
    }

    /// The kernel of DSS; the tensors tell whether Λ is stored as for the softmax.
    pub(super) fn variant(&mut self, option: Option<Variant>, softmax: bool) -> Result<Variant> {
        let said = match (option, self.of_layer("version")?) {
            (Some(variant), _) => Some(variant),
            (None, Some((_, version))) => match word(&version).as_str() {
                "softmax" => Some(Variant::Softmax),
                "exp" => Some(Variant::Exp),
                "exp-no-scale" => Some(Variant::ExpNoScale),
                _ => None,
            },
            (None, None) => None,
        };
        let names = if softmax { "Lambda" } else { "Lambda_log_neg_re and Lambda_im" };
        match said {
            Some(variant) if (variant == Variant::Softmax) == softmax => Ok(variant),
            Some(_) => {
                let said = if softmax { "exp or exp-no-scale" } else { "softmax" };
                Err(Error::model(format!(
                    "the version is said to be {said}, but its kernels have the tensors {names}"
                )))
            }
            None if softmax => Ok(self.assume(
                Variant::Softmax,
                "variant = softmax (it could be clip)",
                "give --config",
            )),
            None => Ok(self.assume(
                Variant::Exp,
                "variant = exp (it could be exp-no-scale)",
                "give --variant or --config",
            )),
        }
    }

    /// The length at which kernels are cut; 0 = nowhere.
    pub(super) fn kernel_len(&mut self, option: Option<usize>, two_ways: bool) -> Result<usize> {
        let said = self.of_layer("max_kernel_length")?;
        let len = match (option, &said) {
            (Some(len), _) => len,
            (None, Some((_, Json::Null))) => 0,
            (None, Some((path, found))) => {
                found.as_u64().filter(|len| (1..1 << 40).contains(len)).ok_or_else(|| {
                    Error::model(format!("{path} must be a length, but is {found}"))
                })? as usize
            }
            (None, None) => {
                let words = "kernels as long as the sequences (max_kernel_length = null)";
                self.assume(0, words, "give --kernel-len or --config")
            }
        };
        if len > 0 && two_ways {
            return Err(Error::unsupported(
                format!("max_kernel_length: {len} with bidirectional: true"),
                "their anti-causal half then lands on positive lags, which ours does not",
            ));
        }
        Ok(len)
    }

    /// L. Where the kernels depend on it, it cannot be assumed.
    pub(super) fn len(&mut self, option: Option<usize>, matters: bool) -> Result<usize> {
        if let Some(len) = option {
            return Ok(len);
        }
        // A length that is computed elsewhere is as good as none.
        let said = self.setting("dataset.l_max").ok().flatten().and_then(|x| x.as_u64());
        match said.filter(|len| (1..1 << 40).contains(len)) {
            Some(len) => {
                if matters {
                    let note = "assumed that the softmax is normalised over dataset.l_max";
                    let why = "theirs is over the longest sequence of a batch; give --len for another";
                    self.notes.push(format!("{note} = {len}: {why}"));
                }
                Ok(len as usize)
            }
            None if matters => Err(Error::Unknown(
                "the softmax is normalised over the length of the sequences, which neither tensors nor configuration \
                 say: give it with --len"
                    .into(),
            )),
            None => Ok(self.assume(ANY_LEN, &format!("len = {ANY_LEN}"), "any serves this kernel; give --len")),
        }
    }

    pub(super) fn discretisation(
        &mut self,
        option: Option<Discretisation>,
    ) -> Result<Discretisation> {
        match (option, self.of_layer("disc")?) {
            (Some(rule), _) => Ok(rule),
            (None, Some((_, rule))) if word(&rule) == "bilinear" => Ok(Discretisation::Bilinear),
            (None, Some(_)) => Ok(Discretisation::Zoh),
            // The default of the class.
            (None, None) => Ok(self.assume(
                Discretisation::Zoh,
                "disc = zoh",
                "give --discretisation if it is bilinear",
            )),
        }
    }

    pub(super) fn delta(&mut self, option: Option<DeltaTransform>) -> Result<DeltaTransform> {
        match (option, self.of_layer("dt_transform")?) {
            (Some(transform), _) => Ok(transform),
            (None, Some((_, found))) if word(&found) == "softplus" => Ok(DeltaTransform::Softplus),
            (None, Some(_)) => Ok(DeltaTransform::Exp),
            // Its configuration files say softplus, the class says exp.
            (None, None) if self.settings.is_none() && self.program == Program::S4 => {
                let words = "dt_transform = softplus, as its configuration files have";
                Ok(self.assume(DeltaTransform::Softplus, words, "give --dt exp if it is not"))
            }
            (None, None) => {
                let words = "dt_transform = exp";
                Ok(self.assume(DeltaTransform::Exp, words, "give --dt softplus if it is not"))
            }
        }
    }

    /// For a training that continues; 0 where it is not known.
    pub(super) fn dropout(&self) -> f64 {
        let said = self.of_model("dropout").ok().flatten().and_then(|(_, x)| x.as_f64());
        said.filter(|x| (0.0..1.0).contains(x)).unwrap_or(0.0)
    }

    /// The range of Δ at initialisation, for the record.
    pub(super) fn delta_range(&self) -> Option<(f64, f64)> {
        let number = |key| self.of_layer(key).ok().flatten().and_then(|(_, x)| x.as_f64());
        let (low, high) = (number("dt_min")?, number("dt_max")?);
        (0.0 < low && low <= high && high.is_finite()).then_some((low, high))
    }
}

/// A setting as it is written.
fn word(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Number(number) if number.as_f64() == Some(1.0) => "1".into(),
        other => other.to_string(),
    }
}
