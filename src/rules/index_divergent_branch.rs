//! `index-divergent-branch`: lanes of one warp part at a branch because of the index of the thread.

use serde::Deserialize;

use super::Context;
use super::branch::{
    Message, Says, cap, each, estimated, finding, instructions, is_dispatch, varies, warps_split, weights,
};
use crate::finding::{Finding, Hit};
use crate::lanes::loss::{idle, is_mostly_one, loss};
use crate::lanes::verdict::Verdict;
use crate::model::percent;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |found, judgement| {
        let is_ours = matches!(judgement.verdict, Verdict::DivergentIndex | Verdict::LeaderLane);
        let cap = cap(judgement).filter(|_| is_ours && !found.branch.is_loop && !is_dispatch(found))?;
        Some((loss(&found.branch.split, found.branch.sides), cap))
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else { return Finding::new("lanes of a warp part at a branch") };
    let branch = found.branch;
    let name = context.called(Some(found.function.name));
    let (taken, other) = weights(branch);
    let (less, more) = (taken.min(other), taken.max(other));
    let (splits, s, its) = warps_split(&found, &name);
    let is_leader = branch.judgement.is_some_and(|judgement| judgement.verdict == Verdict::LeaderLane);
    let (what, costs, help) = if is_leader {
        let costs = format!(": {} while the others idle", instructions(more));
        (format!("one lane of a warp of {name} works alone here"), costs, LEADER)
    } else if !is_mostly_one(less) {
        let (taken, other, more) = (estimated(taken), estimated(other), estimated(more));
        let costs = format!(" and run{s} both sides: about {taken} + {other} instructions instead of {more}");
        (format!("{splits} by thread index"), costs, TWO_SIDED)
    } else {
        let idle = percent(branch.sides.map_or(0.0, |(taken, other)| idle(&branch.split, taken, other)));
        let who = if varies(&found) { "the other lanes".to_owned() } else { format!("{idle} of {its} lanes") };
        let costs = format!(": {who} idle for {}", instructions(more));
        (format!("{splits} by thread index"), costs, ONE_SIDED)
    };
    finding(context, hit, Message { what, more: costs, label: Says::Lanes })
        .help(help)
        .fact("loss_per_visit", loss(&branch.split, branch.sides))
}

const TWO_SIDED: &str = "decide per warp, as `threadIdx.x / 32 % 2` does where `threadIdx.x % 2` does not, and renumber the \
                         data to fit; or let the sides differ in their values and share their code";

const ONE_SIDED: &str = "number the items that need work without gaps and give item k to thread k, so that a whole warp has \
                         work or none";

const LEADER: &str =
    "spread the work over the lanes of the warp, or let other warps go on with something else meanwhile";

#[cfg(test)]
mod tests {
    use crate::rules::testing::{ODD, ODD_WARP, human, kernel, lint, one_sided, parted, sources, work};

    #[test]
    fn two_sides_run_one_after_the_other() {
        assert_eq!(
            lint(&parted(ODD, &work(12), &work(20)), &[]),
            [
                "warning[index-divergent-branch] every warp of `k` splits here by thread index and runs both sides: about 12 + 20 instructions instead of 20"
            ]
        );
    }

    #[test]
    fn of_one_side_the_other_lanes_idle_and_nothing_runs_one_after_the_other() {
        let quarter = "and.b32 %r1, %t, 3; setp.ne.u32 %p1, %r1, 0;";
        assert_eq!(
            lint(&one_sided(quarter, &work(40)), &[]),
            [
                "warning[index-divergent-branch] every warp of `k` splits here by thread index: 75 % of its lanes idle for about 40 instructions"
            ]
        );
    }

    #[test]
    fn what_both_sides_lead_to_is_no_side() {
        // if (t % 8 == 0 || n == 0) { … }
        let eighth = "and.b32 %r1, %t, 7; setp.eq.u32 %p1, %r1, 0;";
        let either = format!("{eighth}\n@%p1 bra IN;\nsetp.ne.u32 %p2, %n, 0;\n@%p2 bra OUT;\nIN:\n{}OUT:", work(60));
        assert!(lint(&kernel(&either), &[]).is_empty());
    }

    #[test]
    fn a_return_idles_lanes_as_well() {
        let log = kernel(&format!("{ODD}\n@%p1 bra END;\n{}", work(29)));
        let found = lint(&log, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("50 % of its lanes idle for about 30 instructions"), "{found:?}");
    }

    #[test]
    fn the_label_says_which_lanes_of_which_warp_jump_in_which_blocks() {
        let half = "and.b32 %r1, %t, 16; setp.eq.u32 %p1, %r1, 0;";
        let text = human(&parted(half, &work(20), &work(20)), &[]);
        assert!(text.contains("warp 0: lanes 0–15 jump, lanes 16–31 do not; assuming 256 threads per block"), "{text}");
        let text = human(&parted(half, &work(20), &work(20)), &["--block", "64"]);
        assert!(text.contains("lanes 16–31 do not; blocks of 64 threads"), "{text}");
    }

    #[test]
    fn a_share_of_the_warps_is_said() {
        let by_48 = "div.u32 %r1, %t, 48; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;";
        let found = lint(&parted(by_48, &work(24), &work(24)), &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("] 37.5 % of the warps of `k` split here by thread index and run both sides: "),
            "{found:?}"
        );
    }

    #[test]
    fn warps_that_do_not_get_there_are_not_said_to_split() {
        let within = format!(
            "setp.ge.u32 %p2, %t, 128;\n@%p2 bra DONE;\n{ODD}\n@%p1 bra JUMPS;\n{}bra.uni MEET;\nJUMPS:\n{}MEET:\nDONE:",
            work(12),
            work(20)
        );
        let found = lint(&kernel(&within), &[]);
        let what = "warning[index-divergent-branch] every warp of `k` that gets here splits by thread index and runs both sides";
        assert!(found.len() == 1 && found[0].starts_with(what), "{found:?}");
    }

