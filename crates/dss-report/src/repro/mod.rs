//! The paper's tables, run again at a budget of one's choice.
//!
//! A [`Grid`] is task × model × seed, each an ordinary run directory; [`Grid::run`] works through what is not complete,
//! [`Table`] shows what is there next to the paper's numbers ([`paper`]).

mod argmax;
mod budget;
mod cell;
mod changes;
mod estimate;
mod grid;
mod kind;
mod models;
pub mod paper;
mod plan;
mod run;
mod speed;
mod table;

pub use budget::Budget;
pub use cell::{Cell, Outcome, State};
pub use grid::{Grid, Request};
pub use kind::Kind;
pub use models::{MODELS, Model};
pub use plan::Plan;
pub use run::{Ended, GridOptions, Watch};
pub use speed::Speed;
pub use table::{Column, Entry, Row, Run, Table};
