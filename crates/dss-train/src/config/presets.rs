//! The presets that come with the program, one TOML file each.

/// A named set of values for a task.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The task it is for.
    pub task: &'static str,
    /// Its name: `laptop` is for two cores and little patience, `paper` has the paper's sizes; `causal` takes the place
    /// of `laptop` in the paper's comparisons where that is bidirectional and the paper's model is not.
    pub name: &'static str,
    /// The file. Its first line is a comment that says what it is; the comment behind a value says where it comes from.
    pub text: &'static str,
}

impl Preset {
    /// Its description, in one line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    pub(super) fn document(&self) -> BuiltIn {
        let name = format!("preset {}", self.name);
        BuiltIn { name, text: self.text, part: None, source: "our choice".to_owned() }
    }
}

/// A document that comes with the program.
pub(super) struct BuiltIn {
    /// Its name in messages.
    pub name: String,
    pub text: &'static str,
    /// The table that counts, if the file has one for each task.
    pub part: Option<String>,
    /// The source of values that have no comment.
    pub source: String,
}

impl BuiltIn {
    /// Where the value in a line (counted from 1) comes from: the comment behind it.
    pub fn source(&self, line: usize) -> &str {
        let comment = self.text.lines().nth(line - 1).and_then(|line| line.split_once('#'));
        comment.map_or(&self.source, |(_, comment)| comment.trim())
    }
}

/// The preset that is taken when none is named.
pub const DEFAULT_PRESET: &str = "laptop";

macro_rules! presets {
    ($($task:literal $name:literal),* $(,)?) => {
        &[$(Preset {
            task: $task,
            name: $name,
            text: include_str!(concat!("../../presets/", $task, "-", $name, ".toml")),
        }),*]
    };
}

/// All presets, in the order of the tasks.
pub const PRESETS: &[Preset] = presets![
    "listops" "laptop",
    "listops" "causal",
    "listops" "paper",
    "smnist" "laptop",
    "smnist" "paper",
    "pmnist" "laptop",
    "pmnist" "paper",
    "text" "laptop",
    "text" "paper",
    "text" "authors",
    "retrieval" "laptop",
    "retrieval" "paper",
    "pathfinder" "laptop",
    "pathfinder" "paper",
    "path-x" "laptop",
    "path-x" "paper",
    "image" "laptop",
    "image" "paper",
    "image" "authors",
    "speech" "laptop",
    "speech" "paper",
    "speech-mfcc" "laptop",
    "speech-mfcc" "paper",
    "lm" "laptop",
    "forecast" "laptop",
    "delay" "laptop",
    "adding" "laptop",
    "files" "laptop",
];

/// Settings over a preset, of a model or an ablation.
#[derive(Clone, Copy, Debug)]
pub struct NamedOverlay {
    /// The option of the command line: `--model` or `--ablation`.
    pub option: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its name in the tables of `dss repro`; empty for what is not a row of its own there.
    pub label: &'static str,
    /// The values of `model.mixer.kind` it belongs to: an ablation is refused with others.
    pub mixers: &'static [&'static str],
    /// The file, as that of a [`Preset`].
    pub text: &'static str,
}

impl NamedOverlay {
    /// Its description, in one line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// Its name in messages.
    pub(super) fn place(&self) -> String {
        format!("{} {}", self.option, self.name)
    }

    pub(super) fn document(&self) -> BuiltIn {
        BuiltIn { name: self.place(), text: self.text, part: None, source: self.place() }
    }
}

macro_rules! overlays {
    ($option:literal $folder:literal: $($name:literal $(as $label:literal)? for $mixers:ident),* $(,)?) => {
        &[$(NamedOverlay {
            option: $option,
            name: $name,
            label: concat!($($label)?),
            mixers: $mixers,
            text: include_str!(concat!("../../presets/", $folder, "/", $name, ".toml")),
        }),*]
    };
}

const DSS: &[&str] = &["dss"];
pub(super) const S4_FAMILY: &[&str] = &["s4", "s4d"];
const ANY_SSM: &[&str] = &["dss", "s4", "s4d", "mega-ema"];
const ATTENTION: &[&str] = &["attention"];
const LINEAR_ATTENTION: &[&str] = &["linear-attention"];
const PERFORMER: &[&str] = &["performer"];
const FNET: &[&str] = &["fnet"];
const GRU: &[&str] = &["gru"];
const LSTM: &[&str] = &["lstm"];
const LRU: &[&str] = &["lru"];
const S5: &[&str] = &["s5"];
const MEGA_EMA: &[&str] = &["mega-ema"];
const EXP_RNN: &[&str] = &["exp-rnn"];
const LIPSCHITZ_RNN: &[&str] = &["lipschitz-rnn"];
const ODE_RNN: &[&str] = &["ode-rnn"];
const NRDE: &[&str] = &["nrde"];
const CKCONV: &[&str] = &["ckconv"];
const BIGBIRD: &[&str] = &["bigbird"];
const REFORMER: &[&str] = &["reformer"];
const H_TRANSFORMER_1D: &[&str] = &["h-transformer-1d"];
const NYSTROM: &[&str] = &["nystromformer"];
const LUNA: &[&str] = &["luna"];
const WAVEGAN_D: &[&str] = &["wavegan-d"];

