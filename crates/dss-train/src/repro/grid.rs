//! A grid of runs (task × model × seed) and what is decided about it: `grid.toml`.
//!
//! ```text
//! grid.toml               what was asked for and decided; going on does not measure anew
//! TASK-MODEL-SEED/        a run directory each
//! data/                   generated data that the runs share
//! table.md, .json, .csv, .html
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use dss_data::{TaskConfig, catalogue};
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::cell::{self, Cell, State};
use super::kind::Kind;
use super::models::{self, MODELS, Model, REFERENCE};
use super::plan::{self, Plan};
use crate::config::{self, Config, Overlay, Setting};
use crate::error::{Error, Result};
use crate::run_dir::atomic;

/// What is asked for; what is left open is as the grid in the directory has it, or as the table suggests.
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
    /// `KEY=VALUE` for all runs, or `TASK:KEY=VALUE` for those of a task.
    pub sets: Vec<String>,
    /// Where downloaded data lies.
    pub data_dir: Option<PathBuf>,
}

impl Request {
    /// The budget of a new grid.
    pub const BUDGET: Budget = Budget::Seconds(600);
}

/// `grid.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    table: Kind,
    budget: Budget,
    sets: Vec<String>,
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

/// A grid and its directory.
#[derive(Debug)]
pub struct Grid {
    root: PathBuf,
    pub(super) data_dir: Option<PathBuf>,
    decided: Decided,
    /// What to run now; the tables show everything that was ever asked for.
    now: (Vec<String>, Vec<String>, u64),
    /// Tasks without data, and what to do about it.
    pub(super) skipped: BTreeMap<String, String>,
}

const FILE: &str = "grid.toml";

