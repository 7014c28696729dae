//! The undamaged report of one kernel or device function, whole, as nearly all of a log is: read in one go.
//!
//! This is the short way through what `reader` does record by record, for text that leaves nothing open. Whatever is not
//! exactly of this form goes the long way, with the same result. So does a report with a new name that is not plain, which
//! is for the taker to find out: names are long, and most are known.

use super::partial::is_wrap_width;
use super::usage;
use crate::model::{Arch, NameId};

/// The lines of a kernel's report.
pub(super) struct KernelBlock<'b> {
    pub(super) name: &'b [u8],
    pub(super) arch: Arch,
    /// The texts of frame and figures.
    pub(super) frame: NameId,
    pub(super) used: NameId,
    /// Where their lines start, counted from the start of the block, and where the block ends, at its last line feed.
    pub(super) frame_line: usize,
    pub(super) used_line: usize,
    pub(super) end: usize,
}

/// The lines of a device function's report, which are those of an entry's properties too.
pub(super) struct FunctionBlock<'b> {
    pub(super) name: &'b [u8],
    pub(super) frame: NameId,
    pub(super) frame_line: usize,
    pub(super) end: usize,
}

/// A line of figures: its text, and how long that is.
#[derive(Clone, Copy)]
pub(super) struct FigureLine {
    pub(super) id: NameId,
    pub(super) length: usize,
}

/// Keeps the texts of figures. Most are the very text of another kernel, whose end need not be looked for.
pub(super) trait FigureLines {
    /// The line at the start of `rest`, if it `is_whole`. One that was met lately need not be asked again: a frame begins
    /// with a digit and no other line of figures does, so what is asked of each is told by how it begins.
    fn line(&mut self, rest: &[u8], is_whole: fn(&[u8]) -> bool) -> Option<FigureLine>;
}

const ENTRY: &[u8] = b"ptxas info    : Compiling entry function '";
const PROPERTIES: &[u8] = b"ptxas info    : Function properties for ";
const USED_LEAD: &[u8] = b"ptxas info    : ";
const TIME: &[u8] = b"ptxas info    : Compile time = ";
const INDENT: &[u8] = b"    ";

/// The report of a kernel at the start of `text`.
pub(super) fn kernel<'b>(text: &'b [u8], lines: &mut impl FigureLines) -> Option<KernelBlock<'b>> {
    let rest = text.strip_prefix(ENTRY)?;
    let name = &rest[..memchr::memchr(b'\'', rest)?];
    let rest = rest[name.len()..].strip_prefix(b"' for '")?;
    let arch = &rest[..rest.iter().take(12).position(|b| *b == b'\'')?];
    let rest = rest[arch.len()..].strip_prefix(b"'\n")?;
    let arch = Arch::from_bytes(arch)?;
    let own = properties(rest, name, lines)?;
    let start = text.len() - rest.len();
    let (frame, frame_line, used_line) = (own.frame, start + own.frame_line, start + own.end + 1);
    let used_text = text.get(used_line..)?.strip_prefix(USED_LEAD)?;
    let used = used_text.starts_with(b"Used ").then(|| lines.line(used_text, ends_plainly)).flatten()?;
    let length = USED_LEAD.len() + used.length;
    let end = used_line + length;
    (!is_wrap_width(length)).then_some(KernelBlock { name, arch, frame, used: used.id, frame_line, used_line, end })
}

/// The report of a device function at the start of `text`.
pub(super) fn function<'b>(text: &'b [u8], lines: &mut impl FigureLines) -> Option<FunctionBlock<'b>> {
    let rest = text.strip_prefix(PROPERTIES)?;
    properties(text, &rest[..memchr::memchr(b'\n', rest)?], lines)
}

/// The properties of `name` at the start of `text`, with their frame.
fn properties<'b>(text: &[u8], name: &'b [u8], lines: &mut impl FigureLines) -> Option<FunctionBlock<'b>> {
    let rest = text.strip_prefix(PROPERTIES)?.strip_prefix(name)?.strip_prefix(b"\n")?;
    if is_wrap_width(PROPERTIES.len() + name.len()) {
        return None;
    }
    let frame_line = text.len() - rest.len();
    let rest = rest.strip_prefix(INDENT)?;
    let frame = rest.first()?.is_ascii_digit().then(|| lines.line(rest, is_whole_frame)).flatten()?;
    Some(FunctionBlock { name, frame: frame.id, frame_line, end: frame_line + INDENT.len() + frame.length })
}

