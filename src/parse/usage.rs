//! The two lines of figures, read with nom: the stack frame line, and the open-ended `Used …` line of ptxas and nvlink.
//!
//! The item list of a `Used` line grows with every few releases, so an item of an unknown form is noted and the others
//! are kept.

use std::sync::Arc;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{digit1, space0, space1};
use nom::combinator::{map, map_res, opt, value, verify};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

use crate::model::{Bytes, Unread};

/// A stack frame line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Unknown where the log starts within it.
    pub(crate) stack: Option<Bytes>,
    pub(crate) stores: Bytes,
    pub(crate) loads: Bytes,
}

/// A `Used` line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) registers: u32,
    pub(crate) barriers: Option<u32>,
    pub(crate) cumulative_stack: Option<Bytes>,
    pub(crate) local: Option<Bytes>,
    pub(crate) shared: Option<Bytes>,
    /// Shared by all kernels with this line.
    pub(crate) constant: Arc<[(u8, Bytes)]>,
    pub(crate) textures: Option<u32>,
    pub(crate) surfaces: Option<u32>,
    pub(crate) samplers: Option<u32>,
    /// An item was not understood.
    pub(crate) unread_item: bool,
    /// It stands where shared memory is printed, which may be what it says.
    shared_unread: bool,
    /// The line stops within an item, or after a comma.
    pub(crate) unfinished: bool,
}

impl Usage {
    /// Whether the line, as far as it goes, was read up to the place where shared memory is printed, and beyond it. Only
    /// then does a missing item mean zero even if the line was cut.
    pub(crate) fn is_past_shared(&self) -> bool {
        !self.shared_unread && self.has_item_behind_shared(&self.constant)
    }

    /// Whether a line that is not cut says so of what is missing that it is zero: an item that was not understood may be
    /// any of the others.
    pub(crate) fn is_understood(&self) -> bool {
        !self.unread_item
    }

    fn has_item_behind_shared(&self, constant: &[(u8, Bytes)]) -> bool {
        self.shared.is_some() || !constant.is_empty() || self.textures.is_some() || self.surfaces.is_some()
    }
}

/// A number as the tools print it: `008` is the tail of one, as in `1,008`.
fn number(input: &[u8]) -> IResult<&[u8], u32> {
    let digits = verify(digit1, |digits: &[u8]| digits.len() == 1 || digits[0] != b'0');
    // `from_utf8` cannot fail on digits; a number over 32 bits is an error, and so the line is noted as unread.
    map_res(digits, |digits: &[u8]| std::str::from_utf8(digits).unwrap_or_default().parse::<u32>()).parse(input)
}

/// The number that is all of `text`.
pub(crate) fn whole_number(text: &[u8]) -> Option<u32> {
    number(text).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, number)| number)
}

/// The number that `text` ends with, unless that is a part of a larger one.
pub(crate) fn last_number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let start = text.len() - digits;
    (number_start(text, start) == start).then(|| whole_number(&text[start..])).flatten()
}

/// Where the number starts whose last digits start at `start`: people and locales group digits, as in `1,008` and `1 008`.
pub(crate) fn number_start(text: &[u8], start: usize) -> usize {
    const MARKS: [&str; 7] = [",", ".", "'", "_", "\u{a0}", "\u{202f}", "\u{2009}"];
    let digits = |text: &[u8]| text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let is_group = |at: usize| text[at..].iter().take_while(|b| b.is_ascii_digit()).count() == 3;
    let mut start = start;
    while is_group(start) {
        let before = MARKS.iter().find_map(|mark| text[..start].strip_suffix(mark.as_bytes()));
        // A blank stands before many a number; nothing but another group stands before this one.
        let before = before.or_else(|| text[..start].strip_suffix(b" ").filter(|before| is_short_number(before)));
        let Some(before) = before.filter(|before| digits(before) > 0) else { break };
        start = before.len() - digits(before);
    }
    start
}

