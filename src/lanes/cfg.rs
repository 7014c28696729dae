//! The control flow of one function: blocks, dominators, post-dominators, loops.

use hashbrown::HashMap;

use crate::model::{Flow, Jump, Way};
use crate::parse::ptx::{Code, Instruction, Op, Operand};

/// Blocks by number; the one after the last stands for the end of the function.
pub type Block = u32;

/// Loops within loops at most: each edge is an exit of every loop that it leaves.
const NESTED: u32 = 64;

/// Ways out of branch tables at most, beside what the size of a function allows: tables may be used many times.
const TABLES: usize = 1 << 16;

/// Stands for no block.
pub const NONE: Block = u32::MAX;

/// A loop with one way in.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The block through which it is entered.
    pub header: Block,
    /// The innermost loop around it.
    pub parent: Option<u32>,
    /// 1 for a loop that is in no other.
    pub depth: u32,
    /// Blocks that jump back to the header.
    pub latches: Vec<Block>,
    /// Edges that leave it.
    pub exits: Vec<(Block, Block)>,
    /// How many blocks it has.
    pub size: u32,
}

/// The graph of a function.
#[derive(Debug)]
pub struct Cfg {
    /// Each block's first instruction, and behind them the number of instructions.
    pub starts: Vec<u32>,
    /// For each instruction its block.
    pub block_of: Vec<Block>,
    successors: Edges,
    predecessors: Edges,
    /// For each block its immediate dominator; the first block's is itself, that of a block which is never reached NONE.
    idom: Vec<Block>,
    /// Likewise from the end, for each block and the end.
    ipdom: Vec<Block>,
    /// For each block its place in reverse postorder; NONE where it is never reached.
    order: Vec<u32>,
    /// When the walk over the dominator tree enters and leaves each block.
    times: Vec<(u32, u32)>,
    /// Natural loops; an outer one may stand behind its inner ones.
    pub loops: Vec<Loop>,
    /// When the walk over the tree of loops enters and leaves each of them.
    loop_times: Vec<(u32, u32)>,
    /// For each block its innermost loop.
    innermost: Vec<Option<u32>>,
    /// Blocks of cycles that have more than one way in.
    tangled: Vec<bool>,
    /// Blocks that are not meant to run: they end the kernel with an error, or lead only to such ones. Empty where there is
    /// none.
    cold: Vec<bool>,
}

/// For each loop one that holds it, on the way to the outermost: the way gets shorter with every look.
#[derive(Default)]
struct Around {
    outer: Vec<u32>,
}

impl Around {
    /// Adds a loop that is in no other, and tells its number.
    fn add(&mut self) -> u32 {
        let number = narrow(self.outer.len());
        self.outer.push(number);
        number
    }

    fn put(&mut self, inner: u32, outer: u32) {
        self.outer[inner as usize] = outer;
    }

    fn outermost(&mut self, mut one: u32) -> u32 {
        while self.outer[one as usize] != one {
            let next = self.outer[one as usize];
            self.outer[one as usize] = self.outer[next as usize];
            one = next;
        }
        one
    }
}

/// Lists of blocks, one for each block.
#[derive(Debug, Default)]
pub(super) struct Edges {
    starts: Vec<u32>,
    ends: Vec<Block>,
}

