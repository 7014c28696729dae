//! A look at one branch: how its lanes part, computed as far as the budget goes, and what is to be said of that.

use hashbrown::HashSet;

use super::branch::Branch;
use super::budget::Purse;
use super::calls::{Call, Passed};
use super::cfg::{Block, Cfg};
use super::eval::{Evaluator, Found, Given, Mode};
use super::graph::Node;
use super::lattice::{Known, WARP};
use super::loops::{deciding, deciding_in_loop, left_loop, meant_exits};
use super::region::Regions;
use super::slice::{Strides, is_bound, is_masked, is_met_by_data, is_open_at_every_place, parameters};
use super::split::Split;
use super::spread::Spread;
use super::steps::is_nowhere;
use super::task::Task;
use super::value::{ALL, Extent, FIRST, NEAR, SOME, Value};
use super::verdict::{Advice, Confidence, Evidence, Judgement, Verdict, judge, may_matter};
use crate::parse::ptx::{Code, Op};

/// Why a loop is silent that lanes leave apart by their index, as far as they come.
const ENDED_BY_DATA: &str = "data end the loop as well, at another exit";

/// What computes values: in some environments, in all, and in all with data that differ from lane to lane.
struct Evaluators<'e, 'c, 't> {
    few: Evaluator<'e, 'c, 't>,
    by_index: Evaluator<'e, 'c, 't>,
    by_data: Evaluator<'e, 'c, 't>,
    near: Evaluator<'e, 'c, 't>,
}

/// What is known of a function while its branches are looked at.
pub(super) struct Look<'l, 'c, 't> {
    pub(super) task: &'l Task<'l>,
    pub(super) given: &'l Given<'l, 'c, 't>,
    /// What is left of what the function may take.
    pub(super) purse: Purse,
    /// The same for what is looked at once more.
    second: Purse,
    evaluators: Evaluators<'l, 'c, 't>,
    /// Loops whose lanes start a step apart, once they were looked for.
    strides: Option<Strides>,
    /// Loops that lanes leave one after the other, or may, once that is known: until then any may be such a loop.
    parting: Option<HashSet<u32>>,
}

