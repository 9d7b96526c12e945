//! Grids of runs: interrupted and resumed to the same bits, failures and missing data beside runs that continue.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{TempDir, assert_same, remains};
use burn::tensor::Device;
use dss_report::repro::{
    Budget, Grid, GridOptions, GridRun, GridSetting, GridSummary, Progress, Request, RunStatus,
    Table, TableKind, Watch,
};
use dss_train::{Event, Observer};

/// Runs that are over in a moment.
const SMALL: [&str; 12] = [
    "task.train=40",
    "task.val=10",
    "task.test=10",
    "layers=1",
    "h=8",
    "n=4",
    "batch=5",
    "delay:d=20",
    "delay:window=8",
    "adding:length=30",
    "listops:min_length=5",
    "listops:max_length=30",
];

fn set(text: &str) -> GridSetting {
    text.parse().unwrap()
}

fn request(budget: Budget, tasks: &[&str], models: &[&str]) -> Request {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Request {
        budget: Some(budget),
        tasks: owned(tasks),
        models: owned(models),
        sets: SMALL.map(set).to_vec(),
        ..Request::default()
    }
}

/// Counts what happens, and stops after so many steps of all runs together.
struct Watcher {
    begun: Vec<String>,
    ended: Vec<RunStatus>,
    notes: Vec<String>,
    left: Option<u64>,
    stop: Arc<AtomicBool>,
}

struct StopAfter {
    left: Option<u64>,
    stop: Arc<AtomicBool>,
}

impl Observer for StopAfter {
    fn event(&mut self, event: &Event<'_>) {
        if let (Event::Step { .. }, Some(left)) = (event, &mut self.left) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.stop.store(true, Ordering::SeqCst);
            }
        }
    }
}

impl Watcher {
    fn new(left: Option<u64>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        Self { begun: Vec::new(), ended: Vec::new(), notes: Vec::new(), left, stop }
    }
}

impl Watch for Watcher {
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    fn begin(&mut self, cell: &GridRun, number: usize, of: usize, _: Option<f64>) {
        assert!((1..=of).contains(&number));
        self.begun.push(cell.name());
    }

    fn observer(&mut self) -> Box<dyn Observer> {
        Box::new(StopAfter { left: self.left, stop: self.stop.clone() })
    }

    fn end(&mut self, _: &GridRun, status: &RunStatus) {
        self.ended.push(status.clone());
    }
}

fn table(grid: &Grid) -> Table {
    Table::new(grid, &Progress::read(grid))
}

fn work(
    root: &Path,
    kind: TableKind,
    request: &Request,
    stop_after: Option<u64>,
) -> (Watcher, GridSummary) {
    let mut grid = Grid::open(root, kind, request).unwrap();
    let mut watcher = Watcher::new(stop_after);
    let stop = watcher.stop.clone();
    let options = GridOptions { threads: Some(1), device: Device::flex().autodiff() };
    let ended = grid.run(&options, &mut watcher, &stop).unwrap();
    (watcher, ended)
}

