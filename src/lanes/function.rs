//! One function from its statements to the judgement of each of its branches: one pass after the other.

use hashbrown::HashMap;

use super::barriers::Barriers;
use super::branch::Branch;
use super::budget::Purse;
use super::calls::{Call, passed};
use super::cfg::{Block, Cfg};
use super::cost::Costs;
use super::decisions::decisions;
use super::dispatch::{chain, count_ways, is_told_of_switch, quiet_dispatches, told_at_first};
use super::eval::Given;
use super::graph::Graph;
use super::guards::parting_loops;
use super::lattice::{Decision, solve};
use super::look::Look;
use super::loops::{guarded_loop, left_loop};
use super::region::Regions;
use super::rows::{checks_x, has_short_rows};
use super::task::{Task, Which};
use super::uses::Uses;
use super::verdict::Verdict;

/// What was found out about a function in one block.
#[derive(Debug, Default)]
pub struct Found {
    /// Its conditional branches, in order.
    pub branches: Vec<Branch>,
    /// What it passes on.
    pub calls: Vec<Call>,
    /// Whether a branch parts because of the index, and is worth a word.
    pub reports: bool,
    /// Whether there is too much to follow, so that nothing is said of any branch.
    pub not_followed: bool,
}

impl Found {
    /// What is found where there is too much to follow: branches are listed, and nothing is said of them.
    fn not_followed(branches: Vec<Branch>) -> Found {
        Found { branches, not_followed: true, ..Found::default() }
    }
}

/// Judges every conditional branch of a function, in order, and looks what it passes to the functions that `follows` holds
/// for.
///
/// What parts because of the index comes first, the same whatever else is asked for; then data; then what is only listed.
#[must_use]
pub fn branches(task: &Task<'_>, follows: &dyn Fn(&[u8]) -> bool) -> Found {
    let code = task.code;
    let Some(cfg) = Cfg::new(code) else { return Found::not_followed(Vec::new()) };
    let mut costs = Costs::new(code, &cfg, task.callees);
    let mut graph = Graph::new(code, &cfg);
    let decisions = decisions(code, &cfg, &mut graph);
    let passed = passed(code, &cfg, &mut graph, follows);
    let (Some(decisions), Some(passed)) = (decisions, passed) else {
        let plain = (0..cfg.end()).filter_map(|block| Branch::plain(task, &cfg, &mut costs, block));
        return Found::not_followed(plain.collect());
    };
    let barriers = Barriers::find(code, &cfg, task.callees);
    let mut found = listed(task, &cfg, &mut costs, &barriers, &decisions);
    let mut regions = Regions::default();
    let known = solve(&graph, &decisions, task.shape, &mut regions);
    let uses = Uses::of_code(code);
    let given = Given {
        graph: &graph,
        decisions: &decisions,
        known: &known,
        uses: &uses,
        arguments: task.arguments,
        shape: task.shape,
    };
    let mut look = Look::new(task, &given, regions);
    judge_by_index(&mut look, &mut found);
    take_back_idle_barriers(&mut look, &barriers, &mut costs, &mut found);
    judge_lone_guards(&mut look, &mut found);
    check_rows(&given, &mut found);
    quiet_dispatches(&mut look, &mut found);
    told_at_first(&mut found, Verdict::DivergentIndex);
    let reports = found.iter().any(|branch| !branch.is_silent());
    let calls = look.evaluated(&passed);
    if task.which >= Which::ByData {
        judge_by_data(&mut look, &mut found);
    }
    if task.which == Which::All {
        judge_for_the_list(&mut look, &mut found);
    }
    Found { branches: found, calls, reports, not_followed: false }
}

/// The branches with what control flow tells of them.
fn listed(
    task: &Task<'_>,
    cfg: &Cfg,
    costs: &mut Costs<'_>,
    barriers: &Barriers,
    decisions: &[Option<Decision>],
) -> Vec<Branch> {
    let mut found: Vec<Branch> = Vec::new();
    let mut at_block: HashMap<Block, u32> = HashMap::new();
    for block in (0..cfg.end()).filter(|block| decisions[*block as usize].is_some()) {
        let Some(mut branch) = Branch::plain(task, cfg, costs, block) else { continue };
        barriers.attach(cfg, costs, block, &mut branch);
        branch.leaves = left_loop(cfg, block);
        branch.guards = guarded_loop(cfg, block);
        branch.chain = chain(task.code, cfg, block, &at_block, &found);
        at_block.insert(block, u32::try_from(found.len()).unwrap_or(u32::MAX));
        found.push(branch);
    }
    count_ways(cfg, &mut found);
    found
}

