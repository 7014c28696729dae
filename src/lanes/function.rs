//! One function from its statements to the judgement of each of its branches.

use hashbrown::HashMap;

use super::Shape;
use super::cfg::{Block, Cfg};
use super::cost::{Costs, Side, Traits};
use super::eval::{Arguments, Evaluator, Given, Mode};
use super::graph::{Graph, Node};
use super::lattice::{Decision, Known, solve};
use super::region::Regions;
use super::rows::checks_x;
use super::steps::Spread;
use super::value::{ALL, SOME};
use super::verdict::{Advice, Confidence, Evidence, Judgement, Missed, Split, Verdict, Witness, judge, may_matter};
use crate::parse::ptx::{Code, Op, Operand, Reg, Space};

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
    /// The guard before a loop: its line is that of the loop's own branch.
    pub guards: Option<u32>,
    /// The cost of the side that is taken, and of the other; `None` where the function is too large to tell.
    pub sides: Option<(Side, Side)>,
    /// The ways that it leads: 2, or more for a table.
    pub ways: u32,
    /// The branch that begins the comparisons with constants which this one goes on with, as an index of the list.
    pub chain: Option<u32>,
    /// What becomes of threads that miss the barrier on its side.
    pub missed: Option<Missed>,
    /// The byte of that barrier.
    pub barrier: Option<u32>,
    /// The ways meet only at the end.
    pub to_end: bool,
    /// It leaves out threads past the end of a row of the grid, and a row of the block is shorter than a warp.
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
    /// What a function of `bytes` may take, one of `functions` that have branches. Who asks for all branches waits for them.
    #[must_use]
    pub fn of(bytes: usize, functions: usize, which: Which) -> Budget {
        let share = (100_000_000 / functions.max(1) as u64).clamp(400_000, 10_000_000);
        let times = if which == Which::All { 8 } else { 1 };
        Budget { branch: times * 2_500_000, function: times * (share + 50 * bytes as u64) }
    }
}

/// Which branches are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The weight of a function of the module.
    pub callee: &'t dyn Fn(&[u8]) -> Option<f64>,
}

/// What a function passes to another one.
#[derive(Debug, Clone)]
pub struct Call {
    /// The callee's name: an index of [`Code::names`].
    pub callee: u32,
    /// What it passes.
    pub arguments: Arguments,
}

/// Judges every conditional branch of a function, in order, and looks what it passes to the functions that `follows` holds
/// for.
#[must_use]
pub fn branches(task: &Task<'_>, follows: &dyn Fn(&[u8]) -> bool) -> (Vec<Branch>, Vec<Call>) {
    let code = task.code;
    let Some(cfg) = Cfg::new(code) else { return (Vec::new(), Vec::new()) };
    let mut costs = Costs::new(code, &cfg, task.callee);
    let mut graph = Graph::new(code, &cfg);
    let decisions = decisions(code, &cfg, &mut graph);
    let mut found: Vec<Branch> = Vec::new();
    let mut at_block: HashMap<Block, u32> = HashMap::new();
    let passed = passed(code, &cfg, &mut graph, follows);
    let (Some(decisions), Some(passed)) = (decisions, passed) else {
        // Too much to follow: its branches are listed, and nothing is said of them.
        return ((0..cfg.end()).filter_map(|block| plain(task, &cfg, &mut costs, block)).collect(), Vec::new());
    };
    let mut regions = Regions::default();
    let known = solve(&graph, &decisions, task.shape, &mut regions);
    let pointers = pointers(code);
    let barriers = Barriers::find(code, &cfg);
    let mut data_regions = Regions::default();
    let given = Given {
        graph: &graph,
        decisions: &decisions,
        known: &known,
        pointers: &pointers,
        arguments: task.arguments,
        shape: task.shape,
    };
    let mut few_regions = Regions::default();
    let mut few = Evaluator::new(&given, &mut few_regions, Mode::Index, SOME);
    let mut by_index = Evaluator::new(&given, &mut regions, Mode::Index, ALL);
    let mut by_data = Evaluator::new(&given, &mut data_regions, Mode::Data, ALL);
    let mut left = task.budget.function;
    for block in 0..cfg.end() {
        let Some(mut branch) = plain(task, &cfg, &mut costs, block) else { continue };
        let Some(decision) = decisions[block as usize] else { continue };
        barriers.attach(&cfg, &mut costs, block, &mut branch);
        let level = known[decision.node.0 as usize];
        let mut look = Look { task, cfg: &cfg, known: level, left: &mut left };
        look.judge(block, &mut branch, &mut few, &mut by_index, &mut by_data);
        branch.guards = guarded_loop(&cfg, block);
        branch.checks_row = has_short_rows(task.shape) && leaves_out(&branch) && checks_x(&graph, decision.node);
        branch.chain = chain(code, &cfg, block, &at_block, &found);
        at_block.insert(block, u32::try_from(found.len()).unwrap_or(u32::MAX));
        found.push(branch);
    }
    by_index.allow(task.budget.branch);
    by_data.allow(task.budget.branch);
    let calls = passed.into_iter().map(|call| call.evaluated(&mut by_index, &mut by_data)).collect();
    (found, calls)
}

