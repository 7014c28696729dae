//! Arithmetic and logic of integers.

use super::bits::{mask, signed};
use super::convert::{held, saturated};
use super::unknown;
use crate::lanes::value::{Extent, Value};
use crate::parse::ptx::{Instruction, Op, Type};

pub(super) fn integer(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
    let (bits, is_signed) = (if one.kind == Type::None { 32 } else { one.kind.width() }, one.kind.is_signed());
    if bits > 64 {
        return unknown(one, place, args);
    }
    let (a, b, c) = (args.first(), args.get(1), args.get(2));
    let low = mask(bits);
    // Macros, because closures of closures would be called once for every number.
    macro_rules! unary {
        ($f:expr) => {
            a.map(|a| a.map(|a| $f(a & low) & low))
        };
    }
    macro_rules! binary {
        ($f:expr) => {
            a.zip(b).map(|(a, b)| a.zip(b, |a, b| $f(a & low, b & low) & low))
        };
    }
    macro_rules! ordered {
        ($narrow:expr, $wide:expr) => {
            a.zip(b).map(|(a, b)| {
                if is_signed {
                    a.zip(b, |a, b| $wide(signed(a, bits), signed(b, bits)).cast_unsigned() & low)
                } else {
                    a.zip(b, |a, b| $narrow(a & low, b & low) & low)
                }
            })
        };
    }
    let result = match one.op {
        Op::Add if one.mods.is_saturating() => summed(a, b, one.kind, |a, b| a + b),
        Op::Sub if one.mods.is_saturating() => summed(a, b, one.kind, |a, b| a - b),
        Op::Add => binary!(u64::wrapping_add),
        Op::Sub => binary!(u64::wrapping_sub),
        Op::And => binary!(|a: u64, b: u64| a & b),
        Op::Or => binary!(|a: u64, b: u64| a | b),
        Op::Xor => binary!(|a: u64, b: u64| a ^ b),
        Op::Not if bits == 1 => unary!(|a: u64| u64::from(a == 0)),
        Op::Not => unary!(|a: u64| !a),
        Op::Cnot => unary!(|a: u64| u64::from(a == 0)),
        Op::Neg => unary!(|a: u64| a.wrapping_neg()),
        Op::Abs => unary!(|a: u64| signed(a, bits).unsigned_abs()),
        Op::Popc => unary!(|a: u64| u64::from(a.count_ones())),
        Op::Clz => unary!(|a: u64| u64::from(a.leading_zeros() + bits - 64)),
        Op::Brev => unary!(|a: u64| a.reverse_bits() >> (64 - bits)),
        Op::Bfind => a.map(|a| a.map(|a| bit_found(a & low, bits, is_signed, one.mods.is_shift_amount()))),
        Op::Min => ordered!(u64::min, i64::min),
        Op::Max => ordered!(u64::max, i64::max),
        Op::Div => ordered!(|a: u64, b: u64| a.checked_div(b).unwrap_or(u64::MAX), |a: i64, b: i64| match b {
            0 => -1,
            b => a.wrapping_div(b),
        }),
        Op::Rem => ordered!(|a: u64, b: u64| a.checked_rem(b).unwrap_or(a), |a: i64, b: i64| match b {
            0 => a,
            b => a.wrapping_rem(b),
        }),
        Op::Shl => {
            a.zip(b).map(|(a, b)| a.zip(b, |a, b| if b & 0xffff_ffff < u64::from(bits) { a << b & low } else { 0 }))
        }
        Op::Shr => a.zip(b).map(|(a, b)| {
            a.zip(b, |a, b| {
                let by = (b & 0xffff_ffff).min(u64::from(bits));
                if is_signed {
                    (signed(a & low, bits) >> by.min(63)).cast_unsigned() & low
                } else if by < 64 {
                    (a & low) >> by
                } else {
                    0
                }
            })
        }),
        Op::Mul | Op::Mul24 => a.zip(b).map(|(a, b)| multiplied(one, bits, a, b)),
        Op::Mad | Op::Mad24 => a.zip(b).zip(c).map(|((a, b), c)| {
            let wide = if one.mods.is_wide() { mask(bits * 2) } else { low };
            multiplied(one, bits, a, b).zip(c, |product, c| product.wrapping_add(c) & wide)
        }),
        Op::Sad => a.zip(b).zip(c).map(|((a, b), c)| {
            let apart = a.zip(b, |a, b| {
                if is_signed { signed(a, bits).abs_diff(signed(b, bits)) } else { (a & low).abs_diff(b & low) }
            });
            apart.zip(c, |apart, c| apart.wrapping_add(c) & low)
        }),
        Op::Bfe => a
            .zip(b)
            .zip(c)
            .map(|((a, b), c)| a.zip3(b, c, extent, |a, at, length| field(a & low, at, length, bits, is_signed))),
        Op::Bfi => match args {
            [field, into, at, length] => Some(inserted(field, into, at, length, low, extent)),
            _ => None,
        },
        Op::Lop3 => match (a, b, c, args.get(3).and_then(Value::as_constant)) {
            (Some(a), Some(b), Some(c), Some(table)) => {
                Some(a.zip3(b, c, extent, |a, b, c| logic(table, a, b, c) & low))
            }
            _ => None,
        },
        Op::Shf => a.zip(b).zip(c).map(|((a, b), c)| {
            let (is_left, wraps) = (one.mods.is_left(), one.mods.is_wrap());
            a.zip3(b, c, extent, |a, b, by| {
                let by = if wraps { by & 31 } else { by.min(32) };
                let both = (b & 0xffff_ffff) << 32 | a & 0xffff_ffff;
                if is_left { (both << by) >> 32 & 0xffff_ffff } else { both >> by & 0xffff_ffff }
            })
        }),
        Op::Prmt if args.len() == 3 && !one.mods.is_permute_mode() => {
            a.zip(b).zip(c).map(|((a, b), c)| a.zip3(b, c, extent, permuted))
        }
        _ => None,
    };
    result.unwrap_or_else(|| unknown(one, place, args))
}