impl Edges {
    pub(super) fn of(&self, block: Block) -> &[Block] {
        let at = block as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.ends[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The edges of blocks that have others than those to `cold` ones, without these.
    fn without(&self, cold: &[bool]) -> Edges {
        let mut edges = Edges { starts: vec![0], ends: Vec::with_capacity(self.ends.len()) };
        let is_cold = |block: &Block| cold.get(*block as usize).copied().unwrap_or(false);
        for from in 0..self.starts.len().saturating_sub(1) {
            let all = self.of(narrow(from));
            let some = !is_cold(&narrow(from)) && all.iter().any(|to| !is_cold(to));
            edges.ends.extend(all.iter().filter(|to| !some || !is_cold(to)));
            edges.starts.push(narrow(edges.ends.len()));
        }
        edges
    }

    fn reversed(&self, count: usize) -> Edges {
        let froms = 0..narrow(self.starts.len().saturating_sub(1));
        Edges::gathered(froms.flat_map(|from| self.of(from).iter().map(move |to| (*to, from))), count)
    }

    /// The lists of `count` blocks, with what each pair adds to that of its first block.
    pub(super) fn gathered(pairs: impl Iterator<Item = (Block, Block)> + Clone, count: usize) -> Edges {
        let mut starts = vec![0_u32; count + 1];
        pairs.clone().for_each(|(from, _)| starts[from as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut ends = vec![0; starts.last().copied().unwrap_or(0) as usize];
        for (from, to) in pairs {
            let slot = &mut next[from as usize];
            ends[*slot as usize] = to;
            *slot += 1;
        }
        Edges { starts, ends }
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Cfg {
    /// The graph of `code`, as far as [`Cfg::of`] makes one; where ways meet does not hang on those that only a failure takes.
    #[must_use]
    pub fn new(code: &Code<'_>) -> Option<Cfg> {
        Cfg::build(code.flow, &failing(code))
    }

    /// The graph of a function, for which nothing but its jumps is needed; `None` where it has no instruction, nests loops
    /// deeper than anyone does, or has more ways out of branch tables.
    #[must_use]
    pub fn of(flow: &Flow) -> Option<Cfg> {
        Cfg::build(flow, &[])
    }

    /// The same, with the instructions that stop the kernel with an error.
    fn build(flow: &Flow, failing: &[u32]) -> Option<Cfg> {
        let starts = starts(flow)?;
        let count = starts.len() - 1;
        let mut block_of = Vec::with_capacity(flow.instructions as usize);
        for block in 0..count {
            block_of.resize(starts[block + 1] as usize, narrow(block));
        }
        let successors = successors(flow, &starts, &block_of);
        let predecessors = successors.reversed(count + 1);
        let forward = Dominators::new(0, &successors, &predecessors, count + 1);
        let cold = cold(failing, &starts, &successors);
        let backward = if cold.is_empty() {
            Dominators::new(narrow(count), &predecessors, &successors, count + 1)
        } else {
            let warm = successors.without(&cold);
            Dominators::new(narrow(count), &warm.reversed(count + 1), &warm, count + 1)
        };
        let times = forward.times(count + 1);
        let mut cfg = Cfg {
            starts,
            block_of,
            successors,
            predecessors,
            idom: forward.immediate,
            ipdom: backward.immediate,
            order: forward.order,
            times,
            loops: Vec::new(),
            loop_times: Vec::new(),
            innermost: vec![None; count],
            tangled: vec![false; count],
            cold,
        };
        cfg.find_loops().then_some(cfg)
    }

    /// How many blocks there are; also the number of the end.
    #[must_use]
    pub fn end(&self) -> Block {
        narrow(self.starts.len() - 1)
    }

    /// The instructions of a block.
    #[must_use]
    pub fn instructions(&self, block: Block) -> std::ops::Range<u32> {
        self.starts[block as usize]..self.starts[block as usize + 1]
    }

    /// The instruction that a block ends with.
    #[must_use]
    pub fn last(&self, block: Block) -> u32 {
        self.starts[block as usize + 1] - 1
    }

    /// Where control goes after a block: for a branch the target first.
    #[must_use]
    pub fn successors(&self, block: Block) -> &[Block] {
        self.successors.of(block)
    }

    /// Where it comes from.
    #[must_use]
    pub fn predecessors(&self, block: Block) -> &[Block] {
        self.predecessors.of(block)
    }

    /// The immediate dominator of a block, if it has one.
    #[must_use]
    pub fn idom(&self, block: Block) -> Option<Block> {
        let dominator = *self.idom.get(block as usize)?;
        (dominator != NONE && dominator != block).then_some(dominator)
    }

    /// Where the ways from a block meet again; the end where they do so nowhere.
    #[must_use]
    pub fn ipdom(&self, block: Block) -> Block {
        match self.ipdom[block as usize] {
            NONE => self.end(),
            meeting => meeting,
        }
    }

    /// Whether control can come to the block.
    #[must_use]
    pub fn is_reached(&self, block: Block) -> bool {
        self.order.get(block as usize).is_some_and(|order| *order != NONE)
    }

    /// The block's place in reverse postorder.
    #[must_use]
    pub fn order(&self, block: Block) -> u32 {
        self.order[block as usize]
    }

    /// Whether every way to `b` goes through `a`.
    #[must_use]
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let (outer, inner) = (self.times[a as usize], self.times[b as usize]);
        self.is_reached(a) && self.is_reached(b) && outer.0 <= inner.0 && inner.1 <= outer.1
    }

    /// Whether the edge jumps back to a block that dominates its start.
    #[must_use]
    pub fn is_back_edge(&self, from: Block, to: Block) -> bool {
        to < self.end() && self.dominates(to, from)
    }

    /// The innermost loop of a block.
    #[must_use]
    pub fn loop_of(&self, block: Block) -> Option<u32> {
        self.innermost.get(block as usize).copied().flatten()
    }

    /// The loops of a block, the innermost first.
    pub fn loops_of(&self, block: Block) -> impl Iterator<Item = u32> {
        std::iter::successors(self.loop_of(block), |at| self.loops[*at as usize].parent)
    }

    /// Whether the block belongs to the loop.
    #[must_use]
    pub fn is_in_loop(&self, block: Block, one: u32) -> bool {
        let Some(inner) = self.loop_of(block) else { return false };
        let (inner, outer) = (self.loop_times[inner as usize], self.loop_times[one as usize]);
        outer.0 <= inner.0 && inner.1 <= outer.1
    }

    /// The loop whose header the block is.
    #[must_use]
    pub fn loop_headed_by(&self, block: Block) -> Option<u32> {
        self.loops_of(block).find(|at| self.loops[*at as usize].header == block)
    }

    /// Whether the block is in a cycle that has more than one way in.
    #[must_use]
    pub fn is_tangled(&self, block: Block) -> bool {
        self.tangled.get(block as usize).copied().unwrap_or(false)
    }

    /// Whether the block is not meant to run.
    #[must_use]
    pub fn is_cold(&self, block: Block) -> bool {
        self.cold.get(block as usize).copied().unwrap_or(false)
    }

    /// The outermost loop that holds `inside` and not `outside`.
    #[must_use]
    pub fn left_between(&self, inside: Block, outside: Block) -> Option<u32> {
        self.loops_of(inside).take_while(|at| !self.is_in_loop(outside, *at)).last()
    }

    /// Finds the loops; false where they are nested too deeply.
    fn find_loops(&mut self) -> bool {
        let end = self.end();
        let mut irreducible = false;
        let mut latches_of: HashMap<Block, Vec<Block>> = HashMap::new();
        for from in 0..end {
            if !self.is_reached(from) {
                continue;
            }
            for to in self.successors.of(from) {
                if *to >= end || self.order(*to) > self.order(from) {
                    continue;
                }
                if !self.dominates(*to, from) {
                    irreducible = true;
                    continue;
                }
                let latches = latches_of.entry(*to).or_default();
                if latches.last() != Some(&from) {
                    latches.push(from);
                }
            }
        }
        if irreducible {
            self.find_tangles();
        }
        let mut headers: Vec<(Block, Vec<Block>)> = latches_of.into_iter().collect();
        // Inner loops first: their headers come later in reverse postorder.
        headers.sort_by_key(|(header, _)| std::cmp::Reverse(self.order[*header as usize]));
        let mut around = Around::default();
        for (header, latches) in headers {
            self.add_loop(header, latches, &mut around);
        }
        self.order_loops();
        let is_usual = self.loops.iter().all(|one| one.depth <= NESTED);
        if is_usual {
            self.find_exits();
        }
        is_usual
    }

    /// Finds how deep each loop is nested, and numbers them so that one which lies in another is seen at once.
    fn order_loops(&mut self) {
        let mut inner = vec![Vec::new(); self.loops.len()];
        let mut work: Vec<(u32, bool)> = Vec::new();
        for at in 0..narrow(self.loops.len()) {
            match self.loops[at as usize].parent {
                Some(outer) => inner[outer as usize].push(at),
                None => work.push((at, false)),
            }
        }
        self.loop_times = vec![(0, 0); self.loops.len()];
        let mut now = 0;
        while let Some((at, is_done)) = work.pop() {
            now += 1;
            if is_done {
                self.loop_times[at as usize].1 = now;
                continue;
            }
            self.loop_times[at as usize].0 = now;
            let outer = self.loops[at as usize].parent.map_or(0, |outer| self.loops[outer as usize].depth);
            self.loops[at as usize].depth = outer + 1;
            work.push((at, true));
            work.extend(inner[at as usize].iter().map(|at| (*at, false)));
        }
    }

    /// Gathers the blocks of a loop backwards from its latches, whole inner loops at a step.
    fn add_loop(&mut self, header: Block, latches: Vec<Block>, around: &mut Around) {
        let number = around.add();
        let mut work = latches.clone();
        let mut size = 0;
        self.loops.push(Loop { header, parent: None, depth: 1, latches, exits: Vec::new(), size: 0 });
        while let Some(block) = work.pop() {
            let block = match self.loop_of(block).map(|inner| around.outermost(inner)) {
                Some(known) if known == number => continue,
                Some(inner) => {
                    self.loops[inner as usize].parent = Some(number);
                    around.put(inner, number);
                    size += self.loops[inner as usize].size;
                    self.loops[inner as usize].header
                }
                None => {
                    self.innermost[block as usize] = Some(number);
                    size += 1;
                    block
                }
            };
            if block == header {
                continue;
            }
            let before = self.predecessors.of(block);
            work.extend(before.iter().copied().filter(|one| self.order[*one as usize] != NONE));
        }
        if self.innermost[header as usize].is_none() {
            self.innermost[header as usize] = Some(number);
            size += 1;
        }
        self.loops[number as usize].size = size;
    }

    fn find_exits(&mut self) {
        let mut exits = Vec::new();
        for from in 0..self.end() {
            for to in self.successors.of(from) {
                let left = self.loops_of(from).take_while(|one| !self.is_in_loop(*to, *one));
                exits.extend(left.map(|one| (one, (from, *to))));
            }
        }
        for (one, edge) in exits {
            self.loops[one as usize].exits.push(edge);
        }
    }

    /// Marks the strongly connected components that have more than one way in (Tarjan 1972, without recursion).
    fn find_tangles(&mut self) {
        let count = self.end() as usize;
        let (mut index, mut low) = (vec![NONE; count], vec![0_u32; count]);
        let mut component = vec![NONE; count];
        let (mut stack, mut next, mut components) = (Vec::new(), 0_u32, 0_u32);
        let mut work: Vec<(Block, usize)> = Vec::new();
        for root in 0..narrow(count) {
            if index[root as usize] != NONE || !self.is_reached(root) {
                continue;
            }
            work.push((root, 0));
            while let Some((block, edge)) = work.pop() {
                let at = block as usize;
                if edge == 0 {
                    (index[at], low[at]) = (next, next);
                    next += 1;
                    stack.push(block);
                }
                match self.successors.of(block).get(edge) {
                    Some(to) => {
                        work.push((block, edge + 1));
                        let to_at = *to as usize;
                        if to_at < count && index[to_at] == NONE {
                            work.push((*to, 0));
                        } else if to_at < count && component[to_at] == NONE {
                            low[at] = low[at].min(index[to_at]);
                        }
                    }
                    None => {
                        if low[at] == index[at] {
                            while let Some(member) = stack.pop() {
                                component[member as usize] = components;
                                if member == block {
                                    break;
                                }
                            }
                            components += 1;
                        }
                        if let Some((parent, _)) = work.last() {
                            low[*parent as usize] = low[*parent as usize].min(low[at]);
                        }
                    }
                }
            }
        }
        let mut bad = vec![false; components as usize];
        for from in 0..narrow(count) {
            for to in self.successors.of(from) {
                let same = (*to as usize) < count && component[*to as usize] == component[from as usize];
                if same && self.is_reached(from) && self.order(*to) <= self.order(from) && !self.dominates(*to, from) {
                    bad[component[from as usize] as usize] = true;
                }
            }
        }
        for (tangled, component) in self.tangled.iter_mut().zip(&component) {
            *tangled = bad.get(*component as usize).copied().unwrap_or(false);
        }
    }
}

/// The first instructions of all blocks, and the number of instructions.
fn starts(flow: &Flow) -> Option<Vec<u32>> {
    let count = flow.instructions as usize;
    let mut leads = vec![false; count + 1];
    leads[0] = true;
    let mut ways = 0;
    for jump in &flow.jumps {
        leads[jump.at as usize + 1] = true;
        match jump.way {
            Way::To(target) => leads[target as usize] = true,
            Way::Table(table) => {
                let targets = flow.table(table);
                targets.iter().for_each(|target| leads[*target as usize] = true);
                ways += targets.len();
            }
            Way::Out => {}
        }
        if ways > TABLES + 8 * count {
            return None;
        }
    }
    let mut starts: Vec<u32> = (0..count).filter(|at| leads[*at]).map(narrow).collect();
    starts.push(narrow(count));
    (count > 0).then_some(starts)
}

fn successors(flow: &Flow, starts: &[u32], block_of: &[Block]) -> Edges {
    let end = narrow(starts.len() - 1);
    let block_at = |instruction: u32| block_of.get(instruction as usize).copied().unwrap_or(end);
    let mut edges = Edges { starts: Vec::with_capacity(starts.len() + 1), ends: Vec::with_capacity(starts.len() * 2) };
    edges.starts.push(0);
    let mut from = vec![NONE; starts.len()];
    // Every jump ends a block.
    let mut jumps = flow.jumps.iter().peekable();
    for block in 0..end {
        let next = block + 1;
        match jumps.next_if(|jump| jump.at + 1 == starts[next as usize]) {
            None => edges.ends.push(next),
            Some(Jump { guarded, way, .. }) => {
                match *way {
                    Way::To(target) => edges.ends.push(block_at(target)),
                    Way::Table(table) => {
                        for target in flow.table(table) {
                            let target = block_at(*target);
                            if std::mem::replace(&mut from[target as usize], block) != block {
                                edges.ends.push(target);
                            }
                        }
                    }
                    Way::Out => edges.ends.push(end),
                }
                if *guarded {
                    edges.ends.push(next);
                }
            }
        }
        edges.starts.push(narrow(edges.ends.len()));
    }
    // The end has no successors.
    edges.starts.push(narrow(edges.ends.len()));
    edges
}

/// The instructions that stop the kernel with an error.
fn failing(code: &Code<'_>) -> Vec<u32> {
    let fails = |one: &Instruction| match (one.op, code.sources(one).first()) {
        (Op::Trap, _) => one.guard.is_none(),
        (Op::Call, Some(Operand::Symbol(name, _))) => FAILING.contains(&code.names[*name as usize]),
        _ => false,
    };
    (0..).zip(&code.instructions).filter(|(_, one)| fails(one)).map(|(at, _)| at).collect()
}

/// The blocks that hold one of these instructions, and those that lead only to such ones.
fn cold(failing: &[u32], starts: &[u32], successors: &Edges) -> Vec<bool> {
    if failing.is_empty() {
        return Vec::new();
    }
    let count = starts.len() - 1;
    let mut cold = vec![false; count];
    for at in failing {
        cold[starts.partition_point(|start| start <= at) - 1] = true;
    }
    // Failures lie behind one another in short chains, and mostly in this order.
    for block in (0..count).rev() {
        let to = successors.of(narrow(block));
        cold[block] |= !to.is_empty() && to.iter().all(|to| cold.get(*to as usize).copied().unwrap_or(false));
    }
    cold
}

/// Functions that do not come back (CUDA Programming Guide, "Assertion").
const FAILING: [&[u8]; 2] = [b"__assertfail", b"__assert_fail"];

/// Immediate dominators.
struct Dominators {
    immediate: Vec<Block>,
    order: Vec<u32>,
    /// Blocks in reverse postorder.
    sequence: Vec<Block>,
}

impl Dominators {
    fn new(root: Block, successors: &Edges, predecessors: &Edges, count: usize) -> Dominators {
        let walk = Walk::new(root, successors, count);
        let immediate = immediate_dominators(&walk, predecessors, count);
        let mut order = vec![NONE; count];
        for (place, block) in (0..).zip(&walk.reverse_postorder) {
            order[*block as usize] = place;
        }
        Dominators { immediate, order, sequence: walk.reverse_postorder }
    }

    /// When a walk over the tree enters and leaves each block.
    fn times(&self, count: usize) -> Vec<(u32, u32)> {
        let mut sizes = vec![1_u32; count];
        for block in self.sequence[1..].iter().rev() {
            let parent = self.immediate[*block as usize];
            if parent != NONE {
                sizes[parent as usize] += sizes[*block as usize];
            }
        }
        let mut times = vec![(0, 0); count];
        let mut next = vec![0_u32; count];
        if let Some(root) = self.sequence.first() {
            times[*root as usize] = (0, sizes[*root as usize]);
            next[*root as usize] = 1;
        }
        for block in &self.sequence[1..] {
            let parent = self.immediate[*block as usize];
            if parent == NONE {
                continue;
            }
            let start = next[parent as usize];
            let size = sizes[*block as usize];
            times[*block as usize] = (start, start + size);
            next[*block as usize] = start + 1;
            next[parent as usize] = start + size;
        }
        times
    }
}

/// A walk in depth over all blocks that are come to from one of them.
struct Walk {
    /// Blocks in the order in which the walk comes to them.
    preorder: Vec<Block>,
    /// For each of these the place of the one that it was come to from.
    parents: Vec<u32>,
    reverse_postorder: Vec<Block>,
}

impl Walk {
    fn new(root: Block, successors: &Edges, count: usize) -> Walk {
        let mut seen = vec![false; count];
        let mut walk = Walk { preorder: vec![root], parents: vec![0], reverse_postorder: Vec::with_capacity(count) };
        // Each block's place in the order, and the edge that is next.
        let mut work = vec![(0_u32, 0_usize)];
        seen[root as usize] = true;
        while let Some((place, edge)) = work.pop() {
            let block = walk.preorder[place as usize];
            match successors.of(block).get(edge) {
                Some(to) => {
                    work.push((place, edge + 1));
                    if !seen[*to as usize] {
                        seen[*to as usize] = true;
                        work.push((narrow(walk.preorder.len()), 0));
                        walk.preorder.push(*to);
                        walk.parents.push(place);
                    }
                }
                None => walk.reverse_postorder.push(block),
            }
        }
        walk.reverse_postorder.reverse();
        walk
    }
}

/// Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph", 1979, in its simple form: its time hardly
/// grows faster than the number of edges, however loops are nested.
fn immediate_dominators(walk: &Walk, predecessors: &Edges, count: usize) -> Vec<Block> {
    let reached = walk.preorder.len();
    let mut places = vec![NONE; count];
    for (place, block) in (0..).zip(&walk.preorder) {
        places[*block as usize] = place;
    }
    let mut forest = Forest::new(reached);
    let mut dominators = vec![0_u32; reached];
    // For each place those that have it for their semidominator, as a list: the first, and for each the next.
    let (mut first, mut next) = (vec![NONE; reached], vec![NONE; reached]);
    for place in (1..reached).rev() {
        let parent = walk.parents[place];
        let before = predecessors.of(walk.preorder[place]).iter().map(|from| places[*from as usize]);
        for from in before.filter(|from| *from != NONE) {
            let least = forest.least_above(from);
            forest.semi[place] = forest.semi[place].min(forest.semi[least as usize]);
        }
        let semi = forest.semi[place] as usize;
        next[place] = std::mem::replace(&mut first[semi], narrow(place));
        forest.above[place] = parent;
        let mut waiting = std::mem::replace(&mut first[parent as usize], NONE);
        while waiting != NONE {
            let least = forest.least_above(waiting);
            let is_lower = forest.semi[least as usize] < forest.semi[waiting as usize];
            dominators[waiting as usize] = if is_lower { least } else { parent };
            waiting = next[waiting as usize];
        }
    }
    let mut immediate = vec![NONE; count];
    immediate[walk.preorder[0] as usize] = walk.preorder[0];
    for place in 1..reached {
        if dominators[place] != forest.semi[place] {
            dominators[place] = dominators[dominators[place] as usize];
        }
        immediate[walk.preorder[place] as usize] = walk.preorder[dominators[place] as usize];
    }
    immediate
}

/// The part of the walk's tree that is known, with the ways up in it made shorter by every look.
struct Forest {
    /// For each place its semidominator, as far as it is known.
    semi: Vec<u32>,
    /// A place above it in the tree; NONE for a root.
    above: Vec<u32>,
    /// The place with the least semidominator on the way there.
    least: Vec<u32>,
    way: Vec<u32>,
}

impl Forest {
    fn new(count: usize) -> Forest {
        let own: Vec<u32> = (0..narrow(count)).collect();
        Forest { semi: own.clone(), above: vec![NONE; count], least: own, way: Vec::new() }
    }

    /// The place with the least semidominator on the way up from `place`, without the root.
    fn least_above(&mut self, place: u32) -> u32 {
        let mut here = place;
        loop {
            let above = self.above[here as usize];
            if above == NONE || self.above[above as usize] == NONE {
                break;
            }
            self.way.push(here);
            here = above;
        }
        while let Some(here) = self.way.pop() {
            let above = self.above[here as usize] as usize;
            let (least, other) = (self.least[here as usize], self.least[above]);
            if self.semi[other as usize] < self.semi[least as usize] {
                self.least[here as usize] = other;
            }
            self.above[here as usize] = self.above[above];
        }
        self.least[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{block_of, with_cfg, with_code};
    use super::*;
    use crate::parse::ptx::Op;

    /// `if (p) { neg } else { not }; popc`
    const DIAMOND: &str = "@%p1 bra A; neg.s32 %r1, %r1; bra B; A: not.b32 %r1, %r1; B: popc.b32 %r1, %r1; ret;";

    #[test]
    fn ways_to_a_failure_do_not_decide_where_others_meet() {
        let text = |fail: &str| {
            format!(
                "@%p1 bra F; neg.s32 %r1, %r1; @%p2 bra F; not.b32 %r1, %r1; bra D;
                F: {fail} brev.b32 %r1, %r1; D: popc.b32 %r1, %r1; ret;"
            )
        };
        let meets = |fail: &str| {
            with_cfg(&text(fail), |code, cfg| {
                let [next, last, failing] = [Op::Neg, Op::Popc, Op::Brev].map(|op| block_of(code, cfg, op, 0));
                (cfg.ipdom(0) == next, cfg.ipdom(0) == last, cfg.is_cold(failing))
            })
        };
        assert_eq!(meets("call.uni __assertfail, (a);"), (true, false, true));
        assert_eq!(meets("call.uni f, (a);"), (false, true, false));
    }

    #[test]
    fn ways_part_at_a_branch_and_meet_at_its_post_dominator() {
        with_cfg(DIAMOND, |code, cfg| {
            let [other, taken, meet] = [Op::Neg, Op::Not, Op::Popc].map(|op| block_of(code, cfg, op, 0));
            assert_eq!(cfg.successors(0), [taken, other]);
            assert_eq!(cfg.predecessors(meet), [other, taken]);
            assert_eq!((cfg.ipdom(0), cfg.ipdom(taken), cfg.ipdom(meet)), (meet, meet, cfg.end()));
            assert_eq!((cfg.idom(0), cfg.idom(taken), cfg.idom(meet)), (None, Some(0), Some(0)));
            assert!(cfg.dominates(0, meet) && cfg.dominates(meet, meet) && !cfg.dominates(taken, meet));
            assert!(cfg.loops.is_empty() && cfg.loop_of(meet).is_none());
        });
    }

    #[test]
    fn dominators_are_what_cannot_be_gone_around() {
        // Of all small graphs made by a simple generator: a block dominates those that are not reached without it.
        let mut seed = 1_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..200 {
            let count = 2 + random(9);
            let lists: Vec<Vec<Block>> = (0..count).map(|_| (0..random(4)).map(|_| random(count)).collect()).collect();
            let mut edges = Edges { starts: vec![0], ends: Vec::new() };
            for list in &lists {
                edges.ends.extend(list);
                edges.starts.push(narrow(edges.ends.len()));
            }
            let reached_without = |gone: Block| {
                let mut seen = vec![false; count as usize];
                let mut work = if gone == 0 { vec![] } else { vec![0] };
                while let Some(here) = work.pop() {
                    if !std::mem::replace(&mut seen[here as usize], true) {
                        work.extend(lists[here as usize].iter().filter(|to| **to != gone));
                    }
                }
                seen
            };
            let reached = reached_without(NONE);
            let found = Dominators::new(0, &edges, &edges.reversed(count as usize), count as usize);
            let without: Vec<Vec<bool>> = (0..count).map(reached_without).collect();
            for block in 1..count {
                let dominates = |other: Block, block: Block| !without[other as usize][block as usize];
                let strict: Vec<Block> = (0..count).filter(|one| *one != block && dominates(*one, block)).collect();
                let nearest = strict.iter().find(|one| strict.iter().all(|other| dominates(*other, **one)));
                let expected = if reached[block as usize] { *nearest.expect("the root is one") } else { NONE };
                assert_eq!(found.immediate[block as usize], expected, "block {block} of {lists:?}");
            }
        }
    }

    #[test]
    fn guarded_returns_and_traps_part_ways_and_others_end_the_function() {
        for end in ["ret", "exit", "trap"] {
            with_cfg(&format!("@%p1 {end}; neg.s32 %r1, %r1; {end}; popc.b32 %r1, %r1; ret;"), |code, cfg| {
                let next = block_of(code, cfg, Op::Neg, 0);
                assert_eq!(cfg.successors(0), [cfg.end(), next], "{end}");
                assert_eq!(cfg.successors(next), [cfg.end()], "{end}");
                assert!(!cfg.is_reached(block_of(code, cfg, Op::Popc, 0)), "{end}");
            });
        }
        with_cfg("@%p1 bra A; neg.s32 %r1, %r1; A:", |_, cfg| assert_eq!(cfg.successors(0), [cfg.end(), 1]));
    }

    #[test]
    fn labels_that_nobody_jumps_to_do_not_part_a_block() {
        with_cfg("neg.s32 %r1, %r1; A: not.b32 %r1, %r1; ret;", |_, cfg| assert_eq!(cfg.end(), 1));
    }

    #[test]
    fn a_table_leads_to_each_of_its_targets_once() {
        let text = "T: .branchtargets A, B, A, C; brx.idx %r1, T; A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; C: ret;";
        with_cfg(text, |code, cfg| {
            let [a, b, c] = [Op::Neg, Op::Not, Op::Ret].map(|op| block_of(code, cfg, op, 0));
            assert_eq!(cfg.successors(0), [a, b, c]);
            assert_eq!(cfg.ipdom(0), c);
        });
    }

    #[test]
    fn an_empty_function_has_no_graph() {
        for text in ["", "A:"] {
            with_code(text, |code| assert!(Cfg::new(code).is_none(), "{text}"));
        }
    }

    #[test]
    fn a_branch_goes_to_the_label_within_its_own_braces() {
        let wait = "{ W: neg.s32 %r1, %r1; @%p1 bra D; bra W; D: }";
        with_cfg(&format!("{wait} {wait} ret;"), |code, cfg| {
            let [first, second, out] =
                [(Op::Neg, 0), (Op::Neg, 1), (Op::Ret, 0)].map(|(op, nth)| block_of(code, cfg, op, nth));
            let headers: Vec<Block> = cfg.loops.iter().map(|one| one.header).collect();
            assert!(headers.len() == 2 && headers.contains(&first) && headers.contains(&second));
            assert!(cfg.successors(first).contains(&second) && cfg.successors(second).contains(&out));
        });
    }

    #[test]
    fn loops_know_their_header_latches_exits_and_parents() {
        let text = "neg.s32 %r1, %r1;
            OUTER: not.b32 %r1, %r1;
            INNER: popc.b32 %r1, %r1; @%p1 bra INNER;
            clz.b32 %r1, %r1; @%p2 bra OUTER;
            brev.b32 %r1, %r1; ret;";
        with_cfg(text, |code, cfg| {
            let [before, outer, inner, latch, after] =
                [Op::Neg, Op::Not, Op::Popc, Op::Clz, Op::Brev].map(|op| block_of(code, cfg, op, 0));
            assert_eq!(cfg.loops.len(), 2);
            let (one, two) = (cfg.loop_headed_by(outer).unwrap_or(9), cfg.loop_headed_by(inner).unwrap_or(9));
            let (whole, part) = (&cfg.loops[one as usize], &cfg.loops[two as usize]);
            assert_eq!((whole.depth, whole.parent, whole.size), (1, None, 3));
            assert_eq!((part.depth, part.parent, part.size), (2, Some(one), 1));
            assert_eq!((&whole.latches[..], &part.latches[..]), (&[latch][..], &[inner][..]));
            assert_eq!((&whole.exits[..], &part.exits[..]), (&[(latch, after)][..], &[(inner, latch)][..]));
            assert_eq!(cfg.loops_of(inner).collect::<Vec<_>>(), [two, one]);
            assert!(cfg.is_in_loop(inner, one) && !cfg.is_in_loop(latch, two) && !cfg.is_in_loop(before, one));
            assert_eq!(cfg.left_between(inner, after), Some(one));
            assert_eq!(cfg.left_between(inner, latch), Some(two));
            assert_eq!(cfg.left_between(latch, inner), None);
            assert!(cfg.is_back_edge(latch, outer) && !cfg.is_back_edge(before, outer));
        });
    }

    #[test]
    fn one_edge_may_leave_two_loops() {
        let text = "A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; @%p1 bra OUT; @%p2 bra B; @%p3 bra A; OUT: ret;";
        with_cfg(text, |code, cfg| {
            let (inner, out) = (block_of(code, cfg, Op::Not, 0), block_of(code, cfg, Op::Ret, 0));
            assert_eq!(cfg.loops.len(), 2);
            assert!(cfg.loops.iter().all(|one| one.exits.contains(&(inner, out))));
        });
    }

    #[test]
    fn a_loop_that_is_entered_in_the_middle_is_tangled_and_no_loop() {
        let text = "@%p1 bra B; A: neg.s32 %r1, %r1; B: not.b32 %r1, %r1; @%p2 bra A; popc.b32 %r1, %r1; ret;";
        with_cfg(text, |code, cfg| {
            assert!(cfg.loops.is_empty());
            let tangled = [Op::Neg, Op::Not, Op::Popc].map(|op| cfg.is_tangled(block_of(code, cfg, op, 0)));
            assert_eq!(tangled, [true, true, false]);
        });
    }

    #[test]
    fn a_loop_without_an_end_has_no_exit_and_meets_only_at_the_end() {
        with_cfg("A: neg.s32 %r1, %r1; bra A;", |_, cfg| {
            assert_eq!((cfg.loops.len(), cfg.loops[0].exits.len()), (1, 0));
            assert_eq!(cfg.ipdom(0), cfg.end());
        });
    }

    #[test]
    fn loops_nested_deeper_than_anyone_does_are_not_followed() {
        let nest = |depth: usize| {
            let heads: String = (0..depth).map(|at| format!("L{at}: neg.s32 %r1, %r1;\n")).collect();
            let tails: String = (0..depth).rev().map(|at| format!("@%p1 bra L{at};\n")).collect();
            with_code(&format!("{heads}{tails}ret;"), |code| {
                Cfg::new(code).map(|cfg| cfg.loops.iter().map(|one| one.depth).max())
            })
        };
        assert_eq!(nest(64), Some(Some(64)));
        assert_eq!(nest(65), None);
        // In the time of their number, not of its square.
        assert_eq!(nest(50_000), None);
    }
}
