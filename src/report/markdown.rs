//! A report for a comment on a pull request: a line that sums up, a table of causes, the worst first, and notes folded.

use std::io::{self, Write};

use super::short::shown;
use super::{Layout, excerpt};
use crate::finding::Level;
use crate::model::symbol;
use crate::settle::{CauseGroup, Verdict};

pub(super) fn render(verdict: &Verdict<'_>, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### warplint\n\n{}", summary(verdict))?;
    let level = |group: &&CauseGroup| verdict.settled[group.lead].level;
    let loud: Vec<&CauseGroup> = verdict.groups().iter().filter(|group| level(group) > Level::Note).collect();
    let notes: Vec<&CauseGroup> = verdict.groups().iter().filter(|group| level(group) == Level::Note).collect();
    table(verdict, &loud, layout.limit, out)?;
    if notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n<details><summary>{}</summary>", counted(notes.len(), "note"))?;
    table(verdict, &notes, layout.limit, out)?;
    writeln!(out, "\n</details>")
}

fn summary(verdict: &Verdict<'_>) -> String {
    let parts: Vec<String> = [(Level::Deny, "error"), (Level::Warn, "warning"), (Level::Note, "note")]
        .into_iter()
        .map(|(level, word)| (verdict.count(level), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(count, word))
        .collect();
    let found = if parts.is_empty() { "Nothing to report".to_owned() } else { format!("**{}**", parts.join(", ")) };
    match verdict.baselined.len() {
        0 if parts.is_empty() => format!("{found}."),
        0 => found,
        count => format!("{found}; {count} in the baseline"),
    }
}

pub(super) fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

fn table(verdict: &Verdict<'_>, groups: &[&CauseGroup], limit: usize, out: &mut dyn Write) -> io::Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| level | where | what |\n|---|---|---|")?;
    for group in groups.iter().take(limit) {
        let one = &verdict.settled[group.lead];
        let finding = verdict.finding(one);
        let position = finding.label.as_ref().map(|label| excerpt::position(verdict.context.report, label));
        let place = position.map_or_else(String::new, |at| code(&format!("{}:{}", at.path, at.line)));
        let more = if group.others == 0 { String::new() } else { format!(" *and {} more*", group.others) };
        let word = shown(one.level);
        let rule = verdict.active(one).rule.id;
        writeln!(out, "| {word} | {place} | {} `{rule}`{more} |", prose(&finding.message))?;
    }
    if groups.len() > limit {
        writeln!(out, "\n{} more", groups.len() - limit)?;
    }
    Ok(())
}

/// Text of a message within a cell: what is between backticks stays code, and nothing else is markup.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { code(part) } else { escaped(part) }).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in symbol::printable(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '[' | ']' | '\\' | '~' | '#' | '!' | '@' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

/// Code within a cell, where a bar would end the cell even between backticks.
pub(super) fn code(text: &str) -> String {
    let text = symbol::printable(text).replace('`', "'").replace('|', "\\|");
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_code_and_markup_is_text() {
        assert_eq!(prose("`k<int>` spills | <b>8 B</b>"), "`k<int>` spills \\| &lt;b&gt;8 B&lt;/b&gt;");
        assert_eq!(code("a|b`c"), "`a\\|b'c`");
    }
}
