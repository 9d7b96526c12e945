//! A grid of runs (task × model × seed) and what is decided about it: `grid.toml`.
//!
//! ```text
//! grid.toml               what was asked for and decided: nothing is measured twice
//! TASK-MODEL-SEED/        a run directory each
//! table.md, .json, .csv, .html
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use dss_data::{TaskConfig, catalogue};
use dss_train::config::{self, Config, Overlay, presets_of};
use dss_train::run_dir::write_file;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::grid_run::GridRun;
use super::models::{self, GridModel, MODELS};
use super::plan::{self, Plan};
use super::progress::Progress;
use super::setting::GridSetting;
use super::table_kind::TableKind;
use crate::error::{Error, Result};

/// The requested runs; options that are left open are those of the grid in the directory, or of the table.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What each run gets; 10 minutes for a new grid.
    pub budget: Option<Budget>,
    /// Runs of each model on each task.
    pub seeds: Option<u64>,
    /// Names of tasks; empty: those of the table.
    pub tasks: Vec<String>,
    /// Names of models; empty: those of the table.
    pub models: Vec<String>,
    /// Over the settings of the plans.
    pub sets: Vec<GridSetting>,
    /// The directory with downloaded data sets.
    pub data_dir: Option<PathBuf>,
}

impl Request {
    /// The budget of a new grid.
    pub const BUDGET: Budget = Budget::Seconds(600);
}

/// `grid.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    table: TableKind,
    budget: Budget,
    sets: Vec<GridSetting>,
    seeds: u64,
    tasks: Vec<String>,
    models: Vec<String>,
    /// By task.
    #[serde(default)]
    plans: BTreeMap<String, Plan>,
    /// What went wrong, by run.
    #[serde(default)]
    failed: BTreeMap<String, String>,
}

/// The part of a grid that is to be run; the tables show everything that was ever asked for.
#[derive(Debug)]
struct Selection {
    tasks: Vec<String>,
    models: Vec<String>,
    seeds: u64,
}

/// A grid and its directory.
#[derive(Debug)]
pub struct Grid {
    root: PathBuf,
    pub(super) data_dir: Option<PathBuf>,
    file: GridFile,
    selection: Selection,
    /// By task and model: the settings with the first seed.
    configs: BTreeMap<String, BTreeMap<&'static str, Config>>,
    /// Tasks without data, and what to do about it.
    pub(super) skipped: BTreeMap<String, String>,
}

const FILE: &str = "grid.toml";

