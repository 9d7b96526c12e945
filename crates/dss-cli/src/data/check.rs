//! `dss data check`

use std::process::ExitCode;

use dss_data::TaskConfig;
use dss_data::check::check;
use dss_nn::ModelConfig;
use dss_train::config::Setting;
use dss_train::{Config, TrainConfig, threads};

use super::Log;
use crate::args::{DataCheckArgs, path_setting};
use crate::failure::Failure;
use crate::{output, progress};

pub fn run(args: DataCheckArgs) -> Result<ExitCode, Failure> {
    let task = settings(&args)?;
    let report = threads::with(args.threads.count, || {
        let bar = progress::loading();
        let log = std::cell::RefCell::new(Log::new());
        let tell = |text: &str| {
            bar.set_message(text.to_owned());
            bar.tick();
            log.borrow_mut().write(|| text.to_owned());
        };
        let report = check(&task, args.data.dir.as_deref(), &tell);
        bar.finish_and_clear();
        report
    })?;
    if args.json {
        output::json(&serde_json::to_value(&report).map_err(Failure::failed)?)?;
    } else {
        output::line(report.to_string().trim_end())?;
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The settings of the task: its defaults or those of a preset, and changes to them.
fn settings(args: &DataCheckArgs) -> Result<TaskConfig, Failure> {
    let failure = Failure::for_task(&args.task);
    // A key without its section is one of the task.
    let own = |setting: &Setting| match setting.key().contains('.') {
        true => setting.clone(),
        false => Setting::typed(&format!("task.{}", setting.key()), setting.text()),
    };
    let path =
        args.path.as_ref().map(|path| path_setting(&args.task, path, args.data.dir.as_deref()));
    let sets: Vec<_> = path.transpose()?.into_iter().chain(args.set.iter().map(own)).collect();
    let plain = match &args.preset {
        Some(_) => {
            Config::resolve(&args.task, args.preset.as_deref(), &[], &[]).map_err(&failure)?
        }
        None => {
            let unknown = || Failure::usage(format!("no task `{}`", args.task));
            Config {
                task: TaskConfig::default_for(&args.task).ok_or_else(unknown)?,
                model: ModelConfig::default(),
                train: TrainConfig::default(),
            }
        }
    };
    let changed = plain.changed(&[], &sets).map_err(&failure)?;
    if changed.model != plain.model || changed.train != plain.train {
        return Err(Failure::usage("`dss data check --set` changes settings of [task] only"));
    }
    Ok(changed.task)
}
