//! Models for other programs.

mod graph;
mod modes;
pub mod onnx;
mod protobuf;
mod reader;
mod steps;
pub mod torch;
