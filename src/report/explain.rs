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
    let mut prose = Prose { style, text: String::new() };
    for line in page.body.lines() {
        let fence = line.starts_with("~~~") || line.starts_with("```");
        let goes_on = !(fence || in_example || line.is_empty() || line.starts_with("## ") || line.starts_with('|'));
        if goes_on {
            prose.add(line, out)?;
            continue;
        }
        prose.end(out)?;
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
            writeln!(out, "  {line}")?;
        }
    }
    prose.end(out)?;
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
/// A paragraph or an item of a list, whose lines are broken anew.
struct Prose {
    style: Style,
    text: String,
}

impl Prose {
    /// Adds a line; one that begins an item ends what was before it.
    fn add(&mut self, line: &str, out: &mut dyn Write) -> io::Result<()> {
        if is_item(line) {
            self.end(out)?;
        }
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(line.trim());
        Ok(())
    }

    /// Writes what was added.
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return Ok(());
        }
        let hanging = if is_item(&text) { "    " } else { "  " };
        let text = if self.style.color { text.replace('`', "") } else { text };
        let options = textwrap::Options::new(self.style.width).initial_indent("  ").subsequent_indent(hanging);
        writeln!(out, "{}", textwrap::fill(&text, options.break_words(false)))
    }
}

fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || line.starts_with("* ") || (number.len() < line.len() && number.starts_with(". "))
}
