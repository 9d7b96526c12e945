//! Plans that are used again: tables and scratch of the last few sizes, for all callers of a process.

use crate::block::{Block, BlockConfig, Buffers};
use crate::fork::Lock;
use crate::fourier::{Fourier, FourierConfig};
use crate::kernel::{Kernel, KernelConfig};
use crate::{Error, Real, s4, s4d};
use std::sync::{Arc, LazyLock};

/// Plans that are kept between calls, the last used at the end.
const KEPT: usize = 4;

/// Idle plans of one kind.
pub struct PlanCache<K, P>(Lock<Vec<(K, P)>>);

impl<K: PartialEq + Copy, P> PlanCache<K, P> {
    const fn new() -> Self {
        Self(Lock::new(Vec::new()))
    }

    /// Runs `body` with a plan for `key`; concurrent calls get plans of their own.
    pub fn with<R>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<P, Error>,
        body: impl FnOnce(&mut P) -> R,
    ) -> Result<R, Error> {
        let found = {
            let mut idle = self.0.lock();
            idle.iter().position(|(k, _)| *k == key).map(|i| idle.remove(i).1)
        };
        let mut plan = match found {
            Some(plan) => plan,
            None => make()?,
        };
        let result = body(&mut plan);
        let oldest = {
            let mut idle = self.0.lock();
            idle.push((key, plan));
            (idle.len() > KEPT).then(|| idle.remove(0))
        };
        // Freeing it takes longer than a lock may be held.
        drop(oldest);
        Ok(result)
    }
}

/// The plans of a precision.
pub trait Planned: Real {
    /// Of blocks.
    fn blocks() -> &'static PlanCache<BlockConfig, Block<Self>>;
    /// Of kernels.
    fn kernels() -> &'static PlanCache<KernelConfig, Kernel<Self>>;
    /// Of S4's kernels.
    fn s4_kernels() -> &'static PlanCache<s4::KernelConfig, s4::Kernel<Self>>;
    /// Of S4D's kernels.
    fn s4d_kernels() -> &'static PlanCache<s4d::KernelConfig, s4d::Kernel<Self>>;
    /// Of Fourier mixing.
    fn fouriers() -> &'static PlanCache<FourierConfig, Fourier<Self>>;
    /// What all blocks keep their activations in.
    fn buffers() -> Arc<Buffers<Self>>;
}

macro_rules! planned {
    ($t:ty) => {
        impl Planned for $t {
            fn blocks() -> &'static PlanCache<BlockConfig, Block<Self>> {
                static BLOCKS: PlanCache<BlockConfig, Block<$t>> = PlanCache::new();
                &BLOCKS
            }
            fn kernels() -> &'static PlanCache<KernelConfig, Kernel<Self>> {
                static KERNELS: PlanCache<KernelConfig, Kernel<$t>> = PlanCache::new();
                &KERNELS
            }
            fn s4_kernels() -> &'static PlanCache<s4::KernelConfig, s4::Kernel<Self>> {
                static KERNELS: PlanCache<s4::KernelConfig, s4::Kernel<$t>> = PlanCache::new();
                &KERNELS
            }
            fn s4d_kernels() -> &'static PlanCache<s4d::KernelConfig, s4d::Kernel<Self>> {
                static KERNELS: PlanCache<s4d::KernelConfig, s4d::Kernel<$t>> = PlanCache::new();
                &KERNELS
            }
            fn fouriers() -> &'static PlanCache<FourierConfig, Fourier<Self>> {
                static FOURIERS: PlanCache<FourierConfig, Fourier<$t>> = PlanCache::new();
                &FOURIERS
            }
            fn buffers() -> Arc<Buffers<Self>> {
                static BUFFERS: LazyLock<Arc<Buffers<$t>>> = LazyLock::new(Arc::default);
                BUFFERS.clone()
            }
        }
    };
}
planned!(f32);
planned!(f64);
