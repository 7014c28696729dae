//! Messages that stand on several lines: a pager, a terminal, a comment or a Markdown file broke them.
//!
//! A line is of the message above it only if both together are, as far as they go, a sentence that the tools are known to
//! say. So nothing is taken from another tool, and a blank is put only where the sentence has one.

use super::partial::{holds_message, is_one_word, without_leader};
use super::reader::LineReader;
use super::reader::texts::Lead;
use super::sentences::{Fit, GoesOn, Joined, Pieces};
use super::{clean, prefix, record, scan};
use crate::model::Place;

/// Lines that a message may go on for.
const MOST_LINES: u32 = 64;
/// Of these, lines of which nothing but the end of the sentence will tell that they are of the message.
const MOST_OPEN: u32 = 4;
/// Longest message that is put together.
const LONGEST: usize = 16 * 1024;

/// A message whose end may be on one of the next lines.
pub(super) struct WrappedMessage {
    lead: Lead,
    /// What stood before it on its line.
    prefix: Vec<u8>,
    /// Bytes of its first line, and of the last one that was read: one that is shorter was not broken in a word.
    width: usize,
    last: usize,
    pieces: Pieces,
    place: Place,
    lines_left: u32,
    open_left: u32,
    /// It is a sentence as it stands, which may go on like this.
    whole: Option<GoesOn>,
}

impl LineReader<'_> {
    /// Waits for more of `message`.
    pub(super) fn begin_message(&mut self, message: WrappedMessage) {
        self.end_message();
        self.wrapped = Some(message);
    }

    /// Goes on with the message above `line`; false where that is none of its lines.
    pub(super) fn continue_message(&mut self, line: &[u8]) -> bool {
        if line.trim_ascii().is_empty() {
            return false;
        }
        let Some(mut message) = self.wrapped.take() else { return false };
        let is_new = holds_message(line);
        if is_new && message.whole.is_none() {
            // What another process says between two lines.
            message.lines_left = message.lines_left.saturating_sub(MOST_LINES / MOST_OPEN);
            self.wrapped = Some(message).filter(|message| message.lines_left > 0);
            return false;
        }
        let goes_on = !is_new && record::frame_in(line).is_none() && message.take(line);
        if !goes_on {
            self.give_up_message(message);
            return false;
        }
        match message.pieces.joined() {
            Some(Joined { goes_on: GoesOn::No, .. }) => self.give_up_message(message),
            joined => {
                message.whole = joined.map(|joined| joined.goes_on);
                self.wrapped = Some(message);
            }
        }
        true
    }

    /// What the rest of a message would have been did not come.
    pub(super) fn end_message(&mut self) {
        if let Some(message) = self.wrapped.take() {
            self.give_up_message(message);
        }
    }

    fn give_up_message(&mut self, mut message: WrappedMessage) {
        // Of what came behind its first line only that counts which made it whole.
        while message.pieces.is_broken() {
            if let Some(joined) = message.pieces.joined() {
                return self.keep_joined(&message.lead, &joined.text, joined.sure, message.place);
            }
            message.pieces.pop();
        }
        self.keep_joined(&message.lead, message.pieces.text(), true, message.place);
    }
}

impl WrappedMessage {
    /// The message whose `text` is at `place`, which is `column` bytes behind the start of `line`; how it may go on, if
    /// it is `whole` as it stands.
    pub(super) fn new(
        lead: Lead,
        text: &[u8],
        place: Place,
        line: &[u8],
        column: usize,
        whole: Option<GoesOn>,
    ) -> WrappedMessage {
        WrappedMessage {
            lead,
            prefix: line.get(..column).unwrap_or_default().to_vec(),
            width: line.len(),
            last: line.len(),
            pieces: Pieces::new(text),
            place,
            lines_left: MOST_LINES,
            open_left: MOST_OPEN,
            whole,
        }
    }

