//! Diagnostics for people: the one place where miette draws.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{self, Write};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, Severity, SourceCode, ThemeCharacters, ThemeStyles,
};
use unicode_width::UnicodeWidthStr;

use super::also::{self, also};
use super::excerpt::{self, Excerpt};
use super::not_followed::not_followed;
use super::summary::{counted, summary};
use super::{Layout, Style, wire};
use crate::finding::{Finding, Level, Subject};
use crate::model::symbol;
use crate::settle::{CauseGroup, Settled, Verdict};

/// Longest path of a note, in columns.
const PATH: usize = 40;

/// A finding in miette's terms.
#[derive(Debug)]
struct Shown {
    message: String,
    code: String,
    severity: Severity,
    help: Option<String>,
    excerpt: Option<Excerpt>,
    label: Option<LabeledSpan>,
}

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(&self.code))
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.label.clone().map(|label| Box::new(std::iter::once(label)) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}

/// The handler that draws with `style`.
#[must_use]
pub(super) fn handler(style: Style) -> GraphicalReportHandler {
    let characters = if style.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let styles = if style.color { ThemeStyles::ansi() } else { ThemeStyles::none() };
    GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(style.width)
        // Breaking at blanks is all that our English needs, and far cheaper than breaking by Unicode's rules.
        .with_word_separator(textwrap::WordSeparator::AsciiSpace)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .with_links(false)
        .with_context_lines(1)
}

pub(super) fn render(verdict: &Verdict<'_>, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let handler = handler(layout.style);
    let mut notes = Vec::new();
    let mut budget = also::MOST;
    let mut shown = 0;
    let mut hidden = 0;
    for group in verdict.groups() {
        let lead = &verdict.settled[group.lead];
        if shown == layout.limit {
            hidden += 1;
            continue;
        }
        shown += 1;
        if lead.level == Level::Note && !layout.verbose {
            notes.push(group);
            continue;
        }
        render_group(verdict, group, layout, &handler, &mut budget, out)?;
    }
    let mut is_cut = false;
    for group in &notes {
        is_cut |= write_note(verdict, group, layout.style, &mut budget, out)?;
    }
    if is_cut {
        writeln!(out, "{}", layout.style.faint("-v shows notes in full"))?;
    }
    if !notes.is_empty() {
        writeln!(out)?;
    }
    if hidden > 0 {
        writeln!(
            out,
            "{hidden} more {} not shown: raise --limit, or use --format json for all of them\n",
            if hidden == 1 { "group of findings is" } else { "groups of findings are" },
        )?;
    }
    if layout.quiet && verdict.settled.is_empty() {
        return Ok(());
    }
    if layout.verbose
        && let Some(said) = not_followed(&verdict.context)
    {
        writeln!(out, "{}\n", textwrap::fill(&said, layout.style.width))?;
    }
    last_words(verdict, layout, out)
}

fn render_group(
    verdict: &Verdict<'_>,
    group: &CauseGroup,
    layout: &Layout,
    handler: &GraphicalReportHandler,
    budget: &mut usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lead = &verdict.settled[group.lead];
    let finding = verdict.finding(lead);
    let shown = Shown::new(verdict, lead, finding.clone(), layout.style.width);
    let mut text = String::new();
    handler.render_report(&mut text, &shown).map_err(io::Error::other)?;
    writeln!(out, "{}", text.trim_end())?;
    let ptx = finding.ptx.as_ref().filter(|_| has_text(verdict, &finding)).map(|ptx| ("ptx", ptx));
    for (name, label) in finding.beside.iter().map(|one| (one.text.as_str(), one)).chain(ptx) {
        let room = layout.style.width.saturating_sub(name.chars().count() + "  : ".len());
        let line = excerpt::one_line(verdict.context.report, label, room);
        writeln!(out, "  {} {line}", layout.style.strong(format!("{name}:")))?;
    }
    if let Some(also) = also(verdict, group, &finding, budget) {
        writeln!(out, "  {} {also}", layout.style.strong("also:"))?;
    }
    if layout.verbose
        && let Some(name) = finding.kernel
    {
        writeln!(out, "  {} {}", layout.style.strong("kernel:"), symbol::full(verdict.context.report.names.get(name)))?;
    }
    writeln!(out)
}

/// Whether the text of the line that a finding stands at was found.
fn has_text(verdict: &Verdict<'_>, finding: &Finding) -> bool {
    finding.label.as_ref().is_some_and(|label| !verdict.context.text(label.quote).is_empty())
}

impl Shown {
    fn new(verdict: &Verdict<'_>, settled: &Settled, finding: Finding, width: usize) -> Shown {
        let report = verdict.context.report;
        // Of a source line without its text, the line of the PTX is shown, and the source line named.
        let label = if has_text(verdict, &finding) {
            &finding.label
        } else {
            finding.ptx.as_ref().map_or(&finding.label, |_| &finding.ptx)
        };
        let (excerpt, label) = match label {
            Some(label) => {
                let (excerpt, span, said) = Excerpt::new(report, label, finding.kernel, width);
                // An empty label would be drawn as a line that leads nowhere.
                let said = Some(said).filter(|text| !text.is_empty());
                (Some(excerpt), Some(LabeledSpan::new_primary_with_span(said, span)))
            }
            None => (None, None),
        };
        let severity = match settled.level {
            Level::Deny => Severity::Error,
            Level::Warn => Severity::Warning,
            Level::Note | Level::Allow => Severity::Advice,
        };
        let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
        let named = finding.label.as_ref().filter(|_| finding.ptx.is_some() && !has_text(verdict, &finding));
        let unseen = named.map_or_else(String::new, |label| {
            let position = excerpt::position(report, label);
            format!(" ({}:{})", excerpt::short_path(&position.path, PATH), position.line)
        });
        Shown {
            message: format!("{}{times}{unseen}", finding.message),
            code: format!("warplint::{}", verdict.active(settled).rule.id),
            severity,
            help: finding.help,
            excerpt,
            label,
        }
    }
}

