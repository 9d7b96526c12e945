//! `answers.json` of a run: the best model's answers to some examples of the test set, for the report.

mod words;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dss_data::check::token_text;
use dss_data::{Batch, BatchTarget, Dataset, Input, InputKind, TargetKind, Task};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::group::Group;
use crate::loss::{assess, softmax};
use crate::run_dir::atomic;

/// How many of the examples with the largest loss are kept.
const WORST: usize = 6;
/// Examples of a regression that asks for one vector: dots of a scatter plot.
const DOTS: usize = 400;
/// Examples of a regression that asks for values at positions: curves.
const CURVES: usize = 3;
/// Likeliest classes of an answer.
const CLASSES: usize = 3;
/// Longer inputs are reduced to their outline.
const POSITIONS: usize = 2000;

/// Some of a model's answers on the test set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Optimiser step of the model.
    pub step: u64,
    /// The examples with the largest loss, the worst first.
    pub worst: Vec<Answer>,
    /// Examples at equal distances in the test set; of a regression only.
    pub sample: Vec<Answer>,
}

/// One example and the answer to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its number in the test set, from 0.
    pub example: usize,
    /// Mean loss over its targets.
    pub loss: f64,
    /// The sequence, or both of a pair; none in a sample of single values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputOutline>,
    /// The right answer and the model's.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Answer {
    /// The number of the example as people count, from 1.
    pub fn number(&self) -> usize {
        self.example.saturating_add(1)
    }
}

/// An input as far as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputOutline {
    /// Its tokens as text, the first of them.
    Text(String),
    /// Its numbers.
    Values {
        /// Numbers per position.
        channels: usize,
        /// Positions of the whole sequence.
        positions: usize,
        /// `[kept positions, channels]`: all of them, or the least and the largest of each of many stretches.
        data: Vec<f32>,
    },
}

/// The right answer and the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// A class of the sequence.
    Class {
        /// The right one.
        class: usize,
        /// The likeliest ones with their probabilities.
        likeliest: Vec<(usize, f64)>,
    },
    /// Classes of positions.
    Positions {
        /// Positions that have a class.
        asked: u64,
        /// Positions whose class was predicted.
        right: u64,
    },
    /// Numbers.
    Values {
        /// Where each of them belongs, if they belong to positions.
        positions: Vec<usize>,
        /// The right ones.
        targets: Vec<f32>,
        /// The predicted ones.
        outputs: Vec<f64>,
    },
}

impl Answers {
    const FILE: &str = "answers.json";

    /// Writes `answers.json`.
    pub fn write(&self, run_dir: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).expect("plain data");
        atomic::write_file(&run_dir.join(Self::FILE), &text)
    }

    /// Reads `answers.json`; `None` if the run has none.
    pub fn read(run_dir: &Path) -> Result<Option<Self>> {
        let path = run_dir.join(Self::FILE);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).map_err(Error::io("cannot read", &path))?;
        let answers = serde_json::from_slice(&text);
        answers.map(Some).map_err(|error| Error::Damaged { path, what: error.to_string() })
    }
}

/// Looks at batches of an evaluation, in their order, and keeps what [`Answers`] shows.
pub(crate) struct Collector<'a> {
    task: &'a Task,
    worst: Vec<Answer>,
    sample: Vec<Answer>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(task: &'a Task) -> Self {
        Self { task, worst: Vec::new(), sample: Vec::new() }
    }

    /// Takes the outputs of one batch, `[rows, width]`; `first` is the number of its first example.
    pub(crate) fn add_batch(&mut self, first: usize, batch: &Batch, outputs: &[f64]) {
        // A language model is shown by what it writes.
        if matches!(self.task.spec.target, TargetKind::NextToken { .. }) || outputs.is_empty() {
            return;
        }
        for (i, outputs) in outputs.chunks(outputs.len() / batch.examples).enumerate() {
            let answer = self.answer_for(first + i, target_of_example(batch, i), outputs);
            if self.samples(first + i) {
                self.sample.push(answer.clone());
            }
            let place = self.worst.partition_point(|other| other.loss >= answer.loss);
            if place < WORST {
                self.worst.insert(place, answer);
                self.worst.truncate(WORST);
            }
        }
    }

    /// The answers that all ranks have kept: of each list what one process would have kept.
    pub(crate) fn gathered(self, group: &Group) -> Result<Self> {
        if group.size() == 1 {
            return Ok(self);
        }
        let gather = |answers: &[Answer]| -> Result<Vec<Answer>> {
            let lists = group.gather_lists(words::from_answers(answers))?;
            Ok(lists.iter().flat_map(|list| words::to_answers(list)).collect())
        };
        let (mut worst, mut sample) = (gather(&self.worst)?, gather(&self.sample)?);
        // Of equal losses the first example comes first.
        worst.sort_by(|a, b| b.loss.total_cmp(&a.loss).then(a.example.cmp(&b.example)));
        worst.truncate(WORST);
        sample.sort_by_key(|answer| answer.example);
        Ok(Self { worst, sample, ..self })
    }

    /// Whether an example is one of those at equal distances.
    fn samples(&self, example: usize) -> bool {
        let count = match self.task.spec.target {
            TargetKind::Values { .. } => DOTS,
            TargetKind::PositionValues { .. } => CURVES,
            _ => return false,
        };
        let all = self.task.test.len();
        example.is_multiple_of(all.div_ceil(count).max(1))
    }

    fn answer_for(&self, example: usize, target: BatchTarget, outputs: &[f64]) -> Answer {
        let width = match &target {
            BatchTarget::Class(classes) | BatchTarget::PositionClasses(classes) => {
                outputs.len() / classes.len()
            }
            BatchTarget::Values(values) | BatchTarget::PositionValues(values) => values.len(),
        };
        let assessed = assess(outputs, width, &target, 1);
        let outcome = match target {
            BatchTarget::Class(classes) => {
                Outcome::Class { class: classes[0] as usize, likeliest: likeliest(outputs) }
            }
            BatchTarget::PositionClasses(_) => {
                Outcome::Positions { asked: assessed.tally.scored, right: assessed.tally.correct }
            }
            BatchTarget::Values(targets) => {
                Outcome::Values { positions: Vec::new(), targets, outputs: outputs.to_vec() }
            }
            BatchTarget::PositionValues(targets) => {
                let per_position = match self.task.spec.target {
                    TargetKind::PositionValues { outputs } => outputs.max(1),
                    _ => 1,
                };
                let asked = (0..targets.len()).filter(|&i| !targets[i].is_nan());
                Outcome::Values {
                    positions: asked.clone().map(|i| i / per_position).collect(),
                    targets: asked.clone().map(|i| targets[i]).collect(),
                    outputs: asked.map(|i| outputs[i]).collect(),
                }
            }
        };
        let loss = assessed.tally.mean_loss();
        Answer { example, loss, inputs: Vec::new(), outcome }
    }

    /// The answers, with the inputs that are shown.
    pub(crate) fn finish(self, step: u64) -> Result<Answers> {
        let Self { task, mut worst, mut sample, .. } = self;
        let curves = matches!(task.spec.target, TargetKind::PositionValues { .. });
        let shown = worst.iter_mut().chain(sample.iter_mut().filter(|_| curves));
        for answer in shown {
            answer.inputs = outlines(task, &task.test, answer.example)?;
        }
        Ok(Answers { step, worst, sample })
    }
}