/// A sum or a difference that ends at the least and the largest number of its type.
fn summed(a: Option<&Value>, b: Option<&Value>, kind: Type, f: fn(i128, i128) -> i128) -> Option<Value> {
    let bits = kind.width();
    let number = move |value| i128::from(signed(value, bits));
    a.zip(b).map(|(a, b)| a.zip(b, |a, b| held(kind, saturated(kind, f(number(a), number(b))))))
}

fn multiplied(one: &Instruction, bits: u32, a: &Value, b: &Value) -> Value {
    let is_signed = one.kind.is_signed();
    let is_24 = matches!(one.op, Op::Mul24 | Op::Mad24);
    let bits_in = if is_24 { 24 } else { bits };
    let (high, wide) = (one.mods.is_high(), one.mods.is_wide());
    a.zip(b, |a, b| {
        let (a, b) = (a & mask(bits_in), b & mask(bits_in));
        let product = if is_signed {
            (i128::from(signed(a, bits_in)) * i128::from(signed(b, bits_in))).cast_unsigned()
        } else {
            u128::from(a) * u128::from(b)
        };
        #[allow(clippy::cast_possible_truncation, reason = "the part that the instruction keeps")]
        match (high, wide) {
            (true, _) if is_24 => (product >> 16) as u64 & mask(bits),
            (true, _) => (product >> bits) as u64 & mask(bits),
            (_, true) => product as u64 & mask(bits * 2),
            _ => product as u64 & mask(bits),
        }
    })
}

fn bit_found(value: u64, bits: u32, is_signed: bool, shift: bool) -> u64 {
    let value = if is_signed && signed(value, bits) < 0 { !value & mask(bits) } else { value };
    match value.checked_ilog2() {
        None => 0xffff_ffff,
        Some(at) if shift => u64::from(bits - 1 - at),
        Some(at) => u64::from(at),
    }
}

fn field(value: u64, at: u64, length: u64, bits: u32, is_signed: bool) -> u64 {
    let (at, length) = ((at & 255).min(64), (length & 255).min(64));
    if length == 0 {
        return 0;
    }
    let shifted = if is_signed {
        (signed(value, bits) >> at.min(63)).cast_unsigned()
    } else if at >= 64 {
        0
    } else {
        value >> at
    };
    #[allow(clippy::cast_possible_truncation, reason = "at most 64")]
    let length = length as u32;
    let part = shifted & mask(length);
    if is_signed && length < bits { signed(part, length).cast_unsigned() & mask(bits) } else { part & mask(bits) }
}

