//! `diff`: two builds, each from whatever tells of it, kernel by kernel.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use miette::Diagnostic;

use super::broken_file::{BrokenFile, REPORT, Unreadable, all_of, shown};
use super::failures::NoKernels;
use super::{Streams, config_of, examine};
use crate::analyse::Depth;
use crate::baseline::{self, Baseline, Figures, Key, Occupancies, Told};
use crate::cli::{InputArgs, LookArgs};
use crate::command::diff::{DiffArgs, DiffFormat};
use crate::config::Config;
use crate::filter::Filter;
use crate::gpu::Gpu;
use crate::model::Arch;
use crate::outcome::Outcome;
use crate::output;
use crate::report::{self, Style};
use crate::rules::Context;

/// A side without a kernel.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`{name}` has nothing to compare: {why}")]
struct Nothing {
    name: String,
    why: String,
    #[help]
    help: Option<String>,
}

/// Both sides are one stream.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("`-` is standard input, which cannot be both builds")]
#[diagnostic(help("save one of them: `… 2>&1 | tee build.log`"))]
struct Twice;

/// One build.
struct Side {
    kernels: Baseline,
    /// Kernels whose figures may be another's.
    ambiguous: usize,
    unreadable: bool,
}

pub(super) fn run(args: &DiffArgs, style: Style, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let config = config_of(&args.input)?;
    let filter = Filter::new(args.input.kernel.as_deref(), args.input.arch.as_deref())?;
    // Clap asks for two.
    let [old, new] = args.input.paths.as_slice() else { return Ok(Outcome::Unable) };
    let is_stdin = |path: &Path| path == Path::new("-");
    if is_stdin(old) && is_stdin(new) {
        return Err(Twice.into());
    }
    super::examine::spare_inputs(&args.input.paths, &Vec::from_iter(args.output.as_deref()))?;
    let mut sides = Vec::new();
    for path in [old, new] {
        let mut side = side(path, &args.input, &config, args.look, streams)?;
        if side.kernels.kernels.is_empty() {
            let why = "no kernel was found in it".to_owned();
            let ambiguous = format!("the figures of all its {} kernels may be another's", side.ambiguous);
            let why = if side.ambiguous > 0 { ambiguous } else { why };
            return Err(Nothing { name: shown(path), why, help: None }.into());
        }
        if side.kernels.kernels.values().flatten().all(Figures::is_unknown) {
            let why = "its kernels have no figures".to_owned();
            let help =
                "sources tell none: compare what two builds print (`nvcc -Xptxas -v`), PTX, reports or baselines";
            return Err(Nothing { name: shown(path), why, help: Some(help.to_owned()) }.into());
        }
        side.kernels.kernels.retain(|key, figures| {
            let named = figures.iter().filter_map(|one| one.name.as_deref());
            let names: Vec<&[u8]> = named.chain([&*key.kernel]).map(str::as_bytes).collect();
            filter.keeps(&names, key.arch)
        });
        sides.push(side);
    }
    if sides.iter().all(|side| side.kernels.kernels.is_empty())
        && let Some(error) = filter.nothing("neither build has one")
    {
        return Err(error.into());
    }
    let gpus: Vec<Gpu> = config.gpus.iter().map(|(_, gpu)| gpu.clone()).collect();
    let changes = baseline::compare(&sides[0].kernels, &sides[1].kernels, &gpus);
    let ambiguous = sides.iter().map(|side| side.ambiguous).max().unwrap_or_default();
    let is_silent = args.look.quiet && changes.all.is_empty();
    output::write(args.output.as_deref(), streams.stdout, |out| match args.format {
        DiffFormat::Human if is_silent => Ok(()),
        DiffFormat::Human => report::diff_human(&changes, ambiguous, style, out),
        DiffFormat::Markdown => report::diff_markdown(&changes, ambiguous, out),
        DiffFormat::Json => report::diff_json(&changes, out),
    })?;
    if sides.iter().any(|side| side.unreadable) {
        return Ok(Outcome::Unable);
    }
    let is_worse = changes.count(baseline::Status::Worse) > 0;
    Ok(if is_worse { Outcome::Findings } else { Outcome::Clean })
}

/// Bytes that tell a report from a log.
const START: usize = 256;

