//! A setting of a grid.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use dss_data::TaskConfig;
use dss_train::config::Setting;
use serde::{Deserialize, Serialize};

/// A setting of all runs, or of those of one task: `KEY=VALUE` or `TASK:KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GridSetting {
    /// The task, unless it is for all.
    pub task: Option<String>,
    /// The setting.
    pub setting: Setting,
}

impl GridSetting {
    /// Whether it is one of the runs of this task.
    pub(super) fn applies_to(&self, task: &str) -> bool {
        self.task.as_ref().is_none_or(|own| own == task)
    }
}

impl FromStr for GridSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let setting: Setting = text.parse()?;
        match setting.key().split_once(':') {
            None => Ok(Self { task: None, setting }),
            Some((task, key)) if TaskConfig::NAMES.contains(&task) => Ok(Self {
                task: Some(task.to_owned()),
                setting: Setting::typed(key, setting.text()),
            }),
            Some((task, _)) => {
                Err(format!("there is no task `{task}`; expected TASK:KEY=VALUE or KEY=VALUE"))
            }
        }
    }
}

impl Display for GridSetting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.task {
            Some(task) => write!(f, "{task}:{}", self.setting),
            None => self.setting.fmt(f),
        }
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
    fn of_all_tasks_or_of_one() {
        let all: GridSetting = "task.train=40".parse().unwrap();
        assert!(all.applies_to("delay") && all.applies_to("listops"));
        let one: GridSetting = "listops:max_length=30".parse().unwrap();
        assert!(one.applies_to("listops") && !one.applies_to("delay"));
        assert_eq!(one.setting, Setting::new("max_length", 30));
        for setting in [all, one] {
            assert_eq!(setting.to_string().parse(), Ok(setting));
        }
        assert!("nothing:h=3".parse::<GridSetting>().unwrap_err().contains("`nothing`"));
        assert!("h".parse::<GridSetting>().is_err());
    }
}
