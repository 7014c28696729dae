//! `shared-memory-limited-occupancy`: the shared memory of an SM holds few blocks.

pub(super) use super::limits::Thresholds as Options;
use super::{Context, advice, limits};
use crate::finding::{Finding, Hit};
use crate::gpu::Limiter;

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    limits::check(context, Limiter::SharedMemory, options, hits);
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), context.judged_of(hit)) {
        (Some(kernel), Some(judged)) => {
            limits::low_occupancy(context, kernel, judged).help(advice::raise(context, kernel, judged))
        }
        _ => Finding::new("shared memory limits occupancy"),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::records::record;
    use crate::rules::testing::lint;

    #[test]
    fn what_the_system_reserves_of_each_block_counts() {
        // 164 KiB by 41 KiB is four, and with 1 KiB more a block it is three.
        assert_eq!(
            lint(&record("sm_80", "32 registers, 41984 bytes smem"), &["--block", "128"]),
            ["warning[shared-memory-limited-occupancy] `k` reaches 19 % occupancy on sm_80: 41 KiB of shared \
                 memory per block (42 KiB allocated) leaves room for 3 blocks of 128 threads an SM, 12 of 64 warps"]
        );
    }

    #[test]
    fn dynamic_shared_memory_is_named() {
        let args = ["--block", "128", "--dynamic-shared", "33792", "--gpu", "rtx5090"];
        let found = lint(&record("sm_120", "32 registers"), &args).concat();
        assert!(
            found.contains(
                "33 KiB of shared memory per block (33 KiB dynamic, 34 KiB allocated) leaves room for 2 blocks"
            ),
            "{found}"
        );
    }

    #[test]
    fn eight_blocks_beside_eight_kibibytes_are_silent() {
        assert!(lint(&record("sm_80", "32 registers, 8192 bytes smem"), &["--block", "256"]).is_empty());
    }

    #[test]
    fn a_large_block_excuses_a_large_tile_when_no_block_size_is_known() {
        for bytes in [41984, 105_000] {
            assert!(lint(&record("sm_80", &format!("32 registers, {bytes} bytes smem")), &[]).is_empty());
        }
    }
}
