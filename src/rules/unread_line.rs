//! `unread-line`: figures that are in the log and could not be used.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Cause, Finding, Hit, Subject};
use crate::model::{Kernel, Message, MessageKind, Unread, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, message) in context.messages_of(|kind| matches!(kind, MessageKind::Unread(_))) {
        if let MessageKind::Unread(why) = message.kind {
            hits.push(Hit::message(at, 1).caused_by(Cause::Reason(why as u32)));
        }
    }
    if context.report.kernels.iter().any(|kernel| kernel.ambiguous) {
        hits.push(Hit::run(2));
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match context.message_of(hit) {
        Some(Message { kind: MessageKind::Unread(why), .. }) => of_line(context, hit, *why),
        _ if hit.subject == Subject::Run => of_interleaved(context),
        _ => Finding::new("a line could not be read"),
    }
}

/// Longest piece of a line in a message, in characters.
const PIECE: usize = 72;

const REPORT: &str = "please report the line, with the output of `nvcc --version`";

const ONE_JOB: &str = "where parallel jobs share the log, have each job's output written at once: `make --output-sync=line`, \
                       or ninja, which does so by itself";

fn of_line(context: &Context<'_>, hit: &Hit, why: Unread) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("a line could not be read") };
    let said = context.raw(message);
    let piece = format!("`{}`", symbol::cut_middle(&text::worded(said), PIECE));
    let (words, expected, help) = match why {
        Unread::Form => (
            format!("{piece} looks like figures and is of no known form"),
            "expected a number and its unit",
            format!("the figures of the kernel before it are incomplete; {REPORT}"),
        ),
        Unread::Item => (
            format!("{piece} holds a figure of an unknown kind"),
            "expected registers, barriers, stack, smem, lmem, cmem, textures, surfaces or samplers",
            format!("every other figure of the line is used; {REPORT}"),
        ),
        Unread::Number => (
            format!("{piece} holds a number that cannot be one of bytes"),
            "expected a number from 0 to 4294967295",
            "the frame and the spills of this kernel are unknown; look whether two lines ran into each other"
                .to_owned(),
        ),
        Unread::Cut => (
            format!("the log stops, or is torn, within {piece}"),
            "expected the rest of the record",
            format!("figures behind the cut are unknown, not zero: take the log once the build is over; {ONE_JOB}"),
        ),
        Unread::Nameless => (
            format!("{} belong to a kernel whose name is not in the log", figures_of(said)),
            "expected the kernel's name before it",
            // What a linker prints can only be joined to a kernel by its name.
            match said.starts_with(b"used ") {
                true => "the head of the log is missing: give the whole log; until then these figures are not used"
                    .to_owned(),
                false => {
                    "the head of the log is missing: give the whole log; until then the figures stand under no name"
                        .to_owned()
                }
            },
        ),
        Unread::NoFigures => (
            format!("{} is compiled and its figures are not in the log", context.called(message.kernel)),
            "expected its figures",
            format!("the log stops too early, or the compile failed; {ONE_JOB}"),
        ),
        Unread::NoFrame => (
            format!("the stack and the spills of {} are not in the log", of_properties(said)),
            "expected the line with its stack frame after it",
            "these are unknown, not zero: `grep ptxas` drops the line, which names no tool; give the whole log"
                .to_owned(),
        ),
        Unread::LongLine => (
            format!("a line of over 1 MiB is skipped, which begins {piece}"),
            "the line goes on for over 1 MiB",
            "whatever ran the compiler joined its lines: keep the line feeds".to_owned(),
        ),
        Unread::NotKept => (
            format!("no room is left for a message such as {piece}"),
            "from here on only errors are kept",
            "this report is not about everything in the log: give the logs of single jobs or files; that a build failed is \
             told all the same"
                .to_owned(),
        ),
    };
    Finding::new(words).help(help).label(Some(context.message_label(message, expected))).fact("reason", id(why))
}

/// The short name in a `Function properties` line.
fn of_properties(said: &[u8]) -> String {
    format!("`{}`", symbol::short(said.strip_prefix(b"Function properties for ").unwrap_or(said)))
}

fn figures_of(said: &[u8]) -> String {
    let registers = ["sed ", "REG:"].iter().find_map(|lead| text::number_after(said, lead));
    match registers {
        Some(registers) => format!("{registers} registers, and the figures with them,"),
        None => "figures".to_owned(),
    }
}

