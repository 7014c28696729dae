//! Level 1: how far each value may vary within a warp, found without running anything. What is warp-uniform here is done
//! with; the rest goes to level 2.

use hashbrown::HashSet;

use super::Shape;
use super::cfg::{Block, NONE};
use super::graph::{Graph, Node, Source};
use super::op::is_whole_warp;
use super::region::Regions;
use crate::parse::ptx::{Cond, Instruction, Op, Operand, Space, Special};

/// Equal on the whole block.
pub const BLOCK: u8 = 6;

/// Equal on each warp.
pub const WARP: u8 = 5;

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The value is equal on every aligned group of 2^grain consecutive threads; [`WARP`] and [`BLOCK`] are groups too.
    pub grain: u8,
    /// The index of the thread has a part in it.
    pub index: bool,
    /// Data have a part in it that differ from lane to lane.
    pub data: bool,
    /// Low bits that are surely 0.
    zeros: u8,
    /// The value is the thread's number in the block and a number that is the same for all its threads and has at least so
    /// many low bits that are 0.
    flat: Option<u8>,
    /// The one value that it has.
    constant: Option<u64>,
    /// It is the address of memory that each thread has its own of.
    local: bool,
}

impl Known {
    const UNIFORM: Known =
        Known { grain: BLOCK, index: false, data: false, zeros: 0, flat: None, constant: None, local: false };
    const LANE: Known = Known { grain: 0, index: true, ..Known::UNIFORM };
    const DATA: Known = Known { grain: 0, data: true, ..Known::UNIFORM };

    fn constant(value: u64) -> Known {
        let zeros = if value == 0 { 64 } else { value.trailing_zeros() };
        Known { zeros: u8::try_from(zeros).unwrap_or(0), constant: Some(value), ..Known::UNIFORM }
    }

    /// Whether all lanes of a warp have the same.
    #[must_use]
    pub fn is_warp_uniform(self) -> bool {
        self.grain >= WARP
    }

    /// Whether it is the address of memory that each thread has its own of.
    #[must_use]
    pub fn is_own_memory(self) -> bool {
        self.local
    }

    /// The one value that it has.
    #[must_use]
    pub fn as_constant(self) -> Option<u64> {
        self.constant
    }

    /// What holds for both.
    fn meet(self, other: Known) -> Known {
        Known {
            grain: self.grain.min(other.grain),
            index: self.index || other.index,
            data: self.data || other.data,
            zeros: self.zeros.min(other.zeros),
            flat: self.flat.zip(other.flat).map(|(a, b)| a.min(b)).filter(|_| self.constant == other.constant),
            constant: self.constant.filter(|_| self.constant == other.constant),
            local: self.local || other.local,
        }
    }

    /// What a function of the value has of it.
    fn derived(self) -> Known {
        Known { zeros: 0, flat: None, constant: None, ..self }
    }

    fn with_grain(self, grain: u8) -> Known {
        Known { grain: self.grain.max(grain), ..self }
    }
}

/// What decides a block's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The predicate, or the index into a table.
    pub node: Node,
    /// The branch is taken where the predicate is false.
    pub negated: bool,
    /// It is an index.
    pub is_index: bool,
}

/// Joins of a cycle with several ways in that are looked through for what a register holds, at most.
const TANGLED: usize = 64;

/// Blocks between branches and where their ways meet, of all branches together, for each block of the function.
const PARTED: usize = 64;

/// Rounds over all values at most; what has not settled by then is taken for unknown.
const ROUNDS: usize = 24;

/// Finds out what is known of every value of `graph`. `decisions` has one entry for each block.
#[must_use]
pub fn solve(graph: &Graph<'_, '_>, decisions: &[Option<Decision>], shape: Shape, regions: &mut Regions) -> Vec<Known> {
    let known = vec![None; graph.len()];
    let steps = Steps::new(graph, decisions);
    let order = in_order(graph);
    let mut solver = Solver { graph, decisions, shape, regions, known, parted: Vec::new(), steps, buffer: Vec::new() };
    for round in 0..ROUNDS {
        solver.parted = solver.find_parted();
        let before = solver.steps.now;
        for node in &order {
            solver.update(*node);
        }
        if solver.steps.last_change <= before {
            break;
        }
        if round + 1 == ROUNDS {
            solver.known.iter_mut().for_each(|known| *known = Some(Known { data: true, ..Known::LANE }));
        }
    }
    // What is made only of itself is never written.
    solver.known.into_iter().map(|known| known.unwrap_or(Known::UNIFORM)).collect()
}

