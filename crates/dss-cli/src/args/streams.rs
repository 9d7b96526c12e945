//! Running models: the page, streams, generation.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `dss web`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss web                        serve the built-in page to this machine, and open it
  dss web --port 9000 --no-open
  dss web --dir ~/page           a page in another folder

The address is printed to standard output. Only the files of the page are served, and only to this machine.")]
pub struct WebArgs {
    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub port: u16,
    /// Serve the page in this folder instead of the built-in one
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Do not open a browser
    #[arg(long)]
    pub no_open: bool,
}

/// `dss stream`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss stream runs/speech-laptop-0 word.wav
  arecord -q -t raw -f S16_LE -r 16000 | dss stream runs/speech-laptop-0 - --window 1s --hop 250ms
  dss stream speech.safetensors phone.wav --rate 8000 --json
  tail -f sensor.csv | dss stream runs/files-laptop-0 - --every 1 --state sensor.state
  dss stream runs/text-laptop-0 review.txt --every 100

Reads WAV, FLAC, rows of numbers (CSV, TSV), .npy arrays or text, whichever the model was trained on; raw samples from \
a pipe or with --raw. Every line is the prediction for all input so far, or with --window for the last window of it: the \
time (or position), the answer and, for classes, its probability. Sound at a rate other than the model's is read \
with a longer or shorter step. With --state the stream continues where it stopped, also after Ctrl-C (exit code 130).")]
pub struct StreamArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// The input; - for standard input
    #[arg(default_value = "-", value_name = "INPUT")]
    pub input: PathBuf,
    /// How often to print a prediction: 100ms, 2s, or a number of positions [default: every hop with --window, 100ms of
    /// sound, else every position]
    #[arg(long, value_name = "TIME|N", value_parser = span)]
    pub every: Option<Span>,
    /// Predict from the last 1s, 500ms, or number of positions only, with a new stream at every hop [default: the whole
    /// input; the training length for models that cannot run past it]
    #[arg(long, value_name = "TIME|N", value_parser = span)]
    pub window: Option<Span>,
    /// How often a new stream begins [default: a quarter of the window]
    #[arg(long, value_name = "TIME|N", value_parser = span)]
    pub hop: Option<Span>,
    /// Positions per second of the input [default: what a sound file says, else the model's own]
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    pub rate: Option<f64>,
    /// What the bytes are
    #[arg(long, value_enum, default_value = "auto")]
    pub format: Format,
    /// Raw 16-bit samples without a header: short for --format s16le
    #[arg(long, conflicts_with = "format")]
    pub raw: bool,
    /// Load the state from this file, if it exists, and save it there at the end
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// One JSON object per line, with all probabilities
    #[arg(long)]
    pub json: bool,
}

/// A length of input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    Seconds(f64),
    Positions(u64),
}

impl Span {
    /// In positions, perhaps with a fraction; `None` if it is a time and the input has no rate.
    pub fn positions(self, rate: Option<f64>) -> Option<f64> {
        match self {
            Self::Seconds(seconds) => rate.map(|rate| seconds * rate),
            Self::Positions(count) => Some(count as f64),
        }
    }
}

/// What the bytes of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// By its first bytes: WAV, FLAC (from a pipe also raw 16-bit samples), an .npy array, else text
    Auto,
    /// WAV
    Wav,
    /// FLAC
    Flac,
    /// Raw 16-bit samples, little-endian
    S16le,
    /// Raw samples or numbers as 32-bit floats, little-endian
    F32le,
    /// Rows of numbers, or text
    Text,
    /// A NumPy array
    Npy,
}

/// `dss generate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dss generate runs/lm-laptop-0 --prompt 'ROMEO:'
  dss generate runs/lm-laptop-0 --prompt 'To be' --length 2000 --temperature 0.7 --top-p 0.9 --seed 4
  dss generate lm.safetensors --prompt 'First' --temperature 0

The same seed gives the same text. The speed is printed to standard error.")]
pub struct GenerateArgs {
    /// The run directory, or a model file
    #[arg(value_name = "RUN|FILE")]
    pub model: PathBuf,
    /// Beginning of the text
    #[arg(long, value_name = "TEXT", default_value = "\n", hide_default_value = true)]
    pub prompt: String,
    /// Tokens to write
    #[arg(long, default_value = "500", value_name = "N")]
    pub length: usize,
    /// Temperature: below 1 safer, above 1 more random; 0 always takes the likeliest token
    #[arg(long, default_value = "1", value_name = "T", allow_negative_numbers = true)]
    pub temperature: f64,
    /// Choose among the K likeliest tokens; 0: all
    #[arg(long, default_value = "0", value_name = "K")]
    pub top_k: usize,
    /// Choose among the likeliest tokens that together have this probability
    #[arg(long, default_value = "1", value_name = "P")]
    pub top_p: f64,
    /// Random seed
    #[arg(long, default_value = "0", value_name = "S")]
    pub seed: u64,
}

fn span(text: &str) -> Result<Span, String> {
    let text = text.trim();
    let seconds = |number: &str| number.trim().parse::<f64>().ok();
    let span = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => seconds(number).map(|x| Span::Seconds(x / 1e3)),
        (_, Some(number)) => seconds(number).map(Span::Seconds),
        _ => text.parse().ok().map(Span::Positions),
    };
    let valid = |span: &Span| match span {
        Span::Seconds(x) => *x > 0.0 && x.is_finite(),
        Span::Positions(n) => *n > 0,
    };
    let expected = "expected a time such as 100ms or 2s, or a number of positions";
    span.filter(valid).ok_or_else(|| expected.to_owned())
}

fn hertz(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (1e-6..=1e9).contains(&x) => Ok(x),
        _ => Err("expected positions per second, such as 16000, from 1e-6 to 1e9".into()),
    }
}
