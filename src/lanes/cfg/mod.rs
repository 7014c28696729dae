//! The control flow of one function: blocks, dominators, post-dominators, loops.

mod blocks;
mod dominators;
mod edges;
mod loops;

use self::blocks::{cold, failing, starts, successors};
use self::dominators::Dominators;
pub(super) use self::edges::Edges;
use crate::model::Flow;
use crate::parse::ptx::Code;

/// Blocks by number; the one after the last stands for the end of the function.
pub type Block = u32;

/// Stands for no block.
pub const NONE: Block = u32::MAX;

/// A loop with one way in.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The block through which it is entered.
    pub header: Block,
    /// The innermost loop around it.
    pub parent: Option<u32>,
    /// 1 for a loop that is in no other.
    pub depth: u32,
    /// Blocks that jump back to the header.
    pub latches: Vec<Block>,
    /// Edges that leave it.
    pub exits: Vec<(Block, Block)>,
    /// How many blocks it has.
    pub size: u32,
}

/// The graph of a function.
#[derive(Debug)]
pub struct Cfg {
    /// Each block's first instruction, and behind them the number of instructions.
    pub starts: Vec<u32>,
    /// For each instruction its block.
    pub block_of: Vec<Block>,
    successors: Edges,
    predecessors: Edges,
    /// For each block its immediate dominator; the first block's is itself, that of a block which is never reached NONE.
    idom: Vec<Block>,
    /// Likewise from the end, for each block and the end.
    ipdom: Vec<Block>,
    /// For each block its place in reverse postorder; NONE where it is never reached.
    order: Vec<u32>,
    /// When the walk over the dominator tree enters and leaves each block.
    times: Vec<(u32, u32)>,
    /// Natural loops; an outer one may stand behind its inner ones.
    pub loops: Vec<Loop>,
    /// When the walk over the tree of loops enters and leaves each of them.
    loop_times: Vec<(u32, u32)>,
    /// For each block its innermost loop.
    innermost: Vec<Option<u32>>,
    /// Blocks of cycles that have more than one way in.
    tangled: Vec<bool>,
    /// Blocks that are not meant to run: they end the kernel with an error, or lead only to such ones. Empty where there is
    /// none.
    cold: Vec<bool>,
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Cfg {
    /// The graph of `code`, as far as [`Cfg::of`] makes one; where ways meet does not hang on those that only a failure takes.
    #[must_use]
    pub fn new(code: &Code<'_>) -> Option<Cfg> {
        Cfg::build(code.flow, &failing(code))
    }

    /// The graph of a function, for which nothing but its jumps is needed; `None` where it has no instruction, nests loops
    /// deeper than anyone does, or has more ways out of branch tables.
    #[must_use]
    pub fn of(flow: &Flow) -> Option<Cfg> {
        Cfg::build(flow, &[])
    }

    /// The same, with the instructions that stop the kernel with an error.
    fn build(flow: &Flow, failing: &[u32]) -> Option<Cfg> {
        let starts = starts(flow)?;
        let count = starts.len() - 1;
        let mut block_of = Vec::with_capacity(flow.instructions as usize);
        for block in 0..count {
            block_of.resize(starts[block + 1] as usize, narrow(block));
        }
        let successors = successors(flow, &starts, &block_of);
        let predecessors = successors.reversed(count + 1);
        let forward = Dominators::new(0, &successors, &predecessors, count + 1);
        let cold = cold(failing, &starts, &successors);
        let backward = if cold.is_empty() {
            Dominators::new(narrow(count), &predecessors, &successors, count + 1)
        } else {
            let warm = successors.without(&cold);
            Dominators::new(narrow(count), &warm.reversed(count + 1), &warm, count + 1)
        };
        let times = forward.times(count + 1);
        let mut cfg = Cfg {
            starts,
            block_of,
            successors,
            predecessors,
            idom: forward.immediate,
            ipdom: backward.immediate,
            order: forward.order,
            times,
            loops: Vec::new(),
            loop_times: Vec::new(),
            innermost: vec![None; count],
            tangled: vec![false; count],
            cold,
        };
        cfg.find_loops().then_some(cfg)
    }

    /// How many blocks there are; also the number of the end.
    #[must_use]
    pub fn end(&self) -> Block {
        narrow(self.starts.len() - 1)
    }

    /// The instructions of a block.
    #[must_use]
    pub fn instructions(&self, block: Block) -> std::ops::Range<u32> {
        self.starts[block as usize]..self.starts[block as usize + 1]
    }

    /// The instruction that a block ends with.
    #[must_use]
    pub fn last(&self, block: Block) -> u32 {
        self.starts[block as usize + 1] - 1
    }

    /// Where control goes after a block: for a branch the target first.
    #[must_use]
    pub fn successors(&self, block: Block) -> &[Block] {
        self.successors.of(block)
    }

    /// Where it comes from.
    #[must_use]
    pub fn predecessors(&self, block: Block) -> &[Block] {
        self.predecessors.of(block)
    }

    /// The immediate dominator of a block, if it has one.
    #[must_use]
    pub fn idom(&self, block: Block) -> Option<Block> {
        let dominator = *self.idom.get(block as usize)?;
        (dominator != NONE && dominator != block).then_some(dominator)
    }

    /// Where the ways from a block meet again; the end where they do so nowhere.
    #[must_use]
    pub fn ipdom(&self, block: Block) -> Block {
        match self.ipdom[block as usize] {
            NONE => self.end(),
            meeting => meeting,
        }
    }

    /// Whether control can come to the block.
    #[must_use]
    pub fn is_reached(&self, block: Block) -> bool {
        self.order.get(block as usize).is_some_and(|order| *order != NONE)
    }

    /// The block's place in reverse postorder.
    #[must_use]
    pub fn order(&self, block: Block) -> u32 {
        self.order[block as usize]
    }

    /// Whether every way to `b` goes through `a`.
    #[must_use]
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let (outer, inner) = (self.times[a as usize], self.times[b as usize]);
        self.is_reached(a) && self.is_reached(b) && outer.0 <= inner.0 && inner.1 <= outer.1
    }

