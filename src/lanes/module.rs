//! All functions of a PTX module: kernels first, and then what they call, with what they pass.

use hashbrown::HashMap;
use rayon::prelude::*;

use super::Shape;
use super::agree::{Among, agreed};
use super::branch::Branch;
use super::budget::Budget;
use super::calls::{Call, callee};
use super::cost::Callee;
use super::eval::Arguments;
use super::function;
use super::guards::told_at_loop;
use super::hints::Hints;
use super::task::{Task, Which};
use super::verdict::{Advice, Judgement};
use crate::model::{Function, Kind, Module, Names};
use crate::parse::ptx::{Body, Code, Locations};

/// What tells the block that a function is looked at in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// A bound of its threads.
    Bound,
    /// Launches, and not in all dimensions.
    Partly,
    /// Launches that may be of an overload.
    Perhaps,
    /// A launch, an attribute, or the user.
    Fully,
}

/// The blocks that a kernel is looked at in.
#[derive(Debug, Clone, PartialEq)]
pub struct Shapes {
    /// One that is known, or is assumed; or several, of which one may be the kernel's.
    pub all: Vec<Shape>,
    /// Whether it is one: told, or the usual one.
    pub known: bool,
    /// Whether its size is assumed, so that what the code says of it counts.
    pub assumed: bool,
    /// What tells it; the rest is assumed.
    pub told: Told,
    /// The dimensions that launches tell, where that is a part.
    pub part: [Option<u32>; 3],
}

/// What one call passes to a function, and the block that it is called in.
struct Passed {
    shape: Shape,
    told: Told,
    arguments: Arguments,
}

/// What was found out about a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    /// The function, as an index of the module's.
    pub function: usize,
    /// Its conditional branches, in order.
    pub branches: Vec<Branch>,
    /// For each of them the source line that its code comes from, where the compiler says.
    pub locations: Vec<Option<Locations>>,
    /// The shapes that it was looked at in.
    pub shapes: Shapes,
    /// Whether there is too much to follow, so that nothing is said of any branch.
    pub not_followed: bool,
}

/// Calls of one function that are told apart; where there are more, what they pass is unknown.
const CALLERS: usize = 4;

/// Functions of sources that share what may be computed for a module, at least.
const OF_SOURCES: usize = 20;

/// Whether a module is done before threads would be there for it.
pub(super) fn is_small(module: &Module) -> bool {
    const SMALL: usize = 32 * 1024;
    module.text.len() <= SMALL
}

/// Looks at the functions of a module that `shapes` gives a shape for.
#[must_use]
pub fn look(
    module: &Module,
    names: &Names,
    shapes: &(dyn Fn(usize) -> Option<Shapes> + Sync),
    which: Which,
) -> Vec<Looked> {
    let plan = Plan::new(module, names);
    let mut found: Vec<Option<Looked>> = vec![None; module.functions.len()];
    let mut contexts: HashMap<usize, Vec<Passed>> = HashMap::new();
    for round in plan.rounds() {
        let look = |body: &mut Body, at: &usize| {
            let passed = contexts.get(at).map_or(&[][..], Vec::as_slice);
            plan.look(*at, shapes, passed, which, body)
        };
        let looked: Vec<_> = if is_small(module) {
            let mut body = Body::default();
            round.iter().map(|at| look(&mut body, at)).collect()
        } else {
            round.par_iter().map_init(Body::default, look).collect()
        };
        // Each function is looked at once: what it was passed is not asked for again.
        round.iter().for_each(|at| drop(contexts.remove(at)));
        for (looked, calls) in looked.into_iter().flatten() {
            for (callee, passed) in calls {
                let known = contexts.entry(callee).or_default();
                // One more shows that there are too many; what the others pass is not kept.
                if known.len() <= CALLERS {
                    known.push(passed);
                }
            }
            let at = looked.function;
            found[at] = Some(looked);
        }
    }
    found.into_iter().flatten().collect()
}

/// Who calls whom.
struct Plan<'m> {
    module: &'m Module,
    by_name: HashMap<&'m [u8], usize>,
    callees: HashMap<&'m [u8], Callee>,
    /// For each function those of the module that it calls.
    calls: Vec<Vec<usize>>,
    /// Functions with branches.
    branching: usize,
}

