//! `barrier-in-divergent-branch`: a barrier for the whole block that not every thread of the block reaches.

use std::cell::RefCell;

use hashbrown::HashSet;
use serde::Deserialize;

use super::Context;
use super::branch::{Message, Says, cap, each, finding, ptx_label};
use crate::analyse::Found;
use crate::finding::{Finding, Hit, Level};
use crate::lanes::verdict::{Advice, Confidence, Missed, Verdict};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let told = RefCell::new(HashSet::new());
    each(context, hits, |found, judgement| {
        if judgement.verdict != Verdict::BarrierInDivergent {
            return None;
        }
        let level = loudest(found)?;
        // The branch before a loop of a source and the one that leaves it are one statement.
        let statement = found.module.positions().and_then(|positions| positions.statement(found.branch.at));
        if statement
            .is_some_and(|bytes| !told.borrow_mut().insert((found.module.input, bytes.start, found.branch.is_strided)))
        {
            return None;
        }
        Some((1.0 + found.branch.split.mean, level))
    });
}

/// The loudest that a finding on such a branch may be.
#[must_use]
pub fn loudest(found: &Found<'_>) -> Option<Level> {
    let judgement = found.branch.judgement?;
    if found.module.positions().is_some() {
        return level_in_source(found, judgement.advice);
    }
    let loud = cap(judgement)?;
    Some(match found.branch.missed? {
        Missed::Exits if may_wait(found) && judgement.confidence == Confidence::High => Level::Deny,
        Missed::Exits => Level::Note,
        Missed::Paired => loud.min(Level::Warn),
        // Who rounds the bound up to blocks has it right.
        Missed::GoesOn if found.branch.is_strided => loud.min(Level::Warn),
        Missed::GoesOn => loud,
    })
}

/// How loud a source makes it: a barrier within what threads decide is wrong, and one that threads leave before is often meant.
fn level_in_source(found: &Found<'_>, advice: Advice) -> Option<Level> {
    match advice {
        Advice::Silent => None,
        _ if found.waits_behind() => None,
        Advice::Note => Some(Level::Note),
        // Who rounds the bound of a loop in steps of the block up to a multiple of them has it right.
        Advice::Warn => Some(if found.waits_within() && !found.branch.is_strided { Level::Deny } else { Level::Warn }),
    }
}

/// Whether a barrier may wait for threads that have exited: that it does not is promised from 7.0 on.
fn may_wait(found: &Found<'_>) -> bool {
    found.function.arch.is_some_and(|arch| !arch.at_least(7, 0))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(found) = context.branch_of(hit) else { return Finding::new("not every thread reaches a barrier") };
    let name = context.called(Some(found.function.name));
    let exits = found.branch.missed == Some(Missed::Exits);
    if found.branch.is_strided {
        let what = format!(
            "threads of a block of {name} may leave this loop a turn before the others, and miss the barrier in it"
        );
        let more = ": safe only where its bound never falls within a block".to_owned();
        return told(context, hit, Message { what, more, label: Says::Lanes }, STRIDED, exits);
    }
    let (does, help) = match found.function.arch {
        Some(arch) if exits && may_wait(&found) => (format!("exits, which {arch} may wait for"), EXIT),
        _ if exits && found.waits_within() => ("exits".to_owned(), GO_ON),
        _ if exits => ("exits".to_owned(), EXIT),
        _ if found.branch.missed == Some(Missed::Paired) => ("reaches another one".to_owned(), PAIRED),
        _ => ("goes on to other code".to_owned(), GO_ON),
    };
    let what = format!("part of a block of {name} misses the barrier behind this branch");
    let more = format!(" and {does}");
    told(context, hit, Message { what, more, label: Says::Lanes }, help, exits)
}

/// The finding, with the barrier beside it.
fn told(context: &Context<'_>, hit: &Hit, message: Message, help: &str, exits: bool) -> Finding {
    let finding = finding(context, hit, message).help(help);
    let mut finding = finding.fact("skipping_threads_exit", u64::from(exits));
    if let Some(barrier) = context.quotes_of(hit).and_then(|quotes| quotes.barrier) {
        finding.beside.push(ptx_label(context, barrier, "barrier".to_owned()));
    }
    finding
}

