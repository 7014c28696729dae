//! Operands of one function's instructions: registers by number, constants, special registers, addresses.

use hashbrown::HashMap;

use super::lexer::{Cursor, ONES, is_in_opcode};

/// A register of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u32);

/// An operand. Vectors and pairs of destinations are one operand for each element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand {
    /// A register.
    Register(Reg),
    /// A predicate, negated.
    Not(Reg),
    /// A register, negated as a number.
    Minus(Reg),
    /// A constant: an integer, or the bits of a floating-point number of the operation's type.
    Constant(u64),
    /// A special register.
    Special(Special),
    /// Memory at a register and a distance in bytes.
    Memory(Reg, i64),
    /// Memory at a variable, or its address: an index of [`super::Code::names`], and a distance.
    Symbol(u32, i64),
    /// A parameter of the function itself, by its position, and a distance.
    Parameter(u32, i64),
    /// Memory at a constant address.
    Fixed(u64),
    /// `_`
    Sink,
}

/// Special registers, as far as lanes of a warp may see different values in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the registers")]
pub enum Special {
    /// Axis 0, 1 or 2.
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    /// `WARP_SZ`
    WarpSize,
    /// A clock, which each lane may read at another time.
    Clock,
    /// Any other, which is the same for all threads of a block: told apart by a number made of its name.
    Other(u32),
}

/// What names of registers stand for, scope by scope.
#[derive(Debug, Default)]
pub(super) struct Registers<'t> {
    /// `%r<100>`: by the name's letters the first register and how many, the innermost last.
    ranges: HashMap<&'t [u8], Vec<(u32, u32)>>,
    /// Those that are declared one by one, or not at all.
    named: HashMap<&'t [u8], Vec<u32>>,
    /// The ranges of all open scopes whose names are short, the innermost last: most operands are in one of few.
    short: Vec<Short>,
    /// The last of them that has its slot, and is not hidden.
    usual: [Short; USUAL],
    /// Whether one that is declared by itself has a name that could be of a short range.
    hides: bool,
    /// Names declared in each scope that is open, and whether they are those of ranges.
    scopes: Vec<Vec<(&'t [u8], bool)>>,
    /// One more than the last register.
    pub(super) count: u32,
    /// How many of them are in ranges.
    ranged: u32,
}

/// A range with a short name, as in `%rd<100>`.
#[derive(Debug, Clone, Copy, Default)]
struct Short {
    /// The name's letters behind the `%`, as a number.
    letters: u32,
    first: u32,
    count: u32,
}

/// Short ranges at most that are looked through.
const SHORT: usize = 16;

/// Slots for the names of short ranges.
const USUAL: usize = 16;

fn slot(letters: u32) -> usize {
    (letters.wrapping_mul(0x9E37_79B1) >> 28) as usize % USUAL
}

/// Registers of all ranges at most: what is declared beyond that is numbered as it is met.
const RANGE: u32 = 1 << 20;

impl<'t> Registers<'t> {
    pub(super) fn new() -> Registers<'t> {
        Registers { scopes: vec![Vec::new()], ..Registers::default() }
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close(&mut self) {
        if self.scopes.len() == 1 {
            return;
        }
        for (name, is_range) in self.scopes.pop().unwrap_or_default() {
            if is_range {
                self.ranges.entry(name).or_default().pop();
                if letters(name).is_some() {
                    self.short.pop();
                    self.note_usual();
                }
            } else {
                self.named.entry(name).or_default().pop();
            }
        }
    }

    /// `.reg .b32 %r<100>, a, b;`
    pub(super) fn declare(&mut self, declaration: &'t [u8]) {
        let mut cursor = Cursor::new(declaration, 0);
        while cursor.skip_blank().is_ok() && cursor.take(b'.') {
            cursor.word();
        }
        loop {
            if cursor.skip_blank().is_err() {
                return;
            }
            let name = cursor.word();
            if name.is_empty() {
                return;
            }
            let count = if cursor.take(b'<') { cursor.number() } else { None };
            match count {
                Some(count) => {
                    let count = count.min(RANGE - self.ranged);
                    self.ranged += count;
                    self.ranges.entry(name).or_default().push((self.count, count));
                    if let Some(letters) = letters(name) {
                        self.short.push(Short { letters, first: self.count, count });
                        self.note_usual();
                    }
                    self.count += count;
                    self.note(name, true);
                    cursor.take(b'>');
                }
                None => {
                    self.add(name);
                }
            }
            if cursor.skip_blank().is_err() || !cursor.take(b',') {
                return;
            }
        }
    }

