//! The turns of a loop, counted without being run: where every variable moves by a constant.

use hashbrown::HashMap;

use super::eval::{Evaluator, Found};
use super::exits::Exit;
use super::graph::{Node, Source};
use super::steps::is_nowhere;
use super::value::Value;
use crate::parse::ptx::{Cond, Op};

/// Turns that are counted at most, where every variable of the loop moves by a constant; a lane that takes so many never
/// leaves.
const COUNTED: u64 = 1 << 21;

/// Turns that are looked at, to see whether what holds of two of them, or of the last, holds of those between.
const PROBED: [u64; 5] = [2, 3, 7, 30, 1001];

/// When lanes leave a loop.
pub(super) struct Turns {
    /// The turn that each lane leaves in, from 0.
    pub(super) at: Value,
    /// The turns that it has run by then.
    pub(super) run: Value,
    /// The lanes that leave at the exit that is asked about.
    pub(super) own: Value,
    /// Lanes were followed no further, and some had not left.
    pub(super) is_cut: bool,
}

impl Evaluator<'_, '_, '_> {
    /// When lanes leave at the first of several exits, each of which is counted by itself.
    pub(super) fn first_of(
        &mut self,
        one: u32,
        exits: &[Exit],
        moving: &Moving<'_>,
        enters: &Value,
    ) -> Found<Option<Turns>> {
        let mut turns: Option<Turns> = None;
        for exit in exits {
            let Some(at) = self.leaving_turn(one, *exit, moving, enters)? else { return Ok(None) };
            let run = at.map(|at| at + u64::from(exit.ends_turn));
            let own = Value::constant(u64::from(exit.is_own));
            turns = Some(match turns {
                None => Turns { at, run, own, is_cut: false },
                Some(before) => {
                    let is_earlier = at.zip(&before.at, |at, before| u64::from(at < before));
                    Turns {
                        run: is_earlier.choose(&run, &before.run, self.extent),
                        own: is_earlier.choose(&own, &before.own, self.extent),
                        at: is_earlier.choose(&at, &before.at, self.extent),
                        is_cut: false,
                    }
                }
            });
        }
        // A loop that many lanes never leave is not understood.
        let is_told = |turns: &Turns| self.share_of(&never(&turns.at, enters)) <= 0.5;
        Ok(turns.filter(is_told))
    }

    /// Share of all threads for which a value is not 0.
    fn share_of(&self, value: &Value) -> f64 {
        let (mut some, mut all) = (0_usize, 0_usize);
        for environment in 0..self.extent.environments.len() {
            let row = value.row(environment);
            some += row.iter().filter(|one| **one != 0).count() * (self.extent.threads / row.len().max(1));
            all += self.extent.threads;
        }
        #[allow(clippy::cast_precision_loss, reason = "there are 26 environments, and 1024 threads")]
        let share = some as f64 / all.max(1) as f64;
        share
    }

    /// The turn in which each lane leaves at an exit if it leaves at no other, from 0; [`COUNTED`] for none. `None` where it
    /// cannot be counted.
    pub(super) fn leaving_turn(
        &mut self,
        one: u32,
        exit: Exit,
        moving: &Moving<'_>,
        enters: &Value,
    ) -> Found<Option<Value>> {
        if !exit.is_always {
            return Ok(None);
        }
        match self.solved(one, exit, moving, enters)? {
            None => self.bisected(one, exit, moving),
            turn => Ok(turn),
        }
    }

    /// The turn in which two numbers become equal that a constant moves towards each other, where lanes leave once they are.
    /// `None` where that is not so.
    fn solved(&mut self, one: u32, exit: Exit, moving: &Moving<'_>, enters: &Value) -> Found<Option<Value>> {
        let Some((a, b, bits)) = self.left_once_equal(exit) else { return Ok(None) };
        let mut apart = |now: HashMap<Node, Value>| {
            self.within(one, now, |this| {
                let (a, b) = (this.value(a, exit.block)?, this.value(b, exit.block)?);
                Ok(a.zip(&b, u64::wrapping_sub))
            })
        };
        let (first, second) = (apart(moving.start.clone())?, apart(moving.after(&Value::constant(1)))?);
        let whole = |value: u64| (value << (64 - bits)).cast_signed() >> (64 - bits);
        let step = first.zip(&second, |first, second| second.wrapping_sub(first));
        for turn in PROBED {
            let there = apart(moving.after(&Value::constant(turn)))?;
            let expected = first.zip(&step, |first, step| first.wrapping_add(step.wrapping_mul(turn)));
            if !is_nowhere(&expected.zip(&there, |a, b| u64::from(whole(a) != whole(b)))) {
                return Ok(None);
            }
        }
        let count = first.zip(&second, |first, second| {
            let (way, step) = (whole(first.wrapping_neg()), whole(second.wrapping_sub(first)));
            match way.checked_div(step) {
                Some(count) if count >= 0 && count.wrapping_mul(step) == way => count.cast_unsigned().min(COUNTED),
                None if way == 0 => 0,
                _ => COUNTED,
            }
        });
        // The test may stand behind the step: then it is one turn fewer, for all lanes alike. Lanes that do not enter run
        // none.
        Ok(Some(count.zip(enters, u64::wrapping_mul)))
    }

    /// The two integers whose equality lets lanes leave at an exit, and their bits.
    fn left_once_equal(&self, exit: Exit) -> Option<(Node, Node, u32)> {
        let decision = self.decisions[exit.block as usize]?;
        let Source::Result { instruction, place: 0 } = self.graph.source(decision.node) else { return None };
        let test = &self.graph.code().instructions[instruction as usize];
        let [a, b] = *self.graph.inputs(decision.node) else { return None };
        let is_equality = test.op == Op::Setp && matches!(test.cond, Cond::Eq | Cond::Ne) && !test.kind.is_float();
        let is_taken_once_equal = (test.cond == Cond::Eq) != decision.negated;
        let stays_if_taken = self.graph.cfg().successors(exit.block).first() == Some(&exit.inside);
        let leaves = is_taken_once_equal != stays_if_taken;
        (is_equality && leaves).then(|| (a, b, test.kind.width().clamp(1, 64)))
    }

    /// The same by bisection: every variable moves by a constant.
    fn bisected(&mut self, one: u32, exit: Exit, moving: &Moving<'_>) -> Found<Option<Value>> {
        let mut low = Value::constant(0);
        let mut high = Value::constant(COUNTED);
        for _ in 0..=COUNTED.ilog2() {
            let middle = low.zip(&high, u64::midpoint);
            let staying = self.staying_at(one, exit, &moving.after(&middle))?;
            let one_more = middle.zip(&high, |middle, high| (middle + 1).min(high));
            low = staying.choose(&one_more, &low, self.extent);
            high = staying.choose(&high, &middle, self.extent);
            self.spend(low.size() + high.size())?;
        }
        // The test has to stay true up to there, or the count means nothing.
        let parts = [3, 6, 9].map(|part| low.map(|low| low * part / 10));
        for count in parts.into_iter().chain(PROBED.map(Value::constant)) {
            let staying = self.staying_at(one, exit, &moving.after(&count))?;
            let before = count.zip(&low, |count, low| u64::from(count < low));
            let wrong = before.zip(&staying, |before, staying| before & (1 - staying));
            if !is_nowhere(&wrong) {
                return Ok(None);
            }
        }
        Ok(Some(low))
    }
}

