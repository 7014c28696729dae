//! The pages of the rules are true: they say what each rule does, and their examples are what it says.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use warplint::rules::{Group, Page, RULES, Rule};
use warplint::run::{Streams, run};

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
        let is_right = is_same && head.has_options != page.options.is_empty();
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
        let mut found: Vec<String> = examples.iter().filter_map(Example::complaint).collect();
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
    };
    let check = |_: &Rule, page: &Page| {
        let text: Vec<&str> = outside_blocks(page.body).collect();
        let text = text.join("\n");
        let quoted = text.split('`').skip(1).step_by(2).filter(|name| is_id(name) && !known(page, name));
        quoted.map(|name| format!("`{name}` is no rule, no group and no option of the page")).collect()
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

/// Input, the options and the configuration to lint it with, and what comes of it.
struct Example<'a> {
    args: Vec<&'a str>,
    config: Option<String>,
    /// The log of an earlier build, which the input is held against.
    before: Option<String>,
    /// A source, which may come with a log.
    source: Option<String>,
    input: Option<String>,
    expected: Vec<&'a str>,
}

/// The examples of a page: blocks of `ptxas`, `ptx` or `cuda`, each followed by one of `finding` unless it is `clean`. A block
/// of `toml` is the configuration for the next one, and one of `cuda` with another input behind it the source of that. One of
/// `ptxas,before` is the build that `baseline write` is given before all that follow.
fn examples(body: &str) -> Result<Vec<Example<'_>>, String> {
    let mut examples: Vec<Example> = Vec::new();
    // Whether the last block of input still wants its finding.
    let mut open = false;
    let mut config = None;
    let mut source: Option<String> = None;
    let mut before: Option<String> = None;
    let mut lines = body.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("~~~") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "~~~").collect();
        let mut words = info.split_whitespace();
        match words.next() {
            Some("toml") if !open => config = Some(block.join("\n")),
            Some("ptxas,before") if !open => before = Some(block.iter().map(|line| format!("{line}\n")).collect()),
            Some(kind @ ("cuda" | "cuda,clean")) if !open && source.is_none() => {
                let text = block.iter().map(|line| format!("{line}\n")).collect();
                if kind == "cuda" && !is_followed_by_finding(lines.clone()) {
                    source = Some(text);
                    continue;
                }
                let (args, config, source) = (words.collect(), config.take(), Some(text));
                examples.push(Example { args, config, before: None, source, input: None, expected: Vec::new() });
                open = kind == "cuda";
            }
            Some(kind @ ("ptxas" | "ptxas,clean" | "ptx" | "ptx,clean")) if !open => {
                let input = Some(block.iter().map(|line| format!("{line}\n")).collect());
                let (args, config, source) = (words.collect(), config.take(), source.take());
                examples.push(Example { args, config, before: before.clone(), source, input, expected: Vec::new() });
                open = !kind.ends_with(",clean");
            }
            Some("finding") if open => {
                examples.last_mut().ok_or("a finding without input")?.expected = block;
                open = false;
            }
            Some("finding") => return Err("a `finding` block does not follow a block of input".to_owned()),
            Some("ptxas" | "ptxas,clean" | "ptx" | "ptx,clean" | "cuda" | "cuda,clean") => {
                return Err("a block of input has no `finding` block".to_owned());
            }
            _ => {}
        }
    }
    if open { Err("the last block of input has no `finding` block".to_owned()) } else { Ok(examples) }
}

/// Whether the next block is what a lint says of the one before.
fn is_followed_by_finding<'a>(mut lines: impl Iterator<Item = &'a str>) -> bool {
    lines.find_map(|line| line.strip_prefix("~~~")).is_some_and(|info| info == "finding")
}

impl Example<'_> {
    /// What is wrong with it, if anything.
    fn complaint(&self) -> Option<String> {
        let actual = self.lint();
        (actual != self.expected).then(|| {
            format!(
                "linted with {:?}, this\n\n{}{}\nis expected to give\n\n    {}\n\nand gives\n\n    {}",
                self.args,
                self.source.as_deref().unwrap_or_default(),
                self.input.as_deref().unwrap_or_default(),
                self.expected.join("\n    "),
                actual.join("\n    ")
            )
        })
    }
}

impl Example<'_> {
    /// The findings of all rules as `-f short` prints them, without their places.
    fn lint(&self) -> Vec<String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = |name: &str, text: &str| -> OsString {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file for the example");
            path.into()
        };
        // No kernel of an example is declared in a source that lies around.
        let fixed = ["--passthrough", "none", "--source", "Cargo.toml"];
        let mut options: Vec<OsString> = fixed.iter().chain(&self.args).map(OsString::from).collect();
        match &self.config {
            Some(text) => options.extend(["--config".into(), file("example.toml", text)]),
            None => options.push("--isolated".into()),
        }
        if let Some(log) = &self.before {
            let baseline = folder.join("example.json");
            let _ = fs::remove_file(&baseline);
            options.extend(["--baseline".into(), baseline.into()]);
            let write = ["warplint", "baseline", "write", "-q"].iter().map(OsString::from);
            assert_eq!(run_with(write.chain(options.clone()).chain(["-".into()]).collect(), log), "");
        }
        let mut args: Vec<OsString> = ["warplint", "-f", "short"].iter().map(OsString::from).chain(options).collect();
        args.extend(self.source.as_ref().map(|text| file("example.cu", text)));
        args.extend(self.input.as_ref().map(|_| "-".into()));
        let report = run_with(args, self.input.as_deref().unwrap_or_default());
        // A message may name the file, which lies where the tests do.
        let report = report.replace(&format!("{}/", folder.display()), "");
        report.lines().map(without_place).map(str::to_owned).collect()
    }
}

/// What a run says, on both streams.
fn run_with(args: Vec<OsString>, input: &str) -> String {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    run(
        args,
        &mut Streams {
            stdin: &mut input.as_bytes(),
            stdin_is_terminal: false,
            stderr_is_terminal: false,
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: None,
        },
    );
    String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr)
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
