//! `regression`: a kernel that is worse than in the baseline; and what became better than it says.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use super::Context;
use super::standing::Standing;
use crate::baseline::{Against, AtBlock, Difference, Figures, Occupancies, may_move, places};
use crate::finding::{Finding, Hit, Label, Level, Subject};
use crate::gpu::Gpu;
use crate::model::{Arch, Bytes, Kernel, Kind, percent, symbol};

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    /// Whether more registers, stack or static shared memory is worse also where neither spills nor occupancy move.
    strict: bool,
}

/// Kernels whose figures can be held against those of another build, with their indices: what is surely theirs, of optimised
/// code.
pub fn comparable<'a>(context: &Context<'a>) -> impl Iterator<Item = (usize, &'a Kernel)> {
    let standing = Standing::of(context);
    context.framed().filter(move |(_, kernel)| standing.is_optimised(kernel.evidence.first()))
}

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    let Some(build) = context.build() else { return };
    match context.gone {
        None => hits.extend(build.changed.iter().filter_map(|one| build.worse(options, one))),
        Some(gone) => hits.extend(build.sums(options, gone)),
    }
}

/// The kernels of this build that the baseline knows.
pub(super) struct Build<'a> {
    against: &'a Against,
    /// Kernels with figures, known or not.
    all: usize,
    /// What the baseline has of each key that is in this build too.
    groups: Vec<Group<'a>>,
    /// The kernels whose figures are not those of the baseline.
    changed: Vec<Changed>,
}

/// The kernels of one key.
struct Group<'a> {
    /// The worst that the baseline has.
    before: Cow<'a, Figures>,
    /// Copies that the baseline knows.
    known: u64,
    /// Copies in this build.
    now: u64,
    /// Whether one of them has the figures of before.
    has_same: bool,
    /// Whether some of them are new, and nobody knows which.
    is_open: bool,
}

/// A kernel with other figures than before.
struct Changed {
    at: usize,
    group: usize,
    now: Figures,
    found: Difference,
}

impl<'a> Build<'a> {
    pub(super) fn of(context: &Context<'a>, against: &'a Against) -> Build<'a> {
        let mut build = Build { against, all: 0, groups: Vec::new(), changed: Vec::new() };
        let mut numbers: Numbers<'a> = HashMap::new();
        let mut known = Occupancies::default();
        for (at, kernel) in comparable(context) {
            let Some(name) = kernel.name.map(|name| context.report.names.get(name)) else { continue };
            let mut now = Figures::plain(kernel);
            if !now.is_known() {
                continue;
            }
            build.all += 1;
            let groups = &mut build.groups;
            let group = *numbers.entry((symbol::key(name), kernel.arch)).or_insert_with_key(|(key, arch)| {
                let before = worst(against.baseline.of(&String::from_utf8_lossy(key), *arch))?;
                let known = u64::from(before.records);
                groups.push(Group { before, known, now: 0, has_same: false, is_open: false });
                Some(groups.len() - 1)
            });
            let Some((number, group)) = group.and_then(|number| Some((number, build.groups.get_mut(number)?))) else {
                continue;
            };
            group.now += u64::from(now.records);
            if group.before.numbers() == now.numbers() {
                group.has_same = true;
                continue;
            }
            now.set_in(context.report, context.numbers, at, kernel);
            let found = difference(context, &group.before, &now, at, &mut known);
            build.changed.push(Changed { at, group: number, now, found });
        }
        build.open_groups();
        build
    }

    /// Of kernels that are more than the baseline knows of their key, some are new. Which, only shows where all are worse.
    fn open_groups(&mut self) {
        for group in &mut self.groups {
            group.is_open = group.now > group.known && group.has_same;
        }
        for one in self.changed.iter().filter(|one| !one.found.is_worse()) {
            let group = &mut self.groups[one.group];
            group.is_open |= group.now > group.known;
        }
    }

    fn worse(&self, options: &Options, one: &Changed) -> Option<Hit> {
        let group = &self.groups[one.group];
        let is_strict = options.strict && grows(&group.before, &one.now);
        if group.is_open || !one.found.is_worse() && !is_strict {
            return None;
        }
        let spilled = one.found.spill.map_or(0, |(before, after)| after.saturating_sub(before));
        let lost = one.found.fall.as_ref().map_or(0, |at| 1000 * (at.before - at.after) / at.most.max(1));
        let weight = u32::try_from(spilled).unwrap_or(u32::MAX).saturating_add(lost);
        let hit = Hit::kernel(one.at, weight);
        // Of a block that nobody told, only the best can be compared.
        let is_guess = spilled == 0 && !is_strict && one.found.fall.as_ref().is_some_and(|at| at.block.is_none());
        Some(if is_guess { hit.by_default_at_most(Level::Warn) } else { hit })
    }

    /// What is told of all kernels together: that some are better, or that none was compared.
    fn sums(&self, options: &Options, gone: u64) -> Option<Hit> {
        if self.nothing_compared() {
            // A gate that measured nothing has not passed.
            return Some(Hit::run(1));
        }
        let is_better = !self.better(options).is_empty();
        let hit = (is_better || gone > 0).then(|| Hit::run(0))?;
        Some(if self.against.ratchet { hit } else { hit.at_most(Level::Note) })
    }

    fn nothing_compared(&self) -> bool {
        self.groups.is_empty() && self.all > 0 && !self.against.baseline.kernels.is_empty()
    }

    /// The kernels that are better than the baseline says, one of each key. A key of which another kernel is not better is no
    /// better; and a build with fewer of them may lack just that one.
    fn better(&self, options: &Options) -> Vec<&Changed> {
        let mut found: Vec<Option<&Changed>> = vec![None; self.groups.len()];
        let mut is_not: Vec<bool> = self.groups.iter().map(|group| group.has_same || group.now < group.known).collect();
        for one in &self.changed {
            let before = &self.groups[one.group].before;
            let fewer = options.strict && !grows(before, &one.now) && grows(&one.now, before);
            if !one.found.is_worse() && (one.found.is_better() || fewer) {
                found[one.group].get_or_insert(one);
            } else {
                is_not[one.group] = true;
            }
        }
        found.into_iter().zip(is_not).filter(|(_, is_not)| !is_not).filter_map(|(found, _)| found).collect()
    }
}

