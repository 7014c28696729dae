//! Several GPUs side by side.

use std::io::{self, Write};

use super::single::{all_notes, clusters, instead};
use super::{Calculation, Request, asked, plots, short};
use crate::gpu::{Change, Limiter, Step, most_shared};
use crate::model::percent;
use crate::report::plot;
use crate::report::style::Style;

/// Columns of the row names.
const NAMES: usize = 22;

/// Columns of a line of shared memory: as many as the other two lines have.
const COLUMNS: usize = 32;

/// Blanks between two GPUs.
const GAP: usize = 2;

pub(super) fn write(found: &[Calculation], request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", style.paragraph("", &asked(request)))?;
    let columns: Vec<Vec<String>> = found.iter().map(|one| column(one, style)).collect();
    for group in groups(&columns, style.width) {
        writeln!(out)?;
        table(group, style, out)?;
    }
    sweep(found, request, style, out)?;
    for one in found {
        remarks(one, request, style, out)?;
    }
    Ok(())
}

/// The cells of one GPU, from its name down, in the order of [`row_names`].
fn column(found: &Calculation, style: Style) -> Vec<String> {
    let answer = &found.occupancy;
    let none = style.choose("·", "-");
    let mut cells = vec![
        found.gpu.name.clone(),
        found.gpu.arch.map_or_else(|| "not told".to_owned(), |_| found.gpu.target.compute_capability()),
        percent(answer.fraction()),
        answer.blocks_per_sm.to_string(),
        format!("{} of {}", answer.active_warps, answer.max_warps),
        short(answer.warps_per_scheduler()),
    ];
    for limiter in LIMITS {
        let blocks = answer.limits.get(limiter).map_or_else(|| none.to_owned(), |blocks| blocks.to_string());
        let mark = if answer.limiters.contains(limiter) { style.choose(" ◀", " <") } else { "" };
        cells.push(blocks + mark);
    }
    let step = |step: Option<Step>| step.map_or_else(|| none.to_owned(), |step| short_step(&step));
    let change = |change: &Change| [change.registers, change.shared_memory, change.block].map(step);
    cells.extend(change(&found.next.raises));
    cells.extend(change(&found.next.lowers));
    cells.push(if found.suggestion.threads == 0 { none.to_owned() } else { found.suggestion.threads.to_string() });
    debug_assert_eq!(cells.len(), row_names().len());
    cells
}

const LIMITS: [Limiter; 5] =
    [Limiter::Registers, Limiter::SharedMemory, Limiter::Warps, Limiter::Blocks, Limiter::Barriers];

fn row_names() -> Vec<&'static str> {
    let answer = ["", "compute capability", "occupancy", "blocks an SM", "warps an SM", "warps a scheduler"];
    let limits = LIMITS.map(|limiter| match limiter {
        Limiter::Registers => "by registers",
        Limiter::SharedMemory => "by shared memory",
        Limiter::Warps => "by warps",
        Limiter::Blocks => "by blocks",
        _ => "by barriers",
    });
    let steps = [
        "raised by registers",
        "raised by shared",
        "raised by block",
        "lowered by registers",
        "lowered by shared",
        "lowered by block",
    ];
    answer.into_iter().chain(limits).chain(steps).chain(["suggested block"]).collect()
}

/// `56: 62 %`
fn short_step(step: &Step) -> String {
    format!("{}: {}", step.value, percent(step.occupancy.fraction()))
}

/// As many GPUs in a table as its lines have room for, and at least one.
fn groups(columns: &[Vec<String>], width: usize) -> Vec<&[Vec<String>]> {
    let (mut groups, mut start, mut used) = (Vec::new(), 0, NAMES);
    for (index, column) in columns.iter().enumerate() {
        let needed = GAP + width_of(column);
        if index > start && used + needed > width {
            groups.push(&columns[start..index]);
            (start, used) = (index, NAMES);
        }
        used += needed;
    }
    groups.push(&columns[start..]);
    groups
}

fn width_of(column: &[String]) -> usize {
    column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
}

fn table(columns: &[Vec<String>], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let none = style.choose("·", "-");
    for (row, name) in row_names().into_iter().enumerate() {
        // A row that says nothing about any GPU is left out.
        if columns.iter().all(|column| column[row] == none) {
            continue;
        }
        let cells: String = columns
            .iter()
            .map(|column| format!("{:gap$}{:<width$}", "", column[row], gap = GAP, width = width_of(column)))
            .collect();
        let line = format!("{name:<NAMES$}{cells}");
        let line = line.trim_end();
        writeln!(out, "{}", if matches!(row, 0 | 2) { style.strong(line) } else { line.to_owned() })?;
    }
    Ok(())
}

fn sweep(found: &[Calculation], request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let names = found.iter().map(|one| one.gpu.name.chars().count()).max().unwrap_or(0);
    writeln!(out, "\noccupancy by threads a block, 32 to 1024")?;
    for one in found {
        writeln!(out, "{:<names$}  {}", one.gpu.name, plot::line(style, &one.block_bars()))?;
    }
    let own = request.launch.threads.div_ceil(32).saturating_sub(1) as usize;
    let mark = style.marked(style.choose("▲", "^"));
    writeln!(out, "{:names$}  {:own$}{mark} {}", "", "", request.launch.threads)?;
    writeln!(out, "\noccupancy by registers a thread, 8 to 255")?;
    for one in found {
        writeln!(out, "{:<names$}  {}", one.gpu.name, plot::line(style, &one.register_bars()))?;
    }
    let own = request.launch.registers.div_ceil(8).clamp(1, 32) as usize - 1;
    writeln!(out, "{:names$}  {:own$}{mark} {}", "", "", request.launch.registers)?;
    let most = found.iter().map(|one| most_shared(&one.gpu.target)).max().unwrap_or(0);
    let kib = plots::step(most, COLUMNS);
    writeln!(out, "\noccupancy by KiB of shared memory a block, {kib} to {}", most / 1024)?;
    for one in found {
        writeln!(out, "{:<names$}  {}", one.gpu.name, plot::line(style, &plots::shared_bars(one, most, kib)))?;
    }
    let bytes = request.launch.shared_bytes();
    let own = usize::try_from(bytes.saturating_sub(1) / (u64::from(kib) * 1024)).unwrap_or(COLUMNS).min(COLUMNS);
    writeln!(out, "{:names$}  {:own$}{mark} {}", "", "", request.launch.static_shared + request.launch.dynamic_shared)
}

fn remarks(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let name = &found.gpu.name;
    for refusal in &found.refusals {
        let text = format!("{refusal}; {}", instead(found));
        writeln!(out, "\n{}", style.paragraph(&format!("cannot be launched on {name}:"), &text))?;
    }
    if request.cluster.is_some_and(|blocks| blocks > 1) && !found.is_refused_by_cluster() {
        writeln!(out, "\n{}", style.paragraph("", &format!("{name}: {}", clusters(found, request))))?;
    }
    for note in all_notes(&found.gpu) {
        writeln!(out, "\n{}", style.paragraph("note:", &format!("{name}: {note}")))?;
    }
    Ok(())
}
