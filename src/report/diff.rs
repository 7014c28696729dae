//! What changed between two builds: a table for people, one for a comment on a pull request, and JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::markdown::{code, counted};
use super::{Style, json};
use crate::baseline::{Change, Changes, Figures, LaunchFigures, Status};
use crate::model::{Bytes, percent, symbol};

const COLUMNS: [&str; 8] = ["kernel", "arch", "change", "regs", "spill", "stack", "shared", "occupancy"];

/// Rows of a table in a comment at most: GitHub takes 65,536 characters.
const ROWS: usize = 100;

/// A table in aligned columns, and a line that sums up.
///
/// # Errors
/// When `out` cannot be written to.
pub fn diff_human(changes: &Changes, ambiguous: usize, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let table: Vec<[String; 8]> = changes.all.iter().map(|change| cells(change, style)).collect();
    let width = |column: usize| {
        let longest = table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        longest.max(COLUMNS[column].len())
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    if !table.is_empty() {
        writeln!(out, "{}", style.strong(line(&COLUMNS.map(str::to_owned), &widths)))?;
    }
    for (change, cells) in changes.all.iter().zip(&table) {
        let line = line(cells, &widths);
        writeln!(out, "{}", if change.status == Status::Worse { style.strong(line) } else { line })?;
    }
    if !table.is_empty() {
        writeln!(out)?;
    }
    if let Some((old, new)) = changes.toolkits {
        writeln!(out, "{}", style.faint(format!("compiled with CUDA {old} before and CUDA {new} now")))?;
    }
    if ambiguous > 0 {
        let kernels = counted(ambiguous, "kernel");
        writeln!(
            out,
            "{}",
            style.faint(format!("{kernels} left out: interleaved output leaves open whose the figures are"))
        )?;
    }
    writeln!(out, "{}", summary(changes))
}

/// `42 kernels compared: 1 worse, 2 better`
fn summary(changes: &Changes) -> String {
    let counts = Status::ALL.map(|status| (changes.count(status), status.name()));
    let parts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let found = if parts.is_empty() { "nothing changed".to_owned() } else { parts.join(", ") };
    format!("{} compared: {found}", counted(changes.compared, "kernel"))
}

fn cells(change: &Change, style: Style) -> [String; 8] {
    let zero = style.choose("·", ".");
    let bytes = |size: Bytes| if size.is_zero() { zero.to_owned() } else { size.to_string() };
    let spill = |one: &Figures| {
        let of = |size: Option<Bytes>| size.map(Bytes::get);
        match (of(one.spill_stores), of(one.spill_loads)) {
            (None, None) => None,
            (Some(0) | None, Some(0) | None) => Some(zero.to_owned()),
            (stores, loads) => Some(format!("{}+{} B", stores.unwrap_or_default(), loads.unwrap_or_default())),
        }
    };
    let cell = |of: &dyn Fn(&Figures) -> Option<String>| {
        let [before, after] = [&change.before, &change.after].map(|figures| figures.as_ref().and_then(of));
        let both = change.before.is_some() && change.after.is_some();
        moved(before, after, both, style)
    };
    [
        symbol::short(change.name().as_bytes()),
        change.key.arch.map_or_else(|| "?".to_owned(), |arch| arch.to_string()),
        change.status.name().to_owned(),
        cell(&|one| one.registers.map(|count| count.to_string())),
        cell(&spill),
        cell(&|one| one.stack().map(bytes)),
        cell(&|one| one.static_shared.map(bytes)),
        occupancy(change, style),
    ]
}

/// `32 -> 40`; `32` where nothing moved, or where there is but one.
fn moved(before: Option<String>, after: Option<String>, both: bool, style: Style) -> String {
    let unknown = || "?".to_owned();
    match (before, after) {
        (before, after) if !both => before.or(after).unwrap_or_else(unknown),
        (None, None) => unknown(),
        (before, after) if before == after => after.unwrap_or_else(unknown),
        (before, after) => {
            let arrow = style.choose("→", "->");
            format!("{} {arrow} {}", before.unwrap_or_else(unknown), after.unwrap_or_else(unknown))
        }
    }
}

fn occupancy(change: &Change, style: Style) -> String {
    if let Some(at) = &change.occupancy {
        let block = at.block.map_or_else(|| " at best".to_owned(), |block| format!(" at {block}"));
        let is_own = change.key.arch.is_some_and(|arch| arch.device().to_string() == *at.gpu);
        let gpu = if is_own { String::new() } else { format!(" on {}", at.gpu) };
        let shares = [at.fraction_before(), at.fraction_after()].map(|share| Some(percent(share)));
        let [before, after] = shares;
        return format!("{}{block}{gpu}", moved(before, after, true, style));
    }
    let only = [&change.after, &change.before].into_iter().flatten().next();
    // Both were there, and could not be compared.
    let only = only.filter(|_| change.before.is_none() || change.after.is_none());
    only.and_then(|figures| figures.launches.first()).map_or_else(String::new, |launch| {
        let block = if launch.is_told() { launch.block.to_string() } else { "best".to_owned() };
        format!("{} at {block}", percent(launch.occupancy))
    })
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(width - cell.chars().count());
        let padded = if (3..7).contains(&at) { format!("{pad}{cell}") } else { format!("{cell}{pad}") };
        line.push_str(&padded);
        line.push_str("  ");
    }
    line.trim_end().to_owned()
}

