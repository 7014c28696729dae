//! `diff`: its options.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::{InputArgs, LookArgs};

/// Options of `diff`.
#[derive(Args, Debug)]
#[command(mut_arg("paths", |arg| {
    arg.num_args(2)
        .action(clap::ArgAction::Set)
        .required(true)
        .value_names(["OLD", "NEW"])
        .help("Two builds: a log, PTX, a folder, a JSON report of warplint or a baseline each; `-` is standard input")
}))]
pub struct DiffArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Output format: human, markdown (for a comment on a pull request), json
    #[arg(
        short,
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Output",
        hide_possible_values = true
    )]
    pub format: DiffFormat,
    /// Write the table there, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

/// `--format` of `diff`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DiffFormat {
    /// Aligned columns.
    #[default]
    Human,
    /// As GitHub draws it.
    Markdown,
    /// For programs.
    Json,
}
