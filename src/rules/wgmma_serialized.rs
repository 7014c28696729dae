//! `wgmma-serialized`: matrix instructions that were meant to overlap and run one after another.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit};
use crate::model::MessageKind;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// A reason that ptxas gives, told by its words: the codes moved between releases.
struct Reason {
    id: &'static str,
    /// What only this reason's text holds.
    sign: &'static str,
    /// Why, after `are serialized: `.
    why: &'static str,
    cure: &'static str,
}

const REASONS: [Reason; 9] = [
    Reason {
        id: "extern-call",
        sign: "presence of Extern calls",
        why: "the function makes extern calls",
        cure: "the callee may use any register, so nothing can be in flight across the call: define the function in the same \
               translation unit so that it is inlined, build the file without -rdc=true, or move the call (printf and assert \
               are calls too) out of the function",
    },
    Reason {
        id: "function-boundary",
        sign: "crossing function boundary",
        why: "their pipeline crosses a function call",
        cure: "mark the function that is called between wgmma and its wait `__forceinline__`, or call it before \
               wgmma.fence or after wgmma.wait_group",
    },
    Reason {
        id: "pipeline-registers",
        sign: "insufficient register resources for the wgmma pipeline",
        why: "too few registers for their pipeline",
        cure: "the accumulators of all wgmmas in flight must stay in registers at once: use a smaller tile or fewer \
               accumulators per warpgroup, split the tile over two consumer warpgroups, or let each thread have more \
               registers (setmaxnreg.inc in the consumers, fewer threads in __launch_bounds__, no -maxrregcount)",
    },
    Reason {
        id: "function-registers",
        sign: "insufficient register resources for the function",
        why: "too few registers for the function",
        cure: "keep fewer values alive beside the accumulators, use a smaller tile, or let each thread have more registers \
               (setmaxnreg.inc in the consumers, fewer threads in __launch_bounds__, no -maxrregcount)",
    },
    Reason {
        id: "input-touched",
        sign: "defining input registers",
        why: "other instructions write their input registers while they run",
        cure: "fill the registers of operand A before wgmma.fence and leave them alone until wgmma.wait_group: load the next \
               fragment into a second set of registers",
    },
    Reason {
        id: "accumulator-read",
        sign: "reading accumulator registers",
        why: "other instructions read their accumulators while they run",
        cure: "read the accumulators, which includes copies and conversions, only after the wgmma.wait_group that covers \
               them: move the wait up or the use down",
    },
    Reason {
        id: "accumulator-written",
        sign: "defining accumulator registers",
        why: "other instructions write their accumulators while they run",
        cure: "set or scale the accumulators before wgmma.fence or after wgmma.wait_group, and clear them by scale-d = 0 of \
               the first wgmma in place of moves",
    },
    Reason {
        id: "ill-formed-stage",
        sign: "ill formed pipeline stage",
        why: "a pipeline stage is ill-formed",
        cure: "each stage is wgmma.fence, the wgmmas, wgmma.commit_group, wgmma.wait_group, in this order and on every path: \
               look for a path that skips or repeats one of them, or for a stage that begins in one loop and ends in another",
    },
    Reason {
        id: "divergent-path",
        sign: "in divergent path",
        why: "a wait or arrive that the compiler must insert would be in divergent code",
        cure: "all four warps of the warpgroup must take the same way to the wgmma: move it out of branches that depend on \
               the thread, and make a branch on the warp's role uniform (`__shfl_sync` of the warp index from lane 0)",
    },
];