impl Grid {
    /// The grid of a directory, changed as asked for, or a new one. Nothing is written.
    ///
    /// # Errors
    /// If the directory holds a grid of another table, budget or settings, or a setting cannot be used.
    pub fn open(root: &Path, table: Kind, request: &Request) -> Result<Self> {
        let fail = |what: String| Error::Grid { dir: root.into(), what };
        let path = root.join(FILE);
        let before: Option<Decided> = match path.exists() {
            true => {
                let text = fs::read_to_string(&path).map_err(Error::io("cannot read", &path))?;
                let damaged = |e: toml::de::Error| Error::Damaged {
                    path: path.clone(),
                    what: e.message().to_owned(),
                };
                Some(toml::from_str(&text).map_err(damaged)?)
            }
            false => None,
        };
        let named = |names: &[String], default: &[&str]| match names.is_empty() {
            true => default.iter().map(|name| (*name).to_owned()).collect(),
            false => union(&[], names),
        };
        let tasks: Vec<String> = named(&request.tasks, table.tasks());
        let models: Vec<String> = named(&request.models, table.models());
        check_names(&tasks, &models).map_err(fail)?;
        check_sets(&request.sets, request.budget).map_err(fail)?;
        let decided = match before {
            Some(before) => {
                let other = |what: &str, here: &dyn ToString, asked: &dyn ToString| {
                    let (here, asked) = (here.to_string(), asked.to_string());
                    fail(format!(
                        "it holds a grid with {what} {here}, not {asked}: ask for the same, or choose another \
                         directory by --out"
                    ))
                };
                if before.table != table {
                    return Err(other("the table", &before.table.name(), &table.name()));
                }
                if let Some(budget) = request.budget.filter(|b| *b != before.budget) {
                    return Err(other("the budget", &before.budget, &budget));
                }
                if !request.sets.is_empty() && request.sets != before.sets {
                    let show = |sets: &[String]| format!("[{}]", sets.join(" "));
                    return Err(other("--set", &show(&before.sets), &show(&request.sets)));
                }
                Decided {
                    seeds: before.seeds.max(request.seeds.unwrap_or(1)),
                    tasks: union(&before.tasks, &tasks),
                    models: union(&before.models, &models),
                    ..before
                }
            }
            None => Decided {
                table,
                budget: request.budget.unwrap_or(Request::BUDGET),
                sets: request.sets.clone(),
                seeds: request.seeds.unwrap_or(1),
                tasks: tasks.clone(),
                models: models.clone(),
                plans: BTreeMap::new(),
                failed: BTreeMap::new(),
            },
        };
        let seeds = request.seeds.unwrap_or(decided.seeds);
        let mut grid = Self {
            root: root.into(),
            data_dir: request.data_dir.clone(),
            decided,
            now: (tasks, models, seeds),
            skipped: BTreeMap::new(),
        };
        grid.plan_without_measuring()?;
        // A setting that cannot be used is found before anything runs.
        for cell in grid.cells()? {
            grid.config(&cell)?;
        }
        // Those of tasks that may join later, too.
        for (task, _) in request.sets.iter().filter_map(|set| prefixed(set)) {
            grid.base(task, REFERENCE)?;
        }
        grid.skip_missing()?;
        Ok(grid)
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its table.
    pub fn table(&self) -> Kind {
        self.decided.table
    }

    /// What each run gets.
    pub fn budget(&self) -> Budget {
        self.decided.budget
    }

    /// Settings that all runs have.
    pub fn sets(&self) -> &[String] {
        &self.decided.sets
    }

    /// All tasks that were ever asked for.
    pub fn tasks(&self) -> &[String] {
        &self.decided.tasks
    }

    /// All models that were ever asked for, in the order of [`MODELS`].
    pub fn models(&self) -> impl Iterator<Item = &'static Model> + '_ {
        MODELS.iter().filter(|model| self.decided.models.iter().any(|name| name == model.name))
    }

    /// What was decided for a task, once it was.
    pub fn plan(&self, task: &str) -> Option<&Plan> {
        self.decided.plans.get(task)
    }

    /// Why a task cannot be run, and what to do about it.
    pub fn skipped(&self, task: &str) -> Option<&str> {
        self.skipped.get(task).map(String::as_str)
    }

    /// The runs that are asked for now: first one seed of everything.
    pub fn cells(&self) -> Result<Vec<Cell>> {
        let (tasks, models, seeds) = &self.now;
        let mut cells = Vec::new();
        for number in 0..*seeds {
            for task in tasks {
                cells.extend(self.cells_of(task, models, number)?);
            }
        }
        Ok(cells)
    }

    /// All runs of a task and a model that were ever asked for.
    pub fn seeds(&self, task: &str, model: &'static Model) -> Result<Vec<Cell>> {
        let one = [model.name.to_owned()];
        let seeds = (0..self.decided.seeds).map(|number| self.cells_of(task, &one, number));
        Ok(seeds.collect::<Result<Vec<_>>>()?.concat())
    }

    fn cells_of(&self, task: &str, models: &[String], number: u64) -> Result<Vec<Cell>> {
        let models = models.iter().filter_map(|name| models::model(name));
        models
            .map(|model| {
                let first = self.base(task, model)?.train.seed;
                let (task, seed) = (task.to_owned(), first.saturating_add(number));
                Ok(Cell { task, model, seed })
            })
            .collect()
    }

    /// The directory of a run.
    pub fn dir(&self, cell: &Cell) -> PathBuf {
        self.root.join(cell.name())
    }

    /// The settings of a run, as far as they are decided.
    pub fn config(&self, cell: &Cell) -> Result<Config> {
        let mut config = self.base(&cell.task, cell.model)?;
        config.train.seed = cell.seed;
        Ok(config)
    }

    /// The paper's settings of a task for DSS-softmax, if it has any.
    pub fn paper_config(&self, task: &str) -> Option<Config> {
        Config::resolve(task, Some(plan::preset(Budget::Full)), &[], &[]).ok()
    }

    /// The settings of a task and a model with the first seed.
    pub(super) fn base(&self, task: &str, model: &Model) -> Result<Config> {
        let pair = |set: &str| set.parse::<Setting>().ok();
        let plan = self.decided.plans.get(task);
        let of_plan = plan.iter().flat_map(|plan| &plan.settings).filter_map(|set| pair(set));
        let asked = self.decided.sets.iter().filter_map(|set| match prefixed(set) {
            Some((of, set)) => (of == task).then(|| pair(set)).flatten(),
            None => pair(set),
        });
        let mut sets = Overlay::default();
        let docs = TaskConfig::key_docs(task).unwrap_or_default();
        if docs.iter().any(|doc| doc.0 == "cache") {
            let data = std::path::absolute(self.root.join("data"));
            let data = data.map_err(Error::io("cannot find", &self.root))?;
            sets.push(Setting::new("task.cache", data.display().to_string()));
        }
        sets.extend(of_plan.chain(asked));
        let preset = plan.map_or(plan::preset(self.decided.budget), |plan| plan.preset.as_str());
        let settings = config::Request {
            task: task.to_owned(),
            preset: Some(preset.to_owned()),
            model: Some(model.base.to_owned()),
            ablations: model.ablation.map(str::to_owned).into_iter().collect(),
            files: Vec::new(),
            sets: sets.to_vec(),
        };
        Ok(settings.resolve()?.0)
    }

    /// How far a run is.
    pub fn state(&self, cell: &Cell) -> State {
        let failed = |error: String| State::Failed { error };
        let config = match self.plan(&cell.task).map(|_| self.config(cell)).transpose() {
            Ok(config) => config,
            Err(error) => return failed(error.to_string()),
        };
        match cell::state(&self.dir(cell), config.as_ref()) {
            Ok(done @ State::Done(_)) => done,
            Ok(other) => match self.decided.failed.get(&cell.name()) {
                Some(error) => failed(error.clone()),
                None => other,
            },
            Err(error) => failed(error.to_string()),
        }
    }

    /// Remembers what went wrong with a run, or that nothing did; returns whether something was known before.
    pub(super) fn set_failed(&mut self, cell: &Cell, error: Option<String>) -> bool {
        let before = match error {
            Some(error) => self.decided.failed.insert(cell.name(), error),
            None => self.decided.failed.remove(&cell.name()),
        };
        before.is_some()
    }

    pub(super) fn set_plan(&mut self, task: &str, plan: Plan) {
        self.decided.plans.insert(task.to_owned(), plan);
    }

    /// Makes the directory, keeps others out of it, and writes `grid.toml`.
    pub(super) fn claim(&self) -> Result<File> {
        fs::create_dir_all(&self.root)
            .map_err(Error::io("cannot make the directory", &self.root))?;
        let path = self.root.join(".lock");
        let file = File::create(&path).map_err(Error::io("cannot write", &path))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::RunBusy { dir: self.root.clone() });
        }
        self.save()?;
        Ok(file)
    }

    /// Writes `grid.toml`.
    pub(super) fn save(&self) -> Result<()> {
        let path = self.root.join(FILE);
        let text = toml::to_string_pretty(&self.decided)
            .map_err(|e| Error::Damaged { path: path.clone(), what: e.to_string() })?;
        let head = "# What was decided about this grid of runs; `dss repro` goes on with it.\n\n";
        atomic::write_file(&path, format!("{head}{text}").as_bytes())
    }

    /// Plans that need no clock.
    fn plan_without_measuring(&mut self) -> Result<()> {
        for task in self.now.0.clone() {
            let plan = match self.decided.budget {
                _ if self.decided.plans.contains_key(&task) => continue,
                Budget::Seconds(_) => continue,
                Budget::Full => Plan::full(),
                Budget::Steps(steps) => Plan::of_steps(&self.base(&task, REFERENCE)?, steps),
            };
            self.set_plan(&task, plan);
        }
        Ok(())
    }

    /// Finds tasks whose data are not there, unless all their runs are done.
    fn skip_missing(&mut self) -> Result<()> {
        let cells = self.cells()?;
        for status in catalogue::list(self.data_dir.as_deref()) {
            let task = status.task;
            let open = |cell: &&Cell| !matches!(self.state(cell), State::Done(_));
            let missing = status.state == catalogue::State::Missing
                && cells.iter().filter(|cell| cell.task == task).any(|cell| open(&cell))
                && !names_its_data(&self.base(task, REFERENCE)?);
            if missing {
                let get = status.get.map(|get| {
                    let then = get.then.map(|then| format!(", then {then}")).unwrap_or_default();
                    format!("{}{then}", get.command)
                });
                let how = get.or(status.make).unwrap_or_else(|| "see `dss data list`".to_owned());
                let looked = match &self.data_dir {
                    Some(dir) => format!("not in {}", dir.display()),
                    None => "no data folder was given (--data DIR)".to_owned(),
                };
                self.skipped.insert(task.to_owned(), format!("{looked}; to get it: {how}"));
            }
        }
        Ok(())
    }
}

/// Whether the settings of a task say where its data are.
fn names_its_data(config: &Config) -> bool {
    let task = serde_json::to_value(&config.task).unwrap_or_default();
    ["dir", "path"].iter().any(|key| task[key].as_str().is_some_and(|place| !place.is_empty()))
}

/// `TASK:KEY=VALUE` as its task and the rest.
fn prefixed(set: &str) -> Option<(&str, &str)> {
    let key = set.split_once('=').map_or(set, |(key, _)| key);
    let (task, _) = key.split_once(':')?;
    Some((task, &set[task.len() + 1..]))
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

/// A grid decides some settings itself: with others a row would not be what its name says.
fn check_sets(sets: &[String], budget: Option<Budget>) -> std::result::Result<(), String> {
    const BY_MODEL: [&str; 5] = ["mixer", "variant", "delta", "lambda_init", "kernel_len"];
    const BY_BUDGET: [&str; 3] = ["max_steps", "epochs", "schedule"];
    for set in sets {
        let set = prefixed(set).map_or(set.as_str(), |(_, set)| set);
        let key = set.split_once('=').map_or(set, |(key, _)| key).trim();
        let name = key.rsplit('.').next().unwrap_or(key);
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
