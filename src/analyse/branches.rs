//! The branches of PTX modules: each kernel's, in the block that is known or assumed of it.

use hashbrown::HashMap;
use rayon::prelude::*;

use super::prefer::prefer_compiled;
use super::{BlockSource, Told};
use crate::lanes::Shape;
use crate::lanes::branch::Branch;
use crate::lanes::cost::Traits;
use crate::lanes::module::{self, Looked, Shapes, dimensions, look};
use crate::lanes::task::Which;
use crate::lanes::warp::{Exchange, of_module};
use crate::model::{BlockSize, Function, Kind, Module, NameId, Place, Positions, Quote, Report};
use crate::parse::ptx::Locations;

/// Which branches to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// None: only figures are asked for.
    #[default]
    None,
    /// These.
    Branches(Which),
}

/// The branches of all modules.
#[derive(Debug, Clone, Default)]
pub struct Branches {
    /// For each module what was found out about its functions.
    pub modules: Vec<Vec<Looked>>,
    /// Every branch, in the order of the files.
    pub all: Vec<BranchId>,
    /// Exchanges between lanes that nothing synchronises, in the order of the files.
    pub exchanges: Vec<Loose>,
    /// Where the lines of the branches that may be reported stand, once they were looked up; by the index in `all`.
    pub quotes: Vec<Option<BranchQuotes>>,
    /// Source files by the name that the compiler was told, as they were found.
    pub paths: HashMap<Vec<u8>, String>,
}

/// An exchange between lanes that nothing synchronises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loose {
    /// The module, an index of [`Report::modules`].
    pub module: u32,
    /// The function, an index of the module's.
    pub function: u32,
    /// What it does.
    pub exchange: Exchange,
    /// Its lines, once they were looked up.
    pub quotes: Option<BranchQuotes>,
}

impl Loose {
    /// The word that a source has for it.
    #[must_use]
    pub fn word<'a>(&self, report: &'a Report) -> Option<&'a [u8]> {
        self.positions(report)?.exchange(self.exchange.at)
    }

    /// Where parts of the function stand in its source, if it was made from one.
    #[must_use]
    pub fn positions<'a>(&self, report: &'a Report) -> Option<&'a Positions> {
        report.modules.get(self.module as usize)?.positions()
    }

    /// The function that it is in.
    #[must_use]
    pub fn function<'a>(&self, report: &'a Report) -> Option<&'a Function> {
        report.modules.get(self.module as usize)?.functions.get(self.function as usize)
    }
}

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchId {
    /// The module, an index of [`Report::modules`].
    pub module: u32,
    /// What was found out about its function, an index of the module's list.
    pub looked: u32,
    /// The branch in it.
    pub branch: u32,
}

/// The lines of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchQuotes {
    /// The line of the user's file, with its text where the file was found.
    pub source: Option<Quote>,
    /// The line of the PTX.
    pub ptx: Quote,
    /// The line of the PTX that holds the barrier which not all threads come to.
    pub barrier: Option<Quote>,
    /// The line of the function that was inlined at the user's line, where that holds it.
    pub inlined: Option<InlinedQuote>,
}

/// A line of a function that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlinedQuote {
    /// The line, with its text where the file was found.
    pub quote: Quote,
    /// The column that its code begins at, from 1; 0 where the compiler gave none.
    pub column: u32,
    /// The function's symbol, of [`Report::texts`], where the compiler names it.
    pub function: Option<NameId>,
}

/// Everything that is known of a branch.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// The module.
    pub module: &'a Module,
    /// The function.
    pub function: &'a Function,
    /// The shapes that it was looked at in.
    pub shapes: &'a Shapes,
    /// The branch.
    pub branch: &'a Branch,
    /// The source lines of its code, where the compiler says.
    pub locations: Option<Locations>,
    /// The other branches of the function.
    pub beside: &'a [Branch],
}

impl Found<'_> {
    /// The line of the PTX, from 1.
    #[must_use]
    pub fn ptx_line(&self) -> u32 {
        self.line_of(self.branch.at)
    }

    /// Whether a source has the barrier that threads miss within the statement itself, so that nobody left before it.
    #[must_use]
    pub fn waits_within(&self) -> bool {
        let positions = self.module.positions();
        positions.is_some_and(|all| all.statement(self.branch.at).is_some_and(|statement| all.waits_within(statement)))
    }

    /// Whether both sides come to a barrier behind the statement of a source, though one of them may leave before: it is not
    /// this branch that decides, then.
    #[must_use]
    pub fn waits_behind(&self) -> bool {
        let Some((taken, other)) = self.branch.sides else { return false };
        let is_on_both = [taken, other].iter().all(|side| side.has.any(Traits::BARRIER));
        (is_on_both || self.branch.shared.has.any(Traits::BARRIER)) && !self.waits_within()
    }

    /// The line of a byte of the function.
    #[must_use]
    pub fn line_of(&self, at: u32) -> u32 {
        line_of(self.module, self.function, at)
    }
}

