//! Branches that only decide to enter a loop, and those that leave it: what both would say is told once.

use hashbrown::{HashMap, HashSet};

use super::branch::Branch;
use super::look::Look;
use super::loops::leaves;
use super::loss::LOSS;
use super::verdict::{Advice, Judgement, Verdict};

/// The loops with a branch that lanes leave them apart at, or may: because of data, or of what could not be followed.
pub(super) fn parting_loops(look: &Look<'_, '_, '_>, found: &[Branch]) -> HashSet<u32> {
    let cfg = look.cfg();
    let mut parting = HashSet::new();
    for branch in found {
        let is_together =
            |judgement: Judgement| matches!(judgement.verdict, Verdict::WarpUniform | Verdict::BoundarySplit);
        let by_data = look.known(branch.block).is_none_or(|known| known.data && !known.is_warp_uniform());
        // Where its turns are told, so is what lanes lose that never come in.
        let is_cheap = branch.spread.is_some_and(|spread| spread.loss(branch.body) < LOSS);
        if by_data || is_cheap || !branch.judgement.is_some_and(is_together) {
            parting.extend(cfg.loops_of(branch.block).filter(|one| leaves(cfg, branch.block, *one)));
        }
    }
    parting
}

/// Of the guard of a loop and a branch that leaves it, behind both of which a barrier is missed, the louder is told.
pub(super) fn told_at_loop(branches: &mut [Branch]) {
    let waits = |branch: &Branch| branch.judgement.filter(|_| branch.waits());
    let mut exits: HashMap<u32, usize> = HashMap::new();
    for (at, branch) in branches.iter().enumerate() {
        if let Some(one) = branch.leaves.filter(|_| waits(branch).is_some()) {
            exits.entry(one).or_insert(at);
        }
    }
    for guard in 0..branches.len() {
        let exit = branches[guard].guards.and_then(|one| exits.get(&one).copied());
        let (Some(exit), Some(of_guard)) = (exit, waits(&branches[guard])) else { continue };
        let Some(of_loop) = waits(&branches[exit]) else { continue };
        let (silent, judgement) = if of_loop.advice >= of_guard.advice { (guard, of_guard) } else { (exit, of_loop) };
        let reason = "told once for this loop";
        branches[silent].judgement = Some(Judgement { advice: Advice::Silent, reason, ..judgement });
    }
}