/// Whether `text` is one to three digits and nothing else but blanks before them.
fn is_short_number(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    (1..=3).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// `52+0` is declared plus system memory, as CUDA 2 to 4 wrote it.
fn summed(input: &[u8]) -> IResult<&[u8], Bytes> {
    let (rest, (first, second)) = (number, opt(preceded(tag("+"), number))).parse(input)?;
    Ok((rest, Bytes(first) + Bytes(second.unwrap_or(0))))
}

/// `400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`
pub(crate) fn frame(input: &[u8]) -> IResult<&[u8], Frame> {
    let comma = || (space0, tag(","), space0);
    let (rest, (stack, _, stores, _, loads)) = (
        terminated(number, (space1, tag("bytes stack frame"))),
        comma(),
        terminated(number, (space1, tag("bytes spill stores"))),
        comma(),
        terminated(number, (space1, tag("bytes spill loads"))),
    )
        .parse(input)?;
    Ok((rest, Frame { stack: Some(Bytes(stack)), stores: Bytes(stores), loads: Bytes(loads) }))
}

enum Item {
    Barriers(u32),
    CumulativeStack(Bytes),
    Local(Bytes),
    Shared(Bytes),
    Constant(u8, Bytes),
    Textures(u32),
    Surfaces(u32),
    Samplers(u32),
    Known,
}

#[derive(Clone, Copy)]
enum Memory {
    Shared,
    Local,
    Global,
    CumulativeStack,
    Constant(u8),
}

fn memory(input: &[u8]) -> IResult<&[u8], Memory> {
    let bank = map_res(delimited(tag("cmem["), number, tag("]")), u8::try_from);
    alt((
        value(Memory::Shared, tag("smem")),
        map(bank, Memory::Constant),
        value(Memory::Local, tag("lmem")),
        value(Memory::CumulativeStack, tag("cumulative stack size")),
        value(Memory::Global, tag("gmem")),
    ))
    .parse(input)
}

fn bytes_item(input: &[u8]) -> IResult<&[u8], Item> {
    let (rest, (size, _, _, _, memory)) = (summed, space1, tag("bytes"), space1, memory).parse(input)?;
    let item = match memory {
        Memory::Shared => Item::Shared(size),
        Memory::Local => Item::Local(size),
        Memory::Global => Item::Known,
        Memory::CumulativeStack => Item::CumulativeStack(size),
        Memory::Constant(bank) => Item::Constant(bank, size),
    };
    Ok((rest, item))
}

fn counted_item(input: &[u8]) -> IResult<&[u8], Item> {
    let (rest, (count, _, unit)) = (number, space1, take_while1(|b: u8| b.is_ascii_alphabetic())).parse(input)?;
    let item = match unit {
        b"textures" | b"texture" => Item::Textures(count),
        b"surfaces" | b"surface" => Item::Surfaces(count),
        b"samplers" | b"sampler" => Item::Samplers(count),
        b"stack" => Item::CumulativeStack(Bytes(count)),
        _ => return Err(nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::Alt))),
    };
    Ok((rest, item))
}

fn barriers_item(input: &[u8]) -> IResult<&[u8], Item> {
    map(delimited((tag("used"), space1), number, (space1, tag("barriers"))), Item::Barriers).parse(input)
}

fn registers(input: &[u8]) -> IResult<&[u8], u32> {
    delimited((alt((tag("Used"), tag("used"))), space1), number, (space1, tag("registers"))).parse(input)
}

/// `Used 30 registers, used 1 barriers, 4096 bytes smem, 364 bytes cmem[0]`, to the end of `input`.
pub(crate) fn usage(input: &[u8]) -> Option<Usage> {
    let (rest, registers) = registers(input).ok()?;
    let mut reading = Reading { usage: Usage { registers, ..Usage::default() }, constant: Vec::new() };
    reading.items(rest);
    Some(Usage { constant: reading.constant.into(), ..reading.usage })
}

/// A `Used` line that is being read.
struct Reading {
    usage: Usage,
    /// The constant banks so far.
    constant: Vec<(u8, Bytes)>,
}

impl Reading {
    fn items(&mut self, input: &[u8]) {
        let mut rest = input;
        loop {
            rest = rest.trim_ascii_start();
            let Some(after_comma) = rest.strip_prefix(b",") else {
                if !rest.is_empty() {
                    self.note_unread();
                }
                return;
            };
            rest = after_comma.trim_ascii_start();
            if rest.is_empty() {
                self.usage.unfinished = true;
                return;
            }
            match alt((bytes_item, barriers_item, counted_item)).parse(rest) {
                Ok((after, item)) => {
                    self.keep(item);
                    rest = after;
                }
                Err(_) => rest = self.skip_item(rest),
            }
        }
    }

