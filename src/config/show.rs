//! The configuration in force as a file that says the same.

use std::fmt::Write as _;

use toml::Value;

use super::Config;
use crate::analyse::Limit;
use crate::finding::Level;
use crate::model::BlockSize;
use crate::rules::{Page, RULES, Rule};
use crate::settle::{Allow, Target};

/// Everything that is in force, as TOML; read as a configuration it changes nothing.
#[must_use]
pub fn show(config: &Config) -> String {
    let mut out = format!("# The configuration in force, by warplint {}\n\n", env!("CARGO_PKG_VERSION"));
    put_list(&mut out, "gpu", config.gpus.iter().map(|(name, _)| name.as_str()));
    put(&mut out, "fail-on", &config.fail_on.name().into());
    config.baseline.iter().for_each(|(path, _)| put(&mut out, "baseline", &path.as_str().into()));
    put(&mut out, "ratchet", &config.ratchet.into());
    put(&mut out, "require-reason", &config.require_reason.into());
    put_list(&mut out, "source", config.sources.iter().map(|(text, _)| text.as_str()));
    put_list(&mut out, "exclude", config.excluded.iter().map(|one| one.text.as_str()));
    out.push_str("\n[rules]\n");
    for rule in RULES {
        put_rule(&mut out, config, rule, &rule.page());
    }
    for kernel in &config.kernels {
        out.push_str("\n[[kernel]]\n");
        put(&mut out, "name", &kernel.name.get_ref().as_str().into());
        kernel.block.iter().for_each(|block| put(&mut out, "block", &dimensions(*block)));
        kernel.dynamic_shared.iter().for_each(|size| put(&mut out, "dynamic-shared", &i64::from(size.get()).into()));
        kernel.budgets.iter().for_each(|budget| put(&mut out, budget.get_ref().key(), &limit(*budget.get_ref())));
        put_allow(&mut out, &kernel.allow);
    }
    out
}

fn put(out: &mut String, key: &str, value: &Value) {
    let _ = writeln!(out, "{key} = {value}");
}

/// A list, where it is not empty.
fn put_list<'t>(out: &mut String, key: &str, items: impl Iterator<Item = &'t str>) {
    let items: Vec<Value> = items.map(Value::from).collect();
    if !items.is_empty() {
        put(out, key, &Value::Array(items));
    }
}

fn put_rule(out: &mut String, config: &Config, rule: &Rule, page: &Page) {
    let set = config.settings.level(rule, page.group);
    let level = set.map_or(page.level, |(level, _)| level);
    let options = config.settings.options(rule, page.defaults());
    // A rule that is silent by default and one that a person silenced are not the same: the latter's hits are counted.
    let silent = set.is_none() && level == Level::Allow;
    let level = (!silent).then_some(level);
    if level.is_some() || !options.is_empty() {
        let _ = writeln!(out, "{} = {}", rule.id, rule_value(level, &options));
    }
}

/// A level and options as they are written behind the name of a rule.
pub(super) fn rule_value(level: Option<Level>, options: &toml::Table) -> String {
    let level = level.map(|level| format!("\"{}\"", level.name()));
    match level {
        Some(level) if options.is_empty() => level,
        level => {
            let level = level.map(|level| format!("level = {level}"));
            let options = options.iter().map(|(name, value)| format!("{name} = {value}"));
            format!("{{ {} }}", level.into_iter().chain(options).collect::<Vec<_>>().join(", "))
        }
    }
}

fn limit(limit: Limit) -> Value {
    match limit {
        Limit::Registers(count) => i64::from(count).into(),
        Limit::Spill(size) | Limit::Stack(size) | Limit::Shared(size) => i64::from(size.get()).into(),
        Limit::Occupancy(share) => share.into(),
    }
}

fn put_allow(out: &mut String, allow: &Allow) {
    if !allow.targets.is_empty() {
        let name = |target: &Target| match target {
            Target::Rule(id) => Value::from(*id),
            Target::Group(group) => Value::from(group.name()),
        };
        put(out, "allow", &Value::Array(allow.targets.iter().map(name).collect()));
    }
    allow.reason.iter().for_each(|reason| put(out, "reason", &reason.as_str().into()));
}

fn dimensions(block: BlockSize) -> Value {
    match block.dimensions() {
        [x, 1, 1] => i64::from(x).into(),
        [x, y, 1] => Value::Array(vec![i64::from(x).into(), i64::from(y).into()]),
        all => Value::Array(all.map(|size| i64::from(size).into()).to_vec()),
    }
}
