//! What people set: levels and options of rules, each with where it was set, and what fails a run.

use std::fmt;
use std::sync::Arc;

use crate::finding::Level;
use crate::model::nearest;
use crate::rules::{Group, RULES, Rule};

/// Where something was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// On the command line.
    Option,
    /// In the configuration, at this place.
    Config {
        /// The file as shown.
        file: Arc<str>,
        /// The line, from 1.
        line: u32,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Option => f.write_str("option"),
            Origin::Config { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

/// What a level can be set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// One rule, by its id.
    Rule(&'static str),
    /// All rules of a group.
    Group(Group),
}

impl Target {
    /// The rule or group called `name`.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Target, UnknownRule> {
        let rule = Rule::named(name).map(|rule| Target::Rule(rule.id));
        let group = || Group::ALL.into_iter().find(|group| group.name() == name).map(Target::Group);
        rule.or_else(group).ok_or_else(|| UnknownRule::new(name))
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Target::Rule(id) => id,
            Target::Group(group) => group.name(),
        }
    }

    /// Whether it is the rule, or the group that the rule is in.
    #[must_use]
    pub fn covers(self, rule: &Rule, group: Group) -> bool {
        self == Target::Rule(rule.id) || self == Target::Group(group)
    }
}

/// The name is neither a rule nor a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("no rule or group is called `{name}`")]
pub struct UnknownRule {
    /// The name that was given.
    pub name: String,
    /// What to do.
    #[help]
    pub help: String,
}

impl UnknownRule {
    /// The error for `name`, with the nearest rule.
    #[must_use]
    pub fn new(name: &str) -> UnknownRule {
        let known = RULES.iter().map(|rule| rule.id).chain(Group::ALL.map(Group::name));
        let help = did_you_mean(name, known, "`warplint rules` lists every rule");
        UnknownRule { name: crate::model::symbol::printable(name).into_owned(), help }
    }
}

/// `did you mean …? ` where one of the known names is near, and what else there is to say.
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>, otherwise: &str) -> String {
    match nearest(name, known) {
        Some(id) => format!("did you mean `{id}`? {otherwise}"),
        None => otherwise.to_owned(),
    }
}

/// Levels and options of rules, as people set them.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    levels: Vec<(Target, Level, Origin)>,
    options: Vec<SetOption>,
}

#[derive(Debug, Clone)]
struct SetOption {
    rule: &'static str,
    name: String,
    value: toml::Value,
    origin: Origin,
}

impl Settings {
    /// Sets the level of a rule or of all rules of a group; a later call wins.
    pub fn set_level(&mut self, target: Target, level: Level, origin: Origin) {
        self.levels.push((target, level, origin));
    }

    /// Sets an option of a rule, to a value that the rule takes.
    pub fn set_option(&mut self, rule: &'static str, name: &str, value: toml::Value, origin: Origin) {
        self.options.push(SetOption { rule, name: name.to_owned(), value, origin });
    }

    /// The level that was set for a rule, if any, and where.
    #[must_use]
    pub fn level(&self, rule: &Rule, group: Group) -> Option<(Level, &Origin)> {
        let set = self.levels.iter().rev().find(|(target, ..)| target.covers(rule, group));
        set.map(|(_, level, origin)| (*level, origin))
    }

    /// The value that was set for an option of a rule, if any, and where.
    #[must_use]
    pub fn option(&self, rule: &Rule, name: &str) -> Option<(&toml::Value, &Origin)> {
        let set = self.options.iter().rev().find(|set| set.rule == rule.id && set.name == name);
        set.map(|set| (&set.value, &set.origin))
    }

    /// The options of a rule in force: what was set, else the `defaults` of its page.
    #[must_use]
    pub fn options(&self, rule: &Rule, defaults: toml::Table) -> toml::Table {
        let mut options = defaults;
        for set in self.options.iter().filter(|set| set.rule == rule.id) {
            options.insert(set.name.clone(), set.value.clone());
        }
        options
    }
}

/// The lowest level that makes a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum FailOn {
    /// Errors.
    #[value(alias = "error")]
    Deny,
    /// Errors and warnings.
    #[default]
    #[value(alias = "warning")]
    Warn,
    /// Everything.
    Note,
    /// Nothing.
    Never,
}

impl FailOn {
    /// All, in order.
    pub const ALL: [FailOn; 4] = [FailOn::Deny, FailOn::Warn, FailOn::Note, FailOn::Never];

    /// Its name in options and configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FailOn::Deny => "deny",
            FailOn::Warn => "warn",
            FailOn::Note => "note",
            FailOn::Never => "never",
        }
    }

    /// Whether a run whose loudest finding is `loudest` fails.
    #[must_use]
    pub fn fails(self, loudest: Option<Level>) -> bool {
        let at = match self {
            FailOn::Deny => Level::Deny,
            FailOn::Warn => Level::Warn,
            FailOn::Note => Level::Note,
            FailOn::Never => return false,
        };
        loudest.is_some_and(|level| level >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(settings: &Settings, rule: &str) -> Option<Level> {
        let rule = Rule::named(rule).expect("a rule");
        settings.level(rule, rule.page().group).map(|(level, _)| level)
    }

    #[test]
    fn the_last_level_that_was_set_wins_whether_of_a_rule_or_a_group() {
        let mut settings = Settings::default();
        assert_eq!(level(&settings, "register-spill"), None);
        let target = |name| Target::named(name).expect("a rule or group");
        assert_eq!(target("warplint::register-spill"), target("register-spill"), "as a report heads it");
        settings.set_level(target("register-spill"), Level::Deny, Origin::Config { file: "w.toml".into(), line: 1 });
        assert_eq!(level(&settings, "register-spill"), Some(Level::Deny));
        settings.set_level(target("spills"), Level::Note, Origin::Option);
        assert_eq!(level(&settings, "register-spill"), Some(Level::Note));
        assert_eq!(level(&settings, "build-failed"), None);
    }

    #[test]
    fn options_that_are_not_set_have_the_defaults_of_the_page() {
        let rule = Rule::named("register-cliff").expect("a rule");
        let mut settings = Settings::default();
        assert_eq!(settings.options(rule, rule.page().defaults()), rule.page().defaults());
        settings.set_option(rule.id, "within", 4.into(), Origin::Option);
        let options = settings.options(rule, rule.page().defaults());
        assert_eq!((&options["within"], &options["gain"]), (&4.into(), &0.1.into()));
        assert_eq!(settings.option(rule, "within"), Some((&4.into(), &Origin::Option)));
    }

    #[test]
    fn what_is_near_is_offered_and_what_is_not_is_not() {
        assert_eq!(did_you_mean("fail_on", ["gpu", "fail-on"], "else"), "did you mean `fail-on`? else");
        assert_eq!(did_you_mean("xyz", ["gpu", "fail-on"], "else"), "else");
    }
}
