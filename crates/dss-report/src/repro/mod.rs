//! The paper's tables, run again at any budget.
//!
//! A [`Grid`] is task × model × seed, each an ordinary run directory; [`Grid::run`] works through what is not complete,
//! [`Table`] shows what is there next to the paper's numbers ([`paper`]).

mod budget;
mod changes;
mod estimate;
mod grid;
mod grid_run;
mod models;
pub mod paper;
mod plan;
mod progress;
mod run;
mod setting;
mod speed;
mod table;
mod table_kind;

pub use budget::Budget;
pub use grid::{Grid, Request};
pub use grid_run::{GridRun, RunOutcome, RunStatus};
pub use models::{GridModel, MODELS};
pub use plan::Plan;
pub use progress::Progress;
pub use run::{GridOptions, GridSummary, Watch};
pub use setting::GridSetting;
pub use speed::Speed;
pub use table::{Table, TableColumn, TableEntry, TableRow, TableRun};
pub use table_kind::TableKind;
