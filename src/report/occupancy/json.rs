//! The calculator's answer as JSON, version 1.

use crate::report::wire::Escaped;
use std::io::{self, Write};

use serde::Serialize;

use super::{Calculation, Request};
use crate::gpu::{Change, Level, Limiters, Limits, Next, Point, Step, cluster_bound};

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    occupancy: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    gpu: &'a str,
    block: [u32; 3],
    blocks_per_sm: u32,
    active_warps: u32,
    max_warps: u32,
    occupancy: f64,
    limiters: Vec<&'static str>,
    limits: LimitEntry,
    warps_per_scheduler: f64,
    allocated_registers_per_block: u32,
    allocated_shared_per_block: u32,
    next: NextEntry,
    sweep: Vec<SweepEntry>,
    levels: LevelEntries,
    suggested_block: Option<u32>,
    largest_block: Option<u32>,
    refusals: Vec<String>,
    cluster: Option<ClusterEntry>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct LimitEntry {
    warps: Option<u32>,
    registers: Option<u32>,
    shared_memory: Option<u32>,
    blocks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    barriers: Option<u32>,
}

#[derive(Serialize)]
struct NextEntry {
    raises: ChangeEntry,
    lowers: ChangeEntry,
}

#[derive(Serialize)]
struct ChangeEntry {
    registers: Option<StepEntry>,
    shared_memory: Option<StepEntry>,
    block: Option<StepEntry>,
}

#[derive(Serialize)]
struct StepEntry {
    value: u32,
    change: i64,
    blocks_per_sm: u32,
    active_warps: u32,
    occupancy: f64,
}

#[derive(Serialize)]
struct SweepEntry {
    over: &'static str,
    block: [u32; 3],
    registers: u32,
    blocks_per_sm: u32,
    active_warps: u32,
    occupancy: f64,
    limiters: Vec<&'static str>,
}

/// Every level of occupancy, falling, with the largest value at which it holds: the cliffs of the plots.
#[derive(Serialize)]
struct LevelEntries {
    registers: Vec<LevelEntry>,
    /// Bytes a block, static and dynamic together.
    shared_memory: Vec<LevelEntry>,
}

#[derive(Serialize)]
struct LevelEntry {
    up_to: u32,
    blocks_per_sm: u32,
    active_warps: u32,
    occupancy: f64,
}

#[derive(Serialize)]
struct ClusterEntry {
    size: u32,
    max_portable: u32,
    max_non_portable: u32,
    /// An upper bound, `null` where the number of SMs is not known.
    clusters_at_most: Option<u64>,
}

/// Writes one object with an entry for each GPU.
///
/// # Errors
/// When the writer fails.
pub fn json(calculations: &[Calculation], request: &Request, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Escaped(out);
    let occupancy = calculations.iter().map(|found| entry(found, request)).collect();
    serde_json::to_writer_pretty(&mut *out, &Document { version: 1, occupancy })?;
    writeln!(out)
}

fn entry<'a>(found: &'a Calculation, request: &Request) -> Entry<'a> {
    let answer = &found.occupancy;
    Entry {
        gpu: &found.gpu.name,
        block: request.block.dimensions(),
        blocks_per_sm: answer.blocks_per_sm,
        active_warps: answer.active_warps,
        max_warps: answer.max_warps,
        occupancy: answer.fraction(),
        limiters: names(answer.limiters),
        limits: limits(&answer.limits),
        warps_per_scheduler: answer.warps_per_scheduler(),
        allocated_registers_per_block: answer.allocated_registers_per_block,
        allocated_shared_per_block: answer.allocated_shared_per_block.0,
        next: next(&found.next),
        sweep: sweep(found),
        levels: LevelEntries { registers: levels(&found.register_levels), shared_memory: levels(&found.shared_levels) },
        suggested_block: Some(found.suggestion.threads).filter(|threads| *threads > 0),
        largest_block: found.largest_block,
        refusals: found.refusals.iter().map(ToString::to_string).collect(),
        cluster: request.cluster.map(|size| cluster(found, size)),
        notes: super::single::all_notes(&found.gpu),
    }
}

fn names(limiters: Limiters) -> Vec<&'static str> {
    limiters.iter().map(|limiter| limiter.name()).collect()
}

fn limits(limits: &Limits) -> LimitEntry {
    LimitEntry {
        warps: limits.warps,
        registers: limits.registers,
        shared_memory: limits.shared_memory,
        blocks: limits.blocks,
        barriers: limits.barriers,
    }
}

fn next(next: &Next) -> NextEntry {
    NextEntry { raises: change(&next.raises), lowers: change(&next.lowers) }
}

fn change(change: &Change) -> ChangeEntry {
    ChangeEntry {
        registers: change.registers.as_ref().map(step),
        shared_memory: change.shared_memory.as_ref().map(step),
        block: change.block.as_ref().map(step),
    }
}

fn step(step: &Step) -> StepEntry {
    StepEntry {
        value: step.value,
        change: step.change(),
        blocks_per_sm: step.occupancy.blocks_per_sm,
        active_warps: step.occupancy.active_warps,
        occupancy: step.occupancy.fraction(),
    }
}

fn sweep(found: &Calculation) -> Vec<SweepEntry> {
    let blocks = found.blocks.iter().map(|point| swept("block", point));
    blocks.chain(found.registers.iter().map(|point| swept("registers", point))).collect()
}

fn levels(levels: &[Level]) -> Vec<LevelEntry> {
    let entry = |level: &Level| LevelEntry {
        up_to: level.up_to,
        blocks_per_sm: level.occupancy.blocks_per_sm,
        active_warps: level.occupancy.active_warps,
        occupancy: level.occupancy.fraction(),
    };
    levels.iter().map(entry).collect()
}

fn swept(over: &'static str, point: &Point) -> SweepEntry {
    SweepEntry {
        over,
        block: [point.threads, 1, 1],
        registers: point.registers,
        blocks_per_sm: point.occupancy.blocks_per_sm,
        active_warps: point.occupancy.active_warps,
        occupancy: point.occupancy.fraction(),
        limiters: names(point.occupancy.limiters),
    }
}

fn cluster(found: &Calculation, size: u32) -> ClusterEntry {
    let target = &found.gpu.target;
    let is_possible = size <= target.max_cluster_non_portable;
    let bound = found.gpu.device.sm_count.map(|sms| cluster_bound(sms, found.occupancy.blocks_per_sm, size));
    ClusterEntry {
        size,
        max_portable: target.max_cluster_portable,
        max_non_portable: target.max_cluster_non_portable,
        clusters_at_most: if is_possible { bound } else { Some(0) },
    }
}
