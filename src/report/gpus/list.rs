//! The table of products, grouped by compute capability.

use std::io::{self, Write};

use super::number;
use crate::gpu::{Product, Target, products};
use crate::report::style::Style;

/// Columns of a product's name.
const NAMES: usize = 36;

/// Writes every compute capability with its limits, and below each the products that have it.
///
/// # Errors
/// When the writer fails.
pub fn list(style: Style, out: &mut dyn Write) -> io::Result<()> {
    let header = format!("  {:<NAMES$}{:>5}{:>8}{:>9}{:>11}", "", "SMs", "GB", "GB/s", "TFLOP/s");
    writeln!(out, "{}", style.faint(header))?;
    for target in Target::known().filter_map(Target::of) {
        let title = format!("{}  {}, {}", target.compute_capability(), target.arch, target.family);
        writeln!(out, "\n{}", style.strong(title))?;
        writeln!(out, "  {}", style.faint(limits(target)))?;
        for product in products().filter(|product| product.arch == target.arch) {
            row(product, style, out)?;
        }
    }
    writeln!(out, "\n`warplint gpus NAME` shows one in full, with the source of each figure.")
}

/// `64 warps, 32 blocks, 228 KiB shared an SM`
fn limits(target: &Target) -> String {
    let shared = target.shared_per_sm / 1024;
    let unverified = if target.figures().iter().any(|figure| figure.unverified) { "; partly unverified" } else { "" };
    format!(
        "{} warps, {} blocks, {shared} KiB shared an SM{unverified}",
        target.max_warps_per_sm, target.max_blocks_per_sm
    )
}

fn row(product: &Product, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let none = style.choose("·", "-");
    let shown = |value: Option<f64>| value.map_or_else(|| none.to_owned(), number);
    let device = &product.device;
    writeln!(
        out,
        "  {:<NAMES$}{:>5}{:>8}{:>9}{:>11}",
        product.id,
        shown(device.sm_count.map(f64::from)),
        shown(device.memory_gb),
        shown(device.bandwidth_gbs),
        shown(device.fp32_tflops),
    )
}
