//! How many messages of a log are kept: a hostile log may hold any number of them.
//!
//! Errors have room of their own, so that no flood of other messages hides that a build failed; and what finds no room is
//! counted, so that the loss is told.

use super::Assembler;
use crate::model::{Message, MessageKind, NameId, Place, Unread};
use crate::parse::message::Sentence;

/// Distinct messages that are kept.
const MAX_MESSAGES: usize = 1 << 16;
/// Bytes of their texts and names.
const MAX_BYTES: usize = 16 << 20;
/// Errors that are kept where there is no room for other messages.
const MAX_LATE_ERRORS: usize = 1 << 10;
/// Bytes of their texts and names.
const MAX_LATE_BYTES: usize = 1 << 20;

/// Texts that were repeated lately, of which as many are known as there are remainders of their length.
const REPEATED: usize = 32;

/// What of a log's messages was kept, and what was not.
#[derive(Default)]
pub(super) struct Room {
    /// For each text its place among the messages, from 1; 0 where it is none.
    messages: Vec<u32>,
    /// For each sentence its text, and for each kernel that it was said of the place of that message, from 1.
    sentences: [Said; Sentence::COUNT],
    /// Texts that were repeated lately, by their length: compilers say the same again and again.
    repeated: [Option<NameId>; REPEATED],
    bytes: usize,
    /// Errors that were kept after the room for all messages was used up.
    late_errors: usize,
    /// The first message without room, and how many there are.
    lost: Option<Message>,
}

/// Of which kernels a sentence was said.
#[derive(Default)]
struct Said {
    text: Option<NameId>,
    of_name: Vec<u32>,
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The build failed.
    Error,
    Other,
}

impl Weight {
    fn of(kind: MessageKind) -> Weight {
        if kind.fails_build() { Weight::Error } else { Weight::Other }
    }
}

impl Assembler<'_> {
    /// The id of a text that is new and to be kept. That of a text which was seen before is counted, and of one for which
    /// there is no room the loss.
    pub(crate) fn repeat(&mut self, text: &[u8], weight: Weight, place: impl FnOnce() -> Place) -> Option<NameId> {
        let recent = self.room.repeated[text.len() % REPEATED].filter(|id| self.report.texts.get(*id) == text);
        if let Some(at) = recent.and_then(|id| self.message_at(id)) {
            self.report.messages[at].count += 1;
            return None;
        }
        let full = self.is_full(weight);
        let id = if full { self.report.texts.find(text) } else { Some(self.report.texts.intern(text)) };
        if let Some(at) = id.and_then(|id| self.message_at(id)) {
            self.report.messages[at].count += 1;
            self.room.repeated[text.len() % REPEATED] = id;
            return None;
        }
        if full {
            self.lose(text, place);
            return None;
        }
        id
    }

    /// A sentence that names a kernel, behind `lead`.
    pub(crate) fn sentence(&mut self, said: &Sentence<'_>, lead: &[u8], place: impl FnOnce() -> Place) {
        let full = self.is_full(Weight::Other);
        let names = &mut self.report.names;
        let name = if full { names.find(said.name) } else { Some(names.intern(said.name)) };
        let known = name.and_then(|name| self.room.sentences[said.number].of_name.get(name.index()));
        if let Some(at) = known.and_then(|at| at.checked_sub(1)) {
            self.report.messages[at as usize].count += 1;
            return;
        }
        let Some(name) = name.filter(|_| !full) else {
            return self.lose(&[said.before, said.name, said.after].concat(), place);
        };
        let texts = &mut self.report.texts;
        let slot = &mut self.room.sentences[said.number];
        let text = *slot.text.get_or_insert_with(|| texts.intern(&[said.before, said.after].concat()));
        self.room.bytes += said.name.len();
        let message = Message {
            kernel: Some(name),
            name_at: Some(said.name_at),
            lead: (!lead.is_empty()).then(|| self.lead(lead)),
            ..Message::new(MessageKind::LaunchBounds, text, place())
        };
        self.report.messages.push(message);
        let of_name = &mut self.room.sentences[said.number].of_name;
        if of_name.len() <= name.index() {
            of_name.resize(name.index() + 1, 0);
        }
        of_name[name.index()] = u32::try_from(self.report.messages.len()).unwrap_or(0);
    }

    /// Which message has this key.
    pub(super) fn message_at(&self, key: NameId) -> Option<usize> {
        self.room.messages.get(key.index()).and_then(|at| at.checked_sub(1)).map(|at| at as usize)
    }

    fn is_crowded(&self) -> bool {
        self.report.messages.len() >= MAX_MESSAGES || self.room.bytes >= MAX_BYTES
    }

    fn is_full(&self, weight: Weight) -> bool {
        if weight == Weight::Other || !self.is_crowded() {
            return self.is_crowded();
        }
        // Of each log at least one error is kept: only errors use up this room.
        self.room.late_errors >= MAX_LATE_ERRORS || self.room.bytes >= MAX_BYTES + MAX_LATE_BYTES
    }

    /// Keeps a message whose key [`Assembler::repeat`] found to be new.
    pub(crate) fn keep_message(&mut self, key: NameId, message: Message) {
        let weight = Weight::of(message.kind);
        if self.is_full(weight) {
            let text = self.report.texts.get(key).to_vec();
            return self.lose(&text, || message.place);
        }
        self.room.late_errors += usize::from(self.is_crowded());
        self.room.bytes += self.bytes_of(key, &message);
        let known = &mut self.room.messages;
        if known.len() <= key.index() {
            known.resize(key.index() + 1, 0);
        }
        self.report.messages.push(message);
        known[key.index()] = u32::try_from(self.report.messages.len()).unwrap_or(0);
    }

    /// What a message takes: its key, its text where that is another one, and the name that it holds.
    fn bytes_of(&self, key: NameId, message: &Message) -> usize {
        let texts = &self.report.texts;
        let text = if message.text == key { 0 } else { texts.get(message.text).len() };
        let name = message.kernel.map_or(0, |name| self.report.names.get(name).len());
        texts.get(key).len() + text + name
    }

    fn lose(&mut self, text: &[u8], place: impl FnOnce() -> Place) {
        if let Some(lost) = &mut self.room.lost {
            lost.count += 1;
            return;
        }
        let text = self.report.texts.intern(&text[..text.len().min(super::MAX_QUOTE)]);
        self.room.lost = Some(Message::new(MessageKind::Unread(Unread::NotKept), text, place()));
    }

    /// Tells that messages were lost; there is always room for that.
    pub(super) fn tell_lost(&mut self) {
        self.report.messages.extend(self.room.lost.take());
    }
}
