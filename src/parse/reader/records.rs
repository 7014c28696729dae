//! Keeps the records of figures: of kernels and functions, their frames, what they use.

use super::position::At;
use super::{LOOK_BACK, LineReader, Understood};
use crate::model::{Place, Unread};
use crate::parse::assemble::{Completeness, End};
use crate::parse::envelope::{self, Envelope, Severity, Tool};
use crate::parse::glued::Glue;
use crate::parse::partial::is_wrap_width;
use crate::parse::record::{self, Partial, Record};
use crate::parse::{clean, scan, usage};

/// Lines within which the frame of an entry without properties must come.
const FRAME_SOON: u32 = 4;

impl LineReader<'_> {
    /// Reads a message that ends with `line`.
    pub(in super::super) fn read_one(&mut self, at: At<'_>, line: &[u8], envelope: Envelope) -> Understood {
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

    pub(in super::super) fn keep(&mut self, at: At<'_>, figures: At<'_>, text: &[u8], record: Record<'_>) {
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
    pub(in super::super) fn is_cut(&self) -> bool {
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
    pub(super) fn may_be_wrapped(&self, at: At<'_>) -> bool {
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

    pub(super) fn keep_frame(&mut self, text: &[u8], at: At<'_>) {
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

    pub(in super::super) fn unfinished(&mut self, what: Partial, text: &[u8], place: Place) {
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
