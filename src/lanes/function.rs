//! One function from its statements to the judgement of each of its branches.

use hashbrown::{HashMap, HashSet};

use super::Shape;
use super::barriers::Barriers;
use super::cfg::{Block, Cfg};
use super::cost::{Callee, Callees, Costs, Side, Traits};
use super::decisions::decisions;
use super::eval::{Arguments, Evaluator, Found as Computed, Given, Mode};
use super::graph::{Graph, Node, Source};
use super::lattice::{Known, solve};
use super::region::Regions;
use super::rows::checks_x;
use super::slice::{Strides, is_bound, is_masked, is_met_by_data, is_open_at_every_place, parameters};
use super::steps::is_nowhere;
use super::turns::Spread;
use super::uses::Uses;
use super::value::{ALL, Extent, FIRST, LANES, SOME, Value};
use super::verdict::{Advice, Confidence, Evidence, Judgement, LOSS, Missed, Split, Verdict, judge, may_matter};
use crate::parse::ptx::{Code, Cond, Op, Operand, Space};

/// One conditional branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Its byte in the module's text.
    pub at: u32,
    /// The statement of the body that it is.
    pub statement: u32,
    /// What there is to say; `None` where it could not be followed.
    pub judgement: Option<Judgement>,
    /// How warps part because of the index.
    pub split: Split,
    /// The branch leaves a loop, and this is how far apart lanes do so.
    pub spread: Option<Spread>,
    /// Whether it leaves a loop.
    pub is_loop: bool,
    /// The weight of a turn of that loop, its own block with it.
    pub body: f64,
    /// The innermost loop that it leaves.
    pub leaves: Option<u32>,
    /// The guard before a loop: its line is that of the loop's own branch.
    pub guards: Option<u32>,
    /// The cost of the side that is taken, and of the other; `None` where the function is too large to tell.
    pub sides: Option<(Side, Side)>,
    /// What both sides lead to before the ways meet for good.
    pub shared: Side,
    /// The ways that it leads: 2, or more for a table.
    pub ways: u32,
    /// The ways of all comparisons with constants that it begins together; 0 where it begins none.
    pub dispatches: u32,
    /// The branch that begins the comparisons with constants which this one goes on with, as an index of the list.
    pub chain: Option<u32>,
    /// What becomes of threads that miss the barrier on its side.
    pub missed: Option<Missed>,
    /// The byte of that barrier.
    pub barrier: Option<u32>,
    /// The ways meet only at the end.
    pub to_end: bool,
    /// A barrier stands in a loop whose threads start no more than a step apart, and it decides how many turns they take.
    pub is_strided: bool,
    /// It leaves out threads past the end of a row of the grid, and a row of the block, or of one of them, is shorter than a
    /// warp.
    pub checks_row: bool,
    /// The block that it was looked at in.
    pub shape: Shape,
}

/// How much may be computed for a function.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Numbers for one branch, in each mode.
    pub branch: u64,
    /// Numbers for all of them.
    pub function: u64,
}

impl Budget {
    /// What a function of `bytes` may take, one of `functions` that have branches.
    #[must_use]
    pub fn of(bytes: usize, functions: usize) -> Budget {
        let share = (100_000_000 / functions.max(1) as u64).clamp(400_000, 10_000_000);
        Budget { branch: 2_500_000, function: share + 20 * bytes as u64 }
    }

    /// What whoever asks for all branches waits for.
    fn at_leisure(self) -> Budget {
        Budget { branch: LEISURE * self.branch, function: LEISURE * self.function }
    }
}

/// Times as long as for a report that a list of all branches may take.
const LEISURE: u64 = 8;

/// Which branches are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// Those that may part because of the index, and cost enough for a report.
    ByIndex,
    /// Those that may part because of data, too.
    ByData,
    /// All.
    All,
}

/// What is to be looked at.
#[derive(Clone, Copy)]
pub struct Task<'t> {
    /// The instructions.
    pub code: &'t Code<'t>,
    /// The block.
    pub shape: Shape,
    /// Whether that is known.
    pub shape_known: bool,
    /// What callers pass.
    pub arguments: &'t Arguments,
    /// How much may be computed.
    pub budget: Budget,
    /// Which branches are to be judged.
    pub which: Which,
    /// Whether the code was made from a source.
    pub is_source: bool,
    /// The functions of the module.
    pub callees: &'t Callees<'t>,
}

