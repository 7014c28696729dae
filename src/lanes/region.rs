//! What lies between the place where ways part and the place where they meet.

use std::rc::Rc;

use hashbrown::HashMap;

use super::cfg::{Block, Cfg};

/// Blocks of one region at most: what is larger is not followed.
const MOST: usize = 160;

/// The ways to a block.
#[derive(Debug, PartialEq, Eq)]
pub struct Region {
    /// Where they part.
    pub root: Block,
    /// The blocks between, in reverse postorder, without the root and the block itself.
    pub blocks: Vec<Block>,
}

/// Regions that were asked for.
#[derive(Debug, Default)]
pub struct Regions {
    known: HashMap<(Block, Block, bool), Option<Rc<Region>>>,
}

impl Regions {
    /// The ways from the immediate dominator of `block` to it, not counting jumps back to it. `None` where there are too
    /// many, or where a cycle with several ways in lies between.
    pub fn before(&mut self, cfg: &Cfg, block: Block) -> Option<Rc<Region>> {
        let root = cfg.idom(block)?;
        let region = || {
            let outside = cfg.predecessors(block).iter().copied().filter(|from| !cfg.is_back_edge(*from, block));
            find(cfg, root, block, outside)
        };
        self.known.entry((root, block, false)).or_insert_with(|| region().map(Rc::new)).clone()
    }

    /// The ways through a loop: from its header to its latches.
    pub fn through(&mut self, cfg: &Cfg, one: u32) -> Option<Rc<Region>> {
        let header = cfg.loops[one as usize].header;
        let region = || find(cfg, header, header, cfg.loops[one as usize].latches.iter().copied());
        self.known.entry((header, header, true)).or_insert_with(|| region().map(Rc::new)).clone()
    }
}

fn find(cfg: &Cfg, root: Block, block: Block, from: impl Iterator<Item = Block>) -> Option<Region> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut work: Vec<Block> = from.filter(|from| cfg.is_reached(*from)).collect();
    while let Some(here) = work.pop() {
        if here == root || here == block || blocks.contains(&here) {
            continue;
        }
        if blocks.len() == MOST || cfg.is_tangled(here) {
            return None;
        }
        blocks.push(here);
        let before = cfg.predecessors(here).iter().copied();
        work.extend(before.filter(|from| cfg.is_reached(*from) && !cfg.is_back_edge(*from, here)));
    }
    blocks.sort_unstable_by_key(|block| cfg.order(*block));
    Some(Region { root, blocks })
}
