//! The command line as typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Args, Parser, Subcommand, ValueEnum};

use crate::command::baseline::BaselineArgs;
use crate::command::diff::DiffArgs;
use crate::command::gpus::GpusArgs;
use crate::command::init::InitArgs;
use crate::command::launch::LaunchArgs;
use crate::command::occupancy::OccupancyArgs;
use crate::model::{BlockSize, Bytes, parse_size};
use crate::report::{DataFormat, Format, Sort};
use crate::settle::FailOn;

/// Lint CUDA kernels and what the compiler makes of them: spills, occupancy, launch sizes, advisories, divergent branches.
///
/// Reads CUDA sources without a compiler; the output of `nvcc -Xptxas -v` (and of nvlink -v, cuobjdump -res-usage, NVRTC,
/// clang); and PTX, best of `nvcc -ptx -lineinfo`. Name sources, logs, PTX and folders, together where they belong together,
/// or pipe the build into warplint.
#[derive(Parser, Debug)]
#[command(name = "warplint", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  nvcc -Xptxas -v -c k.cu 2>&1 | warplint          what the compiler says of one file; make works too
  warplint run -- make -j8                         a build, run here; its status is kept
  warplint src/ build.log                          sources, which need no compiler, and a saved log
  warplint src/ build.log -f html -o report.html   a page to look at

Exit status: 0 nothing at or over --fail-on; 1 findings; 2 warplint could not do its job.")]
pub struct Cli {
    /// What to do; without a command, lint.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the lint.
    #[command(flatten)]
    pub lint: LintArgs,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a build, pass its output on as it comes, and lint it
    Run(Box<RunArgs>),
    /// Record what is accepted today; drop what a full build no longer has
    Baseline(BaselineArgs),
    /// What changed per kernel between two builds: logs, JSON reports, baselines
    Diff(Box<DiffArgs>),
    /// One row per kernel and architecture: registers, spills, stack, shared memory, occupancy
    Kernels(Box<KernelsArgs>),
    /// Every branch of PTX or a source with its verdict: why it is reported, or why it is not
    Branches(Box<BranchesArgs>),
    /// The occupancy calculator: every limit, the next steps, sweeps over block sizes and registers
    Occupancy(OccupancyArgs),
    /// How a launch is cut into warps: idle lanes, the edge of the problem, fills of the GPU, what hides a load
    Launch(LaunchArgs),
    /// Products and compute capabilities; one in full, with the source of each figure, when named
    Gpus(GpusArgs),
    /// Every rule with the level in force
    Rules(RulesArgs),
    /// A rule's page: what it says, why it matters, how to fix it, when to allow it
    Explain(ExplainArgs),
    /// Write a commented warplint.toml, or print its JSON Schema
    Init(InitArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the man page
    Man,
}

/// What to read, and what for.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Sources, build logs, PTX, folders with sources and PTX; `-` is standard input, and the default in a pipe
    #[arg(value_name = "PATH", display_order = 0)]
    pub paths: Vec<PathBuf>,
    /// Target: a product (a100, rtx4090), sm_90, 9.0, or a file of device figures; repeatable [default: each kernel's own]
    #[arg(long, value_name = "NAME")]
    pub gpu: Vec<String>,
    /// Block size of kernels for which nothing better tells it: 256, or 16,16
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub block: Option<BlockSize>,
    /// Dynamic shared memory of the same kernels; K, KB and KiB are 1024 bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub dynamic_shared: Option<Bytes>,
    /// Only kernels whose mangled, demangled or short name matches
    #[arg(long, value_name = "GLOB")]
    pub kernel: Option<String>,
    /// Only kernels of this architecture
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// Where the kernels of logs and PTX are declared and launched; repeatable [default: the folders given; in this one declarations are looked for]
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    /// Leave out what the configuration's `exclude` names, even files that are named here, as by pre-commit
    #[arg(long, help_heading = "Configuration", display_order = 100)]
    pub force_exclude: bool,
    /// Run the ptxas on PATH on PTX inputs, for their registers and spills; without it, nothing is run
    #[arg(long)]
    pub assemble: bool,
    /// Piped lines that go on to stderr: those that are no resource report (auto), all, none
    #[arg(long, value_enum, default_value_t, value_name = "WHICH", hide_possible_values = true)]
    pub passthrough: Passthrough,
    /// Which configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Which configuration.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// Configuration [default: the warplint.toml of this folder, or of the nearest one above in the repository]
    #[arg(long, value_name = "FILE", conflicts_with = "isolated")]
    pub config: Option<PathBuf>,
    /// Read no configuration
    #[arg(long)]
    pub isolated: bool,
}

/// How to print.
#[derive(Args, Debug, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub struct LookArgs {
    /// Colours: auto (on a terminal), always, never; NO_COLOR and CLICOLOR_FORCE are obeyed
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", hide_possible_values = true)]
    pub color: ColorChoice,
    /// Say nothing when there is nothing to report
    #[arg(short, long)]
    pub quiet: bool,
    /// Notes in full, and full kernel signatures
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// Levels of rules.
#[derive(Args, Debug)]
#[command(next_help_heading = "Rules")]
pub struct LevelArgs {
    /// Do not report a rule or group; of these four the last one wins
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Report a rule or group as a note
    #[arg(long, value_name = "RULE")]
    pub note: Vec<String>,
    /// Report a rule or group as a warning
    #[arg(long, value_name = "RULE")]
    pub warn: Vec<String>,
    /// Report a rule or group as an error
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
}

