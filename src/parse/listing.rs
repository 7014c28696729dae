//! The listing of `cuobjdump -res-usage`, read with nom.

use std::ops::Range;

use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{digit1, multispace0};
use nom::combinator::opt;
use nom::multi::many0;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};

use super::usage::whole_number;
use crate::model::{Arch, Bytes, Resources};

/// What stands before every line of a listing: the mark of a job, a time stamp, a line number, a comment leader. It is
/// that of the figures, whose own words are beyond doubt; only its numbers differ from line to line.
#[derive(Debug, Default)]
pub(crate) struct Lead(Vec<u8>);

impl Lead {
    pub(crate) fn new(before: &[u8]) -> Lead {
        Lead(before.trim_ascii().to_vec())
    }

    /// Where the text of `line` starts, behind the same lead.
    pub(crate) fn end_in(&self, line: &[u8]) -> Option<usize> {
        let mut rest = line.trim_ascii_start();
        let mut lead = self.0.as_slice();
        while !lead.is_empty() {
            let (one, other) = (numbered(lead), numbered(rest));
            let length = match one {
                Some(length) => {
                    rest = &rest[other?..];
                    length
                }
                None if other.is_none() && is_like(*lead.first()?, *rest.first()?) => {
                    rest = &rest[1..];
                    1
                }
                None => return None,
            };
            lead = &lead[length..];
        }
        Some(line.len() - rest.trim_ascii_start().len())
    }
}

/// How long a number at the start of `text` is, with the blanks that may pad it.
fn numbered(text: &[u8]) -> Option<usize> {
    let blanks = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let digits = text[blanks..].iter().take_while(|b| b.is_ascii_digit()).count();
    (digits > 0).then_some(blanks + digits)
}

/// Whether these stand at the same place of two leads: `grep -n` has a colon in one and a dash in the other.
fn is_like(one: u8, other: u8) -> bool {
    one == other || (b":-".contains(&one) && b":-".contains(&other))
}

/// Where the figures of a function start in `line`, if it holds any.
pub(crate) fn figures_in(line: &[u8]) -> Option<usize> {
    let is_word = |at: &usize| !line[..*at].last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    memchr::memmem::find_iter(line, b"REG:").find(is_word)
}

/// The words before the figures on their line, where they name the function: `Function k: REG:10 …`.
pub(crate) fn name_before(before: &[u8]) -> Option<Range<usize>> {
    const LEAD: &[u8] = b"Function ";
    let start = memchr::memmem::find(before, LEAD)?;
    let is_word = !before[..start].last().is_some_and(u8::is_ascii_alphanumeric);
    (is_word && before.ends_with(b":")).then_some(start..before.len())
}

/// One function's line of figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) resources: Resources,
    /// `STACK:UNKNOWN`: the stack cannot be bounded.
    pub(crate) unbounded_stack: bool,
    /// Device functions have no parameters in constant bank 0.
    pub(crate) is_entry: bool,
    /// A field of an unknown form was skipped.
    pub(crate) unread_item: bool,
    /// Its last number may go on.
    pub(crate) cut: bool,
}

/// A line of the listing that matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line<'a> {
    /// `Fatbin elf code:`, with which the header of one architecture starts, or that of code without figures.
    Fatbin { elf: bool },
    /// `arch = sm_90a` of a fatbin header.
    Arch(Option<Arch>),
    /// ` Function scale_c:`
    Function(&'a [u8]),
    /// `  REG:10 STACK:0 SHARED:0 …`
    Figures(Box<Listed>),
    /// `Resource usage:`, with which the listing of one file or one architecture starts.
    Start,
    /// `Common:` and its figures, the rule below `Fatbin elf code:`.
    Heading,
    /// `identifier = x.cu`, `has debug info`: a line of a fatbin header, if it stands in one.
    Field,
    /// No line of a listing.
    Foreign,
}

/// Reads one line, without its end and without what stands before every line. Of a line that is `cut` nobody knows whether
/// its last number goes on.
pub(crate) fn read(line: &[u8], cut: bool) -> Line<'_> {
    let text = line.trim_ascii();
    if let Some(arch) = text.strip_prefix(b"arch = ") {
        return Line::Arch(Arch::from_bytes(arch));
    }
    if let Some(name) = text.strip_prefix(b"Function ").and_then(|rest| rest.strip_suffix(b":")) {
        return Line::Function(name);
    }
    if text.starts_with(b"REG:") {
        return figures(text, cut).map_or(Line::Foreign, |listed| Line::Figures(Box::new(listed)));
    }
    if text.starts_with(b"Resource usage") {
        return Line::Start;
    }
    if let Some(code) = text.strip_prefix(b"Fatbin ") {
        return Line::Fatbin { elf: code.starts_with(b"elf") };
    }
    const HEADINGS: [&[u8]; 4] = [b"Common:", b"GLOBAL:", b"CONSTANT[", b"====="];
    if text.is_empty() || HEADINGS.iter().any(|lead| text.starts_with(lead)) {
        return Line::Heading;
    }
    if is_field(text) { Line::Field } else { Line::Foreign }
}

