//! `compiler-warning`: what else ptxas, nvlink and nvcc warn of.

use serde::Deserialize;

use super::{Context, no_resource_report, text};
use crate::finding::{Cause, Finding, Hit};
use crate::model::MessageKind;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// Warnings for which there is something to say, each by words of its text.
const HELPS: [(&str, &str); 7] = [
    (
        "Program is doing double precision computations",
        "one line for every double instruction: look for a constant without an `f` (`0.5` for `0.5f`) or a double function \
         (`sqrt` for `sqrtf`) if double precision was not meant",
    ),
    (
        "expected to have substantially reduced performance",
        "compile for the architecture-specific target that the line names (`-gencode arch=compute_90a,code=sm_90a`)",
    ),
    (
        "Resource usage is not shown as the final resource allocation is not done",
        "with -rdc=true the figures come at the link: add -Xnvlink -v there",
    ),
    (
        "will be removed in a future release",
        "drop the -gencode of architectures that you no longer ship; -Wno-deprecated-gpu-targets silences the line",
    ),
    (
        "are deprecated, and may be removed in a future release",
        "drop the -gencode of architectures that you no longer ship; -Wno-deprecated-gpu-targets silences the line",
    ),
    (
        "incompatible redefinition for option",
        "the option is given twice with different values: look at what the build system adds to your own flags",
    ),
    (
        "specifies register R",
        "caller and callee were compiled with different ABI settings: compile both files with the same options",
    ),
];

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let warnings = context.messages_of(|kind| kind == MessageKind::Warning);
    let silent = no_resource_report::Silent::of(context);
    let new = warnings.filter(|(_, message)| !silent.repeats(context, message));
    hits.extend(new.map(|(at, _)| Hit::message(at, 1).caused_by(Cause::Single)));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("the compiler warns") };
    let said = context.raw(message);
    let help = HELPS.iter().find(|(sign, _)| text::has(said, sign)).map(|(_, help)| (*help).to_owned());
    let finding = Finding::new(context.said(message)).label(Some(context.message_label(message, "")));
    Finding { help, ..finding }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, told};

    const RULE: &str = "compiler-warning";

    #[test]
    fn a_flood_of_one_warning_is_one_note_with_a_count() {
        let log = "ptxas dbl.ptx, line 5; warning : Program is doing double precision computations.\n".repeat(3);
        assert_eq!(told(RULE, &log), ["note: Program is doing double precision computations (3 times)"]);
        assert!(helps(RULE, &log)[0].contains("without an `f`"));
    }

    #[test]
    fn warnings_of_nvcc_and_unknown_advisories_are_told_in_their_words() {
        let log = "\
nvcc warning : incompatible redefinition for option 'maxrregcount', the last value of this option was used
ptxas warning :  .debug_info section not found
ptxas info    : (C7999) Potential Performance Loss: something new in the function 'k'
ptxas k.ptx, line 4; info    : Advisory: Modifier '.sp::ordered_metadata' should be used on instruction 'mma'
ptxas info    : Command line option '--g-tensor-memory-access-check' not supported for '.target sm_80', will be ignored
";
        assert_eq!(
            told(RULE, log),
            [
                "note: incompatible redefinition for option 'maxrregcount', the last value of this option was used",
                "note: .debug_info section not found",
                "note: Potential Performance Loss: something new in the function 'k'",
                "note: Advisory: Modifier '.sp::ordered_metadata' should be used on instruction 'mma'",
                "note: Command line option '--g-tensor-memory-access-check' not supported for '.target sm_80', will be ignored",
            ]
        );
    }

    #[test]
    fn what_has_a_rule_of_its_own_is_not_told_twice() {
        let log = "\
ptxas warning : Stack size for entry function '_Z11k_recursivePii' cannot be statically determined
ptxas warning : Too big maxrregcount value specified 96, will be ignored
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
";
        assert!(told(RULE, log).is_empty());
    }
}
