//! `[[kernel]]`: what only the host code knows of the kernels of one name, and what is allowed for them.

use std::ops::Range;

use globset::Glob;
use hashbrown::HashMap;
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use super::walk::{Keys, Value, Walk, in_order, integer};
use super::{keys, rule};
use crate::analyse::Limit;
use crate::model::{BlockSize, BlockSizeError, Bytes, SizeError, parse_size};
use crate::pattern;
use crate::settle::{Allow, Target};

/// One entry.
#[derive(Debug, Clone)]
pub(super) struct KernelEntry {
    pub(super) name: Spanned<String>,
    pub(super) glob: Glob,
    pub(super) block: Option<BlockSize>,
    pub(super) dynamic_shared: Option<Bytes>,
    /// What the kernels may cost, each with its key and value.
    pub(super) budgets: Vec<Spanned<Limit>>,
    pub(super) allow: Allow,
    /// Where the list of what is allowed stands, if it is not empty.
    pub(super) allow_at: Option<Range<usize>>,
}

const KEYS: Keys = Keys { of: "of a [[kernel]] entry", known: keys::KERNEL };

/// Reads all entries.
pub(super) fn read(walk: &mut Walk<'_>, value: &Value<'_>) -> Vec<KernelEntry> {
    if let DeValue::Table(_) = value.get_ref() {
        let help = "write it as `[[kernel]]`, once for each name".to_owned();
        walk.fault(value.span(), "`kernel` must be a list of tables", "this is a single table", help);
        return Vec::new();
    }
    let mut entries: Vec<KernelEntry> = Vec::new();
    let mut first: HashMap<String, usize> = HashMap::new();
    for value in walk.list("`kernel`", "a list of tables, each written as [[kernel]]", value) {
        let Some(entry) = entry(walk, value) else { continue };
        let start = entry.name.span().start;
        let known = *first.entry(entry.name.get_ref().clone()).or_insert(start);
        if known != start {
            let line = walk.line(known);
            let message = format!("a second entry for `{}`", entry.name.get_ref());
            walk.fault(entry.name.span(), message, format!("the first is on line {line}"), "join them".to_owned());
        }
        entries.push(entry);
    }
    entries
}

fn entry(walk: &mut Walk<'_>, value: &Value<'_>) -> Option<KernelEntry> {
    let DeValue::Table(table) = value.get_ref() else {
        walk.wrong_kind("each item of `kernel`", "a table", value);
        return None;
    };
    let mut named = None;
    let mut named_at_all = false;
    let (mut block, mut dynamic_shared, mut allow, mut allow_at) = (None, None, Allow::default(), None);
    let mut budgets = Vec::new();
    for (key, value) in in_order(table) {
        let name_of_key = key.get_ref().as_ref();
        if Limit::is_key(name_of_key) {
            let span = key.span().start..value.span().end;
            budgets.extend(limit(walk, name_of_key, value).map(|limit| Spanned::new(span, limit)));
            continue;
        }
        match name_of_key {
            "name" => (named, named_at_all) = (name(walk, value), true),
            "block" => block = block_size(walk, value),
            "dynamic-shared" => dynamic_shared = size(walk, name_of_key, value),
            "allow" => {
                allow.targets = targets(walk, value);
                allow_at = Some(value.span()).filter(|_| !allow.targets.is_empty());
            }
            "reason" => allow.reason = walk.string("`reason`", "a string", value).map(str::to_owned),
            _ => walk.unknown_key(key, &KEYS),
        }
    }
    if !named_at_all {
        let help = "`name` is a glob on the mangled, demangled or short name: name = \"gemm_*\"".to_owned();
        walk.fault(value.span(), "this [[kernel]] entry has no `name`", "of which kernels?", help);
    }
    let (name, glob) = named?;
    Some(KernelEntry { name, glob, block, dynamic_shared, budgets, allow, allow_at })
}

