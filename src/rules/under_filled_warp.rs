//! `under-filled-warp`: a block that leaves lanes of its last warp without a thread.

use serde::Deserialize;

use super::Context;
use super::limits::{and, counted, threads};
use crate::analyse::{BlockSource, Launched, Told};
use crate::finding::{Cause, Finding, Hit, Level};
use crate::model::{BlockSize, LaunchSite, Stated, percent};

/// Lanes of a warp, on every GPU that CUDA runs on.
const LANES: u32 = 32;

/// Threads of the largest block, which is a multiple of [`LANES`].
const MOST: u32 = 1024;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    of_launches(context, hits);
    let idle = |told: &Told| {
        told.block.map_or(0, |(block, source)| if is_meant(block, source) { 0 } else { idle_lanes(block) })
    };
    let idle: Vec<u32> = context.numbers.told.iter().map(idle).collect();
    if idle.iter().all(|idle| *idle == 0) {
        return;
    }
    for (at, _) in context.entries() {
        let told = context.numbers.told_id(at);
        if idle[told] == 0 {
            continue;
        }
        let hit = Hit::kernel(at, idle[told]);
        hits.push(match context.numbers.told[told].block {
            // One `--block`, or one entry of the configuration, is one cause, however many kernels it stands for.
            Some((_, BlockSource::Option | BlockSource::Config)) => hit.caused_by(Cause::of_rule(told)),
            // A bound is the most threads of a block, and no launch.
            Some((_, BlockSource::LaunchBounds)) => hit.at_most(Level::Note),
            _ => hit,
        });
    }
}

/// Launches in the sources: each that has a constant block, wherever its kernel is.
fn of_launches(context: &Context<'_>, hits: &mut Vec<Hit>) {
    for (at, launched, site) in context.launches() {
        let Some(block) = site.block_size() else { continue };
        let idle = idle_lanes(block);
        let is_meant = fits_a_warp(block, site) || wants_it(context, launched) || context.is_told_better(launched);
        if idle == 0
            || is_meant
            || site.grid.contains(&Some(0))
            || site.impossible.is_some()
            || context.is_hip(site.quote.place.input)
        {
            continue;
        }
        let hit = Hit::launch(at, idle).for_reason(block.threads() as usize);
        hits.push(if is_small(block, site) { hit.at_most(Level::Note) } else { hit });
    }
}

/// Whether a launch is of one block that fits a warp, as serial work is, or that of a few values: there is no more to fill
/// the warp with.
fn fits_a_warp(block: BlockSize, site: &LaunchSite) -> bool {
    block.threads() < LANES && site.is_of_one
}

/// Whether a launch has no more threads in all than one block may have: it is over before idle lanes cost anything.
fn is_small(block: BlockSize, site: &LaunchSite) -> bool {
    let all =
        |grid: [u32; 3]| grid.iter().fold(u64::from(block.threads()), |all, one| all.saturating_mul(u64::from(*one)));
    let [x, y, z] = site.grid;
    x.zip(y).zip(z).is_some_and(|((x, y), z)| all([x, y, z]) <= u64::from(MOST))
}

/// Whether what is launched declares a block of one thread, as the code for a tile does, or bounds that allow no more.
fn wants_it(context: &Context<'_>, launched: &Launched) -> bool {
    let Some(bounds) = context.family_of_launch(launched).map(|family| family.bounds(context.report)) else {
        return false;
    };
    bounds.block.is_some_and(|block| block.threads() == 1) || bounds.max_threads == Stated::As(1)
}

/// A kernel that declares a single thread to a block is meant to have no more; and launches are told one by one.
fn is_meant(block: BlockSize, source: BlockSource) -> bool {
    let declares = matches!(source, BlockSource::ReqNtid | BlockSource::LaunchBounds | BlockSource::Comment);
    source == BlockSource::LaunchSite || (block.threads() == 1 && declares)
}

fn idle_lanes(block: BlockSize) -> u32 {
    lanes(block) - block.threads()
}

/// Lanes of all warps of a block.
fn lanes(block: BlockSize) -> u32 {
    block.threads().div_ceil(LANES) * LANES
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    if let Some((launched, site)) = context.launch_of(hit) {
        return tell_launch(context, launched, site);
    }
    let (Some((at, kernel)), Some((block, source))) =
        (context.numbered_kernel_of(hit), context.told_of(hit).and_then(|told| told.block))
    else {
        return Finding::new("a warp of the block is not full");
    };
    let bound = if source == BlockSource::LaunchBounds { ", the most of its launch bounds," } else { "" };
    let message = message(&context.called(kernel.name), block, bound);
    let text = held(block);
    let line = kernel.evidence.usage.or(kernel.evidence.frame);
    let label = match (line, kernel.evidence.head) {
        (None, Some(head)) => Some(context.line_label(head, text)),
        (None, None) => context.report.declared(at).map(|declared| context.declared_label(declared, text)),
        (line, _) => context.label(line, "Used", "registers", text),
    };
    let help = match source {
        BlockSource::LaunchBounds => {
            format!("where launches are smaller, `--block` tells their size; else {}", help(block))
        }
        _ => help(block),
    };
    figures(Finding::new(message).help(help).label(label).fact("block_source", source.name()), block)
}

