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
            limits::low_occupancy(context, kernel, judged).help(advice::raise(context, judged))
        }
        _ => Finding::new("the number of blocks limits occupancy"),
    }
}