const EXIT: &str = "guard the work instead of returning early, so that all threads come to the barrier: CUDA allows \
                    `__syncthreads()` only where the whole block decides alike";

const PAIRED: &str = "both sides hold a barrier: put one behind the place where they meet, which every thread reaches; that two of \
                      them pair is no promise of CUDA's, which allows `__syncthreads()` only where the whole block decides \
                      alike";

const STRIDED: &str = "round the bound up to a multiple of the step, so that all threads take as many turns, and guard the work in \
                       the loop instead: CUDA allows `__syncthreads()` only where the whole block decides alike";

const GO_ON: &str = "move the barrier out of the branch, and guard the work before and after it instead: CUDA allows \
                     `__syncthreads()` only where the whole block decides alike, else the block may hang";

#[cfg(test)]
mod tests {
    use crate::rules::testing::{human, human_with_log, json, kernel, lint, one_sided, sources, with_log, work};

    const FIRST_100: &str = "setp.ge.u32 %p1, %t, 100;";
    const WAIT: &str = "bar.sync 0;\n";

    /// Threads that have no work return, and the others wait.
    fn early_return() -> String {
        kernel(&format!("{FIRST_100}\n@%p1 bra END;\n{}{WAIT}", work(4)))
    }

    #[test]
    fn threads_that_miss_it_and_go_on_are_an_error() {
        assert_eq!(
            lint(&one_sided(FIRST_100, WAIT), &[]),
            [
                "error[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and goes on to other code"
            ]
        );
    }

    #[test]
    fn a_barrier_that_both_sides_may_come_to_is_missed_by_those_that_may_get_past_it() {
        let either = format!(
            "and.b32 %r1, %t, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra IN;\nsetp.eq.u32 %p2, %n, 0;\n@%p2 bra OUT;\nIN:\n\
             {WAIT}OUT:\n{}",
            work(9)
        );
        assert_eq!(
            lint(&kernel(&either), &[]),
            [
                "error[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and goes on to other code"
            ]
        );
    }

    #[test]
    fn a_source_does_not_blame_a_branch_for_those_that_leave_within_it() {
        let found = |body: &str| {
            let text = format!(
                "__global__ void k(float* o, const int* f, int n) {{ int t = threadIdx.x; int i = blockIdx.x * blockDim.x + t;\n{body}\n}}\n"
            );
            sources(&[("k.cu", &text)], &["--block", "256"])
        };
        for body in [
            "if (t < 100) { if (f[t] == 0) return; o[t] = 1.f; } __syncthreads(); o[t] += o[0];",
            "if (i < n) { if (f[i] == 0) return; o[i] = 1.f; } __syncthreads(); o[t] += o[0];",
            "if (t < 100) { if (n == 0) return; o[t] = 1.f; } __syncthreads(); o[t] += o[0];",
        ] {
            assert!(found(body).is_empty(), "{body}: {:?}", found(body));
        }
        let within = found("if ((t & 1) || n > 3) { o[t] = 1.f; __syncthreads(); } o[t] += o[0];");
        assert!(within.len() == 1 && within[0].starts_with("error["), "{within:?}");
    }

    #[test]
    fn a_function_that_waits_is_a_barrier_where_it_is_called() {
        let called = |wait: &str| {
            let swap =
                format!(".func inner()\n{{\n{wait}ret;\n}}\n.func swap()\n{{\ncall inner;\nret;\n}}\n.visible .entry");
            lint(&one_sided(FIRST_100, "call swap;\n").replacen(".visible .entry", &swap, 1), &[])
        };
        let found = called(WAIT);
        assert!(found.len() == 1 && found[0].starts_with("error[barrier-in-divergent-branch] "), "{found:?}");
        assert!(called("membar.cta;\n").is_empty());
        let some = "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;\nbar.sync 0;\nL:\n";
        assert!(called(some).is_empty(), "it may not come to it");
    }

