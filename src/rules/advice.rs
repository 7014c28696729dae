//! What would raise an occupancy: the smallest change of what binds, as the exact model has it.

use super::Context;
use super::limits::{and, binding, counted, is_best, shared_bytes, threads};
use super::standing::spills;
use crate::analyse::{BlockSource, Judged};
use crate::gpu::{Launch, Limiter, Occupancy, Target, block_sweep, occupancy, suggest_block_size};
use crate::model::{Bytes, Kernel, percent};

/// Registers a thread that a kernel may be able to do without.
const SMALL_STEP: u32 = 16;

const SPILLS: &str = "it spills as it is, so fewer registers are no remedy";

/// Advice on low occupancy, as one paragraph.
pub(super) fn raise(context: &Context<'_>, kernel: &Kernel, judged: &Judged) -> String {
    let target = &*context.numbers.gpu(judged).target;
    let mut parts = Vec::new();
    match binding(judged).as_slice() {
        [Limiter::Registers] if spills(kernel) => parts.push(SPILLS.to_owned()),
        [Limiter::Registers] => parts.extend(fewer_registers(target, judged)),
        [Limiter::SharedMemory] => parts.extend(less_shared_memory(target, judged)),
        [Limiter::Blocks] => {}
        [Limiter::Barriers] => parts.extend(fewer_barriers(target, judged)),
        several if several.contains(&Limiter::Registers) && spills(kernel) => {
            parts.push(format!("{}; {SPILLS}", tied(several)));
        }
        several => parts.push(all_of(target, judged, several)),
    }
    parts.extend(other_block(target, judged));
    if is_best(judged) {
        parts.push("this is the best of all block sizes, as none is known: `--block` tells the real one".to_owned());
    }
    if judged.source == BlockSource::LaunchBounds {
        parts.push(
            "launch bounds are the most threads, not those of a launch: `--block` tells the real ones".to_owned(),
        );
    }
    if parts.is_empty() {
        parts.push("no other block size holds more with what the kernel uses".to_owned());
    }
    parts.join("; ")
}

/// The smallest cut of registers that raises occupancy.
fn fewer_registers(target: &Target, judged: &Judged) -> Option<String> {
    let (launch, now) = (&judged.launch, judged.occupancy.active_warps);
    let (registers, after) = register_steps(target, launch)
        .filter_map(|registers| Some((registers, reached(target, judged, &launch.with_registers(registers))?)))
        .find(|(_, after)| after.active_warps > now)?;
    let fewer = launch.registers - registers;
    if fewer > SMALL_STEP {
        let next = counted(registers, "register");
        return Some(format!("no small step helps: the next is at {next} per thread ({fewer} fewer)"));
    }
    let at = format!("at {} per thread ({fewer} fewer) {}", counted(registers, "register"), fits(judged, &after));
    let bound = format!("`__launch_bounds__({}, {})`", launch.threads, after.blocks_per_sm);
    Some(if is_best(judged) {
        format!("{at}; fewer registers may spill")
    } else {
        format!("{at}: {bound} asks the compiler for it, which may spill")
    })
}

/// The register counts below that of `launch` at which the allocation changes, falling.
fn register_steps(target: &Target, launch: &Launch) -> impl Iterator<Item = u32> {
    let unit = (target.register_alloc_unit / target.warp_size.max(1)).max(1);
    let registers = launch.registers.min(target.header_max_registers_per_thread + 1);
    (1..registers.div_ceil(unit)).rev().map(move |step| step * unit)
}

/// The smallest cut of shared memory that raises occupancy.
fn less_shared_memory(target: &Target, judged: &Judged) -> Option<String> {
    let (used, now) = (shared_bytes(judged).get(), judged.occupancy.active_warps);
    let after = |bytes| reached(target, judged, &with_shared(&judged.launch, bytes));
    let bytes = largest(used, |bytes| after(bytes).is_some_and(|after| after.active_warps > now))?;
    let fits = fits(judged, &after(bytes)?);
    Some(format!("at {} of shared memory per block ({} less) {fits}", Bytes(bytes), Bytes(used - bytes)))
}

/// The smallest cut of barriers that raises occupancy.
fn fewer_barriers(target: &Target, judged: &Judged) -> Option<String> {
    let (launch, now) = (&judged.launch, judged.occupancy.active_warps);
    let with = |barriers| Launch { barriers, ..*launch };
    let (barriers, after) = (1..launch.barriers)
        .rev()
        .filter_map(|barriers| Some((barriers, reached(target, judged, &with(barriers))?)))
        .find(|(_, after)| after.active_warps > now)?;
    Some(format!("with {} per block {}", counted(barriers, "barrier"), fits(judged, &after)))
}

