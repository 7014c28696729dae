//! `unlaunchable-kernel`: not even one block fits, so that every launch of it fails.

use serde::Deserialize;

use super::limits::{Grade, each, evidence, is_best, shared_bytes, threads, with_facts};
use super::{Context, Judged};
use crate::finding::{Finding, Hit, Level};
use crate::gpu::{Limiter, Refusal, Target, largest_block, occupancy, refusals};
use crate::model::Bytes;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    each(context, hits, |judged| {
        let refused = judged.occupancy.blocks_per_sm == 0;
        refused.then_some(Grade { weight: judged.launch.registers, cap: Level::Deny })
    });
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let (Some(kernel), Some(judged)) = (context.kernel_of(hit), context.judged_of(hit)) else {
        return Finding::new("the kernel cannot be launched");
    };
    let gpu = context.numbers.gpu(judged);
    let reasons = refusals(&gpu.target, &judged.launch);
    let size = match is_best(judged) {
        true => "any block size".to_owned(),
        false => format!("{} per block", threads(judged.launch.threads)),
    };
    let why: Vec<String> = reasons.iter().map(Refusal::to_string).collect();
    let message =
        format!("{} cannot be launched with {size} on {}: {}", context.called(kernel.name), gpu.name, why.join("; "));
    let largest = largest_block(&gpu.target, &judged.launch);
    let binding = Limiter::ALL.into_iter().find(|limiter| judged.occupancy.limits.get(*limiter) == Some(0));
    let label = evidence(context, kernel, binding, "too much for one block");
    let finding = Finding::new(message).help(help(&gpu.target, judged, &reasons, largest)).label(label);
    with_facts(finding, judged).fact("largest_block", largest)
}

fn help(target: &Target, judged: &Judged, reasons: &[Refusal], largest: Option<u32>) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(largest) = largest {
        parts.push(format!("the largest block that fits has {}", threads(largest)));
    }
    parts.extend(reasons.iter().filter_map(|reason| cure(target, judged, reason)));
    if parts.is_empty() {
        parts.push("no block size fits with what the kernel uses".to_owned());
    }
    parts.join("; ")
}

/// What would make one refusal go away.
fn cure(target: &Target, judged: &Judged, reason: &Refusal) -> Option<String> {
    let launch = &judged.launch;
    match *reason {
        Refusal::RegistersPerBlock { .. } | Refusal::RegisterFile { .. } | Refusal::RegistersPerThread { .. } => {
            let fits = |registers: &u32| {
                let changed = launch.with_registers(*registers);
                occupancy(target, &changed).is_ok_and(|answer| answer.limits.registers != Some(0))
            };
            let most = (1..launch.registers.min(256)).rev().find(fits)?;
            Some(format!(
                "`__launch_bounds__({})` makes the compiler keep to the {most} registers per thread that a block of \
                 this size may use, at the price of spills",
                launch.threads
            ))
        }
        Refusal::SharedMemory { asked, most, .. } => {
            let over = u32::try_from(asked - u64::from(most.get())).ok().map(Bytes)?;
            let told = match launch.dynamic_shared {
                Bytes(0) => String::new(),
                dynamic => format!(", {dynamic} of which are dynamic, as --dynamic-shared says"),
            };
            Some(format!("{over} of the {} per block must go{told}", shared_bytes(judged)))
        }
        Refusal::Threads { .. } | Refusal::DynamicMaximum { .. } | Refusal::Count { .. } => None,
    }
}
