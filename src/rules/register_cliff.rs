//! `register-cliff`: a few registers fewer would let another block fit.

use serde::Deserialize;

use super::limits::{Grade, counted, each, evidence, is_best, of_bounds, registers, threads, with_facts};
use super::standing::spills;
use super::{Context, Judged};
use crate::finding::{Finding, Hit, Level};
use crate::gpu::{Limiter, Occupancy, Target, occupancy};
use crate::model::percent;

/// Up to here `register-limited-occupancy` is a warning that tells the step; above it is a note, and leaves it to this rule.
const LOW: f64 = 0.5;
/// Occupancy from which another block is no longer worth a word.
const ENOUGH: f64 = 0.75;

/// The options unless someone sets others.
const USUAL: Options = Options { within: 8, gain: 0.1 };

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Options {
    /// How many registers fewer a thread are within reach.
    within: u32,
    /// The rise of occupancy that is worth a word, 0 to 1.
    gain: f64,
}

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |judged| {
        let (_, after) = step(judged, &context.numbers.gpu(judged).target, options)?;
        let gained = after.active_warps - judged.occupancy.active_warps;
        Some(Grade { weight: 1000 * gained / after.max_warps.max(1), cap: Level::Deny })
    });
    // What spills has no registers to spare.
    hits.retain(|hit| !context.kernel_of(hit).is_some_and(spills));
}

/// Whether this rule, with its usual options, tells of a step of `judged` for a kernel that does not spill.
pub(super) fn tells(context: &Context<'_>, judged: &Judged) -> bool {
    step(judged, &context.numbers.gpu(judged).target, &USUAL).is_some()
}

/// The highest register count within reach that is worth it, and what it gives.
fn step(judged: &Judged, target: &Target, options: &Options) -> Option<(u32, Occupancy)> {
    let (now, launch) = (&judged.occupancy, &judged.launch);
    // What cannot be launched at all is another rule's, and a block that nobody told has no edge to be near.
    if is_best(judged) || now.blocks_per_sm == 0 || now.fraction() <= LOW || now.fraction() >= ENOUGH {
        return None;
    }
    let least = launch.registers.saturating_sub(options.within).max(1);
    (least..launch.registers)
        .rev()
        .filter_map(|registers| Some((registers, occupancy(target, &launch.with_registers(registers)).ok()?)))
        .find(|(_, after)| after.blocks_per_sm > now.blocks_per_sm && after.fraction() - now.fraction() >= options.gain)
}

pub(super) fn tell(context: &Context<'_>, options: &Options, hit: &Hit) -> Finding {
    let (Some(kernel), Some(judged)) = (context.kernel_of(hit), context.judged_of(hit)) else {
        return Finding::new("a few registers fewer would let another block fit");
    };
    let gpu = context.numbers.gpu(judged);
    let Some((most, after)) = step(judged, &gpu.target, options) else {
        return Finding::new("a few registers fewer would let another block fit");
    };
    let over = judged.launch.registers - most;
    let message = format!(
        "{} is {} per thread over a step on {}{}: at {most} instead of {}, {} of {} fit instead of {}, {} instead of {}",
        context.called(kernel.name),
        counted(over, "register"),
        gpu.name,
        of_bounds(judged),
        registers(judged, &gpu.target).replace(" per thread", ""),
        counted(after.blocks_per_sm, "block"),
        threads(judged.launch.threads),
        judged.occupancy.blocks_per_sm,
        percent(after.fraction()),
        percent(judged.occupancy.fraction()),
    );
    let help = format!(
        "`__launch_bounds__({}, {})` asks the compiler to keep to {most} registers; see whether spills appear, and \
         whether the kernel waits for memory often enough for more warps to help",
        judged.launch.threads, after.blocks_per_sm,
    );
    let label = evidence(context, kernel, Some(Limiter::Registers), format!("{over} over the step at {most}"));
    with_facts(Finding::new(message).help(help).label(label), judged)
        .fact("step_registers", most)
        .fact("step_blocks_per_sm", after.blocks_per_sm)
        .fact("step_occupancy", after.fraction())
}

#[cfg(test)]
mod tests {
    use super::{Options, USUAL};
    use crate::rules::records::record;
    use crate::rules::testing::lint;

    /// The findings of this rule alone.
    fn cliffs(arch: &str, used: &str, args: &[&str]) -> Vec<String> {
        lint(&record(arch, used), args).into_iter().filter(|line| line.contains("[register-cliff]")).collect()
    }

    #[test]
    fn one_register_over_a_step_costs_a_block() {
        assert_eq!(
            cliffs("sm_86", "41 registers", &["--block", "512"]),
            ["note[register-cliff] `k` is 1 register per thread over a step on sm_86: at 40 instead of 41 registers \
                 (48 allocated), 3 blocks of 512 threads fit instead of 2, 100 % instead of 67 %"]
        );
    }

    #[test]
    fn a_step_that_gains_little_or_is_far_off_is_silent() {
        // 20 to 24 of 64 warps is less than a tenth.
        assert!(cliffs("sm_50", "84 registers", &["--block", "128"]).is_empty());
        assert!(cliffs("sm_80", "64 registers", &["--block", "256"]).is_empty());
    }

    #[test]
    fn up_to_half_the_rule_on_occupancy_tells_the_step() {
        let found = lint(&record("sm_86", "72 registers"), &["--block", "256"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("warning[register-limited-occupancy]"), "{found:?}");
    }

    #[test]
    fn above_half_this_rule_tells_it_alone() {
        let found = lint(&record("sm_86", "41 registers"), &["--block", "512"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("note[register-cliff]"), "{found:?}");
    }

    #[test]
    fn what_spills_has_no_registers_to_spare() {
        let log = record("sm_86", "41 registers").replace("0 bytes spill stores", "8 bytes spill stores");
        let found = lint(&log, &["--block", "512"]).concat();
        assert!(found.contains("[register-limited-occupancy]") && !found.contains("[register-cliff]"), "{found}");
    }

    #[test]
    fn the_usual_options_are_those_of_the_page() {
        let page = crate::rules::Rule::named("register-cliff").expect("the rule").page();
        let Options { within, gain } = page.defaults().try_into().expect("its options");
        assert_eq!((within, gain), (USUAL.within, USUAL.gain));
    }

    #[test]
    fn three_quarters_are_enough_and_what_cannot_run_is_no_edge() {
        assert!(cliffs("sm_80", "40 registers", &["--block", "256"]).is_empty());
        assert!(cliffs("sm_90", "169 registers", &["--block", "384"]).is_empty());
    }

    #[test]
    fn without_a_block_size_there_is_no_step() {
        assert!(cliffs("sm_86", "41 registers", &[]).is_empty());
    }

    #[test]
    fn registers_that_are_not_the_limit_have_no_edge() {
        assert!(cliffs("sm_80", "41 registers, 41984 bytes smem", &["--block", "128"]).is_empty());
    }
}
