//! Small functions as text, for tests.

use super::Shape;
use super::branch::Branch;
use super::budget::Budget;
use super::cfg::Cfg;
use super::decisions::decisions;
use super::eval::{Arguments, Evaluator, Given, Mode};
use super::function::branches;
use super::graph::Graph;
use super::lattice::solve;
use super::region::Regions;
use super::task::{Task, Which};
use super::uses::Uses;
use super::value::{ALL, Value};
use crate::model::Report;
use crate::parse::ptx::{Body, Code, Op, Operand, read_ptx};

/// A block of 256 threads in a row.
pub(super) const SHAPE: Shape = Shape { x: 256, y: 1, z: 1, is_entry: true };

/// Runs `f` on the code of a function whose statements are `text`.
pub(super) fn with_code<T>(text: &str, f: impl FnOnce(&Code<'_>) -> T) -> T {
    let head = ".version 8.5\n.target sm_80\n.entry k(.param .u64 .ptr a, .param .u32 n)";
    let registers = ".reg .pred %p<9>;\n.reg .b32 %r<99>;\n.reg .b64 %rd<9>;";
    let mut report = Report::default();
    let text = format!("{head}\n{{\n{registers}\n{text}\n}}");
    read_ptx(text.into_bytes(), "k.ptx", &mut report).unwrap_or_else(|fault| panic!("{fault:?}"));
    let module = &report.modules[0];
    f(&super::module::read(module, &module.functions[0], &mut Body::default()))
}

/// The same with its control flow.
pub(super) fn with_cfg<T>(text: &str, f: impl FnOnce(&Code<'_>, &Cfg) -> T) -> T {
    with_code(text, |code| {
        let cfg = Cfg::new(code).expect("a graph");
        f(code, &cfg)
    })
}

/// The block of a function's instruction that is called `op` and is the `nth` of its kind, from 0.
pub(super) fn block_of(code: &Code<'_>, cfg: &Cfg, op: Op, nth: usize) -> u32 {
    let mut all = code.instructions.iter().zip(&cfg.block_of).filter(|(one, _)| one.op == op);
    *all.nth(nth).expect("such an instruction").1
}

/// The values of the operand of the first `popc`, as far as they can be followed.
pub(super) fn evaluated(shape: Shape, mode: Mode, text: &str) -> Option<Value> {
    with_cfg(text, |code, cfg| {
        let mut graph = Graph::new(code, cfg);
        let decisions = decisions(code, cfg, &mut graph).expect("decisions that can be followed");
        let at = code.instructions.iter().position(|one| one.op == Op::Popc).expect("a popc");
        let Some(Operand::Register(register)) = code.sources(&code.instructions[at]).first().copied() else {
            panic!("a register")
        };
        let node = graph.read(register, u32::try_from(at).unwrap_or(0)).expect("it can be followed");
        let mut regions = Regions::default();
        let known = solve(&graph, &decisions, shape, &mut regions);
        let arguments = Arguments::default();
        let uses = Uses::of_code(code);
        let given =
            Given { graph: &graph, decisions: &decisions, known: &known, uses: &uses, arguments: &arguments, shape };
        let mut evaluator = Evaluator::new(&given, regions, mode, ALL);
        evaluator.allow(10_000_000);
        evaluator.value_at(node, cfg.block_of[at]).ok()
    })
}

/// The value of `%r1` at the end of a function of [`SHAPE`].
pub(super) fn value_of(text: &str) -> Value {
    evaluated(SHAPE, Mode::Index, &format!("{text} popc.b32 %r9, %r1; ret;")).expect("a value")
}

/// The same of some threads, in the first environment.
pub(super) fn values_of(text: &str, which: [usize; 4]) -> [u64; 4] {
    let value = value_of(text);
    which.map(|thread| value.at(0, thread))
}

/// The branches of a function, each judged.
pub(super) fn judged(shape: Shape, text: &str) -> Vec<Branch> {
    with_code(text, |code| {
        let task = Task {
            code,
            shape,
            shape_known: true,
            arguments: &Arguments::default(),
            budget: Budget::of(text.len(), 1),
            which: Which::All,
            is_source: false,
            callees: &|_| None,
        };
        branches(&task, &|_| false).branches
    })
}