impl Grid {
    /// The grid of a directory, changed as asked for, or a new one. Nothing is written.
    ///
    /// # Errors
    /// If the directory holds a grid of another table, budget or settings, or a setting cannot be used.
    pub fn open(root: &Path, table: TableKind, request: &Request) -> Result<Self> {
        let fail = |what: String| Error::Grid { dir: root.into(), what };
        let mut tasks = union(&[], &request.tasks);
        if tasks.is_empty() {
            tasks = table.tasks().iter().map(|name| (*name).to_owned()).collect();
        }
        let mut models = union(&[], &request.models);
        if models.is_empty() {
            models = table.models().map(str::to_owned).collect();
        }
        check_names(&tasks, &models).map_err(fail)?;
        check_sets(&request.sets, request.budget).map_err(fail)?;
        let budget = request.budget.unwrap_or(Request::BUDGET);
        check_budget(&tasks, budget).map_err(fail)?;
        let file = match read(root)? {
            Some(before) => {
                check_same(&before, table, request).map_err(fail)?;
                GridFile {
                    seeds: before.seeds.max(request.seeds.unwrap_or(1)),
                    tasks: union(&before.tasks, &tasks),
                    models: union(&before.models, &models),
                    ..before
                }
            }
            None => GridFile {
                table,
                budget,
                sets: request.sets.clone(),
                seeds: request.seeds.unwrap_or(1),
                tasks: tasks.clone(),
                models: models.clone(),
                plans: BTreeMap::new(),
                failed: BTreeMap::new(),
            },
        };
        let seeds = request.seeds.unwrap_or(file.seeds);
        let mut grid = Self {
            root: root.into(),
            data_dir: request.data_dir.clone(),
            file,
            selection: Selection { tasks, models, seeds },
            configs: BTreeMap::new(),
            skipped: BTreeMap::new(),
        };
        // A setting that cannot be used is found before anything runs; those of tasks that may join later, too.
        let later = request.sets.iter().filter_map(|set| set.task.clone());
        for task in union(&grid.file.tasks, &later.collect::<Vec<_>>()) {
            grid.resolve_task(&task)?;
        }
        grid.plan_without_measuring()?;
        grid.skip_missing();
        Ok(grid)
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its table.
    pub fn table(&self) -> TableKind {
        self.file.table
    }

    /// What each run gets.
    pub fn budget(&self) -> Budget {
        self.file.budget
    }

    /// Settings that were asked for.
    pub fn sets(&self) -> &[GridSetting] {
        &self.file.sets
    }

    /// All tasks that were ever asked for.
    pub fn tasks(&self) -> &[String] {
        &self.file.tasks
    }

    /// All models that were ever asked for, in the order of [`MODELS`].
    pub fn models(&self) -> impl Iterator<Item = &'static GridModel> + '_ {
        MODELS.iter().filter(|model| self.file.models.iter().any(|name| name == model.name))
    }

    /// The plan of a task, if there is one already.
    pub fn plan(&self, task: &str) -> Option<&Plan> {
        self.file.plans.get(task)
    }

    /// Why a task cannot be run, and what to do about it.
    pub fn skipped(&self, task: &str) -> Option<&str> {
        self.skipped.get(task).map(String::as_str)
    }

    /// The runs that are asked for now: first one seed of everything.
    pub fn cells(&self) -> Vec<GridRun> {
        let Selection { tasks, models, seeds } = &self.selection;
        let mut cells = Vec::new();
        for number in 0..*seeds {
            for task in tasks {
                let models = models.iter().filter_map(|name| models::model(name));
                cells.extend(models.map(|model| self.cell(task, model, number)));
            }
        }
        cells
    }

    /// All runs of a task and a model that were ever asked for.
    ///
    /// # Panics
    /// If the task or the model is not one of the grid.
    pub fn seeds(&self, task: &str, model: &'static GridModel) -> Vec<GridRun> {
        (0..self.file.seeds).map(|number| self.cell(task, model, number)).collect()
    }

    fn cell(&self, task: &str, model: &'static GridModel, number: u64) -> GridRun {
        let seed = self.base(task, model).train.seed.saturating_add(number);
        GridRun { task: task.to_owned(), model, seed }
    }

    /// The directory of a run.
    pub fn dir(&self, cell: &GridRun) -> PathBuf {
        self.root.join(cell.name())
    }

    /// The preset of a task.
    pub fn preset(&self, task: &str) -> &str {
        self.plan(task).map_or(plan::preset(task, self.file.budget), |plan| &plan.preset)
    }

    /// The settings of a run, as far as they are decided.
    ///
    /// # Panics
    /// If the run is not one of the grid.
    pub fn config(&self, cell: &GridRun) -> Config {
        let mut config = self.base(&cell.task, cell.model).clone();
        config.train.seed = cell.seed;
        config
    }

    /// The paper's settings of a task for DSS-softmax, if it has any.
    pub fn paper_config(&self, task: &str) -> Option<Config> {
        Config::resolve(task, Some(plan::PAPER), &[], &[]).ok()
    }

    /// The settings of a task and a model with the first seed.
    pub(super) fn base(&self, task: &str, model: &GridModel) -> &Config {
        &self.configs[task][model.name]
    }

    /// What went wrong with a run when it was tried last.
    pub(super) fn failure(&self, cell: &GridRun) -> Option<&String> {
        self.file.failed.get(&cell.name())
    }

    /// Remembers what went wrong with a run, or that nothing did; returns whether something was known before.
    pub(super) fn set_failed(&mut self, cell: &GridRun, error: Option<String>) -> bool {
        let before = match error {
            Some(error) => self.file.failed.insert(cell.name(), error),
            None => self.file.failed.remove(&cell.name()),
        };
        before.is_some()
    }

    pub(super) fn set_plan(&mut self, task: &str, plan: Plan) -> Result<()> {
        self.file.plans.insert(task.to_owned(), plan);
        let resolved = self.resolve_task(task);
        if resolved.is_err() {
            self.file.plans.remove(task);
        }
        resolved
    }

    /// Makes the directory, keeps others out of it, and writes `grid.toml`.
    pub(super) fn claim(&self) -> Result<File> {
        fs::create_dir_all(&self.root)
            .map_err(Error::io("cannot make the directory", &self.root))?;
        let path = self.root.join(".lock");
        let file = File::create(&path).map_err(Error::io("cannot write", &path))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(dss_train::Error::RunBusy { dir: self.root.clone() }.into());
        }
        self.save()?;
        Ok(file)
    }

