//! `debug-build`: figures of code that was not optimised.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit, Subject};
use crate::model::{Message, MessageKind};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, input) in context.report.inputs.iter().enumerate() {
        if input.debug {
            hits.push(Hit::input(at, 0));
            continue;
        }
        let advisory =
            context.messages().find(|(_, message)| message.place.input as usize == at && is_debug(context, message));
        hits.extend(advisory.map(|(at, _)| Hit::message(at, 0)));
    }
}

/// The advisory that ptxas gives only when it compiles for debugging.
fn is_debug(context: &Context<'_>, message: &Message) -> bool {
    message.kind == MessageKind::Setmaxnreg && text::has(context.raw(message), "to allow debugging")
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let message = context.message_of(hit);
    let input = match (message, hit.subject) {
        (Some(message), _) => message.place.input,
        (None, Subject::Input(at)) => at,
        _ => 0,
    };
    let name = context.report.inputs.get(input as usize).map_or("", |input| &input.name);
    Finding::new(format!(
        "the device code of `{name}` is built for debugging: these are not the figures of optimised code"
    ))
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
    const SAID: &str =
        "warning: the device code of `<stdin>` is built for debugging: these are not the figures of optimised code";

    #[test]
    fn a_command_with_the_debug_option_tells_it_once() {
        let log = format!("nvcc -arch=sm_90a -G -Xptxas -v -c a.cu -o a.o\nnvcc -G -c b.cu\n{KERNEL}");
        assert_eq!(told("debug-build", &log), [SAID]);
    }

    #[test]
    fn an_advisory_of_a_debug_build_tells_it_too() {
        let log = format!(
            "ptxas info    : (C7505) Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.\n{KERNEL}"
        );
        assert_eq!(told("debug-build", &log), [SAID]);
    }

    #[test]
    fn other_options_that_look_like_it_are_silent() {
        let log = format!("cmake -G Ninja -B build\nnvcc -lineinfo -g -DG -I-G/x -c a.cu\n{KERNEL}");
        assert!(told("debug-build", &log).is_empty());
    }
}
