//! Level 2: the values that decide a branch, computed for every thread of one block in several environments.
//!
//! An environment draws a number for each parameter and the like, and stands at an iteration of every loop. In mode
//! [`Mode::Index`] data are one number for the block, so that lanes differ because of their index alone; in
//! [`Mode::Data`] each lane draws its own.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::Shape;
use super::cfg::Block;
use super::graph::{Graph, Node, Source};
use super::lattice::{Decision, Known};
use super::op;
use super::region::Regions;
use super::sample::{Flavour, draw, mix};
use super::slice::is_open_until_run;
use super::uses::{Use, Uses};
use super::value::{Environments, Extent, LANES, Span, Value};
use crate::parse::ptx::{Instruction, Op, Operand, Reg, Space, Special, Type};

/// What data stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One number for the block: what then differs, differs because of the index.
    Index,
    /// A number for each lane.
    Data,
}

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It would take too long, or the control flow is too tangled.
    OverBudget,
    /// A value of the header of a loop that is being stepped is asked for, and it is not stepped along.
    Missing(Node),
}

/// What an evaluation gives.
pub type Found<T> = Result<T, Stop>;

/// What is known of a function before its values are computed.
#[derive(Clone, Copy)]
pub struct Given<'e, 'c, 't> {
    /// Where values come from.
    pub graph: &'e Graph<'c, 't>,
    /// What decides the branch of each block.
    pub decisions: &'e [Option<Decision>],
    /// What level 1 found out about each value.
    pub known: &'e [Known],
    /// What registers are used as.
    pub uses: &'e Uses,
    /// What the callers pass, where they are known.
    pub arguments: &'e Arguments,
    /// The block.
    pub shape: Shape,
}

/// The values of one function in one mode, as far as they were asked for.
pub struct Evaluator<'e, 'c, 't> {
    pub(super) graph: &'e Graph<'c, 't>,
    pub(super) decisions: &'e [Option<Decision>],
    pub(super) known: &'e [Known],
    pub(super) regions: &'e mut Regions,
    pub(super) extent: Extent,
    pub(super) frames: Vec<Frame>,
    shape: Shape,
    mode: Mode,
    /// What registers are used as.
    uses: &'e Uses,
    /// What the callers pass, where they are known: for each parameter, and for each mode.
    arguments: &'e Arguments,
    /// Whole numbers that are known only at run time are multiples of more than a block has threads.
    aligned: bool,
    base: Memo,
    varying: HashMap<(Node, u32), bool>,
    /// Values that took too long once, and would again.
    failed: HashSet<Node>,
    pub(super) depth: usize,
    work: u64,
}

/// The values of a device function's parameters at one of its calls, by position, and the lanes that call it.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// In mode [`Mode::Index`].
    pub by_index: HashMap<u32, Value>,
    /// In mode [`Mode::Data`].
    pub by_data: HashMap<u32, Value>,
}

/// What was computed, as long as it holds.
#[derive(Debug, Default)]
pub(super) struct Memo {
    values: HashMap<Node, Value>,
    exits: HashMap<(Node, u32), Value>,
    reaches: HashMap<Block, Rc<[Value]>>,
    active: HashMap<Block, Value>,
    samples: HashMap<u32, Rc<Sample>>,
    size: usize,
}

/// A loop that is being stepped.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) one: u32,
    /// The values at the header.
    pub(super) header: HashMap<Node, Value>,
    memo: Memo,
}

/// Where the environments stand in a loop.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) header: HashMap<Node, Value>,
    /// The lanes that are still in it.
    pub(super) alive: Value,
}

/// Why an environment is looked at although few blocks are like that: so that the edge of a problem is always met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// The first block of the grid.
    First,
    /// Sizes end within the block in x.
    AlongX,
    /// Some of them do.
    Some,
    /// Sizes end within the block in y.
    AlongY,
    /// The whole problem is smaller than a block.
    Small,
    /// The last block of the grid.
    Last,
    /// The grid has few blocks.
    Few,
}

/// What is special about an environment.
pub(super) fn edge(environment: usize) -> Option<Edge> {
    match environment {
        0 | 12 => Some(Edge::First),
        7 => Some(Edge::AlongX),
        15 => Some(Edge::Some),
        3 => Some(Edge::AlongY),
        19 => Some(Edge::Small),
        24 => Some(Edge::Last),
        25 => Some(Edge::Few),
        _ => None,
    }
}

/// How much an environment counts in a mean.
pub(super) fn share(environment: usize) -> f64 {
    if edge(environment).is_some() { 0.15 } else { 1.0 }
}

/// What whole numbers are multiples of that keep threads in their places: no block has more of them.
const ALIGNED: u64 = 1024;

/// Blocks behind a branch that its ways are looked for to meet at.
const MEETING: usize = 64;

/// Values that may depend on each other in a row.
const DEPTH: usize = 1200;

/// What finding a value costs beside its numbers, in numbers.
const OVERHEAD: u64 = 200;

/// Numbers that are kept between branches.
const KEPT: usize = 1 << 20;

/// Steps that an environment is let into a loop, at most.
const STEPS: usize = 8;