    /// Whether the edge jumps back to a block that dominates its start.
    #[must_use]
    pub fn is_back_edge(&self, from: Block, to: Block) -> bool {
        to < self.end() && self.dominates(to, from)
    }

    /// The innermost loop of a block.
    #[must_use]
    pub fn loop_of(&self, block: Block) -> Option<u32> {
        self.innermost.get(block as usize).copied().flatten()
    }

    /// The loops of a block, the innermost first.
    pub fn loops_of(&self, block: Block) -> impl Iterator<Item = u32> {
        std::iter::successors(self.loop_of(block), |at| self.loops[*at as usize].parent)
    }

    /// Whether the block belongs to the loop.
    #[must_use]
    pub fn is_in_loop(&self, block: Block, one: u32) -> bool {
        let Some(inner) = self.loop_of(block) else { return false };
        let (inner, outer) = (self.loop_times[inner as usize], self.loop_times[one as usize]);
        outer.0 <= inner.0 && inner.1 <= outer.1
    }

    /// The loop whose header the block is.
    #[must_use]
    pub fn loop_headed_by(&self, block: Block) -> Option<u32> {
        self.loops_of(block).find(|at| self.loops[*at as usize].header == block)
    }

    /// Whether the block is in a cycle that has more than one way in.
    #[must_use]
    pub fn is_tangled(&self, block: Block) -> bool {
        self.tangled.get(block as usize).copied().unwrap_or(false)
    }

    /// Whether the block is not meant to run.
    #[must_use]
    pub fn is_cold(&self, block: Block) -> bool {
        self.cold.get(block as usize).copied().unwrap_or(false)
    }

    /// The outermost loop that holds `inside` and not `outside`.
    #[must_use]
    pub fn left_between(&self, inside: Block, outside: Block) -> Option<u32> {
        self.loops_of(inside).take_while(|at| !self.is_in_loop(outside, *at)).last()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block_of, with_cfg, with_code};
    use super::*;
    use crate::parse::ptx::Op;

    /// `if (p) { neg } else { not }; popc`
    const DIAMOND: &str = "@%p1 bra A; neg.s32 %r1, %r1; bra B; A: not.b32 %r1, %r1; B: popc.b32 %r1, %r1; ret;";

    #[test]
    fn ways_to_a_failure_do_not_decide_where_others_meet() {
        let text = |fail: &str| {
            format!(
                "@%p1 bra F; neg.s32 %r1, %r1; @%p2 bra F; not.b32 %r1, %r1; bra D;
                F: {fail} brev.b32 %r1, %r1; D: popc.b32 %r1, %r1; ret;"
            )
        };
        let meets = |fail: &str| {
            with_cfg(&text(fail), |code, cfg| {
                let [next, last, failing] = [Op::Neg, Op::Popc, Op::Brev].map(|op| block_of(code, cfg, op, 0));
                (cfg.ipdom(0) == next, cfg.ipdom(0) == last, cfg.is_cold(failing))
            })
        };
        assert_eq!(meets("call.uni __assertfail, (a);"), (true, false, true));
        assert_eq!(meets("call.uni f, (a);"), (false, true, false));
    }

