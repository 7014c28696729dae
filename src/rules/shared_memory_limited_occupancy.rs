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
            limits::low_occupancy(context, kernel, judged).help(advice::raise(context, judged))
        }
        _ => Finding::new("shared memory limits occupancy"),
    }
}
