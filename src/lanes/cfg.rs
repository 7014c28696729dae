//! The control flow of one function: blocks, dominators, post-dominators, loops.

use crate::parse::ptx::{Code, Op};

/// Blocks by number; the one after the last stands for the end of the function.
pub type Block = u32;

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
    /// For each block its innermost loop.
    innermost: Vec<Option<u32>>,
    /// Blocks of cycles that have more than one way in.
    tangled: Vec<bool>,
}

/// Lists of blocks, one for each block.
#[derive(Debug, Default)]
struct Edges {
    starts: Vec<u32>,
    ends: Vec<Block>,
}

impl Edges {
    fn of(&self, block: Block) -> &[Block] {
        let at = block as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.ends[*start as usize..*end as usize],
            _ => &[],
        }
    }

    fn reversed(&self, count: usize) -> Edges {
        let mut starts = vec![0_u32; count + 1];
        self.ends.iter().for_each(|end| starts[*end as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut ends = vec![0; self.ends.len()];
        for from in 0..self.starts.len().saturating_sub(1) {
            for to in self.of(narrow(from)) {
                let slot = &mut next[*to as usize];
                ends[*slot as usize] = narrow(from);
                *slot += 1;
            }
        }
        Edges { starts, ends }
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Cfg {
    /// The graph of `code`; `None` where it has no instruction, or jumps to a label that is not there.
    #[must_use]
    pub fn new(code: &Code<'_>) -> Option<Cfg> {
        let starts = starts(code)?;
        let count = starts.len() - 1;
        let mut block_of = Vec::with_capacity(code.instructions.len());
        for block in 0..count {
            block_of.resize(starts[block + 1] as usize, narrow(block));
        }
        let successors = successors(code, &starts, &block_of)?;
        let predecessors = successors.reversed(count + 1);
        let forward = Dominators::new(0, &successors, &predecessors, count + 1);
        let backward = Dominators::new(narrow(count), &predecessors, &successors, count + 1);
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
            innermost: vec![None; count],
            tangled: vec![false; count],
        };
        cfg.find_loops();
        Some(cfg)
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
        self.loops_of(block).any(|at| at == one)
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

    /// The outermost loop that holds `inside` and not `outside`.
    #[must_use]
    pub fn left_between(&self, inside: Block, outside: Block) -> Option<u32> {
        self.loops_of(inside).take_while(|at| !self.is_in_loop(outside, *at)).last()
    }

    fn find_loops(&mut self) {
        let end = self.end();
        let mut irreducible = false;
        let mut headers: Vec<(Block, Vec<Block>)> = Vec::new();
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
                match headers.iter_mut().find(|(header, _)| header == to) {
                    Some((_, latches)) if !latches.contains(&from) => latches.push(from),
                    Some(_) => {}
                    None => headers.push((*to, vec![from])),
                }
            }
        }
        if irreducible {
            self.find_tangles();
        }
        // Inner loops first: their headers come later in reverse postorder.
        headers.sort_by_key(|(header, _)| std::cmp::Reverse(self.order[*header as usize]));
        for (header, latches) in headers {
            self.add_loop(header, latches);
        }
        for at in 0..self.loops.len() {
            let parents = std::iter::successors(self.loops[at].parent, |at| self.loops[*at as usize].parent);
            self.loops[at].depth = 1 + narrow(parents.count());
        }
        self.find_exits();
    }

    /// Gathers the blocks of a loop backwards from its latches, whole inner loops at a step.
    fn add_loop(&mut self, header: Block, latches: Vec<Block>) {
        let number = narrow(self.loops.len());
        let mut work = latches.clone();
        let mut size = 0;
        self.loops.push(Loop { header, parent: None, depth: 1, latches, exits: Vec::new(), size: 0 });
        while let Some(block) = work.pop() {
            let block = match self.outermost(block) {
                Some(known) if known == number => continue,
                Some(inner) => {
                    self.loops[inner as usize].parent = Some(number);
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

    fn outermost(&self, block: Block) -> Option<u32> {
        self.loops_of(block).last()
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
fn starts(code: &Code<'_>) -> Option<Vec<u32>> {
    let count = code.instructions.len();
    let mut leads = vec![false; count + 1];
    leads[0] = true;
    for (at, one) in code.instructions.iter().enumerate() {
        if one.op == Op::Bra {
            leads[code.target(code.sources(one).first())? as usize] = true;
        }
        if one.op == Op::Brx {
            code.table(code.sources(one).get(1)).for_each(|target| leads[target as usize] = true);
        }
        if one.op.ends_block() {
            leads[at + 1] = true;
        }
    }
    let mut starts: Vec<u32> = (0..count).filter(|at| leads[*at]).map(narrow).collect();
    starts.push(narrow(count));
    (count > 0).then_some(starts)
}

fn successors(code: &Code<'_>, starts: &[u32], block_of: &[Block]) -> Option<Edges> {
    let end = narrow(starts.len() - 1);
    let block_at = |instruction: u32| block_of.get(instruction as usize).copied().unwrap_or(end);
    let mut edges = Edges { starts: vec![0], ends: Vec::with_capacity(starts.len() * 2) };
    for block in 0..end {
        let last = &code.instructions[starts[block as usize + 1] as usize - 1];
        let next = block + 1;
        match last.op {
            Op::Bra => edges.ends.push(block_at(code.target(code.sources(last).first())?)),
            Op::Brx => {
                let from = edges.ends.len();
                for target in code.table(code.sources(last).get(1)) {
                    let target = block_at(target);
                    if !edges.ends[from..].contains(&target) {
                        edges.ends.push(target);
                    }
                }
            }
            Op::Ret | Op::Exit | Op::Trap => edges.ends.push(end),
            _ => edges.ends.push(next),
        }
        if last.op.ends_block() && last.guard.is_some() {
            edges.ends.push(next);
        }
        edges.starts.push(narrow(edges.ends.len()));
    }
    // The end has no successors.
    edges.starts.push(narrow(edges.ends.len()));
    Some(edges)
}

/// Immediate dominators (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
struct Dominators {
    immediate: Vec<Block>,
    order: Vec<u32>,
    /// Blocks in reverse postorder.
    sequence: Vec<Block>,
}

impl Dominators {
    fn new(root: Block, successors: &Edges, predecessors: &Edges, count: usize) -> Dominators {
        let sequence = reverse_postorder(root, successors, count);
        let mut order = vec![NONE; count];
        for (place, block) in (0..).zip(&sequence) {
            order[*block as usize] = place;
        }
        let mut immediate = vec![NONE; count];
        immediate[root as usize] = root;
        let mut changed = true;
        while changed {
            changed = false;
            for block in &sequence[1..] {
                let known = predecessors.of(*block).iter().copied().filter(|from| immediate[*from as usize] != NONE);
                let meet = known.reduce(|a, b| meeting(a, b, &immediate, &order)).unwrap_or(NONE);
                if immediate[*block as usize] != meet {
                    immediate[*block as usize] = meet;
                    changed = true;
                }
            }
        }
        Dominators { immediate, order, sequence }
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

fn meeting(mut a: Block, mut b: Block, immediate: &[Block], order: &[u32]) -> Block {
    while a != b {
        while order[a as usize] > order[b as usize] {
            a = immediate[a as usize];
        }
        while order[b as usize] > order[a as usize] {
            b = immediate[b as usize];
        }
    }
    a
}

fn reverse_postorder(root: Block, successors: &Edges, count: usize) -> Vec<Block> {
    let mut seen = vec![false; count];
    let mut sequence = Vec::with_capacity(count);
    let mut work = vec![(root, 0_usize)];
    seen[root as usize] = true;
    while let Some((block, edge)) = work.pop() {
        match successors.of(block).get(edge) {
            Some(to) => {
                work.push((block, edge + 1));
                if !seen[*to as usize] {
                    seen[*to as usize] = true;
                    work.push((*to, 0));
                }
            }
            None => sequence.push(block),
        }
    }
    sequence.reverse();
    sequence
}
