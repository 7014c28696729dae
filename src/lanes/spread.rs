//! How far apart the lanes of a warp leave a loop, counted over all environments.

use super::cfg::Block;
use super::eval::{Evaluator, Found};
use super::exits::Entry;
use super::steps::is_nowhere;
use super::value::{LANES, Value};

/// Turns of one thread that a person waits for.
const REALISTIC: f64 = 16384.0;

/// How far apart the lanes of a warp leave a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Share of warps whose lanes leave two or more iterations apart.
    pub share: f64,
    /// Share of the turns of the warps' lanes in which a lane has left already, or never came in: the mean of all
    /// environments. Lanes that an incomplete warp lacks have no turns.
    pub idle: f64,
    /// Mean iterations of the longest lane of a warp, and of a lane.
    pub trips: (f64, f64),
    /// Mean iterations of the warp that a lane is in, whether the lane runs them or not.
    pub paid: f64,
    /// Share of environments in which the block's threads leave at different iterations.
    pub parts: f64,
    /// Share of environments in which some warp comes to the loop, and may run it so often.
    pub reached: f64,
    /// Never more than one of several warps has lanes that leave so far apart.
    pub lone: bool,
    /// The iterations are the same in all environments, and no means of numbers that were tried.
    pub is_fixed: bool,
    /// The longest lanes of warps run different numbers of iterations.
    pub differs: bool,
    /// Lanes were still in the loop when they were followed no further: the iterations are more than are told.
    pub is_cut: bool,
}

impl Spread {
    /// Iterations by which a lane's warp stays longer than the mean lane.
    #[must_use]
    pub fn behind(&self) -> f64 {
        self.paid - self.trips.1
    }

    /// Instructions that a lane's warp issues without it, where a turn has so many.
    #[must_use]
    pub fn loss(&self, body: f64) -> f64 {
        self.behind() * body
    }

    /// Share of all turns that are idle, whatever number they were tried with: long loops count for more than in the mean.
    #[must_use]
    pub fn idle_of_all(&self) -> f64 {
        if self.paid > 0.0 { self.behind() / self.paid } else { 0.0 }
    }
}

/// What the warps of a block do at a loop, in one environment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Seen {
    /// Warps that enter it, and those of them whose lanes leave apart.
    warps: f64,
    split: f64,
    /// Their lanes that come to it.
    lanes: f64,
    /// The turns of the longest lanes, of the warps in which the lanes are, and of the lanes.
    longest: f64,
    paid: f64,
    run: f64,
    /// Threads leave in different turns.
    parts: bool,
    /// The longest lanes of warps run different numbers of turns.
    differs: bool,
}

impl Seen {
    /// Mean turns of a warp.
    fn turns(&self) -> f64 {
        self.longest / self.warps
    }

    fn idle(&self) -> f64 {
        if self.paid > 0.0 { 1.0 - self.run / self.paid } else { 0.0 }
    }
}

