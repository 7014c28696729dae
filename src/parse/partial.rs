//! Records that stand on several lines: wrapped by a pager, a terminal or a comment, or torn by another process whose
//! own record is on the same line.

use super::assemble::End;
use super::envelope::{self, Severity};
use super::reader::{At, LineReader, Understood};
use super::record::{self, Partial, Record};
use super::{message, scan, usage};
use crate::model::Place;

/// Lines that a wrapped or torn record may go on for, besides those that only go on with its name.
const WITHIN: u32 = 4;
/// Longest text that is put together.
const LONGEST: usize = 16 * 1024;
/// Columns at which lines are usually broken.
const WIDTHS: [usize; 9] = [72, 76, 78, 79, 80, 100, 120, 132, 160];

/// A record whose end may be on one of the next lines.
pub(super) struct PartialRecord {
    what: PartialText,
    text: Vec<u8>,
    /// Bytes of the text that stood on its first line.
    first: usize,
    place: Place,
    lines_left: u32,
    /// It is whole as it stands, and only a line that goes on with it adds anything.
    whole: bool,
    /// The compile time that came right behind it, on its line.
    time: Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum PartialText {
    Record(Partial),
    Message(Severity),
}

/// How good a reading is that two lines put together give.
#[derive(PartialEq, PartialOrd)]
enum Reading {
    Broken,
    Unfinished,
    Whole,
}

/// Whether a line of that many bytes may have been broken there.
pub(super) fn is_wrap_width(bytes: usize) -> bool {
    WIDTHS.contains(&bytes)
}

impl LineReader<'_> {
    pub(super) fn begin_partial(&mut self, what: PartialText, text: &[u8], place: Place) {
        self.end_partial();
        let (text, first) = (text.to_vec(), text.len());
        self.partial = Some(PartialRecord { what, text, first, place, lines_left: WITHIN, whole: false, time: None });
    }

    /// Waits for one line before a record is taken as it stands.
    pub(super) fn hold(&mut self, what: Partial, text: &[u8], place: Place) {
        self.begin_partial(PartialText::Record(what), text, place);
        self.partial.iter_mut().for_each(|partial| partial.whole = true);
    }

    /// A record that is not whole.
    pub(super) fn read_partial(&mut self, at: At<'_>, what: Partial, text: &[u8]) {
        let place = self.place(at);
        if self.is_cut() {
            self.unfinished(what, text, place);
        } else {
            self.begin_partial(PartialText::Record(what), text, place);
        }
    }

    /// Goes on with a record whose beginning stood on an earlier line. `None` when `line` is not its continuation.
    pub(super) fn continue_partial(&mut self, line: &[u8]) -> Option<Understood> {
        let mut partial = self.partial.take()?;
        let is_message = envelope::find(line).is_some();
        let was_whole = partial.whole;
        if partial.whole {
            if !is_message && (partial.goes_on_with(line) || self.makes_a_known_name(&mut partial, line)) {
                partial.whole = false;
            } else {
                self.keep_whole(&partial);
                return None;
            }
        }
        let name_goes_on = partial.is_name() && is_one_word(line) && partial.text.len() < LONGEST;
        partial.lines_left -= u32::from(!name_goes_on);
        if partial.lines_left == 0 {
            self.partial = Some(partial);
            self.end_partial();
            return None;
        }
        if is_message || partial.text.len() + line.len() > LONGEST {
            self.partial = Some(partial);
            return None;
        }
        match partial.what {
            PartialText::Record(what) => self.continue_record(partial, what, line, was_whole),
            PartialText::Message(severity) => self.continue_message(partial, severity, line),
        }
    }

    /// Goes on with a sentence, unless `line` is surely not of it.
    fn continue_message(&mut self, mut partial: PartialRecord, severity: Severity, line: &[u8]) -> Option<Understood> {
        if scan::holds_error(line) || record::frame_in(line).is_some() {
            self.give_up(partial);
            return None;
        }
        let first = partial.blank_in_sentence(line);
        let before = partial.text.len();
        for blank in [first, !first] {
            partial.text.truncate(before);
            partial.append(line, blank);
            if message::read(severity, &partial.text).is_some_and(|reading| !reading.unfinished) {
                self.keep_joined_message(severity, &partial.text, partial.place);
                return Some(Understood::Report);
            }
        }
        partial.text.truncate(before);
        partial.append(line, first);
        self.partial = Some(partial);
        Some(Understood::Report)
    }