    /// Takes `line`, if it goes on with the sentence.
    fn take(&mut self, line: &[u8]) -> bool {
        let mut scratch = Vec::new();
        let is_damaged = clean::may_need_it(line) && clean::clean(line, &mut scratch);
        let plain = prefix::without(if is_damaged { &scratch } else { line }, &self.prefix);
        let above = std::mem::replace(&mut self.last, line.len());
        // A figure was broken only where the line was full.
        let is_of_none = self.whole == Some(GoesOn::Figure) && above < self.width;
        if is_of_none || self.lines_left == 0 || self.pieces.len() + plain.len() > LONGEST {
            return false;
        }
        self.lines_left -= 1;
        // A comment leader, or the first of the name's own characters.
        let (led, bare) = (plain.trim_ascii(), without_leader(plain));
        let piece = if led != bare && self.worth_of(led) > self.worth_of(bare) { led } else { bare };
        self.pieces.push(piece);
        let ended = self.whole == Some(GoesOn::Figure);
        let fits = match self.pieces.fit() {
            Fit::Whole { .. } => true,
            Fit::Begins { open: false } => !ended,
            Fit::Begins { open: true } => !ended && !scan::holds_error(line) && self.may_be_any(piece),
            Fit::Not => false,
        };
        if !fits {
            self.pieces.pop();
        }
        fits
    }

    /// How much `piece` makes of the sentence.
    fn worth_of(&mut self, piece: &[u8]) -> u32 {
        self.pieces.push(piece);
        let fit = self.pieces.fit();
        self.pieces.pop();
        match fit {
            Fit::Whole { .. } => 3,
            Fit::Begins { open: false } => 2,
            Fit::Begins { open: true } => 1,
            Fit::Not => 0,
        }
    }

