//! The report for people: the answer first, then where it comes from.

use std::io::{self, Write};

use super::figures::{self, sized};
use super::table::{self, counted, ratio, share};
use super::{Found, Request, latency, map, warps};
use crate::gpu::Gpu;
use crate::gpu::cut::{Cut, WARP};
use crate::model::AXES;
use crate::report::occupancy::all_notes;
use crate::report::style::Style;

/// Fills from which on one that is not full does not matter.
const FEW_FILLS: u64 = 10;

/// Share of the last fill that idles, from which on it is worth a remedy.
const MUCH_IDLE: f64 = 0.2;

/// Writes the report: the cut, and each GPU under it.
///
/// # Errors
/// When the writer fails.
pub fn human(found: &[Found], request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let cut = &request.cut;
    if let Some(text) = uncovered(cut, style) {
        writeln!(out, "{}", style.paragraph("not covered:", &text))?;
    }
    // What never runs is said before what it would be.
    let runs = found.iter().any(|one| !one.is_refused());
    if runs {
        writeln!(out, "{}", answer(cut, style, "work"))?;
    }
    for one in found {
        gpu_answer(one, request, style, out)?;
    }
    if !runs {
        writeln!(out, "{}", answer(cut, style, "would work"))?;
    }
    writeln!(out)?;
    table::write(&figures::of_cut(cut, style), style, out)?;
    if let Some(rows) = warps::rows(cut.block, style) {
        writeln!(out, "\n{}", style.indented(&rows))?;
    }
    map::write(cut, style, out)?;
    gpus(found, request, style, out)?;
    let notes: Vec<(&str, String)> = helps(found, cut, style).into_iter().chain(notes(found)).collect();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for (lead, text) in notes {
        writeln!(out, "{}", style.paragraph(lead, &text))?;
    }
    Ok(())
}

/// The figures of each GPU, and the table of latencies where it is not that of the GPU before.
fn gpus(found: &[Found], request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut issues = None;
    for one in found.iter().filter(|one| !one.is_refused()) {
        writeln!(out, "\n  {}", style.strong(called(&one.gpu)))?;
        table::write(&figures::of_gpu(one, request, style), style, out)?;
        if issues.replace(one.gpu.target.issues_per_scheduler) != Some(one.gpu.target.issues_per_scheduler) {
            latency::table(one, request, style, out)?;
        }
        if let Some(text) = latency::verdict(one, request) {
            writeln!(out, "{}", style.indented(&text))?;
        }
    }
    Ok(())
}

/// `784 of 1024 lanes work, 240 idle (23 %): 4 blocks of 8 warps`
fn answer(cut: &Cut, style: Style, work: &str) -> String {
    let (lanes, working) = (cut.lanes(), cut.working_lanes());
    let blocks = format!("{} of {}", counted(cut.grid.blocks(), "block"), counted(cut.warps_per_block(), "warp"));
    let idle = lanes - working;
    let lanes = match idle {
        0 => format!("all {lanes} lanes {work}"),
        _ if working == 0 => format!("none of {lanes} lanes has work"),
        _ => format!("{working} of {lanes} lanes {work}, {idle} idle ({})", share(ratio(idle, lanes))),
    };
    let plain = format!("{lanes}: {blocks}");
    match plain.chars().count() <= style.width {
        true => format!("{}: {blocks}", style.strong(lanes)),
        false => style.paragraph("", &plain),
    }
}

/// The elements that the launch leaves without a thread, which is a bug where a thread takes one element.
fn uncovered(cut: &Cut, style: Style) -> Option<String> {
    let total = cut.elements()?;
    let dash = style.choose("–", "-");
    let part = |axis: usize, first: u64, last: u64| match first == last {
        true => format!("{} {first}", AXES[axis]),
        false => format!("{} {first}{dash}{last}", AXES[axis]),
    };
    let parts: Vec<String> = cut.beyond().iter().map(|beyond| part(beyond.axis, beyond.first, beyond.last)).collect();
    if parts.is_empty() {
        return None;
    }
    let remedy = match cut.fitting_grid() {
        Some(grid) => format!("the grid must be {}, unless each thread takes several", sized(style, grid)),
        None => "and no grid of such blocks has one for each".to_owned(),
    };
    let missing = cut.elements_without_thread();
    let have = if missing == 1 { "has" } else { "have" };
    let place = parts.join(" or ");
    Some(format!("{missing} of {} {have} no thread, {place}; {remedy}", counted(total, "element")))
}

