//! `index-divergent-loop`: lanes of one warp leave a loop after different numbers of iterations, because of the index of the
//! thread.

use serde::Deserialize;

use super::Context;
use super::branch::{Message, Says, block, cap, each, finding, rounded, varies};
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
    let what = format!("lanes of a warp of {name} leave this loop apart by thread index");
    let more = if varies(&found) || !spread.is_fixed {
        ": the warp turns until its last lane leaves".to_owned()
    } else {
        format!(
            ": {}the longest lane runs {}{}, the mean is {}, and {} of the lanes' turns are idle",
            // A source may yet be unrolled.
            if found.module.positions().is_some() { "" } else { "as compiled, " },
            iterations(longest),
            // Warps differ.
            if spread.differs { " on average" } else { "" },
            number(mean),
            percent(spread.idle),
        )
    };
    let label = format!("a warp turns until its last lane leaves; {}", block(&found));
    let finding = finding(context, hit, Message { what, more, label: Says::Text(label) })
        .help(
            "let the lanes of a warp share each long loop, from the lane's number in steps of 32, or give each lane a long loop \
             and a short one",
        )
        .fact("split_warps", spread.share);
    if spread.is_cut {
        return finding;
    }
    finding.fact("idle_share", spread.idle).fact("longest_trips", longest).fact("mean_trips", mean)
}

/// `15.5 iterations`, `1 iteration`, `317 iterations`
fn iterations(trips: f64) -> String {
    let number = number(trips);
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} iteration{ending}")
}

/// `15.5`, `317`: a tenth where there is one and it matters.
fn number(trips: f64) -> String {
    let tenths = (trips * 10.0).round() / 10.0;
    if tenths < 100.0 && tenths.fract() != 0.0 { format!("{tenths:.1}") } else { rounded(trips).to_string() }
}

#[cfg(test)]
mod tests {
    use super::iterations;
    use crate::rules::testing::{human, kernel, lint, work};

    /// A loop whose lanes start at `start` and turn, in steps of `step`, while they are less than `stop`.
    fn counted_loop(set: &str, start: &str, step: &str, stop: &str) -> String {
        let body = work(4);
        kernel(&format!(
            "{set}\nmov.u32 %r5, {start};\nAGAIN:\n{body}add.u32 %r5, %r5, {step};\nsetp.lt.u32 %p2, %r5, {stop};\n\
             @%p2 bra AGAIN;"
        ))
    }

    const LANE: &str = "and.b32 %r1, %t, 31;";

    #[test]
    fn a_loop_as_long_as_the_number_of_the_lane_idles_nearly_half_of_the_turns() {
        assert_eq!(
            lint(&counted_loop(LANE, "-1", "1", "%r1"), &[]),
            [
                "warning[index-divergent-loop] lanes of a warp of `k` leave this loop apart by thread index: as compiled, the longest lane runs 32 iterations, the mean is 16.5, and 48 % of the lanes' turns are idle"
            ]
        );
    }

    #[test]
    fn the_label_says_the_block() {
        let text = human(&counted_loop(LANE, "-1", "1", "%r1"), &["--block", "64"]);
        assert!(text.contains("a warp turns until its last lane leaves; blocks of 64 threads"), "{text}");
    }

    #[test]
    fn a_loop_in_steps_of_the_block_is_silent() {
        assert!(lint(&counted_loop("mov.u32 %r1, %ntid.x;", "%t", "%r1", "%n"), &[]).is_empty());
    }

    #[test]
    fn a_loop_as_long_for_all_lanes_of_a_warp_is_silent() {
        assert!(lint(&counted_loop("shr.u32 %r1, %t, 5;", "-1", "1", "%r1"), &[]).is_empty());
        assert!(lint(&counted_loop("", "0", "1", "%n"), &[]).is_empty());
    }

    #[test]
    fn a_difference_that_is_small_beside_the_loop_is_silent() {
        assert!(lint(&counted_loop("and.b32 %r1, %t, 31; add.u32 %r1, %r1, 500;", "0", "1", "%r1"), &[]).is_empty());
    }

    #[test]
    fn iterations_have_a_tenth_where_there_is_one() {
        assert_eq!(iterations(15.5), "15.5 iterations");
        assert_eq!(iterations(15.04), "15 iterations");
        assert_eq!(iterations(1.0), "1 iteration");
        assert_eq!(iterations(317.4), "317 iterations");
    }
}
