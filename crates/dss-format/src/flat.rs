//! Model settings as version 0.1 wrote them: those of the mixer flat beside the others, and `mixer` a bare name.

use serde_json::{Map, Value};

/// A setting of a mixer that such files have at the top.
pub struct FlatKey {
    /// Its name there.
    pub key: &'static str,
    /// The only mixer that has it; `None`: every state space.
    pub mixer: Option<&'static str>,
    /// Its name below the mixer.
    pub inner: &'static str,
    /// What files of other mixers say; `None`: anything.
    neutral: Option<&'static str>,
}

/// Every such key.
pub const FLAT_KEYS: [FlatKey; 10] = {
    const fn shared(key: &'static str) -> FlatKey {
        FlatKey { key, mixer: None, inner: key, neutral: None }
    }
    const fn only(
        mixer: &'static str,
        key: &'static str,
        inner: &'static str,
        neutral: Option<&'static str>,
    ) -> FlatKey {
        FlatKey { key, mixer: Some(mixer), inner, neutral }
    }
    [
        shared("n"),
        shared("delta_min"),
        shared("delta_max"),
        shared("kernel_len"),
        shared("glu"),
        only("dss", "variant", "variant", Some("softmax")),
        only("dss", "delta", "delta", None),
        only("dss", "lambda_init", "lambda_init", Some("skew-hippo")),
        only("s4d", "s4d_init", "lambda_init", Some("legs")),
        only("s4d", "discretisation", "discretisation", Some("zoh")),
    ]
};

/// Puts the mixer's settings into a table of their own, where they are not yet.
///
/// # Errors
/// A setting that its mixer does not have, or settings in both places.
pub fn nest(model: &mut Map<String, Value>) -> Result<(), String> {
    let present = FLAT_KEYS.iter().find(|flat| model.contains_key(flat.key));
    let kind = match (model.get("mixer"), present) {
        (Some(Value::String(kind)), _) => kind.clone(),
        (None, Some(_)) => "dss".to_owned(),
        (Some(_), Some(flat)) => {
            return Err(format!("`{}` is a setting of the mixer: put it below `mixer`", flat.key));
        }
        (_, None) => return Ok(()),
    };
    let mut mixer = Map::new();
    for FlatKey { key, mixer: only, inner, neutral } in FLAT_KEYS {
        let Some(value) = model.remove(key) else { continue };
        if only.is_none_or(|only| only == kind) {
            mixer.insert(inner.to_owned(), value);
        } else if neutral.is_some_and(|neutral| value != neutral) {
            let only = only.unwrap_or_default();
            return Err(format!(
                "{key} = {value} is a setting of mixer = \"{only}\", not of \"{kind}\""
            ));
        }
    }
    mixer.insert("kind".to_owned(), kind.into());
    model.insert("mixer".to_owned(), mixer.into());
    Ok(())
}
