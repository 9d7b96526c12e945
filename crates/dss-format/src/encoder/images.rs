//! How pictures become sequences.

use serde::{Deserialize, Serialize};

/// How images become sequences of pixels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagesEncoder {
    /// Pixels per image.
    pub pixels: usize,
    /// Whether pixels come in bit-reversed order.
    pub bit_reversal: bool,
}

/// How square pictures of paths become sequences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathfinderEncoder {
    /// Side of the images.
    pub size: usize,
}

/// How 32 × 32 images become sequences: x' = (x - mean) / sd, row by row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GreyEncoder {
    /// Taken off; grey is 0 to 255.
    pub mean: f64,
    /// Divided by.
    pub sd: f64,
}

impl Default for GreyEncoder {
    /// The statistics of CIFAR-10's training images, rounded as is usual.
    fn default() -> Self {
        Self { mean: 122.6, sd: 61.0 }
    }
}

impl GreyEncoder {
    /// The value of every grey.
    pub fn values(&self) -> [f32; 256] {
        let Self { mean, sd } = self;
        std::array::from_fn(|x| ((x as f64 / 255.0 - mean / 255.0) / (sd / 255.0)) as f32)
    }
}
