//! Plans that are used again: tables and scratch of the last few sizes.

use dss_kernels::block::{Block, BlockConfig, Buffers};
use dss_kernels::kernel::{Kernel, KernelConfig};
use dss_kernels::{Error, s4, s4d};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Plans that are kept between calls, the last used at the end.
const KEPT: usize = 4;

/// Idle plans of one kind.
pub(crate) struct Cache<K, P>(Mutex<Vec<(K, P)>>);

impl<K: PartialEq + Copy, P> Cache<K, P> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Runs `body` with a plan for `key`; concurrent calls get plans of their own.
    pub(super) fn with<R>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<P, Error>,
        body: impl FnOnce(&mut P) -> R,
    ) -> Result<R, Error> {
        let idle = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = {
            let mut idle = idle();
            idle.iter().position(|(k, _)| *k == key).map(|i| idle.remove(i).1)
        };
        let mut plan = match found {
            Some(plan) => plan,
            None => make()?,
        };
        let result = body(&mut plan);
        let mut idle = idle();
        idle.push((key, plan));
        if idle.len() > KEPT {
            idle.remove(0);
        }
        Ok(result)
    }
}

/// The plans of a precision.
pub(crate) trait Planned: dss_kernels::Real {
    /// Of blocks.
    fn blocks() -> &'static Cache<BlockConfig, Block<Self>>;
    /// Of kernels.
    fn kernels() -> &'static Cache<KernelConfig, Kernel<Self>>;
    /// Of S4's kernels.
    fn s4_kernels() -> &'static Cache<s4::KernelConfig, s4::Kernel<Self>>;
    /// Of S4D's kernels.
    fn s4d_kernels() -> &'static Cache<s4d::KernelConfig, s4d::Kernel<Self>>;
    /// What all blocks keep their activations in.
    fn buffers() -> Arc<Buffers<Self>>;
}

macro_rules! planned {
    ($t:ty) => {
        impl Planned for $t {
            fn blocks() -> &'static Cache<BlockConfig, Block<Self>> {
                static BLOCKS: Cache<BlockConfig, Block<$t>> = Cache::new();
                &BLOCKS
            }
            fn kernels() -> &'static Cache<KernelConfig, Kernel<Self>> {
                static KERNELS: Cache<KernelConfig, Kernel<$t>> = Cache::new();
                &KERNELS
            }
            fn s4_kernels() -> &'static Cache<s4::KernelConfig, s4::Kernel<Self>> {
                static KERNELS: Cache<s4::KernelConfig, s4::Kernel<$t>> = Cache::new();
                &KERNELS
            }
            fn s4d_kernels() -> &'static Cache<s4d::KernelConfig, s4d::Kernel<Self>> {
                static KERNELS: Cache<s4d::KernelConfig, s4d::Kernel<$t>> = Cache::new();
                &KERNELS
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
