//! The checksum of a model file: SHA-256 of its description and its tensors, in hex, at `extra.sha256` of the
//! description. While it is computed, its place is filled with zeros. A file without one is not checked.

use sha2::{Digest, Sha256};

/// The key under `extra`.
pub const KEY: &str = "sha256";

/// What holds the place of a checksum in a description that is not signed yet.
pub const UNSIGNED: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The description with the checksum of itself and of the tensors' bytes, whatever checksum it has. A description
/// without a place for one stays as it is.
pub fn sign<'a>(text: &str, tensors: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let Some(place) = place(text) else { return text.to_owned() };
    let mut signed = text.to_owned();
    signed.replace_range(place.clone(), UNSIGNED);
    let mut tensors: Vec<_> = tensors.into_iter().collect();
    tensors.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = Sha256::new();
    for part in [("", signed.as_bytes())].into_iter().chain(tensors) {
        for bytes in [part.0.as_bytes(), part.1] {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    signed.replace_range(place, &digits);
    signed
}

/// Whether the description's checksum, if it has one, is right.
pub fn is_right<'a>(text: &str, tensors: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> bool {
    let has_key = text.contains(&format!("\"{KEY}\":"));
    has_key == place(text).is_some() && sign(text, tensors) == text
}

/// Where the checksum is in the text. A quotation mark inside a string of JSON has a backslash before it, so no label
/// can look like the key.
fn place(text: &str) -> Option<std::ops::Range<usize>> {
    let key = format!("\"{KEY}\":\"");
    let start = text.find(&key)? + key.len();
    let end = start + UNSIGNED.len();
    let digits = text.get(start..end)?.bytes().all(|b| b.is_ascii_hexdigit());
    (digits && text[end..].starts_with('"')).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_is_noticed() {
        let text = format!(r#"{{"seed":7,"extra":{{"sha256":"{UNSIGNED}"}}}}"#);
        let tensors = [("b", &[1u8, 2][..]), ("a", &[3, 4])];
        let signed = sign(&text, tensors);
        assert_ne!(signed, text);
        assert!(is_right(&signed, tensors));
        assert!(is_right(&signed, [tensors[1], tensors[0]]), "whatever their order");
        assert_eq!(sign(&signed, tensors), signed);
        for (at, bit) in (0..signed.len()).flat_map(|at| (0..7).map(move |bit| (at, bit))) {
            let mut bytes = signed.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let changed = String::from_utf8(bytes).unwrap();
            // A changed key is left to whoever reads the description.
            let key_is_whole = changed.contains(r#""sha256":"#);
            assert!(!key_is_whole || !is_right(&changed, tensors), "{changed}");
        }
        assert!(!is_right(&signed, [("b", &[1u8, 3][..]), ("a", &[3, 4])]));
        assert!(!is_right(&signed, [("b", &[1u8, 2][..]), ("c", &[3, 4])]));
        assert!(!is_right(&signed, [("b", &[1u8][..]), ("a", &[2, 3, 4])]));
    }

    #[test]
    fn files_without_a_checksum_are_not_checked() {
        for text in [r#"{"extra":{}}"#, r#"{"labels":["\"sha256\":\""]}"#, r#"{"sha256":"12"}"#] {
            assert_eq!(sign(text, []), text);
        }
    }
}
