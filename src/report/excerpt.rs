//! The few kept lines of a log as source code for miette.

use std::path::Path;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::finding::Label;
use crate::model::{NameId, Quote, Report, symbol};

/// Columns that a line of source has at least, however narrow the report is.
const NARROWEST: usize = 40;

/// Columns that are kept for the words beside the mark, where they are as long.
const WORDS: usize = 36;

/// One kept line under its place in the input.
#[derive(Debug, Clone)]
pub struct Excerpt {
    name: String,
    line: usize,
    /// Characters of the input's line before the span that is shown; `None` where the text is the whole line.
    column: Option<usize>,
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

/// A path for who reads paths from the root of the project. What was piped in has none.
pub(super) fn in_project(report: &Report, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_relative = Path::new(path).is_relative() && !matches!(path, "<stdin>" | "<build>");
    if is_relative { format!("{}{path}", report.folder) } else { path.to_owned() }
}

/// Where the bytes `span` of a kept line stand.
pub(super) fn position_of(report: &Report, quote: Quote, (start, end): (usize, usize)) -> Position {
    position(report, &Label { quote, lead: None, name: None, start, end, text: String::new() })
}

/// A label's line in one line of at most `most` columns: where it stands, and its text around what is marked.
pub(super) fn one_line(report: &Report, label: &Label, most: usize) -> String {
    let line = report.line(label.quote.text, label.name);
    let [before, marked, after] = parts(&line, label.start, label.end);
    let words = |text: &str| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (first, last) = (text.starts_with(char::is_whitespace), text.ends_with(char::is_whitespace));
        format!("{}{words}{}", if first { " " } else { "" }, if last && !words.is_empty() { " " } else { "" })
    };
    let (before, marked, after) = (words(&before), words(&marked), words(&after));
    let (path, number) = (input_name(report, label.quote), label.quote.place.line);
    if line.is_empty() {
        return format!("{path}:{number}");
    }
    // The end of a long path tells more than its beginning, and the figures more than both.
    let text = before.width() + marked.width() + after.width();
    let taken = text + format!(":{number}: ").len();
    let file = path.rsplit(['/', '\\']).next().map_or(0, UnicodeWidthStr::width);
    let place = format!("{}:{number}", short_path(&path, most.saturating_sub(taken).max(file + "…/".width())));
    let room = most.saturating_sub(place.width() + 2).max(NARROWEST);
    let [before, marked, after] = around([before.trim_start(), &marked, after.trim_end()], room, room);
    format!("{place}: {before}{marked}{after}")
}

/// Where `label` stands, and its line before, in and after what is marked of it, cut to what a page has room for.
pub(super) fn marked(report: &Report, label: &Label) -> (Position, [String; 3]) {
    const ROOM: usize = 240;
    let line = report.line(label.quote.text, label.name);
    let [before, marked, after] = parts(&line, label.start, label.end);
    (position(report, label), around([&before, &marked, &after], ROOM, ROOM))
}

/// What stands before, in and after the bytes from `start` to `end`, safe to print.
fn parts(line: &[u8], start: usize, end: usize) -> [String; 3] {
    let end = end.min(line.len());
    let start = start.min(end);
    [&line[..start], &line[start..end], &line[end..]].map(|part| {
        // One column for a tab, as columns are counted.
        let text = String::from_utf8_lossy(part).replace('\t', " ");
        symbol::printable(&text).into_owned()
    })
}

/// The three parts of a line cut to `room` columns: of the one in the middle as much as fits, of that before it at most
/// `before` columns.
fn around([before, marked, after]: [&str; 3], room: usize, most_before: usize) -> [String; 3] {
    let marked = cut_middle(marked, room);
    let left = room.saturating_sub(marked.width());
    // Where not all fits, what stands before has half of the room, or what the end of the line leaves of it.
    let before_room = left.saturating_sub(after.width()).max(left / 2).min(most_before);
    let before = cut_start(before, before_room);
    let after = cut_end(after, left.saturating_sub(before.width()));
    [before, marked, after]
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
        Excerpt { name, line: (line as usize).saturating_sub(1), column: None, text }
    }

    /// The line of `label`, cut to what a report of `width` columns has room for, the label's span in it, and the label's
    /// words in lines that fit beside it. Of a wide span, the name of the kernel that it is about is marked, else its
    /// beginning.
    pub(super) fn new(
        report: &Report,
        label: &Label,
        kernel: Option<NameId>,
        width: usize,
    ) -> (Excerpt, SourceSpan, String) {
        let place = label.quote.place;
        let bytes = report.line(label.quote.text, label.name);
        let (from, to) = narrowed(&bytes, label, kernel.map(|name| report.names.get(name)));
        let [before, marked, after] = parts(&bytes, from, to);
        let lead = match label.lead {
            Some(lead) => symbol::printable(&String::from_utf8_lossy(report.texts.get(lead))).into_owned(),
            None => " ".repeat((place.column_offset as usize).min(4)),
        };
        let before = lead + &before;
        let gutter = place.line.to_string().len() + GUTTER;
        let room = width.saturating_sub(gutter).max(NARROWEST);
        let pointed = marked.width().min(room) / 2;
        let words = label.text.width().min(WORDS);
        let most_before = room.saturating_sub(words + POINTER + pointed);
        let [before, marked, after] = around([&before, &marked, &after], room, most_before);
        let beside = room.saturating_sub(before.width() + marked.width() / 2 + POINTER).max(WORDS / 2);
        let column = place.column_offset as usize + String::from_utf8_lossy(&bytes[..from]).chars().count();
        let excerpt = Excerpt {
            name: input_name(report, label.quote),
            line: (place.line as usize).saturating_sub(1),
            column: Some(column),
            text: format!("{before}{marked}{after}"),
        };
        (excerpt, (before.len(), marked.len()).into(), wrapped(&label.text, beside))
    }
}

