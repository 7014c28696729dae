//! What the rules on branches share: which branches one of them speaks of, one cause a line, and the words for lanes.

use hashbrown::HashMap;

use super::Context;
use super::limits::counted;
use crate::analyse::{BranchQuotes, Found};
use crate::finding::{Cause, Finding, Hit, Label, Level};
use crate::lanes::function::{Branch, lanes_in_words};
use crate::lanes::verdict::{Advice, Judgement, Witness};
use crate::model::{BlockSize, Quote, percent};

/// Leaves a hit on every branch that `weigh` gives a weight and a cap for. Branches of one source line are one cause.
pub(super) fn each(
    context: &Context<'_>,
    hits: &mut Vec<Hit>,
    weigh: impl Fn(&Found<'_>, Judgement) -> Option<(f64, Level)>,
) {
    let mut places: HashMap<(&[u8], u32), usize> = HashMap::new();
    for (at, found) in context.branches() {
        let Some((weight, cap)) = found.branch.judgement.and_then(|judgement| weigh(&found, judgement)) else {
            continue;
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a weight is small, and no less than 0"
        )]
        let hit = Hit::branch(at, (weight * 16.0).min(f64::from(u32::MAX)) as u32).at_most(cap);
        let place = found
            .locations
            .and_then(|locations| Some((found.module.file(locations.outer.file)?, locations.outer.line)));
        let cause = place.map_or(Cause::Single, |place| {
            let number = places.len();
            Cause::of_rule(*places.entry(place).or_insert(number))
        });
        hits.push(hit.caused_by(cause));
    }
}

/// The loudest that a finding with this advice may be.
pub(super) fn cap(judgement: Judgement) -> Option<Level> {
    match judgement.advice {
        Advice::Silent => None,
        Advice::Note => Some(Level::Note),
        Advice::Warn => Some(Level::Deny),
    }
}

/// Whether the branch is a part of a comparison of one value with constant after constant, or jumps through a table.
pub(super) fn is_dispatch(found: &Found<'_>) -> bool {
    found.branch.ways > 2 || ways_of_chain(found) > 3
}

/// The ways of the chain of comparisons that a branch belongs to; 2 for one on its own.
pub(super) fn ways_of_chain(found: &Found<'_>) -> usize {
    let own = found.beside.iter().position(|branch| branch.at == found.branch.at);
    let root = found.branch.chain.map_or(own, |root| Some(root as usize));
    let members = root.map_or(0, |root| found.beside.iter().filter(|one| is_member(one, root)).count());
    2 + members
}

fn is_member(branch: &Branch, root: usize) -> bool {
    branch.chain == u32::try_from(root).ok()
}

/// A finding on a branch: where it stands, and what is known of it.
pub(super) fn finding(context: &Context<'_>, hit: &Hit, message: String, label: String) -> Finding {
    let finding = Finding::new(message);
    let Some(found) = context.branch_of(hit) else { return finding };
    let branch = found.branch;
    let quotes = context.quotes_of(hit);
    let column = found.locations.map_or(0, |locations| locations.outer.column as usize);
    let mut finding = placed(context, finding, quotes, column, label, "the branch in the PTX");
    finding.confidence = branch.judgement.map(|judgement| judgement.confidence.name());
    let shape = BlockSize { x: branch.shape.x, y: branch.shape.y, z: branch.shape.z };
    let costs = branch.sides.map(|(taken, other)| (taken.weight, other.weight));
    finding
        .fact("verdict", branch.judgement.map(|judgement| judgement.verdict.name()))
        .fact("block", shape.to_string())
        .fact("split_share", branch.split.mean)
        .fact("taken_cost", costs.map(|(taken, _)| taken))
        .fact("fallthrough_cost", costs.map(|(_, other)| other))
}

/// The finding at its line of the source, where that is known, from `column` on, and at that of the PTX.
pub(super) fn placed(
    context: &Context<'_>,
    finding: Finding,
    quotes: Option<BranchQuotes>,
    column: usize,
    label: String,
    in_ptx: &str,
) -> Finding {
    let Some(quotes) = quotes else { return finding };
    let ptx = ptx_label(context, quotes.ptx, label.clone());
    match quotes.source {
        Some(source) => {
            let mut own = finding.label(Some(source_label(context, source, column, label)));
            own.ptx = Some(Label { text: in_ptx.to_owned(), ..ptx });
            own
        }
        None => Finding { ptx: Some(ptx.clone()), ..finding.label(Some(ptx)) },
    }
}

/// From the statement at `column`, from 1, to the end of the line's code; the whole line where the column is not in it.
fn source_label(context: &Context<'_>, quote: Quote, column: usize, text: String) -> Label {
    let line = context.text(quote);
    let code = memchr::memmem::find(line, b"//").filter(|at| *at >= column).unwrap_or(line.len());
    let end = line[..code].iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    let first = line.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let start = column.checked_sub(1).filter(|start| *start < end).unwrap_or(first.min(end));
    Label { quote, lead: None, name: None, start, end, text }
}

/// The statement of a line of PTX.
pub(super) fn ptx_label(context: &Context<'_>, quote: Quote, text: String) -> Label {
    let line = context.text(quote);
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let end = memchr::memchr(b';', line).map_or(line.len(), |at| at + 1).max(start);
    Label { quote, lead: None, name: None, start, end, text }
}

/// `every warp`, `38 % of the warps`
pub(super) fn share_of_warps(share: f64) -> String {
    if share >= 0.995 { "every warp".to_owned() } else { format!("{} of the warps", percent(share)) }
}

/// `lanes 0–15 take it and 16–31 do not, with 256 threads per block`, of one warp.
pub(super) fn witness(branch: &Branch) -> String {
    let shape = BlockSize { x: branch.shape.x, y: branch.shape.y, z: branch.shape.z };
    let block = format!("blocks of {shape} threads");
    match branch.split.witness {
        Some(Witness { warp, .. }) if branch.ways > 2 => {
            format!("the lanes of warp {warp} go different ways, in {block}")
        }
        Some(witness) => {
            let (taken, others) = lanes_in_words(witness);
            format!("in warp {} lanes {taken} jump and {others} do not, in {block}", witness.warp)
        }
        None => format!("looked at in {block}"),
    }
}

/// `40 instructions`, of a weight.
pub(super) fn instructions(weight: f64) -> String {
    counted(rounded(weight), "instruction")
}

/// A weight without its fraction.
pub(super) fn rounded(weight: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to what fits")]
    let whole = weight.round().clamp(0.0, f64::from(u32::MAX)) as u32;
    whole
}
