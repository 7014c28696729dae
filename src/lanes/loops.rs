//! What a branch has to do with loops: which it leaves, which it only decides to enter, and what decides about leaving them.

use super::cfg::{Block, Cfg};

/// Whether a way of a block's branch leads out of a loop that holds it.
pub(super) fn leaves(cfg: &Cfg, block: Block, one: u32) -> bool {
    cfg.successors(block).iter().any(|to| !cfg.is_in_loop(*to, one))
}

/// The innermost loop that a way of a block's branch leads out of.
pub(super) fn left_loop(cfg: &Cfg, block: Block) -> Option<u32> {
    cfg.loops_of(block).find(|one| leaves(cfg, block, *one))
}

/// The loop that a branch only decides to enter: one side begins with it, and the other is where it leads.
pub(super) fn guarded_loop(cfg: &Cfg, block: Block) -> Option<u32> {
    let [one, other] = *cfg.successors(block) else { return None };
    let enters = |to: Block, past: Block| {
        // A block of its own may stand before the header.
        let single = cfg.successors(to).first().copied().filter(|_| cfg.successors(to).len() == 1);
        let entered = cfg.loop_headed_by(to).or_else(|| single.and_then(|next| cfg.loop_headed_by(next)))?;
        let outside = !cfg.is_in_loop(block, entered);
        let exits = &cfg.loops[entered as usize].exits;
        let leads = |exit: Block| exit == past || cfg.successors(exit) == [past];
        (outside && !exits.is_empty() && exits.iter().all(|(_, to)| leads(*to))).then_some(entered)
    };
    if one >= cfg.end() || other >= cfg.end() {
        let inner = if one >= cfg.end() { other } else { one };
        return if inner < cfg.end() { enters(inner, cfg.end()) } else { None };
    }
    enters(one, other).or_else(|| enters(other, one))
}

/// The blocks before another one from which not all ways lead to it, the nearest first.
pub(super) fn deciding(cfg: &Cfg, block: Block) -> impl Iterator<Item = Block> {
    above(cfg, block).filter(move |above| decides(cfg, *above, block))
}

/// The blocks of a loop at which it is decided whether lanes leave it from `from`: that one, and those before it.
pub(super) fn deciding_in_loop(cfg: &Cfg, from: Block, one: u32) -> impl Iterator<Item = Block> {
    let inside = std::iter::once(from).chain(above(cfg, from)).take_while(move |block| cfg.is_in_loop(*block, one));
    inside.filter(move |block| *block == from || decides(cfg, *block, from))
}

/// The blocks that lanes leave a loop from, and are meant to: not on the way to a trap.
pub(super) fn meant_exits(cfg: &Cfg, one: u32) -> impl Iterator<Item = Block> {
    cfg.loops[one as usize].exits.iter().filter(|(_, to)| !cfg.is_cold(*to)).map(|(from, _)| *from)
}

/// Whether every turn of a loop comes to a block.
pub(super) fn is_in_every_turn(cfg: &Cfg, block: Block, one: u32) -> bool {
    cfg.loops[one as usize].latches.iter().all(|latch| cfg.dominates(block, *latch))
}

/// The blocks that every way to a block comes through, the nearest first.
fn above(cfg: &Cfg, block: Block) -> impl Iterator<Item = Block> {
    std::iter::successors(cfg.idom(block), |above| cfg.idom(*above))
}

/// Whether not all ways from a block, which stands before another, lead to that one.
fn decides(cfg: &Cfg, block: Block, whether: Block) -> bool {
    !cfg.dominates(cfg.ipdom(block), whether)
}
