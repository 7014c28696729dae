//! PTX and its source together: what the compiler made of code is told, and of the source what the compiler cannot make good.

use hashbrown::{HashMap, HashSet};

use super::branches::{BranchId, Branches, Found, Loose};
use crate::lanes::verdict::{Advice, Missed, Verdict};
use crate::model::{Module, Report, base};
use crate::parse::ptx::Spot;

/// Leaves out what sources show of code that PTX has too, where silence is an answer as well. Barriers that not all threads
/// come to stay: of the two that tell of one, the louder does.
pub(super) fn prefer_compiled(report: &Report, found: &mut Branches) {
    let is_source = |module: &Module| module.positions().is_some();
    if report.modules.iter().all(is_source) || !report.modules.iter().any(is_source) {
        return;
    }
    let compiled = Compiled::of(report);
    let covered = compiled.covered(report, found);
    let is_covered = |module: u32, function: u32| covered.contains(&(module, function));
    let mut dropped = vec![false; found.all.len()];
    let mut told = Barriers::of(report, found);
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

/// Barriers that PTX tells of.
#[derive(Default)]
struct Barriers {
    /// By the kernel and the line.
    at_line: HashMap<(Option<u32>, u32), Vec<usize>>,
    /// Of PTX without lines: by the kernel, those of each of its functions, in order.
    unplaced: HashMap<u32, Vec<Vec<usize>>>,
    /// The statements of sources that were asked for by the kernel, in order.
    asked: HashMap<u32, Vec<(u32, u32)>>,
}

impl Barriers {
    fn of(report: &Report, found: &Branches) -> Barriers {
        let mut barriers = Barriers::default();
        let mut last = None;
        for at in 0..found.all.len() {
            let Some(one) = found.get(report, at).filter(|one| one.module.positions().is_none()) else { continue };
            let family = family(report, &one);
            match (one.locations, family) {
                _ if tells(&one).is_none() => {}
                (Some(spots), _) => barriers.at_line.entry((family, spots.outer.line)).or_default().push(at),
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
        let mut all = self.at_line.get(&(family, line)).cloned().unwrap_or_default();
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
    /// By the name of a file without its folder, the lines that code comes from, rising.
    lines: HashMap<Vec<u8>, Vec<u32>>,
}

impl Compiled {
    fn of(report: &Report) -> Compiled {
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
                if let Some(name) = module.file(number) {
                    compiled.lines.entry(base_name(name).to_vec()).or_default().extend(lines);
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
            let name = module.file(1).map(base_name).unwrap_or_default();
            for (at, function) in (0..).zip(&module.functions) {
                let family = function.kernel.and_then(|kernel| report.kernels.get(kernel as usize)?.family);
                let is_there = match (function.declared, family) {
                    (Some(_), Some(family)) => self.families.contains(&family),
                    (Some(_), None) => false,
                    (None, _) => {
                        let span = spans.get(&(number, at)).copied();
                        span.is_some_and(|span| self.has_lines(name, span))
                            || self.functions.contains(report.names.get(function.name))
                    }
                };
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
        let name = module.and_then(|module| module.file(1)).map(base_name);
        let line = loose.exchange.locations.map(|spots| spots.outer.line);
        name.zip(line).is_some_and(|(name, line)| self.has_lines(name, (line, line)))
    }

    fn has_lines(&self, file: &[u8], (first, last): (u32, u32)) -> bool {
        let Some(lines) = self.lines.get(file) else { return false };
        lines.get(lines.partition_point(|line| *line < first)).is_some_and(|line| *line <= last)
    }
}

/// The identifier at the end of a symbol, without arguments.
fn last_part(symbol: &[u8]) -> Vec<u8> {
    let base = base(symbol);
    let last = base.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    last.split(|byte| *byte == b'<').next().unwrap_or_default().to_vec()
}

fn base_name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| matches!(byte, b'/' | b'\\')).map_or(path, |at| &path[at + 1..])
}
