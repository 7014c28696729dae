//! `baseline`: its options.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::{InputArgs, LevelArgs, LookArgs};

/// Options of `baseline`.
#[derive(Args, Debug)]
pub struct BaselineArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: BaselineCommand,
}

/// What can be done with a baseline.
#[derive(Subcommand, Debug)]
pub enum BaselineCommand {
    /// Record the figures of every kernel in the input and the findings on it; what it does not have stays
    Write(Box<AcceptArgs>),
    /// Drop the kernels and findings that the input, a full build, no longer has; nothing new is accepted
    Prune(Box<AcceptArgs>),
}

/// Options of `baseline write` and `baseline prune`: the same input and levels as those of the lint that it is for.
#[derive(Args, Debug)]
pub struct AcceptArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Levels of rules.
    #[command(flatten)]
    pub levels: LevelArgs,
    /// The baseline [default: the configuration's, else warplint-baseline.json]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub baseline: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

impl BaselineArgs {
    /// The options, whatever is to be done.
    #[must_use]
    pub fn accept(&self) -> &AcceptArgs {
        match &self.command {
            BaselineCommand::Write(args) | BaselineCommand::Prune(args) => args,
        }
    }
}
