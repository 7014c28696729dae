//! Exchanges within a warp that nothing synchronises: `shfl` and `vote` in the form of before sm_70, and steps through
//! volatile shared memory of code that one warp runs.

use memchr::memmem;
use rayon::prelude::*;

use super::cfg::{Block, Cfg};
use super::graph::{Graph, Source};
use super::module::is_small;
use crate::model::{Function, Module};
use crate::parse::ptx::{Body, Code, Cond, Instruction, Locations, Op, Operand, Reg, Space, Special, What};

/// An exchange, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// How.
    pub by: By,
    /// Its byte in the module's text.
    pub at: u32,
    /// The source line of its code, where the compiler says.
    pub locations: Option<Locations>,
    /// How many there are of the source line, or steps of the chain.
    pub count: u32,
}

/// How values go from lane to lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// `shfl`
    Shuffle,
    /// `vote`
    Vote,
    /// Volatile shared memory.
    Memory,
}

impl By {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Shuffle => "shfl",
            By::Vote => "vote",
            By::Memory => "volatile-shared-memory",
        }
    }
}

/// Steps through memory from which it is a chain: one store that another lane reads may be meant otherwise.
const CHAIN: u32 = 2;

/// Finds them in those functions of a module that `looks` holds for: the function, an index of the module's, and what it does.
#[must_use]
pub fn of_module(module: &Module, looks: &(dyn Fn(&Function) -> bool + Sync)) -> Vec<(u32, Exchange)> {
    let look = |body: &mut Body, one: &Function| if looks(one) { exchanges(module, one, body) } else { Vec::new() };
    let found: Vec<Vec<Exchange>> = if is_small(module) {
        let mut body = Body::default();
        module.functions.iter().map(|one| look(&mut body, one)).collect()
    } else {
        module.functions.par_iter().map_init(Body::default, look).collect()
    };
    (0..).zip(found).flat_map(|(at, found)| found.into_iter().map(move |one| (at, one))).collect()
}

/// Finds them in a function, in order; `body` is a buffer.
#[must_use]
pub fn exchanges(module: &Module, one: &Function, body: &mut Body) -> Vec<Exchange> {
    let text = &module.text[one.body.clone()];
    let has_old =
        |word: &str, sync: &str| memmem::find_iter(text, word).any(|at| !text[at..].starts_with(sync.as_bytes()));
    let old = has_old("shfl.", "shfl.sync") || has_old("vote.", "vote.sync");
    let volatile =
        memmem::find(text, b"st.volatile.shared").is_some() && memmem::find(text, b"ld.volatile.shared").is_some();
    if !(old || volatile) {
        return Vec::new();
    }
    body.read_again(&module.text, one.body.start);
    let mut found: Vec<(u32, u32, By, u32)> = Vec::new();
    if old {
        found.extend(old_forms(module, body).map(|(statement, at, by)| (statement, at, by, 1)));
    }
    if volatile {
        let code = Code::read(&module.text, one.body.start, &module.text[one.parameters.clone()], &one.flow, body);
        // A source says so where it reduces within a warp.
        let is_source = module.positions().is_some();
        let is_warp = is_source || one.bounds.required.is_some_and(|block| block.threads() <= LANES);
        found.extend(chains(module, &code, is_warp));
    }
    found.sort_unstable_by_key(|(statement, ..)| *statement);
    let statements: Vec<u32> = found.iter().map(|(statement, ..)| *statement).collect();
    let locations = Locations::of(&module.text, body, &statements, &|file| module.is_header_of_toolkit(file));
    let mut exchanges: Vec<Exchange> = Vec::new();
    let word = |at: u32| match module.positions() {
        Some(positions) => positions.exchange(at).unwrap_or_default(),
        None => opcode(&module.text[at as usize..]).unwrap_or_default(),
    };
    for ((_, at, by, count), locations) in found.into_iter().zip(locations) {
        let line = |locations: Option<Locations>| locations.map(|one| (one.outer.file, one.outer.line));
        // What is unrolled stands at one line of the source.
        let is_alike = |other: &Exchange| by != By::Memory && other.by == by && word(other.at) == word(at);
        let near = exchanges.iter_mut().rev().take(NEAR);
        let same = near.into_iter().find(|other| is_alike(other) && line(other.locations) == line(locations));
        match same {
            Some(other) => other.count += count,
            None => exchanges.push(Exchange { by, at, locations, count }),
        }
    }
    exchanges
}

