//! Finding the NaN or infinity that ends a training.

use dss_nn::ParamGroup;

use super::session::Session;
use crate::error::{Error, Result};
use crate::optimiser::{Bad, first_bad};

impl Session<'_> {
    /// Parameters that are not finite are neither evaluated nor saved.
    pub(super) fn check_finite(&self) -> Result<()> {
        match self.bad_parameter() {
            Some(_) => Err(self.bad(self.state.step, "the update was not finite", None)),
            None => Ok(()),
        }
    }

    fn bad_parameter(&self) -> Option<Bad> {
        let all = self.model.named_tensors();
        first_bad(all.into_iter())
    }

    /// The error of step `step`, where `what` was seen: points at a parameter, else at the given gradient, else at
    /// the activations.
    pub(super) fn bad(&self, step: u64, what: &str, gradient: Option<Bad>) -> Error {
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

    fn show(&self, bad: &Bad) -> String {
        let Bad { name, index, value } = bad;
        let group = match self.group(name) {
            Some(ParamGroup::Lambda) => "Λ",
            Some(ParamGroup::Delta) => "Δ",
            Some(ParamGroup::W) => "W",
            Some(ParamGroup::Other) | None => "other",
        };
        format!("`{name}`[{index}] (group {group}) is {value}")
    }
}
