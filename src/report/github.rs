//! Workflow commands, which GitHub Actions shows as annotations beside the changed lines.
//!
//! GitHub keeps ten annotations of each level from one step, the first it reads: so the worst come first, one for each
//! cause, and what is past the tenth follows as plain lines of the log.

use std::io::{self, Write};

use super::excerpt::{self, Position};
use super::short;
use crate::finding::{Finding, Level};
use crate::settle::{CauseGroup, Verdict};

/// Annotations of one level that GitHub keeps from a step (docs.github.com, "Limitations" of workflow commands).
const MOST: usize = 10;

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut annotated = [0_usize; 4];
    let mut left_over = Vec::new();
    for group in verdict.groups() {
        let level = verdict.settled[group.lead].level;
        let count = &mut annotated[level as usize];
        if *count == MOST {
            left_over.push(group);
            continue;
        }
        *count += 1;
        annotation(verdict, group, out)?;
    }
    if left_over.is_empty() {
        return Ok(());
    }
    writeln!(out, "GitHub shows ten annotations of each level; {} more:", left_over.len())?;
    for group in left_over {
        short::line(verdict, &verdict.settled[group.lead], out)?;
    }
    Ok(())
}

fn annotation(verdict: &Verdict<'_>, group: &CauseGroup, out: &mut dyn Write) -> io::Result<()> {
    let one = &verdict.settled[group.lead];
    let finding = verdict.finding(one);
    let command = match one.level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Note | Level::Allow => "notice",
    };
    write!(out, "::{command} ")?;
    let report = verdict.context.report;
    let at = finding.label.as_ref().map(|label| excerpt::position(report, label));
    // What was piped in is no file of the repository.
    if let Some(at) = at.filter(|at| at.path != "<stdin>") {
        place(&Position { path: excerpt::in_project(report, &at.path), ..at }, out)?;
    }
    let title = format!("warplint: {}", verdict.active(one).rule.id);
    writeln!(out, "title={}::{}", property(&title), data(&message(&finding, group.others)))
}

fn place(at: &Position, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "file={},line={},col={},", property(&at.path), at.line, at.column)?;
    if at.end_column > at.column {
        write!(out, "endColumn={},", at.end_column)?;
    }
    Ok(())
}

fn message(finding: &Finding, others: usize) -> String {
    let mut message = finding.message.clone();
    match others {
        0 => {}
        1 => message.push_str(" (and 1 more of the same cause)"),
        _ => message.push_str(&format!(" (and {others} more of the same cause)")),
    }
    if let Some(help) = &finding.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    message
}

/// A message as a workflow command has it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_or_a_property_is_escaped() {
        assert_eq!(data("50 %\r\nhelp: a, b"), "50 %25%0D%0Ahelp: a, b");
        assert_eq!(property("C:\\a,b.cu::error"), "C%3A\\a%2Cb.cu%3A%3Aerror");
    }
}
