//! The authors' parameter names in terms of ours.

use std::collections::BTreeMap;

use super::Golden;

/// All tensors under `prefix` (such as `sd.` or `grad.`) by our names.
pub fn ours(golden: &Golden, prefix: &str) -> BTreeMap<String, Vec<f64>> {
    let mut found = BTreeMap::new();
    for full in golden.names() {
        let Some(name) = full.strip_prefix(prefix) else { continue };
        // Λ of the exp variants comes in two halves: the first name stands for both.
        if name.ends_with("Lambda_im") {
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
