//! Reads the lines of a log one by one: which record, message or listing each of them holds, whatever damaged it.

use std::ops::Range;

use super::assemble::{Assembler, Completeness, End};
use super::envelope::{self, Envelope, Severity, Tool};
use super::listing;
use super::nvcc::{self, Failure};
use super::record::{self, Partial, Record};
use super::{clean, message, scan};
use crate::model::{InputFacts, MessageKind, Place, Report, Unread};

/// Lines within which the frame of a `Function properties` line must come.
const FRAME_WITHIN: u32 = 64;
/// Lines that a wrapped or torn record may go on for.
const PARTIAL_WITHIN: u32 = 4;
/// Longest text of a message that is kept: a sentence, and a name that it may hold.
const LONG_TEXT: usize = 8192;
/// Longest error of another tool that is kept.
const LONG_ERROR: usize = 500;
/// How far back the header of a listing is looked for.
const LOOK_BACK: usize = 4096;

/// The state of one log while its lines are read.
pub(super) struct LineReader<'r> {
    assembler: Assembler<'r>,
    position: Position,
    /// A record that goes on, on one of the next lines.
    partial: Option<PartialRecord>,
    /// Inside a `cuobjdump` listing every line is looked at.
    in_listing: bool,
    /// The last line of the log lacks its end.
    cut: bool,
    scratch: Vec<u8>,
}

/// How far a line was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Understood {
    /// A resource report: not passed on.
    Report,
    /// A message for people: passed on, and kept.
    Message,
    Nothing,
}

/// Where something stands in the buffer; its line number is counted only when it is asked for.
#[derive(Clone, Copy)]
struct At<'b> {
    buffer: &'b [u8],
    /// Start of the line.
    line: usize,
    /// Bytes before it on the line.
    column: usize,
}

impl At<'_> {
    fn after(self, bytes: usize) -> Self {
        At { column: self.column + bytes, ..self }
    }
}

/// Line numbers, counted no further than asked for.
struct Position {
    input: u32,
    /// Offset in the log of the buffer's first byte.
    base: u64,
    /// Bytes of the buffer whose line feeds are counted.
    counted: usize,
    /// Line feeds before that.
    lines: u32,
}

impl Position {
    fn count(&mut self, buffer: &[u8], to: usize) {
        if self.counted < to {
            let feeds = memchr::memchr_iter(b'\n', &buffer[self.counted..to]).count();
            self.lines = self.lines.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX));
            self.counted = to;
        }
    }

    fn place(&mut self, at: At<'_>) -> Place {
        self.count(at.buffer, at.line);
        let place = Place {
            input: self.input,
            line: self.lines.saturating_add(1),
            column_offset: 0,
            offset: self.base + at.line as u64,
        };
        place.after(at.column)
    }
}