/// A comment on a pull request: one line where nothing changed; else what is worse, better and otherwise in a table, and what
/// came and went folded.
///
/// # Errors
/// When `out` cannot be written to.
pub fn diff_markdown(changes: &Changes, ambiguous: usize, out: &mut dyn Write) -> io::Result<()> {
    let is_worse = changes.count(Status::Worse) > 0;
    let summary = summary(changes);
    writeln!(out, "**warplint**: {}", if is_worse { format!("**{summary}**") } else { summary })?;
    if let Some((old, new)) = changes.toolkits {
        writeln!(out, "\nCompiled with CUDA {old} before and CUDA {new} now.")?;
    }
    if ambiguous > 0 {
        let kernels = counted(ambiguous, "kernel");
        writeln!(out, "\n{kernels} left out: interleaved output leaves open whose the figures are.")?;
    }
    let (moved, others): (Vec<&Change>, Vec<&Change>) =
        changes.all.iter().partition(|change| change.status < Status::Added);
    rows(&moved, out)?;
    if others.is_empty() {
        return Ok(());
    }
    let counts = [Status::Added, Status::Removed].map(|status| (changes.count(status), status.name()));
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    writeln!(out, "\n<details><summary>{}</summary>", counts.join(", "))?;
    rows(&others, out)?;
    writeln!(out, "\n</details>")
}

fn rows(changes: &[&Change], out: &mut dyn Write) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| {} |\n|---|---|---|---:|---:|---:|---:|---|", COLUMNS.join(" | "))?;
    let style = Style { unicode: true, ..Style::PLAIN };
    for change in changes.iter().take(ROWS) {
        let mut cells = cells(change, style);
        cells[0] = code(&cells[0]);
        if change.status == Status::Worse {
            cells[2] = format!("**{}**", cells[2]);
        }
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    if changes.len() > ROWS {
        writeln!(out, "\n{} more", changes.len() - ROWS)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct WireChange<'a> {
    kernel: &'a str,
    demangled: Option<String>,
    arch: Option<String>,
    status: &'static str,
    before: Option<WireFigures<'a>>,
    after: Option<WireFigures<'a>>,
}

#[derive(Serialize)]
struct WireFigures<'a> {
    registers: Option<u32>,
    barriers: Option<u32>,
    spill_store_bytes: Option<u32>,
    spill_load_bytes: Option<u32>,
    stack_bytes: Option<u32>,
    static_shared_bytes: Option<u32>,
    occupancy: Vec<WireOccupancy<'a>>,
    toolkit: Option<String>,
}

#[derive(Serialize)]
struct WireOccupancy<'a> {
    gpu: &'a str,
    block: Option<[u32; 3]>,
    block_source: Option<&'a str>,
    occupancy: f64,
}

/// `{"version": 1, "changes": […]}`, one change a line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn diff_json(changes: &Changes, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{{\n  \"version\": {},", json::VERSION)?;
    json::list("changes", changes.all.iter(), ",", out, |change, out| {
        serde_json::to_writer(out, &wire(change)).map_err(io::Error::from)
    })?;
    writeln!(out, "  \"compared\": {}\n}}", changes.compared)
}

fn wire(change: &Change) -> WireChange<'_> {
    let name = change.name();
    let demangled = symbol::demangle(name.as_bytes());
    // What a baseline tells is demangled, and its key is what it is known by.
    let is_mangled = demangled.is_some() || !name.contains('(');
    WireChange {
        kernel: if is_mangled { name } else { &change.key.kernel },
        demangled: demangled.or_else(|| (!is_mangled).then(|| name.to_owned())),
        arch: change.key.arch.map(|arch| arch.to_string()),
        status: change.status.name(),
        before: change.before.as_ref().map(|figures| wire_figures(change, figures, true)),
        after: change.after.as_ref().map(|figures| wire_figures(change, figures, false)),
    }
}

/// The occupancies that were compared; where there was nothing to compare, those of the kernel's own launches.
fn wire_figures<'a>(change: &'a Change, figures: &'a Figures, is_before: bool) -> WireFigures<'a> {
    let bytes = |size: Option<Bytes>| size.map(Bytes::get);
    let occupancy = match &change.occupancy {
        Some(at) => vec![WireOccupancy {
            gpu: &at.gpu,
            block: at.block.map(|block| block.dimensions()),
            block_source: None,
            occupancy: if is_before { at.fraction_before() } else { at.fraction_after() },
        }],
        None => figures.launches.iter().map(own).collect(),
    };
    WireFigures {
        registers: figures.registers,
        barriers: figures.barriers,
        spill_store_bytes: bytes(figures.spill_stores),
        spill_load_bytes: bytes(figures.spill_loads),
        stack_bytes: bytes(figures.stack()),
        static_shared_bytes: bytes(figures.static_shared),
        occupancy,
        toolkit: figures.toolkit.map(|toolkit| toolkit.to_string()),
    }
}

fn own(launch: &LaunchFigures) -> WireOccupancy<'_> {
    WireOccupancy {
        gpu: &launch.gpu,
        block: Some(launch.block.dimensions()),
        block_source: Some(launch.source.name()),
        occupancy: launch.occupancy,
    }
}
