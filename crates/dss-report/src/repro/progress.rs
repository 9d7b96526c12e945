//! How far the runs of a grid are.

use super::budget::Budget;
use super::grid::Grid;
use super::grid_run::{self, GridRun, RunStatus};

/// The status of every run that was ever asked for: reading one takes several files, so that it is done once.
#[derive(Debug)]
pub struct Progress(Vec<(GridRun, RunStatus)>);

impl Progress {
    /// Reads all run directories of a grid.
    pub fn read(grid: &Grid) -> Self {
        let cells = grid
            .tasks()
            .iter()
            .flat_map(|task| grid.models().flat_map(move |model| grid.seeds(task, model)));
        Self(cells.map(|cell| (cell.clone(), status(grid, &cell))).collect())
    }

    /// Reads one run directory again.
    pub(super) fn update(&mut self, grid: &Grid, cell: &GridRun) {
        if let Some((_, known)) = self.0.iter_mut().find(|(one, _)| one == cell) {
            *known = status(grid, cell);
        }
    }

    /// How far a run is.
    pub fn status(&self, cell: &GridRun) -> &RunStatus {
        let known = self.0.iter().find(|(one, _)| one == cell);
        known.map_or(&RunStatus::Waiting, |(_, status)| status)
    }

    /// Whether a run is complete.
    pub fn is_done(&self, cell: &GridRun) -> bool {
        matches!(self.status(cell), RunStatus::Done(_))
    }

    /// Those of the runs that have their data and are not complete.
    pub fn open<'a>(
        &'a self,
        grid: &'a Grid,
        cells: &'a [GridRun],
    ) -> impl Iterator<Item = &'a GridRun> {
        let possible = cells.iter().filter(move |cell| grid.skipped(&cell.task).is_none());
        possible.filter(move |cell| !self.is_done(cell))
    }

    /// About how many seconds these runs will take; `None` if nothing is known of one of them.
    pub fn seconds_left(&self, grid: &Grid, cells: &[GridRun]) -> Option<f64> {
        self.open(grid, cells).map(|cell| self.seconds_per_run(grid, &cell.task)).sum()
    }

    /// The mean time of the task's runs that are done, or the budget.
    fn seconds_per_run(&self, grid: &Grid, task: &str) -> Option<f64> {
        let (mut sum, mut done) = (0.0, 0);
        for (cell, status) in &self.0 {
            if let (true, RunStatus::Done(outcome)) = (cell.task == task, status) {
                sum += outcome.seconds;
                done += 1;
            }
        }
        match (done, grid.budget()) {
            (0, Budget::Seconds(seconds)) => Some(seconds as f64),
            (0, Budget::Full | Budget::Steps(_)) => None,
            (done, _) => Some(sum / f64::from(done)),
        }
    }
}

/// What the directory of a run and the grid say.
fn status(grid: &Grid, cell: &GridRun) -> RunStatus {
    let config = grid.plan(&cell.task).map(|_| grid.config(cell));
    match grid_run::read_status(&grid.dir(cell), config.as_ref()) {
        Ok(done @ RunStatus::Done(_)) => done,
        Ok(other) => match grid.failure(cell) {
            Some(error) => RunStatus::Failed { error: error.clone() },
            None => other,
        },
        Err(error) => RunStatus::Failed { error: error.to_string() },
    }
}
