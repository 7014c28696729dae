//! The kernel table: one row a kernel and architecture, for people, spreadsheets and programs.

use std::cmp::Ordering;
use std::io::{self, Write};

use super::wire::Escaped;
use super::{Style, json};
use crate::analyse::{BlockSource, Judged};
use crate::model::{BlockSize, Bytes, Kernel, Kind, percent, symbol};
use crate::rules::Context;

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Sort {
    /// The order of the inputs.
    #[default]
    Input,
    /// By name.
    Kernel,
    /// By architecture.
    Arch,
    /// Most registers first.
    Regs,
    /// Most spilled bytes first.
    Spill,
    /// Largest stack first.
    Stack,
    /// Most shared memory first.
    Shared,
    /// Longest compile time first.
    Time,
    /// Lowest occupancy first.
    Occupancy,
}

const COLUMNS: [&str; 10] =
    ["kernel", "arch", "regs", "spill", "stack", "shared", "compile", "block", "occupancy", "limited by"];

/// The column of compile times, which not every table has.
const COMPILE: usize = 6;

/// A row: a kernel on one GPU, or without one where its architecture is unknown.
struct Row<'a> {
    kernel: &'a Kernel,
    judged: Option<&'a Judged>,
    name: &'a [u8],
    /// The block, where it is told.
    block: Option<BlockSize>,
}

fn rows<'a>(context: &Context<'a>, sort: Sort) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (at, kernel) in context.report.kernels.iter().enumerate() {
        let name = kernel.name.map_or(&b"?"[..], |id| context.report.names.get(id));
        let ids = context.numbers.ids(at);
        // As on PTX alone, which tells no registers and so no occupancy.
        let told = context.numbers.told(at).filter(|_| kernel.kind == Kind::Entry);
        let block = told.and_then(|told| told.block).map(|(block, _)| block);
        if ids.is_empty() {
            rows.push(Row { kernel, judged: None, name, block });
        }
        let judged = ids.iter().map(|id| &context.numbers.judged[*id as usize]);
        rows.extend(judged.map(|judged| Row { kernel, judged: Some(judged), name, block: Some(judged.block) }));
    }
    rows.sort_by(|a, b| order(sort, a, b));
    rows
}

fn order(sort: Sort, a: &Row<'_>, b: &Row<'_>) -> Ordering {
    let most = |key: fn(&Row<'_>) -> Option<u32>| key(b).cmp(&key(a));
    match sort {
        Sort::Input => Ordering::Equal,
        Sort::Kernel => a.name.cmp(b.name),
        Sort::Arch => a.kernel.arch.cmp(&b.kernel.arch),
        Sort::Regs => most(|row| row.kernel.resources.registers),
        Sort::Spill => most(|row| spilled(row.kernel).map(Bytes::get)),
        Sort::Stack => most(|row| stack(row.kernel).map(Bytes::get)),
        Sort::Shared => most(|row| row.kernel.resources.static_shared.map(Bytes::get)),
        Sort::Time => {
            let time = |row: &Row<'_>| row.kernel.resources.compile_time_ms.unwrap_or(-1.0);
            time(b).total_cmp(&time(a))
        }
        Sort::Occupancy => {
            let occupancy = |row: &Row<'_>| row.judged.map_or(f64::INFINITY, |judged| judged.occupancy.fraction());
            occupancy(a).total_cmp(&occupancy(b))
        }
    }
}

fn spilled(kernel: &Kernel) -> Option<Bytes> {
    kernel.resources.spill_stores.max(kernel.resources.spill_loads)
}

/// Where nobody knows how deep it gets, the frame of the kernel itself is not its stack.
fn stack(kernel: &Kernel) -> Option<Bytes> {
    kernel.resources.cumulative_stack.max(kernel.resources.stack).filter(|_| !kernel.unbounded_stack)
}

/// What the marks of a table say; only those that are used are printed.
#[derive(Default)]
struct Marks {
    sweep: bool,
    function: bool,
    ambiguous: bool,
    uncounted: bool,
}

/// Whether hardware barriers could lower the occupancy and are left out of it, since the compiler could not count them.
fn leaves_barriers_out(context: &Context<'_>, row: &Row<'_>, judged: &Judged) -> bool {
    let limits = context.numbers.gpu(judged).arch.is_some_and(|arch| arch.at_least(9, 0));
    limits && row.kernel.resources.barriers.is_some_and(|count| count >= 16)
}

/// What is said of such an occupancy.
const UNCOUNTED: &str = "the compiler could not count the barriers of the kernel, which may leave room for less";

fn cells(context: &Context<'_>, row: &Row<'_>, style: Style, marks: &mut Marks) -> [String; 10] {
    let zero = style.choose("·", ".");
    let unknown = "?";
    let bytes = |size: Option<Bytes>| match size {
        None => unknown.to_owned(),
        Some(Bytes::ZERO) => zero.to_owned(),
        Some(size) => size.to_string(),
    };
    let function = row.kernel.kind == Kind::Function;
    marks.function |= function;
    marks.ambiguous |= row.kernel.ambiguous;
    let mark = if function {
        " (device)"
    } else if row.kernel.ambiguous {
        " (ambiguous)"
    } else {
        ""
    };
    let gpu = row.kernel.arch.map_or_else(|| unknown.to_owned(), |arch| arch.to_string());
    let absent = |size: Option<Bytes>| if function && size.is_none() { String::new() } else { bytes(size) };
    let [block, occupancy, limited] = match row.judged {
        None => [row.block.map_or_else(String::new, |block| block.to_string()), String::new(), String::new()],
        Some(judged) => {
            let source = match judged.source {
                BlockSource::Sweep => "*",
                BlockSource::Comment
                | BlockSource::Config
                | BlockSource::ReqNtid
                | BlockSource::LaunchSite
                | BlockSource::Option
                | BlockSource::LaunchBounds => "",
            };
            marks.sweep |= judged.source == BlockSource::Sweep;
            let limiters: Vec<&str> = judged.occupancy.limiters.iter().map(|limiter| limiter.words()).collect();
            let uncounted = leaves_barriers_out(context, row, judged);
            marks.uncounted |= uncounted;
            let most = if uncounted { style.choose("≤", "<=") } else { "" };
            let occupancy = format!("{most}{}", percent(judged.occupancy.fraction()));
            [format!("{}{source}", judged.block), occupancy, limiters.join(", ")]
        }
    };
    let registers = match row.kernel.resources.registers {
        Some(count) => count.to_string(),
        None if function => String::new(),
        None => unknown.to_owned(),
    };
    [
        format!("{}{mark}", symbol::short(row.name)),
        gpu,
        registers,
        bytes(spilled(row.kernel)),
        bytes(stack(row.kernel)),
        absent(row.kernel.resources.static_shared),
        row.kernel.resources.compile_time_ms.map_or_else(String::new, duration),
        block,
        occupancy,
        limited,
    ]
}

/// `1.5 ms`, `58 ms`, `12.3 s`.
fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// The rows that a person wants to see, and how many kernels of the device runtime are left out.
fn rows_for_people<'a>(context: &Context<'a>, sort: Sort) -> (Vec<Row<'a>>, usize) {
    let (own, others): (Vec<_>, Vec<_>) =
        rows(context, sort).into_iter().partition(|row| !symbol::is_of_device_runtime(row.name));
    (own, others.len())
}

