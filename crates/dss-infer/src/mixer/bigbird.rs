//! BigBird: attention between blocks, whole sequences only.

use dss_format::MixerContext;
use dss_format::mixer::BigbirdConfig;
use dss_kernels::attention::gathered::{BlockTiles, Gathered, GatheredConfig, GatheredInput};
use dss_kernels::attention::{Attention, AttentionConfig, AttentionInput};

use super::projections::{Projections, QkvRows};
use super::{LengthLimit, MixerState, SequenceMixer, Workspace, own_workspace};
use crate::arrays::Arrays;
use crate::error::{Error, Result};

pub(super) struct BigbirdMixer {
    config: BigbirdConfig,
    context: MixerContext,
    maps: Projections,
    /// `[heads, n − 2, r]`
    random: Vec<u32>,
}

/// Full attention where there are few blocks, else attention between blocks.
enum Plan {
    Full(Attention<f32>),
    Blocks(Gathered<f32>, usize),
}

impl BigbirdMixer {
    pub(super) fn new(
        config: BigbirdConfig,
        context: MixerContext,
        arrays: &mut Arrays<'_>,
    ) -> Result<Self> {
        let maps = Projections::new(arrays, config.frame(), context.h)?;
        let blocks = config.blocks(context.len).filter(|_| config.random_blocks > 0);
        let random = blocks.map_or_else(Vec::new, |_| arrays.take("blocks"));
        let random = random.into_iter().map(|x| x as u32).collect();
        Ok(Self { config, context, maps, random })
    }
}

impl SequenceMixer for BigbirdMixer {
    fn max_len(&self) -> Option<LengthLimit> {
        let why = "its last block is that of the training length (BigBird)".to_owned();
        Some(LengthLimit { length: self.context.len, why })
    }

    fn workspace(&self, l: usize) -> Result<Workspace> {
        let (heads, head_dim) = (self.config.heads, self.maps.width() / self.config.heads);
        let sizes =
            AttentionConfig { batch: 1, queries: l, keys: l, heads, head_dim, causal: false };
        let plan = match self.config.blocks(self.context.len) {
            None => Plan::Full(Attention::new(sizes)?),
            Some(blocks) => {
                let config = GatheredConfig {
                    batch: 1,
                    len: l,
                    heads,
                    head_dim,
                    scale: 1.0 / (head_dim as f64).sqrt(),
                    causal: false,
                    self_last: false,
                };
                Plan::Blocks(Gathered::new(config)?, blocks)
            }
        };
        Ok(Box::new((plan, vec![0.0f32; sizes.saved_len()], QkvRows::new(l, self.maps.width()))))
    }

    fn mix(&self, _: &[f32], workspace: &mut Workspace, u: &[f32], v: &mut [f32]) -> Result<()> {
        let (plan, saved, rows) = own_workspace::<(Plan, Vec<f32>, QkvRows)>(workspace);
        self.maps.split(u, rows)?;
        let QkvRows { q, k, v: values, y, .. } = rows;
        match plan {
            Plan::Full(attention) => {
                attention.forward(
                    &AttentionInput { q, k, v: values, query_lengths: None, key_lengths: None },
                    y,
                    saved,
                )?;
            }
            Plan::Blocks(gathered, blocks) => {
                let BigbirdConfig { heads, block, .. } = self.config;
                let l = u.len() / self.context.h;
                let tiles = BlockTiles::new(*blocks, block, heads, &self.random, None, l);
                gathered.forward(&GatheredInput { q, k, v: values, tiles: &tiles }, y, saved)?;
            }
        }
        self.maps.join(rows, v)
    }

    fn state(&self) -> Result<Box<dyn MixerState>> {
        Err(Error::cannot_stream("its blocks see the last block of the sequence (BigBird)"))
    }
}