/// What a function passes to another one.
#[derive(Debug, Clone)]
pub struct Call {
    /// The callee's name: an index of [`Code::names`].
    pub callee: u32,
    /// What it passes.
    pub arguments: Arguments,
}

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

/// Judges every conditional branch of a function, in order, and looks what it passes to the functions that `follows` holds
/// for.
///
/// What parts because of the index comes first, the same whatever else is asked for; then data; then what is only listed.
#[must_use]
pub fn branches(task: &Task<'_>, follows: &dyn Fn(&[u8]) -> bool) -> Found {
    let code = task.code;
    let Some(cfg) = Cfg::new(code) else { return Found { not_followed: true, ..Found::default() } };
    let mut costs = Costs::new(code, &cfg, task.callees);
    let mut graph = Graph::new(code, &cfg);
    let decisions = decisions(code, &cfg, &mut graph);
    let passed = passed(code, &cfg, &mut graph, follows);
    let (Some(decisions), Some(passed)) = (decisions, passed) else {
        // Too much to follow: its branches are listed, and nothing is said of them.
        let branches = (0..cfg.end()).filter_map(|block| plain(task, &cfg, &mut costs, block)).collect();
        return Found { branches, not_followed: true, ..Found::default() };
    };
    let mut found: Vec<Branch> = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut at_block: HashMap<Block, u32> = HashMap::new();
    let barriers = Barriers::find(code, &cfg, task.callees);
    for block in 0..cfg.end() {
        if decisions[block as usize].is_none() {
            continue;
        }
        let Some(mut branch) = plain(task, &cfg, &mut costs, block) else { continue };
        barriers.attach(&cfg, &mut costs, block, &mut branch);
        branch.leaves = left_loop(&cfg, block);
        branch.guards = guarded_loop(&cfg, block);
        branch.chain = chain(code, &cfg, block, &at_block, &found);
        at_block.insert(block, u32::try_from(found.len()).unwrap_or(u32::MAX));
        found.push(branch);
        blocks.push(block);
    }
    count_ways(&cfg, &mut found, &blocks);
    let mut regions = Regions::default();
    let known = solve(&graph, &decisions, task.shape, &mut regions);
    let uses = Uses::of_code(code);
    let mut data_regions = Regions::default();
    let given = Given {
        graph: &graph,
        decisions: &decisions,
        known: &known,
        uses: &uses,
        arguments: task.arguments,
        shape: task.shape,
    };
    let mut few_regions = Regions::default();
    let mut evaluators = Evaluators {
        few: Evaluator::new(&given, &mut few_regions, Mode::Index, SOME),
        by_index: Evaluator::new(&given, &mut regions, Mode::Index, ALL),
        by_data: Evaluator::new(&given, &mut data_regions, Mode::Data, ALL),
    };
    let mut look =
        Look { task, given: &given, left: task.budget.function, budget: task.budget, strides: None, parting: None };
    let all = || blocks.iter().copied().enumerate();
    // Where there is too much to follow, barriers come first: what is wrong there is more than slow.
    let (waiting, others): (Vec<usize>, Vec<usize>) = (0..found.len()).partition(|at| found[*at].missed.is_some());
    for at in waiting.into_iter().chain(others) {
        look.by_index(blocks[at], &mut found[at], &mut evaluators);
    }
    // A barrier that nobody comes to makes nobody wait.
    let waits = |branch: &Branch| branch.judgement.is_some_and(|one| one.verdict == Verdict::BarrierInDivergent);
    for (at, block) in all() {
        if !waits(&found[at])
            || look.comes_to_any(&barriers.on_sides(&cfg, &mut costs, block), &mut evaluators.by_index)
        {
            continue;
        }
        found[at] = Branch { missed: None, barrier: None, judgement: None, ..found[at].clone() };
        look.by_index(block, &mut found[at], &mut evaluators);
    }
    // What a guard decides is told of its loop, unless all lanes that come there leave that together.
    let parting = parting_loops(&look, &found, &blocks);
    let decides_alone = |branch: &Branch| branch.guards.is_some_and(|one| !parting.contains(&one));
    let alone: Vec<usize> = (0..found.len()).filter(|at| decides_alone(&found[*at])).collect();
    look.parting = Some(parting);
    for at in alone {
        look.by_index(blocks[at], &mut found[at], &mut evaluators);
    }
    for (at, block) in all() {
        let node = decisions[block as usize].map(|decision| decision.node);
        let leaves_out = has_short_rows(task.shape) && leaves_out(&found[at]);
        found[at].checks_row = leaves_out && node.is_some_and(|node| checks_x(&graph, node));
    }
    for (at, block) in all() {
        look.quiet_dispatch(at, block, &mut found, &blocks, &mut evaluators);
    }
    told_at_first(&mut found, Verdict::DivergentIndex);
    let reports = found.iter().any(|branch| !is_silent(branch));
    evaluators.by_index.allow(task.budget.branch);
    evaluators.by_data.allow(task.budget.branch);
    let calls = passed.into_iter().map(|call| call.evaluated(&mut evaluators)).collect();
    let silent: Vec<bool> = found.iter().map(is_silent).collect();
    let silent = |at: usize| silent[at];
    if task.which >= Which::ByData {
        look.left = task.budget.function;
        for (at, block) in all().filter(|(at, _)| silent(*at)) {
            look.by_data(block, &mut found[at], &mut evaluators);
        }
        told_at_first(&mut found, Verdict::DivergentData);
    }
    if task.which == Which::All {
        look.budget = task.budget.at_leisure();
        look.left = look.budget.function;
        for (at, block) in all().filter(|(at, _)| silent(*at)) {
            if is_silent(&found[at]) {
                look.for_the_list(block, &mut found[at], &mut evaluators);
            }
        }
    }
    Found { branches: found, calls, reports, not_followed: false }
}

