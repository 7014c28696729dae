//! `warplint.toml`: what a project says of its GPUs, its rules and its kernels.
//!
//! Plain data: nothing in it is run, and the only files that it can name are device files in its own folder or below.

mod file;
mod kernel;
mod load;
mod problem;
mod rule;
mod show;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;

use toml::Spanned;

use crate::analyse::Entry;
use crate::finding::Level;
use crate::gpu::Gpu;
use crate::model::{Place, Quote, Report};
use crate::pattern::Patterns;
use crate::settle::{Allow, FailOn, Origin, Settings, Target};

pub use load::{Choice, load, read};
pub use problem::{ConfigError, Problem};
pub use show::show;

use kernel::KernelEntry;

/// A configuration is a page of text; what is larger is something else.
pub const MAX_BYTES: u64 = 1 << 20;

/// Everything that is set, complete: what the file says, and defaults for the rest.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The file as shown; `None` where there is none.
    name: Option<String>,
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
    kernels: Vec<KernelEntry>,
    patterns: Patterns,
}

impl Config {
    /// Takes the rules of a file. Those named alone beat their groups, wherever they stand: a table has no order.
    fn set_rules(&mut self, name: &str, text: &str, rules: &[rule::RuleEntry]) {
        let origin = |at: usize| {
            let line = 1 + text[..at].matches('\n').count();
            Origin::Config(format!("{name}:{line}").into())
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
            self.gpus = gpus;
        }
    }

    /// What the `[[kernel]]` entries tell of launches, and their names. Their lines are kept in `report`, so that a
    /// finding can show them.
    #[must_use]
    pub fn entries(&self, report: &mut Report) -> (Vec<Entry>, Patterns) {
        report.config.clone_from(&self.name);
        let entries = self.kernels.iter().map(|kernel| {
            let (quote, span) = self.quote(&kernel.name, report);
            Entry {
                glob: kernel.name.get_ref().clone(),
                quote,
                span,
                block: kernel.block,
                dynamic_shared: kernel.dynamic_shared,
            }
        });
        (entries.collect(), self.patterns.clone())
    }

    /// What the entries allow, in the same order.
    #[must_use]
    pub fn allows(&self) -> Vec<Allow> {
        self.kernels.iter().map(|kernel| kernel.allow.clone()).collect()
    }

    /// The line of a value, and the bytes of it that the value takes.
    fn quote(&self, value: &Spanned<String>, report: &mut Report) -> (Quote, (usize, usize)) {
        let span = value.span();
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
