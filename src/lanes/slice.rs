//! What a condition is made of: parameters, bounds that are known only when the kernel runs, and the place of a lane in a loop
//! whose lanes start next to each other and step alike.

use hashbrown::{HashMap, HashSet};

use super::cfg::{Block, Cfg};
use super::eval::Evaluator;
use super::graph::{Graph, Node, Source};
use super::lattice::{BLOCK, Decision, Known, WARP};
use super::op::signed;
use super::value::{LANES, Value};
use crate::parse::ptx::{Cond, Op, Operand, Space, Special};

/// Values that are looked at for one condition; of a larger one nothing is said.
const MOST: usize = 512;

/// The parameters of the function that a value is made of, as far as they are followed: not through memory.
#[must_use]
pub fn parameters(graph: &Graph<'_, '_>, node: Node) -> u32 {
    let mut found = HashSet::new();
    let mut seen = HashSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if seen.len() > MOST || !seen.insert(node) {
            continue;
        }
        if let Source::Result { instruction, .. } = graph.source(node) {
            let one = &graph.code().instructions[instruction as usize];
            match (one.op, graph.code().sources(one).first()) {
                (Op::Ld, Some(Operand::Parameter(position, distance))) if one.space == Space::Param => {
                    found.insert((*position, *distance));
                    continue;
                }
                (Op::Ld | Op::Fetch | Op::Atom, _) => continue,
                _ => {}
            }
        }
        open.extend(graph.inputs(node));
    }
    u32::try_from(found.len()).unwrap_or(u32::MAX)
}

/// Whether lanes part only where a predicate orders something by a number that is the same for them, and is known only when
/// the kernel runs.
#[must_use]
pub fn is_bound(graph: &Graph<'_, '_>, known: &[Known], node: Node) -> bool {
    let mut open = vec![node];
    let mut orders = false;
    for _ in 0..MOST {
        let Some(node) = open.pop() else { return orders };
        if known[node.0 as usize].is_warp_uniform() {
            continue;
        }
        let Source::Result { instruction, .. } = graph.source(node) else { return false };
        let one = &graph.code().instructions[instruction as usize];
        match (one.op, graph.inputs(node)) {
            (Op::Setp, [a, b, joined @ ..]) => {
                let (of_a, of_b) = (known[a.0 as usize], known[b.0 as usize]);
                let bound = if of_a.is_warp_uniform() { of_a } else { of_b };
                let is_ordered =
                    !matches!(one.cond, Cond::Eq | Cond::Equ | Cond::Ne | Cond::Neu) && !one.kind.is_float();
                let is_known = bound.as_constant().is_some();
                let given = if of_a.is_warp_uniform() { *a } else { *b };
                if !is_ordered || !bound.is_warp_uniform() || is_known || !is_open_until_run(graph, given) {
                    return false;
                }
                orders = true;
                open.extend(joined);
            }
            (Op::And | Op::Or | Op::Not, inputs) => open.extend(inputs),
            _ => return false,
        }
    }
    false
}

/// Whether a predicate asks which lanes' own numbers equal what data say: how many do, only the data tell.
#[must_use]
pub fn is_met_by_data(graph: &Graph<'_, '_>, known: &[Known], node: Node) -> bool {
    let is_own = |node: &Node| known[node.0 as usize].index && !known[node.0 as usize].data;
    let is_data = |node: &Node| known[node.0 as usize].data && !known[node.0 as usize].is_warp_uniform();
    let mut open = vec![node];
    for _ in 0..MOST {
        let Some(node) = open.pop() else { return false };
        let Source::Result { instruction, .. } = graph.source(node) else { continue };
        let one = &graph.code().instructions[instruction as usize];
        match (one.op, graph.inputs(node)) {
            (Op::Setp, [a, b, joined @ ..]) => {
                let is_equality = matches!(one.cond, Cond::Eq | Cond::Ne) && !one.kind.is_float();
                if is_equality && ((is_own(a) && is_data(b)) || (is_data(a) && is_own(b))) {
                    return true;
                }
                open.extend(joined);
            }
            (Op::And | Op::Or | Op::Xor | Op::Not, inputs) => open.extend(inputs),
            _ => {}
        }
    }
    false
}

