//! `data-divergent-branch`: lanes of one warp part at a branch where the data that they loaded differ.

use serde::Deserialize;

use super::Context;
use super::branch::{cap, each, finding, instructions, rounded};
use crate::finding::{Finding, Hit};
use crate::lanes::verdict::Verdict;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let cap = cap(judgement).filter(|_| judgement.verdict == Verdict::DivergentData)?;
        let (taken, other) = found.branch.sides.map_or((0.0, 0.0), |(taken, other)| (taken.weight, other.weight));
        Some((taken.min(other).max(1.0), cap))
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else {
        return Finding::new("lanes of a warp part where their data differ");
    };
    let name = context.called(Some(found.function.name));
    let (taken, other) = found.branch.sides.map_or((0.0, 0.0), |(taken, other)| (taken.weight, other.weight));
    let costs = match (rounded(taken.min(other)), taken.max(other)) {
        _ if found.branch.is_loop => "the warp goes on until its last lane is done".to_owned(),
        (0, more) => format!("the others idle while {} run", instructions(more)),
        (_, _) => format!("{} + {} instructions run one after the other", rounded(taken), rounded(other)),
    };
    let message = format!("lanes of a warp of {name} part here where their data differ: {costs}");
    finding(context, hit, message, "decided by what each lane loaded".to_owned())
        .help("sort or bucket the data so that the lanes of a warp agree, or let a warp work on one item together")
}