#[test]
fn interrupted_and_resumed_to_the_same_bits() {
    let temp = TempDir::new("repro-resume");
    let request =
        request(Budget::Steps(12), &["delay", "adding"], &["dss-softmax", "dss-exp-no-scale"]);
    let (whole, cut) = (temp.join("whole"), temp.join("cut"));
    let (watcher, ended) = work(&whole, TableKind::Lra, &request, None);
    assert_eq!(ended, GridSummary { failed: 0, skipped: 0, interrupted: false });
    assert_eq!(watcher.begun.len(), 4);
    assert!(watcher.ended.iter().all(|state| matches!(state, RunStatus::Done(o) if o.steps == 12)));

    // Each part gets 7 steps of a run further.
    let mut parts = 0;
    loop {
        let (watcher, ended) = work(&cut, TableKind::Lra, &request, Some(7));
        assert!(cut.join("table.html").exists(), "the table of what is there");
        parts += 1;
        assert!(parts < 20);
        if !ended.interrupted {
            break;
        }
        assert!(watcher.begun.len() <= 2, "{:?}", watcher.begun);
    }
    assert!(parts > 3, "{parts}");
    for name in watcher.begun {
        assert_same(&remains(&whole.join(&name)), &remains(&cut.join(&name)), &name);
    }
    let (watcher, _) = work(&cut, TableKind::Lra, &request, None);
    assert!(watcher.begun.is_empty(), "what is complete is not run again: {:?}", watcher.begun);

    // More seeds and models: only they are run; the table keeps the others.
    let more = Request { seeds: Some(2), models: vec!["dss-exp".into()], ..request };
    let (watcher, _) = work(&cut, TableKind::Lra, &more, None);
    let expected = ["delay-dss-exp-0", "adding-dss-exp-0", "delay-dss-exp-1", "adding-dss-exp-1"];
    assert_eq!(watcher.begun, expected);
    let table = table(&Grid::open(&cut, TableKind::Lra, &more).unwrap());
    let row = |model| table.rows.iter().find(|row| row.model == Some(model)).unwrap();
    assert!(row("dss-exp").entries.iter().all(|entry| entry.spread.is_some()));
    assert!(row("dss-softmax").entries.iter().all(|e| e.ours.is_some() && e.spread.is_none()));
    let runs = row("dss-exp").entries.iter().flat_map(|entry| &entry.runs);
    if cfg!(target_os = "linux") {
        assert!(runs.map(|run| run.peak_mb).all(|peak| peak.is_some_and(|mb| mb > 1.0)));
    }
    assert_eq!(table.columns[0].measure, Some("accuracy"));
    assert_eq!(table.columns[1].measure, Some("mse"));
    assert!(table.columns[0].chance.is_some_and(|c| (12.5..40.0).contains(&c)));

    // Another budget, table or setting is another grid.
    for (kind, change) in [
        (TableKind::Lra, Request { budget: Some(Budget::Steps(13)), ..more.clone() }),
        (TableKind::Speech, more.clone()),
        (TableKind::Lra, Request { sets: vec![set("h=16")], ..more.clone() }),
    ] {
        let error = Grid::open(&cut, kind, &change).unwrap_err().to_string();
        assert!(error.contains("it holds a grid with") && error.contains("--out"), "{error}");
    }
}

