//! One line a finding, for editors and grep: `path:line:col: level[rule] message`.

use std::io::{self, Write};

use super::{excerpt, wire};
use crate::finding::Level;
use crate::settle::{Settled, Verdict};

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    verdict.settled.iter().try_for_each(|one| line(verdict, one, out))
}

/// The line of one finding.
pub(super) fn line(verdict: &Verdict<'_>, one: &Settled, out: &mut dyn Write) -> io::Result<()> {
    let finding = verdict.finding(one);
    if let Some(label) = &finding.label {
        let position = excerpt::position(verdict.context.report, label);
        write!(out, "{}:{}:{}: ", wire::first(&position.path), position.line, position.column)?;
    }
    let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
    writeln!(out, "{}[{}] {}{times}", shown(one.level), verdict.active(one).rule.id, finding.message)
}

/// A level as people see it.
pub(super) fn shown(level: Level) -> &'static str {
    match level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Note | Level::Allow => "note",
    }
}
