//! The few kept lines of a log as source code for miette.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::finding::Label;
use crate::model::{NameId, Quote, Report, symbol};

/// Longest line that an excerpt shows, in characters.
const WIDTH: usize = 160;

/// One kept line under its place in the input.
#[derive(Debug, Clone)]
pub struct Excerpt {
    name: String,
    line: usize,
    /// Characters of the input's line before the text.
    column: usize,
    text: String,
}

/// Widest span that is underlined whole, in bytes.
const WIDEST: usize = 80;
/// What is underlined of a wider one.
const BEGINNING: usize = 60;

/// A label's place in its line, from 1, as reports for programs have it.
pub(super) struct Position {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) column: u64,
    pub(super) end_column: u64,
    /// None where the text of the line was not found.
    pub(super) byte_start: Option<u64>,
    pub(super) byte_end: Option<u64>,
}

/// Where `label` stands. Columns count characters.
pub(super) fn position(report: &Report, label: &Label) -> Position {
    let place = label.quote.place;
    let text = report.line(label.quote.text, label.name);
    let is_known = !text.is_empty();
    let characters = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count() as u64;
    let column = 1 + u64::from(place.column_offset) + characters(&text[..label.start.min(text.len())]);
    let width = characters(&text[label.start.min(text.len())..label.end.min(text.len())]);
    Position {
        path: input_name(report, label.quote),
        line: place.line,
        column,
        end_column: column + width,
        byte_start: is_known.then(|| place.offset + label.start as u64),
        byte_end: is_known.then(|| place.offset + label.end as u64),
    }
}

/// A label's line in one line: where it stands, and its text.
pub(super) fn one_line(report: &Report, label: &Label) -> String {
    let text = String::from_utf8_lossy(&report.line(label.quote.text, label.name)).into_owned();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = format!("{}:{}", input_name(report, label.quote), label.quote.place.line);
    format!("{place}: {}", symbol::printable(&cut_end(&text, WIDTH / 2)))
}

/// The end of a path that is longer than `most` columns: whole names of folders, as `…/logs/input.log`.
pub(super) fn short_path(path: &str, most: usize) -> String {
    let count = path.chars().count();
    if count <= most {
        return path.to_owned();
    }
    let earliest = path.char_indices().nth(count + 1 - most).map_or(0, |(at, _)| at);
    match path[earliest..].find(['/', '\\']) {
        Some(at) => format!("…{}", &path[earliest + at..]),
        None => format!("…{}", &path[earliest..]),
    }
}

pub(super) fn input_name(report: &Report, quote: Quote) -> String {
    symbol::printable(report.file_of(quote.place)).into_owned()
}

impl Excerpt {
    /// A line of the file called `name`, by its number from 1, whose text is safe to print.
    #[must_use]
    pub fn of_line(name: &str, line: u32, text: String) -> Excerpt {
        let name = symbol::printable(name).into_owned();
        Excerpt { name, line: (line as usize).saturating_sub(1), column: 0, text }
    }

    /// The line of `label`, cut to a readable width, and the label's span in it: of a wide one the name of the kernel that
    /// it is about, else its beginning.
    pub(super) fn new(report: &Report, label: &Label, kernel: Option<NameId>) -> (Excerpt, SourceSpan) {
        let place = label.quote.place;
        let bytes = report.line(label.quote.text, label.name);
        let (from, to) = narrowed(&bytes, label, kernel.map(|name| report.names.get(name)));
        let part = |from: usize, to: usize| {
            let text = String::from_utf8_lossy(&bytes[from.min(bytes.len())..to.min(bytes.len())]);
            // One column for a tab, as columns are counted.
            symbol::printable(&text.replace('\t', " ")).into_owned()
        };
        let (before, marked, after) = (part(0, from), part(from, to), part(to, bytes.len()));
        let marked = symbol::cut_middle(&marked, WIDTH).into_owned();
        let room = WIDTH.saturating_sub(marked.chars().count());
        let before = cut_start(&before, room);
        let after = cut_end(&after, room.saturating_sub(before.chars().count()));
        let lead = match label.lead {
            Some(lead) => symbol::printable(&String::from_utf8_lossy(report.texts.get(lead))).into_owned(),
            None => " ".repeat((place.column_offset as usize).min(4)),
        };
        let lead = cut_start(&lead, WIDTH / 2);
        let span = (lead.len() + before.len(), marked.len()).into();
        let text = format!("{lead}{before}{marked}{after}");
        let column = (place.column_offset as usize).saturating_sub(lead.chars().count());
        let excerpt = Excerpt {
            name: input_name(report, label.quote),
            line: (place.line as usize).saturating_sub(1),
            column,
            text,
        };
        (excerpt, span)
    }
}

