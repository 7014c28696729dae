//! Reads the lines of a log one by one: which record, message or listing each of them holds, whatever damaged it.

mod listings;
pub(super) mod texts;
mod whole;

use std::ops::Range;

use self::listings::Part;
use super::assemble::{Assembler, Completeness, End, Weight};
use super::envelope::{self, Envelope, Severity, Tool};
use super::glued::Glue;
use super::listing::Lead;
use super::log::LONG_LINE;
use super::nvcc::{self, Failure};
use super::partial::{PartialRecord, is_wrap_width};
use super::record::{self, Partial, Record};
use super::wrapped::WrappedMessage;
use super::{clean, prefix, quoted, scan, usage};
use crate::model::{InputFacts, Message, MessageKind, Place, Report, Unread};

/// Lines within which the frame of a `Function properties` line must come.
const FRAME_WITHIN: u32 = 64;
/// Lines within which the frame of an entry without properties must come.
const FRAME_SOON: u32 = 4;
/// Longest error of another tool that is kept.
const LONG_ERROR: usize = 500;
/// How far back the header of a listing is looked for.
const LOOK_BACK: usize = 4096;

/// The state of one log while its lines are read.
pub(super) struct LineReader<'r> {
    pub(super) assembler: Assembler<'r>,
    position: Position,
    /// A record that goes on, on one of the next lines.
    pub(super) partial: Option<PartialRecord>,
    /// The same of a message.
    pub(super) wrapped: Option<WrappedMessage>,
    /// Inside a `cuobjdump` listing every line is looked at: lines of other tools that it may still be interrupted by.
    listing_for: u32,
    listing_part: Part,
    /// What stands before every line of it.
    listing_lead: Lead,
    /// No empty line has ended the header of the listing.
    header_open: bool,
    /// Where the listing starts in the buffer, when it was found after the fact.
    listing_start: Option<usize>,
    /// Lines in which the frame of the last entry may come without its properties, which a filter took out.
    frame_for: u32,
    /// A record with a name, or with figures that belong to one, was read.
    met_records: bool,
    /// A message was read behind padding that hides it from the usual search.
    met_damage: bool,
    /// Another message follows the one at hand on its line.
    pub(super) glue: Option<Glue>,
    /// The last line of the log lacks its end.
    pub(super) cut: bool,
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

impl Understood {
    /// How far a line was understood that has both: what is for people must reach them.
    pub(super) fn and(self, other: Understood) -> Understood {
        match (self, other) {
            (Understood::Message, _) | (_, Understood::Message) => Understood::Message,
            (Understood::Nothing, Understood::Nothing) => Understood::Nothing,
            _ => Understood::Report,
        }
    }
}

/// Where something stands in the buffer; its line number is counted only when it is asked for.
#[derive(Clone, Copy)]
pub(super) struct At<'b> {
    buffer: &'b [u8],
    /// Start of the line.
    line: usize,
    /// Bytes before it on the line.
    column: usize,
}

impl At<'_> {
    pub(super) fn after(self, bytes: usize) -> Self {
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
    /// How far into its line, by offset, the columns were counted last, and how many they are.
    columns: Columns,
}

#[derive(Clone, Copy, Default)]
struct Columns {
    line: u64,
    bytes: usize,
    columns: u32,
}

impl Position {
    fn count(&mut self, buffer: &[u8], to: usize) {
        if self.counted < to {
            let feeds = bytecount::count(&buffer[self.counted..to], b'\n');
            self.lines = self.lines.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX));
            self.counted = to;
        }
    }

    fn place(&mut self, at: At<'_>) -> Place {
        self.count(at.buffer, at.line);
        Place {
            input: self.input,
            line: self.lines.saturating_add(1),
            column_offset: self.columns(at),
            offset: self.base + (at.line + at.column) as u64,
        }
    }

    /// The columns before `at`; a line may hold thousands of records, so that they are counted on from the last.
    fn columns(&mut self, at: At<'_>) -> u32 {
        let line = self.base + at.line as u64;
        let known = Some(self.columns).filter(|known| known.line == line && known.bytes <= at.column);
        let known = known.unwrap_or(Columns { line, ..Columns::default() });
        let Some(text) = at.buffer.get(at.line + known.bytes..at.line + at.column) else { return 0 };
        let columns = known.columns.saturating_add(Place::columns(text));
        self.columns = Columns { line, bytes: at.column, columns };
        columns
    }

    /// The same for a line that is known to be `below` lines below the one asked for last.
    fn place_below(&mut self, below: u32, at: At<'_>) -> Place {
        self.lines = self.lines.saturating_add(below);
        self.counted = at.line;
        self.place(at)
    }
}

