//! The launch as JSON, version 1. What is not known is `null`.

use std::io::{self, Write};

use serde::Serialize;

use super::latency::{LATENCIES, independent};
use super::table::ratio;
use super::{Found, Request};
use crate::gpu::Gpu;
use crate::gpu::cut::{Cut, Kind, Segment, WARP, WarpOfBlock, warps_of};
use crate::gpu::latency::{Latency, instructions_to_hide, warps_to_hide};
use crate::model::AXES;
use crate::report::occupancy::all_notes;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    launch: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    gpu: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    /// A dimension that the kernel does not check is `null`.
    extent: Option<[Option<u64>; 3]>,
    registers: Option<u32>,
    #[serde(flatten)]
    cut: CutEntry,
    #[serde(flatten)]
    held: HeldEntry,
    latency: Vec<LatencyEntry>,
    refusals: &'a [String],
    largest_block: Option<u32>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct CutEntry {
    blocks: u64,
    threads_per_block: u32,
    warp_size: u32,
    warps_per_block: u32,
    idle_lanes_per_block: u32,
    warps_total: u128,
    lanes_total: u128,
    lanes_working: u128,
    lanes_idle: u128,
    idle_share: f64,
    /// The rest of these are `null` without an extent.
    elements: Option<u128>,
    elements_without_thread: Option<u128>,
    uncovered: Vec<BeyondEntry>,
    warps_without_work: Option<u128>,
    warps_at_edge: Option<u128>,
    blocks_without_work: Option<u64>,
    warps: Vec<WarpEntry>,
    map: Vec<KindEntry>,
}

#[derive(Serialize)]
struct BeyondEntry {
    axis: &'static str,
    first: u64,
    last: u64,
}

/// One warp of a block: which threads it has.
#[derive(Serialize)]
struct WarpEntry {
    lanes: u32,
    first: [u32; 3],
    last: [u32; 3],
    rows: u32,
}

/// Blocks that are alike: the first and the last of each dimension, and the lanes that have work in each warp.
#[derive(Serialize)]
struct KindEntry {
    x: [u32; 2],
    y: [u32; 2],
    z: [u32; 2],
    blocks: u64,
    lanes_working: Vec<u32>,
}

#[derive(Serialize)]
struct HeldEntry {
    blocks_per_sm: Option<u32>,
    active_warps: Option<u32>,
    max_warps: u32,
    occupancy: Option<f64>,
    limiters: Option<Vec<&'static str>>,
    sms: Option<u32>,
    sms_without_block: Option<u32>,
    blocks_at_once: Option<u64>,
    fills: Option<u64>,
    full_fills: Option<u64>,
    waves: Option<f64>,
    tail_blocks: Option<u64>,
    tail_idle_share: Option<f64>,
    tail_efficiency: Option<f64>,
    warps_per_scheduler: Option<f64>,
    bounds: Option<BoundEntry>,
}

/// What is known where registers are not told, or blocks come in clusters.
#[derive(Serialize)]
struct BoundEntry {
    blocks_per_sm_at_most: u32,
    blocks_at_once_at_most: Option<u64>,
    fills_at_least: Option<u64>,
    /// If it can be launched; `null` for clusters.
    fills_at_most: Option<u64>,
    /// The most registers a thread at which `blocks_per_sm_at_most` is reached; `null` where registers are told.
    up_to_registers: Option<u32>,
}

#[derive(Serialize)]
struct LatencyEntry {
    of: &'static str,
    cycles: [u32; 2],
    /// Independent instructions with which a full SM hides it.
    independent_instructions: Option<[u64; 2]>,
    warps_per_scheduler: Vec<NeedEntry>,
}

#[derive(Serialize)]
struct NeedEntry {
    independent_instructions: u32,
    warps: [u64; 2],
}

/// Writes one object with an entry for each GPU.
///
/// # Errors
/// When the writer fails.
pub fn json(found: &[Found], request: &Request, out: &mut dyn Write) -> io::Result<()> {
    let launch = found.iter().map(|one| entry(one, request)).collect();
    serde_json::to_writer_pretty(&mut *out, &Document { version: 1, launch })?;
    writeln!(out)
}

fn entry<'a>(found: &'a Found, request: &Request) -> Entry<'a> {
    let cut = &request.cut;
    Entry {
        gpu: &found.gpu.name,
        grid: cut.grid.dimensions(),
        block: cut.block.dimensions(),
        extent: cut.extent.map(|extent| extent.dimensions()),
        registers: request.registers,
        cut: self::cut(cut),
        held: held(found, request),
        latency: LATENCIES.iter().map(|(name, _, latency)| self::latency(name, *latency, found, request)).collect(),
        refusals: &found.refusals,
        largest_block: found.largest_block,
        notes: all_notes(&found.gpu),
    }
}

