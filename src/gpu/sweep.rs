//! What other block sizes and register counts would give: sweeps, NVIDIA's suggestion, and the nearest steps.
//!
//! All of it asks the exact model. Formulas for "the next step" go wrong at every one of its roundings.

use super::occupancy::{Launch, LaunchError, Occupancy, SharedLimit, occupancy};
use super::target::Target;
use crate::model::Bytes;

/// One point of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Registers a thread.
    pub registers: u32,
    /// Threads a block.
    pub threads: u32,
    /// What an SM holds of it.
    pub occupancy: Occupancy,
}

/// Occupancy at every whole number of warps up to the largest block, rising.
///
/// # Errors
/// When the launch makes no sense, whatever the block size.
pub fn block_sweep(target: &Target, launch: &Launch) -> Result<Vec<Point>, LaunchError> {
    whole_warps(target).map(|threads| point(target, launch.with_threads(threads))).collect()
}

/// Occupancy at every register count at which the allocation changes, up to the compiler's maximum, rising.
///
/// # Errors
/// When the launch makes no sense, whatever the registers.
pub fn register_sweep(target: &Target, launch: &Launch) -> Result<Vec<Point>, LaunchError> {
    let unit = (target.register_alloc_unit / target.warp_size).max(1);
    let most = target.max_registers_per_thread;
    let steps = (1..=most.div_ceil(unit)).map(|step| (step * unit).min(most));
    steps.map(|registers| point(target, launch.with_registers(registers))).collect()
}

/// A part of a sweep over shared memory: up to this size nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPoint {
    /// Static and dynamic shared memory a block together.
    pub shared: Bytes,
    /// What an SM holds of it, from the size after the last point on.
    pub occupancy: Occupancy,
}

/// Occupancy at every size of shared memory after which it changes, up to the most that a block may have, rising.
///
/// # Errors
/// When the launch makes no sense, whatever the shared memory.
pub fn shared_sweep(target: &Target, launch: &Launch) -> Result<Vec<SharedPoint>, LaunchError> {
    let most = target.shared_per_block_optin.max(target.shared_per_block_default);
    let at = |bytes: u32| occupancy(target, &with_total_shared(launch, bytes));
    let mut points = Vec::new();
    let mut first = 0;
    while first <= most {
        let here = at(first)?;
        // More shared memory never gives more blocks, so the last size that is as good is found by halving.
        let (mut same, mut beyond) = (first, most + 1);
        while beyond - same > 1 {
            let middle = same + (beyond - same) / 2;
            if at(middle)?.active_warps == here.active_warps { same = middle } else { beyond = middle }
        }
        points.push(SharedPoint { shared: Bytes(same), occupancy: here });
        first = same + 1;
    }
    Ok(points)
}

fn point(target: &Target, launch: Launch) -> Result<Point, LaunchError> {
    let occupancy = occupancy(target, &launch)?;
    Ok(Point { registers: launch.registers, threads: launch.threads, occupancy })
}

/// Block sizes that fill their warps, rising.
fn whole_warps(target: &Target) -> impl DoubleEndedIterator<Item = u32> {
    let warp_size = target.warp_size;
    (1..=target.max_threads_per_block / warp_size).map(move |warps| warps * warp_size)
}

/// The block size that NVIDIA's `cudaOccupancyMaxPotentialBlockSize` suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Suggestion {
    /// Threads a block; 0 when no block size can be launched.
    pub threads: u32,
    /// Blocks an SM holds of it: the smallest grid that fills one SM.
    pub blocks_per_sm: u32,
}

/// The block size with the most resident threads, the larger one where several have as many.
///
/// `max_threads` is the kernel's own limit, as from `__launch_bounds__`; the threads of `launch` play no part.
///
/// # Errors
/// When the launch makes no sense, whatever the block size.
pub fn suggest_block_size(
    target: &Target,
    launch: &Launch,
    max_threads: Option<u32>,
) -> Result<Suggestion, LaunchError> {
    let limit = target.max_threads_per_block.min(max_threads.unwrap_or(u32::MAX));
    let mut best = Suggestion::default();
    let mut most_threads = 0;
    for warps in (1..=limit.div_ceil(target.warp_size)).rev() {
        let threads = (warps * target.warp_size).min(limit);
        let blocks_per_sm = occupancy(target, &launch.with_threads(threads))?.blocks_per_sm;
        if blocks_per_sm * threads > most_threads {
            most_threads = blocks_per_sm * threads;
            best = Suggestion { threads, blocks_per_sm };
        }
        if most_threads == target.max_threads_per_sm {
            break;
        }
    }
    Ok(best)
}

/// The largest block of whole warps that could be launched with the registers and shared memory of `launch`.
#[must_use]
pub fn largest_block(target: &Target, launch: &Launch) -> Option<u32> {
    whole_warps(target).rev().find(|threads| active_warps(target, &launch.with_threads(*threads)) > 0)
}

/// A value to change to, and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The new value: registers a thread, bytes of shared memory a block, or threads a block.
    pub value: u32,
    /// The value now.
    pub from: u32,
    /// What an SM then holds.
    pub occupancy: Occupancy,
}

