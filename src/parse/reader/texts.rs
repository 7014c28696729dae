//! Keeps what the CUDA tools say in words: each text once, with a count.

use super::{At, LineReader};
use crate::model::{Arch, Message, MessageKind, NameId, Place, Unread};
use crate::parse::assemble::Weight;
use crate::parse::envelope::{self, Envelope, Severity};
use crate::parse::message::{self, Reading, Sentence};
use crate::parse::sentences::{self, GoesOn};
use crate::parse::wrapped::WrappedMessage;
use crate::parse::{clean, scan};

/// Longest warning that is recognised when it is said again of another place.
const LONG_AGAIN: usize = 512;

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
        if let Some(clean) = clean_text(text) {
            let line = [lead, &clean].concat();
            let envelope = Envelope { start: 0, text: lead.len(), ..envelope };
            return self.read_clean_text(at, &line, envelope, clean.trim_ascii());
        }
        self.read_clean_text(at, line, envelope, text);
    }

    /// The same, without anything that a terminal or a browser put there.
    fn read_clean_text(&mut self, at: At<'_>, line: &[u8], envelope: Envelope, text: &[u8]) {
        let severity = envelope.severity;
        let lead = &line[envelope.start..envelope.text];
        // Information that says nothing must not fill the memory, so it is read before it is kept.
        let says_nothing = text.is_empty() || (severity == Severity::Info && self.says_nothing(text));
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
        let key_id = self.assembler.repeat(key, weight, || self.position.place(key_at));
        if key_id.is_none() && severity < Severity::Error {
            return self.expect_again(line, lead, text);
        }
        let said = Said::new(severity, lead, text);
        let Some(reading) = message::read(severity, said.text) else { return };
        let place = self.position.place(at.after(lead.len()));
        if let Some(key_id) = key_id {
            if !self.is_cut() && self.waits_for_more(at, severity, lead, text, place, reading.unfinished) {
                return;
            }
            self.keep_said(said, reading, key, key_id, place);
        }
        self.keep_warned(said, place, true);
    }

    /// Keeps in mind how a line ends that was no more than another place of a warning that is counted.
    fn expect_again(&mut self, line: &[u8], lead: &[u8], text: &[u8]) {
        let Some(place) = lead.strip_suffix(LOCATED) else { return };
        let again = &line[place.len()..];
        if is_place(place) && again.len() <= LONG_AGAIN && again.len() == LOCATED.len() + text.len() {
            self.said_again.clear();
            self.said_again.extend_from_slice(again);
        }
    }

    /// Counts a warning that was counted before, if `line` is that one of another place and nothing that is open has a claim
    /// on it.
    pub(super) fn counts_again(&mut self, at: At<'_>, line: &[u8]) -> bool {
        if self.said_again.is_empty() || self.wants_every_line() {
            return false;
        }
        let Some(place) = line.strip_suffix(self.said_again.as_slice()) else { return false };
        if !is_place(place) {
            return false;
        }
        let lead = place.len() + LOCATED.len();
        self.assembler.repeat(&line[lead..], Weight::Other, || self.position.place(at.after(lead)));
        true
    }

    /// Whether information tells nothing that a person acts on, or is cut off before it does.
    fn says_nothing(&self, text: &[u8]) -> bool {
        let is_stub = |reading: Reading<'_>| reading.unfinished && reading.kind == MessageKind::Warning;
        message::read(Severity::Info, text).is_none_or(|reading| self.is_cut() && is_stub(reading))
    }

    /// Whether a message stops, or may stop, before its end: then the lines below are asked first.
    fn waits_for_more(
        &mut self,
        at: At<'_>,
        severity: Severity,
        lead: &[u8],
        text: &[u8],
        place: Place,
        unfinished: bool,
    ) -> bool {
        let goes_on = match sentences::goes_on(text) {
            GoesOn::Figure if !self.may_be_wrapped(at) => GoesOn::No,
            goes_on => goes_on,
        };
        if !unfinished && goes_on == GoesOn::No {
            return false;
        }
        let end = scan::line_end(at.buffer, at.line, at.buffer.len());
        let line = &at.buffer[at.line..end];
        let lead = Lead { severity, text: lead.to_vec() };
        let whole = (!unfinished).then_some(goes_on);
        self.begin_message(WrappedMessage::new(lead, text, place, line, at.column, whole));
        true
    }

    /// Keeps a message that stood on several lines; whether the name in it is `sure` is known to who put them together.
    pub(in crate::parse) fn keep_joined(&mut self, lead: &Lead, text: &[u8], sure: bool, place: Place) {
        let Lead { severity, text: ref lead } = *lead;
        if sure && let Some(sentence) = repeated_sentence(severity, text) {
            return self.assembler.sentence(&sentence, lead, || place);
        }
        let said = Said::new(severity, lead, text);
        let whole = [lead, text].concat();
        let key = if severity >= Severity::Error { &whole } else { text };
        let key = &key[..key.len().min(LONG_TEXT)];
        if let Some(key_id) = self.assembler.repeat(key, weight_of(severity), || place)
            && let Some(reading) = message::read(severity, said.text)
        {
            self.keep_said(said, reading.named_if(sure), key, key_id, place);
        }
        self.keep_warned(said, place, sure);
    }

    /// Keeps a message whose key is new.
    fn keep_said(&mut self, said: Said<'_>, reading: Reading<'_>, key: &[u8], key_id: NameId, place: Place) {
        if reading.kind == MessageKind::Setmaxnreg && message::is_of_separate_compilation(said.text) {
            self.facts().separate = true;
        }
        let kernel = reading.kernel.map(|name| self.assembler.name(name));
        let text = if said.text == key { key_id } else { self.assembler.text(said.text) };
        let lead = Some(self.assembler.lead(said.lead));
        let message = Message { kernel, arch: said.arch, lead, ..Message::new(reading.kind, text, place) };
        self.assembler.keep_message(key_id, message);
    }

    /// Of a warning that `-Werror` made an error of, keeps what it warns of as well.
    fn keep_warned(&mut self, said: Said<'_>, place: Place, sure: bool) {
        let Some(reading) = message::warned(said.severity, said.text) else { return };
        if let Some(key_id) = self.assembler.repeat(said.text, Weight::Other, || place) {
            self.keep_said(said, reading.named_if(sure), said.text, key_id, place);
        }
    }
}

