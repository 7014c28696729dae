//! SARIF 2.1.0, the part of it that code scanning reads (OASIS, Static Analysis Results Interchange Format).
//!
//! Every rule is listed, so that a result's rule is known also where this run did not break it. Written as it is made.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::excerpt::{self, Position};
use crate::finding::{Fact, Finding, Label, Level};
use crate::model::{Report, symbol};
use crate::rules::{Page, RULES, Rule};
use crate::settle::{Allowance, Origin, Settled, Verdict, fingerprint};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Name and version of what our fingerprints are made of.
const FINGERPRINT: &str = "warplint/v1";

/// What relative paths begin at.
const BASE: &str = "SRCROOT";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Text<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
    properties: BTreeMap<&'static str, Value>,
}

#[derive(Serialize)]
struct Text<'a> {
    text: std::borrow::Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<Physical>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<Logical>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Text<'static>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
    region: Region,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    uri: String,
    /// What a relative one is relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u64,
    end_line: u32,
    end_column: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logical {
    fully_qualified_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decorated_name: Option<String>,
    kind: &'static str,
}

#[derive(Serialize)]
struct Suppression<'a> {
    kind: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<&'a str>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
}

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = RULES.iter().map(|rule| descriptor(rule, &rule.page())).collect();
    let driver = json!({
        "name": "warplint",
        "version": env!("CARGO_PKG_VERSION"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    write!(out, "{{\n\"$schema\": \"{SCHEMA}\",\n\"version\": \"2.1.0\",\n\"runs\": [{{\n\"tool\": {{\"driver\": ")?;
    serde_json::to_writer(&mut *out, &driver).map_err(io::Error::from)?;
    // Where the folder lies on this machine is nobody's business, and whoever reads the report has it elsewhere.
    let bases =
        json!({BASE: {"description": {"text": "The root of the project, or the folder that warplint was run in."}}});
    write!(out, "}},\n\"originalUriBaseIds\": ")?;
    serde_json::to_writer(&mut *out, &bases).map_err(io::Error::from)?;
    // Columns count characters, as in every other format.
    write!(out, ",\n\"columnKind\": \"unicodeCodePoints\",\n\"results\": [")?;
    let mut separator = "\n";
    let lists = [(&verdict.settled, false), (&verdict.allowed, false), (&verdict.baselined, true)];
    for (one, is_known) in lists.into_iter().flat_map(|(list, is_known)| list.iter().map(move |one| (one, is_known))) {
        out.write_all(separator.as_bytes())?;
        let finding = verdict.finding(one);
        serde_json::to_writer(&mut *out, &outcome(verdict, one, &finding, is_known)).map_err(io::Error::from)?;
        separator = ",\n";
    }
    writeln!(out, "\n]\n}}]\n}}")
}

fn descriptor(rule: &Rule, page: &Page) -> Value {
    let mut descriptor = json!({
        "id": rule.id,
        "name": pascal(rule.id),
        "shortDescription": {"text": format!("{}.", page.summary)},
        "fullDescription": {"text": what_it_does(page.body)},
        "help": {"text": page.body, "markdown": page.body},
        "defaultConfiguration": {"enabled": page.level != Level::Allow, "level": level(page.level)},
        "properties": {"tags": [page.group.name()]},
    });
    if let Some(uri) = help_uri(env!("CARGO_PKG_REPOSITORY"), rule.id) {
        descriptor["helpUri"] = uri.into();
    }
    descriptor
}

/// What a page says of what the rule does, in as many paragraphs as fit.
fn what_it_does(body: &str) -> String {
    let section = body.trim_start().split_once('\n').map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default().trim();
    let mut said = String::new();
    for paragraph in section.split("\n\n") {
        let is_first = said.is_empty();
        if !is_first && said.len() + paragraph.len() + 2 > LONGEST {
            break;
        }
        said.push_str(if is_first { "" } else { "\n\n" });
        said.push_str(paragraph.trim());
    }
    said
}

/// Bytes of a description that GitHub shows (docs.github.com, "SARIF support for code scanning").
const LONGEST: usize = 1024;

/// Where the page of a rule is published, if the package says where its sources are.
fn help_uri(repository: &str, id: &str) -> Option<String> {
    let repository = repository.trim_end_matches('/');
    repository
        .starts_with("https://")
        .then(|| format!("{repository}/blob/v{}/rules/{id}.md", env!("CARGO_PKG_VERSION")))
}

/// `RegisterSpill` of `register-spill`.
fn pascal(id: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    id.split('-').map(word).collect()
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Note => "note",
        Level::Allow => "none",
    }
}

fn outcome<'a>(verdict: &'a Verdict<'_>, one: &Settled, finding: &'a Finding, is_known: bool) -> Outcome<'a> {
    let report = verdict.context.report;
    let rule = verdict.active(one).rule;
    let names = finding.kernel.map(|name| report.names.get(name));
    let logical = names.map(|name| {
        let raw = String::from_utf8_lossy(name).into_owned();
        match symbol::demangle(name) {
            Some(full) => Logical { fully_qualified_name: full, decorated_name: Some(raw), kind: "function" },
            None => Logical { fully_qualified_name: raw, decorated_name: None, kind: "function" },
        }
    });
    let physical = finding.label.as_ref().and_then(|label| physical(report, &excerpt::position(report, label)));
    let has_place = physical.is_some() || logical.is_some();
    let place = Location {
        id: None,
        physical_location: physical,
        logical_locations: logical.into_iter().collect(),
        message: None,
    };
    let text = match &finding.help {
        Some(help) => format!("{}\n\n{help}", finding.message).into(),
        None => finding.message.as_str().into(),
    };
    Outcome {
        rule_id: rule.id,
        rule_index: RULES.iter().position(|other| other.id == rule.id).unwrap_or_default(),
        level: level(if one.level == Level::Allow { verdict.active(one).level.max(Level::Note) } else { one.level }),
        message: Text { text },
        locations: if has_place { vec![place] } else { Vec::new() },
        related_locations: related(report, finding),
        partial_fingerprints: BTreeMap::from([(FINGERPRINT, fingerprint(report, rule.id, &one.hit, finding))]),
        suppressions: suppression(verdict, one).or(is_known.then_some(KNOWN)).into_iter().collect(),
        baseline_state: state(verdict, one, is_known),
        properties: properties(finding),
    }
}

