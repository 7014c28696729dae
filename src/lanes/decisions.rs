//! What decides the branch of each block of a function: a value, and which way it is read.

use super::cfg::Cfg;
use super::graph::Graph;
use super::lattice::Decision;
use crate::parse::ptx::{Code, Op, Operand};

/// What decides the branch of each block; `None` where that is more than can be followed.
#[must_use]
pub fn decisions(code: &Code<'_>, cfg: &Cfg, graph: &mut Graph<'_, '_>) -> Option<Vec<Option<Decision>>> {
    let mut decisions = vec![None; cfg.end() as usize];
    for block in 0..cfg.end() {
        let at = cfg.last(block);
        let last = &code.instructions[at as usize];
        if !cfg.is_reached(block) {
            continue;
        }
        decisions[block as usize] = match (last.op, last.guard) {
            (Op::Brx, _) => match code.sources(last).first() {
                Some(Operand::Register(register)) => {
                    let node = graph.read(*register, at).ok()?;
                    Some(Decision { node, negated: false, is_index: true })
                }
                _ => None,
            },
            (op, Some(guard)) if op.ends_block() => {
                let node = graph.read(guard.register, at).ok()?;
                Some(Decision { node, negated: guard.negated, is_index: false })
            }
            _ => None,
        };
    }
    Some(decisions)
}
