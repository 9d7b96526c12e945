//! Steps allocate nothing: a counting allocator around the calling thread.

use crate::allocator;
use crate::common::{Spec, noise};
use dss_infer::generate::Sampling;
use dss_infer::{Input, State};

/// Allocations of the second of two equal calls: the first of a size makes room.
fn allocations(mut call: impl FnMut()) -> usize {
    call();
    allocator::watch(call).1.count
}

#[test]
fn steps_do_not_allocate() {
    let base = || Spec::sequence(2, 24, 16, 500);
    for spec in [
        base(),
        base().set("norm", "layer").set("prenorm", true).set("glu", true),
        Spec { growing: true, ..base() },
        base().set("mixer", "s4"),
        base().set("ff", 30).set("gelu", "tanh").set("positions", "fixed").set("head_hidden", 9),
    ] {
        let model = spec.model();
        let mut states: Vec<State> = (0..4).map(|_| model.state().unwrap()).collect();
        let mut out = vec![0.0; 200 * model.outputs()];
        let o = model.outputs();
        let x = noise(40, 1);
        let step = || model.step(&mut states[0], Input::Values(&x[..1]), &mut out[..o]).unwrap();
        assert_eq!(allocations(step), 0, "step of {}", spec.model);
        let batch = || {
            model.step_batch(&mut states, Input::Values(&x[..4]), &mut out[..4 * o]).unwrap();
        };
        assert_eq!(allocations(batch), 0, "batch of {}", spec.model);
        let state = &mut states[1];
        let block = || model.block_step(state, Input::Values(&x), &mut out[..40 * o]).unwrap();
        assert_eq!(allocations(block), 0, "block of {}", spec.model);
    }
    let model = Spec::tokens(2, 24, 16, 30).model();
    let mut generator = model.generator(&[1, 2], Sampling::default()).unwrap();
    let next = || assert!(generator.next_token(&model).unwrap() < 30);
    assert_eq!(allocations(next), 0, "generation");
}
