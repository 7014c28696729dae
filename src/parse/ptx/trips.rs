//! How many turns a loop takes, where constants alone decide it.

use std::ops::RangeInclusive;

use super::instruction::{Code, Cond, Instruction, Type};
use super::opcode::Op;
use super::operand::{Operand, Reg};
use super::weight::TRIPS;
use crate::model::{Jump, Way};

/// Turns that are counted at most: of a longer loop no more is known than that it is long.
const MOST: i64 = 4096;

/// Counts the turns of the loops of one function.
pub struct Trips<'a, 't> {
    code: &'a Code<'t>,
    writers: Writers,
}

impl<'a, 't> Trips<'a, 't> {
    /// Of the loops of `code`.
    #[must_use]
    pub fn new(code: &'a Code<'t>) -> Trips<'a, 't> {
        Trips { code, writers: Writers::of(code) }
    }

    /// The turns of the loop from instruction `to` to the one at `at` that jumps back there, or [`TRIPS`] where more than
    /// constants decide it.
    #[must_use]
    pub fn of(&self, to: u32, at: u32) -> f64 {
        self.turns(to, at).map_or(TRIPS, f64::from)
    }

    /// The same of a loop with one exit, at which a counter is compared with a constant that begins with another and moves by
    /// a third in each turn.
    fn turns(&self, to: u32, at: u32) -> Option<u32> {
        let jumps = &self.code.flow.jumps;
        let (first, past) = (jumps.partition_point(|jump| jump.at < to), jumps.partition_point(|jump| jump.at <= at));
        // What jumps back may stand before where it leads to, as code is laid out.
        let inside = jumps.get(first..past)?;
        let (exit, stays_if_taken) = self.exit(inside, to, at)?;
        let guard = self.instruction(exit)?.guard?;
        let test_at = self.writers.only(guard.register).filter(|test| (to..=exit).contains(test))?;
        let test = self.instruction(test_at)?;
        let (counter, bound) = self.compared(test)?;
        let [a, b] = self.writers.both(counter)?;
        let is_inside = |one: u32| (to..=at).contains(&one);
        let (start_at, step_at) = if is_inside(a) { (b, a) } else { (a, b) };
        // What begins outside is all that there is, so every way into the loop comes from there.
        if is_inside(start_at)
            || !is_inside(step_at)
            || !is_in_every_turn(inside, step_at)
            || !is_in_every_turn(inside, exit)
        {
            return None;
        }
        let (start, step) = (self.constant(start_at)?, self.step(to..=at, step_at, counter)?);
        // Whether the comparison holds where it goes on.
        let stays = stays_if_taken != guard.negated;
        let first = i64::from(step_at < test_at);
        let left = |turn: i64| Some(holds(test, start.checked_add(step.checked_mul(turn)?)?, bound)? != stays);
        let turn = (first..MOST).find(|turn| left(*turn).unwrap_or(true))?;
        left(turn)?;
        u32::try_from(turn).ok()
    }

    /// The only branch that a loop is left at, and whether it goes on where that is taken.
    fn exit(&self, inside: &[Jump], to: u32, at: u32) -> Option<(u32, bool)> {
        let mut leaving = None;
        let mut back = None;
        for jump in inside {
            let target = match jump.way {
                Way::To(target) => target,
                // Nothing is known of these.
                Way::Out | Way::Table(_) => return None,
            };
            if target == to && back.replace(jump).is_some() {
                return None;
            }
            if !(to..=at).contains(&target) && leaving.replace(jump).is_some() {
                return None;
            }
        }
        let back = back.filter(|jump| jump.at == at)?;
        match (back.guarded, leaving) {
            (true, None) => Some((at, true)),
            (false, Some(jump)) if jump.guarded => Some((jump.at, false)),
            _ => None,
        }
    }

    fn instruction(&self, at: u32) -> Option<&Instruction> {
        self.code.instructions.get(at as usize)
    }

    /// The counter and the constant of a comparison.
    fn compared(&self, test: &Instruction) -> Option<(Reg, i64)> {
        let is_plain = test.op == Op::Setp && !test.kind.is_float() && test.guard.is_none();
        match self.code.sources(test) {
            [Operand::Register(counter), Operand::Constant(bound)] if is_plain => {
                Some((*counter, whole(test.kind, *bound)))
            }
            _ => None,
        }
    }