/// The lanes that enter a loop and never leave it.
pub(super) fn never(turn: &Value, enters: &Value) -> Value {
    turn.zip(enters, |turn, enters| u64::from(turn >= COUNTED) & enters)
}

/// Variables of a loop, each of which moves by as much in every turn.
pub(super) struct Moving<'m> {
    pub(super) start: &'m HashMap<Node, Value>,
    pub(super) moves: &'m HashMap<Node, Value>,
}

impl Moving<'_> {
    /// Where they are after `count` turns.
    pub(super) fn after(&self, count: &Value) -> HashMap<Node, Value> {
        let after = |(node, before): (&Node, &Value)| {
            let way = self.moves[node].zip(count, u64::wrapping_mul);
            let low = narrowest(&[before]);
            (*node, before.zip(&way, |before, way| before.wrapping_add(way) & low))
        };
        self.start.iter().map(after).collect()
    }
}

/// By how much each variable moves in an iteration, where that does not change.
pub(super) fn constant_moves(
    start: &HashMap<Node, Value>,
    first: &HashMap<Node, Value>,
    second: &HashMap<Node, Value>,
) -> Option<HashMap<Node, Value>> {
    let mut moves = HashMap::new();
    for (node, before) in start {
        let low = narrowest(&[before, first.get(node)?, second.get(node)?]);
        let apart = |after: &Value, before: &Value| after.zip(before, |after, before| after.wrapping_sub(before) & low);
        let one = apart(first.get(node)?, before);
        let two = apart(second.get(node)?, first.get(node)?);
        if !is_nowhere(&one.zip(&two, |one, two| one ^ two)) {
            return None;
        }
        moves.insert(*node, one);
    }
    Some(moves)
}

