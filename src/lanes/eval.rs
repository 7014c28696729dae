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
use super::steps::Sample;
use super::unknowns::flavour;
use super::uses::Uses;
use super::value::{Environments, Extent, Span, Value};
use crate::parse::ptx::{Instruction, Op, Operand};

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
    pub(super) regions: Regions,
    pub(super) extent: Extent,
    pub(super) frames: Vec<Frame>,
    pub(super) shape: Shape,
    pub(super) mode: Mode,
    /// What registers are used as.
    pub(super) uses: &'e Uses,
    /// What the callers pass, where they are known: for each parameter, and for each mode.
    pub(super) arguments: &'e Arguments,
    /// Whole numbers that are known only at run time are multiples of more than a block has threads.
    pub(super) aligned: bool,
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

impl Arguments {
    /// Whether no call is known.
    pub(super) fn are_unknown(&self) -> bool {
        self.by_index.is_empty() && self.by_data.is_empty()
    }
}

/// What was computed, as long as it holds.
#[derive(Debug, Default)]
pub(super) struct Memo {
    values: HashMap<Node, Value>,
    exits: HashMap<(Node, u32), Value>,
    pub(super) reaches: HashMap<Block, Rc<[Value]>>,
    pub(super) active: HashMap<Block, Value>,
    pub(super) samples: HashMap<u32, Rc<Sample>>,
    pub(super) size: usize,
}

/// A loop that is being stepped.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) one: u32,
    /// The values at the header.
    pub(super) header: HashMap<Node, Value>,
    memo: Memo,
}

/// Values that may depend on each other in a row.
const DEPTH: usize = 1200;

/// What finding a value costs beside its numbers, in numbers.
const OVERHEAD: u64 = 200;

/// Numbers that are kept between branches.
const KEPT: usize = 1 << 20;

impl<'e, 'c, 't> Evaluator<'e, 'c, 't> {
    /// An evaluator that knows nothing yet.
    #[must_use]
    pub fn new(
        given: &Given<'e, 'c, 't>,
        regions: Regions,
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
    pub(super) fn memo(&mut self, level: usize) -> &mut Memo {
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
    pub(super) fn level_of_block(&self, block: Block) -> usize {
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

    /// A value as an instruction of `block` sees it.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub fn value_at(&mut self, node: Node, block: Block) -> Found<Value> {
        self.value(node, block)
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
            Source::Guarded { instruction } => self.guarded(node, instruction),
            Source::Join(_) => self.joined(node),
            Source::Result { instruction, place } => self.result(node, instruction, place),
        }
    }

    /// A register that lanes write for which a predicate holds, and others keep.
    fn guarded(&mut self, node: Node, instruction: u32) -> Found<Value> {
        let graph = self.graph;
        let block = graph.block(node);
        let [predicate, written, before] = *graph.inputs(node) else { return Err(Stop::OverBudget) };
        let negated = graph.code().instructions[instruction as usize].guard.is_some_and(|guard| guard.negated);
        let predicate = truth(&self.value(predicate, block)?, negated);
        let (written, before) = (self.value(written, block)?, self.value(before, block)?);
        Ok(predicate.choose(&written, &before, self.extent))
    }

    /// What an instruction writes.
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
}

/// Whether the operation may make lanes equal that were not.
fn narrows(op: Op) -> bool {
    matches!(op, Op::Setp | Op::Shr | Op::And | Op::Div | Op::Rem | Op::Shfl | Op::Bfe | Op::Min | Op::Max | Op::Selp)
}

/// 1 where a predicate, which may be negated, holds.
pub(super) fn truth(value: &Value, negated: bool) -> Value {
    value.map(|bits| u64::from((bits != 0) != negated))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, evaluated, values_of};
    use super::*;

    #[test]
    fn a_guarded_definition_is_chosen_thread_by_thread() {
        let text = "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 3; mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2;";
        assert_eq!(values_of(text, [2, 3, 4, 35]), [1, 2, 1, 1]);
        let negated = "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 3; mov.u32 %r1, 1; @!%p1 mov.u32 %r1, 2;";
        assert_eq!(values_of(negated, [2, 3, 4, 35]), [2, 1, 2, 2]);
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
