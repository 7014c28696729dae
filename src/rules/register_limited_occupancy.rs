//! `register-limited-occupancy`: the register file holds few blocks.

pub(super) use super::limits::Thresholds as Options;
use super::standing::spills;
use super::{Context, advice, limits, register_cliff};
use crate::finding::{Finding, Hit, Level};
use crate::gpu::Limiter;

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    limits::check(context, Limiter::Registers, options, hits);
    // A cause is one finding: where it is only a note, and a few registers are a block, `register-cliff` says so.
    let told: Vec<bool> = context.numbers.judged.iter().map(|judged| register_cliff::tells(context, judged)).collect();
    hits.retain(|hit| {
        let step = hit.judged.is_some_and(|id| told[id as usize]);
        hit.cap > Level::Note || !step || context.kernel_of(hit).is_some_and(spills)
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), context.judged_of(hit)) {
        (Some(kernel), Some(judged)) => {
            limits::low_occupancy(context, kernel, judged).help(advice::raise(context, kernel, judged))
        }
        _ => Finding::new("registers limit occupancy"),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::records::record;
    use crate::rules::testing::lint;

    #[test]
    fn five_blocks_of_84_registers_are_a_warning_with_their_numbers() {
        assert_eq!(
            lint(&record("sm_50", "84 registers, 344 bytes cmem[0]"), &["--block", "128"]),
            ["warning[register-limited-occupancy] `k` reaches 31 % occupancy on sm_50: 84 registers per thread (88 \
                 allocated) leave room for 5 blocks of 128 threads an SM, 20 of 64 warps"]
        );
    }

    #[test]
    fn warps_that_do_not_fit_a_sub_partition_are_not_counted() {
        let found = lint(&record("sm_80", "92 registers"), &["--block", "224"]);
        assert!(found[0].contains("room for 2 blocks of 224 threads an SM, 14 of 64 warps"), "{found:?}");
    }

    #[test]
    fn a_full_sm_is_silent_even_where_registers_tie_with_its_warps() {
        assert!(lint(&record("sm_75", "64 registers"), &["--block", "256"]).is_empty());
        assert!(lint(&record("sm_80", "32 registers, 8192 bytes smem"), &["--block", "256"]).is_empty());
    }

    #[test]
    fn the_gpu_asked_for_is_judged_and_not_the_one_compiled_for() {
        let log = record("sm_80", "64 registers, 8192 bytes smem");
        let found = lint(&log, &["--block", "256", "--gpu", "a100", "--gpu", "sm_86"]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("warning[") && found[0].contains("reaches 50 % occupancy on a100-"), "{found:?}");
        assert!(found[1].starts_with("note[") && found[1].contains("reaches 67 % occupancy on sm_86"), "{found:?}");
    }

    #[test]
    fn limits_that_tie_are_one_finding_that_names_both() {
        let found = lint(&record("sm_80", "64 registers, 40000 bytes smem"), &["--block", "256"]);
        assert_eq!(
            found,
            ["warning[register-limited-occupancy] `k` reaches 50 % occupancy on sm_80: 64 registers per thread and \
                 40000 B of shared memory per block (41088 B allocated) each leave room for 4 blocks of 256 threads an \
                 SM, 32 of 64 warps"]
        );
    }

    #[test]
    fn without_a_block_size_it_is_a_note_and_only_below_half() {
        let level = |registers: u32| lint(&record("sm_90", &format!("{registers} registers")), &[]).concat();
        assert!(level(255).starts_with("note[register-limited-occupancy] `k` reaches 12.5 % occupancy on sm_90 even"));
        assert!(level(65).starts_with("note["));
        assert_eq!(level(64), "");
    }

    #[test]
    fn an_unknown_architecture_has_no_occupancy() {
        assert!(lint(&record("sm_20", "63 registers"), &["--block", "256"]).is_empty());
    }
}
