//! A setting of a grid.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use dss_data::TaskConfig;
use dss_train::config::Setting;
use serde::{Deserialize, Serialize};

use super::models;

const EXPECTED: &str =
    "expected KEY=VALUE, TASK:KEY=VALUE, MODEL:KEY=VALUE or TASK:MODEL:KEY=VALUE";

/// A setting of all runs, or of those of one task, one model or both: `KEY=VALUE`, `TASK:KEY=VALUE`,
/// `MODEL:KEY=VALUE` or `TASK:MODEL:KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GridSetting {
    /// The task, unless it is for all.
    pub task: Option<String>,
    /// The name of the [model](super::GridModel), unless it is for all.
    pub model: Option<String>,
    /// The setting.
    pub setting: Setting,
}

impl GridSetting {
    /// Whether it is one of the runs of this task and model.
    pub(super) fn applies_to(&self, task: &str, model: &str) -> bool {
        self.task.as_ref().is_none_or(|own| own == task)
            && self.model.as_ref().is_none_or(|own| own == model)
    }
}

impl FromStr for GridSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let setting: Setting = text.parse().map_err(|_| EXPECTED)?;
        let (mut task, mut model) = (None, None);
        let mut names: Vec<&str> = setting.key().split(':').collect();
        let key = names.pop().unwrap_or_default();
        for name in names {
            let place = match TaskConfig::NAMES.contains(&name) {
                true => &mut task,
                false if models::model(name).is_some() => &mut model,
                false => return Err(format!("there is no task or model `{name}`; {EXPECTED}")),
            };
            if place.replace(name.to_owned()).is_some() {
                return Err(format!("`{name}` names a second task or model; {EXPECTED}"));
            }
        }
        Ok(Self { task, model, setting: Setting::typed(key, setting.text()) })
    }
}

impl Display for GridSetting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for name in [&self.task, &self.model].into_iter().flatten() {
            write!(f, "{name}:")?;
        }
        self.setting.fmt(f)
    }
}

impl TryFrom<String> for GridSetting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<GridSetting> for String {
    fn from(setting: GridSetting) -> Self {
        setting.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_runs_or_of_a_task_and_a_model() {
        let read = |text: &str| text.parse::<GridSetting>().unwrap();
        let all = read("task.train=40");
        assert!(all.applies_to("delay", "s4") && all.applies_to("listops", "gru"));
        let task = read("listops:max_length=30");
        assert!(task.applies_to("listops", "s4") && !task.applies_to("delay", "s4"));
        assert_eq!(task.setting, Setting::new("max_length", 30));
        let model = read("gru:h=32");
        assert!(model.applies_to("listops", "gru") && !model.applies_to("listops", "lstm"));
        let both = read("delay:gru:h=32");
        assert!(both.applies_to("delay", "gru"));
        assert!(!both.applies_to("delay", "lstm") && !both.applies_to("listops", "gru"));
        for setting in [all, task, model, both] {
            assert_eq!(setting.to_string().parse(), Ok(setting));
        }
        assert!("nothing:h=3".parse::<GridSetting>().unwrap_err().contains("`nothing`"));
        assert!("gru:lstm:h=3".parse::<GridSetting>().unwrap_err().contains("`lstm`"));
        assert!("h".parse::<GridSetting>().is_err());
    }
}
