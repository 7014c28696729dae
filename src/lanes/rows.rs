//! Checks that cut off the end of a row: a comparison of a thread's x, and of no other axis, with what bounds it.

use hashbrown::HashSet;

use super::Shape;
use super::graph::{Graph, Node, Source};
use super::value::LANES;
use crate::parse::ptx::{Cond, Op, Space, Special};

/// Values that are looked at for one check; of a larger one nothing is said.
const MOST: usize = 512;

/// What a value is made of.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    /// `%tid.x`
    x: bool,
    /// `%ctaid.x`
    block: bool,
    /// `%tid.y`, `%tid.z`, or what else tells lanes apart.
    others: bool,
    /// Something from memory.
    loaded: bool,
    /// It was not looked at to the end.
    cut: bool,
}

/// Whether a warp covers several rows of the block.
pub(super) fn has_short_rows(shape: Shape) -> bool {
    (shape.x as usize) < LANES && shape.y * shape.z > 1
}

/// Whether the predicate `node` holds such a comparison, alone or joined with others.
#[must_use]
pub fn checks_x(graph: &Graph<'_, '_>, node: Node) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if !seen.insert(node) || seen.len() > MOST {
            continue;
        }
        let Source::Result { instruction, .. } = graph.source(node) else { continue };
        let inputs = graph.inputs(node);
        let instruction = &graph.code().instructions[instruction as usize];
        match (instruction.op, inputs) {
            (Op::Setp, [one, two, joined @ ..]) => {
                let (one, two) = (made(graph, *one), made(graph, *two));
                if is_order(instruction.cond) && (cuts_off(one, two) || cuts_off(two, one)) {
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

/// Whether a comparison parts a row in two: one place of it that is told from all others is no end.
fn is_order(cond: Cond) -> bool {
    !matches!(cond, Cond::Eq | Cond::Ne | Cond::Equ | Cond::Neu)
}

/// Whether a place in a row of the grid is compared with a bound that is the same for all threads. A place in the block
/// alone is compared for other reasons, as in a reduction.
fn cuts_off(place: Made, bound: Made) -> bool {
    let is_place = place.x && place.block && !place.others && !place.loaded && !place.cut;
    is_place && !bound.x && !bound.others && !bound.cut
}

fn made(graph: &Graph<'_, '_>, node: Node) -> Made {
    let mut made = Made::default();
    let mut seen = HashSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if !seen.insert(node) {
            continue;
        }
        if seen.len() > MOST {
            made.cut = true;
            break;
        }
        match graph.source(node) {
            Source::Special(Special::Tid(0)) => made.x = true,
            Source::Special(Special::Ctaid(0)) => made.block = true,
            Source::Special(Special::Ntid(_) | Special::Ctaid(_) | Special::Nctaid(_) | Special::WarpSize) => {}
            Source::Special(_) => made.others = true,
            Source::Result { instruction, .. } => {
                let one = &graph.code().instructions[instruction as usize];
                if matches!(one.op, Op::Ld | Op::Atom | Op::Fetch | Op::Call | Op::Shfl) {
                    // What is loaded is not followed; parameters are the same for all threads.
                    made.loaded |= one.space != Space::Param;
                } else {
                    open.extend(graph.inputs(node));
                }
            }
            _ => open.extend(graph.inputs(node)),
        }
    }
    made
}
