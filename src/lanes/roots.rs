//! What a value is made of that is known only when the kernel runs, and so whether two values have to do with each other.

use hashbrown::HashSet;

use super::cfg::Block;
use super::graph::{Graph, Node, Source};
use super::lattice::Decision;
use crate::parse::ptx::{Reg, Special};

/// Values that are looked at for one; a larger one may be made of anything.
const MOST: usize = 512;

/// Something that nobody knows before the kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    /// A parameter, or what is read where it points to.
    Parameter(u32),
    /// A variable in memory, by its name.
    Variable(u32),
    /// A place in the grid, and the like.
    Special(Special),
    /// A register that nothing wrote.
    Undefined(Reg),
    /// What a call left.
    Result(u32),
}

/// All that a value is made of.
#[derive(Debug)]
pub(super) struct Roots(HashSet<Root>);

impl Roots {
    /// Those of a value, and of what decides which of several values it is; `None` where there is too much to look at.
    pub(super) fn of(graph: &Graph<'_, '_>, decisions: &[Option<Decision>], node: Node) -> Option<Roots> {
        let mut roots = HashSet::new();
        let mut seen = HashSet::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if !seen.insert(node) {
                continue;
            }
            if seen.len() > MOST {
                return None;
            }
            roots.extend(root(graph, node));
            open.extend(graph.inputs(node));
            if let Source::Join(_) = graph.source(node) {
                let deciding = deciding(graph, graph.block(node)).into_iter();
                open.extend(deciding.filter_map(|at| decisions[at as usize]).map(|decision| decision.node));
            }
        }
        Some(Roots(roots))
    }

    /// Whether two values are made of nothing that is the same.
    pub(super) fn are_apart_from(&self, other: &Roots) -> bool {
        self.0.is_disjoint(&other.0)
    }
}

fn root(graph: &Graph<'_, '_>, node: Node) -> Option<Root> {
    match graph.source(node) {
        Source::Parameter(position, _) => Some(Root::Parameter(position)),
        Source::Address(name, _) => Some(Root::Variable(name)),
        Source::Special(Special::Tid(_) | Special::Ntid(_) | Special::WarpSize) => None,
        Source::Special(special) => Some(Root::Special(special)),
        Source::Undefined(register) => Some(Root::Undefined(register)),
        // Whatever else reads nothing that is known here, as a call does, is like nothing but itself.
        Source::Result { instruction, .. } if graph.inputs(node).is_empty() => Some(Root::Result(instruction)),
        _ => None,
    }
}

/// The blocks that decide which way lanes come to a block where ways meet: those that its ways part at and come through, and
/// those that its loop is left from.
fn deciding(graph: &Graph<'_, '_>, meeting: Block) -> Vec<Block> {
    let cfg = graph.cfg();
    let top = cfg.idom(meeting);
    let mut deciding: Vec<Block> = top.into_iter().collect();
    for from in cfg.predecessors(meeting) {
        let up = std::iter::successors(Some(*from), |at| cfg.idom(*at));
        deciding.extend(up.take_while(|at| Some(*at) != top));
    }
    if let Some(one) = cfg.loop_headed_by(meeting) {
        deciding.extend(cfg.loops[one as usize].exits.iter().map(|(from, _)| *from));
    }
    deciding
}