    #[test]
    fn ways_part_at_a_branch_and_meet_at_its_post_dominator() {
        with_cfg(DIAMOND, |code, cfg| {
            let [other, taken, meet] = [Op::Neg, Op::Not, Op::Popc].map(|op| block_of(code, cfg, op, 0));
            assert_eq!(cfg.successors(0), [taken, other]);
            assert_eq!(cfg.predecessors(meet), [other, taken]);
            assert_eq!((cfg.ipdom(0), cfg.ipdom(taken), cfg.ipdom(meet)), (meet, meet, cfg.end()));
            assert_eq!((cfg.idom(0), cfg.idom(taken), cfg.idom(meet)), (None, Some(0), Some(0)));
            assert!(cfg.dominates(0, meet) && cfg.dominates(meet, meet) && !cfg.dominates(taken, meet));
            assert!(cfg.loops.is_empty() && cfg.loop_of(meet).is_none());
        });
    }

    #[test]
    fn dominators_are_what_cannot_be_gone_around() {
        // Of all small graphs made by a simple generator: a block dominates those that are not reached without it.
        let mut seed = 1_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..200 {
            let count = 2 + random(9);
            let lists: Vec<Vec<Block>> = (0..count).map(|_| (0..random(4)).map(|_| random(count)).collect()).collect();
            let mut edges = Edges { starts: vec![0], ends: Vec::new() };
            for list in &lists {
                edges.ends.extend(list);
                edges.starts.push(narrow(edges.ends.len()));
            }
            let reached_without = |gone: Block| {
                let mut seen = vec![false; count as usize];
                let mut work = if gone == 0 { vec![] } else { vec![0] };
                while let Some(here) = work.pop() {
                    if !std::mem::replace(&mut seen[here as usize], true) {
                        work.extend(lists[here as usize].iter().filter(|to| **to != gone));
                    }
                }
                seen
            };
            let reached = reached_without(NONE);
            let found = Dominators::new(0, &edges, &edges.reversed(count as usize), count as usize);
            let without: Vec<Vec<bool>> = (0..count).map(reached_without).collect();
            for block in 1..count {
                let dominates = |other: Block, block: Block| !without[other as usize][block as usize];
                let strict: Vec<Block> = (0..count).filter(|one| *one != block && dominates(*one, block)).collect();
                let nearest = strict.iter().find(|one| strict.iter().all(|other| dominates(*other, **one)));
                let expected = if reached[block as usize] { *nearest.expect("the root is one") } else { NONE };
                assert_eq!(found.immediate[block as usize], expected, "block {block} of {lists:?}");
            }
        }
    }

    #[test]
    fn guarded_returns_and_traps_part_ways_and_others_end_the_function() {
        for end in ["ret", "exit", "trap"] {
            with_cfg(&format!("@%p1 {end}; neg.s32 %r1, %r1; {end}; popc.b32 %r1, %r1; ret;"), |code, cfg| {
                let next = block_of(code, cfg, Op::Neg, 0);
                assert_eq!(cfg.successors(0), [cfg.end(), next], "{end}");
                assert_eq!(cfg.successors(next), [cfg.end()], "{end}");
                assert!(!cfg.is_reached(block_of(code, cfg, Op::Popc, 0)), "{end}");
            });
        }
        with_cfg("@%p1 bra A; neg.s32 %r1, %r1; A:", |_, cfg| assert_eq!(cfg.successors(0), [cfg.end(), 1]));
    }

    #[test]
    fn labels_that_nobody_jumps_to_do_not_part_a_block() {
        with_cfg("neg.s32 %r1, %r1; A: not.b32 %r1, %r1; ret;", |_, cfg| assert_eq!(cfg.end(), 1));
    }

    #[test]
    fn a_table_leads_to_each_of_its_targets_once() {
        let text = "T: .branchtargets A, B, A, C; brx.idx %r1, T; A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; C: ret;";
        with_cfg(text, |code, cfg| {
            let [a, b, c] = [Op::Neg, Op::Not, Op::Ret].map(|op| block_of(code, cfg, op, 0));
            assert_eq!(cfg.successors(0), [a, b, c]);
            assert_eq!(cfg.ipdom(0), c);
        });
    }

    #[test]
    fn an_empty_function_has_no_graph() {
        for text in ["", "A:"] {
            with_code(text, |code| assert!(Cfg::new(code).is_none(), "{text}"));
        }
    }

