//! Finds `<tool> <severity> : <text>` in a line, whatever a build system put before it.

use super::record;
use crate::model::Arch;

/// The tool that speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Ptxas,
    Nvlink,
    Nvcc,
    Other,
    /// Nobody is named: the linker inside the driver, nvJitLink and NVRTC print bare `info    :` lines.
    Unnamed,
}

/// How loud it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
    Fatal,
}

/// A message taken out of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) tool: Tool,
    pub(crate) severity: Severity,
    /// Where the message starts in the line: its tool, or its severity where none is named.
    pub(crate) start: usize,
    /// Where its text starts in the line.
    pub(crate) text: usize,
}

const TOOLS: [(&[u8], Tool); 5] = [
    (b"ptxas", Tool::Ptxas),
    (b"nvlink", Tool::Nvlink),
    (b"nvcc", Tool::Nvcc),
    (b"cuobjdump", Tool::Other),
    (b"fatbinary", Tool::Other),
];

/// Width to which the tools pad a severity.
const PADDED: usize = 8;

/// What ptxas itself prints before nearly every text, all equally long; tried first.
pub(crate) fn plain(line: &[u8]) -> Option<Envelope> {
    // Compared as numbers: matching on the bytes would look at them one by one.
    const INFO: u128 = u128::from_ne_bytes(*b"ptxas info    : ");
    const WARNING: u128 = u128::from_ne_bytes(*b"ptxas warning : ");
    const ERROR: u128 = u128::from_ne_bytes(*b"ptxas error   : ");
    const FATAL: u128 = u128::from_ne_bytes(*b"ptxas fatal   : ");
    let lead: &[u8; 16] = line.first_chunk()?;
    let severity = match u128::from_ne_bytes(*lead) {
        INFO => Severity::Info,
        WARNING => Severity::Warning,
        ERROR => Severity::Error,
        FATAL => Severity::Fatal,
        _ => return None,
    };
    Some(Envelope { tool: Tool::Ptxas, severity, start: 0, text: lead.len() })
}

/// The first message in `line`.
pub(crate) fn find(line: &[u8]) -> Option<Envelope> {
    find_from(line, 0)
}

/// The first message in `line`, no colon of which stands before `from`.
pub(crate) fn find_from(line: &[u8], from: usize) -> Option<Envelope> {
    if let Some(plain) = plain(line) {
        return Some(plain);
    }
    let mut from = from;
    // What was found is nearly always the colon of the message itself.
    if line.get(from) == Some(&b':') {
        if let Some(found) = at_colon(line, from) {
            return Some(found);
        }
        from += 1;
    }
    memchr::memchr_iter(b':', &line[from..]).find_map(|colon| at_colon(line, from + colon))
}

/// The message whose severity ends before the colon at `colon`.
pub(crate) fn at_colon(line: &[u8], colon: usize) -> Option<Envelope> {
    let (lead, severity) = padded(&line[..colon]).or_else(|| squeezed(&line[..colon]))?;
    let text = colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '));
    let speaker = lead.trim_ascii_end();
    if let Some(located) = speaker.strip_suffix(b";") {
        let start = if located.starts_with(b"ptxas ") { 0 } else { located_from(located)? };
        return Some(Envelope { tool: Tool::Ptxas, severity, start, text });
    }
    // Glued to a line that another tool left without an end, only the tool's own padding shows what it is.
    let padded = colon - lead.len() == PADDED && lead.len() == speaker.len() + 1;
    if let Some((start, tool)) = named_at_end(speaker, padded) {
        return (speaker.len() < lead.len()).then_some(Envelope { tool, severity, start, text });
    }
    if let Some((start, tool)) = named_apart(speaker) {
        return Some(Envelope { tool, severity, start, text });
    }
    let apart = line[..colon].ends_with(b" ") && ends_a_prefix(speaker);
    let says_figures = || severity == Severity::Info && record::opens(&line[text..]);
    (apart || says_figures()).then_some(Envelope { tool: Tool::Unnamed, severity, start: lead.len(), text })
}

/// Where the tool stands before a location, which `text` ends with.
fn located_from(text: &[u8]) -> Option<usize> {
    /// A line may hold any number of semicolons before what is no message: no location is longer.
    const LONGEST: usize = 4096;
    let near = text.len().saturating_sub(LONGEST);
    let plain = memchr::memmem::rfind(&text[near..], b"ptxas ");
    let called = || {
        let at = memchr::memmem::rfind(&text[near..], SUFFIXED)?;
        let rest = &text[near + at + SUFFIXED.len()..];
        (rest.get(suffix_of(rest)) == Some(&b' ')).then_some(at)
    };
    plain.or_else(called).map(|at| near + at)
}

/// ptxas says the name of its file: Triton has one for Blackwell, and calls it `ptxas-blackwell`.
const SUFFIXED: &[u8] = b"ptxas-";

/// The length of what a name goes on with.
fn suffix_of(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count()
}

