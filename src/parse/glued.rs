//! Several messages on one line: a record without its line feed, as parallel compilers write them, or a log whose line
//! breaks became blanks, as in a paste without a code fence.

use std::sync::LazyLock;

use super::envelope::{self, Envelope};
use super::needles::{Found, Needles};
use super::partial::PartialRecord;
use super::reader::{At, LineReader, Understood};
use super::{clean, quoted, record};

/// How the message at hand ends where another one follows on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glue {
    /// Behind a blank, which was its line break: nothing of it is on a later line.
    Blank,
    /// Right behind it: its line feed is missing, or its tail is on a later line.
    Torn,
}

/// How a message may begin: with its tool, or with the severity where no tool is named.
static OPENINGS: LazyLock<Needles> =
    LazyLock::new(|| Needles::new(&["ptxas ", "nvlink ", "info "]).expect("bug: the words are few"));

impl LineReader<'_> {
    /// Reads a line that holds a message, and those behind it.
    pub(super) fn read_message(&mut self, at: At<'_>, line: &[u8], envelope: Envelope) -> Understood {
        let text = &line[envelope.text..];
        if !has_lone_colon(text) {
            return self.read_one(at, line, envelope);
        }
        if let Some(next) = next_message(text) {
            if quoted::ends_line(&text[..next])
                && let Some(lines) = quoted::lines(&line[envelope.start..])
            {
                return self.read_quoted(at.after(envelope.start), &lines);
            }
            return self.read_glued(at, line, envelope, envelope.text + next);
        }
        if clean::may_need_it(text) {
            let mut scratch = Vec::new();
            if clean::clean(text, &mut scratch)
                && let Some(next) = next_message(&scratch)
            {
                let line = [&line[..envelope.text], &scratch].concat();
                return self.read_glued(at, &line, envelope, envelope.text + next);
            }
        }
        self.read_one(at, line, envelope)
    }

    /// Reads the messages of `line`: the one in `envelope`, the one that starts at `next`, and all others.
    fn read_glued(&mut self, at: At<'_>, line: &[u8], envelope: Envelope, next: usize) -> Understood {
        let (mut at, mut line, mut envelope, mut next) = (at, line, envelope, Some(next));
        let mut understood = Understood::Nothing;
        let mut earlier = self.partial.take();
        // What is torn here may go on on a later line, and in nothing that is on this one.
        let mut torn = None;
        while let Some(end) = next {
            self.glue = Some(if line[..end].ends_with(b" ") { Glue::Blank } else { Glue::Torn });
            understood = understood.and(self.read_behind(&mut torn, at, &line[..end], envelope));
            self.keep_newer(&mut torn);
            (at, line) = (at.after(end), &line[end..]);
            let Some(found) = envelope::find(line) else { break };
            envelope = found;
            next = next_message(&line[found.text..]).map(|next| found.text + next);
        }
        self.glue = None;
        understood = understood.and(self.read_behind(&mut torn, at, line, envelope));
        self.keep_newer(&mut torn);
        if torn.is_some()
            && let Some(earlier) = earlier.take()
        {
            self.give_up(earlier);
        }
        self.partial = torn.or(earlier);
        understood
    }

    /// Of what is torn on one line, the last can go on on the next.
    fn keep_newer(&mut self, torn: &mut Option<PartialRecord>) {
        if let Some(new) = self.partial.take()
            && let Some(old) = torn.replace(new)
        {
            self.give_up(old);
        }
    }

    /// Reads one message, before which something on the same line may be `torn`.
    fn read_behind(
        &mut self,
        torn: &mut Option<PartialRecord>,
        at: At<'_>,
        line: &[u8],
        envelope: Envelope,
    ) -> Understood {
        let text = &line[envelope.text..];
        if torn.as_mut().is_some_and(|torn| torn.take_time(text)) {
            return Understood::Report;
        }
        self.read_one(at, line, envelope)
    }
}

/// Whether a colon that may be that of a message is in `text`; those of C++ names come in pairs.
fn has_lone_colon(text: &[u8]) -> bool {
    let is_colon = |at: Option<usize>| at.and_then(|at| text.get(at)) == Some(&b':');
    memchr::memchr_iter(b':', text).any(|at| !is_colon(at.checked_sub(1)) && !is_colon(at.checked_add(1)))
}

/// Where another message starts in the text of one. What is looked at of the rest of the line is bounded.
fn next_message(text: &[u8]) -> Option<usize> {
    let opens = |found: &Found| opens_message(&text[..found.start], &text[found.start..]);
    OPENINGS.places(text).find(opens).map(|found| found.start)
}

