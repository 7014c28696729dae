//! What is wrong with a configuration, each fault at its place.

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use thiserror::Error;

use crate::model::symbol;

/// Faults that are shown at most: a file of another kind has one on every line.
const SHOWN: usize = 30;

/// Longest line that is shown, in bytes.
const LINE: usize = 400;

/// A configuration that cannot be used.
#[derive(Debug, Error, Diagnostic)]
pub enum ConfigError {
    /// It is not there, or may not be read.
    #[error("cannot read the configuration `{name}`: {reason}")]
    #[diagnostic(help("`--config` takes a file such as warplint.toml; `--isolated` does without one"))]
    Unreadable {
        /// The file.
        name: String,
        /// The system's reason.
        reason: String,
    },
    /// No person wrote that.
    #[error("`{name}` is too large for a configuration, which has {} bytes at most", super::MAX_BYTES)]
    #[diagnostic(help("`--config` takes a file such as warplint.toml; `--isolated` does without one"))]
    TooLarge {
        /// The file.
        name: String,
    },
    /// Its encoding is another one.
    #[error("`{name}` is not UTF-8: line {line} holds a byte that no UTF-8 text has there")]
    #[diagnostic(help("save the file as UTF-8, which is what TOML is written in"))]
    NotUtf8 {
        /// The file.
        name: String,
        /// The first line that is not.
        line: usize,
    },
    /// It holds what it should not.
    #[error("the configuration has {} errors", .0.len())]
    Faults(Vec<Problem>),
}

impl ConfigError {
    /// What to show of it, one after the other.
    #[must_use]
    pub fn parts(&self) -> Vec<&dyn Diagnostic> {
        match self {
            ConfigError::Faults(problems) => problems.iter().map(|problem| problem as &dyn Diagnostic).collect(),
            other => vec![other],
        }
    }
}

/// One fault, with the text that it is in.
#[derive(Debug, Clone, Error)]
#[error("{message}")]
pub struct Problem {
    message: String,
    label: Option<String>,
    help: Option<String>,
    text: Option<NamedSource<Arc<str>>>,
    span: Option<SourceSpan>,
}

// By hand, because a derived one draws an empty label where there is none.
impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.text.as_ref().map(|text| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(self.label.clone(), self.span?);
        Some(Box::new(std::iter::once(label)))
    }
}

/// One fault, before the text is attached to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) help: Option<String>,
}

/// Attaches `text`, which is called `name`, to its faults, in the order in which they stand in it.
pub(super) fn problems(name: &str, text: &str, mut faults: Vec<Fault>) -> ConfigError {
    faults.sort_by_key(|fault| fault.span.start);
    let more = faults.len().saturating_sub(SHOWN);
    faults.truncate(SHOWN);
    let shown: Arc<str> = harmless(text).into();
    let mut problems: Vec<Problem> = faults.into_iter().map(|fault| fault.within(name, &shown)).collect();
    if more > 0 {
        problems.push(Problem {
            message: format!("`{name}` has {more} more errors"),
            label: None,
            help: None,
            text: None,
            span: None,
        });
    }
    ConfigError::Faults(problems)
}

impl Fault {
    fn within(self, name: &str, text: &Arc<str>) -> Problem {
        let start = floor(text, self.span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // Of what spans several lines, the first is where it starts; the rest would only push the message away.
        let end = floor(text, self.span.end).clamp(start, line_end);
        let message = symbol::printable(&self.message).into_owned();
        if line_end - line_start > LINE {
            let (line, column) = (1 + text[..start].matches('\n').count(), 1 + start - line_start);
            let message = format!("{name}:{line}:{column}: {message}");
            return Problem { message, label: None, help: self.help, text: None, span: None };
        }
        Problem {
            message,
            label: (!self.label.is_empty()).then(|| symbol::printable(&self.label).into_owned()),
            help: self.help.map(|help| symbol::printable(&help).into_owned()),
            text: Some(NamedSource::new(name, text.clone())),
            span: Some((start, end - start).into()),
        }
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

/// The text with every character that could steer a terminal replaced, byte for byte, so that positions stay.
fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let mut buffer = [0; 4];
        let shown = symbol::printable(c.encode_utf8(&mut buffer)).len() == c.len_utf8();
        if shown || matches!(c, '\n' | '\t') {
            safe.push(c);
        } else {
            // A carriage return at the end of a line is no fault of anybody.
            let stand_in = if c == '\r' { ' ' } else { '?' };
            safe.extend(std::iter::repeat_n(stand_in, c.len_utf8()));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_replaced_and_positions_stay() {
        let text = "a\u{1b}[2J\tb\r\n\u{202e}ü";
        let safe = harmless(text);
        assert_eq!(safe, "a?[2J\tb \n???ü");
        assert_eq!(safe.len(), text.len());
    }

    #[test]
    fn a_span_is_cut_to_its_first_line_and_to_characters() {
        let text: Arc<str> = "x = [\n1,\n]\nü".into();
        let fault = |span| Fault { span, message: "m".to_owned(), label: String::new(), help: None };
        assert_eq!(fault(4..10).within("c", &text).span, Some((4, 1).into()));
        assert_eq!(fault(12..99).within("c", &text).span, Some((11, 2).into()));
    }
}
