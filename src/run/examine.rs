//! discover ─► parse ─► join ─► analyse: from paths to what rules judge.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use miette::{Report as Failure, Severity};

use super::build::Build;
use super::failures::{OneFile, OverInput};
use super::units::{Lower, Role, Units};
use super::{Streams, assemble, inputs, show, sources, stale, units};
use crate::analyse::{Assumptions, Depth, Numbers, analyse};
use crate::baseline::Against;
use crate::cli::{InputArgs, LookArgs};
use crate::config::Config;
use crate::discover::{self, Exclude, Input, Searched, SourceFile, Sources, check_sources};
use crate::filter::Filter;
use crate::join::{attach, join};
use crate::lanes::task::Which;
use crate::model::{Arch, Report, symbol};
use crate::output;
use crate::rules::Context;
use crate::suppress;

/// What was read and computed.
pub(super) struct Examined {
    pub(super) report: Report,
    pub(super) numbers: Numbers,
    /// An input could not be read to its end.
    pub(super) unreadable: bool,
    /// What the sources say beside what the report holds of them.
    pub(super) units: Units,
    /// The places for sources that were named.
    pub(super) sources: Vec<PathBuf>,
    /// What is left out of folders.
    pub(super) exclude: Exclude,
}

impl Examined {
    /// What rules see of it, held against a baseline where there is one.
    pub(super) fn context<'a>(&'a self, against: Option<&'a Against>) -> Context<'a> {
        Context::new(&self.report, &self.numbers).against(against)
    }
}

/// Refuses to write a report over a file that is to be read.
pub(super) fn spare_inputs(inputs: &[PathBuf], written: &[&Path]) -> Result<(), OverInput> {
    let file = |path: &Path| std::fs::canonicalize(path).ok().filter(|path| path.is_file());
    for path in written {
        let Some(target) = file(path) else { continue };
        if inputs.iter().any(|input| file(input).is_some_and(|input| input == target)) {
            return Err(OverInput { path: symbol::printable(&path.display().to_string()).into_owned() });
        }
    }
    Ok(())
}

/// Refuses to write two reports into one file, of which only the last would be left.
pub(super) fn each_its_own(written: &[&Path]) -> Result<(), OneFile> {
    let mut seen = HashSet::new();
    for path in written {
        if output::file_of(path).is_some_and(|file| !seen.insert(file)) {
            return Err(OneFile { path: symbol::printable(&path.display().to_string()).into_owned() });
        }
    }
    Ok(())
}

/// Reads what is named or piped in, or what `build` prints, and computes what rules ask for. `None` when there is nothing to
/// read.
pub(super) fn examine(
    args: &InputArgs,
    config: &Config,
    look: LookArgs,
    depth: Depth,
    written: &[&Path],
    build: Option<&mut Build<'_>>,
    streams: &mut Streams<'_>,
) -> miette::Result<Option<Examined>> {
    let filter = Filter::new(args.kernel.as_deref(), args.arch.as_deref())?;
    let stdin_alone = [Path::new("-").to_owned()];
    let paths = match args.paths.as_slice() {
        [] if build.is_some() => &[],
        [] if streams.stdin_is_terminal => return Ok(None),
        [] => &stdin_alone[..],
        paths => paths,
    };
    check_sources(&args.source)?;
    spare_inputs(paths, written)?;
    let ptxas = args.assemble.then(assemble::find).transpose()?;
    let mut reading = Reading::new(args, config, look);
    if let Some(build) = build {
        reading.failures.extend(build.read(&mut reading.report, streams.stdout, streams.stderr).err());
    }
    let lower = match depth {
        Depth::None => Lower::Nothing,
        Depth::Branches(Which::All) => Lower::All,
        Depth::Branches(_) => Lower::Telling,
    };
    let mut units = reading.inputs(paths, lower, streams)?;
    if let Some(ptxas) = ptxas {
        let errors = assemble::all(&ptxas, &reading.module_paths, &mut reading.report);
        reading.failures.extend(errors.into_iter().map(Failure::from));
    }
    reading.searched(&mut units);
    let unreadable = reading.tell(streams);
    let Reading { named, exclude, mut report, .. } = reading;
    let archs: Option<Vec<Arch>> = config.gpus.iter().map(|(_, gpu)| gpu.arch).collect();
    join(&mut report, &archs.unwrap_or_default());
    filter.apply(&mut report)?;
    attach(&mut report);
    let (entries, patterns) = config.entries(&mut report);
    let mut remarks = suppress::of_modules(&mut report);
    remarks.extend(suppress::of_units(&mut report, &units.comments));
    let assumptions = Assumptions {
        gpus: config.gpus.iter().map(|(_, gpu)| gpu.clone()).collect(),
        block: args.block,
        dynamic_shared: args.dynamic_shared,
        entries,
        patterns,
        remarks,
        requires_reason: config.require_reason,
        depth,
    };
    let mut numbers = analyse(&report, &assumptions);
    let places = source_places(args, &named).without(exclude.clone());
    stale::check(&report, &mut numbers, &places);
    let every = depth == Depth::Branches(Which::All);
    sources::attach(&mut report, &mut numbers, places, &mut units, every);
    Ok(Some(Examined { report, numbers, unreadable, units, sources: named, exclude }))
}