/// The bytes of `text` that are underlined for `label`.
fn narrowed(text: &[u8], label: &Label, kernel: Option<&[u8]>) -> (usize, usize) {
    let end = label.end.min(text.len());
    let start = label.start.min(end);
    let span = &text[start..end];
    if span.len() <= WIDEST {
        return (start, end);
    }
    let name = kernel.filter(|name| !name.is_empty());
    if let Some((name, at)) = name.and_then(|name| Some((name, memchr::memmem::find(span, name)?))) {
        return (start + at, start + at + name.len());
    }
    // A word is not cut in two, unless it is all there is.
    let blank = span[..=BEGINNING].iter().rposition(|byte| *byte == b' ');
    let mut length = blank.filter(|at| *at > BEGINNING / 2).unwrap_or(BEGINNING);
    while span.get(length).is_some_and(|byte| byte & 0xc0 == 0x80) {
        length += 1;
    }
    (start, start + length)
}

fn cut_start(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count - most.saturating_sub(1)).collect();
    format!("…{kept}")
}

fn cut_end(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let end = span.offset() + span.len();
        let marked = self.text.get(span.offset()..end).ok_or(MietteError::OutOfBounds)?;
        // Without context, what is asked for is the position of the span; with it, the text around.
        let contents = if before == 0 && after == 0 {
            let column = self.column + self.text[..span.offset()].chars().count();
            MietteSpanContents::new_named(self.name.clone(), marked.as_bytes(), *span, self.line, column, 1)
        } else {
            MietteSpanContents::new_named(
                self.name.clone(),
                self.text.as_bytes(),
                (0, self.text.len()).into(),
                self.line,
                0,
                1,
            )
        };
        Ok(Box::new(contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Place;

    #[test]
    fn of_a_long_path_the_end_is_shown() {
        assert_eq!(short_path("build.log", 40), "build.log");
        let long = "fixtures/ptxas/13.5/cmake-makefiles-parallel/input.log";
        assert_eq!(short_path(long, 40), "…/cmake-makefiles-parallel/input.log");
        assert_eq!(short_path(&"x".repeat(50), 10), format!("…{}", "x".repeat(9)));
    }

    #[test]
    fn of_a_wide_label_the_name_or_the_beginning_is_underlined() {
        let mut report = Report::default();
        let marked = |report: &mut Report, text: &str, name: &str| {
            let quote = Quote { place: Place::default(), text: report.texts.intern(text.as_bytes()) };
            let label = Label { quote, lead: None, name: None, start: 0, end: text.len(), text: String::new() };
            let name = report.names.intern(name.as_bytes());
            let (excerpt, span) = Excerpt::new(report, &label, Some(name));
            excerpt.text[span.offset()..span.offset() + span.len()].to_owned()
        };
        let text =
            "Potential Performance Loss: wgmma.mma_async instructions are serialized in the function 'gemm_k' here";
        assert_eq!(marked(&mut report, text, "gemm_k"), "gemm_k");
        let start = "Potential Performance Loss: wgmma.mma_async instructions are";
        assert_eq!(marked(&mut report, text, "other"), start);
        assert_eq!(marked(&mut report, "short gemm_k", "gemm_k"), "short gemm_k");
        let wide = "é".repeat(90);
        assert_eq!(marked(&mut report, &wide, "k"), "é".repeat(30));
    }
}