fn tell_launch(context: &Context<'_>, launched: &Launched, site: &LaunchSite) -> Finding {
    let Some(block) = site.block_size() else { return Finding::new("a warp of the block is not full") };
    let label = context.block_label(site, held(block));
    let finding = Finding::new(message(&context.launched(launched, site), block, "")).help(help(block));
    let finding = finding.label(Some(label)).fact("block_source", BlockSource::LaunchSite.name());
    figures(finding, block).mark(block.to_string())
}

fn message(called: &str, block: BlockSize, bound: &str) -> String {
    let (idle, lanes) = (idle_lanes(block), lanes(block));
    let size = if block.y * block.z == 1 { String::new() } else { format!(" ({block})") };
    let share = percent(f64::from(idle) / f64::from(lanes));
    format!(
        "{called} with {} per block{size}{bound} leaves {idle} of {lanes} lanes idle ({share})",
        threads(block.threads())
    )
}

fn held(block: BlockSize) -> String {
    format!("held for {} of each block, idle lanes included", counted(lanes(block) / LANES, "warp"))
}

/// The numbers behind a finding.
fn figures(finding: Finding, block: BlockSize) -> Finding {
    let (idle, lanes) = (idle_lanes(block), lanes(block));
    finding
        .fact("block", block.to_string())
        .fact("threads", block.threads())
        .fact("warps", lanes / LANES)
        .fact("lanes", lanes)
        .fact("idle_lanes", idle)
        .fact("idle_share", f64::from(idle) / f64::from(lanes))
}

