//! Arithmetic of floating-point numbers.

use super::bits::{f32_of, of_f32};
use super::convert::limited;
use super::unknown;
use crate::lanes::value::{Extent, Value};
use crate::parse::ptx::{Instruction, Op, Type};

pub(super) fn floating(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
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

#[cfg(test)]
mod tests {
    use super::super::testing::check;

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
}
