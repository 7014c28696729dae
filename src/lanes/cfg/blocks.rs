//! Where the blocks of a function begin and lead, and which of them only a failure comes to.

use super::edges::Edges;
use super::{Block, NONE, narrow};
use crate::model::{Flow, Jump, Way};
use crate::parse::ptx::{Code, Instruction, Op, Operand};

/// Ways out of branch tables at most, beside what the size of a function allows: tables may be used many times.
const TABLES: usize = 1 << 16;

/// The first instructions of all blocks, and the number of instructions.
pub(super) fn starts(flow: &Flow) -> Option<Vec<u32>> {
    let count = flow.instructions as usize;
    let mut leads = vec![false; count + 1];
    leads[0] = true;
    let mut ways = 0;
    for jump in &flow.jumps {
        leads[jump.at as usize + 1] = true;
        match jump.way {
            Way::To(target) => leads[target as usize] = true,
            Way::Table(table) => {
                let targets = flow.table(table);
                targets.iter().for_each(|target| leads[*target as usize] = true);
                ways += targets.len();
            }
            Way::Out => {}
        }
        if ways > TABLES + 8 * count {
            return None;
        }
    }
    let mut starts: Vec<u32> = (0..count).filter(|at| leads[*at]).map(narrow).collect();
    starts.push(narrow(count));
    (count > 0).then_some(starts)
}

/// The blocks that each block leads to.
pub(super) fn successors(flow: &Flow, starts: &[u32], block_of: &[Block]) -> Edges {
    let end = narrow(starts.len() - 1);
    let block_at = |instruction: u32| block_of.get(instruction as usize).copied().unwrap_or(end);
    let mut edges = Edges { starts: Vec::with_capacity(starts.len() + 1), ends: Vec::with_capacity(starts.len() * 2) };
    edges.starts.push(0);
    let mut from = vec![NONE; starts.len()];
    // Every jump ends a block.
    let mut jumps = flow.jumps.iter().peekable();
    for block in 0..end {
        let next = block + 1;
        match jumps.next_if(|jump| jump.at + 1 == starts[next as usize]) {
            None => edges.ends.push(next),
            Some(Jump { guarded, way, .. }) => {
                match *way {
                    Way::To(target) => edges.ends.push(block_at(target)),
                    Way::Table(table) => {
                        for target in flow.table(table) {
                            let target = block_at(*target);
                            if std::mem::replace(&mut from[target as usize], block) != block {
                                edges.ends.push(target);
                            }
                        }
                    }
                    Way::Out => edges.ends.push(end),
                }
                if *guarded {
                    edges.ends.push(next);
                }
            }
        }
        edges.starts.push(narrow(edges.ends.len()));
    }
    // The end has no successors.
    edges.starts.push(narrow(edges.ends.len()));
    edges
}

/// The instructions that stop the kernel with an error.
pub(super) fn failing(code: &Code<'_>) -> Vec<u32> {
    let fails = |one: &Instruction| match (one.op, code.sources(one).first()) {
        (Op::Trap, _) => one.guard.is_none(),
        (Op::Call, Some(Operand::Symbol(name, _))) => FAILING.contains(&code.names[*name as usize]),
        _ => false,
    };
    (0..).zip(&code.instructions).filter(|(_, one)| fails(one)).map(|(at, _)| at).collect()
}

/// The blocks that hold one of these instructions, and those that lead only to such ones.
pub(super) fn cold(failing: &[u32], starts: &[u32], successors: &Edges) -> Vec<bool> {
    if failing.is_empty() {
        return Vec::new();
    }
    let count = starts.len() - 1;
    let mut cold = vec![false; count];
    for at in failing {
        cold[starts.partition_point(|start| start <= at) - 1] = true;
    }
    // Failures lie behind one another in short chains, and mostly in this order.
    for block in (0..count).rev() {
        let to = successors.of(narrow(block));
        cold[block] |= !to.is_empty() && to.iter().all(|to| cold.get(*to as usize).copied().unwrap_or(false));
    }
    cold
}

/// Functions that do not come back (CUDA Programming Guide, "Assertion").
const FAILING: [&[u8]; 2] = [b"__assertfail", b"__assert_fail"];
