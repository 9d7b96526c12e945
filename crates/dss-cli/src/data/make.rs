//! `dss data make`

use std::path::Path;
use std::process::ExitCode;

use dss_data::make::{Make, folder, make};
use dss_train::threads;

use crate::args::DataMakeArgs;
use crate::failure::Failure;
use crate::{output, progress, text};

pub fn run(args: DataMakeArgs) -> Result<ExitCode, Failure> {
    let wanted = Make { count: args.count, seed: args.seed, size: args.size };
    wanted.check(&args.task).map_err(Failure::usage)?;
    let to = args.out.unwrap_or_else(|| {
        let top = args.data.dir.as_deref().unwrap_or(Path::new("."));
        top.join(folder(&args.task))
    });
    let made = threads::with(args.threads.count, || {
        let bar = progress::loading();
        let tell = |text: &str| {
            bar.set_message(text.to_owned());
            bar.tick();
        };
        let made = make(&args.task, &to, &wanted, &tell);
        bar.finish_and_clear();
        made
    })??;
    for file in &made.files {
        output::line(&file.display().to_string())?;
    }
    output::line(&format!("{} examples", made.examples))?;
    let dir = text::shell(&made.dir);
    output::line(&format!("train: dss train {} --set task.dir={dir}", args.task))?;
    Ok(ExitCode::SUCCESS)
}
