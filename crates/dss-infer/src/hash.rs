//! FNV-1a, 64 bits: tells models and damaged states apart, not more.

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash(pub u64);

impl Hash {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Words at a time: a model has many.
    pub(crate) fn floats(&mut self, values: &[f32]) {
        for x in values {
            self.0 = (self.0 ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
