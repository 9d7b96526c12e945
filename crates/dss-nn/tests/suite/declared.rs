//! Every parameter of every model is declared in `dss-format` with its name, size, learning rate and use.

use std::collections::BTreeMap;

use crate::common::configs::{dss, recurrent_mixers, s4, s4d, small};
use crate::common::device;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use dss_nn::config::{
    AttentionConfig, BigbirdConfig, CkconvConfig, Delta, DssConfig, FnetConfig,
    HTransformer1dConfig, InputKind, LinearAttentionConfig, LunaConfig, MixerConfig, ModelConfig,
    ModelIo, NormKind, NystromConfig, OutputKind, PerformerConfig, PerformerKernel, Pool,
    Positions, ReformerConfig, ReformerVariant, S4Config, S4dConfig, Variant, WaveganDConfig,
    WaveganVariant,
};
use dss_nn::{Model, Norm, ParamGroup};

const IO: ModelIo = ModelIo {
    input: InputKind::Values { channels: 2 },
    output: OutputKind::Sequence { outputs: 3 },
    len: 5,
};

/// What the modules themselves have: name, number of elements, and whether it is trained.
#[derive(Default)]
struct Walk {
    path: Vec<String>,
    found: BTreeMap<String, (usize, bool)>,
}

impl ModuleVisitor for Walk {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let x = param.val();
        let entry = (x.dims().iter().product(), x.is_require_grad());
        assert!(self.found.insert(self.path.join("."), entry).is_none(), "two of a name");
    }
}

fn check(config: &ModelConfig, io: &ModelIo) {
    let model = Model::new(config, io, 0, &device()).unwrap();
    let mut walk = Walk::default();
    model.visit(&mut walk);
    let declared = config.tensors(io);
    let listed: BTreeMap<_, _> =
        declared.iter().map(|t| (t.name.clone(), (t.elements().unwrap(), t.trained))).collect();
    assert_eq!(listed.len(), declared.len(), "a name declared twice: {config:?}");
    assert_eq!(walk.found, listed, "{config:?}");
    for tensor in declared {
        let of_mixer = tensor.name.contains(".mixer.") && !tensor.name.contains("norm.");
        let group = match tensor.name.rsplit('.').next().unwrap() {
            "lambda" | "lambda_re" | "lambda_im" | "p" | "b" if of_mixer => ParamGroup::Lambda,
            "nu_log" | "theta_log" | "gamma_log" | "a" | "m_a" | "m_w" => ParamGroup::Lambda,
            "alpha" | "delta" => ParamGroup::Lambda,
            "delta_log" => ParamGroup::Delta,
            "w" | "c" | "beta" | "eta" if of_mixer => ParamGroup::W,
            _ => ParamGroup::Other,
        };
        assert_eq!(tensor.group, group, "{}", tensor.name);
        let fixed =
            ["running_mean", "running_var", "mixer.blocks", "mixer.features", "mixer.rotations"];
        let trained = !fixed.iter().any(|end| tensor.name.ends_with(end));
        assert_eq!(tensor.trained, trained, "{}", tensor.name);
    }
    // The same through the model, in the shapes of the format.
    let declared = config.tensors(io).into_iter().map(|t| (t.name, t.shape));
    let parameters = model.parameters().into_iter().map(|p| (p.name, p.shape));
    assert_eq!(parameters.collect::<BTreeMap<_, _>>(), declared.collect());
}