/// The loops with a branch that lanes leave them apart at, or may: because of data, or of what could not be followed.
fn parting_loops(look: &Look<'_, '_, '_>, found: &[Branch], blocks: &[Block]) -> HashSet<u32> {
    let cfg = look.cfg();
    let mut parting = HashSet::new();
    for (branch, block) in found.iter().zip(blocks) {
        let is_together =
            |judgement: Judgement| matches!(judgement.verdict, Verdict::WarpUniform | Verdict::BoundarySplit);
        let by_data = look.known(*block).is_none_or(|known| known.data && !known.is_warp_uniform());
        // Where its turns are told, so is what lanes lose that never come in.
        let is_cheap = branch.spread.is_some_and(|spread| spread.loss(branch.body) < LOSS);
        if by_data || is_cheap || !branch.judgement.is_some_and(is_together) {
            parting.extend(cfg.loops_of(*block).filter(|one| leaves(cfg, *block, *one)));
        }
    }
    parting
}

/// Why parts of a `switch` are silent that lanes part at.
const TOLD_AT_FIRST: &str = "told at the first of these comparisons";
const ONE_CASE: &str = "no lanes of one warp take different cases";

/// Why a loop is silent that lanes leave apart by their index, as far as they come.
const ENDED_BY_DATA: &str = "data end the loop as well, at another exit";

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

