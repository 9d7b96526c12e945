//! `dss config`

use std::fmt::Write;
use std::process::ExitCode;

use dss_data::TaskConfig;
use dss_train::config::{ABLATIONS, DEFAULT_PRESET, MODELS, Request, presets_of};

use crate::failure::Failure;
use crate::output;

/// Prints the resolved configuration, which can be saved as a file.
pub fn show(request: Request) -> Result<ExitCode, Failure> {
    let (config, sources) = request.resolve().map_err(Failure::for_task(&request.task))?;
    output::bytes(config.to_sourced_toml(&sources).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Tasks and their presets, models and ablations, a line each.
pub fn list() -> Result<ExitCode, Failure> {
    let mut out = String::new();
    for task in TaskConfig::NAMES {
        let _ = writeln!(out, "{task:<13}{}", TaskConfig::about(task).unwrap_or_default());
        for preset in presets_of(task) {
            let default = if preset.name == DEFAULT_PRESET { " (default)" } else { "" };
            let _ = writeln!(out, "  {:<11}{}{default}", preset.name, preset.about());
        }
    }
    for (title, overlays) in [("Models (--model)", MODELS), ("Ablations (--ablation)", ABLATIONS)] {
        let _ = writeln!(out, "\n{title}");
        for overlay in overlays {
            let _ = writeln!(out, "  {:<20}{}", overlay.name, overlay.about());
        }
    }
    output::bytes(out.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
