//! `split-row-warps`: rows of the block are shorter than a warp, and the kernel checks for the end of a row.

use hashbrown::HashSet;
use serde::Deserialize;

use super::Context;
use super::branch::{Message, Says, finding};
use super::limits::{counted, threads};
use crate::analyse::{BlockSource, Found};
use crate::finding::{Cause, Finding, Hit};
use crate::lanes::module::Told;
use crate::model::{BlockSize, Kind};

/// Lanes of a warp.
const LANES: u32 = 32;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let mut told = HashSet::new();
    for (at, found) in context.branches() {
        let is_entry = found.function.kind == Kind::Entry && !context.is_hip(found.module.input);
        let Some(known) = known(&found).filter(|_| found.branch.checks_row && is_entry) else { continue };
        // The first of a kernel stands for all.
        if told.insert(found.function.head.0 as u64 | u64::from(found.module.input) << 32) {
            hits.push(Hit::branch(at, known.most()).caused_by(cause(context, &found)));
        }
    }
}

/// One `--block`, or one entry of the configuration, is one cause, however many kernels it stands for; launches are written
/// one by one.
fn cause(context: &Context<'_>, found: &Found<'_>) -> Cause {
    let told = found.function.kernel.map(|kernel| context.numbers.told_id(kernel as usize));
    let source = told.and_then(|told| context.numbers.told.get(told)?.block).map(|(_, source)| source);
    match (told, source) {
        (Some(told), Some(BlockSource::Option | BlockSource::Config)) => Cause::of_rule(told),
        _ => Cause::Kernel,
    }
}

/// What is known of the block of a kernel.
#[derive(Clone, Copy)]
enum Known {
    /// All of it.
    Block(BlockSize),
    /// Its x, and of the rest no more than that a warp covers so many rows, if that.
    Row { x: u32, rows: Option<u32> },
}

/// The block of a kernel: of those that it is launched with, that in which a warp covers most rows.
fn known(found: &Found<'_>) -> Option<Known> {
    match found.shapes.told {
        Told::Fully => {
            let blocks = found.shapes.all.iter().map(|one| BlockSize { x: one.x, y: one.y, z: one.z });
            // The first of several that are alike.
            blocks.rev().max_by_key(|block| rows(*block)).map(Known::Block)
        }
        Told::Partly => {
            let [x, y, z] = found.shapes.part;
            let (x, others) = (x.filter(|x| *x < LANES)?, y.unwrap_or(1).saturating_mul(z.unwrap_or(1)));
            let rows = Some(rows_of(x)).filter(|rows| others >= *rows);
            Some(Known::Row { x, rows })
        }
        Told::Perhaps | Told::Bound | Told::Nothing => None,
    }
}

/// Rows that a warp covers at most, in part or whole.
fn rows(block: BlockSize) -> u32 {
    let all = block.threads();
    let warps = (0..all).step_by(LANES as usize);
    warps.map(|first| (first + LANES - 1).min(all - 1) / block.x - first / block.x + 1).max().unwrap_or(0)
}

/// The same of rows of `x` threads, of which there are enough: warps begin where 32 and the rows have a divisor in common.
fn rows_of(x: u32) -> u32 {
    let common = (1..=x).rev().find(|divisor| x.is_multiple_of(*divisor) && LANES.is_multiple_of(*divisor));
    (x - common.unwrap_or(1) + LANES - 1) / x + 1
}

/// Says so where not all warps cover as many rows as some do.
fn up_to(x: u32) -> &'static str {
    if LANES.is_multiple_of(x) { "" } else { "up to " }
}

impl Known {
    /// Rows that a warp covers at most.
    fn most(self) -> u32 {
        match self {
            Known::Block(block) => rows(block),
            Known::Row { x, .. } => rows_of(x),
        }
    }

