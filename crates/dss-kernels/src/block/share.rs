//! How rows are shared out: always the same way, so that sums do not depend on the number of threads.

use std::ops::Range;

/// Shares of rows with sums of their own; also the most workers that the passes over rows can use.
pub(super) const SLOTS: usize = 16;

/// Rows that go through the passes together: their buffers fit the second-level cache.
pub(super) const CHUNK: usize = 128;

/// Cuts rows into chunks of at most [`CHUNK`], each inside one sample of length l.
pub(super) fn row_chunks(rows: Range<usize>, l: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = rows.start;
    std::iter::from_fn(move || {
        let start = next;
        if start >= rows.end {
            return None;
        }
        next = rows.end.min(start + CHUNK).min((start / l + 1) * l);
        Some(start..next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_rows_and_stay_in_their_samples() {
        for (rows, l) in [(0..0, 3), (5..700, 300), (0..256, 128), (7..8, 1), (0..1000, 1)] {
            let mut next = rows.start;
            for chunk in row_chunks(rows.clone(), l) {
                assert_eq!(chunk.start, next);
                assert!(!chunk.is_empty() && chunk.len() <= CHUNK);
                assert_eq!(chunk.start / l, (chunk.end - 1) / l);
                next = chunk.end;
            }
            assert_eq!(next, rows.end);
        }
    }
}
