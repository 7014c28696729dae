//! Level 2: what one instruction computes, for all threads at once. Bits in, bits out, as the PTX manual says; what is not
//! known is a hash of its operands, so that equal operands stay equal.

use super::sample::mix;
use super::value::{Extent, LANES, Span, Value};
use crate::parse::ptx::{Cond, Instruction, Logic, Op, Type};

/// The low `bits` bits.
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

fn signed(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    (value << shift).cast_signed() >> shift
}

fn f32_of(bits: u64) -> f32 {
    #[allow(clippy::cast_possible_truncation, reason = "a register of 32 bits")]
    f32::from_bits(bits as u32)
}

fn of_f32(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// What the destination number `place` of `one` holds, for the values of its sources.
pub(super) fn compute(one: &Instruction, place: u16, destinations: usize, args: &[Value], extent: Extent) -> Value {
    match one.op {
        Op::Mov | Op::Cvta => moved(one, place, destinations, args),
        Op::Setp => compared(one, place, args),
        Op::Set => compared(one, 0, args).map(|truth| if truth != 0 { mask(one.kind.width()) } else { 0 }),
        Op::Selp => match args {
            [yes, no, condition] => condition.choose(yes, no, extent),
            _ => unknown(one, place, args),
        },
        Op::Slct => match args {
            [yes, no, sign] => {
                let bits = if one.from == Type::None { one.kind } else { one.from }.width();
                let condition = sign.map(|sign| u64::from(signed(sign, bits) >= 0));
                condition.choose(yes, no, extent)
            }
            _ => unknown(one, place, args),
        },
        Op::Cvt => args.first().map_or_else(|| unknown(one, place, args), |arg| converted(one, arg)),
        Op::Shfl => {
            let is_one_lane = one.mods.is_index() && args.get(1).is_some_and(|lane| lane.span() != Span::Thread);
            let value = shuffled(one, place, args, extent);
            if is_one_lane { value.condensed(extent).as_shared() } else { value }
        }
        Op::Match if !one.mods.is_all() => matched(args, extent),
        Op::Vote => voted(one, args, extent),
        Op::Activemask => Value::constant(0xffff_ffff),
        Op::Elect => match place {
            0 => Value::constant(0),
            _ => Value::of_threads(extent, |thread| u64::from(thread % LANES == 0)),
        },
        _ if one.kind == Type::F32 || one.kind == Type::F64 => floating(one, place, args, extent),
        _ if one.kind == Type::Small => unknown(one, place, args),
        _ => integer(one, place, args, extent),
    }
}

/// A hash of the operands.
fn unknown(one: &Instruction, place: u16, args: &[Value]) -> Value {
    let start = Value::constant(mix(one.op as u64, u64::from(place)));
    let bits = mask(if one.kind == Type::None { 32 } else { one.kind.width() });
    // Equal instructions on equal operands may give different numbers, never one for some lanes and one for others.
    args.iter().fold(start, |hash, arg| hash.zip(arg, mix)).map(|hash| hash & bits)
}

fn moved(one: &Instruction, place: u16, destinations: usize, args: &[Value]) -> Value {
    let width = one.kind.width();
    match args {
        [arg] if destinations <= 1 => arg.map(|bits| bits & mask(width)),
        [arg] => {
            let part = width / u32::try_from(destinations).unwrap_or(1).max(1);
            let shift = (u32::from(place) * part).min(63);
            arg.map(|bits| bits >> shift & mask(part))
        }
        [] => unknown(one, place, args),
        parts if width <= 64 => {
            let part = width / u32::try_from(parts.len()).unwrap_or(1);
            let numbered = (0_u32..).zip(parts);
            numbered.fold(Value::constant(0), |all, (at, value)| {
                all.zip(value, |all, value| all | (value & mask(part)) << (at * part).min(63))
            })
        }
        parts => unknown(one, place, parts),
    }
}

/// The predicate that `setp` writes; its second destination is the opposite.
fn compared(one: &Instruction, place: u16, args: &[Value]) -> Value {
    let [a, b, more @ ..] = args else { return unknown(one, place, args).map(|bits| bits & 1) };
    let kind = if one.op == Op::Set && one.from != Type::None { one.from } else { one.kind };
    let cond = one.cond;
    let truth = match kind {
        Type::F32 => a.zip(b, |a, b| u64::from(holds_float(cond, f64::from(f32_of(a)), f64::from(f32_of(b))))),
        Type::F64 => a.zip(b, |a, b| u64::from(holds_float(cond, f64::from_bits(a), f64::from_bits(b)))),
        Type::Small => a.zip(b, |a, b| match cond {
            Cond::Eq | Cond::Equ => u64::from(a == b),
            Cond::Ne | Cond::Neu => u64::from(a != b),
            _ => mix(a, b) & 1,
        }),
        _ => ordered(cond, a, b, kind.width(), kind.is_signed()),
    };
    let truth = if place == 1 { truth.map(|truth| 1 - truth) } else { truth };
    match (one.logic, more.first()) {
        (Logic::And, Some(other)) => truth.zip(other, |a, b| a & b),
        (Logic::Or, Some(other)) => truth.zip(other, |a, b| a | b),
        (Logic::Xor, Some(other)) => truth.zip(other, |a, b| a ^ b),
        _ => truth,
    }
}

/// A comparison of integers; each has a loop of its own.
fn ordered(cond: Cond, a: &Value, b: &Value, bits: u32, is_signed: bool) -> Value {
    let low = mask(bits);
    macro_rules! each {
        ($holds:expr) => {
            if is_signed {
                a.zip(b, |a, b| u64::from($holds(&signed(a, bits), &signed(b, bits))))
            } else {
                a.zip(b, |a, b| u64::from($holds(&(a & low), &(b & low))))
            }
        };
    }
    macro_rules! unsigned {
        ($holds:expr) => {
            a.zip(b, |a, b| u64::from($holds(&(a & low), &(b & low))))
        };
    }
    match cond {
        Cond::Eq | Cond::Equ => unsigned!(u64::eq),
        Cond::Ne | Cond::Neu => unsigned!(u64::ne),
        Cond::Lt | Cond::Ltu => each!(PartialOrd::lt),
        Cond::Le | Cond::Leu => each!(PartialOrd::le),
        Cond::Gt | Cond::Gtu => each!(PartialOrd::gt),
        Cond::Ge | Cond::Geu => each!(PartialOrd::ge),
        Cond::Lo => unsigned!(u64::lt),
        Cond::Ls => unsigned!(u64::le),
        Cond::Hi => unsigned!(u64::gt),
        Cond::Hs => unsigned!(u64::ge),
        Cond::Num => Value::constant(1),
        Cond::Nan => Value::constant(0),
    }
}

fn holds_float(cond: Cond, a: f64, b: f64) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match cond {
        Cond::Eq => a == b,
        Cond::Ne => !unordered && a != b,
        Cond::Lt | Cond::Lo => a < b,
        Cond::Le | Cond::Ls => a <= b,
        Cond::Gt | Cond::Hi => a > b,
        Cond::Ge | Cond::Hs => a >= b,
        Cond::Equ => unordered || a == b,
        Cond::Neu => unordered || a != b,
        Cond::Ltu => unordered || a < b,
        Cond::Leu => unordered || a <= b,
        Cond::Gtu => unordered || a > b,
        Cond::Geu => unordered || a >= b,
        Cond::Num => !unordered,
        Cond::Nan => unordered,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "conversions, as the GPU does them")]
