//! Level 2: what one instruction computes, for all threads at once. Bits in, bits out, as the PTX manual says; what is not
//! known is a hash of its operands, so that equal operands stay equal.

use super::sample::mix;
use super::value::{Extent, LANES, Span, Value};
use crate::parse::ptx::{Cond, Instruction, Logic, Op, Type};

/// The low `bits` bits.
#[inline]
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A number of so many bits with its sign.
#[inline]
pub(super) fn signed(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    (value << shift).cast_signed() >> shift
}

#[inline]
fn f32_of(bits: u64) -> f32 {
    #[allow(clippy::cast_possible_truncation, reason = "a register of 32 bits")]
    f32::from_bits(bits as u32)
}

#[inline]
fn of_f32(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// What the destination number `place` of `one` holds, for the values of its sources.
pub(super) fn compute(one: &Instruction, place: u16, destinations: usize, args: &[Value], extent: Extent) -> Value {
    match one.op {
        Op::Mov | Op::Cvta => moved(one, place, destinations, args),
        Op::Setp => compared(one, place, args, extent),
        Op::Set => {
            let yes = if one.kind == Type::F32 { of_f32(1.0) } else { mask(one.kind.width()) };
            compared(one, 0, args, extent).map(|truth| if truth != 0 { yes } else { 0 })
        }
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
            let reads_one = one.mods.is_index() && args.get(1).is_some_and(|lane| lane.span() != Span::Thread);
            let is_one_lane = reads_one && args.get(2).and_then(Value::as_constant).is_some_and(is_whole_warp);
            let value = shuffled(one, place, args, extent);
            if is_one_lane { value.condensed(extent).as_shared() } else { value }
        }
        Op::Match if !one.mods.is_all() => matched(args, extent),
        Op::Vote => voted(one, args, extent),
        Op::Redux => reduced(one, place, args, extent),
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
fn compared(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
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
        _ => match distance(cond, a, b, kind.width(), extent) {
            // Lanes that are equally far apart give one answer, although a sum may wrap around between two of them.
            Some(distance) => ordered(of_signed(cond), &distance, &Value::constant(0), kind.width(), true),
            None => ordered(cond, a, b, kind.width(), kind.is_signed()),
        },
    };
    let truth = if place == 1 { truth.map(|truth| 1 - truth) } else { truth };
    match (one.logic, more.first()) {
        (Logic::And, Some(other)) => truth.zip(other, |a, b| a & b),
        (Logic::Or, Some(other)) => truth.zip(other, |a, b| a | b),
        (Logic::Xor, Some(other)) => truth.zip(other, |a, b| a ^ b),
        _ => truth,
    }
}

/// How far apart two numbers are of which each differs from lane to lane and the distance does not: an index on both sides
/// of a comparison. `None` where it does, or equality is asked for, which nothing wraps around.
pub(super) fn distance(cond: Cond, a: &Value, b: &Value, bits: u32, extent: Extent) -> Option<Value> {
    let orders = !matches!(cond, Cond::Eq | Cond::Equ | Cond::Ne | Cond::Neu | Cond::Num | Cond::Nan);
    if !orders || a.span() != Span::Thread || b.span() != Span::Thread {
        return None;
    }
    let low = mask(bits);
    let distance = a.zip(b, |a, b| a.wrapping_sub(b) & low).condensed(extent);
    (distance.span() != Span::Thread).then_some(distance)
}

/// The comparison of signed numbers in place of that of unsigned ones.
fn of_signed(cond: Cond) -> Cond {
    match cond {
        Cond::Lo | Cond::Ltu => Cond::Lt,
        Cond::Ls | Cond::Leu => Cond::Le,
        Cond::Hi | Cond::Gtu => Cond::Gt,
        Cond::Hs | Cond::Geu => Cond::Ge,
        other => other,
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
        (Type::F32 | Type::F64, Type::F32) => arg.map(|bits| of_f32(limited(one, rounded(float(bits))) as f32)),
        (Type::F32 | Type::F64, Type::F64) => arg.map(|bits| limited(one, rounded(float(bits))).to_bits()),
        // What is too large becomes the largest number, and what is none becomes 0, as with Rust's conversions.
        (Type::F32 | Type::F64, to) => arg.map(|bits| {
            let value = rounded(float(bits)).trunc();
            let whole = if to.is_signed() { i128::from(value as i64) } else { i128::from(value as u64) };
            held(to, saturated(to, whole))
        }),
        (from, Type::F32 | Type::F64) => arg.map(|bits| {
            let value = bits & mask(from.width());
            let value = if from.is_signed() { signed(value, from.width()) as f64 } else { value as f64 };
            if to == Type::F32 { of_f32(value as f32) } else { value.to_bits() }
        }),
        (from, to) if one.mods.is_saturating() => arg.map(|bits| {
            let value = bits & mask(from.width());
            let value = if from.is_signed() { i128::from(signed(value, from.width())) } else { i128::from(value) };
            held(to, saturated(to, value))
        }),
        (from, to) => {
            let (low, width) = (mask(from.width()), from.width());
            let wide = if from.is_signed() && width < to.width() {
                arg.map(|bits| signed(bits, width).cast_unsigned())
            } else {
                arg.map(|bits| bits & low)
            };
            loaded(to, wide)
        }
    }
}

/// The number of an integer type that is nearest.
fn saturated(to: Type, value: i128) -> i128 {
    let bits = to.width().clamp(1, 64);
    if to.is_signed() {
        value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        value.clamp(0, (1 << bits) - 1)
    }
}

/// The low bits of a number; in a register that has more, a sign goes on.
#[allow(clippy::cast_possible_truncation, reason = "the part that a register holds")]
fn held(to: Type, value: i128) -> u64 {
    let bits = to.width();
    let low = value.cast_unsigned() as u64 & mask(bits);
    if to.is_signed() { signed(low, bits).cast_unsigned() & mask(bits.max(32)) } else { low }
}

/// What a register holds that a value of the type is written to.
pub(super) fn loaded(kind: Type, value: Value) -> Value {
    let (bits, low) = (kind.width(), mask(kind.width()));
    match bits {
        64.. => value,
        ..32 if kind.is_signed() => value.map(|value| signed(value, bits).cast_unsigned() & mask(32)),
        _ => value.map(|value| value & low),
    }
}

/// With `.sat` a floating-point number ends at 0 and 1.
fn limited(one: &Instruction, value: f64) -> f64 {
    match one.mods.is_saturating() {
        true if value.is_nan() => 0.0,
        true => value.clamp(0.0, 1.0),
        false => value,
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
    let read = |by: u64, own: usize| {
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
        (usize::try_from(from).ok().filter(|_| inside).unwrap_or(own), inside)
    };
    if place == 1 {
        return value.exchange(by, extent, |_, by, own| u64::from(read(by, own).1));
    }
    // Mostly all lanes read equally far.
    if let Some(by) = by.as_constant() {
        let from: [usize; LANES] = std::array::from_fn(|own| read(by, own).0);
        return value.gathered(extent, &from);
    }
    value.exchange(by, extent, |values, by, own| values[read(by, own).0.min(values.len() - 1)])
}

/// Whether the third operand of `shfl` leaves the warp whole, and not in segments.
pub(super) fn is_whole_warp(clamp: u64) -> bool {
    clamp >> 8 & 31 == 0
}

fn voted(one: &Instruction, args: &[Value], extent: Extent) -> Value {
    let Some(value) = args.first() else { return Value::constant(0) };
    let mods = one.mods;
    let outcome = |ballot: u64, all: u64| match () {
        () if mods.is_ballot() => ballot,
        () if mods.is_any() => u64::from(ballot != 0),
        () if mods.is_all() => u64::from(ballot == all),
        () => u64::from(ballot == 0 || ballot == all),
    };
    // Lanes that name different lanes vote in groups.
    if let Some(mask) = args.get(1).filter(|mask| mask.span() == Span::Thread) {
        return value.exchange(mask, extent, |values, mask, _| outcome(ballot(values, u32::MAX) & mask, mask));
    }
    value.by_warp(extent, |values, lanes| {
        let all = u32::MAX >> (LANES - lanes);
        outcome(ballot(values, all), u64::from(all))
    })
}

/// The lanes that have a truth, of the lanes of a warp.
fn ballot(values: &[u64], all: u32) -> u64 {
    match values {
        [one] => u64::from(if *one != 0 { all } else { 0 }),
        each => (0..).zip(each).fold(0, |ballot, (lane, truth)| ballot | u64::from(*truth != 0) << lane),
    }
}

/// `redux`: what the lanes of a constant mask have together, of integers; those of them that are not there are left out.
fn reduced(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
    let mask = args.get(1).and_then(Value::as_constant).filter(|_| is_reduced(one));
    let (Some(value), Some(mask)) = (args.first(), mask) else { return unknown(one, place, args) };
    let (bits, is_signed) = (one.kind.width(), one.kind.is_signed());
    let join = |a: u64, b: u64| match one.logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
        Logic::Add | Logic::None => a.wrapping_add(b),
        Logic::Min if is_signed => {
            if signed(a, bits) < signed(b, bits) {
                a
            } else {
                b
            }
        }
        Logic::Max if is_signed => {
            if signed(a, bits) > signed(b, bits) {
                a
            } else {
                b
            }
        }
        Logic::Min => a.min(b),
        Logic::Max => a.max(b),
    };
    let low = self::mask(bits);
    value.by_warp(extent, |values, lanes| {
        let named = (0..lanes).filter(|lane| mask >> lane & 1 != 0);
        let numbers = named.map(|lane| values[lane.min(values.len() - 1)] & low);
        numbers.reduce(join).unwrap_or(0) & low
    })
}

/// Whether it is known how a `redux` joins numbers.
pub(super) fn is_reduced(one: &Instruction) -> bool {
    one.logic != Logic::None && !one.kind.is_float() && one.kind != Type::Small
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
    let result = result.unwrap_or_else(|| unknown(one, place, args));
    #[allow(clippy::cast_possible_truncation, reason = "0, 1, or the same again")]
    match one.mods.is_saturating() {
        true if single => result.map(|bits| of_f32(limited(one, f64::from(f32_of(bits))) as f32)),
        _ => result,
    }
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
    use super::super::testing::with_code;
    use super::super::value::ALL;
    use super::*;

    const EXTENT: Extent = Extent { threads: 64, environments: ALL };

    /// What each destination of an instruction holds, for values of its sources.
    fn results(line: &str, args: &[Value]) -> Vec<Value> {
        with_code(&format!("{line};"), |code| {
            let one = &code.instructions[0];
            let places = code.destinations(one).len();
            (0_u16..).take(places).map(|place| compute(one, place, places, args, EXTENT)).collect()
        })
    }

    /// The same for operands that are `args` in every lane.
    fn result(line: &str, args: &[u64]) -> u64 {
        let args: Vec<Value> = args.iter().map(|arg| Value::constant(*arg)).collect();
        results(line, &args)[0].as_constant().expect("one value")
    }

    fn check(cases: &[(&str, &[u64], u64)]) {
        for (line, args, expected) in cases {
            assert_eq!(result(line, args), *expected, "{line} of {args:x?}");
        }
    }

    const M1: u64 = 0xffff_ffff;
    const M1_64: u64 = u64::MAX;

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
    fn a_reduction_joins_the_numbers_of_the_lanes_that_are_named() {
        let lanes = Value::of_threads(EXTENT, |thread| thread as u64);
        let below_zero = lanes.map(|thread| thread.wrapping_sub(40) & 0xffff_ffff);
        let of = |line: &str, value: &Value, mask: u64| {
            let value =
                &results(&format!("redux.sync.{line} %r1, %r2, %r3"), &[value.clone(), Value::constant(mask)])[0];
            [value.at(0, 5), value.at(0, 63)]
        };
        assert_eq!(of("min.s32", &lanes, M1), [0, 32]);
        assert_eq!(of("max.u32", &lanes, M1), [31, 63]);
        assert_eq!(of("max.u32", &lanes, 0xff00), [15, 47]);
        assert_eq!(of("add.s32", &lanes, M1), [496, 1520]);
        assert_eq!(of("xor.b32", &lanes, 0b11), [1, 1]);
        assert_eq!(of("or.b32", &lanes, M1), [31, 63]);
        assert_eq!(of("and.b32", &lanes, M1), [0, 32]);
        assert_eq!(of("min.s32", &below_zero, M1), [0xffff_ffd8, 0xffff_fff8]);
        assert_eq!(of("max.s32", &below_zero, M1), [0xffff_fff7, 23]);
        assert_eq!(of("add.s32", &Value::constant(3), M1), [96, 96]);
        let incomplete = Extent { threads: 40, ..EXTENT };
        let value = Value::of_threads(incomplete, |thread| thread as u64 + 1);
        with_code("redux.sync.add.s32 %r1, %r2, %r3;", |code| {
            let sum = compute(&code.instructions[0], 0, 1, &[value, Value::constant(M1)], incomplete);
            assert_eq!(sum.at(0, 39), (33..=40).sum::<u64>(), "lanes that are not there have nothing to add");
        });
    }

    #[test]
    fn lanes_that_name_others_vote_in_groups() {
        let third = Value::of_threads(EXTENT, |thread| u64::from(thread % LANES == 9));
        let groups = Value::of_threads(EXTENT, |thread| 0xff << ((thread % LANES) & 24));
        let any = &results("vote.sync.any.pred %p1, %p2, %r1", &[third.clone(), groups.clone()])[0];
        let ballot = &results("vote.sync.ballot.b32 %r1, %p2, %r2", &[third, groups])[0];
        let at = |value: &Value| [0, 8, 15, 16].map(|thread| value.at(0, thread));
        assert_eq!((at(any), at(ballot)), ([0, 1, 1, 0], [0, 0x200, 0x200, 0]));
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

    #[test]
    fn choices_look_at_their_condition() {
        check(&[
            ("selp.b32 %r1, %r2, %r3, %p1", &[7, 9, 1], 7),
            ("selp.b32 %r1, %r2, %r3, %p1", &[7, 9, 0], 9),
            ("slct.s32.s32 %r1, %r2, %r3, %r4", &[7, 9, 0], 7),
            ("slct.s32.s32 %r1, %r2, %r3, %r4", &[7, 9, M1], 9),
            ("slct.u64.s32 %rd1, %rd2, %rd3, %r4", &[7, 9, 0x8000_0000], 9),
            ("slct.f32.f32 %f1, %f2, %f3, %f4", &[7, 9, u64::from((-1.0_f32).to_bits())], 9),
            ("set.lt.u32.s32 %r1, %r2, %r3", &[M1, 0], M1),
            ("set.lt.u32.u32 %r1, %r2, %r3", &[M1, 0], 0),
            ("set.lt.f32.s32 %f1, %r2, %r3", &[M1, 0], u64::from(1.0_f32.to_bits())),
        ]);
    }

    #[test]
    fn comparisons_follow_their_type_and_join_with_a_predicate() {
        let pair = |line: &str, args: &[u64]| {
            let args: Vec<Value> = args.iter().map(|arg| Value::constant(*arg)).collect();
            let found: Vec<u64> = results(line, &args).iter().filter_map(Value::as_constant).collect();
            (found[0], found[1])
        };
        check(&[
            ("setp.lt.s32 %p1, %r1, %r2", &[M1, 0], 1),
            ("setp.lt.u32 %p1, %r1, %r2", &[M1, 0], 0),
            ("setp.lo.u32 %p1, %r1, %r2", &[0, M1], 1),
            ("setp.hs.u32 %p1, %r1, %r2", &[M1, M1], 1),
            ("setp.eq.s64 %p1, %rd1, %rd2", &[1 << 40, 0], 0),
            ("setp.eq.s32 %p1, %r1, %r2", &[1 << 40, 0], 1),
        ]);
        let nan = u64::from(f32::NAN.to_bits());
        let one = u64::from(1.0_f32.to_bits());
        check(&[
            ("setp.lt.f32 %p1, %f1, %f2", &[nan, one], 0),
            ("setp.ltu.f32 %p1, %f1, %f2", &[nan, one], 1),
            ("setp.ne.f32 %p1, %f1, %f2", &[nan, one], 0),
            ("setp.neu.f32 %p1, %f1, %f2", &[nan, one], 1),
            ("setp.num.f32 %p1, %f1, %f2", &[nan, one], 0),
            ("setp.nan.f32 %p1, %f1, %f2", &[nan, one], 1),
            ("setp.gt.f64 %p1, %fd1, %fd2", &[2.0_f64.to_bits(), (-2.0_f64).to_bits()], 1),
        ]);
        assert_eq!(pair("setp.eq.s32 %p1|%p2, %r1, %r2", &[1, 1]), (1, 0));
        assert_eq!(pair("setp.eq.and.s32 %p1|%p2, %r1, %r2, %p3", &[1, 1, 0]), (0, 0));
        assert_eq!(pair("setp.eq.or.s32 %p1|%p2, %r1, %r2, %p3", &[1, 2, 1]), (1, 1));
        assert_eq!(pair("setp.eq.xor.s32 %p1|%p2, %r1, %r2, %p3", &[1, 1, 1]), (0, 1));
    }

    #[test]
    fn conversions_extend_cut_round_and_end_at_the_type() {
        let f = |value: f32| u64::from(value.to_bits());
        check(&[
            ("cvt.s64.s32 %rd1, %r1", &[M1], M1_64),
            ("cvt.u64.u32 %rd1, %r1", &[M1], M1),
            ("cvt.u32.u64 %r1, %rd1", &[0x1_0000_0005], 5),
            ("cvt.s32.s8 %r1, %r2", &[0x80], 0xffff_ff80),
            ("cvt.u32.u8 %r1, %r2", &[0x180], 0x80),
            ("cvt.s16.s8 %rs1, %rs2", &[0x80], 0xffff_ff80),
            ("cvt.s8.s32 %rs1, %r2", &[0x1ff], 0xffff_ffff),
            ("cvt.sat.u8.s32 %r1, %r2", &[M1], 0),
            ("cvt.sat.u8.s32 %r1, %r2", &[300], 255),
            ("cvt.sat.s8.s32 %r1, %r2", &[300], 127),
            ("cvt.rn.f32.s32 %f1, %r1", &[M1], f(-1.0)),
            ("cvt.rn.f32.u32 %f1, %r1", &[M1], f(4_294_967_296.0)),
            ("cvt.f64.f32 %fd1, %f1", &[f(0.5)], 0.5_f64.to_bits()),
            ("cvt.rn.f32.f64 %f1, %fd1", &[0.5_f64.to_bits()], f(0.5)),
            ("cvt.rzi.s32.f32 %r1, %f1", &[f(-2.7)], 0xffff_fffe),
            ("cvt.rmi.s32.f32 %r1, %f1", &[f(-2.2)], 0xffff_fffd),
            ("cvt.rpi.s32.f32 %r1, %f1", &[f(2.2)], 3),
            ("cvt.rni.s32.f32 %r1, %f1", &[f(2.5)], 2),
            ("cvt.rzi.s32.f32 %r1, %f1", &[f(1e20)], 0x7fff_ffff),
            ("cvt.rzi.u32.f32 %r1, %f1", &[f(1e20)], M1),
            ("cvt.rzi.u32.f32 %r1, %f1", &[f(-5.0)], 0),
            ("cvt.rzi.s32.f32 %r1, %f1", &[f(f32::NAN)], 0),
            ("cvt.rmi.f32.f32 %f1, %f2", &[f(-0.5)], f(-1.0)),
            ("cvt.sat.f32.f32 %f1, %f2", &[f(7.0)], f(1.0)),
        ]);
    }

    #[test]
    fn moves_pack_and_unpack() {
        check(&[
            ("mov.b64 %rd1, {%r1, %r2}", &[0x1111_1111, 0x2222_2222], 0x2222_2222_1111_1111),
            ("mov.b32 %r1, {%rs1, %rs2}", &[0x1_aaaa, 0xbbbb], 0xbbbb_aaaa),
            ("mov.u32 %r1, %r2", &[0x1_0000_0007], 7),
            ("cvta.to.global.u64 %rd1, %rd2", &[M1_64], M1_64),
        ]);
        let parts = results("mov.b64 {%r1, %r2}, %rd1", &[Value::constant(0x2222_2222_1111_1111)]);
        assert_eq!(parts.iter().filter_map(Value::as_constant).collect::<Vec<_>>(), [0x1111_1111, 0x2222_2222]);
    }

    #[test]
    fn floating_point_is_that_of_its_width() {
        let f = |value: f32| u64::from(value.to_bits());
        check(&[
            ("add.f32 %f1, %f2, %f3", &[f(0.1), f(0.2)], f(0.1 + 0.2)),
            ("add.sat.f32 %f1, %f2, %f3", &[f(0.7), f(0.7)], f(1.0)),
            ("sub.f64 %fd1, %fd2, %fd3", &[1.5_f64.to_bits(), 0.5_f64.to_bits()], 1.0_f64.to_bits()),
            ("fma.rn.f32 %f1, %f2, %f3, %f4", &[f(2.0), f(3.0), f(1.0)], f(7.0)),
            ("mad.rn.f64 %fd1, %fd2, %fd3, %fd4", &[2.0_f64, 3.0, 1.0].map(f64::to_bits), 7.0_f64.to_bits()),
            ("neg.f32 %f1, %f2", &[f(2.0)], f(-2.0)),
            ("abs.f32 %f1, %f2", &[f(-2.0)], f(2.0)),
            ("min.f32 %f1, %f2, %f3", &[f(f32::NAN), f(2.0)], f(2.0)),
            ("sqrt.rn.f32 %f1, %f2", &[f(9.0)], f(3.0)),
            ("rcp.rn.f32 %f1, %f2", &[f(4.0)], f(0.25)),
            ("ex2.approx.f32 %f1, %f2", &[f(3.0)], f(8.0)),
        ]);
    }

    fn threads() -> Value {
        Value::of_threads(EXTENT, |thread| thread as u64)
    }

    /// What two lanes of the first warp and one of the second get.
    fn lanes(line: &str, by: u64, clamp: u64) -> [u64; 3] {
        let args = [threads(), Value::constant(by), Value::constant(clamp), Value::constant(M1)];
        let value = &results(line, &args)[0];
        [0, 21, 33].map(|thread| value.at(0, thread))
    }

    #[test]
    fn shuffles_read_the_lane_that_the_manual_says_within_their_segment() {
        assert_eq!(lanes("shfl.sync.up.b32 %r1|%p1, %r2, %r3, %r4, %r5", 1, 0), [0, 20, 32]);
        assert_eq!(lanes("shfl.sync.down.b32 %r1|%p1, %r2, %r3, %r4, %r5", 16, 31), [16, 21, 49]);
        assert_eq!(lanes("shfl.sync.bfly.b32 %r1|%p1, %r2, %r3, %r4, %r5", 16, 31), [16, 5, 49]);
        assert_eq!(lanes("shfl.sync.idx.b32 %r1|%p1, %r2, %r3, %r4, %r5", 5, 31), [5, 5, 37]);
        // Segments of eight lanes: `(32 - 8) << 8` and, but for `up`, 31.
        let eight = (32 - 8) << 8;
        assert_eq!(lanes("shfl.sync.up.b32 %r1|%p1, %r2, %r3, %r4, %r5", 6, eight), [0, 21, 33]);
        assert_eq!(lanes("shfl.sync.up.b32 %r1|%p1, %r2, %r3, %r4, %r5", 5, eight), [0, 16, 33]);
        assert_eq!(lanes("shfl.sync.down.b32 %r1|%p1, %r2, %r3, %r4, %r5", 2, eight | 31), [2, 23, 35]);
        assert_eq!(lanes("shfl.sync.down.b32 %r1|%p1, %r2, %r3, %r4, %r5", 3, eight | 31), [3, 21, 36]);
        assert_eq!(lanes("shfl.sync.idx.b32 %r1|%p1, %r2, %r3, %r4, %r5", 1, eight | 31), [1, 17, 33]);
    }

    #[test]
    fn a_shuffle_tells_whether_its_lane_is_in_the_segment() {
        let args = [threads(), Value::constant(16), Value::constant(31), Value::constant(M1)];
        let found = results("shfl.sync.down.b32 %r1|%p1, %r2, %r3, %r4, %r5", &args);
        assert_eq!([0, 15, 16, 31, 47, 48].map(|thread| found[1].at(0, thread)), [1, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn votes_and_matches_ask_the_lanes_of_a_warp() {
        let odd = threads().map(|thread| thread & 1);
        let late = threads().map(|thread| u64::from(thread >= 32));
        let vote = |mode: &str, value: &Value| {
            let found = &results(&format!("vote.sync.{mode} %r1, %p1, %r2"), &[value.clone(), Value::constant(M1)])[0];
            [found.at(0, 0), found.at(0, 63)]
        };
        assert_eq!(vote("ballot.b32", &odd), [0xaaaa_aaaa, 0xaaaa_aaaa]);
        assert_eq!(vote("ballot.b32", &late), [0, M1]);
        assert_eq!(vote("any.pred", &late), [0, 1]);
        assert_eq!(vote("all.pred", &odd), [0, 0]);
        assert_eq!(vote("all.pred", &late), [0, 1]);
        assert_eq!(vote("uni.pred", &late), [1, 1]);
        assert_eq!(vote("uni.pred", &odd), [0, 0]);
        let alike = &results("match.any.sync.b32 %r1, %r2, %r3", &[odd, Value::constant(M1)])[0];
        assert_eq!([0, 1, 63].map(|thread| alike.at(0, thread)), [0x5555_5555, 0xaaaa_aaaa, 0xaaaa_aaaa]);
    }

    #[test]
    fn what_is_not_known_is_equal_for_equal_operands_and_else_hardly_ever() {
        let found = &results("frobnicate.b32 %r1, %r2", &[threads().map(|thread| thread / 4)])[0];
        assert_eq!(found.at(0, 0), found.at(0, 3));
        assert_ne!(found.at(0, 3), found.at(0, 4));
        let other = &results("prmt.b32.f4e %r1, %r2, %r3, %r4", &[threads(), threads(), threads()])[0];
        assert_ne!(other.at(0, 1), other.at(0, 2));
    }
}
