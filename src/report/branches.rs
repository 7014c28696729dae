//! Every branch with its verdict: how users learn why something is reported, and why something is not.

use super::wire::Escaped;
use std::io::{self, Write};

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::Style;
use super::excerpt;
use super::json::VERSION;
use super::not_followed::not_followed;
use crate::analyse::Found;
use crate::finding::Level;
use crate::lanes::cost::Side;
use crate::lanes::module::Told;
use crate::lanes::verdict::{Advice, Confidence, Verdict};
use crate::model::{percent, symbol};
use crate::rules::{Context, loudest_of_barrier};

#[derive(Serialize)]
struct WireBranch {
    path: String,
    line: u32,
    ptx_line: Option<u32>,
    kernel: String,
    arch: Option<String>,
    block: [u32; 3],
    block_assumed: bool,
    verdict: Option<&'static str>,
    confidence: Option<&'static str>,
    split_share: Option<f64>,
    taken_cost: Option<f64>,
    fallthrough_cost: Option<f64>,
    idle_share: Option<f64>,
    report: &'static str,
    reason: &'static str,
}

/// What is said of a branch that was not followed to its condition.
pub(super) const NOT_FOLLOWED: &str = "its condition takes too long to follow";

/// The line of the PTX; a source has none.
pub(super) fn ptx_line(found: &Found<'_>) -> Option<u32> {
    found.module.positions().is_none().then(|| found.ptx_line())
}

/// Where a branch stands: the outermost line of its source, under the name that findings have it, else its line in the PTX.
pub(super) fn place(context: &Context<'_>, found: &Found<'_>) -> (String, u32) {
    let report = context.report;
    let source = found.locations.and_then(|at| {
        let name = found.module.file(at.outer.file)?;
        let path =
            context.numbers.branches.paths.get(name).map_or_else(|| String::from_utf8_lossy(name), |path| path.into());
        Some((symbol::printable(&path).into_owned(), at.outer.line))
    });
    match source {
        Some(place) => place,
        None => {
            let name = report.inputs.get(found.module.input as usize).map_or("", |input| input.name.as_str());
            (symbol::printable(name).into_owned(), found.ptx_line())
        }
    }
}

fn wire(context: &Context<'_>, found: &Found<'_>) -> WireBranch {
    let branch = found.branch;
    let (path, line) = place(context, found);
    let judgement = branch.judgement;
    let kernel = String::from_utf8_lossy(context.report.names.get(found.function.name)).into_owned();
    WireBranch {
        path,
        line,
        ptx_line: ptx_line(found),
        kernel,
        arch: found.function.arch.map(|arch| arch.to_string()),
        block: [branch.shape.x, branch.shape.y, branch.shape.z],
        block_assumed: found.shapes.told != Told::Fully,
        verdict: judgement.map(|judgement| judgement.verdict.name()),
        confidence: judgement.map(|judgement| judgement.confidence.name()),
        split_share: judgement.filter(|one| one.verdict != Verdict::DivergentData).map(|_| branch.split.of_all()),
        taken_cost: branch.sides.map(|(taken, _)| taken.weight),
        fallthrough_cost: branch.sides.map(|(_, other)| other.weight),
        idle_share: branch.spread.filter(|spread| !spread.is_cut).map(|spread| spread.idle),
        report: reported(found).map_or(Advice::Silent.name(), Level::name),
        reason: judgement.map_or(NOT_FOLLOWED, |judgement| judgement.reason),
    }
}

/// How loudly a lint reports a branch where nobody sets levels; `None` where it is silent.
pub(super) fn reported(found: &Found<'_>) -> Option<Level> {
    let judgement = found.branch.judgement?;
    match judgement.advice {
        Advice::Silent => None,
        _ if judgement.verdict == Verdict::BarrierInDivergent => loudest_of_barrier(found),
        Advice::Note => Some(Level::Note),
        Advice::Warn => Some(Level::Warn),
    }
}

/// One object with all branches.
///
/// # Errors
/// When `out` cannot be written to.
pub fn branches_json(context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Escaped(out);
    writeln!(out, "{{\n  \"version\": {VERSION},")?;
    write!(out, "  \"branches\": [")?;
    let mut separator = "\n    ";
    for (_, found) in context.branches() {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, &wire(context, &found))?;
        separator = ",\n    ";
    }
    writeln!(out, "{}\n}}", if separator.starts_with(',') { "\n  ]" } else { "]" })
}

