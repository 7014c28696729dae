//! Reads the operands of an instruction: fast as compilers write most of them, and slower whatever else there may be.

use super::modifiers::Space;
use super::reader::Reader;
use crate::parse::ptx::lexer::Cursor;
use crate::parse::ptx::opcode::Op;
use crate::parse::ptx::operand::{self, Operand};

/// What an opcode says of its operands.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) op: Op,
    /// The first operand is what it writes.
    pub(super) writes: bool,
    /// Numbers are of double precision.
    pub(super) double: bool,
    pub(super) space: Space,
}

/// Brackets and braces around an operand at most: the coordinates of a tensor have two.
const NESTED: u32 = 8;

impl<'t> Reader<'t> {
    /// Reads any operands, and finds the end first, whatever is in them. Returns how many are destinations.
    pub(super) fn unusual_operands(&mut self, cursor: &mut Cursor<'t>, form: Form) -> usize {
        let start = cursor.at;
        cursor.known_end();
        let mut within = Cursor::new(&cursor.text[..cursor.at], start);
        match form.op {
            // Where it leads is known from the flow.
            Op::Bra => 0,
            Op::Call => {
                self.call(&mut within);
                0
            }
            _ => self.operands(&mut within, form),
        }
    }

    /// Reads registers, numbers, memory at a register, and vectors and pairs of registers as compilers write them, which most
    /// operands are: without a comment, and with one blank at most behind a comma. Returns where they end, and how many are
    /// destinations; `None` where there is anything else.
    #[inline]
    pub(super) fn usual_operands(&mut self, mut at: usize, form: Form) -> Option<(usize, usize)> {
        let text = self.text;
        let first = self.code.operands.len();
        let mut is_first = form.writes;
        let mut destinations = 0;
        while matches!(text.get(at)?, b' ' | b'\t') {
            at += 1;
        }
        loop {
            at = match text.get(at)? {
                b'%' => {
                    let (register, length) = self.registers.at(text, at)?;
                    self.code.operands.push(Operand::Register(register));
                    at + length
                }
                b'[' => {
                    let (register, length) = self.registers.at(text, at + 1)?;
                    let mut end = at + 1 + length;
                    let mut distance = 0;
                    if *text.get(end)? == b'+' {
                        (distance, end) = operand::decimal(text, end + 1)?;
                    }
                    if *text.get(end)? != b']' {
                        return None;
                    }
                    self.code.operands.push(Operand::Memory(register, i64::from(distance)));
                    end + 1
                }
                b'{' => {
                    let mut end = at;
                    while text.get(end)? != &b'}' {
                        end += 1 + usize::from(text.get(end + 1)? == &b' ');
                        let (register, length) = self.registers.at(text, end)?;
                        self.code.operands.push(Operand::Register(register));
                        end += length;
                        if !matches!(text.get(end)?, b',' | b'}') {
                            return None;
                        }
                    }
                    end + 1
                }
                b'0'..=b'9' => {
                    let (number, end) = match operand::decimal(text, at) {
                        Some((number, end)) => (u64::from(number), end),
                        None => number(text, at, form.double)?,
                    };
                    self.code.operands.push(Operand::Constant(number));
                    end
                }
                b'-' => {
                    let (number, end) = operand::decimal(text, at + 1)?;
                    self.code.operands.push(Operand::Constant(u64::from(number).wrapping_neg()));
                    end
                }
                // It has none.
                b';' if self.code.operands.len() == first => return Some((at, 0)),
                _ => return None,
            };
            let next = *text.get(at)?;
            if next == b'|' && is_first {
                at += 1;
                continue;
            }
            if is_first {
                destinations = self.code.operands.len() - first;
                is_first = false;
            }
            match next {
                b',' => at += 1 + usize::from(text.get(at + 1)? == &b' '),
                b';' => return Some((at, destinations)),
                _ => return None,
            }
        }
    }