fn id(why: Unread) -> &'static str {
    match why {
        Unread::Form => "form",
        Unread::Item => "item",
        Unread::Number => "number",
        Unread::Cut => "cut",
        Unread::Nameless => "nameless",
        Unread::NoFigures => "no-figures",
        Unread::NoFrame => "no-frame",
        Unread::LongLine => "long-line",
        Unread::NotKept => "not-kept",
    }
}

fn of_interleaved(context: &Context<'_>) -> Finding {
    let kernels = context.report.kernels.iter().filter(|kernel| kernel.ambiguous).count();
    let them = if kernels == 1 { "1 kernel" } else { &*format!("{kernels} kernels") };
    let all = |what: fn(&Kernel) -> bool| context.report.kernels.iter().filter(|kernel| kernel.ambiguous).all(what);
    let what = if all(|kernel| !kernel.frame_ambiguous) { "registers and shared memory" } else { "figures" };
    Finding::new(format!("the {what} of {them} are mixed up with those of parallel jobs and judged by no rule"))
        .help(format!("lines of several compilers alternate, and figures name no kernel; {ONE_JOB}"))
        .fact("reason", "interleaved")
        .fact("kernels", kernels as u64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, told};

    const RULE: &str = "unread-line";
    const HEAD: &str = "ptxas info    : Compiling entry function '_Z4gemmPf' for 'sm_90'\nptxas info    : Function properties for _Z4gemmPf\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";

    #[test]
    fn a_line_of_an_unknown_form_is_told_with_what_was_expected() {
        let log = format!("{HEAD}ptxas info    : Used lots of registers\n");
        let told = told(RULE, &log);
        assert!(
            told.contains(&"note: `Used lots of registers` looks like figures and is of no known form".to_owned()),
            "{told:?}"
        );
        assert!(helps(RULE, &log).iter().any(|help| help.contains("nvcc --version")));
    }

    #[test]
    fn an_unknown_item_costs_no_other() {
        let log = format!("{HEAD}ptxas info    : Used 30 registers, 12 bytes tmem, 256 bytes smem\n");
        assert_eq!(
            told(RULE, &log),
            ["note: `Used 30 registers, 12 bytes tmem, 256 bytes smem` holds a figure of an unknown kind"]
        );
    }

    #[test]
    fn a_cut_log_is_said_to_be_cut() {
        assert_eq!(
            told(RULE, &format!("{HEAD}ptxas info    : Used 30 registers, 12 by")),
            ["note: the log stops, or is torn, within `Used 30 registers, 12 by`"]
        );
        assert_eq!(told(RULE, HEAD), ["note: `gemm` is compiled and its figures are not in the log"]);
    }

    #[test]
    fn spills_that_were_filtered_out_are_not_taken_for_none() {
        let grepped: String =
            HEAD.lines().filter(|line| line.contains("ptxas")).map(|line| format!("{line}\n")).collect();
        let used = "ptxas info    : Used 30 registers, used 0 barriers\n";
        let said = ["note: the stack and the spills of `gemm` are not in the log"];
        assert_eq!(told(RULE, &format!("{grepped}{used}")), said);
        assert_eq!(told(RULE, "ptxas info    : Function properties for _Z4gemmPf\n"), said);
        let gone = HEAD.replace("stack frame", "stack frme");
        assert_eq!(told(RULE, &format!("{gone}{used}")), said);
    }

    #[test]
    fn figures_without_a_name_are_said_to_be_kept() {
        let log = "    480 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 30 registers, 384 bytes cmem[0]\n";
        assert_eq!(
            told(RULE, log),
            ["note: 30 registers, and the figures with them, belong to a kernel whose name is not in the log"]
        );
        assert!(helps(RULE, log)[0].ends_with("stand under no name"));
        let linker = "nvlink info    : used 30 registers, 0 stack, 0 bytes smem, 0 bytes lmem\n";
        assert!(helps(RULE, linker)[0].ends_with("are not used"));
    }

    #[test]
    fn interleaved_kernels_are_one_note_and_nothing_else_is_said_of_them() {
        let log = "\
ptxas info    : Compiling entry function 'a' for 'sm_80'
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Function properties for a
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, 384 bytes cmem[0]
ptxas info    : Used 40 registers, 384 bytes cmem[0]
";
        assert_eq!(
            super::super::testing::lint(log, &[]),
            [
                "warning[register-spill] `a` spills 8 B of stores and 8 B of loads per thread on sm_80",
                "note[unread-line] the registers and shared memory of 2 kernels are mixed up with those of parallel jobs and judged by no rule"
            ]
        );
    }

    #[test]
    fn a_whole_log_is_silent() {
        assert!(told(RULE, &format!("{HEAD}ptxas info    : Used 30 registers, used 0 barriers\n")).is_empty());
    }
}