    /// Writes `grid.toml`.
    pub(super) fn save(&self) -> Result<()> {
        let path = self.root.join(FILE);
        let text =
            toml::to_string_pretty(&self.file).map_err(|error| Error::damaged(&path, error))?;
        let head = "# What was decided about this grid of runs; `dss repro` continues it.\n\n";
        Ok(write_file(&path, format!("{head}{text}").as_bytes())?)
    }

    /// The settings of all models of a task.
    fn resolve_task(&mut self, task: &str) -> Result<()> {
        let models = self.models().chain([models::reference()]);
        let configs = models.map(|model| Ok((model.name, self.resolve(task, model)?)));
        let configs = configs.collect::<Result<_>>()?;
        self.configs.insert(task.to_owned(), configs);
        Ok(())
    }

    fn resolve(&self, task: &str, model: &GridModel) -> Result<Config> {
        let mut sets = Overlay::default();
        let plan = self.plan(task);
        sets.extend(plan.iter().flat_map(|plan| plan.settings.iter().cloned()));
        let asked = self.file.sets.iter().filter(|set| set.applies_to(task, model.name));
        sets.extend(asked.map(|set| set.setting.clone()));
        let settings = config::Request {
            task: task.to_owned(),
            preset: Some(self.preset(task).to_owned()),
            model: Some(model.base.to_owned()),
            ablations: model.ablation.map(str::to_owned).into_iter().collect(),
            sets: sets.to_vec(),
            ..config::Request::default()
        };
        Ok(settings.resolve()?.0)
    }

    /// Plans that need no clock.
    fn plan_without_measuring(&mut self) -> Result<()> {
        for task in self.selection.tasks.clone() {
            let plan = match self.file.budget {
                _ if self.file.plans.contains_key(&task) => continue,
                Budget::Seconds(_) => continue,
                Budget::Full => Plan::full(),
                Budget::Steps(steps) => {
                    Plan::of_steps(self.base(&task, models::reference()), steps)
                }
            };
            self.set_plan(&task, plan)?;
        }
        Ok(())
    }

