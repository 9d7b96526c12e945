//! The rows that can be run: models and ablations.

/// A model, or an ablation of one.
#[derive(Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name on the command line and in directories.
    pub name: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// One of the models of `dss train --model`.
    pub base: &'static str,
    /// One of the ablations of `dss train --ablation`.
    pub ablation: Option<&'static str>,
}

const fn plain(name: &'static str, label: &'static str) -> Model {
    Model { name, label, base: name, ablation: None }
}

const fn ablated(name: &'static str, label: &'static str) -> Model {
    Model { name, label, base: "dss-softmax", ablation: Some(name) }
}

/// All of them.
pub const MODELS: [Model; 8] = [
    plain("s4", "S4"),
    plain("s4d", "S4D"),
    plain("dss-softmax", "DSS-softmax"),
    plain("dss-exp", "DSS-exp"),
    plain("dss-exp-no-scale", "DSS-exp-no-scale"),
    ablated("random-init", "DSS-softmax, random init"),
    ablated("kernel-128", "DSS-softmax, kernel length 128"),
    ablated("tied-delta", "DSS-softmax, tied Δ"),
];

/// The model whose speed decides the steps of a budget, and whose settings are compared with the paper's.
pub const REFERENCE: &Model = &MODELS[2];

/// The model of this name.
pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dss_train::config;

    #[test]
    fn every_model_and_ablation_is_one_of_training() {
        for model in &MODELS {
            assert!(config::MODELS.iter().any(|m| m.name == model.base), "{}", model.name);
            let known = |name| config::ABLATIONS.iter().any(|a| a.name == name);
            assert!(model.ablation.is_none_or(known), "{}", model.name);
        }
        assert_eq!(REFERENCE.name, "dss-softmax");
        assert!(config::MODELS.iter().all(|m| model(m.name).is_some()));
    }
}