/// The models that can be named, the default first: a new one is a file in `presets/models` and a line here.
pub const MODELS: &[NamedOverlay] = overlays![
    "--model" "models":
    "dss-softmax" as "DSS-softmax" for DSS,
    "dss-exp" as "DSS-exp" for DSS,
    "dss-exp-no-scale" as "DSS-exp-no-scale" for DSS,
    "s4" as "S4" for S4_FAMILY,
    "s4d" as "S4D" for S4_FAMILY,
    "transformer" as "Transformer" for ATTENTION,
    "linear-transformer" as "Linear Transformer" for LINEAR_ATTENTION,
    "performer" as "Performer" for PERFORMER,
    "fnet" as "FNet" for FNET,
    "reformer" as "Reformer" for REFORMER,
    "bigbird" as "BigBird" for BIGBIRD,
    "h-transformer-1d" as "H-Transformer-1D" for H_TRANSFORMER_1D,
    "nystromformer" as "Nyströmformer" for NYSTROM,
    "luna" as "Luna-256" for LUNA,
    "ode-rnn" as "ODE-RNN" for ODE_RNN,
    "nrde" as "NRDE" for NRDE,
    "exp-rnn" as "ExpRNN" for EXP_RNN,
    "lipschitz-rnn" as "LipschitzRNN" for LIPSCHITZ_RNN,
    "ckconv" as "CKConv" for CKCONV,
    "wavegan-d" as "WaveGAN-D" for WAVEGAN_D,
    "s5" as "S5" for S5,
    "lru" as "LRU" for LRU,
    "mega-ema" as "Mega-EMA" for MEGA_EMA,
    "gru" as "GRU" for GRU,
    "lstm" as "LSTM" for LSTM,
];

/// The ablations.
pub const ABLATIONS: &[NamedOverlay] = overlays![
    "--ablation" "ablations":
    "random-init" as "DSS-softmax, random init" for DSS,
    "kernel-128" as "DSS-softmax, kernel length 128" for ANY_SSM,
    "exp-no-scale" for DSS,
    "tied-delta" as "DSS-softmax, tied Δ" for DSS,
];

/// The settings that models were published with: over the preset `paper` and the model's own.
#[derive(Debug)]
pub(super) struct Published {
    /// The name of the file.
    pub name: &'static str,
    /// The models it is for, of [`MODELS`].
    pub models: &'static [&'static str],
    /// The file, with a table for each task; a comment behind every value says where it comes from.
    pub text: &'static str,
}

impl Published {
    pub fn document(&self, task: &str) -> BuiltIn {
        let name = format!("presets/paper/{}.toml", self.name);
        let source = name.clone();
        BuiltIn { name, text: self.text, part: Some(task.to_owned()), source }
    }
}

macro_rules! published {
    ($($name:literal for $($model:literal),+);* $(;)?) => {
        &[$(Published {
            name: $name,
            models: &[$($model),+],
            text: include_str!(concat!("../../presets/paper/", $name, ".toml")),
        }),*]
    };
}

/// A later one overrides an earlier one.
pub(super) const PUBLISHED: &[Published] = published![
    "long-range-arena" for
        "transformer", "linear-transformer", "performer", "reformer", "bigbird", "h-transformer-1d";
    "transformer" for "transformer";
    "linear-transformer" for "linear-transformer";
    "performer" for "performer";
    "reformer" for "reformer";
    "bigbird" for "bigbird";
    "h-transformer-1d" for "h-transformer-1d";
    "fnet" for "fnet";
    "nystromformer" for "nystromformer";
    "luna" for "luna";
    "ode-rnn" for "ode-rnn";
    "nrde" for "nrde";
    "exp-rnn" for "exp-rnn";
    "lipschitz-rnn" for "lipschitz-rnn";
    "ckconv" for "ckconv";
    "wavegan-d" for "wavegan-d";
    "s4" for "s4", "s4d";
];

/// The presets of a task.
pub fn presets_of(task: &str) -> impl Iterator<Item = &'static Preset> + '_ {
    PRESETS.iter().filter(move |p| p.task == task)
}