/// The group of each key, where the baseline has it.
type Numbers<'a> = HashMap<(Cow<'a, [u8]>, Option<Arch>), Option<usize>>;

/// The worst of the figures of one key: nearly always there is but one.
fn worst(known: &[Figures]) -> Option<Cow<'_, Figures>> {
    match known {
        [one] => Some(Cow::Borrowed(one)),
        all => Figures::worst(all).map(Cow::Owned),
    }
}

/// How the kernel with index `at` differs from what the baseline has.
fn difference(
    context: &Context<'_>,
    before: &Figures,
    now: &Figures,
    at: usize,
    known: &mut Occupancies,
) -> Difference {
    let places = if may_move(before, now) { places(gpus(context, at), before, now) } else { Vec::new() };
    Difference::of(before, now, &places, known)
}

/// The GPUs that a kernel is judged on, each once.
fn gpus<'a>(context: &Context<'a>, at: usize) -> Vec<&'a Gpu> {
    let numbers = context.numbers;
    let mut ids: Vec<u32> = numbers.of(at).map(|judged| judged.gpu).collect();
    ids.dedup();
    ids.into_iter().filter_map(|id| numbers.gpus.get(id as usize)).collect()
}

/// What the stack is called.
const STACK: &str = "stack per thread";

/// Whether registers, stack or static shared memory grew.
fn grows(before: &Figures, now: &Figures) -> bool {
    let of = |one: &Figures| [one.registers, one.stack().map(Bytes::get), one.static_shared.map(Bytes::get)];
    before.is_alike(now)
        && of(before).into_iter().zip(of(now)).any(|(before, now)| before.zip(now).is_some_and(|(old, new)| new > old))
}

/// The figures that grew, in words: `40 registers per thread instead of 32`.
fn growth(before: &Figures, now: &Figures) -> Vec<String> {
    let mut grown = Vec::new();
    if !before.is_alike(now) {
        return grown;
    }
    if let Some((old, new)) = before.registers.zip(now.registers).filter(|(old, new)| new > old) {
        grown.push(format!("{new} registers per thread instead of {old}"));
    }
    let mut bytes = |old: Option<Bytes>, new: Option<Bytes>, what: &str| {
        if let Some((old, new)) = old.zip(new).filter(|(old, new)| new > old) {
            grown.push(format!("{new} of {what} instead of {old}"));
        }
    };
    bytes(before.static_shared, now.static_shared, "static shared memory");
    bytes(before.stack(), now.stack(), STACK);
    grown
}

pub(super) fn tell(context: &Context<'_>, options: &Options, hit: &Hit) -> Finding {
    let Some(against) = context.against else { return Finding::new("a kernel is worse than in the baseline") };
    match hit.subject {
        Subject::Kernel(at) => of_kernel(context, against, at as usize),
        _ => of_all(context, options, against),
    }
}