/// What is read so far.
struct Reading<'a> {
    args: &'a InputArgs,
    look: LookArgs,
    /// The places for sources that were named.
    named: Vec<PathBuf>,
    exclude: Exclude,
    report: Report,
    failures: Vec<Failure>,
    /// Files that were read, where one may be named twice.
    seen: HashSet<PathBuf>,
    /// Links that a walk came to and did not follow.
    links: u32,
    /// The path of each module.
    module_paths: Vec<Option<PathBuf>>,
}

impl<'a> Reading<'a> {
    fn new(args: &'a InputArgs, config: &Config, look: LookArgs) -> Reading<'a> {
        let (globs, placed) = config.excluded();
        Reading {
            args,
            look,
            named: if args.source.is_empty() { config.sources() } else { args.source.clone() },
            exclude: Exclude::new(config.folder(), globs, placed, args.force_exclude),
            report: Report::default(),
            failures: Vec::new(),
            seen: HashSet::new(),
            links: 0,
            module_paths: Vec::new(),
        }
    }

    /// Reads the inputs that `paths` name; of device functions of sources those are made into PTX that `lower`
    /// says. Fails where
    /// nothing at all could be read.
    fn inputs(&mut self, paths: &[PathBuf], lower: Lower, streams: &mut Streams<'_>) -> miette::Result<Units> {
        let mut files: Vec<SourceFile> = Vec::new();
        let mut left_out = 0;
        for path in paths {
            if self.exclude.leaves_out(path) {
                left_out += 1;
                continue;
            }
            match discover::inputs(path, &self.exclude) {
                Ok(found) => {
                    self.failures.extend(found.problems.into_iter().map(Failure::from));
                    self.links += found.links;
                    self.found(found.found, paths.len() > 1, &mut files, streams);
                }
                Err(error) => self.failures.push(error.into()),
            }
        }
        let mut units = units::read(&files, Role::Given { lower }, &mut self.report);
        self.failures.extend(std::mem::take(&mut units.failures).into_iter().map(Failure::from));
        let is_all_left_out = left_out == paths.len() && !paths.is_empty();
        if is_all_left_out && !self.look.quiet {
            let said = b"nothing to lint: `exclude` of the configuration leaves out all that was named\n";
            let _ = streams.stderr.write_all(said);
        }
        if self.report.inputs.is_empty() && self.failures.is_empty() && !is_all_left_out {
            // Headers, and no device code in any.
            self.failures.extend(self.args.paths.first().map(|folder| discover::nothing_in(folder).into()));
        }
        if self.report.inputs.is_empty()
            && let Some(first) = self.failures.pop()
        {
            self.failures.iter().for_each(|failure| show(failure, self.look, streams));
            return Err(first);
        }
        Ok(units)
    }

    /// Reads what a path named; sources are put into `files`, to be read together.
    fn found(
        &mut self,
        found: Vec<Input>,
        is_one_of_several: bool,
        files: &mut Vec<SourceFile>,
        streams: &mut Streams<'_>,
    ) {
        // One folder holds no file twice: links are not followed. What is searched may be what is read.
        let may_come_twice = is_one_of_several || !self.named.is_empty();
        for input in found {
            if may_come_twice && discover::identity(&input).is_some_and(|file| !self.seen.insert(file)) {
                continue;
            }
            if let Input::Source(file) = input {
                files.push(file);
                continue;
            }
            let failure = inputs::read(&input, self.args.passthrough, self.look, &mut self.report, streams).err();
            self.failures.extend(failure);
            self.module_paths.resize(self.report.modules.len(), input.path().map(Path::to_owned));
        }
    }

    /// Reads the sources in places that were named for it and that are no inputs: what they say of the kernels of logs and
    /// PTX counts.
    fn searched(&mut self, units: &mut Units) {
        let Searched { mut files, problems } = discover::source_files(&self.named, false, &self.exclude);
        files.retain(|file| std::fs::canonicalize(&file.path).is_ok_and(|path| !self.seen.contains(&path)));
        self.failures.extend(problems.into_iter().map(Failure::from));
        units.add(units::read(&files, Role::Searched, &mut self.report));
        self.failures.extend(std::mem::take(&mut units.failures).into_iter().map(Failure::from));
    }

    /// Tells what could not be read; whether that is a failure.
    fn tell(&self, streams: &mut Streams<'_>) -> bool {
        self.failures.iter().for_each(|failure| show(failure, self.look, streams));
        if self.look.verbose && self.links > 0 {
            let are = match self.links {
                1 => "1 link to a source or PTX was".to_owned(),
                links => format!("{links} links to sources or PTX were"),
            };
            let _ = streams.stderr.write_all(format!("{are} not followed; name what is to be linted\n").as_bytes());
        }
        self.failures.iter().any(|failure| failure.severity() != Some(Severity::Warning))
    }
}

/// Where sources are searched for: what was named for it, else around the inputs, and in the working folder.
fn source_places(args: &InputArgs, named: &[PathBuf]) -> Sources {
    if !named.is_empty() {
        return Sources::named(named.to_owned());
    }
    Sources::around(places_around(args))
}

/// The folders among the inputs, and the working folder.
pub(super) fn places_around(args: &InputArgs) -> Vec<PathBuf> {
    let folders = args.paths.iter().filter(|path| path.is_dir()).cloned();
    folders.chain([PathBuf::from(".")]).collect()
}
