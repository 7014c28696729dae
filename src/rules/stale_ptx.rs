//! `stale-ptx`: PTX that does not fit the source that was given with it.

use serde::Deserialize;

use super::Context;
use crate::finding::{Finding, Hit};
use crate::model::{Place, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    // One file that is old says enough: the others were compiled with it.
    let worst = context.numbers.stale.iter().max_by_key(|stale| stale.failed);
    hits.extend(worst.map(|stale| Hit::input(stale.ptx as usize, stale.failed)));
}

pub(super) fn tell(context: &Context<'_>, _: &Options, _: &Hit) -> Finding {
    let Some(stale) = context.numbers.stale.iter().max_by_key(|stale| stale.failed) else {
        return Finding::new("PTX does not fit its source");
    };
    let name = |input: u32| {
        let path = context.report.file_of(Place { input, ..Place::default() });
        symbol::printable(path.rsplit(['/', '\\']).next().unwrap_or(path)).into_owned()
    };
    let message = format!(
        "`{}` does not fit `{}`: {} of {} lines that it has branches for hold nothing that branches",
        name(stale.ptx),
        name(stale.source),
        stale.failed,
        stale.lines
    );
    let help = "compile the source anew, so that lines and verdicts are those of the code as it is; or give only one of the two";
    Finding::new(message).help(help).fact("lines", stale.lines).fact("lines_without_branches", stale.failed)
}
