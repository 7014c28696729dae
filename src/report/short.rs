//! One line a finding, for editors and grep: `path:line:col: level[rule] message`.

use std::io::{self, Write};

use super::excerpt;
use crate::finding::Level;
use crate::settle::Verdict;

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    for one in &verdict.settled {
        let finding = verdict.finding(one);
        if let Some(label) = &finding.label {
            let position = excerpt::position(verdict.context.report, label);
            write!(out, "{}:{}:{}: ", position.path, position.line, position.column)?;
        }
        let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
        writeln!(out, "{}[{}] {}{times}", shown(one.level), verdict.active(one).rule.id, finding.message)?;
    }
    Ok(())
}

/// A level as people see it.
fn shown(level: Level) -> &'static str {
    match level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Note | Level::Allow => "note",
    }
}