    fn keep(&mut self, item: Item) {
        match item {
            Item::Barriers(count) => self.usage.barriers = Some(count),
            Item::CumulativeStack(size) => self.usage.cumulative_stack = Some(size),
            Item::Local(size) => self.usage.local = Some(size),
            Item::Shared(size) => self.usage.shared = Some(size),
            Item::Constant(bank, size) => self.constant.push((bank, size)),
            Item::Textures(count) => self.usage.textures = Some(count),
            Item::Surfaces(count) => self.usage.surfaces = Some(count),
            Item::Samplers(count) => self.usage.samplers = Some(count),
            Item::Known => {}
        }
    }

    /// An item that was not understood may be any that has not come yet.
    fn note_unread(&mut self) {
        self.usage.unread_item = true;
        self.usage.shared_unread |= !self.usage.has_item_behind_shared(&self.constant);
    }

    /// Steps over an item of an unknown form; the last one may only be unfinished.
    fn skip_item<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        match end_of_item(rest) {
            None if is_start_of_an_item(rest) => {
                self.usage.unfinished = true;
                b""
            }
            end => {
                self.note_unread();
                &rest[end.unwrap_or(rest.len())..]
            }
        }
    }
}

/// The comma behind the item at the start of `text`; one behind a bare number is within it, as in `1,024 bytes smem`.
fn end_of_item(text: &[u8]) -> Option<usize> {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let mut start = 0;
    for comma in memchr::memchr_iter(b',', text) {
        let goes_on = text[comma + 1..].trim_ascii_start().first().is_some_and(u8::is_ascii_digit);
        if !goes_on || !is_number(text[start..comma].trim_ascii()) {
            return Some(comma);
        }
        start = comma + 1;
    }
    None
}

/// Whether `text` is the beginning of a known item, as at the end of a wrapped or cut line.
fn is_start_of_an_item(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|b| b.is_ascii_digit() || **b == b'+').count();
    let (number, word) = text.split_at(digits);
    let word = word.trim_ascii_start();
    let starts = |full: &[u8]| full.starts_with(word);
    if number.is_empty() {
        let used = word.strip_prefix(b"used".as_slice()).map(<[u8]>::trim_ascii_start);
        return starts(b"used") || used.is_some_and(|rest| rest.iter().all(u8::is_ascii_digit) || ends_short(rest));
    }
    [
        &b"bytes cumulative stack size"[..],
        b"bytes smem",
        b"bytes lmem",
        b"bytes cmem",
        b"stack",
        b"textures",
        b"surfaces",
        b"samplers",
    ]
    .into_iter()
    .any(starts)
        || word.starts_with(b"bytes cmem[")
}

/// `1 barr`: a count of barriers whose unit is cut.
fn ends_short(rest: &[u8]) -> bool {
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    b"barriers".starts_with(rest[digits..].trim_ascii_start())
}

/// Whether a `Used` line is understood to its end.
pub(crate) fn is_whole(text: &[u8]) -> bool {
    usage(text).is_some_and(|usage| !usage.unfinished && !usage.unread_item)
}

/// Whether a `Used` line gets as far as its first item.
pub(crate) fn starts_whole(text: &[u8]) -> bool {
    registers(text).is_ok()
}

/// Whether `text` may be the beginning of a `Used` line that was broken before its first item was whole.
pub(crate) fn is_start_of_used(text: &[u8]) -> bool {
    let word = |full: &[u8], text: &[u8]| full.starts_with(text);
    let Some(rest) = text.strip_prefix(b"Used") else { return false };
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    digits <= LONGEST_NUMBER && word(b"registers", rest[digits..].trim_ascii_start())
}

/// Whether `text` is the beginning of a stack frame line.
pub(crate) fn is_start_of_frame(text: &[u8]) -> bool {
    let mut rest = text;
    for words in [&b"bytes stack frame,"[..], b"bytes spill stores,", b"bytes spill loads"] {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        rest = rest[digits..].trim_ascii_start();
        match rest.strip_prefix(words) {
            Some(after) if digits > 0 => rest = after.trim_ascii_start(),
            _ => return words.starts_with(rest) && (digits > 0 || rest.is_empty()),
        }
    }
    rest.is_empty()
}

