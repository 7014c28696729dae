//! Keeps what the CUDA tools say in words: each text once, with a count.

use super::{At, LineReader};
use crate::model::{Message, Place, Unread};
use crate::parse::assemble::Weight;
use crate::parse::clean;
use crate::parse::envelope::{self, Envelope, Severity};
use crate::parse::message::{self, Sentence};
use crate::parse::partial::PartialText;

/// Longest text of a message that is kept: a sentence, and a name that it may hold.
const LONG_TEXT: usize = 8192;

impl LineReader<'_> {
    /// A message; `at` is where its envelope starts.
    pub(super) fn read_text(&mut self, at: At<'_>, line: &[u8], envelope: Envelope, text: &[u8]) {
        let severity = envelope.severity;
        let lead = &line[envelope.start..envelope.text];
        if let Some(sentence) = repeated_sentence(severity, text) {
            let places = || self.position.place(at.after(lead.len()));
            return self.assembler.sentence(&sentence, lead, places);
        }
        if clean::may_need_it(text) {
            let mut scratch = Vec::new();
            if clean::clean(text, &mut scratch) {
                let line = [lead, &scratch].concat();
                let envelope = Envelope { start: 0, text: lead.len(), ..envelope };
                return self.read_clean_text(at, &line, envelope, scratch.trim_ascii());
            }
        }
        self.read_clean_text(at, line, envelope, text);
    }

    /// The same, without anything that a terminal or a browser put there.
    fn read_clean_text(&mut self, at: At<'_>, line: &[u8], envelope: Envelope, text: &[u8]) {
        let severity = envelope.severity;
        let lead = &line[envelope.start..envelope.text];
        // Information that says nothing must not fill the memory, so it is read before it is kept.
        let says_nothing = text.is_empty() || (severity == Severity::Info && message::read(severity, text).is_none());
        if says_nothing && self.is_cut() {
            let place = self.position.place(at);
            return self.assembler.unread(Unread::Cut, line[envelope.start..].trim_ascii_end(), place);
        }
        if says_nothing && severity == Severity::Info {
            return;
        }
        // Equal errors at two places of a PTX file are two errors; of warnings the words are enough.
        let whole = &line[envelope.start..];
        let key = if severity >= Severity::Error { whole.trim_ascii_end() } else { text };
        let (key, weight) = (&key[..key.len().min(LONG_TEXT)], weight_of(severity));
        let key_at = if severity >= Severity::Error { at } else { at.after(lead.len()) };
        let Some(key_id) = self.assembler.repeat(key, weight, || self.position.place(key_at)) else { return };
        let (text, arch) = envelope::without_target(&text[..text.len().min(LONG_TEXT)]);
        let Some(reading) = message::read(severity, text) else { return };
        let place = self.position.place(at.after(lead.len()));
        if reading.unfinished && !self.is_cut() {
            return self.begin_partial(PartialText::Message(severity), text, place);
        }
        let kernel = reading.kernel.map(|name| self.assembler.name(name));
        let text = if text == key { key_id } else { self.assembler.text(text) };
        let lead = Some(self.assembler.lead(lead));
        self.assembler.keep_message(key_id, Message { kernel, arch, lead, ..Message::new(reading.kind, text, place) });
    }

    pub(in crate::parse) fn keep_joined_message(&mut self, severity: Severity, text: &[u8], place: Place) {
        if let Some(sentence) = repeated_sentence(severity, text) {
            return self.assembler.sentence(&sentence, b"", || place);
        }
        let Some(reading) = message::read(severity, text) else { return };
        let key = &text[..text.len().min(LONG_TEXT)];
        let Some(id) = self.assembler.repeat(key, weight_of(severity), || place) else { return };
        let kernel = reading.kernel.map(|name| self.assembler.name(name));
        self.assembler.keep_message(id, Message { kernel, ..Message::new(reading.kind, id, place) });
    }
}

/// The sentence that is kept without its name, if `text` is one.
fn repeated_sentence(severity: Severity, text: &[u8]) -> Option<Sentence<'_>> {
    (severity < Severity::Error && text.len() <= LONG_TEXT).then(|| message::sentence(text)).flatten()
}

fn weight_of(severity: Severity) -> Weight {
    if severity >= Severity::Error { Weight::Error } else { Weight::Other }
}