/// A call, and where the values that it passes come from.
struct Passed {
    callee: u32,
    block: Block,
    arguments: Vec<(u32, Node)>,
}

impl Passed {
    fn evaluated(&self, by_index: &mut Evaluator<'_, '_, '_>, by_data: &mut Evaluator<'_, '_, '_>) -> Call {
        let mut arguments = Arguments::default();
        for (position, node) in &self.arguments {
            // What cannot be followed stays unknown.
            if let (Ok(index), Ok(data)) = (by_index.value_at(*node, self.block), by_data.value_at(*node, self.block)) {
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

/// The weight of a function's code, loops counted.
#[must_use]
pub fn weight(code: &Code<'_>) -> Option<f64> {
    let cfg = Cfg::new(code)?;
    Some(Costs::new(code, &cfg, &|_| None).whole())
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
        [taken, other] => costs.side(block, *taken).zip(costs.side(block, *other)),
        _ => None,
    };
    let is_loop = cfg.loop_of(block).is_some_and(|one| successors.iter().any(|to| !cfg.is_in_loop(*to, one)));
    Some(Branch {
        at: last.at,
        statement: last.statement,
        judgement: None,
        split: Split::default(),
        spread: None,
        is_loop,
        guards: None,
        sides,
        ways: u32::try_from(successors.len()).unwrap_or(u32::MAX),
        chain: None,
        missed: None,
        barrier: None,
        to_end: cfg.ipdom(block) == cfg.end(),
        checks_row: false,
        shape: task.shape,
    })
}

/// What decides the branch of each block; `None` where that is more than can be followed.
#[must_use]
pub fn decisions(code: &Code<'_>, cfg: &Cfg, graph: &mut Graph<'_, '_>) -> Option<Vec<Option<Decision>>> {
    let mut decisions = vec![None; cfg.end() as usize];
    for block in 0..cfg.end() {
        let at = cfg.last(block);
        let last = &code.instructions[at as usize];
        if !cfg.is_reached(block) {
            continue;
        }
        decisions[block as usize] = match (last.op, last.guard) {
            (Op::Brx, _) => match code.sources(last).first() {
                Some(Operand::Register(register)) => {
                    let node = graph.read(*register, at).ok()?;
                    Some(Decision { node, negated: false, is_index: true })
                }
                _ => None,
            },
            (op, Some(guard)) if op.ends_block() => {
                let node = graph.read(guard.register, at).ok()?;
                Some(Decision { node, negated: guard.negated, is_index: false })
            }
            _ => None,
        };
    }
    Some(decisions)
}

/// Registers that are used as addresses, or become one by adding to them.
pub(super) fn pointers(code: &Code<'_>) -> Vec<bool> {
    let mut pointers = vec![false; code.registers as usize];
    for one in &code.instructions {
        for operand in code.sources(one).iter().chain(code.destinations(one)) {
            match operand {
                Operand::Memory(Reg(number), _) if one.space != Space::Param => pointers[*number as usize] = true,
                Operand::Register(Reg(number)) if one.op == Op::Cvta && one.mods.is_to() => {
                    pointers[*number as usize] = true;
                }
                _ => {}
            }
        }
    }
    // An address is mostly a sum of two or three.
    for _ in 0..3 {
        for one in &code.instructions {
            let sums = matches!(one.op, Op::Add | Op::Mov | Op::Cvta) && one.kind.width() == 64;
            let becomes = code
                .destinations(one)
                .iter()
                .any(|to| matches!(to, Operand::Register(Reg(number)) if pointers[*number as usize]));
            if sums
                && becomes
                && let Some(Operand::Register(Reg(number))) = code.sources(one).first()
            {
                pointers[*number as usize] = true;
            }
        }
    }
    pointers
}

struct Look<'l> {
    task: &'l Task<'l>,
    cfg: &'l Cfg,
    known: Known,
    left: &'l mut u64,
}

impl Look<'_> {
    fn judge(
        &mut self,
        block: Block,
        branch: &mut Branch,
        few: &mut Evaluator<'_, '_, '_>,
        by_index: &mut Evaluator<'_, '_, '_>,
        by_data: &mut Evaluator<'_, '_, '_>,
    ) {
        let several = branch.ways > 2;
        let mut evidence = Evidence {
            index: Split::default(),
            data: Split::default(),
            spread: None,
            is_loop: branch.is_loop,
            is_guard: guarded_loop(self.cfg, block).is_some(),
            sides: branch.sides,
            several,
            barrier: branch.missed,
            shape_known: self.task.shape_known,
            is_source: self.task.is_source,
        };
        let uniform =
            self.known.is_warp_uniform() && (branch.missed.is_none() || self.known.grain > super::lattice::WARP);
        if !uniform {
            let which = self.task.which;
            let wanted = which == Which::All
                || (!self.is_beneath_notice(branch) && (self.known.index || which == Which::ByData));
            if !wanted {
                return;
            }
            if which == Which::ByIndex {
                // Most branches part few warps or none, which some environments show.
                let Some(index) = self.split(block, few, several) else { return };
                evidence.index = index;
                evidence.data = index;
                evidence.spread = if branch.is_loop && !several { self.spread(block, few) } else { None };
                if !may_matter(&evidence) {
                    branch.split = index;
                    branch.spread = evidence.spread;
                    branch.judgement = Some(Judgement { advice: Advice::Silent, ..judge(&evidence) });
                    return;
                }
            }
            let Some(index) = self.split(block, by_index, several) else { return };
            evidence.index = index;
            evidence.data = if self.known.data
                && (which != Which::ByIndex
                    || self.task.is_source
                    || index.leader
                    || (branch.missed.is_some() && index.block))
            {
                let Some(data) = self.split(block, by_data, several) else { return };
                data
            } else {
                index
            };
            if branch.is_loop && !several {
                // What some environments show holds where all of them would take too long.
                evidence.spread = self.spread(block, by_index).or(evidence.spread);
            }
        }
        branch.split = evidence.index;
        branch.spread = evidence.spread;
        branch.judgement = Some(judge(&evidence));
    }

    /// Whether no verdict on it could be worth a word.
    fn is_beneath_notice(&self, branch: &Branch) -> bool {
        let Some((taken, other)) = branch.sides else { return false };
        let (less, more) = (taken.weight.min(other.weight), taken.weight.max(other.weight));
        let heavy = Traits::CALL.and(Traits::SLOW);
        let light = if self.task.is_source {
            less < super::source::SIDE
        } else {
            more < 16.0 && less < 8.0 && !taken.has.any(heavy) && !other.has.any(heavy)
        };
        light && !branch.is_loop && branch.missed.is_none() && branch.ways == 2
    }

    fn allowance(&self) -> u64 {
        self.task.budget.branch.min(*self.left)
    }

    fn split(&mut self, block: Block, evaluator: &mut Evaluator<'_, '_, '_>, several: bool) -> Option<Split> {
        let allowance = self.allowance();
        evaluator.allow(allowance);
        let condition = evaluator.condition(block);
        let active = condition.and_then(|condition| Ok((condition, evaluator.active(block)?)));
        *self.left -= allowance - evaluator.left();
        let (condition, active) = active.ok()?;
        Some(Split::count(&condition, &active, evaluator.extent(), several))
    }

    fn spread(&mut self, block: Block, evaluator: &mut Evaluator<'_, '_, '_>) -> Option<Spread> {
        let cfg = self.cfg;
        let leaves = |one: &u32| cfg.successors(block).iter().any(|to| !cfg.is_in_loop(*to, *one));
        let one = cfg.loops_of(block).find(leaves)?;
        let allowance = (2 * self.task.budget.branch).min(*self.left);
        evaluator.allow(allowance);
        let spread = evaluator.spread(one, block);
        *self.left -= allowance - evaluator.left();
        spread.ok().flatten()
    }
}

/// The loop that a branch only decides to enter: one side begins with it, and the other is where it leads.
fn guarded_loop(cfg: &Cfg, block: Block) -> Option<u32> {
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

/// Barriers for the whole block, and the branches that decide whether threads come to them.
struct Barriers {
    /// Each block with one, and the byte of its first.
    blocks: HashMap<Block, u32>,
}

impl Barriers {
    fn find(code: &Code<'_>, cfg: &Cfg) -> Barriers {
        let mut blocks = HashMap::new();
        for block in (0..cfg.end()).filter(|block| cfg.is_reached(*block)) {
            let barriers =
                cfg.instructions(block).filter(|at| super::cost::is_block_wide(code, &code.instructions[*at as usize]));
            if let Some(first) = barriers.map(|at| code.instructions[at as usize].at).next() {
                blocks.insert(block, first);
            }
        }
        Barriers { blocks }
    }

    /// Finds a barrier on one of the sides of a block's branch, and what becomes of those that miss it.
    fn attach(&self, cfg: &Cfg, costs: &mut Costs<'_>, block: Block, branch: &mut Branch) {
        let has = |side: Side| side.has.any(Traits::BARRIER);
        let Some((taken, other)) = branch.sides.filter(|(taken, other)| has(*taken) || has(*other)) else { return };
        let [one, two] = *cfg.successors(block) else { return };
        let stop = cfg.ipdom(block);
        let mut first = None;
        for (start, side) in [(one, taken), (two, other)] {
            if has(side) && first.is_none() {
                let mut blocks = Vec::new();
                let _ = costs.each_block(block, start, stop, &mut |_, _, here| blocks.push(here));
                first = blocks.iter().filter_map(|here| self.blocks.get(here).copied()).min();
            }
        }
        branch.barrier = first;
        let both = has(taken) && has(other);
        // What they do before they exit makes no barrier wait.
        let ends = stop == cfg.end() || self.only_ends(cfg, costs, stop);
        branch.missed = Some(if both || !ends { Missed::GoesOn } else { Missed::Exits });
    }

    /// Whether nothing comes from a block on but the end.
    fn only_ends(&self, cfg: &Cfg, costs: &mut Costs<'_>, from: Block) -> bool {
        let mut weight = 0.0;
        let walked = costs.each_block(super::cfg::NONE, from, cfg.end(), &mut |_, sides, here| {
            weight += sides[here as usize].weight;
        });
        walked.is_some() && weight == 0.0
    }
}

/// What is said of a branch that was looked at in several ways: the worst verdict, and no surer and no louder than all of
/// them allow.
#[must_use]
pub fn agreed(ways: Vec<Vec<Branch>>, among: Among) -> Vec<Branch> {
    let mut ways = ways.into_iter();
    let mut agreed = ways.next().unwrap_or_default();
    for other in ways {
        for (branch, again) in agreed.iter_mut().zip(other) {
            let (Some(one), Some(two)) = (branch.judgement, again.judgement) else {
                branch.judgement = None;
                continue;
            };
            if among == Among::Sizes {
                // A barrier is missed if it is so in blocks of every size.
                let is_missed = |judgement: Judgement| judgement.verdict == Verdict::BarrierInDivergent;
                if is_missed(one) != is_missed(two) {
                    branch.judgement = Some(Judgement { advice: Advice::Silent, ..one });
                }
                continue;
            }
            let differ = one.verdict != two.verdict;
            let advice = match among {
                _ if one.advice == two.advice => one.advice,
                Among::Callers => one.advice.min(two.advice),
                Among::Shapes | Among::Sizes => one.advice.max(two.advice).min(Advice::Note),
            };
            if rank(two.verdict) > rank(one.verdict) {
                *branch = Branch { chain: branch.chain, guards: branch.guards, ..again };
            }
            if let Some(judgement) = &mut branch.judgement {
                judgement.advice = advice;
                judgement.confidence = if differ { Confidence::Low } else { one.confidence.min(two.confidence) };
            }
        }
    }
    agreed
}

/// What the ways are that a function was looked at in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Shapes of the block, of which one is the kernel's.
    Shapes,
    /// Calls, all of which happen.
    Callers,
    /// Sizes of the block, of which one may be the kernel's; the first is the usual one.
    Sizes,
}

/// How bad a verdict is.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::WarpUniform => 0,
        Verdict::BoundarySplit => 1,
        Verdict::LeaderLane => 2,
        Verdict::PredicatedShort => 3,
        Verdict::DivergentData => 4,
        Verdict::DivergentIndex => 5,
        Verdict::BarrierInDivergent => 6,
    }
}

/// The lanes of a witness in words: `lanes 0–15 take it and 16–31 do not`.
#[must_use]
pub fn lanes_in_words(witness: Witness) -> (String, String) {
    (ranges(witness.taken & witness.active), ranges(witness.active & !witness.taken))
}

/// `0–15`, `0, 2, 4, …`, in lanes.
fn ranges(lanes: u32) -> String {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < 32 {
        if lanes >> at & 1 == 0 {
            at += 1;
            continue;
        }
        let length = (lanes >> at).trailing_ones();
        parts.push(match length {
            1 => at.to_string(),
            2 => format!("{at}, {}", at + 1),
            _ => format!("{at}–{}", at + length - 1),
        });
        at += length;
    }
    if parts.len() > 3 {
        // Two ranges show what three lanes do.
        let is_range = parts.iter().any(|part| part.contains('–'));
        parts.truncate(if is_range { 2 } else { 3 });
        parts.push("…".to_owned());
    }
    parts.join(", ")
}