/// Silences what only goes on with the comparisons of a branch that is told for the same cause.
fn told_at_first(found: &mut [Branch], cause: Verdict) {
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

/// Of the guard of a loop and a branch that leaves it, behind both of which a barrier is missed, the louder is told.
pub(super) fn told_at_loop(branches: &mut [Branch]) {
    let waits = |branch: &Branch| branch.judgement.filter(|one| one.verdict == Verdict::BarrierInDivergent);
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

/// Whether nothing is to be said of a branch.
fn is_silent(branch: &Branch) -> bool {
    branch.judgement.is_none_or(|judgement| judgement.advice == Advice::Silent)
}

/// What computes values: in some environments, in all, and in all with data that differ from lane to lane.
struct Evaluators<'e, 'c, 't> {
    few: Evaluator<'e, 'c, 't>,
    by_index: Evaluator<'e, 'c, 't>,
    by_data: Evaluator<'e, 'c, 't>,
}

/// A call, and where the values that it passes come from.
struct Passed {
    callee: u32,
    block: Block,
    arguments: Vec<(u32, Node)>,
}

impl Passed {
    fn evaluated(&self, evaluators: &mut Evaluators<'_, '_, '_>) -> Call {
        let mut arguments = Arguments::default();
        for (position, node) in &self.arguments {
            let index = evaluators.by_index.value_at(*node, self.block);
            // What cannot be followed stays unknown.
            if let (Ok(index), Ok(data)) = (index, evaluators.by_data.value_at(*node, self.block)) {
                arguments.by_index.insert(*position, index);
                arguments.by_data.insert(*position, data);
            }
        }
        Call { callee: self.callee, arguments }
    }
}

/// The calls of the functions that `follows` holds for, with the stores to their parameters, which stand in the same block.
fn passed(
    code: &Code<'_>,
    cfg: &Cfg,
    graph: &mut Graph<'_, '_>,
    follows: &dyn Fn(&[u8]) -> bool,
) -> Option<Vec<Passed>> {
    let mut calls = Vec::new();
    for (at, one) in (0_u32..).zip(&code.instructions) {
        let [Operand::Symbol(callee, _), names @ ..] = code.sources(one) else { continue };
        let block = cfg.block_of[at as usize];
        if one.op != Op::Call || !follows(code.names[*callee as usize]) || !cfg.is_reached(block) {
            continue;
        }
        let mut arguments = Vec::new();
        for (position, name) in (0..).zip(names) {
            let stores = (cfg.starts[block as usize]..at).rev().map(|at| (at, &code.instructions[at as usize]));
            let mut stores = stores.filter(|(_, one)| one.op == Op::St && one.space == Space::Param);
            let store = stores.find_map(|(at, one)| match code.sources(one) {
                [to, Operand::Register(register)] if to == name => Some((at, *register)),
                _ => None,
            });
            if let Some((at, register)) = store {
                arguments.push((position, graph.read(register, at).ok()?));
            }
        }
        calls.push(Passed { callee: *callee, block, arguments });
    }
    Some(calls)
}

/// What callers of a function have to know of its code: what it weighs, loops counted, and whether it comes to a barrier for
/// the whole block whatever it is called with. `callees` tells of those that it calls itself.
#[must_use]
pub fn callee(code: &Code<'_>, callees: &Callees<'_>) -> Option<Callee> {
    let cfg = Cfg::new(code)?;
    let weight = Costs::new(code, &cfg, &|_| None).whole();
    let barriers = Barriers::find(code, &cfg, callees);
    let always = std::iter::successors(Some(0), |block| Some(cfg.ipdom(*block)).filter(|next| *next < cfg.end()));
    let waits = always.into_iter().any(|block| barriers.blocks.contains_key(&block));
    Some(Callee { weight, waits })
}

/// A block's branch before it is looked at; `None` where the block has none.
fn plain(task: &Task<'_>, cfg: &Cfg, costs: &mut Costs<'_>, block: Block) -> Option<Branch> {
    let last = &task.code.instructions[cfg.last(block) as usize];
    let conditional = last.op == Op::Brx || (last.op.ends_block() && last.guard.is_some());
    if !conditional || !cfg.is_reached(block) {
        return None;
    }
    let successors = cfg.successors(block);
    let sides = match successors {
        [taken, other] => costs.sides(block, *taken, *other),
        _ => None,
    };
    let is_loop = cfg.loop_of(block).is_some_and(|one| successors.iter().any(|to| !cfg.is_in_loop(*to, one)));
    let inside = match (successors, left_loop(cfg, block), sides) {
        ([taken, _], Some(one), Some(sides)) if cfg.is_in_loop(*taken, one) => sides.taken.weight,
        (_, Some(_), Some(sides)) => sides.other.weight,
        _ => 0.0,
    };
    Some(Branch {
        at: last.at,
        statement: last.statement,
        judgement: None,
        split: Split::default(),
        spread: None,
        is_loop,
        body: inside + costs.block(block).weight,
        leaves: None,
        guards: None,
        sides: sides.map(|sides| (sides.taken, sides.other)),
        shared: sides.map_or_else(Side::default, |sides| sides.shared),
        dispatches: 0,
        ways: u32::try_from(successors.len()).unwrap_or(u32::MAX),
        chain: None,
        missed: None,
        barrier: None,
        to_end: cfg.ipdom(block) == cfg.end(),
        is_strided: false,
        checks_row: false,
        shape: task.shape,
    })
}

struct Look<'l, 'c, 't> {
    task: &'l Task<'l>,
    given: &'l Given<'l, 'c, 't>,
    budget: Budget,
    /// What is left of what the function may take.
    left: u64,
    /// Loops whose lanes start a step apart, once they were looked for.
    strides: Option<Strides>,
    /// Loops that lanes leave one after the other, or may, once that is known: until then any may be such a loop.
    parting: Option<HashSet<u32>>,
}

