//! `block-limited-occupancy`: the blocks are too small to fill an SM that holds so many and no more.

pub(super) use super::limits::Thresholds as Options;
use super::{Context, advice, limits};
use crate::finding::{Finding, Hit};
use crate::gpu::Limiter;

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    limits::check(context, Limiter::Blocks, options, hits);
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), context.judged_of(hit)) {
        (Some(kernel), Some(judged)) => {
            limits::low_occupancy(context, kernel, judged).help(advice::raise(context, kernel, judged))
        }
        _ => Finding::new("the number of blocks limits occupancy"),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::records::{named, record};
    use crate::rules::testing::{lint, with_log};

    #[test]
    fn blocks_of_one_warp_fill_half_of_an_sm_for_24_blocks() {
        assert_eq!(
            lint(&record("sm_89", "20 registers"), &["--block", "32"]),
            ["warning[block-limited-occupancy] `k` reaches 50 % occupancy on sm_89: an SM holds at most 24 blocks, \
                 which at 32 threads each are 24 of 48 warps"]
        );
    }

    #[test]
    fn sixteen_by_two_threads_are_a_warp() {
        let found = lint(&record("sm_86", "64 registers"), &["--block", "16,2"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("16 blocks, which at 32 threads each are 16 of 48 warps"), "{found:?}");
    }

    #[test]
    fn two_warps_a_block_fill_a_part_with_24_blocks_and_not_one_with_16() {
        assert!(lint(&record("sm_89", "20 registers"), &["--block", "64"]).is_empty());
        assert!(lint(&record("sm_86", "20 registers"), &["--block", "64"])[0].starts_with("note[block-limited"));
    }

    #[test]
    fn registers_that_tie_speak_for_the_blocks_too() {
        let found = lint(&record("sm_86", "64 registers"), &["--block", "64"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("64 registers per thread and the limit of 16 blocks each leave room"), "{found:?}");
    }

    #[test]
    fn a_grid_that_no_sm_gets_enough_blocks_of_is_silent() {
        let found = |launches: &str, args: &[&str]| {
            let text =
                format!("__global__ void k(float* p) {{ p[0] = 0; }}\nvoid host(float* p, int n) {{ {launches} }}\n");
            let found = with_log(&[("k.cu", &text)], &named("_Z1kPf", "sm_90", "20 registers"), args);
            found.iter().filter(|line| line.contains("block-limited-occupancy")).count()
        };
        for grid in ["1", "4", "31", "dim3(2, 2)"] {
            assert_eq!(found(&format!("k<<<{grid}, 32>>>(p);"), &[]), 0, "{grid}");
        }
        for grid in ["n", "32", "132 * 32"] {
            assert_eq!(found(&format!("k<<<{grid}, 32>>>(p);"), &[]), 1, "{grid}");
        }
        // 132 SMs have 1 or 2 of 132 blocks each, and 32 of 4224.
        assert_eq!(found("k<<<133, 32>>>(p);", &["--gpu", "h100-sxm5"]), 0);
        assert_eq!(found("k<<<132 * 32, 32>>>(p);", &["--gpu", "h100-sxm5"]), 1);
        // One launch may be large, or the block of the other.
        assert_eq!(found("k<<<1, 32>>>(p); k<<<n, 32>>>(p);", &[]), 1);
        assert_eq!(found("k<<<1, 32>>>(p); k<<<n, n>>>(p);", &[]), 1);
        assert_eq!(found("k<<<1, 32>>>(p); k<<<n, 256>>>(p);", &[]), 0);
        assert_eq!(found("k<<<1, 32>>>(p); k<<<n, dim3(32, 33)>>>(p);", &[]), 0, "no GPU launches that");
    }

    #[test]
    fn no_block_is_too_small_when_none_is_known() {
        assert!(lint(&record("sm_89", "20 registers"), &[]).is_empty());
    }
}
