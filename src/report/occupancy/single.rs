//! One GPU in full: the answer, every limit, the nearest changes, and the sweeps.

use std::io::{self, Write};

use super::{Calculation, Request, asked, plots, plural, short};
use crate::gpu::{Gpu, Limiter, Refusal, Step, cluster_bound};
use crate::model::percent;
use crate::report::style::Style;

/// Figures of a target that the answer does not depend on.
const ASIDE: [&str; 6] = [
    "fp32-lanes-per-sm",
    "tensor-cores-per-sm",
    "unified-l1-kib",
    "issues-per-scheduler",
    "max-cluster-portable",
    "max-cluster-non-portable",
];

pub(super) fn write(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    head(found, request, style, out)?;
    if found.is_refused_by_cluster() {
        return notes(found, style, out);
    }
    limits(found, request, style, out)?;
    steps(found, style, out)?;
    // One of a single block is none.
    if request.cluster.is_some_and(|blocks| blocks > 1) {
        writeln!(out, "\n{}", style.paragraph("", &clusters(found, request)))?;
    }
    plots::write(found, request, style, out)?;
    notes(found, style, out)
}

fn head(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let gpu = &found.gpu;
    let capability = gpu.arch.map(|arch| arch.to_string()).filter(|name| *name != gpu.name);
    let capability = capability.map(|name| format!(" ({name})")).unwrap_or_default();
    writeln!(out, "{}", style.paragraph("", &format!("{}{capability}: {}", gpu.name, asked(request))))?;
    if found.refusals.is_empty() {
        return writeln!(out, "{}", answer(found, style));
    }
    for refusal in &found.refusals {
        writeln!(out, "{}", style.paragraph("cannot be launched:", &refusal.to_string()))?;
    }
    writeln!(out, "{}", style.strong(instead(found)))
}

/// What would run in place of a launch that does not.
pub(super) fn instead(found: &Calculation) -> String {
    for refusal in &found.refusals {
        match refusal {
            Refusal::Cluster { most: 1, .. } => return "only a launch without clusters can fit".to_owned(),
            Refusal::Cluster { most, .. } => return format!("the largest cluster has {most} blocks"),
            _ => {}
        }
    }
    match found.largest_block {
        Some(threads) => format!("the largest block that fits has {threads} threads"),
        None => "no block size fits".to_owned(),
    }
}

/// `50 % occupancy: 4 blocks, 32 of 64 warps an SM, 8 a scheduler`, and below it what limits it.
fn answer(found: &Calculation, style: Style) -> String {
    let answer = &found.occupancy;
    let average = answer.warps_per_scheduler();
    let fullest = answer.warps_of_fullest_scheduler();
    let fullest = if average.fract() == 0.0 { String::new() } else { format!(" ({fullest} on the fullest)") };
    format!(
        "{}: {}, {} of {} warps an SM, {} a scheduler{fullest}\nlimited by {}",
        style.strong(format!("{} occupancy", percent(answer.fraction()))),
        plural(answer.blocks_per_sm, "block"),
        answer.active_warps,
        answer.max_warps,
        short(average),
        style.strong(answer.limiters),
    )
}

fn limits(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n  {:<18}{:>12}   what a block takes", "limit", "blocks an SM")?;
    for limiter in Limiter::ALL {
        let blocks = found.occupancy.limits.get(limiter);
        if blocks.is_none() && matches!(limiter, Limiter::Barriers | Limiter::VirtualResources) {
            continue;
        }
        let is_binding = found.occupancy.limiters.contains(limiter);
        let number = blocks.map_or_else(|| "none".to_owned(), |blocks| blocks.to_string());
        let row = format!("{:<18}{number:>12}", limiter.words());
        let row = if is_binding { style.strong(row) } else { row };
        let mark = if is_binding { style.choose("◀", "<") } else { " " };
        writeln!(out, "  {row} {mark} {}", style.faint(why(found, request, limiter)))?;
    }
    Ok(())
}

