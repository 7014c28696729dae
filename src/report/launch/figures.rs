//! The figures of the report for people: those of the cut, and those of a GPU.

use std::fmt::Display;

use super::table::{Row, counted, ratio, share};
use super::{Found, Request};
use crate::gpu::cut::{Cut, WARP};
use crate::gpu::{Fill, Gpu};
use crate::model::{AXES, percent};
use crate::report::occupancy::short;
use crate::report::style::Style;

/// Fills up to which the share of their places that is used says something.
const FILLS: u64 = 100;

/// Dimensions in characters that can be shown.
pub(super) fn sized(style: Style, size: impl Display) -> String {
    size.to_string().replace('×', style.choose("×", "x"))
}

/// The same for dimensions that say more than their product.
fn shape(style: Style, size: impl Display) -> String {
    let shape = sized(style, size);
    if shape.bytes().all(|byte| byte.is_ascii_digit()) { String::new() } else { shape }
}

/// What a launch is cut into.
pub(super) fn of_cut(cut: &Cut, style: Style) -> Vec<Row> {
    let warps = cut.warps_per_block();
    let idle = cut.idle_lanes_per_block();
    let last = match idle {
        0 => "every warp is full".to_owned(),
        _ => format!("of {}: its last warp has {}", warps * WARP, counted(WARP - idle, "thread")),
    };
    let working = share(ratio(cut.working_lanes(), cut.lanes()));
    let mut rows = vec![
        Row::new("blocks", cut.grid.blocks(), shape(style, cut.grid)),
        Row::new("threads a block", cut.block.threads(), shape(style, cut.block)),
        Row::new("warps a block", warps, format!("of {WARP} lanes")),
        Row::new("idle lanes a block", idle, last),
        Row::new("lanes", cut.lanes(), format!("in {}", counted(cut.warps(), "warp"))),
        Row::new("lanes that work", cut.working_lanes(), working),
    ];
    if let Some(elements) = cut.elements() {
        rows.extend(of_extent(cut, elements, style));
    }
    rows
}

fn of_extent(cut: &Cut, elements: u128, style: Style) -> Vec<Row> {
    let beyond = cut.threads() - cut.working_lanes();
    let mut rows = vec![Row::new("elements", elements, extent(cut, style))];
    let mut add = |name: &'static str, count: u128, why: &str| {
        if count > 0 {
            rows.push(Row::new(name, count, why));
        }
    };
    add("without a thread", cut.elements_without_thread(), "they lie beyond the grid");
    add("threads beyond them", beyond, "a bounds check sends them away");
    add("warps without work", cut.idle_warps(), &format!("of {}", cut.warps()));
    add("warps at the edge", cut.split_warps(), "some of their threads work, and some do not");
    add("blocks without work", u128::from(cut.idle_blocks()), &format!("of {}", cut.grid.blocks()));
    rows
}

/// `28×28`, and the dimensions that nothing checks.
fn extent(cut: &Cut, style: Style) -> String {
    let bounds = cut.extent.map_or([None; 3], |extent| extent.dimensions());
    let told: Vec<String> = bounds.iter().flatten().map(u64::to_string).collect();
    let has_several = |axis: usize| cut.grid.dimensions()[axis] > 1 || cut.block.dimensions()[axis] > 1;
    let is_open = |axis: &usize| bounds[*axis].is_none() && has_several(*axis);
    let open: Vec<&str> = (0..3).filter(is_open).map(|axis| AXES[axis]).collect();
    match (told.as_slice(), open.as_slice()) {
        ([_], []) => String::new(),
        (_, []) => told.join(style.choose("×", "x")),
        _ => format!("{}, all of {}", told.join(style.choose("×", "x")), open.join(" and ")),
    }
}