impl<'l, 'c, 't> Look<'l, 'c, 't> {
    /// A look with all of the budget; `regions` are those that were asked for already.
    pub(super) fn new(task: &'l Task<'l>, given: &'l Given<'l, 'c, 't>, regions: Regions) -> Look<'l, 'c, 't> {
        let evaluators = Evaluators {
            few: Evaluator::new(given, Regions::default(), Mode::Index, SOME),
            by_index: Evaluator::new(given, regions, Mode::Index, ALL),
            by_data: Evaluator::new(given, Regions::default(), Mode::Data, ALL),
            near: Evaluator::new(given, Regions::default(), Mode::Index, NEAR),
        };
        let (purse, second) = (Purse::of(task.budget), Purse::of(task.budget.second()));
        Look { task, given, purse, second, evaluators, strides: None, parting: None }
    }

    pub(super) fn cfg(&self) -> &'c Cfg {
        self.given.graph.cfg()
    }

    /// What is known of the condition of a block's branch.
    pub(super) fn known(&self, block: Block) -> Option<Known> {
        Some(self.given.known[self.given.decisions[block as usize]?.node.0 as usize])
    }

    /// Tells which loops lanes leave one after the other, or may.
    pub(super) fn set_parting(&mut self, parting: HashSet<u32>) {
        self.parting = Some(parting);
    }

    /// Calls with the values that they pass.
    pub(super) fn evaluated(&mut self, passed: &[Passed]) -> Vec<Call> {
        let Evaluators { by_index, by_data, .. } = &mut self.evaluators;
        by_index.allow(self.task.budget.branch);
        by_data.allow(self.task.budget.branch);
        passed.iter().map(|call| call.evaluated(by_index, by_data)).collect()
    }

    /// A value at a branch, and the lanes that come there, in some environments.
    pub(super) fn value_in_some(&mut self, node: Node, block: Block) -> Option<(Value, Value, Extent)> {
        self.purse.spend(1, &mut self.evaluators.few, |few| {
            Some((few.value_at(node, block).ok()?, few.active(block).ok()?, few.extent()))
        })
    }

    /// Whether lanes come to one of these blocks, or may with numbers that nobody tried.
    pub(super) fn comes_to_any(&mut self, blocks: &[Block]) -> bool {
        let Evaluators { by_index, near, .. } = &mut self.evaluators;
        let usual = |block: &Block| self.purse.spend(1, by_index, |all| may_come(*block, all)).unwrap_or(true);
        let nearby = |block: &Block| self.second.spend(1, near, |near| may_come(*block, near)).unwrap_or(false);
        blocks.iter().any(usual) || (self.given.arguments.are_unknown() && blocks.iter().any(nearby))
    }

    /// Judges a branch by what the index makes of it: what a report says, whatever is asked for beside it.
    pub(super) fn by_index(&mut self, branch: &mut Branch) {
        let block = branch.block;
        let mut evidence = self.evidence(branch);
        if self.is_uniform(branch) {
            branch.judgement = Some(judge(&evidence));
            return;
        }
        let several = evidence.several;
        if branch.is_beneath_notice(self.task.is_source) || !self.hangs_on_index(block) {
            return;
        }
        // Most branches part few warps or none, which some environments show.
        let Some(index) = split_within(&mut self.purse, &mut self.evaluators.few, block, several) else { return };
        evidence.index = index;
        evidence.data = index;
        evidence.spread = self.leaves_loop(branch).and_then(|one| self.spread_in_some(one, block));
        // Where threads miss a barrier, that it happens seldom is no reason for silence.
        if branch.missed.is_none() && !may_matter(&evidence) {
            branch.split = index;
            branch.spread = evidence.spread;
            branch.judgement = Some(Judgement { advice: Advice::Silent, ..judge(&evidence) });
            return;
        }
        let Some(index) = self.split_by_index(branch) else { return };
        evidence.index = index;
        evidence.data = index;
        let hangs_on_data = self.task.is_source || index.leader || (branch.missed.is_some() && index.block);
        if hangs_on_data && self.known(block).is_some_and(|known| known.data) {
            let Some(data) = self.split_by_data(block, several) else { return };
            evidence.data = data;
        }
        if let Some(one) = self.leaves_loop(branch) {
            // What some environments show holds where all of them would take too long.
            evidence.spread = self.spread(one, block).or(evidence.spread);
        }
        self.conclude(branch, evidence);
        let is_missed = |judgement: Judgement| judgement.verdict == Verdict::BarrierInDivergent;
        if branch.missed.is_some() && !branch.judgement.is_some_and(is_missed) {
            self.look_nearby(branch, evidence);
        }
    }

    /// Looks once more at a branch behind which a barrier is missed where threads part, with numbers that are near each other:
    /// that it happens seldom is no reason for silence.
    fn look_nearby(&mut self, branch: &mut Branch, evidence: Evidence) {
        let block = branch.block;
        let by_data = self.known(block).is_none_or(|known| known.data);
        if by_data || !self.given.arguments.are_unknown() {
            return;
        }
        let (second, near) = (&mut self.second, &mut self.evaluators.near);
        // There are twice as many of them as usual.
        let Ok(index) = second.spend(2, near, |near| split(block, near, evidence.several)) else { return };
        let left = left_loop(self.given.graph.cfg(), block).filter(|_| branch.is_loop && branch.ways <= 2);
        let spread = left.and_then(|one| spread_within(second, near, one, block));
        let parts = (index.block && !index.guessed) || spread.is_some_and(|spread| spread.parts > 0.0);
        if !parts {
            return;
        }
        let mut judged = branch.clone();
        self.conclude(&mut judged, Evidence { index, data: index, spread: spread.or(evidence.spread), ..evidence });
        if judged.judgement.is_some_and(|judgement| judgement.verdict == Verdict::BarrierInDivergent) {
            *branch = judged;
        }
    }

    /// Judges a branch by its data, where the index gives no reason for a word.
    pub(super) fn by_data(&mut self, branch: &mut Branch) {
        if self.is_uniform(branch) || branch.is_beneath_notice(self.task.is_source) {
            return;
        }
        let Some(judged) = self.looked_at(branch) else { return };
        if judged.judgement.is_some_and(|judgement| judgement.verdict == Verdict::DivergentData) {
            *branch = judged;
        }
    }

    /// Judges a branch of which nothing is said, as well as can be.
    pub(super) fn for_the_list(&mut self, branch: &mut Branch) {
        if self.is_uniform(branch) {
            return;
        }
        let Some(mut judged) = self.looked_at(branch) else { return };
        let was_followed = branch.judgement.is_some()
            || branch.is_beneath_notice(self.task.is_source)
            || !self.hangs_on_index(branch.block);
        let reason = if was_followed {
            "lanes part, and too seldom for a report"
        } else {
            "it takes too long to follow for a report"
        };
        if let Some(judgement) = &mut judged.judgement
            && judgement.advice > Advice::Silent
        {
            *judgement = Judgement { advice: Advice::Silent, reason, ..*judgement };
        }
        *branch = judged;
    }

    /// The branch with a judgement that rests on all environments, and on data.
    fn looked_at(&mut self, branch: &Branch) -> Option<Branch> {
        let block = branch.block;
        let mut evidence = self.evidence(branch);
        evidence.index = self.split_by_index(branch)?;
        evidence.data = evidence.index;
        if self.known(block).is_some_and(|known| known.data) {
            evidence.data = self.split_by_data(block, evidence.several)?;
        }
        if let Some(one) = self.leaves_loop(branch) {
            evidence.spread = self.spread(one, block);
        }
        let mut branch = branch.clone();
        self.conclude(&mut branch, evidence);
        Some(branch)
    }

    /// What is known of a branch before values are computed.
    fn evidence(&self, branch: &Branch) -> Evidence {
        Evidence {
            index: Split { reached: 1.0, ..Split::default() },
            data: Split { reached: 1.0, ..Split::default() },
            is_loop: branch.is_loop,
            body: branch.body,
            is_guard: branch.guards.is_some_and(|one| self.parting.as_ref().is_none_or(|all| all.contains(&one))),
            sides: branch.sides,
            several: branch.ways > 2,
            barrier: branch.missed,
            shape_known: self.task.shape_known,
            is_source: self.task.is_source,
            in_loop: self.cfg().loop_of(branch.block).is_some(),
            ..Evidence::default()
        }
    }

    /// Whether all threads agree that a barrier may wait for, else all lanes of a warp.
    fn is_uniform(&self, branch: &Branch) -> bool {
        let known = self.known(branch.block);
        let block_wide = branch.missed.is_none() || known.is_some_and(|known| known.grain > WARP);
        known.is_none_or(Known::is_warp_uniform) && block_wide
    }

    /// Whether the index has a part in what decides the branch of a block.
    fn hangs_on_index(&self, block: Block) -> bool {
        self.known(block).is_some_and(|known| known.index)
    }

    /// The loop whose turns a branch is judged by.
    fn leaves_loop(&self, branch: &Branch) -> Option<u32> {
        left_loop(self.cfg(), branch.block).filter(|_| branch.is_loop && branch.ways <= 2)
    }

    /// Judges what was found, and looks closer where that would be told.
    fn conclude(&mut self, branch: &mut Branch, mut evidence: Evidence) {
        let mut judgement = judge(&evidence);
        if judgement.verdict == Verdict::BarrierInDivergent && judgement.confidence == Confidence::Low {
            evidence.in_every_launch = self.parts_in_every_launch(branch.block, evidence.several);
            judgement = judge(&evidence);
        }
        if is_to_be_looked_at_closer(branch, &judgement) {
            self.look_closer(branch, judgement.verdict, &mut evidence);
            judgement = judge(&evidence);
        }
        branch.split = evidence.index;
        branch.spread = evidence.spread;
        branch.judgement = Some(self.quieted(branch, judgement));
    }

    /// Finds out what speaks for silence of a branch that would be told.
    fn look_closer(&mut self, branch: &mut Branch, verdict: Verdict, evidence: &mut Evidence) {
        let block = branch.block;
        let Some(decision) = self.given.decisions[block as usize] else { return };
        let (given, node) = (self.given, decision.node);
        let (graph, cfg, waits) = (given.graph, self.cfg(), verdict == Verdict::BarrierInDivergent);
        evidence.is_scan = hands_up(graph.code(), cfg, block);
        evidence.is_bound = !branch.is_loop && evidence.index.threshold && is_bound(graph, given.known, node);
        evidence.is_masked = !branch.is_loop && is_masked(graph, given.known, node);
        evidence.is_offset = !waits && !branch.is_loop && self.hangs_on_offset(block, evidence.several);
        evidence.parameters = parameters(graph, node);
        let (few, work) = (&mut self.evaluators.few, self.task.budget.branch);
        let strides = self.strides.get_or_insert_with(|| Strides::find(graph, given.known, given.decisions, few, work));
        let decides = |at: Block| {
            let decision = given.decisions[at as usize];
            decision.is_some_and(|one| strides.decides(graph, given.known, at, one.node))
        };
        // Who does not come into such a loop lacks one turn, where its bound is not fixed.
        let guarded = branch.guards.filter(|_| !waits && evidence.parameters > 0);
        let is_before = guarded.is_some_and(|one| meant_exits(cfg, one).all(decides));
        evidence.is_strided = decides(block) || is_before;
        let is_strided = waits && strides.decides_for_block(graph, given.known, block, node);
        branch.is_strided = is_strided || (waits && self.leads_to_untold_steps(branch));
    }

    /// A judgement, no louder than data allow that decide beside the index.
    fn quieted(&self, branch: &Branch, judgement: Judgement) -> Judgement {
        if !is_by_index(judgement.verdict) {
            return judgement;
        }
        let block = branch.block;
        let left = left_loop(self.cfg(), block).filter(|_| branch.is_loop);
        if left.is_some_and(|one| self.is_left_by_data(block, one)) {
            return Judgement { advice: Advice::Silent, reason: ENDED_BY_DATA, ..judgement };
        }
        if self.task.is_source && judgement.advice > Advice::Silent && self.comes_by_data(block) {
            return of_few(&judgement, branch.is_loop);
        }
        judgement
    }

    /// Whether data decide about leaving a loop from another block than `own`.
    fn is_left_by_data(&self, own: Block, one: u32) -> bool {
        meant_exits(self.cfg(), one).any(|from| from != own && self.hangs_on_data(from, one))
    }

    /// Whether data that differ from lane to lane decide about leaving a loop from a block: there, or where the way to it
    /// parts from the others.
    fn hangs_on_data(&self, from: Block, one: u32) -> bool {
        deciding_in_loop(self.cfg(), from, one).any(|block| self.known(block).is_some_and(|known| known.data))
    }

    /// Whether data that differ from lane to lane decide who comes to a block, or to the loops that it is in.
    fn comes_by_data(&self, block: Block) -> bool {
        let parts_by_data = |known: Known| known.data && !known.is_warp_uniform();
        deciding(self.cfg(), block).any(|above| self.known(above).is_some_and(parts_by_data))
    }

    /// Whether a branch of a source stands before a loop whose step is not told: it may be that of the block.
    fn leads_to_untold_steps(&self, branch: &Branch) -> bool {
        let is_untold = |block: Block| self.known(block).is_some_and(|known| known.data && !known.index);
        let of_loop = branch.guards.and_then(|number| self.cfg().loops.get(number as usize));
        self.task.is_source && of_loop.is_some_and(|one| one.exits.iter().all(|(from, _)| is_untold(*from)))
    }

    /// Whether threads part in the first block of the grid, whatever the kernel is run with.
    fn parts_in_every_launch(&mut self, block: Block, several: bool) -> bool {
        let given = self.given;
        let is_fixed =
            |at: Block| given.decisions[at as usize].is_none_or(|one| !is_open_at_every_place(given.graph, one.node));
        if !deciding(self.cfg(), block).chain([block]).all(is_fixed) {
            return false;
        }
        let mut evaluator = Evaluator::new(given, Regions::default(), Mode::Index, FIRST);
        let split = split_within(&mut self.purse, &mut evaluator, block, several);
        split.is_some_and(|split| split.block && split.reached > 0.0)
    }

    /// Whether no warp parts where whole numbers that are known only at run time keep threads in their places.
    fn hangs_on_offset(&mut self, block: Block, several: bool) -> bool {
        let mut evaluator = Evaluator::new(self.given, Regions::default(), Mode::Index, SOME).aligned();
        let split = split_within(&mut self.purse, &mut evaluator, block, several);
        split.is_some_and(|split| split.most == 0.0 && split.reached > 0.0)
    }

    /// How warps part where data are one number for all of them.
    fn split_by_index(&mut self, branch: &Branch) -> Option<Split> {
        let (block, several, all) = (branch.block, branch.ways > 2, &mut self.evaluators.by_index);
        let split = split_within(&mut self.purse, all, block, several)?;
        if branch.missed.is_none() || split.block {
            return Some(split);
        }
        // Few numbers part a block at the end of the data, and it is chance whether one of these few is kept away by something
        // that has nothing to do with it.
        let beside = self.purse.spend(1, all, |all| split_beside(block, all, several)).ok().flatten();
        beside.filter(|beside| beside.block && !beside.guessed).or(Some(split))
    }

    /// How warps part where data differ from lane to lane.
    fn split_by_data(&mut self, block: Block, several: bool) -> Option<Split> {
        let split = split_within(&mut self.purse, &mut self.evaluators.by_data, block, several)?;
        let given = self.given;
        let decision = given.decisions[block as usize].filter(|_| split.leader);
        // Of the numbers that were drawn few are those of lanes.
        let is_chance = decision.is_some_and(|one| is_met_by_data(given.graph, given.known, one.node));
        Some(Split { leader: split.leader && !is_chance, ..split })
    }

    /// How far apart lanes leave a loop, in all environments.
    fn spread(&mut self, one: u32, block: Block) -> Option<Spread> {
        spread_within(&mut self.purse, &mut self.evaluators.by_index, one, block)
    }

    /// The same in some of them.
    fn spread_in_some(&mut self, one: u32, block: Block) -> Option<Spread> {
        spread_within(&mut self.purse, &mut self.evaluators.few, one, block)
    }
}