/// What stands between the place of a warning in a PTX file and what it says.
const LOCATED: &[u8] = b"; warning : ";

/// Whether this is `ptxas x.ptx, line 8`, as ptxas writes it.
fn is_place(text: &[u8]) -> bool {
    text.starts_with(b"ptxas ") && memchr::memchr3(b':', 0x1b, b'&', text).is_none()
}

/// The text of a message without what terminals and browsers did to it, if they did.
fn clean_text(text: &[u8]) -> Option<Vec<u8>> {
    if clean::holds_markup(text) {
        // A tag that has no end stays.
        let bare = clean::without_markup(text);
        return Some(clean_of_damage(&bare).unwrap_or(bare));
    }
    clean_of_damage(text)
}

/// The same of a text without markup.
fn clean_of_damage(text: &[u8]) -> Option<Vec<u8>> {
    let mut clean = Vec::new();
    let is_damaged = clean::may_need_it(text) && clean::clean(text, &mut clean);
    let plain = if is_damaged { &clean } else { text };
    let mut quoted = Vec::new();
    if clean::may_have_other_quotes(plain)
        && !message::is_quoted(plain)
        && clean::plain_quotes(plain, &mut quoted)
        && message::is_quoted(&quoted)
    {
        return Some(quoted);
    }
    is_damaged.then_some(clean)
}

/// A message, taken apart.
#[derive(Clone, Copy)]
struct Said<'a> {
    severity: Severity,
    lead: &'a [u8],
    text: &'a [u8],
    arch: Option<Arch>,
}

impl<'a> Said<'a> {
    fn new(severity: Severity, lead: &'a [u8], text: &'a [u8]) -> Said<'a> {
        let (text, arch) = envelope::without_target(&text[..text.len().min(LONG_TEXT)]);
        Said { severity, lead, text, arch }
    }
}

/// What stands before the text of a message that is waited for.
pub(in crate::parse) struct Lead {
    pub(in crate::parse) severity: Severity,
    pub(in crate::parse) text: Vec<u8>,
}

/// The sentence that is kept without its name, if `text` is one.
pub(super) fn repeated_sentence(severity: Severity, text: &[u8]) -> Option<Sentence<'_>> {
    (severity < Severity::Error && text.len() <= LONG_TEXT).then(|| message::sentence(text)).flatten()
}

fn weight_of(severity: Severity) -> Weight {
    if severity >= Severity::Error { Weight::Error } else { Weight::Other }
}

#[cfg(test)]
mod tests {
    use crate::model::Bytes;
    use crate::parse::testing::read;

    #[test]
    fn a_tag_without_an_end_is_a_part_of_what_is_said() {
        for said in ["a </b", "</", "a </b> and </", "<b>a</b> < </"] {
            let report = read(&format!("ptxas warning : {said}\n"));
            assert_eq!(report.messages.len(), 1, "{said}");
        }
        let many = format!("ptxas warning : </b>{}>\n", "< ".repeat(400_000));
        assert_eq!(read(&many).messages.len(), 1);
    }

    #[test]
    fn a_warning_of_many_files_is_one_whatever_stands_between_and_in_its_places() {
        let said = "warning : Setting maxrregcount larger than the limit is not allowed";
        let log = format!(
            "ptxas a.ptx, line 3; {said}\nptxas a.ptx, line 4; {said}\nptxas b.ptx, line 4; {said}\r\nmake: x\n\
             ptxas \u{1b}[1mc.ptx\u{1b}[0m, line 4; {said}\n[2/9] ptxas c.ptx, line 4; {said}\n\
             ptxas info    : Compiling entry function 'k' for 'sm_80'\n\
             ptxas info    : Function properties for k\nptxas d.ptx, line 4; {said}\n\
             \x20   8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n\
             ptxas info    : Used 20 registers\nptxas e.ptx, line 4; {said}, and more\nptxas e.ptx, line 5; {said}"
        );
        let report = read(&log);
        let counts: Vec<(u32, u64)> = report.messages.iter().map(|one| (one.place.line, one.count)).collect();
        assert_eq!(counts, [(1, 7), (12, 1)], "{:?}", report.messages);
        assert_eq!(report.kernels[0].resources.spill_stores, Some(Bytes(4)));
    }
}
