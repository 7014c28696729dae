//! `regression`: a kernel that is worse than in the baseline; and what became better than it says.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use super::Context;
use super::standing::Standing;
use crate::baseline::{Against, AtBlock, Difference, Figures, may_move, places};
use crate::finding::{Finding, Hit, Label, Level, Subject};
use crate::gpu::Gpu;
use crate::model::{Arch, Bytes, Kernel, percent, symbol};

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
    let Some(against) = context.against else { return };
    let build = Build::of(context, against);
    match context.gone {
        None => hits.extend(build.kernels.iter().filter_map(|one| build.worse(context, options, one))),
        Some(gone) => hits.extend(build.sums(context, options, gone)),
    }
}

/// The kernels of this build that the baseline knows.
struct Build<'a> {
    kernels: Vec<Known>,
    /// Kernels with figures, known or not.
    all: usize,
    /// How many kernels of each key there are, as records, and whether each of them is worse than all of the baseline: the
    /// index of a [`Known`] leads to its own.
    groups: Vec<Group>,
    against: &'a Against,
}

/// One kernel, and what the baseline has of its key.
struct Known {
    at: usize,
    group: usize,
    now: Figures,
}

struct Group {
    before: Figures,
    /// Copies that the baseline knows.
    known: u64,
    /// Copies in this build.
    now: u64,
}

impl<'a> Build<'a> {
    fn of(context: &Context<'_>, against: &'a Against) -> Build<'a> {
        let mut build = Build { kernels: Vec::new(), all: 0, groups: Vec::new(), against };
        let mut numbers: HashMap<(Cow<'_, [u8]>, Option<Arch>), Option<usize>> = HashMap::new();
        for (at, kernel) in comparable(context) {
            let Some(name) = kernel.name.map(|name| context.report.names.get(name)) else { continue };
            let figures = Figures::of(context.report, context.numbers, at);
            let Some(now) = figures.filter(Figures::is_known) else { continue };
            build.all += 1;
            let groups = &mut build.groups;
            let group = *numbers.entry((symbol::key(name), kernel.arch)).or_insert_with_key(|(key, arch)| {
                let known = against.baseline.of(&String::from_utf8_lossy(key), *arch);
                let before = Figures::worst(known)?;
                groups.push(Group { known: u64::from(before.records), before, now: 0 });
                Some(groups.len() - 1)
            });
            let Some(group) = group else { continue };
            build.groups[group].now += u64::from(now.records);
            build.kernels.push(Known { at, group, now });
        }
        build.settle_groups(context);
        build
    }

    /// Of kernels that are more than the baseline knows of their key, some are new. Which, only shows where all are worse.
    fn settle_groups(&mut self, context: &Context<'_>) {
        let mut open: Vec<bool> = self.groups.iter().map(|group| group.now > group.known).collect();
        if !open.contains(&true) {
            return;
        }
        let mut unsure = vec![false; open.len()];
        for one in self.kernels.iter().filter(|one| open[one.group]) {
            unsure[one.group] |= !difference(context, &self.groups[one.group].before, one).is_worse();
        }
        open.iter_mut().zip(unsure).for_each(|(open, unsure)| *open &= unsure);
        let groups = std::mem::take(&mut self.kernels);
        self.kernels = groups.into_iter().filter(|one| !open[one.group]).collect();
    }

    fn worse(&self, context: &Context<'_>, options: &Options, one: &Known) -> Option<Hit> {
        let before = &self.groups[one.group].before;
        let found = difference(context, before, one);
        let is_strict = options.strict && !growth(before, &one.now).is_empty();
        if !found.is_worse() && !is_strict {
            return None;
        }
        let spilled = found.spill.map_or(0, |(before, after)| after.saturating_sub(before));
        let lost = found.fall.as_ref().map_or(0, |at| 1000 * (at.before - at.after) / at.most.max(1));
        let weight = u32::try_from(spilled).unwrap_or(u32::MAX).saturating_add(lost);
        let hit = Hit::kernel(one.at, weight);
        // Of a block that nobody told, only the best can be compared.
        let is_guess = spilled == 0 && !is_strict && found.fall.is_some_and(|at| at.block.is_none());
        Some(if is_guess { hit.by_default_at_most(Level::Warn) } else { hit })
    }

