//! Barriers that all threads of a block have to come to, and the branches that decide whether they do.

use hashbrown::HashMap;

use super::cfg::{Block, Cfg, NONE};
use super::cost::{Callees, Costs, Side, Traits, waits};
use super::function::{Branch, left_loop};
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
        // Whoever stays in a loop comes to what stands before its branch again.
        let left = left_loop(cfg, block);
        let again = |to: Block| left.filter(|left| cfg.is_in_loop(to, *left)).and_then(|_| self.blocks.get(&block));
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
