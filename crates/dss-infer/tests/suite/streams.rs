//! Streams: equal to whole sequences, and whole again after everything that can happen to them.

use crate::common::{Spec, noise};
use dss_infer::{Error, Input, Model, State};

/// The answers at every position, step by step.
fn steps(model: &Model, state: &mut State, x: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; x.len() * model.outputs()];
    for (x, out) in x.chunks_exact(1).zip(out.chunks_exact_mut(model.outputs())) {
        model.step(state, Input::Values(x), out).unwrap();
    }
    out
}

fn kinds() -> Vec<Spec> {
    let base = || Spec::sequence(2, 8, 6, 300);
    vec![
        base(),
        base().set("prenorm", true).set("glu", true).set("pool", "last"),
        base().set("norm", "layer").set("variant", "exp"),
        Spec { growing: true, ..base() },
        base().set("mixer", "s4d").set("discretisation", "bilinear"),
        base().set("mixer", "s4").set("prenorm", true),
        base().set("ff", 12).set("positions", "fixed").set("norm", "layer").set("head_hidden", 7),
        base()
            .set("ff", 12)
            .set("gelu", "tanh")
            .set("positions", "learned")
            .set("norm_eps", 0.1)
            .set("prenorm", true),
    ]
}

#[test]
fn steps_end_where_the_whole_sequence_does() {
    for spec in kinds() {
        let model = spec.model();
        let x = noise(300, 2);
        let all = steps(&model, &mut model.state().unwrap(), &x);
        for l in [1, 2, 31, 32, 33, 299, 300] {
            let whole = model.forward(Input::Values(&x[..l])).unwrap();
            let outputs = model.outputs();
            let scale = whole.iter().fold(1e-3f32, |a, x| a.max(x.abs()));
            for (got, want) in all[(l - 1) * outputs..l * outputs].iter().zip(&whole) {
                assert!((got - want).abs() <= 2e-5 * scale, "{} {l}: {got} {want}", spec.model);
            }
        }
    }
}

#[test]
fn a_saved_stream_continues_to_the_same_bits() {
    for spec in kinds() {
        let model = spec.model();
        let x = noise(200, 3);
        let mut state = model.state().unwrap();
        steps(&model, &mut state, &x[..77]);
        let bytes = state.to_bytes(&model).unwrap();
        // Another program with the same file.
        let model = spec.model();
        let mut later = State::from_bytes(&model, &bytes).unwrap();
        assert_eq!(later, state, "{}", spec.model);
        assert_eq!(later.position(), 77);
        let mut fork = state.clone();
        let want = steps(&model, &mut state, &x[77..]);
        assert_eq!(steps(&model, &mut later, &x[77..]), want, "{}", spec.model);
        assert_eq!(steps(&model, &mut fork, &x[77..]), want);
        // And from the beginning.
        fork.reset();
        assert_eq!(fork, model.state().unwrap());
    }
}

#[test]
fn states_that_are_damaged_or_foreign_are_refused() {
    let spec = Spec::sequence(2, 4, 3, 50);
    let model = spec.model();
    let mut state = model.state().unwrap();
    steps(&model, &mut state, &noise(20, 1));
    let bytes = state.to_bytes(&model).unwrap();
    for end in 0..bytes.len() {
        assert!(matches!(State::from_bytes(&model, &bytes[..end]), Err(Error::State(_))));
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(State::from_bytes(&model, &damaged).is_err(), "{at}");
    }
    let other = Spec { seed: 2, ..spec.clone() }.model();
    assert!(matches!(State::from_bytes(&other, &bytes), Err(Error::State(_))));
    assert!(other.step(&mut state, Input::Values(&[0.0]), &mut []).is_err());
    let faster = spec.model().at_rate(2.0).unwrap();
    assert!(State::from_bytes(&faster, &bytes).is_err(), "the same file at another rate");
}

#[test]
fn states_of_an_earlier_version_are_refused_by_its_number() {
    let model = Spec::sequence(1, 4, 3, 50).model();
    let mut bytes = model.state().unwrap().to_bytes(&model).unwrap();
    bytes[8] = 1;
    let error = State::from_bytes(&model, &bytes).unwrap_err().to_string();
    assert!(error.contains("its version is 1, but this program reads version 3"), "{error}");
}

/// The settings of the mixer below `mixer` or, as version 0.1 wrote them, beside the others: the same model.
#[test]
fn flat_and_nested_settings_are_the_same_model() {
    for flat in kinds() {
        let nested = Spec { model: serde_json::to_value(flat.config()).unwrap(), ..flat.clone() };
        assert!(nested.model["mixer"].is_object() && nested.model.get("n").is_none());
        let (flat, nested) = (flat.model(), nested.model());
        let mut state = flat.state().unwrap();
        steps(&flat, &mut state, &noise(20, 1));
        let bytes = state.to_bytes(&flat).unwrap();
        assert_eq!(State::from_bytes(&nested, &bytes).unwrap(), state);
    }
}

