//! Settings of small models.

use dss_nn::config::{
    DssConfig, ExpRnnConfig, GruConfig, LipschitzRnnConfig, LruConfig, LstmConfig, MegaEmaConfig,
    MixerConfig, ModelConfig, NrdeConfig, OdeRnnConfig, RotationInit, S4Config, S4dConfig,
    S5Config, SolverKind,
};

pub fn dss(n: usize) -> DssConfig {
    DssConfig { n, ..DssConfig::default() }
}

pub fn s4(n: usize) -> S4Config {
    S4Config { n, ..S4Config::default() }
}

pub fn s4d(n: usize) -> S4dConfig {
    S4dConfig { n, ..S4dConfig::default() }
}

/// One mixer of each kind, with kernels cut at `kernel_len`.
pub fn mixers(n: usize, kernel_len: usize) -> [MixerConfig; 3] {
    [
        DssConfig { kernel_len, ..dss(n) }.into(),
        S4Config { kernel_len, ..s4(n) }.into(),
        S4dConfig { kernel_len, ..s4d(n) }.into(),
    ]
}

/// Small recurrent nets of each kind, and moving averages.
pub fn recurrent_mixers() -> Vec<MixerConfig> {
    let ode = OdeRnnConfig { width: 5, field_layers: 2, ..OdeRnnConfig::default() };
    let lipschitz = LipschitzRnnConfig { step: 0.2, ..LipschitzRnnConfig::default() };
    let nrde = NrdeConfig { path: 2, window: 3, width: 5, ..NrdeConfig::default() };
    vec![
        GruConfig {}.into(),
        LstmConfig {}.into(),
        LruConfig { n: 6, ..LruConfig::default() }.into(),
        LruConfig { n: 6, glu: false, ..LruConfig::default() }.into(),
        S5Config { n: 8, blocks: 2, ..S5Config::default() }.into(),
        S5Config { n: 8, glu: false, ..S5Config::default() }.into(),
        MegaEmaConfig { n: 3, ..MegaEmaConfig::default() }.into(),
        MegaEmaConfig { n: 3, glu: true, ..MegaEmaConfig::default() }.into(),
        ExpRnnConfig { init: RotationInit::Henaff }.into(),
        lipschitz.into(),
        LipschitzRnnConfig { solver: SolverKind::Midpoint, ..lipschitz }.into(),
        ode.into(),
        OdeRnnConfig { solver: SolverKind::Euler, substeps: 3, ..ode }.into(),
        nrde.into(),
        NrdeConfig { depth: 1, window: 1, field_layers: 2, ..nrde }.into(),
        NrdeConfig { depth: 3, window: 4, ..nrde }.into(),
    ]
}

/// Two blocks of H channels.
pub fn small(h: usize, mixer: impl Into<MixerConfig>) -> ModelConfig {
    ModelConfig { layers: 2, h, mixer: mixer.into(), ..ModelConfig::default() }
}

/// Where the kernels of a model's mixers are cut; 0: nowhere.
pub fn kernel_len(config: &ModelConfig) -> usize {
    config.mixer.settings().ssm().expect("a state space").kernel_len
}
