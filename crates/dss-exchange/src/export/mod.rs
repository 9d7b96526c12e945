//! Models for other programs.

mod modes;
pub mod onnx;
mod protobuf;
mod reader;
pub mod torch;