    /// The name of what is called, and the names of the parameters that are passed: `(r), f, (a, b), prototype`.
    fn call(&mut self, cursor: &mut Cursor<'t>) {
        if cursor.skip_blank().is_err() {
            return;
        }
        if cursor.take(b'(') {
            skip_past(cursor, b')');
            skip_past(cursor, b',');
        }
        if cursor.skip_blank().is_err() {
            return;
        }
        let callee = cursor.word();
        let callee = match self.registers.known(callee) {
            Some(register) => Operand::Register(register),
            None => Operand::Symbol(self.name(callee), 0),
        };
        self.code.operands.push(callee);
        skip_past(cursor, b'(');
        while cursor.skip_blank().is_ok() {
            let word = cursor.word();
            if word.is_empty() {
                return;
            }
            let name = self.name(word);
            self.code.operands.push(Operand::Symbol(name, 0));
            if cursor.skip_blank().is_err() || !cursor.take(b',') {
                return;
            }
        }
    }

    /// The operand list; the first operand is the destination, unless the instruction has none. Returns how many operands
    /// that is.
    fn operands(&mut self, cursor: &mut Cursor<'t>, form: Form) -> usize {
        let first = self.code.operands.len();
        let mut is_first = form.writes;
        let mut destinations = 0;
        loop {
            if cursor.skip_blank().is_err() || cursor.is_at_end() {
                return destinations;
            }
            self.operand(cursor, form.double, form.space);
            if is_first {
                while cursor.skip_blank().is_ok() && cursor.take(b'|') && cursor.skip_blank().is_ok() {
                    self.operand(cursor, form.double, form.space);
                }
                destinations = self.code.operands.len() - first;
                is_first = false;
            }
            if cursor.skip_blank().is_err() || !cursor.take(b',') {
                return destinations;
            }
        }
    }

    fn operand(&mut self, cursor: &mut Cursor<'t>, double: bool, space: Space) {
        if let Some(register) = self.register(cursor) {
            self.code.operands.push(Operand::Register(register));
            return;
        }
        if self.depth == NESTED {
            // Nothing that exists: the rest of the statement is passed over.
            cursor.at = cursor.text.len();
            return;
        }
        self.depth += 1;
        self.operand_within(cursor, double, space);
        self.depth -= 1;
    }

    fn operand_within(&mut self, cursor: &mut Cursor<'t>, double: bool, space: Space) {
        match cursor.peek() {
            b'{' => {
                cursor.at += 1;
                loop {
                    if cursor.skip_blank().is_err() || cursor.take(b'}') || cursor.is_at_end() {
                        return;
                    }
                    let before = cursor.at;
                    self.operand(cursor, double, space);
                    if cursor.skip_blank().is_err() || !(cursor.take(b',') || cursor.at > before) {
                        return;
                    }
                }
            }
            b'[' => {
                cursor.at += 1;
                self.memory(cursor, space);
                skip_past(cursor, b']');
            }
            b'!' => {
                cursor.at += 1;
                let _ = cursor.skip_blank();
                let register = self.registers.of(cursor.word());
                self.code.operands.push(Operand::Not(register));
            }
            b'-' => {
                cursor.at += 1;
                let _ = cursor.skip_blank();
                let word = number_or_word(cursor);
                let operand = match operand::constant(word, true, double) {
                    Some(value) => Operand::Constant(value),
                    None => Operand::Minus(self.registers.of(word)),
                };
                self.code.operands.push(operand);
            }
            b'(' => {
                // An expression of constants; nothing here needs its value.
                skip_past(cursor, b')');
                self.code.operands.push(Operand::Sink);
            }
            _ => {
                let word = number_or_word(cursor);
                if word.is_empty() {
                    // Something that no operand begins with: the statement was checked, so it is passed over.
                    cursor.at += usize::from(!cursor.is_at_end());
                    return;
                }
                let operand = self.plain(word, cursor, double);
                self.code.operands.push(operand);
            }
        }
    }

    fn plain(&mut self, word: &'t [u8], cursor: &mut Cursor<'t>, double: bool) -> Operand {
        if word == b"_" {
            return Operand::Sink;
        }
        if word[0].is_ascii_digit() {
            return operand::constant(word, false, double).map_or(Operand::Sink, Operand::Constant);
        }
        if let Some(register) = self.registers.known(word) {
            skip_element(cursor);
            return Operand::Register(register);
        }
        if word[0] == b'%' || word == b"WARP_SZ" {
            if let Some(special) = operand::special(word, None) {
                let axis = axis(cursor);
                return Operand::Special(operand::special(word, axis).unwrap_or(special));
            }
            skip_element(cursor);
            return Operand::Register(self.registers.of(word));
        }
        let distance = distance(cursor);
        Operand::Symbol(self.name(word), distance)
    }