    fn add(&mut self, name: &'t [u8]) -> Reg {
        let register = self.count;
        self.count += 1;
        self.named.entry(name).or_default().push(register);
        if numbered(name).is_some() && !self.hides {
            self.hides = true;
            self.note_usual();
        }
        self.note(name, false);
        Reg(register)
    }

    /// Keeps in mind that the name ends with this scope.
    fn note(&mut self, name: &'t [u8], is_range: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((name, is_range));
        }
    }

    /// The register called `name`, if there is one.
    #[inline]
    pub(super) fn known(&self, name: &[u8]) -> Option<Reg> {
        self.in_short_range(name).or_else(|| self.looked_up(name))
    }

    #[inline]
    fn in_short_range(&self, name: &[u8]) -> Option<Reg> {
        let (letters, number) = numbered(name)?;
        let range = self.innermost(letters, number)?;
        Some(Reg(range.first + number))
    }

    /// The register of a short range whose name begins at `at`, and the length of its name, if such a one is there: most
    /// operands are, and no branch hangs on how long it is.
    #[inline]
    pub(super) fn at(&self, text: &[u8], at: usize) -> Option<(Reg, usize)> {
        let [b'%', name @ ..] = text.get(at..)?.first_chunk::<9>()? else { return None };
        let name = Numbered::read(u64::from_le_bytes(*name))?;
        let number = name.number;
        let range = self.usual[slot(name.letters)];
        let range = if range.letters == name.letters && number < range.count {
            range
        } else {
            self.innermost(name.letters, number)?
        };
        Some((Reg(range.first + number), 1 + name.length))
    }

    /// The innermost short range that a register is of.
    fn innermost(&self, letters: u32, number: u32) -> Option<Short> {
        if self.hides || self.short.len() > SHORT {
            return None;
        }
        self.short.iter().rev().find(|range| range.letters == letters && number < range.count).copied()
    }

    /// Puts the innermost range of each name where it is found at once.
    fn note_usual(&mut self) {
        self.usual = [Short::default(); USUAL];
        if !self.hides && self.short.len() <= SHORT {
            self.short.iter().for_each(|range| self.usual[slot(range.letters)] = *range);
        }
    }

    fn looked_up(&self, name: &[u8]) -> Option<Reg> {
        if let Some(register) = self.named.get(name).and_then(|known| known.last()) {
            return Some(Reg(*register));
        }
        let letters = name.len() - name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (prefix, digits) = name.split_at(letters);
        if digits.is_empty() || digits.len() > 9 {
            return None;
        }
        let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        let range = self.ranges.get(prefix)?.iter().rev().find(|(_, count)| number < *count)?;
        Some(Reg(range.0 + number))
    }

    /// The same, declaring it where nobody did.
    pub(super) fn of(&mut self, name: &'t [u8]) -> Reg {
        self.known(name).unwrap_or_else(|| self.add(name))
    }
}

/// Letters behind a `%` at most that make a short name.
const LETTERS: usize = 3;

/// The letters of a short name without a number, as a number.
fn letters(name: &[u8]) -> Option<u32> {
    let letters = name.strip_prefix(b"%")?;
    let is_short = (1..=LETTERS).contains(&letters.len()) && !letters.iter().any(u8::is_ascii_digit);
    is_short.then(|| letters.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// A short name in two parts: its letters as a number, and the number behind them.
#[inline]
fn numbered(name: &[u8]) -> Option<(u32, u32)> {
    let name = name.strip_prefix(b"%")?;
    let mut letters = 0;
    let mut number = 0;
    for (at, byte) in name.iter().enumerate() {
        if !byte.is_ascii_digit() {
            if at == LETTERS {
                return None;
            }
            letters |= u32::from(*byte) << (8 * at);
            continue;
        }
        let digits = &name[at..];
        if at == 0 || digits.len() > 9 {
            return None;
        }
        for digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + u32::from(digit);
        }
        return Some((letters, number));
    }
    None
}

/// A short name as the eight bytes that it begins tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbered {
    letters: u32,
    number: u32,
    length: usize,
}