impl Evaluator<'_, '_, '_> {
    /// How far apart lanes leave `one` through the branch of `block`; nothing where that cannot be told, or none leave there.
    ///
    /// # Errors
    /// When that is more than can be followed.
    pub fn spread(&mut self, one: u32, block: Block) -> Found<Option<Spread>> {
        let Some((turns, is_whole)) = self.turns(one, block)? else { return Ok(None) };
        let Entry { comes, enters, is_assumed } = self.entry(one)?;
        if is_nowhere(&turns.own.zip(&enters, |own, enters| own & enters)) {
            return Ok(None);
        }
        let environments = 0..self.extent.environments.len();
        let seen = environments.filter_map(|environment| self.seen(environment, &turns.run, &comes, &enters));
        let seen: Vec<Seen> = seen.collect();
        Ok(self.spread_of(&seen, turns.is_cut, is_whole, is_assumed))
    }

    /// What the warps do in one environment; `None` where none of them enters the loop.
    fn seen(&self, environment: usize, run: &Value, comes: &Value, enters: &Value) -> Option<Seen> {
        let mut seen = Seen::default();
        let (mut shortest, mut furthest) = (u64::MAX, 0);
        let mut first = None;
        for warp in 0..self.extent.warps() {
            let threads = warp * LANES..((warp + 1) * LANES).min(self.extent.threads);
            let inside = threads.clone().filter(|thread| enters.at(environment, *thread) != 0);
            let inside: Vec<u64> = inside.map(|thread| run.at(environment, thread)).collect();
            let (Some(most), Some(least)) = (inside.iter().max(), inside.iter().min()) else { continue };
            let lanes = threads.filter(|thread| comes.at(environment, *thread) != 0).count().max(inside.len());
            (shortest, furthest) = (shortest.min(*least), furthest.max(*most));
            seen.differs |= *first.get_or_insert(*most) != *most;
            seen.split += if most - least >= 2 { 1.0 } else { 0.0 };
            #[allow(clippy::cast_precision_loss, reason = "turns are counted to two millions")]
            let (most, lanes, run) = (*most as f64, lanes as f64, inside.iter().sum::<u64>() as f64);
            seen.warps += 1.0;
            seen.lanes += lanes;
            seen.longest += most;
            seen.paid += most * lanes;
            seen.run += run;
        }
        seen.parts = shortest < furthest;
        (seen.warps > 0.0).then_some(seen)
    }

    /// The mean of all environments that a kernel is run in.
    fn spread_of(&self, seen: &[Seen], is_cut: bool, is_whole: bool, is_assumed: bool) -> Option<Spread> {
        let first = seen.first()?;
        let is_same = seen.iter().all(|one| (one.longest, one.run) == (first.longest, first.run));
        // No thread runs so many turns: with such numbers the kernel is not launched. Where they are all that there is to
        // it, it is.
        let is_real = |one: &&Seen| (is_same && !is_cut) || one.turns() <= REALISTIC;
        let real: Vec<&Seen> = seen.iter().filter(is_real).collect();
        #[allow(clippy::cast_precision_loss, reason = "there are 26 environments")]
        let (count, environments) = (real.len() as f64, self.extent.environments.len().max(1) as f64);
        let mean = |f: fn(&Seen) -> f64| real.iter().map(|one| f(one)).sum::<f64>() / count.max(1.0);
        let most_split = real.iter().map(|one| one.split).fold(0.0, f64::max);
        (count > 0.0).then(|| Spread {
            share: mean(|one| one.split / one.warps),
            idle: mean(Seen::idle),
            trips: (mean(Seen::turns), mean(|one| one.run / one.lanes)),
            paid: mean(|one| one.paid / one.lanes),
            parts: mean(|one| if one.parts { 1.0 } else { 0.0 }),
            reached: if is_assumed { 0.0 } else { count / environments },
            lone: most_split <= 1.0 && self.extent.warps() > 1,
            is_fixed: is_same && is_whole && !is_cut,
            differs: seen.iter().any(|one| one.differs),
            is_cut,
        })
    }
}

/// What other tests take as well.
#[cfg(test)]
pub(super) mod testing {
    use super::super::Shape;
    use super::super::testing::{SHAPE, judged};
    use super::*;

    /// How far apart lanes leave the loop `for (i = start; i < end; i += step)`.
    pub(in crate::lanes) fn spread_of_count(before: &str, end: &str, step: &str) -> Spread {
        let text = format!(
            "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; {before}
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, {step}; setp.lt.s32 %p1, %r4, {end}; @%p1 bra L; ret;"
        );
        judged(SHAPE, &text)[0].spread.expect("a spread")
    }

