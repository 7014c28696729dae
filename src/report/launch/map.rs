//! The edge of a problem as a picture: lanes that have work, warp by warp, in each kind of block.

use std::io::{self, Write};

use crate::gpu::cut::{Cut, Kind, Segment, warps_of};
use crate::model::AXES;
use crate::report::style::Style;

/// Lines of warps that are drawn at most. What has more is told in counts, and what has still more in ranges.
const LINES: usize = 24;

/// Columns of the names of warps.
const NAMES: usize = 16;

/// Columns of a kind of block: a count, and a character for two lanes.
const CELL: usize = 20;

/// Warps that follow each other and look the same.
struct Line {
    first: usize,
    last: usize,
    /// Whether a range is told for each kind of block instead of the lanes of one warp.
    is_summary: bool,
}

/// How alike warps must be to share a line.
#[derive(Clone, Copy, PartialEq)]
enum Alike {
    /// The same lanes work.
    Lanes,
    /// As many lanes work.
    Counts,
    /// All are told together.
    All,
}

/// Draws the map; nothing where all lanes that have a thread have work, or none has.
pub(super) fn write(cut: &Cut, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if cut.extent.is_none() || [0, cut.threads()].contains(&cut.working_lanes()) {
        return Ok(());
    }
    let columns = cut.kinds.iter().take_while(|kind| kind.place[1..] == cut.kinds[0].place[1..]).count();
    let bands: Vec<&[Kind]> = cut.kinds.chunks(columns).collect();
    let alike = [Alike::Lanes, Alike::Counts, Alike::All];
    let lines = |alike: Alike| bands.iter().map(|band| lines(band, alike)).collect::<Vec<Vec<Line>>>();
    let drawn = alike.into_iter().map(lines).find(|drawn| drawn.iter().map(Vec::len).sum::<usize>() <= LINES);
    let drawn = drawn.unwrap_or_else(|| lines(Alike::All));
    writeln!(out, "\n  lanes that work in each warp, of 32, by the place of the block in the grid")?;
    let heads: String = bands[0].iter().map(|kind| format!(" {:<CELL$}", span(style, 0, kind.place[0]))).collect();
    writeln!(out, "{:NAMES$}{}", "", heads.trim_end())?;
    let threads: Vec<u32> = warps_of(cut.block).iter().map(|warp| warp.lanes).collect();
    for (band, lines) in bands.iter().zip(&drawn) {
        if let Some(head) = band_head(cut, style, &band[0]) {
            writeln!(out, "  {head}")?;
        }
        for line in lines {
            let name = warps(style, line);
            let cells: String =
                band.iter().map(|kind| format!(" {:<CELL$}", cell(style, kind, line, &threads))).collect();
            writeln!(out, "    {name:<width$}{}", cells.trim_end(), width = NAMES - 4)?;
        }
    }
    legend(cut, &drawn, style, out)
}

/// The warps of a row of blocks in lines.
fn lines(band: &[Kind], alike: Alike) -> Vec<Line> {
    let warps = band[0].lanes.len();
    if alike == Alike::All {
        return vec![Line { first: 0, last: warps - 1, is_summary: true }];
    }
    let same = |a: usize, b: usize| {
        band.iter().all(|kind| match alike {
            Alike::Lanes => kind.lanes[a] == kind.lanes[b],
            _ => kind.lanes[a].count_ones() == kind.lanes[b].count_ones(),
        })
    };
    let mut lines: Vec<Line> = Vec::new();
    for warp in 0..warps {
        match lines.last_mut() {
            Some(line) if same(line.first, warp) => line.last = warp,
            _ => lines.push(Line { first: warp, last: warp, is_summary: false }),
        }
    }
    lines
}

/// `x 0–2`, or shorter words for numbers that leave no room.
fn span(style: Style, axis: usize, segment: Segment) -> String {
    let axis = AXES[axis];
    let Segment { first, last, .. } = segment;
    if first == last {
        return format!("{axis} {first}");
    }
    let whole = format!("{axis} {first}{}{last}", style.choose("–", "-"));
    match whole.chars().count() {
        short if short <= CELL => whole,
        _ if first == 0 => format!("{axis} up to {last}"),
        _ => format!("{axis} from {first}"),
    }
}

/// Where a row of blocks is, in the dimensions of the grid that have more than one block.
fn band_head(cut: &Cut, style: Style, kind: &Kind) -> Option<String> {
    let axes = [2, 1].into_iter().filter(|axis| cut.grid.dimensions()[*axis] > 1);
    let words: Vec<String> = axes.map(|axis| span(style, axis, kind.place[axis])).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn warps(style: Style, line: &Line) -> String {
    if line.first == line.last {
        format!("warp {}", line.first)
    } else {
        format!("warps {}{}{}", line.first, style.choose("–", "-"), line.last)
    }
}

fn cell(style: Style, kind: &Kind, line: &Line, threads: &[u32]) -> String {
    let warps = &kind.lanes[line.first..=line.last];
    let counts = || warps.iter().map(|lanes| lanes.count_ones());
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    if line.is_summary && least != most {
        return format!("{least} to {most}");
    }
    let is_one_picture = warps.iter().all(|lanes| *lanes == warps[0]);
    if !is_one_picture {
        return format!("{most:>2}");
    }
    format!("{most:>2} {}", picture(style, warps[0], threads.get(line.first).copied().unwrap_or(32)))
}

/// A character for two lanes: both work, one does, none does, and nothing where there are no threads.
fn picture(style: Style, lanes: u32, threads: u32) -> String {
    (0..32)
        .step_by(2)
        .map(|lane| match (lanes >> lane) & 0b11 {
            0b11 => style.choose("█", "#"),
            0b01 => style.choose("▌", "+"),
            0b10 => style.choose("▐", "+"),
            _ if lane >= threads => " ",
            _ => style.choose("·", "."),
        })
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn legend(cut: &Cut, drawn: &[Vec<Line>], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let is_drawn = drawn.iter().flatten().any(|line| !line.is_summary);
    if !is_drawn {
        return Ok(());
    }
    let has_odd = cut.kinds.iter().flat_map(|kind| &kind.lanes).any(|lanes| (lanes ^ (lanes >> 1)) & 0x5555_5555 != 0);
    let odd = if has_odd { style.choose(", ▌▐ one of them", ", + one of them") } else { "" };
    let text = format!("{} two lanes at work{odd}, {} none", style.choose("█", "#"), style.choose("·", "."));
    writeln!(out, "  {}", style.faint(text))
}
