//! The configuration in force as a file that says the same.

use std::fmt::Write as _;

use toml::Value;

use super::Config;
use crate::finding::Level;
use crate::model::BlockSize;
use crate::rules::{Page, RULES, Rule};
use crate::settle::{Allow, Target};

/// Everything that is in force, as TOML; read as a configuration it changes nothing.
#[must_use]
pub fn show(config: &Config) -> String {
    let mut out = format!("# The configuration in force, by warplint {}\n\n", env!("CARGO_PKG_VERSION"));
    if !config.gpus.is_empty() {
        let names = config.gpus.iter().map(|(name, _)| Value::from(name.as_str()));
        put(&mut out, "gpu", &Value::Array(names.collect()));
    }
    put(&mut out, "fail-on", &config.fail_on.name().into());
    config.baseline.iter().for_each(|(path, _)| put(&mut out, "baseline", &path.as_str().into()));
    put(&mut out, "ratchet", &config.ratchet.into());
    out.push_str("\n[rules]\n");
    for rule in RULES {
        put_rule(&mut out, config, rule, &rule.page());
    }
    for kernel in &config.kernels {
        out.push_str("\n[[kernel]]\n");
        put(&mut out, "name", &kernel.name.get_ref().as_str().into());
        kernel.block.iter().for_each(|block| put(&mut out, "block", &dimensions(*block)));
        kernel.dynamic_shared.iter().for_each(|size| put(&mut out, "dynamic-shared", &i64::from(size.get()).into()));
        put_allow(&mut out, &kernel.allow);
    }
    out
}

fn put(out: &mut String, key: &str, value: &Value) {
    let _ = writeln!(out, "{key} = {value}");
}

fn put_rule(out: &mut String, config: &Config, rule: &Rule, page: &Page) {
    let set = config.settings.level(rule, page.group);
    let level = set.map_or(page.level, |(level, _)| level);
    let options = config.settings.options(rule, page);
    // A rule that is silent by default and one that a person silenced are not the same: the latter's hits are counted.
    let silent = set.is_none() && level == Level::Allow;
    let level = (!silent).then(|| format!("level = \"{}\"", level.name()));
    let options = options.iter().map(|(name, value)| format!("{name} = {value}"));
    let all: Vec<String> = level.into_iter().chain(options).collect();
    let _ = match all.as_slice() {
        [] => Ok(()),
        [level] if page.options.is_empty() => writeln!(out, "{} = {}", rule.id, level.trim_start_matches("level = ")),
        all => writeln!(out, "{} = {{ {} }}", rule.id, all.join(", ")),
    };
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