/// `src/k.cu:13: note[rule] message` in one line of the width; whether a part of the message was left out for that.
fn write_note(
    verdict: &Verdict<'_>,
    group: &CauseGroup,
    style: Style,
    budget: &mut usize,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let lead = &verdict.settled[group.lead];
    let finding = verdict.finding(lead);
    let place = finding.label.as_ref().map_or_else(String::new, |label| {
        let position = excerpt::position(verdict.context.report, label);
        format!("{}:{}: ", wire::first(&excerpt::short_path(&position.path, PATH)), position.line)
    });
    let id = verdict.active(lead).rule.id;
    let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
    let also = also(verdict, group, &finding, budget).map(|also| format!("; also {also}")).unwrap_or_default();
    let room = style.width.saturating_sub(place.width() + "note[] ".len() + id.len());
    let (message, is_cut) = fitting(&finding, room.saturating_sub(times.width() + also.width()));
    writeln!(out, "{}{}{} {message}{times}{also}", place, style.strong("note"), style.faint(format!("[{id}]")),)?;
    Ok(is_cut)
}

/// What a note of `room` columns says, and whether the message says more.
fn fitting(finding: &Finding, room: usize) -> (Cow<'_, str>, bool) {
    match &finding.brief {
        Some(brief) if finding.message.width() > room => (without_arguments(brief, room), true),
        _ => beginning(&finding.message, room),
    }
}

/// `text` with `k<…>` for the instantiation that it names, where `room` columns do not hold it as it is.
fn without_arguments(text: &str, room: usize) -> Cow<'_, str> {
    let name = text.split('`').nth(1).unwrap_or_default();
    match name.split_once('<') {
        Some((base, _)) if text.width() > room && name.ends_with('>') && !base.is_empty() => {
            Cow::Owned(text.replacen(&format!("`{name}`"), &format!("`{base}<…>`"), 1))
        }
        _ => Cow::Borrowed(text),
    }
}

/// The clauses of a message that `room` columns hold, with `…` where that is not all of them, and whether it is not. A message
/// without a clause that is short enough is left as it is: half a sentence says nothing.
fn beginning(message: &str, room: usize) -> (Cow<'_, str>, bool) {
    if message.width() <= room {
        return (Cow::Borrowed(message), false);
    }
    let mut end = None;
    let mut is_name = false;
    for (at, c) in message.char_indices() {
        is_name ^= c == '`';
        let is_end = matches!(c, ':' | ';' | ',') && message[at + 1..].starts_with(' ');
        // What comes before the first clause of all is no message: `in blocks of 256 threads, …`.
        if is_end && !is_name && message[..at].contains('`') {
            if message[..at].width() + " …".width() > room && end.is_some() {
                break;
            }
            end = Some(at);
        }
    }
    match end {
        Some(end) => (Cow::Owned(format!("{} …", &message[..end])), true),
        None => (Cow::Borrowed(message), false),
    }
}

/// The last line, and what to read next.
fn last_words(verdict: &Verdict<'_>, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let style = layout.style;
    let (kernels, rest) = summary(verdict);
    writeln!(out, "{}{rest}", style.strong(kernels))?;
    let vanished = if layout.verbose { verdict.vanished() } else { 0 };
    if let Some(vanished) = counted(vanished, "kernel") {
        writeln!(out, "{}", style.faint(format!("{vanished} of the baseline: not in this input")))?;
    }
    let lead =
        verdict.groups().first().map(|group| &verdict.settled[group.lead]).filter(|lead| lead.level >= Level::Warn);
    match lead {
        Some(lead) if !matches!(lead.hit.subject, Subject::Run) => {
            let id = verdict.active(lead).rule.id;
            writeln!(out, "{}", style.faint(format!("`warplint explain {id}` says more")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_of_a_note_ends_with_a_clause_that_says_something() {
        let message =
            "`k` reaches 19 % occupancy on sm_80, even at its best block size: 168 registers per thread leave room";
        let cut = |room: usize| beginning(message, room).0.into_owned();
        assert_eq!(cut(200), message);
        assert_eq!(cut(80), "`k` reaches 19 % occupancy on sm_80, even at its best block size …");
        assert_eq!(cut(50), "`k` reaches 19 % occupancy on sm_80 …");
        assert_eq!(cut(10), "`k` reaches 19 % occupancy on sm_80 …");
        assert_eq!(without_arguments("a warp of `k<1, float>` splits", 20), "a warp of `k<…>` splits");
        assert_eq!(without_arguments("a warp of `k<1, float>` splits", 40), "a warp of `k<1, float>` splits");
        assert_eq!(
            beginning("if blocks are 16×16, `f<1, 2>` splits here", 30),
            ("if blocks are 16×16, `f<1, 2>` splits here".into(), false)
        );
    }
}
