//! One judgement of each branch where a function was looked at in several ways.

use super::branch::Branch;
use super::verdict::{Advice, Confidence, Verdict};

/// What is said of a branch that was looked at in several ways: the worst verdict, and no surer and no louder than all of
/// them allow.
#[must_use]
pub fn agreed(ways: Vec<Vec<Branch>>, among: Among) -> Vec<Branch> {
    let mut ways = ways.into_iter();
    let mut agreed = ways.next().unwrap_or_default();
    for other in ways {
        for (branch, again) in agreed.iter_mut().zip(other) {
            branch.checks_row |= again.checks_row;
            let (Some(one), Some(two)) = (branch.judgement, again.judgement) else {
                branch.judgement = None;
                continue;
            };
            let differ = one.verdict != two.verdict;
            let advice = match among {
                _ if one.advice == two.advice => one.advice,
                Among::Callers => one.advice.min(two.advice),
                // A barrier is missed in one of them, whatever the others do.
                Among::Launches if [one.verdict, two.verdict].contains(&Verdict::BarrierInDivergent) => {
                    one.advice.max(two.advice)
                }
                Among::Shapes | Among::Launches => one.advice.max(two.advice).min(Advice::Note),
            };
            // What is told comes first; of what is as loud the worse verdict.
            if (two.advice, rank(two.verdict)) > (one.advice, rank(one.verdict)) {
                let Branch { chain, guards, checks_row, .. } = *branch;
                *branch = Branch { chain, guards, checks_row, ..again };
            }
            if let Some(judgement) = &mut branch.judgement {
                judgement.advice = advice;
                judgement.confidence = if differ { Confidence::Low } else { one.confidence.min(two.confidence) };
            }
        }
    }
    agreed
}

/// What the ways are that a function was looked at in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Shapes of the block, of which one is the kernel's.
    Shapes,
    /// Calls, all of which happen.
    Callers,
    /// Blocks of launches, all of which happen.
    Launches,
}

/// How bad a verdict is.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::WarpUniform => 0,
        Verdict::BoundarySplit => 1,
        Verdict::LeaderLane => 2,
        Verdict::PredicatedShort => 3,
        Verdict::DivergentData => 4,
        Verdict::DivergentIndex => 5,
        Verdict::BarrierInDivergent => 6,
    }
}
