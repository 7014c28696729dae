//! Diagnostics for people: the one place where miette draws.

use std::fmt::{self, Display};
use std::io::{self, Write};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, Severity, SourceCode, ThemeCharacters, ThemeStyles,
};

use super::also::{self, also};
use super::excerpt::{self, Excerpt};
use super::{Layout, Style};
use crate::finding::{Finding, Level, Subject};
use crate::model::{Arch, Kind, symbol};
use crate::settle::{CauseGroup, Settled, Verdict};

/// Longest path at the end of a note, in columns.
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
    for group in &notes {
        let finding = verdict.finding(&verdict.settled[group.lead]);
        write_note(verdict, group, &finding, layout.style, &mut budget, out)?;
    }
    if !notes.is_empty() {
        writeln!(out)?;
    }
    if hidden > 0 {
        writeln!(
            out,
            "{hidden} more groups of findings are not shown: raise --limit, or use --format json for all of them\n"
        )?;
    }
    if layout.quiet && verdict.settled.is_empty() {
        return Ok(());
    }
    summary(verdict, layout.style, out)
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
    let shown = Shown::new(verdict, lead, finding.clone());
    let mut text = String::new();
    handler.render_report(&mut text, &shown).map_err(io::Error::other)?;
    writeln!(out, "{}", text.trim_end())?;
    if let Some(ptx) = finding.ptx.as_ref().filter(|_| has_text(verdict, &finding)) {
        writeln!(out, "  {} {}", layout.style.strong("ptx:"), excerpt::one_line(verdict.context.report, ptx))?;
    }
    for beside in &finding.beside {
        let name = layout.style.strong(format!("{}:", beside.text));
        writeln!(out, "  {name} {}", excerpt::one_line(verdict.context.report, beside))?;
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
    fn new(verdict: &Verdict<'_>, settled: &Settled, finding: Finding) -> Shown {
        let report = verdict.context.report;
        // Of a source line without its text, the line of the PTX is shown, and the source line named.
        let label = if has_text(verdict, &finding) {
            &finding.label
        } else {
            finding.ptx.as_ref().map_or(&finding.label, |_| &finding.ptx)
        };
        let (excerpt, label) = match label {
            Some(label) => {
                let (excerpt, span) = Excerpt::new(report, label, finding.kernel);
                // An empty label would be drawn as a line that leads nowhere.
                let said = Some(label.text.clone()).filter(|text| !text.is_empty());
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

/// `note[rule] message` and where.
fn write_note(
    verdict: &Verdict<'_>,
    group: &CauseGroup,
    finding: &Finding,
    style: Style,
    budget: &mut usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lead = &verdict.settled[group.lead];
    let place = finding.label.as_ref().map(|label| {
        let position = excerpt::position(verdict.context.report, label);
        format!(" {}", style.faint(format!("({}:{})", excerpt::short_path(&position.path, PATH), position.line)))
    });
    let times = if finding.count > 1 { format!(" ({} times)", finding.count) } else { String::new() };
    let also = also(verdict, group, finding, budget).map(|also| format!("; also {also}")).unwrap_or_default();
    let id = verdict.active(lead).rule.id;
    writeln!(
        out,
        "{}{} {}{times}{also}{}",
        style.strong("note"),
        style.faint(format!("[{id}]")),
        finding.message,
        place.unwrap_or_default()
    )
}

/// The last line: what was looked at, and what became of every finding.
fn summary(verdict: &Verdict<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let report = verdict.context.report;
    let entries = report.kernels.iter().filter(|kernel| kernel.kind == Kind::Entry);
    let mut archs: Vec<Arch> = entries.clone().filter_map(|kernel| kernel.arch).collect();
    archs.sort_unstable();
    archs.dedup();
    let on = match archs.as_slice() {
        [] => String::new(),
        archs => format!(" on {}", archs.iter().map(Arch::to_string).collect::<Vec<_>>().join(", ")),
    };
    let (runtime, own): (Vec<_>, Vec<_>) = entries
        .partition(|kernel| kernel.name.is_some_and(|name| symbol::is_of_device_runtime(report.names.get(name))));
    // What the device runtime brings along nobody wrote.
    let runtime = match runtime.len() {
        0 => String::new(),
        count => format!(" and {count} of the device runtime"),
    };
    let counted = |count: usize, one: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {one}s")),
    };
    let parts = [(Level::Deny, "error"), (Level::Warn, "warning"), (Level::Note, "note")];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(level, word)| counted(verdict.count(level), word)).collect();
    let found = if parts.is_empty() { "nothing to report".to_owned() } else { parts.join(", ") };
    let kernels = counted(own.len(), "kernel").unwrap_or_else(|| "no kernels".to_owned());
    let allowed =
        if verdict.allowed.is_empty() { String::new() } else { format!("; {} allowed", verdict.allowed.len()) };
    writeln!(out, "{}{runtime}{on}: {found}{allowed}", style.strong(kernels))?;
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
