//! `cargo bench -p dss-infer`: the steps of a stack of 6 layers, H = 128, N = 64, on one core.

use divan::{Bencher, black_box};
use dss_infer::{Input, Model, State};

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/suite/common/mod.rs"]
mod common;
use common::{Spec, noise};

fn main() {
    divan::main();
}

/// The paper's Speech model, and its rivals of the same size.
const MIXERS: [&str; 3] = ["dss", "s4d", "s4"];

fn model(mixer: &str) -> Model {
    Spec::sequence(6, 128, 64, 16000).set("prenorm", true).set("mixer", mixer).model()
}

/// One sample of one stream.
#[divan::bench(args = MIXERS)]
fn step(bencher: Bencher, mixer: &str) {
    let model = model(mixer);
    let mut state = model.state().unwrap();
    let x = noise(1, 1);
    let mut out = vec![0.0; model.outputs()];
    bencher.bench_local(|| model.step(&mut state, Input::Values(black_box(&x)), &mut out).unwrap());
}

/// n samples of one stream at once.
#[divan::bench(args = [16, 160, 1600])]
fn block_step(bencher: Bencher, n: usize) {
    let model = model("dss");
    let mut state = model.state().unwrap();
    let x = noise(n, 1);
    let mut out = vec![0.0; model.outputs()];
    bencher.counter(divan::counter::ItemsCount::new(n)).bench_local(|| {
        model.block_step(&mut state, Input::Values(black_box(&x)), &mut out).unwrap()
    });
}

/// One sample of each of several streams.
#[divan::bench(args = [16, 64])]
fn step_batch(bencher: Bencher, streams: usize) {
    let model = model("dss");
    let mut states: Vec<State> = (0..streams).map(|_| model.state().unwrap()).collect();
    let x = noise(streams, 1);
    let mut out = vec![0.0; streams * model.outputs()];
    bencher.counter(divan::counter::ItemsCount::new(streams)).bench_local(|| {
        model.step_batch(&mut states, Input::Values(black_box(&x)), &mut out).unwrap()
    });
}

/// A whole second of sound at 16 kHz, by convolution.
#[divan::bench]
fn forward_16000(bencher: Bencher) {
    let model = model("dss");
    let mut plan = model.plan(16000).unwrap();
    let x = noise(16000, 1);
    bencher
        .counter(divan::counter::ItemsCount::new(16000usize))
        .bench_local(|| plan.forward(Input::Values(black_box(&x))).unwrap());
}