fn converted(one: &Instruction, arg: &Value) -> Value {
    let (to, from) = (one.kind, if one.from == Type::None { one.kind } else { one.from });
    let rounded = move |value: f64| {
        if one.mods.is_rounded_to_even() {
            value.round_ties_even()
        } else if one.mods.is_rounded_down() {
            value.floor()
        } else if one.mods.is_rounded_up() {
            value.ceil()
        } else {
            value
        }
    };
    let float = move |bits: u64| if from == Type::F32 { f64::from(f32_of(bits)) } else { f64::from_bits(bits) };
    match (from, to) {
        (Type::Small, _) | (_, Type::Small) => arg.clone(),
        (Type::F32 | Type::F64, Type::F32) => arg.map(|bits| of_f32(rounded(float(bits)) as f32)),
        (Type::F32 | Type::F64, Type::F64) => arg.map(|bits| rounded(float(bits)).to_bits()),
        (Type::F32 | Type::F64, to) => arg.map(|bits| {
            let value = rounded(float(bits)).trunc();
            let whole = if to.is_signed() { (value as i64).cast_unsigned() } else { value as u64 };
            whole & mask(to.width())
        }),
        (from, Type::F32 | Type::F64) => arg.map(|bits| {
            let value = bits & mask(from.width());
            let value = if from.is_signed() { signed(value, from.width()) as f64 } else { value as f64 };
            if to == Type::F32 { of_f32(value as f32) } else { value.to_bits() }
        }),
        (from, to) => arg.map(|bits| {
            let value = bits & mask(from.width());
            let value = if from.is_signed() { signed(value, from.width()).cast_unsigned() } else { value };
            value & mask(to.width())
        }),
    }
}

/// `shfl`: which lane is read, and whether it is one of the group (PTX ISA manual, "shfl.sync").
fn shuffled(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
    let [value, by, clamp, ..] = args else { return unknown(one, place, args) };
    let clamp = clamp.as_constant().unwrap_or(31);
    let (bound, segment) = ((clamp & 31).cast_signed(), (clamp >> 8 & 31).cast_signed());
    let mods = one.mods;
    if place == 0 && value.span() != Span::Thread {
        // All lanes have the same to tell.
        return value.clone();
    }
    value.exchange(by, extent, |values, by, own| {
        let by = (by & 31).cast_signed();
        let lane = own as i64;
        let least = lane & segment;
        let most = least | (bound & !segment);
        let (from, inside) = if mods.is_up() {
            (lane - by, lane - by >= most)
        } else if mods.is_down() {
            (lane + by, lane + by <= most)
        } else if mods.is_butterfly() {
            (lane ^ by, lane ^ by <= most)
        } else {
            let from = least | (by & !segment);
            (from, from <= most)
        };
        if place == 1 {
            return u64::from(inside);
        }
        let from = usize::try_from(from).ok().filter(|_| inside).unwrap_or(own);
        values[from.min(values.len() - 1)]
    })
}

