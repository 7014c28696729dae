//! The list of rules with the levels in force.

use std::io::{self, Write};

use serde::Serialize;

use super::wire::Escaped;
use super::{Style, json};
use crate::rules::{Group, RULES};
use crate::settle::{Origin, Settings};

#[derive(Serialize)]
struct WireRule {
    id: &'static str,
    group: &'static str,
    level: &'static str,
    set_by: String,
    summary: String,
    options: Vec<WireOption>,
}

#[derive(Serialize)]
struct WireOption {
    name: String,
    value: toml::Value,
    set_by: String,
    default: toml::Value,
    about: String,
}

/// Every rule by group, with its level here.
///
/// # Errors
/// When `out` cannot be written to.
pub fn rules_human(settings: &Settings, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let pages: Vec<_> = RULES.iter().map(|rule| (rule, rule.page())).collect();
    for group in Group::ALL {
        let mut of_group = pages.iter().filter(|(_, page)| page.group == group).peekable();
        if of_group.peek().is_none() {
            continue;
        }
        writeln!(out, "{}", style.strong(group.name()))?;
        for (rule, page) in of_group {
            let set = settings.level(rule, page.group);
            let level = set.map_or(page.level, |(level, _)| level);
            let changed = match set {
                Some((level, origin)) if level != page.level => {
                    format!(" ({origin}; {} by default)", page.level.name())
                }
                Some((_, origin)) => format!(" ({origin})"),
                None => String::new(),
            };
            writeln!(out, "  {:width$}  {:5}  {}{}", rule.id, level.name(), page.summary, style.faint(changed))?;
        }
    }
    writeln!(out, "\n{}", style.faint("`warplint explain RULE` prints a rule's page"))
}

fn set_by(origin: Option<&Origin>) -> String {
    origin.map_or_else(|| "default".to_owned(), Origin::to_string)
}

/// The same as one JSON object.
///
/// # Errors
/// When `out` cannot be written to.
pub fn rules_json(settings: &Settings, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Escaped(out);
    let wire = |rule: &'static crate::rules::Rule| {
        let page = rule.page();
        let set = settings.level(rule, page.group);
        let options = page.options.into_iter().map(|(name, setting)| {
            let set = settings.option(rule, &name);
            WireOption {
                value: set.map_or(&setting.default, |(value, _)| value).clone(),
                set_by: set_by(set.map(|(_, origin)| origin)),
                name,
                default: setting.default,
                about: setting.about,
            }
        });
        WireRule {
            id: rule.id,
            group: page.group.name(),
            level: set.map_or(page.level, |(level, _)| level).name(),
            set_by: set_by(set.map(|(_, origin)| origin)),
            summary: page.summary,
            options: options.collect(),
        }
    };
    let rules: Vec<WireRule> = RULES.iter().map(wire).collect();
    serde_json::to_writer_pretty(&mut *out, &serde_json::json!({ "version": json::VERSION, "rules": rules }))?;
    writeln!(out)
}
