//! `under-filled-warp`: a block that leaves lanes of its last warp without a thread.

use serde::Deserialize;

use super::Context;
use super::limits::{and, counted, percent, threads};
use crate::finding::{Cause, Finding, Hit};
use crate::model::BlockSize;

/// Lanes of a warp, on every GPU that CUDA runs on.
const LANES: u32 = 32;

/// Threads of the largest block, which is a multiple of [`LANES`].
const MOST: u32 = 1024;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let Some(idle) = context.numbers.block.map(idle_lanes).filter(|idle| *idle > 0) else { return };
    // One `--block` is one cause, however many kernels it stands for.
    hits.extend(context.entries().map(|(at, _)| Hit::kernel(at, idle).caused_by(Cause::Rule)));
}

fn idle_lanes(block: BlockSize) -> u32 {
    lanes(block) - block.threads()
}

/// Lanes of all warps of a block.
fn lanes(block: BlockSize) -> u32 {
    block.threads().div_ceil(LANES) * LANES
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let (Some(kernel), Some(block)) = (context.kernel_of(hit), context.numbers.block) else {
        return Finding::new("a warp of the block is not full");
    };
    let (count, idle, lanes) = (block.threads(), idle_lanes(block), lanes(block));
    let share = f64::from(idle) / f64::from(lanes);
    let size = if block.y * block.z == 1 { String::new() } else { format!(" ({block})") };
    let message = format!(
        "{} with {} per block{size} leaves {idle} of {lanes} lanes idle ({})",
        context.called(kernel.name),
        threads(count),
        percent(share),
    );
    let text = format!("held for {} of each block, idle lanes included", counted(lanes / LANES, "warp"));
    Finding::new(message)
        .help(help(block))
        .label(context.label(kernel.evidence.usage.or(kernel.evidence.frame), "Used", "registers", text))
        .fact("block", block.to_string())
        .fact("threads", count)
        .fact("warps", lanes / LANES)
        .fact("lanes", lanes)
        .fact("idle_lanes", idle)
        .fact("idle_share", share)
}

fn help(block: BlockSize) -> String {
    let above = lanes(block);
    let near: Vec<String> =
        [above - LANES, above].into_iter().filter(|size| (1..=MOST).contains(size)).map(|size| size.to_string()).collect();
    let sizes = if block.y * block.z == 1 { "blocks of" } else { "dimensions whose product is" };
    let near = and(&near).replace(" and ", " or ");
    format!(
        "launch {sizes} {near} threads, and as many of them as cover the data; threads past the end then need the \
         guard `if (i < n)`, and lanes idle in the last block only instead of in every one"
    )
}