fn voted(one: &Instruction, args: &[Value], extent: Extent) -> Value {
    let Some(value) = args.first() else { return Value::constant(0) };
    let mods = one.mods;
    value.by_warp(extent, |values, lanes| {
        let all = u32::MAX >> (LANES - lanes);
        let ballot = match values {
            [one] => u64::from(if *one != 0 { all } else { 0 }),
            each => (0..).zip(each).fold(0, |ballot, (lane, truth)| ballot | u64::from(*truth != 0) << lane),
        };
        let all = u64::from(all);
        match () {
            () if mods.is_ballot() => ballot,
            () if mods.is_any() => u64::from(ballot != 0),
            () if mods.is_all() => u64::from(ballot == all),
            () => u64::from(ballot == 0 || ballot == all),
        }
    })
}

/// `match.any`: for each lane the lanes of its warp that have the same.
fn matched(args: &[Value], extent: Extent) -> Value {
    let Some(value) = args.first() else { return Value::constant(0) };
    if value.span() != Span::Thread {
        return value.by_warp(extent, |_, lanes| u64::from(u32::MAX >> (LANES - lanes)));
    }
    value.exchange(&Value::constant(0), extent, |values, _, lane| {
        let own = values[lane];
        (0..).zip(values).filter(|(_, value)| **value == own).fold(0, |mask, (lane, _)| mask | 1 << lane)
    })
}

fn floating(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
    let single = one.kind == Type::F32;
    macro_rules! unary {
        ($f:expr) => {
            args.first().map(|a| {
                #[allow(clippy::cast_possible_truncation, reason = "rounding to the operation's type")]
                if single {
                    a.map(|a| of_f32($f(f64::from(f32_of(a))) as f32))
                } else {
                    a.map(|a| $f(f64::from_bits(a)).to_bits())
                }
            })
        };
    }
    macro_rules! binary {
        ($narrow:expr, $wide:expr) => {
            match args {
                [a, b, ..] if single => Some(a.zip(b, |a, b| of_f32($narrow(f32_of(a), f32_of(b))))),
                [a, b, ..] => Some(a.zip(b, |a, b| $wide(f64::from_bits(a), f64::from_bits(b)).to_bits())),
                _ => None,
            }
        };
    }
    let result = match one.op {
        Op::Add => binary!(|a: f32, b: f32| a + b, |a: f64, b: f64| a + b),
        Op::Sub => binary!(|a: f32, b: f32| a - b, |a: f64, b: f64| a - b),
        Op::Mul => binary!(|a: f32, b: f32| a * b, |a: f64, b: f64| a * b),
        Op::Div => binary!(|a: f32, b: f32| a / b, |a: f64, b: f64| a / b),
        Op::Min => binary!(f32::min, f64::min),
        Op::Max => binary!(f32::max, f64::max),
        Op::Fma | Op::Mad => match args {
            [a, b, c] if single => {
                Some(a.zip3(b, c, extent, |a, b, c| of_f32(f32_of(a).mul_add(f32_of(b), f32_of(c)))))
            }
            [a, b, c] => Some(a.zip3(b, c, extent, |a, b, c| {
                f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits()
            })),
            _ => None,
        },
        Op::Neg => unary!(|a: f64| -a),
        Op::Abs => unary!(f64::abs),
        Op::Sqrt => unary!(f64::sqrt),
        Op::Rsqrt => unary!(|a: f64| 1.0 / a.sqrt()),
        Op::Rcp => unary!(|a: f64| 1.0 / a),
        Op::Sin => unary!(f64::sin),
        Op::Cos => unary!(f64::cos),
        Op::Ex2 => unary!(f64::exp2),
        Op::Lg2 => unary!(f64::log2),
        Op::Tanh => unary!(f64::tanh),
        _ => None,
    };
    result.unwrap_or_else(|| unknown(one, place, args))
}

fn integer(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
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
        Op::Div => ordered!(|a: u64, b: u64| a.checked_div(b).unwrap_or(u64::MAX), |a: i64, b: i64| a
            .checked_div(b)
            .unwrap_or(-1)),
        Op::Rem => {
            ordered!(|a: u64, b: u64| a.checked_rem(b).unwrap_or(a), |a: i64, b: i64| a.checked_rem(b).unwrap_or(a))
        }
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
        Op::Prmt if args.len() == 3 => a.zip(b).zip(c).map(|((a, b), c)| a.zip3(b, c, extent, permuted)),
        _ => None,
    };
    result.unwrap_or_else(|| unknown(one, place, args))
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
    let shifted = if at >= 64 {
        0
    } else if is_signed {
        (signed(value, bits) >> at).cast_unsigned()
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
        let (at, length) = ((at & 255).min(63), (length & 255).min(64) as u32);
        mask(length) << at
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
