//! `unmatched-kernel-entry`: the configuration tells something of a kernel that the log does not have.

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit};
use crate::model::{Kernel, Kind, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    // A log without kernels, as of a build that had nothing to do, says nothing about names; nor do the sources and the PTX
    // that someone named: others may have the kernel.
    if !context.report.kernels.iter().any(Kernel::is_in_log) {
        return;
    }
    hits.extend(context.numbers.unmatched.iter().map(|at| Hit::entry(*at)));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Some(entry) = context.entry_of(hit) else {
        return Finding::new("an entry of the configuration matches no kernel of the log");
    };
    let label = context.span_label(entry.quote, entry.span, "held against mangled, demangled and short names");
    let glob = symbol::printable(&entry.glob);
    Finding::new(format!("no kernel of the log matches `{glob}`"))
        .help(help(context, &entry.glob))
        .label(Some(label))
        .fact("name", entry.glob.clone())
}

/// The nearest name, where one is near.
fn help(context: &Context<'_>, glob: &str) -> String {
    const ELSE: &str = "correct the name, or remove the entry if the kernel is gone; a log of a part of the build has \
                        its kernels only";
    let entries = context.report.kernels.iter().filter(|kernel| kernel.kind == Kind::Entry);
    let names = entries.filter_map(|kernel| kernel.name).take(LOOKED_AT).collect::<hashbrown::HashSet<_>>();
    let mut names: Vec<String> = names.into_iter().map(|name| symbol::short(context.report.names.get(name))).collect();
    names.sort_unstable();
    let alike = |name: &String| strsim::jaro_winkler(name, glob);
    match names.into_iter().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|name| alike(name) > ALIKE) {
        Some(name) => format!("there is `{name}`; {ELSE}"),
        None => ELSE.to_owned(),
    }
}

/// Records whose names are compared with the glob, at most: each costs a demangling.
const LOOKED_AT: usize = 1000;

/// How alike a name must be to be offered, 0 to 1.
const ALIKE: f64 = 0.8;
