//! What one line of a CUDA tool says: the text of a message, told apart by its first words.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::envelope::without_target;
use super::usage;
use crate::model::Arch;

/// One line's content. Names are as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Record<'a> {
    /// `0 bytes gmem`: a new run of ptxas or nvlink reports.
    Module,
    /// `Compiling entry function '<name>' for '<arch>'`
    Entry { name: &'a [u8], arch: Option<Arch> },
    /// `Function properties for <name>` of ptxas.
    Properties { name: &'a [u8] },
    /// The same with its frame, whose line break became blanks.
    Function { name: &'a [u8], frame: &'a [u8] },
    /// `Function properties for '<name>':` of a linker.
    LinkProperties { name: &'a [u8], target: Option<Arch> },
    /// `… bytes stack frame, …`
    Frame { text: &'a [u8] },
    /// `Used … registers …` of ptxas.
    Used { text: &'a [u8] },
    /// `used … registers …` of a linker.
    LinkUsed { text: &'a [u8], target: Option<Arch> },
    /// `Compile time = … ms`
    Time { ms: f64 },
    /// Begins like a record and is not whole: cut, torn or wrapped.
    Partial { what: Partial, text: &'a [u8] },
    /// Anything else.
    Text,
}

/// Which record is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partial {
    Entry,
    Properties,
    Frame,
    Used,
    Time,
}

const ENTRY: &[u8] = b"Compiling entry function";
const PROPERTIES: &[u8] = b"Function properties for";
const STACK: &[u8] = b" bytes stack frame";

/// Made once: names are short, and many.
static STACK_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(STACK));

/// Reads the text of an information message, without trailing blanks.
pub(crate) fn read(text: &[u8]) -> Record<'_> {
    match text.first() {
        Some(b'C') if text.starts_with(ENTRY) => entry(text),
        Some(b'C') if text.starts_with(b"Compile time") => match usage::compile_time(text) {
            Some(ms) => Record::Time { ms },
            None => Record::Partial { what: Partial::Time, text },
        },
        Some(b'F') if text.starts_with(PROPERTIES) => properties(text),
        // The beginning of a line that was broken in its first words.
        Some(b'C') if text.len() > 3 && ENTRY.starts_with(text) => Record::Partial { what: Partial::Entry, text },
        Some(b'F') if text.len() > 3 && PROPERTIES.starts_with(text) => {
            Record::Partial { what: Partial::Properties, text }
        }
        Some(b'U') if text.starts_with(b"Used ") || text == b"Used" => Record::Used { text },
        Some(b'u') if text.starts_with(b"used ") => {
            let (text, target) = without_target(text);
            Record::LinkUsed { text, target }
        }
        Some(b'0'..=b'9') if usage::is_module(text) => Record::Module,
        Some(b'0'..=b'9') if memchr::memmem::find(text, b" bytes stack frame").is_some() => Record::Frame { text },
        _ => Record::Text,
    }
}

/// The name may hold quotes and blanks itself (`'lambda'(int)`), so the architecture is read from the right.
fn entry(text: &[u8]) -> Record<'_> {
    let partial = Record::Partial { what: Partial::Entry, text };
    let rest = text[ENTRY.len()..].trim_ascii_start();
    let Some(rest) = rest.strip_prefix(b"'") else { return partial };
    let Some(quoted) = rest.strip_suffix(b"'").or_else(|| up_to_target(rest)) else { return partial };
    let Some(quote) = last_quote(quoted) else {
        // CUDA 2 and 3 name no architecture.
        return if is_whole_name(quoted) { Record::Entry { name: quoted, arch: None } } else { partial };
    };
    let Some(name) = quoted[..quote].strip_suffix(b"' for ") else { return partial };
    let arch = Arch::from_bytes(&quoted[quote + 1..]);
    if is_whole_name(name) { Record::Entry { name, arch } } else { partial }
}

/// `text` up to the quote that ends the architecture, where something follows: a table's bar, a remark.
fn up_to_target(text: &[u8]) -> Option<&[u8]> {
    let arch = memchr::memmem::rfind(text, b"' for 'sm_")? + b"' for '".len();
    let end = arch + memchr::memchr(b'\'', &text[arch..])?;
    Arch::from_bytes(&text[arch..end]).map(|_| &text[..end])
}

/// The last quote in `text`; nearly always the one before the architecture, so the end is looked at first.
fn last_quote(text: &[u8]) -> Option<usize> {
    let near = text.len().saturating_sub(8);
    let found = text[near..].iter().rposition(|b| *b == b'\'');
    found.map(|at| near + at).or_else(|| memchr::memrchr(b'\'', text))
}

fn properties(text: &[u8]) -> Record<'_> {
    let rest = text[PROPERTIES.len()..].trim_ascii_start();
    let (rest, target) = without_target(rest);
    if let Some(name) = rest.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"':"))
        && is_whole_name(name)
    {
        return Record::LinkProperties { name, target };
    }
    let partial = Record::Partial { what: Partial::Properties, text };
    if target.is_some() {
        return partial;
    }
    match with_frame(rest) {
        Some((name, frame)) if is_whole_name(name) => Record::Function { name, frame },
        None if is_whole_name(rest) => Record::Properties { name: rest },
        _ => partial,
    }
}