/// Options of the lint.
#[derive(Args, Debug)]
pub struct LintArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Levels of rules.
    #[command(flatten)]
    pub levels: LevelArgs,
    /// Lowest level that makes the exit status 1: deny, warn, note, never [default: warn]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Rules", hide_possible_values = true)]
    pub fail_on: Option<FailOn>,
    /// Report only what is new or worse than in this baseline [default: the configuration's, where it exists]
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub baseline: Option<PathBuf>,
    /// Report format: human, short, json, sarif, github, gitlab, junit, markdown, csv, html
    #[arg(
        short,
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Output",
        hide_possible_values = true
    )]
    pub format: Format,
    /// Write the report there, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// A further report of the same run; repeatable
    #[arg(long, value_name = "FORMAT=FILE", value_parser = further_report, help_heading = "Output")]
    pub report: Vec<FurtherReport>,
    /// Findings shown in full, worst first, those of one cause as one; the others are counted
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Output")]
    pub limit: usize,
    /// Print the configuration in force, defaults and options included, and lint nothing
    #[arg(long, help_heading = "Configuration", display_order = 101)]
    pub show_config: bool,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

/// Options of `kernels`.
#[derive(Args, Debug)]
pub struct KernelsArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Column to sort by
    #[arg(long, value_enum, default_value_t, value_name = "COLUMN", help_heading = "Output")]
    pub sort: Sort,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub format: TableFormat,
    /// Write the table there, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

/// Options of `branches`.
#[derive(Args, Debug)]
#[command(mut_arg("paths", |arg| arg.help("PTX, sources, folders with both; `-` is standard input, and the default in a pipe")))]
#[command(mut_arg("assemble", |arg| arg.hide(true)))]
pub struct BranchesArgs {
    /// What to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub format: DataFormat,
    /// Write the list there, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

/// Options of `run`.
#[derive(Args, Debug)]
#[command(mut_args(in_run), override_usage = "warplint run [OPTIONS] -- <CMD>...")]
#[command(after_help = "\
The output of the build goes to where it would go without warplint, unchanged and at once; the report follows on stdout when
the build has ended. A report that is one document (json, sarif, gitlab, junit, markdown, csv, html) has stdout to itself:
unless --output names a file for it, all that the build prints then goes to stderr.

Exit status: that of the build when it is not 0, and 128 + N when signal N ended it; 127 when there is no such command, 126
when it cannot be run; else as without `run`.")]
pub struct RunArgs {
    /// Options of the lint.
    #[command(flatten)]
    pub lint: LintArgs,
    /// The build: a command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD", help_heading = "Input", display_order = 0)]
    pub command: Vec<OsString>,
}

/// What the options of a lint are where its input is a build.
fn in_run(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "paths" => arg.hide(true).value_parser(no_path),
        "passthrough" | "show_config" => arg.hide(true).conflicts_with("command"),
        "assemble" => arg.hide(true),
        _ => arg,
    }
}

/// What stands where a lint has its inputs.
fn no_path(_: &str) -> Result<PathBuf, String> {
    Err("the command stands after `--`, as in `warplint run -- make -j8`".to_owned())
}

/// Options of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Options of `rules`.
#[derive(Args, Debug)]
pub struct RulesArgs {
    /// Levels of rules.
    #[command(flatten)]
    pub levels: LevelArgs,
    /// Which configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t, help_heading = "Output")]
    pub format: DataFormat,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The rule
    pub rule: String,
    /// Which configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// How to print.
    #[command(flatten)]
    pub look: LookArgs,
}

/// `--passthrough`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Passthrough {
    /// Lines that are no resource report.
    #[default]
    Auto,
    /// Every line.
    All,
    /// None.
    None,
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// `--report`
#[derive(Debug, Clone)]
pub struct FurtherReport {
    /// Its form.
    pub format: Format,
    /// Where it is written, whole or not at all.
    pub file: PathBuf,
}

fn further_report(text: &str) -> Result<FurtherReport, String> {
    let (format, file) = text.split_once('=').ok_or("write it as FORMAT=FILE, for example sarif=warplint.sarif")?;
    if file.is_empty() {
        return Err("the file's name is missing after `=`".to_owned());
    }
    if file == "-" {
        return Err(format!("a further report needs a file: `--format {format}` writes to standard output"));
    }
    let format = Format::from_str(format, false)
        .map_err(|_| format!("no format is called `{format}`; `warplint --help` lists them at --format"))?;
    Ok(FurtherReport { format, file: PathBuf::from(file) })
}

/// `--format` of `kernels`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TableFormat {
    /// Aligned columns.
    #[default]
    Human,
    /// Raw numbers.
    Csv,
    /// As GitHub draws it.
    Markdown,
    /// As in the JSON report.
    Json,
}