    /// Whether properties with `line` behind them are those of an open entry whose name holds blanks.
    fn makes_a_known_name(&mut self, partial: &mut PartialRecord, line: &[u8]) -> bool {
        if partial.what != PartialText::Record(Partial::Properties) || partial.text.len() + line.len() > LONGEST {
            return false;
        }
        let before = partial.text.len();
        [false, true].into_iter().any(|blank| {
            partial.append(line, blank);
            let known = match record::read(&partial.text) {
                Record::Properties { name } => self.assembler.expects_properties_of(name),
                _ => false,
            };
            partial.text.truncate(before);
            known
        })
    }

    fn continue_record(
        &mut self,
        mut partial: PartialRecord,
        what: Partial,
        line: &[u8],
        was_whole: bool,
    ) -> Option<Understood> {
        let before = partial.text.len();
        let first = partial.needs_blank();
        let mut best = None;
        for blank in [first, !first] {
            partial.append(line, blank);
            let reading = self.judge(what, &partial.text);
            partial.text.truncate(before);
            if best.as_ref().is_none_or(|(known, _)| reading > *known) {
                best = Some((reading, blank));
            }
        }
        let (reading, blank) = best?;
        if reading == Reading::Broken && was_whole {
            // It was whole without what follows.
            self.keep_whole(&partial);
            return None;
        }
        if reading == Reading::Broken && matches!(what, Partial::Properties | Partial::Frame | Partial::Time) {
            // A name that now holds a blank was joined with a line that is not its tail.
            self.partial = Some(partial);
            return None;
        }
        partial.append(line, blank);
        partial.whole = reading == Reading::Whole;
        if partial.whole && !self.may_still_go_on(&partial, line) {
            self.keep_whole(&partial);
        } else {
            self.partial = Some(partial);
        }
        Some(Understood::Report)
    }

    /// Whether a record that is whole, and whose last line is `line`, may have been broken once more.
    fn may_still_go_on(&mut self, partial: &PartialRecord, line: &[u8]) -> bool {
        match record::read(&partial.text) {
            Record::Entry { arch, .. } => arch.is_none(),
            Record::Used { .. } => is_wrap_width(line.len()),
            Record::Properties { name } => is_wrap_width(line.len()) && !self.assembler.expects_properties_of(name),
            _ => false,
        }
    }

    fn judge(&mut self, what: Partial, text: &[u8]) -> Reading {
        match record::read(text) {
            Record::Frame { text } if usage::frame(text).is_ok() => Reading::Whole,
            Record::Frame { text } if usage::is_start_of_frame(text) => Reading::Unfinished,
            Record::Used { text } => match usage::usage(text) {
                Some(usage) if usage.unread_item => Reading::Broken,
                Some(usage) if usage.unfinished => Reading::Unfinished,
                Some(_) => Reading::Whole,
                None if usage::is_start_of_used(text) => Reading::Unfinished,
                None => Reading::Broken,
            },
            Record::Properties { name } if self.assembler.expects_properties_of(name) => Reading::Whole,
            Record::Properties { name } if is_one_word(name) => Reading::Whole,
            Record::Entry { .. } | Record::LinkProperties { .. } | Record::Time { .. } => Reading::Whole,
            Record::Partial { what: still, .. } if still == what && what == Partial::Entry => Reading::Unfinished,
            Record::Partial { what: still, .. } if still == what && is_one_word(text) => Reading::Unfinished,
            _ => Reading::Broken,
        }
    }

