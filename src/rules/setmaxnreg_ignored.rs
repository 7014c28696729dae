//! `setmaxnreg-ignored`: warps that were to trade registers and do not.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit};
use crate::model::MessageKind;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// A reason that ptxas gives.
struct Reason {
    id: &'static str,
    sign: &'static str,
    why: &'static str,
    cure: &'static str,
}

const REASONS: [Reason; 5] = [
    Reason {
        id: "separate-compilation",
        sign: "compatibility across compilation units",
        why: "the code is compiled separately",
        cure: "compile the file with this kernel without -rdc=true or -dc (CMake: CUDA_SEPARABLE_COMPILATION OFF)",
    },
    Reason {
        id: "debug",
        sign: "to allow debugging",
        why: "the code is compiled for debugging",
        cure: "build without -G to measure: -lineinfo keeps source lines and changes no code",
    },
    Reason {
        id: "extern-call",
        sign: "into 'extern' call",
        why: "the kernel makes an extern or indirect call",
        cure: "define the callee in the same translation unit and let it be inlined; printf, assert and calls through \
               pointers count too",
    },
    Reason {
        id: "minimum-registers",
        sign: "minimum register requirements",
        why: "the code needs more registers than it leaves",
        cure: "ask for a larger count in setmaxnreg.dec, or let the warps that give registers away do less",
    },
    Reason {
        id: "entry-count-unknown",
        sign: "unable to determine register count at entry",
        why: "the register count at entry is unknown",
        cure: "fix the count at launch: __launch_bounds__ with the threads and the minimum of blocks, __maxnreg__, or \
               -maxrregcount (in PTX: .maxntid with .minnctapersm, or .maxnreg)",
    },
];

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let ignored = context.messages_of(|kind| kind == MessageKind::Setmaxnreg);
    hits.extend(ignored.map(|(at, _)| Hit::message(at, 1)));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("`setmaxnreg` is ignored") };
    let said = context.raw(message);
    let reason = REASONS.iter().find(|reason| text::has(said, reason.sign));
    let label = context.message_label(message, "all warps keep the register count of the launch");
    let finding = match reason {
        Some(reason) => Finding::new(format!("`setmaxnreg` is ignored: {}", reason.why))
            .help(format!("{}; until then producer warps keep registers that the consumers were to get", reason.cure)),
        None => Finding::new(context.said(message)),
    };
    finding.label(Some(label)).fact("reason", reason.map(|reason| reason.id))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, told};

    const RULE: &str = "setmaxnreg-ignored";

    #[test]
    fn every_reason_has_its_own_cure() {
        for (text, why, cure) in [
            (
                "(C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.",
                "the code is compiled separately",
                "-rdc=true",
            ),
            (
                "Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.",
                "the code is compiled separately",
                "-rdc=true",
            ),
            (
                "(C7505) Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.",
                "the code is compiled for debugging",
                "-G",
            ),
            (
                "(C7506) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility into 'extern' call.",
                "the kernel makes an extern or indirect call",
                "inlined",
            ),
            (
                "(C7507) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.",
                "the code needs more registers than it leaves",
                "setmaxnreg.dec",
            ),
            (
                "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.",
                "the register count at entry is unknown",
                "__launch_bounds__",
            ),
        ] {
            let log = format!("ptxas info    : {text}\n");
            assert_eq!(told(RULE, &log), [format!("warning: `setmaxnreg` is ignored: {why}")]);
            assert!(helps(RULE, &log)[0].contains(cure), "{text}");
        }
    }

    #[test]
    fn repeats_are_counted_and_an_error_about_setmaxnreg_is_not_this() {
        let log =
            "ptxas info    : (C7505) Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.\n".repeat(2);
        assert_eq!(
            told(RULE, &log),
            ["warning: `setmaxnreg` is ignored: the code is compiled for debugging (2 times)"]
        );
        let error = "ptxas application ptx input, line 8; fatal   : (C7406) setmaxnreg.dec has register count (232) which is larger than the largest temporal register count in the program (168)\n";
        assert!(told(RULE, error).is_empty());
    }
}