/// Exchanges before one that may stand at its line.
const NEAR: usize = 8;

/// Lanes of a warp.
const LANES: u32 = 32;

/// `shfl` and `vote` without `.sync`: the statement, its byte, and which.
fn old_forms<'b>(module: &'b Module, body: &'b Body) -> impl Iterator<Item = (u32, u32, By)> + 'b {
    (0..).zip(&body.statements).filter_map(|(number, statement)| {
        let by = match statement.what {
            What::Instruction(Op::Shfl) => By::Shuffle,
            What::Instruction(Op::Vote) => By::Vote,
            _ => return None,
        };
        let opcode = opcode(&module.text[statement.start as usize..statement.end as usize])?;
        let is_old = memmem::find(opcode, b".sync").is_none();
        is_old.then_some((number, statement.start, by))
    })
}

/// The word of a `shfl` or `vote` with its modifiers; `statement` may go on behind it.
fn opcode(statement: &[u8]) -> Option<&[u8]> {
    let near = &statement[..statement.len().min(LONGEST)];
    // The guard has no dot.
    let at = [&b"shfl."[..], b"vote."].into_iter().filter_map(|word| memmem::find(near, word)).min()?;
    let length = near[at..].iter().position(u8::is_ascii_whitespace).unwrap_or(near.len() - at);
    Some(&near[at..at + length])
}

/// Longest statement of one that is looked at, in bytes.
const LONGEST: usize = 256;

/// Chains of stores that other lanes read, in blocks that one warp runs: the first read of each.
fn chains(module: &Module, code: &Code<'_>, is_warp: bool) -> Vec<(u32, u32, By, u32)> {
    let Some(cfg) = Cfg::new(code) else { return Vec::new() };
    let mut graph = Graph::new(code, &cfg);
    let mut found = Vec::new();
    for block in (0..cfg.end()).filter(|block| cfg.is_reached(*block)) {
        if let Some((first, steps)) = chain(module, code, &cfg, block)
            && (is_warp || runs_one_warp(code, &cfg, &mut graph, block))
        {
            found.push((first.statement, first.at, By::Memory, steps));
        }
    }
    found
}

/// The first read of what another lane stored, and how many steps of store and read there are.
fn chain<'c>(module: &Module, code: &'c Code<'_>, cfg: &Cfg, block: Block) -> Option<(&'c Instruction, u32)> {
    let mut stored: Option<Operand> = None;
    let (mut first, mut steps) = (None, 0);
    for at in cfg.instructions(block) {
        let one = &code.instructions[at as usize];
        match one.op {
            // What waits for the lanes of a mask brings them together too.
            op if matches!(op, Op::Bar | Op::Fence | Op::Call) || one.mods.is_sync() => stored = None,
            Op::St if is_volatile(module, one) => stored = code.sources(one).first().copied(),
            Op::Ld if is_volatile(module, one) => {
                let read = code.sources(one).first();
                if stored.zip(read).is_some_and(|(stored, read)| is_beside(stored, *read)) {
                    first = first.or(Some(one));
                    steps += 1;
                    // The other operand of the same step is no step.
                    stored = None;
                }
            }
            _ => {}
        }
    }
    first.zip((steps >= CHAIN).then_some(steps))
}

fn is_volatile(module: &Module, one: &Instruction) -> bool {
    let text = &module.text[one.at as usize..];
    let opcode = &text[..text.iter().position(|byte| *byte == b';').unwrap_or(text.len())];
    one.space == Space::Shared && one.mods.is_volatile() && memmem::find(opcode, b".volatile").is_some()
}

/// Whether two places have one base and another distance.
fn is_beside(stored: Operand, read: Operand) -> bool {
    match (stored, read) {
        (Operand::Memory(one, a), Operand::Memory(two, b)) => one == two && a != b,
        _ => false,
    }
}

/// Dominators that are looked at for the check that leaves one warp.
const ABOVE: usize = 16;

/// Whether only threads below 32 come to a block: a branch above compares `%tid.x`.
fn runs_one_warp(code: &Code<'_>, cfg: &Cfg, graph: &mut Graph<'_, '_>, block: Block) -> bool {
    std::iter::successors(cfg.idom(block), |above| cfg.idom(*above)).take(ABOVE).any(|above| {
        let at = cfg.last(above);
        let last = &code.instructions[at as usize];
        let [taken, other] = *cfg.successors(above) else { return false };
        let (Op::Bra, Some(guard)) = (last.op, last.guard) else { return false };
        let leads = |to: Block| to != cfg.end() && cfg.dominates(to, block) && cfg.predecessors(to).len() == 1;
        let holds = match (leads(taken), leads(other)) {
            (true, false) => !guard.negated,
            (false, true) => guard.negated,
            _ => return false,
        };
        below_warp(code, graph, guard.register, at, holds)
    })
}

