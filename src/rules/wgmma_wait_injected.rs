//! `wgmma-wait-injected`: a wait or an arrive that the compiler had to add to a wgmma pipeline.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit};
use crate::model::MessageKind;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, message) in context.messages_of(|kind| kind == MessageKind::WgmmaInjected) {
        hits.push(Hit::message(at, 1).for_reason(usize::from(is_arrive(context.raw(message)))));
    }
}

fn is_arrive(said: &[u8]) -> bool {
    text::has(said, ".arrive is injected")
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("a wgmma wait is injected") };
    let said = context.raw(message);
    let line = text::number_after(said, "around line ");
    let at = line.map(|line| format!(" around PTX line {line}")).unwrap_or_default();
    let (what, help, label) = if is_arrive(said) {
        (
            "an arrive",
            "registers of a wgmma are written without a wgmma.fence (warpgroup.arrive) between the write and the wgmma: \
             put one after the last write, so that you and not the compiler choose its place",
            "the compiler's fence, not yours",
        )
    } else {
        (
            "a wait",
            "registers of a wgmma that may still run are used: put wgmma.wait_group before the use yourself, as late as you \
             can, or move the use behind the wait that is there; check that the wait does not drain stages that were meant to \
             overlap",
            "the compiler's wait, not yours",
        )
    };
    Finding::new(format!("ptxas injects {what} into the wgmma pipeline of {}{at}", context.called(message.kernel)))
        .help(help)
        .label(Some(context.message_label(message, label)))
        .fact("ptx_line", line)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lint, told};

    #[test]
    fn waits_and_arrives_of_every_release_are_told() {
        let log = "\
ptxas info    : (C7517) warpgroup.wait is injected in around line 31 by compiler to allow use of registers defined by GMMA in function 'k_acc_read'
ptxas info    : (C7519) warpgroup.arrive is injected in around line 15 by compiler to allow use of registers in GMMA in function 'k_acc_touch'
ptxas info    : (C7517) wgmma.wait_group is injected in around line 14 by compiler to allow use of registers defined by GMMA in function 'k_acc_touch'
";
        assert_eq!(
            lint(log, &[]),
            [
                "note[wgmma-wait-injected] ptxas injects a wait into the wgmma pipeline of `k_acc_read` around PTX line 31",
                "note[wgmma-wait-injected] ptxas injects an arrive into the wgmma pipeline of `k_acc_touch` around PTX line 15",
                "note[wgmma-wait-injected] ptxas injects a wait into the wgmma pipeline of `k_acc_touch` around PTX line 14",
            ]
        );
    }

    #[test]
    fn a_serialised_pipeline_is_another_rules_matter() {
        let log = "ptxas info    : (C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence on compiler-inserted WG.AR in divergent path in the function 'k_call_between' in line 19\n";
        assert!(told("wgmma-wait-injected", log).is_empty());
    }
}
