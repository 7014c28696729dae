//! A rule's page: front matter in TOML between `+++` lines, then prose and examples in Markdown.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use crate::finding::{Basis, Level};

/// A page, read. Its text stays where it is: all pages are part of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// One line, without a full stop.
    pub summary: String,
    /// The level where nothing else sets one.
    pub level: Level,
    /// How its findings are known.
    pub basis: Basis,
    /// The group that it belongs to.
    pub group: Group,
    /// The release that brought it.
    pub since: String,
    /// Its options in order of name.
    pub options: BTreeMap<String, Setting>,
    /// The Markdown after the front matter.
    pub body: &'static str,
}

/// An option of a rule.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The value where nothing else sets one.
    pub default: toml::Value,
    /// What it does, in one line.
    pub about: String,
}

/// What a rule is about; rules can be set by group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// What the compiler said.
    Compiler,
    /// Launches that fail or waste.
    Launch,
    /// Threads that disagree about synchronisation.
    Sync,
    /// Values parked in memory.
    Spills,
    /// How many warps an SM holds.
    Occupancy,
    /// Warps with idle lanes.
    Warps,
    /// Lanes that disagree about a branch.
    Divergence,
    /// Memory accesses.
    Memory,
    /// Care for the code base.
    Hygiene,
}

impl Group {
    /// Every group.
    pub const ALL: [Group; 9] = [
        Group::Compiler,
        Group::Launch,
        Group::Sync,
        Group::Spills,
        Group::Occupancy,
        Group::Warps,
        Group::Divergence,
        Group::Memory,
        Group::Hygiene,
    ];

    /// Its name in options and configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Compiler => "compiler",
            Group::Launch => "launch",
            Group::Sync => "sync",
            Group::Spills => "spills",
            Group::Occupancy => "occupancy",
            Group::Warps => "warps",
            Group::Divergence => "divergence",
            Group::Memory => "memory",
            Group::Hygiene => "hygiene",
        }
    }
}

/// What is wrong with a page.
#[derive(Debug, Error)]
pub enum PageError {
    /// No front matter between two lines of `+++`.
    #[error("a page starts with front matter between two lines of +++")]
    NoFrontMatter,
    /// The front matter is not as it should be.
    #[error(transparent)]
    FrontMatter(#[from] toml::de::Error),
    /// No such level.
    #[error("`{0}` is no level")]
    Level(String),
    /// No such basis.
    #[error("`{0}` is no basis: measured, computed or inferred")]
    Basis(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FrontMatter {
    summary: String,
    level: String,
    basis: String,
    group: Group,
    since: String,
    #[serde(default)]
    options: BTreeMap<String, Setting>,
}

/// What every run needs of every page: its front matter without the prose, for which no document has to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The level where nothing else sets one.
    pub level: Level,
    /// How its findings are known.
    pub basis: Basis,
    /// The group that it belongs to.
    pub group: Group,
    /// The options at their defaults.
    pub defaults: toml::Table,
}

impl Head {
    /// Reads the lines `key = "value"` and `option = { default = 1, … }` that a page begins with, as far as they matter;
    /// `None` where they are not there. A test holds this against what [`Page::read`] makes of every page.
    #[must_use]
    pub fn read(text: &str) -> Option<Head> {
        let (mut level, mut basis, mut group) = (None, None, None);
        let mut lines = text.strip_prefix("+++\n")?.lines().take_while(|line| *line != "+++");
        for line in lines.by_ref().take_while(|line| *line != "[options]") {
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            match key.trim_end() {
                "level" => level = Level::named(value),
                "basis" => basis = Basis::named(value),
                "group" => group = Group::ALL.into_iter().find(|group| group.name() == value),
                _ => {}
            }
        }
        let defaults = lines.filter(|line| !line.is_empty()).map(default_of).collect::<Option<_>>()?;
        Some(Head { level: level?, basis: basis?, group: group?, defaults })
    }
}

/// The name and the default of `name = { default = 0.5, about = "…" }`.
fn default_of(line: &str) -> Option<(String, toml::Value)> {
    let (name, setting) = line.split_once('=')?;
    let (key, rest) = setting.trim_start().strip_prefix('{')?.split_once('=')?;
    let (value, _) = rest.split_once(',')?;
    (key.trim() == "default").then_some(())?;
    Some((name.trim_end().to_owned(), plain_value(value.trim())?))
}

/// A truth value or a number.
fn plain_value(text: &str) -> Option<toml::Value> {
    let number = || text.parse().map(toml::Value::Integer).or_else(|_| text.parse().map(toml::Value::Float));
    text.parse().map(toml::Value::Boolean).ok().or_else(|| number().ok())
}

impl Page {
    /// Reads the text of a page.
    ///
    /// # Errors
    /// When the front matter is missing, or holds what it should not.
    pub fn read(text: &'static str) -> Result<Page, PageError> {
        let rest = text.strip_prefix("+++\n").ok_or(PageError::NoFrontMatter)?;
        let (front, body) = rest.split_once("\n+++\n").ok_or(PageError::NoFrontMatter)?;
        let front: FrontMatter = toml::from_str(front)?;
        Ok(Page {
            level: Level::named(&front.level).ok_or(PageError::Level(front.level))?,
            basis: Basis::named(&front.basis).ok_or(PageError::Basis(front.basis))?,
            summary: front.summary,
            group: front.group,
            since: front.since,
            options: front.options,
            body: body.trim_start(),
        })
    }

    /// The options at their defaults.
    #[must_use]
    pub fn defaults(&self) -> toml::Table {
        self.options.iter().map(|(name, setting)| (name.clone(), setting.default.clone())).collect()
    }
}
