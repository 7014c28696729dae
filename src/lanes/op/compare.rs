//! Comparisons of numbers: `setp` and `set`.

use super::bits::{f32_of, mask, signed};
use super::unknown;
use crate::lanes::sample::mix;
use crate::lanes::value::{Extent, Span, Value};
use crate::parse::ptx::{Cond, Instruction, Logic, Op, Type};

/// The predicate that `setp` writes; its second destination is the opposite.
pub(super) fn compared(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
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
/// of a comparison. `None` where it does, or equality is asked for, which nothing wraps
/// around, or where no number was drawn.
pub(in crate::lanes) fn distance(cond: Cond, a: &Value, b: &Value, bits: u32, extent: Extent) -> Option<Value> {
    let orders = !matches!(cond, Cond::Eq | Cond::Equ | Cond::Ne | Cond::Neu | Cond::Num | Cond::Nan);
    // Of what the index alone decides it is known where it wraps around.
    let is_known = a.rows() == 1 && b.rows() == 1;
    if !orders || is_known || a.span() != Span::Thread || b.span() != Span::Thread {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{M1, check, results};
    use crate::lanes::value::Value;

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
}
