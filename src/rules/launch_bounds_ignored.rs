//! `launch-bounds-ignored`: bounds that ask for more than an SM has, which ptxas drops.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit};
use crate::gpu::Target;
use crate::model::{Kernel, MessageKind};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// What is out of range.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Threads times minimum blocks.
    Product,
    /// The threads of one block.
    Block,
    /// The minimum of blocks.
    Blocks,
    /// A minimum of blocks without a block.
    NoBlock,
    /// Another that is not known yet.
    Other,
}

impl Fault {
    /// By the ends of the text, which are cheap to look at: a log may hold a hundred thousand of these.
    fn of(said: &[u8]) -> Fault {
        if said.ends_with(b"and .maxntid will be ignored") {
            Fault::Block
        } else if said.starts_with(b"Value of threads per SM") {
            Fault::Product
        } else if said.starts_with(b"Value of minnctapersm") {
            Fault::Blocks
        } else if text::has(said, "neither .maxntid nor .reqntid") {
            Fault::NoBlock
        } else {
            Fault::Other
        }
    }
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let ignored = || context.messages_of(|kind| kind == MessageKind::LaunchBounds);
    let kernels = context.only_kernels(ignored().filter_map(|(_, message)| message.kernel));
    for (at, message) in ignored() {
        let kernel = message.kernel.and_then(|name| kernels.get(name));
        let fault = Fault::of(context.raw(message)) as usize;
        hits.push(Hit::message(at, 1).for_reason(fault).because_of_kernel(kernel));
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("launch bounds are ignored") };
    let called = context.called(message.kernel);
    let kernel = context.kernel_at(hit.because);
    let limits = kernel.and_then(Limits::of);
    let on = kernel.map_or_else(String::new, |kernel| context.on(kernel));
    let (said, help) = match Fault::of(context.raw(message)) {
        Fault::Product => (
            too_many(&called, "threads", limits.map(|limits| limits.threads), &on),
            format!(
                "the product of both numbers in __launch_bounds__(threads, blocks) may be at most {}: lower one of them; \
                 as it is, ptxas allots registers as if no minimum were given",
                limits.map_or_else(
                    || {
                        "what an SM holds (2048 threads where it has 64 warps, 1536 with 48, as on 8.6, 8.9 and 12.0, 1024 \
                         on 7.5)"
                            .to_owned()
                    },
                    |limits| format!("the {} threads that an SM of this target holds", limits.threads)
                ),
            ),
        ),
        Fault::Block => (
            format!("{called} is bounded to more threads than a block can have, so its launch bounds are ignored{on}"),
            "a block has at most 1024 threads: put the size that is launched into __launch_bounds__; as it is, ptxas must \
             allot registers as if no bound were given"
                .to_owned(),
        ),
        Fault::Blocks => (
            too_many(&called, "blocks", limits.map(|limits| limits.blocks), &on),
            format!(
                "the minimum of blocks in __launch_bounds__ may be at most {}: lower it",
                limits.map_or_else(
                    || "what an SM holds, 16 to 32 by target".to_owned(),
                    |limits| format!("the {} blocks that an SM of this target holds", limits.blocks)
                ),
            ),
        ),
        Fault::NoBlock => (
            "a minimum of blocks without a block size is ignored".to_owned(),
            "a minimum of blocks says nothing before the block has a size: add .maxntid or .reqntid in the PTX, or give both \
             numbers in __launch_bounds__(threads, blocks)"
                .to_owned(),
        ),
        Fault::Other => (context.said(message), "check the launch bounds against the limits of the target".to_owned()),
    };
    let mut finding = Finding::new(said)
        .help(help)
        .label(Some(context.message_label(message, "the bound has no effect on the registers")))
        .fact("max_threads_per_sm", limits.map(|limits| limits.threads))
        .fact("max_blocks_per_sm", limits.map(|limits| limits.blocks));
    finding.arch = kernel.and_then(|kernel| kernel.arch);
    finding
}

fn too_many(called: &str, what: &str, most: Option<u32>, on: &str) -> String {
    let held = match most {
        Some(most) => format!("the {most} that an SM holds{on}"),
        None => format!("an SM holds{on}"),
    };
    format!("{called} asks for more {what} than {held}, so its minimum of blocks is ignored")
}

/// What an SM of the kernel's architecture holds.
#[derive(Clone, Copy)]
struct Limits {
    threads: u32,
    blocks: u32,
}

impl Limits {
    fn of(kernel: &Kernel) -> Option<Limits> {
        let target = Target::of(kernel.arch?)?;
        Some(Limits { threads: target.max_threads_per_sm, blocks: target.max_blocks_per_sm })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, lint, told};

    const RULE: &str = "launch-bounds-ignored";
    const PRODUCT: &str =
        "ptxas warning : Value of threads per SM for entry _Z1kPf is out of range. .minnctapersm will be ignored\n";

    fn kernel(arch: &str) -> String {
        format!(
            "ptxas info    : Compiling entry function '_Z1kPf' for '{arch}'\nptxas info    : Function properties for _Z1kPf\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]\n"
        )
    }

    #[test]
    fn a_product_out_of_range_is_told_with_what_the_target_holds() {
        let log = format!("{PRODUCT}{}", kernel("sm_86"));
        assert_eq!(
            told(RULE, &log),
            [
                "warning: `k` asks for more threads than the 1536 that an SM holds on sm_86, so its minimum of blocks is ignored"
            ]
        );
        assert!(helps(RULE, &log)[0].contains("the 1536 threads that an SM of this target holds"));
    }

    #[test]
    fn no_target_is_invented() {
        let two = format!("{PRODUCT}{}{}", kernel("sm_80"), kernel("sm_86"));
        for log in [PRODUCT, &two] {
            assert_eq!(
                told(RULE, log),
                ["warning: `k` asks for more threads than an SM holds, so its minimum of blocks is ignored"]
            );
            assert!(helps(RULE, log)[0].contains("1536 with 48"));
        }
    }

    #[test]
    fn a_warning_that_a_pager_wrapped_still_names_its_kernel() {
        let log = "ptxas warning : Value of threads per SM for entry\n_ZN6Kokkos4Impl19launch_local_memoryILj512ELj4EEEvT_\nis out of range. .minnctapersm will be ignored\n";
        let told = lint(log, &[]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("`launch_local_memory<") && told[0].contains("asks for more threads"), "{told:?}");
    }

    #[test]
    fn each_other_fault_has_its_own_words() {
        let log = "\
ptxas bounds.ptx, line 6; warning : .minnctapersm is ignored when neither .maxntid nor .reqntid is specified.
ptxas warning : Value of threads per SM for entry k_maxntid_huge is out of range. .minnctapersm and .maxntid will be ignored
ptxas warning : Value of minnctapersm for entry k_minncta_huge is out of range. minnctapersm will be ignored
";
        assert_eq!(
            told(RULE, log),
            [
                "warning: a minimum of blocks without a block size is ignored",
                "warning: `k_maxntid_huge` is bounded to more threads than a block can have, so its launch bounds are ignored",
                "warning: `k_minncta_huge` asks for more blocks than an SM holds, so its minimum of blocks is ignored",
            ]
        );
    }

    #[test]
    fn bounds_that_hold_are_no_finding() {
        assert!(told(RULE, &kernel("sm_80")).is_empty());
    }
}