    #[test]
    fn a_loop_in_steps_of_the_block_is_a_warning_that_says_when_it_is_safe() {
        let found = |body: &str| {
            let text = format!(
                "struct S {{ int n; }}; template <int N> __global__ void k(float* o, int n, int m, S s) {{ int t = threadIdx.x;\n{body}\n}}\n"
            );
            sources(&[("k.cu", &text)], &[])
        };
        for head in [
            "for (int i = t; i < n; i += blockDim.x)",
            "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)",
            "for (int i = t; i < n; i += m)",
            "for (int i = t; i < s.n; i += blockDim.x)",
            // Nothing tells the block, so it is one of so many threads.
            "for (int i = t; i < n; i += 32)",
            "if (m > 7) o[0] = 2.f; for (int i = t; i < n; i += N)",
        ] {
            let all = found(&format!("{head} {{ o[i] = 1.f; __syncthreads(); o[i] += o[0]; }}"));
            assert_eq!(
                all,
                [
                    "warning[barrier-in-divergent-branch] threads of a block of `k` may leave this loop a turn before the \
                     others, and miss the barrier in it: safe only where its bound never falls within a block"
                ],
                "{head}"
            );
        }
        // Rows of a warp each: whole warps leave a turn before others.
        let rows = "__global__ void __launch_bounds__(256) __block_size__((32, 8)) k(float* o, int n) {\n\
                    for (int r = threadIdx.y; r < n; r += blockDim.y) { o[r] = 1.f; __syncthreads(); o[r] += o[0]; }\n}\n";
        let rows = sources(&[("k.cu", rows)], &[]);
        assert!(rows.len() == 1 && rows[0].starts_with("warning["), "{rows:?}");
        for head in [
            "for (int i = t; i < n; i++)",
            "for (int i = t; i < n; i += 8)",
            "for (int i = 0; i < n && i != t; i++)",
            "for (int i = 0; i < t; i++)",
        ] {
            let found = found(&format!("{head} {{ o[i] = 1.f; __syncthreads(); o[i] += o[0]; }}"));
            assert!(!found.is_empty() && found.iter().all(|line| line.starts_with("error[")), "{head}: {found:?}");
        }
    }

    #[test]
    fn what_stands_behind_a_large_switch_is_told_too() {
        let case = |at: usize| format!("setp.eq.u32 %p2, %n, {at};\n@%p2 bra C{at};\n");
        let arm = |at: usize| format!("C{at}:\nst.global.u32 [%rd1], {at};\nbra.uni BEHIND;\n");
        let switch: String =
            (0..400).map(case).chain(["bra.uni BEHIND;\n".to_owned()]).chain((0..400).map(arm)).collect();
        let found =
            lint(&one_sided(FIRST_100, WAIT).replacen(FIRST_100, &format!("{switch}BEHIND:\n{FIRST_100}"), 1), &[]);
        assert!(found.len() == 1 && found[0].starts_with("error["), "{found:?}");
    }

    #[test]
    fn threads_that_miss_it_and_exit_are_a_note() {
        assert_eq!(
            lint(&early_return(), &[]),
            [
                "note[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and exits"
            ]
        );
    }