/// What a block takes of what there is.
fn why(found: &Calculation, request: &Request, limiter: Limiter) -> String {
    let (target, launch, answer) = (&*found.gpu.target, &request.launch, &found.occupancy);
    match limiter {
        Limiter::Warps => format!("{} of {}", launch.warps(target), target.max_warps_per_sm),
        Limiter::Registers => format!(
            "{} of {}, {} a thread after rounding",
            answer.allocated_registers_per_block,
            target.registers_per_sm,
            answer.allocated_registers_per_block / (launch.warps(target) * target.warp_size).max(1),
        ),
        Limiter::SharedMemory => {
            let reserved = target.shared_reserved_per_block;
            let reserved = if reserved == 0 { String::new() } else { format!(", {reserved} B of it reserved") };
            let allocated = answer.allocated_shared_per_block.0;
            format!("{allocated} B of {} KiB{reserved}", answer.shared_per_sm.0 / 1024)
        }
        Limiter::Blocks => format!("1 of {}", target.max_blocks_per_sm),
        Limiter::Barriers => format!("{} of {}", launch.barriers, target.barriers_per_sm.unwrap_or(0)),
        Limiter::VirtualResources => {
            format!("{} of {}", launch.virtual_resources, target.virtual_resources_per_sm)
        }
    }
}

fn steps(found: &Calculation, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let (raises, lowers) = (&found.next.raises, &found.next.lowers);
    let cell = |step: Option<Step>| step.map_or_else(|| style.choose("·", "-").to_owned(), |step| stepped(&step));
    let rows = [
        ("nearest change", "raises occupancy".to_owned(), "lowers it".to_owned()),
        ("registers", cell(raises.registers), cell(lowers.registers)),
        ("shared memory", cell(raises.shared_memory), cell(lowers.shared_memory)),
        ("block", cell(raises.block), cell(lowers.block)),
    ];
    let column = rows.iter().map(|(_, up, _)| up.chars().count()).max().unwrap_or(0) + 2;
    writeln!(out)?;
    for (name, up, down) in rows {
        writeln!(out, "  {name:<16}{up:<column$}{down}")?;
    }
    Ok(())
}

/// `56 (-8): 62.5 %, 5 blocks`
fn stepped(step: &Step) -> String {
    let blocks = plural(step.occupancy.blocks_per_sm, "block");
    format!("{} ({:+}): {}, {blocks}", step.value, step.change(), percent(step.occupancy.fraction()))
}

/// How many clusters the device holds, of a size that it takes.
pub(super) fn clusters(found: &Calculation, request: &Request) -> String {
    let (target, cluster) = (&*found.gpu.target, request.cluster.unwrap_or(1));
    let needs_optin =
        if cluster > target.max_cluster_portable { "; the host must allow non-portable sizes" } else { "" };
    match found.gpu.device.sm_count {
        Some(sms) => {
            let bound = cluster_bound(sms, found.occupancy.blocks_per_sm, cluster);
            format!("clusters of {cluster}: at most {bound} at once, fewer where GPCs differ in size{needs_optin}")
        }
        None => {
            format!("clusters of {cluster}: how many fit depends on the number of SMs, so name a product{needs_optin}")
        }
    }
}

fn notes(found: &Calculation, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let notes = all_notes(&found.gpu);
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        writeln!(out, "{}", style.paragraph("note:", &note))?;
    }
    Ok(())
}

/// What the reader should know about the figures behind the answer.
pub(in crate::report) fn all_notes(gpu: &Gpu) -> Vec<String> {
    let mut notes = gpu.notes.clone();
    if gpu.assumed.contains(&"shared-per-sm") {
        notes.push("the file tells no shared memory per SM, so that limit is assumed too".to_owned());
    }
    if gpu.assumed.is_empty() {
        let figures = gpu.target.figures();
        let unverified: Vec<&str> = figures
            .iter()
            .filter(|figure| figure.unverified && !ASIDE.contains(&figure.key))
            .map(|figure| figure.label)
            .collect();
        if !unverified.is_empty() {
            notes.push(format!("unverified for {}: {}", gpu.target.compute_capability(), unverified.join(", ")));
        }
    }
    notes
}
