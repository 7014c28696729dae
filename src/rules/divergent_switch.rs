//! `divergent-switch`: lanes of one warp go many ways at a `switch` because of the index of the thread.

use serde::Deserialize;

use super::Context;
use super::branch::{cap, each, finding, is_dispatch, ways_of_chain, witness};
use crate::analyse::Found;
use crate::finding::{Finding, Hit};
use crate::lanes::verdict::Verdict;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let is_ours = judgement.verdict == Verdict::DivergentIndex && is_dispatch(found) && !found.branch.is_loop;
        let cap = cap(judgement).filter(|_| is_ours)?;
        let (taken, other) = found.branch.sides.map_or((0.0, 0.0), |(taken, other)| (taken.weight, other.weight));
        Some((found.branch.split.mean * (taken + other), cap))
    });
}

fn ways(found: &Found<'_>) -> usize {
    (found.branch.ways as usize).max(ways_of_chain(found))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else { return Finding::new("lanes of a warp go many ways") };
    let name = context.called(Some(found.function.name));
    let ways = ways(&found);
    let message = format!(
        "lanes of a warp of {name} go different ways of {ways} here, by thread index: a warp runs each case that one of its \
         lanes takes, one after the other",
    );
    finding(context, hit, message, witness(found.branch))
        .help(
            "dispatch on the number of the warp, `threadIdx.x / 32`, so that each warp runs one case; or put what differs \
             between the cases into a table, and run the same code for all",
        )
        .fact("ways", u64::try_from(ways).unwrap_or(u64::MAX))
}
