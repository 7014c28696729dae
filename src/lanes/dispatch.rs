//! Comparisons of one value with constants, one after the other: the tree of a `switch`, which is told at its first branch.

use hashbrown::{HashMap, HashSet};

use super::branch::Branch;
use super::cfg::{Block, Cfg};
use super::graph::{Graph, Node, Source};
use super::look::Look;
use super::value::{Extent, LANES, Value};
use super::verdict::{Advice, Judgement, Verdict};
use crate::parse::ptx::{Code, Cond, Op, Operand};

/// Why parts of a `switch` are silent that lanes part at.
const TOLD_AT_FIRST: &str = "told at the first of these comparisons";
const ONE_CASE: &str = "no lanes of one warp take different cases";

/// The branch that this one goes on from, where both compare one value with constants: the tree of a `switch`.
pub(super) fn chain(
    code: &Code<'_>,
    cfg: &Cfg,
    block: Block,
    at_block: &HashMap<Block, u32>,
    found: &[Branch],
) -> Option<u32> {
    let compared = |block: Block| {
        let last = &code.instructions[cfg.last(block) as usize];
        let guard = last.guard.filter(|_| last.op == Op::Bra)?;
        cfg.instructions(block).rev().skip(1).find_map(|at| {
            let one = &code.instructions[at as usize];
            let writes = code.destinations(one).first() == Some(&Operand::Register(guard.register));
            match code.sources(one) {
                [Operand::Register(value), Operand::Constant(_)] if writes && one.op == Op::Setp => Some(*value),
                _ => None,
            }
        })
    };
    let [before] = *cfg.predecessors(block) else { return None };
    let only_compares = cfg.instructions(block).len() <= 2;
    let root = *at_block.get(&before)?;
    (only_compares && compared(block).is_some() && compared(block) == compared(before))
        .then(|| found[root as usize].chain.unwrap_or(root))
}

/// Counts the ways that comparisons with constants lead together: the blocks that one of them leads to and that is none of
/// them.
pub(super) fn count_ways(cfg: &Cfg, found: &mut [Branch]) {
    let mut targets: HashMap<usize, HashSet<Block>> = HashMap::new();
    let root_of = |at: usize| found[at].chain.map(|root| root as usize);
    let roots: HashSet<usize> = (0..found.len()).filter_map(root_of).collect();
    if roots.is_empty() {
        return;
    }
    let members: HashMap<Block, usize> = (0..found.len())
        .map(|at| (found[at].block, root_of(at).unwrap_or(at)))
        .filter(|(_, root)| roots.contains(root))
        .collect();
    for (block, root) in &members {
        let ways = cfg.successors(*block).iter().filter(|to| members.get(*to) != Some(root));
        targets.entry(*root).or_default().extend(ways);
    }
    for (root, ways) in targets {
        found[root].dispatches = u32::try_from(ways.len()).unwrap_or(u32::MAX);
    }
}

/// Silences what only goes on with the comparisons of a branch that is told for the same cause.
pub(super) fn told_at_first(found: &mut [Branch], cause: Verdict) {
    let is_told = |branch: &Branch| {
        let judgement = branch.judgement.filter(|one| one.advice > Advice::Silent && one.verdict == cause);
        judgement.filter(|_| !branch.is_loop)
    };
    for at in 0..found.len() {
        let root = found[at].chain.and_then(|root| found.get(root as usize));
        if let (Some(judgement), Some(_)) = (is_told(&found[at]), root.and_then(is_told)) {
            found[at].judgement = Some(Judgement { advice: Advice::Silent, reason: TOLD_AT_FIRST, ..judgement });
        }
    }
}

/// Whether why a branch is silent is that it is a part of a `switch`.
pub(super) fn is_told_of_switch(branch: &Branch) -> bool {
    branch.judgement.is_some_and(|one| [TOLD_AT_FIRST, ONE_CASE].contains(&one.reason))
}

/// Silences branches that begin comparisons with constants, where no warp has lanes for two of them, nor two lanes for one:
/// the leaders of warps, each with a task of its own.
pub(super) fn quiet_dispatches(look: &mut Look<'_, '_, '_>, found: &mut [Branch]) {
    for at in 0..found.len() {
        let by_index = found[at].judgement.filter(|one| one.verdict == Verdict::DivergentIndex);
        let Some(judgement) = by_index.filter(|one| one.advice > Advice::Silent) else { continue };
        if has_one_case(look, at, found) {
            found[at].judgement = Some(Judgement { advice: Advice::Silent, reason: ONE_CASE, ..judgement });
        }
    }
}

/// Whether lanes of one warp hardly ever take different cases of those that a branch begins.
fn has_one_case(look: &mut Look<'_, '_, '_>, at: usize, found: &[Branch]) -> bool {
    let is_member = |branch: &&Branch| branch.chain.is_some_and(|root| root as usize == at);
    if found.iter().filter(is_member).count() < 2 {
        return false;
    }
    let given = look.given;
    let tested = |block: Block| given.decisions[block as usize].and_then(|one| tested(given.graph, one.node));
    let block = found[at].block;
    let Some((value, _, _)) = tested(block) else { return false };
    let all = found.iter().filter(is_member).map(|branch| branch.block).chain([block]).filter_map(tested);
    let cases: Vec<u64> = all.filter(|(_, _, equals)| *equals).map(|(_, constant, _)| constant).collect();
    let Some((value, active, extent)) = look.value_in_some(value, block) else { return false };
    shared_cases(&value, &active, extent, &cases) < SEVERAL
}

/// The value that a condition compares with a constant, the constant, and whether it asks for equality.
fn tested(graph: &Graph<'_, '_>, node: Node) -> Option<(Node, u64, bool)> {
    let Source::Result { instruction, .. } = graph.source(node) else { return None };
    let one = &graph.code().instructions[instruction as usize];
    let [value, constant] = *graph.inputs(node) else { return None };
    let Source::Constant(constant) = graph.source(constant) else { return None };
    (one.op == Op::Setp).then_some((value, constant, matches!(one.cond, Cond::Eq | Cond::Ne)))
}

/// Share of warps from which on lanes of one warp are said to take different cases.
const SEVERAL: f64 = 0.25;

/// Share of the warps that come to a dispatch in which lanes take two of the cases, or several lanes take one.
fn shared_cases(value: &Value, active: &Value, extent: Extent, cases: &[u64]) -> f64 {
    let (mut shared, mut all) = (0.0_f64, 0.0_f64);
    for environment in 0..value.rows().max(active.rows()) {
        for warp in 0..extent.warps() {
            let lanes = warp * LANES..((warp + 1) * LANES).min(extent.threads);
            let mine: Vec<u64> = lanes
                .filter(|lane| active.at(environment, *lane) != 0)
                .map(|lane| value.at(environment, lane) & 0xffff_ffff)
                .collect();
            let hits = mine.iter().filter(|value| cases.iter().any(|case| *case & 0xffff_ffff == **value)).count();
            shared += if hits >= 2 { 1.0 } else { 0.0 };
            all += if mine.is_empty() { 0.0 } else { 1.0 };
        }
    }
    if all > 0.0 { shared / all } else { 0.0 }
}