/// The compile time at the start of `text`, in milliseconds, and where its line ends.
pub(super) fn time(text: &[u8]) -> Option<(f64, usize)> {
    let rest = text.strip_prefix(TIME)?;
    let (ms, length) = usage::decimal(rest)?;
    rest[length..].starts_with(b" ms\n").then_some((ms, TIME.len() + length + b" ms".len()))
}

/// A mangled or C name: nothing in it that a terminal, a browser or another process could have put there, and no end of a
/// line.
pub(super) fn is_plain_name(name: &[u8]) -> bool {
    let c = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.');
    name.first().is_some_and(c)
        && name.last().is_some_and(c)
        && memchr::memchr3(b' ', b'&', 0x1b, name).is_none()
        && memchr::memchr2(b'\r', b'\n', name).is_none()
}

/// A frame and nothing else: no carriage return, no record of another process behind it.
fn is_whole_frame(text: &[u8]) -> bool {
    usage::frame(text).is_ok_and(|(rest, _)| rest.is_empty())
}

/// Ends with a letter or a bank, not with a comma or something that damaged it; without colours, and without a carriage
/// return, which ends a line too.
fn ends_plainly(text: &[u8]) -> bool {
    text.last().is_some_and(|b| b.is_ascii_lowercase() || *b == b']') && memchr::memchr2(0x1b, b'\r', text).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Names;

    const TEXT: &str = "ptxas info    : Compiling entry function '_Z1kPi' for 'sm_90a'\nptxas info    : Function properties for _Z1kPi\n    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 8 registers, used 0 barriers\nptxas info    : Compile time = 4.917 ms\n";

    /// Keeps every line.
    #[derive(Default)]
    struct Kept(Names);

    impl FigureLines for Kept {
        fn line(&mut self, rest: &[u8], is_whole: fn(&[u8]) -> bool) -> Option<FigureLine> {
            let text = &rest[..memchr::memchr(b'\n', rest)?];
            is_whole(text).then(|| FigureLine { id: self.0.intern(text), length: text.len() })
        }
    }

    #[test]
    fn a_whole_report_is_taken_with_the_places_of_its_lines() {
        let mut kept = Kept::default();
        let block = kernel(TEXT.as_bytes(), &mut kept).expect("a kernel");
        assert_eq!((block.name, block.arch.to_string()), (&b"_Z1kPi"[..], "sm_90a".to_owned()));
        assert_eq!(kept.0.get(block.frame), b"8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
        assert_eq!(kept.0.get(block.used), b"Used 8 registers, used 0 barriers");
        assert!(TEXT[block.frame_line..].starts_with("    8 bytes"));
        assert!(TEXT[block.used_line..].starts_with("ptxas info    : Used 8"));
        let after = &TEXT[block.end + 1..];
        assert_eq!(time(after.as_bytes()), Some((4.917, after.len() - 1)));
    }

    #[test]
    fn a_report_of_a_function_has_no_figures_but_its_frame() {
        let mut kept = Kept::default();
        let text = &TEXT[TEXT.find('\n').expect("a line") + 1..];
        let block = function(text.as_bytes(), &mut kept).expect("a function");
        assert_eq!((block.name, kept.0.len()), (&b"_Z1kPi"[..], 1));
        assert!(text[block.frame_line..].starts_with("    8 bytes"));
        assert!(text[block.end..].starts_with("\nptxas info    : Used"));
    }

    #[test]
    fn anything_else_goes_the_long_way() {
        for (part, other) in [
            ("'_Z1kPi'", "'_Z1jPi'"),
            ("'sm_90a'", "'sm_90a' "),
            ("\n", "\r\n"),
            ("    8 bytes", "\t8 bytes"),
            ("barriers\n", "barriers,\n"),
            ("spill loads", "spill"),
            ("spill loads", "spill loadsptxas info    : x, 0 bytes spill loads"),
            ("stack frame, 0", "stack frame,\r 0"),
            ("ptxas info    : Used", "x\nptxas info    : Used"),
        ] {
            let text = TEXT.replacen(part, other, 1);
            assert!(kernel(text.as_bytes(), &mut Kept::default()).is_none(), "{part:?} as {other:?}");
        }
        for name in ["f(int &)", "'k'", "", "k\x1b[0m", "k\rk", "k\nk"] {
            assert!(!is_plain_name(name.as_bytes()), "{name}");
        }
        for other in ["Compile time = 4.917 s\n", "Compile time = 4..917 ms\n", "Compile time = 4.917 ms"] {
            assert_eq!(time(format!("ptxas info    : {other}").as_bytes()), None);
        }
    }
}
