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

/// Front matter of nothing but the five words that every page has, as most pages have it: read at every start of the program,
/// it need not be parsed as TOML.
fn plain(front: &str) -> Option<FrontMatter> {
    const KEYS: [&str; 5] = ["summary", "level", "basis", "group", "since"];
    let mut lines = front.lines();
    let mut word = |key: &str| {
        let rest = lines.next()?.strip_prefix(key)?.strip_prefix(" = \"")?;
        rest.strip_suffix('"').filter(|word| !word.contains(['"', '\\'])).map(str::to_owned)
    };
    let [summary, level, basis, group, since] = KEYS.map(&mut word);
    let (summary, level, basis, group, since) = (summary?, level?, basis?, group?, since?);
    let group = Group::ALL.into_iter().find(|one| one.name() == group)?;
    lines.all(str::is_empty).then(|| FrontMatter { summary, level, basis, group, since, options: BTreeMap::new() })
}

impl Page {
    /// Reads the text of a page.
    ///
    /// # Errors
    /// When the front matter is missing, or holds what it should not.
    pub fn read(text: &'static str) -> Result<Page, PageError> {
        let rest = text.strip_prefix("+++\n").ok_or(PageError::NoFrontMatter)?;
        let (front, body) = rest.split_once("\n+++\n").ok_or(PageError::NoFrontMatter)?;
        let front = match plain(front) {
            Some(front) => front,
            None => toml::from_str(front)?,
        };
        let basis =
            [Basis::Measured, Basis::Computed, Basis::Inferred].into_iter().find(|basis| basis.name() == front.basis);
        Ok(Page {
            level: Level::named(&front.level).ok_or(PageError::Level(front.level))?,
            basis: basis.ok_or(PageError::Basis(front.basis))?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_front_matter_is_what_a_parser_of_toml_makes_of_it() {
        let mut count = 0;
        for rule in super::super::RULES {
            let front = rule.text.strip_prefix("+++\n").and_then(|rest| rest.split_once("\n+++\n")).expect("a page").0;
            let Some(plain) = plain(front) else { continue };
            let parsed: FrontMatter = toml::from_str(front).expect("front matter");
            let words = |one: &FrontMatter| [&one.summary, &one.level, &one.basis, &one.since].map(Clone::clone);
            assert_eq!((words(&plain), plain.group), (words(&parsed), parsed.group));
            assert!(parsed.options.is_empty());
            count += 1;
        }
        assert!(count > 10, "{count}");
        for text in ["summary = \"a\"", "level = \"note\"\nsummary = \"a\"", "", "summary = \"a\\n\"\nlevel = \"x\""] {
            assert!(plain(text).is_none(), "{text}");
        }
    }
}
