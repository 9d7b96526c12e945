//! Numbers in words, for people.

pub use dss_data::units::plural;

/// `step` for 1, else `steps`.
pub fn of_number(n: u64, noun: &str) -> String {
    if n == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// A time in the two units that matter.
pub fn duration(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let times = [12.34, 59.96, 75.0, 7325.0].map(duration);
        assert_eq!(times, ["12.3 s", "1 min 0 s", "1 min 15 s", "2 h 2 min"]);
    }
}
