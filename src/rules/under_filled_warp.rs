//! `under-filled-warp`: a block that leaves lanes of its last warp without a thread.

use serde::Deserialize;

use super::Context;
use super::limits::{and, counted, threads};
use crate::analyse::{BlockSource, Told};
use crate::finding::{Cause, Finding, Hit, Level};
use crate::model::{BlockSize, percent};

/// Lanes of a warp, on every GPU that CUDA runs on.
const LANES: u32 = 32;

/// Threads of the largest block, which is a multiple of [`LANES`].
const MOST: u32 = 1024;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
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

/// A kernel that declares a single thread to a block is meant to have no more.
fn is_meant(block: BlockSize, source: BlockSource) -> bool {
    block.threads() == 1 && matches!(source, BlockSource::ReqNtid | BlockSource::LaunchBounds | BlockSource::Comment)
}

fn idle_lanes(block: BlockSize) -> u32 {
    lanes(block) - block.threads()
}

/// Lanes of all warps of a block.
fn lanes(block: BlockSize) -> u32 {
    block.threads().div_ceil(LANES) * LANES
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let (Some(kernel), Some((block, source))) =
        (context.kernel_of(hit), context.told_of(hit).and_then(|told| told.block))
    else {
        return Finding::new("a warp of the block is not full");
    };
    let (count, idle, lanes) = (block.threads(), idle_lanes(block), lanes(block));
    let share = f64::from(idle) / f64::from(lanes);
    let size = if block.y * block.z == 1 { String::new() } else { format!(" ({block})") };
    let bound = if source == BlockSource::LaunchBounds { ", the most of its launch bounds," } else { "" };
    let message = format!(
        "{} with {} per block{size}{bound} leaves {idle} of {lanes} lanes idle ({})",
        context.called(kernel.name),
        threads(count),
        percent(share),
    );
    let text = format!("held for {} of each block, idle lanes included", counted(lanes / LANES, "warp"));
    let line = kernel.evidence.usage.or(kernel.evidence.frame);
    let label = match line {
        None => kernel.evidence.head.map(|head| context.line_label(head, text)),
        line => context.label(line, "Used", "registers", text),
    };
    let help = match source {
        BlockSource::LaunchBounds => {
            format!("where launches are smaller, `--block` tells their size; else {}", help(block))
        }
        _ => help(block),
    };
    Finding::new(message)
        .help(help)
        .label(label)
        .fact("block_source", source.name())
        .fact("block", block.to_string())
        .fact("threads", count)
        .fact("warps", lanes / LANES)
        .fact("lanes", lanes)
        .fact("idle_lanes", idle)
        .fact("idle_share", share)
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
    use crate::rules::testing::lint;

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