fn of_kernel(context: &Context<'_>, against: &Against, at: usize) -> Finding {
    let worse = |name: &str| format!("{name} is worse than in the baseline");
    let Some(kernel) = context.report.kernels.get(at) else { return Finding::new(worse("a kernel")) };
    let called = format!("{}{}", context.function(kernel), context.called(kernel.name));
    let known = kernel.name.map(|name| crate::baseline::name_key(context.report.names.get(name)));
    let before = known.and_then(|key| Figures::worst(against.baseline.of(&key, kernel.arch)));
    let now = Figures::of(context.report, context.numbers, at);
    let Some((before, now)) = before.zip(now) else { return Finding::new(worse(&called)) };
    let found = difference(context, &before, &now, at, &mut Occupancies::default());
    let mut parts = Vec::new();
    let spills = found.spill.filter(|(before, after)| after > before).map(|_| spilled(&before, &now));
    parts.extend(spills.as_ref().map(|(said, _)| said.clone()));
    parts.extend(found.fall.as_ref().map(|at| moved(kernel, at)));
    // A stack that grows with the spills is these.
    let own_stack = spills.is_none();
    parts.extend(growth(&before, &now).into_iter().filter(|said| own_stack || !said.contains(STACK)));
    let toolkit = before.toolkit.zip(now.toolkit).filter(|(old, new)| old != new);
    let compiled = toolkit.map(|(old, new)| format!("; the baseline was written with CUDA {old}, this build is {new}"));
    let message = format!(
        "{called} is worse than in the baseline{}: {}{}",
        context.on(kernel),
        parts.join(", "),
        compiled.as_deref().unwrap_or_default()
    );
    let first = parts.first().map_or("", String::as_str);
    let brief = format!("{called} is worse than in the baseline{}: {first}", context.on(kernel));
    let share = |of: fn(&AtBlock) -> f64| found.fall.as_ref().or(found.first.as_ref()).map(of);
    let gpu = found.fall.as_ref().map(|at| at.gpu.to_string());
    let mut finding = Finding::new(message)
        .brief(brief)
        .help(help(toolkit.is_some(), &found))
        .label(label(context, kernel, &before, spills.map(|(_, was)| was)))
        .fact("registers", now.registers)
        .fact("registers_before", before.registers)
        .fact("store_bytes", now.spill_stores)
        .fact("store_bytes_before", before.spill_stores)
        .fact("load_bytes", now.spill_loads)
        .fact("load_bytes_before", before.spill_loads)
        .fact("stack_bytes", now.stack())
        .fact("stack_bytes_before", before.stack())
        .fact("static_shared_bytes", now.static_shared)
        .fact("static_shared_bytes_before", before.static_shared)
        .fact("occupancy", share(AtBlock::fraction_after))
        .fact("occupancy_before", share(AtBlock::fraction_before))
        .fact("block", found.fall.as_ref().and_then(|at| at.block).map(|block| block.to_string()))
        .fact("toolkit", now.toolkit.map(|toolkit| toolkit.to_string()))
        .fact("toolkit_before", before.toolkit.map(|toolkit| toolkit.to_string()));
    finding.gpu = gpu.filter(|_| context.numbers.gpus.iter().any(|gpu| gpu.product.is_some()));
    finding
}

/// The spills of now in words, and those of the baseline for the line that they stand on.
fn spilled(before: &Figures, now: &Figures) -> (String, String) {
    let bytes = |size: Option<Bytes>| size.unwrap_or_default();
    let of = |one: &Figures| (bytes(one.spill_stores), bytes(one.spill_loads));
    let ((old_stores, old_loads), (stores, loads)) = (of(before), of(now));
    let was = if old_stores.is_zero() && old_loads.is_zero() {
        "none".to_owned()
    } else {
        format!("{old_stores} and {old_loads}")
    };
    let said = if stores.is_zero() && loads.is_zero() {
        format!("it no longer spills ({old_stores} of stores and {old_loads} of loads per thread before)")
    } else {
        format!("it spills {stores} of stores and {loads} of loads per thread instead of {was}")
    };
    (said, if was == "none" { "no spills in the baseline".to_owned() } else { format!("{was} in the baseline") })
}

/// `75 % occupancy with blocks of 256 threads instead of 100 %`
fn moved(kernel: &Kernel, at: &AtBlock) -> String {
    let place = match at.block {
        Some(block) => format!(" with blocks of {block} threads"),
        None => " at the best block size".to_owned(),
    };
    let is_own = kernel.arch.is_some_and(|arch| arch.device().to_string() == *at.gpu);
    let gpu = if is_own { String::new() } else { format!(" of {}", at.gpu) };
    format!("{} occupancy{gpu}{place} instead of {}", percent(at.fraction_after()), percent(at.fraction_before()))
}

