//! `unmatched-kernel-entry`: the configuration tells something of a kernel that the log does not have.

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit, Label, Subject};
use crate::model::{Kind, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    // A log without kernels, as of a build that had nothing to do, says nothing about names.
    if context.report.kernels.is_empty() {
        return;
    }
    hits.extend(context.numbers.unmatched.iter().map(|at| Hit::entry(*at)));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let entry = match hit.subject {
        Subject::Entry(at) => context.numbers.entries.get(at as usize),
        _ => None,
    };
    let Some(entry) = entry else {
        return Finding::new("an entry of the configuration matches no kernel");
    };
    let label = Label {
        quote: entry.quote,
        lead: None,
        name: None,
        start: entry.span.0,
        end: entry.span.1,
        text: "held against mangled, demangled and short names".to_owned(),
    };
    let glob = symbol::printable(&entry.glob);
    let sources = are_sources(context);
    let of = if sources { "sources" } else { "log" };
    Finding::new(format!("no kernel of the {of} matches `{glob}`"))
        .help(help(context, &entry.glob))
        .label(Some(label))
        .fact("name", entry.glob.clone())
}

/// Whether the run reads nothing but sources.
fn are_sources(context: &Context<'_>) -> bool {
    context.report.inputs.iter().all(|input| input.is_source)
}

/// The nearest name, where one is near.
fn help(context: &Context<'_>, glob: &str) -> String {
    let part =
        if are_sources(context) { "a part of the sources has its" } else { "a log of a part of the build has its" };
    let otherwise = format!("correct the name, or remove the entry if the kernel is gone; {part} kernels only");
    let entries = context.report.kernels.iter().filter(|kernel| kernel.kind == Kind::Entry);
    let names = entries.filter_map(|kernel| kernel.name).take(LOOKED_AT).collect::<hashbrown::HashSet<_>>();
    let mut names: Vec<String> = names.into_iter().map(|name| symbol::short(context.report.names.get(name))).collect();
    names.sort_unstable();
    let alike = |name: &String| strsim::jaro_winkler(name, glob);
    match names.into_iter().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|name| alike(name) > ALIKE) {
        Some(name) => format!("there is `{name}`; {otherwise}"),
        None => otherwise,
    }
}

/// Records whose names are compared with the glob, at most: each costs a demangling.
const LOOKED_AT: usize = 1000;

/// How alike a name must be to be offered, 0 to 1.
const ALIKE: f64 = 0.8;
