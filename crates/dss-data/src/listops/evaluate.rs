//! The value of an expression.

use super::symbols::{CLOSE, FIRST, LAST, MAX, MED, MIN, SM, SYMBOLS};

/// Value 0..9 of an expression in pre-order codes. `Err` says what is wrong with it.
pub fn evaluate(codes: &[u8]) -> Result<u8, String> {
    // The arguments of all open operators, and for each operator where its own begin.
    let mut values: Vec<u8> = Vec::new();
    let mut open: Vec<(u8, usize)> = Vec::new();
    for (i, &code) in codes.iter().enumerate() {
        if i > 0 && open.is_empty() {
            return Err(format!("the expression ends before its symbol {}", i + 1));
        }
        match code {
            0..=9 => values.push(code),
            CLOSE => {
                let (op, start) = open.pop().ok_or("`]` without an operator")?;
                if start == values.len() {
                    return Err(format!("{} has no arguments", SYMBOLS[op as usize]));
                }
                let value = apply(op, &mut values[start..]);
                values.truncate(start);
                values.push(value);
            }
            MIN..=LAST => open.push((code, values.len())),
            _ => return Err(format!("{code} is not the code of a symbol")),
        }
    }
    match (open.last(), values.first()) {
        (Some(&(op, _)), _) => Err(format!("{} is never closed", SYMBOLS[op as usize])),
        (None, Some(&value)) => Ok(value),
        (None, None) => Err("the expression is empty".into()),
    }
}

/// One operator on at least one argument (which it may reorder).
fn apply(op: u8, arguments: &mut [u8]) -> u8 {
    let n = arguments.len();
    match op {
        FIRST => arguments[0],
        LAST => arguments[n - 1],
        SM => (arguments.iter().map(|&v| u32::from(v)).sum::<u32>() % 10) as u8,
        _ => {
            arguments.sort_unstable();
            match op {
                MIN => arguments[0],
                MAX => arguments[n - 1],
                MED => (arguments[(n - 1) / 2] + arguments[n / 2]) / 2,
                _ => unreachable!("only operators are opened"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::symbols::parse;
    use super::*;

    fn value(text: &str) -> Result<u8, String> {
        evaluate(&parse(text).unwrap())
    }

    #[test]
    fn hand_cases() {
        let cases = [
            ("3", 3),
            ("[MIN 4 2 8 X", 2),
            ("[MAX 4 2 8 X", 8),
            ("[SM 4 2 8 X", 4),
            ("[MED 9 1 4 X", 4),
            ("[MED 4 7 X", 5),
            ("[MED 7 9 1 4 X", 5),
            ("[MED 2 2 3 9 X", 2),
            ("[FIRST 6 1 9 X", 6),
            ("[LAST 6 1 9 X", 9),
            ("[SM 5 X", 5),
            ("[MAX 2 [MIN 9 [SM 9 9 X 7 X 1 X", 7),
            ("( ( ( [SM ( ( ( [MAX 2 ) 9 ) ] ) ) ( ( ( [MED 4 ) 7 ) ] ) ) ] )", 4),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn faults_are_named() {
        let cases = [
            ("", "empty"),
            ("[MAX 2", "[MAX is never closed"),
            ("]", "without an operator"),
            ("[MAX ]", "[MAX has no arguments"),
            ("[MAX 1 ] 2", "ends before its symbol 4"),
            ("1 2", "ends before its symbol 2"),
        ];
        for (text, part) in cases {
            let error = value(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