/// Whether lanes part only where each of them looks at a bit of its own of a number that is the same for them, and is read
/// from somewhere: `(n >> lane) & 1`, `n & (1 << lane)`.
#[must_use]
pub fn is_masked(graph: &Graph<'_, '_>, known: &[Known], node: Node) -> bool {
    let is_shared = |node: &Node| known[node.0 as usize].is_warp_uniform();
    let is_given = |node: &Node| is_shared(node) && is_read(graph, *node);
    let mut node = node;
    for _ in 0..8 {
        node = moved(graph, node);
        let Source::Result { instruction, .. } = graph.source(node) else { return false };
        let inputs = graph.inputs(node);
        node = match (graph.code().instructions[instruction as usize].op, inputs) {
            (Op::And, [a, b]) if is_given(a) != is_given(b) && (!is_shared(a) || !is_shared(b)) => return true,
            (Op::Shr | Op::Bfe, [number, bit, ..]) if is_given(number) && !is_shared(bit) => return true,
            (Op::And | Op::Setp | Op::Xor | Op::Not, [value, others @ ..]) if others.iter().all(is_shared) => *value,
            _ => return false,
        };
    }
    false
}

/// Whether a number is made of what is read from a parameter or from memory.
fn is_read(graph: &Graph<'_, '_>, node: Node) -> bool {
    is_made_of(graph, node, |_| false)
}

/// Whether a number is made of what is known only when the kernel runs: of what is read, or of the block's place in the grid.
#[must_use]
pub fn is_open_until_run(graph: &Graph<'_, '_>, node: Node) -> bool {
    let is_of_grid =
        |special| matches!(special, Special::Ctaid(_) | Special::Nctaid(_) | Special::Clock | Special::Other(_));
    is_made_of(graph, node, is_of_grid)
}

/// The same, but for the block's place in the grid: the first place is in every grid.
#[must_use]
pub fn is_open_at_every_place(graph: &Graph<'_, '_>, node: Node) -> bool {
    is_made_of(graph, node, |special| matches!(special, Special::Nctaid(_) | Special::Clock | Special::Other(_)))
}

/// Whether something that is read has a part in a number, or a special register of these.
fn is_made_of(graph: &Graph<'_, '_>, node: Node, is_one: impl Fn(Special) -> bool) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if seen.len() > MOST || !seen.insert(node) {
            continue;
        }
        let is_load = |one: Op| matches!(one, Op::Ld | Op::Fetch | Op::Atom);
        match graph.source(node) {
            Source::Result { instruction, .. } if is_load(graph.code().instructions[instruction as usize].op) => {
                return true;
            }
            Source::Special(special) if is_one(special) => return true,
            _ => open.extend(graph.inputs(node)),
        }
    }
    false
}

/// A loop whose lanes start no more than a step apart and then move alike: none of them takes more than one turn more than
/// another one of its warp.
#[derive(Debug)]
struct Stride {
    header: Block,
    /// The loop around it.
    around: Option<u32>,
    /// Where lanes start: what is left when steps and conversions are taken off.
    start: Node,
    /// What threads share that start together: the lanes of a warp, or the whole block.
    grain: u8,
    /// What the place is compared with to leave.
    bounds: Vec<Node>,
    number: u32,
    /// That is sure of the lanes of a warp.
    is_of_warp: bool,
    /// That holds of all threads of the block, or may: their step is told when the kernel runs.
    is_of_block: bool,
}

/// The loops of a function that are like that.
#[derive(Debug, Default)]
pub struct Strides {
    all: Vec<Stride>,
}

/// How a value depends on where lanes start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Not at all.
    None,
    /// It is the place, moved or scaled.
    Place,
    /// The same, counted downwards.
    Minus,
    /// It is made of the distance between the place and a bound.
    Distance,
    /// In another way.
    Other,
}