impl<'m> Plan<'m> {
    fn new(module: &'m Module, names: &'m Names) -> Plan<'m> {
        let branching = module.functions.iter().filter(|one| one.branches > 0).count();
        let callable = (0..).zip(&module.functions).filter(|(_, one)| one.kind == Kind::Function);
        let by_name: HashMap<&[u8], usize> = callable.map(|(at, one)| (names.get(one.name), at)).collect();
        let mut plan = Plan { module, by_name, callees: HashMap::new(), calls: Vec::new(), branching };
        plan.calls = vec![Vec::new(); module.functions.len()];
        if plan.by_name.is_empty() {
            return plan;
        }
        let mut body = Body::default();
        for (at, one) in module.functions.iter().enumerate() {
            if one.calls == 0 && one.kind == Kind::Entry {
                continue;
            }
            let code = read(module, one, &mut body);
            // Those that it calls itself mostly stand before it.
            let before = |name: &[u8]| plan.callees.get(name).copied();
            if one.kind == Kind::Function
                && let Some(callee) = callee(&code, &before)
            {
                plan.callees.insert(names.get(one.name), callee);
            }
            let mut callees: Vec<usize> = code.callees().filter_map(|name| plan.by_name.get(name).copied()).collect();
            callees.sort_unstable();
            callees.dedup();
            plan.calls[at] = callees;
        }
        plan
    }

    /// The functions in an order in which callers come first: each list may be looked at at once. Functions that call each
    /// other in a circle come last.
    fn rounds(&self) -> Vec<Vec<usize>> {
        let functions = &self.module.functions;
        let mut waiting = vec![0_usize; functions.len()];
        for callee in self.calls.iter().flatten() {
            waiting[*callee] += 1;
        }
        let mut rounds = Vec::new();
        let mut ready: Vec<usize> = (0..functions.len()).filter(|at| waiting[*at] == 0).collect();
        let mut done = vec![false; functions.len()];
        while !ready.is_empty() {
            let mut next = Vec::new();
            for at in &ready {
                done[*at] = true;
                for callee in &self.calls[*at] {
                    waiting[*callee] -= 1;
                    if waiting[*callee] == 0 {
                        next.push(*callee);
                    }
                }
            }
            rounds.push(std::mem::replace(&mut ready, next));
        }
        rounds.push((0..functions.len()).filter(|at| !done[*at]).collect());
        rounds
    }

    fn look(
        &self,
        at: usize,
        shapes: &(dyn Fn(usize) -> Option<Shapes> + Sync),
        passed: &[Passed],
        which: Which,
        body: &mut Body,
    ) -> Option<(Looked, Vec<(usize, Passed)>)> {
        let one = &self.module.functions[at];
        let follows = |name: &[u8]| self.by_name.get(name).is_some_and(|at| self.module.functions[*at].branches > 0);
        let passes_on = self.calls[at].iter().any(|callee| self.module.functions[*callee].branches > 0);
        if one.branches == 0 && !passes_on {
            return None;
        }
        let mut shapes = shapes(at)?;
        let code = read(self.module, one, body);
        if shapes.assumed
            && let Some(all) = Hints::of(&code).refine(&shapes.all)
        {
            shapes = Shapes { all, known: true, ..shapes };
        }
        let unknown = Arguments::default();
        let called = one.kind == Kind::Function && (1..=CALLERS).contains(&passed.len());
        let ways: Vec<(Shape, &Arguments)> = if called {
            shapes.told = passed.iter().map(|one| one.told).min().unwrap_or(shapes.told);
            passed.iter().map(|one| (Shape { is_entry: false, ..one.shape }, &one.arguments)).collect()
        } else {
            shapes.all.iter().map(|shape| (*shape, &unknown)).collect()
        };
        let is_source = self.module.positions().is_some();
        // A tree of sources has many files, of which each is a module.
        let functions = if is_source { self.branching.max(OF_SOURCES) } else { self.branching };
        let mut calls = Vec::new();
        let mut found = Vec::new();
        let mut not_followed = false;
        for (shape, arguments) in &ways {
            let task = Task {
                code: &code,
                shape: *shape,
                shape_known: shapes.known || ways.len() > 1 || called,
                arguments,
                budget: Budget::of(one.body.len(), functions),
                which,
                is_source,
                callees: &|name| self.callees.get(name).copied(),
            };
            let looked = function::branches(&task, &follows);
            let callees = looked.calls.into_iter().filter_map(|Call { callee, arguments }| {
                let at = *self.by_name.get(code.names[callee as usize])?;
                Some((at, Passed { shape: *shape, told: shapes.told, arguments }))
            });
            calls.extend(callees);
            found.push(looked.branches);
            not_followed |= looked.not_followed;
            // What is silent in the shape that parts warps most is not looked at in the others; each launch counts.
            if !looked.reports && (called || shapes.told != Told::Fully) {
                break;
            }
        }
        let among = match (called, shapes.told) {
            (true, _) => Among::Callers,
            (false, Told::Fully) => Among::Launches,
            (false, _) => Among::Shapes,
        };
        let mut branches = agreed(found, among);
        told_at_loop(&mut branches);
        if is_source {
            branches.iter_mut().for_each(super::source::settle_shapes);
        }
        let statements: Vec<u32> = branches.iter().map(|branch| branch.statement).collect();
        let locations =
            Locations::of(&self.module.text, body, &statements, &|file| self.module.is_header_of_toolkit(file));
        super::left_over::settle(&mut branches, &locations);
        for (branch, locations) in branches.iter_mut().zip(&locations) {
            if let (Some(judgement), Some(locations)) = (&mut branch.judgement, locations) {
                *judgement = self.of_user(*judgement, locations);
            }
        }
        Some((
            Looked { function: at, branches, locations, shapes, not_followed: not_followed && one.branches > 0 },
            calls,
        ))
    }
}

impl Plan<'_> {
    /// A judgement as quiet as whoever cannot change the code wants it: silent where all of it is a library's, and no more
    /// than a note where a line of the user's calls it.
    fn of_user(&self, judgement: Judgement, locations: &Locations) -> Judgement {
        let is_library = |file: u32| self.module.is_header_of_toolkit(file);
        if judgement.advice == Advice::Silent || !is_library(locations.inner.file) {
            return judgement;
        }
        let quiet = if judgement.advice == Advice::Note || is_library(locations.outer.file) {
            Advice::Silent
        } else {
            Advice::Note
        };
        let reason = if quiet == Advice::Silent { "the code is a library's" } else { judgement.reason };
        Judgement { advice: quiet, reason, ..judgement }
    }
}

/// The instructions of a function; `body` is a buffer, which holds its statements then.
pub(super) fn read<'m>(module: &'m Module, one: &'m Function, body: &mut Body) -> Code<'m> {
    Code::read(&module.text, one.body.start, &module.text[one.parameters.clone()], &one.flow, body)
}

/// Whether the function reads its place in the block in more than x.
#[must_use]
pub fn dimensions(module: &Module, one: &Function) -> u8 {
    let body = &module.text[one.body.clone()];
    let reads = |name: &[u8]| memchr::memmem::find(body, name).is_some();
    match (reads(b"%tid.z"), reads(b"%tid.y")) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    }
}