    /// Whether a line may be of the message though nothing tells it yet. Names are one word nearly always.
    fn may_be_any(&mut self, piece: &[u8]) -> bool {
        let left = self.open_left;
        self.open_left = left.saturating_sub(u32::from(!is_one_word(piece)));
        self.open_left > 0 || is_one_word(piece)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::MessageKind;
    use crate::parse::testing::read;

    /// What the messages of `log` are, and whose.
    fn said(log: &str) -> Vec<(MessageKind, String)> {
        let report = read(log);
        let name = |id| String::from_utf8_lossy(report.names.get(id)).into_owned();
        report.messages.iter().map(|one| (one.kind, one.kernel.map(name).unwrap_or_default())).collect()
    }

    const SPILL: &str = "ptxas warning : Registers are spilled to local memory in function '@', 8416 bytes spill stores, 11264 bytes spill loads";

    /// What the tools print, with `@` for a name.
    const SENTENCES: [&str; 26] = [
        SPILL,
        "ptxas error   : Registers are spilled to local memory in function '@', 8416 bytes spill stores, 11264 bytes spill loads",
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma pipeline crossing function boundary at a function call in the function '@'",
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to wgmma pipeline crossing function boundary at a function call in the function '@' in line 19",
        "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline stage in the function '@'",
        "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the function '@'",
        "ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.",
        "ptxas info    : (C7506) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility into 'extern' call.",
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.",
        "ptxas info    : (C7517) warpgroup.wait is injected in around line 129 by compiler to allow use of registers defined by GMMA in function '@'",
        "ptxas info    : (C7519) warpgroup.arrive is injected in around line 29 by compiler to allow use of registers in GMMA in function '@'",
        "ptxas warning : Stack size for entry function '@' cannot be statically determined",
        "ptxas warning : Local memory used for function '@', size of stack frame: 5648 bytes",
        "ptxas warning : Value of threads per SM for entry @ is out of range. .minnctapersm will be ignored",
        "ptxas warning : Value of threads per SM for entry @ is out of range. .minnctapersm and .maxntid will be ignored",
        "ptxas warning : Value of minnctapersm for entry @ is out of range. minnctapersm will be ignored",
        "ptxas info    : Overriding maximum register limit 256 for '@' with  32 of maxrregcount option",
        "ptxas info    : Overriding global maxrregcount 32 with entry-specific value 64 computed using thread count",
        "ptxas warning : For profile sm_80 adjusting per thread register count of 16 to lower bound of 24",
        "ptxas fatal   : (C7602) Insufficient registers (64) to compile instruction at line 267 in function @. Try to compile with register target of 154 or higher.",
        "ptxas error   : Entry function '@' uses too much shared data (0xc400 bytes, 0xc000 max)",
        "nvlink error   : entry function '@' with max regcount of 32 calls function '_Z6ext_fnfi' with regcount of 46",
        "ptxas fatal   : Unresolved extern function '@'",
        "nvlink error   : Undefined reference to '@' in 'x86_64/libcorenrnmech.a:expsyn.o'",
        "nvlink error   : Multiple definition of '@' in 'second.o', first defined in 'first.o'",
        "ptxas application ptx input, line 8; fatal   : (C7406) setmaxnreg.dec has register count (240) which is larger than the largest temporal register count in the program (168)",
    ];

    const NAMES: [&str; 3] = [
        "k",
        "_ZN3foo6kernelIfLi128EEEvPT_i",
        "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEEEEvNT_6ParamsE",
    ];

    /// `text` in lines of at most `width` bytes, broken between words only, or anywhere; behind the first of them `indent`.
    fn wrapped(text: &str, width: usize, in_words: bool, indent: &str) -> String {
        let (mut lines, mut rest) = (String::new(), text);
        while rest.len() > width {
            let blank = rest[..=width].rfind(' ').or_else(|| rest.find(' '));
            let at = if in_words { width } else { blank.unwrap_or(rest.len()) };
            lines += &rest[..at];
            rest = if in_words { &rest[at..] } else { rest[at..].trim_start() };
            if !rest.is_empty() {
                lines += "\n";
                lines += indent;
            }
        }
        lines + rest + "\n"
    }

    #[test]
    fn a_sentence_is_the_same_at_every_width() {
        for (sentence, name) in SENTENCES.iter().flat_map(|sentence| NAMES.map(|name| (sentence, name))) {
            let sentence = sentence.replace('@', name);
            let whole = said(&sentence);
            assert!(!whole.is_empty(), "{sentence}");
            // The lead of the longest is 46 bytes, which are one line.
            for width in 47..=100 {
                for (in_words, indent) in [(false, ""), (false, "  "), (true, ""), (true, "  "), (false, " * ")] {
                    let log = wrapped(&sentence, width, in_words, indent);
                    assert_eq!(said(&log), whole, "{log}");
                }
            }
        }
    }

    #[test]
    fn messages_hidden_below_no_break_spaces_are_several() {
        for sentence in SENTENCES {
            let two = ["one", "two"].map(|name| sentence.replace('@', name));
            let hidden = two.join("\n").replace("    :", "\u{a0}\u{a0}\u{a0} :").replace("   :", "\u{a0}\u{a0}\u{a0}:");
            assert_eq!(said(&format!("{hidden}\n")), said(&format!("{}\n", two.join("\n"))), "{hidden}");
        }
    }

    #[test]
    fn an_advice_that_names_nobody_is_whole_at_every_width() {
        let advice = "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions reading accumulator registers of a wgmma between start and end of the pipeline stage";
        for width in 47..=100 {
            let log = wrapped(advice, width, false, "") + "make: done\n";
            assert_eq!(said(&log), [(MessageKind::WgmmaSerialized, String::new())], "{log}");
        }
    }

    #[test]
    fn a_sentence_is_the_same_behind_the_prefix_of_its_lines() {
        for prefix in ["1>", "  3>", "#17 12.34 ", "2026-03-04T05:00:00.0022657Z ", "[2026-03-04T05:00:00.002Z] "] {
            for sentence in SENTENCES.map(|sentence| sentence.replace('@', NAMES[1])) {
                let lines = wrapped(&sentence, 60, false, "");
                let log: String = lines.lines().map(|line| format!("{prefix}{line}\n")).collect();
                assert_eq!(said(&log), said(&sentence), "{log}");
            }
        }
    }

    #[test]
    fn a_name_that_may_have_lost_a_blank_is_none() {
        let name = "void ns::run<float, 3>(float const*, unsigned int)";
        for sentence in SENTENCES.iter().filter(|sentence| sentence.contains('@')) {
            let sentence = sentence.replace('@', name);
            let whole = said(&sentence);
            let kinds: Vec<MessageKind> = whole.iter().map(|(kind, _)| *kind).collect();
            for width in 47..=100 {
                for in_words in [false, true] {
                    let log = wrapped(&sentence, width, in_words, "");
                    let found = said(&log);
                    assert_eq!(found.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), kinds, "{log}");
                    assert!(found.iter().all(|(_, kernel)| kernel == name || kernel.is_empty()), "{log}{found:?}");
                }
            }
        }
    }