fn mixers() -> Vec<MixerConfig> {
    let mut all = Vec::new();
    for (bias, width) in [(false, 0), (true, 0), (true, 6)] {
        all.push(AttentionConfig { heads: 2, width, bias }.into());
        all.push(LinearAttentionConfig { heads: 2, width, bias }.into());
        for kernel in [PerformerKernel::Relu, PerformerKernel::Favor] {
            let performer = PerformerConfig { heads: 2, kernel, ..PerformerConfig::default() };
            all.push(PerformerConfig { width, bias, ..performer }.into());
            all.push(PerformerConfig { project: false, ..performer }.into());
        }
    }
    all.push(FnetConfig {}.into());
    all.extend(recurrent_mixers());
    all.push(CkconvConfig { width: 4, ..CkconvConfig::default() }.into());
    for (bias, block) in [(false, 2), (true, 1)] {
        all.push(BigbirdConfig { heads: 2, bias, block, random_blocks: 0, width: 0 }.into());
        all.push(HTransformer1dConfig { heads: 2, width: 6, bias, block: 2 * block }.into());
    }
    for variant in [ReformerVariant::Paper, ReformerVariant::Lra] {
        all.push(ReformerConfig { variant, heads: 2, ..ReformerConfig::default() }.into());
    }
    for conv in [0, 3] {
        all.push(NystromConfig { heads: 2, conv, ..NystromConfig::default() }.into());
    }
    all.push(LunaConfig { heads: 2, packed: 3 }.into());
    all.push(WaveganDConfig::default().into());
    all.push(WaveganDConfig { variant: WaveganVariant::Original, convs: 1, shuffle: 2 }.into());
    for glu in [false, true] {
        all.push(S4dConfig { glu, ssms: 2, ..s4d(4) }.into());
        all.push(DssConfig { glu, ssms: 2, ..dss(3) }.into());
        all.push(S4Config { glu, ssms: 2, ..s4(4) }.into());
        all.push(S4Config { glu, ..s4(4) }.into());
        all.push(S4dConfig { glu, ..s4d(4) }.into());
        for variant in [Variant::Softmax, Variant::Exp, Variant::ExpNoScale] {
            for delta in [Delta::Separate, Delta::Tied] {
                all.push(DssConfig { variant, delta, glu, ..dss(3) }.into());
            }
        }
    }
    all
}

#[test]
fn parameters_of_all_mixers() {
    for mixer in mixers() {
        // Some read forwards only, some have no causal form.
        let ways = [false, true]
            .map(|bidirectional| ModelConfig { bidirectional, ..small(2, mixer.clone()) });
        let mut ways = ways.iter().filter(|config| config.validate_for(&IO).is_ok()).peekable();
        assert!(ways.peek().is_some(), "{mixer:?}");
        ways.for_each(|config| check(config, &IO));
    }
}

#[test]
fn parameters_of_all_other_settings() {
    let inputs = [InputKind::Tokens { vocab: 7 }, IO.input];
    let outputs = [IO.output, OutputKind::Position { outputs: 3 }, OutputKind::Pair { outputs: 3 }];
    let mut checked = 0;
    for norm in [NormKind::Batch, NormKind::Layer, NormKind::LayerScalar] {
        for positions in [Positions::None, Positions::Fixed, Positions::Learned] {
            for bits in 0..32 {
                let bit = |i: usize| bits >> i & 1 == 1;
                let config = ModelConfig {
                    norm,
                    positions,
                    prenorm: bit(0),
                    last_norm: !bit(4),
                    ff: if bit(1) { 6 } else { 0 },
                    head_hidden: if bit(2) { 4 } else { 0 },
                    pool: if bit(3) { Pool::Cls } else { Pool::Mean },
                    bidirectional: bit(3),
                    ..small(2, dss(3))
                };
                for (input, output) in inputs.into_iter().flat_map(|i| outputs.map(|o| (i, o))) {
                    let io = ModelIo { input, output, ..IO };
                    if config.validate_for(&io).is_ok() {
                        check(&config, &io);
                        checked += 1;
                    }
                }
            }
        }
    }
    // Norms before with or without a last one, or after; cls pooling is for sequences and pairs.
    let outputs = (3 + 3) + (2 + 2);
    assert_eq!(checked, 3 * 3 * 3 * 2 * inputs.len() * outputs);
}

fn model(config: &ModelConfig) -> Model {
    Model::new(config, &IO, 0, &Device::flex()).unwrap()
}

#[test]
#[should_panic(expected = "the parameter norm.gamma with 2 numbers is not declared")]
fn an_undeclared_parameter_is_caught() {
    let mut model = model(&small(2, dss(3)));
    model.norm = Some(Norm::new(NormKind::Layer, 1e-5, 2, &Device::flex()));
    model.parameters();
}

#[test]
#[should_panic(expected = "the parameter norm.gamma with 3 numbers is not declared")]
fn a_parameter_of_another_size_is_caught() {
    let mut model =
        model(&ModelConfig { prenorm: true, norm: NormKind::Layer, ..small(2, dss(3)) });
    model.norm = Some(Norm::new(NormKind::Layer, 1e-5, 3, &Device::flex()));
    model.parameters();
}

#[test]
#[should_panic(expected = "declared, but not a parameter: [\"positions\"]")]
fn a_missing_parameter_is_caught() {
    let mut model = model(&ModelConfig { positions: Positions::Learned, ..small(2, dss(3)) });
    model.positions = None;
    model.parameters();
}
