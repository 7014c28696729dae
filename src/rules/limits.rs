//! What the rules on occupancy share: which limit binds, how loud it is to be, and how it is put into words.

use serde::Deserialize;

use super::Context;
use super::standing::Standing;
use crate::analyse::{BlockSource, Judged};
use crate::finding::{Fact, Finding, Hit, Label, Level};
use crate::gpu::{Limiter, Target};
use crate::model::{Bytes, Kernel, LaunchSite, percent};

/// The limits that are a kernel's own, in the order in which one finding speaks for all that tie.
const ORDER: [Limiter; 4] = [Limiter::Registers, Limiter::SharedMemory, Limiter::Blocks, Limiter::Barriers];

/// Options of the rules on low occupancy.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Thresholds {
    /// Occupancy up to which a known block size is a warning, and below which the best of all block sizes is a note.
    min_occupancy: f64,
    /// Occupancy below which a known block size is a note.
    note_below: f64,
    /// Occupancy below which the best of all block sizes is a warning.
    min_at_best: f64,
}

impl Thresholds {
    /// How loud an occupancy may be; `None` where it is high enough.
    fn cap(&self, judged: &Judged) -> Option<Level> {
        let reached = judged.occupancy.fraction();
        // Nobody is blamed for a block that nobody launches: without a known one it is a note unless someone asks for more.
        let (warn, note) = if is_best(judged) {
            (reached < self.min_at_best, reached < self.min_occupancy)
        } else {
            (reached <= self.min_occupancy, reached < self.note_below)
        };
        match (warn, note) {
            (true, _) => Some(Level::Deny),
            (false, true) => Some(Level::Note),
            (false, false) => None,
        }
    }
}

/// How bad one occupancy is.
pub(super) struct Grade {
    /// More is worse.
    pub(super) weight: u32,
    /// The loudest that it may be.
    pub(super) cap: Level,
}

impl Grade {
    /// The lower the occupancy, the worse.
    pub(super) fn by_occupancy(judged: &Judged, cap: Level) -> Grade {
        let free = judged.occupancy.max_warps.saturating_sub(judged.occupancy.active_warps);
        Grade { weight: 1000 * free / judged.occupancy.max_warps.max(1), cap }
    }
}

/// Grades every distinct occupancy once, and leaves a hit on each kernel that has a graded one, as loud as fits the kernel.
pub(super) fn each(context: &Context<'_>, hits: &mut Vec<Hit>, grade: impl Fn(&Judged) -> Option<Grade>) {
    let mut all = Vec::new();
    every(context, &mut all, grade);
    if all.is_empty() {
        return;
    }
    let standing = Standing::of(context);
    hits.extend(all.into_iter().filter_map(|hit| {
        let cap = context.kernel_of(&hit).map_or(Some(Level::Deny), |kernel| standing.cap(context, kernel))?;
        Some(hit.at_most(hit.cap.min(cap)))
    }));
}

/// The same for all kernels alike.
pub(super) fn every(context: &Context<'_>, hits: &mut Vec<Hit>, grade: impl Fn(&Judged) -> Option<Grade>) {
    let grades: Vec<Option<Grade>> = context.numbers.judged.iter().map(grade).collect();
    if grades.iter().all(Option::is_none) {
        return;
    }
    for (at, id, judged) in context.occupancies() {
        if let Some(grade) = grades[id as usize].as_ref().filter(|_| !is_lone(context, at, judged)) {
            hits.push(Hit::kernel(at, grade.weight).judged(id).at_most(grade.cap));
        }
    }
}

/// Launches of a kernel that are looked at.
const LAUNCHES: usize = 100;

