//! `allow-without-reason`: a comment or an entry of the configuration allows a rule and does not say why.

use serde::Deserialize;

use super::limits::and;
use super::{Context, unused_allow};
use crate::analyse::Entry;
use crate::finding::{Finding, Hit, Subject};
use crate::model::symbol;
use crate::suppress::{Remark, Scope, What};

/// The rule has no options: `require-reason` of the configuration asks for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    let numbers = context.numbers;
    if !numbers.requires_reason {
        return;
    }
    let mut last = None;
    let placed = context.placed_sources();
    let is_asked = |remark: &Remark| is_bare(remark) && remark.is_of_run(&placed);
    for (at, remark) in numbers.remarks.iter().enumerate().filter(|(_, remark)| is_asked(remark)) {
        // A comment that allows several rules wants one reason.
        if last.replace(remark.quote.place) != Some(remark.quote.place) {
            hits.push(Hit::remark(at));
        }
    }
    let is_bare = |entry: &Entry| entry.allowed.is_some_and(|allowed| !allowed.has_reason);
    let entries = numbers.entries.iter().enumerate().filter(|(_, entry)| is_bare(entry));
    hits.extend(entries.map(|(at, _)| Hit::entry(at)));
}

/// Whether a comment allows something for what the run is about, and does not say why.
fn is_bare(remark: &Remark) -> bool {
    matches!(remark.what, What::Allow { .. }) && remark.reason.is_none() && remark.scope != Scope::Nothing
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    match (hit.subject, context.remark_of(hit), context.entry_of(hit)) {
        (Subject::Remark(at), Some(remark), _) => of_comment(context, at as usize, remark),
        (_, _, Some(entry)) => of_entry(context, entry),
        _ => Finding::new("a rule is allowed without a reason"),
    }
}

/// Names that a message holds.
const MOST: usize = 5;

fn of_comment(context: &Context<'_>, at: usize, remark: &Remark) -> Finding {
    let name = |other: &Remark| match &other.what {
        What::Allow { name, .. } if is_bare(other) => Some(format!("`{}`", unused_allow::shown(name))),
        _ => None,
    };
    // What one comment says follows each other.
    let rest = context.numbers.remarks.get(at..).unwrap_or_default();
    let same = rest.iter().take_while(|other| other.quote.place == remark.quote.place);
    let names: Vec<String> = same.filter_map(name).take(MOST).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let place = unused_allow::place(context, remark);
    let example = names.join(", ").replace('`', "");
    let label = context.span_label(remark.quote, remark.span, "why?");
    let mut finding = Finding::new(format!("{} {are} allowed {place} without a reason", and(&names)))
        .help(format!("say why behind the brackets, in the same comment: `warplint: allow({example}) …`"))
        .label(Some(label))
        .mark(names.join(" "))
        .fact("allowed", names.join(", ").replace('`', ""));
    finding.kernel = unused_allow::kernel_of(context, remark);
    finding
}

fn of_entry(context: &Context<'_>, entry: &Entry) -> Finding {
    let label = entry.allowed.map(|allowed| context.span_label(allowed.quote, allowed.span, "why?"));
    let glob = symbol::printable(&entry.glob);
    Finding::new(format!("the [[kernel]] entry of `{glob}` allows rules without a reason"))
        .help("say why in the entry: `reason = \"…\"`")
        .label(label)
        .fact("name", entry.glob.clone())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PARTING, divergent, told_with};

    fn told(ptx: &str, config: &str) -> Vec<String> {
        told_with(config, "allow-without-reason", ptx, &[])
    }

    const ASKED: &str = "require-reason = true\n";

    #[test]
    fn nothing_is_asked_for_unless_the_configuration_asks() {
        let ptx = divergent("// warplint: allow(divergence)\n", "", PARTING);
        assert!(told(&ptx, "").is_empty());
        assert!(told(&ptx, "require-reason = false\n[rules]\nallow-without-reason = \"deny\"\n").is_empty());
        assert_eq!(told(&ptx, ASKED), ["warn: `divergence` is allowed for `k` without a reason"]);
        let louder = format!("{ASKED}[rules]\nallow-without-reason = \"deny\"\n");
        assert_eq!(told(&ptx, &louder), ["deny: `divergence` is allowed for `k` without a reason"]);
    }

    #[test]
    fn a_comment_of_several_rules_wants_one_reason_and_one_with_a_reason_none() {
        let with = |words: &str| divergent(&format!("// warplint: {words}\n"), "", PARTING);
        assert_eq!(
            told(&with("allow(divergence, spills)"), ASKED),
            ["warn: `divergence` and `spills` are allowed for `k` without a reason"]
        );
        let file = "warn: `divergence` is allowed in this file without a reason";
        assert_eq!(told(&with("allow-file(divergence)"), ASKED), [file]);
        for words in ["allow(divergence): both are short", "block=32", "allow(divergence, allow-without-reason)"] {
            assert!(told(&with(words), ASKED).is_empty(), "{words}");
        }
    }

    #[test]
    fn an_entry_that_allows_something_wants_a_reason_that_is_not_blank() {
        let ptx = divergent("", "", "");
        let told = |more: &str| told(&ptx, &format!("{ASKED}[[kernel]]\nname = \"k*\"\n{more}\n"));
        let bare = ["warn: the [[kernel]] entry of `k*` allows rules without a reason"];
        assert_eq!(told("allow = [\"spills\"]"), bare);
        assert_eq!(told("allow = [\"spills\"]\nreason = \"  \""), bare);
        assert!(told("allow = [\"spills\"]\nreason = \"it is cold\"").is_empty());
        assert!(told("allow = []\nblock = 32").is_empty());
    }
}