/// The last line of a table that leaves kernels out.
fn left_out(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 kernel of the CUDA device runtime is left out".to_owned()),
        count => Some(format!("{count} kernels of the CUDA device runtime are left out")),
    }
}

fn has_times(rows: &[Row<'_>]) -> bool {
    rows.iter().any(|row| row.kernel.resources.compile_time_ms.is_some())
}

/// The table in aligned columns. Zero is a dot, so that the eye finds what is not.
///
/// # Errors
/// When `out` cannot be written to.
pub fn kernels_human(context: &Context<'_>, sort: Sort, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let (rows, others) = rows_for_people(context, sort);
    let mut marks = Marks::default();
    let several = context.numbers.gpus.len() > 1
        && rows.iter().any(|row| row.judged.is_some_and(|judged| !is_own(context, row, judged)));
    let mut table: Vec<[String; 10]> = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut cells = cells(context, row, style, &mut marks);
        if let Some(judged) = row.judged.filter(|_| several) {
            cells[1] = format!("{} on {}", cells[1], context.numbers.gpu(judged).name);
        }
        table.push(cells);
    }
    let width = |column: usize| {
        let longest = table.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        longest.max(COLUMNS[column].len())
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let full = widths.iter().map(|width| width + 2).sum::<usize>() - 2;
    let timed = has_times(&rows) && (sort == Sort::Time || full <= style.width);
    if !rows.is_empty() {
        let heading = COLUMNS.map(str::to_owned);
        writeln!(out, "{}", style.strong(line(&heading, &widths, timed)))?;
    }
    for cells in &table {
        writeln!(out, "{}", line(cells, &widths, timed))?;
    }
    legend(&marks, style, out)?;
    for gpu in idle_gpus(context) {
        writeln!(out, "{}", style.faint(format!("{gpu}: there is no code that runs on it")))?;
    }
    left_out(others).map_or(Ok(()), |text| writeln!(out, "{}", style.faint(text)))
}

/// GPUs that were asked for and that run none of the kernels.
fn idle_gpus<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a str> {
    let kernels = &context.report.kernels;
    let idle = context.numbers.gpus.iter().filter(|gpu| !kernels.iter().any(|kernel| gpu.takes(kernel)));
    idle.map(|gpu| gpu.name.as_ref())
}

fn is_own(context: &Context<'_>, row: &Row<'_>, judged: &Judged) -> bool {
    context.numbers.gpu(judged).arch == row.kernel.arch.map(crate::model::Arch::device)
}

fn line(cells: &[String], widths: &[usize], timed: bool) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate().filter(|(at, _)| timed || *at != COMPILE) {
        let pad = " ".repeat(width - cell.chars().count());
        let left = at < 2 || at == COLUMNS.len() - 1;
        let padded = if left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
        line.push_str(&padded);
        line.push_str("  ");
    }
    line.trim_end().to_owned()
}

