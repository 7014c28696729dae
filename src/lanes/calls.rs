//! What functions pass to those that they call, and what callers have to know of those.

use super::barriers::Barriers;
use super::cfg::{Block, Cfg};
use super::cost::{Callee, Callees, Costs};
use super::eval::{Arguments, Evaluator};
use super::graph::{Graph, Node};
use crate::parse::ptx::{Code, Op, Operand, Space};

/// What a function passes to another one.
#[derive(Debug, Clone)]
pub struct Call {
    /// The callee's name: an index of [`Code::names`].
    pub callee: u32,
    /// What it passes.
    pub arguments: Arguments,
}

/// A call, and where the values that it passes come from.
pub(super) struct Passed {
    callee: u32,
    block: Block,
    arguments: Vec<(u32, Node)>,
}

impl Passed {
    /// The call with the values that it passes.
    pub(super) fn evaluated(&self, by_index: &mut Evaluator<'_, '_, '_>, by_data: &mut Evaluator<'_, '_, '_>) -> Call {
        let mut arguments = Arguments::default();
        for (position, node) in &self.arguments {
            let index = by_index.value_at(*node, self.block);
            // What cannot be followed stays unknown.
            if let (Ok(index), Ok(data)) = (index, by_data.value_at(*node, self.block)) {
                arguments.by_index.insert(*position, index);
                arguments.by_data.insert(*position, data);
            }
        }
        Call { callee: self.callee, arguments }
    }
}

/// The calls of the functions that `follows` holds for, with the stores to their parameters, which stand in the same block.
pub(super) fn passed(
    code: &Code<'_>,
    cfg: &Cfg,
    graph: &mut Graph<'_, '_>,
    follows: &dyn Fn(&[u8]) -> bool,
) -> Option<Vec<Passed>> {
    let mut calls = Vec::new();
    for (at, one) in (0_u32..).zip(&code.instructions) {
        let [Operand::Symbol(callee, _), names @ ..] = code.sources(one) else { continue };
        let block = cfg.block_of[at as usize];
        if one.op != Op::Call || !follows(code.names[*callee as usize]) || !cfg.is_reached(block) {
            continue;
        }
        let mut arguments = Vec::new();
        for (position, name) in (0..).zip(names) {
            let stores = (cfg.starts[block as usize]..at).rev().map(|at| (at, &code.instructions[at as usize]));
            let mut stores = stores.filter(|(_, one)| one.op == Op::St && one.space == Space::Param);
            let store = stores.find_map(|(at, one)| match code.sources(one) {
                [to, Operand::Register(register)] if to == name => Some((at, *register)),
                _ => None,
            });
            if let Some((at, register)) = store {
                arguments.push((position, graph.read(register, at).ok()?));
            }
        }
        calls.push(Passed { callee: *callee, block, arguments });
    }
    Some(calls)
}

/// What callers of a function have to know of its code: what it weighs, loops counted, and whether it comes to a barrier for
/// the whole block whatever it is called with. `callees` tells of those that it calls itself.
#[must_use]
pub fn callee(code: &Code<'_>, callees: &Callees<'_>) -> Option<Callee> {
    let cfg = Cfg::new(code)?;
    let weight = Costs::new(code, &cfg, &|_| None).whole();
    let barriers = Barriers::find(code, &cfg, callees);
    let always = std::iter::successors(Some(0), |block| Some(cfg.ipdom(*block)).filter(|next| *next < cfg.end()));
    let waits = always.into_iter().any(|block| barriers.blocks.contains_key(&block));
    Some(Callee { weight, waits })
}
