//! `tail-effect`: a constant grid whose last blocks leave much of the GPU idle.

use serde::Deserialize;

use super::Context;
use super::grid::{Grid, grids};
use crate::finding::{Finding, Hit};
use crate::gpu::Fill;
use crate::model::percent;

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Options {
    /// Share of the GPU that idles in the last fill, from which on it is told.
    min_idle: f64,
    /// Fills from which on one that is not full does not matter.
    max_fills: u32,
}

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    for grid in grids(context) {
        let Some(fill) = fill(context, &grid) else { continue };
        let Some(tail) = Fill::new(grid.blocks, fill) else { continue };
        if tail.full() > 0
            && tail.full() + 1 < u64::from(options.max_fills)
            && tail.idle() >= options.min_idle
            && tail.rest() > 0
        {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share, in thousandths")]
            hits.push(grid.hit((tail.idle() * 1000.0) as u32));
        }
    }
}

/// Blocks that the GPU runs at once: where the occupancy of all kernels that the launch may be of is known, and the same.
fn fill(context: &Context<'_>, grid: &Grid<'_>) -> Option<u64> {
    let family = context.family_of_launch(grid.launched)?;
    let block = grid.site.block_size()?;
    let mut found: Option<u32> = None;
    for at in &family.kernels {
        let kernel = context.report.kernels.get(*at as usize)?;
        if !context.numbers.instances.may_be(context.report, kernel, grid.launched.spot) {
            continue;
        }
        let judged = context.numbers.of(*at as usize).filter(|judged| {
            let is_its = context.numbers.gpu(judged).name == grid.gpu.name && judged.block == block;
            is_its && grid.site.dynamic_shared.is_none_or(|bytes| judged.launch.dynamic_shared == bytes)
        });
        for one in judged {
            if found.is_some_and(|known| known != one.occupancy.blocks_per_sm) {
                return None;
            }
            found = Some(one.occupancy.blocks_per_sm);
        }
    }
    Some(u64::from(found.filter(|blocks| *blocks > 0)?) * u64::from(grid.sms))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(grid) = Grid::of(context, hit) else { return Finding::new("a grid ends in a tail") };
    let Some(tail) = fill(context, &grid).and_then(|fill| Fill::new(grid.blocks, fill)) else {
        return Finding::new("a grid ends in a tail");
    };
    let times = if tail.full() == 1 { "once".to_owned() } else { format!("{} times", tail.full()) };
    let message = format!(
        "the {} blocks of {} fill {} {times}, and the last {} leave {} of it idle",
        grid.blocks,
        context.launched(grid.launched, grid.site),
        grid.gpu.name,
        tail.rest(),
        percent(tail.idle()),
    );
    let help = format!(
        "{} runs {} such blocks at once: a grid of a multiple of that, or a kernel whose blocks walk over the data in steps \
         of the grid, has no tail; smaller blocks make it shorter",
        grid.gpu.name, tail.at_once
    );
    let label = context.launch_label(grid.site, format!("{} blocks, {} at once", grid.blocks, tail.at_once));
    let mut finding = Finding::new(message).help(help).label(Some(label));
    finding.gpu = Some(grid.gpu.name.clone());
    finding
        .mark(grid.blocks.to_string())
        .fact("blocks", grid.blocks)
        .fact("blocks_at_once", tail.at_once)
        .fact("full_fills", tail.full())
        .fact("idle_share", tail.idle())
}

#[cfg(test)]
mod tests {
    use super::super::records::named;
    use super::super::testing::with_log;

    fn found(blocks: u32) -> Vec<String> {
        let text = format!("__global__ void k(float* p) {{}}\nvoid host(float* p) {{ k<<<{blocks}, 1024>>>(p); }}\n");
        // 64 registers and 1024 threads: one block an SM.
        let log = named("_Z1kPf", "sm_90", "64 registers");
        let mut found = with_log(&[("k.cu", &text)], &log, &["--gpu", "h100-sxm5"]);
        found.retain(|line| line.contains("[tail-effect]"));
        found
    }

    #[test]
    fn a_last_fill_that_is_nearly_empty_is_told() {
        assert_eq!(
            found(140),
            ["note[tail-effect] the 140 blocks of `k` fill h100-sxm5 once, and the last 8 leave 94 % of it idle"]
        );
    }

    #[test]
    fn full_fills_many_fills_and_grids_of_less_than_one_are_silent() {
        for blocks in [132, 264, 250, 132 * 12 + 1, 100] {
            assert!(found(blocks).is_empty(), "{blocks}");
        }
    }
}