/// Digits of the largest number that can be true.
const LONGEST_NUMBER: usize = 10;

/// Whether a number in `text` is too large to be true, or below 0.
pub(crate) fn has_impossible_number(text: &[u8]) -> bool {
    let mut numbers = text.split(|b| !b.is_ascii_digit());
    let is_negative = |sign: usize| text[..sign].ends_with(b" ") && text.get(sign + 1).is_some_and(u8::is_ascii_digit);
    numbers.any(|digits| digits.len() > LONGEST_NUMBER || (digits.len() == LONGEST_NUMBER && number(digits).is_err()))
        || memchr::memchr_iter(b'-', text).any(is_negative)
}

/// Why a line of figures could not be read.
pub(crate) fn why_unread(text: &[u8], otherwise: Unread) -> Unread {
    if has_impossible_number(text) { Unread::Number } else { otherwise }
}

/// `Compile time = 58.684 ms`, in milliseconds.
pub(crate) fn compile_time(input: &[u8]) -> Option<f64> {
    let rest = input.strip_prefix(b"Compile time =")?.trim_ascii_start();
    let (ms, length) = decimal(rest)?;
    let unit = rest[length..].trim_ascii_start();
    (unit.len() < rest.len() - length && unit.starts_with(b"ms")).then_some(ms)
}

/// The number `58.684` at the start of `text`, and how long it is.
pub(crate) fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    /// Up to this many digits both parts of the fraction below are whole numbers of an `f64`, so their quotient is the
    /// number as nearly as it can be.
    const EXACT: usize = 15;
    let (mut number, mut length) = (0_u64, 0);
    let mut point = None;
    while let Some(byte) = text.get(length).filter(|_| length <= EXACT) {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(length),
            _ => break,
        }
        length += 1;
    }
    let ends = !matches!(text.get(length), Some(b'0'..=b'9' | b'.'));
    match point {
        Some(1..) if ends => {
            let decimals = length - point.unwrap_or_default() - 1;
            Some((number as f64 / 10_f64.powi(i32::try_from(decimals).ok()?), length))
        }
        _ => any_decimal(text),
    }
}

/// The same of a number of any form.
fn any_decimal(text: &[u8]) -> Option<(f64, usize)> {
    /// Longer than any time.
    const LONGEST: usize = 40;
    let length = text.iter().take(LONGEST).take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    Some((std::str::from_utf8(&text[..length]).ok()?.parse().ok()?, length))
}