    /// Rows that a warp covers, where that is known.
    fn rows(self) -> Option<u32> {
        match self {
            Known::Block(block) => Some(rows(block)),
            Known::Row { rows, .. } => rows,
        }
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let plain = || Finding::new("a warp covers several rows of its block");
    let Some(found) = context.branch_of(hit) else { return plain() };
    let Some(known) = known(&found) else { return plain() };
    let name = context.called(Some(found.function.name));
    let of = if found.shapes.all.len() > 1 { "a" } else { "its" };
    let what = match known {
        Known::Block(block) => {
            let (up_to, rows) = (up_to(block.x), counted(rows(block), "row"));
            format!("a warp of {name} covers {up_to}{rows} of {of} {block} block")
        }
        Known::Row { x, rows: Some(rows) } => {
            let (up_to, rows) = (up_to(x), counted(rows, "row"));
            format!("a warp of {name} covers {up_to}{rows} of its block, which has {} in x", threads(x))
        }
        Known::Row { x, rows: None } => {
            format!(
                "a row of the block of {name} has {}, and a warp covers as many rows as there are, up to {}",
                threads(x),
                known.most()
            )
        }
    };
    let more = ", and this check idles lanes at the end of each".to_owned();
    finding(context, hit, Message { what, more, label: Says::Text("cuts off the end of a row".to_owned()) })
        .help(help(known))
        .fact("rows", known.rows())
}

/// The block of as many threads whose rows are a warp each.
fn help(known: Known) -> String {
    let of_warps = |block: BlockSize| Some(block.threads()).filter(|all| all.is_multiple_of(LANES) && *all > LANES);
    let threads = match known {
        Known::Block(block) => of_warps(block),
        Known::Row { .. } => None,
    };
    let wide = match threads {
        Some(threads) => format!("a block of {LANES}×{} has as many threads and one row a warp", threads / LANES),
        None => format!("a block whose x is a multiple of {LANES} has no more than one row a warp"),
    };
    format!("{wide}: then the lanes of a warp reach the edge together, and what they access lies in one row")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{human_with_args, lint, with_log};

    /// A kernel that adds one where its place is within the picture; `axis` is the one that is checked.
    fn kernel(directive: &str, axis: &str) -> String {
        format!(
            ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 w)\n{directive}\n{{\n\
             \t.reg .pred %p<3>;\n\t.reg .b32 %r<12>;\n\t.reg .b64 %rd<5>;\n\
             \tld.param.u64 %rd1, [p];\n\tld.param.u32 %r1, [w];\n\
             \tmov.u32 %r2, %ctaid.{axis};\n\tmov.u32 %r3, %ntid.{axis};\n\tmov.u32 %r4, %tid.{axis};\n\
             \tmad.lo.s32 %r5, %r2, %r3, %r4;\n\tmov.u32 %r6, %tid.y;\n\
             \tsetp.ge.s32 %p1, %r5, %r1;\n\t@%p1 bra $out;\n\
             \tmad.lo.s32 %r7, %r6, %r1, %r5;\n\tmul.wide.s32 %rd2, %r7, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n\
             \tld.global.u32 %r8, [%rd3];\n\tadd.s32 %r9, %r8, 1;\n\tst.global.u32 [%rd3], %r9;\n$out:\n\tret;\n}}\n"
        )
    }

    #[test]
    fn rows_of_sixteen_threads_with_a_check_are_a_note() {
        let told = "note[split-row-warps] a warp of `k` covers 2 rows of its 16×16 block, and this check idles lanes at the end of each";
        assert_eq!(lint(&kernel(".reqntid 16, 16, 1", "x"), &[]), [told]);
        assert_eq!(lint(&kernel("", "x"), &["--block", "16,16"]), [told]);
    }

