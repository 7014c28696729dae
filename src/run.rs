//! The straight line from a command line to an outcome.

mod around;
mod assemble;
mod baseline;
mod broken_file;
mod broken_ptx;
mod build;
mod diff;
mod examine;
mod failures;
mod inputs;
mod sources;
mod stale;
mod terminal;
mod text;
mod units;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use miette::Report as Failure;

use crate::analyse::Depth;
use crate::cli::{
    BranchesArgs, Cli, ColorChoice, Command, ConfigArgs, ExplainArgs, InputArgs, KernelsArgs, LintArgs, LookArgs,
    RulesArgs, RunArgs, TableFormat,
};
use crate::command::{gpus, init, launch, occupancy, packaging};
use crate::config::{self, Choice, Config, ConfigError};
use crate::discover::SourceFile;
use crate::finding::Level;
use crate::gpu::Gpu;
use crate::lanes::task::Which;
use crate::model::Place;
use crate::outcome::Outcome;
use crate::output::{self, After, OutputError};
use crate::report::{self, DataFormat, Format, Layout, Style};
use crate::rules::{Context, RULES, Rule};
use crate::settle::{Active, Target, UnknownRule, Verdict, activate, settle};

use build::Build;
use examine::{Examined, examine, places_around};
use failures::{GroupPage, LateCommand, NoKernels, NoPtx};

/// The streams of a process.
pub struct Streams<'s> {
    /// What is piped in.
    pub stdin: &'s mut dyn Read,
    /// Whether it is a terminal.
    pub stdin_is_terminal: bool,
    /// Reports.
    pub stdout: &'s mut dyn Write,
    /// Everything else.
    pub stderr: &'s mut dyn Write,
    /// Whether it is a terminal, which may be told how far a long reading is.
    pub stderr_is_terminal: bool,
    /// What standard output can show when nothing else decides.
    pub terminal: Option<Terminal>,
}

/// A terminal at standard output.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Columns.
    pub width: usize,
    /// Whether it shows characters beyond ASCII.
    pub unicode: bool,
}

/// Runs warplint with the arguments `args`, the program's name first.
pub fn run(args: Vec<OsString>, streams: &mut Streams<'_>) -> Outcome {
    let matches = match Cli::command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, streams),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, streams),
    };
    let look = look_of(&cli);
    let style = match output_of(&cli) {
        Some(file) if !output::is_stdout(Some(file)) => style_of_file(look, streams.terminal),
        _ => style(look, streams.terminal),
    };
    let done = dispatch(&cli, &matches, style, streams).and_then(|outcome| written_out(outcome, streams));
    match done {
        Ok(outcome) => outcome,
        Err(failure) if is_closed_pipe(&failure) => Outcome::Clean,
        Err(failure) => {
            show(&failure, look, streams);
            Outcome::Unable
        }
    }
}

/// The outcome, when all that was printed went out: a reader that went away has read enough.
fn written_out(outcome: Outcome, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    match streams.stdout.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !matches!(outcome, Outcome::Build(_)) => {
            Err(OutputError::Stdout(error).into())
        }
        _ => Ok(outcome),
    }
}

/// Help and version are answers; anything else that clap says is a wrong command line.
fn usage(error: &clap::Error, streams: &mut Streams<'_>) -> Outcome {
    let text = error.render();
    let colored = streams.terminal.is_some() && std::env::var_os("NO_COLOR").is_none();
    let text = if colored { text.ansi().to_string() } else { text.to_string() };
    let text = if error.use_stderr() { report::harmless_lines(&text) } else { text };
    let to_stdout = !error.use_stderr();
    let out: &mut dyn Write = if to_stdout { streams.stdout } else { streams.stderr };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if to_stdout && error.kind() != io::ErrorKind::BrokenPipe => {
            show(&OutputError::Stdout(error).into(), PLAIN, streams);
            Outcome::Unable
        }
        _ if to_stdout => Outcome::Clean,
        _ => Outcome::Unable,
    }
}

/// How is printed what has no options for it.
const PLAIN: LookArgs = LookArgs { color: ColorChoice::Auto, quiet: false, verbose: false };