/// Whether a predicate that `holds`, or does not, leaves threads below 32 alone.
fn below_warp(code: &Code<'_>, graph: &mut Graph<'_, '_>, predicate: Reg, at: u32, holds: bool) -> bool {
    let Ok(node) = graph.read(predicate, at) else { return false };
    let Source::Result { instruction, .. } = graph.source(node) else { return false };
    let one = &code.instructions[instruction as usize];
    let ([thread, bound], Op::Setp) = (graph.inputs(node), one.op) else { return false };
    let Source::Constant(bound) = graph.source(*bound) else { return false };
    // The first thread that the comparison tells from those below it.
    let limit = match (one.cond, holds) {
        (Cond::Lt | Cond::Lo, true) | (Cond::Ge | Cond::Hs, false) => bound,
        (Cond::Le | Cond::Ls, true) | (Cond::Gt | Cond::Hi, false) => bound.saturating_add(1),
        _ => return false,
    };
    limit <= u64::from(LANES) && is_thread(code, graph, *thread)
}

fn is_thread(code: &Code<'_>, graph: &Graph<'_, '_>, mut node: super::graph::Node) -> bool {
    for _ in 0..8 {
        match (graph.source(node), graph.inputs(node)) {
            (Source::Special(Special::Tid(0)), _) => return true,
            (Source::Result { instruction, .. }, [from])
                if matches!(code.instructions[instruction as usize].op, Op::Mov | Op::Cvt) =>
            {
                node = *from;
            }
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Report;
    use crate::parse::ptx::read_ptx;

    fn found(body: &str) -> Vec<(By, u32)> {
        let text = format!(
            ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n{body}\nret;\n}}\n"
        );
        let mut report = Report::default();
        read_ptx(text.into_bytes(), "k.ptx", &mut report).expect("PTX");
        let module = &report.modules[0];
        let all = exchanges(module, &module.functions[0], &mut Body::default());
        all.into_iter().map(|one| (one.by, one.count)).collect()
    }

    #[test]
    fn the_forms_of_before_sm_70_are_found_and_those_with_a_mask_are_not() {
        assert_eq!(
            found("shfl.down.b32 %r1, %r2, 1, 31;\n@%p1 vote.all.pred %p2, %p3;"),
            [(By::Shuffle, 1), (By::Vote, 1)]
        );
        assert_eq!(found("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;\nvote.sync.any.pred %p2, %p3, -1;"), []);
    }

    const STEP: &str = "ld.volatile.shared.f32 %f1, [%r1+64];\nld.volatile.shared.f32 %f2, [%r1];\n\
                        add.f32 %f3, %f1, %f2;\nst.volatile.shared.f32 [%r1], %f3;\n";

    fn reduction(guard: &str, between: &str) -> String {
        let steps = [STEP; 4].join(between);
        format!("mov.u32 %r9, %tid.x;\n{guard}\n@%p1 bra $out;\n{steps}$out:")
    }

    #[test]
    fn a_chain_through_volatile_memory_counts_where_one_warp_runs_it() {
        for guard in ["setp.gt.u32 %p1, %r9, 31;", "setp.ge.s32 %p1, %r9, 32;"] {
            assert_eq!(found(&reduction(guard, "")), [(By::Memory, 3)], "{guard}");
        }
        for guard in ["setp.gt.u32 %p1, %r9, 63;", "setp.lt.u32 %p1, %r9, 32;", "setp.gt.u32 %p1, %r8, 31;"] {
            assert_eq!(found(&reduction(guard, "")), [], "{guard}");
        }
    }

    #[test]
    fn what_is_synchronised_between_is_no_chain() {
        for between in [
            "bar.warp.sync -1;\n",
            "bar.sync 0;\n",
            "fence.acq_rel.cta;\n",
            "membar.cta;\n",
            "vote.sync.all.pred %p2, %p3, -1;\n",
        ] {
            assert_eq!(found(&reduction("setp.gt.u32 %p1, %r9, 31;", between)), [], "{between}");
        }
        assert_eq!(found(&reduction("setp.gt.u32 %p1, %r9, 31;", "").replace(".volatile", "")), []);
    }
}