/// The budget that `key` sets.
fn limit(walk: &mut Walk<'_>, key: &str, value: &Value<'_>) -> Option<Limit> {
    match key {
        "max-registers" => walk.count(&format!("`{key}`"), value).map(Limit::Registers),
        "max-spill-bytes" => size(walk, key, value).map(Limit::Spill),
        "max-stack-bytes" => size(walk, key, value).map(Limit::Stack),
        "max-shared-bytes" => size(walk, key, value).map(Limit::Shared),
        _ => walk.share(&format!("`{key}`"), value).map(Limit::Occupancy),
    }
}

fn name(walk: &mut Walk<'_>, value: &Value<'_>) -> Option<(Spanned<String>, Glob)> {
    let text = walk.string("`name`", "a string", value)?;
    match pattern::glob(text) {
        Ok(_) if text.is_empty() => {
            walk.fault(value.span(), "an empty `name` matches no kernel", "", "`*` is every kernel".to_owned());
            None
        }
        Ok(glob) => Some((Spanned::new(value.span(), text.to_owned()), glob)),
        Err(reason) => {
            let help = "`*` stands for anything, `?` for one character, `[[]` for a bracket as such".to_owned();
            walk.fault(value.span(), format!("`{text}` is no pattern"), reason, help);
            None
        }
    }
}

/// `256`, `[16, 16]` or `"16x16"`.
fn block_size(walk: &mut Walk<'_>, value: &Value<'_>) -> Option<BlockSize> {
    const WANTED: &str = "a number of threads, a list of one to three, or a string such as \"16x16\"";
    let size = match value.get_ref() {
        DeValue::Integer(number) => dimension(number).and_then(|threads| BlockSize::new(threads, 1, 1)),
        DeValue::String(text) => text.parse(),
        DeValue::Array(items) if (1..=3).contains(&items.len()) => {
            let mut sizes = [1; 3];
            for (size, item) in sizes.iter_mut().zip(items.iter()) {
                let DeValue::Integer(number) = item.get_ref() else {
                    walk.wrong_kind("each dimension of `block`", "a whole number", item);
                    return None;
                };
                *size = checked(walk, dimension(number), item.span())?;
            }
            BlockSize::new(sizes[0], sizes[1], sizes[2])
        }
        _ => {
            walk.wrong_kind("`block`", WANTED, value);
            return None;
        }
    };
    checked(walk, size, value.span())
}

/// A dimension of a block as written.
fn dimension(number: &DeInteger<'_>) -> Result<u32, BlockSizeError> {
    // Less than nothing is refused in the words for nothing.
    let size = integer(number).and_then(|number| u32::try_from(number.max(0)).ok());
    size.ok_or_else(|| BlockSizeError::TooLarge(number.to_string()))
}

fn size(walk: &mut Walk<'_>, key: &str, value: &Value<'_>) -> Option<Bytes> {
    let size = match value.get_ref() {
        DeValue::Integer(number) if integer(number).is_some_and(|number| number < 0) => parse_size(number.as_str()),
        DeValue::Integer(number) => match integer(number) {
            Some(bytes) => parse_size(&bytes.to_string()),
            None => Err(SizeError::TooLarge(number.to_string())),
        },
        DeValue::String(text) => parse_size(text),
        _ => {
            walk.wrong_kind(&format!("`{key}`"), "a number of bytes, or a string such as \"48KiB\"", value);
            return None;
        }
    };
    checked(walk, size, value.span())
}

fn checked<T, E: ToString>(walk: &mut Walk<'_>, result: Result<T, E>, span: Range<usize>) -> Option<T> {
    result.map_err(|error| walk.fault(span, error.to_string(), "", None)).ok()
}

fn targets(walk: &mut Walk<'_>, value: &Value<'_>) -> Vec<Target> {
    let mut targets = Vec::new();
    for item in walk.list("`allow`", "a list of rules and groups", value) {
        let Some(name) = walk.string("each item of `allow`", "the name of a rule or group", item) else { continue };
        let Some(target) = rule::target(walk, name, item.span()) else { continue };
        if targets.contains(&target) {
            walk.fault(item.span(), format!("`{name}` stands twice in `allow`"), "once is enough", None);
        }
        targets.push(target);
    }
    targets
}