/// The bits of registers that hold these values.
fn narrowest(values: &[&Value]) -> u64 {
    let fits = |value: &&Value| (0..value.rows()).all(|at| value.row(at).iter().all(|bits| *bits <= 0xffff_ffff));
    if values.iter().all(fits) { 0xffff_ffff } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::super::spread::testing::{spread_at, spread_of_count};
    use super::super::testing::{SHAPE, judged};
    use super::super::verdict::Advice;

    #[test]
    fn a_long_loop_is_counted_without_being_run() {
        let found = spread_of_count("mov.u32 %r4, %r3;", "10000", "1");
        assert!((found.share - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.trips.0 - 9999.0).abs() <= 1.0 && found.idle < 0.01, "{found:?}");
    }

    #[test]
    fn numbers_that_do_not_near_each_other_by_a_constant_are_followed() {
        // `for (z = t & 15; (z < 3) & 31; z++)`: lanes 0 to 2 of each half run 3, 2 and 1 turns.
        let text = "mov.u32 %r2, %tid.x; and.b32 %r4, %r2, 15; setp.ge.s32 %p1, %r4, 3; @%p1 bra END;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, 3; selp.b32 %r5, 1, 0, %p2;
            and.b32 %r6, %r5, 31; setp.ne.s32 %p3, %r6, 0; @%p3 bra L; END: ret;";
        let found = spread_at(SHAPE, text, 1).expect("a spread");
        assert!((found.trips.0 - 3.0).abs() < 1e-9 && (found.trips.1 - 12.0 / 32.0).abs() < 1e-9, "{found:?}");
        assert!((found.idle - 0.875).abs() < 1e-9, "{found:?}");
        // `do … while (++z & 4)`, from 3 to 6: 5 to 2 turns.
        let text = "mov.u32 %r2, %tid.x; and.b32 %r4, %r2, 3; add.s32 %r4, %r4, 3;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; and.b32 %r6, %r4, 4; setp.ne.s32 %p3, %r6, 0; @%p3 bra L; ret;";
        let found = spread_at(SHAPE, text, 0).expect("a spread");
        assert!((found.trips.0 - 5.0).abs() < 1e-9 && (found.trips.1 - 3.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_loop_down_to_zero_leaves_out_the_lane_that_does_not_come_in() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r4, %r2, 31; setp.eq.s32 %p2, %r4, 0; @%p2 bra END;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, -1; setp.ne.s32 %p1, %r4, 0; @%p1 bra L; END: ret;";
        let found = judged(SHAPE, text)[1].spread.expect("a spread");
        assert!((found.trips.0 - 31.0).abs() < 1e-9 && (found.trips.1 - 15.5).abs() < 1e-9, "{found:?}");
        assert!(found.is_fixed && !found.differs, "{found:?}");
    }

    #[test]
    fn a_loop_that_goes_on_while_two_numbers_are_equal_is_left_at_the_first_turn_that_parts_them() {
        let found = spread_of_count("mov.u32 %r4, 0; mov.u32 %r5, %r3;", "%r5", "1");
        let equal = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mov.u32 %r4, -1;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.eq.s32 %p1, %r4, %r3; @%p1 bra L; ret;";
        let while_equal = spread_at(SHAPE, equal, 0).expect("a spread");
        assert!(while_equal.trips.0 <= 2.0 && found.trips.0 > 30.0, "{while_equal:?} {found:?}");
    }

    #[test]
    fn the_counter_of_a_loop_that_was_left_is_what_it_was_counted_to() {
        // `while (t < n) { t += 256; count++; }`, and a loop of as many turns.
        let text =
            "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r5, 0; setp.ge.s32 %p1, %r2, %r1; @%p1 bra END;
            L: neg.s32 %r9, %r9; add.s32 %r5, %r5, 1; add.s32 %r2, %r2, 256; setp.lt.s32 %p2, %r2, %r1; @%p2 bra L;
            mov.u32 %r6, 0;
            M: neg.s32 %r8, %r8; add.s32 %r6, %r6, 1; setp.lt.s32 %p3, %r6, %r5; @%p3 bra M; END: ret;";
        let branches = judged(SHAPE, text);
        let found = branches[2].spread.expect("a spread");
        assert!(found.share == 0.0 && found.idle < 0.1, "{found:?}");
        assert!(branches[2].judgement.is_some_and(|one| one.advice == Advice::Silent), "{branches:?}");
        assert!(!branches[2].split.guessed, "{branches:?}");
    }
}
