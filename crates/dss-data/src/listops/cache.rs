//! Generated expressions on disk: two symbols per byte, sealed with a SHA-256.
//!
//! Layout: magic, key, count (u64), labels (u8 each), lengths (u32 each), symbols (4 bits each), SHA-256 of all that.
//! Numbers are little-endian.

use sha2::{Digest, Sha256};

use super::expressions::Expressions;
use super::symbols::GENERATED;

const MAGIC: &[u8; 8] = b"DSSLOPS1";
const SEAL: usize = 32;

/// The bytes of a cache file. The expressions must be generated ones (15 symbols).
pub fn pack(key: &[u8; 32], rows: &Expressions) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&(rows.len() as u64).to_le_bytes());
    bytes.extend_from_slice(rows.labels());
    for i in 0..rows.len() {
        bytes.extend_from_slice(&(rows.codes(i).len() as u32).to_le_bytes());
    }
    for i in 0..rows.len() {
        bytes.extend(rows.codes(i).chunks(2).map(|two| two[0] | (two.get(1).unwrap_or(&0) << 4)));
    }
    let seal = Sha256::digest(&bytes);
    bytes.extend_from_slice(&seal);
    bytes
}

/// The expressions of a cache file; `None` when the file is damaged or of other settings.
pub fn unpack(key: &[u8; 32], bytes: &[u8]) -> Option<Expressions> {
    let (content, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL)?)?;
    if Sha256::digest(content).as_slice() != seal {
        return None;
    }
    let content = content.strip_prefix(MAGIC)?.strip_prefix(key)?;
    let (count, content) = content.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (labels, content) = content.split_at_checked(count)?;
    let (lengths, mut content) = content.split_at_checked(count.checked_mul(4)?)?;
    let mut rows = Expressions::default();
    let mut codes = Vec::new();
    for (&label, length) in labels.iter().zip(lengths.chunks_exact(4)) {
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (packed, rest) = content.split_at_checked(length.div_ceil(2))?;
        codes.clear();
        codes.extend(packed.iter().flat_map(|two| [two & 15, two >> 4]).take(length));
        if codes.iter().any(|&code| usize::from(code) >= GENERATED) {
            return None;
        }
        rows.push(&codes, label);
        content = rest;
    }
    content.is_empty().then_some(rows)
}

#[cfg(test)]
mod tests {
    use super::super::Grammar;
    use super::super::generate::generate;
    use super::*;

    #[test]
    fn unpacking_undoes_packing_and_damage_is_noticed() {
        let grammar = Grammar { max_depth: 6, max_args: 5, min_length: 3, max_length: 40 };
        let rows = generate(&grammar, 50, 1, &|_| {});
        let key = [7; 32];
        let bytes = pack(&key, &rows);
        assert_eq!(unpack(&key, &bytes), Some(rows));
        assert_eq!(unpack(&[8; 32], &bytes), None);
        for i in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[i] ^= 4;
            assert_eq!(unpack(&key, &damaged), None, "byte {i}");
            assert_eq!(unpack(&key, &bytes[..i]), None, "cut at {i}");
        }
    }
}