    #[test]
    fn warps_that_go_one_way_each_are_silent() {
        assert!(lint(&parted(ODD_WARP, &work(20), &work(20)), &[]).is_empty());
        assert!(lint(&parted("setp.gt.u32 %p1, %n, 7;", &work(20), &work(20)), &[]).is_empty());
    }

    #[test]
    fn a_bound_that_parts_few_warps_is_silent() {
        assert!(lint(&parted("setp.lt.u32 %p1, %t, 100;", &work(20), &work(20)), &[]).is_empty());
        assert!(lint(&one_sided("setp.ge.u32 %p1, %t, %n;", &work(40)), &[]).is_empty());
    }

    #[test]
    fn sides_that_are_predicated_are_silent() {
        assert!(lint(&parted(ODD, &work(3), &work(3)), &[]).is_empty());
        assert!(lint(&one_sided(ODD, &work(6)), &[]).is_empty());
    }

    #[test]
    fn a_lane_that_does_little_alone_is_silent() {
        assert!(lint(&one_sided("setp.ne.u32 %p1, %t, 0;", &work(40)), &[]).is_empty());
    }

    #[test]
    fn a_lane_that_does_much_alone_is_a_note() {
        assert_eq!(
            lint(&one_sided("and.b32 %r1, %t, 31; setp.ne.u32 %p1, %r1, 0;", &work(80)), &[]),
            [
                "note[index-divergent-branch] one lane of a warp of `k` works alone here: about 80 instructions while the others idle"
            ]
        );
    }

    #[test]
    fn a_side_that_is_not_meant_to_run_is_silent() {
        assert!(lint(&one_sided(ODD, &format!("{}trap;\n", work(40))), &[]).is_empty());
    }

    #[test]
    fn what_a_library_holds_is_a_note_where_a_line_of_the_user_calls_it_and_silent_else() {
        let at = |outer: &str, inner: &str| {
            let branch = format!(".loc 2 9 3, function_name $L__info, inlined_at 1 7 3\n@%p1 bra MEET;\n{}", work(40));
            let log = kernel(&format!("{ODD}\n.loc 1 7 3\n{branch}MEET:"));
            lint(&format!("{log}.file 1 \"{outer}\"\n.file 2 \"{inner}\"\n"), &[])
        };
        let cub = "/opt/cuda/include/cub/block/block_scan.cuh";
        let levels = [("a.cu", "a.cuh"), ("a.cu", cub), (cub, cub)].map(|(outer, inner)| at(outer, inner));
        assert!(levels[0][0].contains("warning["), "{levels:?}");
        assert!(levels[1][0].contains("note["), "{levels:?}");
        assert!(levels[2].is_empty(), "{levels:?}");
    }

    #[test]
    fn a_slow_division_is_more_than_one_instruction() {
        let found = lint(&one_sided(ODD, "div.rn.f32 %x, %x, 0f40400000;\n"), &[]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn what_run_time_values_decide_is_a_note_that_says_so() {
        // A small number parts all warps, and a large one none.
        let masked =
            "setp.lt.u32 %p2, %n, 16; selp.b32 %r1, 1, 32, %p2; and.b32 %r2, %t, %r1; setp.ne.u32 %p1, %r2, 0;";
        let found = lint(&parted(masked, &work(40), &work(40)), &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("note[index-divergent-branch] depending on run-time values, warps of `k` split here"),
            "{found:?}"
        );
    }

    #[test]
    fn every_block_that_a_kernel_is_launched_with_counts() {
        let told = |condition: &str, launches: [&str; 2]| {
            let source = format!(
                "extern \"C\" __global__ void k(float* o, int n) {{ int t = threadIdx.x; float x = o[t];\n\
                 if ({condition}) {{ for (int j = 0; j < n; j++) x = x * 1.03f + 1.f; }} else \
                 {{ for (int j = 0; j < n; j++) x = x * x - .7f; }}\no[t] = x; }}\n\
                 void run(float* o, int n) {{ k<<<1, {}>>>(o, n); k<<<1, {}>>>(o, n); }}\n",
                launches[0], launches[1]
            );
            sources(&[("k.cu", &source)], &["--allow", "missing-launch-bounds"])
        };
        for (condition, block, [one, two]) in [
            ("threadIdx.y & 1", "16×16", ["dim3(16, 16)", "dim3(32, 8)"]),
            ("(threadIdx.x / (blockDim.x / 8)) & 1", "64", ["64", "256"]),
        ] {
            let note = format!("note[index-divergent-branch] if its blocks are {block}, every warp of `k` splits here");
            for launches in [[one, two], [two, one]] {
                let all = told(condition, launches);
                assert!(all.len() == 1 && all[0].starts_with(&note), "{launches:?}: {all:?}");
            }
            assert!(told(condition, [two, two]).is_empty());
        }
    }

    #[test]
    fn a_shape_that_nothing_tells_makes_a_note_that_names_it_and_block_settles_it() {
        let row = "mov.u32 %r1, %tid.y; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;";
        let log = parted(row, &work(20), &work(20));
        let found = lint(&log, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("note[index-divergent-branch] if its blocks are 16×16, every warp of `k` splits"),
            "{found:?}"
        );
        assert!(lint(&log, &["--block", "32,8"]).is_empty());
        let found = lint(&log, &["--block", "16,16"]);
        assert!(found[0].starts_with("warning[") && found[0].ends_with("instead of 20"), "{found:?}");
    }
}
