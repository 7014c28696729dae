//! `divergent-switch`: lanes of one warp go many ways at a `switch` because of the index of the thread.

use serde::Deserialize;

use super::Context;
use super::branch::{
    Message, Says, cap, each, finding, goes_on_from, instructions, is_dispatch, rounded, ways, weights,
};
use crate::finding::{Finding, Hit};
use crate::lanes::branch::Branch;
use crate::lanes::verdict::{Advice, Judgement, Verdict};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let cap = cap(judgement).filter(|_| is_ours(found.branch, judgement) && is_dispatch(found))?;
        let is_told = |root: &Branch| {
            root.judgement.is_some_and(|judgement| judgement.advice > Advice::Silent && is_ours(root, judgement))
        };
        if goes_on_from(found, is_told) {
            return None;
        }
        let (taken, other) = weights(found.branch);
        Some((found.branch.split.of_all() * (taken + other), cap))
    });
}

fn is_ours(branch: &Branch, judgement: Judgement) -> bool {
    judgement.verdict == Verdict::DivergentIndex && !branch.is_loop
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else { return Finding::new("lanes of a warp go many ways") };
    let name = context.called(Some(found.function.name));
    let ways = ways(&found);
    let (taken, other) = weights(found.branch);
    let all = taken + other + found.branch.shared.weight;
    // The ways of a table are not weighed.
    let what = format!("lanes of a warp of {name} go up to {ways} ways here by thread index");
    let costs = if rounded(all) > 0 { format!(", {} in all", instructions(all)) } else { String::new() };
    let more = format!(": the ways run one after the other{costs}");
    finding(context, hit, Message { what, more, label: Says::Lanes })
        .help(
            "dispatch on the number of the warp, `threadIdx.x / 32`, so that each warp runs one case; or put what differs \
             between the cases into a table, and run the same code for all",
        )
        .fact("ways", u64::from(ways))
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{kernel, lint, work};

    /// A switch on `%r1` with a case for each number of instructions, and the last of them for all other values.
    fn switch(set: &str, cases: &[usize]) -> String {
        let last = cases.len() - 1;
        let mut text = format!("{set}\n");
        for at in 0..last {
            text += &format!("setp.eq.u32 %p{at}, %r1, {at};\n@%p{at} bra CASE{at};\n");
        }
        for (at, count) in cases.iter().enumerate().rev() {
            let label = if at == last { String::new() } else { format!("CASE{at}:\n") };
            text += &format!("{label}{}add.f32 %x, %x, 0f{at}F800000;\nbra.uni MEET;\n", work(*count));
        }
        kernel(&(text + "MEET:"))
    }

    #[test]
    fn the_leaders_of_warps_with_a_task_each_are_silent() {
        // As `switch (threadIdx.x) { case 0: … case 32: … case 64: … }` becomes: the number, rotated by five bits.
        let by_warp = "shf.l.wrap.b32 %r1, %t, %t, 27;\nsetp.gt.s32 %p9, %r1, 1;\n@%p9 bra CASE2;";
        assert!(lint(&switch(by_warp, &[20, 20, 20, 20]), &[]).is_empty());
    }

    const BY_LANE: &str = "and.b32 %r1, %t, 3;";

    #[test]
    fn a_switch_on_the_lane_is_one_finding_with_its_ways_and_their_instructions() {
        assert_eq!(
            lint(&switch(BY_LANE, &[19, 29, 39, 49]), &[]),
            [
                "warning[divergent-switch] lanes of a warp of `k` go up to 4 ways here by thread index: the ways run one after the other, about 140 instructions in all"
            ]
        );
    }

    #[test]
    fn a_switch_on_the_warp_is_silent() {
        assert!(lint(&switch("shr.u32 %r1, %t, 5;", &[20, 30, 40, 50]), &[]).is_empty());
        assert!(lint(&switch("mov.u32 %r1, %n;", &[20, 30, 40, 50]), &[]).is_empty());
    }

    #[test]
    fn cases_that_are_predicated_are_silent() {
        assert!(lint(&switch(BY_LANE, &[0, 0, 0, 0]), &[]).is_empty());
    }

    #[test]
    fn three_ways_are_branches() {
        let found = lint(&switch(BY_LANE, &[20, 30, 40]), &[]);
        assert!(!found.is_empty(), "{found:?}");
        assert!(found.iter().all(|line| line.starts_with("warning[index-divergent-branch] ")), "{found:?}");
    }

    #[test]
    fn a_table_on_the_lane_is_told_without_numbers_of_instructions() {
        let log = kernel(&format!(
            "{BY_LANE}\nWAYS: .branchtargets A, B, C, D;\nbrx.idx %r1, WAYS;\nA:\n{0}bra.uni MEET;\nB:\n{0}\
             bra.uni MEET;\nC:\n{0}bra.uni MEET;\nD:\n{0}MEET:",
            work(20)
        ));
        assert_eq!(
            lint(&log, &[]),
            [
                "warning[divergent-switch] lanes of a warp of `k` go up to 4 ways here by thread index: the ways run one after the other"
            ]
        );
        assert!(lint(&log.replace("and.b32 %r1, %t, 3", "and.b32 %r1, %n, 3"), &[]).is_empty());
    }
}