/// Whether all launches of a kernel with the block that was judged are so small that no SM gets as many blocks as it holds:
/// then no limit binds.
fn is_lone(context: &Context<'_>, at: usize, judged: &Judged) -> bool {
    let Some(kernel) = context.report.kernels.get(at).filter(|_| judged.source == BlockSource::LaunchSite) else {
        return false;
    };
    let family = kernel.family.and_then(|family| context.report.families.get(family as usize));
    let all = context.numbers.instances.launches_of(context.report, kernel, LAUNCHES);
    if all.count > LAUNCHES || family.is_none_or(|family| !family.perhaps_launches.is_empty()) {
        return false;
    }
    let sms = context.numbers.gpu(judged).device.sm_count.unwrap_or(1).max(1);
    let held = u64::from(judged.occupancy.blocks_per_sm);
    let is_small = |site: &LaunchSite| {
        site.blocks().is_some_and(|blocks| held > 0 && (blocks == 1 || blocks.div_ceil(u64::from(sms)) < held))
    };
    // A launch whose block is not known may be one of these; one that no GPU makes is none.
    let is_refused =
        |site: &LaunchSite| site.impossible.is_some() || (site.threads().is_some() && site.block_size().is_none());
    let may_be = |site: &LaunchSite| !is_refused(site) && site.block_size().is_none_or(|block| block == judged.block);
    let mut sites = all.spots.iter().filter_map(|spot| context.report.launch(*spot));
    sites.all(|site| !may_be(site) || is_small(site))
}

/// The check of the rule that speaks for `limiter`.
pub(super) fn check(context: &Context<'_>, limiter: Limiter, thresholds: &Thresholds, hits: &mut Vec<Hit>) {
    each(context, hits, |judged| {
        let cap = thresholds.cap(judged).filter(|_| speaker(judged) == Some(limiter))?;
        Some(Grade::by_occupancy(judged, cap))
    });
}

/// Whether the block size is the best of all because nothing tells it.
pub(super) fn is_best(judged: &Judged) -> bool {
    judged.source == BlockSource::Sweep
}

/// Says so where the block is the largest that launch bounds allow, and the one of a launch may be smaller.
pub(super) fn of_bounds(judged: &Judged) -> &'static str {
    if judged.source == BlockSource::LaunchBounds { " with the largest block of its launch bounds" } else { "" }
}

/// Whether `limiter` allows no more blocks than the SM holds.
pub(super) fn binds(judged: &Judged, limiter: Limiter) -> bool {
    // Not `Occupancy::limiters`: as in NVIDIA's calculator, that keeps limits which barriers have since undercut.
    judged.occupancy.limits.get(limiter) == Some(judged.occupancy.blocks_per_sm)
}

/// Those of a kernel's own limits that bind.
pub(super) fn binding(judged: &Judged) -> Vec<Limiter> {
    ORDER.into_iter().filter(|limiter| binds(judged, *limiter)).collect()
}

/// The limit whose rule speaks; none where no block fits, where the SM is full, and where the warps of the block bind:
/// then it is the block size that decides.
pub(super) fn speaker(judged: &Judged) -> Option<Limiter> {
    let occupancy = &judged.occupancy;
    let silent =
        occupancy.blocks_per_sm == 0 || occupancy.active_warps >= occupancy.max_warps || binds(judged, Limiter::Warps);
    ORDER.into_iter().find(|limiter| !silent && binds(judged, *limiter))
}

/// The finding of the rule that speaks for low occupancy, without advice.
pub(super) fn low_occupancy(context: &Context<'_>, kernel: &Kernel, judged: &Judged) -> Finding {
    let binding = binding(judged);
    let gpu = context.numbers.gpu(judged);
    let reached = format!(
        "{} reaches {} occupancy on {}{}",
        context.called(kernel.name),
        percent(judged.occupancy.fraction()),
        gpu.name,
        if is_best(judged) { " even at its best block size" } else { of_bounds(judged) },
    );
    let message = format!("{reached}: {}", why(judged, &gpu.target, &binding));
    let fits = format!("{} an SM", blocks_of_threads(judged));
    let finding = Finding::new(message).label(evidence(context, kernel, binding.first().copied(), fits));
    with_facts(finding, judged)
}

/// `84 registers per thread (88 allocated) leave room for 5 blocks of 128 threads an SM, 20 of 64 warps`
fn why(judged: &Judged, target: &Target, binding: &[Limiter]) -> String {
    let warps = format!("{} of {} warps", judged.occupancy.active_warps, judged.occupancy.max_warps);
    if binding == [Limiter::Blocks] {
        let threads = threads(judged.launch.threads);
        return format!("an SM holds at most {} blocks, which at {threads} each are {warps}", target.max_blocks_per_sm);
    }
    let causes: Vec<String> = binding.iter().map(|limiter| cause(judged, target, *limiter)).collect();
    let leave = match binding {
        [Limiter::SharedMemory] => "leaves",
        [_] => "leave",
        _ => "each leave",
    };
    format!("{} {leave} room for {} an SM, {warps}", and(&causes), blocks_of_threads(judged))
}

