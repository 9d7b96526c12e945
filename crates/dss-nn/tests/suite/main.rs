//! The modules against golden tensors, the composed form, `dss-infer` and files.
#![allow(missing_docs)]

mod attention;
mod batches;
mod carry;
mod checkpoints;
mod ckconv;
mod common;
mod declared;
mod fnet;
mod fused_equals_composed;
mod golden_kernels;
mod golden_layers;
mod golden_models;
mod infer;
mod kernelised;
mod luna;
mod models;
mod nystrom;
mod padding;
mod parts;
mod readme;
mod recurrent;
mod s4_layers;
mod sparse_attention;
mod steps;
mod wavegan_d;
