//! What a model is: its configuration, its two ends, the names and shapes of its tensors, the file it is stored in, and
//! what turns input into numbers for it. No framework: training, inference and the browser all read models through
//! this crate.

pub mod checksum;