/// What a limit is made of.
fn cause(judged: &Judged, target: &Target, limiter: Limiter) -> String {
    match limiter {
        Limiter::Registers => registers(judged, target),
        Limiter::SharedMemory => shared_memory(judged),
        Limiter::Blocks => format!("the limit of {} blocks", target.max_blocks_per_sm),
        Limiter::Barriers => counted(judged.launch.barriers, "barrier") + " per block",
        Limiter::Warps | Limiter::VirtualResources => limiter.words().to_owned(),
    }
}

/// `84 registers per thread (88 allocated)`
pub(super) fn registers(judged: &Judged, target: &Target) -> String {
    let used = judged.launch.registers;
    let per_warp = judged.occupancy.allocated_registers_per_block / judged.launch.warps(target).max(1);
    let allocated = per_warp / target.warp_size.max(1);
    let rounded = if allocated == used { String::new() } else { format!(" ({allocated} allocated)") };
    format!("{} per thread{rounded}", counted(used, "register"))
}

/// `41984 B of shared memory per block (43008 B allocated)`
fn shared_memory(judged: &Judged) -> String {
    let used = shared_bytes(judged);
    let allocated = judged.occupancy.allocated_shared_per_block;
    let mut notes = Vec::new();
    if !judged.launch.dynamic_shared.is_zero() {
        notes.push(format!("{} dynamic", judged.launch.dynamic_shared));
    }
    if allocated != used {
        notes.push(format!("{allocated} allocated"));
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    format!("{used} of shared memory per block{notes}")
}

/// Static and dynamic shared memory together.
pub(super) fn shared_bytes(judged: &Judged) -> Bytes {
    judged.launch.static_shared + judged.launch.dynamic_shared
}

/// `5 blocks of 128 threads`
fn blocks_of_threads(judged: &Judged) -> String {
    format!("{} of {}", counted(judged.occupancy.blocks_per_sm, "block"), threads(judged.launch.threads))
}

/// The part of the `Used` line that a limit comes from.
pub(super) fn evidence(
    context: &Context<'_>,
    kernel: &Kernel,
    limiter: Option<Limiter>,
    text: impl Into<String>,
) -> Option<Label> {
    let printed = &kernel.resources;
    let (start, end) = match limiter {
        Some(Limiter::SharedMemory) => (format!("{} bytes smem", printed.static_shared?.get()), "bytes smem"),
        Some(Limiter::Barriers) => (format!("used {} barriers", printed.barriers?), "barriers"),
        _ => ("Used".to_owned(), "registers"),
    };
    context.label(kernel.evidence.usage, &start, end, text)
}

/// The numbers behind every finding on an occupancy.
pub(super) fn with_facts(finding: Finding, judged: &Judged) -> Finding {
    let (launch, occupancy) = (&judged.launch, &judged.occupancy);
    let limiters = Limiter::ALL.into_iter().filter(|limiter| binds(judged, *limiter)).map(Limiter::name).collect();
    finding
        .fact("threads", launch.threads)
        .fact("block_source", judged.source.name())
        .fact("registers", launch.registers)
        .fact("static_shared_bytes", launch.static_shared)
        .fact("dynamic_shared_bytes", launch.dynamic_shared)
        .fact("blocks_per_sm", occupancy.blocks_per_sm)
        .fact("active_warps", occupancy.active_warps)
        .fact("max_warps", occupancy.max_warps)
        .fact("occupancy", occupancy.fraction())
        .fact("limiters", Fact::Words(limiters))
}

/// `1 thread`, `128 threads`
pub(super) fn threads(count: u32) -> String {
    counted(count, "thread")
}

/// `1 block`, `5 blocks`
pub(super) fn counted(count: u32, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// `a`, `a and b`, `a, b and c`
pub(super) fn and(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
