//! Reads a build log as it streams by: one pass, no copy of the input, whatever is in it.

use std::io::{self, Read, Write};

use super::assemble::Assembler;
use super::envelope::{self, Envelope, Severity, Tool};
use super::listing;
use super::nvcc::{self, Failure};
use super::record::{self, Partial, Record};
use super::scan::{self, Scanner};
use super::{clean, message};
use crate::model::{InputFacts, MessageKind, Place, Report, Unread};

/// Bytes asked for at once.
const READ: usize = 256 * 1024;
/// Longest line that is carried from one read to the next; of a longer one the beginning is read and the rest skipped.
const LONG_LINE: usize = 1024 * 1024;
/// Bytes before the unread ones that stay in the buffer, for the header of a listing.
const BEHIND: usize = 4096;
/// Lines within which the frame of a `Function properties` line must come.
const FRAME_WITHIN: u32 = 64;
/// Lines that a wrapped or torn record may go on for.
const PARTIAL_WITHIN: u32 = 4;

/// What becomes of lines that are no resource report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EchoMode {
    /// They are dropped.
    #[default]
    None,
    /// They are passed on.
    Others,
    /// All lines are passed on.
    All,
}

/// Passes lines on while the log is read.
pub struct Echo<'w> {
    mode: EchoMode,
    to: &'w mut dyn Write,
}

impl<'w> Echo<'w> {
    /// Passes on to `to` what `mode` says. Errors of `to` are ignored: a closed stderr must not stop a lint.
    pub fn new(mode: EchoMode, to: &'w mut dyn Write) -> Echo<'w> {
        Echo { mode, to }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let _ = self.to.write_all(bytes);
        }
    }
}

/// Reads a log to its end into `report`, under `name`.
///
/// # Errors
///
/// What `source` returns; all that was read before it is kept.
pub fn read_log(source: &mut dyn Read, name: &str, report: &mut Report, echo: &mut Echo<'_>) -> io::Result<()> {
    let input = u32::try_from(report.inputs.len()).unwrap_or(u32::MAX);
    report.inputs.push(InputFacts { name: name.to_owned(), ..InputFacts::default() });
    let mut log = Log::new(report, input, echo);
    let result = log.pump(source);
    log.assembler.finish_log();
    result
}

struct Log<'r, 'e, 'w> {
    assembler: Assembler<'r>,
    echo: &'e mut Echo<'w>,
    position: Position,
    /// A record that goes on, on one of the next lines.
    partial: Option<PartialRecord>,
    /// Inside a `cuobjdump` listing every line is looked at.
    in_listing: bool,
    /// The last line of the log lacks its end.
    cut: bool,
    /// Bytes of the buffer that are echoed or swallowed.
    echoed: usize,
    scratch: Vec<u8>,
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

/// How far a line was understood.
#[derive(Clone, Copy, PartialEq)]
enum Understood {
    /// A resource report: swallowed.
    Report,
    /// A message for people: passed on, and kept.
    Message,
    Nothing,
}

impl<'r, 'e, 'w> Log<'r, 'e, 'w> {
    fn new(report: &'r mut Report, input: u32, echo: &'e mut Echo<'w>) -> Self {
        Log {
            assembler: Assembler::new(report, input),
            echo,
            position: Position { input, base: 0, counted: 0, lines: 0 },
            partial: None,
            in_listing: false,
            cut: false,
            echoed: 0,
            scratch: Vec::new(),
        }
    }

