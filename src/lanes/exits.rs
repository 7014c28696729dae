//! The ways into a loop and out of it: which lanes enter, by which exits they are meant to leave, and whom each leaves inside.

use hashbrown::HashMap;

use super::cfg::Block;
use super::eval::{Evaluator, Found, Stop};
use super::graph::Node;
use super::loops::{deciding_in_loop, guarded_loop, is_in_every_turn, meant_exits};
use super::steps::is_nowhere;
use super::value::Value;

/// Blocks that only jump, in a row, between an exit and the header of its loop.
const JUMPS: usize = 4;

/// Exits of a loop that are looked at together, at most.
pub(super) const EXITS: usize = 8;

/// The lanes at a loop.
pub(super) struct Entry {
    /// Those that come to it, or to the guard before it.
    pub(super) comes: Value,
    /// Those that enter it.
    pub(super) enters: Value,
    /// No environment comes to it, and all were taken to.
    pub(super) is_assumed: bool,
}

/// A place where lanes leave a loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exit {
    pub(super) block: Block,
    /// Where those go that stay.
    pub(super) inside: Block,
    /// Every turn comes to it, or is taken to.
    pub(super) is_always: bool,
    /// A turn that a lane leaves in is one that it has run: nothing is left of it.
    pub(super) ends_turn: bool,
    /// It is the one that is asked about.
    pub(super) is_own: bool,
}

/// Which of the other exits of a loop are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// All that no data decide.
    All,
    /// Those of them that every turn comes to.
    Always,
    /// None.
    None,
}

