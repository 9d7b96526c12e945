//! How much a run of the grid may take.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What each run of a grid gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Budget {
    /// The paper's settings, however long they take.
    Full,
    /// About so many seconds: a number of steps that is measured once per task.
    Seconds(u64),
    /// So many optimiser steps.
    Steps(u64),
}

/// Units of time in seconds, the longest first.
const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
/// A year; longer ones are slips.
const LONGEST: u64 = 366 * 86_400;
const STEPS: &str = "steps";

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid budget `{text}`: expected a time per run such as 90s, 10m, 1h or 1h30m, a number of steps such as 2000steps, or full"
            )
        };
        if text == "full" {
            return Ok(Self::Full);
        }
        if let Some(steps) = text.strip_suffix(STEPS) {
            let steps = steps.trim().parse().ok().filter(|n| (1..=u64::from(u32::MAX)).contains(n));
            return steps.map(Self::Steps).ok_or_else(wrong);
        }
        let (mut seconds, mut rest) = (0u64, text);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let (number, tail) = rest.split_at(digits);
            let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(end);
            let unit = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
            let number: u64 = number.parse().map_err(|_| wrong())?;
            seconds = seconds.saturating_add(number.saturating_mul(unit.1));
            rest = tail;
        }
        match seconds {
            1..=LONGEST => Ok(Self::Seconds(seconds)),
            _ => Err(wrong()),
        }
    }
}

/// As it is typed, in the longest unit that fits: `10m`, `90s`, `2000steps`, `full`.
impl Display for Budget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Steps(steps) => write!(f, "{steps}{STEPS}"),
            Self::Seconds(seconds) => {
                let fits = UNITS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
                let (name, unit) = fits.unwrap_or(&UNITS[3]);
                write!(f, "{}{name}", seconds / unit)
            }
        }
    }
}

impl TryFrom<String> for Budget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> Self {
        budget.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_steps_and_full() {
        let cases = [
            ("10m", Budget::Seconds(600), "10m"),
            ("1h", Budget::Seconds(3600), "1h"),
            ("90s", Budget::Seconds(90), "90s"),
            ("1h30m", Budget::Seconds(5400), "90m"),
            ("48h", Budget::Seconds(172_800), "2d"),
            ("2000steps", Budget::Steps(2000), "2000steps"),
            ("full", Budget::Full, "full"),
        ];
        for (text, budget, shown) in cases {
            assert_eq!(text.parse(), Ok(budget));
            assert_eq!(budget.to_string(), shown);
            assert_eq!(shown.parse(), Ok(budget));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in ["", "10", "m", "-5m", "1.5h", "10 m", "0s", "0steps", "steps", "900d", "ten"]
        {
            assert!(wrong.parse::<Budget>().unwrap_err().contains("10m"), "{wrong}");
        }
        assert!(format!("{}s", u64::MAX).parse::<Budget>().is_err());
        assert!(format!("{}d", u64::MAX).parse::<Budget>().is_err());
    }
}
