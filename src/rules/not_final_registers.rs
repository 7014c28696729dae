//! `not-final-registers`: counts that the linker raised, or will only settle.

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit, Subject};
use crate::model::{Kernel, Kind};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, kernel) in context.entries() {
        hits.extend(raised(kernel).map(|(before, after)| Hit::kernel(at, after - before)));
    }
    // One link report shows that the log goes on to the link; what it leaves out was not linked.
    if context.report.kernels.iter().any(|kernel| kernel.linked) {
        return;
    }
    for (at, input) in context.report.inputs.iter().enumerate() {
        let of_input = |kernel: &Kernel| {
            kernel.kind == Kind::Entry && kernel.evidence.first().is_some_and(|place| place.input as usize == at)
        };
        if input.separate && context.report.kernels.iter().any(of_input) {
            hits.push(Hit::input(at, 0));
        }
    }
}

/// The registers before and after the link, where it raised what a thread is given.
fn raised(kernel: &Kernel) -> Option<(u32, u32)> {
    let (before, after) = (kernel.registers_before_link?, kernel.resources.registers?);
    // Registers are given out in units of 8 a thread: within one, nothing changes.
    (after.div_ceil(8) > before.div_ceil(8)).then_some((before, after))
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (context.kernel_of(hit), hit.subject) {
        (Some(kernel), _) => of_kernel(context, kernel),
        (None, Subject::Input(at)) => of_input(context, at as usize),
        _ => Finding::new("the register counts are not final"),
    }
}

fn of_kernel(context: &Context<'_>, kernel: &Kernel) -> Finding {
    let (before, after) = raised(kernel).unwrap_or_default();
    let called = context.called(kernel.name);
    let label = context.label(kernel.evidence.usage, "used", "registers", "the count that holds");
    Finding::new(format!(
        "linking raises {called} from {before} to {after} registers per thread{}",
        context.on(kernel)
    ))
    .help(format!(
        "a function that it calls in another translation unit needs {after}: define both in one translation unit, link \
         with -dlto, or limit the callee's registers where it is compiled (-maxrregcount)"
    ))
    .label(label)
    .fact("registers_before", before)
    .fact("registers", after)
}

fn of_input(context: &Context<'_>, at: usize) -> Finding {
    let name = context.report.inputs.get(at).map_or("", |input| &input.name);
    Finding::new(format!("the register counts of `{name}` are from before the device link, which may raise them"))
        .help("add -Xnvlink -v to the command that links, and give warplint its output too: the linker prints the final counts")
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::told;

    const COMPILED: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5k_rdcPfi' for 'sm_80'
ptxas info    : Function properties for _Z5k_rdcPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 256 bytes smem, 364 bytes cmem[0]
";

    fn linked(registers: u32) -> String {
        format!(
            "{COMPILED}nvlink info    : Function properties for '_Z5k_rdcPfi':
nvlink info    : used {registers} registers, used 1 barriers, 88 stack, 256 bytes smem, 364 bytes cmem[0], 0 bytes lmem
"
        )
    }

    #[test]
    fn a_count_that_the_linker_raised_is_told_with_both_numbers() {
        let told = told("not-final-registers", &linked(46));
        assert_eq!(told, ["note: linking raises `k_rdc` from 24 to 46 registers per thread on sm_80"]);
    }

    #[test]
    fn a_count_that_the_linker_confirms_or_lowers_is_silent() {
        assert!(told("not-final-registers", &linked(24)).is_empty());
        assert!(told("not-final-registers", &linked(20)).is_empty());
        assert!(told("not-final-registers", COMPILED).is_empty());
    }

    #[test]
    fn a_raise_within_what_a_thread_is_given_anyway_is_silent() {
        let within = linked(24).replace("Used 24 registers", "Used 18 registers");
        assert!(told("not-final-registers", &within).is_empty());
        let over = linked(25).replace("Used 24 registers", "Used 18 registers");
        assert_eq!(told("not-final-registers", &over).len(), 1);
    }

    #[test]
    fn separate_compilation_without_a_link_report_is_one_note() {
        // Properties before the first entry of a run: only separate compilation prints them so.
        let separate = COMPILED.replace(
            "ptxas info    : Compiling",
            "ptxas info    : Function properties for _Z8local_fnf
    24 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling",
        );
        let told = told("not-final-registers", &separate);
        assert_eq!(
            told,
            ["note: the register counts of `<stdin>` are from before the device link, which may raise them"]
        );
    }
}