struct PartialRecord {
    what: PartialText,
    text: Vec<u8>,
    place: Place,
    lines_left: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum PartialText {
    Record(Partial),
    Message(Severity),
}

impl<'r> LineReader<'r> {
    pub(super) fn new(report: &'r mut Report, input: u32) -> LineReader<'r> {
        LineReader {
            assembler: Assembler::new(report, input),
            position: Position { input, base: 0, counted: 0, lines: 0 },
            partial: None,
            in_listing: false,
            cut: false,
            scratch: Vec::new(),
        }
    }

    /// Facts of the input as a whole.
    pub(super) fn facts(&mut self) -> &mut InputFacts {
        self.assembler.facts()
    }

    /// The lines that come now are the last one, which lacks its end.
    pub(super) fn ends_cut(&mut self, cut: bool) {
        self.cut = cut;
    }

    /// The first `keep` bytes of the buffer go, none of which is after `done`.
    pub(super) fn forget(&mut self, buffer: &[u8], done: usize, keep: usize) {
        self.position.count(buffer, done);
        self.position.counted -= keep;
        self.position.base += keep as u64;
    }

    /// The end of the log.
    pub(super) fn finish(&mut self) {
        self.end_partial();
        self.assembler.finish_log();
    }

    /// True where the next line may matter though it holds no needle.
    pub(super) fn wants_every_line(&self) -> bool {
        self.in_listing || self.partial.is_some() || self.assembler.awaits_frame()
    }

    /// The beginning of a line whose rest is skipped.
    pub(super) fn note_long_line(&mut self, buffer: &[u8], start: usize) {
        let line = &buffer[start..];
        if memchr::memmem::find(line, b"ptxas").is_some() {
            let place = self.position.place(At { buffer, line: start, column: 0 });
            self.assembler.unread(Unread::LongLine, &line[..80.min(line.len())], place);
        }
    }

    /// Reads the line at `range` of the buffer; nothing before `found` in it is of interest.
    pub(super) fn take(&mut self, buffer: &[u8], range: Range<usize>, found: usize) -> Understood {
        let at = At { buffer, line: range.start, column: 0 };
        let line = &buffer[range];
        if line.is_empty() {
            return Understood::Nothing;
        }
        let understood = self.read_line(at, line, found);
        if understood == Understood::Report {
            self.assembler.facts().records += 1;
        }
        understood
    }

    fn read_line(&mut self, at: At<'_>, line: &[u8], found: usize) -> Understood {
        if self.in_listing {
            let understood = self.read_listing(at, line);
            if understood != Understood::Nothing {
                return understood;
            }
        }
        if self.partial.is_some()
            && let Some(understood) = self.continue_partial(line)
        {
            return understood;
        }
        if let Some(envelope) = envelope::find_from(line, found) {
            return self.read_message(at, line, envelope);
        }
        if self.assembler.awaits_frame() {
            if let Some(start) = record::frame_in(line) {
                let text = clean::without_project(line[start..].trim_ascii_end());
                self.keep_frame(text, at.after(start));
                return Understood::Report;
            }
            let place = self.position.place(at);
            self.assembler.expire_frames(place.line, FRAME_WITHIN);
        }
        if scan::holds_listing(line) {
            let understood = self.read_listing(at, line);
            if understood != Understood::Nothing {
                return understood;
            }
        }
        self.read_damaged(at, line)
    }

    /// A line that shows nothing as it stands: perhaps colours or entities hide a record, or another tool failed.
    fn read_damaged(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut understood = Understood::Nothing;
        if memchr::memchr2(0x1b, b'&', line).is_some() && clean::clean(line, &mut scratch) {
            understood = match envelope::find(&scratch) {
                Some(envelope) => self.read_message(at, &scratch, envelope),
                None => self.read_failure(at, &scratch),
            };
        } else if scan::holds_error(line) {
            understood = self.read_failure(at, line);
        }
        self.scratch = scratch;
        understood
    }

    fn read_failure(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        let kind = match nvcc::failure(line) {
            Some(Failure::Error) => MessageKind::BuildError,
            Some(Failure::Stopped) => MessageKind::BuildStopped,
            None => return Understood::Nothing,
        };
        let text = line.trim_ascii();
        let blanks = line.len() - line.trim_ascii_start().len();
        if let Some(id) = self.assembler.repeat(&text[..text.len().min(LONG_ERROR)]) {
            let place = self.position.place(at.after(blanks));
            self.assembler.keep_message(kind, None, None, id, place);
        }
        Understood::Message
    }

    fn read_message(&mut self, at: At<'_>, line: &[u8], envelope: Envelope) -> Understood {
        let at = at.after(envelope.start);
        let text = clean::without_project(line[envelope.text..].trim_ascii_end()).trim_ascii_start();
        if envelope.severity != Severity::Info {
            if envelope.tool == Tool::Unnamed && !is_linker_text(text) {
                return Understood::Nothing;
            }
            self.read_text(at, envelope.severity, text);
            return Understood::Message;
        }
        if self.read_record(at, text) {
            return Understood::Report;
        }
        if envelope.tool == Tool::Unnamed {
            return Understood::Nothing;
        }
        if looks_like_figures(text) {
            let place = self.position.place(at);
            self.assembler.unread(Unread::Form, text, place);
        } else {
            self.read_text(at, Severity::Info, text);
        }
        Understood::Report
    }

    /// A record of figures, cleaned of colours and typography where that makes one of it. False when it is none.
    fn read_record(&mut self, at: At<'_>, text: &[u8]) -> bool {
        let read = record::read(text);
        let damaged = matches!(read, Record::Partial { .. } | Record::Text)
            || text[text.len().saturating_sub(6)..].contains(&0x1b);
        if !damaged {
            self.keep(at, read);
            return true;
        }
        let mut scratch = Vec::new();
        let read = if clean::clean(text, &mut scratch) { record::read(scratch.trim_ascii_end()) } else { read };
        match read {
            Record::Text => return false,
            Record::Partial { what, text } => self.read_partial(at, what, text),
            read => self.keep(at, read),
        }
        true
    }

    fn keep(&mut self, at: At<'_>, record: Record<'_>) {
        match record {
            Record::Module => self.assembler.module(),
            Record::Entry { name, arch } => self.assembler.entry(name, arch, self.position.place(at)),
            Record::Properties { name } => self.assembler.properties(name, self.position.place(at)),
            Record::LinkProperties { name, target } => {
                self.assembler.link_properties(name, target, self.position.place(at));
            }
            Record::Frame { text } => self.keep_frame(text, at),
            Record::Used { text } => self.keep_used(text, at),
            Record::LinkUsed { text, target } => self.assembler.link_used(text, target, self.position.place(at)),
            Record::Time { ms } => self.assembler.compile_time(ms),
            Record::Partial { .. } | Record::Text => {}
        }
    }

    fn keep_used(&mut self, text: &[u8], at: At<'_>) {
        if self.assembler.lacks_frame() {
            self.keep_frame_before(at);
        }
        let place = self.position.place(at);
        if self.assembler.used(text, place, self.end()) == Completeness::Unfinished {
            self.begin_partial(PartialText::Record(Partial::Used), text, place);
        }
    }

    /// Figures without an entry may have their frame on the line before, whose name was cut off with the log's head.
    fn keep_frame_before(&mut self, at: At<'_>) {
        let line_feed = at.line.saturating_sub(1);
        let end = line_feed - usize::from(at.buffer[..line_feed].ends_with(b"\r"));
        let start = scan::line_start(at.buffer, 0, end);
        let line = &at.buffer[start..end];
        let Some(frame) = record::frame_in(line).filter(|frame| line[..*frame].trim_ascii().is_empty()) else { return };
        let here = self.position.place(At { column: 0, ..at });
        let offset = here.offset - (at.line - start) as u64;
        let place = Place { line: here.line.saturating_sub(1), offset, ..here };
        self.assembler.frame(line[frame..].trim_ascii_end(), place.after(frame), End::Cut);
    }

    fn keep_frame(&mut self, text: &[u8], at: At<'_>) {
        let place = self.position.place(at);
        if self.assembler.frame(text, place, self.end()) == Completeness::Unfinished {
            self.begin_partial(PartialText::Record(Partial::Frame), text, place);
        }
    }

    /// What the end of the line at hand means for its record.
    fn end(&self) -> End {
        if self.cut { End::Cut } else { End::MayGoOn }
    }

    fn read_text(&mut self, at: At<'_>, severity: Severity, text: &[u8]) {
        // Information that says nothing must not fill the memory, so it is read before it is kept.
        if severity == Severity::Info && message::read(severity, text).is_none() {
            return;
        }
        let Some(id) = self.assembler.repeat(&text[..text.len().min(LONG_TEXT)]) else { return };
        let Some(reading) = message::read(severity, text) else { return };
        let place = self.position.place(at);
        if reading.unfinished && !self.cut {
            return self.begin_partial(PartialText::Message(severity), text, place);
        }
        let kernel = reading.kernel.map(|name| self.assembler.name(name));
        self.assembler.keep_message(reading.kind, kernel, None, id, place);
    }

    fn read_listing(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        if !self.in_listing {
            self.in_listing = true;
            self.look_back(at);
        }
        let at = at.after(line.len() - line.trim_ascii_start().len());
        match listing::read(line) {
            listing::Line::Arch(arch) => self.assembler.listed_arch(arch),
            listing::Line::Function(name) => self.assembler.listed_function(name, self.position.place(at)),
            listing::Line::Figures(listed) => {
                self.assembler.listed_figures(*listed, line.trim_ascii(), self.position.place(at));
            }
            listing::Line::Heading => {}
            listing::Line::Foreign => {
                self.in_listing = false;
                self.assembler.end_listing();
                return Understood::Nothing;
            }
        }
        Understood::Report
    }

    /// The lines of a listing before its first figures: fatbin header, headings, the function's name.
    fn look_back(&mut self, at: At<'_>) {
        let floor = at.line.saturating_sub(LOOK_BACK);
        let mut lines = Vec::new();
        let mut end = at.line;
        while end > floor {
            let start = scan::line_start(at.buffer, floor, end - 1);
            let line = &at.buffer[start..end - 1];
            if listing::read(line) == listing::Line::Foreign {
                break;
            }
            lines.push((start, line));
            end = start;
        }
        let here = self.position.place(At { column: 0, ..at });
        let feeds = |from: usize| memchr::memchr_iter(b'\n', &at.buffer[from..at.line]).count();
        for (start, line) in lines.into_iter().rev() {
            let indent = line.len() - line.trim_ascii_start().len();
            match listing::read(line) {
                listing::Line::Arch(arch) => self.assembler.listed_arch(arch),
                listing::Line::Function(name) => {
                    let above = u32::try_from(feeds(start)).unwrap_or(u32::MAX);
                    let offset = here.offset - (at.line - start) as u64;
                    let place = Place { line: here.line.saturating_sub(above), offset, ..here };
                    self.assembler.listed_function(name, place.after(indent));
                }
                _ => {}
            }
        }
    }

    fn begin_partial(&mut self, what: PartialText, text: &[u8], place: Place) {
        self.end_partial();
        self.partial = Some(PartialRecord { what, text: text.to_vec(), place, lines_left: PARTIAL_WITHIN });
    }

    /// A record that is not whole: wrapped by a pager, or torn by another process whose own record is on the same line.
    fn read_partial(&mut self, at: At<'_>, what: Partial, text: &[u8]) {
        let inner = inner_message(text);
        let head = inner.map_or(text, |inner| &text[..inner]);
        let place = self.position.place(at);
        if self.cut {
            self.unfinished(what, head, place);
        } else {
            self.begin_partial(PartialText::Record(what), head, place);
        }
        let Some(inner) = inner else { return };
        // The other process's record is whole; the torn one's tail is on a later line.
        let torn = self.partial.take();
        if let Some(envelope) = envelope::find(&text[inner..]) {
            self.read_message(at.after(inner), &text[inner..], envelope);
        }
        if self.partial.is_none() {
            self.partial = torn;
        }
    }

    /// Goes on with a record whose beginning stood on an earlier line. `None` when `line` is not its continuation.
    fn continue_partial(&mut self, line: &[u8]) -> Option<Understood> {
        let partial = self.partial.as_mut()?;
        partial.lines_left -= 1;
        if partial.lines_left == 0 {
            self.end_partial();
            return None;
        }
        if envelope::find(line).is_some() {
            return None;
        }
        let joined = partial.joined(line);
        let (what, place) = (partial.what, partial.place);
        match what {
            PartialText::Record(what) => self.continue_record(what, &joined, place),
            PartialText::Message(severity) => {
                let goes_on = message::read(severity, &joined).is_some_and(|reading| reading.unfinished);
                match &mut self.partial {
                    Some(partial) if goes_on => partial.text = joined,
                    partial => {
                        *partial = None;
                        self.keep_joined_message(severity, &joined, place);
                    }
                }
                Some(Understood::Report)
            }
        }
    }

    fn continue_record(&mut self, what: Partial, joined: &[u8], place: Place) -> Option<Understood> {
        let taken = match record::read(joined) {
            // A name that now holds a blank was joined with a line that is not its tail.
            Record::Partial { .. } | Record::Text if what == Partial::Properties => return None,
            Record::Partial { .. } | Record::Text => Completeness::Unfinished,
            Record::Frame { text } => self.assembler.frame(text, place, End::MayGoOn),
            Record::Used { text } => self.assembler.used(text, place, End::MayGoOn),
            Record::Properties { name } => {
                self.assembler.properties(name, place);
                Completeness::Whole
            }
            Record::Entry { name, arch } => {
                self.assembler.entry(name, arch, place);
                Completeness::Whole
            }
            Record::Time { ms } => {
                self.assembler.compile_time(ms);
                Completeness::Whole
            }
            _ => Completeness::Whole,
        };
        match &mut self.partial {
            Some(partial) if taken == Completeness::Unfinished => partial.text = joined.to_vec(),
            partial => *partial = None,
        }
        Some(Understood::Report)
    }

    /// The rest of a record did not come.
    fn end_partial(&mut self) {
        let Some(partial) = self.partial.take() else { return };
        match partial.what {
            PartialText::Record(what) => self.unfinished(what, &partial.text, partial.place),
            PartialText::Message(severity) => self.keep_joined_message(severity, &partial.text, partial.place),
        }
    }

    fn keep_joined_message(&mut self, severity: Severity, text: &[u8], place: Place) {
        let Some(reading) = message::read(severity, text) else { return };
        let kernel = reading.kernel.map(|name| self.assembler.name(name));
        if let Some(id) = self.assembler.repeat(&text[..text.len().min(LONG_TEXT)]) {
            self.assembler.keep_message(reading.kind, kernel, None, id, place);
        }
    }

    fn unfinished(&mut self, what: Partial, text: &[u8], place: Place) {
        match what {
            // These say themselves that they are cut.
            Partial::Used => {
                self.assembler.used(text, place, End::Cut);
                return;
            }
            Partial::Frame => {
                self.assembler.frame(text, place, End::Cut);
                return;
            }
            Partial::Entry => self.assembler.nameless_entry(place),
            Partial::Properties => {
                let name = memchr::memmem::find(text, b" for ").map_or(&b""[..], |at| &text[at + 5..]);
                self.assembler.torn_properties(name.trim_ascii(), place);
            }
            Partial::Time => {}
        }
        self.assembler.unread(Unread::Cut, text, place);
    }
}

impl PartialRecord {
    /// Its text with the text of `line` behind it.
    fn joined(&self, line: &[u8]) -> Vec<u8> {
        let tail = line.trim_ascii();
        let is_name = matches!(self.what, PartialText::Record(Partial::Entry | Partial::Properties));
        // Comment leaders stand before every line of a wrapped comment; a name may begin with any character.
        let leader = tail.iter().take_while(|b| b"*/#|> \t".contains(b)).count();
        let tail = if is_name { tail } else { &tail[leader..] };
        let mut text = self.text.clone();
        // Names have no blanks where they are broken; sentences and lists do.
        if !is_name || text.ends_with(b"for") || text.ends_with(b"function") {
            text.push(b' ');
        }
        text.extend_from_slice(tail);
        text
    }
}

/// Where another message starts inside the text of one.
fn inner_message(text: &[u8]) -> Option<usize> {
    const TOOLS: [&[u8]; 2] = [b"ptxas info ", b"nvlink info "];
    TOOLS.iter().filter_map(|tool| memchr::memmem::find(text, tool)).min()
}

/// Texts that the unnamed linker of the driver prints.
fn is_linker_text(text: &[u8]) -> bool {
    text.starts_with(b"Stack size for entry function") || memchr::memmem::find(text, b"uses too much").is_some()
}

/// Information that looks like figures must be read or noted, never dropped.
fn looks_like_figures(text: &[u8]) -> bool {
    let digits = text.first().is_some_and(u8::is_ascii_digit);
    text.starts_with(b"Used")
        || text.starts_with(b"used ")
        || text.starts_with(b"Function properties")
        || (digits && memchr::memmem::find(text, b" bytes").is_some())
}