    /// What is told of the loop that the branch number `at` leaves.
    pub(in crate::lanes) fn spread_at(shape: Shape, text: &str, at: usize) -> Option<Spread> {
        judged(shape, text)[at].spread
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::testing::{SHAPE, judged};
    use super::super::verdict::Advice;
    use super::testing::{spread_at, spread_of_count};

    #[test]
    fn lanes_that_count_to_their_number_leave_one_by_one() {
        let found = spread_of_count("mov.u32 %r4, 0; add.s32 %r5, %r3, 1;", "%r5", "1");
        assert!((found.share - 1.0).abs() < 1e-9, "{found:?}");
        // Lane l runs l + 1 times: 1 to 32, 16.5 in the mean.
        assert!((found.idle - 15.5 / 32.0).abs() < 1e-9 && (found.trips.0 - 32.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn lanes_that_start_apart_by_less_than_a_step_leave_together() {
        let found = spread_of_count("mov.u32 %r4, %r2;", "1000", "256");
        assert!(found.share == 0.0 && found.idle < 0.1, "{found:?}");
    }

    #[test]
    fn lanes_that_never_come_in_are_idle_all_the_while() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; setp.gt.u32 %p2, %r3, 7; @%p2 bra END; mov.u32 %r4, 0;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.le.s32 %p1, %r4, %r3; @%p1 bra L; END: ret;";
        let found = judged(SHAPE, text)[1].spread.expect("a spread");
        // Lane l of the first eight runs l + 1 times.
        assert!((found.trips.0 - 8.0).abs() < 1e-9 && (found.trips.1 - 36.0 / 32.0).abs() < 1e-9, "{found:?}");
        assert!((found.idle - (1.0 - 36.0 / 256.0)).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_loop_of_a_constant_number_of_turns_has_no_spread_to_speak_of() {
        let branches =
            judged(SHAPE, "mov.u32 %r4, 0; L: add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, 9; @%p1 bra L; ret;");
        assert!(branches[0].is_loop && branches[0].spread.is_none_or(|spread| spread.share == 0.0));
    }

    #[test]
    fn an_incomplete_warp_counts_for_as_many_lanes_as_it_has() {
        let text = "mov.u32 %r2, %tid.x; mov.u32 %r4, 0;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.le.s32 %p1, %r4, %r2; @%p1 bra L; ret;";
        let found = spread_at(Shape { x: 48, ..SHAPE }, text, 0).expect("a spread");
        // Threads run one turn more than their number, in 32 lanes for 32 turns, and in 16 for 48.
        assert!((found.trips.0 - 40.0).abs() < 1e-9 && (found.trips.1 - 24.5).abs() < 1e-9, "{found:?}");
        assert!((found.idle - (1.0 - 1176.0 / 1792.0)).abs() < 1e-9, "{found:?}");
        assert!((found.behind() - (1792.0 - 1176.0) / 48.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_long_loop_that_hangs_on_no_number_is_told_as_it_is() {
        let found = spread_of_count("mul.lo.s32 %r4, %r2, 1000;", "1000000", "1");
        assert!(found.share > 0.99 && found.is_fixed && found.trips.0 > 7e5, "{found:?}");
        assert!((0.01..0.02).contains(&found.idle), "{found:?}");
    }

    #[test]
    fn the_guard_of_a_loop_of_a_turn_or_two_costs_no_more_than_these() {
        // What is left of an unrolled loop in steps of a warp up to a number that is known at run time.
        let left_over = |turns: &str| {
            let text = format!(
                "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; sub.s32 %r4, %r1, %r3; shr.u32 %r5, %r4, 5;
                and.b32 %r8, %r5, {turns}; setp.eq.s32 %p1, %r8, 0; @%p1 bra END; neg.s32 %r7, %r8;
                L: cos.approx.f32 %f1, %f1; cos.approx.f32 %f1, %f1; cos.approx.f32 %f1, %f1;
                add.s32 %r7, %r7, 1; setp.eq.s32 %p2, %r7, 0; @%p2 bra END; bra.uni L; END: ret;"
            );
            judged(SHAPE, &text)[0].judgement.map(|one| one.advice)
        };
        assert_eq!(left_over("1"), Some(Advice::Silent));
        assert_eq!(left_over("3"), Some(Advice::Silent));
    }
}
