//! `grid-too-small`: a constant grid with fewer blocks than the GPU has SMs.

use serde::Deserialize;

use super::Context;
use super::grid::{Grid, grids};
use super::limits::counted;
use crate::finding::{Finding, Hit};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    // A single block is no mistake in a number: what it does is done by one block.
    let small = grids(context).filter(|grid| grid.blocks > 1 && grid.blocks < u64::from(grid.sms));
    hits.extend(small.map(|grid| grid.hit(grid.sms - u32::try_from(grid.blocks).unwrap_or(grid.sms))));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(Grid { launched, site, gpu, blocks, sms, .. }) = Grid::of(context, hit) else {
        return Finding::new("a grid is smaller than the GPU");
    };
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    let idle = sms.saturating_sub(blocks);
    let message = format!(
        "{} is launched with {}, and {} has {sms} SMs: {idle} of them have nothing to do",
        context.launched(launched, site),
        counted(blocks, "block"),
        gpu.name,
    );
    let help = format!(
        "a grid of at least {sms} blocks gives every SM one: cut the work finer, with smaller blocks or fewer elements a \
         thread, or let another kernel run beside this one"
    );
    let label = context.launch_label(site, counted(blocks, "block"));
    let mut finding = Finding::new(message).help(help).label(Some(label));
    finding.gpu = Some(gpu.name.clone());
    finding.mark(blocks.to_string()).fact("blocks", blocks).fact("sms", sms).fact("idle_sms", idle)
}

#[cfg(test)]
mod tests {
    use super::super::testing::sources;

    fn found(launch: &str, gpu: &str) -> Vec<String> {
        let text = format!("__global__ void k(float* p) {{}}\nvoid host(float* p, int n) {{\n{launch}\n}}\n");
        sources(&[("k.cu", &text)], &["--gpu", gpu])
    }

    #[test]
    fn fewer_blocks_than_sms_are_a_note_with_both_numbers() {
        assert_eq!(
            found("k<<<40, 256>>>(p);", "h100-sxm5"),
            [
                "note[grid-too-small] `k` is launched with 40 blocks, and h100-sxm5 has 132 SMs: 92 of them have nothing to do"
            ]
        );
        assert_eq!(found("k<<<dim3(8, 8), 256>>>(p);", "h100-sxm5").len(), 1);
    }

    #[test]
    fn one_block_enough_blocks_unknown_grids_and_architectures_are_silent() {
        for launch in ["k<<<1, 256>>>(p);", "k<<<132, 256>>>(p);", "k<<<n, 256>>>(p);", "k<<<dim3(8, n), 256>>>(p);"] {
            assert!(found(launch, "h100-sxm5").is_empty(), "{launch}");
        }
        assert!(found("k<<<40, 256>>>(p);", "sm_90").is_empty());
    }
}