fn related(report: &Report, finding: &Finding) -> Vec<Location> {
    let labels = finding.ptx.iter().chain(&finding.beside);
    let place = |(id, label): (usize, &Label)| {
        Some(Location {
            id: Some(id),
            physical_location: Some(physical(report, &excerpt::position(report, label))?),
            logical_locations: Vec::new(),
            message: Some(Text { text: label.text.clone().into() }),
        })
    };
    (1..).zip(labels).filter_map(place).collect()
}

/// None for what is no file, as standard input and the output of a build.
fn physical(report: &Report, at: &Position) -> Option<Physical> {
    if matches!(at.path.as_str(), "<stdin>" | "<build>") || at.line == 0 {
        return None;
    }
    let region = Region {
        start_line: at.line,
        start_column: at.column,
        end_line: at.line,
        end_column: at.end_column.max(at.column),
    };
    let uri = uri(&excerpt::in_project(report, &at.path));
    let uri_base_id = (!uri.starts_with("file:")).then_some(BASE);
    Some(Physical { artifact_location: Artifact { uri, uri_base_id }, region })
}

/// A path as the reference of RFC 3986 that it is: relative ones stay relative.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path).replace('\\', "/");
    let drive = path.as_bytes().get(1) == Some(&b':');
    let mut out = String::from(match path.starts_with('/') {
        true => "file://",
        false if drive => "file:///",
        false => "",
    });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            b':' if drive => out.push(':'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

fn suppression<'a>(verdict: &'a Verdict<'_>, one: &Settled) -> Option<Suppression<'a>> {
    if one.level != Level::Allow {
        return None;
    }
    let report = verdict.context.report;
    let allowance = verdict.allowance(one);
    let kind = if matches!(allowance, Some(Allowance::Comment(..))) { "inSource" } else { "external" };
    let physical = match allowance {
        Some(Allowance::Comment(quote, span) | Allowance::Entry(quote, span)) => {
            physical(report, &excerpt::position_of(report, quote, span))
        }
        Some(Allowance::Level(Origin::Config { file, line })) => {
            let at = Position {
                path: file.to_string(),
                line: *line,
                column: 1,
                end_column: 1,
                byte_start: None,
                byte_end: None,
            };
            physical(report, &at)
        }
        _ => None,
    };
    let location = physical.map(|physical| Location {
        id: None,
        physical_location: Some(physical),
        logical_locations: Vec::new(),
        message: None,
    });
    Some(Suppression { kind, status: "accepted", justification: verdict.reason(one), location })
}

/// What the baseline accepts is suppressed by it.
const KNOWN: Suppression<'static> =
    Suppression { kind: "external", status: "accepted", justification: Some("in the baseline"), location: None };

/// How a result stands to the baseline; nothing where there is none, or where a person allowed it, baseline or not.
fn state(verdict: &Verdict<'_>, one: &Settled, is_known: bool) -> Option<&'static str> {
    let is_held = verdict.context.against.is_some() && one.level != Level::Allow;
    is_held.then_some(if is_known { "unchanged" } else { "new" })
}

fn properties(finding: &Finding) -> BTreeMap<&'static str, Value> {
    let mut all: BTreeMap<&'static str, Value> =
        finding.facts.iter().map(|(name, fact)| (*name, value(fact))).collect();
    if let Some(arch) = finding.arch {
        all.insert("arch", arch.to_string().into());
    }
    if let Some(gpu) = &finding.gpu {
        all.insert("gpu", gpu.as_str().into());
    }
    if let Some(confidence) = finding.confidence {
        all.insert("confidence", confidence.into());
    }
    if finding.count > 1 {
        all.insert("count", finding.count.into());
    }
    all
}

fn value(fact: &Fact) -> Value {
    match fact {
        Fact::Count(count) => (*count).into(),
        Fact::Fraction(fraction) => (*fraction).into(),
        Fact::Word(word) => word.as_str().into(),
        Fact::Words(words) => words.clone().into(),
        Fact::Unknown => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_references_that_any_reader_resolves() {
        assert_eq!(uri("./src/a b.cu"), "src/a%20b.cu");
        assert_eq!(uri("/tmp/k#1.cu"), "file:///tmp/k%231.cu");
        assert_eq!(uri("C:\\k.cu"), "file:///C:/k.cu");
        assert_eq!(uri("a:b.cu"), "file:///a:b.cu");
        assert_eq!(uri("é.cu"), "%C3%A9.cu");
    }

    #[test]
    fn a_page_is_linked_to_where_the_package_says_that_it_is_published() {
        assert_eq!(help_uri("", "register-spill"), None);
        let uri = help_uri("https://example.org/warplint/", "register-spill").expect("a link");
        assert_eq!(
            uri,
            format!("https://example.org/warplint/blob/v{}/rules/register-spill.md", env!("CARGO_PKG_VERSION"))
        );
    }

    #[test]
    fn what_a_rule_does_is_what_its_page_says_first() {
        let said = |body: &str| what_it_does(body);
        assert_eq!(
            said("## What it does\n\nReports a\nthing.\n\nMore.\n\n## Why\n\nX\n"),
            "Reports a\nthing.\n\nMore."
        );
        let long = "y".repeat(LONGEST);
        assert_eq!(said(&format!("## What it does\n\nShort.\n\n{long}\n")), "Short.");
        for rule in RULES {
            let text = said(rule.page().body);
            assert!((20..=LONGEST).contains(&text.len()), "{} {}", rule.id, text.len());
        }
    }

    #[test]
    fn a_rule_has_a_name_as_sarif_wants_it() {
        assert_eq!(pascal("barrier-in-divergent-branch"), "BarrierInDivergentBranch");
    }
}
