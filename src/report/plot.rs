//! Bars drawn with characters: occupancy over block sizes and over registers.

use std::io::{self, Write};

use super::style::Style;

/// Rows of a plot.
const HEIGHT: usize = 6;

/// Columns left of the axis.
const MARGIN: usize = 8;

/// Parts of a character cell that bars can fill, from none to all.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    /// The value under the bar.
    pub(super) label: u32,
    /// How high it is, 0 to 1.
    pub(super) share: f64,
}

/// Columns that a plot has room for, each for a bar: no more than 64 where there are many.
pub(super) fn room(style: Style) -> usize {
    style.width.saturating_sub(MARGIN).clamp(1, 64)
}

/// Draws `bars` upwards, with the one at `own` marked and `caption` beside the mark.
pub(super) fn bars(
    out: &mut dyn Write,
    style: Style,
    bars: &[Bar],
    own: Option<usize>,
    caption: &str,
) -> io::Result<()> {
    let cell = if MARGIN + 2 * bars.len() <= style.width { 2 } else { 1 };
    for row in (0..HEIGHT).rev() {
        let tick = match row {
            _ if row + 1 == HEIGHT => "100 %",
            _ if row + 1 == HEIGHT / 2 => "50 %",
            _ => "",
        };
        let cells: String = bars
            .iter()
            .enumerate()
            .map(|(index, bar)| drawn(style, bar.share, row, own == Some(index), cell))
            .collect();
        writeln!(out, "{tick:>6} {}{}", style.choose("┤", "|"), cells.trim_end())?;
    }
    writeln!(out, "{:>6} {}{}", "0", style.choose("┼", "+"), style.choose("─", "-").repeat(cell * bars.len()))?;
    writeln!(out, "{}", ticks(bars, cell))?;
    if let Some(own) = own {
        writeln!(out, "{}", mark(style, own * cell, cell * bars.len(), caption))?;
    }
    match bars.iter().any(|bar| bar.share <= 0.0) {
        true => writeln!(out, "{}{} cannot be launched", " ".repeat(MARGIN), style.choose("×", "x")),
        false => Ok(()),
    }
}

/// The part of a bar that lies in `row`, counted from the bottom.
fn drawn(style: Style, share: f64, row: usize, is_own: bool, cell: usize) -> String {
    let filled = share * HEIGHT as f64 - row as f64;
    let character = if share <= 0.0 && row == 0 {
        if style.unicode { '×' } else { 'x' }
    } else if style.unicode {
        EIGHTHS[(filled.clamp(0.0, 1.0) * 8.0).round() as usize]
    } else if filled >= 0.75 {
        if is_own { '@' } else { '#' }
    } else if filled >= 0.25 {
        if is_own { 'o' } else { ':' }
    } else if row == 0 {
        // Little is not nothing.
        '.'
    } else {
        ' '
    };
    let drawn = if is_own && character != ' ' { style.marked(character) } else { character.to_string() };
    drawn + &" ".repeat(cell - 1)
}

/// The values under every fourth bar, or every eighth where bars are narrow, and under the last.
fn ticks(bars: &[Bar], cell: usize) -> String {
    let every = 8 / cell;
    let mut line = " ".repeat(MARGIN);
    for (index, bar) in bars.iter().enumerate() {
        let label = bar.label.to_string();
        // The last digit stands under the bar, so that the last label does not reach beyond the axis.
        let end = MARGIN + index * cell + 1;
        let is_regular = (index + 1) % every == 0;
        let is_last = index + 1 == bars.len() && end > line.len() + label.len();
        if !is_regular && !is_last {
            continue;
        }
        let start = end.saturating_sub(label.len()).max(line.len());
        line.push_str(&" ".repeat(start - line.len()));
        line.push_str(&label);
    }
    line
}

/// A mark under the bar at column `at`, with the caption on the side where it has room.
fn mark(style: Style, at: usize, columns: usize, caption: &str) -> String {
    let mark = style.marked(style.choose("▲", "^"));
    let length = caption.chars().count();
    if at + 2 + length <= columns || at < length + 1 {
        format!("{}{mark} {caption}", " ".repeat(MARGIN + at))
    } else {
        format!("{}{caption} {mark}", " ".repeat(MARGIN + at - length - 1))
    }
}

/// All bars in one line: eighths, or tenths as digits where nothing else can be drawn.
pub(super) fn line(style: Style, bars: &[Bar]) -> String {
    let drawn = |bar: &Bar| {
        let share = bar.share.clamp(0.0, 1.0);
        match (style.unicode, share > 0.0) {
            (true, true) => EIGHTHS[((share * 8.0).ceil() as usize).min(8)].to_string(),
            (true, false) => "·".to_owned(),
            (false, true) => ((share * 9.0).round() as u32).to_string(),
            (false, false) => ".".to_owned(),
        }
    };
    bars.iter().map(drawn).collect()
}