    /// What stands within `[ ]`.
    fn memory(&mut self, cursor: &mut Cursor<'t>, space: Space) {
        let _ = cursor.skip_blank();
        let operand = match self.register(cursor) {
            Some(register) => Operand::Memory(register, distance(cursor)),
            None => self.address(cursor, space),
        };
        self.code.operands.push(operand);
        // Coordinates of a texture, or of a tensor, follow the handle.
        while cursor.skip_blank().is_ok() && cursor.take(b',') {
            let _ = cursor.skip_blank();
            let before = cursor.at;
            self.operand(cursor, false, space);
            if cursor.at == before {
                return;
            }
        }
    }

    /// What a `[` is followed by, unless that is one of the usual registers.
    fn address(&mut self, cursor: &mut Cursor<'t>, space: Space) -> Operand {
        let word = number_or_word(cursor);
        if word.is_empty() {
            return Operand::Sink;
        }
        let _ = cursor.skip_blank();
        if word[0].is_ascii_digit() {
            Operand::Fixed(operand::constant(word, false, false).unwrap_or(0))
        } else if let Some(register) = self.registers.known(word) {
            Operand::Memory(register, distance(cursor))
        } else if word[0] == b'%' {
            Operand::Memory(self.registers.of(word), distance(cursor))
        } else if let Some(position) = self.parameters.get(word).filter(|_| space == Space::Param) {
            Operand::Parameter(*position, distance(cursor))
        } else {
            let name = self.name(word);
            Operand::Symbol(name, distance(cursor))
        }
    }
}

/// A number without a point, and where it ends.
fn number(text: &[u8], at: usize, double: bool) -> Option<(u64, usize)> {
    let mut cursor = Cursor::new(text, at);
    let value = operand::constant(cursor.word(), false, double)?;
    (cursor.peek() != b'.').then_some((value, cursor.at))
}

/// A word; a number with its fraction and exponent is one too.
fn number_or_word<'t>(cursor: &mut Cursor<'t>) -> &'t [u8] {
    let start = cursor.at;
    let word = cursor.word();
    let is_decimal = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if is_decimal && cursor.take(b'.') {
        let fraction = cursor.word();
        if matches!(fraction.last(), Some(b'e' | b'E')) && (cursor.take(b'-') || cursor.take(b'+')) {
            cursor.word();
        }
        return &cursor.text[start..cursor.at];
    }
    word
}

fn skip_past(cursor: &mut Cursor<'_>, byte: u8) {
    let rest = &cursor.text[cursor.at..];
    cursor.at += memchr::memchr(byte, rest).map_or(rest.len(), |at| at + 1);
}

/// Over `.x` of a vector register.
fn skip_element(cursor: &mut Cursor<'_>) {
    if cursor.take(b'.') {
        cursor.word();
    }
}

fn axis(cursor: &mut Cursor<'_>) -> Option<u8> {
    cursor.take(b'.').then(|| match cursor.word() {
        b"y" => 1,
        b"z" => 2,
        _ => 0,
    })
}

