//! Listeners: windows of an endless input, each equal to the whole sequence of its positions.

use crate::common::{Spec, noise};
use dss_infer::{Error, Input, Listener, Model, Window};

/// A model that ends after 40 positions.
fn limited() -> Model {
    let model = Spec { growing: true, ..Spec::sequence(2, 8, 6, 40) }.model();
    assert_eq!(model.max_len(), Some(40));
    model
}

#[test]
fn at_the_end_of_a_window_the_answer_is_that_for_the_window() {
    let (model, x) = (limited(), noise(200, 5));
    for (length, hop, block) in [(40, 10, 1), (40, 10, 7), (36, 12, 50), (20, 20, 3)] {
        let mut listener = Listener::new(&model, Some(Window { length, hop })).unwrap();
        let mut out = vec![0.0; model.outputs()];
        for part in x.chunks(block) {
            listener.push(&model, Input::Values(part), &mut out).unwrap();
            let end = listener.position() as usize;
            // The oldest stream has been there since a whole hop.
            let begin = end.next_multiple_of(hop).saturating_sub(length);
            let want = model.forward(Input::Values(&x[begin..end])).unwrap();
            let scale = want.iter().fold(1e-3f32, |a, x| a.max(x.abs()));
            for (got, want) in out.iter().zip(&want) {
                assert!((got - want).abs() <= 2e-5 * scale, "{length} {hop} {end}: {got} {want}");
            }
        }
        assert_eq!(listener.position(), 200);
    }
}

#[test]
fn a_saved_listener_resumes_to_the_same_bits() {
    let (model, x) = (limited(), noise(130, 6));
    for window in [Some(Window { length: 40, hop: 10 }), None] {
        let heard = if window.is_some() { 130 } else { 40 };
        for cut in [1, 9, 10, 25, 39] {
            let cut = cut * heard / 40;
            let mut out = vec![0.0; model.outputs()];
            let mut whole = Listener::new(&model, window).unwrap();
            whole.push(&model, Input::Values(&x[..cut]), &mut out).unwrap();
            let bytes = whole.to_bytes(&model).unwrap();
            whole.push(&model, Input::Values(&x[cut..heard]), &mut out).unwrap();
            let mut resumed = Listener::from_bytes(&model, window, &bytes).unwrap();
            assert_eq!(resumed.position(), cut as u64);
            let mut again = vec![0.0; model.outputs()];
            resumed.push(&model, Input::Values(&x[cut..heard]), &mut again).unwrap();
            assert_eq!(again, out, "{window:?} {cut}");
            for end in 0..bytes.len() {
                assert!(Listener::from_bytes(&model, window, &bytes[..end]).is_err(), "{end}");
            }
        }
    }
}

#[test]
fn windows_and_states_that_do_not_fit_are_refused() {
    let model = limited();
    for (length, hop) in [(40, 0), (0, 10), (40, 12), (40, 80), (65, 1)] {
        let error = Listener::new(&model, Some(Window { length, hop })).unwrap_err().to_string();
        assert!(error.contains("a whole number of hops"), "{error}");
    }
    let long = Listener::new(&model, Some(Window { length: 44, hop: 11 }));
    assert!(matches!(long, Err(Error::PastEnd { length: 40, .. })));

    let window = |hop| Some(Window { length: 40, hop });
    let saved = |window| Listener::new(&model, window).unwrap().to_bytes(&model).unwrap();
    let read = |window, bytes: &[u8]| Listener::from_bytes(&model, window, bytes).unwrap_err();
    assert!(read(window(20), &saved(window(10))).to_string().contains("hops of 10, not of 40"));
    assert!(read(None, &saved(window(10))).to_string().contains("with a window"));
    assert!(read(window(10), &saved(None)).to_string().contains("not saved by a stream with"));
}

/// As someone who can write a file can write a matching checksum, too.
#[test]
fn a_position_that_cannot_be_is_refused() {
    let model = limited();
    let window = Some(Window { length: 40, hop: 1 });
    let mut bytes = Listener::new(&model, window).unwrap().to_bytes(&model).unwrap();
    bytes.truncate(bytes.len() - 8);
    // After magic number, version, length and hop.
    bytes[28..36].fill(0xff);
    let fnv = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    bytes.extend(sum.to_le_bytes());
    assert!(Listener::from_bytes(&model, window, &bytes).is_err());
}
