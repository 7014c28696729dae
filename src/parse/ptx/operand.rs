//! Operands of one function's instructions: registers by number, constants, special registers, addresses.

use hashbrown::HashMap;

use super::lexer::Cursor;

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
    /// Names declared in each scope that is open, and whether they are those of ranges.
    scopes: Vec<Vec<(&'t [u8], bool)>>,
    /// One more than the last register.
    pub(super) count: u32,
    /// How many of them are in ranges.
    ranged: u32,
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
    pub(super) fn known(&self, name: &[u8]) -> Option<Reg> {
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