impl Numbered {
    /// `None` where there is none, or it is not ended within the eight bytes.
    #[inline]
    fn read(eight: u64) -> Option<Numbered> {
        let digits = eight ^ (ONES * u64::from(b'0'));
        let others = not_digits(digits);
        let letters = (!others & (ONES * 0x80)).trailing_zeros() / 8;
        if !(1..=LETTERS as u32).contains(&letters) {
            return None;
        }
        let count = (others >> (8 * letters)).trailing_zeros() / 8;
        let length = letters + count;
        if length >= 8 || is_in_opcode((eight >> (8 * length)) as u8) {
            return None;
        }
        Some(Numbered {
            letters: (eight & ((1 << (8 * letters)) - 1)) as u32,
            number: number_of(digits >> (8 * letters) << (64 - 8 * count)),
            length: length as usize,
        })
    }
}

/// The highest bit of each byte that is none of 0 to 9.
#[inline]
fn not_digits(bytes: u64) -> u64 {
    (((bytes & (ONES * 0x7f)) + ONES * 0x76) | bytes) & (ONES * 0x80)
}

/// The number whose eight digits the bytes are, the first one lowest: two digits at a time are made one number, then four.
#[inline]
fn number_of(digits: u64) -> u32 {
    let pairs = digits.wrapping_mul(10) + (digits >> 8);
    const EVERY_FOURTH: u64 = 0xff_0000_00ff;
    let high = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let low = (pairs >> 16 & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    (high.wrapping_add(low) >> 32) as u32
}

/// The decimal integer that begins at `at`, and where it ends: one of few digits, behind which no word goes on.
#[inline]
pub(super) fn decimal(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let eight = u64::from_le_bytes(*text.get(at..)?.first_chunk::<8>()?);
    let digits = eight ^ (ONES * u64::from(b'0'));
    let count = not_digits(digits).trailing_zeros() / 8;
    // What begins with a 0 is of another base, or is 0.
    let is_plain = (1..8).contains(&count) && (eight as u8 != b'0' || count == 1);
    if !is_plain || is_in_opcode((eight >> (8 * count)) as u8) {
        return None;
    }
    Some((number_of(digits << (64 - 8 * count)), at + count as usize))
}

/// The special register called `name`, with its axis, as far as it is one.
pub(super) fn special(name: &[u8], axis: Option<u8>) -> Option<Special> {
    let axis = axis.unwrap_or(0);
    Some(match name {
        b"%tid" => Special::Tid(axis),
        b"%ntid" => Special::Ntid(axis),
        b"%ctaid" => Special::Ctaid(axis),
        b"%nctaid" => Special::Nctaid(axis),
        b"%laneid" => Special::Laneid,
        b"%warpid" => Special::Warpid,
        b"%nwarpid" => Special::Nwarpid,
        b"%lanemask_eq" => Special::LanemaskEq,
        b"%lanemask_le" => Special::LanemaskLe,
        b"%lanemask_lt" => Special::LanemaskLt,
        b"%lanemask_ge" => Special::LanemaskGe,
        b"%lanemask_gt" => Special::LanemaskGt,
        b"WARP_SZ" => Special::WarpSize,
        b"%clock" | b"%clock_hi" | b"%clock64" | b"%globaltimer" | b"%globaltimer_lo" | b"%globaltimer_hi" => {
            Special::Clock
        }
        b"%smid"
        | b"%nsmid"
        | b"%gridid"
        | b"%is_explicit_cluster"
        | b"%clusterid"
        | b"%nclusterid"
        | b"%cluster_ctaid"
        | b"%cluster_nctaid"
        | b"%cluster_ctarank"
        | b"%cluster_nctarank"
        | b"%total_smem_size"
        | b"%aggr_smem_size"
        | b"%dynamic_smem_size"
        | b"%current_graph_exec" => Special::Other(number(name, axis)),
        _ if name.starts_with(b"%envreg") || name.starts_with(b"%pm") || name.starts_with(b"%reserved_smem") => {
            Special::Other(number(name, axis))
        }
        _ => return None,
    })
}

/// A number for a name, the same in every run.
fn number(name: &[u8], axis: u8) -> u32 {
    name.iter().fold(u32::from(axis), |number, byte| number.wrapping_mul(31).wrapping_add(u32::from(*byte)))
}

/// An integer or a floating-point constant; `double` tells which floating-point type plain decimals have.
pub(super) fn constant(word: &[u8], negative: bool, double: bool) -> Option<u64> {
    let sign = |value: u64| if negative { value.wrapping_neg() } else { value };
    if let [b'1'..=b'9', rest @ ..] | [b'0', rest @ ..] = word
        && (word[0] != b'0' || rest.is_empty())
        && word.len() < 18
        && rest.iter().all(u8::is_ascii_digit)
    {
        return Some(sign(word.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))));
    }
    let bits = |digits: &[u8], radix: u32| {
        let digits = digits.strip_suffix(b"U").unwrap_or(digits);
        let text = std::str::from_utf8(digits).ok()?;
        u64::from_str_radix(text, radix).ok()
    };
    match word {
        [b'0', b'f' | b'F', hex @ ..] if hex.len() == 8 => {
            let flip = if negative { 1 << 31 } else { 0 };
            bits(hex, 16).map(|value| value ^ flip)
        }
        [b'0', b'd' | b'D', hex @ ..] if hex.len() == 16 => {
            let flip = if negative { 1 << 63 } else { 0 };
            bits(hex, 16).map(|value| value ^ flip)
        }
        [b'0', b'x' | b'X', hex @ ..] => bits(hex, 16).map(sign),
        [b'0', b'b' | b'B', binary @ ..] => bits(binary, 2).map(sign),
        [b'0', octal @ ..] if !octal.is_empty() && !octal.contains(&b'.') => bits(octal, 8).map(sign),
        _ if word.contains(&b'.') => {
            let value: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
            let value = if negative { -value } else { value };
            #[allow(clippy::cast_possible_truncation, reason = "the constant has the operation's type")]
            Some(if double { value.to_bits() } else { u64::from((value as f32).to_bits()) })
        }
        _ => bits(word, 10).map(sign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_in_every_notation() {
        for (word, negative, value) in [
            ("0", false, Some(0)),
            ("31", false, Some(31)),
            ("1", true, Some(u64::MAX)),
            ("0x1F", false, Some(31)),
            ("0b101", false, Some(5)),
            ("017", false, Some(15)),
            ("42", true, Some(42_u64.wrapping_neg())),
            ("18446744073709551615", false, Some(u64::MAX)),
            ("18446744073709551616", false, None),
            ("4294967295U", false, Some(0xffff_ffff)),
            ("0f3F800000", false, Some(0x3f80_0000)),
            ("0f3F800000", true, Some(0xbf80_0000)),
            ("0d3FF0000000000000", false, Some(0x3ff0_0000_0000_0000)),
            ("0.5", false, Some(0x3f00_0000)),
            ("0f3F80", false, None),
            ("name", false, None),
        ] {
            assert_eq!(constant(word.as_bytes(), negative, false), value, "{word}");
        }
    }

    #[test]
    fn eight_bytes_tell_a_register_and_a_number_as_one_by_one_they_do() {
        let mut registers = Registers::new();
        registers.declare(b".reg .b32 %r<100000>, %rd<5>, %abc<40>, %abcd<9>, %r_<7>");
        for name in [
            "%r0",
            "%r7",
            "%r99999",
            "%r100000",
            "%rd4",
            "%rd5",
            "%abc39",
            "%abcd3",
            "%r_6",
            "%r",
            "%1",
            "%",
            "r1",
            "%r01",
            "%r1a",
            "%r1.x",
            "%r12345678",
            "%tid",
            "%tid.x",
            "%R1",
            "%rd",
            "%x1",
            "",
        ] {
            for behind in [", %r2;  ", ";       ", "]+8, %r1", " \t;      ", "|%p1, %r2"] {
                let text = format!("{name}{behind}");
                let found = registers.at(text.as_bytes(), 0);
                let known = registers.known(name.as_bytes()).map(|register| (register, name.len()));
                assert!(found.is_none() || found == known, "{text}: {found:?}, {known:?}");
                let is_usual = name.len() <= 7 && !name.contains("abcd") && known.is_some();
                assert_eq!(found.is_some(), is_usual, "{text}");
            }
        }
        for word in ["0", "1", "31", "4096", "1234567", "12345678", "007", "0x1f", "1.5", "12a", "", "x"] {
            let text = format!("{word}, %r1, %r2;");
            let expected = constant(word.as_bytes(), false, false)
                .filter(|_| word.len() < 8 && word.bytes().all(|byte| byte.is_ascii_digit()) && word != "007");
            let found = decimal(text.as_bytes(), 0);
            assert_eq!(
                found.map(|(value, end)| (u64::from(value), end)),
                expected.map(|value| (value, word.len())),
                "{word}"
            );
        }
    }

    #[test]
    fn a_name_in_a_scope_hides_the_one_outside_until_it_ends() {
        let mut registers = Registers::new();
        registers.declare(b".reg .b32 %r<10>, P");
        let outer = registers.of(b"P");
        registers.open();
        registers.declare(b".reg .pred P");
        assert_ne!(registers.of(b"P"), outer);
        registers.close();
        assert_eq!(registers.of(b"P"), outer);
        assert_eq!(registers.known(b"%r9"), Some(Reg(9)));
        assert_eq!(registers.known(b"%r10"), None);
        let fresh = registers.of(b"%r10");
        assert_eq!((registers.of(b"%r10"), fresh != outer), (fresh, true));
    }

    #[test]
    fn a_register_declared_by_itself_hides_that_of_a_range() {
        let mut registers = Registers::new();
        registers.declare(b".reg .b32 %r<10>, %abcd<10>, %x1y<10>");
        assert_eq!(
            [&b"%r3"[..], b"%abcd4", b"%x1y5"].map(|name| registers.known(name)),
            [3, 14, 25].map(|at| Some(Reg(at)))
        );
        assert_eq!([&b"%r"[..], b"%r1x", b"%1", b"%r4294967297", b"%s1"].map(|name| registers.known(name)), [None; 5]);
        registers.open();
        registers.declare(b".reg .b32 %r<4>");
        assert_eq!([&b"%r3"[..], b"%r4"].map(|name| registers.known(name)), [Some(Reg(33)), Some(Reg(4))]);
        registers.declare(b".reg .b32 %r3");
        assert_eq!(registers.known(b"%r3"), Some(Reg(34)));
        registers.close();
        assert_eq!(registers.known(b"%r3"), Some(Reg(3)));
    }

    #[test]
    fn any_number_of_ranges_may_be_declared() {
        let mut registers = Registers::new();
        for at in 0..26_u8 {
            let declaration = [b".reg .b32 %", &[b'a' + at][..], b"<2>"].concat();
            registers.declare(declaration.leak());
        }
        assert_eq!((registers.known(b"%a1"), registers.known(b"%z1")), (Some(Reg(1)), Some(Reg(51))));
    }

    #[test]
    fn a_range_that_nobody_can_mean_takes_no_memory() {
        let mut registers = Registers::new();
        registers.declare(b".reg .b32 %r<4294967295>");
        assert_eq!(registers.count, RANGE);
        assert!(registers.of(b"%r4294967294").0 >= RANGE);
        (0..5000).for_each(|_| registers.declare(b".reg .b32 %x<4294967295>"));
        assert_eq!(registers.count, RANGE + 1);
        let one = registers.of(b"%x7");
        assert_eq!((registers.of(b"%x7"), registers.count), (one, RANGE + 2));
    }
}
