//! `register-cap-overridden`: which of several limits on registers holds.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Cause, Finding, Hit};
use crate::model::MessageKind;

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// What ptxas says of its limits.
#[derive(Clone, Copy, PartialEq)]
enum Cap {
    /// The option holds for a kernel: its value.
    Option(u32),
    /// The kernel's launch bounds hold: the option's value and theirs.
    Bounds(u32, u32),
    /// The kernel's `.maxnreg` holds: likewise.
    Maxnreg(u32, u32),
    /// The option's value is under the least, which holds.
    TooSmall(u32, u32),
    /// The option's value is over the most and ignored.
    TooBig(u32),
    /// A text that is not known yet.
    Other,
}

impl Cap {
    fn of(said: &[u8]) -> Cap {
        let number = |lead| text::number_after(said, lead);
        let read = || {
            if let Some(value) = number("' with ").filter(|_| text::has(said, "of maxrregcount option")) {
                return Some(Cap::Option(value));
            }
            if let Some(own) = number("entry-specific value") {
                let option = number("global maxrregcount")?;
                let bounds = !text::has(said, "of .maxnreg");
                return Some(if bounds { Cap::Bounds(option, own) } else { Cap::Maxnreg(option, own) });
            }
            if let Some(least) = number("to lower bound of") {
                return Some(Cap::TooSmall(number("register count of")?, least));
            }
            number("maxrregcount value specified").map(Cap::TooBig)
        };
        read().unwrap_or(Cap::Other)
    }

    /// What sets one cause apart from another: one option holds for any number of kernels.
    fn cause(self) -> Cause {
        let (kind, value) = match self {
            Cap::Option(value) => (0, value),
            Cap::Bounds(_, value) => (1, value),
            Cap::Maxnreg(_, value) => (2, value),
            Cap::TooSmall(value, _) => (3, value),
            Cap::TooBig(value) => (4, value),
            Cap::Other => return Cause::Single,
        };
        Cause::Reason(kind << 16 | value.min(0xffff))
    }
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, message) in context.messages_of(|kind| kind == MessageKind::RegisterCap) {
        hits.push(Hit::message(at, 1).caused_by(Cap::of(context.raw(message)).cause()));
    }
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(message) = context.message_of(hit) else { return Finding::new("a limit of registers is overridden") };
    let said = context.raw(message);
    let (words, help) = match Cap::of(said) {
        Cap::Option(value) => (
            format!("-maxrregcount limits {} to {value} registers per thread", context.called(message.kernel)),
            "the option holds for every kernel of the file that has no bound of its own: __launch_bounds__ or __maxnreg__ at \
             the kernels that need a limit leaves the others free",
        ),
        Cap::Bounds(option, own) => (
            format!(
                "the __launch_bounds__ of a kernel allow {own} registers per thread, and -maxrregcount={option} gives way"
            ),
            "a kernel's own bounds win over the option; drop -maxrregcount if all kernels are to have bounds of their own",
        ),
        Cap::Maxnreg(option, own) => (
            format!(
                "the __maxnreg__ of a kernel sets {own} registers per thread, and -maxrregcount={option} gives way"
            ),
            "a kernel's own limit wins over the option; drop -maxrregcount if all kernels are to have limits of their own",
        ),
        Cap::TooSmall(value, least) => (
            format!(
                "-maxrregcount={value} is under the least that a thread must have, and {least} holds{}",
                profile(said)
            ),
            "calls need that many registers under the ABI: write the limit that you mean, and expect spills at this one",
        ),
        Cap::TooBig(value) => (
            format!("-maxrregcount={value} is more than a thread can have and is ignored"),
            "drop the option, or write a limit that the target has: it is a leftover, or meant for another architecture",
        ),
        Cap::Other => (context.said(message), "check -maxrregcount against the bounds of the kernels"),
    };
    Finding::new(words).help(help).label(Some(context.message_label(message, "the limit that holds")))
}

/// ` on sm_80`
fn profile(said: &[u8]) -> String {
    text::between(said, "For profile ", " ").map(|arch| format!(" on {}", text::worded(arch))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told;

    const RULE: &str = "register-cap-overridden";

    #[test]
    fn every_override_says_which_limit_holds() {
        for (line, words) in [
            (
                "info    : Overriding maximum register limit 256 for 'reg_hungry' with  32 of maxrregcount option",
                "-maxrregcount limits `reg_hungry` to 32 registers per thread",
            ),
            (
                "info    : Overriding global maxrregcount 32 with entry-specific value 64 computed using thread count",
                "the __launch_bounds__ of a kernel allow 64 registers per thread, and -maxrregcount=32 gives way",
            ),
            (
                "info    : Overriding global maxrregcount 64 with entry-specific value 32 of .maxnreg",
                "the __maxnreg__ of a kernel sets 32 registers per thread, and -maxrregcount=64 gives way",
            ),
            (
                "warning : For profile sm_80 adjusting per thread register count of 10 to lower bound of 24",
                "-maxrregcount=10 is under the least that a thread must have, and 24 holds on sm_80",
            ),
            (
                "warning : Too big maxrregcount value specified 999, will be ignored",
                "-maxrregcount=999 is more than a thread can have and is ignored",
            ),
        ] {
            assert_eq!(told(RULE, &format!("ptxas {line}\n")), [format!("note: {words}")]);
        }
    }

    #[test]
    fn equal_lines_are_one_note_with_a_count() {
        let log = "ptxas warning : Too big maxrregcount value specified 96, will be ignored\n".repeat(6);
        assert_eq!(
            told(RULE, &log),
            ["note: -maxrregcount=96 is more than a thread can have and is ignored (6 times)"]
        );
    }

    #[test]
    fn a_limit_that_nothing_overrides_is_no_finding() {
        let log = "ptxas info    : Compiling entry function 'k' for 'sm_80'\nptxas info    : Function properties for k\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 32 registers, 360 bytes cmem[0]\n";
        assert!(told(RULE, log).is_empty());
    }
}