    #[test]
    fn empty_lines_between_the_pieces_are_passed_over() {
        let sentence = SENTENCES[2].replace('@', "k");
        for feed in ["\n\n", "\n   \n", " \n\n"] {
            assert_eq!(said(&wrapped(&sentence, 60, false, "").replace('\n', feed)), said(&sentence));
        }
    }

    #[test]
    fn what_follows_a_whole_sentence_is_left_alone() {
        let wgmma = SENTENCES[2].replace('@', "k");
        for next in ["in the end", "in line x", "42", "make: done"] {
            let report = read(&format!("{wgmma}\n{next}\n"));
            assert_eq!(report.texts.get(report.messages[0].text), &wgmma.as_bytes()[16..]);
        }
        let line = read(&format!("{wgmma}\nin line 19\n"));
        assert!(line.texts.get(line.messages[0].text).ends_with(b"'k' in line 19"));
    }

    #[test]
    fn the_figure_at_an_end_goes_on_only_behind_a_full_line() {
        let cap = SENTENCES[21].replace('@', "k");
        let figure = |log: &str| {
            let report = read(log);
            String::from_utf8_lossy(report.texts.get(report.messages[0].text)).into_owned()
        };
        let half = (cap.len() - 1) / 2;
        let broken = format!("{}\n{}\n6\n", &cap[..half], &cap[half..cap.len() - 1]);
        assert!(figure(&broken).ends_with("regcount of 46"), "{broken}");
        assert!(figure(&format!("{cap}\n3\n")).ends_with("regcount of 46"));
    }

    #[test]
    fn a_warning_that_is_an_error_is_both() {
        let spill = SENTENCES[1].replace('@', "k");
        let kinds: Vec<_> = said(&spill).into_iter().collect();
        assert_eq!(kinds.len(), 2);
        assert_eq!(kinds[0], (MessageKind::Error, "k".into()));
        assert_eq!(kinds[1], said(&SPILL.replace('@', "k"))[0]);
        let stack = "ptxas error   : Stack size for entry function 'k' cannot be statically determined\n";
        assert_eq!(said(stack)[1], (MessageKind::UnboundedStack, "k".into()));
        assert_eq!(said(&SENTENCES[20].replace('@', "k")).len(), 1);
    }

    #[test]
    fn a_number_that_is_broken_is_put_together() {
        let spill = SPILL.replace("@", "k");
        for number in ["8416", "11264"] {
            let start = spill.find(number).expect("a number");
            for at in start + 1..start + number.len() {
                let broken = format!("{}\n{}\n", &spill[..at], &spill[at..]);
                assert_eq!(said(&broken), said(&spill), "{broken}");
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
    fn quotes_of_names_are_read_however_they_are_written() {
        for sentence in SENTENCES
            .map(|sentence| sentence.replace('@', "k"))
            .iter()
            .filter(|one| one.contains("'k'") && !one.contains("calls"))
        {
            for (open, close) in [
                ("‘", "’"),
                ("&#39;", "&#39;"),
                ("&#039;", "&#039;"),
                ("&#8216;", "&#8217;"),
                ("“", "”"),
                ("„", "“"),
                ("′", "′"),
                ("´", "´"),
                ("`", "`"),
                ("`", "'"),
                ("â€˜", "â€™"),
                ("\\'", "\\'"),
                ("\"", "\""),
                ("\x1b[1m'", "'\x1b[0m"),
                ("'<b>", "</b>'"),
            ] {
                let dressed = sentence.replace("'k'", &format!("{open}k{close}"));
                assert_eq!(said(&dressed), said(sentence), "{dressed}");
            }
        }
    }
}