/// All values, each behind what it is made of, but for what comes round a loop.
fn in_order(graph: &Graph<'_, '_>) -> Vec<Node> {
    let cfg = graph.cfg();
    let within = |node: Node| match graph.source(node) {
        Source::Result { instruction, .. } => (1, instruction, 0),
        Source::Guarded { instruction } => (1, instruction, 1),
        Source::Join(_) => (0, 1, 0),
        _ => (0, 0, 0),
    };
    // What is never reached comes last.
    let place = |node: Node| (cfg.order(graph.block(node)) as usize).min(cfg.end() as usize);
    let nodes = || (0..graph.len()).map(|at| Node(u32::try_from(at).unwrap_or(u32::MAX)));
    let mut ends = vec![0; cfg.end() as usize + 1];
    nodes().for_each(|node| ends[place(node)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    let mut order = vec![Node(0); graph.len()];
    // Those of a block mostly come from its end.
    for node in nodes().rev() {
        let end = &mut ends[place(node)];
        order[*end] = node;
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        order[start..end].sort_unstable_by_key(|node| (within(*node), *node));
        start = end;
    }
    order
}

struct Solver<'s, 'c, 't> {
    graph: &'s Graph<'c, 't>,
    decisions: &'s [Option<Decision>],
    shape: Shape,
    regions: &'s mut Regions,
    known: Vec<Option<Known>>,
    /// Blocks that some lanes of a warp may run and others not, as far as is known in this round. Empty where there are none,
    /// and where no cycle has several ways in, as nothing else asks.
    parted: Vec<bool>,
    steps: Steps,
    /// What is known of the inputs of one value.
    buffer: Vec<Known>,
}

/// When what was found out last, so that nothing is found out twice from the same.
struct Steps {
    /// Counts the values that were looked at.
    now: u32,
    /// When each value was looked at last, and when that told something new; 0 for never.
    looked: Vec<u32>,
    changed: Vec<u32>,
    /// When that was so of any value, and of one that decides a branch.
    last_change: u32,
    last_decision: u32,
    /// Values that decide a branch.
    decides: Vec<bool>,
    /// Values that may hang on what decides branches, beside what they are made of.
    hangs: Vec<bool>,
}

impl Steps {
    fn new(graph: &Graph<'_, '_>, decisions: &[Option<Decision>]) -> Steps {
        let mut decides = vec![false; graph.len()];
        decisions.iter().flatten().for_each(|decision| decides[decision.node.0 as usize] = true);
        let cfg = graph.cfg();
        let comes_out = |input: &Node, user: Block| {
            cfg.loop_of(graph.block(*input)).is_some_and(|inner| !cfg.is_in_loop(user, inner))
        };
        let hangs = |at: usize| {
            let node = Node(u32::try_from(at).unwrap_or(u32::MAX));
            let user = graph.block(node);
            matches!(graph.source(node), Source::Join(_))
                || graph.inputs(node).iter().any(|input| comes_out(input, user))
        };
        let hangs = (0..graph.len()).map(hangs).collect();
        let never = vec![0; graph.len()];
        Steps { now: 0, looked: never.clone(), changed: never, last_change: 0, last_decision: 0, decides, hangs }
    }

    /// Whether a value was looked at after all that tells something of it.
    fn is_settled(&self, node: Node, inputs: &[Node]) -> bool {
        let at = node.0 as usize;
        let looked = self.looked[at];
        let is_old = |input: &Node| self.changed[input.0 as usize] < looked;
        looked > 0 && inputs.iter().all(is_old) && !(self.hangs[at] && self.last_decision >= looked)
    }

    fn note_change(&mut self, node: Node) {
        self.changed[node.0 as usize] = self.now;
        self.last_change = self.now;
        if self.decides[node.0 as usize] {
            self.last_decision = self.now;
        }
    }
}

impl Solver<'_, '_, '_> {
    fn update(&mut self, node: Node) {
        // What is parted may change whatever goes round in a tangle.
        if self.parted.is_empty() && self.steps.is_settled(node, self.graph.inputs(node)) {
            return;
        }
        self.steps.now += 1;
        self.steps.looked[node.0 as usize] = self.steps.now;
        let Some(found) = self.transfer(node) else { return };
        let before = self.known[node.0 as usize];
        let now = before.map_or(found, |before| before.meet(found));
        if before != Some(now) {
            self.known[node.0 as usize] = Some(now);
            self.steps.note_change(node);
        }
    }

    /// `None` while nothing is known of what it is made of.
    fn transfer(&mut self, node: Node) -> Option<Known> {
        match self.graph.source(node) {
            Source::Constant(value) => Some(Known::constant(value)),
            Source::Special(special) => Some(self.special(special)),
            Source::Parameter(..) => Some(if self.shape.is_entry {
                Known::UNIFORM
            } else {
                // What callers pass may be of either kind.
                Known { data: true, ..Known::LANE }
            }),
            Source::Address(name, _) => {
                let local = self.graph.code().names[name as usize].starts_with(b"__local_depot");
                Some(Known { local, zeros: 0, ..Known::UNIFORM })
            }
            Source::Undefined(_) => Some(Known::UNIFORM),
            Source::Guarded { .. } => self.guarded(node),
            Source::Join(_) => self.join(node),
            Source::Result { instruction, .. } => self.result(node, instruction),
        }
    }

    fn special(&self, special: Special) -> Known {
        let Shape { x, y, z, .. } = self.shape;
        let zeros = |number: u32| u8::try_from(number.trailing_zeros().min(5)).unwrap_or(0);
        match special {
            Special::Tid(0) if x == 1 => Known::constant(0),
            Special::Tid(0) => Known { flat: (y * z == 1).then_some(64), ..Known::LANE },
            Special::Tid(1) if y == 1 => Known::constant(0),
            Special::Tid(1) => Known::LANE.with_grain(zeros(x)),
            Special::Tid(_) if z == 1 => Known::constant(0),
            Special::Tid(_) => Known::LANE.with_grain(zeros(x * y)),
            Special::Ntid(axis) => Known::constant(u64::from([x, y, z][usize::from(axis.min(2))])),
            Special::WarpSize => Known::constant(32),
            Special::Warpid => Known { index: true, ..Known::UNIFORM.with_grain_of(WARP) },
            Special::Laneid
            | Special::LanemaskEq
            | Special::LanemaskLe
            | Special::LanemaskLt
            | Special::LanemaskGe
            | Special::LanemaskGt => Known::LANE,
            Special::Clock => Known::DATA,
            Special::Ctaid(_) | Special::Nctaid(_) | Special::Nwarpid | Special::Other(_) => Known::UNIFORM,
        }
    }

    /// What is known of an input where it is used: a value of a loop that lanes leave at different times is another one
    /// for each of them outside.
    fn used(&self, node: Node, user: Block) -> Option<Known> {
        let known = self.known[node.0 as usize]?;
        let cfg = self.graph.cfg();
        let block = self.graph.block(node);
        if known.constant.is_some() || cfg.loop_of(block).is_none() {
            return Some(known);
        }
        let left = cfg.loops_of(block).take_while(|one| !cfg.is_in_loop(user, *one));
        let splitting =
            left.flat_map(|one| &cfg.loops[one as usize].exits).filter_map(|(from, _)| self.decision(*from));
        Some(splitting.filter(|exit| !exit.is_warp_uniform()).fold(known, |known, exit| Known {
            grain: 0,
            index: known.index || exit.index,
            data: known.data || exit.data,
            ..known.derived()
        }))
    }

    fn decision(&self, block: Block) -> Option<Known> {
        let decision = (*self.decisions.get(block as usize)?)?;
        self.known[decision.node.0 as usize]
    }

    fn guarded(&self, node: Node) -> Option<Known> {
        let block = self.graph.block(node);
        let [predicate, written, before] = *self.graph.inputs(node) else { return Some(Known::DATA) };
        let predicate = self.used(predicate, block)?;
        let either = match (self.used(written, block), self.used(before, block)) {
            (Some(written), Some(before)) => written.meet(before),
            (one, other) => one.or(other)?,
        };
        Some(either.meet(predicate.derived()).derived())
    }

    fn join(&mut self, node: Node) -> Option<Known> {
        let cfg = self.graph.cfg();
        let block = self.graph.block(node);
        let inputs = self.graph.inputs(node);
        let known = inputs.iter().filter_map(|input| self.used(*input, block));
        let met = known.reduce(Known::meet)?;
        let others = || inputs.iter().filter(|input| **input != node);
        let first = others().next()?;
        if others().all(|input| input == first) {
            return self.used(*first, block);
        }
        if cfg.is_tangled(block) {
            let steady = self.parted.is_empty() || self.is_steady(node);
            return Some(if steady { met.derived() } else { met.derived().meet(Known { data: true, ..Known::LANE }) });
        }
        let mut all = met;
        let one = cfg.loop_headed_by(block);
        let before = if cfg.predecessors(block).len() - one.map_or(0, |one| cfg.loops[one as usize].latches.len()) > 1 {
            Some(self.regions.before(cfg, block))
        } else {
            None
        };
        let through = one.filter(|one| cfg.loops[*one as usize].latches.len() > 1);
        let through = through.map(|one| self.regions.through(cfg, one));
        for region in [before, through].into_iter().flatten() {
            let Some(region) = region else { return Some(all.derived().meet(Known { data: true, ..Known::LANE })) };
            for deciding in region.blocks.iter().chain([&region.root]) {
                if let Some(decision) = self.decision(*deciding) {
                    let decision = decision.derived();
                    all = all.meet(Known { zeros: all.zeros, flat: all.flat, constant: all.constant, ..decision });
                    if !decision.is_warp_uniform() {
                        all = Known { flat: None, ..all };
                    }
                }
            }
        }
        Some(all)
    }

    /// The blocks between each branch that parts a warp and the place where its ways meet.
    fn find_parted(&self) -> Vec<bool> {
        let cfg = self.graph.cfg();
        let mut parted = Vec::new();
        if !(0..cfg.end()).any(|block| cfg.is_tangled(block)) {
            return parted;
        }
        let mut left = PARTED * (cfg.end() as usize + 64);
        let mut seen = vec![NONE; cfg.end() as usize];
        for block in 0..cfg.end() {
            if self.decision(block).is_none_or(Known::is_warp_uniform) {
                continue;
            }
            parted.resize(cfg.end() as usize, false);
            let mut work = cfg.successors(block).to_vec();
            while let Some(here) = work.pop() {
                if here >= cfg.end() || here == cfg.ipdom(block) {
                    continue;
                }
                if std::mem::replace(&mut seen[here as usize], block) == block {
                    continue;
                }
                parted[here as usize] = true;
                left = left.saturating_sub(1);
                work.extend(cfg.successors(here));
            }
            if left == 0 {
                parted.fill(true);
                break;
            }
        }
        parted
    }

    /// Whether a join of a cycle with several ways in has the same for all lanes that come by one way or another: one value
    /// comes in from outside, and what writes the register within stands where all lanes come along.
    fn is_steady(&self, node: Node) -> bool {
        let (graph, cfg) = (self.graph, self.graph.cfg());
        let mut work = vec![node];
        let mut seen: HashSet<Node> = HashSet::new();
        seen.insert(node);
        let mut outer = None;
        while let Some(here) = work.pop() {
            for input in graph.inputs(here) {
                let block = graph.block(*input);
                let is_join = matches!(graph.source(*input), Source::Join(_));
                let is_written = matches!(graph.source(*input), Source::Result { .. } | Source::Guarded { .. });
                if is_join && cfg.is_tangled(block) {
                    if seen.insert(*input) {
                        work.push(*input);
                    }
                } else if is_written && cfg.is_tangled(block) {
                    if self.parted[block as usize] {
                        return false;
                    }
                } else if *outer.get_or_insert(*input) != *input {
                    return false;
                }
            }
            if seen.len() > TANGLED {
                return false;
            }
        }
        true
    }

    fn result(&mut self, node: Node, instruction: u32) -> Option<Known> {
        let mut inputs = std::mem::take(&mut self.buffer);
        inputs.clear();
        let known = self.result_of(node, instruction, &mut inputs);
        self.buffer = inputs;
        known
    }

    fn result_of(&self, node: Node, instruction: u32, inputs: &mut Vec<Known>) -> Option<Known> {
        let code = self.graph.code();
        let one = &code.instructions[instruction as usize];
        let block = self.graph.block(node);
        let operands = code.sources(one);
        for input in self.graph.inputs(node) {
            inputs.push(self.used(*input, block)?);
        }
        let all = inputs.iter().copied().reduce(Known::meet).unwrap_or(Known::UNIFORM).derived();
        let input = |at: usize| inputs.get(at).copied().unwrap_or(Known::UNIFORM);
        let constant = |at: usize| input(at).constant;
        let single = code.destinations(one).len() == 1;
        Some(match one.op {
            Op::Mov | Op::Cvta if single && inputs.len() == 1 => input(0),
            Op::Cvt if single && !one.kind.is_float() && !one.from.is_float() => {
                let widens = one.kind.width() >= one.from.width();
                if widens { input(0) } else { input(0).derived() }
            }
            Op::Add if !one.kind.is_float() => added(input(0), input(1), all),
            Op::Sub if !one.kind.is_float() => {
                let known = added(input(0), Known { flat: None, ..input(1) }, all);
                Known { flat: known.flat.filter(|_| input(1).flat.is_none()), ..known }
            }
            Op::Mul if !one.mods.is_high() => product(input(0), input(1), all),
            Op::Mad if !one.mods.is_high() && !one.kind.is_float() => {
                let factors = input(0).meet(input(1)).derived();
                added(product(input(0), input(1), factors), input(2), all)
            }
            Op::Shl => match constant(1) {
                Some(by @ 0..64) => {
                    let zeros = input(0).zeros.saturating_add(u8::try_from(by).unwrap_or(0)).min(64);
                    Known { zeros, ..all }
                }
                _ => all,
            },
            Op::Shr => match (input(0).flat, constant(1)) {
                (Some(zeros), Some(by @ 0..64)) => all.with_grain(zeros.min(u8::try_from(by).unwrap_or(0)).min(WARP)),
                _ => all,
            },
            Op::Div if !one.kind.is_float() => match (input(0).flat, constant(1)) {
                (Some(zeros), Some(by)) if by > 0 => {
                    all.with_grain(zeros.min(u8::try_from(by.trailing_zeros()).unwrap_or(0)).min(WARP))
                }
                _ => all,
            },
            Op::And => masked(input(0), constant(1), all).or_else(|| masked(input(1), constant(0), all)).unwrap_or(all),
            Op::Setp | Op::Set => compared(one.cond, input(0), input(1), all),
            Op::Ld => {
                let is_own = one.space == Space::Param && matches!(operands.first(), Some(Operand::Parameter(..)));
                let is_private = one.space == Space::Local || input(0).local;
                match one.space {
                    Space::Param if is_own => input(0),
                    // What a call left.
                    Space::Param => Known::DATA,
                    _ if is_private => Known::DATA.meet(all),
                    _ => loaded(all),
                }
            }
            Op::Shfl => {
                let is_whole = constant(2).is_some_and(is_whole_warp);
                let lane = input(1).is_warp_uniform() && one.mods.is_index() && is_whole;
                let grain = if lane || input(0).is_warp_uniform() { WARP } else { 0 };
                Known { grain, ..all }
            }
            Op::Activemask => Known { grain: WARP, index: false, ..all },
            // Lanes that name different lanes find out something together in groups.
            Op::Vote | Op::Redux | Op::Match if !input(1).is_warp_uniform() && !is_match_any(one) => match one.op {
                Op::Vote => all,
                _ => Known { index: false, ..Known::DATA.meet(all) },
            },
            // What a warp finds out of its lanes still hangs on which warp it is.
            Op::Vote | Op::Redux => Known { grain: WARP, ..all },
            Op::Match if !is_match_any(one) => Known { grain: WARP, ..all },
            Op::Match | Op::Atom | Op::Tensor => Known::DATA.meet(all),
            Op::Elect => Known::LANE,
            // What all threads of the block find out together.
            Op::Bar => Known { index: false, data: false, ..Known::UNIFORM },
            Op::Fetch => loaded(all),
            _ => all,
        })
    }
}

