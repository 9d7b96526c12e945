//! The lines that `dss stream` prints, and when.

use dss_infer::{Model, Window};
use dss_train::loss::softmax;
use serde_json::{Value, json};

use super::window;
use crate::args::StreamArgs;
use crate::failure::Failure;
use crate::{output, text};

/// Seconds between two lines about sound.
const SECONDS: f64 = 0.1;

pub struct Answers<'a> {
    labels: &'a [String],
    /// Positions per second.
    rate: Option<f64>,
    /// Positions between two lines; may be a fraction.
    every: f64,
    json: bool,
    /// The model's output, and the position it is for.
    out: Vec<f32>,
    position: u64,
    /// The position of the last line.
    printed: u64,
    /// A line waits for the next position: what follows the last one, such as the end of a text, is part of its answer.
    wait: bool,
    waiting: bool,
}

impl<'a> Answers<'a> {
    /// For a stream at `position`; with `wait`, a line is printed only when the next position has been read.
    pub fn new(
        model: &'a Model,
        args: &StreamArgs,
        rate: Option<f64>,
        window: Option<Window>,
        position: u64,
        wait: bool,
    ) -> Result<Self, Failure> {
        let every = match args.every {
            Some(span) => window::positions(span, "--every", rate)?,
            None => window
                .map(|window| window.hop as f64)
                .or(rate.map(|rate| SECONDS * rate))
                .unwrap_or(1.0),
        };
        let out = vec![0.0; model.outputs()];
        let labels = model.labels();
        Ok(Self {
            labels,
            rate,
            every,
            json: args.json,
            out,
            position,
            printed: position,
            wait,
            waiting: false,
        })
    }

    /// Positions from here to the next line.
    pub fn until_next(&self, position: u64) -> u64 {
        let line = (position as f64 / self.every).floor() + 1.0;
        let next = (line * self.every).round() as u64;
        // Rounding may give the line that was just printed.
        if next > position { next - position } else { 1 }
    }

    /// Where the next answer goes. A line that waited is printed first.
    pub fn buffer(&mut self) -> Result<&mut [f32], Failure> {
        if self.waiting {
            self.print_line()?;
        }
        Ok(&mut self.out)
    }

    /// Another answer for the same position.
    pub fn replace(&mut self, out: &[f32]) {
        self.out.copy_from_slice(out);
    }

    /// The stream has come to `position`; prints a line if it is time.
    pub fn taken(&mut self, position: u64) -> Result<(), Failure> {
        let due = |p: u64| (p as f64 / self.every + 1e-9).floor();
        let now = due(position) > due(self.position);
        self.position = position;
        self.waiting = now && self.wait;
        if now && !self.wait { self.print_line() } else { Ok(()) }
    }

    /// The last line, unless it was printed already.
    pub fn last(&mut self) -> Result<(), Failure> {
        if self.position > self.printed { self.print_line() } else { Ok(()) }
    }

    fn print_line(&mut self) -> Result<(), Failure> {
        (self.printed, self.waiting) = (self.position, false);
        let line = if self.json { self.object().to_string() } else { self.text() };
        Ok(output::line(&line)?)
    }

    /// Probabilities of the classes, or values.
    fn numbers(&self) -> Vec<f64> {
        let out: Vec<f64> = self.out.iter().map(|&x| x.into()).collect();
        if self.labels.is_empty() { out } else { softmax(&out) }
    }

    fn best(numbers: &[f64]) -> (usize, f64) {
        let best = numbers.iter().copied().enumerate();
        best.fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a })
    }

    fn text(&self) -> String {
        let numbers = self.numbers();
        let mut cells = vec![match self.rate {
            Some(rate) => format!("{:.3} s", self.position as f64 / rate),
            None => self.position.to_string(),
        }];
        if self.labels.is_empty() {
            cells.extend(numbers.iter().map(|&x| text::number(x)));
        } else {
            let (class, probability) = Self::best(&numbers);
            cells.extend([text::cell(&self.labels[class]), format!("{probability:.4}")]);
        }
        cells.join("\t")
    }

    fn object(&self) -> Value {
        let numbers = self.numbers();
        let mut object = json!({"position": self.position});
        if let Some(rate) = self.rate {
            object["time"] = json!(self.position as f64 / rate);
        }
        if self.labels.is_empty() {
            object["values"] = json!(numbers);
            return object;
        }
        let (class, probability) = Self::best(&numbers);
        object["label"] = json!(self.labels[class]);
        object["probability"] = json!(probability);
        let all = self.labels.iter().cloned().zip(numbers.iter().map(|p| json!(p)));
        object["probabilities"] = Value::Object(all.collect());
        object
    }
}
