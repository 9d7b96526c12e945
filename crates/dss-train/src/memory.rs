//! The peak memory of the process, and an estimate of what a run will need.

use dss_nn::ModelConfig;
use dss_nn::config::MixerContext;
use dss_nn::config::{ModelIo, OutputKind};

use crate::config::Config;
use crate::error::{Error, Result};

/// Peak resident memory of this process in MB (10⁶ bytes): `VmHWM` of `/proc/self/status`; `None` where there is none.
pub fn peak_mb() -> Option<f64> {
    Some(bytes("/proc/self/status", "VmHWM:")? as f64 / 1e6)
}

/// Resets the peak of [`peak_mb`] to the memory in use now; does nothing where the system cannot.
pub fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Bytes of memory that are free now; `None` where the system does not say.
pub fn available() -> Option<u64> {
    bytes("/proc/meminfo", "MemAvailable:")
}

/// The field `name` of a file of `/proc`.
fn bytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// Refuses a run that would not fit into the memory that is free now; where the system does not say, none is refused.
///
/// # Errors
/// [`Error::Memory`].
pub fn check(config: &Config, io: &ModelIo, examples: [usize; 3]) -> Result<()> {
    match bytes("/proc/meminfo", "MemAvailable:") {
        Some(available) => fits(config, io, examples, available),
        None => Ok(()),
    }
}

/// Refuses a forward pass over `batch` examples that would not fit into the memory that is free now.
///
/// # Errors
/// [`Error::Batch`].
pub fn check_forward(model: &ModelConfig, io: &ModelIo, batch: usize) -> Result<()> {
    match bytes("/proc/meminfo", "MemAvailable:") {
        Some(available) => forward_fits(model, io, batch, available),
        None => Ok(()),
    }
}

fn forward_fits(model: &ModelConfig, io: &ModelIo, batch: usize, available: u64) -> Result<()> {
    let needed = pass(model, io, batch, FORWARD_COPIES);
    if needed <= available {
        return Ok(());
    }
    Err(Error::Batch {
        needed_mb: needed.div_ceil(1_000_000),
        available_mb: available / 1_000_000,
        batch,
    })
}

fn fits(config: &Config, io: &ModelIo, examples: [usize; 3], available: u64) -> Result<()> {
    let needed = needed(config, io, examples);
    if needed <= available {
        return Ok(());
    }
    Err(Error::Memory {
        needed_mb: needed.div_ceil(1_000_000),
        available_mb: available / 1_000_000,
        length: io.len,
        evaluation: config.train.evaluation_batch() > config.train.shard_batch(),
    })
}

/// A rough estimate in bytes, rather too low than too high: weights, gradients and the moments of AdamW; what the
/// layers keep for the backward pass; the outputs; the order of the examples.
fn needed(config: &Config, io: &ModelIo, [train, val, test]: [usize; 3]) -> u64 {
    let parameters = config.model.tensor_elements(io).unwrap_or(usize::MAX);
    let copies = config.model.layers.saturating_mul(3).saturating_add(FORWARD_COPIES);
    let training = pass(&config.model, io, config.train.shard_batch().min(train), copies);
    let batch = config.train.evaluation_batch().min(val.max(test));
    let evaluation = pass(&config.model, io, batch, FORWARD_COPIES);
    product(&[parameters, 4, 4])
        .saturating_add(training.max(evaluation))
        .saturating_add(mixers(&config.model, io, config.train.batch.min(train)))
        .saturating_add(product(&[train.max(val).max(test), 4]))
}

/// Bytes that the mixers keep for the backward pass of a batch besides the activations.
fn mixers(model: &ModelConfig, io: &ModelIo, batch: usize) -> u64 {
    let context = MixerContext::new(model, io.len);
    let mixer = model.mixer.settings();
    let each = mixer.kept_for_backward(&context);
    let sequences = if matches!(io.output, OutputKind::Pair { .. }) { 2 } else { 1 };
    let per_sequence = mixer.kept_per_sequence(&context).saturating_mul(sequences);
    let each = each.saturating_add(per_sequence.saturating_mul(batch as u64));
    product(&[model.layers]).saturating_mul(each)
}

/// Activations that are held at once where no gradient is asked for.
const FORWARD_COPIES: usize = 8;

/// Activations of a stage that are held at once: of its convolution, with the residual, and after the norm.
const STAGE_COPIES: usize = 3;