fn reason(said: &[u8]) -> Option<usize> {
    REASONS.iter().position(|reason| text::has(said, reason.sign))
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, message) in context.messages_of(|kind| kind == MessageKind::WgmmaSerialized) {
        let reason = reason(context.raw(message)).unwrap_or(REASONS.len());
        let count = u32::try_from(message.count).unwrap_or(u32::MAX);
        hits.push(Hit::message(at, count).for_reason(reason));
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("wgmma instructions are serialized") };
    let said = context.raw(message);
    let reason = reason(said).map(|at| &REASONS[at]);
    let line = text::number_after(said, " in line ");
    let why = reason.map_or_else(|| given(said), |reason| reason.why.to_owned());
    let at = line.map(|line| format!(" (PTX line {line})")).unwrap_or_default();
    let keep =
        if line.is_some() { "; the line is one of the PTX, which nvcc --keep leaves beside the object" } else { "" };
    let cure = reason.map_or("look for what keeps the wgmma instructions from overlapping", |reason| reason.cure);
    Finding::new(format!("the wgmma instructions of {} are serialized: {why}{at}", context.called(message.kernel)))
        .help(format!("{cure}{keep}"))
        .label(Some(context.message_label(message, "each waits for the one before: the tensor cores idle in between")))
        .fact("reason", reason.map(|reason| reason.id))
        .fact("ptx_line", line)
}

/// A reason that is not known yet, in the compiler's words.
fn given(said: &[u8]) -> String {
    let why = text::between(said, "serialized due to ", " in the function").unwrap_or(b"for a reason of its own");
    text::worded(why)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, lint, told};

    const RULE: &str = "wgmma-serialized";

    fn advisory(rest: &str) -> String {
        format!(
            "ptxas info    : (C7999) Potential Performance Loss: wgmma.mma_async instructions are serialized due to {rest}\n"
        )
    }

    #[test]
    fn every_reason_is_told_by_its_words_with_its_own_cure() {
        for (text, why, cure) in [
            ("the presence of Extern calls in the function 'k'", "the function makes extern calls", "inlined"),
            (
                "wgmma pipeline crossing function boundary at a function call in the function 'k'",
                "their pipeline crosses a function call",
                "__forceinline__",
            ),
            (
                "insufficient register resources for the wgmma pipeline in the function 'k'",
                "too few registers for their pipeline",
                "smaller tile",
            ),
            (
                "insufficient register resources for the function 'k'",
                "too few registers for the function",
                "fewer values",
            ),
            (
                "non wgmma instructions defining input registers of a wgmma between start and end of the pipeline stage in the function 'k'",
                "other instructions write their input registers while they run",
                "second set",
            ),
            (
                "non wgmma instructions reading accumulator registers of  a wgmma between start and end of the pipeline stage in the function 'k'",
                "other instructions read their accumulators while they run",
                "move the wait up",
            ),
            (
                "non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in the function 'k'",
                "other instructions write their accumulators while they run",
                "scale-d",
            ),
            ("ill formed pipeline stage in the function 'k'", "a pipeline stage is ill-formed", "commit_group"),
            (
                "program dependence on compiler-inserted WG.AR in divergent path in the function 'k'",
                "a wait or arrive that the compiler must insert would be in divergent code",
                "uniform",
            ),
            (
                "program dependence on compiler-inserted WG.DP in divergent path in the function 'k'",
                "a wait or arrive that the compiler must insert would be in divergent code",
                "uniform",
            ),
            ("the phase of the moon in the function 'k'", "the phase of the moon", "overlapping"),
        ] {
            let log = advisory(text);
            assert_eq!(
                lint(&log, &[]),
                [format!("warning[wgmma-serialized] the wgmma instructions of `k` are serialized: {why}")]
            );
            assert!(helps(RULE, &log)[0].contains(cure), "{text}");
        }
    }

    #[test]
    fn a_line_is_said_to_be_one_of_the_ptx() {
        let log =
            advisory("insufficient register resources for the wgmma pipeline in the function 'k_starved' in line 267");
        assert_eq!(
            told(RULE, &log),
            [
                "warning: the wgmma instructions of `k_starved` are serialized: too few registers for their pipeline (PTX line 267)"
            ]
        );
    }

    #[test]
    fn a_repeated_advisory_is_counted() {
        let log = advisory("ill formed pipeline stage in the function 'k'").repeat(2);
        assert_eq!(
            told(RULE, &log),
            ["warning: the wgmma instructions of `k` are serialized: a pipeline stage is ill-formed (2 times)"]
        );
    }

    #[test]
    fn an_injected_wait_serialises_nothing() {
        let log = "ptxas info    : (C7517) wgmma.wait_group is injected in around line 31 by compiler to allow use of registers defined by GMMA in function 'k_acc_read'\n";
        assert!(told(RULE, log).is_empty());
    }
}
