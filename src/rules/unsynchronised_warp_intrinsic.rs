//! `unsynchronised-warp-intrinsic`: lanes of a warp pass values to each other, and nothing makes them wait for that.

use serde::Deserialize;

use super::Context;
use super::branch::{Words, placed};
use super::limits::counted;
use crate::analyse::Loose;
use crate::finding::{Finding, Hit};
use crate::lanes::warp::By;
use crate::model::Quote;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let early = runs_in_step(context);
    // Of a source, what has no name that means an exchange is none.
    let is_named = |one: &Loose| one.positions(context.report).is_none() || one.word(context.report).is_some();
    let has_arch = |one: &Loose| one.function(context.report).is_some_and(|function| function.arch.is_some());
    let is_told = |(_, one): &(usize, &Loose)| is_named(one) && (!early || has_arch(one));
    let all = context.numbers.branches.exchanges.iter().enumerate().filter(is_told);
    hits.extend(all.map(|(at, one)| Hit::exchange(at, one.exchange.count)));
}

/// Whether all GPUs of the run are from before 7.0, when the lanes of a warp ran in step. PTX tells itself what it is for.
fn runs_in_step(context: &Context<'_>) -> bool {
    let gpus = &context.numbers.gpus;
    !gpus.is_empty() && gpus.iter().all(|gpu| gpu.arch.is_some_and(|arch| !arch.at_least(7, 0)))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some((function, one)) = context.exchange_of(hit) else {
        return Finding::new("lanes of a warp exchange values unsynchronised");
    };
    let (name, exchange) = (context.called(Some(function.name)), one.exchange);
    let on = function.arch.map_or_else(String::new, |arch| format!(" on {arch}"));
    let quotes = one.quotes;
    let column = exchange.locations.map_or(0, |locations| locations.outer.column as usize);
    let opcode = match one.word(context.report) {
        Some(word) => String::from_utf8_lossy(word).into_owned(),
        None => quotes.map_or_else(String::new, |quotes| opcode(context, quotes.ptx)),
    };
    let (message, help, label) = match exchange.by {
        By::Shuffle | By::Vote => {
            let word = if opcode.is_empty() { exchange.by.name() } else { &opcode };
            let times = if exchange.count > 1 { format!(" {} times", exchange.count) } else { String::new() };
            let message = format!("{name} uses `{word}`{times}{on} without `.sync`, which waits for no other lane");
            (message, if exchange.by == By::Shuffle { SHUFFLE } else { VOTE }, "waits for no other lane")
        }
        By::Memory => {
            let steps = counted(exchange.count, "step");
            let message = format!(
                "lanes of a warp of {name} pass values through volatile shared memory{on} with nothing to synchronise them, in \
                 {steps}"
            );
            (message, MEMORY, "reads what another lane stored just before")
        }
    };
    let words = Words { source: label.to_owned(), ptx: label.to_owned(), beside: "the instruction in the PTX" };
    placed(context, Finding::new(message), quotes, column, words)
        .help(help)
        .mark(if opcode.is_empty() { exchange.by.name().to_owned() } else { opcode.clone() })
        .fact("by", exchange.by.name())
        .fact("exchanges", exchange.count)
}

const SHUFFLE: &str = "from sm_70 on the lanes of a warp run independently, so that a lane may be read before it has come \
                       here: use `__shfl_sync` and its like, with a mask of the lanes that take part";

const VOTE: &str = "from sm_70 on the lanes of a warp run independently, so that a lane may be missing here: use \
                    `__any_sync`, `__all_sync` or `__ballot_sync`, with a mask of the lanes that take part";

const MEMORY: &str = "from sm_70 on the lanes of a warp run independently, so that a lane may read before another has stored: \
                      put `__syncwarp()` between the reads and writes of each step, or reduce with `__shfl_down_sync`";

