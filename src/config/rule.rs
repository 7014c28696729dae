//! `[rules]`: levels of rules and groups, and options of rules.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::walk::{Key, Value, Walk, in_order, integer, kind};
use crate::finding::Level;
use crate::model::symbol;
use crate::rules::{Page, Rule};
use crate::settle::{Target, did_you_mean};

/// What the file says of one rule or group.
#[derive(Debug, Clone)]
pub(super) struct RuleEntry {
    pub(super) target: Target,
    pub(super) level: Option<Spanned<Level>>,
    pub(super) options: Vec<(Spanned<String>, toml::Value)>,
}

/// Reads the table of rules.
pub(super) fn read(walk: &mut Walk<'_>, table: &DeTable<'_>) -> Vec<RuleEntry> {
    in_order(table).into_iter().filter_map(|(key, value)| entry(walk, key, value)).collect()
}

/// The rule or group that `name` is.
pub(super) fn target(walk: &mut Walk<'_>, name: &str, span: Range<usize>) -> Option<Target> {
    match Target::named(name) {
        Ok(target) => Some(target),
        Err(unknown) => {
            walk.fault(span, unknown.to_string(), "no rule has this name", unknown.help);
            None
        }
    }
}

fn entry(walk: &mut Walk<'_>, key: &Key<'_>, value: &Value<'_>) -> Option<RuleEntry> {
    let name = key.get_ref().as_ref();
    let what = format!("`{name}`");
    let target = target(walk, name, key.span());
    let entry = |level, options| target.map(|target| RuleEntry { target, level, options });
    match (value.get_ref(), target) {
        (DeValue::Table(_), Some(Target::Group(group))) => {
            let help =
                format!("options belong to a rule: `{} = \"warn\"` sets the level of all its rules", group.name());
            walk.fault(value.span(), format!("{what} is a group, which takes only a level"), "a table", help);
            None
        }
        (DeValue::Table(table), target) => {
            let rule = target.and_then(|target| match target {
                Target::Rule(id) => Rule::named(id),
                Target::Group(_) => None,
            });
            let (level, options) = settings(walk, &what, rule, table);
            entry(level, options)
        }
        (DeValue::String(_), _) => entry(level(walk, &what, value), Vec::new()),
        _ => {
            walk.wrong_kind(&what, "a level, or a table of a level and options", value);
            None
        }
    }
}

fn level(walk: &mut Walk<'_>, what: &str, value: &Value<'_>) -> Option<Spanned<Level>> {
    const LEVELS: [&str; 4] = ["allow", "note", "warn", "deny"];
    let name = walk.string(&format!("the level of {what}"), "a string", value)?;
    let level = Level::named(name);
    if level.is_none() {
        let help = did_you_mean(meant(name), LEVELS, "the levels are allow, note, warn and deny");
        walk.fault(value.span(), format!("`{name}` is no level"), "", help);
    }
    level.map(|level| Spanned::new(value.span(), level))
}

/// What other tools call a level.
pub(super) fn meant(name: &str) -> &str {
    match name {
        "error" => "deny",
        "off" | "ignore" => "allow",
        "info" => "note",
        other => other,
    }
}

type Options = Vec<(Spanned<String>, toml::Value)>;

fn settings(
    walk: &mut Walk<'_>,
    what: &str,
    rule: Option<&'static Rule>,
    table: &DeTable<'_>,
) -> (Option<Spanned<Level>>, Options) {
    let mut set = None;
    let mut options = Vec::new();
    let page = rule.map(Rule::page);
    for (key, value) in in_order(table) {
        let name = key.get_ref().as_ref();
        if name == "level" {
            set = level(walk, what, value);
            continue;
        }
        // Of a rule that does not exist nothing can be said about options.
        let (Some(rule), Some(page)) = (rule, &page) else { continue };
        if !page.options.contains_key(name) {
            unknown_option(walk, rule, page, key);
        } else if let Some(value) = option(walk, rule, page, name, value) {
            options.push((Spanned::new(key.span(), name.to_owned()), value));
        }
    }
    (set, options)
}

fn unknown_option(walk: &mut Walk<'_>, rule: &Rule, page: &Page, key: &Key<'_>) {
    let name = key.get_ref().as_ref();
    let known: Vec<&str> = page.options.keys().map(String::as_str).chain(["level"]).collect();
    let all = match page.options.is_empty() {
        true => format!("`{}` has no options, only a level", rule.id),
        false => format!("`warplint explain {}` lists its options", rule.id),
    };
    let help = did_you_mean(name, known, &all);
    walk.fault(key.span(), format!("`{}` has no option `{name}`", rule.id), "no option has this name", help);
}

/// The value of an option, when the rule takes it.
fn option(walk: &mut Walk<'_>, rule: &Rule, page: &Page, name: &str, value: &Value<'_>) -> Option<toml::Value> {
    let setting = &page.options[name];
    let what = format!("`{name}`");
    let given = match (&setting.default, value.get_ref()) {
        (toml::Value::Integer(_), DeValue::Integer(number)) => integer(number).map(toml::Value::Integer),
        (toml::Value::Float(_), DeValue::Integer(number)) => number.as_str().parse().ok().map(toml::Value::Float),
        (toml::Value::Float(_), DeValue::Float(number)) => number.as_str().parse().ok().map(toml::Value::Float),
        (toml::Value::Boolean(_), DeValue::Boolean(yes)) => Some(toml::Value::Boolean(*yes)),
        (toml::Value::String(_), DeValue::String(text)) => Some(toml::Value::String(text.clone().into_owned())),
        (default, given) => {
            let wanted = wanted(default);
            let label = format!("this is {}", kind(given));
            walk.fault(value.span(), format!("{what} must be {wanted}"), label, setting.about.clone());
            return None;
        }
    };
    // All fractions among the options are shares.
    let fits = given.filter(|value| value.as_float().is_none_or(|share| (0.0..=1.0).contains(&share)));
    let fits = fits.filter(|value| {
        let mut options = page.defaults();
        options.insert(name.to_owned(), value.clone());
        rule.arm(options).is_ok()
    });
    if fits.is_none() {
        let message = format!("{what} must be {}", range(&setting.default));
        walk.fault(value.span(), message, "out of range", symbol::printable(&setting.about).into_owned());
    }
    fits
}

/// What an option of the right kind can be.
fn range(default: &toml::Value) -> String {
    match default {
        toml::Value::Integer(_) => format!("a whole number from 0 to {}", u32::MAX),
        other => wanted(other).to_owned(),
    }
}

fn wanted(default: &toml::Value) -> &'static str {
    match default {
        toml::Value::Integer(_) => "a whole number, 0 or more",
        toml::Value::Float(_) => "a number from 0 to 1",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::String(_) => "a string",
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => "of the kind that its page shows",
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::RULES;

    #[test]
    fn whole_numbers_of_all_options_end_where_the_message_says() {
        for rule in RULES {
            let page = rule.page();
            for (name, _) in page.options.iter().filter(|(_, setting)| setting.default.is_integer()) {
                let arms = |number: i64| {
                    let mut options = page.defaults();
                    options.insert(name.clone(), toml::Value::Integer(number));
                    rule.arm(options).is_ok()
                };
                let most = i64::from(u32::MAX);
                assert!(arms(0) && arms(most) && !arms(most + 1) && !arms(-1), "{} {name}", rule.id);
            }
        }
    }
}