/// Whether a message starts between these.
fn opens_message(before: &[u8], text: &[u8]) -> bool {
    let tool = text.strip_prefix(b"ptxas ").or_else(|| text.strip_prefix(b"nvlink "));
    match tool {
        Some(rest) => behind_severity(rest).is_some() || is_located(rest),
        // Words may end in this too, so what it says must be a record.
        None => before.ends_with(b" ") && text.strip_prefix(b"info    : ").is_some_and(record::opens),
    }
}

/// What stands behind `info    :`, however it is padded.
fn behind_severity(text: &[u8]) -> Option<&[u8]> {
    const SEVERITIES: [&[u8]; 4] = [b"info", b"warning", b"error", b"fatal"];
    let text = text.trim_ascii_start();
    let rest = SEVERITIES.iter().find_map(|word| text.strip_prefix(*word))?;
    rest.trim_ascii_start().strip_prefix(b":")
}

/// Whether `text` is `x.ptx, line 8; error   : …`, without its tool.
fn is_located(text: &[u8]) -> bool {
    const LONGEST: usize = 512;
    let near = &text[..text.len().min(LONGEST)];
    let Some(end) = memchr::memchr(b';', near) else { return false };
    memchr::memmem::find(&near[..end], b", line ").is_some() && behind_severity(&near[end + 1..]).is_some()
}

#[cfg(test)]
mod tests {
    use crate::model::MessageKind;
    use crate::parse::testing::read;

    /// What `log` tells: every kernel with its figures, every message with its kernel.
    fn facts(log: &str) -> Vec<String> {
        let report = read(log);
        let name = |id| String::from_utf8_lossy(report.names.get(id)).into_owned();
        let kernel = |kernel: &crate::model::Kernel| {
            let arch = kernel.arch.map_or_else(String::new, |arch| arch.to_string());
            format!("{:?} {arch} {:?} {:?}", kernel.name.map(name), kernel.kind, kernel.resources)
        };
        let message = |message: &crate::model::Message| format!("{:?} {:?}", message.kind, message.kernel.map(name));
        let kernels = report.kernels.iter().map(kernel);
        let linked = report.linked.iter().map(|linked| kernel(&linked.kernel));
        kernels.chain(linked).chain(report.messages.iter().map(message)).collect()
    }

    const LOG: &str = "ptxas info    : Overriding global maxrregcount 20 with entry-specific value 24 computed using thread count\nptxas warning : Stack size for entry function '_Z1aPf' cannot be statically determined\nptxas x.ptx, line 8; warning : Program is doing double precision computations.\nptxas info    : 0 bytes gmem, 4 bytes cmem[3]\nptxas info    : Compiling entry function '_Z1aPf' for 'sm_80'\nptxas info    : Function properties for _Z1aPf\n    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\nptxas info    : Used 20 registers, used 1 barriers, 44 bytes cmem[0]\nptxas info    : Compile time = 1.500 ms\nptxas info    : Function properties for _Z3devi\n    16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads\nptxas info    : Compile time = 2.500 ms\nptxas info    : Compiling entry function 'void ns::b<int>(float*, int)' for 'sm_80'\nptxas info    : Function properties for void ns::b<int>(float*, int)\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 30 registers, used 0 barriers, 512 bytes smem, 364 bytes cmem[0]\nnvlink info    : 0 bytes gmem\nnvlink info    : Function properties for 'k':\nnvlink info    : used 46 registers, used 1 barriers, 88 stack, 256 bytes smem, 364 bytes cmem[0], 0 bytes lmem\n";

    #[test]
    fn a_log_whose_line_breaks_became_blanks_tells_the_same() {
        let whole = facts(LOG);
        assert_eq!(whole.len(), 7, "{whole:#?}");
        let squeezed = |log: &str| log.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let jit = LOG.replace("\n    ", "\nptxas         .     ");
        for log in [LOG.replace('\n', " "), squeezed(LOG), LOG.replace(" : ", ": ").replace('\n', " "), squeezed(&jit)]
        {
            assert_eq!(facts(&format!("{log}\n")), whole, "{log}");
        }
    }

    #[test]
    fn a_log_inside_a_string_tells_the_same_wherever_the_string_begins() {
        let whole = facts(LOG);
        let escaped = LOG.replace('\n', "\\n");
        for (before, after) in [
            ("", ""),
            ("x: \"", "\","),
            ("output: 'nvcc -c a.cu\\n", "'"),
            ("{\"log\":\"nvcc -c a.cu\\n", "\",\"stream\":\"stderr\"}"),
            ("b'make: x\\r\\n", "'"),
        ] {
            for end in ["", "\n"] {
                let log = format!("{before}{escaped}{after}{end}");
                assert_eq!(facts(&log), whole, "{log}");
                let log = format!("{before}{}{after}{end}", escaped.replace("\\n", "\\r\\n"));
                assert_eq!(facts(&log), whole, "{log}");
            }
        }
    }

