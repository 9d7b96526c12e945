//! The split hash: SHA-256 over labelled fields, so that no two lists of fields can run together.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Collects what identifies the splits of a task.
#[derive(Clone)]
pub(crate) struct SplitHash(Sha256);

impl SplitHash {
    pub(crate) fn new(task: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.bytes("task", task.as_bytes());
        hash
    }

    /// Adds one named field.
    pub(crate) fn bytes(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), value] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    /// Adds settings, as JSON.
    pub(crate) fn settings(&mut self, settings: &impl Serialize) {
        let json = serde_json::to_vec(settings).expect("settings are plain data");
        self.bytes("settings", &json);
    }

    /// 64 hex digits.
    pub(crate) fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