impl<'c, 't> Look<'_, 'c, 't> {
    fn cfg(&self) -> &'c Cfg {
        self.given.graph.cfg()
    }

    fn known(&self, block: Block) -> Option<Known> {
        Some(self.given.known[self.given.decisions[block as usize]?.node.0 as usize])
    }

    /// What is known of a branch before values are computed.
    fn evidence(&self, block: Block, branch: &Branch) -> Evidence {
        Evidence {
            index: Split { reached: 1.0, ..Split::default() },
            data: Split { reached: 1.0, ..Split::default() },
            spread: None,
            is_loop: branch.is_loop,
            body: branch.body,
            is_guard: branch.guards.is_some_and(|one| self.parting.as_ref().is_none_or(|all| all.contains(&one))),
            sides: branch.sides,
            several: branch.ways > 2,
            barrier: branch.missed,
            shape_known: self.task.shape_known,
            is_source: self.task.is_source,
            in_loop: self.cfg().loop_of(block).is_some(),
            is_scan: false,
            is_strided: false,
            is_bound: false,
            is_masked: false,
            is_offset: false,
            in_every_launch: false,
            parameters: 0,
        }
    }

    /// Whether all threads agree that a barrier may wait for, else all lanes of a warp.
    fn is_uniform(&self, block: Block, branch: &Branch) -> bool {
        let known = self.known(block);
        let block_wide = branch.missed.is_none() || known.is_some_and(|known| known.grain > super::lattice::WARP);
        known.is_none_or(Known::is_warp_uniform) && block_wide
    }

    /// Whether the index has a part in what decides the branch of a block.
    fn hangs_on_index(&self, block: Block) -> bool {
        self.known(block).is_some_and(|known| known.index)
    }

    /// Judges a branch by what the index makes of it: what a report says, whatever is asked for beside it.
    fn by_index(&mut self, block: Block, branch: &mut Branch, evaluators: &mut Evaluators<'_, 'c, 't>) {
        let mut evidence = self.evidence(block, branch);
        if self.is_uniform(block, branch) {
            branch.judgement = Some(judge(&evidence));
            return;
        }
        let several = evidence.several;
        if is_beneath_notice(branch, self.task.is_source) || !self.hangs_on_index(block) {
            return;
        }
        // Most branches part few warps or none, which some environments show.
        let Some(index) = self.split(block, &mut evaluators.few, several) else { return };
        evidence.index = index;
        evidence.data = index;
        evidence.spread = if branch.is_loop && !several { self.spread(block, &mut evaluators.few) } else { None };
        // Where threads miss a barrier, that it happens seldom is no reason for silence.
        if branch.missed.is_none() && !may_matter(&evidence) {
            branch.split = index;
            branch.spread = evidence.spread;
            branch.judgement = Some(Judgement { advice: Advice::Silent, ..judge(&evidence) });
            return;
        }
        let Some(index) = self.split(block, &mut evaluators.by_index, several) else { return };
        evidence.index = index;
        evidence.data = index;
        let hangs_on_data = self.task.is_source || index.leader || (branch.missed.is_some() && index.block);
        if hangs_on_data && self.known(block).is_some_and(|known| known.data) {
            let Some(data) = self.split_by_data(block, evaluators, several) else { return };
            evidence.data = data;
        }
        if branch.is_loop && !several {
            // What some environments show holds where all of them would take too long.
            evidence.spread = self.spread(block, &mut evaluators.by_index).or(evidence.spread);
        }
        self.conclude(block, branch, evidence, evaluators);
    }

    /// Judges a branch by its data, where the index gives no reason for a word.
    fn by_data(&mut self, block: Block, branch: &mut Branch, evaluators: &mut Evaluators<'_, 'c, 't>) {
        if self.is_uniform(block, branch) || is_beneath_notice(branch, self.task.is_source) {
            return;
        }
        let Some(judged) = self.looked_at(block, branch, evaluators) else { return };
        if judged.judgement.is_some_and(|judgement| judgement.verdict == Verdict::DivergentData) {
            *branch = judged;
        }
    }

    /// Judges a branch of which nothing is said, as well as can be.
    fn for_the_list(&mut self, block: Block, branch: &mut Branch, evaluators: &mut Evaluators<'_, 'c, 't>) {
        let is_known = branch.judgement.is_some_and(|one| [TOLD_AT_FIRST, ONE_CASE].contains(&one.reason));
        if is_known || self.is_uniform(block, branch) {
            return;
        }
        let Some(mut judged) = self.looked_at(block, branch, evaluators) else { return };
        let was_followed =
            branch.judgement.is_some() || is_beneath_notice(branch, self.task.is_source) || !self.hangs_on_index(block);
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
    fn looked_at(&mut self, block: Block, branch: &Branch, evaluators: &mut Evaluators<'_, 'c, 't>) -> Option<Branch> {
        let mut evidence = self.evidence(block, branch);
        let several = evidence.several;
        evidence.index = self.split(block, &mut evaluators.by_index, several)?;
        evidence.data = evidence.index;
        if self.known(block).is_some_and(|known| known.data) {
            evidence.data = self.split_by_data(block, evaluators, several)?;
        }
        if branch.is_loop && !several {
            evidence.spread = self.spread(block, &mut evaluators.by_index);
        }
        let mut branch = branch.clone();
        self.conclude(block, &mut branch, evidence, evaluators);
        Some(branch)
    }

    /// Judges what was found, and looks closer where that would be told.
    fn conclude(
        &mut self,
        block: Block,
        branch: &mut Branch,
        mut evidence: Evidence,
        evaluators: &mut Evaluators<'_, 'c, 't>,
    ) {
        let mut judgement = judge(&evidence);
        if judgement.verdict == Verdict::BarrierInDivergent && judgement.confidence == Confidence::Low {
            evidence.in_every_launch = self.parts_in_every_launch(block, evidence.several);
            judgement = judge(&evidence);
        }
        let by_index = matches!(judgement.verdict, Verdict::DivergentIndex | Verdict::LeaderLane);
        let waits = judgement.verdict == Verdict::BarrierInDivergent && (branch.is_loop || branch.guards.is_some());
        let is_told = judgement.advice > Advice::Silent && (by_index || waits);
        if let Some(decision) = self.given.decisions[block as usize].filter(|_| is_told) {
            let (given, node) = (self.given, decision.node);
            let graph = given.graph;
            evidence.is_scan = hands_up(graph.code(), self.cfg(), block);
            evidence.is_bound = !branch.is_loop && evidence.index.threshold && is_bound(graph, given.known, node);
            evidence.is_masked = !branch.is_loop && is_masked(graph, given.known, node);
            evidence.is_offset = by_index && !branch.is_loop && self.hangs_on_offset(block, evidence.several);
            evidence.parameters = parameters(graph, node);
            let strides = self.strides.get_or_insert_with(|| {
                Strides::find(graph, given.known, given.decisions, &mut evaluators.few, self.task.budget.branch)
            });
            evidence.is_strided = strides.decides(graph, given.known, block, node);
            let is_strided = waits && strides.decides_for_block(graph, given.known, block, node);
            branch.is_strided = is_strided || (waits && self.leads_to_untold_steps(branch));
            judgement = judge(&evidence);
        }
        let left = left_loop(self.cfg(), block).filter(|_| branch.is_loop && by_index);
        if left.is_some_and(|one| self.other_exits(block, one).any(|from| self.hangs_on_data(from, one))) {
            judgement = Judgement { advice: Advice::Silent, reason: ENDED_BY_DATA, ..judgement };
        }
        if self.task.is_source && by_index && judgement.advice > Advice::Silent && self.comes_by_data(block) {
            judgement = of_few(&judgement, branch.is_loop);
        }
        branch.split = evidence.index;
        branch.spread = evidence.spread;
        branch.judgement = Some(judgement);
    }

    /// The other blocks that lanes leave a loop from, and are meant to.
    fn other_exits(&self, block: Block, one: u32) -> impl Iterator<Item = Block> {
        let cfg = self.cfg();
        let exits = cfg.loops[one as usize].exits.iter();
        exits.filter(move |(from, to)| *from != block && !cfg.is_cold(*to)).map(|(from, _)| *from)
    }

    /// Whether data that differ from lane to lane decide about leaving a loop from a block: there, or where the way to it
    /// parts from the others.
    fn hangs_on_data(&self, from: Block, one: u32) -> bool {
        let cfg = self.cfg();
        let above = std::iter::successors(Some(from), |block| cfg.idom(*block));
        let mut inside = above.take_while(|block| cfg.is_in_loop(*block, one));
        inside.any(|block| {
            let decides = block == from || self.decides(block, from);
            decides && self.known(block).is_some_and(|known| known.data)
        })
    }

    /// Whether not all ways from a block, which stands before another, lead to that one.
    fn decides(&self, block: Block, whether: Block) -> bool {
        !self.cfg().dominates(self.cfg().ipdom(block), whether)
    }

    /// Whether data that differ from lane to lane decide who comes to a block, or to the loops that it is in.
    fn comes_by_data(&self, block: Block) -> bool {
        let above = std::iter::successors(self.cfg().idom(block), |above| self.cfg().idom(*above));
        let mut deciding = above.filter(|above| self.decides(*above, block));
        deciding.any(|above| self.known(above).is_some_and(|known| known.data && !known.is_warp_uniform()))
    }

    /// Whether a branch of a source stands before a loop whose step is not told: it may be that of the block.
    fn leads_to_untold_steps(&self, branch: &Branch) -> bool {
        let is_untold = |block: Block| self.known(block).is_some_and(|known| known.data && !known.index);
        let of_loop = branch.guards.and_then(|number| self.cfg().loops.get(number as usize));
        self.task.is_source && of_loop.is_some_and(|one| one.exits.iter().all(|(from, _)| is_untold(*from)))
    }

    /// Silences the branch that begins comparisons with constants, where no warp has lanes for two of them, nor two lanes
    /// for one: the leaders of warps, each with a task of its own.
    fn quiet_dispatch(
        &mut self,
        at: usize,
        block: Block,
        found: &mut [Branch],
        blocks: &[Block],
        evaluators: &mut Evaluators<'_, 'c, 't>,
    ) {
        let by_index = found[at].judgement.filter(|one| one.verdict == Verdict::DivergentIndex);
        let Some(judgement) = by_index.filter(|one| one.advice > Advice::Silent) else { return };
        let is_member = |branch: &&Branch| branch.chain.is_some_and(|root| root as usize == at);
        if found.iter().filter(is_member).count() < 2 {
            return;
        }
        let given = self.given;
        let compared = |block: Block| given.decisions[block as usize].and_then(|one| compared(given.graph, one.node));
        let Some((value, _, _)) = compared(block) else { return };
        let members = found.iter().zip(blocks).filter(|(branch, _)| is_member(branch)).map(|(_, block)| *block);
        let all = members.chain([block]).filter_map(compared);
        let cases: Vec<u64> = all.filter(|(_, _, equals)| *equals).map(|(_, constant, _)| constant).collect();
        let few = &mut evaluators.few;
        few.allow(self.allowance());
        let (Ok(value), Ok(active)) = (few.value_at(value, block), few.active(block)) else { return };
        let share = shared_cases(&value, &active, few.extent(), &cases);
        if share < SEVERAL {
            found[at].judgement = Some(Judgement { advice: Advice::Silent, reason: ONE_CASE, ..judgement });
        }
    }

    fn allowance(&self) -> u64 {
        self.budget.branch.min(self.left)
    }

    fn split(&mut self, block: Block, evaluator: &mut Evaluator<'_, 'c, 't>, several: bool) -> Option<Split> {
        let allowance = self.allowance();
        evaluator.allow(allowance);
        let found = split(block, evaluator, several);
        self.left -= allowance - evaluator.left();
        found.ok()
    }

    /// Whether threads part in the first block of the grid, whatever the kernel is run with.
    fn parts_in_every_launch(&mut self, block: Block, several: bool) -> bool {
        let is_fixed = |at: Block| {
            self.given.decisions[at as usize].is_none_or(|one| !is_open_at_every_place(self.given.graph, one.node))
        };
        let above = std::iter::successors(self.cfg().idom(block), |above| self.cfg().idom(*above));
        let mut deciding = above.filter(|above| self.decides(*above, block)).chain([block]);
        if !deciding.all(is_fixed) {
            return false;
        }
        let mut regions = Regions::default();
        let mut evaluator = Evaluator::new(self.given, &mut regions, Mode::Index, FIRST);
        self.split(block, &mut evaluator, several).is_some_and(|split| split.block && split.reached > 0.0)
    }

    /// Whether lanes come to one of these blocks, or may with numbers that nobody tried.
    fn comes_to_any(&mut self, blocks: &[Block], evaluator: &mut Evaluator<'_, 'c, 't>) -> bool {
        blocks.iter().any(|block| {
            let allowance = self.allowance();
            evaluator.allow(allowance);
            let comes = may_come(*block, evaluator);
            self.left -= allowance - evaluator.left();
            comes.unwrap_or(true)
        })
    }

    /// How warps part where data differ from lane to lane.
    fn split_by_data(&mut self, block: Block, evaluators: &mut Evaluators<'_, 'c, 't>, several: bool) -> Option<Split> {
        let split = self.split(block, &mut evaluators.by_data, several)?;
        let given = self.given;
        let decision = given.decisions[block as usize].filter(|_| split.leader);
        // Of the numbers that were drawn few are those of lanes.
        let is_chance = decision.is_some_and(|one| is_met_by_data(given.graph, given.known, one.node));
        Some(Split { leader: split.leader && !is_chance, ..split })
    }

    /// Whether no warp parts where whole numbers that are known only at run time keep threads in their places.
    fn hangs_on_offset(&mut self, block: Block, several: bool) -> bool {
        let mut regions = Regions::default();
        let mut evaluator = Evaluator::new(self.given, &mut regions, Mode::Index, SOME).aligned();
        self.split(block, &mut evaluator, several).is_some_and(|split| split.most == 0.0 && split.reached > 0.0)
    }

    fn spread(&mut self, block: Block, evaluator: &mut Evaluator<'_, 'c, 't>) -> Option<Spread> {
        let one = left_loop(self.cfg(), block)?;
        let allowance = (2 * self.budget.branch).min(self.left);
        evaluator.allow(allowance);
        let spread = evaluator.spread(one, block);
        self.left -= allowance - evaluator.left();
        spread.ok().flatten()
    }
}

