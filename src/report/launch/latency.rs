//! How many warps hide a latency, and how many independent instructions the warps of this launch need for it.

use std::io::{self, Write};

use super::{Found, Request};
use crate::gpu::latency::{ARITHMETIC, GLOBAL_LOAD, Latency, instructions_to_hide, warps_to_hide};
use crate::report::occupancy::short;
use crate::report::style::Style;

/// Independent instructions for which the warps are told, where nobody asks for a number.
const INDEPENDENT: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Columns of what takes so long, and of a range of warps.
const NAMES: usize = 22;
const RANGE: usize = 8;

/// What takes how long, with a shorter name for a table.
pub(super) const LATENCIES: [(&str, &str, Latency); 2] =
    [("global load", "load", GLOBAL_LOAD), ("arithmetic", "arithmetic", ARITHMETIC)];

/// The numbers of independent instructions to tell about.
pub(super) fn independent(request: &Request) -> Vec<u32> {
    request.independent.map_or_else(|| INDEPENDENT.to_vec(), |asked| vec![asked])
}

/// Writes the warps that hide each latency, for a scheduler of `found`.
pub(super) fn table(found: &Found, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let dash = style.choose("–", "-");
    let asked = independent(request);
    let issues = found.gpu.target.issues_per_scheduler;
    writeln!(out, "\n  warps a scheduler needs, by independent instructions of a warp before it waits")?;
    let heads: String = asked.iter().map(|number| format!("{number:>RANGE$}")).collect();
    writeln!(out, "  {:<NAMES$}{heads}", "cycles")?;
    for (_, name, latency) in LATENCIES {
        let name = format!("{name} {}", range(dash, latency.from.into(), latency.to.into()));
        let cells: String =
            asked.iter().map(|number| format!("{:>RANGE$}", needed(dash, latency, *number, issues))).collect();
        writeln!(out, "  {name:<NAMES$}{cells}")?;
    }
    Ok(())
}

fn needed(dash: &str, latency: Latency, independent: u32, issues: u32) -> String {
    range(dash, warps_to_hide(latency.from, independent, issues), warps_to_hide(latency.to, independent, issues))
}

fn range(dash: &str, from: u64, to: u64) -> String {
    if from == to { from.to_string() } else { format!("{from}{dash}{to}") }
}

/// What the warps of a full SM hide.
pub(super) fn verdict(found: &Found, request: &Request) -> Option<String> {
    let answer = &found.occupancy;
    let issues = found.gpu.target.issues_per_scheduler;
    let hide = |cycles: u32| instructions_to_hide(cycles, issues, answer.active_warps, answer.schedulers.max(1));
    // Registers that are not told can only take warps away.
    let best = if found.up_to_registers.is_some() { "at best, " } else { "" };
    let full = format!("{best}a full SM of {} warps a scheduler hides", short(answer.warps_per_scheduler()));
    let (from, to) = (hide(GLOBAL_LOAD.from)?, hide(GLOBAL_LOAD.to)?);
    let hidden = match request.independent.map(u64::from) {
        None => format!(
            "a load from {from} independent instructions on if it takes {} cycles, from {to} on if {}",
            GLOBAL_LOAD.from, GLOBAL_LOAD.to,
        ),
        Some(enough) if enough >= to => "a load".to_owned(),
        Some(some) if some >= from => "the shorter of these loads only".to_owned(),
        Some(_) => format!("no load: that takes {from} independent instructions at least"),
    };
    Some(format!("{full} {hidden}"))
}
