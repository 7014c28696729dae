//! Barriers that all threads of a block have to come to, and the branches that decide whether they do.

use hashbrown::HashMap;

use super::branch::Branch;
use super::cfg::{Block, Cfg, NONE};
use super::cost::{Callees, Costs, Side, Traits, waits};
use super::loops::left_loop;
use super::verdict::Missed;
use crate::parse::ptx::Code;

/// Barriers for the whole block, and the branches that decide whether threads come to them.
pub(super) struct Barriers {
    /// Each block with one, the byte of its first, and how many it has.
    pub(super) blocks: HashMap<Block, (u32, u32)>,
}

impl Barriers {
    pub(super) fn find(code: &Code<'_>, cfg: &Cfg, callees: &Callees<'_>) -> Barriers {
        let mut blocks = HashMap::new();
        for block in (0..cfg.end()).filter(|block| cfg.is_reached(*block)) {
            let instructions = cfg.instructions(block).map(|at| &code.instructions[at as usize]);
            let mut barriers = instructions.filter(|one| waits(code, one, callees));
            if let Some(first) = barriers.next() {
                let more = u32::try_from(barriers.count()).unwrap_or(u32::MAX - 1);
                blocks.insert(block, (first.at, 1 + more));
            }
        }
        Barriers { blocks }
    }

    /// Finds a barrier on one of the sides of a block's branch, and what becomes of those that miss it.
    pub(super) fn attach(&self, cfg: &Cfg, costs: &mut Costs<'_>, block: Block, branch: &mut Branch) {
        let Some((taken, other)) = branch.sides else { return };
        let [one, two] = *cfg.successors(block) else { return };
        let stop = cfg.ipdom(block);
        let again = |to: Block| self.again(cfg, block, to).and_then(|block| self.blocks.get(&block));
        let bound =
            if branch.shared.has.any(Traits::BARRIER) { self.bound(costs, block, [one, two], stop) } else { None };
        let has = |to: Block, side: Side| side.has.any(Traits::BARRIER) || again(to).is_some() || bound == Some(to);
        if !has(one, taken) && !has(two, other) {
            return;
        }
        let mut first = None;
        let mut counts = [0; 2];
        for (at, (start, side)) in [(one, taken), (two, other)].into_iter().enumerate() {
            if has(start, side) {
                let mut blocks = Vec::new();
                let _ = costs.each_block(block, start, stop, &mut |_, _, here| blocks.push(here));
                let barriers = || blocks.iter().filter_map(|here| self.blocks.get(here)).chain(again(start));
                first = first.or(barriers().map(|(first, _)| *first).min());
                counts[at] = barriers().map(|(_, count)| count).sum::<u32>();
            }
        }
        branch.barrier = first;
        let both = has(one, taken) && has(two, other);
        // A loop runs its barriers more than once, and the compiler may have unrolled it on one side only.
        let turns = taken.has.and(other.has).any(Traits::LOOP);
        // What they do before they exit makes no barrier wait.
        let ends = stop == cfg.end() || self.only_ends(cfg, costs, stop);
        branch.missed = Some(match (both, ends) {
            (true, _) if turns || counts[0] == counts[1] => Missed::Paired,
            (true, _) | (false, false) => Missed::GoesOn,
            (false, true) => Missed::Exits,
        });
    }

    /// The blocks with a barrier on the sides of a block's branch.
    pub(super) fn on_sides(&self, cfg: &Cfg, costs: &mut Costs<'_>, block: Block) -> Vec<Block> {
        let mut found = Vec::new();
        for start in cfg.successors(block) {
            let mut note = |here: Block| {
                if self.blocks.contains_key(&here) {
                    found.push(here)
                }
            };
            let _ = costs.each_block(block, *start, cfg.ipdom(block), &mut |_, _, here| note(here));
            self.again(cfg, block, *start).into_iter().for_each(note);
        }
        found
    }

    /// Whoever stays in a loop comes to what stands before its branch again.
    fn again(&self, cfg: &Cfg, block: Block, to: Block) -> Option<Block> {
        left_loop(cfg, block).filter(|left| cfg.is_in_loop(to, *left)).map(|_| block)
    }

    /// Of two sides that both lead to a barrier the one that cannot get past it, where the other can.
    fn bound(&self, costs: &mut Costs<'_>, block: Block, sides: [Block; 2], stop: Block) -> Option<Block> {
        let holds = |block: Block| self.blocks.contains_key(&block);
        let passes = sides.map(|start| costs.passes(block, start, stop, &holds));
        match passes {
            [Some(false), Some(true)] => Some(sides[0]),
            [Some(true), Some(false)] => Some(sides[1]),
            _ => None,
        }
    }