/// `code version = [1,8]`, `has debug info`, `compressed`: each release of `cuobjdump` has more of these.
fn is_field(text: &[u8]) -> bool {
    const LONGEST_KEY: usize = 40;
    let in_key = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_');
    let key = text.iter().take(LONGEST_KEY).take_while(in_key).count();
    let (key, value) = text.split_at(key);
    let has_value = key.ends_with(b" ") && !key.starts_with(b" ") && (value == b"=" || value.starts_with(b"= "));
    has_value || text.starts_with(b"has ") || text == b"compressed"
}

struct Field<'a> {
    key: &'a [u8],
    bank: Option<u8>,
    value: &'a [u8],
}

fn field(input: &[u8]) -> IResult<&[u8], Field<'_>> {
    let word = |b: u8| b.is_ascii_uppercase();
    let bank = opt(delimited(tag("["), digit1, tag("]")));
    let value = take_while1(|b: u8| !b.is_ascii_whitespace());
    let (rest, (key, bank, value)) =
        preceded(multispace0, (take_while1(word), bank, preceded(tag(":"), value))).parse(input)?;
    let bank = bank.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Ok((rest, Field { key, bank, value }))
}

fn figures(text: &[u8], cut: bool) -> Option<Listed> {
    let (rest, fields) = many0(field).parse(text).ok()?;
    // In every listing the stack follows the registers; prose may speak of `REG:40`.
    if !cut && !fields.iter().any(|field| field.key == b"STACK") {
        return None;
    }
    // What follows the constants has not come.
    let is_open = cut && !fields.iter().any(|field| field.key == b"TEXTURE");
    let last = if cut && rest.is_empty() { fields.len().checked_sub(1) } else { None };
    let mut resources = Resources { constant: None, ..Resources::default() };
    let mut listed = Listed {
        resources: Resources::default(),
        unbounded_stack: false,
        is_entry: false,
        unread_item: !rest.trim_ascii().is_empty(),
        cut: false,
    };
    let mut constant = Vec::new();
    for (at, Field { key, bank, value }) in fields.into_iter().enumerate() {
        // No number goes on behind a 0.
        let number = whole_number(value).filter(|number| *number == 0 || last != Some(at));
        listed.cut |= last == Some(at) && number.is_none();
        let is_unknown = key == b"STACK" && value == b"UNKNOWN";
        listed.unread_item |= number.is_none() && !is_unknown && !listed.cut;
        match (key, number) {
            // A linked device function shows 0 registers on sm_90 and later: not a fact.
            (b"REG", number) => resources.registers = number.filter(|n| *n > 0),
            (b"STACK", None) if is_unknown => listed.unbounded_stack = true,
            (b"STACK", number) => resources.stack = number.map(Bytes),
            (b"SHARED", number) => resources.static_shared = number.map(Bytes),
            (b"LOCAL", number) => resources.local = number.map(Bytes),
            (b"TEXTURE", number) => resources.textures = number,
            (b"SURFACE", number) => resources.surfaces = number,
            (b"SAMPLER", number) => resources.samplers = number,
            (b"CONSTANT", Some(size)) => constant.extend(bank.map(|bank| (bank, Bytes(size)))),
            _ => listed.unread_item |= !listed.cut,
        }
    }
    // What is cut before the parameters is taken for a kernel, as most functions of a listing are.
    listed.is_entry = constant.iter().any(|(bank, _)| *bank == 0) || (is_open && constant.is_empty());
    resources.constant = (!is_open).then(|| constant.into());
    listed.resources = resources;
    Some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(line: &str) -> Listed {
        match read(line.as_bytes(), false) {
            Line::Figures(listed) => *listed,
            other => panic!("no figures in {line}: {other:?}"),
        }
    }

    #[test]
    fn figures_are_read_in_any_order_of_banks() {
        let k = listed(
            "  REG:24 STACK:32 SHARED:1280 LOCAL:0 CONSTANT[2]:24 CONSTANT[0]:364 TEXTURE:0 SURFACE:0 SAMPLER:0",
        );
        assert_eq!(
            (k.resources.registers, k.resources.stack, k.resources.static_shared),
            (Some(24), Some(Bytes(32)), Some(Bytes(1280)))
        );
        assert_eq!(k.resources.constant.as_deref(), Some(&[(2, Bytes(24)), (0, Bytes(364))][..]));
        assert!(k.is_entry && !k.unbounded_stack && !k.unread_item);
    }

    #[test]
    fn an_unknown_stack_and_an_unknown_field_are_said_and_zero_registers_are_no_fact() {
        let k = listed("  REG:0 STACK:UNKNOWN SHARED:0 LOCAL:0 TMEM:4");
        assert_eq!((k.resources.registers, k.resources.stack), (None, None));
        assert!(k.unbounded_stack && k.unread_item && !k.is_entry);
    }

    #[test]
    fn a_figure_that_cannot_be_read_is_unknown() {
        for shared in ["9,216", "9 216", "0x2400", "09216", "9216B"] {
            let k = listed(&format!("REG:24 STACK:32 SHARED:{shared} LOCAL:0 CONSTANT[0]:364"));
            assert!(k.unread_item, "{shared}");
            assert_ne!(k.resources.static_shared, Some(Bytes(9216)), "{shared}");
        }
        assert_eq!(listed("REG:24 STACK:32 SHARED:9,216").resources.static_shared, None);
    }

    #[test]
    fn the_last_number_of_a_line_that_is_cut_is_unknown() {
        let cut = |line: &str| match read(line.as_bytes(), true) {
            Line::Figures(listed) => *listed,
            other => panic!("no figures in {line}: {other:?}"),
        };
        let k = cut("REG:14");
        assert_eq!((k.resources.registers, k.cut, k.is_entry), (None, true, true));
        let k = cut("REG:147 STACK:2");
        assert_eq!((k.resources.registers, k.resources.stack, k.cut), (Some(147), None, true));
        assert!(!k.unread_item);
        let k = cut("REG:147 STACK:0 SHARED:16 LOCAL:0 CONSTANT[0]:36");
        assert_eq!((k.resources.static_shared, k.resources.constant.as_deref()), (Some(Bytes(16)), None));
        // That of a pasted line without its end is whole.
        let k = cut("REG:147 STACK:0 SHARED:16 LOCAL:0 TEXTURE:0 SURFACE:0 SAMPLER:0");
        assert_eq!((k.resources.samplers, k.cut), (Some(0), false));
    }

    #[test]
    fn prose_is_no_listing() {
        for line in ["REG:243 against the cap, zero stack**", "REG:40", "REG:40 was the count"] {
            assert_eq!(read(line.as_bytes(), false), Line::Foreign, "{line}");
        }
    }

    #[test]
    fn a_lead_is_the_same_but_for_its_numbers() {
        for (lead, line, text) in [
            ("", "  REG:1", "REG:1"),
            ("#7 1.2   ", "#7 12.34  Function k:", "Function k:"),
            ("    9\t", "  100\tarch = sm_90", "arch = sm_90"),
            ("[ 50%] ", "[100%] Common:", "Common:"),
            ("x.log-12-  ", "x.log:9: Function k:", "Function k:"),
            ("2026-03-04T05:00:00.0022657Z  ", "2026-03-04T05:01:10.002Z ", ""),
            (" * ", " * arch = sm_80", "arch = sm_80"),
        ] {
            let end = Lead::new(lead.as_bytes()).end_in(line.as_bytes());
            assert_eq!(end.map(|end| &line[end..]), Some(text), "{line}");
        }
        for (lead, line) in
            [("#7 1.2", "arch = sm_90"), ("> ", " Function k:"), ("1>", "1"), ("// ", "int arch = 1"), ("#7", "# x")]
        {
            assert_eq!(Lead::new(lead.as_bytes()).end_in(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_demangled_name_ends_at_the_last_colon() {
        assert_eq!(read(b" Function ns::k<(int)4>(ns::P):", false), Line::Function(b"ns::k<(int)4>(ns::P)"));
        assert_eq!(read(b"arch = sm_90a", false), Line::Arch(Arch::from_bytes(b"sm_90a")));
        assert_eq!((read(b" Common:", false), read(b"make: done", false)), (Line::Heading, Line::Foreign));
    }

    #[test]
    fn a_fatbin_header_has_fields_of_any_key() {
        for field in [
            "code version = [1,8]",
            "compile_size = 64bit",
            "has debug info",
            "compressed",
            "identifier = src/s.cu",
            "identifier = ",
            "ptxasOptions =  -g --dont-merge-basicblocks",
            "uncompressed code size = 4096",
        ] {
            assert_eq!(read(field.as_bytes(), false), Line::Field, "{field}");
        }
        for other in ["make: x = y", "a == b", "-DX=1", "compressed 3 files", "= x"] {
            assert_eq!(read(other.as_bytes(), false), Line::Foreign, "{other}");
        }
        assert_eq!(read(b"Fatbin elf code:", false), Line::Fatbin { elf: true });
        assert_eq!(read(b"Fatbin ptx code:", false), Line::Fatbin { elf: false });
    }
}