fn help(block: BlockSize) -> String {
    let above = lanes(block);
    let near: Vec<String> = [above - LANES, above]
        .into_iter()
        .filter(|size| (1..=MOST).contains(size))
        .map(|size| size.to_string())
        .collect();
    let sizes = if block.y * block.z == 1 { "blocks of" } else { "dimensions whose product is" };
    let near = and(&near).replace(" and ", " or ");
    format!(
        "launch {sizes} {near} threads, and as many of them as cover the data; threads past the end then need the \
         guard `if (i < n)`, and lanes idle in the last block only instead of in every one"
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::records::{named, record};
    use crate::rules::testing::{lint, sources};

    fn found(block: &str) -> String {
        let found = lint(&record("sm_80", "20 registers"), &["--block", block, "--allow", "occupancy"]);
        found.join("\n")
    }

    #[test]
    fn lanes_without_a_thread_are_counted_with_their_share() {
        assert!(found("33").ends_with("`k` with 33 threads per block leaves 31 of 64 lanes idle (48 %)"));
        assert!(found("40").ends_with("leaves 24 of 64 lanes idle (37.5 %)"));
        assert!(found("200").ends_with("leaves 24 of 224 lanes idle (11 %)"));
        assert!(found("8").ends_with("leaves 24 of 32 lanes idle (75 %)"));
        assert!(found("28,28").ends_with("with 784 threads per block (28×28) leaves 16 of 800 lanes idle (2 %)"));
        assert!(found("1").ends_with("with 1 thread per block leaves 31 of 32 lanes idle (97 %)"));
    }

    #[test]
    fn multiples_of_32_are_silent_whatever_their_shape() {
        for block in ["32", "256", "1024", "16,2", "16,16", "8,8,4"] {
            assert_eq!(found(block), "", "{block}");
        }
    }

    fn launched(lines: &str) -> Vec<String> {
        let text = format!("__global__ void k(float* p) {{}}\nvoid host(float* p, int n) {{\n{lines}\n}}\n");
        sources(&[("k.cu", &text)], &[])
    }

    #[test]
    fn every_launch_in_a_source_is_judged_by_its_own_block() {
        assert_eq!(
            launched("k<<<n, 33>>>(p);\nk<<<n, 256>>>(p);\nk<<<n, dim3(10, 10)>>>(p);"),
            [
                "warning[under-filled-warp] `k` with 33 threads per block leaves 31 of 64 lanes idle (48 %)",
                "warning[under-filled-warp] `k` with 100 threads per block (10×10) leaves 28 of 128 lanes idle (22 %)",
            ]
        );
        // The kernel may be declared anywhere.
        let elsewhere = sources(&[("k.cu", "void host(float* p, int n) { other<<<n, 33>>>(p); }")], &[]);
        assert!(elsewhere[0].contains("`other` with 33 threads"), "{elsewhere:?}");
    }

    #[test]
    fn one_block_that_fits_a_warp_is_meant_and_many_are_not() {
        assert!(launched("k<<<1, 1>>>(p);").is_empty());
        assert!(launched("k<<<1, 16>>>(p);").is_empty());
        // As rodinia has it: what the helper makes of 1 is not known, and it is asked for one.
        assert!(launched("k<<<grid2D(1), 1>>>(p);").is_empty());
        assert!(launched("dim3 g = util::grid2D(1, 1); k<<<g, dim3(1)>>>(p);").is_empty());
        for grid in ["n", "grid2D(n)", "grid2D(1, n)", "grid2D(1) * n", "grid2D()", "dim3(grid2D(1), n)", "grid2D(2)"] {
            assert_eq!(launched(&format!("k<<<{grid}, 1>>>(p);")).len(), 1, "{grid}");
        }
        assert!(launched("k<<<1, dim3(2, 2, 2)>>>(p);").is_empty());
        assert!(launched("k<<<dim3(1, 1), dim3(1)>>>(p);").is_empty());
        assert_eq!(launched("k<<<n, 1>>>(p);").len(), 1);
        assert_eq!(launched("k<<<64, 1>>>(p);").len(), 1);
    }

    #[test]
    fn a_launch_of_no_more_threads_than_one_block_has_is_a_note() {
        let level = |line: &str| launched(line).first().map(|line| line.starts_with("note[")).expect("a finding");
        assert!(level("k<<<64, 1>>>(p);") && level("k<<<dim3(8, 4), dim3(4, 2)>>>(p);") && level("k<<<1, 33>>>(p);"));
        assert!(!level("k<<<1025, 1>>>(p);") && !level("k<<<n, 1>>>(p);") && !level("k<<<1024, 16>>>(p);"));
    }

    #[test]
    fn sources_for_hip_alone_are_silent() {
        let found = |first: &str| {
            let rest = "__global__ void k(float* p) {}\nvoid host(float* p, int n) { k<<<n, 33>>>(p); }\n";
            sources(&[("k.cu", &format!("{first}\n{rest}"))], &[]).len()
        };
        assert_eq!(found("#include <hip/hip_runtime.h>"), 0);
        assert_eq!(found("void f(void** p) { hipMalloc(p, 4); }"), 0);
        assert_eq!(found("void f(void** p) { hipHostMalloc (p, 4); }"), 0);
        assert_eq!(found("void f(void** p) { hipHostMalloc(p, 4); cudaFree(p); }"), 1);
        assert_eq!(found("void f(void** p) { shipMalloc(p); hipster(p); int hipMalloc; }"), 1);
        assert_eq!(found("#ifdef USE_HIP\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif"), 1);
    }

    #[test]
    fn code_for_a_tile_is_launched_with_one_thread() {
        let found = |attribute: &str| {
            let text = format!("{attribute} void k(float* p) {{}}\nvoid host(float* p, int n) {{ k<<<n, 1>>>(p); }}\n");
            sources(&[("k.cu", &text)], &[])
        };
        assert_eq!(found("__tile_global__"), [] as [&str; 0]);
        assert_eq!(found("__global__ __block_size__(1)"), [] as [&str; 0]);
        assert_eq!(found("__global__ __launch_bounds__(1)"), [] as [&str; 0]);
        assert_eq!(found("__global__ __launch_bounds__(2)").len(), 1);
        assert_eq!(found("__global__").len(), 1);
        // One that is called in full is that, whatever else has its name.
        let text = "namespace a::tile { __tile_global__ void k(float* p) {} }\n__global__ void k(float* p) {}\n";
        let host = "void host(float* p, int n) { ns::a::tile::k<<<n, 1>>>(p); }\n";
        assert_eq!(sources(&[("k.cuh", text), ("h.cu", host)], &[]), [] as [&str; 0]);
    }

    #[test]
    fn blocks_that_are_not_known_are_silent() {
        for line in ["k<<<n, n>>>(p);", "dim3 b(n); k<<<n, b>>>(p);", "int t = 33; if (n) t = 32; k<<<n, t>>>(p);"] {
            assert!(launched(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn launch_bounds_of_a_source_are_no_launch() {
        let found = sources(&[("k.cu", "__global__ void __launch_bounds__(200) k(float* p) {}")], &[]);
        assert_eq!(
            found,
            [
                "note[under-filled-warp] `k` with 200 threads per block, the most of its launch bounds, leaves 24 of 224 lanes \
                 idle (11 %)"
            ]
        );
    }

    #[test]
    fn it_needs_no_architecture_and_no_figures() {
        let log = record("sm_20", "20 registers");
        assert_eq!(lint(&log, &["--block", "33"]).len(), 1);
        let nvlink = "nvlink info    : Function properties for 'k':\n\
                      nvlink info    : used 20 registers, 0 stack, 0 bytes smem, 344 bytes cmem[0], 0 bytes lmem\n";
        let found = lint(nvlink, &["--block", "33"]);
        assert!(found.iter().any(|line| line.contains("[under-filled-warp] `k`")), "{found:?}");
    }

    #[test]
    fn every_kernel_is_named_and_no_function() {
        let two = named("a", "sm_80", "20 registers") + &named("b", "sm_80", "20 registers");
        assert_eq!(lint(&two, &["--block", "33"]).len(), 2);
        assert!(lint(&two, &[]).is_empty());
    }
}