/// `1028 bytes gmem, 256 bytes cmem[3]`: what opens the report of a ptxas or nvlink run.
pub(crate) fn is_module(input: &[u8]) -> bool {
    let opening: IResult<&[u8], _> = (digit1, space1, tag("bytes gmem")).parse(input);
    opening.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Usage {
        usage(text.as_bytes()).expect("a Used line")
    }

    #[test]
    fn every_item_of_every_era_is_read() {
        let now = read(
            "Used 30 registers, used 1 barriers, 96 bytes cumulative stack size, 256 bytes smem, 364 bytes cmem[0], 24 bytes cmem[2], 2 textures, 1 surfaces, 3 samplers",
        );
        assert_eq!(
            (now.registers, now.barriers, now.cumulative_stack, now.shared),
            (30, Some(1), Some(Bytes(96)), Some(Bytes(256)))
        );
        assert_eq!(*now.constant, [(0, Bytes(364)), (2, Bytes(24))]);
        assert_eq!((now.textures, now.surfaces, now.samplers, now.local), (Some(2), Some(1), Some(3), None));
        assert!(!now.unread_item && !now.unfinished);

        let old = read(
            "Used 18 registers, 6440+0 bytes lmem, 4+16 bytes smem, 64928 bytes cmem[0], 40 bytes cmem[1], 8 bytes cmem[14]",
        );
        assert_eq!((old.local, old.shared, old.barriers), (Some(Bytes(6440)), Some(Bytes(20)), None));
        assert_eq!(old.constant.len(), 3);

        let linked =
            read("used 46 registers, used 1 barriers, 88 stack, 1280 bytes smem, 540 bytes cmem[0], 0 bytes lmem");
        assert_eq!((linked.cumulative_stack, linked.local), (Some(Bytes(88)), Some(Bytes(0))));
        assert!(!linked.unread_item);
    }

    #[test]
    fn an_unknown_item_is_noted_and_costs_no_other() {
        let usage = read("Used 30 registers, 12 bytes tmem, 256 bytes smem");
        assert!(usage.unread_item);
        assert_eq!(usage.shared, Some(Bytes(256)));
    }

    #[test]
    fn what_an_unread_item_could_have_said_is_unknown() {
        for line in [
            "Used 20 registers, used 1 barriers, 512B smem",
            "Used 20 registers, 1 024 bytes smem",
            "Used 20 registers, 1,024 bytes smem",
            "Used 20 registers, 1,234 bytes smem",
            "Used 20 registers, 1,234,567 bytes smem",
            "Used 20 registers, 1, 234 bytes smem",
            "Used 20 registers, 1.024 bytes smem",
            "Used 20 registers, 1,024+16 bytes smem, 364 bytes cmem[0]",
            "Used 20 registers; 512 bytes smem",
            "Used 20 registers, 512B smem, 364 bytes cmem[0]",
        ] {
            let usage = read(line);
            assert!(usage.unread_item && !usage.unfinished, "{line}");
            assert_eq!((usage.shared, usage.is_past_shared()), (None, false), "{line}");
        }
        // Shared memory is printed before constant banks.
        assert!(read("Used 20 registers, 364 bytes cmem[0], 12 somethings").is_past_shared());
    }

    #[test]
    fn digits_in_groups_are_one_number() {
        for (text, number) in [
            ("', 8416", Some(8416)),
            ("', 416", Some(416)),
            ("#17 0.42 416", Some(416)),
            ("', 1,008", None),
            ("1,234", None),
            ("1\u{a0}234", None),
            ("  1 234", None),
            ("', 008", None),
            ("', ", None),
        ] {
            assert_eq!(last_number(text.as_bytes()), number, "{text}");
        }
        assert!(frame(b"1,008 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads").is_err());
        assert!(frame(b"008 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads").is_err());
        assert!(frame(b"8 bytes stack frame, 1,008 bytes spill stores, 0 bytes spill loads").is_err());
    }

    #[test]
    fn a_number_counts_only_when_its_unit_follows() {
        assert_eq!(usage(b"Used 12"), None);
        assert_eq!(usage(b"Used lots of registers"), None);
        assert_eq!(usage(b"Used 99999999999 registers"), None);
        for cut in [
            "Used 12 registers,",
            "Used 12 registers, 4",
            "Used 12 registers, 40 bytes",
            "Used 12 registers, 40 bytes cm",
            "Used 12 registers, used",
            "Used 12 registers, used 1 bar",
            "Used 12 registers, 364 bytes cmem[0",
        ] {
            let usage = read(cut);
            assert!(usage.unfinished && !usage.unread_item, "{cut}");
            assert_eq!((usage.shared, usage.barriers), (None, None), "{cut}");
        }
    }

    #[test]
    fn frames_and_times_are_read_whole_or_not_at_all() {
        let (rest, read) =
            frame(b"440 bytes stack frame, 852 bytes spill stores, 900 bytes spill loads").expect("a frame");
        assert!(rest.is_empty());
        assert_eq!(read, Frame { stack: Some(Bytes(440)), stores: Bytes(852), loads: Bytes(900) });
        assert!(frame(b"440 bytes stack frame, 852 bytes spill stores, 90").is_err());
        assert_eq!(compile_time(b"Compile time = 58.684 ms"), Some(58.684));
        assert_eq!(compile_time(b"Compile time = 58.6"), None);
        for (text, time) in
            [(".250", 0.25), ("12", 12.0), ("1.12345678901234567", 1.123_456_789_012_345_7), ("7.", 7.0)]
        {
            assert_eq!(compile_time(format!("Compile time = {text} ms").as_bytes()), Some(time), "{text}");
        }
        assert_eq!(compile_time(b"Compile time = 1.2.3 ms"), None);
        assert!(
            is_module(b"0 bytes gmem") && is_module(b"1028 bytes gmem, 256 bytes cmem[3]") && !is_module(b"12 bytes")
        );
    }
}
