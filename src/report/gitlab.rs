//! The Code Quality report of GitLab, which it shows in merge requests.

use std::io::{self, Write};

use hashbrown::HashMap;
use serde::Serialize;

use super::excerpt;
use crate::finding::{Finding, Level};
use crate::settle::{Settled, Verdict, fingerprint};

#[derive(Serialize)]
struct Issue<'a> {
    description: &'a str,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
}

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    // GitLab drops issues whose fingerprint it has seen.
    let mut seen: HashMap<String, u32> = HashMap::new();
    out.write_all(b"[")?;
    let mut separator = "\n  ";
    for one in &verdict.settled {
        let finding = verdict.finding(one);
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, &issue(verdict, one, &finding, &mut seen)).map_err(io::Error::from)?;
        separator = ",\n  ";
    }
    let end: &[u8] = if separator.starts_with(',') { b"\n]\n" } else { b"]\n" };
    out.write_all(end)
}

fn issue<'a>(verdict: &Verdict<'_>, one: &Settled, finding: &'a Finding, seen: &mut HashMap<String, u32>) -> Issue<'a> {
    let report = verdict.context.report;
    let rule = verdict.active(one).rule.id;
    let own = fingerprint(report, rule, &one.hit, finding);
    let times = seen.entry(own.clone()).or_insert(0);
    *times += 1;
    let fingerprint = if *times == 1 { own } else { format!("{own}-{times}") };
    let position = finding.label.as_ref().map(|label| excerpt::position(report, label));
    // An issue has to have a place: what is of the whole run stands at the beginning of the first input.
    let first = || report.inputs.first().map_or_else(|| "-".to_owned(), |input| input.name.clone());
    let (path, begin) = position.map_or_else(|| (first(), 1), |at| (at.path, at.line.max(1)));
    Issue {
        description: &finding.message,
        check_name: rule,
        fingerprint,
        severity: match one.level {
            Level::Deny => "critical",
            Level::Warn => "major",
            Level::Note | Level::Allow => "info",
        },
        location: Location { path: excerpt::in_project(report, &path), lines: Lines { begin } },
    }
}
