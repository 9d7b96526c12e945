//! Model settings as version 0.1 wrote them: those of the mixer flat beside the others, and `mixer` a bare name.

use serde_json::{Map, Value};

/// What becomes of a setting of a mixer that is written at the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlatPlace {
    /// It is the mixer's setting of this name.
    Mixer(&'static str),
    /// It is a setting of this other mixer, and has been chosen.
    OtherMixer(&'static str),
    /// It is a setting of another mixer that has not been chosen.
    Unused,
}

/// Settings at the top: the key there; the only mixer that has it, or `None` for every state space; the key below the
/// mixer; and what files of other mixers say, or `None` for anything.
type FlatKey = (&'static str, Option<&'static str>, &'static str, Option<&'static str>);

const FLAT_KEYS: [FlatKey; 10] = [
    ("n", None, "n", None),
    ("delta_min", None, "delta_min", None),
    ("delta_max", None, "delta_max", None),
    ("kernel_len", None, "kernel_len", None),
    ("glu", None, "glu", None),
    ("variant", Some("dss"), "variant", Some("softmax")),
    ("delta", Some("dss"), "delta", None),
    ("lambda_init", Some("dss"), "lambda_init", Some("skew-hippo")),
    ("s4d_init", Some("s4d"), "lambda_init", Some("legs")),
    ("discretisation", Some("s4d"), "discretisation", Some("zoh")),
];

/// Where a key at the top belongs with a mixer of this kind; `value` is the key's, if it is a string. `None`: it is not
/// a setting of a mixer.
pub fn place(key: &str, kind: &str, value: Option<&str>) -> Option<FlatPlace> {
    let (_, mixer, inner, neutral) = FLAT_KEYS.iter().find(|flat| flat.0 == key)?;
    Some(match (mixer, neutral) {
        (Some(other), Some(_)) if *other != kind && value != *neutral => {
            FlatPlace::OtherMixer(other)
        }
        (Some(other), _) if *other != kind => FlatPlace::Unused,
        _ => FlatPlace::Mixer(inner),
    })
}

/// Puts the mixer's settings into a table of their own, where they are not yet.
///
/// # Errors
/// A setting that its mixer does not have, or settings in both places.
pub(crate) fn nest(model: &mut Map<String, Value>) -> Result<(), String> {
    let present = FLAT_KEYS.iter().find(|flat| model.contains_key(flat.0));
    let kind = match (model.get("mixer"), present) {
        (Some(Value::String(kind)), _) => kind.clone(),
        (None, Some(_)) => "dss".to_owned(),
        (Some(_), Some((key, ..))) => {
            return Err(format!("`{key}` is a setting of the mixer: put it below `mixer`"));
        }
        (_, None) => return Ok(()),
    };
    let mut mixer = Map::new();
    for (key, ..) in FLAT_KEYS {
        let Some(value) = model.remove(key) else { continue };
        match place(key, &kind, value.as_str()) {
            Some(FlatPlace::OtherMixer(other)) => {
                let what = format!("{key} = {value} is a setting of mixer = \"{other}\"");
                return Err(format!("{what}, not of \"{kind}\""));
            }
            Some(FlatPlace::Mixer(inner)) => drop(mixer.insert(inner.to_owned(), value)),
            Some(FlatPlace::Unused) | None => {}
        }
    }
    mixer.insert("kind".to_owned(), kind.into());
    model.insert("mixer".to_owned(), mixer.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ModelConfig;
    use crate::mixer::{DssConfig, MixerConfig, S4Config, S4dConfig, S4dInit, Variant};

    fn read(json: &str) -> Result<MixerConfig, String> {
        serde_json::from_str::<ModelConfig>(json).map(|c| c.mixer).map_err(|e| e.to_string())
    }

    #[test]
    fn flat_settings_load() {
        let exp = DssConfig { variant: Variant::Exp, n: 8, ..DssConfig::default() };
        assert_eq!(read(r#"{"layers": 2, "n": 8, "variant": "exp"}"#), Ok(exp.into()));
        let others = r#""variant": "softmax", "delta": "tied", "s4d_init": "legs", "glu": true"#;
        let s4 = S4Config { glu: true, ..S4Config::default() };
        assert_eq!(read(&format!(r#"{{"mixer": "s4", {others}}}"#)), Ok(s4.into()));
        let s4d = S4dConfig { lambda_init: S4dInit::Lin, ..S4dConfig::default() };
        assert_eq!(read(r#"{"mixer": "s4d", "s4d_init": "lin"}"#), Ok(s4d.into()));
    }

    #[test]
    fn settings_of_another_mixer_are_refused() {
        for (json, reason) in [
            (r#"{"mixer": "s4", "variant": "exp"}"#, "variant"),
            (r#"{"mixer": "dss", "discretisation": "euler"}"#, "euler"),
            (r#"{"mixer": "s4d", "lambda_init": "random"}"#, "lambda_init"),
            (r#"{"s4d_init": "lin"}"#, "s4d_init"),
            (r#"{"mixer": "s4", "discretisation": "bilinear"}"#, "discretisation"),
            (r#"{"mixer": {"kind": "dss"}, "n": 3}"#, "below `mixer`"),
            (r#"{"mixer": {"kind": "s4", "variant": "exp"}}"#, "variant"),
            (r#"{"mixer": "s9"}"#, "s9"),
            (r#"{"glue": true}"#, "glue"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }

    #[test]
    fn nested_settings_survive() {
        let config = ModelConfig { mixer: S4Config::default().into(), ..ModelConfig::default() };
        let json = serde_json::to_string(&config).unwrap();
        assert!(json.contains(r#""mixer":{"kind":"s4","n":64"#), "{json}");
        assert_eq!(serde_json::from_str::<ModelConfig>(&json).unwrap(), config);
    }
}