/// Whether each lane is told which others have the same, which is other for each.
fn is_match_any(one: &Instruction) -> bool {
    one.op == Op::Match && !one.mods.is_all()
}

impl Known {
    fn with_grain_of(self, grain: u8) -> Known {
        Known { grain, ..self }
    }
}

fn added(a: Known, b: Known, all: Known) -> Known {
    let zeros = a.zeros.min(b.zeros);
    let flat = match (a.flat, b.flat) {
        (Some(flat), None) if b.grain == BLOCK => Some(flat.min(b.zeros)),
        (None, Some(flat)) if a.grain == BLOCK => Some(flat.min(a.zeros)),
        _ => None,
    };
    let constant = a.constant.zip(b.constant).map(|(a, b)| a.wrapping_add(b)).filter(|sum| *sum < 1 << 31);
    Known { zeros, flat, constant, ..all }
}

fn product(a: Known, b: Known, all: Known) -> Known {
    let constant = a.constant.zip(b.constant).and_then(|(a, b)| a.checked_mul(b)).filter(|product| *product < 1 << 31);
    Known { zeros: a.zeros.saturating_add(b.zeros).min(64), constant, ..all }
}

fn masked(value: Known, mask: Option<u64>, all: Known) -> Option<Known> {
    let mask = mask?;
    if mask == 0 {
        return Some(Known::constant(0));
    }
    let low = u8::try_from(mask.trailing_zeros()).unwrap_or(0);
    let zeros = value.zeros.max(low);
    let known = Known { zeros, ..all };
    match value.flat {
        Some(flat) if flat >= low => Some(known.with_grain(low.min(WARP))),
        _ => Some(known),
    }
}