impl Strides {
    /// Finds them.
    #[must_use]
    pub fn find(
        graph: &Graph<'_, '_>,
        known: &[Known],
        decisions: &[Option<Decision>],
        few: &mut Evaluator<'_, '_, '_>,
        work: u64,
    ) -> Strides {
        let cfg = graph.cfg();
        let mut strides = Strides::default();
        for at in 0..u32::try_from(graph.len()).unwrap_or(u32::MAX) {
            let node = Node(at);
            let Source::Join(_) = graph.source(node) else { continue };
            let Some(number) = cfg.loop_headed_by(graph.block(node)) else { continue };
            // Where the warps are what starts apart, `threadIdx.y` of a row of 32, the lanes of each are together.
            let grain = match known[at as usize].grain {
                BLOCK.. => continue,
                WARP => BLOCK,
                _ => WARP,
            };
            let Some(Stepped { start, step, width }) = stepped(graph, cfg, node, number) else { continue };
            few.allow(work);
            let header = graph.block(node);
            let values = few.value_at(start, header).and_then(|from| Ok((from, few.value_at(step, header)?)));
            let threads = few.extent().threads;
            let is_close =
                |group: usize| values.as_ref().is_ok_and(|(from, by)| is_close(from, by, width, threads, group));
            let is_of_warp = grain == WARP && is_close(LANES);
            let is_of_block = is_parameter(graph, step) || is_close(threads);
            if is_of_warp || is_of_block {
                let around = cfg.loops[number as usize].parent;
                let exits = cfg.loops[number as usize].exits.iter();
                let bounds =
                    exits.filter_map(|(from, _)| bound(graph, known, decisions[*from as usize]?.node, grain)).collect();
                let start = core(graph, known, start, grain);
                strides.all.push(Stride { header, around, start, grain, bounds, number, is_of_warp, is_of_block });
            }
        }
        strides
    }

    /// Whether the branch of `block`, on `node`, decides how many turns of such a loop a lane takes.
    #[must_use]
    pub fn decides(&self, graph: &Graph<'_, '_>, known: &[Known], block: Block, node: Node) -> bool {
        self.all.iter().any(|stride| stride.is_of_warp && stride.is_decided(graph, known, block, node, false))
    }

    /// The same of a loop whose threads start no more than a step apart in the whole block; the branch is the loop's own, or
    /// that before it, so that whatever it compares the place with is what ends the loop.
    #[must_use]
    pub fn decides_for_block(&self, graph: &Graph<'_, '_>, known: &[Known], block: Block, node: Node) -> bool {
        self.all.iter().any(|stride| stride.is_of_block && stride.is_decided(graph, known, block, node, true))
    }
}

impl Stride {
    fn is_decided(&self, graph: &Graph<'_, '_>, known: &[Known], block: Block, node: Node, any_bound: bool) -> bool {
        let cfg = graph.cfg();
        let beside = self.around.is_none_or(|around| cfg.is_in_loop(block, around));
        let before = cfg.order(block) <= cfg.order(self.header) || cfg.is_in_loop(block, self.number);
        beside && before && {
            let mut reading = Reading { graph, known, stride: self, any_bound, seen: HashMap::new() };
            reading.part(node) == Part::Distance
        }
    }
}

/// What is the same for all threads of `grain` in a comparison of integers.
fn bound(graph: &Graph<'_, '_>, known: &[Known], node: Node, grain: u8) -> Option<Node> {
    let Source::Result { instruction, .. } = graph.source(node) else { return None };
    let [a, b, ..] = *graph.inputs(node) else { return None };
    let is_one = graph.code().instructions[instruction as usize].op == Op::Setp;
    let uniform = [a, b].into_iter().find(|one| known[one.0 as usize].grain >= grain);
    uniform.filter(|_| is_one).map(|one| moved(graph, one))
}

/// A variable of a loop that takes one step at each turn.
struct Stepped {
    /// Where it starts.
    start: Node,
    /// The step, which may go down.
    step: Node,
    /// Bits of both.
    width: u32,
}

/// The variable that a value at a loop's header is, if it takes the same step on every way back.
fn stepped(graph: &Graph<'_, '_>, cfg: &Cfg, node: Node, number: u32) -> Option<Stepped> {
    let header = graph.block(node);
    let (mut start, mut step, mut width) = (None, None, u64::BITS);
    for (from, input) in cfg.predecessors(header).iter().zip(graph.inputs(node)) {
        if !cfg.loops[number as usize].latches.contains(from) {
            if start.replace(*input).is_some_and(|before| before != *input) {
                return None;
            }
            continue;
        }
        let Source::Result { instruction, .. } = graph.source(moved(graph, *input)) else { return None };
        let one = &graph.code().instructions[instruction as usize];
        let [a, b] = graph.inputs(moved(graph, *input)) else { return None };
        if one.op != Op::Add || one.kind.is_float() {
            return None;
        }
        let by = match (moved(graph, *a) == node, moved(graph, *b) == node) {
            (true, false) => *b,
            (false, true) => *a,
            _ => return None,
        };
        if step.replace(by).is_some_and(|before| before != by) {
            return None;
        }
        width = width.min(one.kind.width());
    }
    Some(Stepped { start: start?, step: step?, width })
}

