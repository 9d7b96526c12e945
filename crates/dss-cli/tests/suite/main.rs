//! The program from the outside.
#![allow(missing_docs)]

mod common;
mod data;
mod exchange;
mod inspect;
mod repro;
mod server;
mod streaming;
mod training;
mod usage;
mod web;
mod windows;