    #[test]
    fn every_launch_counts_and_the_one_with_most_rows_is_told() {
        let told = |launches: &str| {
            let source =
                format!("extern \"C\" __global__ void k(int* p, int w);\nvoid run(int* p, int w) {{ {launches} }}\n");
            let found = with_log(&[("k.cu", &source)], &kernel("", "x"), &[]);
            found.into_iter().filter(|line| line.contains("[split-row-warps]")).collect::<Vec<String>>()
        };
        let of = |rows: &str| {
            [format!(
                "note[split-row-warps] a warp of `k` covers {rows} block, and this check idles lanes at the end of each"
            )]
        };
        assert_eq!(told("k<<<9, dim3(16, 16)>>>(p, w);"), of("2 rows of its 16×16"));
        assert_eq!(told("k<<<9, dim3(16, 16)>>>(p, w); k<<<9, dim3(16, 8)>>>(p, w);"), of("2 rows of a 16×16"));
        assert_eq!(told("k<<<9, dim3(16, 16)>>>(p, w); k<<<9, dim3(8, 8)>>>(p, w);"), of("4 rows of a 8×8"));
        assert_eq!(told("k<<<9, dim3(32, 8)>>>(p, w); k<<<9, dim3(16, 16)>>>(p, w);"), of("2 rows of a 16×16"));
        assert!(told("k<<<9, dim3(32, 8)>>>(p, w); k<<<9, dim3(64, 4)>>>(p, w);").is_empty());
    }

    #[test]
    fn one_block_of_the_command_line_is_one_cause() {
        let kernels = kernel("", "x").replace("$out", "$one")
            + &kernel("", "x")
                .replace("entry k(", "entry l(")
                .replace(".version 8.5\n.target sm_80\n.address_size 64\n", "");
        let human = human_with_args(&[("k.ptx", &kernels)], &["--block", "16,16"]);
        assert!(human.contains("2 notes in 1 group"), "{human}");
        let own = kernels.replace(")\n\n{", ")\n.reqntid 16, 16, 1\n{");
        let human = human_with_args(&[("k.ptx", &own)], &[]);
        assert!(human.contains("2 notes") && !human.contains("group"), "{human}");
    }

    #[test]
    fn of_a_block_of_which_a_part_is_known_no_other_part_is_made_up() {
        let told = |launch: &str| {
            let source =
                format!("extern \"C\" __global__ void k(int* p, int w);\nvoid run(int* p, int w) {{ {launch} }}\n");
            let found = with_log(&[("k.cu", &source)], &kernel("", "x"), &[]);
            found.into_iter().filter(|line| line.contains("[split-row-warps]")).collect::<Vec<String>>()
        };
        let all = ", and this check idles lanes at the end of each";
        let row = "note[split-row-warps] a row of the block of `k` has 8 threads, and a warp covers as many rows as there \
                   are, up to 4";
        assert_eq!(told("k<<<9, dim3(8, w)>>>(p, w);"), [format!("{row}{all}")]);
        assert_eq!(told("k<<<9, dim3(8, 2, w)>>>(p, w);"), [format!("{row}{all}")]);
        // Whatever z is.
        let sure = "note[split-row-warps] a warp of `k` covers 4 rows of its block, which has 8 threads in x";
        assert_eq!(told("k<<<9, dim3(8, 4, w)>>>(p, w);"), [format!("{sure}{all}")]);
        assert!(told("k<<<9, dim3(32, w)>>>(p, w);").is_empty());
        assert!(told("k<<<9, dim3(w, 8)>>>(p, w);").is_empty());
    }

    #[test]
    fn whole_rows_unknown_shapes_and_other_checks_are_silent() {
        assert!(lint(&kernel(".reqntid 32, 8, 1", "x"), &[]).is_empty());
        assert!(lint(&kernel(".reqntid 256, 1, 1", "x"), &[]).is_empty());
        assert!(lint(&kernel("", "x"), &[]).is_empty());
        assert!(lint(&kernel(".maxntid 256", "x"), &[]).is_empty());
        assert!(lint(&kernel(".reqntid 16, 16, 1", "y"), &[]).is_empty());
        // As in a reduction: no place in the grid.
        let in_block = kernel(".reqntid 16, 16, 1", "x").replace("setp.ge.s32 %p1, %r5", "setp.ge.s32 %p1, %r4");
        assert!(lint(&in_block, &[]).is_empty());
    }
}
