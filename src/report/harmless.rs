//! What went wrong, as it may reach a terminal: every text of a failure with escapes for what would steer it.

use std::error::Error;
use std::fmt::{self, Display};

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode, SourceSpan};

use crate::model::symbol::{cut_middle, printable};

/// Longest text of a failure, in characters.
const TEXT: usize = 400;
/// Longest line that is quoted, in bytes.
const LINE: usize = 400;

/// A failure, copied with every text made safe. Failures quote arguments, paths and files that anybody may have written.
#[derive(Debug)]
pub(super) struct Harmless {
    message: String,
    code: Option<String>,
    severity: Option<Severity>,
    help: Option<String>,
    excerpt: Option<Excerpt>,
    cause: Option<Box<Cause>>,
}

#[derive(Debug)]
struct Excerpt {
    text: NamedSource<String>,
    labels: Vec<LabeledSpan>,
}

/// Why, and why that.
#[derive(Debug)]
struct Cause {
    message: String,
    cause: Option<Box<Cause>>,
}

impl Harmless {
    /// The copy of `failure`.
    pub(super) fn of(failure: &dyn Diagnostic) -> Harmless {
        let mut message = line(&failure.to_string());
        let excerpt = match quoted(failure) {
            Quote::None => None,
            Quote::Short(excerpt) => Some(excerpt),
            Quote::Place(place) => {
                message = format!("{place}: {message}");
                None
            }
        };
        Harmless {
            message,
            code: failure.code().map(|code| line(&code.to_string())),
            severity: failure.severity(),
            help: failure.help().map(|help| line(&help.to_string())),
            excerpt,
            cause: failure.source().and_then(|error| Cause::of(error, 0)),
        }
    }
}

impl Cause {
    fn of(error: &dyn Error, depth: u32) -> Option<Box<Cause>> {
        // No chain of ours is longer; one that goes in circles would never end.
        if depth > 8 {
            return None;
        }
        let cause = error.source().and_then(|error| Cause::of(error, depth + 1));
        Some(Box::new(Cause { message: line(&error.to_string()), cause }))
    }
}

/// What a failure quotes.
enum Quote {
    None,
    Short(Excerpt),
    /// The line is too long to be shown: where it is.
    Place(String),
}

fn quoted(failure: &dyn Diagnostic) -> Quote {
    let labels: Vec<LabeledSpan> = failure.labels().into_iter().flatten().collect();
    let (Some(source), Some(first)) = (failure.source_code(), labels.first()) else { return Quote::None };
    let Ok(contents) = source.read_span(first.inner(), 1, 1) else { return Quote::None };
    let Ok(text) = std::str::from_utf8(contents.data()) else { return Quote::None };
    // The lines from the first on, so that the copy counts them as the file does.
    let start = contents.span().offset();
    let name = contents.name().map(printable).unwrap_or_default();
    if text.lines().any(|line| line.len() > LINE) {
        let before = &text[..floor(text, first.offset().saturating_sub(start))];
        let number = contents.line() + before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        return Quote::Place(format!("{name}:{number}:{column}"));
    }
    let lead = "\n".repeat(contents.line());
    let moved = labels.iter().map(|label| moved(label, text, start, lead.len())).collect();
    let text = format!("{lead}{}", lines(text));
    Quote::Short(Excerpt { text: NamedSource::new(name, text), labels: moved })
}

/// The label where its text is in the copy.
fn moved(label: &LabeledSpan, text: &str, start: usize, lead: usize) -> LabeledSpan {
    let at = |offset: usize| lead + lines(&text[..floor(text, offset.saturating_sub(start))]).len();
    let from = at(label.offset());
    let span = SourceSpan::from((from, at(label.offset() + label.len()) - from));
    let said = label.label().map(line);
    if label.primary() {
        LabeledSpan::new_primary_with_span(said, span)
    } else {
        LabeledSpan::new_with_span(said, span)
    }
}

/// The last boundary of characters up to `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Text that is a single line or a few of ours.
fn line(text: &str) -> String {
    lines(&cut_middle(text, TEXT))
}

/// `text` with escapes, except for what parts lines and columns.
fn lines(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    // A carriage return at the end of a line is no fault of anybody.
    for piece in text.split_inclusive(['\n', '\t', '\r']) {
        let end = piece.len() - usize::from(piece.ends_with(['\n', '\t', '\r']));
        safe.push_str(&printable(&piece[..end]));
        safe.push_str(&piece[end..].replace('\r', " "));
    }
    safe
}

impl Display for Harmless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Harmless {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn Error + 'static))
    }
}

impl Diagnostic for Harmless {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.code.as_ref().map(|code| Box::new(code) as Box<dyn Display>)
    }

    fn severity(&self) -> Option<Severity> {
        self.severity
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| &excerpt.text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        Some(Box::new(excerpt.labels.iter().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use miette::miette;

    use super::*;

    fn shown(text: &str, span: (usize, usize)) -> (String, usize, String) {
        let label = LabeledSpan::new_with_span(Some("l\u{7}".to_owned()), span);
        let report = miette!(labels = vec![label], help = "h\u{1b}", "m\u{202e}").with_source_code(text.to_owned());
        let safe = Harmless::of(report.as_ref());
        let Some(excerpt) = &safe.excerpt else { return (safe.message, 0, String::new()) };
        let label = &excerpt.labels[0];
        let pointed = &excerpt.text.inner()[label.offset()..label.offset() + label.len()];
        assert_eq!((label.label(), safe.help.as_deref()), (Some("l\\u{7}"), Some("h\\u{1b}")));
        let line = excerpt.text.inner()[..label.offset()].matches('\n').count();
        (safe.message.clone(), line, pointed.to_owned())
    }

    #[test]
    fn a_quoted_line_is_escaped_and_its_label_moves_along() {
        let message = "m\\u{202e}".to_owned();
        assert_eq!(shown("a\nb\nc\n\u{1b}\u{7}de\r\nf", (8, 1)), (message.clone(), 3, "d".to_owned()));
        assert_eq!(shown("\u{1b}[31mx", (0, 6)), (message, 0, "\\u{1b}[31mx".to_owned()));
    }

    #[test]
    fn a_line_that_is_too_long_is_named_and_not_quoted() {
        let text = format!("a\n{}", "x".repeat(LINE + 1));
        assert_eq!(shown(&text, (7, 1)).0, ":2:6: m\\u{202e}");
    }
}
