//! Reads the lines of a log one by one: which record, message or listing each of them holds, whatever damaged it.

mod listings;
mod position;
mod records;
pub(super) mod texts;
mod whole;

use std::ops::Range;

use self::listings::Part;
pub(super) use self::position::At;
use self::position::Position;
use super::assemble::{Assembler, Weight};
use super::envelope;
use super::glued::Glue;
use super::listing::Lead;
use super::log::LONG_LINE;
use super::nvcc::{self, Failure};
use super::partial::PartialRecord;
use super::record;
use super::wrapped::WrappedMessage;
use super::{clean, prefix, quoted, scan, usage};
use crate::model::{InputFacts, Message, MessageKind, Place, Report, Unread};

/// Lines within which the frame of a `Function properties` line must come.
const FRAME_WITHIN: u32 = 64;
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
    /// What the last warning at a place of a PTX file said, from the `;` behind its place on: builds say the same of each file.
    said_again: Vec<u8>,
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

impl<'r> LineReader<'r> {
    pub(super) fn new(report: &'r mut Report, input: u32) -> LineReader<'r> {
        LineReader {
            assembler: Assembler::new(report, input),
            position: Position::new(input),
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
            said_again: Vec::new(),
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
        self.position.forget(buffer, done, keep);
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
        if self.counts_again(at, line) {
            return Understood::Message;
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
        self.position.is_from_start()
    }

    /// The line at hand belongs to the job that its beginning names; a line that names none to that of the line before.
    fn select_stream(&mut self, before: &[u8]) {
        if !before.is_empty()
            && let Some(stream) = prefix::stream(before)
        {
            self.assembler.select(stream);
        }
    }
}
