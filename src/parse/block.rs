//! The undamaged report of one kernel or device function, whole, as nearly all of a log is: read in one go.
//!
//! This is the short way through what `reader` does record by record, for text that leaves nothing open. Whatever is not
//! exactly of this form goes the long way, with the same result.

use super::partial::is_wrap_width;
use crate::model::Arch;

/// The lines of a kernel's report.
pub(super) struct KernelBlock<'b> {
    pub(super) name: &'b [u8],
    pub(super) arch: Arch,
    pub(super) frame: &'b [u8],
    pub(super) used: &'b [u8],
    /// Where the lines of frame and figures start, counted from the start of the block, and where the block ends, at its
    /// last line feed.
    pub(super) frame_line: usize,
    pub(super) used_line: usize,
    pub(super) end: usize,
}

/// The lines of a device function's report.
pub(super) struct FunctionBlock<'b> {
    pub(super) name: &'b [u8],
    pub(super) frame: &'b [u8],
    pub(super) frame_line: usize,
    pub(super) end: usize,
}

const ENTRY: &[u8] = b"ptxas info    : Compiling entry function '";
const PROPERTIES: &[u8] = b"ptxas info    : Function properties for ";
const USED_LEAD: &[u8] = b"ptxas info    : ";
const INDENT: &[u8] = b"    ";

/// The report of a kernel at the start of `text`.
pub(super) fn kernel(text: &[u8]) -> Option<KernelBlock<'_>> {
    let rest = text.strip_prefix(ENTRY)?;
    let name = &rest[..memchr::memchr(b'\'', rest)?];
    let rest = rest[name.len()..].strip_prefix(b"' for '")?;
    let arch = &rest[..rest.iter().take(12).position(|b| *b == b'\'')?];
    let rest = rest[arch.len()..].strip_prefix(b"'\n")?;
    let properties = function(rest)?;
    if properties.name != name {
        return None;
    }
    let frame_line = text.len() - rest.len() + properties.frame_line;
    let used_line = text.len() - rest.len() + properties.end + 1;
    let used = text[used_line..].strip_prefix(USED_LEAD)?;
    let used = &used[..memchr::memchr(b'\n', used)?];
    let line = USED_LEAD.len() + used.len();
    if !used.starts_with(b"Used ") || !is_plain_end(used) || is_wrap_width(line) {
        return None;
    }
    let arch = Arch::from_bytes(arch)?;
    Some(KernelBlock { name, arch, frame: properties.frame, used, frame_line, used_line, end: used_line + line })
}

/// The report of a device function, or the properties of an entry, at the start of `text`.
pub(super) fn function(text: &[u8]) -> Option<FunctionBlock<'_>> {
    let rest = text.strip_prefix(PROPERTIES)?;
    let name = &rest[..memchr::memchr(b'\n', rest)?];
    let frame_line = PROPERTIES.len() + name.len() + 1;
    let frame = text[frame_line..].strip_prefix(INDENT)?;
    let frame = &frame[..memchr::memchr(b'\n', frame)?];
    let plain = is_plain_name(name) && !is_wrap_width(PROPERTIES.len() + name.len());
    let whole = frame.first().is_some_and(u8::is_ascii_digit) && frame.ends_with(b" bytes spill loads");
    (plain && whole).then_some(FunctionBlock { name, frame, frame_line, end: frame_line + INDENT.len() + frame.len() })
}

/// A mangled or C name: nothing in it that a terminal, a browser or another process could have put there.
fn is_plain_name(name: &[u8]) -> bool {
    let c = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.');
    name.first().is_some_and(c) && name.last().is_some_and(c) && memchr::memchr3(b' ', b'&', 0x1b, name).is_none()
}

/// Ends with a letter or a bank, not with a comma or something that damaged it.
fn is_plain_end(text: &[u8]) -> bool {
    text.last().is_some_and(|b| b.is_ascii_lowercase() || *b == b']') && !text.contains(&0x1b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ptxas info    : Compiling entry function '_Z1kPi' for 'sm_90a'\nptxas info    : Function properties for _Z1kPi\n    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 8 registers, used 0 barriers\nptxas info    : Compile time = 4.917 ms\n";

    #[test]
    fn a_whole_report_is_taken_with_the_places_of_its_lines() {
        let block = kernel(TEXT.as_bytes()).expect("a kernel");
        assert_eq!((block.name, block.arch.to_string()), (&b"_Z1kPi"[..], "sm_90a".to_owned()));
        assert_eq!(block.frame, b"8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
        assert_eq!(block.used, b"Used 8 registers, used 0 barriers");
        assert!(TEXT[block.frame_line..].starts_with("    8 bytes"));
        assert!(TEXT[block.used_line..].starts_with("ptxas info    : Used 8"));
        assert!(TEXT[block.end..].starts_with("\nptxas info    : Compile time"));
    }

    #[test]
    fn anything_else_goes_the_long_way() {
        for (part, other) in [
            ("'_Z1kPi'", "'_Z1jPi'"),
            ("'sm_90a'", "'sm_90a' "),
            ("\n", "\r\n"),
            ("    8 bytes", "\t8 bytes"),
            ("barriers\n", "barriers,\n"),
            ("_Z1kPi", "f(int &)"),
            ("spill loads", "spill"),
            ("ptxas info    : Used", "x\nptxas info    : Used"),
        ] {
            assert!(kernel(TEXT.replacen(part, other, 1).as_bytes()).is_none(), "{part:?} as {other:?}");
        }
    }
}