/// A comparison of the thread's number with a number of the block parts the block at one place: where that is a multiple
/// of 32, no warp is parted.
fn compared(cond: Cond, a: Known, b: Known, all: Known) -> Known {
    let (flat, bound, cond) = match (a.flat, b.flat) {
        (Some(flat), None) => (flat, b, cond),
        (None, Some(flat)) => (flat, a, turned(cond)),
        _ => return all,
    };
    // With `<=` and `>` the place is one further.
    let bound = match cond {
        Cond::Lt | Cond::Ge | Cond::Lo | Cond::Hs => bound,
        Cond::Le | Cond::Gt | Cond::Ls | Cond::Hi => match bound.constant {
            Some(value) => Known::constant(value.wrapping_add(1)),
            None => return all,
        },
        _ => return all,
    };
    if flat >= WARP && bound.zeros >= WARP && bound.grain == BLOCK { all.with_grain(WARP) } else { all }
}

fn turned(cond: Cond) -> Cond {
    match cond {
        Cond::Lt => Cond::Gt,
        Cond::Gt => Cond::Lt,
        Cond::Le => Cond::Ge,
        Cond::Ge => Cond::Le,
        Cond::Lo => Cond::Hi,
        Cond::Hi => Cond::Lo,
        Cond::Ls => Cond::Hs,
        Cond::Hs => Cond::Ls,
        other => other,
    }
}

