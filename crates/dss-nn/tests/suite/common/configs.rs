//! Settings of small models.

use dss_nn::config::{DssConfig, MixerConfig, ModelConfig, S4Config, S4dConfig};

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

/// Two blocks of H channels.
pub fn small(h: usize, mixer: impl Into<MixerConfig>) -> ModelConfig {
    ModelConfig { layers: 2, h, mixer: mixer.into(), ..ModelConfig::default() }
}

/// Where the kernels of a model's mixers are cut; 0: nowhere.
pub fn kernel_len(config: &ModelConfig) -> usize {
    config.mixer.settings().ssm().expect("a state space").kernel_len
}
