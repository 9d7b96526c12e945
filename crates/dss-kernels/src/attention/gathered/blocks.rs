//! BigBird (Zaheer et al. 2020): which blocks of keys a block of queries sees.

use super::Tiles;
use std::sync::Arc;

/// Query block i of n sees the key blocks {0, n − 1, i − 1, i, i + 1} and its random ones, each once; the blocks 0 and
/// n − 1 see all. Sequences are cut at their lengths; what a block would see beyond is left out.
#[derive(Debug, Clone)]
pub struct BlockTiles {
    block: usize,
    blocks: usize,
    /// [heads, n − 2, r]
    random: Arc<[u32]>,
    /// r.
    drawn: usize,
    lengths: Option<Arc<[usize]>>,
    len: usize,
}

impl BlockTiles {
    /// Of `blocks` blocks of `block` positions. `random`: `[heads, blocks − 2, r]`, may be empty; `lengths`: true
    /// positions of every sequence; `None`: all `len`.
    ///
    /// # Panics
    /// If `random` is not of that shape or names a block that does not exist.
    pub fn new(
        blocks: usize,
        block: usize,
        heads: usize,
        random: &[u32],
        lengths: Option<&[usize]>,
        len: usize,
    ) -> Self {
        let rows = heads * blocks.saturating_sub(2);
        let drawn = random.len().checked_div(rows).unwrap_or(0);
        assert_eq!(random.len(), rows * drawn, "random must be [heads, blocks − 2, r]");
        assert!(random.iter().all(|&i| (i as usize) < blocks), "a block that does not exist");
        Self { block, blocks, random: random.into(), drawn, lengths: lengths.map(Into::into), len }
    }
}

impl Tiles for BlockTiles {
    fn visit(&self, sequence: usize, head: usize, tile: &mut dyn FnMut(&[u32], &[u32])) {
        let Self { block, blocks, drawn, len, .. } = *self;
        let length = self.lengths.as_ref().map_or(len, |lengths| lengths[sequence]);
        let positions =
            |i: usize| (i * block).min(length) as u32..((i + 1) * block).min(length) as u32;
        let (mut queries, mut keys, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..length.div_ceil(block) {
            queries.clear();
            queries.extend(positions(i));
            keys.clear();
            if i == 0 || i + 1 == blocks {
                keys.extend(0..length as u32);
            } else {
                let row = (head * (blocks - 2) + i - 1) * drawn;
                seen.clear();
                seen.extend([0, blocks - 1, i - 1, i, i + 1]);
                seen.extend(self.random[row..][..drawn].iter().map(|&i| i as usize));
                seen.sort_unstable();
                seen.dedup();
                keys.extend(seen.iter().flat_map(|&i| positions(i)));
            }
            tile(&queries, &keys);
        }
    }
}
