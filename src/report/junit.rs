//! JUnit XML, which Jenkins, Azure and GitLab read as test results: a finding that fails the run is a failed test, and a run
//! without such findings has one that passed.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::excerpt;
use crate::finding::Finding;
use crate::model::symbol;
use crate::settle::{FailOn, Settled, Verdict};

pub(super) fn render(verdict: &Verdict<'_>, fail_on: FailOn, out: &mut dyn Write) -> io::Result<()> {
    let mut suite = TestSuite::new("warplint");
    for one in &verdict.settled {
        suite.add_test_case(case(verdict, one, fail_on.fails(Some(one.level)), &verdict.finding(one)));
    }
    if !fail_on.fails(verdict.loudest()) {
        let mut passed = TestCase::new("no findings", TestCaseStatus::success());
        passed.set_classname("warplint");
        suite.add_test_case(passed);
    }
    let mut report = Report::new("warplint");
    report.add_test_suite(suite);
    let text = report.to_string().map_err(io::Error::other)?;
    // No character that XML can hold.
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    // Jenkins' schema has a count of skipped tests at each suite, and none at the root.
    const COUNT: &str = " skipped=\"0\"";
    let root = text.find("<testsuite ").unwrap_or(text.len());
    let (before, after) = match text[..root].find(COUNT) {
        Some(at) => (&text[..at], &text[at + COUNT.len()..]),
        None => (text.as_str(), ""),
    };
    out.write_all(before.as_bytes())?;
    out.write_all(after.as_bytes())
}

fn case(verdict: &Verdict<'_>, one: &Settled, fails: bool, finding: &Finding) -> TestCase {
    let rule = verdict.active(one).rule.id;
    let report = verdict.context.report;
    let position = finding.label.as_ref().map(|label| excerpt::position(report, label));
    let place = position.as_ref().map(|at| format!("{}:{}:{}", at.path, at.line, at.column));
    let kernel = finding.kernel.map(|name| symbol::short(report.names.get(name)));
    let arch = finding.arch.map(|arch| arch.to_string());
    let subject: Vec<String> = [kernel, arch].into_iter().flatten().collect();
    let mut status =
        if fails { TestCaseStatus::non_success(NonSuccessKind::Failure) } else { TestCaseStatus::success() };
    let text = [Some(finding.message.clone()), place.clone(), finding.help.clone().map(|help| format!("help: {help}"))];
    let text = text.into_iter().flatten().collect::<Vec<_>>().join("\n");
    if let TestCaseStatus::NonSuccess { .. } = status {
        status.set_message(finding.message.clone()).set_type(one.level.name()).set_description(text.clone());
    }
    let name = [vec![rule.to_owned()], subject, place.into_iter().collect()].concat().join(" ");
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("warplint.{rule}"));
    if !fails {
        case.set_system_out(text);
    }
    case
}