#[test]
fn models_that_cannot_stream_say_why() {
    let base = || Spec::sequence(1, 4, 4, 50);
    for (spec, reason) in [
        (base().set("bidirectional", true), "looks ahead"),
        (base().set("bidirectional", true).set("pool", "cls"), "pool = \"cls\""),
        (base().set("kernel_len", 20), "kernels are cut"),
    ] {
        let model = spec.model();
        let error = model.state().unwrap_err();
        assert!(matches!(error, Error::CannotStream(_)));
        assert!(error.to_string().contains(reason), "{error}");
        model.forward(Input::Values(&noise(50, 1))).unwrap();
    }
}

#[test]
fn learned_positions_end_with_their_table() {
    let base = || Spec::sequence(1, 4, 4, 50).set("positions", "learned");
    let model = base().model();
    let x = noise(51, 1);
    model.forward(Input::Values(&x[..50])).unwrap();
    let whole = model.forward(Input::Values(&x)).unwrap_err();
    assert!(matches!(whole, Error::PastEnd { length: 50, .. }));
    let mut state = model.state().unwrap();
    model.block_step(&mut state, Input::Values(&x[..50]), &mut []).unwrap();
    let step = model.step(&mut state, Input::Values(&x[50..]), &mut []).unwrap_err();
    assert!(matches!(step, Error::PastEnd { length: 50, .. }));
    assert!(model.at_rate(2.0).unwrap_err().to_string().contains("one sampling rate"));
    // The extra position of cls pooling has a vector of its own.
    let cls = base().set("bidirectional", true).set("pool", "cls").model();
    cls.forward(Input::Values(&x[..50])).unwrap();
    let whole = cls.forward(Input::Values(&x)).unwrap_err();
    assert!(matches!(whole, Error::PastEnd { length: 50, .. }));
}

#[test]
fn streams_at_their_own_places() {
    for spec in kinds() {
        let model = spec.model();
        let mut states: Vec<State> = (0..5).map(|_| model.state().unwrap()).collect();
        // Each stream has gone a way of its own.
        for (i, state) in states.iter_mut().enumerate() {
            steps(&model, state, &noise(7 * i, i as u64));
        }
        let mut alone = states.clone();
        let mut out = vec![0.0; 5 * model.outputs()];
        for t in 0..40 {
            let x = noise(5, 100 + t);
            model.step_batch(&mut states, Input::Values(&x), &mut out).unwrap();
            for (i, state) in alone.iter_mut().enumerate() {
                let want = steps(&model, state, &x[i..=i]);
                assert_eq!(&out[i * model.outputs()..][..model.outputs()], want);
            }
        }
        assert_eq!(states, alone);
    }
}

/// More streams than take a step together.
#[test]
fn a_crowd_of_streams() {
    for spec in kinds() {
        let model = spec.model();
        let outputs = model.outputs();
        let mut states: Vec<State> = vec![model.state().unwrap(); 150];
        let mut alone = states.clone();
        let mut out = vec![0.0; 150 * outputs];
        for t in 0..3 {
            let x = noise(150, t);
            model.step_batch(&mut states, Input::Values(&x), &mut out).unwrap();
            for (i, state) in alone.iter_mut().enumerate() {
                assert_eq!(out[i * outputs..][..outputs], steps(&model, state, &x[i..=i]));
            }
        }
        assert_eq!(states, alone);
    }
}

/// NaN samples and invalid requests change nothing.
#[test]
fn refused_input_leaves_the_state_as_it_was() {
    let model = Spec::sequence(2, 4, 3, 50).model();
    let mut state = model.state().unwrap();
    steps(&model, &mut state, &noise(20, 1));
    let before = state.clone();
    let mut out = [0.0; 5];
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = model.step(&mut state, Input::Values(&[bad]), &mut out).unwrap_err();
        assert!(error.to_string().contains("must be finite"), "{error}");
        let block = [0.1, 0.2, bad, 0.3];
        assert!(model.block_step(&mut state, Input::Values(&block), &mut out).is_err());
    }
    assert!(model.step(&mut state, Input::Tokens(&[1]), &mut out).is_err());
    assert!(model.step(&mut state, Input::Values(&[]), &mut out).is_err());
    assert!(model.step(&mut state, Input::Values(&[1.0, 2.0]), &mut out).is_err());
    assert!(model.step(&mut state, Input::Values(&[1.0]), &mut out[..4]).is_err());
    assert!(model.block_step(&mut state, Input::Values(&[]), &mut out).is_err());
    assert_eq!(state, before);
    assert_eq!(out, [0.0; 5]);
}