/// What one GPU makes of it.
pub(super) fn of_gpu(found: &Found, request: &Request, style: Style) -> Vec<Row> {
    let answer = &found.occupancy;
    let most = if found.up_to_registers.is_some() { style.choose("≤ ", "<= ") } else { "" };
    let mut rows = vec![Row::new("blocks an SM", format!("{most}{}", answer.blocks_per_sm), held(found))];
    match found.fill {
        None => {
            rows.push(Row::new("blocks at once", "unknown", no_sms(&found.gpu)));
            rows.push(Row::new("fills", "unknown", ""));
        }
        Some(fill) => rows.extend(of_fill(found, fill, request, style)),
    }
    let average = answer.warps_per_scheduler();
    let why = match found.warps_of_grid(request) {
        Some(warps) => format!("where an SM is full; this grid gives {} on average", rounded(warps)),
        None if average.fract() == 0.0 => String::new(),
        None => format!("{} on the fullest of {}", answer.warps_of_fullest_scheduler(), answer.schedulers),
    };
    rows.push(Row::new("warps a scheduler", format!("{most}{}", short(average)), why));
    rows
}

/// `32 of 64 warps, 50 % occupancy, limited by registers`
fn held(found: &Found) -> String {
    let answer = &found.occupancy;
    match found.up_to_registers {
        Some(most) => format!("holds for up to {} a thread; --registers tells how many", counted(most, "register")),
        None => {
            let (warps, most) = (answer.active_warps, answer.max_warps);
            let share = percent(answer.fraction());
            format!("{warps} of {most} warps, {share} occupancy, limited by {}", answer.limiters)
        }
    }
}

/// Why the number of SMs is not known.
pub(super) fn no_sms(gpu: &Gpu) -> String {
    match gpu.product {
        Some(_) => "the number of its SMs is not published".to_owned(),
        None if gpu.arch.is_some_and(|arch| arch.to_string() == gpu.name) => {
            format!("name a product, {} stands for several", gpu.name)
        }
        None => "the file tells no number of SMs".to_owned(),
    }
}

fn of_fill(found: &Found, fill: Fill, request: &Request, style: Style) -> Vec<Row> {
    let sms = found.gpu.device.sm_count.unwrap_or(0);
    let most = if found.is_bound { style.choose("≤ ", "<= ") } else { "" };
    let clusters = match request.cluster {
        Some(blocks) if blocks > 1 => format!(", in clusters of {blocks}; fewer where GPCs differ in size"),
        _ => String::new(),
    };
    let at_once = format!("{most}{}", fill.at_once);
    let mut rows =
        vec![Row::new("blocks at once", at_once, format!("on {sms} SMs{clusters}")), of_fills(found, fill, style)];
    if !found.is_bound {
        let places = match fill.rest() {
            0 => String::new(),
            rest => format!("{rest} of {} places have a block", fill.at_once),
        };
        rows.push(Row::new("idle in the last", share(fill.idle()), places));
    }
    if let Some(idle) = found.idle_sms(request).filter(|idle| *idle > 0) {
        rows.push(Row::new("SMs without a block", idle, format!("of {sms}, whatever the occupancy")));
    }
    rows
}

fn of_fills(found: &Found, fill: Fill, style: Style) -> Row {
    let worst =
        found.worst.map(|worst| format!("{} if registers leave an SM as few blocks as they can", worst.fills()));
    match found.fills() {
        None => Row::new("fills", format!("{}{}", style.choose("≥ ", ">= "), fill.fills()), worst.unwrap_or_default()),
        Some(fills) if !found.is_bound && fill.rest() > 0 && (2..=FILLS).contains(&fills) => {
            Row::new("fills", fills, format!("{} of all their places used", share(fill.efficiency())))
        }
        Some(fills) => Row::new("fills", fills, ""),
    }
}

/// A small number with two digits that say something.
fn rounded(number: f64) -> String {
    match number {
        large if large >= 10.0 => format!("{large:.0}"),
        middle if middle >= 0.095 => format!("{middle:.1}"),
        little if little >= 0.005 => format!("{little:.2}"),
        _ => "under 0.01".to_owned(),
    }
}
