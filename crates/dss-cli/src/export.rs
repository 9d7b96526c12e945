//! `dss export` and `dss import`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dss_data::units;
use dss_exchange::export::{onnx, torch};
use dss_exchange::{ImportOptions, Nearby, Settings};
use dss_infer::{Model, ModelFile, Precision};
use dss_nn::checkpoint;

use crate::args::{ExportArgs, ForeignArgs, ImportArgs};
use crate::failure::Failure;
use crate::{card, device, output, runs, text};

pub fn export(args: ExportArgs) -> Result<ExitCode, Failure> {
    let from = runs::model_file(&args.model)?;
    match args.to.to_str() {
        Some("torch") => return export_torch(&args, &from),
        Some("onnx") => return export_onnx(&args, &from),
        _ if args.out.is_some() => {
            let message = "--out is for --to torch and --to onnx";
            return Err(Failure::usage(message).hint("name the file with --to FILE"));
        }
        _ => {}
    }
    let file = read(&from)?;
    let precision = if args.f16 { Precision::F16 } else { Precision::Full };
    let bytes = file.to_bytes(precision).map_err(|e| named(&from, e))?;
    let model = Model::from_bytes(&bytes).map_err(|e| named(&from, e))?;
    write(&from, &args.to, &bytes)?;
    let run = args.model.is_dir().then_some(args.model.as_path());
    let card = card::write(&args.to, &model, run)?;
    let mut line = format!("{}\t{}", args.to.display(), units::bytes(bytes.len() as u64));
    if args.f16 {
        let error = file.f16_error();
        line += &format!("\tweights changed by at most {error:.1e} of the largest in their tensor");
    }
    output::line(&line)?;
    if let Some(card) = card {
        output::line(&format!("{}\tmodel card", card.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn export_torch(args: &ExportArgs, from: &Path) -> Result<ExitCode, Failure> {
    let out = place(args, ".torch.safetensors")?;
    let files = torch::to_torch(&read(from)?).map_err(|e| about(from, e))?;
    write(from, &out, &files.tensors)?;
    let config = out.with_extension("config.yaml");
    checkpoint::write_whole(&config, files.config.as_bytes())?;
    output::line(&format!("{}\t{}", out.display(), units::bytes(files.tensors.len() as u64)))?;
    output::line(&format!("{}\tconfiguration", config.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn export_onnx(args: &ExportArgs, from: &Path) -> Result<ExitCode, Failure> {
    let out = place(args, ".onnx")?;
    let bytes = onnx::to_onnx(&read(from)?).map_err(|e| about(from, e))?;
    write(from, &out, &bytes)?;
    output::line(&format!("{}\t{}", out.display(), units::bytes(bytes.len() as u64)))?;
    Ok(ExitCode::SUCCESS)
}

/// Where a file for another program goes.
fn place(args: &ExportArgs, ending: &str) -> Result<PathBuf, Failure> {
    if args.f16 {
        let message = "--f16 cannot be used with --to torch or --to onnx";
        return Err(Failure::usage(message));
    }
    if let Some(out) = &args.out {
        return Ok(out.clone());
    }
    let full = args.model.canonicalize()?;
    let name = if full.is_dir() { full.file_name() } else { full.file_stem() };
    let name = name.unwrap_or_default().to_string_lossy();
    Ok(PathBuf::from(format!("{name}{ending}")))
}

pub fn import(args: ImportArgs) -> Result<ExitCode, Failure> {
    let path = &args.file;
    let bytes = fs::read(path)
        .map_err(|source| Failure::from(dss_infer::Error::Io { path: path.clone(), source }))?;
    let file = if dss_exchange::is_model_file(&bytes) {
        if let Some(option) = args.foreign.first() {
            let message =
                format!("{} is a model file of dss, which needs no options", path.display());
            return Err(Failure::usage(message).hint(format!("leave out {option}")));
        }
        ModelFile::from_bytes(&bytes).map_err(|e| named(path, e))?
    } else {
        let imported = dss_exchange::import(&bytes, &options(path, &args.foreign)?)
            .map_err(|e| about(path, e))?;
        for note in &imported.notes {
            eprintln!("note: {}", text::printable(note));
        }
        imported.file
    };
    drop(bytes);
    let bytes = file.to_bytes(Precision::Full).map_err(|e| named(path, e))?;
    Model::from_bytes(&bytes).map_err(|e| named(path, e))?;
    write(path, &args.to, &bytes)?;
    // As training will.
    checkpoint::load(&args.to, &device::named("cpu")?)?;
    output::line(&format!("{}\t{}", args.to.display(), units::bytes(bytes.len() as u64)))?;
    Ok(ExitCode::SUCCESS)
}

fn options(checkpoint: &Path, args: &ForeignArgs) -> Result<ImportOptions, Failure> {
    let settings = match &args.config {
        None => None,
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
            Some(Settings::from_yaml(&text).map_err(|e| about(path, e))?)
        }
    };
    Ok(ImportOptions {
        nearby: if settings.is_none() { Nearby::find(checkpoint) } else { None },
        settings,
        len: args.len,
        variant: args.variant,
        pooling: args.pool,
        kernel_len: args.kernel_len,
        prenorm: args.prenorm,
        discretisation: args.discretisation,
        delta: args.dt,
    })
}

/// An error about a file; what the user has to say is wrong usage.
fn about(path: &Path, error: dss_exchange::Error) -> Failure {
    let message = format!("{}: {error}", path.display());
    match error {
        dss_exchange::Error::Unknown(_) => Failure::usage(message),
        _ => Failure::failed(eyre::eyre!(message)),
    }
}

fn read(path: &Path) -> Result<ModelFile, Failure> {
    ModelFile::load(path).map_err(|e| named(path, e))
}

/// The error with the name of the file, where it does not have it.
pub fn named(path: &Path, error: impl Into<dss_infer::Error>) -> Failure {
    match error.into() {
        error @ dss_infer::Error::Io { .. } => error.into(),
        error => Failure::failed(eyre::eyre!("{}: {error}", path.display())),
    }
}

fn write(from: &Path, to: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if to.canonicalize().is_ok_and(|to| from.canonicalize().is_ok_and(|from| from == to)) {
        let message = format!("{} is also the input file", to.display());
        return Err(Failure::usage(message).hint("give --to another name"));
    }
    Ok(checkpoint::write_whole(to, bytes)?)
}