impl Step {
    /// How far the new value is from the old one, with its sign.
    #[must_use]
    pub fn change(&self) -> i64 {
        i64::from(self.value) - i64::from(self.from)
    }
}

/// The nearest value of each quantity, alone, that changes occupancy in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Registers a thread.
    pub registers: Option<Step>,
    /// Static and dynamic shared memory a block together, bytes.
    pub shared_memory: Option<Step>,
    /// Threads a block, among whole warps.
    pub block: Option<Step>,
}

/// The nearest steps in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Next {
    /// The smallest changes that raise occupancy.
    pub raises: Change,
    /// The smallest changes that lower it.
    pub lowers: Change,
}

/// The smallest change of registers, of shared memory and of block size that raises occupancy, and the smallest that
/// lowers it; none where no value in range does. Occupancy is compared in active warps.
///
/// # Errors
/// When the launch makes no sense.
pub fn next(target: &Target, launch: &Launch) -> Result<Next, LaunchError> {
    let now = occupancy(target, launch)?.active_warps;
    Ok(Next {
        raises: Change {
            registers: fewer_registers(target, launch, now),
            shared_memory: less_shared(target, launch, now),
            block: nearest_block(target, launch, |warps| warps > now),
        },
        lowers: Change {
            registers: more_registers(target, launch, now),
            shared_memory: more_shared(target, launch, now),
            block: nearest_block(target, launch, |warps| warps < now),
        },
    })
}

fn fewer_registers(target: &Target, launch: &Launch, now: u32) -> Option<Step> {
    let fewer = (1..launch.registers.min(target.header_max_registers_per_thread + 1)).rev();
    fewer
        .into_iter()
        .map(|registers| launch.with_registers(registers))
        .find(|changed| active_warps(target, changed) > now)
        .and_then(|changed| step(target, &changed, launch.registers, changed.registers))
}

fn more_registers(target: &Target, launch: &Launch, now: u32) -> Option<Step> {
    let more = launch.registers.checked_add(1)?..=target.max_registers_per_thread;
    more.into_iter()
        .map(|registers| launch.with_registers(registers))
        .find(|changed| active_warps(target, changed) < now)
        .and_then(|changed| step(target, &changed, launch.registers, changed.registers))
}

/// More shared memory never gives more blocks, so the edge is found by halving.
fn less_shared(target: &Target, launch: &Launch, now: u32) -> Option<Step> {
    let total = u32::try_from(launch.shared_bytes()).ok()?;
    let raises = |bytes: u32| active_warps(target, &with_total_shared(launch, bytes)) > now;
    if total == 0 || !raises(0) {
        return None;
    }
    // `low` raises, `high` does not.
    let (mut low, mut high) = (0, total);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if raises(middle) { low = middle } else { high = middle }
    }
    step(target, &with_total_shared(launch, low), total, low)
}

fn more_shared(target: &Target, launch: &Launch, now: u32) -> Option<Step> {
    let total = u32::try_from(launch.shared_bytes()).ok()?;
    let most = target.shared_per_block_optin.max(target.shared_per_block_default);
    let lowers = |bytes: u32| active_warps(target, &with_total_shared(launch, bytes)) < now;
    if total >= most || !lowers(most) {
        return None;
    }
    // `high` lowers, `low` does not.
    let (mut low, mut high) = (total, most);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if lowers(middle) { high = middle } else { low = middle }
    }
    step(target, &with_total_shared(launch, high), total, high)
}

/// The launch with `bytes` of shared memory in all: dynamic memory changes first, as it is the easier one to change.
fn with_total_shared(launch: &Launch, bytes: u32) -> Launch {
    let static_shared = launch.static_shared.0.min(bytes);
    let dynamic_shared = Bytes(bytes - static_shared);
    let shared_limit = match launch.shared_limit {
        // Whoever asks for more also raises the kernel's own maximum.
        SharedLimit::OptIn { max_dynamic } => SharedLimit::OptIn { max_dynamic: max_dynamic.max(dynamic_shared) },
        other => other,
    };
    Launch { shared_limit, ..launch.with_shared(Bytes(static_shared), dynamic_shared) }
}

/// The nearest whole number of warps for which `wanted` holds; of two equally near ones the one with fewer threads.
fn nearest_block(target: &Target, launch: &Launch, wanted: impl Fn(u32) -> bool) -> Option<Step> {
    whole_warps(target)
        .map(|threads| launch.with_threads(threads))
        .filter(|changed| changed.threads != launch.threads && wanted(active_warps(target, changed)))
        .min_by_key(|changed| changed.threads.abs_diff(launch.threads))
        .and_then(|changed| step(target, &changed, launch.threads, changed.threads))
}

fn step(target: &Target, changed: &Launch, from: u32, value: u32) -> Option<Step> {
    let occupancy = occupancy(target, changed).ok()?;
    Some(Step { value, from, occupancy })
}

fn active_warps(target: &Target, launch: &Launch) -> u32 {
    occupancy(target, launch).map_or(0, |occupancy| occupancy.active_warps)
}
