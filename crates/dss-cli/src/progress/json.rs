//! One JSON object per event on standard output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dss_train::{Event, Observer};

use super::WriteError;
use crate::output;

/// Writes events; asks for an orderly end when they cannot be written any more.
pub struct Json {
    stop: Arc<AtomicBool>,
    lost: WriteError,
}

impl Json {
    pub fn new(stop: Arc<AtomicBool>, lost: WriteError) -> Self {
        Self { stop, lost }
    }
}

impl Observer for Json {
    fn event(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Evaluating { .. })
            && let Err(error) = output::json(&event.to_json())
        {
            // The first failure is the one to report.
            let _ = self.lost.set(error);
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}