fn tied(limiters: &[Limiter]) -> String {
    let names: Vec<String> = limiters.iter().map(|limiter| limiter.words().to_owned()).collect();
    format!("{} bind alike, so each must give way", and(&names))
}

/// What each of several limits has to come down to before one more block fits.
fn all_of(target: &Target, judged: &Judged, limiters: &[Limiter]) -> String {
    let wanted = judged.occupancy.blocks_per_sm + 1;
    let tie = tied(limiters);
    if limiters.contains(&Limiter::Blocks) {
        let most = target.max_blocks_per_sm;
        return format!(
            "{tie}: an SM holds no more than {most} blocks, and larger ones must not need more of the rest"
        );
    }
    let needs: Option<Vec<String>> = limiters.iter().map(|limiter| need(target, judged, *limiter, wanted)).collect();
    match needs {
        Some(needs) => format!("{tie}: {} need {}", counted(wanted, "block"), and(&needs)),
        None => tie,
    }
}

/// What a limit has to come down to for `wanted` blocks of the size that was judged.
fn need(target: &Target, judged: &Judged, limiter: Limiter, wanted: u32) -> Option<String> {
    let launch = &judged.launch;
    let allows = |launch: &Launch| {
        let limit = occupancy(target, launch).ok().and_then(|answer| answer.limits.get(limiter));
        limit.is_none_or(|blocks| blocks >= wanted)
    };
    match limiter {
        Limiter::Registers => {
            let most = register_steps(target, launch).find(|registers| allows(&launch.with_registers(*registers)))?;
            Some(format!("at most {most} registers per thread"))
        }
        Limiter::SharedMemory => {
            let most = largest(shared_bytes(judged).get(), |bytes| allows(&with_shared(launch, bytes)))?;
            Some(format!("at most {} of shared memory per block", Bytes(most)))
        }
        Limiter::Barriers => {
            let most =
                (1..launch.barriers).rev().find(|barriers| allows(&Launch { barriers: *barriers, ..*launch }))?;
            Some(format!("at most {} per block", counted(most, "barrier")))
        }
        Limiter::Warps | Limiter::Blocks | Limiter::VirtualResources => None,
    }
}

/// The nearest of the block sizes that hold the most warps, where they hold more than this one.
fn other_block(target: &Target, judged: &Judged) -> Option<String> {
    if is_best(judged) {
        return None;
    }
    let points = block_sweep(target, &judged.launch).ok()?;
    let most = points.iter().map(|point| point.occupancy.active_warps).max()?;
    if most <= judged.occupancy.active_warps {
        return None;
    }
    let best = points.iter().filter(|point| point.occupancy.active_warps == most);
    let nearest = best.min_by_key(|point| point.threads.abs_diff(judged.launch.threads))?;
    Some(format!(
        "blocks of {} would hold {} with the same {} per thread{}",
        threads(nearest.threads),
        share(&nearest.occupancy),
        counted(judged.launch.registers, "register"),
        if shared_bytes(judged).is_zero() { "" } else { " and shared memory per block" },
    ))
}

/// What an SM holds of a changed launch: at its block size, or at the best where none is known.
fn reached(target: &Target, judged: &Judged, changed: &Launch) -> Option<Occupancy> {
    if !is_best(judged) {
        return occupancy(target, changed).ok();
    }
    let best = suggest_block_size(target, changed, None).ok()?;
    occupancy(target, &changed.with_threads(best.threads.max(1))).ok()
}