/// The instruction's word with its modifiers.
fn opcode(context: &Context<'_>, quote: Quote) -> String {
    let line = String::from_utf8_lossy(context.text(quote));
    let word = line.split_whitespace().find(|word| word.starts_with("shfl.") || word.starts_with("vote."));
    word.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{json, lint, sources, with_log};

    fn kernel(arch: &str, body: &str) -> String {
        format!(
            ".version 6.0\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             \t.reg .pred %p<3>;\n\t.reg .b32 %r<9>;\n\t.reg .f32 %f<4>;\n{body}\tret;\n}}\n"
        )
    }

    const SHUFFLE: &str = "\tshfl.down.b32 %r1, %r2, 16, 31;\n\tshfl.down.b32 %r1, %r2, 8, 31;\n";

    #[test]
    fn a_shuffle_without_sync_is_told_from_sm_70_on() {
        assert_eq!(
            lint(&kernel("sm_70", SHUFFLE), &[]),
            [
                "warning[unsynchronised-warp-intrinsic] `k` uses `shfl.down.b32` 2 times on sm_70 without `.sync`, which waits for no other lane"
            ]
        );
        assert!(lint(&kernel("sm_60", SHUFFLE), &[]).is_empty());
        assert!(lint(&kernel("sm_70", "\tshfl.sync.down.b32 %r1, %r2, 16, 31, -1;\n"), &[]).is_empty());
    }

    #[test]
    fn each_intrinsic_of_a_line_is_told_by_its_name() {
        let text = "__global__ void k(int* p) { p[0] = __any(p[0]) + __ballot(p[1]) + __any(p[2]); }\n";
        let found = sources(&[("k.cu", text)], &[]);
        assert!(found.len() == 2 && found[0].contains("uses `__any` 2 times without"), "{found:?}");
        assert!(found[1].contains("uses `__ballot` without"), "{found:?}");
    }

    #[test]
    fn a_source_for_gpus_before_sm_70_is_silent() {
        let text = "__global__ void k(int* p) { p[threadIdx.x] = __shfl_down(p[0], 16); }\n";
        let found = |args: &[&str]| sources(&[("k.cu", text)], args).len();
        assert_eq!(found(&["--gpu", "sm_60"]), 0);
        assert_eq!(found(&["--gpu", "sm_52", "--gpu", "sm_61"]), 0);
        assert_eq!(found(&["--gpu", "sm_60", "--gpu", "sm_70"]), 1);
        assert_eq!(found(&[]), 1);
    }

    #[test]
    fn it_stands_at_its_line_and_a_comment_there_silences_it() {
        let report = json(&kernel("sm_80", "\tvote.all.pred %p1, %p2;\n"), &[]);
        let finding = &report["findings"][0];
        assert_eq!((&finding["location"]["line"], &finding["kernel"]), (&9.into(), &"k".into()));
        let silent = kernel("sm_80", "\tvote.all.pred %p1, %p2; // warplint: allow(sync) one warp a block\n");
        assert!(lint(&silent, &[]).is_empty());
    }

    #[test]
    fn a_reduction_that_was_inlined_is_told_once_where_source_and_ptx_are_given() {
        let source = "__device__ void reduce(volatile float* s, int t) {\ns[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];\n}\n\
                      extern \"C\" __global__ void k(float* p) { __shared__ float s[64]; if (threadIdx.x < 32) reduce(s, threadIdx.x); }\n";
        let step = |distance: u32| {
            format!(
                "\t.loc 1 2 1, function_name $info, inlined_at 1 4 90\n\tld.volatile.shared.f32 %f1, [%r1];\n\
                 \tld.volatile.shared.f32 %f2, [%r1+{distance}];\n\tadd.f32 %f3, %f1, %f2;\n\
                 \tst.volatile.shared.f32 [%r1], %f3;\n"
            )
        };
        let steps: String = [16, 8, 4].map(step).concat();
        let body = format!(
            "\t.loc 1 4 60\n\tmov.u32 %r9, %tid.x;\n\tsetp.gt.u32 %p1, %r9, 31;\n\t@%p1 bra $out;\n{steps}$out:\n"
        );
        let ptx =
            kernel("sm_80", &body).replace("%r<9>", "%r<10>").replace("_size 64\n", "_size 64\n.file 1 \"k.cu\"\n");
        let told = |all: Vec<String>| all.into_iter().filter(|line| line.contains("volatile")).collect::<Vec<String>>();
        let both = told(with_log(&[("k.cu", source)], &ptx, &[]));
        assert!(both.len() == 1 && both[0].contains("of `k`") && both[0].ends_with("in 2 steps"), "{both:?}");
        let alone = told(sources(&[("k.cu", source)], &[]));
        assert!(alone.len() == 1 && alone[0].ends_with("in 2 steps"), "{alone:?}");
    }
}
