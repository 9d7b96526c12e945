//! One model and its current stream or text.

use dss_infer::Model;
use dss_infer::generate::{Generator, Sampling};

use crate::describe::{Description, Usage};
use crate::listen::SoundListener;
use crate::picture::{Axis, picture};

/// Errors are for people to read.
pub type Result<T, E = String> = std::result::Result<T, E>;

/// A model, and the stream that it listens to or writes.
pub struct Engine {
    model: Model,
    description: Description,
    listener: Option<SoundListener>,
    generator: Option<Generator>,
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Engine {
    /// The model of a file's bytes, for input at `ratio` times the sampling interval that it was trained with.
    pub fn load(file: &[u8], ratio: f64) -> Result<Self> {
        let mut model = Model::from_bytes(file).map_err(text)?;
        if ratio != 1.0 {
            model = model.at_rate(ratio).map_err(text)?;
        }
        let description = Description::new(&model, ratio)?;
        Ok(Self { model, description, listener: None, generator: None })
    }

    /// What the page has to know about the model, as JSON.
    pub fn describe(&self) -> Result<String> {
        serde_json::to_string(&self.description).map_err(text)
    }

    /// Begins to listen: to everything from now on (`window` = 0), or to the last `window` samples, with a new stream
    /// every `hop`.
    pub fn listen(&mut self, window: usize, hop: usize) -> Result<()> {
        let Usage::Sound { feed, .. } = &self.description.usage else {
            return Err("this model does not take sound".into());
        };
        self.listener = Some(SoundListener::new(&self.model, feed, window, hop)?);
        Ok(())
    }

    /// Takes samples in [-1, 1]; gives the probabilities of the classes after the last of them.
    pub fn push(&mut self, samples: &[f32]) -> Result<&[f32]> {
        let listener = self.listener.as_mut().ok_or("call listen first")?;
        listener.push(&self.model, samples)
    }

    /// Reads a prompt, to continue it.
    pub fn begin(&mut self, prompt: &str, sampling: Sampling) -> Result<()> {
        let Usage::Text { encoder, .. } = &self.description.usage else {
            return Err("this model does not write text".into());
        };
        let prompt = encoder.encode(prompt.as_bytes()).map_err(|fault| fault.what)?;
        self.generator = Some(self.model.generator(&prompt, sampling).map_err(text)?);
        Ok(())
    }

    /// Appends the next `count` tokens to `out`. What came before an error is there.
    pub fn write(&mut self, count: usize, out: &mut Vec<u8>) -> Result<()> {
        let (Usage::Text { encoder, .. }, Some(generator)) =
            (&self.description.usage, &mut self.generator)
        else {
            return Err("call begin first".into());
        };
        for _ in 0..count {
            let token = generator.next_token(&self.model).map_err(text)?;
            let unknown = || format!("the model gave the token {token}, which has no text");
            out.extend(encoder.decode(&[token]).ok_or_else(unknown)?);
        }
        Ok(())
    }

    /// The kernels of a layer as a picture.
    pub fn kernels(&self, layer: usize, columns: usize, axis: Axis) -> Result<Vec<f32>> {
        picture(&self.model, layer, columns, axis)
    }
}