/// The largest number below `from` for which `holds` is true, where it holds for all smaller ones too.
fn largest(from: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    if from == 0 || !holds(0) {
        return None;
    }
    let (mut low, mut high) = (0, from);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// The launch with `bytes` of shared memory in all; dynamic memory goes first, as it is the easier one to change.
fn with_shared(launch: &Launch, bytes: u32) -> Launch {
    let own = launch.static_shared.get().min(bytes);
    launch.with_shared(Bytes(own), Bytes(bytes - own))
}

fn fits(judged: &Judged, after: &Occupancy) -> String {
    if is_best(judged) {
        return format!("the best block size reaches {}", percent(after.fraction()));
    }
    let fit = if after.blocks_per_sm == 1 { "fits" } else { "fit" };
    format!("{} {fit}, {}", counted(after.blocks_per_sm, "block"), percent(after.fraction()))
}

/// `48 of 48 warps (100 %)`
pub(super) fn share(occupancy: &Occupancy) -> String {
    format!("{} of {} warps ({})", occupancy.active_warps, occupancy.max_warps, percent(occupancy.fraction()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::Numbers;
    use crate::gpu::Gpu;
    use crate::model::{BlockSize, Kind, Report, Resources};

    /// The advice on a launch; a block of 0 threads is one that nobody told.
    fn advice(gpu: &str, launch: Launch) -> String {
        advice_for(0, gpu, launch)
    }

    /// The same for a kernel that spills so many bytes.
    fn advice_for(spilled: u32, gpu: &str, launch: Launch) -> String {
        let gpu = Gpu::resolve(gpu).expect("a GPU of the tables");
        let told = launch.threads > 0;
        let best = || suggest_block_size(&gpu.target, &launch, None).expect("a launch").threads;
        let launch = launch.with_threads(if told { launch.threads } else { best() });
        let judged = Judged {
            site: None,
            gpu: 0,
            launch,
            block: BlockSize::new(launch.threads, 1, 1).expect("a block"),
            source: if told { BlockSource::Option } else { BlockSource::Sweep },
            occupancy: occupancy(&gpu.target, &launch).expect("a launch"),
        };
        let mut numbers = Numbers::default();
        numbers.gpus.push(gpu);
        let kernel = Kernel {
            resources: Resources { spill_stores: Some(Bytes(spilled)), ..Resources::default() },
            ..Kernel::new(None, Kind::Entry, None)
        };
        raise(&Context::new(&Report::default(), &numbers), &kernel, &judged)
    }

    #[test]
    fn the_next_step_of_registers_comes_with_the_bound_that_asks_for_it() {
        assert_eq!(
            advice("sm_50", Launch::new(84, 128)),
            "at 80 registers per thread (4 fewer) 6 blocks fit, 37.5 %: `__launch_bounds__(128, 6)` asks the compiler \
             for it, which may spill"
        );
        assert!(
            advice("sm_80", Launch::new(92, 224)).ends_with(
                "blocks of 160 threads would hold 20 of 64 warps (31 %) with the same 92 registers per thread"
            )
        );
    }

    #[test]
    fn a_kernel_that_spills_is_not_told_to_use_fewer_registers() {
        let text = advice_for(64, "sm_50", Launch::new(84, 128));
        assert!(text.starts_with("it spills as it is, so fewer registers are no remedy"), "{text}");
        let tie = advice_for(64, "sm_80", Launch::new(64, 256).with_shared(Bytes(40000), Bytes::ZERO));
        assert!(tie.contains("each must give way; it spills") && !tie.contains("at most"), "{tie}");
    }

    #[test]
    fn a_step_that_is_far_off_is_only_named() {
        assert_eq!(
            advice("sm_80", Launch::new(128, 512)),
            "no small step helps: the next is at 64 registers per thread (64 fewer)"
        );
    }

    #[test]
    fn without_a_block_size_the_best_ones_are_compared() {
        // Blocks of 384 threads are the best for 130 registers, and gain nothing from 128; those of 512 do.
        assert_eq!(
            advice("sm_80", Launch::new(130, 0)),
            "at 128 registers per thread (2 fewer) the best block size reaches 25 %; fewer registers may spill; this \
             is the best of all block sizes, as none is known: `--block` tells the real one"
        );
    }

    #[test]
    fn the_next_step_of_shared_memory_is_found_to_the_byte() {
        let text = advice("sm_80", Launch::new(32, 128).with_shared(Bytes(41984), Bytes::ZERO));
        assert!(text.starts_with("at 40 KiB of shared memory per block (1024 B less) 4 blocks fit, 25 %; "), "{text}");
    }

    #[test]
    fn limits_that_tie_must_each_give_way() {
        assert_eq!(
            advice("sm_80", Launch::new(64, 256).with_shared(Bytes(40000), Bytes::ZERO)),
            "registers and shared memory bind alike, so each must give way: 5 blocks need at most 48 registers per \
             thread and at most 32512 B of shared memory per block"
        );
        assert_eq!(
            advice("sm_86", Launch::new(64, 64)),
            "registers and blocks bind alike, so each must give way: an SM holds no more than 16 blocks, and larger \
             ones must not need more of the rest"
        );
    }

    #[test]
    fn small_blocks_are_told_a_size_that_fills_the_sm() {
        assert_eq!(
            advice("sm_89", Launch::new(20, 32)),
            "blocks of 64 threads would hold 48 of 48 warps (100 %) with the same 20 registers per thread"
        );
    }
}
