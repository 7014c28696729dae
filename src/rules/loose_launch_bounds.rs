//! `loose-launch-bounds`: a kernel spills under launch bounds that are larger than any launch of it.

use serde::Deserialize;

use super::Context;
use super::limits::threads;
use super::standing::spills;
use crate::finding::{Finding, Hit};
use crate::gpu::Target;
use crate::model::{Bytes, Kernel};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// What a tighter bound would change.
struct Looser {
    /// The bound as it is.
    bound: u32,
    /// The one that the launches need.
    needed: u32,
    /// Registers a thread that the one allows.
    allowed: u32,
    /// And the other.
    possible: u32,
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    if context.report.families.is_empty() {
        return;
    }
    for (at, kernel) in context.entries().filter(|(_, kernel)| kernel.family.is_some() && spills(kernel)) {
        let looser = looser(context, at, kernel);
        hits.extend(looser.map(|looser| Hit::kernel(at, looser.possible - looser.allowed)));
    }
}

fn looser(context: &Context<'_>, at: usize, kernel: &Kernel) -> Option<Looser> {
    let bounds = context.numbers.told(at)?.bounds?;
    let (bound, min_blocks) = (bounds.max_threads?, bounds.min_blocks.unwrap_or(1).max(1));
    let sites = context.numbers.instances.launches_of(context.report, kernel, usize::MAX);
    let sizes = sites.spots.iter().map(|spot| Some(context.report.launch(*spot)?.block_size()?.threads()));
    // A launch that is not known may use all of the bound.
    let most = sizes.collect::<Option<Vec<u32>>>()?.into_iter().max()?;
    let needed = most.div_ceil(32) * 32;
    let target = Target::of(kernel.arch?)?;
    let (allowed, possible) = (allowed(target, bound, min_blocks), allowed(target, needed, min_blocks));
    // Where the kernel has fewer registers than the bound allows, something else keeps them few.
    let is_at_bound = kernel.resources.registers.is_some_and(|used| used + UNIT > allowed);
    (needed < bound && possible > allowed && is_at_bound).then_some(Looser { bound, needed, allowed, possible })
}

/// Registers are given to threads in steps of this.
pub(super) const UNIT: u32 = 8;

/// Registers a thread that the compiler may use where so many blocks of so many threads are to fit an SM.
pub(super) fn allowed(target: &Target, threads: u32, blocks: u32) -> u32 {
    let all = if blocks > 1 { target.registers_per_sm / blocks } else { target.registers_per_block };
    let each = all / (threads.div_ceil(32).max(1) * 32);
    (each / UNIT * UNIT).min(target.max_registers_per_thread)
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some((at, kernel)) = context.numbered_kernel_of(hit) else { return Finding::new("launch bounds are loose") };
    let Some(looser) = looser(context, at, kernel) else { return Finding::new("launch bounds are loose") };
    let Looser { bound, needed, allowed, possible } = looser;
    let spilled = kernel.resources.spill_stores.max(kernel.resources.spill_loads).unwrap_or(Bytes::ZERO);
    let message = format!(
        "{} spills {spilled} under launch bounds of {}, and the sources launch it with {} at most",
        context.called(kernel.name),
        threads(bound),
        threads(needed),
    );
    let help = format!(
        "`__launch_bounds__({needed})` allows the compiler {possible} registers per thread instead of {allowed}; larger \
         launches then fail, so a launch that these sources do not show must not need them"
    );
    let label = context.label(kernel.evidence.usage, "Used", "registers", "kept to what the bound allows");
    Finding::new(message)
        .help(help)
        .label(label)
        .fact("max_threads", bound)
        .fact("threads", needed)
        .fact("registers_allowed", allowed)
        .fact("registers_possible", possible)
}

#[cfg(test)]
mod tests {
    use super::super::testing::with_log;

    fn log(registers: u32) -> String {
        format!(
            "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'\n\
             ptxas info    : Function properties for _Z1kPf\n    \
             64 bytes stack frame, 60 bytes spill stores, 60 bytes spill loads\n\
             ptxas info    : Used {registers} registers, used 0 barriers, 360 bytes cmem[0]\n"
        )
    }

    fn found(bound: u32, registers: u32, launch: &str) -> Vec<String> {
        let text = format!(
            "__global__ void __launch_bounds__({bound}) k(float* p) {{}}\nvoid host(float* p, int n) {{ {launch} }}\n"
        );
        let mut found = with_log(&[("k.cu", &text)], &log(registers), &[]);
        found.retain(|line| line.contains("[loose-launch-bounds]"));
        found
    }

    #[test]
    fn a_kernel_that_spills_for_the_sake_of_threads_that_nobody_launches_is_told() {
        assert_eq!(
            found(1024, 64, "k<<<n, 256>>>(p);"),
            [
                "note[loose-launch-bounds] `k` spills 60 B under launch bounds of 1024 threads, and the sources launch it with \
                 256 threads at most"
            ]
        );
    }

    #[test]
    fn bounds_that_are_used_and_registers_that_something_else_limits_are_silent() {
        assert!(found(1024, 64, "k<<<n, 256>>>(p); k<<<n, 1024>>>(p);").is_empty());
        assert!(found(1024, 64, "k<<<n, 256>>>(p); k<<<n, n>>>(p);").is_empty());
        assert!(found(1024, 32, "k<<<n, 256>>>(p);").is_empty());
        // 255 are all that a thread can have, with either bound.
        assert!(found(256, 255, "k<<<n, 128>>>(p);").is_empty());
    }
}
