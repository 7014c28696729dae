//! Which blocks are turned round, how loops lie in one another, and where they are left.

use hashbrown::HashMap;

use super::{Block, Cfg, Loop, NONE, narrow};

/// Loops within loops at most: each edge is an exit of every loop that it leaves.
const NESTED: u32 = 64;

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

impl Cfg {
    /// Finds the loops; false where they are nested too deeply.
    pub(super) fn find_loops(&mut self) -> bool {
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