/// The severity that `before` ends with, padded as the tools print it, and what stands before it.
fn padded(before: &[u8]) -> Option<(&[u8], Severity)> {
    const INFO: u64 = u64::from_ne_bytes(*b"info    ");
    const WARNING: u64 = u64::from_ne_bytes(*b"warning ");
    const ERROR: u64 = u64::from_ne_bytes(*b"error   ");
    const FATAL: u64 = u64::from_ne_bytes(*b"fatal   ");
    let (lead, word) = before.split_last_chunk()?;
    let severity = match u64::from_ne_bytes(*word) {
        INFO => Severity::Info,
        WARNING => Severity::Warning,
        ERROR => Severity::Error,
        FATAL => Severity::Fatal,
        _ => return None,
    };
    Some((lead, severity))
}

/// The severity that `before` ends with, whatever blanks are behind it, and what stands before it.
fn squeezed(before: &[u8]) -> Option<(&[u8], Severity)> {
    let before = before.trim_ascii_end();
    let word = before.iter().rev().take_while(|b| b.is_ascii_lowercase()).count();
    let (lead, word) = before.split_at(before.len() - word);
    let severity = match word {
        b"info" => Severity::Info,
        b"warning" => Severity::Warning,
        b"error" => Severity::Error,
        b"fatal" => Severity::Fatal,
        _ => return None,
    };
    Some((lead, severity))
}

/// The tool that `text` ends with, as a word of its own: not the end of a path or of an option.
fn named_at_end(text: &[u8], padded: bool) -> Option<(usize, Tool)> {
    let named = TOOLS.iter().find_map(|(name, tool)| {
        let before = text.strip_suffix(*name)?;
        let apart = padded || before.last().is_none_or(|b| !b.is_ascii_alphanumeric() && !b"-_/\\.".contains(b));
        apart.then_some((before.len(), *tool))
    });
    named.or_else(|| {
        let word =
            text.len() - text.iter().rev().take_while(|b| b.is_ascii_alphanumeric() || b"_-/\\.".contains(b)).count();
        (text[word..].len() > SUFFIXED.len() && text[word..].starts_with(SUFFIXED)).then_some((word, Tool::Ptxas))
    })
}

/// The tool that `text` ends with before a colon of its own, as some versions have it on Windows: `ptxas : info : …`.
fn named_apart(text: &[u8]) -> Option<(usize, Tool)> {
    let speaker = text.strip_suffix(b" :")?.trim_ascii_end();
    named_at_end(speaker, false).filter(|(_, tool)| matches!(tool, Tool::Ptxas | Tool::Nvlink))
}

/// Whether `text` can stand before a message: nothing, indentation, comment leaders, or a logger's time stamp.
fn ends_a_prefix(text: &[u8]) -> bool {
    text.last().is_none_or(|b| b"*/#|>]Z".contains(b) || (text.starts_with(b"#") && b.is_ascii_digit()))
}

/// Whether the message of nobody is an error of nvJitLink: padded as only CUDA's tools do it, at the start of its line, and
/// in words. A program's table may have a row `error   : 1e-7`.
pub(crate) fn is_bare_error(line: &[u8], envelope: Envelope) -> bool {
    let said = &line[envelope.text..];
    envelope.severity >= Severity::Error
        && envelope.text == envelope.start + PADDED + b": ".len()
        && (said.first().is_some_and(u8::is_ascii_alphabetic) || said.starts_with(b"(C"))
        && memchr::memchr(b' ', said.trim_ascii_end()).is_some()
}

/// Where the beginning of a message stands that `line` ends with, short of its colon. A few letters are one only as a whole
/// line that `follows_records`.
pub(crate) fn stub_in(line: &[u8], follows_records: bool) -> Option<usize> {
    const LEADS: [&[u8]; 8] = [
        b"ptxas info    :",
        b"ptxas warning :",
        b"ptxas error   :",
        b"ptxas fatal   :",
        b"nvlink info    :",
        b"nvlink warning :",
        b"nvlink error   :",
        b"nvlink fatal   :",
    ];
    const SHORTEST: usize = 3;
    let is_begun = |text: &[u8]| LEADS.iter().any(|lead| lead.len() > text.len() && lead.starts_with(text));
    let indent = line.len() - line.trim_ascii_start().len();
    if follows_records && line.len() - indent >= SHORTEST && is_begun(&line[indent..]) {
        return Some(indent);
    }
    let near = line.len().saturating_sub(LEADS[4].len());
    let tools = [&b"ptxas "[..], b"nvlink "].into_iter();
    let at = tools.filter_map(|tool| Some((memchr::memmem::rfind(&line[near..], tool)? + near, tool.len()))).max();
    let (at, tool) = at?;
    let is_word = line[..at].last().is_none_or(|b| !b.is_ascii_alphanumeric() && !b"-_/\\.".contains(b));
    (is_word && line.len() > at + tool && is_begun(&line[at..])).then_some(at)
}

