//! The presets that come with the program, one TOML file each.

/// A named set of values for a task.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The task it is for.
    pub task: &'static str,
    /// Its name: `laptop` is for two cores and little patience, `paper` has the paper's sizes; `causal` and
    /// `hard` replace `laptop` in the paper's comparisons where `laptop` has what these cannot have.
    pub name: &'static str,
    /// The file. Its first line is a comment that says what it is; the comment after a value says where it comes from.
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
    /// Where the value in a line (counted from 1) comes from: the comment after it.
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
    "pathfinder" "hard",
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
    /// How it changes the values of earlier layers.
    pub(super) rules: &'static [OverlayRule],
    /// The file, as that of a [`Preset`].
    pub text: &'static str,
}

/// A value that follows from others.
#[derive(Clone, Copy, Debug)]
pub(super) enum OverlayRule {
    /// `train.lr_w` is `train.lr`: C is a parameter like others in the code of S4.
    LearningRateOfC,
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
    ($option:literal $folder:literal: $(
        $name:literal $(as $label:literal)? for $($mixer:literal)|+ $(with $rule:ident)?
    ),* $(,)?) => {
        &[$(NamedOverlay {
            option: $option,
            name: $name,
            label: concat!($($label)?),
            mixers: &[$($mixer),+],
            rules: &[$(OverlayRule::$rule)?],
            text: include_str!(concat!("../../presets/", $folder, "/", $name, ".toml")),
        }),*]
    };
}

/// The models, the default first. To add one, put a file into `presets/models` and a line here.
pub const MODELS: &[NamedOverlay] = overlays![
    "--model" "models":
    "dss-softmax" as "DSS-softmax" for "dss",
    "dss-exp" as "DSS-exp" for "dss",
    "dss-exp-no-scale" as "DSS-exp-no-scale" for "dss",
    "s4" as "S4" for "s4" | "s4d" with LearningRateOfC,
    "s4d" as "S4D" for "s4" | "s4d" with LearningRateOfC,
    "transformer" as "Transformer" for "attention",
    "linear-transformer" as "Linear Transformer" for "linear-attention",
    "performer" as "Performer" for "performer",
    "fnet" as "FNet" for "fnet",
    "reformer" as "Reformer" for "reformer",
    "bigbird" as "BigBird" for "bigbird",
    "h-transformer-1d" as "H-Transformer-1D" for "h-transformer-1d",
    "nystromformer" as "Nyströmformer" for "nystromformer",
    "luna" as "Luna-256" for "luna",
    "ode-rnn" as "ODE-RNN" for "ode-rnn",
    "nrde" as "NRDE" for "nrde",
    "exp-rnn" as "ExpRNN" for "exp-rnn",
    "lipschitz-rnn" as "LipschitzRNN" for "lipschitz-rnn",
    "ckconv" as "CKConv" for "ckconv",
    "wavegan-d" as "WaveGAN-D" for "wavegan-d",
    "s5" as "S5" for "s5",
    "lru" as "LRU" for "lru",
    "mega-ema" as "Mega-EMA" for "mega-ema",
    "gru" as "GRU" for "gru",
    "lstm" as "LSTM" for "lstm",
];

/// The ablations.
pub const ABLATIONS: &[NamedOverlay] = overlays![
    "--ablation" "ablations":
    "random-init" as "DSS-softmax, random init" for "dss",
    "kernel-128" as "DSS-softmax, kernel length 128" for "dss" | "s4" | "s4d" | "mega-ema",
    "exp-no-scale" for "dss",
    "tied-delta" as "DSS-softmax, tied Δ" for "dss",
];

/// The settings that models were published with: over the preset `paper` and the model's own.
#[derive(Debug)]
pub(super) struct Published {
    /// The name of the file.
    pub name: &'static str,
    /// The models it is for, of [`MODELS`].
    pub models: &'static [&'static str],
    /// The file, with a table for each task; a comment after every value says where it comes from.
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
