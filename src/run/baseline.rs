//! The baseline of a run: read for a lint, written and pruned by a command of its own.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use miette::Diagnostic;

use super::Examined;
use super::broken_file::{BASELINE, BrokenFile, content, shown};
use super::failures::NoKernels;
use super::{Streams, around, config_of, depth, examine, files_around, set_levels, short_help};
use crate::baseline::{self, Against, Baseline};
use crate::command::baseline::{BaselineArgs, BaselineCommand};
use crate::config::Config;
use crate::model::Report;
use crate::outcome::Outcome;
use crate::output;
use crate::report;
use crate::rules::{Context, comparable};
use crate::settle::{Verdict, activate, settle};

/// What the file is called where nobody calls it otherwise.
const NAME: &str = "warplint-baseline.json";

/// A baseline that is not there.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("there is no baseline `{name}`")]
#[diagnostic(help("`warplint baseline write --baseline {name} build.log` writes one"))]
struct NoBaseline {
    name: String,
}

/// A run that was to be held against a baseline and has nothing to hold.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("nothing was held against `{name}`: {why}")]
struct NothingMeasured {
    name: String,
    why: String,
    #[help]
    help: Option<String>,
}

/// A build that is not to be written down.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum Refused {
    #[error("the build failed, so `{name}` was left as it was: first with `{said}`")]
    #[diagnostic(help(
        "`warplint` on the same input shows every error; write the baseline from a build that succeeds"
    ))]
    Failed { name: String, said: String },
    #[error("not all of the input could be read, so `{name}` was left as it was")]
    Unreadable { name: String },
    #[error("the figures of no kernel can be written down, so `{name}` was left as it was")]
    #[diagnostic(help(
        "they are those of a build for debugging, or interleaved output leaves open whose they are: write the baseline \
         from an optimised build, one job at a time"
    ))]
    Doubtful { name: String },
    #[error("`{name}` was written anew while the build was read, and was left as it is")]
    #[diagnostic(help("what is gone was told from what it held before: prune again"))]
    Overtaken { name: String },
    #[error("`baseline prune` takes a full build, and `--kernel` and `--arch` leave kernels out")]
    #[diagnostic(help("prune without them; `baseline write` takes them, and leaves all other entries as they are"))]
    Filtered,
}

/// The baseline that a lint is held against: the file of the option, which has to be there, or that of the configuration,
/// where it is.
pub(super) fn against(option: Option<&Path>, config: &Config, written: &[&Path]) -> miette::Result<Option<Against>> {
    let configured = config.baseline.as_ref().map(|(_, path)| path.as_path());
    let Some(path) = option.or(configured) else { return Ok(None) };
    let Some(baseline) = load(path)? else {
        return if option.is_some() { Err(NoBaseline { name: shown(path) }.into()) } else { Ok(None) };
    };
    super::examine::spare_inputs(&[path.to_owned()], written)?;
    Ok(Some(Against { baseline, name: shown(path), ratchet: config.ratchet, root: root() }))
}

/// A baseline, if the file is there.
fn load(path: &Path) -> miette::Result<Option<Baseline>> {
    let Some(content) = content(path)? else { return Ok(None) };
    let baseline = baseline::read(&content).map_err(|fault| BrokenFile::new(path, BASELINE, fault))?;
    Ok(Some(baseline))
}

/// The working folder, which paths are told from.
fn root() -> String {
    std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default()
}

/// Fails where a lint was held against a baseline and had no kernel: a gate that measured nothing has not passed. A hook on
/// the sources that changed may have none, and measures no figures anyway.
pub(super) fn measured(verdict: &Verdict<'_>, was_asked: bool) -> miette::Result<()> {
    let report = verdict.context.report;
    let Some(against) = verdict.context.against.filter(|_| report.kernels.is_empty()) else { return Ok(()) };
    if !was_asked && report.inputs.iter().all(|input| input.is_source) {
        return Ok(());
    }
    let reason = NoKernels::of(report);
    let help = reason.help().map(|help| help.to_string());
    Err(NothingMeasured { name: against.name.clone(), why: reason.to_string(), help }.into())
}

/// `baseline write` and `baseline prune`.
pub(super) fn run(args: &BaselineArgs, matches: &ArgMatches, streams: &mut Streams<'_>) -> miette::Result<Outcome> {
    let is_prune = matches!(args.command, BaselineCommand::Prune(_));
    let args = args.accept();
    let mut config = config_of(&args.input)?;
    set_levels(&mut config, matches)?;
    let path = args.baseline.clone().or_else(|| config.baseline.as_ref().map(|(_, path)| path.clone()));
    let path = path.unwrap_or_else(|| PathBuf::from(NAME));
    let name = shown(&path);
    let known = load(&path)?;
    if is_prune {
        if args.input.kernel.is_some() || args.input.arch.is_some() {
            return Err(Refused::Filtered.into());
        }
        if known.is_none() {
            return Err(NoBaseline { name }.into());
        }
    }
    let rules = activate(&config.settings);
    let read = examine(&args.input, &config, args.look, depth(&rules), &[path.as_path()], None, streams)?;
    let Some(mut read) = read else { return short_help(streams) };
    refuse(&read, &name)?;
    let against = Against { baseline: known.unwrap_or_default(), name: name.clone(), ratchet: false, root: root() };
    let allows = config.allows();
    let held = Some(&against).filter(|_| is_prune);
    let mut verdict = settle(read.context(held), &rules, &allows);
    let files = files_around(&verdict, &read, &args.input);
    if let Some(found) = around::search(&verdict, &files) {
        drop(verdict);
        around::add(found, &mut read);
        verdict = settle(read.context(held), &rules, &allows);
    }
    let now = verdict.baseline(&against.root);
    let (kernels, findings) = (now.kernel_count(), now.finding_count());
    // To read a build may have taken an hour, and others may have written since: what they wrote is kept.
    let turn = output::turn(&path);
    let latest = load(&path)?.unwrap_or_default();
    let (next, counts) = if !is_prune {
        baseline::update(latest, now, &verdict.seen(&against.root))
    } else if latest == against.baseline {
        baseline::prune(latest, &now, &verdict.left)
    } else {
        return Err(Refused::Overtaken { name }.into());
    };
    output::write(Some(&path), streams.stdout, |out| baseline::write(&next, out))?;
    drop(turn);
    if args.look.quiet {
        return Ok(Outcome::Clean);
    }
    let left_out = verdict.context.report.kernels.iter().filter(|kernel| kernel.ambiguous).count();
    let is_named = is_prune || args.baseline.is_some() || config.baseline.is_some();
    let written = report::Written { name: &name, is_prune, kernels, findings, next: &next, counts, left_out, is_named };
    output::write(None, streams.stdout, |out| written.render(out))?;
    Ok(Outcome::Clean)
}

/// Refuses to write down what says nothing, or not all.
fn refuse(read: &Examined, name: &str) -> miette::Result<()> {
    let report: &Report = &read.report;
    let name = name.to_owned();
    match NoKernels::of(report) {
        NoKernels::Failed { said, .. } => return Err(Refused::Failed { name, said }.into()),
        none if report.kernels.is_empty() => return Err(none.into()),
        _ => {}
    }
    if read.unreadable {
        return Err(Refused::Unreadable { name }.into());
    }
    let context = Context::new(report, &read.numbers);
    let has_figures = report.kernels.iter().any(|kernel| kernel.evidence.usage.is_some());
    if has_figures && !comparable(&context).any(|(_, kernel)| !kernel.ambiguous) {
        return Err(Refused::Doubtful { name }.into());
    }
    Ok(())
}
