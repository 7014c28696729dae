//! Occupancy drawn against each thing that it depends on: threads a block, registers a thread, shared memory a block.

use std::io::{self, Write};

use super::{Calculation, Request, plural};
use crate::gpu::{Level, level_at, most_shared};
use crate::model::{Bytes, percent};
use crate::report::plot::{self, Bar};
use crate::report::style::Style;

/// Levels that are told in words at most, those around the launch's own.
const TOLD: usize = 8;

/// Writes the three plots, each with the launch's own point.
pub(super) fn write(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    over_blocks(found, request, style, out)?;
    over_registers(found, request, style, out)?;
    over_shared(found, request, style, out)
}

fn over_blocks(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let launch = &request.launch;
    let warps = launch.warps(&found.gpu.target) as usize;
    let own = warps.checked_sub(1).filter(|own| *own < found.blocks.len());
    writeln!(out, "\n  occupancy by threads a block, at {}", plural(launch.registers, "register"))?;
    plot::bars(out, style, &found.block_bars(), own, &caption(found, &plural(launch.threads, "thread")))?;
    let best = found.suggestion;
    match found.blocks.iter().find(|point| point.threads == best.threads) {
        Some(point) => {
            let share = percent(point.occupancy.fraction());
            writeln!(out, "  most threads at {} a block, which NVIDIA's calculator suggests: {share}", best.threads)
        }
        None => Ok(()),
    }
}

fn over_registers(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    // Where no number of them lets a block run, there is nothing to see.
    if found.register_levels.is_empty() {
        return Ok(());
    }
    let launch = &request.launch;
    let own = found.registers.iter().position(|point| point.registers >= launch.registers);
    writeln!(out, "\n  occupancy by registers a thread, at {}", plural(launch.threads, "thread"))?;
    plot::bars(out, style, &found.register_bars(), own, &caption(found, &plural(launch.registers, "register")))?;
    levels(out, style, &found.register_levels, launch.registers, |registers| registers.to_string())
}

fn over_shared(found: &Calculation, request: &Request, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if found.shared_levels.is_empty() {
        return Ok(());
    }
    let bytes = u32::try_from(request.launch.shared_bytes()).unwrap_or(u32::MAX);
    let most = most_shared(&found.gpu.target);
    let kib = step(most, plot::room(style));
    let mut bars = shared_bars(found, most, kib);
    let own = bytes.saturating_sub(1) / (kib * 1024);
    let own = usize::try_from(own).ok().filter(|own| *own < bars.len() && bytes <= most);
    // A column stands for several sizes; the launch's own is shown as what it is.
    if let Some(bar) = own.and_then(|own| bars.get_mut(own)) {
        bar.share = found.occupancy.fraction();
    }
    let threads = plural(request.launch.threads, "thread");
    let registers = plural(request.launch.registers, "register");
    writeln!(out, "\n  occupancy by KiB of shared memory a block, at {threads} and {registers}")?;
    plot::bars(out, style, &bars, own, &caption(found, &Bytes(bytes).to_string()))?;
    levels(out, style, &found.shared_levels, bytes, |bytes| Bytes(bytes).to_string())
}

fn caption(found: &Calculation, own: &str) -> String {
    format!("{own}, {}", percent(found.occupancy.fraction()))
}

/// KiB that a column stands for, where there is room for so many.
pub(super) fn step(most: u32, columns: usize) -> u32 {
    let columns = u32::try_from(columns).unwrap_or(u32::MAX).max(1);
    most.div_ceil(1024).div_ceil(columns).max(1)
}

/// A bar for every `kib` KiB up to the most that a block can have: the occupancy that all sizes of a column reach.
pub(super) fn shared_bars(found: &Calculation, most: u32, kib: u32) -> Vec<Bar> {
    (1..=most.div_ceil(kib * 1024))
        .map(|column| {
            let bytes = (column * kib * 1024).min(most);
            let level = level_at(&found.shared_levels, bytes);
            Bar { label: bytes / 1024, share: level.map_or(0.0, |level| level.occupancy.fraction()) }
        })
        .collect()
}

/// `100 % up to 32, 75 % up to 40, …`: the cliffs, with their exact places.
fn levels(
    out: &mut dyn Write,
    style: Style,
    levels: &[Level],
    own: u32,
    shown: impl Fn(u32) -> String,
) -> io::Result<()> {
    let at = levels.iter().position(|level| own <= level.up_to).unwrap_or(levels.len());
    let start = at.saturating_sub(TOLD / 2).min(levels.len().saturating_sub(TOLD));
    let told = &levels[start..levels.len().min(start + TOLD)];
    let mut words: Vec<String> = told
        .iter()
        .map(|level| format!("{} up to {}", percent(level.occupancy.fraction()), shown(level.up_to)))
        .collect();
    let more = style.choose("…", "...").to_owned();
    if start > 0 {
        words.insert(0, more.clone());
    }
    if start + told.len() < levels.len() {
        words.push(more);
    }
    if words.is_empty() { Ok(()) } else { writeln!(out, "{}", style.indented(&words.join(", "))) }
}