fn look_of(cli: &Cli) -> LookArgs {
    match &cli.command {
        None => cli.lint.look,
        Some(Command::Kernels(args)) => args.look,
        Some(Command::Branches(args)) => args.look,
        Some(Command::Rules(args)) => args.look,
        Some(Command::Explain(args)) => args.look,
        Some(Command::Occupancy(args)) => LookArgs { color: args.out.color, quiet: false, verbose: false },
        Some(Command::Launch(args)) => LookArgs { color: args.out.color, quiet: false, verbose: false },
        Some(Command::Run(args)) => args.lint.look,
        Some(Command::Diff(args)) => args.look,
        Some(Command::Baseline(args)) => args.accept().look,
        Some(_) => PLAIN,
    }
}

/// Where a report goes instead of standard output.
fn output_of(cli: &Cli) -> Option<&Path> {
    match &cli.command {
        None => cli.lint.output.as_deref(),
        Some(Command::Kernels(args)) => args.output.as_deref(),
        Some(Command::Branches(args)) => args.output.as_deref(),
        Some(Command::Run(args)) => args.lint.output.as_deref(),
        Some(Command::Diff(args)) => args.output.as_deref(),
        Some(_) => None,
    }
}

/// What goes into a file has neither the width of this terminal nor, unless they are asked for, colours.
fn style_of_file(look: LookArgs, terminal: Option<Terminal>) -> Style {
    let Style { unicode, .. } = style(look, terminal);
    Style { unicode, color: look.color == ColorChoice::Always, width: WIDTH }
}

/// Without a terminal: ASCII, no colour, a fixed width; so that a log looks the same everywhere.
fn style(look: LookArgs, terminal: Option<Terminal>) -> Style {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let color = match look.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto
            if std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0") =>
        {
            true
        }
        ColorChoice::Auto => terminal.is_some() && understands_escapes(),
    };
    let unicode = terminal.map_or(look.color == ColorChoice::Always, |terminal| terminal.unicode);
    Style { unicode, color, width: terminal.map_or(WIDTH, |terminal| terminal.width.clamp(60, 120)) }
}

/// Columns of a report that goes to no terminal.
const WIDTH: usize = 100;

fn show(failure: &Failure, look: LookArgs, streams: &mut Streams<'_>) {
    let style = style(look, streams.terminal);
    // A configuration is told all that is wrong with it, one after the other.
    let parts = match failure.downcast_ref::<ConfigError>() {
        Some(error) => error.parts(),
        None => vec![failure.as_ref()],
    };
    for (at, part) in parts.into_iter().enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        let text = report::failure(part, style);
        let _ = streams.stderr.write_all(format!("{gap}{text}").as_bytes());
    }
}

fn is_closed_pipe(failure: &Failure) -> bool {
    failure.downcast_ref::<OutputError>().is_some_and(OutputError::is_closed_pipe)
        || failure.chain().any(|cause| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        })
}

/// A command behind an option of the lint is read as a path: a file of that name is meant, where there is one.
fn late_command(paths: &[PathBuf]) -> Result<(), LateCommand> {
    let Some(first) = paths.first().filter(|path| !path.exists()) else { return Ok(()) };
    match first.to_str().filter(|word| Cli::command().find_subcommand(word).is_some()) {
        Some(word) => Err(LateCommand { command: word.to_owned() }),
        None => Ok(()),
    }
}

