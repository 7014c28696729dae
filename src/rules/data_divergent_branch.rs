//! `data-divergent-branch`: lanes of one warp part at a branch where the data that they loaded differ.

use serde::Deserialize;

use super::Context;
use super::branch::{Message, Says, cap, each, estimated, finding, goes_on_from, instructions, rounded, weights};
use crate::finding::{Finding, Hit};
use crate::lanes::branch::Branch;
use crate::lanes::verdict::{Advice, Verdict};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let cap = cap(judgement).filter(|_| judgement.verdict == Verdict::DivergentData)?;
        let is_told = |root: &Branch| {
            root.judgement.is_some_and(|one| one.advice > Advice::Silent && one.verdict == Verdict::DivergentData)
        };
        if goes_on_from(found, is_told) {
            return None;
        }
        let (taken, other) = weights(found.branch);
        Some((taken.min(other).max(1.0), cap))
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else {
        return Finding::new("lanes of a warp part where their data differ");
    };
    let name = context.called(Some(found.function.name));
    let (taken, other) = weights(found.branch);
    let (what, more) = if found.branch.is_loop {
        let more = ": the warp goes on until its last lane is done".to_owned();
        (format!("lanes of a warp of {name} leave this loop as their data say"), more)
    } else {
        let costs = match (rounded(taken.min(other)), taken.max(other)) {
            // The ways of a table are not weighed.
            _ if found.branch.sides.is_none() => "the ways that are taken run one after the other".to_owned(),
            (0, more) => format!("the others idle for {}", instructions(more)),
            (_, _) => format!("about {} + {} instructions run one after the other", estimated(taken), estimated(other)),
        };
        (format!("where data differ within a warp of {name}, its lanes part here"), format!(": {costs}"))
    };
    let label = Says::Text("decided by what each lane loaded".to_owned());
    finding(context, hit, Message { what, more, label })
        .help("sort or bucket the data so that the lanes of a warp agree, or let a warp work on one item together")
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{human, kernel, lint, one_sided, parted, work};

    const NEGATIVE: &str = "setp.lt.f32 %p1, %x, 0f00000000;";
    const ON: [&str; 2] = ["--warn", "data-divergent-branch"];

    #[test]
    fn it_is_off_unless_asked_for() {
        assert!(lint(&parted(NEGATIVE, &work(20), &work(20)), &[]).is_empty());
    }

    #[test]
    fn two_sides_run_one_after_the_other_where_data_differ() {
        assert_eq!(
            lint(&parted(NEGATIVE, &work(12), &work(20)), &ON),
            ["note[data-divergent-branch] where data differ within a warp of `k`, its lanes part here: about 12 + 20 \
             instructions run one after the other"]
        );
    }

    #[test]
    fn of_one_side_the_other_lanes_idle() {
        assert_eq!(
            lint(&one_sided(NEGATIVE, &work(30)), &ON),
            [
                "note[data-divergent-branch] where data differ within a warp of `k`, its lanes part here: the others idle for about 30 instructions"
            ]
        );
    }

    #[test]
    fn a_loop_that_data_end_goes_on_for_the_last_lane() {
        let log = kernel(&format!("AGAIN:\n{}setp.gt.f32 %p1, %x, 0f3F800000;\n@%p1 bra AGAIN;", work(4)));
        assert_eq!(
            lint(&log, &ON),
            ["note[data-divergent-branch] lanes of a warp of `k` leave this loop as their data say: the warp goes on \
             until its last lane is done"]
        );
    }

    #[test]
    fn a_value_that_the_whole_block_loads_is_silent() {
        let same = "ld.global.f32 %x, [%rd2]; setp.lt.f32 %p1, %x, 0f00000000;";
        assert!(lint(&parted(same, &work(20), &work(20)), &ON).is_empty());
    }

    #[test]
    fn sides_that_are_predicated_are_silent() {
        assert!(lint(&parted(NEGATIVE, &work(3), &work(3)), &ON).is_empty());
    }

    #[test]
    fn no_level_makes_more_of_it_than_a_note() {
        let text = human(&parted(NEGATIVE, &work(20), &work(20)), &["--deny", "data-divergent-branch", "-v"]);
        assert!(text.contains("1 note") && text.contains("decided by what each lane loaded"), "{text}");
    }
}
