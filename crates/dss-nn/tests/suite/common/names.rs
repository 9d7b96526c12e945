//! The authors' parameter names in terms of ours.

use std::collections::BTreeMap;

use super::Golden;

/// All tensors under `prefix` (such as `sd.` or `grad.`) by our names.
pub fn ours(golden: &Golden, prefix: &str) -> BTreeMap<String, Vec<f64>> {
    let mut found = BTreeMap::new();
    for full in golden.names() {
        let Some(name) = full.strip_prefix(prefix) else { continue };
        // Λ of the exp variants comes in two halves: the first name stands for both. S4 stores its roots of unity.
        if ["Lambda_im", "kernel.omega", "kernel.z"].iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let values = match full.strip_suffix("Lambda_log_neg_re") {
            Some(kernel) => golden.lambda(kernel),
            None => golden.get(full).to_vec(),
        };
        found.insert(rename(name), values);
    }
    found
}

/// One name.
pub fn rename(theirs: &str) -> String {
    let mut name = theirs.strip_prefix("model.").unwrap_or(theirs).to_string();
    for (from, to) in [
        ("layer.kernel.kernel.log_dt", "mixer.delta_log"),
        ("layer.kernel.kernel.log_w_real", "mixer.lambda_re"),
        ("layer.kernel.kernel.w_imag", "mixer.lambda_im"),
        ("layer.kernel.kernel.P", "mixer.p"),
        ("layer.kernel.kernel.B", "mixer.b"),
        ("layer.kernel.kernel.C", "mixer.c"),
        ("layer.kernel.log_dt", "mixer.delta_log"),
        ("layer.kernel.Lambda_log_neg_re", "mixer.lambda"),
        ("layer.kernel.Lambda", "mixer.lambda"),
        ("layer.kernel.W", "mixer.w"),
        ("layer.output_linear", "mixer.out"),
        ("layer.D", "mixer.d"),
        ("norm.norm.weight", "norm.gamma"),
        ("norm.norm.bias", "norm.beta"),
        ("norm.norm.s", "norm.gamma"),
        ("norm.norm.m", "norm.beta"),
        ("norm.norm", "norm"),
        ("decoder.output_transform", "head"),
        ("decoder.retrieval.classifier.0", "head.hidden"),
        ("decoder.retrieval.classifier.2", "head.out"),
    ] {
        if name.contains(from) {
            name = name.replace(from, to);
            break;
        }
    }
    name
}