/// The target in a trailing ` (target: sm_80)`, and the text without it.
pub(crate) fn without_target(text: &[u8]) -> (&[u8], Option<Arch>) {
    const LEAD: &[u8] = b" (target: ";
    let target = || {
        let inner = text.strip_suffix(b")")?;
        let at = memchr::memmem::rfind(inner, LEAD)?;
        Some((&text[..at], Arch::from_bytes(&inner[at + LEAD.len()..])?))
    };
    target().map_or((text, None), |(rest, arch)| (rest, Some(arch)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<(Tool, Severity, &str)> {
        find(line.as_bytes()).map(|e| (e.tool, e.severity, &line[e.text..]))
    }

    #[test]
    fn messages_are_found_behind_any_prefix() {
        use Severity::{Error, Fatal, Info, Warning};
        for (line, expected) in [
            ("ptxas info    : 0 bytes gmem", (Tool::Ptxas, Info, "0 bytes gmem")),
            ("ptxas info\t: Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("ptxas info: Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("1>ptxas info    : Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("2026-03-04T05:00:00.0022657Z ptxas info    : Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("warning: kernels@0.1.0: ptxas info    : Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("CUDACOMPILE : ptxas error : File uses", (Tool::Ptxas, Error, "File uses")),
            ("ptxas bad sem.ptx, line 8; error   : Illegal", (Tool::Ptxas, Error, "Illegal")),
            ("nvcc fatal   : Unsupported", (Tool::Nvcc, Fatal, "Unsupported")),
            ("nvlink warning : Stack", (Tool::Nvlink, Warning, "Stack")),
            ("[1/2] cc a.optxas info    : Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("info    : 0 bytes gmem", (Tool::Unnamed, Info, "0 bytes gmem")),
            ("#17 12.34 info    : 0 bytes gmem", (Tool::Unnamed, Info, "0 bytes gmem")),
            ("INFO:root:info    : used 16 registers, 0 stack", (Tool::Unnamed, Info, "used 16 registers, 0 stack")),
            ("    12  info    : Function properties for 'k':", (Tool::Unnamed, Info, "Function properties for 'k':")),
            ("jit.log:7:info\t: 40 bytes gmem", (Tool::Unnamed, Info, "40 bytes gmem")),
            ("ptxas : info : Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("1>ptxas : warning : x", (Tool::Ptxas, Warning, "x")),
            ("nvlink : error : x", (Tool::Nvlink, Error, "x")),
            ("ptxas-blackwell fatal   : Value 'sm_107a'", (Tool::Ptxas, Fatal, "Value 'sm_107a'")),
            ("x: ptxas-blackwell info    : Used 3", (Tool::Ptxas, Info, "Used 3")),
            ("ptxas-blackwell t.ptx, line 5; error   : Illegal", (Tool::Ptxas, Error, "Illegal")),
        ] {
            assert_eq!(found(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_colons_are_no_messages() {
        for line in [
            "x.cu(1): error: text",
            "a ? b : c",
            "some info : text",
            "Function : scale_c",
            "nvcc -Xptxas -v : x",
            "warning: x",
            "-- info : x",
            "more info : 3 bytes",
            "nvcc : info : x",
        ] {
            assert_eq!(found(line).filter(|(tool, ..)| *tool != Tool::Unnamed), None, "{line}");
        }
        assert_eq!(found("Some more info : text"), None);
    }

    #[test]
    fn an_error_of_nobody_is_padded_and_in_words() {
        let bare = |line: &str| find(line.as_bytes()).is_some_and(|found| is_bare_error(line.as_bytes(), found));
        for line in [
            "error   : Undefined reference to 'x' in 'y'",
            "fatal   : elfLink linker library load error",
            "fatal   : (C7907) Internal compiler error.",
        ] {
            assert!(bare(line), "{line}");
        }
        for line in
            ["error   : 1e-7", "error   : none", "error : not much", "warning : of what", "max error   : not much"]
        {
            assert!(!bare(line), "{line}");
        }
    }

    #[test]
    fn a_message_may_stop_before_its_colon() {
        for (line, at) in [
            ("ptxas info   ", 0),
            ("ptxas in", 0),
            ("ptx", 0),
            ("  ptxas", 2),
            ("#7 1.2 ptxas wa", 7),
            ("2026-03-04T05:00:00.0022657Z nvlink i", 29),
        ] {
            assert_eq!(stub_in(line.as_bytes(), true), Some(at), "{line}");
        }
        for line in ["", "p", "npt", "which ptxas", "nvcc -Xptxas i", "/bin/ptxas i", "ptxas x", "ptxas info    : "] {
            assert_eq!(stub_in(line.as_bytes(), true), None, "{line}");
        }
        assert_eq!(stub_in(b"ptxas", false), None);
    }

    #[test]
    fn a_target_suffix_is_taken_off() {
        assert_eq!(
            without_target(b"128 bytes gmem (target: sm_90a)"),
            (&b"128 bytes gmem"[..], Arch::from_bytes(b"sm_90a"))
        );
        assert_eq!(without_target(b"f(int) (target: x)"), (&b"f(int) (target: x)"[..], None));
    }
}
