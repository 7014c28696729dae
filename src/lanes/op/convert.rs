//! Conversions from one type of number to another: `cvt`, what a register holds of a number, and where numbers end.

use super::bits::{f32_of, mask, of_f32, signed};
use crate::lanes::value::Value;
use crate::parse::ptx::{Instruction, Type};

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "conversions, as the GPU does them")]
pub(super) fn converted(one: &Instruction, arg: &Value) -> Value {
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
pub(super) fn saturated(to: Type, value: i128) -> i128 {
    let bits = to.width().clamp(1, 64);
    if to.is_signed() {
        value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        value.clamp(0, (1 << bits) - 1)
    }
}

/// The low bits of a number; in a register that has more, a sign goes on.
#[allow(clippy::cast_possible_truncation, reason = "the part that a register holds")]
pub(super) fn held(to: Type, value: i128) -> u64 {
    let bits = to.width();
    let low = value.cast_unsigned() as u64 & mask(bits);
    if to.is_signed() { signed(low, bits).cast_unsigned() & mask(bits.max(32)) } else { low }
}

/// What a register holds that a value of the type is written to.
pub(in crate::lanes) fn loaded(kind: Type, value: Value) -> Value {
    let (bits, low) = (kind.width(), mask(kind.width()));
    match bits {
        64.. => value,
        ..32 if kind.is_signed() => value.map(|value| signed(value, bits).cast_unsigned() & mask(32)),
        _ => value.map(|value| value & low),
    }
}

/// With `.sat` a floating-point number ends at 0 and 1.
pub(super) fn limited(one: &Instruction, value: f64) -> f64 {
    match one.mods.is_saturating() {
        true if value.is_nan() => 0.0,
        true => value.clamp(0.0, 1.0),
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{M1, M1_64, check};

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
}
