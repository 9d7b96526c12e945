//! Finding the NaN or infinity that ends a training.

use dss_nn::ParamGroup;
use dss_nn::ops::BatchStats;

use super::session::Session;
use crate::error::{Error, Result};
use crate::optimiser::{NonFinite, first_bad};

impl Session<'_> {
    /// Parameters that are not finite are neither evaluated nor saved.
    pub(super) fn check_finite(&self) -> Result<()> {
        match self.bad_parameter() {
            Some(_) => Err(self.bad(self.state.step, "the update was not finite", None)),
            None => Ok(()),
        }
    }

    fn bad_parameter(&self) -> Option<NonFinite> {
        let all = self.model.named_tensors();
        first_bad(all.into_iter())
    }

    /// The error of step `step`, where `what` was seen: points at a parameter, else at the given gradient, else at
    /// the activations.
    pub(super) fn bad(&self, step: u64, what: &str, gradient: Option<NonFinite>) -> Error {
        let parameter = self.bad_parameter();
        let (place, group) = match (&parameter, &gradient) {
            (Some(bad), _) => (format!("parameter {}", self.show(bad)), self.group(&bad.name)),
            (None, Some(bad)) => (
                format!("all parameters are finite, but the gradient of {}", self.show(bad)),
                self.group(&bad.name),
            ),
            (None, None) => {
                ("all parameters are finite, so activations overflowed".to_owned(), None)
            }
        };
        Error::NonFinite {
            step,
            what: what.to_owned(),
            place,
            group,
            saved: self.saved_step.map(|step| (self.run.last(), step)),
        }
    }

    /// The group of the parameter with this name.
    fn group(&self, name: &str) -> Option<ParamGroup> {
        self.model.parameters().into_iter().find(|p| p.name == name).map(|p| p.group)
    }

    fn show(&self, bad: &NonFinite) -> String {
        let NonFinite { name, index, value } = bad;
        let group = match self.group(name) {
            Some(ParamGroup::Lambda) => "Λ",
            Some(ParamGroup::Delta) => "Δ",
            Some(ParamGroup::W) => "W",
            Some(ParamGroup::Other) | None => "other",
        };
        format!("`{name}`[{index}] (group {group}) is {value}")
    }
}

/// The first statistic of a BatchNorm that is not finite, of each micro-batch and layer: the running ones would keep it.
pub(super) fn bad_statistic(stats: &[Vec<BatchStats>]) -> Option<String> {
    let layers = stats.iter().flat_map(|micro| micro.iter().enumerate());
    let named = layers.flat_map(|(i, BatchStats { mean, var })| {
        [("mean", mean), ("variance", var)]
            .map(|(name, values)| (format!("the {name} of BatchNorm {i}"), values.to_data()))
    });
    first_bad(named).map(|NonFinite { name, value, .. }| format!("{name} is {value}"))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;

    #[test]
    fn a_statistic_that_is_not_finite_is_named() {
        let values = |values: [f32; 2]| Tensor::from_data(values, &Device::flex());
        let stats = |var| BatchStats { mean: values([0.0, 1.0]), var: values([1.0, var]) };
        assert_eq!(bad_statistic(&[vec![stats(2.0), stats(3.0)], vec![]]), None);
        let bad =
            bad_statistic(&[vec![stats(2.0), stats(3.0)], vec![stats(1.0), stats(f32::INFINITY)]]);
        assert_eq!(bad.unwrap(), "the variance of BatchNorm 1 is inf");
    }
}
