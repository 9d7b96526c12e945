//! Learning rates that depend on how deep in the model a parameter is: for fine-tuning.

/// Which parts of a model are trained, and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Depth {
    /// Blocks or stages of the model.
    pub layers: usize,
    /// Blocks, from the input, that are not trained; if there are any, neither is what comes before the blocks.
    pub frozen: usize,
    /// What the rates are multiplied by for each block between a parameter and the head, its own included.
    pub factor: f64,
}

impl Depth {
    /// What the learning rate of a parameter is multiplied by; `None` if it is not trained.
    pub(super) fn rate_factor(&self, name: &str) -> Option<f64> {
        let within = name.strip_prefix("layers.").or_else(|| name.strip_prefix("stages."));
        let block = within.and_then(|rest| rest.split('.').next()?.parse().ok());
        let before =
            ["encoder.", "cls", "positions", "side."].iter().any(|start| name.starts_with(start));
        let above = match block {
            Some(i) if i < self.frozen => return None,
            Some(i) => self.layers.saturating_sub(i),
            None if before && self.frozen > 0 => return None,
            None if before => self.layers + 1,
            None => 0,
        };
        Some(self.factor.powi(above as i32))
    }
}

/// Everything is trained alike.
impl Default for Depth {
    fn default() -> Self {
        Self { layers: 0, frozen: 0, factor: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_towards_the_input() {
        let names = [
            "head.weight",
            "norm.gamma",
            "layers.1.mixer.w",
            "layers.0.norm.beta",
            "encoder.weight",
        ];
        let factors = |depth: Depth| names.map(|name| depth.rate_factor(name));
        assert_eq!(factors(Depth { layers: 2, ..Depth::default() }), [Some(1.0); 5]);
        let falling = Depth { layers: 2, factor: 0.5, frozen: 0 };
        assert_eq!(factors(falling), [1.0, 1.0, 0.5, 0.25, 0.125].map(Some));
        let frozen = Depth { frozen: 1, ..falling };
        assert_eq!(factors(frozen), [Some(1.0), Some(1.0), Some(0.5), None, None]);
    }
}
