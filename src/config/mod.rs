//! `warplint.toml`: what a project says of its GPUs, its rules and its kernels.
//!
//! Plain data: nothing in it is run, and all that it can name are device files and sources in its own folder or below.

mod file;
mod init;
mod kernel;
mod keys;
mod load;
mod paths;
mod problem;
mod rule;
mod schema;
mod show;
mod walk;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobSet;

use crate::analyse::{Allowed, Budget, Entry};
use crate::finding::Level;
use crate::gpu::Gpu;
use crate::model::{Place, Quote, Report};
use crate::pattern::Patterns;
use crate::settle::{Allow, FailOn, Origin, Settings, Target};

pub use init::template;
pub use load::{Choice, load, read};
pub use problem::{ConfigError, Problem};
pub use schema::schema;
pub use show::show;

use kernel::KernelEntry;
use paths::Excluded;

/// The names of all keys, those of entries included.
pub fn key_names() -> impl Iterator<Item = &'static str> {
    keys::TOP.iter().chain(keys::KERNEL).map(|key| key.name)
}

/// A configuration is a page of text; what is larger is something else.
pub const MAX_BYTES: u64 = 1 << 20;

/// Everything that is set, complete: what the file says, and defaults for the rest.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The file as shown; `None` where there is none.
    name: Option<String>,
    /// The folder that it lies in.
    folder: PathBuf,
    text: Arc<str>,
    /// The GPUs to judge for, each with the name that it was asked for by.
    pub gpus: Vec<(String, Gpu)>,
    /// What fails a run.
    pub fail_on: FailOn,
    /// The baseline that runs are held against once it exists, as written, and where it is.
    pub baseline: Option<(String, PathBuf)>,
    /// Whether an improvement fails too, until the baseline is written anew.
    pub ratchet: bool,
    /// Levels and options of rules.
    pub settings: Settings,
    /// Whether what is allowed has to say why.
    pub require_reason: bool,
    /// Where sources lie, each as it is written, and from here.
    sources: Vec<(String, PathBuf)>,
    excluded: Vec<Excluded>,
    /// The patterns of all of these.
    exclude: GlobSet,
    kernels: Vec<KernelEntry>,
    patterns: Patterns,
}

impl Config {
    /// Takes the rules of a file. Those named alone beat their groups, wherever they stand: a table has no order.
    fn set_rules(&mut self, name: &str, text: &str, rules: &[rule::RuleEntry]) {
        let file: Arc<str> = name.into();
        let origin = |at: usize| {
            let line = 1 + text[..at].matches('\n').count();
            Origin::Config { file: file.clone(), line: u32::try_from(line).unwrap_or(u32::MAX) }
        };
        let is_group = |entry: &&rule::RuleEntry| matches!(entry.target, Target::Group(_));
        for entry in rules.iter().filter(is_group).chain(rules.iter().filter(|entry| !is_group(entry))) {
            if let Some(level) = &entry.level {
                self.settings.set_level(entry.target, *level.get_ref(), origin(level.span().start));
            }
            let Target::Rule(id) = entry.target else { continue };
            for (option, value) in &entry.options {
                self.settings.set_option(id, option.get_ref(), value.clone(), origin(option.span().start));
            }
        }
    }

    /// Sets a level that beats those of the file.
    pub fn set_level(&mut self, target: Target, level: Level) {
        self.settings.set_level(target, level, Origin::Option);
    }

    /// Takes the GPUs of the command line in place of those of the file, if there are any.
    pub fn set_gpus(&mut self, gpus: Vec<(String, Gpu)>) {
        if !gpus.is_empty() {
            self.gpus.clear();
            for (name, gpu) in gpus {
                if !self.gpus.iter().any(|(_, other)| *other == gpu) {
                    self.gpus.push((name, gpu));
                }
            }
        }
    }

    /// Where the sources of kernels lie.
    #[must_use]
    pub fn sources(&self) -> Vec<PathBuf> {
        self.sources.iter().map(|(_, path)| path.clone()).collect()
    }

    /// The folder that the patterns of what is left out begin at.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is left out of folders: patterns of paths from [`Config::folder`] on, and for each whether it names a place, and no
    /// name that may stand anywhere.
    #[must_use]
    pub fn excluded(&self) -> (GlobSet, Vec<bool>) {
        (self.exclude.clone(), self.excluded.iter().map(|one| one.is_placed).collect())
    }

    /// What the `[[kernel]]` entries tell of launches, and their names. Their lines are kept in `report`, so that a
    /// finding can show them.
    #[must_use]
    pub fn entries(&self, report: &mut Report) -> (Vec<Entry>, Patterns) {
        report.config.clone_from(&self.name);
        let entries = self.kernels.iter().enumerate().map(|(entry, kernel)| {
            let (quote, span) = self.quote(kernel.name.span(), report);
            let budgets = kernel.budgets.iter().map(|budget| {
                let (quote, span) = self.quote(budget.span(), report);
                Budget { entry, limit: *budget.get_ref(), quote, span }
            });
            let budgets = budgets.collect();
            let allowed = kernel.allow_at.clone().map(|at| {
                let (quote, span) = self.quote(at, report);
                Allowed { quote, span, has_reason: kernel.allow.has_reason() }
            });
            Entry {
                glob: kernel.name.get_ref().clone(),
                quote,
                span,
                block: kernel.block,
                dynamic_shared: kernel.dynamic_shared,
                budgets,
                allowed,
            }
        });
        (entries.collect(), self.patterns.clone())
    }

    /// What the entries allow, in the same order.
    #[must_use]
    pub fn allows(&self) -> Vec<Allow> {
        self.kernels.iter().map(|kernel| kernel.allow.clone()).collect()
    }

    /// The first line of what takes `span` of the text, and the bytes of the line that it takes.
    fn quote(&self, span: Range<usize>, report: &mut Report) -> (Quote, (usize, usize)) {
        let before = &self.text[..span.start];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let start = start + indent;
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let place = Place {
            input: Place::CONFIG,
            line: narrow(1 + memchr::memchr_iter(b'\n', before.as_bytes()).count()),
            column_offset: narrow(indent),
            offset: start as u64,
        };
        let text = line.trim();
        let end = (span.end - start).min(text.len());
        (Quote { place, text: report.texts.intern(text.as_bytes()) }, ((span.start - start).min(end), end))
    }
}