fn side(
    path: &Path,
    args: &InputArgs,
    config: &Config,
    look: LookArgs,
    streams: &mut Streams<'_>,
) -> miette::Result<Side> {
    let failed = |error: std::io::Error| Unreadable::new(path, &error);
    let is_stream = path == Path::new("-") || path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir());
    if !is_stream {
        if path.is_file() {
            let mut file = File::open(path).map_err(failed)?;
            let start = start_of(&mut file).map_err(failed)?;
            if baseline::looks_like_json(&start) {
                let content = all_of(&mut start.as_slice().chain(file)).map_err(failed)?;
                return of_file(path, &content, args, config);
            }
        }
        return of_input(path, path, args, config, look, streams);
    }
    // A pipe cannot be read twice: what its beginning tells decides who reads it all.
    let mut file;
    let stdin: &mut dyn Read = if path == Path::new("-") {
        &mut *streams.stdin
    } else {
        file = File::open(path).map_err(failed)?;
        &mut file
    };
    let start = start_of(stdin).map_err(failed)?;
    let is_json = baseline::looks_like_json(&start);
    let mut all = Cursor::new(start).chain(stdin);
    if is_json {
        let content = all_of(&mut all).map_err(failed)?;
        return of_file(path, &content, args, config);
    }
    let mut piped = Streams {
        stdin: &mut all,
        stdin_is_terminal: false,
        stdout: &mut *streams.stdout,
        stderr: &mut *streams.stderr,
        stderr_is_terminal: streams.stderr_is_terminal,
        terminal: streams.terminal,
    };
    of_input(path, Path::new("-"), args, config, look, &mut piped)
}

/// The beginning of a stream, up to its first letter and a little more.
fn start_of(source: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut start = vec![0_u8; START];
    let mut fill = 0;
    while fill < START && start[..fill].iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        match source.read(&mut start[fill..]) {
            Ok(0) => break,
            Ok(read) => fill += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    start.truncate(fill);
    Ok(start)
}

/// A build that a report or a baseline tells of; what is told of launches now counts where that tells nothing better.
fn of_file(path: &Path, content: &[u8], args: &InputArgs, config: &Config) -> miette::Result<Side> {
    let read = baseline::read_any(content).map_err(|fault| BrokenFile::new(path, REPORT, fault))?;
    let (mut kernels, ambiguous) = read;
    let gpus = config.gpus.iter().map(|(_, gpu)| gpu.clone()).collect();
    let told = Told { gpus, block: args.block, dynamic_shared: args.dynamic_shared };
    let mut own: HashMap<Arch, Option<Gpu>> = HashMap::new();
    let mut known = Occupancies::default();
    for (key, all) in &mut kernels.kernels {
        let gpu = key.arch.and_then(|arch| own.entry(arch).or_insert_with(|| Gpu::of(arch)).as_ref());
        all.iter_mut().for_each(|figures| figures.launch_again(key.arch, &told, gpu, &mut known));
    }
    Ok(Side { kernels, ambiguous, unreadable: false })
}

/// A build that a log, PTX or sources tell of: what the user calls `named` is read from `path`.
fn of_input(
    named: &Path,
    path: &Path,
    args: &InputArgs,
    config: &Config,
    look: LookArgs,
    streams: &mut Streams<'_>,
) -> miette::Result<Side> {
    let input = InputArgs { paths: vec![PathBuf::from(path)], kernel: None, arch: None, ..args.clone() };
    let Some(read) = examine(&input, config, look, Depth::None, &[], None, streams)? else {
        return Err(Nothing { name: shown(named), why: "it is a terminal".to_owned(), help: None }.into());
    };
    let report = &read.report;
    if report.kernels.is_empty() {
        let reason = NoKernels::of(report);
        let help = reason.help().map(|help| help.to_string());
        return Err(Nothing { name: shown(named), why: reason.to_string(), help }.into());
    }
    let context = Context::new(report, &read.numbers);
    let mut kernels = Baseline::default();
    for (at, kernel) in context.framed().filter(|(_, kernel)| !kernel.ambiguous) {
        let Some(key) = Key::of(report, kernel) else { continue };
        kernels.kernels.entry(key).or_default().extend(Figures::of(report, &read.numbers, at));
    }
    let ambiguous = report.kernels.iter().filter(|kernel| kernel.ambiguous).count();
    Ok(Side { kernels, ambiguous, unreadable: read.unreadable })
}