/// What one example of a batch asks for.
fn target_of_example(batch: &Batch, i: usize) -> BatchTarget {
    fn part<T: Clone>(all: &[T], examples: usize, i: usize) -> Vec<T> {
        let size = all.len() / examples;
        all[i * size..(i + 1) * size].to_vec()
    }
    let n = batch.examples;
    match &batch.target {
        BatchTarget::Class(classes) => BatchTarget::Class(part(classes, n, i)),
        BatchTarget::PositionClasses(classes) => BatchTarget::PositionClasses(part(classes, n, i)),
        BatchTarget::Values(values) => BatchTarget::Values(part(values, n, i)),
        BatchTarget::PositionValues(values) => BatchTarget::PositionValues(part(values, n, i)),
    }
}

fn likeliest(logits: &[f64]) -> Vec<(usize, f64)> {
    let mut classes: Vec<(usize, f64)> = softmax(logits).into_iter().enumerate().collect();
    classes.sort_by(|a, b| b.1.total_cmp(&a.1));
    classes.truncate(CLASSES);
    classes
}

fn outlines(task: &Task, dataset: &Arc<dyn Dataset>, i: usize) -> Result<Vec<InputOutline>> {
    let example = dataset.example(i)?;
    let inputs = std::iter::once(example.input).chain(example.second);
    let outline = |input| match (input, &task.spec.input) {
        (Input::Values(values), InputKind::Values { channels }) => {
            let positions = values.len() / channels;
            let data = reduce(values, *channels, positions);
            InputOutline::Values { channels: *channels, positions, data }
        }
        (Input::Tokens(tokens), _) => {
            InputOutline::Text(token_text(&tokens, task.vocabulary.as_deref()))
        }
        (Input::Values(_), InputKind::Tokens { .. }) => unreachable!("a batch was made of it"),
    };
    Ok(inputs.map(outline).collect())
}

/// The least and the largest value of each channel in about POSITIONS / 2 stretches.
fn reduce(values: Vec<f32>, channels: usize, positions: usize) -> Vec<f32> {
    if positions <= POSITIONS {
        return values;
    }
    let stretch = (2 * positions).div_ceil(POSITIONS) * channels;
    let extremes = |stretch: &[f32], extreme: fn(f32, f32) -> f32| -> Vec<f32> {
        let of_channel = |c: usize| stretch[c..].iter().step_by(channels).copied().reduce(extreme);
        (0..channels).filter_map(of_channel).collect()
    };
    values
        .chunks(stretch)
        .flat_map(|stretch| [extremes(stretch, f32::min), extremes(stretch, f32::max)].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_inputs_keep_their_peaks() {
        let mut values = vec![0.0; 2 * 16_000];
        values[2 * 7001] = 3.0;
        values[2 * 9000 + 1] = -2.0;
        let kept = reduce(values.clone(), 2, 16_000);
        assert_eq!(kept.len(), 2 * 2000);
        let peaks = |values: &[f32]| {
            [0, 1].map(|c| {
                let channel = values[c..].iter().step_by(2);
                channel.fold([0f32; 2], |[low, high], x| [low.min(*x), high.max(*x)])
            })
        };
        assert_eq!(peaks(&kept), peaks(&values));
        assert_eq!(reduce(vec![1.0; 10], 1, 10), [1.0; 10]);
    }
}
