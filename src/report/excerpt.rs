//! The few kept lines of a log as source code for miette.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::finding::Label;
use crate::model::{Quote, Report, symbol};

/// Longest line that an excerpt shows, in characters.
const WIDTH: usize = 160;

/// One kept line under its place in the input.
#[derive(Debug)]
pub(super) struct Excerpt {
    name: String,
    line: usize,
    /// Characters of the input's line before the text.
    column: usize,
    text: String,
}

/// A label's place in its line, from 1, as reports for programs have it.
pub(super) struct Position {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) column: u64,
    pub(super) end_column: u64,
    pub(super) byte_start: u64,
    pub(super) byte_end: u64,
}

/// Where `label` stands. Columns count characters.
pub(super) fn position(report: &Report, label: &Label) -> Position {
    let place = label.quote.place;
    let text = report.texts.get(label.quote.text);
    let characters = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count() as u64;
    let column = 1 + u64::from(place.column_offset) + characters(&text[..label.start.min(text.len())]);
    let width = characters(&text[label.start.min(text.len())..label.end.min(text.len())]);
    Position {
        path: input_name(report, label.quote),
        line: place.line,
        column,
        end_column: column + width,
        byte_start: place.offset + label.start as u64,
        byte_end: place.offset + label.end as u64,
    }
}

pub(super) fn input_name(report: &Report, quote: Quote) -> String {
    symbol::printable(report.file_of(quote.place)).into_owned()
}

impl Excerpt {
    /// The line of `label`, cut to a readable width, and the label's span in it.
    pub(super) fn new(report: &Report, label: &Label) -> (Excerpt, SourceSpan) {
        let place = label.quote.place;
        let bytes = report.texts.get(label.quote.text);
        let part = |from: usize, to: usize| {
            let text = String::from_utf8_lossy(&bytes[from.min(bytes.len())..to.min(bytes.len())]);
            symbol::printable(&text).into_owned()
        };
        let (before, marked, after) =
            (part(0, label.start), part(label.start, label.end), part(label.end, bytes.len()));
        let marked = symbol::cut_middle(&marked, WIDTH).into_owned();
        let room = WIDTH.saturating_sub(marked.chars().count());
        let before = cut_start(&before, room);
        let after = cut_end(&after, room.saturating_sub(before.chars().count()));
        let indent = " ".repeat((place.column_offset as usize).min(4));
        let start = indent.len() + before.len();
        let span = (start, marked.len()).into();
        let text = format!("{indent}{before}{marked}{after}");
        let column = (place.column_offset as usize).saturating_sub(indent.len());
        let excerpt = Excerpt {
            name: input_name(report, label.quote),
            line: (place.line as usize).saturating_sub(1),
            column,
            text,
        };
        (excerpt, span)
    }
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
