//! `dss export` and `dss import`

use std::path::Path;
use std::process::ExitCode;

use dss_data::units;
use dss_infer::{Model, ModelFile, Precision};
use dss_nn::checkpoint;

use crate::args::{ExportArgs, ImportArgs};
use crate::failure::Failure;
use crate::{card, device, output, runs};

pub fn export(args: ExportArgs) -> Result<ExitCode, Failure> {
    let from = runs::model_file(&args.model)?;
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

pub fn import(args: ImportArgs) -> Result<ExitCode, Failure> {
    let file = read(&args.file)?;
    let bytes = file.to_bytes(Precision::Full).map_err(|e| named(&args.file, e))?;
    Model::from_bytes(&bytes).map_err(|e| named(&args.file, e))?;
    write(&args.file, &args.to, &bytes)?;
    // As training will.
    checkpoint::load(&args.to, &device::named("cpu")?)?;
    output::line(&format!("{}\t{}", args.to.display(), units::bytes(bytes.len() as u64)))?;
    Ok(ExitCode::SUCCESS)
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
        let message = format!("{} is the file that is read", to.display());
        return Err(Failure::usage(message).hint("give --to another name"));
    }
    Ok(checkpoint::write_whole(to, bytes)?)
}