/// What is read at an address: the same where the address is, else data. The index decides what is read, and not what it is.
fn loaded(address: Known) -> Known {
    if address.is_warp_uniform() { address } else { Known { data: true, index: false, ..address } }
}

#[cfg(test)]
mod tests {
    use super::super::decisions::decisions;
    use super::super::testing::{SHAPE, with_cfg};
    use super::*;

    /// What is known of the operand of the first `popc`: its grain, and whether the index and data have a part in it.
    fn known_in(shape: Shape, text: &str) -> (u8, bool, bool) {
        with_cfg(text, |code, cfg| {
            let mut graph = Graph::new(code, cfg);
            let decisions = decisions(code, cfg, &mut graph).expect("decisions that can be followed");
            let at = code.instructions.iter().position(|one| one.op == Op::Popc).expect("a popc");
            let Some(Operand::Register(register)) = code.sources(&code.instructions[at]).first().copied() else {
                panic!("a register")
            };
            let node = graph.read(register, u32::try_from(at).unwrap_or(0)).expect("it can be followed");
            let solved = solve(&graph, &decisions, shape, &mut Regions::default());
            let mut regions = Regions::default();
            let solver = Solver {
                graph: &graph,
                decisions: &decisions,
                shape,
                regions: &mut regions,
                known: solved.into_iter().map(Some).collect(),
                parted: Vec::new(),
                steps: Steps::new(&graph, &decisions),
                buffer: Vec::new(),
            };
            let known = solver.used(node, cfg.block_of[at]).expect("something is known");
            (known.grain, known.index, known.data)
        })
    }

