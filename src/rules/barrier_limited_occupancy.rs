//! `barrier-limited-occupancy`: the barriers that each block names are more than an SM has for as many blocks as fit.

use serde::Deserialize;

use super::limits::{self, Grade, speaker};
use super::{Context, advice};
use crate::finding::{Finding, Hit, Level};
use crate::gpu::Limiter;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    // A count of 16, which ptxas prints where it could not count, has been dropped by the analysis.
    limits::each(context, hits, |judged| {
        (speaker(judged) == Some(Limiter::Barriers)).then(|| Grade::by_occupancy(judged, Level::Deny))
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), context.judged_of(hit)) {
        (Some(kernel), Some(judged)) => limits::low_occupancy(context, kernel, judged)
            .help(advice::raise(context, kernel, judged))
            .fact("barriers", judged.launch.barriers),
        _ => Finding::new("barriers limit occupancy"),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::records::record;
    use crate::rules::testing::lint;

    #[test]
    fn six_barriers_leave_room_for_ten_small_blocks() {
        assert_eq!(
            lint(&record("sm_90", "12 registers, used 6 barriers"), &["--block", "64"]),
            ["note[barrier-limited-occupancy] `k` reaches 31 % occupancy on sm_90: 6 barriers per block leave room \
                 for 10 blocks of 64 threads an SM, 20 of 64 warps"]
        );
    }

    #[test]
    fn sixteen_barriers_are_a_count_that_ptxas_does_not_know() {
        assert!(lint(&record("sm_90", "12 registers, used 16 barriers"), &["--block", "64"]).is_empty());
    }

    #[test]
    fn barriers_do_not_limit_before_9_0_nor_with_blocks_that_fill_the_sm() {
        assert!(lint(&record("sm_80", "12 registers, used 6 barriers"), &["--block", "64"]).is_empty());
        assert!(lint(&record("sm_90", "12 registers, used 6 barriers"), &["--block", "256"]).is_empty());
    }

    #[test]
    fn registers_that_barriers_undercut_are_not_to_blame() {
        let found = lint(&record("sm_90", "96 registers, used 6 barriers"), &["--block", "32"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("note[barrier-limited-occupancy]"), "{found:?}");
    }
}