    /// Finds tasks whose data are not there, unless all their runs are done.
    fn skip_missing(&mut self) {
        let missing = |status: &catalogue::Status| status.state == catalogue::Availability::Missing;
        let asked = |status: &catalogue::Status| {
            let named = self.selection.tasks.iter().any(|task| task == status.task);
            let config = || self.base(status.task, models::reference());
            named && config().task.place().is_none()
        };
        let missing: Vec<_> = catalogue::list(self.data_dir.as_deref())
            .into_iter()
            .filter(|status| missing(status) && asked(status))
            .collect();
        if missing.is_empty() {
            return;
        }
        let (cells, progress) = (self.cells(), Progress::read(self));
        for status in missing {
            let mut runs = cells.iter().filter(|cell| cell.task == status.task);
            if runs.all(|cell| progress.is_done(cell)) {
                continue;
            }
            let get = status.get.map(|get| {
                let then = get.then.map(|then| format!(", then {then}")).unwrap_or_default();
                format!("{}{then}", get.command)
            });
            let how = get.or(status.make).unwrap_or_else(|| "see `dss data list`".to_owned());
            let looked = match &self.data_dir {
                Some(dir) => format!("not in {}", dir.display()),
                None => "no data folder was given (--data DIR)".to_owned(),
            };
            self.skipped.insert(status.task.to_owned(), format!("{looked}; to get it: {how}"));
        }
    }
}

/// The grid of a directory, if there is one.
fn read(root: &Path) -> Result<Option<GridFile>> {
    let path = root.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
    let file = toml::from_str(&text).map_err(|error| Error::damaged(&path, error.message()))?;
    Ok(Some(file))
}

/// A directory holds one grid.
fn check_same(
    before: &GridFile,
    table: TableKind,
    request: &Request,
) -> std::result::Result<(), String> {
    let same = |what: &str, here: String, asked: String| match here == asked {
        true => Ok(()),
        false => Err(format!(
            "it holds a grid with {what} {here}, not {asked}: use the same, or choose another directory with --out"
        )),
    };
    same("the table", before.table.name().into(), table.name().into())?;
    if let Some(budget) = request.budget {
        same("the budget", before.budget.to_string(), budget.to_string())?;
    }
    if !request.sets.is_empty() {
        let show = |sets: &[GridSetting]| {
            format!("[{}]", sets.iter().map(GridSetting::to_string).collect::<Vec<_>>().join(" "))
        };
        same("--set", show(&before.sets), show(&request.sets))?;
    }
    Ok(())
}

fn check_names(tasks: &[String], models: &[String]) -> std::result::Result<(), String> {
    let known = |what: &str, names: &[String], all: Vec<&str>| match names
        .iter()
        .find(|name| !all.contains(&name.as_str()))
    {
        Some(name) => Err(format!("unknown {what} `{name}`; there are: {}", all.join(", "))),
        None => Ok(()),
    };
    known("task", tasks, TaskConfig::NAMES.to_vec())?;
    known("model", models, MODELS.iter().map(|model| model.name).collect())
}

/// The paper's settings are asked for where there are some.
fn check_budget(tasks: &[String], budget: Budget) -> std::result::Result<(), String> {
    let has_none = |task: &&String| presets_of(task).all(|preset| preset.name != plan::PAPER);
    match tasks.iter().find(has_none) {
        Some(task) if budget == Budget::Full => Err(format!(
            "budget full is the preset `{}`, which task {task} does not have: leave it out of --tasks, or give a time or \
             a number of steps as --budget",
            plan::PAPER
        )),
        _ => Ok(()),
    }
}

/// A grid decides some settings itself: with others a row would not be what its name says.
fn check_sets(sets: &[GridSetting], budget: Option<Budget>) -> std::result::Result<(), String> {
    const BY_MODEL: [&str; 6] = ["mixer", "kind", "variant", "delta", "lambda_init", "kernel_len"];
    const BY_BUDGET: [&str; 3] = ["max_steps", "epochs", "schedule"];
    for GridSetting { setting, .. } in sets {
        let (key, name) = (setting.key(), setting.name());
        if BY_MODEL.contains(&name) {
            return Err(format!("{key} cannot be set for a grid: --models decides it"));
        }
        if BY_BUDGET.contains(&name) && budget != Some(Budget::Full) {
            return Err(format!("{key} cannot be set for a grid: --budget decides it"));
        }
    }
    Ok(())
}

/// The first names, then those of the others that are new.
fn union(first: &[String], others: &[String]) -> Vec<String> {
    let mut all = first.to_vec();
    for name in others {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}
