//! The listing of `cuobjdump -res-usage`, read with nom.

use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{digit1, multispace0};
use nom::combinator::opt;
use nom::multi::many0;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};

use crate::model::{Arch, Bytes, Resources};

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

/// Reads one line, without its end.
pub(crate) fn read(line: &[u8]) -> Line<'_> {
    let text = line.trim_ascii();
    if let Some(arch) = text.strip_prefix(b"arch = ") {
        return Line::Arch(Arch::from_bytes(arch));
    }
    if let Some(name) = text.strip_prefix(b"Function ").and_then(|rest| rest.strip_suffix(b":")) {
        return Line::Function(name);
    }
    if let Some(at) = memchr::memmem::find(text, b"REG:") {
        return figures(&text[at..]).map_or(Line::Foreign, |listed| Line::Figures(Box::new(listed)));
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
    let value = take_while1(|b: u8| b.is_ascii_alphanumeric());
    let (rest, (key, bank, value)) =
        preceded(multispace0, (take_while1(word), bank, preceded(tag(":"), value))).parse(input)?;
    let bank = bank.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Ok((rest, Field { key, bank, value }))
}

fn figures(text: &[u8]) -> Option<Listed> {
    let (rest, fields) = many0(field).parse(text).ok()?;
    let mut resources = Resources { constant: None, ..Resources::default() };
    let mut listed = Listed {
        resources: Resources::default(),
        unbounded_stack: false,
        is_entry: false,
        unread_item: !rest.trim_ascii().is_empty(),
    };
    let mut constant = Vec::new();
    for Field { key, bank, value } in fields {
        let number: Option<u32> = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
        match (key, number) {
            // A linked device function shows 0 registers on sm_90 and later: not a fact.
            (b"REG", number) => resources.registers = number.filter(|n| *n > 0),
            (b"STACK", None) if value == b"UNKNOWN" => listed.unbounded_stack = true,
            (b"STACK", number) => resources.stack = number.map(Bytes),
            (b"SHARED", number) => resources.static_shared = number.map(Bytes),
            (b"LOCAL", number) => resources.local = number.map(Bytes),
            (b"TEXTURE", number) => resources.textures = number,
            (b"SURFACE", number) => resources.surfaces = number,
            (b"SAMPLER", number) => resources.samplers = number,
            (b"CONSTANT", Some(size)) => constant.extend(bank.map(|bank| (bank, Bytes(size)))),
            _ => listed.unread_item = true,
        }
    }
    listed.is_entry = constant.iter().any(|(bank, _)| *bank == 0);
    resources.constant = Some(constant.into());
    listed.resources = resources;
    Some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(line: &str) -> Listed {
        match read(line.as_bytes()) {
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
    fn a_demangled_name_ends_at_the_last_colon() {
        assert_eq!(read(b" Function ns::k<(int)4>(ns::P):"), Line::Function(b"ns::k<(int)4>(ns::P)"));
        assert_eq!(read(b"arch = sm_90a"), Line::Arch(Arch::from_bytes(b"sm_90a")));
        assert_eq!((read(b" Common:"), read(b"make: done")), (Line::Heading, Line::Foreign));
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
            assert_eq!(read(field.as_bytes()), Line::Field, "{field}");
        }
        for other in ["make: x = y", "a == b", "-DX=1", "compressed 3 files", "= x"] {
            assert_eq!(read(other.as_bytes()), Line::Foreign, "{other}");
        }
        assert_eq!(read(b"Fatbin elf code:"), Line::Fatbin { elf: true });
        assert_eq!(read(b"Fatbin ptx code:"), Line::Fatbin { elf: false });
    }
}
