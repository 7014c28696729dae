//! A conditional branch of a function: what its control flow tells of it, and what there is to say.

use super::Shape;
use super::cfg::{Block, Cfg};
use super::cost::{Costs, Side};
use super::loops::{leaves, left_loop};
use super::loss::are_light;
use super::source::may_lose_enough;
use super::split::Split;
use super::spread::Spread;
use super::task::Task;
use super::verdict::{Advice, Judgement, Missed, Verdict};
use crate::parse::ptx::Op;

/// One conditional branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Its byte in the module's text.
    pub at: u32,
    /// The block that it ends.
    pub block: Block,
    /// The statement of the body that it is.
    pub statement: u32,
    /// What there is to say; `None` where it could not be followed.
    pub judgement: Option<Judgement>,
    /// How warps part because of the index.
    pub split: Split,
    /// The branch leaves a loop, and this is how far apart lanes do so.
    pub spread: Option<Spread>,
    /// Whether it leaves a loop.
    pub is_loop: bool,
    /// The weight of a turn of that loop, its own block with it.
    pub body: f64,
    /// The innermost loop that it leaves.
    pub leaves: Option<u32>,
    /// The guard before a loop: its line is that of the loop's own branch.
    pub guards: Option<u32>,
    /// The cost of the side that is taken, and of the other; `None` where the function is too large to tell.
    pub sides: Option<(Side, Side)>,
    /// What both sides lead to before the ways meet for good.
    pub shared: Side,
    /// The ways that it leads: 2, or more for a table.
    pub ways: u32,
    /// The ways of all comparisons with constants that it begins together; 0 where it begins none.
    pub dispatches: u32,
    /// The branch that begins the comparisons with constants which this one goes on with, as an index of the list.
    pub chain: Option<u32>,
    /// What becomes of threads that miss the barrier on its side.
    pub missed: Option<Missed>,
    /// The byte of that barrier.
    pub barrier: Option<u32>,
    /// The ways meet only at the end.
    pub to_end: bool,
    /// A barrier stands in a loop whose threads start no more than a step apart, and it decides how many turns they take.
    pub is_strided: bool,
    /// It leaves out threads past the end of a row of the grid, and a row of the block, or of one of them, is shorter than a
    /// warp.
    pub checks_row: bool,
    /// The block that it was looked at in.
    pub shape: Shape,
}

impl Branch {
    /// A block's branch before it is looked at; `None` where the block has none.
    pub(super) fn plain(task: &Task<'_>, cfg: &Cfg, costs: &mut Costs<'_>, block: Block) -> Option<Branch> {
        let last = &task.code.instructions[cfg.last(block) as usize];
        let conditional = last.op == Op::Brx || (last.op.ends_block() && last.guard.is_some());
        if !conditional || !cfg.is_reached(block) {
            return None;
        }
        let successors = cfg.successors(block);
        let sides = match successors {
            [taken, other] => costs.sides(block, *taken, *other),
            _ => None,
        };
        let is_loop = cfg.loop_of(block).is_some_and(|one| leaves(cfg, block, one));
        let inside = match (successors, left_loop(cfg, block), sides) {
            ([taken, _], Some(one), Some(sides)) if cfg.is_in_loop(*taken, one) => sides.taken.weight,
            (_, Some(_), Some(sides)) => sides.other.weight,
            _ => 0.0,
        };
        Some(Branch {
            at: last.at,
            block,
            statement: last.statement,
            judgement: None,
            split: Split::default(),
            spread: None,
            is_loop,
            body: inside + costs.block(block).weight,
            leaves: None,
            guards: None,
            sides: sides.map(|sides| (sides.taken, sides.other)),
            shared: sides.map_or_else(Side::default, |sides| sides.shared),
            dispatches: 0,
            ways: u32::try_from(successors.len()).unwrap_or(u32::MAX),
            chain: None,
            missed: None,
            barrier: None,
            to_end: cfg.ipdom(block) == cfg.end(),
            is_strided: false,
            checks_row: false,
            shape: task.shape,
        })
    }

    /// Whether nothing is to be said of it.
    pub(super) fn is_silent(&self) -> bool {
        self.judgement.is_none_or(|judgement| judgement.advice == Advice::Silent)
    }

    /// Whether a part of the block waits at its barrier.
    pub(super) fn waits(&self) -> bool {
        self.judgement.is_some_and(|one| one.verdict == Verdict::BarrierInDivergent)
    }

    /// Whether some threads do nothing while others do something.
    pub(super) fn leaves_out_threads(&self) -> bool {
        let one_sided = self.sides.is_some_and(|(taken, other)| (taken.weight > 0.0) != (other.weight > 0.0));
        one_sided && !self.is_loop && self.ways == 2
    }

    /// Whether no verdict on it could be worth a word.
    pub(super) fn is_beneath_notice(&self, is_source: bool) -> bool {
        let Some((taken, other)) = self.sides else { return false };
        let light = if is_source { !may_lose_enough(taken, other) } else { are_light(taken, other) };
        light && !self.is_loop && self.missed.is_none() && self.ways == 2
    }
}