    #[test]
    fn a_branch_goes_to_the_label_within_its_own_braces() {
        let wait = "{ W: neg.s32 %r1, %r1; @%p1 bra D; bra W; D: }";
        with_cfg(&format!("{wait} {wait} ret;"), |code, cfg| {
            let [first, second, out] =
                [(Op::Neg, 0), (Op::Neg, 1), (Op::Ret, 0)].map(|(op, nth)| block_of(code, cfg, op, nth));
            let headers: Vec<Block> = cfg.loops.iter().map(|one| one.header).collect();
            assert!(headers.len() == 2 && headers.contains(&first) && headers.contains(&second));
            assert!(cfg.successors(first).contains(&second) && cfg.successors(second).contains(&out));
        });
    }

    #[test]
    fn loops_know_their_header_latches_exits_and_parents() {
        let text = "neg.s32 %r1, %r1;
            OUTER: not.b32 %r1, %r1;
            INNER: popc.b32 %r1, %r1; @%p1 bra INNER;
            clz.b32 %r1, %r1; @%p2 bra OUTER;
            brev.b32 %r1, %r1; ret;";
        with_cfg(text, |code, cfg| {
            let [before, outer, inner, latch, after] =
                [Op::Neg, Op::Not, Op::Popc, Op::Clz, Op::Brev].map(|op| block_of(code, cfg, op, 0));
            assert_eq!(cfg.loops.len(), 2);
            let (one, two) = (cfg.loop_headed_by(outer).unwrap_or(9), cfg.loop_headed_by(inner).unwrap_or(9));
            let (whole, part) = (&cfg.loops[one as usize], &cfg.loops[two as usize]);
            assert_eq!((whole.depth, whole.parent, whole.size), (1, None, 3));
            assert_eq!((part.depth, part.parent, part.size), (2, Some(one), 1));
            assert_eq!((&whole.latches[..], &part.latches[..]), (&[latch][..], &[inner][..]));
            assert_eq!((&whole.exits[..], &part.exits[..]), (&[(latch, after)][..], &[(inner, latch)][..]));
            assert_eq!(cfg.loops_of(inner).collect::<Vec<_>>(), [two, one]);
            assert!(cfg.is_in_loop(inner, one) && !cfg.is_in_loop(latch, two) && !cfg.is_in_loop(before, one));
            assert_eq!(cfg.left_between(inner, after), Some(one));
            assert_eq!(cfg.left_between(inner, latch), Some(two));
            assert_eq!(cfg.left_between(latch, inner), None);
            assert!(cfg.is_back_edge(latch, outer) && !cfg.is_back_edge(before, outer));
        });
    }

    #[test]
    fn one_edge_may_leave_two_loops() {
        let text = "A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; @%p1 bra OUT; @%p2 bra B; @%p3 bra A; OUT: ret;";
        with_cfg(text, |code, cfg| {
            let (inner, out) = (block_of(code, cfg, Op::Not, 0), block_of(code, cfg, Op::Ret, 0));
            assert_eq!(cfg.loops.len(), 2);
            assert!(cfg.loops.iter().all(|one| one.exits.contains(&(inner, out))));
        });
    }

    #[test]
    fn a_loop_that_is_entered_in_the_middle_is_tangled_and_no_loop() {
        let text = "@%p1 bra B; A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; @%p2 bra A; popc.b32 %r1, %r1; ret;";
        with_cfg(text, |code, cfg| {
            assert!(cfg.loops.is_empty());
            let tangled = [Op::Neg, Op::Not, Op::Popc].map(|op| cfg.is_tangled(block_of(code, cfg, op, 0)));
            assert_eq!(tangled, [true, true, false]);
        });
    }

    #[test]
    fn a_loop_without_an_end_has_no_exit_and_meets_only_at_the_end() {
        with_cfg("A: neg.s32 %r1, %r1; bra A;", |_, cfg| {
            assert_eq!((cfg.loops.len(), cfg.loops[0].exits.len()), (1, 0));
            assert_eq!(cfg.ipdom(0), cfg.end());
        });
    }

    #[test]
    fn loops_nested_deeper_than_anyone_does_are_not_followed() {
        let nest = |depth: usize| {
            let heads: String = (0..depth).map(|at| format!("L{at}: neg.s32 %r1, %r1;\n")).collect();
            let tails: String = (0..depth).rev().map(|at| format!("@%p1 bra L{at};\n")).collect();
            with_code(&format!("{heads}{tails}ret;"), |code| {
                Cfg::new(code).map(|cfg| cfg.loops.iter().map(|one| one.depth).max())
            })
        };
        assert_eq!(nest(64), Some(Some(64)));
        assert_eq!(nest(65), None);
        // In the time of their number, not of its square.
        assert_eq!(nest(50_000), None);
    }
}