    fn known(text: &str) -> (u8, bool, bool) {
        known_in(SHAPE, text)
    }

    fn grain(text: &str) -> u8 {
        known(&format!("{text} popc.b32 %r9, %r1; ret;")).0
    }

    #[test]
    fn special_registers_and_parameters_vary_as_far_as_the_block_says() {
        let of = |shape, register: &str| known_in(shape, &format!("mov.u32 %r1, {register}; popc.b32 %r9, %r1;")).0;
        let tile = |x, y, z| Shape { x, y, z, is_entry: true };
        assert_eq!((of(SHAPE, "%tid.x"), of(SHAPE, "%tid.y"), of(SHAPE, "%tid.z")), (0, BLOCK, BLOCK));
        assert_eq!((of(tile(16, 16, 1), "%tid.x"), of(tile(16, 16, 1), "%tid.y")), (0, 4));
        assert_eq!((of(tile(32, 8, 1), "%tid.y"), of(tile(48, 4, 1), "%tid.y")), (WARP, 4));
        assert_eq!((of(tile(8, 8, 4), "%tid.z"), of(tile(8, 2, 4), "%tid.z")), (WARP, 4));
        assert_eq!((of(SHAPE, "%laneid"), of(SHAPE, "%lanemask_lt")), (0, 0));
        assert_eq!((of(SHAPE, "%warpid"), of(SHAPE, "%ctaid.x"), of(SHAPE, "%ntid.x")), (WARP, BLOCK, BLOCK));
        assert_eq!(known("mov.u32 %r1, %clock; popc.b32 %r9, %r1;"), (0, false, true));
        let parameter = "ld.param.u32 %r1, [n]; popc.b32 %r9, %r1;";
        assert_eq!(known(parameter).0, BLOCK);
        assert_eq!(known_in(Shape { is_entry: false, ..SHAPE }, parameter), (0, true, true));
    }

