//! `index-divergent-branch`: lanes of one warp part at a branch because of the index of the thread.

use serde::Deserialize;

use super::Context;
use super::branch::{cap, each, finding, instructions, is_dispatch, rounded, share_of_warps, witness};
use crate::finding::{Finding, Hit};
use crate::lanes::function::Branch;
use crate::lanes::verdict::Verdict;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let is_ours = matches!(judgement.verdict, Verdict::DivergentIndex | Verdict::LeaderLane);
        let cap = cap(judgement).filter(|_| is_ours && !found.branch.is_loop && !is_dispatch(found))?;
        Some((loss(found.branch), cap))
    });
}

/// Instructions that a warp loses at a visit.
fn loss(branch: &Branch) -> f64 {
    let (taken, other) = weights(branch);
    match taken.min(other) {
        less if less > 0.0 => branch.split.mean * less,
        _ => branch.split.mean * taken.max(other) * idle(branch),
    }
}

fn weights(branch: &Branch) -> (f64, f64) {
    branch.sides.map_or((0.0, 0.0), |(taken, other)| (taken.weight, other.weight))
}

/// Share of lanes that wait while the only side runs.
fn idle(branch: &Branch) -> f64 {
    let (taken, other) = weights(branch);
    if taken > other { 1.0 - branch.split.taking } else { branch.split.taking }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else { return Finding::new("lanes of a warp part at a branch") };
    let branch = found.branch;
    let name = context.called(Some(found.function.name));
    let (taken, other) = weights(branch);
    let (less, more) = (taken.min(other), taken.max(other));
    let share = share_of_warps(branch.split.mean);
    let is_leader = branch.judgement.is_some_and(|judgement| judgement.verdict == Verdict::LeaderLane);
    let (message, help) = if is_leader {
        let message = format!("one lane of a warp of {name} runs {} here while the others wait", instructions(more));
        (message, "spread the work over the lanes of the warp, or let other warps go on with something else meanwhile")
    } else if rounded(less) > 0 {
        let message = format!(
            "{share} of {name} {} here on the thread index: {} + {} instructions run one after the other instead of {}",
            if branch.split.mean >= 0.995 { "splits" } else { "split" },
            rounded(taken),
            rounded(other),
            rounded(more),
        );
        (message, TWO_SIDED)
    } else {
        let message = format!(
            "{share} of {name} {} here on the thread index: {} of a warp's lanes idle while {} run",
            if branch.split.mean >= 0.995 { "splits" } else { "split" },
            crate::model::percent(idle(branch)),
            instructions(more),
        );
        (message, ONE_SIDED)
    };
    finding(context, hit, message, witness(branch)).help(help).fact("loss_per_visit", loss(branch))
}

const TWO_SIDED: &str = "make the condition the same for all 32 lanes of a warp, such as `threadIdx.x / 32 % 2` instead of \
                         `threadIdx.x % 2`, and renumber the data to fit; or compute both sides and select";

const ONE_SIDED: &str = "let neighbouring threads take the work, so that whole warps have it and whole warps have none: map \
                         the work to `threadIdx.x` without gaps";