fn help(is_other_toolkit: bool, found: &Difference) -> String {
    let compilers = if is_other_toolkit {
        "compilers move registers by themselves: compare with the old toolkit before the code is blamed; "
    } else {
        ""
    };
    let block = match &found.fall {
        Some(at) if at.block.is_none() => "--block, or the launch in a source, tells the block that counts; ",
        _ => "",
    };
    format!("{compilers}{block}undo what costs it, or let `warplint baseline write` take the new figures")
}

/// Where it shows: the line of the figure that got worse, with what it was.
fn label(context: &Context<'_>, kernel: &Kernel, before: &Figures, spilled: Option<String>) -> Option<Label> {
    if let (Some(was), Some(quote)) = (spilled, kernel.evidence.frame) {
        let label = context.label(Some(quote), "", "bytes spill loads", was)?;
        // The caret starts at the spills, behind the stack frame.
        let start = memchr::memchr(b',', context.text(quote)).map_or(label.start, |comma| comma + 2);
        return Some(Label { start: start.min(label.end), ..label });
    }
    let was = before.registers.map_or_else(String::new, |count| format!("{count} in the baseline"));
    let printed = kernel.resources.registers.map(|count| format!("{count} registers"))?;
    let usage = kernel.evidence.usage.or(kernel.evidence.frame);
    context.label(usage, &printed, &printed, was)
}

/// Kernels that a message names at most.
const NAMED: usize = 3;

fn of_all(context: &Context<'_>, options: &Options, against: &Against) -> Finding {
    let Some(build) = context.build() else { return Finding::new("some kernels are better than the baseline says") };
    let counted = |count: u64, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let name = &against.name;
    if build.nothing_compared() {
        // Counted as the last line of a report counts them.
        let is_entry = |figures: &Vec<Figures>| figures.iter().any(|one| !one.is_function);
        let known = against.baseline.kernels.values().filter(|figures| is_entry(figures)).count();
        let known = counted(known as u64, "kernel");
        let seen = match comparable(context).filter(|(_, kernel)| kernel.kind == Kind::Entry).count() {
            0 => "no device function of this input is".to_owned(),
            1 => "the only kernel of this input is not".to_owned(),
            count => format!("none of the {count} kernels of this input is"),
        };
        return Finding::new(format!("{seen} in {name}, which has {known}: no figure was compared"))
            .help("is it the same project, for the same architectures? `warplint baseline write` takes new kernels")
            .fact("reason", "nothing compared");
    }
    let better = build.better(options);
    let gone = context.gone.unwrap_or_default();
    let kernels = (!better.is_empty()).then(|| {
        let is = if better.len() == 1 { "is" } else { "are" };
        format!("{} {is} better than {name} says", counted(better.len() as u64, "kernel"))
    });
    let findings = (gone > 0).then(|| {
        let is = if gone == 1 { "is" } else { "are" };
        let by = if kernels.is_some() { "it" } else { name };
        format!("{} that {by} accepts {is} gone", counted(gone, "finding"))
    });
    let said: Vec<String> = kernels.into_iter().chain(findings).collect();
    let until = if against.ratchet { ", and `ratchet` wants that written down" } else { "" };
    let named: Vec<String> = better.iter().take(NAMED).map(|one| improved(context, build, one)).collect();
    let more = better.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let named = if named.is_empty() { String::new() } else { format!("{}{more}. ", named.join("; ")) };
    Finding::new(format!("{}{until}", said.join(", and ")))
        .help(format!("{named}`warplint baseline write` holds the line there"))
        .fact("reason", "improvement")
        .fact("kernels", better.len() as u64)
        .fact("findings", gone)
}

/// `k` on sm_90: 100 % occupancy instead of 75 %
fn improved(context: &Context<'_>, build: &Build<'_>, one: &Changed) -> String {
    let (before, found) = (&build.groups[one.group].before, &one.found);
    let kernel = &context.report.kernels[one.at];
    let spill = found.spill.map(|_| spilled(before, &one.now).0);
    let rise = found.rise.as_ref().map(|at| moved(kernel, at));
    let registers = before.registers.zip(one.now.registers).filter(|(old, new)| new < old);
    let registers = registers.map(|(old, new)| format!("{new} registers per thread instead of {old}"));
    let parts: Vec<String> = spill.into_iter().chain(rise).chain(registers).collect();
    format!("{}{}: {}", context.called(kernel.name), context.on(kernel), parts.join(", "))
}