fn dispatch(cli: &Cli, matches: &ArgMatches, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    match &cli.command {
        None => {
            late_command(&cli.lint.input.paths)?;
            lint(&cli.lint, matches, style, None, streams)
        }
        Some(Command::Kernels(args)) => kernels(args, style, streams),
        Some(Command::Branches(args)) => branches(args, style, streams),
        Some(Command::Occupancy(args)) => occupancy::run(args, &style, streams.stdout).map(|()| Outcome::Clean),
        Some(Command::Launch(args)) => launch::run(args, &style, streams.stdout).map(|()| Outcome::Clean),
        Some(Command::Gpus(args)) => gpus::run(args, &style, streams.stdout).map(|()| Outcome::Clean),
        Some(Command::Rules(args)) => {
            let (_, matches) = matches.subcommand().unwrap_or(("", matches));
            rules(args, matches, style, streams)
        }
        Some(Command::Explain(args)) => explain(args, style, streams),
        Some(Command::Init(args)) => init::run(args, streams.stdout, streams.stderr).map(|()| Outcome::Clean),
        Some(Command::Run(args)) => {
            let (_, matches) = matches.subcommand().unwrap_or(("", matches));
            run_build(args, matches, style, streams)
        }
        Some(Command::Completions(args)) => packaging::completions(args.shell, streams.stdout).map(|()| Outcome::Clean),
        Some(Command::Man) => packaging::man(streams.stdout).map(|()| Outcome::Clean),
        Some(Command::Diff(args)) => diff::run(args, style, streams),
        Some(Command::Baseline(args)) => {
            let of = |matches: &ArgMatches| matches.subcommand().map(|(_, matches)| matches.clone());
            let matches = of(matches).as_ref().and_then(of).unwrap_or_default();
            baseline::run(args, &matches, streams)
        }
    }
}

/// Runs a build and lints what it prints. Its status counts, whatever becomes of the lint.
fn run_build(args: &RunArgs, matches: &ArgMatches, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let is_document = !matches!(args.lint.format, Format::Human | Format::Short | Format::Github);
    let mut build = Build::new(&args.command, is_document && output::is_stdout(args.lint.output.as_deref()));
    let result = lint(&args.lint, matches, style, Some(&mut build), streams);
    let Some(status) = build.failure() else { return result };
    if let Err(failure) = result
        && !is_closed_pipe(&failure)
    {
        show(&failure, args.lint.look, streams);
    }
    Ok(Outcome::Build(status))
}

/// Lints what is named or piped in, or what `build` prints.
fn lint(
    args: &LintArgs,
    matches: &ArgMatches,
    style: Style,
    mut build: Option<&mut Build<'_>>,
    streams: &mut Streams<'_>,
) -> miette::Result<Outcome> {
    let format = args.format;
    let further: Vec<(Format, &Path)> =
        args.report.iter().map(|report| (report.format, report.file.as_path())).collect();
    let mut config = config_of(&args.input)?;
    set_levels(&mut config, matches)?;
    config.fail_on = args.fail_on.unwrap_or(config.fail_on);
    if args.show_config {
        let text = config::show(&config);
        output::write(args.output.as_deref(), streams.stdout, |out| out.write_all(text.as_bytes()))?;
        return Ok(Outcome::Clean);
    }
    let rules = activate(&config.settings);
    let written: Vec<&Path> = args.output.as_deref().into_iter().chain(further.iter().map(|(_, file)| *file)).collect();
    examine::each_its_own(&written)?;
    let against = baseline::against(args.baseline.as_deref(), &config, &written)?;
    let lists_branches = format == Format::Html || further.iter().any(|(format, _)| *format == Format::Html);
    let depth = if lists_branches { Depth::Branches(Which::All) } else { depth(&rules) };
    let read = examine(&args.input, &config, args.look, depth, &written, build.as_deref_mut(), streams)?;
    let Some(read) = read else {
        return short_help(streams);
    };
    let allows = config.allows();
    let mut read = read;
    read.report.folder = folder_in_project();
    let mut verdict = settle(read.context(against.as_ref()), &rules, &allows);
    let files = files_around(&verdict, &read, &args.input);
    if let Some(found) = around::search(&verdict, &files) {
        drop(verdict);
        around::add(found, &mut read);
        verdict = settle(read.context(against.as_ref()), &rules, &allows);
    }
    let (limit, LookArgs { verbose, quiet, .. }, fail_on) = (args.limit, args.look, config.fail_on);
    let layout = Layout { style, limit, verbose, quiet, fail_on };
    let mut stdout = After { gap: build.map_or("", |build| build.gap()), out: streams.stdout };
    output::write(args.output.as_deref(), &mut stdout, |out| report::render(format, &verdict, &layout, out))?;
    let plain = Layout { style: Style { color: false, width: WIDTH, ..style }, ..layout };
    for (format, file) in further {
        output::write(Some(file), streams.stdout, |out| report::render(format, &verdict, &plain, out))?;
    }
    if read.unreadable {
        return Ok(Outcome::Unable);
    }
    baseline::measured(&verdict, args.baseline.is_some())?;
    Ok(if config.fail_on.fails(verdict.loudest()) { Outcome::Findings } else { Outcome::Clean })
}