    /// Whether nothing comes from a block on but the end.
    fn only_ends(&self, cfg: &Cfg, costs: &mut Costs<'_>, from: Block) -> bool {
        let mut weight = 0.0;
        let walked = costs.each_block(NONE, from, cfg.end(), &mut |_, sides, here| {
            weight += sides[here as usize].weight;
        });
        walked.is_some() && weight == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged};
    use super::super::verdict::{Advice, Confidence, Verdict};

    const T: &str = "mov.u32 %t, %tid.x;";

    /// Verdict, confidence and advice of the first branch.
    fn first(text: &str) -> (Verdict, Confidence, Advice) {
        let judgement = judged(SHAPE, text)[0].judgement.expect("a judgement");
        (judgement.verdict, judgement.confidence, judgement.advice)
    }

    /// A part of the block goes where `inside` stands, and all go on to something else.
    fn inside(condition: &str, inside: &str) -> String {
        format!("{T} {condition} @!%p1 bra E; {inside} E: st.global.u32 [%rd1], %t; ret;")
    }

    #[test]
    fn a_barrier_that_nobody_comes_to_is_none() {
        let part = "setp.lt.u32 %p1, %t, 40;";
        let waits = |guard: &str| first(&inside(part, &format!("{guard} bar.sync 0; L: neg.s32 %r1, %r1;"))).0;
        assert_eq!(waits(""), Verdict::BarrierInDivergent);
        // Blocks of 256 threads are no smaller than 65.
        assert_ne!(waits("mov.u32 %n, %ntid.x; setp.gt.u32 %p2, %n, 64; @%p2 bra L;"), Verdict::BarrierInDivergent);
        assert_ne!(waits("setp.lt.u32 %p2, %t, 50; @%p2 bra L;"), Verdict::BarrierInDivergent);
        // What is known only at run time may bring threads there.
        let open = "ld.param.u32 %n, [n]; setp.ne.u32 %p2, %n, 123456; @%p2 bra L;";
        assert_eq!(waits(open), Verdict::BarrierInDivergent);
    }

    #[test]
    fn the_first_block_is_in_every_launch() {
        let of = |guard: &str| {
            let text = format!(
                "{T} {guard} @!%p2 bra E; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; @!%p1 bra E; bar.sync 0; \
                 E: st.global.u32 [%rd1], %t; ret;"
            );
            let last = judged(SHAPE, &text).pop().expect("a branch");
            last.judgement.map(|one| (one.verdict, one.confidence, one.advice)).expect("a judgement")
        };
        let block = "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r2, 0;";
        assert_eq!(of(block), (Verdict::BarrierInDivergent, Confidence::High, Advice::Warn));
        let parameter = "ld.param.u32 %r2, [n]; setp.eq.u32 %p2, %r2, 1234;";
        assert_eq!(of(parameter), (Verdict::BarrierInDivergent, Confidence::Low, Advice::Note));
    }

    #[test]
    fn what_has_nothing_to_do_with_the_end_of_the_data_hides_no_barrier_behind_it() {
        let place = "mov.u32 %b, %ctaid.x; shl.b32 %i, %t, 2; mad.lo.s32 %i, %b, 512, %i; ld.param.u32 %n, [n];";
        let behind = |gate: &str| {
            let end = "setp.ge.s32 %p1, %i, %n; @%p1 bra E; bar.sync 0; neg.s32 %r1, %r1; E: ret;";
            let branches = judged(SHAPE, &format!("{T} {place} {gate} @!%p2 bra E; {end}"));
            branches.last().and_then(|branch| branch.judgement).expect("a judgement").verdict
        };
        let read =
            |at: u32| format!("ld.param.u64 %rd2, [a]; ld.global.u32 %r5, [%rd2+{at}]; setp.lt.u32 %p2, %r5, 5;");
        for at in 0..8 {
            assert_eq!(behind(&read(4 * at)), Verdict::BarrierInDivergent, "{at}");
        }
        // Whole blocks, told by the number itself, by another one that is made of it, or by a way that it decides.
        let whole = "mad.lo.s32 %r5, %b, 512, 1024; setp.le.s32 %p3, %r5, %n;";
        assert_ne!(behind(&whole.replace("%p3", "%p2")), Verdict::BarrierInDivergent);
        assert_ne!(
            behind(&format!("{whole} selp.s32 %r6, 1, 0, %p3; setp.ne.s32 %p2, %r6, 0;")),
            Verdict::BarrierInDivergent
        );
        let way = "mov.u32 %r6, 0; @!%p3 bra N; ld.param.u64 %rd2, [a]; ld.global.u32 %r6, [%rd2]; N: setp.ne.s32 %p2, %r6, 0;";
        assert_ne!(behind(&format!("{whole} {way}")), Verdict::BarrierInDivergent);
    }
}
