//! One row a finding, for spreadsheets and scripts (RFC 4180).

use std::io::{self, Write};

use super::{excerpt, wire};
use crate::model::symbol;
use crate::settle::{Settled, Verdict};

pub(super) fn render(verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "level,rule,path,line,column,kernel,demangled,arch,gpu,count,status,message,help")?;
    for one in &verdict.settled {
        row(verdict, one, "shown", out)?;
    }
    for one in &verdict.allowed {
        row(verdict, one, "allowed", out)?;
    }
    for one in &verdict.baselined {
        row(verdict, one, "baselined", out)?;
    }
    Ok(())
}

fn row(verdict: &Verdict<'_>, one: &Settled, status: &str, out: &mut dyn Write) -> io::Result<()> {
    let report = verdict.context.report;
    let finding = verdict.finding(one);
    let position = finding.label.as_ref().map(|label| excerpt::position(report, label));
    let name = finding.kernel.map(|name| report.names.get(name));
    let printed = name.map(String::from_utf8_lossy).unwrap_or_default();
    let (line, column) =
        position.as_ref().map_or_else(Default::default, |at| (at.line.to_string(), at.column.to_string()));
    let cells = [
        one.level.name(),
        verdict.active(one).rule.id,
        &position.as_ref().map_or_else(Default::default, |at| wire::first(&at.path)),
        &line,
        &column,
        &symbol::printable(&printed),
        &name.and_then(symbol::demangle).unwrap_or_default(),
        &finding.arch.map(|arch| arch.to_string()).unwrap_or_default(),
        finding.gpu.as_deref().unwrap_or_default(),
        &finding.count.to_string(),
        status,
        &finding.message,
        finding.help.as_deref().unwrap_or_default(),
    ]
    .map(cell);
    writeln!(out, "{}", cells.join(","))
}

/// A cell, in quotes where it holds what would end it, and with the quote before it that keeps a spreadsheet from computing
/// it.
pub(super) fn cell(text: &str) -> String {
    if wire::begins_formula(text) {
        return cell(&format!("'{text}"));
    }
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