/// A paragraph for each function, and a line for each of its branches.
///
/// # Errors
/// When `out` cannot be written to.
pub fn branches_human(context: &Context<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut last = None;
    let (mut loud, mut notes) = (0_usize, 0_usize);
    let mut total = 0;
    // The lines of one function, so that their columns meet.
    let mut rows: Vec<Row> = Vec::new();
    for (_, found) in context.branches() {
        let here = (found.module.input, found.function.head.0);
        if last != Some(here) {
            write_rows(&mut rows, style, out)?;
            if last.is_some() {
                writeln!(out)?;
            }
            heading(context, &found, style, out)?;
            last = Some(here);
        }
        let row = Row::of(context, &found);
        total += 1;
        match row.report {
            Some(Level::Note) => notes += 1,
            Some(_) => loud += 1,
            None => {}
        }
        rows.push(row);
    }
    write_rows(&mut rows, style, out)?;
    let plural = |count: usize| if count == 1 { "" } else { "es" };
    let blank = if total > 0 { "\n" } else { "" };
    writeln!(
        out,
        "{blank}{}: {loud} reported, {notes} worth a note, {} silent",
        style.strong(format!("{total} branch{}", plural(total))),
        total - loud - notes,
    )?;
    if let Some(said) = not_followed(context) {
        writeln!(out, "{}", textwrap::fill(&said, style.width))?;
    }
    if context.report.units.is_empty() {
        return Ok(());
    }
    let left_out = "a source has the branches that are written in it; PTX has those that the compiler left";
    writeln!(out, "{}", style.faint(left_out))
}

fn heading(context: &Context<'_>, found: &Found<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let name = symbol::short(context.report.names.get(found.function.name));
    let arch = found.function.arch.map_or_else(String::new, |arch| format!(" {arch}"));
    let shapes: Vec<String> = found
        .shapes
        .all
        .iter()
        .map(|shape| crate::model::BlockSize { x: shape.x, y: shape.y, z: shape.z }.to_string())
        .collect();
    let block = match (found.shapes.known, shapes.as_slice()) {
        (true, [one]) if found.shapes.told == Told::Fully => format!("blocks of {one}"),
        (true, [one]) => format!("assuming blocks of {one}"),
        (_, all) if found.shapes.told == Told::Fully => format!("blocks of {}, as it is launched", all.join(" or ")),
        (_, all) if found.shapes.told == Told::Partly => {
            format!("blocks of {}, as only a part of the shape is told", all.join(" or "))
        }
        (_, all) => format!("blocks of {}, as nothing tells the shape", all.join(" or ")),
    };
    writeln!(out, "{}{} {}", style.strong(name), style.faint(arch), style.faint(format!("({block})")))
}

/// A branch in words.
struct Row {
    place: String,
    ptx: String,
    verdict: &'static str,
    share: String,
    costs: String,
    report: Option<Level>,
    reason: String,
}

impl Row {
    fn of(context: &Context<'_>, found: &Found<'_>) -> Row {
        let branch = found.branch;
        let (path, line) = place(context, found);
        let judgement = branch.judgement;
        let share = match judgement {
            // How many warps data split is not known.
            Some(judgement) if !matches!(judgement.verdict, Verdict::WarpUniform | Verdict::DivergentData) => {
                percent(branch.split.of_all())
            }
            _ => String::new(),
        };
        let costs = |(taken, other): (Side, Side)| format!("{:.0} | {:.0}", taken.weight, other.weight);
        let low = judgement.is_some_and(|judgement| judgement.confidence == Confidence::Low);
        let reason = judgement.map_or(NOT_FOLLOWED, |judgement| judgement.reason);
        Row {
            place: format!("{}:{line}", excerpt::short_path(&path, 40)),
            ptx: ptx_line(found).map_or_else(String::new, |line| format!("ptx:{line}")),
            verdict: judgement.map_or("?", |judgement| judgement.verdict.name()),
            share,
            costs: branch.sides.map_or_else(String::new, costs),
            report: reported(found),
            reason: format!("{reason}{}", if low { " (low confidence)" } else { "" }),
        }
    }
}

/// Writes the lines of a function and forgets them.
fn write_rows(rows: &mut Vec<Row>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let widest = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).width()).max().unwrap_or(0);
    let (places, ptx) = (widest(|row| &row.place), widest(|row| &row.ptx));
    let (verdicts, costs) = (widest(|row| row.verdict), widest(|row| &row.costs));
    for Row { place, ptx: own, verdict, share, costs: cost, report, reason } in rows.drain(..) {
        let pad = " ".repeat(places - place.width());
        let report = format!("{:<4}", report.map_or("", Level::name));
        writeln!(
            out,
            "  {place}{pad}  {own:<ptx$}  {verdict:<verdicts$}  {share:>6}  {cost:>costs$}  {}  {}",
            style.strong(report),
            style.faint(reason),
        )?;
    }
    Ok(())
}