/// What a value is that `mov` and `cvt` only carry on.
fn moved(graph: &Graph<'_, '_>, mut node: Node) -> Node {
    for _ in 0..8 {
        let Source::Result { instruction, .. } = graph.source(node) else { break };
        let is_move = matches!(graph.code().instructions[instruction as usize].op, Op::Mov | Op::Cvt);
        let [input] = graph.inputs(node) else { break };
        if !is_move {
            break;
        }
        node = *input;
    }
    node
}

/// What is left of a place when what is the same for all threads of `grain` is taken off, and, where a remainder was run
/// before, the turns of that.
fn core(graph: &Graph<'_, '_>, known: &[Known], mut node: Node, grain: u8) -> Node {
    for _ in 0..16 {
        node = moved(graph, node);
        let differs = |input: &&Node| known[input.0 as usize].grain < grain;
        let inputs = graph.inputs(node);
        match graph.source(node) {
            Source::Result { instruction, .. }
                if graph.code().instructions[instruction as usize].op == Op::Add
                    && inputs.iter().filter(differs).count() == 1 =>
            {
                node = inputs.iter().find(differs).copied().unwrap_or(node);
            }
            // The first way skips the remainder, or comes from before the loop that runs it.
            Source::Join(_) => {
                match inputs.iter().map(|input| moved(graph, *input)).min_by_key(|one| graph.block(*one)) {
                    Some(first) if first != node => node = first,
                    _ => break,
                }
            }
            _ => break,
        }
    }
    node
}

/// Whether a value is a parameter as it was handed over.
fn is_parameter(graph: &Graph<'_, '_>, node: Node) -> bool {
    let mut node = moved(graph, node);
    loop {
        let Source::Result { instruction, .. } = graph.source(node) else { return false };
        let one = &graph.code().instructions[instruction as usize];
        match (one.op, graph.inputs(node)) {
            (Op::Ld, _) => return one.space == Space::Param,
            (Op::Cvt | Op::Mov, [input]) => node = *input,
            _ => return false,
        }
    }
}

/// Whether the threads of each group start no more than a step apart, whether that goes up or down.
fn is_close(from: &Value, by: &Value, width: u32, threads: usize, group: usize) -> bool {
    let rows = from.rows().max(by.rows());
    let warps = |first: usize| first / LANES..(first + group).min(threads).div_ceil(LANES);
    (0..rows).all(|environment| {
        (0..threads).step_by(group.max(1)).all(|first| {
            let (mut least, mut most) = (i64::MAX, i64::MIN);
            for warp in warps(first) {
                let starts = from.of_warp(environment, warp).iter().map(|start| signed(*start, width));
                (least, most) = starts.fold((least, most), |(least, most), one| (least.min(one), most.max(one)));
            }
            let apart = most.abs_diff(least);
            warps(first).all(|warp| {
                let mut steps = by.of_warp(environment, warp).iter().map(|step| signed(*step, width).unsigned_abs());
                steps.all(|step| step > 0 && apart <= step)
            })
        })
    })
}

struct Reading<'r, 'c, 't> {
    graph: &'r Graph<'c, 't>,
    known: &'r [Known],
    stride: &'r Stride,
    /// Whatever the place is compared with is the bound.
    any_bound: bool,
    seen: HashMap<Node, Part>,
}

