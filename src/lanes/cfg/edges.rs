//! Lists of blocks for each block, in one piece.

use super::{Block, narrow};

/// Lists of blocks, one for each block.
#[derive(Debug, Default)]
pub(in super::super) struct Edges {
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<Block>,
}

impl Edges {
    pub(in super::super) fn of(&self, block: Block) -> &[Block] {
        let at = block as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.ends[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The edges of blocks that have others than those to `cold` ones, without these.
    pub(super) fn without(&self, cold: &[bool]) -> Edges {
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

    pub(super) fn reversed(&self, count: usize) -> Edges {
        let froms = 0..narrow(self.starts.len().saturating_sub(1));
        Edges::gathered(froms.flat_map(|from| self.of(from).iter().map(move |to| (*to, from))), count)
    }

    /// The lists of `count` blocks, with what each pair adds to that of its first block.
    pub(in super::super) fn gathered(pairs: impl Iterator<Item = (Block, Block)> + Clone, count: usize) -> Edges {
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