impl Evaluator<'_, '_, '_> {
    /// The lanes that come to a loop, and those of them that enter it.
    pub(super) fn entry(&mut self, one: u32) -> Found<Entry> {
        let first = self.first_in_row(one);
        let entry = self.entry_from_outside(first)?;
        // What stands before the first of several loops is no guard of the last.
        Ok(if first == one { entry } else { Entry { comes: entry.enters.clone(), ..entry } })
    }

    /// The first of the loops that follow one another at once up to this one: whoever leaves one of them enters the next, in
    /// whatever turn that is.
    fn first_in_row(&self, one: u32) -> u32 {
        let cfg = self.graph.cfg();
        let before = |one: &u32| {
            let header = cfg.loops[*one as usize].header;
            cfg.idom(header).and_then(|above| cfg.left_between(above, header))
        };
        std::iter::successors(Some(one), before).last().unwrap_or(one)
    }

    /// The same of a loop that none is left for.
    fn entry_from_outside(&mut self, one: u32) -> Found<Entry> {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let Some(above) = cfg.idom(header) else {
            return Ok(Entry { comes: Value::constant(1), enters: Value::constant(1), is_assumed: false });
        };
        let active = self.active(above)?;
        let outside = cfg.predecessors(header).iter().filter(|from| !cfg.is_back_edge(**from, header));
        let condition = if outside.eq([&above]) { self.along(above, header)? } else { None };
        let enters = condition.map_or_else(|| active.clone(), |condition| active.zip(&condition, |a, b| a & b));
        if is_nowhere(&enters)
            && let Some(assumed) = self.assumed(header)?
        {
            return Ok(Entry { comes: assumed.clone(), enters: assumed, is_assumed: true });
        }
        // A block of its own may stand before the loop.
        let before = cfg.idom(above).filter(|_| cfg.successors(above).len() == 1);
        let guard = [Some(above), before].into_iter().flatten().find(|guard| guarded_loop(cfg, *guard) == Some(one));
        let comes = match guard {
            Some(guard) => self.active(guard)?,
            None => enters.clone(),
        };
        Ok(Entry { comes, enters, is_assumed: false })
    }

    /// The blocks that lanes leave a loop from, and are meant to, with the one that is asked about, in the order in which a
    /// turn comes to them. Of a loop with very many that one alone.
    pub(super) fn exit_blocks(&self, one: u32, own: Block) -> Vec<Block> {
        let cfg = self.graph.cfg();
        let mut blocks = vec![own];
        if cfg.loops[one as usize].exits.len() <= EXITS {
            blocks.extend(meant_exits(cfg, one));
        }
        blocks.sort_unstable_by_key(|block| cfg.order(*block));
        blocks.dedup();
        blocks
    }

    /// The exit at `own`, and of the others those that can be followed, in the order in which a turn comes to them.
    pub(super) fn exits(&self, one: u32, own: Block, blocks: &[Block], others: Others) -> Found<Vec<Exit>> {
        let counts = |block: &&Block| **block == own || self.counts(one, **block, others);
        blocks.iter().filter(counts).map(|block| self.exit(one, *block, *block == own)).collect()
    }

    /// Whether another exit is looked at.
    fn counts(&self, one: u32, block: Block, others: Others) -> bool {
        let cfg = self.graph.cfg();
        // One that lies in an inner loop is come to more than once.
        let is_followed = others != Others::None && cfg.loop_of(block) == Some(one) && cfg.successors(block).len() == 2;
        is_followed && (others == Others::All || is_in_every_turn(cfg, block, one)) && !self.hangs_on_data(one, block)
    }

    /// Whether data decide there, or where the way to it parts from others within the loop.
    fn hangs_on_data(&self, one: u32, block: Block) -> bool {
        let cfg = self.graph.cfg();
        let by_data = |at: Block| {
            let decision = self.decisions[at as usize];
            decision.is_none_or(|decision| self.known[decision.node.0 as usize].data)
        };
        deciding_in_loop(cfg, block, one).any(|at| cfg.successors(at).len() > 1 && by_data(at))
    }

    /// The exit at a block.
    pub(super) fn exit(&self, one: u32, block: Block, is_own: bool) -> Found<Exit> {
        let cfg = self.graph.cfg();
        let inside = cfg.successors(block).iter().copied().find(|to| cfg.is_in_loop(*to, one));
        let inside = inside.ok_or(Stop::OverBudget)?;
        let is_always = is_own || is_in_every_turn(cfg, block, one);
        let ends_turn = cfg.loops[one as usize].latches.contains(&block) || self.only_jumps(one, inside);
        Ok(Exit { block, inside, is_always, ends_turn, is_own })
    }

    /// Whether nothing but jumps stands between a block and the header of the loop: a compiler may write the way back and the
    /// way out either way around.
    fn only_jumps(&self, one: u32, from: Block) -> bool {
        let cfg = self.graph.cfg();
        let header = cfg.loops[one as usize].header;
        let next = |block: &Block| match *cfg.successors(*block) {
            [next] if cfg.instructions(*block).len() == 1 && *block != header => Some(next),
            _ => None,
        };
        std::iter::successors(Some(from), next).take(JUMPS).any(|block| block == header)
    }

    /// The lanes that an exit leaves in the loop.
    pub(super) fn staying_at(&mut self, one: u32, exit: Exit, now: &HashMap<Node, Value>) -> Found<Value> {
        self.within(one, now.clone(), |this| {
            let staying = this.along(exit.block, exit.inside)?.unwrap_or_else(|| Value::constant(1));
            if exit.is_always {
                return Ok(staying);
            }
            let comes = this.active(exit.block)?;
            Ok(comes.zip(&staying, |comes, staying| 1 - (comes & (1 - staying))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::spread::testing::spread_at;
    use super::super::testing::{SHAPE, judged};
    use super::super::verdict::Advice;

    /// `while (k < t) { k++; …; if (k >= 4) break; }` as nvcc 13 writes it.
    const CUT_SHORT: &str = "mov.u32 %r1, %tid.x; mov.u32 %r4, 0;
        L: setp.ge.s32 %p1, %r4, %r1; @%p1 bra END; add.s32 %r4, %r4, 1; neg.s32 %r9, %r9;
        setp.lt.s32 %p2, %r4, 4; @%p2 bra L; END: ret;";

    #[test]
    fn whoever_leaves_a_loop_for_the_next_comes_to_that_in_whatever_turn_it_is() {
        // `do … while ((a += 3) < 20); do … while ((b += 2) < 20);`, both from 0 to 15 on, as nvcc 13 writes it.
        let text = "mov.u32 %r1, %tid.x; and.b32 %r4, %r1, 15; mov.u32 %r5, %r4; mov.u32 %r6, %r4;
            L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 3; setp.lt.s32 %p1, %r4, 20; @%p1 bra L;
            M: neg.s32 %r8, %r8; add.s32 %r5, %r5, 2; setp.lt.s32 %p2, %r5, 20; @%p2 bra M;
            N: neg.s32 %r7, %r7; add.s32 %r6, %r6, 2; setp.lt.s32 %p3, %r6, 20; @%p3 bra N; ret;";
        for at in [1, 2] {
            let found = spread_at(SHAPE, text, at).expect("a spread");
            // Lanes run 10, 10, 9, 9, … 3, 3 times.
            assert!((found.trips.0 - 10.0).abs() < 1e-9 && (found.trips.1 - 6.5).abs() < 1e-9, "{found:?}");
            assert!((found.share - 1.0).abs() < 1e-9 && (found.idle - 0.35).abs() < 1e-9, "{found:?}");
        }
        // In a turn that is looked at they part as they do where there is no loop before.
        let alone = text.replace("L: neg.s32 %r9, %r9; add.s32 %r4, %r4, 3; setp.lt.s32 %p1, %r4, 20; @%p1 bra L;", "");
        let share = |text: &str, at: usize| judged(SHAPE, text)[at].split.of_all();
        assert!(share(&alone, 0) > 0.5 && (share(text, 1) - share(&alone, 0)).abs() < 1e-9, "{}", share(text, 1));
    }

    #[test]
    fn the_turns_of_a_lane_end_at_the_exit_that_it_takes_first() {
        let found = spread_at(SHAPE, CUT_SHORT, 0).expect("a spread");
        // Lanes 0 to 3 run as many turns as their number, and all others 4.
        assert!((found.trips.0 - 4.0).abs() < 1e-9 && found.is_fixed && found.lone, "{found:?}");
        assert!((found.share - 0.125).abs() < 1e-9, "{found:?}");
        assert!((found.idle - 10.0 / 1024.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_exit_that_all_lanes_of_a_warp_take_before_any_other_parts_none() {
        // `for (k = 0; k < t; k++) { …; if (k == t / 32) break; … }`
        let text = "mov.u32 %r1, %tid.x; setp.lt.s32 %p1, %r1, 1; @%p1 bra END;
            shr.s32 %r11, %r1, 5; neg.s32 %r13, %r11; mov.u32 %r14, 0;
            L: neg.s32 %r9, %r9; setp.eq.s32 %p2, %r13, 0; @%p2 bra END; neg.s32 %r8, %r8;
            add.s32 %r13, %r13, 1; add.s32 %r14, %r14, 1; setp.lt.s32 %p3, %r14, %r1; @%p3 bra L; END: ret;";
        let branches = judged(SHAPE, text);
        assert!(branches.iter().all(|branch| branch.spread.is_none_or(|spread| spread.share == 0.0)), "{branches:?}");
        assert!(branches.iter().all(|branch| branch.judgement.is_some_and(|one| one.advice == Advice::Silent)));
    }

    #[test]
    fn an_exit_within_an_if_ends_the_turns_of_the_lanes_that_come_to_it() {
        // `for (k = 0; k <= l; k++) { if (l >= 16) { if (k == 3) break; } … }`
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mov.u32 %r4, 0;
            L: setp.lt.u32 %p1, %r3, 16; @%p1 bra M; setp.eq.s32 %p2, %r4, 3; @%p2 bra END;
            M: neg.s32 %r9, %r9; add.s32 %r4, %r4, 1; setp.le.s32 %p3, %r4, %r3; @%p3 bra L; END: ret;";
        let found = spread_at(SHAPE, text, 2).expect("a spread");
        // Lanes 0 to 15 run one more than their number, all others 3.
        assert!((found.trips.0 - 16.0).abs() < 1e-9 && found.is_fixed, "{found:?}");
        assert!((found.trips.1 - (136.0 + 48.0) / 32.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_exit_that_no_lane_takes_says_nothing() {
        let never = CUT_SHORT.replace("%r4, 4;", "%r6, 100000;").replace("neg.s32 %r9, %r9;", "add.s32 %r6, %r4, %r1;");
        let branches = judged(SHAPE, &never);
        assert!(branches[0].spread.is_some_and(|spread| spread.share > 0.9), "{branches:?}");
        assert_eq!(branches[1].spread, None);
    }

    #[test]
    fn other_exits_that_data_decide_leave_the_turns_as_they_are_and_untold() {
        let load = "mul.wide.u32 %rd2, %r1, 4; ld.global.u32 %r6, [%rd2];";
        let by_data = CUT_SHORT.replace("%r4, 4;", "%r6, 4;").replace("neg.s32 %r9, %r9;", load);
        let found = spread_at(SHAPE, &by_data, 0).expect("a spread");
        assert!(found.trips.0 > 100.0 && !found.is_fixed, "{found:?}");
    }

    #[test]
    fn a_loop_runs_as_many_turns_whichever_way_its_last_test_is_written() {
        let spread = |ending: &str| {
            let text = format!(
                "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; setp.eq.s32 %p1, %r2, 0; @%p1 bra DONE;
                L: neg.s32 %r9, %r9; add.s32 %r2, %r2, -1; {ending} DONE: ret;"
            );
            spread_at(SHAPE, &text, 1).expect("a spread")
        };
        let back = spread("setp.ne.s32 %p2, %r2, 0; @%p2 bra L;");
        assert!((back.trips.0 - 3.0).abs() < 1e-9 && (back.trips.1 - 1.5).abs() < 1e-9, "{back:?}");
        assert_eq!(spread("setp.eq.s32 %p2, %r2, 0; @%p2 bra DONE; bra.uni L;"), back);
        assert_eq!(spread("setp.eq.s32 %p2, %r2, 0; @%p2 bra DONE; bra.uni M; M: bra.uni L;"), back);
    }
}