/// `+8` or `-8` after a name.
fn distance(cursor: &mut Cursor<'_>) -> i64 {
    let _ = cursor.skip_blank();
    let negative = match cursor.peek() {
        b'+' => false,
        b'-' => true,
        _ => return 0,
    };
    cursor.at += 1;
    let _ = cursor.skip_blank();
    let negative = negative ^ cursor.take(b'-');
    operand::constant(cursor.word(), negative, false).unwrap_or(0).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Flow;
    use crate::parse::ptx::body::Body;
    use crate::parse::ptx::instruction::{Code, Cond, Logic, Type};
    use crate::parse::ptx::{Reg, Special};

    const PARAMETERS: &[u8] =
        b"(.param .u64 .ptr .global .align 16 k_param_0, .param .align 4 .b8 k_param_1[12], .param .u32 n)";

    fn with_code<T>(text: &str, f: impl FnOnce(&Code<'_>) -> T) -> T {
        let text = format!("{{ .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; {text} }}");
        let mut body = Body::default();
        body.read(text.as_bytes(), 0).unwrap_or_else(|fault| panic!("{fault:?}: {text}"));
        let flow = body.flow.clone();
        let code = Code::read(text.as_bytes(), 0, PARAMETERS, &flow, &mut body);
        assert_eq!(body.end, text.len(), "the whole of it is read: {text}");
        f(&code)
    }

    /// Operands in words, destinations before `=`.
    fn told(text: &str) -> String {
        with_code(text, |code| {
            let one = code.instructions.last().expect("an instruction");
            let words = |operands: &[Operand]| operands.iter().map(|one| word(code, one)).collect::<Vec<_>>().join(" ");
            let guard = one.guard.map_or_else(String::new, |guard| {
                format!("{}p{} ", if guard.negated { "not " } else { "if " }, guard.register.0)
            });
            format!("{guard}{} = {}", words(code.destinations(one)), words(code.sources(one)))
        })
    }

    /// Registers are `p0` to `p8`, `r0` to `r8`, `d0` to `d8`, and `x` with what is beyond.
    fn word(code: &Code<'_>, operand: &Operand) -> String {
        let name = |register: &Reg| match register.0 {
            number @ 0..9 => format!("p{number}"),
            number @ 9..18 => format!("r{}", number - 9),
            number @ 18..27 => format!("d{}", number - 18),
            number => format!("x{}", number - 27),
        };
        let symbol = |at: &u32| String::from_utf8_lossy(code.names[*at as usize]).into_owned();
        match operand {
            Operand::Register(register) => name(register),
            Operand::Not(register) => format!("!{}", name(register)),
            Operand::Minus(register) => format!("-{}", name(register)),
            Operand::Constant(value) => format!("{value:#x}"),
            Operand::Special(special) => format!("{special:?}"),
            Operand::Memory(register, distance) => format!("[{}{distance:+}]", name(register)),
            Operand::Symbol(at, distance) => format!("{}{distance:+}", symbol(at)),
            Operand::Parameter(position, distance) => format!("[parameter {position}{distance:+}]"),
            Operand::Fixed(value) => format!("[{value:#x}]"),
            Operand::Sink => "_".to_owned(),
        }
    }

    #[test]
    fn every_form_of_an_operand_is_read() {
        for (text, expected) in [
            ("mov.u32 %r1, %r2;", "r1 = r2"),
            ("mov.u32 %r1, -1;", "r1 = 0xffffffffffffffff"),
            ("mov.u32 %r1, 0x1F;", "r1 = 0x1f"),
            ("mov.u32 %r1, 4294967295U;", "r1 = 0xffffffff"),
            ("mov.f32 %r1, 0f3F800000;", "r1 = 0x3f800000"),
            ("mov.f64 %rd1, 0d3FF0000000000000;", "d1 = 0x3ff0000000000000"),
            ("mov.f32 %r1, 0.5;", "r1 = 0x3f000000"),
            ("mov.f64 %rd1, 2.5e-1;", "d1 = 0x3fd0000000000000"),
            ("neg.s32 %r1, -%r2;", "r1 = -r2"),
            ("ld.global.u32 %r1, [%rd1+8];", "r1 = [d1+8]"),
            ("ld.global.u32 %r1, [%rd1+-8];", "r1 = [d1-8]"),
            ("ld.global.u32 %r1, [ %rd1 + 0 ];", "r1 = [d1+0]"),
            ("ld.shared.u32 %r1, [tile+4];", "r1 = tile+4"),
            ("ld.global.u32 %r1, [4096];", "r1 = [0x1000]"),
            ("ld.param.u32 %r1, [n];", "r1 = [parameter 2+0]"),
            ("ld.param.b32 %r1, [k_param_1+4];", "r1 = [parameter 1+4]"),
            ("ld.param.u64 %rd1, [k_param_0];", "d1 = [parameter 0+0]"),
            ("ld.param.b32 %r1, [retval0];", "r1 = retval0+0"),
            ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", "r1 r2 = [d1+0]"),
            ("ld.global.v4.u32 {%r1, _, %r3, _}, [%rd1];", "r1 _ r3 _ = [d1+0]"),
            ("st.global.v2.u32 [%rd1+16], {%r1, %r2};", " = [d1+16] r1 r2"),
            ("mov.b64 {%r1,%r2}, %rd1;", "r1 r2 = d1"),
            ("mov.b64 %rd1, { %r1 , %r2 };", "d1 = r1 r2"),
            ("mov.b64{%r1,%r2},%rd1;", "r1 r2 = d1"),
            ("mov.u32 %r1, 1; $L_1:mov.u32 %r2, 2;", "r2 = 0x2"),
            ("ret; ret: mov.u32 %r1, 1;", "r1 = 0x1"),
            ("ret; ret$1 : mov.u32 %r1, 1;", "r1 = 0x1"),
            ("ret; ret /**/ : mov.u32 %r1, 1;", "r1 = 0x1"),
            ("ret; ret:mov.u32 %r1, 1;", "r1 = 0x1"),
            ("add.cc.u32%r, %r1, 1;", " = "),
            ("ld.global.v2.u32 {%r1,_}, [%rd1+-4];", "r1 _ = [d1-4]"),
            ("ld.global.u32 %r1,[%rd1+12345678];", "r1 = [d1+12345678]"),
            ("ld.global.u32 %r1, [%rd1+8];mov.u32 %r2, 8;", "r2 = 0x8"),
            ("mov.u32 %r1, 8/**/;", "r1 = 0x8"),
            ("fma.rn.f32 %r1, %r2, %r3, 0f3F800000;", "r1 = r2 r3 0x3f800000"),
            ("mov.f32 %r1, 1.5;", "r1 = 0x3fc00000"),
            ("setp.ne.s32 %p1|_, %r1, 0;", "p1 _ = r1 0x0"),
            ("bar.sync 0|1;", " = 0x0"),
            ("vote.sync.all.pred %p1|%p2|%p3, %p4, -1;", "p1 p2 p3 = p4 0xffffffffffffffff"),
            ("mov.u32 %r1, 5; membar.cta;", " = "),
            ("mov.u32 %r1, 5; membar.cta ;", " = "),
            ("mov.u32 %r1, 08;", "r1 = _"),
            ("mov.u32 %r1, 010;", "r1 = 0x8"),
            ("add.s32 %r1, %r2, -2147483648;", "r1 = r2 0xffffffff80000000"),
            ("add.s32 %r1, %r2, -7;", "r1 = r2 0xfffffffffffffff9"),
            ("st.global.v2.u32 [%rd1], {%r1,%r2};", " = [d1+0] r1 r2"),
            ("st.global.v4.u32 [%rd1], {%r1, %r2, %r3 , %r4};", " = [d1+0] r1 r2 r3 r4"),
            ("setp.ne.s32 %p1, %r1, 0 ;", "p1 = r1 0x0"),
            ("setp.lt.s32 %p1|%p2, %r1, %r2;", "p1 p2 = r1 r2"),
            ("setp.lt.and.s32 %p1 | %p2, %r1, 5, !%p3;", "p1 p2 = r1 0x5 !p3"),
            ("shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;", "r1 p1 = r2 0x10 0x1f 0xffffffffffffffff"),
            ("elect.sync _|%p1, %r1;", "_ p1 = r1"),
            ("mov.u32 %r1, %tid.y;", "r1 = Tid(1)"),
            ("mov.u32 %r1, %ctaid.z;", "r1 = Ctaid(2)"),
            ("mov.u32 %r1, %laneid;", "r1 = Laneid"),
            ("mov.u32 %r1, WARP_SZ;", "r1 = WarpSize"),
            ("mov.u64 %rd1, table+8;", "d1 = table+8"),
            ("mov.u32 %r1, %r2.x;", "r1 = r2"),
            ("@%p1 bra $L1; $L1:", "if p1  = "),
            ("@!%p2 st.global.u32 [%rd1], 0;", "not p2  = [d1+0] 0x0"),
            ("@ ! %p2 mov.u32 %r1, 1;", "not p2 r1 = 0x1"),
            ("bar.sync 0;", " = 0x0"),
            ("bar.red.popc.u32 %r1, 0, %p1;", "r1 = 0x0 p1"),
            ("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [image, {%r5, %r6}];", "r1 r2 r3 r4 = image+0 r5 r6"),
            ("mov.u32 %r1, (1+2)*3;", "r1 = _"),
            ("add.u32 undeclared, %r1, 1;", "undeclared+0 = r1 0x1"),
            ("add.u32 %x, %r1, 1;", "x0 = r1 0x1"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn calls_tell_whom_and_with_what() {
        for (text, expected) in [
            ("call f;", " = f+0"),
            ("call.uni f, (a, b);", " = f+0 a+0 b+0"),
            ("call.uni (retval0), \n f, \n (\n param0, \n param1\n );", " = f+0 param0+0 param1+0"),
            ("call (retval0), %rd1, (param0), prototype;", " = d1 param0+0"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
        with_code("call f; call (r), g, (a); call %rd1, (a), p;", |code| {
            assert_eq!(code.callees().collect::<Vec<_>>(), [&b"f"[..], b"g"]);
        });
    }

    #[test]
    fn modifiers_say_what_is_done_to_what() {
        with_code(
            "cvt.rzi.s32.f32 %r1, %r2; setp.geu.or.f64 %p1, %rd1, %rd2, %p2; ld.volatile.shared::cta.u8 %r1, [%r2];",
            |code| {
                let [cvt, setp, ld] = code.instructions.as_slice() else { panic!("three instructions") };
                assert_eq!((cvt.op, cvt.kind, cvt.from), (Op::Cvt, Type::Signed(32), Type::F32));
                assert_eq!((setp.cond, setp.logic, setp.kind), (Cond::Geu, Logic::Or, Type::F64));
                assert_eq!((ld.space, ld.kind, ld.mods.is_volatile()), (Space::Shared, Type::Unsigned(8), true));
            },
        );
        with_code("mul.hi.u32 %r1, %r2, %r3; mul.wide.s16 %r1, %r2, %r3; setp.hi.u32 %p1, %r1, %r2;", |code| {
            let [high, wide, compared] = code.instructions.as_slice() else { panic!("three instructions") };
            assert!(high.mods.is_high() && wide.mods.is_wide() && compared.cond == Cond::Hi);
        });
    }

    #[test]
    fn names_in_a_scope_are_other_registers_than_those_outside() {
        let text = "{ .reg .pred p; setp.eq.u32 p, %r1, 0; } { .reg .pred p; setp.eq.u32 p, %r2, 0; } setp.eq.u32 %p1, %r3, 0;";
        with_code(text, |code| {
            let written: Vec<&Operand> = code.instructions.iter().map(|one| &code.destinations(one)[0]).collect();
            assert!(written[0] != written[1] && *written[2] == Operand::Register(Reg(1)));
        });
        let ranges = "mov.u32 %r1, 1; { .reg .b32 %r<4>; mov.u32 %r1, 2; mov.u32 %r7, 3; } mov.u32 %r1, 4;";
        with_code(ranges, |code| {
            let written: Vec<&Operand> = code.instructions.iter().map(|one| &code.destinations(one)[0]).collect();
            assert!(written[0] == written[3] && written[0] != written[1]);
            assert_eq!(
                *written[2],
                Operand::Register(Reg(9 + 7)),
                "a number beyond the inner range is of the outer one"
            );
        });
    }

    #[test]
    fn a_branch_through_a_table_leads_to_what_the_table_names() {
        let text = "A: B: mov.u32 %r1, 1; T: .branchtargets A, C, B; C: brx.idx %r1, T; bra B;";
        with_code(text, |code| {
            assert_eq!([0, 1, 2].map(|at| code.table(at)), [&[][..], &[0, 1, 0], &[]]);
        });
    }

    #[test]
    fn comments_between_operands_change_nothing() {
        let plain = told("mad.lo.s32 %r1, %r2, %r3, [%rd1+8];");
        assert_eq!(
            told("mad.lo.s32 /**/ %r1 /* , */ , // x\r\n %r2,%r3\t,\n[ /**/ %rd1 /**/ + /**/ 8 /**/ ] ;"),
            plain
        );
    }

    #[test]
    fn brackets_nested_beyond_what_exists_take_no_stack() {
        for (open, close) in [("{", "}"), ("[a, ", "]")] {
            let text = format!("mov.b32 %r1, {}%r2{};", open.repeat(100_000), close.repeat(100_000));
            with_code(&text, |code| assert_eq!(code.instructions.len(), 1));
        }
    }

    #[test]
    fn an_operand_list_that_is_cut_anywhere_is_read_as_far_as_it_goes() {
        let text =
            "@!%p1 ld.global.v4.f32 {%r1, _, %r3|%p1, -%r4}, [%rd1+0x8, {%tid.x, 0f3F800000, (1+2)}], !%p2, 2.5e-1";
        for at in 0..text.len() {
            let mut body = Body::default();
            let cut = format!("{{ {}; }}", &text[..at]);
            let _ = Code::read(cut.as_bytes(), 0, PARAMETERS, &Flow::default(), &mut body);
        }
        assert_eq!(operand::special(b"%tid", None), Some(Special::Tid(0)));
    }
}