/// Whether lanes part because of their index alone.
fn is_by_index(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::DivergentIndex | Verdict::LeaderLane)
}

/// Whether a judgement would be told, and there may be a reason for silence that takes time to find.
fn is_to_be_looked_at_closer(branch: &Branch, judgement: &Judgement) -> bool {
    let waits = judgement.verdict == Verdict::BarrierInDivergent && (branch.is_loop || branch.guards.is_some());
    judgement.advice > Advice::Silent && (is_by_index(judgement.verdict) || waits)
}

/// The judgement on a branch of a source that data decide who comes to: it may be all lanes or one, and a source does not
/// tell which.
fn of_few(judgement: &Judgement, is_loop: bool) -> Judgement {
    if is_loop {
        return Judgement {
            advice: Advice::Silent,
            reason: "data decide how many lanes come to the loop",
            ..*judgement
        };
    }
    let advice = judgement.advice.min(Advice::Note);
    Judgement { advice, confidence: Confidence::Low, ..*judgement }
}

/// How warps part at the branch of a block, as far as the purse goes.
fn split_within(
    purse: &mut Purse,
    evaluator: &mut Evaluator<'_, '_, '_>,
    block: Block,
    several: bool,
) -> Option<Split> {
    purse.spend(1, evaluator, |evaluator| split(block, evaluator, several)).ok()
}

