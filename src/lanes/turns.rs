//! After how many turns lanes leave a loop, at the first of its exits: counted where that can be, else followed turn by turn.

use hashbrown::HashMap;

use super::cfg::Block;
use super::counted::{Moving, Turns, constant_moves};
use super::eval::{Evaluator, Found, Stop};
use super::exits::{EXITS, Exit, Others};
use super::graph::Node;
use super::steps::{FOLLOWED, is_nowhere};
use super::value::Value;

/// Turns that are followed one by one while there is time.
const FOLLOWED_AT_MOST: usize = 4096;

impl Evaluator<'_, '_, '_> {
    /// When lanes leave a loop, and whether all exits that they are meant to leave it by were looked at. As many are as can
    /// be followed.
    pub(super) fn turns(&mut self, one: u32, block: Block) -> Found<Option<(Turns, bool)>> {
        let blocks = self.exit_blocks(one, block);
        let is_few = self.graph.cfg().loops[one as usize].exits.len() <= EXITS;
        let mut tried = usize::MAX;
        for others in [Others::All, Others::Always, Others::None] {
            let exits = self.exits(one, block, &blocks, others)?;
            let is_whole = is_few && exits.len() == blocks.len();
            if exits.len() == tried {
                continue;
            }
            tried = exits.len();
            // Something has to be left for looking at fewer.
            let (all, is_last) = (self.left(), exits.len() == 1);
            let some = if is_last { all } else { all / 2 };
            self.allow(some);
            let turns = self.discovering(one, &mut Vec::new(), |this, one, stepped| this.trips(one, &exits, stepped));
            let left = self.left();
            self.allow(all - (some - left));
            match turns {
                Ok(Some(turns)) if is_last || !turns.is_cut => return Ok(Some((turns, is_whole))),
                Ok(_) | Err(Stop::OverBudget) if !is_last => {}
                other => return Ok(other?.map(|turns| (turns, is_whole))),
            }
        }
        Ok(None)
    }

    /// When each lane leaves the loop; `None` where that cannot be told.
    fn trips(&mut self, one: u32, exits: &[Exit], stepped: &[Node]) -> Found<Option<Turns>> {
        let enters = self.entry(one)?.enters;
        let start = self.entered_with(one, stepped)?;
        for exit in exits {
            self.staying_at(one, *exit, &start)?;
        }
        if stepped.is_empty() {
            // Nothing changes: who does not leave at once stays.
            return Ok(None);
        }
        let first = self.advanced(one, &start, stepped)?;
        let second = self.advanced(one, &first, stepped)?;
        if let Some(moves) = constant_moves(&start, &first, &second)
            && let Some(turns) = self.first_of(one, exits, &Moving { start: &start, moves: &moves }, &enters)?
        {
            return Ok(Some(turns));
        }
        self.followed(one, exits, vec![second, first, start], enters, stepped).map(Some)
    }

    /// Follows the lanes turn by turn, from the first of `known` turns, which stand last first.
    fn followed(
        &mut self,
        one: u32,
        exits: &[Exit],
        mut known: Vec<HashMap<Node, Value>>,
        enters: Value,
        stepped: &[Node],
    ) -> Found<Turns> {
        let mut turns =
            Turns { at: Value::constant(0), run: Value::constant(0), own: Value::constant(0), is_cut: false };
        let mut alive = enters;
        let mut now = known.pop().unwrap_or_default();
        // Most loops are short; for a long one something has to be left for other branches.
        let reserve = self.left() / 4 * 3;
        let mut turn = 0;
        loop {
            if turn >= FOLLOWED_AT_MOST as u64 || (turn >= FOLLOWED as u64 && self.left() < reserve) {
                turns.run = alive.choose(&Value::constant(turn), &turns.run, self.extent);
                turns.own = alive.choose(&Value::constant(1), &turns.own, self.extent);
                return Ok(Turns { is_cut: true, ..turns });
            }
            for exit in exits {
                let staying = self.staying_at(one, *exit, &now)?;
                let leaves = alive.zip(&staying, |alive, staying| alive & (1 - staying));
                alive = alive.zip(&staying, |alive, staying| alive & staying);
                self.spend(turns.run.size() + alive.size())?;
                let run = Value::constant(turn + u64::from(exit.ends_turn));
                turns.run = leaves.choose(&run, &turns.run, self.extent);
                turns.own = leaves.choose(&Value::constant(u64::from(exit.is_own)), &turns.own, self.extent);
            }
            if is_nowhere(&alive) {
                return Ok(turns);
            }
            let next = match known.pop() {
                Some(next) => next,
                None => self.advanced(one, &now, stepped)?,
            };
            now = next;
            let size: usize = now.values().map(Value::size).sum();
            self.spend(size)?;
            turn += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged};

    #[test]
    fn a_loop_in_unequal_steps_is_followed_to_its_end_or_said_to_be_cut() {
        let turns = |most: u32| {
            let text = format!(
                "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mul.lo.s32 %r5, %r3, {most}; mov.u32 %r4, 0;
                L: and.b32 %r6, %r4, 1; add.s32 %r6, %r6, 1; add.s32 %r4, %r4, %r6; setp.lt.s32 %p1, %r4, %r5; @%p1 bra L;
                ret;"
            );
            judged(SHAPE, &text)[0].spread.expect("a spread")
        };
        // 0, 1, 3, 5, …: lane 31 runs to 310.
        let found = turns(10);
        assert!((found.trips.0 - 156.0).abs() < 1e-9 && !found.is_cut && found.is_fixed, "{found:?}");
        let endless = turns(1 << 25);
        assert!(endless.is_cut && !endless.is_fixed, "{endless:?}");
    }
}