fn cut(cut: &Cut) -> CutEntry {
    let (lanes, working) = (cut.lanes(), cut.working_lanes());
    let beyond = cut.beyond().into_iter();
    CutEntry {
        blocks: cut.grid.blocks(),
        threads_per_block: cut.block.threads(),
        warp_size: WARP,
        warps_per_block: cut.warps_per_block(),
        idle_lanes_per_block: cut.idle_lanes_per_block(),
        warps_total: cut.warps(),
        lanes_total: lanes,
        lanes_working: working,
        lanes_idle: lanes - working,
        idle_share: ratio(lanes - working, lanes),
        elements: cut.elements(),
        elements_without_thread: cut.extent.map(|_| cut.elements_without_thread()),
        uncovered: beyond
            .map(|part| BeyondEntry { axis: AXES[part.axis], first: part.first, last: part.last })
            .collect(),
        warps_without_work: cut.extent.map(|_| cut.idle_warps()),
        warps_at_edge: cut.extent.map(|_| cut.split_warps()),
        blocks_without_work: cut.extent.map(|_| cut.idle_blocks()),
        warps: warps_of(cut.block).iter().map(|warp| self::warp(cut, warp)).collect(),
        map: cut.kinds.iter().map(kind).collect(),
    }
}

fn warp(cut: &Cut, warp: &WarpOfBlock) -> WarpEntry {
    WarpEntry { lanes: warp.lanes, first: warp.first, last: warp.last, rows: warp.rows(cut.block) }
}

fn kind(kind: &Kind) -> KindEntry {
    let [x, y, z] = kind.place.map(|segment: Segment| [segment.first, segment.last]);
    KindEntry { x, y, z, blocks: kind.blocks(), lanes_working: kind.working().collect() }
}

fn held(found: &Found, request: &Request) -> HeldEntry {
    let answer = &found.occupancy;
    // Where registers are not told, what an SM holds is a bound.
    let is_told = found.up_to_registers.is_none();
    let fill = found.fill.filter(|_| !found.is_bound);
    HeldEntry {
        blocks_per_sm: is_told.then_some(answer.blocks_per_sm),
        active_warps: is_told.then_some(answer.active_warps),
        max_warps: answer.max_warps,
        occupancy: is_told.then(|| answer.fraction()),
        limiters: is_told.then(|| answer.limiters.iter().map(|limiter| limiter.name()).collect()),
        sms: found.gpu.device.sm_count,
        sms_without_block: found.idle_sms(request),
        blocks_at_once: if found.is_refused() { Some(0) } else { fill.map(|fill| fill.at_once) },
        fills: found.fills(),
        full_fills: fill.map(|fill| fill.full()),
        waves: fill.map(|fill| fill.waves()),
        tail_blocks: fill.map(|fill| fill.rest()),
        tail_idle_share: fill.map(|fill| fill.idle()),
        tail_efficiency: fill.map(|fill| fill.efficiency()),
        warps_per_scheduler: is_told.then(|| answer.warps_per_scheduler()),
        bounds: (found.is_bound && !found.is_refused()).then(|| BoundEntry {
            blocks_per_sm_at_most: answer.blocks_per_sm,
            blocks_at_once_at_most: found.fill.map(|fill| fill.at_once),
            fills_at_least: found.fill.map(|fill| fill.fills()),
            fills_at_most: found.worst.map(|fill| fill.fills()),
            up_to_registers: found.up_to_registers,
        }),
    }
}

fn latency(of: &'static str, latency: Latency, found: &Found, request: &Request) -> LatencyEntry {
    let answer = &found.occupancy;
    let Gpu { target, .. } = &found.gpu;
    let issues = target.issues_per_scheduler;
    let hide = |cycles: u32| instructions_to_hide(cycles, issues, answer.active_warps, answer.schedulers.max(1));
    let both = hide(latency.from).zip(hide(latency.to)).filter(|_| found.up_to_registers.is_none());
    let need = |independent_instructions: u32| NeedEntry {
        independent_instructions,
        warps: [latency.from, latency.to].map(|cycles| warps_to_hide(cycles, independent_instructions, issues)),
    };
    LatencyEntry {
        of,
        cycles: [latency.from, latency.to],
        independent_instructions: both.map(|(from, to)| [from, to]),
        warps_per_scheduler: independent(request).into_iter().map(need).collect(),
    }
}