/// The way from the folder that a CI service names files from to this one.
fn folder_in_project() -> String {
    let Ok(here) = std::env::current_dir().and_then(|here| here.canonicalize()) else { return String::new() };
    let roots = ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"].into_iter().filter_map(std::env::var_os);
    let way =
        roots.map(PathBuf::from).find_map(|root| Some(here.strip_prefix(root.canonicalize().ok()?).ok()?.to_owned()));
    let parts = way.unwrap_or_default();
    parts.iter().map(|part| format!("{}/", part.to_string_lossy())).collect()
}

/// Branches that only data part are looked at where someone asks for them.
fn depth(rules: &[Active]) -> Depth {
    let by_data =
        rules.iter().any(|active| active.rule.id == BY_DATA && (active.level > Level::Allow || active.allowed));
    Depth::Branches(if by_data { Which::ByData } else { Which::ByIndex })
}

/// The sources that may declare the kernels of findings, where none was given.
fn files_around(verdict: &Verdict<'_>, read: &Examined, args: &InputArgs) -> Vec<SourceFile> {
    let units = &verdict.context.report.units;
    let is_searched = read.sources.is_empty() && units.iter().all(|unit| unit.input >= Place::SOURCE);
    if is_searched && around::is_wanted(verdict) { around::files(&places_around(args), read) } else { Vec::new() }
}

/// The rule on branches that data part.
const BY_DATA: &str = "data-divergent-branch";

/// The configuration that is asked for.
fn load(args: &ConfigArgs) -> Result<Config, ConfigError> {
    config::load(match &args.config {
        _ if args.isolated => Choice::Isolated,
        Some(path) => Choice::File(path),
        None => Choice::Nearest,
    })
}

/// The same with the GPUs of the command line.
fn config_of(args: &InputArgs) -> miette::Result<Config> {
    let gpu = |name: &String| Gpu::resolve(name).map(|gpu| (name.clone(), gpu));
    let gpus = args.gpu.iter().map(gpu).collect::<Result<Vec<_>, _>>()?;
    let mut config = load(&args.config)?;
    config.set_gpus(gpus);
    Ok(config)
}

fn kernels(args: &KernelsArgs, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let config = config_of(&args.input)?;
    let written = Vec::from_iter(args.output.as_deref());
    let Some(read) = examine(&args.input, &config, args.look, Depth::None, &written, None, streams)? else {
        return short_help(streams);
    };
    if read.report.kernels.is_empty() && args.output.is_some() {
        // A table of nothing does not replace one of something.
        return Err(NoKernels::of(&read.report).into());
    }
    let context = Context::new(&read.report, &read.numbers);
    output::write(args.output.as_deref(), streams.stdout, |out| match args.format {
        TableFormat::Human => report::kernels_human(&context, args.sort, style, out),
        TableFormat::Csv => report::kernels_csv(&context, args.sort, out),
        TableFormat::Markdown => report::kernels_markdown(&context, args.sort, out),
        TableFormat::Json => report::kernels_json(&context, out),
    })?;
    if read.report.kernels.is_empty() {
        return Err(NoKernels::of(&read.report).into());
    }
    Ok(if read.unreadable { Outcome::Unable } else { Outcome::Clean })
}

