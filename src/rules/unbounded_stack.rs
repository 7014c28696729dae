//! `unbounded-stack`: a kernel for which nobody knows how much stack a thread needs.

use hashbrown::{HashMap, HashSet};

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit};
use crate::model::{MessageKind, NameId};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let warnings = || context.messages_of(|kind| kind == MessageKind::UnboundedStack);
    let mut warned: HashMap<NameId, usize> = HashMap::new();
    for (at, message) in warnings() {
        if let Some(name) = message.kernel {
            warned.entry(name).or_insert(at);
        }
    }
    // The kernel's own record knows the architecture, so it speaks for the warning where there is one.
    let mut told: HashSet<NameId> = HashSet::new();
    for (at, kernel) in context.certain().filter(|(_, kernel)| kernel.unbounded_stack) {
        let warning = kernel.name.and_then(|name| warned.get(&name).copied());
        hits.push(Hit::kernel(at, 1).because_of_message(warning));
        told.extend(kernel.name);
    }
    for (at, message) in warnings() {
        // ptxas and nvlink both warn of a kernel.
        if message.kernel.is_none_or(|name| told.insert(name)) {
            hits.push(Hit::message(at, 1));
        }
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    const WHY: &str = "recursion, or a call that the compiler cannot follow";
    let kernel = context.kernel_of(hit);
    let message = context.message_of(hit).or_else(|| context.message_at(hit.because));
    let name = kernel.map_or_else(|| message.and_then(|message| message.kernel), |kernel| kernel.name);
    let function = kernel.map_or("", |kernel| context.function(kernel));
    let on = kernel.map_or_else(String::new, |kernel| context.on(kernel));
    let label = match (message, kernel) {
        (Some(message), _) => Some(context.message_label(message, WHY)),
        (None, Some(kernel)) => context.label(kernel.evidence.usage, "STACK:", "STACK:UNKNOWN", WHY),
        (None, None) => None,
    };
    Finding::new(format!("the stack of {function}{} has no compile-time bound{on}", context.called(name)))
        .help(
            "a launch reserves what cudaLimitStackSize says, 1024 B per thread by default, and a thread that needs more \
             fails: measure the depth and raise the limit by cudaDeviceSetLimit, or make the recursion a loop and the call \
             through a pointer a switch",
        )
        .label(label)
        .fact("stack_bytes", kernel.and_then(|kernel| kernel.resources.stack))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lint, told};

    const RULE: &str = "unbounded-stack";
    const WARNING: &str =
        "ptxas warning : Stack size for entry function '_Z11k_recursivePii' cannot be statically determined\n";
    const KERNEL: &str = "ptxas info    : Compiling entry function '_Z11k_recursivePii' for 'sm_80'\nptxas info    : Function properties for _Z11k_recursivePii\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 24 registers, used 0 barriers, 364 bytes cmem[0]\n";
    const LISTING: &str = " Function _Z11k_recursivePii:\n  REG:24 STACK:UNKNOWN SHARED:0 LOCAL:0 CONSTANT[0]:364 TEXTURE:0 SURFACE:0 SAMPLER:0\n";

    #[test]
    fn a_warning_alone_is_told() {
        assert_eq!(
            lint(WARNING, &[]),
            ["warning[unbounded-stack] the stack of `k_recursive` has no compile-time bound"]
        );
    }

    #[test]
    fn a_kernel_is_told_once_whoever_says_it() {
        let linker = WARNING.replace("ptxas", "nvlink");
        for log in [
            format!("{WARNING}{KERNEL}"),
            format!("{WARNING}{KERNEL}{linker}"),
            format!("{WARNING}{KERNEL}{LISTING}"),
            format!("{KERNEL}{LISTING}"),
        ] {
            assert_eq!(
                told(RULE, &log),
                ["warning: the stack of `k_recursive` has no compile-time bound on sm_80"],
                "{log}"
            );
        }
        assert_eq!(told(RULE, LISTING), ["warning: the stack of `k_recursive` has no compile-time bound"]);
    }

    #[test]
    fn a_known_stack_is_no_finding() {
        assert!(told(RULE, KERNEL).is_empty());
        assert!(told(RULE, &LISTING.replace("UNKNOWN", "96")).is_empty());
    }
}
