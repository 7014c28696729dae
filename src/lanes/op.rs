//! Level 2: what one instruction computes, for all threads at once. Bits in, bits out, as the PTX manual says; what is not
//! known is a hash of its operands, so that equal operands stay equal.

mod bits;
mod compare;
mod convert;
mod exchange;
mod float;
mod integer;
#[cfg(test)]
mod testing;

use self::bits::{mask, of_f32};
use self::compare::compared;
use self::convert::converted;
use self::exchange::{matched, reduced, shuffled, voted};
use self::float::floating;
use self::integer::integer;
use super::sample::mix;
use super::value::{Extent, LANES, Span, Value};
use crate::parse::ptx::{Instruction, Op, Type};

pub(super) use self::bits::signed;
pub(super) use self::compare::distance;
pub(super) use self::convert::loaded;
pub(super) use self::exchange::{is_reduced, is_whole_warp};

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

#[cfg(test)]
mod tests {
    use super::testing::{M1, M1_64, check, results, threads};
    use crate::lanes::value::Value;

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
    fn what_is_not_known_is_equal_for_equal_operands_and_else_hardly_ever() {
        let found = &results("frobnicate.b32 %r1, %r2", &[threads().map(|thread| thread / 4)])[0];
        assert_eq!(found.at(0, 0), found.at(0, 3));
        assert_ne!(found.at(0, 3), found.at(0, 4));
        let other = &results("prmt.b32.f4e %r1, %r2, %r3, %r4", &[threads(), threads(), threads()])[0];
        assert_ne!(other.at(0, 1), other.at(0, 2));
    }
}
