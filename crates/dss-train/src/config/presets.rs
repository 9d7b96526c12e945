//! The presets that come with the program, one TOML file each.

/// A named set of values for a task.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The task it is for.
    pub task: &'static str,
    /// Its name: `laptop` is for two cores and little patience, `paper` has the paper's sizes.
    pub name: &'static str,
    /// The file. Its first line is a comment that says what it is; the comment behind a value says where it comes from.
    pub text: &'static str,
}

impl Preset {
    /// What it is, in one line.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// Its name in messages.
    pub(super) fn place(&self) -> String {
        format!("preset {}", self.name)
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
    "lm" "laptop",
    "forecast" "laptop",
    "delay" "laptop",
    "adding" "laptop",
    "files" "laptop",
];

/// The presets of a task.
pub fn presets_of(task: &str) -> impl Iterator<Item = &'static Preset> + '_ {
    PRESETS.iter().filter(move |p| p.task == task)
}
