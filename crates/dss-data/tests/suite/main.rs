//! Every task, reader and download.
#![allow(missing_docs)]

mod audio;
mod catalogue;
mod check;
mod common;
mod encode;
#[cfg(feature = "download")]
mod fetch;
mod files;
mod forecast;
mod image;
mod listops;
mod lm;
mod mnist;
mod pathfinder;
mod retrieval;
#[cfg(feature = "download")]
mod server;
mod speech;
mod streams;
mod text;