fn legend(marks: &Marks, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if marks.sweep {
        writeln!(
            out,
            "{}",
            style.faint("* no block size is known: the best of all multiples of 32; --block tells one")
        )?;
    }
    if marks.uncounted {
        writeln!(out, "{}", style.faint(format!("{} {UNCOUNTED}", style.choose("≤", "<="))))?;
    }
    if marks.ambiguous {
        writeln!(
            out,
            "{}",
            style.faint("(ambiguous) interleaved output leaves open whether the figures are this kernel's")
        )?;
    }
    Ok(())
}

/// The table as CSV: raw numbers, empty where unknown.
///
/// # Errors
/// When `out` cannot be written to.
pub fn kernels_csv(context: &Context<'_>, sort: Sort, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "kernel,demangled,kind,arch,gpu,registers,spill_store_bytes,spill_load_bytes,stack_bytes,static_shared_bytes,block,blocks_per_sm,active_warps,max_warps,occupancy,limiters,compile_time_ms"
    )?;
    for row in rows(context, sort) {
        let resources = &row.kernel.resources;
        let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        let bytes = |value: Option<Bytes>| number(value.map(Bytes::get));
        let name = String::from_utf8_lossy(row.name);
        let mut cells = vec![
            quoted(if row.kernel.name.is_some() { &name } else { "" }),
            quoted(&symbol::demangle(row.name).unwrap_or_default()),
            if row.kernel.kind == Kind::Entry { "entry" } else { "function" }.to_owned(),
            row.kernel.arch.map_or_else(String::new, |arch| arch.to_string()),
            row.judged.map_or_else(String::new, |judged| quoted(&context.numbers.gpu(judged).name)),
            number(resources.registers),
            bytes(resources.spill_stores),
            bytes(resources.spill_loads),
            bytes(resources.stack),
            bytes(resources.static_shared),
        ];
        match row.judged {
            None => {
                cells.push(row.block.map_or_else(String::new, dimensions));
                cells.extend(std::iter::repeat_n(String::new(), 5));
            }
            Some(judged) => {
                let limiters: Vec<&str> = judged.occupancy.limiters.iter().map(|limiter| limiter.name()).collect();
                cells.extend([
                    dimensions(judged.block),
                    judged.occupancy.blocks_per_sm.to_string(),
                    judged.occupancy.active_warps.to_string(),
                    judged.occupancy.max_warps.to_string(),
                    format!("{}", judged.occupancy.fraction()),
                    limiters.join(" "),
                ]);
            }
        }
        cells.push(resources.compile_time_ms.map_or_else(String::new, |time| time.to_string()));
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

/// `16x16x1`
fn dimensions(block: BlockSize) -> String {
    block.dimensions().map(|n| n.to_string()).join("x")
}

/// RFC 4180; a cell that a spreadsheet would take for a formula is text.
fn quoted(text: &str) -> String {
    let text = symbol::printable(text);
    if text.contains([',', '"']) || text.starts_with(['=', '+', '-', '@']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.into_owned()
}

/// The table as GitHub draws it.
///
/// # Errors
/// When `out` cannot be written to.
pub fn kernels_markdown(context: &Context<'_>, sort: Sort, out: &mut dyn Write) -> io::Result<()> {
    let (rows, others) = rows_for_people(context, sort);
    let timed = has_times(&rows);
    let kept = |at: usize| timed || at != COMPILE;
    let mut row_of = |cells: &[&str]| {
        let cells: Vec<&str> = (0..).zip(cells).filter(|(at, _)| kept(*at)).map(|(_, cell)| *cell).collect();
        writeln!(out, "| {} |", cells.join(" | "))
    };
    row_of(&COLUMNS)?;
    row_of(&["---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---"])?;
    let style = Style { unicode: true, color: false, width: 100 };
    let mut marks = Marks::default();
    for row in rows {
        let mut cells = cells(context, &row, style, &mut marks);
        cells[0] = format!("`{}`", cells[0].replace('`', "'"));
        let escaped = cells.map(|cell| cell.replace('|', "\\|").replace('*', "\\*"));
        row_of(&escaped.each_ref().map(String::as_str))?;
    }
    if marks.sweep {
        writeln!(out, "\n\\* no block size is known: the best of all multiples of 32")?;
    }
    if marks.uncounted {
        writeln!(out, "\n≤ {UNCOUNTED}")?;
    }
    left_out(others).map_or(Ok(()), |text| writeln!(out, "\n{text}"))
}

/// The kernels as in the JSON report.
///
/// # Errors
/// When `out` cannot be written to.
pub fn kernels_json(context: &Context<'_>, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Escaped(out);
    writeln!(out, "{{\n  \"version\": {},", json::VERSION)?;
    json::kernel_list(context, "", out)?;
    writeln!(out, "}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_digits_that_matter() {
        let shown = [0.04, 1.532, 58.684, 999.4, 12_345.0].map(duration);
        assert_eq!(shown, ["0.0 ms", "1.5 ms", "59 ms", "999 ms", "12.3 s"]);
    }
}
