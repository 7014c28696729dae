//! Figures under each other: what it is, how much, and why.

use std::fmt::Display;
use std::io::{self, Write};

use crate::model::percent;
use crate::report::style::Style;

/// Columns of the words.
const NAMES: usize = 20;

/// Columns of a figure, where none is longer.
const FIGURES: usize = 8;

/// One figure.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) figure: String,
    pub(super) why: String,
}

impl Row {
    pub(super) fn new(name: &'static str, figure: impl Display, why: impl Into<String>) -> Row {
        Row { name, figure: figure.to_string(), why: why.into() }
    }
}

/// Writes rows with their figures to the right.
pub(super) fn write(rows: &[Row], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let figures = rows.iter().map(|row| row.figure.chars().count()).max().unwrap_or(0).max(FIGURES);
    for row in rows {
        let line = format!("  {:<NAMES$}{:>figures$}", row.name, row.figure);
        if row.why.is_empty() {
            writeln!(out, "{line}")?;
            continue;
        }
        let start = line.chars().count() + 3;
        let room = style.width.saturating_sub(start).max(20);
        for (index, part) in style.wrapped(&row.why, room).iter().enumerate() {
            let lead = if index == 0 { line.as_str() } else { "" };
            writeln!(out, "{lead:<start$}{}", style.faint(part))?;
        }
    }
    Ok(())
}

/// A part of a whole, 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "a share")]
pub(super) fn ratio(part: u128, whole: u128) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A share in words that do not round something to nothing, nor nearly all to all.
pub(super) fn share(fraction: f64) -> String {
    match fraction {
        little if little > 0.0 && little < 0.005 => "under 0.5 %".to_owned(),
        most if most < 1.0 && most > 0.995 => "over 99.5 %".to_owned(),
        other => percent(other),
    }
}

/// A count with its noun, in the plural where it is not one.
pub(super) fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    if count == "1" { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