/// What holds for the whole GPU, in a line; or why it takes no block.
fn gpu_answer(found: &Found, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let name = called(&found.gpu);
    for refusal in &found.refusals {
        writeln!(out, "{}", style.paragraph(&format!("cannot be launched on {name}:"), refusal))?;
    }
    if found.is_refused() {
        return match found.largest_block {
            Some(threads) => {
                writeln!(out, "{}", style.strong(format!("the largest block that fits has {threads} threads")))
            }
            None => Ok(()),
        };
    }
    let text = match found.fill {
        None => {
            let most = if found.is_bound { "at most " } else { "" };
            let blocks = counted(found.occupancy.blocks_per_sm, "block");
            format!("{most}{blocks} an SM; fills unknown: {}", figures::no_sms(&found.gpu))
        }
        Some(fill) if found.is_bound => format!("at most {} at once, {}", counted(fill.at_once, "block"), fills(found)),
        Some(fill) if fill.full() == 0 => {
            format!(
                "{} of the {} that run at once{}",
                fill.blocks,
                counted(fill.at_once, "block"),
                idle_sms(found, request)
            )
        }
        Some(fill) => {
            let last = match fill.rest() {
                0 => "full to the last".to_owned(),
                _ => format!("the last {} idle", share(fill.idle())),
            };
            format!("{} at once, {}, {last}", counted(fill.at_once, "block"), fills(found))
        }
    };
    writeln!(out, "{}", style.paragraph("", &format!("{name}: {text}")))
}

/// `5 fills`, or what is known of them.
fn fills(found: &Found) -> String {
    let of = |count: u64| counted(count, "fill");
    match (found.fills(), found.fill, found.worst) {
        (Some(known), ..) => of(known),
        (None, Some(fewest), Some(most)) => format!("{} to {}", fewest.fills(), of(most.fills())),
        (None, Some(fewest), None) => format!("{} or more", of(fewest.fills())),
        (None, None, _) => "fills unknown".to_owned(),
    }
}

/// `, and 104 of 108 SMs have none`
fn idle_sms(found: &Found, request: &Request) -> String {
    match (found.idle_sms(request), found.gpu.device.sm_count) {
        (Some(idle), Some(sms)) if idle > 0 => format!(", and {idle} of {sms} SMs have none"),
        _ => String::new(),
    }
}

/// `a100-sxm4-40gb (sm_80)`
fn called(gpu: &Gpu) -> String {
    let capability = gpu.arch.map(|arch| arch.to_string()).filter(|name| *name != gpu.name);
    let capability = capability.map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}{capability}", gpu.name)
}

/// What would be better, where that follows from the numbers.
fn helps(found: &[Found], cut: &Cut, style: Style) -> Vec<(&'static str, String)> {
    let mut helps = Vec::new();
    if cut.idle_lanes_per_block() > 0 && !found.iter().any(Found::is_refused) {
        let full = cut.warps_per_block() * WARP;
        let fewer = if full > WARP { format!("{} or ", full - WARP) } else { String::new() };
        helps.push(format!("blocks of {fewer}{full} threads leave no lane without one"));
    }
    if cut.idle_blocks() > 0
        && let Some(grid) = cut.fitting_grid()
    {
        helps
            .push(format!("a grid of {} has a thread for each element, and no block without work", sized(style, grid)));
    }
    for one in found {
        let Some(fill) = one.fill.filter(|_| !one.is_bound) else { continue };
        if (2..FEW_FILLS).contains(&fill.fills()) && fill.idle() >= MUCH_IDLE {
            helps.push(format!(
                "{} blocks take as many fills of {} as {}, and {} take one fewer",
                fill.fills() * fill.at_once,
                one.gpu.name,
                fill.blocks,
                fill.full() * fill.at_once,
            ));
        }
    }
    helps.into_iter().map(|help| ("help:", help)).collect()
}

fn notes(found: &[Found]) -> Vec<(&'static str, String)> {
    let named = |one: &Found, note: String| if found.len() > 1 { format!("{}: {note}", one.gpu.name) } else { note };
    found.iter().flat_map(|one| all_notes(&one.gpu).into_iter().map(|note| ("note:", named(one, note)))).collect()
}