/// The line of a byte of a function's body.
#[must_use]
pub fn line_of(module: &Module, function: &Function, at: u32) -> u32 {
    let before = module.text.get(function.body.start..at as usize).unwrap_or_default();
    let lines = u32::try_from(bytecount::count(before, b'\n')).unwrap_or(u32::MAX);
    function.body_line.saturating_add(lines)
}

impl Branches {
    /// What is known of the branch with this index.
    #[must_use]
    pub fn get<'a>(&'a self, report: &'a Report, at: usize) -> Option<Found<'a>> {
        let id = self.all.get(at)?;
        let module = report.modules.get(id.module as usize)?;
        let looked = self.modules.get(id.module as usize)?.get(id.looked as usize)?;
        Some(Found {
            module,
            function: module.functions.get(looked.function)?,
            shapes: &looked.shapes,
            branch: looked.branches.get(id.branch as usize)?,
            locations: looked.locations.get(id.branch as usize).copied().flatten(),
            beside: &looked.branches,
        })
    }
}

/// Functions whose branches nothing is said of, as there is too much to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFollowed {
    /// How many there are, at least 1.
    pub count: u32,
    /// The name of the first one.
    pub first: NameId,
    /// Where it stands.
    pub place: Place,
}

impl Branches {
    /// The functions of all modules and sources that were not followed.
    #[must_use]
    pub fn not_followed(&self, report: &Report) -> Option<NotFollowed> {
        let in_sources = report.units.iter().filter_map(|unit| {
            let one = unit.not_followed?;
            let place = Place { input: unit.input, line: one.line, ..Place::default() };
            Some(NotFollowed { count: one.count, first: one.first, place })
        });
        let looked = self.modules.iter().zip(&report.modules);
        let looked = looked.flat_map(|(all, module)| all.iter().map(move |one| (module, one)));
        let looked = looked.filter(|(_, one)| one.not_followed).filter_map(|(module, one)| {
            let function = module.functions.get(one.function)?;
            let declared = function.declared.and_then(|spot| {
                let unit = report.units.get(spot.unit as usize)?;
                Some(unit.declarations.get(spot.at as usize)?.quote.place)
            });
            // The head of a text that was made from a source stands nowhere.
            let own = Place { input: module.input, line: function.head.1, ..Place::default() };
            let place = declared.unwrap_or(match module.positions() {
                Some(_) => Place { line: 0, ..own },
                None => own,
            });
            Some(NotFollowed { count: 1, first: function.name, place })
        });
        in_sources.chain(looked).reduce(|all, one| NotFollowed { count: all.count.saturating_add(one.count), ..all })
    }
}

/// Looks at the branches of all modules; `told` is what is told of the launches of a kernel.
pub(super) fn branches(report: &Report, told: impl Fn(usize) -> Vec<Told> + Sync, depth: Depth) -> Branches {
    let mut found = Branches::default();
    let Depth::Branches(which) = depth else { return found };
    // A tree of sources has many modules, of which most are small.
    let look = |module: &Module| look_at(report, module, &told, which);
    let modules = &report.modules;
    // One is not worth the threads; what it holds may be.
    let looked: Vec<_> =
        if modules.len() > 1 { modules.par_iter().map(look).collect() } else { modules.iter().map(look).collect() };
    for (number, (looked, exchanges)) in (0..).zip(looked) {
        for (at, one) in (0..).zip(&looked) {
            let ids = (0..).zip(&one.branches).map(|(branch, _)| BranchId { module: number, looked: at, branch });
            found.all.extend(ids);
        }
        found.modules.push(looked);
        let loose = |(function, exchange)| Loose { module: number, function, exchange, quotes: None };
        found.exchanges.extend(exchanges.into_iter().map(loose));
    }
    prefer_compiled(report, &mut found);
    found
}

/// The branches of one module, and the exchanges between lanes that nothing synchronises, by function.
fn look_at(
    report: &Report,
    module: &Module,
    told: &(impl Fn(usize) -> Vec<Told> + Sync),
    which: Which,
) -> (Vec<Looked>, Vec<(u32, Exchange)>) {
    let shapes = |at: usize| {
        let one = &module.functions[at];
        match one.kernel {
            Some(kernel) => Some(shapes(module, one, &told(kernel as usize))),
            None if is_own(report, module) => Some(shapes(module, one, &of_callers(one, told))),
            // A kernel that a filter left out.
            None => None,
        }
    };
    // Before sm_70 the lanes of a warp run in step.
    let looks = |one: &Function| {
        let is_asked = one.kernel.is_some() || is_own(report, module);
        let is_new = one.arch.is_some_and(|arch| arch.at_least(7, 0)) || module.positions().is_some();
        is_asked && is_new
    };
    (look(module, &report.names, &shapes, which), of_module(module, &looks))
}