    #[test]
    fn shifts_divisions_and_masks_make_groups_of_threads_equal() {
        let t = "mov.u32 %r2, %tid.x;";
        assert_eq!(grain(&format!("{t} shr.u32 %r1, %r2, 5;")), WARP);
        assert_eq!(grain(&format!("{t} shr.u32 %r1, %r2, 3;")), 3);
        assert_eq!(grain(&format!("{t} div.u32 %r1, %r2, 96;")), WARP);
        assert_eq!(grain(&format!("{t} div.u32 %r1, %r2, 48;")), 4);
        assert_eq!(grain(&format!("{t} and.b32 %r1, %r2, 96;")), WARP);
        assert_eq!(grain(&format!("{t} and.b32 %r1, %r2, 24;")), 3);
        assert_eq!(grain(&format!("{t} and.b32 %r1, %r2, 31;")), 0);
        assert_eq!(grain(&format!("{t} and.b32 %r1, %r2, 0;")), BLOCK);
        assert_eq!(grain(&format!("{t} add.u32 %r1, %r2, 1;")), 0);
    }

    #[test]
    fn a_flat_index_keeps_its_groups_where_the_offset_is_aligned() {
        let index = "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;";
        assert_eq!(grain(&format!("{index} shr.u32 %r1, %r5, 5;")), WARP);
        assert_eq!(grain(&format!("{index} add.s32 %r6, %r5, 8; shr.u32 %r1, %r6, 5;")), 3);
        assert_eq!(grain(&format!("{index} ld.param.u32 %r7, [n]; add.s32 %r6, %r5, %r7; shr.u32 %r1, %r6, 5;")), 0);
        let odd = Shape { x: 48, y: 1, z: 1, is_entry: true };
        assert_eq!(known_in(odd, &format!("{index} shr.u32 %r1, %r5, 5; popc.b32 %r9, %r1;")).0, 4);
    }

    #[test]
    fn a_comparison_with_a_multiple_of_32_parts_no_warp() {
        let compared = |cond: &str, bound: u32| {
            let text = format!("mov.u32 %r2, %tid.x; setp.{cond}.u32 %p1, %r2, {bound}; selp.b32 %r1, 1, 0, %p1;");
            grain(&text)
        };
        assert_eq!((compared("lt", 64), compared("ge", 64), compared("lt", 48)), (WARP, WARP, 0));
        assert_eq!((compared("le", 63), compared("gt", 63), compared("le", 64)), (WARP, WARP, 0));
        assert_eq!((compared("eq", 32), compared("ne", 32)), (0, 0));
        let turned = "mov.u32 %r2, %tid.x; mov.u32 %r3, 64; setp.gt.u32 %p1, %r3, %r2; selp.b32 %r1, 1, 0, %p1;";
        assert_eq!(grain(turned), WARP);
    }