impl<'e, 'c, 't> Evaluator<'e, 'c, 't> {
    /// An evaluator that knows nothing yet.
    #[must_use]
    pub fn new(
        given: &Given<'e, 'c, 't>,
        regions: &'e mut Regions,
        mode: Mode,
        environments: Environments,
    ) -> Evaluator<'e, 'c, 't> {
        let shape = given.shape;
        let threads = (shape.x * shape.y * shape.z) as usize;
        Evaluator {
            graph: given.graph,
            decisions: given.decisions,
            known: given.known,
            regions,
            extent: Extent { threads, environments },
            frames: Vec::new(),
            shape,
            mode,
            uses: given.uses,
            arguments: given.arguments,
            aligned: false,
            base: Memo::default(),
            varying: HashMap::new(),
            failed: HashSet::new(),
            depth: 0,
            work: 0,
        }
    }

    /// The same with whole numbers that keep threads in their places: what then parts no warp hangs on such numbers.
    #[must_use]
    pub fn aligned(self) -> Evaluator<'e, 'c, 't> {
        Evaluator { aligned: true, ..self }
    }

    /// The threads and environments that values are of.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Allows `work` numbers to be computed from now on, and forgets what takes too much room.
    pub fn allow(&mut self, work: u64) {
        self.work = work;
        self.frames.clear();
        self.depth = 0;
        if self.base.size > KEPT {
            self.base = Memo::default();
        }
    }

    /// What is left of that.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.work
    }

    pub(super) fn spend(&mut self, numbers: usize) -> Found<()> {
        self.work = self.work.checked_sub(numbers as u64 + OVERHEAD).ok_or(Stop::OverBudget)?;
        Ok(())
    }

    /// The memo in which what varies with the frame at `level` is kept; 0 is what varies with none.
    fn memo(&mut self, level: usize) -> &mut Memo {
        match level.checked_sub(1) {
            Some(at) => &mut self.frames[at].memo,
            None => &mut self.base,
        }
    }

    /// The frame, counted from 1, with which a value varies; 0 for none.
    fn level(&mut self, node: Node) -> usize {
        for at in (0..self.frames.len()).rev() {
            let one = self.frames[at].one;
            if self.varies(node, one) {
                return at + 1;
            }
        }
        0
    }

    /// Likewise for what happens in a block.
    fn level_of_block(&self, block: Block) -> usize {
        let cfg = self.graph.cfg();
        let within = |frame: &Frame| cfg.is_in_loop(block, frame.one);
        self.frames.iter().rposition(within).map_or(0, |at| at + 1)
    }

    /// Whether a value may change from one iteration of a loop to the next.
    pub(super) fn varies(&mut self, node: Node, one: u32) -> bool {
        if let Some(known) = self.varying.get(&(node, one)) {
            return *known;
        }
        let graph = self.graph;
        if !graph.cfg().is_in_loop(graph.block(node), one) {
            return false;
        }
        let varies = match graph.source(node) {
            Source::Join(_) => true,
            Source::Result { .. } | Source::Guarded { .. } => {
                // What depends on itself does so through a join.
                self.varying.insert((node, one), true);
                self.depth += 1;
                let deep = self.depth > DEPTH;
                let varies = deep || graph.inputs(node).iter().any(|input| self.varies(*input, one));
                self.depth -= 1;
                varies
            }
            _ => false,
        };
        self.varying.insert((node, one), varies);
        varies
    }

    /// A value as `user` sees it: one that is made in a loop which does not hold `user` is that of the lanes' leaving.
    pub(super) fn value(&mut self, node: Node, user: Block) -> Found<Value> {
        let graph = self.graph;
        match graph.cfg().left_between(graph.block(node), user) {
            Some(one) if self.varies(node, one) => self.at_exit(node, one),
            _ => self.evaluate(node),
        }
    }

    fn at_exit(&mut self, node: Node, one: u32) -> Found<Value> {
        let header = self.graph.cfg().loops[one as usize].header;
        let outside = self.graph.cfg().loops[one as usize].parent.is_some();
        let level = if outside { self.level_of_block(header) } else { 0 };
        if let Some(known) = self.memo(level).exits.get(&(node, one)) {
            return Ok(known.clone());
        }
        self.deepen()?;
        let value = self.left_with(node, one)?;
        self.depth -= 1;
        let memo = self.memo(level);
        memo.size += value.size();
        memo.exits.insert((node, one), value.clone());
        Ok(value)
    }

    fn deepen(&mut self) -> Found<()> {
        self.depth += 1;
        if self.depth > DEPTH { Err(Stop::OverBudget) } else { Ok(()) }
    }

    pub(super) fn evaluate(&mut self, node: Node) -> Found<Value> {
        let level = self.level(node);
        if let Some(known) = self.memo(level).values.get(&node) {
            return Ok(known.clone());
        }
        if self.failed.contains(&node) {
            return Err(Stop::OverBudget);
        }
        self.deepen()?;
        let value = self.compute(node).and_then(|value| self.spend(value.size()).map(|()| value));
        if value == Err(Stop::OverBudget) {
            self.failed.insert(node);
        }
        let value = value?;
        self.depth -= 1;
        let memo = self.memo(level);
        memo.size += value.size();
        memo.values.insert(node, value.clone());
        Ok(value)
    }

    fn compute(&mut self, node: Node) -> Found<Value> {
        let graph = self.graph;
        match graph.source(node) {
            Source::Constant(value) => Ok(Value::constant(value)),
            Source::Special(special) => Ok(self.special(special)),
            // Its type is that of the load; this is the address of it.
            Source::Parameter(position, _) => Ok(Value::constant(mix(u64::from(position), 11) & 0xffff)),
            Source::Address(name, distance) => {
                let base = draw(Flavour::Pointer, mix(u64::from(name), 12)) & 0xffff_ff00;
                Ok(Value::constant(base.wrapping_add_signed(distance)))
            }
            Source::Undefined(register) => Ok(self.symbol(Span::Block, Flavour::Integer, u64::from(register.0), 13)),
            Source::Guarded { .. } => {
                let block = graph.block(node);
                let [predicate, written, before] = *graph.inputs(node) else { return Err(Stop::OverBudget) };
                let Source::Guarded { instruction } = graph.source(node) else { return Err(Stop::OverBudget) };
                let negated = graph.code().instructions[instruction as usize].guard.is_some_and(|guard| guard.negated);
                let predicate = truth(&self.value(predicate, block)?, negated);
                let (written, before) = (self.value(written, block)?, self.value(before, block)?);
                Ok(predicate.choose(&written, &before, self.extent))
            }
            Source::Join(_) => self.joined(node),
            Source::Result { instruction, place } => self.result(node, instruction, place),
        }
    }

    /// A number that nobody knows before the kernel runs.
    fn symbol(&self, span: Span, flavour: Flavour, key: u64, kind: u64) -> Value {
        let seed = mix(key, kind);
        let is_whole = matches!(flavour, Flavour::Integer | Flavour::Datum);
        let keep = if self.aligned && is_whole { !(ALIGNED - 1) } else { u64::MAX };
        Value::sampled(self.extent, span, |environment, place| {
            draw(flavour, mix(mix(seed, environment as u64), place as u64)) & keep
        })
    }

    /// Data: one number for the block, or one for each lane.
    fn data(&self, flavour: Flavour, key: u64, kind: u64) -> Value {
        match self.mode {
            Mode::Index => self.symbol(Span::Block, flavour, key, kind),
            Mode::Data => self.symbol(Span::Thread, flavour, key, kind).as_data(),
        }
    }

    fn special(&self, special: Special) -> Value {
        let Shape { x, y, z, .. } = self.shape;
        let (x, y) = (x as usize, y as usize);
        let lanes = |f: fn(u32) -> u32| {
            let lane = |thread: usize| u32::try_from(thread % LANES).unwrap_or(0);
            Value::of_threads(self.extent, move |thread| u64::from(f(lane(thread))))
        };
        let size = [self.shape.x, self.shape.y, z];
        match special {
            Special::Tid(axis) if size[usize::from(axis.min(2))] == 1 => Value::constant(0),
            Special::Tid(0) => Value::of_threads(self.extent, |thread| (thread % x) as u64),
            Special::Tid(1) => Value::of_threads(self.extent, |thread| (thread / x % y) as u64).condensed(self.extent),
            Special::Tid(_) => {
                Value::of_threads(self.extent, |thread| (thread / (x * y)) as u64).condensed(self.extent)
            }
            Special::Ntid(axis) => Value::constant(u64::from(size[usize::from(axis.min(2))])),
            Special::WarpSize => Value::constant(32),
            Special::Laneid => lanes(|lane| lane),
            Special::LanemaskEq => lanes(|lane| 1 << lane),
            Special::LanemaskLt => lanes(|lane| (1 << lane) - 1),
            Special::LanemaskLe => lanes(|lane| u32::MAX >> (31 - lane)),
            Special::LanemaskGe => lanes(|lane| u32::MAX << lane),
            Special::LanemaskGt => lanes(|lane| (u32::MAX << lane) ^ (1 << lane)),
            Special::Warpid => Value::of_warps(self.extent, |warp| warp as u64),
            Special::Nwarpid => Value::constant(self.extent.warps() as u64),
            Special::Nctaid(axis) => {
                let number = self.symbol(Span::Block, Flavour::Integer, u64::from(axis), 14);
                let few = Value::sampled(self.extent, Span::Block, |at, _| u64::from(edge(at) == Some(Edge::Few)));
                number.zip(&few, |number, few| if few == 0 { number % 64 + 16 } else { number % 8 + 1 })
            }
            Special::Ctaid(axis) => {
                let count = self.special(Special::Nctaid(axis));
                let number = Value::sampled(self.extent, Span::Block, |environment, _| {
                    mix(mix(u64::from(axis), 15), environment as u64)
                });
                let inner = number.zip(&count, |number, count| number % count);
                let is_first = |environment| match edge(environment) {
                    Some(Edge::First | Edge::Small) => 1,
                    Some(Edge::AlongX | Edge::Some) => u64::from(axis != 0),
                    Some(Edge::AlongY) => u64::from(axis != 1),
                    Some(Edge::Last | Edge::Few) | None => 0,
                };
                let first = Value::sampled(self.extent, Span::Block, |environment, _| is_first(environment));
                let last = Value::sampled(self.extent, Span::Block, |at, _| u64::from(edge(at) == Some(Edge::Last)));
                let place = first.zip(&inner, |first, inner| if first == 0 { inner } else { 0 });
                place.zip(
                    &last.zip(&count, |last, count| last * count),
                    |place, end| if end == 0 { place } else { end - 1 },
                )
            }
            Special::Clock => self.data(Flavour::Bits64, 0, 16),
            Special::Other(name) => self.symbol(Span::Block, Flavour::Integer, u64::from(name), 17),
        }
    }

    fn joined(&mut self, node: Node) -> Found<Value> {
        let cfg = self.graph.cfg();
        let block = self.graph.block(node);
        if let Some(one) = cfg.loop_headed_by(block) {
            if let Some(frame) = self.frames.iter().rev().find(|frame| frame.one == one) {
                return frame.header.get(&node).cloned().ok_or(Stop::Missing(node));
            }
            return self.sampled(one, Some(node))?.header.get(&node).cloned().ok_or(Stop::OverBudget);
        }
        if cfg.is_tangled(block) {
            return Err(Stop::OverBudget);
        }
        let before = cfg.predecessors(block);
        let inputs = self.graph.inputs(node);
        let all: Vec<(Block, Node)> = before.iter().copied().zip(inputs.iter().copied()).collect();
        self.merged(&all, block, |this| this.reach(block))
    }

    /// The one of several values that comes along each lane's way.
    fn merged(
        &mut self,
        ways: &[(Block, Node)],
        block: Block,
        reach: impl FnOnce(&mut Self) -> Found<Rc<[Value]>>,
    ) -> Found<Value> {
        let cfg = self.graph.cfg();
        let mut values = Vec::with_capacity(ways.len());
        for (from, input) in ways {
            let value = if cfg.is_reached(*from) { Some(self.value(*input, block)?) } else { None };
            values.push(value);
        }
        let mut known = values.iter().flatten();
        let Some(first) = known.next() else { return Err(Stop::OverBudget) };
        if known.all(|value| value == first) {
            return Ok(first.clone());
        }
        let masks = reach(self)?;
        let mut merged: Option<Value> = None;
        for (value, mask) in values.iter().zip(masks.iter()) {
            let Some(value) = value else { continue };
            merged = Some(match merged {
                None => value.clone(),
                Some(before) => mask.choose(value, &before, self.extent),
            });
        }
        merged.ok_or(Stop::OverBudget)
    }

    /// For each way into a block the lanes that come along it, of those that come to where the ways part.
    fn reach(&mut self, block: Block) -> Found<Rc<[Value]>> {
        let level = self.level_of_block(block);
        if let Some(known) = self.memo(level).reaches.get(&block) {
            return Ok(known.clone());
        }
        let cfg = self.graph.cfg();
        let region = self.regions.before(cfg, block).ok_or(Stop::OverBudget)?;
        let mut masks = HashMap::from([(region.root, Value::constant(1))]);
        for one in &region.blocks {
            masks.insert(*one, Value::constant(0));
        }
        let found = self.ways_into(block, &region.blocks, region.root, masks)?;
        let size: usize = found.iter().map(Value::size).sum();
        let memo = self.memo(level);
        memo.size += size;
        memo.reaches.insert(block, found.clone());
        Ok(found)
    }

    /// Follows the lanes through `blocks`, which are in order, to `block`.
    pub(super) fn ways_into(
        &mut self,
        block: Block,
        blocks: &[Block],
        root: Block,
        mut masks: HashMap<Block, Value>,
    ) -> Found<Rc<[Value]>> {
        let cfg = self.graph.cfg();
        for one in blocks {
            let mut mask = Value::constant(0);
            for from in cfg.predecessors(*one) {
                if !masks.contains_key(from) || cfg.is_back_edge(*from, *one) {
                    continue;
                }
                let edge = self.edge(*from, *one, block, &masks)?;
                mask = mask.zip(&edge, |a, b| a | b);
            }
            self.spend(mask.size())?;
            masks.insert(*one, mask);
        }
        let mut ways = Vec::new();
        for from in cfg.predecessors(block) {
            let mask =
                if masks.contains_key(from) && (*from == root || !cfg.is_back_edge(*from, block) || block == root) {
                    self.edge(*from, block, block, &masks)?
                } else {
                    Value::constant(0)
                };
            ways.push(mask);
        }
        Ok(ways.into())
    }

    /// The lanes that go along an edge of the way to `target`.
    fn edge(&mut self, from: Block, to: Block, target: Block, masks: &HashMap<Block, Value>) -> Found<Value> {
        let cfg = self.graph.cfg();
        // A loop on the way is left by all that come into it, at one iteration or another.
        let passed =
            cfg.loops_of(from).take_while(|one| !cfg.is_in_loop(target, *one) && !cfg.is_in_loop(to, *one)).last();
        if let Some(one) = passed {
            let whole = &cfg.loops[one as usize];
            if let Some(mask) = masks.get(&whole.header) {
                if whole.exits.iter().all(|exit| *exit == (from, to)) {
                    return Ok(mask.clone());
                }
                let mask = mask.clone();
                return self.one_exit_of_several(one, (from, to), &mask);
            }
        }
        let mask = masks.get(&from).cloned().unwrap_or_else(|| Value::constant(0));
        if mask.as_constant() == Some(0) {
            return Ok(mask);
        }
        match self.along(from, to)? {
            Some(condition) => Ok(mask.zip(&condition, |a, b| a & b)),
            None => Ok(mask),
        }
    }

    /// Of several exits of a loop, lanes take the one whose condition holds at the iteration that is looked at, and else
    /// the last.
    fn one_exit_of_several(&mut self, one: u32, exit: (Block, Block), mask: &Value) -> Found<Value> {
        let cfg = self.graph.cfg();
        let mut exits = cfg.loops[one as usize].exits.clone();
        exits.sort_by_key(|(from, _)| cfg.order(*from));
        exits.dedup();
        let mut left = mask.clone();
        for (at, other) in exits.iter().enumerate() {
            if at + 1 == exits.len() {
                break;
            }
            let taken = match self.along(other.0, other.1)? {
                Some(condition) => left.zip(&condition, |a, b| a & b),
                None => left.clone(),
            };
            if *other == exit {
                return Ok(taken.as_guess());
            }
            left = left.zip(&taken, |left, taken| left & !taken & 1);
        }
        Ok(left.as_guess())
    }

    /// The lanes for which control goes from a block to one of its successors; `None` for all.
    pub(super) fn along(&mut self, from: Block, to: Block) -> Found<Option<Value>> {
        let cfg = self.graph.cfg();
        let successors = cfg.successors(from);
        if successors.len() < 2 || successors.iter().all(|one| *one == to) {
            return Ok(None);
        }
        let decision = self.decisions[from as usize].ok_or(Stop::OverBudget)?;
        if decision.is_index {
            let code = self.graph.code();
            let block_at = |target: &u32| cfg.block_of.get(*target as usize).copied().unwrap_or(cfg.end());
            let table: Vec<Block> = code.table(cfg.last(from)).iter().map(block_at).collect();
            let index = self.value(decision.node, from)?;
            let hits = index.map(|index| u64::from(usize::try_from(index).is_ok_and(|at| table.get(at) == Some(&to))));
            return Ok(Some(hits));
        }
        let taken = self.condition(from)?;
        Ok(Some(if successors[0] == to { taken } else { taken.map(|taken| 1 - taken) }))
    }

    /// For the branch of a block, the lanes that take it.
    pub fn condition(&mut self, block: Block) -> Found<Value> {
        let decision = self.decisions[block as usize].ok_or(Stop::OverBudget)?;
        let value = self.value(decision.node, block)?;
        if decision.is_index {
            return Ok(value);
        }
        Ok(truth(&value, decision.negated))
    }

    /// A value as an instruction of `block` sees it.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub fn value_at(&mut self, node: Node, block: Block) -> Found<Value> {
        self.value(node, block)
    }

    /// The lanes that come to a block, in the iterations that are looked at.
    pub fn active(&mut self, block: Block) -> Found<Value> {
        let level = self.level_of_block(block);
        if let Some(known) = self.memo(level).active.get(&block) {
            return Ok(known.clone());
        }
        let cfg = self.graph.cfg();
        // Found from the top of the dominator tree down, so that any depth of nesting takes no stack.
        let mut chain = vec![block];
        let mut active = Value::constant(1);
        let mut at = block;
        while let Some(above) = cfg.idom(at) {
            let level = self.level_of_block(above);
            // What is active in a loop is not so after it.
            if cfg.left_between(above, block).is_none()
                && let Some(known) = self.memo(level).active.get(&above)
            {
                active = known.clone();
                break;
            }
            chain.push(above);
            at = above;
        }
        for here in chain.into_iter().rev() {
            if let Some(above) = cfg.idom(here).filter(|above| cfg.left_between(*above, block).is_none())
                && let Some(coming) = self.coming(above, here)?
            {
                active = active.zip(&coming, |a, b| a & b);
            }
            let entered = cfg.loop_headed_by(here).filter(|one| cfg.is_in_loop(block, *one));
            if let Some(one) = entered.filter(|one| !self.frames.iter().any(|frame| frame.one == *one)) {
                let alive = self.sampled(one, None)?.alive.clone();
                active = active.zip(&alive, |a, b| a & b);
            }
            self.spend(active.size())?;
            // Only what lies on the way to `block` itself is kept.
            if here == block {
                let memo = self.memo(level);
                memo.size += active.size();
                memo.active.insert(here, active.clone());
            }
        }
        Ok(active)
    }

    /// Of the lanes at a block those that go on to one that it dominates at once; `None` for all of them.
    fn coming(&mut self, above: Block, here: Block) -> Found<Option<Value>> {
        let cfg = self.graph.cfg();
        let outside = cfg.predecessors(here).iter().filter(|from| !cfg.is_back_edge(**from, here));
        if outside.eq([&above]) {
            return self.along(above, here);
        }
        // Where ways meet that are not all ways: behind `a || b`, at a case that two numbers lead to.
        let met = std::iter::successors(Some(cfg.ipdom(above)), |at| Some(cfg.ipdom(*at)).filter(|_| *at < cfg.end()));
        if met.take(MEETING).any(|at| at == here) || cfg.is_tangled(here) {
            return Ok(None);
        }
        match self.reach(here) {
            Ok(ways) => Ok(ways.iter().cloned().reduce(|all, way| all.zip(&way, |a, b| a | b))),
            Err(Stop::OverBudget) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// The lanes that come to a block if all goes its way that is known only at run time; `None` where nothing of the kind
    /// is on the way.
    pub fn assumed(&mut self, block: Block) -> Found<Option<Value>> {
        let cfg = self.graph.cfg();
        let mut active = Value::constant(1);
        let mut is_open = false;
        let mut here = block;
        while let Some(above) = cfg.idom(here) {
            let is_side = cfg.predecessors(here) == [above] && cfg.left_between(above, block).is_none();
            let decision = self.decisions[above as usize].filter(|_| is_side && cfg.successors(above).len() > 1);
            if decision.is_some_and(|decision| is_open_until_run(self.graph, decision.node)) {
                is_open = true;
            } else if decision.is_some()
                && let Some(condition) = self.along(above, here)?
            {
                active = active.zip(&condition, |a, b| a & b);
                self.spend(active.size())?;
            }
            here = above;
        }
        Ok(is_open.then_some(active))
    }

    fn result(&mut self, node: Node, instruction: u32, place: u16) -> Found<Value> {
        let graph = self.graph;
        let code = graph.code();
        let one = &code.instructions[instruction as usize];
        let operands = code.sources(one);
        let block = graph.block(node);
        if one.op == Op::Ld || one.op == Op::Fetch || one.op == Op::Atom {
            return self.loaded(node, instruction, place);
        }
        let key = u64::from(instruction - graph.cfg().starts[0]) << 16 | u64::from(place);
        match one.op {
            Op::Tensor => return Ok(self.data(flavour(one), key, 21)),
            Op::Bar => return Ok(self.symbol(Span::Block, Flavour::Integer, key, 22).map(|bits| bits & 1)),
            Op::Match if !one.mods.is_all() => {}
            Op::Redux if self.is_reduced(node, one) => {}
            // What groups of lanes find out, each for itself.
            Op::Match | Op::Redux if !self.known[node.0 as usize].is_warp_uniform() => {
                return Ok(self.data(Flavour::Integer, key, 23));
            }
            Op::Match | Op::Redux => {
                let span = self.span_of_shared(node);
                return Ok(self.symbol(span, Flavour::Integer, key, 23));
            }
            _ => {}
        }
        let mut args = Vec::with_capacity(operands.len());
        for (operand, input) in operands.iter().zip(graph.inputs(node)) {
            let value = self.value(*input, block)?;
            args.push(match operand {
                Operand::Not(_) => value.map(|bits| u64::from(bits == 0)),
                Operand::Minus(_) => value.map(u64::wrapping_neg),
                Operand::Memory(_, distance) => value.map(|bits| bits.wrapping_add_signed(*distance)),
                _ => value,
            });
        }
        let destinations = code.destinations(one).len();
        let value = op::compute(one, place, destinations, &args, self.extent);
        // What lanes share again, or no longer depends on the environment, is kept once: the next steps are faster.
        let value = if narrows(one.op) { value.condensed(self.extent) } else { value };
        Ok(if self.is_edge(one, &args) { value.as_edge() } else { value })
    }

    /// Whether lanes that are known join integers.
    fn is_reduced(&self, node: Node, one: &Instruction) -> bool {
        let mask = self.graph.inputs(node).get(1).map(|mask| self.known[mask.0 as usize]);
        op::is_reduced(one) && mask.is_some_and(|mask| mask.as_constant().is_some())
    }

    /// Whether lanes compare different numbers, of which some are not known before the kernel runs: then it depends on those
    /// whether lanes come to different answers.
    fn is_edge(&self, one: &Instruction, args: &[Value]) -> bool {
        let [a, b, ..] = args else { return false };
        let differs =
            |arg: &Value| arg.span() == Span::Thread && arg.clone().condensed(self.extent).span() == Span::Thread;
        let is_edge = matches!(one.op, Op::Setp | Op::Set) && (a.varies() || b.varies()) && (differs(a) || differs(b));
        is_edge && op::distance(one.cond, a, b, one.kind.width(), self.extent).is_none()
    }

    fn loaded(&mut self, node: Node, instruction: u32, place: u16) -> Found<Value> {
        let kind = self.graph.code().instructions[instruction as usize].kind;
        let value = self.read_from_memory(node, instruction, place)?;
        Ok(op::loaded(kind, value))
    }

    fn read_from_memory(&mut self, node: Node, instruction: u32, place: u16) -> Found<Value> {
        let graph = self.graph;
        let code = graph.code();
        let one = &code.instructions[instruction as usize];
        let key = u64::from(instruction) << 16 | u64::from(place);
        if one.op == Op::Ld && one.space == Space::Param {
            return Ok(match code.sources(one).first() {
                Some(Operand::Parameter(position, distance)) => self.parameter(one, place, *position, *distance),
                // What a call left.
                _ => self.data(flavour(one), key, 24),
            });
        }
        if one.op == Op::Atom || one.space == Space::Local {
            return Ok(self.data(flavour(one), key, 25));
        }
        if self.known[node.0 as usize].is_warp_uniform() {
            return Ok(self.symbol(self.span_of_shared(node), flavour(one), key, 26));
        }
        let block = graph.block(node);
        let mut span = Span::Block;
        for input in graph.inputs(node) {
            span = span.max(self.value(*input, block)?.condensed(self.extent).span());
        }
        Ok(match span {
            Span::Warp if self.mode == Mode::Data => self.symbol(Span::Warp, flavour(one), key, 26),
            Span::Block => self.symbol(Span::Block, flavour(one), key, 26),
            _ => self.data(flavour(one), key, 26),
        })
    }

    /// How far a number varies that the lanes of a warp share and nobody knows: what warps do by their data alone is no
    /// disagreement by index.
    fn span_of_shared(&self, node: Node) -> Span {
        let is_by_warp = self.known[node.0 as usize].grain <= super::lattice::WARP && self.mode == Mode::Data;
        if is_by_warp { Span::Warp } else { Span::Block }
    }

    /// What kind of number a parameter is: compilers may read all of them as bits, and then tell by what is done with it.
    fn flavour_of_parameter(&self, one: &Instruction, register: Reg) -> Flavour {
        match (one.kind, self.uses.of(register)) {
            (kind, Use::Pointer) if kind.width() == 64 => Flavour::Pointer,
            (Type::Bits(32), Use::Float) => Flavour::F32,
            (Type::Bits(64), Use::Float) => Flavour::F64,
            (Type::Bits(_), _) => Flavour::Integer,
            _ => flavour(one),
        }
    }

    fn parameter(&self, one: &Instruction, place: u16, position: u32, distance: i64) -> Value {
        let arguments = if self.mode == Mode::Index { &self.arguments.by_index } else { &self.arguments.by_data };
        if distance == 0
            && place == 0
            && let Some(value) = arguments.get(&position)
        {
            return value.in_environments(self.extent.environments);
        }
        let flavour = match self.graph.code().destinations(one).get(usize::from(place)) {
            Some(Operand::Register(register)) => self.flavour_of_parameter(one, *register),
            _ => flavour(one),
        };
        let key = mix(u64::from(position), distance.cast_unsigned().wrapping_add(u64::from(place)));
        if !self.shape.is_entry {
            return self.data(flavour, key, 27);
        }
        let value = self.symbol(Span::Block, flavour, key, 27);
        if flavour != Flavour::Integer || self.aligned {
            value
        } else {
            self.ending_here(&value, key, one.kind.width())
        }
    }

    /// A size that in some environments ends within the block: so that the edge of a problem is always met, and seldom.
    fn ending_here(&self, value: &Value, key: u64, bits: u32) -> Value {
        let Shape { x, y, .. } = self.shape;
        let blocks = [0, 1].map(|axis| self.special(Special::Ctaid(axis)));
        let low = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        Value::sampled(self.extent, Span::Block, |environment, _| {
            let draw = mix(mix(key, 29), environment as u64);
            let within = |threads: u32| 1 + draw % u64::from(threads.max(2) - 1);
            let place = self.extent.environments.iter().position(|one| *one == environment).unwrap_or(0);
            let block = |axis: usize| blocks[axis].at(place, 0);
            let end = match edge(environment) {
                Some(Edge::AlongX) => block(0) * u64::from(x) + within(x),
                Some(Edge::Some) if draw >> 40 & 1 == 0 => block(0) * u64::from(x) + within(x),
                Some(Edge::AlongY) => block(1) * u64::from(y) + within(y),
                Some(Edge::Small) => within(x.max(y)),
                _ => return value.at(place, 0),
            };
            end & low
        })
    }

    /// Pushes a frame, runs `f` in it, and takes it off again.
    pub(super) fn within<T>(
        &mut self,
        one: u32,
        header: HashMap<Node, Value>,
        f: impl FnOnce(&mut Self) -> Found<T>,
    ) -> Found<T> {
        self.frames.push(Frame { one, header, memo: Memo::default() });
        let depth = self.depth;
        let height = self.frames.len();
        let result = f(self);
        self.frames.truncate(height - 1);
        self.depth = depth;
        result
    }

    pub(super) fn known_sample(&mut self, one: u32) -> Option<Rc<Sample>> {
        let level = self.level_around(one);
        self.memo(level).samples.get(&one).cloned()
    }

    pub(super) fn keep_sample(&mut self, one: u32, sample: Rc<Sample>) {
        let level = self.level_around(one);
        let size: usize = sample.header.values().map(Value::size).sum();
        let memo = self.memo(level);
        memo.size += size + sample.alive.size();
        memo.samples.insert(one, sample);
    }

    /// The frame that the whole of a loop varies with.
    fn level_around(&self, one: u32) -> usize {
        let header = self.graph.cfg().loops[one as usize].header;
        self.level_of_block(header)
    }

    /// For each environment the iteration of a loop that it stands at. Nested loops do not go in step.
    pub(super) fn iteration(&self, one: u32, environment: usize) -> usize {
        let depth = self.graph.cfg().loops[one as usize].depth;
        match depth {
            1 => environment % (STEPS + 1),
            2 => (environment / 3 + environment) % (STEPS + 1),
            _ => (environment * 5 + 2) % (STEPS + 1),
        }
    }

    pub(super) fn steps() -> usize {
        STEPS
    }

    pub(super) fn noise(&self, node: Node, one: u32) -> Value {
        self.symbol(Span::Thread, Flavour::Integer, u64::from(node.0) << 20 | u64::from(one), 28)
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }
}

/// Whether the operation may make lanes equal that were not.
fn narrows(op: Op) -> bool {
    matches!(op, Op::Setp | Op::Shr | Op::And | Op::Div | Op::Rem | Op::Shfl | Op::Bfe | Op::Min | Op::Max | Op::Selp)
}

/// 1 where a predicate, which may be negated, holds.
pub(super) fn truth(value: &Value, negated: bool) -> Value {
    value.map(|bits| u64::from((bits != 0) != negated))
}

/// What kind of numbers an instruction reads from memory.
fn flavour(one: &Instruction) -> Flavour {
    match one.kind {
        Type::F32 => Flavour::F32,
        Type::F64 => Flavour::F64,
        Type::Bits(64) => Flavour::Bits64,
        Type::Bits(32) => Flavour::Bits32,
        _ if one.space == Space::Param => Flavour::Integer,
        _ => Flavour::Datum,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, evaluated};
    use super::super::value::ALL;
    use super::*;

    fn value(text: &str) -> Value {
        evaluated(SHAPE, Mode::Index, &format!("{text} popc.b32 %r9, %r1; ret;")).expect("a value")
    }

    /// The value of some threads in the first environment.
    fn threads(text: &str, which: [usize; 4]) -> [u64; 4] {
        let value = value(text);
        which.map(|thread| value.at(0, thread))
    }

    #[test]
    fn positions_in_the_block_are_exact() {
        assert_eq!(threads("mov.u32 %r1, %tid.x;", [0, 31, 32, 255]), [0, 31, 32, 255]);
        assert_eq!(threads("mov.u32 %r1, %laneid;", [0, 31, 32, 255]), [0, 31, 0, 31]);
        assert_eq!(threads("mov.u32 %r1, %warpid;", [0, 31, 32, 255]), [0, 0, 1, 7]);
        assert_eq!(threads("mov.u32 %r1, %lanemask_lt;", [0, 1, 31, 32]), [0, 1, 0x7fff_ffff, 0]);
        assert_eq!(
            threads("mov.u32 %r1, %lanemask_ge;", [0, 1, 31, 32]),
            [0xffff_ffff, 0xffff_fffe, 1 << 31, 0xffff_ffff]
        );
        let tile = Shape { x: 16, y: 4, z: 2, is_entry: true };
        let axis = |axis: &str| {
            let value = evaluated(tile, Mode::Index, &format!("mov.u32 %r1, %tid.{axis}; popc.b32 %r9, %r1;"));
            let value = value.expect("a value");
            [0, 17, 63, 127].map(|thread| value.at(0, thread))
        };
        assert_eq!((axis("x"), axis("y"), axis("z")), ([0, 1, 15, 15], [0, 1, 3, 3], [0, 0, 0, 1]));
    }

    #[test]
    fn block_numbers_and_parameters_are_one_number_for_the_block_and_differ_between_environments() {
        for text in ["mov.u32 %r1, %ctaid.x;", "ld.param.u32 %r1, [n];"] {
            let value = value(text);
            assert_eq!((value.span(), value.varies()), (Span::Block, true), "{text}");
            assert!((1..ALL.len()).any(|at| value.at(at, 0) != value.at(0, 0)), "{text}");
        }
        let below =
            value("mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; setp.lt.u32 %p1, %r2, %r3; selp.b32 %r1, 1, 0, %p1;");
        assert!((0..ALL.len()).all(|at| below.at(at, 0) == 1), "a block number is below the number of blocks");
    }

    #[test]
    fn data_are_one_number_in_one_mode_and_one_for_each_lane_in_the_other() {
        let text = "mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; ld.global.u32 %r1, [%rd2]; popc.b32 %r9, %r1;";
        let by = |mode| {
            evaluated(SHAPE, mode, text).expect("a value").condensed(Extent { threads: 256, environments: ALL }).span()
        };
        assert_eq!((by(Mode::Index), by(Mode::Data)), (Span::Block, Span::Thread));
    }

    #[test]
    fn ways_that_meet_choose_by_the_condition_of_each_thread() {
        let text =
            "mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 40; @%p1 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B:";
        assert_eq!(threads(text, [0, 39, 40, 255]), [2, 2, 1, 1]);
        let nested = "mov.u32 %r2, %tid.x; mov.u32 %r1, 0; setp.lt.u32 %p1, %r2, 40; @!%p1 bra B;
            setp.lt.u32 %p2, %r2, 8; @%p2 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B:";
        assert_eq!(threads(nested, [0, 8, 39, 40]), [2, 1, 1, 0]);
        let table = "mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 3; T: .branchtargets A, B, A; brx.idx %r2, T;
            A: mov.u32 %r1, 10; bra C; B: mov.u32 %r1, 20; C:";
        assert_eq!(threads(table, [0, 1, 2, 4])[..3], [10, 20, 10]);
    }

    #[test]
    fn who_comes_to_where_some_ways_meet_came_along_one_of_them() {
        let text = |last: &str| {
            format!(
                "mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %w, 1; @%p1 bra A;
                 setp.eq.u32 %p2, %w, 6; @!%p2 bra E; A: {last}; bar.sync 0; E: ret;"
            )
        };
        let of = |text: &str| super::super::testing::judged(SHAPE, text).pop().expect("a branch").split;
        let odd = of(&text("add.s32 %r2, %r2, 1; setp.eq.u32 %p3, %r1, 1; @!%p3 bra E"));
        // Two warps of eight.
        assert!((odd.among - 0.25).abs() < 1e-9 && (odd.mean - 1.0).abs() < 1e-9, "{odd:?}");
        assert_eq!(odd.witness.expect("a warp that parts").warp, 1);
        let early = of(&text("setp.lt.u32 %p3, %w, 1; @!%p3 bra E"));
        assert!(early.mean.abs() < 1e-9 && early.parts.abs() < 1e-9, "{early:?}");
    }

    #[test]
    fn grids_are_of_few_blocks_as_well() {
        let count = value("mov.u32 %r1, %nctaid.x;");
        let small = (0..ALL.len()).filter(|at| count.at(*at, 0) <= 8).count();
        assert!(small == 1 && (0..ALL.len()).all(|at| count.at(at, 0) > 0), "{count:?}");
        let last = value(
            "mov.u32 %r2, %ctaid.x; add.u32 %r2, %r2, 1; mov.u32 %r3, %nctaid.x; setp.eq.u32 %p1, %r2, %r3; \
             selp.b32 %r1, 1, 0, %p1;",
        );
        assert!((0..ALL.len()).any(|at| last.at(at, 0) == 1), "{last:?}");
    }

    #[test]
    fn parameters_that_are_read_as_bits_are_what_is_done_with_them() {
        let in_grid = |use_it: &str| {
            let value = value(&format!("ld.param.b32 %r1, [n]; {use_it}"));
            (0..ALL.len()).filter(|at| value.at(*at, 0) < 1 << 22).count()
        };
        assert_eq!(in_grid(""), ALL.len());
        assert!(in_grid("fma.rn.f32 %r2, %r1, %r1, %r1;") < ALL.len() / 2);
    }

    #[test]
    fn a_guarded_definition_is_chosen_thread_by_thread() {
        let text = "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 3; mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2;";
        assert_eq!(threads(text, [2, 3, 4, 35]), [1, 2, 1, 1]);
        let negated = "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 3; mov.u32 %r1, 1; @!%p1 mov.u32 %r1, 2;";
        assert_eq!(threads(negated, [2, 3, 4, 35]), [2, 1, 2, 2]);
    }

    #[test]
    fn a_loop_that_ends_soon_is_run_to_its_end() {
        let text = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 7; mov.u32 %r1, 0; mov.u32 %r4, 0;
            L: add.s32 %r1, %r1, 10; add.s32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r3; @%p1 bra L;";
        assert_eq!(threads(text, [0, 1, 7, 8]), [10, 20, 80, 10]);
        let doubling = "mov.u32 %r1, 1; L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;";
        assert_eq!(threads(doubling, [0, 1, 7, 8]), [128, 128, 128, 128]);
    }

    #[test]
    fn what_cannot_be_followed_is_given_up() {
        let tangled =
            "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 3; mov.u32 %r1, 0; @%p1 bra B; A: add.s32 %r1, %r1, 1;
            B: popc.b32 %r9, %r1; setp.lt.u32 %p2, %r1, %r2; @%p2 bra A; ret;";
        assert_eq!(evaluated(SHAPE, Mode::Index, tangled), None);
        let long = "add.s32 %r1, %r1, 1;\n".repeat(3000);
        assert_eq!(evaluated(SHAPE, Mode::Index, &format!("mov.u32 %r1, %tid.x; {long} popc.b32 %r9, %r1;")), None);
    }
}
