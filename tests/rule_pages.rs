//! The pages of the rules are true: they say what each rule does, and their examples are what it says.

mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use warplint::rules::{Group, Page, RULES, Rule};

use pages::{Example, examples};

const HEADINGS: [&str; 5] =
    ["## What it does", "## Why it matters", "## How to fix it", "## When to allow it", "## Example"];

/// Longest summary, in characters.
const SUMMARY: usize = 72;

/// Fails with every complaint at once.
fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n\n{}\n", complaints.join("\n\n"));
}

fn complaints_of(each: impl Fn(&'static Rule, &Page) -> Vec<String>) -> Vec<String> {
    RULES
        .iter()
        .flat_map(|rule| each(rule, &rule.page()).into_iter().map(move |text| format!("rules/{}.md: {text}", rule.id)))
        .collect()
}

#[test]
fn every_rule_has_a_page_and_every_page_a_rule_and_the_rules_are_sorted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let pages: BTreeSet<String> = fs::read_dir(folder)
        .expect("the folder of pages")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|name| name != "_template")
        .collect();
    let rows: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let rules: BTreeSet<String> = rows.iter().map(|id| (*id).to_owned()).collect();
    let orphans: Vec<&String> = pages.difference(&rules).collect();
    assert!(orphans.is_empty(), "pages without a row in RULES: {orphans:?}");
    // A row without a page does not compile; a row whose page has another name would not be in `pages`.
    assert_eq!(pages, rules);
    assert!(rows.is_sorted(), "RULES is not in alphabetical order: {rows:?}");
}

#[test]
fn every_page_has_a_short_summary_and_the_five_headings() {
    let check = |_: &Rule, page: &Page| {
        let mut found = Vec::new();
        let headings: Vec<&str> = outside_blocks(page.body).filter(|line| line.starts_with('#')).collect();
        if headings != HEADINGS {
            found.push(format!("headings are {headings:?}, not {HEADINGS:?}"));
        }
        let length = page.summary.chars().count();
        if length > SUMMARY {
            found.push(format!("the summary has {length} characters, more than {SUMMARY}"));
        }
        if page.summary.ends_with('.') {
            found.push("the summary ends with a full stop".to_owned());
        }
        found
    };
    no_complaints(&complaints_of(check));
}

#[test]
fn the_head_of_a_page_says_what_the_page_says() {
    no_complaints(&complaints_of(|rule, page| {
        let head = rule.head();
        let is_same = (head.level, head.basis, head.group) == (page.level, page.basis, page.group);
        let is_right = is_same && head.defaults == page.defaults();
        if is_right { Vec::new() } else { vec![format!("{}: read as {head:?}", rule.id)] }
    }));
}

#[test]
fn the_options_of_a_page_are_those_of_its_rule() {
    let check = |rule: &'static Rule, page: &Page| {
        let mut found = Vec::new();
        if let Err(error) = rule.arm(page.defaults()) {
            found.push(format!("the rule refuses the defaults: {error}"));
        }
        for name in page.options.keys() {
            let mut without = page.defaults();
            without.remove(name);
            if rule.arm(without).is_ok() {
                found.push(format!("the rule does without the option `{name}`"));
            }
        }
        let mut unknown = page.defaults();
        unknown.insert("no-such-option".to_owned(), toml::Value::Boolean(true));
        if rule.arm(unknown).is_ok() {
            found.push("the rule accepts an option that it does not have".to_owned());
        }
        found
    };
    no_complaints(&complaints_of(check));
}

#[test]
fn the_examples_of_a_page_are_what_a_lint_says() {
    let check = |rule: &Rule, page: &Page| {
        let examples = match examples(page.body) {
            Ok(examples) => examples,
            Err(complaint) => return vec![complaint],
        };
        let mark = format!("[{}] ", rule.id);
        let mut found: Vec<String> = examples.iter().filter_map(complaint).collect();
        if !examples.iter().any(|example| example.expected.iter().any(|line| line.contains(&mark))) {
            found.push("no example shows a finding of the rule".to_owned());
        }
        found
    };
    no_complaints(&complaints_of(check));
}

#[test]
fn a_page_cites_rules_that_exist() {
    let known = |page: &Page, name: &str| {
        Rule::named(name).is_some()
            || Group::ALL.iter().any(|group| group.name() == name)
            || page.options.contains_key(name)
            || warplint::config::key_names().any(|key| key == name)
    };
    let check = |_: &Rule, page: &Page| {
        let text: Vec<&str> = outside_blocks(page.body).collect();
        let text = text.join("\n");
        let quoted = text.split('`').skip(1).step_by(2).filter(|name| is_id(name) && !known(page, name));
        quoted
            .map(|name| format!("`{name}` is no rule, no group, no option of the page and no key of a configuration"))
            .collect()
    };
    no_complaints(&complaints_of(check));
}

/// Lower-case words joined by hyphens.
fn is_id(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    text.contains('-') && text.split('-').all(is_word)
}

/// The lines of prose.
fn outside_blocks(body: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    body.lines().filter(move |line| {
        let fence = line.starts_with("~~~") || line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// What is wrong with an example, if anything.
fn complaint(example: &Example<'_>) -> Option<String> {
    let report = example.report("short", "rule-pages");
    let actual: Vec<&str> = report.lines().map(without_place).collect();
    (actual != example.expected).then(|| {
        format!(
            "linted with {:?}, this\n\n{}{}\nis expected to give\n\n    {}\n\nand gives\n\n    {}",
            example.args,
            example.source.as_deref().unwrap_or_default(),
            example.input.as_deref().unwrap_or_default(),
            example.expected.join("\n    "),
            actual.join("\n    ")
        )
    })
}

/// A line without `<stdin>:3:17: `.
fn without_place(line: &str) -> &str {
    match line.split_once(": ") {
        Some((place, rest)) if ["<stdin>:", "example.toml:", "example.cu:"].iter().any(|one| place.contains(one)) => {
            rest
        }
        _ => line,
    }
}
