//! PTX and its source together: what the compiler made of code is told, and of the source what the compiler cannot make good.

use hashbrown::{HashMap, HashSet};

use super::branches::{BranchId, Branches, Found, Loose};
use crate::lanes::verdict::{Advice, Missed, Verdict};
use crate::model::{Files, Module, Report, base};
use crate::parse::ptx::Spot;

/// Leaves out what sources show of code that PTX has too, where silence is an answer as well. Barriers that not all threads
/// come to stay: of the two that tell of one, the louder does.
pub(super) fn prefer_compiled(report: &Report, found: &mut Branches) {
    let is_source = |module: &Module| module.positions().is_some();
    if report.modules.iter().all(is_source) || !report.modules.iter().any(is_source) {
        return;
    }
    let sources = report.sources_by_name();
    let compiled = Compiled::of(report, &sources);
    let covered = compiled.covered(report, found);
    let is_covered = |module: u32, function: u32| covered.contains(&(module, function));
    let mut dropped = vec![false; found.all.len()];
    let mut told = Barriers::of(report, &sources, found);
    for at in 0..found.all.len() {
        let Some(one) = found.get(report, at).filter(|one| is_source(one.module)) else { continue };
        let function =
            u32::try_from(found.modules[found.all[at].module as usize][found.all[at].looked as usize].function);
        if !function.is_ok_and(|function| is_covered(found.all[at].module, function)) {
            continue;
        }
        let Some(advice) = tells(&one).filter(|_| !one.waits_behind()) else {
            dropped[at] = true;
            continue;
        };
        for other in told.beside(report, &one) {
            let is_louder = found.get(report, other).is_some_and(|other| {
                let is_as_loud = tells(&other).is_some_and(|other| other >= advice);
                // Of two that are as loud the one with a line.
                let counts = other.locations.is_some() || !one.waits_within();
                other.branch.missed == Some(Missed::GoesOn) && is_as_loud && counts
            });
            dropped[if is_louder { at } else { other }] = true;
        }
    }
    let kept: Vec<BranchId> = (0..found.all.len()).filter(|at| !dropped[*at]).map(|at| found.all[at]).collect();
    found.all = kept;
    found.exchanges.retain(|loose| !is_covered(loose.module, loose.function) && !compiled.has_inlined(report, loose));
}

/// How loud a branch tells of a barrier that is missed.
fn tells(one: &Found<'_>) -> Option<Advice> {
    let judgement = one.branch.judgement.filter(|judgement| judgement.verdict == Verdict::BarrierInDivergent)?;
    Some(judgement.advice).filter(|advice| *advice > Advice::Silent)
}

fn family(report: &Report, found: &Found<'_>) -> Option<u32> {
    report.kernels.get(found.function.kernel? as usize)?.family
}

/// What code is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    /// A kernel.
    Family(u32),
    /// A source, of code that is no kernel's, or of which of several is open.
    File(u32),
}

/// Barriers that PTX tells of.
#[derive(Default)]
struct Barriers {
    /// By what their code is of, and the line.
    at_line: HashMap<(Owner, u32), Vec<usize>>,
    /// Of PTX without lines: by the kernel, those of each of its functions, in order.
    unplaced: HashMap<u32, Vec<Vec<usize>>>,
    /// The statements of sources that were asked for by the kernel, in order.
    asked: HashMap<u32, Vec<(u32, u32)>>,
}

impl Barriers {
    fn of(report: &Report, sources: &Files, found: &Branches) -> Barriers {
        let mut barriers = Barriers::default();
        let mut last = None;
        for at in 0..found.all.len() {
            let Some(one) = found.get(report, at).filter(|one| one.module.positions().is_none()) else { continue };
            let family = family(report, &one);
            match (one.locations, family) {
                _ if tells(&one).is_none() => {}
                (Some(spots), _) => {
                    let file = || Some(Owner::File(sources.find(one.module.file(spots.outer.file)?)?));
                    if let Some(owner) = family.map(Owner::Family).or_else(file) {
                        barriers.at_line.entry((owner, spots.outer.line)).or_default().push(at);
                    }
                }
                (None, Some(family)) => {
                    let id = found.all[at];
                    let lists = barriers.unplaced.entry(family).or_default();
                    match lists.last_mut().filter(|_| last == Some((id.module, id.looked))) {
                        Some(list) => list.push(at),
                        None => lists.push(vec![at]),
                    }
                    last = Some((id.module, id.looked));
                }
                (None, None) => {}
            }
        }
        barriers
    }

