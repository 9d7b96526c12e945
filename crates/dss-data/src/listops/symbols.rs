//! The symbols of an expression, one byte each, and their two written forms.
//!
//! An operator and its children are in pre-order: `op, children..., X`. The token form writes just that, `[MAX 2 9 X`;
//! the tree form of the official files folds the children from the left into pairs, `( ( ( [MAX 2 ) 9 ) ] )`.

/// The symbol of every code: the digits are their own codes.
pub const SYMBOLS: [&str; 17] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "X", "[MIN", "[MAX", "[MED", "[SM", "[FIRST",
    "[LAST",
];
/// Code that closes an operator, written `X` or `]`.
pub const CLOSE: u8 = 10;
/// Code of the smallest argument.
pub const MIN: u8 = 11;
/// Code of the largest argument.
pub const MAX: u8 = 12;
/// Code of the median, rounded down between two middle arguments.
pub const MED: u8 = 13;
/// Code of the sum modulo 10.
pub const SM: u8 = 14;
/// Code of the first argument; never generated.
pub const FIRST: u8 = 15;
/// Code of the last argument; never generated.
pub const LAST: u8 = 16;
/// Codes that the generator makes: all but `FIRST` and `LAST`.
pub const GENERATED: usize = 15;

/// Reads either written form; round parentheses are skipped. `Err` holds the first unknown symbol.
pub fn parse(text: &str) -> Result<Vec<u8>, &str> {
    let symbols = text.split_ascii_whitespace().filter(|s| !matches!(*s, "(" | ")"));
    symbols.map(|symbol| code(symbol).ok_or(symbol)).collect()
}

fn code(symbol: &str) -> Option<u8> {
    match symbol.as_bytes() {
        [digit @ b'0'..=b'9'] => Some(digit - b'0'),
        b"]" => Some(CLOSE),
        _ => SYMBOLS.iter().position(|s| *s == symbol).map(|code| code as u8),
    }
}

/// Writes the token form, without the end-of-sequence token.
pub fn to_tokens(codes: &[u8]) -> String {
    codes.iter().map(|&code| SYMBOLS[code as usize]).collect::<Vec<_>>().join(" ")
}

/// Writes the tree form of a well-formed expression (one that [`super::evaluate`] accepts).
pub fn to_tree(codes: &[u8]) -> String {
    let arguments = count_arguments(codes);
    let mut words: Vec<&str> = Vec::new();
    let mut depth = 0;
    for (&code, &n) in codes.iter().zip(&arguments) {
        match code {
            CLOSE => {
                words.extend(["]", ")"]);
                depth -= 1;
            }
            MIN..=LAST => {
                words.extend(std::iter::repeat_n("(", n + 1));
                words.push(SYMBOLS[code as usize]);
                depth += 1;
                continue;
            }
            _ => words.push(SYMBOLS[code as usize]),
        }
        if depth > 0 {
            words.push(")");
        }
    }
    words.join(" ")
}

/// Number of arguments of the operator at each place; 0 at the other places.
fn count_arguments(codes: &[u8]) -> Vec<usize> {
    let mut counts = vec![0; codes.len()];
    let mut open = Vec::new();
    for (i, &code) in codes.iter().enumerate() {
        if code == CLOSE {
            open.pop();
            continue;
        }
        if let Some(&parent) = open.last() {
            counts[parent] += 1;
        }
        if code > CLOSE {
            open.push(i);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_max_of_two_and_nine() {
        let tree = "( ( ( [MAX 2 ) 9 ) ] )";
        let codes = parse(tree).unwrap();
        assert_eq!(codes, [MAX, 2, 9, CLOSE]);
        assert_eq!(to_tree(&codes), tree);
        assert_eq!(to_tokens(&codes), "[MAX 2 9 X");
        assert_eq!(parse("[MAX 2 9 X").unwrap(), codes);
        assert_eq!(to_tree(&[7]), "7");
    }

    #[test]
    fn unknown_symbols_are_named() {
        assert_eq!(parse("[MAX 2 12 ]"), Err("12"));
        assert_eq!(parse("[AVG 2 1 ]"), Err("[AVG"));
    }
}
