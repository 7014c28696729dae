//! What is wrong with a baseline or a JSON report, at its place.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::baseline::{Fault, FaultKind, MOST};
use crate::model::symbol;
use crate::report::Excerpt;

/// A file of ours that cannot be used.
#[derive(Debug)]
pub(super) struct BrokenFile {
    name: String,
    /// What it should be.
    wanted: &'static str,
    fault: Fault,
    excerpt: Excerpt,
}

impl BrokenFile {
    pub(super) fn new(path: &Path, wanted: &'static str, fault: Fault) -> BrokenFile {
        let name = shown(path);
        let above = fault.text[..fault.span.start].matches('\n').count();
        let first = fault.line.saturating_sub(u32::try_from(above).unwrap_or_default());
        let excerpt = Excerpt::of_line(&name, first, fault.text.clone());
        BrokenFile { name, wanted, fault, excerpt }
    }

    fn has_text(&self) -> bool {
        !self.fault.text.trim().is_empty()
    }
}

impl Display for BrokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, wanted) = (&self.name, self.wanted);
        match self.fault.kind {
            FaultKind::NoJson => write!(f, "`{name}` is no JSON, as {wanted} is"),
            FaultKind::Broken => write!(f, "`{name}` cannot be read as {wanted}"),
            FaultKind::Foreign => write!(f, "`{name}` is not {wanted}"),
            FaultKind::Newer(version) => {
                write!(f, "`{name}` was written by a later warplint: its form is version {version}, this one reads 1")
            }
        }?;
        // A label on nothing is not shown.
        if self.has_text() { Ok(()) } else { write!(f, ": line {}: {}", self.fault.line, self.fault.message) }
    }
}

impl std::error::Error for BrokenFile {}

impl Diagnostic for BrokenFile {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = match self.fault.kind {
            FaultKind::Newer(_) => "take the warplint that wrote it, or a later one",
            _ if self.wanted == BASELINE => {
                "`warplint baseline write` writes one; where a merge left its marks in it, take either side and write it anew"
            }
            _ => "`warplint -f json -o FILE` writes a report; a log is read too",
        };
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.has_text().then_some(&self.excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.fault.span.clone();
        let label = LabeledSpan::new(Some(self.fault.message.clone()), span.start, span.len());
        Some(Box::new(std::iter::once(label)))
    }
}

/// What a baseline is called.
pub(super) const BASELINE: &str = "a baseline";

/// What `diff` reads is called.
pub(super) const REPORT: &str = "a report of warplint";

/// A file that cannot be read at all.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("cannot read `{name}`: {reason}")]
pub(super) struct Unreadable {
    name: String,
    reason: String,
}

impl Unreadable {
    pub(super) fn new(path: &Path, error: &io::Error) -> Unreadable {
        Unreadable { name: shown(path), reason: error.to_string() }
    }
}

/// The content of a file of ours; `None` where there is no such file.
pub(super) fn content(path: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other,
    };
    let read = file.and_then(|file| all_of(&mut { file }));
    read.map(Some).map_err(|error| Unreadable::new(path, &error))
}

/// All that `source` has, if that is no more than a file of ours may have.
pub(super) fn all_of(source: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(MOST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MOST {
        return Err(io::Error::other(format!("it has more than {} MiB", MOST >> 20)));
    }
    Ok(content)
}

/// A path as it is shown.
pub(super) fn shown(path: &Path) -> String {
    symbol::printable(&path.display().to_string()).into_owned()
}
