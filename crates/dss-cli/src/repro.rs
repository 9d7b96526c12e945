//! `dss repro`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dss_report::repro::{
    Budget, Grid, GridOptions, GridRun, Progress, Request, RunStatus, Table, Watch,
};
use dss_train::Observer;
use dss_train::text::{duration, plural};

use crate::args::ReproArgs;
use crate::failure::Failure;
use crate::{device, interrupt, output, progress, text};

pub fn run(args: ReproArgs) -> Result<ExitCode, Failure> {
    let table = args.table;
    let budget = args.budget.unwrap_or(Request::BUDGET);
    let default = || PathBuf::from(format!("runs/repro-{}-{budget}", table.name()));
    let root = args.out.clone().unwrap_or_else(default);
    let request = Request {
        budget: args.budget,
        seeds: args.seeds,
        tasks: args.tasks,
        models: args.models,
        sets: args.set,
        data_dir: args.data.dir,
    };
    let options = GridOptions {
        threads: args.compute.threads.count,
        device: device::named(&args.compute.device)?.autodiff(),
    };
    let mut grid = Grid::open(&root, table, &request)?;
    if args.dry_run {
        output::bytes(preview(&grid, &options)?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = interrupt::flag()?;
    let mut watch = Lines { quiet: args.quiet || args.json, stop: stop.clone() };
    let ended = grid.run(&options, &mut watch, &stop)?;
    let table = Table::new(&grid, &Progress::read(&grid));
    if args.json {
        output::json(&serde_json::to_value(&table).map_err(Failure::failed)?)?;
    } else {
        let files = text::shell(&root.join("table.html"));
        output::line(&format!("{}\ntable  {files}, .md, .json, .csv", table.to_text()))?;
    }
    if ended.interrupted {
        watch.note("interrupted; the same command continues");
        return Ok(ExitCode::from(interrupt::INTERRUPTED));
    }
    let nothing = ended.skipped > 0 && grid.cells().iter().all(|c| grid.skipped(&c.task).is_some());
    match (ended.failed, nothing) {
        (0, false) => Ok(ExitCode::SUCCESS),
        (0, true) => Err(Failure::failed(eyre::Report::msg("no data were found for any task"))
            .hint("`dss data list` says how to get them; name their folder with --data DIR")),
        (failed, _) => {
            let what =
                format!("{} failed; the table shows the errors", plural(failed as u64, "run"));
            Err(Failure::failed(eyre::Report::msg(what)).hint("the same command tries them again"))
        }
    }
}

/// The runs, their settings and about how long they take.
fn preview(grid: &Grid, options: &GridOptions) -> Result<String, Failure> {
    let (cells, progress) = (grid.cells(), Progress::read(grid));
    let open: Vec<&GridRun> = progress.open(grid, &cells).collect();
    let mut out = format!(
        "{}, budget {} for each of {}, in {}\n\n",
        grid.table().title(),
        grid.budget(),
        plural(cells.len() as u64, "run"),
        text::shell(grid.root())
    );
    let estimate = match grid.budget() {
        Budget::Full => grid.estimate(open.iter().copied(), options)?,
        Budget::Seconds(_) | Budget::Steps(_) => BTreeMap::new(),
    };
    for task in grid.tasks() {
        let about =
            estimate.get(task.as_str()).map(|one| format!("about {} for each run", days(*one)));
        let what = match (grid.skipped(task), grid.plan(task)) {
            (Some(why), _) => format!("left out: {why}"),
            (None, Some(plan)) => {
                let preset = std::iter::once(format!("preset {}", plan.preset));
                let settings = (!plan.settings.is_empty()).then(|| plan.settings.to_string());
                preset.chain(settings).chain(about).collect::<Vec<_>>().join("; ")
            }
            (None, None) => {
                format!("preset {}; its steps are measured when it begins", grid.preset(task))
            }
        };
        out += &format!("{task:<13}{what}\n");
    }
    out.push('\n');
    let width = cells.iter().map(|cell| cell.name().len()).max().unwrap_or(0);
    for cell in &cells {
        let (name, config) = (cell.name(), grid.config(cell));
        let (m, t) = (&config.model, &config.train);
        out += &format!(
            "{name:<width$}  {:<8} {} x H {}, {}, batch {}, lr {}, seed {}\n",
            progress.status(cell).name(grid.skipped(&cell.task).is_some()),
            m.layers,
            m.h,
            m.mixer.settings().size(),
            t.batch,
            t.lr,
            t.seed,
        );
    }
    let estimated: Option<f64> = open.iter().map(|cell| estimate.get(cell.task.as_str())).sum();
    let left = match (progress.seconds_left(grid, &cells), estimated) {
        _ if open.is_empty() => "none: there is nothing to run".to_owned(),
        (Some(left), _) => format!("about {}", days(left)),
        (None, Some(left)) => format!("about {}, evaluations not counted", days(left)),
        (None, None) => "unknown before the first run of each task".to_owned(),
    };
    out += &format!("\ntime left: {left}\n");
    Ok(out)
}

/// A long time in days.
fn days(seconds: f64) -> String {
    let days = seconds / 86_400.0;
    if days < 2.0 { duration(seconds) } else { format!("{days:.0} days") }
}

/// A line when a run begins and ends; in between, what `dss train` shows.
struct Lines {
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl Lines {
    fn print(&self, text: &str) {
        if !self.quiet {
            output::log_line(text);
        }
    }
}

impl Watch for Lines {
    fn note(&mut self, text: &str) {
        self.print(text);
    }

    fn begin(&mut self, cell: &GridRun, number: usize, of: usize, left: Option<f64>) {
        let left = left.map(|s| format!("; about {} left in all", duration(s))).unwrap_or_default();
        let (task, model, seed) = (&cell.task, cell.model.label, cell.seed);
        self.print(&format!("\nrun {number} of {of}: {task}, {model}, seed {seed}{left}"));
    }

    fn observer(&mut self) -> Box<dyn Observer> {
        progress::observer(false, self.quiet, &self.stop, &progress::WriteError::default())
    }

    fn end(&mut self, cell: &GridRun, status: &RunStatus) {
        let name = cell.name();
        match status {
            RunStatus::Done(outcome) => {
                let (score, time) = (text::score(&outcome.test), duration(outcome.seconds));
                let steps = plural(outcome.steps, "step");
                self.print(&format!("{name}: test {score}, {steps}, {time}"));
            }
            RunStatus::Failed { error } => self.print(&format!("{name} failed: {error}")),
            RunStatus::Begun { steps } => {
                self.print(&format!("{name}: stopped after step {steps}"))
            }
            RunStatus::Waiting => {}
        }
    }
}
