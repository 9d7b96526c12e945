//! Gradients against golden ones.

use super::Golden;

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Gradients, by name, are the golden file's `{case}grad.{name}` within 1e-10 of the larger of the tensor's maximum and a
/// thousandth of the largest gradient of the case: some are 0 but for rounding.
pub fn assert_gradients<N: AsRef<str>>(golden: &Golden, case: &str, found: &[(N, Vec<f64>)]) {
    let start = format!("{case}grad.");
    let all = golden.names().filter(|name| name.starts_with(&start));
    let known: Vec<&str> = all.collect();
    assert_eq!(known.len(), found.len(), "{case}: {known:?}");
    let scale = known.iter().map(|name| largest(golden.get(name))).fold(0.0, f64::max);
    for (name, found) in found {
        let name = name.as_ref();
        let known = golden.get(&format!("{start}{name}"));
        assert_eq!(found.len(), known.len(), "{name}");
        let error = found.iter().zip(known).fold(0.0f64, |m, (a, b)| {
            let error = (a - b).abs();
            if error.is_nan() { f64::INFINITY } else { m.max(error) }
        });
        let allowed = 1e-10 * largest(known).max(1e-3 * scale);
        assert!(error <= allowed, "{case} {name}: off by {error:e}, allowed {allowed:e}");
    }
}
