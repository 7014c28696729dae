//! warplint reads what the CUDA compiler says about kernels and reports what an engineer would act on.
//!
//! Data flows one way, and every arrow is a call in [`run`]:
//!
//! ```text
//! discover ─► parse ─► join ─► analyse ─► rules ─► settle ─► report
//! paths,      facts    one     numbers    hits     levels,   text
//! stdin                kernel  (gpu/)              groups
//! ```
//!
//! The library has no stability promise of its own: the command line, the JSON report and the exit status are the
//! interface.

pub mod analyse;
pub mod baseline;
pub mod cli;
pub mod command;
pub mod config;
pub mod discover;
pub mod filter;
pub mod finding;
pub mod gpu;
pub mod join;
pub mod lanes;
pub mod model;
pub mod outcome;
pub mod output;
pub mod parse;
pub mod pattern;
pub mod progress;
pub mod report;
pub mod rules;
pub mod run;
pub mod settle;
pub mod suppress;