    #[test]
    fn a_listing_inside_a_string_or_with_its_names_beside_is_one() {
        let listing = "Fatbin elf code:\n================\narch = sm_90\n\nResource usage:\n Common:\n  GLOBAL:0\n Function k:\n  REG:32 STACK:8 SHARED:1024 LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0\n Function dev:\n  REG:9 STACK:0 SHARED:0 LOCAL:0 TEXTURE:0 SURFACE:0 SAMPLER:0\n";
        let whole = facts(listing);
        assert_eq!(whole.len(), 2, "{whole:#?}");
        let escaped = listing.replace('\n', "\\n");
        for log in [
            format!("{{'raw_text': '{escaped}'}}\n"),
            format!("`{{'raw_text': '{}'}}`\n", escaped.trim_end_matches("\\n")),
            format!("{{\"log\":\"{escaped}\",\"stream\":\"stdout\"}}\n"),
            listing.replace(":\n  REG", ":\t  REG"),
            listing.replace(":\n  REG", ": REG").replace('\n', "\n> "),
        ] {
            assert_eq!(facts(&log), whole, "{log}");
        }
    }

    #[test]
    fn any_record_may_lack_its_line_feed() {
        let whole = facts(LOG);
        for (at, _) in LOG.match_indices('\n').filter(|(at, _)| at + 1 < LOG.len()) {
            let frame = LOG[at + 1..].starts_with("    ");
            // Behind a name there is nothing that ends it: it may be torn.
            let name = LOG[..at].ends_with("_Z3devi");
            for glue in if frame || name { [" "; 2] } else { ["", " "] } {
                let log = format!("{}{glue}{}", &LOG[..at], &LOG[at + 1..]);
                assert_eq!(facts(&log), whole, "{log}");
            }
        }
    }

    #[test]
    fn what_follows_the_records_of_every_tool_is_read() {
        for (log, expected) in [
            (
                "ptxas info : 0 bytes gmem ptxas info : Compiling entry function '_Z1aPf' for 'sm_20' ptxas info : Function properties for _Z1aPf 8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads ptxas info : Used 20 registers, 44 bytes cmem[0]\n",
                ("_Z1aPf", Some(20), Some(8)),
            ),
            (
                "ptxas info    : Compile time = 1.500 ms ptxas info    : Function properties for _Z3devi\n    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n",
                ("_Z3devi", None, Some(8)),
            ),
            (
                "ptxas info    : Function properties for _Z3devi    8 bytes stack frame, 0 bytes spill stores,\n 0 bytes spill loads\n",
                ("_Z3devi", None, Some(8)),
            ),
            (
                "nvlink info : 0 bytes gmem nvlink info : Function properties for 'k': nvlink info : used 46 registers, 88 stack\n",
                ("k", Some(46), Some(88)),
            ),
            (
                "info    : 0 bytes gmem info    : Function properties for 'k': info    : used 46 registers, 88 stack\n",
                ("k", Some(46), Some(88)),
            ),
        ] {
            let report = read(log);
            let kernel = report.kernels.first().or_else(|| report.linked.first().map(|linked| &linked.kernel));
            let kernel = kernel.unwrap_or_else(|| panic!("no kernel in {log}"));
            let name = String::from_utf8_lossy(report.names.get(kernel.name.expect("a name")));
            let figures = (kernel.resources.registers, kernel.resources.stack.map(crate::model::Bytes::get));
            assert_eq!((&*name, figures.0, figures.1), expected, "{log}");
            assert!(report.messages.is_empty(), "{log}");
        }
    }

    #[test]
    fn a_paste_of_many_kernels_is_read_whole_and_told_where_it_ends() {
        let kernel = |at: usize| {
            format!(
                "ptxas info : Compiling entry function '_Z2k{at}v' for 'sm_80' ptxas info : Function properties for _Z2k{at}v 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads ptxas info : Used {at} registers "
            )
        };
        let paste: String = (10..200).map(kernel).collect();
        assert_eq!(read(&format!("{paste}\n")).kernels.len(), 190);
        let cut = read(&format!("{paste}ptxas info : Used 2"));
        assert!(cut.messages.iter().all(|message| matches!(message.kind, MessageKind::Unread(_))));
        assert_eq!((cut.kernels.len(), cut.messages.len()), (190, 1));
    }

    #[test]
    fn words_that_are_no_message_end_none() {
        for text in ["the ptxas info section: x", "ptxas said: no", "more info : Used", "see info    : of what"] {
            assert_eq!(super::next_message(text.as_bytes()), None, "{text}");
        }
    }
}
