//! A configuration as written: what is in the file, each value with its place.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kernel::{self, KernelEntry};
use super::problem::Fault;
use super::rule::{self, RuleEntry};
use super::walk::{Keys, Value, Walk, in_order};
use crate::settle::{FailOn, did_you_mean};

/// What is in a file.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfigFile {
    pub(super) gpus: Vec<Spanned<String>>,
    pub(super) fail_on: Option<FailOn>,
    pub(super) rules: Vec<RuleEntry>,
    pub(super) kernels: Vec<KernelEntry>,
}

const KEYS: Keys = Keys {
    of: "of a configuration",
    known: &["gpu", "fail-on", "rules", "kernel"],
    later: &["baseline", "ratchet", "require-reason", "source", "exclude"],
};

/// Reads the text of a file: what could be understood of it, and everything that is wrong with it.
pub(super) fn read(text: &str) -> (ConfigFile, Vec<Fault>) {
    let mut walk = Walk { text, faults: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        walk.fault(span, format!("this is no TOML: {message}"), "", None);
    }
    // What the parser made of a broken text says nothing about what was meant.
    if !errors.is_empty() {
        return (ConfigFile::default(), walk.faults);
    }
    let file = top(&mut walk, root.get_ref());
    (file, walk.faults)
}

fn top(walk: &mut Walk<'_>, root: &DeTable<'_>) -> ConfigFile {
    let mut file = ConfigFile::default();
    for (key, value) in in_order(root) {
        match key.get_ref().as_ref() {
            "gpu" => file.gpus = gpus(walk, value),
            "fail-on" => file.fail_on = fail_on(walk, value),
            "kernel" => file.kernels = kernel::read(walk, value),
            "rules" => match value.get_ref() {
                DeValue::Table(table) => file.rules = rule::read(walk, table),
                _ => walk.wrong_kind("`rules`", "a table", value),
            },
            _ => walk.unknown_key(key, &KEYS),
        }
    }
    file
}

/// One name, or a list of them.
fn gpus(walk: &mut Walk<'_>, value: &Value<'_>) -> Vec<Spanned<String>> {
    const WANTED: &str = "the name of a GPU, or a list of names";
    if let DeValue::String(name) = value.get_ref() {
        return vec![Spanned::new(value.span(), name.clone().into_owned())];
    }
    let mut names: Vec<Spanned<String>> = Vec::new();
    for item in walk.list("`gpu`", WANTED, value) {
        let Some(name) = walk.string("each item of `gpu`", "the name of a GPU", item) else { continue };
        names.push(Spanned::new(item.span(), name.to_owned()));
    }
    names
}

fn fail_on(walk: &mut Walk<'_>, value: &Value<'_>) -> Option<FailOn> {
    let name = walk.string("`fail-on`", "a string: deny, warn, note or never", value)?;
    let found = FailOn::ALL.into_iter().find(|level| level.name() == name);
    if found.is_none() {
        let help =
            did_you_mean(rule::meant(name), FailOn::ALL.map(FailOn::name), "it is one of deny, warn, note and never");
        walk.fault(value.span(), format!("`fail-on` cannot be `{name}`"), "", help);
    }
    found
}