    fn keep_whole(&mut self, partial: &PartialRecord) {
        let place = partial.place;
        match record::read(&partial.text) {
            Record::Frame { text } => {
                self.assembler.frame(text, place, End::Cut);
            }
            Record::Used { text } => {
                let end = if usage::is_whole(text) { End::MayGoOn } else { End::Cut };
                self.assembler.used(text, place, end);
            }
            Record::Properties { name } => self.assembler.properties(name, place),
            Record::LinkProperties { name, target } => self.assembler.link_properties(name, target, place),
            Record::Entry { name, arch } => self.assembler.entry(name, arch, place),
            Record::Time { ms } => self.assembler.compile_time(ms),
            _ => {}
        }
        self.keep_time_of(partial);
    }

    fn keep_time_of(&mut self, partial: &PartialRecord) {
        if let Some(ms) = partial.time {
            self.assembler.compile_time(ms);
        }
    }

    /// The rest of a record did not come.
    pub(super) fn end_partial(&mut self) {
        if let Some(partial) = self.partial.take() {
            self.give_up(partial);
        }
    }

    pub(super) fn give_up(&mut self, partial: PartialRecord) {
        match partial.what {
            _ if partial.whole => self.keep_whole(&partial),
            PartialText::Record(what) => {
                self.unfinished(what, &partial.text, partial.place);
                self.keep_time_of(&partial);
            }
            // What came behind its first line did not make it whole.
            PartialText::Message(severity) => {
                self.keep_joined_message(severity, &partial.text[..partial.first], partial.place);
            }
        }
    }
}

impl PartialRecord {
    /// Takes a compile time that follows on the same line: it is of these figures, or of what came before them. False where
    /// these are none.
    pub(super) fn take_time(&mut self, text: &[u8]) -> bool {
        if self.what != PartialText::Record(Partial::Used) || self.time.is_some() {
            return false;
        }
        self.time = usage::compile_time(text);
        self.time.is_some()
    }

    fn is_name(&self) -> bool {
        matches!(self.what, PartialText::Record(Partial::Entry | Partial::Properties))
    }

    /// Whether a blank stood where the line was broken: names have none, but for those that hold blanks; sentences and
    /// lists do, unless a terminal broke them in a word.
    fn needs_blank(&self) -> bool {
        !self.is_name() || [&b"for"[..], b"function", b"entry", b","].iter().any(|word| self.text.ends_with(word))
    }

    /// Whether a blank stood where a sentence was broken before `line`: not in a name, nor in a number.
    fn blank_in_sentence(&self, line: &[u8]) -> bool {
        let in_number =
            self.text.last().is_some_and(u8::is_ascii_digit) && line.first().is_some_and(u8::is_ascii_digit);
        !in_number && !message::stops_in_a_name(&self.text)
    }

    /// Whether `line` goes on with a record that could have ended.
    fn goes_on_with(&self, line: &[u8]) -> bool {
        let tail = without_leader(line);
        match self.what {
            PartialText::Record(Partial::Used) => tail.starts_with(b","),
            PartialText::Record(Partial::Entry) => tail.starts_with(b"for '"),
            PartialText::Record(Partial::Properties) => record::frame_in(line).is_none() && is_one_word(line),
            _ => false,
        }
    }

    /// Its text with the text of `line` behind it.
    fn append(&mut self, line: &[u8], blank: bool) {
        let tail = if self.is_name() && !is_led_name(line) { line.trim_ascii() } else { without_leader(line) };
        if blank || (self.is_name() && tail.starts_with(b"for '")) {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(tail);
    }
}

/// Comment leaders stand before every line of a wrapped comment.
fn without_leader(line: &[u8]) -> &[u8] {
    let leader = line.iter().take_while(|b| b"*/#|> \t".contains(b)).count();
    line[leader..].trim_ascii_end()
}

/// Whether a comment leader stands before what is surely a name; other names may begin with any character.
fn is_led_name(line: &[u8]) -> bool {
    let name = without_leader(line);
    name.starts_with(b"_Z") || name.starts_with(b"for '") || line.trim_ascii_start().starts_with(b"// ")
}

fn is_one_word(line: &[u8]) -> bool {
    let word = line.trim_ascii();
    !word.is_empty() && memchr::memchr2(b' ', b'\t', word).is_none()
}

#[cfg(test)]
mod tests {
    use crate::model::{Bytes, Message, MessageKind, Report};
    use crate::parse::{Echo, EchoMode, read_log};

