//! A rule's page on a terminal: its Markdown with headings, examples and lists laid out.

use std::io::{self, Write};

use super::Style;
use crate::rules::Rule;
use crate::settle::Settings;

/// Prints the page of `rule`, with its level and options as `settings` have them.
///
/// # Errors
/// When `out` cannot be written to.
pub fn explain(rule: &Rule, settings: &Settings, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let page = rule.page();
    writeln!(out, "{}: {}", style.strong(rule.id), page.summary)?;
    let set = settings.level(rule, page.group);
    let here = set.map(|(level, origin)| format!(", {} here ({origin})", level.name())).unwrap_or_default();
    writeln!(
        out,
        "{}",
        style.faint(format!(
            "{} by default{here}; {}; group {}; since {}",
            page.level.name(),
            page.basis.name(),
            page.group.name(),
            page.since
        ))
    )?;
    let mut in_example = false;
    for line in page.body.lines() {
        let fence = line.starts_with("~~~") || line.starts_with("```");
        if fence {
            in_example = !in_example;
            if let Some(at) = line.find(" --") {
                writeln!(out, "    {}", style.strong(format!("$ warplint{}", &line[at..])))?;
            }
            continue;
        }
        if in_example {
            writeln!(out, "    {}", style.faint(line))?;
        } else if let Some(title) = line.strip_prefix("## ") {
            writeln!(out, "\n{}", style.strong(title))?;
        } else if line.is_empty() {
            writeln!(out)?;
        } else {
            writeln!(out, "  {}", line.replace('`', if style.color { "" } else { "`" }))?;
        }
    }
    if page.options.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}\n", style.strong("Options"))?;
    for (name, setting) in &page.options {
        let about = style.faint(&setting.about);
        match settings.option(rule, name) {
            Some((value, origin)) => {
                let here = style.faint(format!("({origin}; {} by default)", setting.default));
                writeln!(out, "  {name} = {value} {here}    {about}")?;
            }
            None => writeln!(out, "  {name} = {}    {about}", setting.default)?,
        }
    }
    Ok(())
}