/// Judges all by their index. Where there is too much to follow, barriers come first: what is wrong there is more than slow.
fn judge_by_index(look: &mut Look<'_, '_, '_>, found: &mut [Branch]) {
    let (waiting, others): (Vec<&mut Branch>, Vec<&mut Branch>) =
        found.iter_mut().partition(|branch| branch.missed.is_some());
    for branch in waiting.into_iter().chain(others) {
        look.by_index(branch);
    }
}

/// Judges branches anew whose barrier nobody comes to: it makes nobody wait.
fn take_back_idle_barriers(
    look: &mut Look<'_, '_, '_>,
    barriers: &Barriers,
    costs: &mut Costs<'_>,
    found: &mut [Branch],
) {
    for branch in found.iter_mut().filter(|branch| branch.waits()) {
        if look.comes_to_any(&barriers.on_sides(look.cfg(), costs, branch.block)) {
            continue;
        }
        (branch.missed, branch.barrier, branch.judgement) = (None, None, None);
        look.by_index(branch);
    }
}

/// Judges guards of loops anew that all lanes leave together which come there: what such a guard decides is told of no loop.
fn judge_lone_guards(look: &mut Look<'_, '_, '_>, found: &mut [Branch]) {
    let parting = parting_loops(look, found);
    let is_lone = |branch: &&mut Branch| branch.guards.is_some_and(|one| !parting.contains(&one));
    let lone: Vec<&mut Branch> = found.iter_mut().filter(is_lone).collect();
    look.set_parting(parting);
    for branch in lone {
        look.by_index(branch);
    }
}

/// Notes which branches leave out threads past the end of a row of the grid, where a warp covers several rows of the block.
fn check_rows(given: &Given<'_, '_, '_>, found: &mut [Branch]) {
    if !has_short_rows(given.shape) {
        return;
    }
    for branch in found.iter_mut().filter(|branch| branch.leaves_out_threads()) {
        let decision = given.decisions[branch.block as usize];
        branch.checks_row = decision.is_some_and(|decision| checks_x(given.graph, decision.node));
    }
}

/// Judges by their data those of which nothing is said.
fn judge_by_data(look: &mut Look<'_, '_, '_>, found: &mut [Branch]) {
    look.purse = Purse::of(look.task.budget);
    for branch in found.iter_mut().filter(|branch| branch.is_silent()) {
        look.by_data(branch);
    }
    told_at_first(found, Verdict::DivergentData);
}

/// Judges for a list of all branches those of which nothing is said. Whoever asks for it waits for longer.
fn judge_for_the_list(look: &mut Look<'_, '_, '_>, found: &mut [Branch]) {
    look.purse = Purse::of(look.task.budget.at_leisure());
    for branch in found.iter_mut().filter(|branch| branch.is_silent() && !is_told_of_switch(branch)) {
        look.for_the_list(branch);
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::super::eval::Arguments;
    use super::super::testing::{SHAPE, with_code};
    use super::*;

    #[test]
    fn where_there_is_too_much_to_follow_barriers_are_followed_first() {
        let work = "neg.s32 %r9, %r9; ".repeat(20);
        let part =
            |at: u32| format!("rem.u32 %r2, %r1, {}; setp.eq.u32 %p1, %r2, 0; @%p1 bra A{at}; {work} A{at}: ", at + 3);
        let many: String = (0..40).map(part).collect();
        let waits = "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra B; bar.sync 0; B:";
        with_code(&format!("mov.u32 %r1, %tid.x; {many} {waits} {work} ret;"), |code| {
            let task = Task {
                code,
                shape: SHAPE,
                shape_known: true,
                arguments: &Arguments::default(),
                budget: Budget { branch: 100_000, function: 100_000 },
                which: Which::ByIndex,
                is_source: false,
                callees: &|_| None,
            };
            let found = branches(&task, &|_| false).branches;
            let verdict = |branch: &Branch| branch.judgement.map(|judgement| judgement.verdict);
            assert!(found.iter().any(|branch| branch.judgement.is_none()), "the budget is for all of them");
            assert_eq!(found.last().and_then(verdict), Some(Verdict::BarrierInDivergent));
        });
    }
}