    /// Those at the line of what a source tells; of PTX without lines, that which stands as far on in its function.
    fn beside(&mut self, report: &Report, one: &Found<'_>) -> Vec<usize> {
        let (family, line) = (family(report, one), one.locations.map_or(0, |spots| spots.outer.line));
        let owners = family.map(Owner::Family).into_iter().chain([Owner::File(one.module.input)]);
        let mut all: Vec<usize> =
            owners.filter_map(|owner| self.at_line.get(&(owner, line))).flatten().copied().collect();
        let statement = one.module.positions().and_then(|positions| positions.statement(one.branch.at));
        let (Some(family), Some(statement)) = (family, statement) else { return all };
        let Some(lists) = self.unplaced.get(&family) else { return all };
        // The branch before a loop and the one that leaves it are one statement.
        let (asked, statement) = (self.asked.entry(family).or_default(), (one.module.input, statement.start));
        let number = asked.iter().position(|known| *known == statement).unwrap_or(asked.len());
        if number == asked.len() {
            asked.push(statement);
        }
        all.extend(lists.iter().filter_map(|list| list.get(number)));
        all
    }
}

/// What compiled code there is.
struct Compiled {
    families: HashSet<u32>,
    /// The last parts of the names of its functions.
    functions: HashSet<Vec<u8>>,
    /// By the source, the lines that code comes from, rising.
    lines: HashMap<u32, Vec<u32>>,
}

impl Compiled {
    fn of(report: &Report, sources: &Files) -> Compiled {
        let mut compiled = Compiled { families: HashSet::new(), functions: HashSet::new(), lines: HashMap::new() };
        for module in report.modules.iter().filter(|module| module.positions().is_none()) {
            for function in &module.functions {
                compiled.functions.insert(last_part(report.names.get(function.name)));
                let kernel = function.kernel.and_then(|at| report.kernels.get(at as usize));
                compiled.families.extend(kernel.and_then(|kernel| kernel.family));
            }
            let mut by_number: HashMap<u32, Vec<u32>> = HashMap::new();
            for at in memchr::memmem::find_iter(&module.text, b".loc") {
                if let Some(spot) = Spot::of_directive(&module.text[at..]) {
                    by_number.entry(spot.file).or_default().push(spot.line);
                }
            }
            for (number, lines) in by_number {
                if let Some(source) = module.file(number).and_then(|name| sources.find(name)) {
                    compiled.lines.entry(source).or_default().extend(lines);
                }
            }
        }
        for lines in compiled.lines.values_mut() {
            lines.sort_unstable();
            lines.dedup();
        }
        compiled
    }

    /// The functions of sources that compiled code has.
    fn covered(&self, report: &Report, found: &Branches) -> HashSet<(u32, u32)> {
        // The lines of each function's branches: what is inlined elsewhere is known by them.
        let mut spans: HashMap<(u32, u32), (u32, u32)> = HashMap::new();
        for at in 0..found.all.len() {
            let Some(one) = found.get(report, at) else { continue };
            let id = found.all[at];
            let function = found.modules[id.module as usize][id.looked as usize].function;
            if let (Some(spots), Ok(function)) = (one.locations, u32::try_from(function)) {
                let line = spots.outer.line;
                let span = spans.entry((id.module, function)).or_insert((line, line));
                *span = (span.0.min(line), span.1.max(line));
            }
        }
        let mut covered = HashSet::new();
        for (number, module) in (0..).zip(&report.modules).filter(|(_, module)| module.positions().is_some()) {
            for (at, function) in (0..).zip(&module.functions) {
                let family = function.kernel.and_then(|kernel| report.kernels.get(kernel as usize)?.family);
                let span = spans.get(&(number, at)).copied();
                let is_known = match function.declared {
                    Some(_) => family.is_some_and(|family| self.families.contains(&family)),
                    None => self.functions.contains(report.names.get(function.name)),
                };
                let is_there = is_known || span.is_some_and(|span| self.has_lines(module.input, span));
                if is_there {
                    covered.insert((number, at));
                }
            }
        }
        covered
    }

    /// Whether compiled code has the line of an exchange of a source: a short function may be nothing but that, and inlined.
    fn has_inlined(&self, report: &Report, loose: &Loose) -> bool {
        let module = report.modules.get(loose.module as usize).filter(|module| module.positions().is_some());
        let line = loose.exchange.locations.map(|spots| spots.outer.line);
        module.zip(line).is_some_and(|(module, line)| self.has_lines(module.input, (line, line)))
    }

    fn has_lines(&self, source: u32, (first, last): (u32, u32)) -> bool {
        let Some(lines) = self.lines.get(&source) else { return false };
        lines.get(lines.partition_point(|line| *line < first)).is_some_and(|line| *line <= last)
    }
}

/// The identifier at the end of a symbol, without arguments.
fn last_part(symbol: &[u8]) -> Vec<u8> {
    let base = base(symbol);
    let last = base.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    last.split(|byte| *byte == b'<').next().unwrap_or_default().to_vec()
}