    fn read(log: &str) -> Report {
        let mut report = Report::default();
        let mut sink = std::io::sink();
        read_log(&mut log.as_bytes(), "x.log", &mut report, &mut Echo::new(EchoMode::None, &mut sink))
            .expect("a log in memory");
        report
    }

    /// What the messages of `log` are, and whose.
    fn said(log: &str) -> Vec<(MessageKind, String)> {
        let report = read(log);
        let name = |id| String::from_utf8_lossy(report.names.get(id)).into_owned();
        report.messages.iter().map(|one| (one.kind, one.kernel.map(name).unwrap_or_default())).collect()
    }

    /// The kernels of `log`: name, registers, stack, whether all of that is sure.
    fn kernels(log: &str) -> Vec<(String, Option<u32>, Option<u32>, bool)> {
        let report = read(log);
        let name = |id| String::from_utf8_lossy(report.names.get(id)).into_owned();
        let kernel = |kernel: &crate::model::Kernel| {
            let resources = &kernel.resources;
            let arch = kernel.arch.map_or_else(String::new, |arch| arch.to_string());
            let name = format!("{} {arch}", kernel.name.map(name).unwrap_or_default());
            (name, resources.registers, resources.stack.map(Bytes::get), !kernel.ambiguous)
        };
        report.kernels.iter().map(kernel).collect()
    }

    const SENTENCES: [&str; 7] = [
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma pipeline crossing function boundary at a function call in the function 'k'",
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.",
        "ptxas info    : (C7517) warpgroup.wait is injected in around line 9 by compiler to allow use of registers defined by GMMA in function 'k'",
        "ptxas warning : Stack size for entry function 'k' cannot be statically determined",
        "ptxas warning : Registers are spilled to local memory in function 'k', 8416 bytes spill stores, 11264 bytes spill loads",
        "ptxas warning : Local memory used for function 'k', size of stack frame: 5648 bytes",
        "ptxas warning : Value of threads per SM for entry k is out of range. .minnctapersm will be ignored",
    ];