#[test]
fn a_failure_does_not_stop_the_others() {
    let temp = TempDir::new("repro-failure");
    let tasks = ["smnist", "adding", "delay"];
    let mut request = request(Budget::Steps(6), &tasks, &["dss-softmax"]);
    request.sets.push(set("adding:lr=1e30"));
    request.data_dir = Some(temp.join("nothing"));
    let (watcher, ended) = work(&temp.join("grid"), TableKind::Lra, &request, None);
    assert_eq!(ended, GridSummary { failed: 1, skipped: 1, interrupted: false });
    assert_eq!(watcher.begun, ["adding-dss-softmax-0", "delay-dss-softmax-0"]);
    let left_out = watcher.notes.iter().find(|note| note.starts_with("smnist is left out"));
    assert!(left_out.is_some_and(|note| note.contains("dss data get smnist")), "{left_out:?}");
    // Later tables know it too; the next attempt tries again.
    let grid = Grid::open(&temp.join("grid"), TableKind::Lra, &request).unwrap();
    let text = table(&grid).to_text();
    for part in ["failed", "adding-dss-softmax-0 failed: step", "no data", "train.lr"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let (watcher, _) = work(&temp.join("grid"), TableKind::Lra, &request, None);
    assert_eq!(watcher.begun, ["adding-dss-softmax-0"]);
}

#[test]
fn a_time_is_measured_once() {
    let temp = TempDir::new("repro-time");
    let models = ["dss-softmax", "dss-exp"];
    let request = request(Budget::Seconds(1), &["listops"], &models);
    let root = temp.join("grid");
    let (watcher, ended) = work(&root, TableKind::Ablations, &request, Some(3));
    assert!(ended.interrupted && watcher.notes.iter().any(|note| note.contains("measuring")));
    let decided = std::fs::read(root.join("grid.toml")).unwrap();
    let (watcher, ended) = work(&root, TableKind::Ablations, &request, None);
    assert!(!ended.interrupted && watcher.notes.is_empty(), "{:?}", watcher.notes);
    assert_eq!(std::fs::read(root.join("grid.toml")).unwrap(), decided);
    // Equal steps for all models.
    let steps = watcher.ended.iter().map(|state| match state {
        RunStatus::Done(outcome) => outcome.steps,
        other => panic!("{other:?}"),
    });
    let steps: Vec<u64> = steps.collect();
    assert!(steps.len() == 2 && steps[0] == steps[1] && steps[0] >= 10, "{steps:?}");
    let table = table(&Grid::open(&root, TableKind::Ablations, &request).unwrap());
    assert!(table.argmax_95[0].ours.is_some_and(|at| (0.0..30.0).contains(&at)));
    assert_eq!(table.argmax_95[0].paper, Some("89"));
}

#[test]
fn settings_that_cannot_be_used_are_found_at_once() {
    let temp = TempDir::new("repro-usage");
    let root = temp.join("grid");
    let mut wrong = request(Budget::Steps(6), &["delay"], &["dss-softmax"]);
    wrong.sets.push(set("layer=3"));
    let error = Grid::open(&root, TableKind::Lra, &wrong).unwrap_err().to_string();
    assert!(error.contains("layers"), "{error}");
    let full = Request { sets: Vec::new(), ..request(Budget::Full, &["delay"], &[]) };
    let error = Grid::open(&root, TableKind::Lra, &full).unwrap_err().to_string();
    assert!(error.contains("which task delay does not have: leave it out"), "{error}");
    assert!(!root.exists(), "nothing is written");
}

/// `full` is the paper's table: its preset, its row for S4, and the published settings of the others.
#[test]
fn full_is_the_papers_setting() {
    let temp = TempDir::new("repro-full");
    let models = ["dss-softmax", "s4", "transformer"].map(str::to_owned).to_vec();
    let request = Request { budget: Some(Budget::Full), models, ..Request::default() };
    let grid = Grid::open(&temp.join("grid"), TableKind::Lra, &request).unwrap();
    for cell in grid.cells() {
        let paper = dss_train::config::Request {
            task: cell.task.clone(),
            preset: Some("paper".into()),
            model: Some(cell.model.name.into()),
            ..Default::default()
        };
        let (paper, config) = (paper.resolve().unwrap().0, grid.config(&cell));
        assert_eq!((&config.model, &config.train), (&paper.model, &paper.train), "{}", cell.name());
        if cell.task == "path-x" {
            let batch = match cell.model.name {
                "s4" => 32,
                "transformer" => 64,
                _ => 16,
            };
            assert_eq!(config.train.batch, batch);
        }
        if (&*cell.task, cell.model.name) == ("listops", "transformer") {
            assert_eq!((config.model.layers, config.model.h, config.model.ff), (4, 512, 1024));
        }
    }
    let table = table(&grid);
    assert!(table.columns.iter().all(|column| column.changes.is_empty()), "{:?}", table.columns);
}

/// At a budget all models of a task have the same sizes, steps and data.
#[test]
fn equal_budgets_are_equal_sizes() {
    let temp = TempDir::new("repro-equal");
    let models = dss_report::repro::MODELS.iter().map(|model| model.name.to_owned()).collect();
    let request = Request { budget: Some(Budget::Steps(1000)), models, ..Request::default() };
    for kind in [TableKind::Lra, TableKind::Speech, TableKind::Ablations] {
        let grid = Grid::open(&temp.join("grid"), kind, &request).unwrap();
        for task in grid.tasks() {
            // A stack of its own has sizes of its own.
            let of_blocks = grid.models().filter(|model| model.name != "wavegan-d");
            let sizes = of_blocks.map(|model| {
                let cell = grid.seeds(task, model).remove(0);
                let c = grid.config(&cell);
                let (m, t) = (c.model, c.train);
                let size = (c.task, m.layers, m.h, t.batch, t.max_steps, t.epochs, t.eval_every);
                // Attention has a norm, a direction and a learning rate of its own, Mega few states.
                let ssm =
                    m.mixer.settings().ssm().filter(|_| model.name != "mega-ema").map(|ssm| {
                        let rate = (t.schedule, t.lr, t.warmup_steps);
                        (ssm.n, ssm.glu, m.norm, m.bidirectional, rate, t.seed)
                    });
                (size, ssm)
            });
            let (sizes, state_spaces): (Vec<_>, Vec<_>) = sizes.unzip();
            assert!(sizes.iter().all(|size| *size == sizes[0]), "{task}: {sizes:?}");
            let state_spaces: Vec<_> = state_spaces.into_iter().flatten().collect();
            assert_eq!(state_spaces.len(), 8);
            assert!(state_spaces.iter().all(|one| *one == state_spaces[0]), "{state_spaces:?}");
        }
    }
}
