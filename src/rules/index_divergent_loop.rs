//! `index-divergent-loop`: lanes of one warp leave a loop after different numbers of iterations, because of the index of the
//! thread.

use serde::Deserialize;

use super::Context;
use super::branch::{cap, each, finding, rounded};
use crate::finding::{Finding, Hit};
use crate::lanes::verdict::Verdict;
use crate::model::percent;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let spread = found.branch.spread?;
        let is_ours = judgement.verdict == Verdict::DivergentIndex && found.branch.is_loop;
        let cap = cap(judgement).filter(|_| is_ours)?;
        Some((spread.idle * spread.trips.0.min(1e6), cap))
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let (Some(found), Some(spread)) =
        (context.branch_of(hit), context.branch_of(hit).and_then(|found| found.branch.spread))
    else {
        return Finding::new("lanes of a warp leave a loop at different times");
    };
    let name = context.called(Some(found.function.name));
    let (longest, mean) = spread.trips;
    let message = format!(
        "lanes of a warp of {name} leave this loop at different iterations, by thread index: {} of their turns are idle",
        percent(spread.idle),
    );
    let label = format!(
        "a warp runs as long as its longest lane: {} iterations where the mean is {}",
        about(longest),
        about(mean)
    );
    finding(context, hit, message, label)
        .help(
            "give the lanes of a warp equally long loops: let a warp share one long loop lane by lane (start at the lane \
             number, step by 32), or pair long with short",
        )
        .fact("idle_share", spread.idle)
        .fact("split_warps", spread.share)
        .fact("longest_trips", longest)
        .fact("mean_trips", mean)
}

/// A number of iterations as a person says it.
fn about(trips: f64) -> String {
    if trips < 10.0 { format!("{trips:.1}") } else { rounded(trips).to_string() }
}
