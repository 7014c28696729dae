//! What the lanes of a warp tell each other: `shfl`, `vote`, `redux` and `match`.

use super::bits::{mask, signed};
use super::unknown;
use crate::lanes::value::{Extent, LANES, Span, Value};
use crate::parse::ptx::{Instruction, Logic, Type};

/// `shfl`: which lane is read, and whether it is one of the group (PTX ISA manual, "shfl.sync").
pub(super) fn shuffled(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
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
pub(in crate::lanes) fn is_whole_warp(clamp: u64) -> bool {
    clamp >> 8 & 31 == 0
}

pub(super) fn voted(one: &Instruction, args: &[Value], extent: Extent) -> Value {
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
pub(super) fn reduced(one: &Instruction, place: u16, args: &[Value], extent: Extent) -> Value {
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
pub(in crate::lanes) fn is_reduced(one: &Instruction) -> bool {
    one.logic != Logic::None && !one.kind.is_float() && one.kind != Type::Small
}

/// `match.any`: for each lane the lanes of its warp that have the same.
pub(super) fn matched(args: &[Value], extent: Extent) -> Value {
    let Some(value) = args.first() else { return Value::constant(0) };
    if value.span() != Span::Thread {
        return value.by_warp(extent, |_, lanes| u64::from(u32::MAX >> (LANES - lanes)));
    }
    value.exchange(&Value::constant(0), extent, |values, _, lane| {
        let own = values[lane];
        (0..).zip(values).filter(|(_, value)| **value == own).fold(0, |mask, (lane, _)| mask | 1 << lane)
    })
}

#[cfg(test)]
mod tests {
    use super::super::compute;
    use super::super::testing::{EXTENT, M1, results, threads};
    use crate::lanes::testing::with_code;
    use crate::lanes::value::{Extent, LANES, Value};

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
    fn lanes_that_name_others_vote_in_groups() {
        let third = Value::of_threads(EXTENT, |thread| u64::from(thread % LANES == 9));
        let groups = Value::of_threads(EXTENT, |thread| 0xff << ((thread % LANES) & 24));
        let any = &results("vote.sync.any.pred %p1, %p2, %r1", &[third.clone(), groups.clone()])[0];
        let ballot = &results("vote.sync.ballot.b32 %r1, %p2, %r2", &[third, groups])[0];
        let at = |value: &Value| [0, 8, 15, 16].map(|thread| value.at(0, thread));
        assert_eq!((at(any), at(ballot)), ([0, 1, 1, 0], [0, 0x200, 0x200, 0]));
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
}
