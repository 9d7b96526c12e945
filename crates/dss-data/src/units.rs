//! Sizes and counts in words.

/// `1 step`, `2 steps`.
pub fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A size such as `84.1 MB`; 1 MB is a million bytes.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} {}", UNITS[0]);
    }
    let mut size = n as f64;
    let mut unit = 0;
    // 999.95 is the least that is written with four digits before the point.
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_are_plural_except_after_one() {
        assert_eq!([0, 1, 2].map(|n| plural(n, "step")), ["0 steps", "1 step", "2 steps"]);
    }

    #[test]
    fn sizes() {
        let cases = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (84_125_825, "84.1 MB"),
            (7_700_000_000, "7.7 GB"),
            (u64::MAX, "18446744.1 TB"),
        ];
        for (n, text) in cases {
            assert_eq!(bytes(n), text);
        }
    }
}