/// Finite, but beyond all reason.
#[test]
fn an_overflow_is_an_error_until_the_reset_and_spares_the_neighbours() {
    let model = Spec::sequence(2, 4, 3, 50).model();
    let mut states = vec![model.state().unwrap(); 3];
    let mut out = [0.0; 15];
    let huge = [0.5, f32::MAX, -0.5];
    let first = model.step_batch(&mut states, Input::Values(&huge), &mut out);
    assert!(matches!(first, Err(Error::Overflow)));
    assert!(out.iter().all(|x| x.is_finite()));
    let mut alone = model.state().unwrap();
    assert_eq!(out[..5], steps(&model, &mut alone, &[0.5]));
    assert_eq!(states[0], alone);
    assert!(matches!(
        model.step(&mut states[1], Input::Values(&[0.0]), &mut []),
        Err(Error::Overflow)
    ));
    states[1].reset();
    assert_eq!(steps(&model, &mut states[1], &[0.5]), out[..5]);
}

#[test]
fn growing_modes_end_with_their_kernel() {
    let spec = Spec { growing: true, ..Spec::sequence(2, 4, 6, 40) };
    let model = spec.model();
    assert_eq!(model.max_len(), Some(40));
    let mut state = model.state().unwrap();
    let x = noise(41, 5);
    let mut out = [0.0; 5];
    assert!(model.block_step(&mut state, Input::Values(&x), &mut out).is_err());
    assert_eq!(state.position(), 0);
    model.block_step(&mut state, Input::Values(&x[..40]), &mut out).unwrap();
    assert!(out.iter().all(|x| x.is_finite()));
    let end = state.clone();
    let error = model.step(&mut state, Input::Values(&[0.0]), &mut out).unwrap_err();
    assert!(matches!(error, Error::PastEnd { length: 40, .. }));
    assert!(error.to_string().contains("Re λ > 0"), "{error}");
    assert_eq!(state, end);
    assert!(matches!(model.forward(Input::Values(&x)), Err(Error::PastEnd { .. })));
    // Without such modes a stream continues for ever.
    assert_eq!(Spec::sequence(2, 4, 6, 40).model().max_len(), None);
}

/// After a sound, silence: the state fades to zeros, not to numbers that slow the machine down.
#[test]
fn a_million_steps_of_silence() {
    for spec in [Spec::sequence(1, 4, 3, 50), Spec::sequence(1, 4, 4, 50).set("mixer", "s4")] {
        // Without offsets, silence is silence in every layer.
        let quiet = spec.bytes_with(|name, _, values| {
            if name.ends_with("bias") || name.ends_with("beta") || name.ends_with("running_mean") {
                values.fill(0.0);
            }
        });
        let model = Model::from_bytes(&quiet).unwrap();
        let mut state = model.state().unwrap();
        let mut out = [0.0; 5];
        model.block_step(&mut state, Input::Values(&noise(1000, 1)), &mut out).unwrap();
        let zeros = [0.0; 1000];
        for _ in 0..1000 {
            model.block_step(&mut state, Input::Values(&zeros), &mut out).unwrap();
        }
        model.step(&mut state, Input::Values(&[0.0]), &mut out).unwrap();
        assert!(out.iter().all(|x| x.is_finite()), "{out:?}");
        let bytes = state.to_bytes(&model).unwrap();
        // Behind the head and the running sums, every number is exactly zero.
        let numbers = &bytes[28 + 8 * 4..bytes.len() - 8];
        assert!(numbers.iter().all(|&byte| byte == 0 || byte == 0x80), "{}", spec.model);
        let mut fresh = State::from_bytes(&model, &bytes).unwrap();
        assert_eq!(
            steps(&model, &mut fresh, &noise(50, 2)),
            steps(&model, &mut state, &noise(50, 2))
        );
    }
}

#[test]
fn blocks_larger_than_any_buffer() {
    for spec in kinds() {
        let model = spec.model();
        if model.max_len().is_some() {
            continue;
        }
        let x = noise(700, 8);
        let (mut one, mut many) = (model.state().unwrap(), model.state().unwrap());
        let want = steps(&model, &mut one, &x);
        let mut out = vec![0.0; 700 * model.outputs()];
        model.block_step(&mut many, Input::Values(&x), &mut out).unwrap();
        assert_eq!(out, want, "{}", spec.model);
        assert_eq!(one, many);
    }
}
