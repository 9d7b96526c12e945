//! The rows that can be run: models and ablations.

/// A model, or an ablation of one.
#[derive(Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name on the command line and in directories.
    pub name: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// Its settings, over those of the task's preset.
    pub settings: &'static [(&'static str, &'static str)],
}

/// All of them.
pub const MODELS: [Model; 8] = [
    Model { name: "dss-softmax", label: "DSS-softmax", settings: &[("model.variant", "softmax")] },
    Model { name: "dss-exp", label: "DSS-exp", settings: &[("model.variant", "exp")] },
    Model {
        name: "dss-exp-no-scale",
        label: "DSS-exp-no-scale",
        settings: &[("model.variant", "exp-no-scale")],
    },
    Model { name: "s4", label: "S4", settings: &[("model.mixer", "s4")] },
    Model { name: "s4d", label: "S4D", settings: &[("model.mixer", "s4d")] },
    Model {
        name: "random-init",
        label: "DSS-softmax, random init",
        settings: &[("model.variant", "softmax"), ("model.lambda_init", "random")],
    },
    Model {
        name: "kernel-128",
        label: "DSS-softmax, kernel length 128",
        settings: &[("model.variant", "softmax"), ("model.kernel_len", "128")],
    },
    Model {
        name: "tied-delta",
        label: "DSS-softmax, tied Δ",
        settings: &[("model.variant", "softmax"), ("model.delta", "tied")],
    },
];

/// The model whose speed decides the steps of a budget, and whose settings are compared with the paper's.
pub const REFERENCE: &Model = &MODELS[0];

/// The model of this name.
pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}