    /// The constant that an instruction writes, perhaps by way of another register.
    fn constant(&self, at: u32) -> Option<i64> {
        let one = self.instruction(at).filter(|one| one.op == Op::Mov && one.guard.is_none())?;
        match self.code.sources(one) {
            [Operand::Constant(value)] => Some(whole(one.kind, *value)),
            [Operand::Register(from)] => {
                let one = self
                    .instruction(self.writers.only(*from)?)
                    .filter(|one| one.op == Op::Mov && one.guard.is_none())?;
                match self.code.sources(one) {
                    [Operand::Constant(value)] => Some(whole(one.kind, *value)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// How far an instruction moves the counter in each `turn`, perhaps by way of another register.
    fn step(&self, turn: RangeInclusive<u32>, at: u32, counter: Reg) -> Option<i64> {
        let mut one = self.instruction(at).filter(|one| one.guard.is_none())?;
        if let (Op::Mov, [Operand::Register(from)]) = (one.op, self.code.sources(one)) {
            let at = self.writers.only(*from)?;
            one = self.instruction(at).filter(|_| turn.contains(&at))?;
        }
        let way = match one.op {
            Op::Add => 1,
            Op::Sub => -1,
            _ => return None,
        };
        match self.code.sources(one) {
            [Operand::Register(from), Operand::Constant(by)] if *from == counter && one.guard.is_none() => {
                whole(one.kind, *by).checked_mul(way)
            }
            _ => None,
        }
    }
}

/// Whether no jump of a loop leads past an instruction of it, and none of its inner loops holds it.
fn is_in_every_turn(inside: &[Jump], one: u32) -> bool {
    let end = inside.last().map_or(0, |back| back.at);
    inside.iter().all(|jump| match jump.way {
        // What leaves the loop is no part of its turns.
        Way::To(target) if target > end => true,
        Way::To(target) if target > jump.at => !(jump.at < one && one < target),
        // The last of them is the loop's own.
        Way::To(target) => !(target <= one && one <= jump.at) || Some(jump) == inside.last(),
        Way::Out | Way::Table(_) => false,
    })
}

/// The instructions that write each register: two of them, and how many there are, if no more than that.
struct Writers(Vec<([u32; 2], u8)>);

impl Writers {
    fn of(code: &Code<'_>) -> Writers {
        let mut all = vec![([0; 2], 0_u8); code.registers as usize];
        for (at, one) in (0..).zip(&code.instructions) {
            for operand in code.destinations(one) {
                let Operand::Register(Reg(register)) = operand else { continue };
                let Some((first, count)) = all.get_mut(*register as usize) else { continue };
                if let Some(place) = first.get_mut(usize::from(*count)) {
                    *place = at;
                }
                *count = count.saturating_add(1);
            }
        }
        Writers(all)
    }

    fn only(&self, register: Reg) -> Option<u32> {
        self.0.get(register.0 as usize).filter(|(_, count)| *count == 1).map(|(all, _)| all[0])
    }

    fn both(&self, register: Reg) -> Option<[u32; 2]> {
        self.0.get(register.0 as usize).filter(|(_, count)| *count == 2).map(|(all, _)| *all)
    }
}

/// A constant as a number of a type: of one without a sign it is taken for small.
fn whole(kind: Type, bits: u64) -> i64 {
    if kind.width() <= 32 { i64::from((bits as u32).cast_signed()) } else { bits.cast_signed() }
}

/// Whether a comparison holds; `None` where a number without a sign would be less than 0.
fn holds(test: &Instruction, a: i64, b: i64) -> Option<bool> {
    let is_unsigned = !test.kind.is_signed() || matches!(test.cond, Cond::Lo | Cond::Ls | Cond::Hi | Cond::Hs);
    let is_order = !matches!(test.cond, Cond::Eq | Cond::Ne);
    if is_unsigned && is_order && (a < 0 || b < 0) {
        return None;
    }
    Some(match test.cond {
        Cond::Eq => a == b,
        Cond::Ne => a != b,
        Cond::Lt | Cond::Lo => a < b,
        Cond::Le | Cond::Ls => a <= b,
        Cond::Gt | Cond::Hi => a > b,
        Cond::Ge | Cond::Hs => a >= b,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Body;
    use super::*;

    /// The turns of each loop, the innermost first.
    fn turns(text: &str) -> Vec<f64> {
        let text = format!("{{ .reg .pred %p<9>; .reg .b32 %r<9>; {text} ret; }}");
        let mut body = Body::default();
        let flow = body.flow_of(text.as_bytes(), 0).expect("a body").clone();
        let code = Code::read(text.as_bytes(), 0, b"()", &flow, &mut body);
        let trips = Trips::new(&code);
        code.back_jumps().map(|(to, at)| trips.of(to, at)).collect()
    }

    #[test]
    fn a_loop_that_constants_count_has_so_many_turns() {
        for (text, expected) in [
            ("mov.u32 %r1, 0; L: add.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 4; @%p1 bra L;", 4.0),
            ("mov.u32 %r1, 1; L: add.s32 %r1, %r1, 2; setp.lt.u32 %p1, %r1, 10; @%p1 bra L;", 5.0),
            ("mov.u32 %r1, 64; L: add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, 0; @%p1 bra L;", 64.0),
            ("mov.u32 %r1, 0; L: setp.ge.s32 %p1, %r1, 3; @%p1 bra E; add.s32 %r1, %r1, 1; bra L; E:", 3.0),
            ("mov.u32 %r1, 0; L: setp.lt.s32 %p1, %r1, 3; @!%p1 bra E; add.s32 %r1, %r1, 1; bra L; E:", 3.0),
            // By way of other registers, as sources are lowered.
            (
                "mov.u32 %r2, 2; mov.u32 %r1, %r2; L: add.s32 %r3, %r1, 1; mov.u32 %r1, %r3; setp.lt.s32 %p1, %r1, 9; @%p1 bra L;",
                7.0,
            ),
        ] {
            assert_eq!(turns(text), [expected], "{text}");
        }
        let nested = "mov.u32 %r1, 0; A: mov.u32 %r2, 0; B: add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, 3; @%p2 bra B; \
                      add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 5; @%p1 bra A;";
        assert_eq!(turns(nested), [3.0, 5.0]);
    }

    #[test]
    fn a_loop_that_more_than_constants_decide_has_as_many_as_any() {
        let code = "{ .reg .pred %p<9>; .reg .b32 %r<9>; bra L; B: bra M; L: mov.u32 %r1, 0; M: add.s32 %r1, %r1, 1; bra B; ret; }";
        let mut body = Body::default();
        let flow = body.flow_of(code.as_bytes(), 0).expect("a body").clone();
        let code = Code::read(code.as_bytes(), 0, b"()", &flow, &mut body);
        assert_eq!(
            [(3, 1), (4, 0), (9, 2)].map(|(to, at)| Trips::new(&code).of(to, at)),
            [TRIPS; 3],
            "laid out backwards"
        );
        for text in [
            "mov.u32 %r1, 0; L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r4; @%p1 bra L;",
            "mov.u32 %r1, %tid.x; L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 4; @%p1 bra L;",
            "mov.u32 %r1, 0; L: add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, 4; @%p1 bra L;",
            "mov.u32 %r1, 1; L: shl.b32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 64; @%p1 bra L;",
            "mov.u32 %r1, 0; L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 90000; @%p1 bra L;",
            "mov.u32 %r1, 9; L: add.s32 %r1, %r1, -1; setp.ge.u32 %p1, %r1, 0; @%p1 bra L;",
            "mov.u64 %r1, 9; L: sub.s64 %r1, %r1, 0x8000000000000000; setp.ne.s64 %p1, %r1, 0; @%p1 bra L;",
            // It may be left in another way, or move less often.
            "mov.u32 %r1, 0; L: @%p3 bra E; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 4; @%p1 bra L; E:",
            "mov.u32 %r1, 0; L: @%p3 bra M; add.s32 %r1, %r1, 1; M: setp.lt.s32 %p1, %r1, 4; @%p1 bra L;",
            "mov.u32 %r1, 0; L: @%p3 add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 4; @%p1 bra L;",
        ] {
            assert_eq!(turns(text), [TRIPS], "{text}");
        }
    }
}