    /// What a source alone shows of the barriers of a kernel with this code.
    fn in_source(attributes: &str, code: &str) -> Vec<String> {
        let source = format!(
            "__global__ void {attributes} k(float* o, int n) {{\n__shared__ float s[1024];\nint t = threadIdx.x;\ns[t] = o[t];\n\
             {code}\no[t] = s[t ^ 1];\n}}\n"
        );
        let found = sources(&[("k.cu", &source)], &["--allow", "missing-launch-bounds"]);
        found.into_iter().map(|line| line.split('[').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_source_whose_block_nothing_tells_is_judged_in_the_usual_one() {
        for code in [
            "if (t < 100) { s[t] += 1.f; __syncthreads(); s[t] *= s[t ^ 2]; }",
            "if (t < 128) { s[t] += 1.f; __syncthreads(); }",
            "if (t < 128) { s[t] += 1.f; __syncthreads(); } else { s[t] -= 1.f; __syncthreads(); }",
            "if (threadIdx.x < 32) { __syncthreads(); s[t] += 1.f; } else { s[t] = 0.f; }",
            "if (threadIdx.x < 40) { __syncthreads(); }",
            "switch (threadIdx.x / 32) { case 0: __syncthreads(); break; case 1: s[t] = 2.f; break; }",
            "auto b = cooperative_groups::this_thread_block(); if (t < 64) { s[t] = 1.f; b.sync(); }",
            "for (int k = t; k < n; k += 8) s[t] += o[k]; if (t < 100) { __syncthreads(); s[t] += s[t + 1]; }",
            "if (threadIdx.y == 0) { s[t] += 1.f; __syncthreads(); }",
        ] {
            assert_eq!(in_source("", code), ["error"], "{code}");
        }
        let leaves = "if (t >= 128) return; s[t] += s[t + 1]; __syncthreads();";
        assert_eq!(in_source("", leaves), ["warning"]);
        assert_eq!(in_source("__launch_bounds__(256)", leaves), ["warning"]);
        for code in [
            "if (t < blockDim.x) { s[t] += 1.f; __syncthreads(); }",
            "if (t < 256) { s[t] += 1.f; __syncthreads(); }",
            "if (blockDim.x >= 512) { if (t < 256) s[t] += s[t + 256]; __syncthreads(); }",
            "for (int k = blockDim.x / 2; k > 32; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }",
        ] {
            assert_eq!(in_source("", code), [] as [&str; 0], "{code}");
        }
        assert_eq!(in_source("__launch_bounds__(128)", leaves), [] as [&str; 0]);
    }

    #[test]
    fn macros_and_short_functions_of_the_file_hide_no_barrier() {
        let found = |define: &str, code: &str| {
            let source = format!(
                "{define}\n__global__ void k(float* o, int n) {{\nint t = threadIdx.x;\n{code}\no[t] += o[t ^ 1];\n}}\n"
            );
            sources(&[("k.cu", &source)], &["--allow", "missing-launch-bounds"])
        };
        let told = "error[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and goes on to \
                    other code";
        for (define, code) in [
            ("#define SYNC __syncthreads()", "if (t < 100) { SYNC; o[t] = 1.f; }"),
            ("#define SYNC __syncthreads();", "if (t < 100) { SYNC o[t] = 1.f; }"),
            ("#define TID threadIdx.x", "if (TID < 100) { __syncthreads(); o[TID] = 1.f; }"),
            ("#define FEW (t < 100)", "if (FEW) { __syncthreads(); o[t] = 1.f; }"),
            ("__device__ void wait() { __syncthreads(); }", "if (t < 100) { wait(); o[t] = 1.f; }"),
            (
                "#define SYNC __syncthreads()\n__device__ void wait(float* o) { o[1] = 2.f; SYNC; }",
                "if (t < 100) wait(o);",
            ),
        ] {
            assert_eq!(found(define, code), [told], "{define}: {code}");
        }
        for (define, code) in [
            ("#define SYNC __syncthreads()", "SYNC; if (t < 100) o[t] = 1.f; SYNC;"),
            ("#define SYNC __syncwarp()", "if (t < 100) { SYNC; o[t] = 1.f; }"),
            ("#define FEW (blockIdx.x < 100)", "if (FEW) { __syncthreads(); o[t] = 1.f; }"),
            ("__device__ void wait() { __syncthreads(); }", "wait(); if (t < 100) o[t] = 1.f; wait();"),
            ("__device__ void wait() { __syncwarp(); }", "if (t < 100) { wait(); o[t] = 1.f; }"),
        ] {
            assert_eq!(found(define, code), [] as [&str; 0], "{define}: {code}");
        }
    }

    #[test]
    fn what_ptx_tells_is_not_silenced_by_a_source_that_does_not() {
        let head = ".version 8.5\n.target sm_90\n.address_size 64\n.file 1 \"k.cu\"\n";
        let ptx = one_sided(&format!("{FIRST_100}\n.loc 1 2 1"), &format!("{WAIT}{}", work(2)));
        let ptx = head.to_owned() + ptx.split_once(".address_size 64").map_or("", |(_, rest)| rest);
        let source = |line: &str| {
            format!(
                "extern \"C\" __global__ void k(float* o) {{ int t = threadIdx.x; float x = o[t];\n{line}\no[t] = x; }}\n"
            )
        };
        for line in [
            "if (t < 100) { __syncthreads(); x *= x; }",
            "if (o[t] > 1.f) { __syncthreads(); x *= x; }",
            "helper(t, &x);",
        ] {
            let found = with_log(&[("k.cu", &source(line))], &ptx, &[]);
            let found: Vec<_> = found.iter().filter(|line| line.contains("[barrier-in-divergent")).collect();
            assert!(found.len() == 1 && found[0].starts_with("error["), "{line}: {found:?}");
        }
        // PTX without lines.
        let ptx = one_sided(FIRST_100, &format!("{WAIT}{}", work(2)));
        for (line, expected) in [("if (t < 100) { __syncthreads(); x *= x; }", 1), ("helper(t, &x);", 1)] {
            let found = with_log(&[("k.cu", &source(line))], &ptx, &[]);
            let told = found.iter().filter(|line| line.starts_with("error[barrier-in-divergent"));
            assert_eq!(told.count(), expected, "{line}: {found:?}");
        }
    }

    #[test]
    fn before_volta_threads_that_exit_are_an_error_too() {
        assert_eq!(
            lint(&early_return().replace("sm_90", "sm_60"), &[]),
            [
                "error[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and exits, which sm_60 may wait for"
            ]
        );
        assert!(lint(&early_return().replace("sm_90", "sm_70"), &[])[0].starts_with("note["));
    }

    #[test]
    fn a_barrier_on_each_side_is_a_warning_that_says_so() {
        let both = |other: &str| format!("{FIRST_100}\n@%p1 bra A;\n{WAIT}bra.uni MEET;\nA:\n{other}MEET:");
        assert_eq!(
            lint(&kernel(&both(WAIT)), &[]),
            [
                "warning[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and reaches another one"
            ]
        );
        assert!(human(&kernel(&both(WAIT)), &[]).contains("both sides hold a barrier"));
        let twice = lint(&kernel(&both(&WAIT.repeat(2))), &[]);
        assert!(twice[0].starts_with("error["), "{twice:?}");
    }

    #[test]
    fn an_assertion_that_several_checks_share_is_no_way_past_a_barrier() {
        let fail = |call: &str| {
            format!(
                "@%p1 bra FAIL;\n{WAIT}setp.ge.u32 %p2, %t, 101;\n@%p2 bra FAIL;\n{WAIT}bra.uni END;\nFAIL:\n{call}\n"
            )
        };
        let assertion = "{ call.uni __assertfail, (); }";
        let log = kernel(&format!("{FIRST_100}\n{}", fail(assertion)));
        assert!(lint(&log, &[]).is_empty(), "{:?}", lint(&log, &[]));
        let other = lint(&kernel(&format!("{FIRST_100}\n{}", fail("add.f32 %x, %x, %x;"))), &[]);
        assert!(other[0].contains("[barrier-in-divergent-branch]"), "{other:?}");
    }

    #[test]
    fn a_part_of_the_block_in_few_environments_is_a_note() {
        let log = one_sided("setp.ge.u32 %p1, %t, %n;", WAIT);
        assert!(lint(&log, &[])[0].starts_with("note["), "{:?}", lint(&log, &[]));
    }

    #[test]
    fn what_warps_read_for_themselves_is_no_disagreement_by_index() {
        let own = "shr.u32 %r1, %t, 5; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5; ld.global.u32 %r2, [%rd6];
            setp.lt.s32 %p1, %r2, 9;";
        assert!(lint(&one_sided(own, WAIT), &[]).is_empty());
    }

    #[test]
    fn whole_warps_that_miss_it_count_as_well() {
        let log = one_sided("setp.ge.u32 %p1, %t, 64;", WAIT);
        assert!(lint(&log, &[])[0].starts_with("error["), "{:?}", lint(&log, &[]));
        let text = human(&log, &[]);
        assert!(
            text.contains("whole warps go different ways; assuming 256 threads per block (no bound found)"),
            "{text}"
        );
    }

    /// A kernel whose threads leave by `condition` before a barrier, and who launches it.
    fn leaving(condition: &str, launch: &str) -> String {
        format!(
            "__global__ void k(float* o, int n) {{ if ({condition}) return; o[threadIdx.x] = 1.f; __syncthreads(); \
             o[threadIdx.y] = o[0]; }}\nvoid run(float* o, int n) {{ {launch} }}"
        )
    }

    #[test]
    fn what_launches_tell_of_a_block_holds_though_the_rest_is_unknown() {
        let told = |condition: &str, launch: &str| {
            let all = sources(&[("k.cu", &leaving(condition, launch))], &[]);
            all.iter().any(|line| line.contains("[barrier-in-divergent-branch]"))
        };
        let of_x = "blockIdx.y * blockDim.x + threadIdx.x >= n";
        assert!(!told(of_x, "k<<<n, dim3(1, n)>>>(o, n);"));
        assert!(!told(of_x, "k<<<n, dim3(1, n)>>>(o, n); k<<<n, dim3(1, 64)>>>(o, n);"));
        assert!(told(of_x, "k<<<n, dim3(1, n)>>>(o, n); k<<<n, dim3(2, n)>>>(o, n);"));
        assert!(told(of_x, "k<<<n, dim3(n, n)>>>(o, n);"));
        // Of one number, the block is a row.
        assert!(!told("threadIdx.y == 1", "k<<<n, n>>>(o, n);"));
        assert!(!told("threadIdx.y == 1", "const int m = n + 1; k<<<n, m>>>(o, n);"));
        assert!(told("threadIdx.y == 1", "k<<<n, dim3(n, 4)>>>(o, n);"));
    }

    #[test]
    fn a_launch_that_misses_a_barrier_is_told_whatever_others_do() {
        let told = |launches: &str| {
            let source = format!(
                "__global__ void k(float* o) {{ if (threadIdx.x < 64) {{ o[0] = 1.f; __syncthreads(); }} o[threadIdx.x] = 2.f; }}\n\
                 void run(float* o) {{ {launches} }}\n"
            );
            sources(&[("k.cu", &source)], &["--allow", "launch"])
        };
        let miss = "error[barrier-in-divergent-branch] if its blocks are 256, part of a block of `k` misses the barrier behind this \
                    branch and goes on to other code";
        assert_eq!(told("k<<<9, 64>>>(o); k<<<9, 256>>>(o);"), [miss]);
        assert_eq!(told("k<<<9, 256>>>(o); k<<<9, 64>>>(o);"), [miss]);
        assert_eq!(told("k<<<9, 32>>>(o); k<<<9, 64>>>(o);"), [] as [&str; 0]);
    }

    #[test]
    fn the_label_says_what_is_assumed_of_the_block() {
        // A label goes on in the next line.
        let full = |source: &str| human_with_log(&[("k.cu", source)], "").replace(" : |", "");
        let label = |launch: &str| full(&leaving("threadIdx.x >= n", launch));
        let text = label("k<<<n, 128>>>(o, n);");
        assert!(text.contains("; blocks of 128 threads"), "{text}");
        let text = label("k<<<n, n>>>(o, n);");
        assert!(text.contains("; assuming 256 threads per block (no bound found)"), "{text}");
        let text = label("k<<<n, dim3(32, n)>>>(o, n);");
        assert!(text.contains("; assuming 32×8 threads per block (only a part found)"), "{text}");
        let bounded = leaving("threadIdx.x >= n", "").replacen("void k", "void __launch_bounds__(64) k", 1);
        let text = full(&bounded);
        assert!(text.contains("; assuming 64 threads per block (only a bound found)"), "{text}");
    }

    #[test]
    fn overloads_that_are_all_launched_with_one_block_are_assumed_to_have_it() {
        let one = leaving("threadIdx.x >= n", "k<<<n, 512>>>(o, n);");
        let other = one.replace("float", "double");
        // A label goes on in the next line.
        let text = human_with_log(&[("k.cu", &format!("{one}\n{other}"))], "").replace(" : |", "");
        let assumed = "; assuming 512 threads per block (from launches of it or of an overload)";
        assert!(text.contains(assumed) && !text.contains("blocks of 512"), "{text}");
        let other = other.replace("512", "256");
        let text = human_with_log(&[("k.cu", &format!("{one}\n{other}"))], "");
        assert!(text.contains("assuming") && !text.contains("512"), "{text}");
    }

    #[test]
    fn a_device_function_is_looked_at_in_the_blocks_of_the_kernels_that_call_it() {
        let told = |launches: &str| {
            let source = format!(
                "__device__ void wait(float* o) {{ if (threadIdx.x < 8) {{ __syncthreads(); o[0] = 1.f; }} }}\n\
                 __device__ void between(float* o) {{ wait(o); }}\n\
                 __global__ void k(float* o) {{ wait(o); }}\n__global__ void other(float* o) {{ between(o); }}\n\
                 void run(float* o, int n) {{ {launches} }}"
            );
            human_with_log(&[("k.cu", &source)], "").replace(" : |", "")
        };
        assert!(!told("k<<<n, dim3(8, 4)>>>(o); other<<<n, dim3(8, 8)>>>(o);").contains("misses the barrier"));
        assert!(told("k<<<n, 64>>>(o); other<<<n, 64>>>(o);").contains("; blocks of 64 threads"));
        // The block of the other one is not known.
        assert!(told("k<<<n, 8>>>(o); other<<<n, n>>>(o);").contains("; assuming 256 threads per block"));
    }

    #[test]
    fn the_barrier_is_shown() {
        let text = human(&one_sided(FIRST_100, WAIT), &[]);
        assert!(text.contains("  barrier: <stdin>:") && text.contains(": bar.sync 0;"), "{text}");
    }

    #[test]
    fn a_branch_that_the_block_takes_as_one_is_silent() {
        assert!(lint(&one_sided("setp.ge.u32 %p1, %n, 100;", WAIT), &[]).is_empty());
        assert!(lint(&one_sided("mov.u32 %r1, %ctaid.x; setp.ge.u32 %p1, %r1, 100;", WAIT), &[]).is_empty());
    }

    /// A loop of one block of code, whose threads take `turns` turns, and one more.
    fn waiting_turns(turns: &str, step: &str, more: &str) -> Vec<String> {
        let body = format!("{turns}\nLOOP:\n{WAIT}fma.rn.f32 %x, %x, %x, %x;\n{step}\n@%p1 bra LOOP;\n{more}");
        lint(&kernel(&body), &[])
    }

    #[test]
    fn a_barrier_in_front_of_the_branch_that_leaves_its_loop_is_missed_too() {
        let down = "add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, -1;";
        let miss = "error[barrier-in-divergent-branch] part of a block of `k` misses the barrier behind this branch and goes on to \
                    other code";
        assert_eq!(waiting_turns("and.b32 %r1, %t, 7;", down, ""), [miss]);
        assert_eq!(waiting_turns("shr.u32 %r1, %t, 5;", down, ""), [miss]);
        assert_eq!(waiting_turns("mov.u32 %r1, %t;", down, WAIT), [miss]);
        assert!(waiting_turns("mov.u32 %r1, %n;", down, "").is_empty());
        assert!(waiting_turns("mov.u32 %r1, %ctaid.x;", down, WAIT).is_empty());
        let strided = waiting_turns("mov.u32 %r1, %t;", "add.s32 %r1, %r1, 256; setp.lt.s32 %p1, %r1, 300;", "");
        assert!(strided.len() == 1 && strided[0].starts_with("warning["), "{strided:?}");
    }

    #[test]
    fn a_loop_and_its_guard_are_one_finding() {
        let guarded = format!(
            "and.b32 %r1, %t, 7; setp.eq.u32 %p1, %r1, 0;\n@%p1 bra PAST;\nLOOP:\n{WAIT}add.s32 %r1, %r1, -1;\n\
             setp.gt.s32 %p1, %r1, 0;\n@%p1 bra LOOP;\nPAST:\nneg.f32 %x, %x;"
        );
        assert_eq!(lint(&kernel(&guarded), &[]).len(), 1);
        // Whoever misses the barriers of this one exits.
        let strided = format!(
            "setp.ge.u32 %p1, %t, %n;\n@%p1 bra END;\nmov.u32 %r2, %ntid.x;\nLOOP:\n{WAIT}add.f32 %x, %x, %x;\n{WAIT}\
             add.u32 %t, %t, %r2;\nsetp.lt.u32 %p1, %t, %n;\n@%p1 bra LOOP;\nbra.uni END;"
        );
        let report = json(&kernel(&strided), &[]);
        let found = report["findings"].as_array().expect("findings");
        assert!(found.len() == 1 && found[0]["ptx_line"].is_u64(), "{found:?}");
    }

    #[test]
    fn a_barrier_for_a_number_of_threads_is_silent() {
        assert!(lint(&one_sided("setp.ge.u32 %p1, %t, 64;", "bar.sync 1, 64;\n"), &[]).is_empty());
    }

    #[test]
    fn a_barrier_between_guarded_parts_is_silent() {
        let log = kernel(&format!("{FIRST_100}\n@%p1 bra WAIT;\n{0}WAIT:\n{WAIT}@%p1 bra MEET;\n{0}MEET:", work(4)));
        assert!(lint(&log, &[]).is_empty());
    }
}
