//! `unused-warp-slots`: a block size that does not divide the warps of an SM.

use serde::Deserialize;

use super::advice::share;
use super::limits::{Grade, and, binding, binds, counted, each, evidence, is_best, of_bounds, threads, with_facts};
use super::{Context, Judged};
use crate::finding::{Cause, Finding, Hit, Level};
use crate::gpu::{Limiter, Point, Target, block_sweep};
use crate::model::percent;

/// Block sizes that the help names at most.
const NAMED: usize = 4;

/// More than any block has threads.
const SIZES: u32 = 4096;

/// Options of the rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Options {
    /// The share of an SM's warp slots, 0 to 1, from which it is worth a word.
    min_idle: f64,
}

pub(super) fn check(context: &Context<'_>, options: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |judged| {
        let occupancy = &judged.occupancy;
        // Where nothing tells the block size, there is none to blame.
        let speaks = !is_best(judged)
            && occupancy.blocks_per_sm > 0
            && binds(judged, Limiter::Warps)
            && occupancy.active_warps < occupancy.max_warps
            && 1.0 - occupancy.fraction() >= options.min_idle;
        speaks.then(|| Grade::by_occupancy(judged, Level::Deny))
    });
    for hit in hits {
        // The block size is the cause, whatever the kernel.
        if let Some(judged) = context.judged_of(hit) {
            hit.cause = Cause::Reason(judged.gpu * SIZES + judged.launch.threads.min(SIZES - 1));
        }
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let (Some(kernel), Some(judged)) = (context.kernel_of(hit), context.judged_of(hit)) else {
        return Finding::new("warp slots of the SM stay empty");
    };
    let gpu = context.numbers.gpu(judged);
    let occupancy = &judged.occupancy;
    let idle = occupancy.max_warps - occupancy.active_warps;
    let warps = judged.launch.warps(&gpu.target);
    let tie: Vec<String> = binding(judged).iter().map(|limiter| limiter.words().to_owned()).collect();
    let tie = if tie.is_empty() { String::new() } else { format!(", and {} no more either", allow(&tie)) };
    let message = format!(
        "{} leaves {idle} of {} warp slots empty on {}{} ({}): {} of {} ({}) {} all that an SM has warps for{tie}",
        context.called(kernel.name),
        occupancy.max_warps,
        gpu.name,
        of_bounds(judged),
        percent(f64::from(idle) / f64::from(occupancy.max_warps.max(1))),
        counted(occupancy.blocks_per_sm, "block"),
        threads(judged.launch.threads),
        counted(warps, "warp"),
        if occupancy.blocks_per_sm == 1 { "is" } else { "are" },
    );
    let label = evidence(context, kernel, Some(Limiter::Registers), format!("{} an SM", share(occupancy)));
    with_facts(Finding::new(message).help(help(judged, &gpu.target)).label(label), judged).fact("idle_warps", idle)
}

fn allow(limits: &[String]) -> String {
    let verb = match limits {
        [one] if one.as_str() == Limiter::SharedMemory.words() => "allows",
        _ => "allow",
    };
    format!("{} {verb}", and(limits))
}

/// The block sizes that hold the most warps with what the kernel uses, those nearest to the present one first.
fn help(judged: &Judged, target: &Target) -> String {
    let points = block_sweep(target, &judged.launch).unwrap_or_default();
    let most = points.iter().map(|point| point.occupancy.active_warps).max().unwrap_or(0);
    let mut best: Vec<&Point> = points.iter().filter(|point| point.occupancy.active_warps == most).collect();
    best.sort_by_key(|point| point.threads.abs_diff(judged.launch.threads));
    best.truncate(NAMED);
    best.sort_by_key(|point| point.threads);
    let Some(first) = best.first().filter(|point| point.occupancy.active_warps > judged.occupancy.active_warps) else {
        return "no other block size holds more warps with what the kernel uses".to_owned();
    };
    let sizes: Vec<String> = best.iter().map(|point| point.threads.to_string()).collect();
    format!(
        "blocks of {} threads hold {} with what the kernel uses now",
        and(&sizes).replace(" and ", " or "),
        share(&first.occupancy)
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::records::{named, record};
    use crate::rules::testing::{human, lint};

    fn found(arch: &str, used: &str, args: &[&str]) -> String {
        lint(&record(arch, used), args).join("\n")
    }

    #[test]
    fn one_block_of_1024_threads_leaves_a_third_of_1536() {
        assert_eq!(
            found("sm_86", "16 registers", &["--block", "1024"]),
            "note[unused-warp-slots] `k` leaves 16 of 48 warp slots empty on sm_86 (33 %): 1 block of 1024 threads (32 \
             warps) is all that an SM has warps for"
        );
        assert!(found("sm_80", "16 registers", &["--block", "640"]).contains("leaves 4 of 64 warp slots empty"));
    }

    #[test]
    fn sizes_that_divide_the_sm_and_a_single_slot_are_silent() {
        assert_eq!(found("sm_86", "11 registers", &["--block", "512"]), "");
        assert_eq!(found("sm_80", "16 registers", &["--block", "1024"]), "");
        assert_eq!(found("sm_80", "16 registers", &["--block", "224"]), "");
    }

    #[test]
    fn one_block_size_on_one_gpu_is_one_cause() {
        let log = [named("one", "sm_86", "16 registers"), named("two", "sm_86", "20 registers")].concat();
        let shown = human(&log, &["--block", "1024"]);
        assert_eq!(shown.matches("note[").count(), 1, "{shown}");
        assert!(shown.contains("also `two`"), "{shown}");
        assert_eq!(human(&log, &["--block", "1024", "--gpu", "sm_86", "--gpu", "sm_89"]).matches("note[").count(), 2);
    }

    #[test]
    fn a_limit_that_ties_is_named_and_its_own_rule_is_silent() {
        let message = found("sm_86", "40 registers", &["--block", "1024"]);
        assert!(message.ends_with("all that an SM has warps for, and registers allow no more either"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }

    #[test]
    fn a_tighter_limit_speaks_instead() {
        assert!(!found("sm_80", "64 registers", &["--block", "640"]).contains("unused-warp-slots"));
    }

    #[test]
    fn without_a_block_size_there_is_none_to_blame() {
        assert_eq!(found("sm_86", "16 registers", &[]), "");
    }
}