fn branches(args: &BranchesArgs, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let config = config_of(&args.input)?;
    let written = Vec::from_iter(args.output.as_deref());
    let depth = Depth::Branches(Which::All);
    let Some(read) = examine(&args.input, &config, args.look, depth, &written, None, streams)? else {
        return short_help(streams);
    };
    if read.report.modules.is_empty() && read.report.units.is_empty() {
        return Err(NoPtx.into());
    }
    let context = Context::new(&read.report, &read.numbers);
    output::write(args.output.as_deref(), streams.stdout, |out| match args.format {
        DataFormat::Human => report::branches_human(&context, style, out),
        DataFormat::Json => report::branches_json(&context, out),
    })?;
    Ok(if read.unreadable { Outcome::Unable } else { Outcome::Clean })
}

fn rules(args: &RulesArgs, matches: &ArgMatches, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let mut config = load(&args.config)?;
    set_levels(&mut config, matches)?;
    output::write(None, streams.stdout, |out| match args.format {
        DataFormat::Human => report::rules_human(&config.settings, style, out),
        DataFormat::Json => report::rules_json(&config.settings, out),
    })?;
    Ok(Outcome::Clean)
}

fn explain(args: &ExplainArgs, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let rule = Rule::named(&args.rule).ok_or_else(|| no_page(&args.rule))?;
    let config = load(&args.config)?;
    output::write(None, streams.stdout, |out| report::explain(rule, &config.settings, style, out))?;
    Ok(Outcome::Clean)
}

fn no_page(name: &str) -> Failure {
    match Target::named(name) {
        Ok(Target::Group(group)) => {
            let members = RULES.iter().filter(|rule| rule.page().group == group);
            let rules: Vec<&str> = members.map(|rule| rule.id).collect();
            GroupPage { name: name.to_owned(), help: format!("name one of {}", rules.join(", ")) }.into()
        }
        _ => UnknownRule::new(name).into(),
    }
}

/// Sets the levels of the options, in the order in which they stand on the command line: the last one wins.
fn set_levels(config: &mut Config, matches: &ArgMatches) -> Result<(), UnknownRule> {
    let mut set: Vec<(usize, &String, Level)> = Vec::new();
    for level in [Level::Allow, Level::Note, Level::Warn, Level::Deny] {
        let values = matches.get_many::<String>(level.name()).into_iter().flatten();
        let indices = matches.indices_of(level.name()).into_iter().flatten();
        set.extend(indices.zip(values).map(|(at, name)| (at, name, level)));
    }
    set.sort_by_key(|(at, ..)| *at);
    for (_, name, level) in set {
        config.set_level(Target::named(name)?, level);
    }
    Ok(())
}

/// Whether a terminal understands what moves its cursor.
fn understands_escapes() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn short_help(streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let text = "\
warplint lints what the CUDA compiler says about your kernels.

  nvcc -Xptxas -v … 2>&1 | warplint      lint a build
  warplint run -- make -j8               run a build, and lint it
  warplint build.log                     lint a saved log
  warplint src/                          lint sources, without a compiler
  warplint kernel.ptx                    lint the code: how warps split at branches
  warplint kernels build.log             the table of kernels
  warplint occupancy --gpu a100 --block 256 --registers 64
  warplint launch --gpu a100 --grid 512 --block 256
  warplint --help                        everything
";
    let _ = streams.stderr.write_all(text.as_bytes());
    Ok(Outcome::Unable)
}

/// The streams of this process, for `main`.
pub fn with_process_streams(run: impl FnOnce(&mut Streams<'_>) -> Outcome) -> Outcome {
    let stdout = io::stdout();
    let terminal = stdout
        .is_terminal()
        .then(|| Terminal { width: output::terminal_width().unwrap_or(WIDTH), unicode: terminal::draws_unicode() });
    let mut stdin = io::stdin().lock();
    let mut stdout = BufWriter::with_capacity(64 * 1024, stdout.lock());
    let stdin_is_terminal = io::stdin().is_terminal();
    let outcome = run(&mut Streams {
        stdin: &mut stdin,
        stdin_is_terminal,
        stdout: &mut stdout,
        stderr: &mut io::stderr().lock(),
        stderr_is_terminal: io::stderr().is_terminal(),
        terminal,
    });
    match stdout.flush() {
        // The status of a build counts, whatever becomes of the report.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !matches!(outcome, Outcome::Build(_)) => {
            Outcome::Unable
        }
        _ => outcome,
    }
}