    #[test]
    fn memory_is_as_uniform_as_its_address_and_exchanges_make_lanes_equal() {
        assert_eq!(known("ld.global.u32 %r1, [%rd1]; popc.b32 %r9, %r1;"), (BLOCK, false, false));
        let own = "mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; ld.global.u32 %r1, [%rd2]; popc.b32 %r9, %r1;";
        // The index decides what is read, and not what it is.
        assert_eq!(known(own), (0, false, true));
        assert_eq!(known("ld.local.u32 %r1, [%rd1]; popc.b32 %r9, %r1;").0, 0);
        // What each thread has its own of, by an address that stands for any memory.
        let depot = "mov.u64 %rd3, __local_depot0; cvta.local.u64 %rd1, %rd3;";
        assert_eq!(known(&format!("{depot} ld.u32 %r1, [%rd1]; popc.b32 %r9, %r1;")).0, 0);
        assert_eq!(known(&format!("{depot} add.u64 %rd2, %rd1, 8; ld.u32 %r1, [%rd2+4]; popc.b32 %r9, %r1;")).0, 0);
        assert_eq!(known("atom.global.add.u32 %r1, [%rd1], 1; popc.b32 %r9, %r1;"), (0, false, true));
        let t = "mov.u32 %r2, %tid.x;";
        assert_eq!(grain(&format!("{t} shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;")), WARP);
        assert_eq!(grain(&format!("{t} shfl.sync.down.b32 %r1, %r2, 1, 31, -1;")), 0);
        assert_eq!(grain(&format!("{t} redux.sync.add.s32 %r1, %r2, -1;")), WARP);
        let some = "setp.eq.u32 %p1, %r2, 3; vote.sync.ballot.b32 %r1, %p1, -1;";
        assert_eq!(grain(&format!("{t} {some}")), WARP);
        assert_eq!(grain(&format!("{t} match.any.sync.b32 %r1, %r2, -1;")), 0);
    }

    #[test]
    fn what_a_part_of_a_warp_exchanges_is_equal_in_that_part_alone() {
        let t = "mov.u32 %r2, %tid.x;";
        assert_eq!(grain(&format!("{t} shfl.sync.idx.b32 %r1, %r2, 0, 4127, -1;")), 0);
        assert_eq!(grain(&format!("{t} shfl.sync.idx.b32 %r1, %r2, 0, %r3, -1;")), 0);
        let own = format!("{t} and.b32 %r4, %r2, 24; shl.b32 %r5, 255, %r4; setp.eq.u32 %p1, %r2, 3;");
        assert_eq!(grain(&format!("{own} vote.sync.ballot.b32 %r1, %p1, %r5;")), 0);
        assert_eq!(grain(&format!("{own} redux.sync.add.s32 %r1, %r2, %r5;")), 0);
        assert_eq!(grain(&format!("{own} vote.sync.ballot.b32 %r1, %p1, 255;")), WARP);
    }

    #[test]
    fn a_value_is_as_uniform_as_the_branch_that_chooses_it() {
        let chosen = |condition: &str| {
            let text = format!("{condition} @%p1 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, 2; B:");
            grain(&text)
        };
        assert_eq!(chosen("mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0;"), 0);
        assert_eq!(chosen("mov.u32 %r2, %tid.x; shr.u32 %r2, %r2, 5; setp.eq.u32 %p1, %r2, 0;"), WARP);
        assert_eq!(chosen("mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 0;"), BLOCK);
        let guarded = "mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2;";
        assert_eq!(grain(guarded), 0);
    }

    #[test]
    fn a_counter_is_uniform_within_a_loop_and_not_after_it_where_lanes_leave_apart() {
        let counted = |bound: &str, inside: bool| {
            let (within, after) = if inside { ("popc.b32 %r9, %r1;", "") } else { ("", "popc.b32 %r9, %r1;") };
            let text = format!(
                "mov.u32 %r2, {bound}; mov.u32 %r1, 0;
                L: {within} add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra L; {after} ret;"
            );
            known(&text).0
        };
        assert_eq!((counted("100", true), counted("100", false)), (BLOCK, BLOCK));
        assert_eq!((counted("%tid.x", true), counted("%tid.x", false)), (BLOCK, 0));
    }

    #[test]
    fn a_value_of_a_tangled_cycle_is_unknown_where_lanes_come_into_it_by_different_ways() {
        let cycle = |p1: &str, first: &str, step: &str| {
            let text = format!(
                "mov.u32 %r2, {p1}; setp.eq.u32 %p1, %r2, 3; mov.u32 %r1, 0; @%p1 bra B; {first}
                A: {step} B: popc.b32 %r9, %r1; @%p2 bra A; ret;"
            );
            known(&text).0
        };
        assert_eq!(cycle("%tid.x", "", "add.s32 %r1, %r1, 1;"), 0);
        assert_eq!(cycle("%tid.x", "mov.u32 %r1, 7;", "neg.s32 %r8, %r8;"), 0);
        assert_eq!(cycle("%tid.x", "mov.u32 %r1, 7;", "add.s32 %r1, %r1, 1;"), 0);
        assert!(cycle("%tid.x", "", "neg.s32 %r8, %r8;") >= WARP, "it never changes");
        assert!(cycle("%ctaid.x", "mov.u32 %r1, 7;", "add.s32 %r1, %r1, 1;") >= WARP, "all lanes go one way");
    }
}
