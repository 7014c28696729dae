//! Loops that are what is left of an unrolled one: its last turns, which are judged together with all others.

use super::branch::Branch;
use super::loss::IDLE;
use super::spread::Spread;
use super::verdict::{Advice, Verdict};
use crate::parse::ptx::Locations;

/// How many turns of the loop as it is written one of an unrolled loop has, at least.
const UNROLLED: f64 = 2.0;

/// Takes back what is said of a loop where the unrolled one of the same line, with which it is one loop of the source, runs so
/// long that the two lose few of their turns.
pub(super) fn settle(branches: &mut [Branch], locations: &[Option<Locations>]) {
    for at in 0..branches.len() {
        if !loses_little(branches, locations, at) {
            continue;
        }
        if let Some(judgement) = branches[at].judgement.as_mut() {
            judgement.advice = Advice::Silent;
            judgement.reason = "it is what is left of an unrolled loop, which loses few of its turns";
        }
    }
}

/// Whether lanes leave a loop apart that is what is left of one that runs much longer.
fn loses_little(branches: &[Branch], locations: &[Option<Locations>], at: usize) -> bool {
    let rest = &branches[at];
    let Some((spread, place)) = loud(rest).zip(locations.get(at).copied().flatten()) else { return false };
    let mut all = branches.iter().zip(locations).filter(|(other, there)| {
        let is_unrolled = other.is_loop && other.body >= UNROLLED * rest.body;
        is_unrolled && there.is_some_and(|there| is_one_line(&place, &there))
    });
    all.any(|(other, _)| {
        other.spread.is_some_and(|whole| idle_together(&[(spread, rest.body), (whole, other.body)]) < IDLE)
    })
}

/// How far apart lanes leave a loop of which something is said.
fn loud(branch: &Branch) -> Option<Spread> {
    let judgement = branch.judgement?;
    let is_told = judgement.advice > Advice::Silent && judgement.verdict == Verdict::DivergentIndex;
    branch.spread.filter(|_| is_told && branch.is_loop && branch.ways == 2)
}

fn is_one_line(one: &Locations, other: &Locations) -> bool {
    let line = |place: &Locations| [place.inner, place.outer].map(|spot| (spot.file, spot.line));
    line(one) == line(other)
}

/// The share of instructions that lanes idle for in loops that follow one another, each with the weight of a turn.
fn idle_together(loops: &[(Spread, f64)]) -> f64 {
    let sum = |of: &dyn Fn(&Spread) -> f64| loops.iter().map(|(spread, body)| of(spread) * body).sum::<f64>();
    let paid = sum(&|spread| spread.paid);
    if paid > 0.0 { sum(&Spread::behind) / paid } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged};
    use super::*;
    use crate::parse::ptx::Spot;

    /// `for (k = 0; k < first + t; k++) …` in steps of four, and the up to three turns that are left, which stand in `lines`.
    fn told(first: u32, lines: [u32; 2]) -> Vec<Advice> {
        let turn = "cos.approx.f32 %f1, %f1; ".repeat(20);
        let text = format!(
            "mov.u32 %r1, %tid.x; add.s32 %r2, %r1, {first}; shr.u32 %r3, %r2, 2; and.b32 %r4, %r2, 3;
            L: {turn}{turn}{turn}{turn} add.s32 %r3, %r3, -1; setp.ne.s32 %p1, %r3, 0; @%p1 bra L;
            setp.eq.s32 %p2, %r4, 0; @%p2 bra END;
            M: {turn} add.s32 %r4, %r4, -1; setp.ne.s32 %p3, %r4, 0; @%p3 bra M; END: ret;"
        );
        let mut branches = judged(SHAPE, &text);
        let spot = |line: u32| Spot { file: 1, line, column: 0 };
        let place = |line: u32| Some(Locations { inner: spot(line), outer: spot(line), inlined: None });
        settle(&mut branches, &[place(lines[0]), place(lines[1]), place(lines[1])]);
        branches.iter().map(|branch| branch.judgement.map_or(Advice::Silent, |one| one.advice)).collect()
    }

    #[test]
    fn what_is_left_of_a_long_loop_is_judged_with_it() {
        assert_eq!(told(4000, [7, 7])[2], Advice::Silent);
        // Of another line it is a loop of its own.
        assert_eq!(told(4000, [7, 8])[2], Advice::Warn);
        // A short one has little that makes up for it.
        assert_eq!(told(4, [7, 7])[2], Advice::Warn);
    }
}
