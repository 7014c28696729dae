//! Loops on level 2: with what values lanes leave them.

use super::cfg::Block;
use super::counted::{Moving, constant_moves, never};
use super::eval::{Evaluator, Found, Mode, Stop};
use super::graph::Node;
use super::steps::{FOLLOWED, NESTED, is_nowhere};
use super::value::Value;

/// What a value is for each lane when it leaves a loop from a block, as far as a way of finding it goes.
type Exact<'e, 'c, 't> = fn(&mut Evaluator<'e, 'c, 't>, Node, u32, Block, &[Node]) -> Found<Option<Value>>;

impl<'e, 'c, 't> Evaluator<'e, 'c, 't> {
    /// What a value is for each lane when it leaves the loop.
    pub(super) fn left_with(&mut self, node: Node, one: u32) -> Found<Value> {
        let cfg = self.graph.cfg();
        let whole = &cfg.loops[one as usize];
        let plain = self.plain_exits(one);
        if let ([exit], [only]) = (plain.as_slice(), whole.exits.as_slice())
            && exit == only
            && self.frames.len() < NESTED
        {
            let from = exit.0;
            let mut stepped = Vec::new();
            // Most loops are short; the turns of a long one may yet be counted.
            let ways: [Exact<'e, 'c, 't>; 2] = [Self::run_to_exit, Self::counted_to_exit];
            for way in ways {
                let left = self.work_for_exit();
                let exact =
                    self.discovering(one, &mut stepped, |this, one, stepped| way(this, node, one, from, stepped));
                match exact {
                    Ok(Some(value)) => return Ok(value),
                    Ok(None) => {}
                    Err(Stop::OverBudget) if left => {}
                    Err(stop) => return Err(stop),
                }
            }
        }
        self.left_at_some_time(node, one)
    }

    /// Whether following a loop to its end may fail for want of room, and something else be tried.
    fn work_for_exit(&self) -> bool {
        self.left() > 1 << 16
    }

    /// The same, with each iteration followed; `None` where lanes stay for longer than that.
    fn run_to_exit(&mut self, node: Node, one: u32, from: Block, stepped: &[Node]) -> Found<Option<Value>> {
        let mut now = self.entered_with(one, stepped)?;
        let mut alive = Value::constant(1);
        let mut out: Option<Value> = None;
        for _ in 0..FOLLOWED {
            let value = self.within(one, now.clone(), |this| this.value(node, from))?;
            let staying = self.staying(one, &now)?;
            // Lanes keep the value of their last iteration.
            out = Some(match out {
                None => value,
                Some(before) => alive.choose(&value, &before, self.extent),
            });
            alive = alive.zip(&staying, |alive, staying| alive & staying);
            if is_nowhere(&alive) {
                return Ok(out.map(|value| value.condensed(self.extent)));
            }
            now = self.advanced(one, &now, stepped)?;
            let size: usize = now.values().map(Value::size).sum();
            self.spend(size)?;
        }
        Ok(None)
    }

    /// The value at the iteration that is looked at, and one of its own for each lane where lanes leave one by one.
    fn left_at_some_time(&mut self, node: Node, one: u32) -> Found<Value> {
        let value = self.evaluate(node)?;
        let exits = &self.graph.cfg().loops[one as usize].exits;
        let exits = exits.iter().filter_map(|(from, _)| self.decisions[*from as usize]);
        let parted = exits.map(|decision| self.known[decision.node.0 as usize]).find(|known| !known.is_warp_uniform());
        match parted {
            Some(known) if known.index || self.mode == Mode::Data => {
                let noise = self.noise(node, one);
                Ok(value.zip(&noise, |value, noise| value.wrapping_add(noise % 9)).as_guess())
            }
            _ => Ok(value),
        }
    }

    /// What a value is for each lane when it leaves a loop by its only exit, where the turns are counted; `None` where they
    /// cannot be.
    fn counted_to_exit(&mut self, node: Node, one: u32, from: Block, stepped: &[Node]) -> Found<Option<Value>> {
        let exit = self.exit(one, from, true)?;
        let start = self.entered_with(one, stepped)?;
        self.staying_at(one, exit, &start)?;
        self.within(one, start.clone(), |this| this.value(node, from))?;
        let first = self.advanced(one, &start, stepped)?;
        let second = self.advanced(one, &first, stepped)?;
        let Some(moves) = constant_moves(&start, &first, &second) else { return Ok(None) };
        let enters = self.entry(one)?.enters;
        let moving = Moving { start: &start, moves: &moves };
        let Some(turn) = self.leaving_turn(one, exit, &moving, &enters)? else { return Ok(None) };
        if !is_nowhere(&never(&turn, &enters)) {
            return Ok(None);
        }
        let value = self.within(one, moving.after(&turn), |this| this.value(node, from))?;
        Ok(Some(value.condensed(self.extent)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::values_of;

    #[test]
    fn a_loop_that_ends_soon_is_run_to_its_end() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 7; mov.u32 %r1, 0; mov.u32 %r4, 0;
            L: add.s32 %r1, %r1, 10; add.s32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r3; @%p1 bra L;";
        assert_eq!(values_of(text, [0, 1, 7, 8]), [10, 20, 80, 10]);
        let doubling = "mov.u32 %r1, 1; L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;";
        assert_eq!(values_of(doubling, [0, 1, 7, 8]), [128, 128, 128, 128]);
    }
}