/// Whether the functions of a module are looked at that are no kernels of the report: those of a source, which calls them, or
/// has a kernel of the same name as another.
fn is_own(report: &Report, module: &Module) -> bool {
    module.positions().is_some() && !report.is_filtered
}

/// What is told of the launches of the kernels that call a function, where all of their blocks are known.
fn of_callers(one: &Function, told: &impl Fn(usize) -> Vec<Told>) -> Vec<Told> {
    let mut all = Vec::new();
    for (_, kernel) in &one.callers {
        let own = kernel.map(|at| told(at as usize)).unwrap_or_default();
        if own.is_empty() || own.iter().any(|told| exact(told).is_none()) {
            return Vec::new();
        }
        all.extend(own);
    }
    all
}

/// The block that is told of a launch, where it is no bound only.
fn exact(told: &Told) -> Option<BlockSize> {
    let own = told.block.filter(|(_, source)| *source != BlockSource::LaunchBounds).map(|(block, _)| block);
    own.or_else(|| agreed(told).filter(|_| !told.is_perhaps))
}

/// The block that launches agree on.
fn agreed(told: &Told) -> Option<BlockSize> {
    let [x, y, z] = told.agreed;
    BlockSize::new(x?, y?, z?).ok()
}

/// Blocks of different launches that a kernel is looked at in.
const MOST: usize = 4;

/// Threads of a block of which nothing is told.
const USUAL: u32 = 256;

/// The blocks to look at a function in.
fn shapes(module: &Module, one: &Function, told: &[Told]) -> Shapes {
    let is_entry = one.kind == Kind::Entry;
    let shape = |x: u32, y: u32, z: u32| Shape { x, y, z, is_entry };
    let blocks: Vec<BlockSize> = told.iter().filter_map(exact).collect();
    let blocks = if blocks.is_empty() { Vec::from_iter(one.bounds.required) } else { blocks };
    if !blocks.is_empty() {
        let mut all: Vec<Shape> = Vec::new();
        for block in blocks {
            let one = shape(block.x, block.y, block.z);
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all.truncate(MOST);
        // Of a kernel that is launched with several, what is told holds in all of them.
        return Shapes { known: all.len() == 1, all, assumed: false, told: module::Told::Fully, part: [None; 3] };
    }
    if let Some(block) = told.first().and_then(agreed) {
        let all = vec![shape(block.x, block.y, block.z)];
        return Shapes { all, known: true, assumed: false, told: module::Told::Perhaps, part: [None; 3] };
    }
    // Of an overload's block not even a part is known.
    let part = told.first().filter(|told| !told.is_perhaps).map_or([None; 3], |told| told.agreed);
    let [x, y, z] = part;
    let declared = told.first().and_then(|told| told.bounds?.max_threads);
    let most = one.bounds.max_threads.or(declared);
    let threads = most.map_or(USUAL, |most| most.clamp(1, 1024));
    // What is not told of z is 1, as in most blocks.
    let depth = z.unwrap_or(1);
    let rest = |told: u32| (threads / told.max(1)).max(1);
    let partly = match (x, y) {
        (Some(x), Some(y)) => vec![shape(x, y, rest(x.saturating_mul(y)).min(64))],
        (Some(x), None) => vec![shape(x, rest(x.saturating_mul(depth)), depth)],
        (None, Some(y)) if y.saturating_mul(depth) > 1 => [16, 32, 8, 64].map(|x| shape(x, y, depth)).to_vec(),
        _ => Vec::new(),
    };
    let partly: Vec<Shape> = partly.into_iter().filter(|one| BlockSize::new(one.x, one.y, one.z).is_ok()).collect();
    if !partly.is_empty() {
        return Shapes { all: partly, known: x.is_some(), assumed: false, told: module::Told::Partly, part };
    }
    let told = if most.is_some() { module::Told::Bound } else { module::Told::Nothing };
    let is_row = y == Some(1) && depth == 1;
    let dimensions = if is_row { 1 } else { dimensions(module, one) };
    if dimensions == 1 {
        return Shapes { all: vec![shape(threads, 1, 1)], known: true, assumed: true, told, part };
    }
    let mut all: Vec<Shape> = [16, 32, 8, 64]
        .into_iter()
        .filter(|x| threads.is_multiple_of(*x) && threads / x > 0)
        .map(|x| shape(x, threads / x, 1))
        .collect();
    if dimensions == 3 && threads.is_multiple_of(64) && threads / 64 <= 64 {
        all.push(shape(8, 8, threads / 64));
    }
    if all.is_empty() {
        all.push(shape(threads, 1, 1));
    }
    Shapes { all, known: false, assumed: true, told, part }
}