/// How warps part at the branch of a block. Where no environment comes to it because of what is known only at run time, all
/// of them are taken to do so.
fn split(block: Block, evaluator: &mut Evaluator<'_, '_, '_>, several: bool) -> Computed<Split> {
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

/// Whether lanes come to a block in some environment, or may in one that nobody tried.
fn may_come(block: Block, evaluator: &mut Evaluator<'_, '_, '_>) -> Computed<bool> {
    if !is_nowhere(&evaluator.active(block)?) {
        return Ok(true);
    }
    Ok(evaluator.assumed(block)?.is_some_and(|assumed| !is_nowhere(&assumed)))
}

/// Whether no verdict on it could be worth a word.
fn is_beneath_notice(branch: &Branch, is_source: bool) -> bool {
    let Some((taken, other)) = branch.sides else { return false };
    let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
    let heavy = Traits::CALL.and(Traits::SLOW);
    let light = if is_source {
        !super::source::may_lose_enough(taken, other)
    } else {
        more < 16.0 && less < 8.0 && !taken.has.any(heavy) && !other.has.any(heavy)
    };
    light && !branch.is_loop && branch.missed.is_none() && branch.ways == 2
}

/// Whether lanes hand something to those above them right before the branch of a block.
fn hands_up(code: &Code<'_>, cfg: &Cfg, block: Block) -> bool {
    cfg.instructions(block).any(|at| {
        let one = &code.instructions[at as usize];
        one.op == Op::Shfl && one.mods.is_up()
    })
}

/// Whether a way of a block's branch leads out of a loop that holds it.
fn leaves(cfg: &Cfg, block: Block, one: u32) -> bool {
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

/// Whether a warp covers several rows of the block.
fn has_short_rows(shape: Shape) -> bool {
    (shape.x as usize) < super::value::LANES && shape.y * shape.z > 1
}

/// Whether some threads do nothing while others do something.
fn leaves_out(branch: &Branch) -> bool {
    let one_sided = branch.sides.is_some_and(|(taken, other)| (taken.weight > 0.0) != (other.weight > 0.0));
    one_sided && !branch.is_loop && branch.ways == 2
}

/// The branch that this one goes on from, where both compare one value with constants: the tree of a `switch`.
fn chain(code: &Code<'_>, cfg: &Cfg, block: Block, at_block: &HashMap<Block, u32>, found: &[Branch]) -> Option<u32> {
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
fn count_ways(cfg: &Cfg, found: &mut [Branch], blocks: &[Block]) {
    let mut targets: HashMap<usize, HashSet<Block>> = HashMap::new();
    let root_of = |at: usize| found[at].chain.map(|root| root as usize);
    let roots: HashSet<usize> = (0..found.len()).filter_map(root_of).collect();
    if roots.is_empty() {
        return;
    }
    let members: HashMap<Block, usize> = (0..found.len())
        .map(|at| (blocks[at], root_of(at).unwrap_or(at)))
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

/// The value that a condition compares with a constant, the constant, and whether it asks for equality.
fn compared(graph: &Graph<'_, '_>, node: Node) -> Option<(Node, u64, bool)> {
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

#[cfg(test)]
mod tests {
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
