//! `debug-build`: figures of code that was not optimised.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit, Subject};
use crate::model::{Kernel, Message, MessageKind};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// For each input whether it shows that its device code is built for debugging: what other rules judge is not that.
pub(super) fn inputs(context: &Context<'_>) -> Vec<bool> {
    let told = context.report.inputs.iter().map(|input| input.debug);
    told.zip(first_advisories(context)).map(|(told, advisory)| told || advisory.is_some()).collect()
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, (input, advisory)) in context.report.inputs.iter().zip(first_advisories(context)).enumerate() {
        if input.debug {
            hits.push(Hit::input(at, 0));
        } else {
            hits.extend(advisory.map(|at| Hit::message(at, 0)));
        }
    }
}

/// For each input the first message that shows it.
fn first_advisories(context: &Context<'_>) -> Vec<Option<usize>> {
    let mut first = vec![None; context.report.inputs.len()];
    for (at, message) in context
        .messages_of(|kind| matches!(kind, MessageKind::Setmaxnreg | MessageKind::Warning))
        .filter(|(_, message)| is_debug(context, message))
    {
        if let Some(first) = first.get_mut(message.place.input as usize) {
            first.get_or_insert(at);
        }
    }
    first
}

/// What ptxas and nvcc say only when they compile for debugging.
fn is_debug(context: &Context<'_>, message: &Message) -> bool {
    const SAID: [&str; 4] = [
        "to allow debugging",
        "Conflicting options --device-debug and ",
        "'--device-debug (-G)' overrides ",
        ".debug_abbrev section not found",
    ];
    SAID.iter().any(|said| text::has(context.raw(message), said))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let message = context.message_of(hit);
    let input = match (message, hit.subject) {
        (Some(message), _) => message.place.input,
        (None, Subject::Input(at)) => at,
        _ => 0,
    };
    let name = context.report.inputs.get(input as usize).map_or("", |input| &input.name);
    let here = |kernel: &Kernel| kernel.evidence.first().is_some_and(|place| place.input == input);
    let kernels = context.certain().filter(|(_, kernel)| here(kernel)).count();
    let unjudged = match kernels {
        0 => String::new(),
        1 => ": spills, local memory and occupancy of 1 kernel or function are left out, as they are not those of optimised \
              code"
            .to_owned(),
        _ => format!(
            ": spills, local memory and occupancy of {kernels} kernels and functions are left out, as they are not those \
             of optimised code"
        ),
    };
    Finding::new(format!("the device code of `{name}` is built for debugging{unjudged}"))
    .help(
        "build without -G to see what runs in production; -lineinfo keeps source lines for profilers and changes no \
             code",
    )
    .label(message.map(|message| context.message_label(message, "only a build with -G is told this")))
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::told;

    const KERNEL: &str = "ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
";
    const SAID: &str = "warning: the device code of `<stdin>` is built for debugging: spills, local memory and occupancy of 1 kernel or function are left out, as they are not those of optimised code";

    #[test]
    fn a_command_with_the_debug_option_tells_it_once() {
        let log = format!("nvcc -arch=sm_90a -G -Xptxas -v -c a.cu -o a.o\nnvcc -G -c b.cu\n{KERNEL}");
        assert_eq!(told("debug-build", &log), [SAID]);
    }

    #[test]
    fn what_tools_say_only_of_a_debug_build_tells_it_too() {
        for said in [
            "ptxas info    : (C7505) Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.",
            "ptxas warning : Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option",
            "nvcc warning : '--device-debug (-G)' overrides '--generate-line-info (-lineinfo)'",
            "ptxas warning :  .debug_abbrev section not found",
        ] {
            assert_eq!(told("debug-build", &format!("{said}\n{KERNEL}")), [SAID], "{said}");
        }
    }

    #[test]
    fn other_options_that_look_like_it_are_silent() {
        let log = format!("cmake -G Ninja -B build\nnvcc -lineinfo -g -DG -I-G/x -c a.cu\n{KERNEL}");
        assert!(told("debug-build", &log).is_empty());
    }
}
