//! Walking a TOML tree by hand: every value is asked for its kind, and what is wrong is noted with its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::keys::Key as KnownKey;
use super::problem::Fault;
use crate::settle::did_you_mean;

pub(super) type Key<'t> = Spanned<DeString<'t>>;
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// The text that is walked, and what was found to be wrong with it.
pub(super) struct Walk<'t> {
    pub(super) text: &'t str,
    pub(super) faults: Vec<Fault>,
}

/// What a table of the configuration may hold.
pub(super) struct Keys {
    /// How a message calls the table: `of a [[kernel]] entry`.
    pub(super) of: &'static str,
    pub(super) known: &'static [KnownKey],
}

impl Walk<'_> {
    /// Notes a fault.
    pub(super) fn fault(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.faults.push(Fault { span, message: message.into(), label: label.into(), help: help.into() });
    }

    /// Notes that `value`, which is called `what`, is of the wrong kind.
    pub(super) fn wrong_kind(&mut self, what: &str, wanted: &str, value: &Value<'_>) {
        let kind = kind(value.get_ref());
        self.fault(value.span(), format!("{what} must be {wanted}"), format!("this is {kind}"), None);
    }

    /// Notes that a table has no such key.
    pub(super) fn unknown_key(&mut self, key: &Key<'_>, keys: &Keys) {
        let name = key.get_ref().as_ref();
        let known: Vec<&str> = keys.known.iter().map(|key| key.name).collect();
        let all = format!("the keys {} are {}", keys.of, known.join(", "));
        let help = did_you_mean(name, known, &all);
        self.fault(key.span(), format!("unknown key `{name}`"), "no key has this name", help);
    }

    /// The text of a string.
    pub(super) fn string<'v>(&mut self, what: &str, wanted: &str, value: &'v Value<'_>) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => {
                self.wrong_kind(what, wanted, value);
                None
            }
        }
    }

    /// Whether a switch is on.
    pub(super) fn flag(&mut self, what: &str, value: &Value<'_>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(yes) => Some(*yes),
            _ => {
                self.wrong_kind(what, "true or false", value);
                None
            }
        }
    }

    /// A whole number.
    pub(super) fn count(&mut self, what: &str, value: &Value<'_>) -> Option<u32> {
        let DeValue::Integer(number) = value.get_ref() else {
            self.wrong_kind(what, "a whole number, 0 or more", value);
            return None;
        };
        let count = integer(number).and_then(|number| u32::try_from(number).ok());
        if count.is_none() {
            let message = format!("{what} must be a whole number from 0 to {}", u32::MAX);
            self.fault(value.span(), message, "out of range", None);
        }
        count
    }

    /// A number from 0 to 1.
    pub(super) fn share(&mut self, what: &str, value: &Value<'_>) -> Option<f64> {
        const WANTED: &str = "a number from 0 to 1";
        let number: Option<f64> = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => {
                self.wrong_kind(what, WANTED, value);
                return None;
            }
        };
        let share = number.filter(|number| (0.0..=1.0).contains(number));
        if share.is_none() {
            self.fault(value.span(), format!("{what} must be {WANTED}"), "out of range", None);
        }
        share
    }

    /// One string, or a list of them; `wanted` is what each has to be.
    pub(super) fn strings(&mut self, what: &str, wanted: &str, value: &Value<'_>) -> Vec<Spanned<String>> {
        let items = match value.get_ref() {
            DeValue::String(text) => return vec![Spanned::new(value.span(), text.clone().into_owned())],
            _ => self.list(what, &format!("{wanted}, or a list of them"), value),
        };
        let mut strings: Vec<Spanned<String>> = Vec::new();
        for item in items {
            let Some(text) = self.string(&format!("each item of {what}"), wanted, item) else { continue };
            strings.push(Spanned::new(item.span(), text.to_owned()));
        }
        strings
    }

    /// The items of a list.
    pub(super) fn list<'v, 't>(&mut self, what: &str, wanted: &str, value: &'v Value<'t>) -> &'v [Value<'t>] {
        match value.get_ref() {
            DeValue::Array(items) => items,
            _ => {
                self.wrong_kind(what, wanted, value);
                &[]
            }
        }
    }

    /// The number of the line that byte `at` is on, from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        u32::try_from(1 + memchr::memchr_iter(b'\n', before).count()).unwrap_or(u32::MAX)
    }
}

/// The entries of a table in the order in which they are written.
pub(super) fn in_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<(&'v Key<'t>, &'v Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The value of a whole number, if it is one that anything here can be.
pub(super) fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}
