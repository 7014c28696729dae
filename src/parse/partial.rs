//! Records that stand on several lines: wrapped by a pager, a terminal or a comment, or torn by another process whose
//! own record is on the same line.

use super::assemble::End;
use super::reader::{At, LineReader, Understood};
use super::record::{self, Partial, Record};
use super::usage;
use super::{clean, envelope};
use crate::model::Place;

/// Lines that a wrapped or torn record may go on for, besides those that only go on with its name.
const WITHIN: u32 = 4;
/// Longest text that is put together.
const LONGEST: usize = 16 * 1024;
/// Columns at which lines are usually broken.
const WIDTHS: [usize; 9] = [72, 76, 78, 79, 80, 100, 120, 132, 160];

/// A record whose end may be on one of the next lines.
pub(super) struct PartialRecord {
    what: Partial,
    text: Vec<u8>,
    place: Place,
    lines_left: u32,
    /// It is whole as it stands, and only a line that goes on with it adds anything.
    whole: bool,
    /// The compile time that came right behind it, on its line.
    time: Option<f64>,
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
    pub(super) fn begin_partial(&mut self, what: Partial, text: &[u8], place: Place) {
        self.end_partial();
        let text = text.to_vec();
        self.partial = Some(PartialRecord { what, text, place, lines_left: WITHIN, whole: false, time: None });
    }

    /// Waits for one line before a record is taken as it stands.
    pub(super) fn hold(&mut self, what: Partial, text: &[u8], place: Place) {
        self.begin_partial(what, text, place);
        self.partial.iter_mut().for_each(|partial| partial.whole = true);
    }

    /// A record that is not whole.
    pub(super) fn read_partial(&mut self, at: At<'_>, what: Partial, text: &[u8]) {
        let place = self.place(at);
        if self.is_cut() {
            self.unfinished(what, text, place);
        } else {
            self.begin_partial(what, text, place);
        }
    }

    /// Goes on with a record whose beginning stood on an earlier line. `None` when `line` is not its continuation.
    pub(super) fn continue_partial(&mut self, line: &[u8]) -> Option<Understood> {
        let mut partial = self.partial.take()?;
        let is_message = holds_message(line);
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
        self.continue_record(partial, line, was_whole)
    }

    /// Whether properties with `line` behind them are those of an open entry whose name holds blanks.
    fn makes_a_known_name(&mut self, partial: &mut PartialRecord, line: &[u8]) -> bool {
        if partial.what != Partial::Properties || partial.text.len() + line.len() > LONGEST {
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

    fn continue_record(&mut self, mut partial: PartialRecord, line: &[u8], was_whole: bool) -> Option<Understood> {
        let what = partial.what;
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
        if partial.whole {
            return self.keep_whole(&partial);
        }
        self.unfinished(partial.what, &partial.text, partial.place);
        self.keep_time_of(&partial);
    }
}

impl PartialRecord {
    /// Takes a compile time that follows on the same line: it is of these figures, or of what came before them. False where
    /// these are none.
    pub(super) fn take_time(&mut self, text: &[u8]) -> bool {
        if self.what != Partial::Used || self.time.is_some() {
            return false;
        }
        self.time = usage::compile_time(text);
        self.time.is_some()
    }

    fn is_name(&self) -> bool {
        matches!(self.what, Partial::Entry | Partial::Properties)
    }

    /// Whether a blank stood where the line was broken: names have none, but for those that hold blanks; lists do, unless a
    /// terminal broke them in a word.
    fn needs_blank(&self) -> bool {
        !self.is_name() || [&b"for"[..], b"function", b"entry", b","].iter().any(|word| self.text.ends_with(word))
    }

    /// Whether `line` goes on with a record that could have ended.
    fn goes_on_with(&self, line: &[u8]) -> bool {
        let tail = without_leader(line);
        match self.what {
            Partial::Used => tail.starts_with(b","),
            Partial::Entry => tail.starts_with(b"for '"),
            Partial::Properties => record::frame_in(line).is_none() && is_one_word(line),
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

/// Whether `line` holds a message of its own, perhaps below what a browser or a terminal did to it.
pub(super) fn holds_message(line: &[u8]) -> bool {
    let mut scratch = Vec::new();
    let is_hidden = |scratch: &mut Vec<u8>| clean::may_need_it(line) && clean::clean(line, scratch);
    envelope::find(line).is_some() || (is_hidden(&mut scratch) && envelope::find(&scratch).is_some())
}

/// Comment leaders stand before every line of a wrapped comment.
pub(super) fn without_leader(line: &[u8]) -> &[u8] {
    let leader = line.iter().take_while(|b| b"*/#|> \t".contains(b)).count();
    line[leader..].trim_ascii_end()
}

/// Whether a comment leader stands before what is surely a name; other names may begin with any character.
fn is_led_name(line: &[u8]) -> bool {
    let name = without_leader(line);
    [&b"_Z"[..], b"'", b"for '"].iter().any(|start| name.starts_with(start))
        || line.trim_ascii_start().starts_with(b"// ")
}

pub(super) fn is_one_word(line: &[u8]) -> bool {
    let word = line.trim_ascii();
    !word.is_empty() && memchr::memchr2(b' ', b'\t', word).is_none()
}

#[cfg(test)]
mod tests {
    use crate::model::{Bytes, Message, MessageKind};
    use crate::parse::testing::read;

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

    #[test]
    fn what_others_put_behind_a_record_is_no_part_of_it() {
        let whole = kernels(RECORDS);
        for behind in [" |", "`", " */", " | x", " <-- here"] {
            let entry = RECORDS.replace("'sm_90'", &format!("'sm_90'{behind}"));
            assert_eq!(kernels(&entry), whole, "{entry}");
        }
        for behind in [" |", "`", " */", "[0m", "[m"] {
            let all = RECORDS.replace('\n', &format!("{behind}\n"));
            assert_eq!(kernels(&all), whole, "{all}");
        }
        let error = "ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x16000 bytes, 0xc000 max)";
        for behind in ["", " |", "` |", "\", 3", " // removed"] {
            let report = read(&format!("{error}{behind}\n"));
            let named = report.messages.iter().map(|message| message.kernel.map(|id| report.names.get(id)));
            assert_eq!(named.collect::<Vec<_>>(), [Some(&b"_Z1kPf"[..])], "{behind}");
        }
    }

    #[test]
    fn a_comment_leader_before_a_quoted_name_is_no_part_of_it() {
        let whole = kernels(&RECORDS.replace("'a'", "'_Z1a'").replace("for a\n", "for _Z1a\n"));
        for leader in ["# ", "// ", " * ", "> "] {
            let log = RECORDS.replace("'a'", "'_Z1a'").replace("for a\n", "for _Z1a\n");
            let wrapped = log.replace("function '_Z1a'", "function\n'_Z1a'\n").replace("\n for 'sm", "\nfor 'sm");
            let led: String = wrapped.lines().map(|line| format!("{leader}{line}\n")).collect();
            assert_eq!(kernels(&led), whole, "{led}");
        }
    }

    #[test]
    fn a_number_below_0_is_unknown_and_tears_nothing() {
        let log = RECORDS.replacen("8 bytes stack frame, 0 bytes", "8 bytes stack frame, -56 bytes", 1);
        let found = kernels(&log);
        assert_eq!((found.len(), found[0].1, found[0].2), (2, Some(12), None), "{found:?}");
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