/// Columns left of a line of source: its number is set off by these.
const GUTTER: usize = 4;

/// Columns from the middle of a mark to its words.
const POINTER: usize = 4;

/// `text` in lines of at most `width` columns, where its words allow.
fn wrapped(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).join("\n")
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

/// The end of `text`, of at most `most` columns.
fn cut_start(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(1);
    let mut start = text.len();
    let mut taken = 0;
    for (at, c) in text.char_indices().rev() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        start = at;
    }
    if most == 0 { String::new() } else { format!("…{}", &text[start..]) }
}

/// The beginning of `text`, of at most `most` columns.
fn cut_end(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    if most == 0 { String::new() } else { format!("{}…", &text[..reach(text, most - 1)]) }
}

/// `text` of at most `most` columns, the middle left out.
fn cut_middle(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let head = reach(text, most * 2 / 3);
    let tail = cut_start(&text[head..], most.saturating_sub(text[..head].width()));
    format!("{}{tail}", &text[..head])
}

/// The byte that the first `columns` of `text` end at.
fn reach(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            return at;
        }
    }
    text.len()
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
            let column = self.column.unwrap_or_else(|| self.text[..span.offset()].chars().count());
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
            let (excerpt, span, _) = Excerpt::new(report, &label, Some(name), 100);
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
    /// What is shown of a line whose bytes `from` to `to` are marked: the text, what is marked, the column in the header, and
    /// the words beside it.
    fn shown(line: &[u8], (from, to): (usize, usize), said: &str, width: usize) -> (String, String, usize, String) {
        let mut report = Report::default();
        let quote = Quote { place: Place { line: 7, ..Place::default() }, text: report.texts.intern(line) };
        let label = Label { quote, lead: None, name: None, start: from, end: to, text: said.to_owned() };
        let (excerpt, span, said) = Excerpt::new(&report, &label, None, width);
        let contents = excerpt.read_span(&span, 0, 0).expect("it holds the span");
        let marked = excerpt.text[span.offset()..span.offset() + span.len()].to_owned();
        let column = contents.column() + 1;
        (excerpt.text.clone(), marked, column, said)
    }

    #[test]
    fn a_long_line_is_cut_around_what_is_marked_in_every_width() {
        let line = format!("{}if (x) y();{}", "a".repeat(200), "b".repeat(200));
        for width in [60, 80, 100, 120] {
            let (text, marked, column, _) = shown(line.as_bytes(), (200, 206), "which lanes go where", width);
            assert_eq!((marked.as_str(), column), ("if (x)", 201));
            assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
            assert_eq!(text.width() + GUTTER + 1, width, "{text}");
        }
    }

    #[test]
    fn a_short_line_is_not_cut_and_the_words_beside_a_late_mark_fit() {
        let (text, marked, column, said) = shown(b"  if (x) y();", (2, 8), "few", 80);
        assert_eq!((text.as_str(), marked.as_str(), column, said.as_str()), ("  if (x) y();", "if (x)", 3, "few"));
        let late = format!("{}if (x)", " ".repeat(66));
        let words = "warp 0: lanes 0, 2, 4, … go one way, lanes 1, 3, 5, … the other; blocks of 256 threads";
        let (text, marked, column, said) = shown(late.as_bytes(), (66, 72), words, 80);
        assert_eq!((marked.as_str(), column), ("if (x)", 67));
        assert_eq!(said.replace('\n', " "), words);
        for line in said.lines() {
            assert!(text.width() - 3 + POINTER + line.width() <= 80 - GUTTER, "{text}\n{said}");
        }
    }

    #[test]
    fn wide_characters_tabs_and_escapes_count_their_columns() {
        let line = format!("\t// {}\u{1b}[31m if (x)", "漢".repeat(60));
        let at = line.find("if").expect("it stands there");
        let (text, marked, column, _) = shown(line.as_bytes(), (at, at + 6), "", 80);
        assert_eq!(marked, "if (x)");
        assert_eq!(column, 1 + line[..at].chars().count());
        assert!(
            text.width() <= 80 - GUTTER && text.starts_with("…漢") && text.contains("\\u{1b}[31m if (x)"),
            "{text}"
        );
        let (text, marked, ..) = shown("漢".repeat(100).as_bytes(), (0, 300), "", 60);
        assert!(text.width() <= 60 - GUTTER && !marked.is_empty(), "{text}");
        let (_, marked, column, _) = shown(b"\tif (x)\xff", (1, 7), "", 80);
        assert_eq!((marked.as_str(), column), ("if (x)", 2));
    }
}