/// Bytes of `copies` activations `[B, L, H]`, and of the outputs.
fn pass(model: &ModelConfig, io: &ModelIo, batch: usize, copies: usize) -> u64 {
    let (sequences, answers, outputs) = match io.output {
        OutputKind::Sequence { outputs } => (1, 1, outputs),
        OutputKind::Position { outputs } => (1, io.len, outputs),
        OutputKind::Pair { outputs } => (2, 1, outputs),
    };
    let layers = match model.stages(io) {
        Some(stages) => product(&[batch, sequences, stages.activations, 4, STAGE_COPIES]),
        None => product(&[batch, sequences, io.len, model.h, 4, copies]),
    };
    // An output in f32, in f64, and its gradient.
    layers.saturating_add(product(&[batch, answers, outputs, 16]))
}

fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1u64, |a, &b| a.saturating_mul(b as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overlay, Setting};

    /// Where the system lets a process do so.
    #[test]
    fn the_peak_can_be_reset() {
        let big = std::hint::black_box(vec![1u8; 256 << 20]);
        let Some(high) = peak_mb() else { return };
        drop(big);
        if std::fs::write("/proc/self/clear_refs", "5").is_ok() {
            reset_peak();
            assert!(peak_mb().is_some_and(|low| low < high - 200.0), "{high}");
        }
    }

    #[test]
    fn huge_runs_are_refused_and_small_ones_are_not() {
        let config = |sets: &[(&str, &str)]| {
            let sets: Overlay = sets.iter().map(|(k, v)| Setting::typed(k, v)).collect();
            Config::resolve("delay", None, &[], &sets).unwrap()
        };
        let io = |len| ModelIo {
            input: dss_nn::InputKind::Tokens { vocab: 10 },
            output: OutputKind::Position { outputs: 8 },
            len,
        };
        let small = [("layers", "2"), ("h", "16"), ("batch", "4")];
        let need = needed(&config(&small), &io(100), [50, 10, 10]);
        // Activations 4 · 100 · 16 · 4 · 14 bytes, outputs 4 · 100 · 8 · 16, and some thousand parameters.
        assert!((409_600..600_000).contains(&need), "{need}");
        assert!(fits(&config(&small), &io(100), [50, 10, 10], need).is_ok());
        let refused = |sets: &[(&str, &str)], len, examples| {
            fits(&config(sets), &io(len), examples, 1 << 40).unwrap_err().to_string()
        };
        let many = [10_000, 10, 10];
        for text in [
            refused(&[("h", "100000000000")], 100, many),
            refused(&[("layers", "9000000000000000000")], 100, many),
            refused(&[("batch", "9000000000000000000")], 1 << 24, many),
            refused(&[("eval_batch", "10000")], 1 << 24, [8, 10_000, 10]),
        ] {
            for part in ["train.batch", "model.h", "model.layers", "length", "MB"] {
                assert!(text.contains(part), "{text}");
            }
        }
        // The composed kernels of S4 are large, the fused ones are not.
        let s4 = [("mixer", "s4"), ("h", "1024"), ("n", "1024"), ("layers", "6"), ("batch", "1")];
        let fused = needed(&config(&s4), &io(1 << 14), many);
        let composed =
            needed(&config(&[&s4[..], &[("form", "composed")]].concat()), &io(1 << 14), many);
        assert!(composed > fused + (1 << 40) && fused < 1 << 34, "{composed} {fused}");
        // A batch is never larger than the data.
        assert!(
            fits(&config(&[("batch", "9000000000000000000")]), &io(100), many, 1 << 40).is_ok()
        );
    }

    #[test]
    fn a_huge_batch_of_an_evaluation_is_refused() {
        let io = ModelIo {
            input: dss_nn::InputKind::Values { channels: 1 },
            output: OutputKind::Sequence { outputs: 10 },
            len: 1000,
        };
        let model = ModelConfig { h: 128, ..ModelConfig::default() };
        assert!(forward_fits(&model, &io, 100, 1 << 30).is_ok());
        let refused = forward_fits(&model, &io, 1_000_000, 1 << 30).unwrap_err().to_string();
        assert!(refused.contains("1000000") && refused.contains("--batch"), "{refused}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn peak_counts_what_was_touched() {
        let held = vec![1u8; 64 << 20];
        std::hint::black_box(&held);
        assert!(super::peak_mb().unwrap() > 64.0);
    }
}
