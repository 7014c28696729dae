//! `barrier-in-divergent-branch`: a barrier for the whole block that not every thread of the block reaches.

use serde::Deserialize;

use super::Context;
use super::branch::{each, finding, ptx_label, witness};
use crate::finding::{Finding, Hit, Level};
use crate::lanes::verdict::{Missed, Verdict};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        if judgement.verdict != Verdict::BarrierInDivergent {
            return None;
        }
        // From 7.0 on a barrier does not wait for threads that have exited.
        let waits = found.function.arch.is_some_and(|arch| !arch.at_least(7, 0));
        let cap = match found.branch.missed? {
            Missed::Exits if !waits => Level::Note,
            Missed::Exits | Missed::GoesOn => Level::Deny,
        };
        Some((1.0 + found.branch.split.mean, cap))
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else { return Finding::new("not every thread reaches a barrier") };
    let name = context.called(Some(found.function.name));
    let exits = found.branch.missed == Some(Missed::Exits);
    let (what, help) = if exits {
        let help = "keep the threads that have nothing to do: instead of returning, guard what they would do, and let all of \
                    them come to the barrier; `__syncthreads()` in a branch that only a part of the block takes is undefined";
        ("the others exit", help)
    } else {
        let help = "move the barrier out of the branch, and guard what stands before and after it instead: a barrier that a \
                    part of the block waits at hangs, or pairs with the next one and lets data race";
        ("the others go on to other code", help)
    };
    let message =
        format!("only a part of the block of {name} comes to the barrier that this branch leads to, and {what}");
    let mut finding = finding(context, hit, message, witness(found.branch))
        .help(help)
        .fact("skipping_threads_exit", u64::from(exits));
    if let Some(barrier) = context.quotes_of(hit).and_then(|quotes| quotes.barrier) {
        finding.beside.push(ptx_label(context, barrier, "the barrier".to_owned()));
    }
    finding
}