impl Reading<'_, '_, '_> {
    fn part(&mut self, node: Node) -> Part {
        if node == self.stride.start {
            return Part::Place;
        }
        if self.known[node.0 as usize].grain >= self.stride.grain {
            return Part::None;
        }
        if let Some(known) = self.seen.get(&node) {
            return *known;
        }
        if self.seen.len() > 64 {
            return Part::Other;
        }
        // What a loop hands back to itself adds nothing new.
        self.seen.insert(node, Part::None);
        let part = self.made(node);
        self.seen.insert(node, part);
        part
    }

    fn made(&mut self, node: Node) -> Part {
        use Part::{Distance, Minus, None, Other, Place};
        let inputs = self.graph.inputs(node);
        let parts: Vec<Part> = inputs.iter().map(|input| self.part(*input)).collect();
        if parts.contains(&Other) {
            return Other;
        }
        let instruction = match self.graph.source(node) {
            Source::Join(_) => {
                let mut known = parts.iter().copied().filter(|part| *part != None);
                let Some(first) = known.next() else { return Other };
                return if known.all(|part| part == first) { first } else { Other };
            }
            Source::Result { instruction, .. } => instruction,
            _ => return Other,
        };
        let one = &self.graph.code().instructions[instruction as usize];
        let is_given = |at: usize| self.known[inputs[at].0 as usize].as_constant().is_none();
        match (one.op, parts.as_slice()) {
            (Op::Ld | Op::Atom | Op::Fetch | Op::Shfl, _) => Other,
            (Op::Setp, [Place, None, ..]) if self.is_bound(inputs[1]) => Distance,
            (Op::Setp, [None, Place, ..]) if self.is_bound(inputs[0]) => Distance,
            (Op::Add, [Minus, None]) => {
                if is_given(1) {
                    Distance
                } else {
                    Minus
                }
            }
            (Op::Add, [None, Minus]) => {
                if is_given(0) {
                    Distance
                } else {
                    Minus
                }
            }
            (Op::Sub, [None, Place]) => {
                if is_given(0) {
                    Distance
                } else {
                    Minus
                }
            }
            (Op::Add, [Place, Minus] | [Minus, Place]) | (Op::Sub, [Place, Place] | [Minus, Minus]) => Distance,
            (Op::Not | Op::Neg, [Place]) => Minus,
            (Op::Not | Op::Neg, [Minus]) => Place,
            (Op::Add | Op::Mad, _) | (Op::Sub, [Place, None])
                if !parts.contains(&Minus) && !parts.contains(&Distance) =>
            {
                Place
            }
            (Op::Min | Op::Max | Op::Mul | Op::Shl, [Place, None] | [None, Place]) | (Op::Mov | Op::Cvt, [Place]) => {
                Place
            }
            (Op::Mov | Op::Cvt, [Minus]) => Minus,
            (_, parts) if parts.iter().all(|part| matches!(part, Distance | None)) => Distance,
            _ => Other,
        }
    }

    /// Whether it is what ends the loop: the same number, or a constant where that is one, too.
    fn is_bound(&self, node: Node) -> bool {
        if self.any_bound {
            return true;
        }
        let is_constant = |node: &Node| self.known[node.0 as usize].as_constant().is_some();
        let node = moved(self.graph, node);
        self.stride.bounds.iter().any(|bound| *bound == node || (is_constant(bound) && is_constant(&node)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHAPE, judged};
    use super::super::verdict::{Advice, Verdict};

    /// What is said of each branch of a function.
    fn advice(text: &str) -> Vec<Advice> {
        judged(SHAPE, text).iter().map(|branch| branch.judgement.expect("a judgement").advice).collect()
    }

    const LONG: &str = "neg.s32 %r9, %r9; not.b32 %r9, %r9; neg.s32 %r9, %r9; not.b32 %r9, %r9; neg.s32 %r9, %r9;
        not.b32 %r9, %r9; neg.s32 %r9, %r9; not.b32 %r9, %r9; neg.s32 %r9, %r9; not.b32 %r9, %r9;
        neg.s32 %r9, %r9; not.b32 %r9, %r9; neg.s32 %r9, %r9; not.b32 %r9, %r9; neg.s32 %r9, %r9;
        not.b32 %r9, %r9; neg.s32 %r9, %r9; not.b32 %r9, %r9; neg.s32 %r9, %r9; not.b32 %r9, %r9;";

    /// `for (i = lane; i < n; i += step)`, two turns at a time, with the odd one before.
    fn by_lane(step: u32) -> String {
        let twice = 2 * step;
        format!(
            "ld.param.u32 %r2, [n]; mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 31; setp.ge.s32 %p1, %r4, %r2; @%p1 bra END;
            not.b32 %r5, %r4; add.s32 %r6, %r5, %r2; and.b32 %r7, %r6, {step}; setp.ne.s32 %p2, %r7, 0;
            mov.u32 %r8, %r4; @%p2 bra MAIN; {LONG} add.s32 %r8, %r4, {step};
            MAIN: setp.lt.u32 %p3, %r6, {step}; @%p3 bra END;
            L: {LONG} {LONG} add.s32 %r8, %r8, {twice}; setp.lt.s32 %p4, %r8, %r2; @%p4 bra L;
            END: ret;"
        )
    }

    /// Two sides that are worth a word, taken on `%p1`.
    fn sides(condition: &str) -> String {
        format!("{condition} @%p1 bra A; {LONG} bra END; A: {LONG} END: ret;")
    }

    const ODD: &str = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 1; setp.eq.s32 %p1, %r3, 0;";

    #[test]
    fn a_branch_that_no_number_that_was_tried_comes_to_is_a_note() {
        let behind = |guard: &str| advice(&format!("{guard} @%p2 bra END; {}", sides(ODD)));
        let by_mode = "ld.param.u32 %r1, [n]; setp.ne.s32 %p2, %r1, 1234;";
        assert_eq!(behind(by_mode), [Advice::Silent, Advice::Note]);
        let by_block = "mov.u32 %r1, %ctaid.x; setp.ne.s32 %p2, %r1, 100;";
        assert_eq!(behind(by_block), [Advice::Silent, Advice::Note]);
        let idle = format!("{by_mode} @%p2 bra END; {ODD} @%p1 bra END; {LONG} END: ret;");
        assert_eq!(advice(&idle), [Advice::Silent; 2], "lanes only idle");
        let never = "mov.u32 %r1, %tid.x; setp.lt.u32 %p2, %r1, 256;";
        assert_eq!(behind(never), [Advice::Silent, Advice::Silent], "no block has so many threads");
        let often = "ld.param.u32 %r1, [n]; setp.lt.s32 %p2, %r1, 100;";
        assert_eq!(behind(often), [Advice::Silent, Advice::Warn]);
    }

    #[test]
    fn what_parts_no_warp_where_an_offset_keeps_threads_in_their_places_is_a_note() {
        let of = |shift: &str| {
            let place = "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; add.s32 %r3, %r1, %r2;";
            advice(&sides(&format!("{place} {shift} and.b32 %r5, %r4, 1; setp.eq.s32 %p1, %r5, 0;")))
        };
        assert_eq!(of("shr.u32 %r4, %r3, 5;"), [Advice::Note]);
        assert_eq!(of("mov.u32 %r4, %r3;"), [Advice::Warn]);
    }

    #[test]
    fn a_bound_that_is_known_before_the_kernel_runs_is_none() {
        let half = |bound: &str| {
            let lane = "mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31;";
            advice(&sides(&format!("{lane} mov.u32 %r1, {bound}; shr.u32 %r4, %r1, 1; setp.lt.u32 %p1, %r3, %r4;")))
        };
        assert_eq!(half("WARP_SZ"), [Advice::Warn]);
        assert!(
            advice(&sides("ld.param.u32 %r1, [n]; mov.u32 %r2, %laneid; setp.lt.u32 %p1, %r2, %r1;"))[0] < Advice::Warn
        );
    }

    #[test]
    fn guard_remainder_and_main_loop_of_lanes_that_step_alike_are_silent() {
        let found = advice(&by_lane(32));
        assert_eq!(found, [Advice::Silent; 4], "{found:?}");
    }

    #[test]
    fn lanes_that_start_further_apart_than_they_step_are_told() {
        let found = advice(&by_lane(4));
        assert!(found.iter().any(|advice| *advice > Advice::Silent), "{found:?}");
    }

    #[test]
    fn steps_may_go_down_and_lanes_further_apart_than_one_are_told_then_too() {
        let down = |step: u32| {
            format!(
                "mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 31; add.s32 %r8, %r4, 600;
                L: {LONG} {LONG} add.s32 %r8, %r8, -{step}; setp.gt.s32 %p4, %r8, 0; @%p4 bra L; END: ret;"
            )
        };
        assert_eq!(advice(&down(32)), [Advice::Silent]);
        let one =
            "mov.u32 %r3, %tid.x; and.b32 %r8, %r3, 31; L: add.s32 %r8, %r8, -1; setp.gt.s32 %p4, %r8, -1; @%p4 bra L;
            END: ret;";
        assert_eq!(advice(one), [Advice::Warn]);
    }

    #[test]
    fn a_choice_by_lane_before_such_a_loop_is_told() {
        let text = format!(
            "ld.param.u32 %r2, [n]; mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra A;
            {LONG} bra B; A: {LONG} popc.b32 %r9, %r9; B: mov.u32 %r8, %r3;
            L: {LONG} add.s32 %r8, %r8, 256; setp.lt.s32 %p4, %r8, %r2; @%p4 bra L; ret;"
        );
        assert_eq!(advice(&text)[0], Advice::Warn);
    }

    #[test]
    fn a_bound_that_is_known_at_run_time_makes_a_note_and_a_constant_a_warning() {
        let text = |bound: &str| {
            format!(
                "ld.param.u32 %r2, [n]; mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 31; {bound} setp.ge.s32 %p1, %r4, %r2;
                @%p1 bra END; {LONG} {LONG} END: ret;"
            )
        };
        assert_eq!(advice(&text("mov.u32 %r2, 12;")), [Advice::Warn]);
        assert_eq!(advice(&text("shr.u32 %r2, %r2, 2; and.b32 %r2, %r2, 15; add.s32 %r2, %r2, 8;")), [Advice::Note]);
    }

    #[test]
    fn a_choice_by_lane_is_told_where_the_loop_behind_it_parts_nobody() {
        let guarded = |choice: &str, bound: &str| {
            format!(
                "mov.u32 %r3, %tid.x; {choice} setp.eq.u32 %p1, %r4, 0; @%p1 bra END; mov.u32 %r5, 0;
                L: {LONG} add.s32 %r5, %r5, 1; setp.lt.s32 %p4, %r5, {bound}; @%p4 bra L; END: ret;"
            )
        };
        let odd = "and.b32 %r4, %r3, 1;";
        assert_eq!(advice(&guarded(odd, "16")), [Advice::Warn, Advice::Silent]);
        // Half of the lanes take sixteen turns, and the others none.
        assert_eq!(advice(&guarded("and.b32 %r4, %r3, 16;", "%r4")), [Advice::Warn, Advice::Silent]);
        // As many turns as the lane has: that is told of the loop.
        assert_eq!(advice(&guarded("and.b32 %r4, %r3, 31;", "%r4")), [Advice::Silent, Advice::Warn]);
    }

    #[test]
    fn a_bit_of_a_number_that_is_known_at_run_time_makes_a_note_and_of_a_constant_a_warning() {
        let text = |bits: &str| {
            format!(
                "ld.param.u32 %r2, [n]; mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 31; {bits} and.b32 %r6, %r5, 1;
                setp.eq.s32 %p1, %r6, 0; @%p1 bra END; {LONG} {LONG} END: ret;"
            )
        };
        assert_eq!(advice(&text("shr.u32 %r5, %r2, %r4;")), [Advice::Note]);
        assert_eq!(advice(&text("and.b32 %r5, %r2, %r4;")), [Advice::Note]);
        assert_eq!(advice(&text("mov.u32 %r2, 0x5555; shr.u32 %r5, %r2, %r4;")), [Advice::Warn]);
        assert_eq!(advice(&text("add.s32 %r5, %r2, %r4;")), [Advice::Warn]);
    }

    #[test]
    fn an_index_on_both_sides_of_a_comparison_parts_nobody() {
        let text = format!(
            "ld.param.u32 %r2, [n]; mov.u32 %r3, %tid.x; mul.lo.s32 %r4, %r2, 1431655765; add.s32 %r5, %r4, %r3;
            add.s32 %r6, %r5, %r2; setp.ge.s32 %p1, %r5, %r6; @%p1 bra END; {LONG} END: ret;"
        );
        let found = judged(SHAPE, &text)[0].judgement.expect("a judgement");
        assert_eq!(found.verdict, Verdict::WarpUniform);
    }
}