impl<'r> LineReader<'r> {
    pub(super) fn new(report: &'r mut Report, input: u32) -> LineReader<'r> {
        LineReader {
            assembler: Assembler::new(report, input),
            position: Position { input, base: 0, counted: 0, lines: 0, columns: Columns::default() },
            partial: None,
            wrapped: None,
            listing_for: 0,
            listing_part: Part::default(),
            listing_lead: Lead::default(),
            header_open: false,
            listing_start: None,
            frame_for: 0,
            met_records: false,
            met_damage: false,
            glue: None,
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
        self.end_message();
        self.assembler.finish_log();
    }

    /// True where the next line may matter though it holds no needle.
    pub(super) fn wants_every_line(&self) -> bool {
        self.listing_for > 0
            || self.frame_for > 0
            || self.partial.is_some()
            || self.wrapped.is_some()
            || self.assembler.awaits_frame()
    }

    /// True while nothing but stack frames may be in the log, which a filter may have left, or messages that are padded as
    /// no tool does it.
    pub(super) fn wants_rare_signs(&self) -> bool {
        !self.met_records || self.met_damage
    }

    /// Where the report that the line at `start` belongs to starts, if that was found only now.
    pub(super) fn report_start(&mut self, start: usize) -> usize {
        self.listing_start.take().unwrap_or(start)
    }

    /// Reads the line at `range` of the buffer; nothing before `found` in it is of interest.
    pub(super) fn take(&mut self, buffer: &[u8], range: Range<usize>, found: usize) -> Understood {
        let at = At { buffer, line: range.start, column: 0 };
        let line = &buffer[range];
        if line.is_empty() {
            // Between a carriage return and its line feed there is no line.
            self.header_open &= !buffer[..at.line].ends_with(b"\n");
            return Understood::Nothing;
        }
        if line.len() >= LONG_LINE {
            self.note_long_line(at, line);
        }
        let line = &line[..line.len().min(LONG_LINE)];
        self.frame_for = self.frame_for.saturating_sub(1);
        let understood = self.read_line(at, line, found);
        if understood == Understood::Report {
            self.assembler.facts().records += 1;
        }
        understood
    }

    /// Of a long line the beginning is read, and the rest is skipped.
    fn note_long_line(&mut self, at: At<'_>, line: &[u8]) {
        if memchr::memmem::find(&line[..LONG_LINE], b"ptxas").is_some() {
            let place = self.position.place(at);
            self.assembler.unread(Unread::LongLine, &line[..80], place);
        }
    }

    fn read_line(&mut self, at: At<'_>, line: &[u8], found: usize) -> Understood {
        if self.listing_for > 0 {
            let understood = self.read_listing(at, line);
            if understood != Understood::Nothing {
                return understood;
            }
        }
        if self.wrapped.is_some() && self.continue_message(line) {
            return Understood::Report;
        }
        if self.partial.is_some()
            && let Some(understood) = self.continue_partial(line)
        {
            return understood;
        }
        if let Some(envelope) = envelope::find_from(line, found) {
            self.select_stream(&line[..envelope.start]);
            if envelope.start > 0 && (self.assembler.awaits_frame() || self.may_be_stray_frame()) {
                self.read_frame_before(at, &line[..envelope.start]);
            }
            if quoted::begins_line(&line[..envelope.start])
                && let Some(lines) = quoted::lines(&line[envelope.start..])
            {
                return self.read_quoted(at.after(envelope.start), &lines);
            }
            return self.read_message(at, line, envelope);
        }
        if self.assembler.awaits_frame() {
            if let Some(start) = record::frame_in(line) {
                self.select_stream(&line[..start]);
                let text = clean::without_tail(quoted::up_to_end(&line[start..]).trim_ascii_end());
                self.keep_frame(text, at.after(start));
                return Understood::Report;
            }
            let place = self.position.place(at);
            self.assembler.expire_frames(place.line, FRAME_WITHIN);
        }
        if self.may_be_stray_frame()
            && let Some(start) = record::frame_in(line)
            && usage::frame(&line[start..]).is_ok()
        {
            self.keep_frame(clean::without_tail(line[start..].trim_ascii_end()), at.after(start));
            return Understood::Report;
        }
        if scan::holds_listing(line) {
            let understood = self.read_listing(at, line);
            if understood != Understood::Nothing {
                return understood;
            }
        }
        self.read_damaged(at, line)
    }

    /// The lines of a string, all of which stand on the line at hand.
    pub(super) fn read_quoted(&mut self, at: At<'_>, lines: &[u8]) -> Understood {
        let mut understood = Understood::Nothing;
        // Of a log that is cut here, that is the last of them.
        let cut = std::mem::take(&mut self.cut);
        let mut lines = lines.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).peekable();
        while let Some(line) = lines.next() {
            self.cut = cut && lines.peek().is_none();
            let read = match envelope::find(line) {
                Some(envelope) => self.read_message(at, line, envelope),
                None => self.read_quoted_frame(at, line),
            };
            if understood != Understood::Report {
                understood = read;
            }
        }
        self.cut = cut;
        understood
    }

    fn read_quoted_frame(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        if !self.assembler.awaits_frame() {
            return Understood::Nothing;
        }
        let Some(start) = record::frame_in(line) else { return Understood::Nothing };
        self.keep_frame(line[start..].trim_ascii_end(), at);
        Understood::Report
    }

    /// Whether a frame may come without its properties, which a filter took out.
    fn may_be_stray_frame(&self) -> bool {
        self.frame_for > 0 || !self.met_records
    }

    /// A frame that lacks its line feed, so that the next record is on its line.
    fn read_frame_before(&mut self, at: At<'_>, before: &[u8]) {
        let Some(start) = record::frame_in(before) else { return };
        if usage::frame(&before[start..]).is_ok() {
            self.keep_frame(&before[start..], at.after(start));
        }
    }

    /// A line that shows nothing as it stands: perhaps colours or entities hide a record, or another tool failed.
    fn read_damaged(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut understood = Understood::Nothing;
        if clean::may_need_it(line) && clean::clean(line, &mut scratch) {
            let frame = || self.assembler.awaits_frame().then(|| record::frame_in(&scratch)).flatten();
            understood = match (envelope::find(&scratch), frame()) {
                (Some(envelope), _) => {
                    self.met_damage |= scan::holds_rare_sign(line);
                    self.select_stream(&scratch[..envelope.start]);
                    self.read_message(at, &scratch, envelope)
                }
                (None, Some(start)) => {
                    self.keep_frame(scratch[start..].trim_ascii_end(), at.after(start));
                    Understood::Report
                }
                (None, None) => self.read_failure(at, &scratch),
            };
        } else if scan::holds_error(line) {
            understood = self.read_failure(at, line);
        }
        self.scratch = scratch;
        understood
    }

    fn read_failure(&mut self, at: At<'_>, line: &[u8]) -> Understood {
        let Some(failure) = nvcc::failure(line) else { return Understood::Nothing };
        let place = self.position.place(at);
        self.keep_failure(failure, line, place);
        Understood::Message
    }

    /// Keeps a line that starts at `place` and says that another tool failed.
    pub(super) fn keep_failure(&mut self, failure: Failure, line: &[u8], place: Place) {
        let kind = match failure {
            Failure::Error => MessageKind::BuildError,
            Failure::Stopped => MessageKind::BuildStopped,
        };
        let text = line.trim_ascii();
        let place = place.after(line.len() - line.trim_ascii_start().len());
        if let Some(id) = self.assembler.repeat(&text[..text.len().min(LONG_ERROR)], Weight::Error, || place) {
            self.assembler.keep_message(id, Message::new(kind, id, place));
        }
    }

    pub(super) fn place(&mut self, at: At<'_>) -> Place {
        self.position.place(at)
    }

    /// The place of the line at `line` of a buffer that is read to its end.
    pub(super) fn place_before(&mut self, buffer: &[u8], line: usize) -> Place {
        let end = self.position.place(At { buffer, line: buffer.len(), column: 0 });
        let feeds = bytecount::count(&buffer[line..], b'\n');
        let above = u32::try_from(feeds).unwrap_or(u32::MAX);
        Place { line: end.line.saturating_sub(above), offset: end.offset - (buffer.len() - line) as u64, ..end }
    }

    /// Whether the buffer holds the log from its start.
    pub(super) fn has_whole_log(&self) -> bool {
        self.position.base == 0
    }

    /// The line at hand belongs to the job that its beginning names; a line that names none to that of the line before.
    fn select_stream(&mut self, before: &[u8]) {
        if !before.is_empty()
            && let Some(stream) = prefix::stream(before)
        {
            self.assembler.select(stream);
        }
    }

    /// Reads a message that ends with `line`.
    pub(super) fn read_one(&mut self, at: At<'_>, line: &[u8], envelope: Envelope) -> Understood {
        let at = at.after(envelope.start);
        let text = clean::without_tail(line[envelope.text..].trim_ascii_end()).trim_ascii_start();
        if envelope.severity != Severity::Info {
            if envelope.tool == Tool::Unnamed && !is_linker_text(text) && !envelope::is_bare_error(line, envelope) {
                return Understood::Nothing;
            }
            self.read_text(at, line, envelope, text);
            return Understood::Message;
        }
        // Figures are quoted without what stands before them.
        let figures = at.after(envelope.text - envelope.start);
        if self.read_record(at, figures, text) {
            return Understood::Report;
        }
        if envelope.tool == Tool::Unnamed && !(self.is_cut() && record::is_stub(text)) {
            return Understood::Nothing;
        }
        if looks_like_figures(text) {
            let place = self.position.place(at);
            self.assembler.unread(Unread::Form, text, place);
        } else {
            self.read_text(at, line, envelope, text);
        }
        Understood::Report
    }

    /// A record of figures, cleaned of colours and typography where that makes one of it; of the message at `at`, whose text
    /// is at `figures`. False when it is none.
    fn read_record(&mut self, at: At<'_>, figures: At<'_>, text: &[u8]) -> bool {
        let read = record::read(text);
        let damaged = match read {
            Record::Partial { .. } | Record::Text => true,
            Record::Entry { name, .. }
            | Record::Properties { name }
            | Record::Function { name, .. }
            | Record::LinkProperties { name, .. } => {
                clean::may_need_it(name) || clean::holds_markup(name) || record::starts_with_other_quote(name)
            }
            // No colon is in figures but that of another record.
            _ => memchr::memchr3(0x1b, b'&', b':', text).is_some(),
        };
        if !damaged {
            self.keep(at, figures, text, read);
            return true;
        }
        let text = &clean_record(text);
        match record::read(text) {
            Record::Text => return false,
            Record::Partial { what, text } => self.read_partial(at, what, text),
            read => self.keep(at, figures, text, read),
        }
        true
    }

    pub(super) fn keep(&mut self, at: At<'_>, figures: At<'_>, text: &[u8], record: Record<'_>) {
        self.met_records |= !matches!(record, Record::Module | Record::Frame { .. } | Record::Time { .. });
        self.frame_for = if matches!(record, Record::Entry { .. }) { FRAME_SOON } else { 0 };
        match record {
            Record::Module => self.assembler.module(),
            // CUDA 2 and 3 name no architecture; later it may have been wrapped onto the next line.
            Record::Entry { arch: None, .. } if self.may_go_on() => self.hold_or_begin(Partial::Entry, text, at),
            Record::Entry { name, arch } => self.assembler.entry(name, arch, self.position.place(at)),
            Record::Properties { name }
                if self.may_stop_in_a_name(at) && !self.assembler.expects_properties_of(name) =>
            {
                self.hold_or_begin(Partial::Properties, text, at);
            }
            Record::Properties { name } => self.assembler.properties(name, self.position.place(at)),
            Record::Function { name, frame } => {
                self.assembler.properties(name, self.position.place(at));
                self.keep_frame(frame, figures.after(text.len() - frame.len()));
            }
            Record::LinkProperties { name, target } => {
                self.assembler.link_properties(name, target, self.position.place(at));
            }
            Record::Frame { text } => self.keep_frame(text, figures),
            Record::Used { text } => self.keep_used(text, figures),
            Record::LinkUsed { text, target } => {
                self.assembler.link_used(text, target, self.position.place(figures));
            }
            Record::Time { ms } => self.assembler.compile_time(ms),
            Record::Partial { .. } | Record::Text => {}
        }
    }

    /// Waits for what may come behind a record, which is whole unless it is torn.
    fn hold_or_begin(&mut self, what: Partial, text: &[u8], at: At<'_>) {
        let place = self.position.place(at);
        match self.glue {
            Some(_) => self.begin_partial(what, text, place),
            None => self.hold(what, text, place),
        }
    }

    /// Whether the log ends in the message at hand.
    pub(super) fn is_cut(&self) -> bool {
        self.cut && self.glue.is_none()
    }

    /// Whether a later line may go on with the message at hand.
    fn may_go_on(&self) -> bool {
        self.glue.map_or(!self.cut, |glue| glue == Glue::Torn)
    }

    /// Whether the name at the end of the message at hand may go on on a later line.
    fn may_stop_in_a_name(&self, at: At<'_>) -> bool {
        self.glue == Some(Glue::Torn) || self.may_be_wrapped(at)
    }

    /// Whether the message at hand ends where lines are usually broken.
    fn may_be_wrapped(&self, at: At<'_>) -> bool {
        self.glue.is_none() && !self.cut && is_wrap_width(scan::line_end(at.buffer, at.line, at.buffer.len()) - at.line)
    }

    fn keep_used(&mut self, text: &[u8], at: At<'_>) {
        if self.assembler.lacks_frame() {
            self.keep_frame_before(at);
        }
        if self.glue == Some(Glue::Torn) {
            return self.keep_torn_used(text, at);
        }
        let place = self.position.place(at);
        if self.may_be_wrapped(at) && usage::is_whole(text) {
            return self.hold(Partial::Used, text, place);
        }
        if self.assembler.used(text, place, self.end()) == Completeness::Unfinished {
            self.begin_partial(Partial::Used, text, place);
        }
    }

    /// Figures whose tail may be on a later line, even if they are whole as they stand.
    fn keep_torn_used(&mut self, text: &[u8], at: At<'_>) {
        let place = self.position.place(at);
        if usage::is_whole(text) {
            self.hold(Partial::Used, text, place);
        } else {
            self.begin_partial(Partial::Used, text, place);
        }
        if !self.assembler.has_open_entry() {
            // No entry that comes later has these figures.
            self.end_partial();
        }
    }

    /// Figures without an entry may have their frame on the line before, whose name was cut off with the log's head.
    fn keep_frame_before(&mut self, at: At<'_>) {
        let line_feed = at.line.saturating_sub(1);
        let end = line_feed - usize::from(at.buffer[..line_feed].ends_with(b"\r"));
        let start = scan::line_start(at.buffer, end.saturating_sub(LOOK_BACK), end);
        let line = &at.buffer[start..end];
        let Some(frame) = record::frame_in(line).filter(|frame| line[..*frame].trim_ascii().is_empty()) else { return };
        let here = self.position.place(At { column: 0, ..at });
        let offset = here.offset - (at.line - start) as u64;
        let place = Place { line: here.line.saturating_sub(1), offset, ..here };
        self.assembler.frame(line[frame..].trim_ascii_end(), place.after(frame), End::Cut);
    }

    fn keep_frame(&mut self, text: &[u8], at: At<'_>) {
        let place = self.position.place(at);
        if self.assembler.frame(text, place, self.end()) == Completeness::Whole {
            return;
        }
        let mut scratch = Vec::new();
        let changed = clean::may_need_it(text) && clean::clean(text, &mut scratch);
        let text = if changed { scratch.trim_ascii_end() } else { text };
        if !changed || self.assembler.frame(text, place, self.end()) == Completeness::Unfinished {
            self.begin_partial(Partial::Frame, text, place);
        }
    }

    /// What the end of the line at hand means for its record.
    fn end(&self) -> End {
        if self.is_cut() { End::Cut } else { End::MayGoOn }
    }

    pub(super) fn unfinished(&mut self, what: Partial, text: &[u8], place: Place) {
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

/// The text of a record without what browsers and terminals did to it.
fn clean_record(text: &[u8]) -> Vec<u8> {
    let bare = if clean::holds_markup(text) { clean::without_markup(text) } else { text.to_vec() };
    let mut scratch = Vec::new();
    clean::clean(&bare, &mut scratch);
    let clean = clean::without_tail(scratch.trim_ascii());
    let mut quoted = Vec::new();
    if record::has_other_quotes(clean) && clean::plain_quotes(clean, &mut quoted) {
        return quoted;
    }
    clean.to_vec()
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
