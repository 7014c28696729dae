//! The list of rules with the levels in force.

use std::io::{self, Write};

use serde::Serialize;

use super::{Style, json};
use crate::rules::{Group, RULES};
use crate::settle::Levels;

#[derive(Serialize)]
struct WireRule {
    id: &'static str,
    group: &'static str,
    level: &'static str,
    set_by: &'static str,
    summary: String,
    options: Vec<WireOption>,
}

#[derive(Serialize)]
struct WireOption {
    name: String,
    default: toml::Value,
    about: String,
}

/// Every rule by group, with its level here.
///
/// # Errors
/// When `out` cannot be written to.
pub fn rules_human(levels: &Levels, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let pages: Vec<_> = RULES.iter().map(|rule| (rule, rule.page())).collect();
    for group in Group::ALL {
        let mut of_group = pages.iter().filter(|(_, page)| page.group == group).peekable();
        if of_group.peek().is_none() {
            continue;
        }
        writeln!(out, "{}", style.strong(group.name()))?;
        for (rule, page) in of_group {
            let set = levels.of(rule, page.group);
            let level = set.unwrap_or(page.level);
            let changed = if set.is_some_and(|set| set != page.level) {
                format!(" ({} by default)", page.level.name())
            } else {
                String::new()
            };
            writeln!(out, "  {:width$}  {:5}  {}{}", rule.id, level.name(), page.summary, style.faint(changed))?;
        }
    }
    writeln!(out, "\n{}", style.faint("`warplint explain RULE` prints a rule's page"))
}

/// The same as one JSON object.
///
/// # Errors
/// When `out` cannot be written to.
pub fn rules_json(levels: &Levels, out: &mut dyn Write) -> io::Result<()> {
    let wire = |rule: &'static crate::rules::Rule| {
        let page = rule.page();
        let set = levels.of(rule, page.group);
        let options = page.options.into_iter().map(|(name, setting)| WireOption {
            name,
            default: setting.default,
            about: setting.about,
        });
        WireRule {
            id: rule.id,
            group: page.group.name(),
            level: set.unwrap_or(page.level).name(),
            set_by: if set.is_some() { "option" } else { "default" },
            summary: page.summary,
            options: options.collect(),
        }
    };
    let rules: Vec<WireRule> = RULES.iter().map(wire).collect();
    serde_json::to_writer_pretty(&mut *out, &serde_json::json!({ "version": json::VERSION, "rules": rules }))?;
    writeln!(out)
}
