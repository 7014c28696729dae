//! One GPU in full, each figure with its source.

use std::io::{self, Write};

use super::{device_figures, number};
use crate::gpu::{Figure, FigureValue, Gpu, product_sources};
use crate::report::style::Style;

/// Columns of the words, of the value with its unit, and of the names of the sources.
const WORDS: usize = 31;
const VALUES: usize = 22;

/// Writes the figures of a product or device, the limits of its compute capability, and the sources of both.
///
/// # Errors
/// When the writer fails.
pub fn one(gpu: &Gpu, style: Style, out: &mut dyn Write) -> io::Result<()> {
    head(gpu, style, out)?;
    if gpu.product.is_some() || device_figures(gpu).iter().any(|(.., value)| value.is_some()) {
        device(gpu, style, out)?;
    }
    limits(gpu, style, out)?;
    sources(gpu, style, out)?;
    for note in super::notes(gpu) {
        writeln!(out, "\n{}", style.paragraph("note:", note))?;
    }
    Ok(())
}

fn head(gpu: &Gpu, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let target = &gpu.target;
    writeln!(out, "{}", style.strong(&gpu.name))?;
    if let Some(product) = gpu.product {
        writeln!(out, "  {}", product.name)?;
        if !product.aliases.is_empty() {
            writeln!(out, "  also called {}", product.aliases.join(", "))?;
        }
    }
    match gpu.arch {
        Some(_) => {
            writeln!(out, "  compute capability {}: {}", target.compute_capability(), target.family)?;
            let compiler = if target.in_ptxas_13_5 { "" } else { "; no longer in CUDA 13.5" };
            writeln!(out, "  compiled for as {}{compiler}", target.names.join(", "))
        }
        None => writeln!(out, "  compute capability not told"),
    }
}

fn device(gpu: &Gpu, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}", style.strong("device"))?;
    let letters = gpu.product.map(|product| product.sources.join(", ")).unwrap_or_default();
    for (_, words, unit, value) in device_figures(gpu) {
        let (shown, source) = match value {
            Some(value) => (format!("{} {unit}", number(value)), letters.as_str()),
            None => ("not published".to_owned(), ""),
        };
        line(out, words, &shown, source)?;
    }
    Ok(())
}

fn limits(gpu: &Gpu, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}", style.strong("limits"))?;
    for figure in gpu.target.figures() {
        let mut source = figure.sources.join(", ");
        if figure.unverified {
            source = format!("{} {source}", style.warning("unverified,"));
        }
        line(out, figure.label, &shown(&figure), &source)?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, words: &str, value: &str, source: &str) -> io::Result<()> {
    let line = format!("  {words:<WORDS$}{:<VALUES$} {source}", value.trim_end());
    writeln!(out, "{}", line.trim_end())
}

fn shown(figure: &Figure) -> String {
    let unit = figure.unit;
    match &figure.value {
        None => "not published".to_owned(),
        Some(FigureValue::Number(number)) => format!("{number} {unit}"),
        Some(FigureValue::Flag(flag)) => (if *flag { "yes" } else { "no" }).to_owned(),
        Some(FigureValue::List(list)) => {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            format!("{} {unit}", list.join(" "))
        }
    }
}

fn sources(gpu: &Gpu, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}", style.strong("sources"))?;
    let used = |letter: &String| gpu.product.is_some_and(|product| product.sources.contains(letter));
    let of_products = product_sources().iter().filter(|(letter, _)| used(letter));
    for (name, text) in of_products.chain(&gpu.target.sources) {
        writeln!(out, "  {name:<16}{text}")?;
    }
    Ok(())
}
