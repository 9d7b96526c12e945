//! Drawing tokens: repeatable, and by the laws of the settings.

use crate::common::Spec;
use dss_infer::generate::{Sampler, Sampling};
use dss_infer::{Input, Model};

fn text(model: &Model, sampling: Sampling) -> Vec<u32> {
    let mut generator = model.generator(&[1, 2, 3], sampling).unwrap();
    (0..200).map(|_| generator.next_token(model).unwrap()).collect()
}

#[test]
fn the_seed_decides() {
    let model = Spec::tokens(2, 8, 6, 12).model();
    let sampling = Sampling { seed: 7, ..Sampling::default() };
    assert_eq!(text(&model, sampling), text(&model, sampling));
    assert_ne!(text(&model, sampling), text(&model, Sampling { seed: 8, ..sampling }));
    // The likeliest token needs no luck.
    let cold = Sampling { temperature: 0.0, ..sampling };
    let first = text(&model, cold);
    assert_eq!(first, text(&model, Sampling { seed: 8, ..cold }));
    assert_eq!(first, text(&model, Sampling { top_k: 1, ..sampling }));
    assert_eq!(first, text(&model, Sampling { top_p: 1e-9, ..sampling }));
}

/// The stream is the whole sequence: the logits after a generated text are those of its forward pass.
#[test]
fn generation_is_the_forward_pass() {
    let model = Spec::tokens(2, 8, 6, 12).model();
    let mut generator = model.generator(&[5], Sampling::default()).unwrap();
    let mut all = vec![5];
    all.extend((0..50).map(|_| generator.next_token(&model).unwrap()));
    let whole = model.forward(Input::Tokens(&all)).unwrap();
    for (got, want) in generator.logits().iter().zip(&whole[50 * 12..]) {
        assert!((got - want).abs() < 1e-4, "{got} {want}");
    }
}

#[test]
fn tokens_come_as_often_as_their_probability_says() {
    let logits = [1.0f32, 0.0, 2.0, -1.0, 0.5];
    let draws = 40_000;
    let shares = |sampling: Sampling| {
        let mut sampler = Sampler::new(sampling).unwrap();
        let mut counts = [0.0; 5];
        (0..draws).for_each(|_| counts[sampler.sample(&logits) as usize] += 1.0 / draws as f64);
        counts
    };
    let expected =
        |temperature: f64, kept: &[usize]| {
            let weight = |i: usize| (f64::from(logits[i]) / temperature).exp();
            let total: f64 = kept.iter().map(|&i| weight(i)).sum();
            std::array::from_fn::<f64, 5, _>(|i| {
                if kept.contains(&i) { weight(i) / total } else { 0.0 }
            })
        };
    let all = Sampling { seed: 3, ..Sampling::default() };
    for (sampling, want) in [
        (all, expected(1.0, &[0, 1, 2, 3, 4])),
        (Sampling { temperature: 2.0, ..all }, expected(2.0, &[0, 1, 2, 3, 4])),
        (Sampling { top_k: 2, ..all }, expected(1.0, &[0, 2])),
        // 0.55, then 0.20 of token 0, then 0.12 of token 4.
        (Sampling { top_p: 0.8, ..all }, expected(1.0, &[0, 2, 4])),
    ] {
        for (got, want) in shares(sampling).iter().zip(want) {
            assert!((got - want).abs() < 0.01, "{sampling:?}: {got} {want}");
        }
    }
}

/// The random numbers are those of ChaCha8 and stay so: texts can be made again by later versions.
#[test]
fn the_draws_are_fixed() {
    let mut sampler = Sampler::new(Sampling { seed: 42, ..Sampling::default() }).unwrap();
    let draws: Vec<u32> = (0..12).map(|_| sampler.sample(&[0.0; 10])).collect();
    assert_eq!(draws, DRAWS);
}

const DRAWS: [u32; 12] = [6, 9, 4, 6, 2, 1, 3, 8, 7, 2, 5, 9];

#[test]
fn invalid_requests_are_refused() {
    let wrong = [
        Sampling { temperature: -1.0, ..Sampling::default() },
        Sampling { temperature: f64::NAN, ..Sampling::default() },
        Sampling { top_p: 0.0, ..Sampling::default() },
        Sampling { top_p: 1.5, ..Sampling::default() },
    ];
    for sampling in wrong {
        assert!(Sampler::new(sampling).is_err(), "{sampling:?}");
    }
    let model = Spec::tokens(1, 4, 2, 5).model();
    assert!(model.generator(&[], Sampling::default()).is_err());
    assert!(model.generator(&[5], Sampling::default()).is_err());
    let classes = Spec::sequence(1, 4, 2, 8).model();
    let error = classes.generator(&[0], Sampling::default()).unwrap_err().to_string();
    assert!(error.contains("which token comes next"), "{error}");
}
