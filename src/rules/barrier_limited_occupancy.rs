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
            .help(advice::raise(context, judged))
            .fact("barriers", judged.launch.barriers),
        _ => Finding::new("barriers limit occupancy"),
    }
}