fn inserted(part: &Value, into: &Value, at: &Value, length: &Value, low: u64, extent: Extent) -> Value {
    #[allow(clippy::cast_possible_truncation, reason = "at most 64")]
    let window = at.zip(length, |at, length| {
        let (at, length) = (at & 255, (length & 255).min(64) as u32);
        if at < 64 { mask(length) << at } else { 0 }
    });
    let shifted = part.zip(at, |part, at| part << (at & 255).min(63));
    window.zip3(&shifted, into, extent, move |window, part, into| (part & window | into & !window) & low)
}

fn logic(table: u64, a: u64, b: u64, c: u64) -> u64 {
    let term = |at: u64| {
        let pick = |value: u64, bit: u64| if at & bit != 0 { value } else { !value };
        pick(a, 4) & pick(b, 2) & pick(c, 1)
    };
    (0..8).filter(|at| table >> at & 1 != 0).fold(0, |all, at| all | term(at))
}

fn permuted(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (b & 0xffff_ffff) << 32 | a & 0xffff_ffff;
    (0..4).fold(0, |all, at| {
        let pick = selector >> (4 * at);
        let byte = bytes >> (8 * (pick & 7)) & 0xff;
        let byte = if pick & 8 == 0 { byte } else { 0xff * (byte >> 7) };
        all | byte << (8 * at)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{M1, M1_64, check};

    #[test]
    fn arithmetic_wraps_at_the_width_of_its_type() {
        check(&[
            ("add.s32 %r1, %r2, %r3", &[M1, 2], 1),
            ("add.u64 %rd1, %rd2, %rd3", &[M1, 2], 0x1_0000_0001),
            ("add.sat.s32 %r1, %r2, %r3", &[0x7fff_ffff, 1], 0x7fff_ffff),
            ("sub.sat.s32 %r1, %r2, %r3", &[0x8000_0000, 1], 0x8000_0000),
            ("sub.sat.s32 %r1, %r2, %r3", &[3, 5], 0xffff_fffe),
            ("sub.s32 %r1, %r2, %r3", &[1, 2], M1),
            ("sub.u16 %rs1, %rs2, %rs3", &[1, 2], 0xffff),
            ("neg.s32 %r1, %r2", &[1], M1),
            ("abs.s32 %r1, %r2", &[0xffff_fffb], 5),
            ("abs.s64 %rd1, %rd2", &[M1_64], 1),
            ("min.s32 %r1, %r2, %r3", &[M1, 1], M1),
            ("min.u32 %r1, %r2, %r3", &[M1, 1], 1),
            ("max.s32 %r1, %r2, %r3", &[M1, 1], 1),
            ("max.u32 %r1, %r2, %r3", &[M1, 1], M1),
            ("sad.s32 %r1, %r2, %r3, %r4", &[0xffff_fffe, 5, 100], 107),
            ("sad.u32 %r1, %r2, %r3, %r4", &[0xffff_fffe, 5, 100], 93),
        ]);
    }

    #[test]
    fn products_keep_the_part_that_they_name() {
        check(&[
            ("mul.lo.s32 %r1, %r2, %r3", &[0x1_0001, 0x1_0001], 0x2_0001),
            ("mul.hi.u32 %r1, %r2, %r3", &[M1, M1], 0xffff_fffe),
            ("mul.hi.s32 %r1, %r2, %r3", &[M1, M1], 0),
            ("mul.hi.s32 %r1, %r2, %r3", &[M1, 1], M1),
            ("mul.hi.u64 %rd1, %rd2, %rd3", &[M1_64, 2], 1),
            ("mul.wide.s32 %rd1, %r2, %r3", &[M1, 4], M1_64 - 3),
            ("mul.wide.u32 %rd1, %r2, %r3", &[M1, 4], 0x3_ffff_fffc),
            ("mul.wide.u16 %r1, %rs2, %rs3", &[0xffff, 0xffff], 0xfffe_0001),
            ("mul24.lo.u32 %r1, %r2, %r3", &[0xff00_0002, 3], 6),
            ("mul24.lo.s32 %r1, %r2, %r3", &[0x00ff_ffff, 3], 0xffff_fffd),
            ("mad.lo.s32 %r1, %r2, %r3, %r4", &[3, 5, M1], 14),
            ("mad.hi.u32 %r1, %r2, %r3, %r4", &[M1, M1, 3], 1),
            ("mad.wide.s32 %rd1, %r2, %r3, %rd4", &[M1, 4, 0x1_0000_0000], 0xffff_fffc),
            ("mad.wide.u32 %rd1, %r2, %r3, %rd4", &[2, 4, 0x1_0000_0000], 0x1_0000_0008),
        ]);
    }

    #[test]
    fn division_takes_the_sign_into_account_and_survives_zero() {
        check(&[
            ("div.s32 %r1, %r2, %r3", &[0xffff_fff9, 2], 0xffff_fffd),
            ("div.u32 %r1, %r2, %r3", &[0xffff_fff9, 2], 0x7fff_fffc),
            ("rem.s32 %r1, %r2, %r3", &[0xffff_fff9, 4], 0xffff_fffd),
            ("rem.u32 %r1, %r2, %r3", &[0xffff_fff9, 4], 1),
            ("div.u32 %r1, %r2, %r3", &[7, 0], M1),
            ("rem.u32 %r1, %r2, %r3", &[7, 0], 7),
            ("div.s64 %rd1, %rd2, %rd3", &[1 << 63, M1_64], 1 << 63),
            ("rem.s64 %rd1, %rd2, %rd3", &[1 << 63, M1_64], 0),
        ]);
    }

    #[test]
    fn shifts_end_at_the_width() {
        check(&[
            ("shl.b32 %r1, %r2, %r3", &[1, 31], 0x8000_0000),
            ("shl.b32 %r1, %r2, %r3", &[1, 32], 0),
            ("shl.b64 %rd1, %rd2, %r3", &[1, 63], 1 << 63),
            ("shl.b64 %rd1, %rd2, %r3", &[1, M1], 0),
            ("shr.u32 %r1, %r2, %r3", &[0x8000_0000, 31], 1),
            ("shr.u32 %r1, %r2, %r3", &[0x8000_0000, 40], 0),
            ("shr.s32 %r1, %r2, %r3", &[0x8000_0000, 40], M1),
            ("shr.s32 %r1, %r2, %r3", &[0x8000_0000, 4], 0xf800_0000),
            ("shr.s64 %rd1, %rd2, %r3", &[1 << 63, 200], M1_64),
            ("shr.u64 %rd1, %rd2, %r3", &[1 << 63, 64], 0),
            ("shf.l.wrap.b32 %r1, %r2, %r3, %r4", &[0x1234_5678, 0x9abc_def0, 8], 0xbcde_f012),
            ("shf.r.wrap.b32 %r1, %r2, %r3, %r4", &[0x1234_5678, 0x9abc_def0, 8], 0xf012_3456),
            ("shf.l.clamp.b32 %r1, %r2, %r3, %r4", &[0x1234_5678, 0x9abc_def0, 40], 0x1234_5678),
            ("shf.r.clamp.b32 %r1, %r2, %r3, %r4", &[0x1234_5678, 0x9abc_def0, 40], 0x9abc_def0),
            ("shf.l.wrap.b32 %r1, %r2, %r3, %r4", &[0x1234_5678, 0x9abc_def0, 40], 0xbcde_f012),
        ]);
    }

    #[test]
    fn bits_are_counted_found_and_turned() {
        check(&[
            ("popc.b32 %r1, %r2", &[0xf0f0_0001], 9),
            ("popc.b64 %r1, %rd2", &[M1_64], 64),
            ("clz.b32 %r1, %r2", &[1], 31),
            ("clz.b32 %r1, %r2", &[0], 32),
            ("clz.b64 %r1, %rd2", &[0xffff], 48),
            ("bfind.u32 %r1, %r2", &[0x0001_0000], 16),
            ("bfind.u32 %r1, %r2", &[0], M1),
            ("bfind.shiftamt.u32 %r1, %r2", &[0x0001_0000], 15),
            ("bfind.s32 %r1, %r2", &[0xffff_0000], 15),
            ("bfind.s32 %r1, %r2", &[M1], M1),
            ("bfind.u64 %r1, %rd2", &[1 << 40], 40),
            ("brev.b32 %r1, %r2", &[1], 0x8000_0000),
            ("brev.b32 %r1, %r2", &[0x1234_5678], 0x1e6a_2c48),
            ("brev.b64 %rd1, %rd2", &[2], 1 << 62),
            ("not.b32 %r1, %r2", &[0xff], 0xffff_ff00),
            ("not.pred %p1, %p2", &[1], 0),
            ("cnot.b32 %r1, %r2", &[0], 1),
            ("cnot.b32 %r1, %r2", &[5], 0),
            ("and.b32 %r1, %r2, %r3", &[0b1100, 0b1010], 0b1000),
            ("or.b32 %r1, %r2, %r3", &[0b1100, 0b1010], 0b1110),
            ("xor.b32 %r1, %r2, %r3", &[0b1100, 0b1010], 0b0110),
        ]);
    }

    #[test]
    fn fields_are_taken_out_and_put_in() {
        check(&[
            ("bfe.u32 %r1, %r2, %r3, %r4", &[0xabcd_1234, 8, 8], 0x12),
            ("bfe.u32 %r1, %r2, %r3, %r4", &[0xabcd_1234, 24, 16], 0xab),
            ("bfe.s32 %r1, %r2, %r3, %r4", &[0xabcd_1234, 24, 8], 0xffff_ffab),
            ("bfe.s32 %r1, %r2, %r3, %r4", &[0xabcd_1234, 28, 16], 0xffff_fffa),
            ("bfe.s32 %r1, %r2, %r3, %r4", &[0x0000_0080, 4, 4], 0xffff_fff8),
            ("bfe.s32 %r1, %r2, %r3, %r4", &[0x8000_0000, 40, 4], M1),
            ("bfe.s32 %r1, %r2, %r3, %r4", &[0x8000_0000, 200, 4], M1),
            ("bfe.u32 %r1, %r2, %r3, %r4", &[M1, 200, 4], 0),
            ("bfe.s32 %r1, %r2, %r3, %r4", &[M1, 5, 0], 0),
            ("bfe.u32 %r1, %r2, %r3, %r4", &[M1, 256, 4], 0xf),
            ("bfe.u64 %rd1, %rd2, %r3, %r4", &[0x1234_5678_9abc_def0, 60, 8], 1),
            ("bfe.s64 %rd1, %rd2, %r3, %r4", &[1 << 63, 64, 8], M1_64),
            ("bfi.b32 %r1, %r2, %r3, %r4, %r5", &[0xff, 0x1234_5678, 8, 4], 0x1234_5f78),
            ("bfi.b32 %r1, %r2, %r3, %r4, %r5", &[0xff, 0, 28, 8], 0xf000_0000),
            ("bfi.b32 %r1, %r2, %r3, %r4, %r5", &[0xff, 7, 40, 8], 7),
            ("bfi.b32 %r1, %r2, %r3, %r4, %r5", &[0xff, 7, 3, 0], 7),
            ("bfi.b64 %rd1, %rd2, %rd3, %r4, %r5", &[1, 0, 63, 1], 1 << 63),
            ("bfi.b64 %rd1, %rd2, %rd3, %r4, %r5", &[1, 0, 64, 1], 0),
            ("bfi.b64 %rd1, %rd2, %rd3, %r4, %r5", &[5, M1_64, 0, 64], 5),
        ]);
    }

    #[test]
    fn tables_of_logic_and_selections_of_bytes_are_as_in_the_manual() {
        let (a, b, c) = (0xf0, 0xcc, 0xaa);
        check(&[
            ("lop3.b32 %r1, %r2, %r3, %r4, 0x80", &[a, b, c, 0x80], a & b & c),
            ("lop3.b32 %r1, %r2, %r3, %r4, 0xFE", &[a, b, c, 0xfe], a | b | c),
            ("lop3.b32 %r1, %r2, %r3, %r4, 0x96", &[a, b, c, 0x96], a ^ b ^ c),
            ("lop3.b32 %r1, %r2, %r3, %r4, 0x40", &[a, b, c, 0x40], a & b & !c),
            ("lop3.b32 %r1, %r2, %r3, %r4, 0x1", &[a, b, c, 0x01], !(a | b | c) & M1),
            ("prmt.b32 %r1, %r2, %r3, %r4", &[0x3322_1100, 0x7766_5544, 0x7531], 0x7755_3311),
            ("prmt.b32 %r1, %r2, %r3, %r4", &[0x3322_1100, 0x7766_5544, 0x0123], 0x0011_2233),
            ("prmt.b32 %r1, %r2, %r3, %r4", &[0x0000_0080, 0, 0x888c], 0xffff_ff00),
        ]);
    }
}