    #[test]
    fn a_sentence_that_is_broken_between_two_words_is_one() {
        for sentence in SENTENCES {
            let whole = said(sentence);
            assert_eq!(whole.len(), 1);
            let lead = sentence.find(" : ").expect("a lead") + 30;
            for (at, _) in sentence.match_indices(' ').filter(|(at, _)| *at > lead) {
                for break_ in ["\n", "\n   ", "\n\n", " \n"] {
                    let broken = format!("{}{break_}{}\n", &sentence[..at], &sentence[at + 1..]);
                    assert_eq!(said(&broken), whole, "{broken}");
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_broken_is_put_together() {
        let spill = SENTENCES[4];
        for number in ["8416", "11264"] {
            let start = spill.find(number).expect("a number");
            for at in start + 1..start + number.len() {
                let broken = format!("{}\n{}\n", &spill[..at], &spill[at..]);
                assert_eq!(said(&broken), said(spill), "{broken}");
            }
        }
    }

    #[test]
    fn a_sentence_whose_end_does_not_come_takes_nothing_from_other_tools() {
        let log = "ptxas warning : Local memory used for\nx.cu(3): error: no\nmake: *** [x.o] Error 2\n";
        let kinds: Vec<MessageKind> = said(log).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds.len(), 3);
        assert_eq!(kinds[1], MessageKind::BuildError);
        let report = read("ptxas warning : Local memory used for\na\nb\nc\nd\ne\n");
        assert_eq!(report.texts.get(report.messages[0].text), b"Local memory used for");
    }

    #[test]
    fn names_in_messages_are_cleaned_of_typography() {
        for sentence in SENTENCES {
            for (open, close) in [("‘", "’"), ("&#39;", "&#39;"), ("\x1b[1m'", "'\x1b[0m")] {
                let dressed = sentence.replace("'k'", &format!("{open}k{close}"));
                let log = format!("{sentence}\n{dressed}\n");
                assert_eq!(said(&log), said(sentence), "{log}");
            }
        }
    }

    const RECORDS: &str = "ptxas info    : Compiling entry function 'a' for 'sm_90'\nptxas info    : Function properties for a\n    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 12 registers, used 0 barriers\nptxas info    : Compiling entry function 'b' for 'sm_90'\nptxas info    : Function properties for b\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 19 registers, used 1 barriers, 1607 bytes smem\n";

    #[test]
    fn records_that_lack_a_line_feed_are_two() {
        let whole = kernels(RECORDS);
        assert_eq!(whole, [("a sm_90".into(), Some(12), Some(8), true), ("b sm_90".into(), Some(19), Some(0), true)]);
        let feeds: Vec<usize> = RECORDS.match_indices('\n').map(|(at, _)| at).collect();
        for at in feeds.iter().copied().filter(|at| RECORDS[at + 1..].starts_with("ptxas")) {
            let glued = format!("{}{}", &RECORDS[..at], &RECORDS[at + 1..]);
            if RECORDS[..at].ends_with("for a") || RECORDS[..at].ends_with("for b") {
                continue;
            }
            assert_eq!(kernels(&glued), whole, "{glued}");
        }
    }

    #[test]
    fn of_many_records_on_one_line_all_are_read_and_what_is_torn_is_told() {
        for one in [
            "ptxas info    : Used 32 registers",
            "ptxas info    : Compiling entry function '",
            "ptxas info    : Compiling entry function 'k' for 'sm_",
            "ptxas info    : Compiling entry function 'ptxas info    : Used 32 registers",
        ] {
            let report = read(&format!("{RECORDS}{}\n{RECORDS}", one.repeat(20_000)));
            assert!(report.kernels.len() >= 2 && report.kernels.len() < 40, "{one}: {}", report.kernels.len());
            let is_unread = |message: &Message| matches!(message.kind, MessageKind::Unread(_));
            assert!(report.messages.iter().any(is_unread), "{one}");
        }
    }

    #[test]
    fn figures_with_colours_or_odd_blanks_are_read() {
        let dresses = [
            RECORDS.replace("12 registers", "\x1b[01;31m\x1b[K12 registers\x1b[m\x1b[K"),
            RECORDS.replace("8 bytes stack", "8\x1b[0m bytes stack"),
            RECORDS.replace("    : ", "\u{a0}\u{a0}\u{a0}\u{a0}: "),
            RECORDS.replace("    : ", "&nbsp;&nbsp;&nbsp;&nbsp;: ").replace("\n    ", "\n&nbsp;&nbsp;&nbsp;&nbsp;"),
            RECORDS.replace(' ', "\u{a0}"),
        ];
        for log in dresses {
            assert_eq!(kernels(&log), kernels(RECORDS), "{log}");
        }
    }

    #[test]
    fn figures_are_of_no_entry_that_comes_later() {
        for log in [
            "    0 bytes stack frameptxas info    : Used 8 registers, used 0 barriers\n, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Compiling entry function 'v' for 'sm_90'\n",
            "ptxas info    : Used 8 registers, used 0 barriers, 3ptxas info    : Compiling entry function 'v' for 'sm_90'\n64 bytes cmem[0]\n",
        ] {
            let found = kernels(log);
            assert_eq!(found.iter().find(|one| one.0 == "v sm_90").map(|one| one.1), Some(None), "{found:?}");
        }
        let torn = "ptxas info    : Compiling entry function 'p' for 'sm_80'\nptxas info    : Function properties for p\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 8 registers, used 0 barriers, 3ptxas info    : Compiling entry function 'v' for 'sm_80'\n64 bytes cmem[0]\nptxas info    : Function properties for v\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 24 registers, used 0 barriers, 368 bytes cmem[0]\n";
        let found = kernels(torn);
        assert_eq!(found, [("p sm_80".into(), Some(8), Some(0), true), ("v sm_80".into(), Some(24), Some(0), true)]);
    }
}
