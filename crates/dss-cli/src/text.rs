//! Numbers and paths for a terminal.

use std::path::Path;

use dss_train::Scores;

/// The score that counts, with its unit: `61.30 %` or `0.00123`.
pub fn score(scores: &Scores) -> String {
    match scores.accuracy {
        Some(accuracy) => format!("{:.2} %", 100.0 * accuracy),
        None => number(scores.mse.unwrap_or(scores.loss)),
    }
}

/// What that score is.
pub fn measure(scores: &Scores) -> &'static str {
    if scores.accuracy.is_some() { "accuracy" } else { "mean squared error" }
}

/// Four digits.
pub fn number(x: f64) -> String {
    if x == 0.0 || (1e-3..1e5).contains(&x.abs()) { format!("{x:.4}") } else { format!("{x:.3e}") }
}

/// A time in the units that matter.
pub fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// A path as a shell takes it.
pub fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@~".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(shell(Path::new("runs/listops-laptop-0")), "runs/listops-laptop-0");
        assert_eq!(shell(Path::new("my runs/it's")), r"'my runs/it'\''s'");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([number(0.12345), number(1e-7), number(0.0)], ["0.1235", "1.000e-7", "0.0000"]);
        assert_eq!(
            [duration(12.34), duration(75.0), duration(7260.0)],
            ["12.3 s", "1 min 15 s", "2 h 1 min"]
        );
    }
}