    /// What is told of all kernels together: that some are better, or that none was compared.
    fn sums(&self, context: &Context<'_>, options: &Options, gone: u64) -> Option<Hit> {
        if self.nothing_compared() {
            return Some(Hit::run(1).at_most(Level::Note));
        }
        let better = self.better(context, options).len();
        let hit = (better > 0 || gone > 0).then(|| Hit::run(0))?;
        Some(if self.against.ratchet { hit } else { hit.at_most(Level::Note) })
    }

    fn nothing_compared(&self) -> bool {
        self.groups.is_empty() && self.all > 0 && !self.against.baseline.kernels.is_empty()
    }

    /// The kernels that are better than the baseline says, one of each key: those of a key of which another is not are none.
    fn better(&self, context: &Context<'_>, options: &Options) -> Vec<(&Known, Difference)> {
        let mut found: Vec<Option<(&Known, Difference)>> = self.groups.iter().map(|_| None).collect();
        let mut is_not = vec![false; self.groups.len()];
        for one in &self.kernels {
            let group = &self.groups[one.group];
            let difference = difference(context, &group.before, one);
            let fewer = options.strict
                && growth(&group.before, &one.now).is_empty()
                && !growth(&one.now, &group.before).is_empty();
            let is_better = !difference.is_worse() && (difference.is_better() || fewer);
            // A build with fewer of them may lack just those that are not.
            if !is_better || group.now < group.known {
                is_not[one.group] = true;
                continue;
            }
            found[one.group].get_or_insert((one, difference));
        }
        found.into_iter().zip(is_not).filter(|(_, is_not)| !is_not).filter_map(|(found, _)| found).collect()
    }
}

/// How a kernel differs from what the baseline has.
fn difference(context: &Context<'_>, before: &Figures, one: &Known) -> Difference {
    let places = if may_move(before, &one.now) { places(gpus(context, one.at), before, &one.now) } else { Vec::new() };
    Difference::of(before, &one.now, &places)
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
    let one = Known { at, group: 0, now };
    let found = difference(context, &before, &one);
    let now = &one.now;
    let mut parts = Vec::new();
    let spills = found.spill.filter(|(before, after)| after > before).map(|_| spilled(&before, now));
    parts.extend(spills.as_ref().map(|(said, _)| said.clone()));
    parts.extend(found.fall.as_ref().map(|at| moved(kernel, at)));
    // A stack that grows with the spills is these.
    let own_stack = spills.is_none();
    parts.extend(growth(&before, now).into_iter().filter(|said| own_stack || !said.contains(STACK)));
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
    let said = format!("it spills {stores} of stores and {loads} of loads per thread instead of {was}");
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
    let build = Build::of(context, against);
    let counted = |count: u64, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let name = &against.name;
    if build.nothing_compared() {
        let known = counted(against.baseline.kernels.len() as u64, "kernel");
        let seen = match build.all {
            1 => "the only kernel of this input is not".to_owned(),
            count => format!("none of the {count} kernels of this input is"),
        };
        return Finding::new(format!("{seen} in {name}, which has {known}: no figure was compared"))
            .help("is it the same project, for the same architectures? `warplint baseline write` takes new kernels")
            .fact("reason", "nothing compared");
    }
    let better = build.better(context, options);
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
    let named: Vec<String> =
        better.iter().take(NAMED).map(|(one, found)| improved(context, &build, one, found)).collect();
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
fn improved(context: &Context<'_>, build: &Build<'_>, one: &Known, found: &Difference) -> String {
    let before = &build.groups[one.group].before;
    let kernel = &context.report.kernels[one.at];
    let spill = found.spill.map(|_| spilled(before, &one.now).0);
    let rise = found.rise.as_ref().map(|at| moved(kernel, at));
    let registers = before.registers.zip(one.now.registers).filter(|(old, new)| new < old);
    let registers = registers.map(|(old, new)| format!("{new} registers per thread instead of {old}"));
    let parts: Vec<String> = spill.into_iter().chain(rise).chain(registers).collect();
    format!("{}{}: {}", context.called(kernel.name), context.on(kernel), parts.join(", "))
}