/// How far apart lanes leave a loop, likewise: turns take more than a branch.
fn spread_within(purse: &mut Purse, evaluator: &mut Evaluator<'_, '_, '_>, one: u32, block: Block) -> Option<Spread> {
    purse.spend(2, evaluator, |evaluator| evaluator.spread(one, block)).ok().flatten()
}

/// How warps part at the branch of a block. Where no environment comes to it because of what is known only at run time, all
/// of them are taken to do so.
fn split(block: Block, evaluator: &mut Evaluator<'_, '_, '_>, several: bool) -> Found<Split> {
    let condition = evaluator.condition(block)?;
    let active = evaluator.active(block)?;
    let extent = evaluator.extent();
    if is_nowhere(&active)
        && let Some(assumed) = evaluator.assumed(block)?
    {
        return Ok(Split { reached: 0.0, ..Split::count(&condition, &assumed, extent, several) });
    }
    Ok(Split::count(&condition, &active, extent, several))
}

/// How warps part at the branch of a block if they are let there by all that has nothing to do with what decides it; `None`
/// where there is nothing like that on the way.
fn split_beside(block: Block, evaluator: &mut Evaluator<'_, '_, '_>, several: bool) -> Found<Option<Split>> {
    let condition = evaluator.condition(block)?;
    let extent = evaluator.extent();
    let active = evaluator.assumed_beside(block)?;
    Ok(active.map(|active| Split::count(&condition, &active, extent, several)))
}

/// Whether lanes come to a block in some environment, or may in one that nobody tried.
fn may_come(block: Block, evaluator: &mut Evaluator<'_, '_, '_>) -> Found<bool> {
    if !is_nowhere(&evaluator.active(block)?) {
        return Ok(true);
    }
    Ok(evaluator.assumed(block)?.is_some_and(|assumed| !is_nowhere(&assumed)))
}

/// Whether lanes hand something to those above them right before the branch of a block.
fn hands_up(code: &Code<'_>, cfg: &Cfg, block: Block) -> bool {
    cfg.instructions(block).any(|at| {
        let one = &code.instructions[at as usize];
        one.op == Op::Shfl && one.mods.is_up()
    })
}
