//! The functions as C calls them: the numbers of dss-infer, and codes with sentences for everything that is wrong.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

use dss::*;
use dss_infer::{Input, Model};

fn path() -> CString {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../dss-cli/page/models/speech.safetensors");
    CString::new(path.to_str().unwrap()).unwrap()
}

fn message() -> String {
    // SAFETY: it is never null and ends with a zero.
    unsafe { CStr::from_ptr(dss_error()) }.to_str().unwrap().to_owned()
}

#[test]
fn the_same_numbers() {
    let path = path();
    let model = Model::load(path.to_str().unwrap()).unwrap();
    let samples: Vec<f32> = (0..500).map(|t| (t as f32 * 0.1).sin()).collect();
    let wanted = model.forward(Input::Values(&samples)).unwrap();
    let mut out = vec![0.0; wanted.len()];
    // SAFETY: all pointers are to living values of the sizes that are given.
    unsafe {
        let mut c = null_mut();
        assert_eq!(dss_model_load(path.as_ptr(), &mut c), OK);
        assert_eq!(dss_model_outputs(c), wanted.len());
        assert_eq!((dss_model_channels(c), dss_model_vocabulary(c)), (1, 0));
        assert_eq!(dss_model_length(c), model.meta().io.len);
        assert!(dss_model_rate(c) > 0.0);
        let label = CStr::from_ptr(dss_model_label(c, 0)).to_str().unwrap();
        assert_eq!(label, model.labels()[0]);
        assert!(dss_model_label(c, 10_000).is_null());
        let code = dss_forward_values(c, samples.as_ptr(), 500, out.as_mut_ptr(), out.len());
        assert_eq!((code, &out), (OK, &wanted));

        let mut stream = null_mut();
        assert_eq!(dss_stream_new(c, &mut stream), OK);
        // A stream keeps what it needs of its model.
        dss_model_free(c);
        let mut state = model.state().unwrap();
        model.block_step(&mut state, Input::Values(&samples), &mut out).unwrap();
        let wanted = out.clone();
        for (part, room) in [(&samples[..200], 0), (&samples[200..], out.len())] {
            let (at, count) = (part.as_ptr(), part.len());
            assert_eq!(dss_stream_push_values(stream, at, count, out.as_mut_ptr(), room), OK);
        }
        assert_eq!(out, wanted);
        assert_eq!(dss_stream_reset(stream), OK);
        dss_stream_free(stream);
    }
}

#[test]
fn errors_have_messages() {
    let path = path();
    let mut out = [0.0; 4];
    // SAFETY: all pointers are null, or to living values of the sizes that are given.
    unsafe {
        let mut model = null_mut();
        assert_eq!(dss_model_load(null(), &mut model), ERROR_ARGUMENT);
        assert_eq!(dss_model_load(path.as_ptr(), null_mut()), ERROR_ARGUMENT);
        assert_eq!(dss_model_load(c"not/there".as_ptr(), &mut model), ERROR_FILE);
        assert!(model.is_null() && message().contains("not/there"), "{}", message());
        assert_eq!(dss_model_from_bytes(b"nothing".as_ptr(), 7, &mut model), ERROR_FILE);
        assert_eq!(dss_model_outputs(null()), 0);
        assert_eq!(dss_forward_values(null(), null(), 1, null_mut(), 0), ERROR_ARGUMENT);
        dss_model_free(null_mut());
        dss_stream_free(null_mut());

        assert_eq!(dss_model_load(path.as_ptr(), &mut model), OK);
        let values = [0.5, f32::NAN];
        let mut forward = |positions, room| {
            dss_forward_values(model, values.as_ptr(), positions, out.as_mut_ptr(), room)
        };
        assert_eq!(forward(1, 1), ERROR_ARGUMENT);
        assert!(message().contains("room for 1"), "{}", message());
        assert_eq!(forward(2, 4), ERROR_ARGUMENT);
        assert!(message().contains("finite"), "{}", message());
        assert_eq!(forward(usize::MAX, 4), ERROR_ARGUMENT);
        assert_eq!(forward(0, 4), ERROR_ARGUMENT);
        let tokens = [1u32];
        let code = dss_forward_tokens(model, tokens.as_ptr(), 1, out.as_mut_ptr(), 4);
        assert_eq!(code, ERROR_ARGUMENT);
        assert!(message().contains("token ids"), "{}", message());
        dss_model_free(model);
    }
}
