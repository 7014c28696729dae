//! Which block all ways to another one lead through.

use super::edges::Edges;
use super::{Block, NONE, narrow};

/// Immediate dominators.
pub(super) struct Dominators {
    pub(super) immediate: Vec<Block>,
    pub(super) order: Vec<u32>,
    /// Blocks in reverse postorder.
    sequence: Vec<Block>,
}

impl Dominators {
    pub(super) fn new(root: Block, successors: &Edges, predecessors: &Edges, count: usize) -> Dominators {
        let walk = Walk::new(root, successors, count);
        let immediate = immediate_dominators(&walk, predecessors, count);
        let mut order = vec![NONE; count];
        for (place, block) in (0..).zip(&walk.reverse_postorder) {
            order[*block as usize] = place;
        }
        Dominators { immediate, order, sequence: walk.reverse_postorder }
    }

    /// When a walk over the tree enters and leaves each block.
    pub(super) fn times(&self, count: usize) -> Vec<(u32, u32)> {
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