/// A name that its frame follows on the same line.
fn with_frame(text: &[u8]) -> Option<(&[u8], &[u8])> {
    // A signature has blanks too, and ends in a parenthesis as no frame does.
    if text.ends_with(b")") || memchr::memchr(b' ', text).is_none() {
        return None;
    }
    let (name, frame) = text.split_at(frame_in(text)?);
    if name.last().is_some_and(|b| !b.is_ascii_whitespace()) {
        return None;
    }
    // Libraries have `ptxas         .     ` before the frame.
    let name = name.trim_ascii_end();
    let of_library = || name.strip_suffix(b".")?.trim_ascii_end().strip_suffix(b" ptxas");
    Some((of_library().map_or(name, <[u8]>::trim_ascii_end), frame))
}

/// Whether `text` is nothing but the beginning of a record's first words.
pub(crate) fn is_stub(text: &[u8]) -> bool {
    let leads = [ENTRY, PROPERTIES, b"Used ", b"used ", b"Compile time = "];
    !text.is_empty() && leads.iter().any(|lead| lead.starts_with(text))
}

/// Whether `text` begins with the first words of a record; no more of it is looked at.
pub(crate) fn opens(text: &[u8]) -> bool {
    text.starts_with(ENTRY)
        || text.starts_with(PROPERTIES)
        || usage::starts_whole(text)
        || usage::compile_time(text).is_some()
        || usage::is_module(text)
}

/// Whether `text` names a function in quotes that are no plain ones.
pub(crate) fn has_other_quotes(text: &[u8]) -> bool {
    let Some(rest) = [ENTRY, PROPERTIES].iter().find_map(|lead| text.strip_prefix(*lead)) else { return false };
    starts_with_other_quote(rest.trim_ascii_start())
}

/// Whether a plain quote, or another, must stand before what is a name.
pub(crate) fn starts_with_other_quote(name: &[u8]) -> bool {
    name.first().is_some_and(|b| !b.is_ascii_alphanumeric() && !b"_$.('~".contains(b))
}

/// A mangled name holds no blank; one that does has another process's output in it.
fn is_whole_name(name: &[u8]) -> bool {
    let torn = name.starts_with(b"_Z") && memchr::memchr(b' ', name).is_some();
    !name.is_empty() && !torn
}

/// Where the figures of a stack frame start in a line that holds them.
pub(crate) fn frame_in(line: &[u8]) -> Option<usize> {
    let plain = line.trim_ascii_start();
    let digits = plain.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits > 0 && plain[digits..].starts_with(STACK) {
        return Some(line.len() - plain.len());
    }
    let unit = STACK_FINDER.find(line)?;
    let digits = line[..unit].iter().rev().take_while(|b| b.is_ascii_digit()).count();
    (digits > 0).then(|| usage::number_start(line, unit - digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_quotes_and_blanks_are_read_from_the_right() {
        let text =
            "Compiling entry function 'void k<host(int*)::'lambda'(int)>(host(int*)::'lambda'(int), int*)' for 'sm_80'";
        let name = &b"void k<host(int*)::'lambda'(int)>(host(int*)::'lambda'(int), int*)"[..];
        assert_eq!(read(text.as_bytes()), Record::Entry { name, arch: Some(Arch::new(8, 0)) });
        assert_eq!(read(b"Compiling entry function '_Z3fooPf'"), Record::Entry { name: b"_Z3fooPf", arch: None });
        assert_eq!(
            read(b"Compiling entry function 'k' for 'sm_999'"),
            Record::Entry { name: b"k", arch: Some(Arch::new(99, 9)) }
        );
    }

    #[test]
    fn a_name_with_foreign_output_in_it_is_no_name() {
        for torn in [
            "Compiling entry function '_ZN1aptxas info    : Compiling entry function '_Zb' for 'sm_80'",
            "Compiling entry function '_ZN1a",
            "Compiling entry function",
        ] {
            assert!(matches!(read(torn.as_bytes()), Record::Partial { what: Partial::Entry, .. }), "{torn}");
        }
        assert!(matches!(
            read(b"Function properties for _ZN1aptxas info    : Used"),
            Record::Partial { what: Partial::Properties, .. }
        ));
    }

    #[test]
    fn linker_lines_are_told_from_those_of_ptxas() {
        assert_eq!(
            read(b"Function properties for '_Z5k_rdcPfi':"),
            Record::LinkProperties { name: b"_Z5k_rdcPfi", target: None }
        );
        assert_eq!(
            read(b"Function properties for '_Z5k_rdcPfi': (target: sm_90)"),
            Record::LinkProperties { name: b"_Z5k_rdcPfi", target: Some(Arch::new(9, 0)) }
        );
        assert_eq!(
            read(b"Function properties for sweep(grid, int*)"),
            Record::Properties { name: b"sweep(grid, int*)" }
        );
    }

    #[test]
    fn a_frame_is_found_behind_any_prefix() {
        for (line, at) in [
            ("    8 bytes stack frame, 0", 4),
            ("ptxas         .     216 bytes stack frame", 20),
            ("#17 0.42     8 bytes stack frame", 13),
            ("#17 0.42     1,008 bytes stack frame", 13),
            ("    1 234 bytes stack frame", 4),
        ] {
            assert_eq!(frame_in(line.as_bytes()), Some(at), "{line}");
        }
        assert_eq!(frame_in(b"no bytes stack frame"), None);
    }
}