    fn pump(&mut self, source: &mut dyn Read) -> io::Result<()> {
        let mut buffer = vec![0; BEHIND + READ];
        let (mut start, mut fill) = (0, 0);
        let mut skipping = false;
        loop {
            let read = match source.read(&mut buffer[fill..]) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.process(&buffer, start, fill);
                    return Err(error);
                }
            };
            let new = fill..fill + read;
            fill += read;
            self.look_at(&buffer[new.clone()], new.start == 0);
            let end = memchr::memrchr2(b'\n', b'\r', &buffer[new.clone()]).map(|at| new.start + at + 1);
            match end {
                Some(end) => {
                    if skipping {
                        start = scan::line_end(&buffer, new.start, end);
                        skipping = false;
                    }
                    self.process(&buffer, start, end);
                    start = end;
                }
                None if skipping => start = fill,
                None if fill - start > LONG_LINE => {
                    self.process(&buffer, start, fill);
                    self.long_line(&buffer[start..fill], start);
                    start = fill;
                    skipping = true;
                }
                None => {}
            }
            self.echo_rest(&buffer, start);
            self.make_room(&mut buffer, &mut start, &mut fill);
        }
        self.cut = start < fill && !skipping;
        self.process(&buffer, start, fill);
        self.end_partial();
        self.echo_rest(&buffer, fill);
        Ok(())
    }

    /// Moves what is not done with to the front, when the buffer's end is near.
    fn make_room(&mut self, buffer: &mut Vec<u8>, start: &mut usize, fill: &mut usize) {
        if buffer.len() - *fill >= READ / 2 {
            return;
        }
        let keep = start.saturating_sub(BEHIND).min(self.echoed);
        self.position.count(buffer, *start);
        buffer.copy_within(keep..*fill, 0);
        *start -= keep;
        *fill -= keep;
        self.echoed -= keep;
        self.position.counted -= keep;
        self.position.base += keep as u64;
        if buffer.len() - *fill < READ / 2 {
            buffer.resize(buffer.len() + READ, 0);
        }
    }

    /// Facts of new bytes as such.
    fn look_at(&mut self, new: &[u8], first: bool) {
        let facts = self.assembler.facts();
        facts.bytes += new.len() as u64;
        facts.binary |= first && memchr::memchr(0, new).is_some();
        if !facts.compiles_cuda && facts.records == 0 {
            facts.compiles_cuda = nvcc::compiles_cuda(new);
        }
    }

    fn echo_rest(&mut self, buffer: &[u8], to: usize) {
        if self.echoed < to {
            if self.echo.mode != EchoMode::None {
                self.echo.write(&buffer[self.echoed..to]);
            }
            self.echoed = to;
        }
    }

    /// Reads whole lines.
    fn process(&mut self, buffer: &[u8], start: usize, end: usize) {
        let mut scanner = Scanner::new(end);
        let mut at = start;
        while at < end {
            if self.wants_every_line() {
                let line_end = scan::line_end(buffer, at, end);
                self.take_line(buffer, at, line_end);
                at = line_end + 1;
                continue;
            }
            // Records come in bursts: the next line is often one too, and then needs no search.
            let line = if envelope::plain_info(&buffer[at..end]).is_some() {
                at
            } else {
                match scanner.find(buffer, at) {
                    Some(found) => scan::line_start(buffer, at, found),
                    None => break,
                }
            };
            let line_end = scan::line_end(buffer, line, end);
            self.take_line(buffer, line, line_end);
            at = line_end + 1;
        }
    }

    fn wants_every_line(&self) -> bool {
        self.in_listing || self.partial.is_some() || self.assembler.awaits_frame()
    }

    fn take_line(&mut self, buffer: &[u8], start: usize, end: usize) {
        self.position.count(buffer, start);
        let line = &buffer[start..end];
        if line.is_empty() {
            return;
        }
        let place = self.position.place(start);
        let understood = self.read_line(buffer, start, line, place);
        if understood == Understood::Report {
            self.assembler.facts().records += 1;
        }
        if understood == Understood::Report && self.echo.mode == EchoMode::Others {
            self.echo_rest(buffer, start);
            let feed = buffer.get(end).is_some_and(|b| *b == b'\r') && buffer.get(end + 1).is_some_and(|b| *b == b'\n');
            self.echoed = (end + 1 + usize::from(feed)).min(buffer.len());
        }
    }

    fn read_line(&mut self, buffer: &[u8], start: usize, line: &[u8], place: Place) -> Understood {
        if self.in_listing || memchr::memmem::find(line, b"REG:").is_some() {
            let understood = self.read_listing(buffer, start, line, place);
            if understood != Understood::Nothing {
                return understood;
            }
        }
        if let Some(understood) = self.continue_partial(line) {
            return understood;
        }
        if let Some(envelope) = envelope::find(line) {
            return self.read_message(buffer, start, line, envelope, place);
        }
        if let Some(at) = record::frame_in(line)
            && (self.assembler.awaits_frame() || at == line.len() - line.trim_ascii_start().len())
        {
            return self.read_frame(line, at, place);
        }
        if self.assembler.awaits_frame() {
            self.assembler.expire_frames(place.line, FRAME_WITHIN);
        }
        self.read_damaged(buffer, start, line, place)
    }

    /// A line that shows nothing as it stands: perhaps colours or entities hide a record, or another tool failed.
    fn read_damaged(&mut self, buffer: &[u8], start: usize, line: &[u8], place: Place) -> Understood {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut understood = Understood::Nothing;
        if memchr::memchr2(0x1b, b'&', line).is_some() && clean::clean(line, &mut scratch) {
            understood = match envelope::find(&scratch) {
                Some(envelope) => self.read_message(buffer, start, &scratch, envelope, place),
                None => self.read_failure(&scratch, place),
            };
        } else if memchr::memmem::find(line, b"rror").is_some() {
            understood = self.read_failure(line, place);
        }
        self.scratch = scratch;
        understood
    }

    fn read_failure(&mut self, line: &[u8], place: Place) -> Understood {
        let kind = match nvcc::failure(line) {
            Some(Failure::Error) => MessageKind::BuildError,
            Some(Failure::Stopped) => MessageKind::BuildStopped,
            None => return Understood::Nothing,
        };
        let text = line.trim_ascii();
        let blanks = line.len() - line.trim_ascii_start().len();
        if let Some(id) = self.assembler.repeat(&text[..text.len().min(500)]) {
            self.assembler.keep_message(kind, None, None, id, place.after(blanks));
        }
        Understood::Message
    }

    fn read_message(
        &mut self,
        buffer: &[u8],
        start: usize,
        line: &[u8],
        envelope: Envelope,
        place: Place,
    ) -> Understood {
        let place = place.after(envelope.start);
        let text = clean::without_project(line[envelope.text..].trim_ascii_end()).trim_ascii_start();
        if envelope.severity != Severity::Info {
            return self.read_warning(envelope, text, place);
        }
        match self.read_record(buffer, start, text, place) {
            Some(understood) => understood,
            None => self.read_info(envelope, text, place),
        }
    }

    /// A record of figures, cleaned of colours and typography where that makes one of it.
    fn read_record(&mut self, buffer: &[u8], start: usize, text: &[u8], place: Place) -> Option<Understood> {
        let read = record::read(text);
        let damaged =
            matches!(read, Record::Partial { .. } | Record::Text) || text.iter().rev().take(6).any(|b| *b == 0x1b);
        if !damaged {
            self.keep(buffer, start, read, place);
            return Some(Understood::Report);
        }
        let mut scratch = Vec::new();
        let read = if clean::clean(text, &mut scratch) { record::read(scratch.trim_ascii_end()) } else { read };
        match read {
            Record::Text => None,
            Record::Partial { what, text } => {
                self.read_partial(buffer, start, what, text, place);
                Some(Understood::Report)
            }
            read => {
                self.keep(buffer, start, read, place);
                Some(Understood::Report)
            }
        }
    }

    fn keep(&mut self, buffer: &[u8], start: usize, record: Record<'_>, place: Place) {
        match record {
            Record::Module => self.assembler.module(),
            Record::Entry { name, arch } => self.assembler.entry(name, arch, place),
            Record::Properties { name } => self.assembler.properties(name, place),
            Record::LinkProperties { name, target } => self.assembler.link_properties(name, target, place),
            Record::Frame { text } => self.assembler.frame(text, place),
            Record::Used { text } if is_wrapped(text) && !self.cut => {
                self.begin_partial(PartialText::Record(Partial::Used), text, place)
            }
            Record::Used { text } => self.used(buffer, start, text, place),
            Record::LinkUsed { text, target } => self.assembler.link_used(text, target, place),
            Record::Time { ms } => self.assembler.compile_time(ms),
            Record::Partial { .. } | Record::Text => {}
        }
    }

    /// Figures without an entry may have their frame on the line before, whose name was cut off with the log's head.
    fn used(&mut self, buffer: &[u8], start: usize, text: &[u8], place: Place) {
        if self.assembler.lacks_frame() && start > 0 {
            let before_end = start - 1 - usize::from(start > 1 && &buffer[start - 2..start] == b"\r\n");
            let before = scan::line_start(buffer, 0, before_end);
            let line = &buffer[before..before_end];
            if let Some(at) = record::frame_in(line).filter(|at| line[..*at].trim_ascii().is_empty()) {
                let frame_place = Place {
                    line: place.line.saturating_sub(1),
                    column_offset: 0,
                    offset: self.position.base + before as u64,
                    ..place
                };
                self.assembler.frame(line[at..].trim_ascii_end(), frame_place.after(at));
            }
        }
        self.assembler.used(text, place, self.cut);
    }

    fn read_frame(&mut self, line: &[u8], at: usize, place: Place) -> Understood {
        let text = line[at..].trim_ascii_end();
        let text = clean::without_project(text);
        if super::usage::frame(text).is_ok() || self.cut {
            self.assembler.frame(text, place.after(at));
        } else {
            self.begin_partial(PartialText::Record(Partial::Frame), text, place.after(at));
        }
        Understood::Report
    }

    fn read_warning(&mut self, envelope: Envelope, text: &[u8], place: Place) -> Understood {
        if envelope.tool == Tool::Unnamed && !is_linker_text(text) {
            return Understood::Nothing;
        }
        self.read_text(envelope.severity, text, place);
        Understood::Message
    }

    fn read_info(&mut self, envelope: Envelope, text: &[u8], place: Place) -> Understood {
        if envelope.tool == Tool::Unnamed {
            return Understood::Nothing;
        }
        if looks_like_figures(text) {
            self.assembler.unread(Unread::Form, text, place);
            return Understood::Report;
        }
        self.read_text(Severity::Info, text, place);
        Understood::Report
    }

    fn read_text(&mut self, severity: Severity, text: &[u8], place: Place) {
        let Some(id) = self.assembler.repeat(&text[..text.len().min(LONG_TEXT)]) else { return };
        let Some(reading) = message::read(severity, text) else { return };
        if reading.unfinished && !self.cut {
            return self.begin_partial(PartialText::Message(severity), text, place);
        }
        let kernel = reading.kernel.map(|name| self.assembler.name(name));
        self.assembler.keep_message(reading.kind, kernel, None, id, place);
    }

    fn read_listing(&mut self, buffer: &[u8], start: usize, line: &[u8], place: Place) -> Understood {
        if !self.in_listing {
            self.in_listing = true;
            self.look_back(buffer, start, place);
        }
        let indent = line.len() - line.trim_ascii_start().len();
        match listing::read(line) {
            listing::Line::Arch(arch) => self.assembler.listed_arch(arch),
            listing::Line::Function(name) => self.assembler.listed_function(name, place.after(indent)),
            listing::Line::Figures(listed) => {
                self.assembler.listed_figures(*listed, line.trim_ascii(), place.after(indent))
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
    fn look_back(&mut self, buffer: &[u8], start: usize, place: Place) {
        let mut lines = Vec::new();
        let mut end = start;
        while end > start.saturating_sub(BEHIND) {
            let before = scan::line_start(buffer, start.saturating_sub(BEHIND), end - 1);
            let line = &buffer[before..end - 1];
            if listing::read(line) == listing::Line::Foreign {
                break;
            }
            lines.push((before, line));
            end = before;
        }
        let mut number = place.line
            - lines.iter().filter(|(before, line)| buffer.get(before + line.len()) == Some(&b'\n')).count() as u32;
        for (before, line) in lines.into_iter().rev() {
            let indent = line.len() - line.trim_ascii_start().len();
            let place = Place { line: number, column_offset: 0, offset: self.position.base + before as u64, ..place }
                .after(indent);
            match listing::read(line) {
                listing::Line::Arch(arch) => self.assembler.listed_arch(arch),
                listing::Line::Function(name) => self.assembler.listed_function(name, place),
                _ => {}
            }
            number += u32::from(buffer.get(before + line.len()) == Some(&b'\n'));
        }
    }

    fn begin_partial(&mut self, what: PartialText, text: &[u8], place: Place) {
        self.end_partial();
        self.partial = Some(PartialRecord { what, text: text.to_vec(), place, lines_left: PARTIAL_WITHIN });
    }

    /// A record that is not whole: wrapped by a pager, or torn by another process whose own record is on the same line.
    fn read_partial(&mut self, buffer: &[u8], start: usize, what: Partial, text: &[u8], place: Place) {
        let inner = inner_message(text);
        let head = inner.map_or(text, |at| &text[..at]);
        if self.cut {
            self.unfinished(what, head, place);
        } else {
            self.begin_partial(PartialText::Record(what), head, place);
        }
        if let Some(at) = inner {
            // The other process's record is whole; the torn one's tail is on a later line.
            let partial = self.partial.take();
            let line = &text[at..];
            if let Some(envelope) = envelope::find(line) {
                self.read_message(buffer, start, line, envelope, place.after(at));
            }
            if self.partial.is_none() {
                self.partial = partial;
            }
        }
    }

    /// Goes on with a record whose beginning stood on an earlier line. `None` when `line` is not its continuation.
    fn continue_partial(&mut self, line: &[u8]) -> Option<Understood> {
        let partial = self.partial.as_mut()?;
        partial.lines_left -= 1;
        if partial.lines_left == 0 || envelope::find(line).is_some() {
            if partial.lines_left == 0 {
                self.end_partial();
            }
            return None;
        }
        let tail = line.trim_ascii().trim_ascii_start();
        let tail = if matches!(partial.what, PartialText::Record(Partial::Entry | Partial::Properties)) {
            tail
        } else {
            let leader = tail.iter().take_while(|b| b"*/#|> \t".contains(b)).count();
            &tail[leader..]
        };
        let mut text = partial.text.clone();
        if needs_blank(&text, partial.what) {
            text.push(b' ');
        }
        text.extend_from_slice(tail);
        let (what, place) = (partial.what, partial.place);
        match what {
            PartialText::Record(what) => match record::read(&text) {
                // The tail of a torn name is followed by its frame, so a name is whole when it stands on a line alone.
                Record::Partial { .. } | Record::Text => {
                    if what == Partial::Properties {
                        return None;
                    }
                    if let Some(partial) = &mut self.partial {
                        partial.text = text;
                    }
                }
                Record::Used { text } if is_wrapped(text) => {
                    let text = text.to_vec();
                    if let Some(partial) = &mut self.partial {
                        partial.text = text;
                    }
                }
                Record::Frame { text } => {
                    self.partial = None;
                    self.assembler.frame(text, place);
                }
                Record::Used { text } => {
                    self.partial = None;
                    self.assembler.used(text, place, false);
                }
                Record::Properties { name } => {
                    self.partial = None;
                    self.assembler.properties(name, place);
                }
                Record::Entry { name, arch } => {
                    self.partial = None;
                    self.assembler.entry(name, arch, place);
                }
                Record::Time { ms } => {
                    self.partial = None;
                    self.assembler.compile_time(ms);
                }
                _ => self.partial = None,
            },
            PartialText::Message(severity) => {
                self.partial = None;
                self.read_text(severity, &text, place);
            }
        }
        Some(Understood::Report)
    }

    /// The rest of a record did not come.
    fn end_partial(&mut self) {
        let Some(partial) = self.partial.take() else { return };
        match partial.what {
            PartialText::Record(what) => self.unfinished(what, &partial.text, partial.place),
            PartialText::Message(severity) => {
                if let Some(reading) = message::read(severity, &partial.text) {
                    let kernel = reading.kernel.map(|name| self.assembler.name(name));
                    if let Some(id) = self.assembler.repeat(&partial.text) {
                        self.assembler.keep_message(reading.kind, kernel, None, id, partial.place);
                    }
                }
            }
        }
    }

    fn unfinished(&mut self, what: Partial, text: &[u8], place: Place) {
        match what {
            Partial::Used => return self.assembler.used(text, place, true),
            Partial::Entry => self.assembler.nameless_entry(place),
            Partial::Properties => {
                let name = memchr::memmem::find(text, b" for ").map_or(&b""[..], |at| &text[at + 5..]);
                self.assembler.torn_properties(name.trim_ascii(), place);
            }
            Partial::Frame | Partial::Time => {}
        }
        self.assembler.unread(Unread::Cut, text, place);
    }

    fn long_line(&mut self, line: &[u8], start: usize) {
        if memchr::memmem::find(line, b"ptxas").is_some() {
            let place = self.position.place(start);
            self.assembler.unread(Unread::LongLine, &line[..80.min(line.len())], place);
        }
    }
}

/// Longest text of a message that is kept: a sentence, and a name that it may hold.
const LONG_TEXT: usize = 8192;

/// Whether a `Used` line goes on, on the next line.
fn is_wrapped(text: &[u8]) -> bool {
    text.ends_with(b",") || super::usage::usage(text).is_some_and(|usage| usage.unfinished)
}

/// Where another message starts inside the text of one.
fn inner_message(text: &[u8]) -> Option<usize> {
    const TOOLS: [&[u8]; 2] = [b"ptxas info ", b"nvlink info "];
    TOOLS.iter().filter_map(|tool| memchr::memmem::find(text, tool)).min()
}

/// Whether a wrapped text was broken between two words: names have no blanks, sentences and lists do.
fn needs_blank(text: &[u8], what: PartialText) -> bool {
    match what {
        PartialText::Record(Partial::Entry) => text.ends_with(b"for") || text.ends_with(b"function"),
        PartialText::Record(Partial::Properties) => text.ends_with(b"for"),
        _ => true,
    }
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

impl Position {
    fn count(&mut self, buffer: &[u8], to: usize) {
        if self.counted < to {
            let feeds = memchr::memchr_iter(b'\n', &buffer[self.counted..to]).count();
            self.lines = self.lines.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX));
            self.counted = to;
        }
    }

    fn place(&self, start: usize) -> Place {
        Place {
            input: self.input,
            line: self.lines.saturating_add(1),
            column_offset: 0,
            offset: self.base + start as u64,
        }
    }
}
