//! Whatever the bytes are, loading them gives a model or an error: no panic, no hang, no memory beyond their size.

use crate::allocator;
use crate::common::Spec;
use dss_format::Numbers;
use dss_infer::{Input, Model, ModelFile, Precision};
use proptest::prelude::*;

/// Loads bytes and, if they are a model after all, runs it. No allocation may be far larger than the bytes.
fn attempt(bytes: &[u8]) -> Result<Model, dss_infer::Error> {
    let (model, seen) = allocator::watch(|| Model::from_bytes(bytes));
    let largest = seen.largest;
    assert!(largest <= 64 * bytes.len() + 65536, "{largest} bytes for {}", bytes.len());
    if let Ok(model) = &model {
        let mut out = vec![0.0; model.outputs()];
        if let Ok(mut state) = model.state() {
            for _ in 0..3 {
                if model.step(&mut state, Input::Values(&[0.5]), &mut out).is_ok() {
                    assert!(out.iter().all(|x| x.is_finite()));
                }
            }
        }
        if let Ok(out) = model.forward(Input::Values(&[0.5, -0.5])) {
            assert!(out.iter().all(|x| x.is_finite()));
        }
    }
    model
}

fn valid() -> Vec<u8> {
    Spec::sequence(1, 3, 2, 8).bytes()
}

#[test]
fn a_whole_file_is_taken() {
    attempt(&valid()).unwrap();
}

#[test]
fn every_truncation_is_refused() {
    let bytes = valid();
    for end in 0..bytes.len() {
        assert!(attempt(&bytes[..end]).is_err(), "{end}");
    }
    assert!(attempt(&[&bytes[..], &[0]].concat()).is_err());
}

/// The error of a file whose tensor `name` was changed.
fn refused(name: &str, change: impl Fn(&mut Vec<usize>, &mut Vec<f32>)) -> String {
    let changed = |found: &str, shape: &mut Vec<usize>, values: &mut Vec<f32>| {
        if found == name {
            change(shape, values);
        }
    };
    attempt(&Spec::sequence(1, 3, 2, 8).bytes_with(changed)).unwrap_err().to_string()
}

#[test]
fn numbers_and_shapes_that_are_wrong_are_named() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = refused("layers.0.mixer.w", |_, values| values[3] = bad);
        assert!(error.contains("layers.0.mixer.w has the number"), "{error}");
    }
    let error = refused("layers.0.norm.running_var", |_, values| values[1] = -1e-3);
    assert!(error.contains("layers.0.norm.running_var has the number -0.001"), "{error}");
    let error = refused("head.weight", |shape, _| shape.reverse());
    assert!(error.contains("head.weight must be [5, 3], but is [3, 5]"), "{error}");
    let error = refused("encoder.bias", |shape, _| *shape = vec![3, 1]);
    assert!(error.contains("encoder.bias must be [3], but is [3, 1]"), "{error}");
}

/// Sizes in the description that the tensors do not have.
#[test]
fn promises_of_huge_sizes_cost_nothing() {
    let huge = 1u64 << 62;
    for key in ["layers", "h", "n", "kernel_len"] {
        let loaded = attempt(&with_text(&valid(), |meta| meta["model"][key] = huge.into()));
        // A kernel that is cut far beyond anything is a model like any other.
        assert_eq!(loaded.is_ok(), key == "kernel_len", "{key}");
    }
    for (end, key) in [("input", "channels"), ("output", "outputs")] {
        let bytes = with_text(&valid(), |meta| meta["io"][end][key] = huge.into());
        assert!(attempt(&bytes).is_err(), "{key}");
    }
    let bytes = with_text(&valid(), |meta| meta["io"]["len"] = huge.into());
    attempt(&bytes).unwrap();
}

#[test]
fn unknown_formats_are_refused() {
    for (bytes, reason) in [
        (with_text(&valid(), |meta| meta["model"]["new_thing"] = 1.into()), "new_thing"),
        (with_text(&valid(), |meta| meta["format"] = "dss-2".into()), "dss-2"),
        (with_text(&valid(), |meta| meta["model"]["h"] = 0.into()), "h must be at least 1"),
        (with_text(&valid(), |meta| meta["model"]["layers"] = 2.into()), "layers.1"),
        (with_text(&valid(), |meta| meta["model"]["prenorm"] = true.into()), "norm.beta"),
        (
            with_text(&valid(), |meta| meta["labels"] = vec!["a"].into()),
            "the number of its labels is 1",
        ),
        (with_text(&valid(), |meta| meta["io"]["input"]["kind"] = "smells".into()), "smells"),
        (with_text(&valid(), |meta| *meta = 3.into()), "description"),
        (b"GIF89a and other things that are not a model".to_vec(), "safetensors"),
    ] {
        let error = attempt(&bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    // Settings of the training make no difference.
    attempt(&with_text(&valid(), |meta| meta["model"]["dropout"] = 0.5.into())).unwrap();
}

/// Numbers that are finite in f64 only.
#[test]
fn numbers_beyond_single_precision_are_refused() {
    let (meta, mut arrays) = ModelFile::from_bytes(&valid()).unwrap().into_parts();
    arrays.get_mut("head.bias").unwrap().numbers = Numbers::F64(vec![0.0, 1e300, 0.0, 0.0, 0.0]);
    let bytes = ModelFile::new(meta, arrays).unwrap().to_bytes(Precision::Full).unwrap();
    let error = attempt(&bytes).unwrap_err().to_string();
    assert!(error.contains("head.bias has a number at index 1 beyond the range"), "{error}");
}

/// The file with another description.
fn with_text(bytes: &[u8], change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + size]).unwrap();
    let text = header["__metadata__"]["dss"].as_str().unwrap();
    let mut meta = serde_json::from_str(text).unwrap();
    change(&mut meta);
    header["__metadata__"]["dss"] = meta.to_string().into();
    let header = header.to_string();
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.extend(&bytes[8 + size..]);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(attempt(&bytes).is_err());
    }

    /// A header of its promised size with anything in it.
    #[test]
    fn any_header(header in "[{}\\[\\]\":,0-9a-z_ -]{0,300}", size in any::<Option<u64>>()) {
        let size = size.unwrap_or(header.len() as u64);
        let bytes = [&size.to_le_bytes()[..], header.as_bytes()].concat();
        prop_assert!(attempt(&bytes).is_err());
    }

    #[test]
    fn flipped_bits(flips in proptest::collection::vec((any::<prop::sample::Index>(), 0..8u32), 1..8)) {
        let mut bytes = valid();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        let _ = attempt(&bytes);
    }

    /// Numbers of any size in every tensor.
    #[test]
    fn any_numbers(seed in any::<u64>()) {
        let spec = Spec { growing: seed.is_multiple_of(2), ..Spec::sequence(2, 3, 2, 8) };
        let mut bytes = spec.bytes();
        let size = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut bits = seed;
        for word in bytes[size..].chunks_exact_mut(4) {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if bits >> 60 == 0 {
                word.copy_from_slice(&((bits >> 20) as u32).to_le_bytes());
            }
        }
        let _ = attempt(&bytes);
    }
}
