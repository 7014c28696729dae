//! What the rules on branches share: which branches one of them speaks of, one cause a line, and the words for lanes.

use hashbrown::HashMap;

use super::Context;
use super::limits::counted;
use crate::analyse::{BranchQuotes, Found};
use crate::finding::{Cause, Finding, Hit, Label, Level};
use crate::lanes::function::{Branch, lanes_in_words};
use crate::lanes::verdict::{Advice, Confidence, Judgement, Witness};
use crate::model::{BlockSize, Quote, percent, symbol};

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

/// Whether the branch only goes on with the comparisons of one that is told already.
pub(super) fn goes_on_from(found: &Found<'_>, is_told: impl Fn(&Branch) -> bool) -> bool {
    found.branch.chain.and_then(|root| found.beside.get(root as usize)).is_some_and(is_told)
}

/// What a branch's label says.
pub(super) enum Says {
    /// Which lanes of a warp go where.
    Lanes,
    /// This.
    Text(String),
}

/// A finding on a branch: where it stands, and what is known of it.
pub(super) fn finding(context: &Context<'_>, hit: &Hit, message: String, label: Says) -> Finding {
    let finding = Finding::new(message);
    let Some(found) = context.branch_of(hit) else { return finding };
    let branch = found.branch;
    let own = inlined_from(&found);
    // What jumps in the PTX may be what runs the side in the source, or what does not.
    let (label, in_ptx) = match label {
        Says::Lanes => (witness(branch, false), witness(branch, true)),
        Says::Text(text) => (text.clone(), text),
    };
    let quotes = context.quotes_of(hit);
    let column = found.locations.map_or(0, |locations| locations.outer.column as usize);
    let words = Words { source: label + &own, ptx: in_ptx, beside: "the branch in the PTX" };
    let mut finding = placed(context, finding, quotes, column, words);
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

/// What a finding says of its places.
pub(super) struct Words {
    /// At the line of the source.
    pub(super) source: String,
    /// At the line of the PTX, where that is all there is.
    pub(super) ptx: String,
    /// At the line of the PTX beside that of the source.
    pub(super) beside: &'static str,
}

/// The finding at its line of the source, where that is known, from `column` on, and at that of the PTX.
pub(super) fn placed(
    context: &Context<'_>,
    finding: Finding,
    quotes: Option<BranchQuotes>,
    column: usize,
    words: Words,
) -> Finding {
    let Some(quotes) = quotes else { return finding };
    let ptx = ptx_label(context, quotes.ptx, words.ptx);
    match quotes.source {
        Some(source) if source == quotes.ptx => {
            finding.label(Some(source_label(context, source, column, words.source)))
        }
        Some(source) => {
            let mut own = finding.label(Some(source_label(context, source, column, words.source)));
            own.ptx = Some(Label { text: words.beside.to_owned(), ..ptx });
            own
        }
        None => Finding { ptx: Some(ptx.clone()), ..finding.label(Some(ptx)) },
    }
}

/// `; inlined from util.cuh:10`, where the branch does not stand in the line that it is shown at.
fn inlined_from(found: &Found<'_>) -> String {
    let Some(locations) = found.locations.filter(|spots| spots.inner != spots.outer) else { return String::new() };
    let Some(path) = found.module.file(locations.inner.file) else { return String::new() };
    let name = path.iter().rposition(|byte| matches!(byte, b'/' | b'\\')).map_or(path, |at| &path[at + 1..]);
    format!("; inlined from {}:{}", symbol::printable(&String::from_utf8_lossy(name)), locations.inner.line)
}

/// The condition of the statement at `column`, from 1, with its keyword, else the statement to the end of the line's code.
/// Where no statement begins there, the only condition of the line, else the whole line.
fn source_label(context: &Context<'_>, quote: Quote, column: usize, text: String) -> Label {
    let line = context.text(quote);
    let code = memchr::memmem::find(line, b"//").filter(|at| *at >= column).unwrap_or(line.len());
    let end = line[..code].iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    let first = line.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let start = column.checked_sub(1).filter(|start| *start < end && begins_statement(line, *start));
    let start = start.or_else(|| only_condition(&line[..end])).unwrap_or(first.min(end));
    let end = condition(&line[start..end]).map_or(end, |length| start + length);
    Label { quote, lead: None, name: None, start, end, text }
}

/// Whether a statement may begin at a byte of a line. In lines with `__global__` and the like nvcc miscounts columns.
fn begins_statement(line: &[u8], start: usize) -> bool {
    let before = line[..start].trim_ascii_end();
    let is_first = before.is_empty() || matches!(before.last(), Some(b';' | b'{' | b'}' | b')' | b':'));
    is_first || before.ends_with(b"else") || before.ends_with(b"do")
}

/// Where the only statement with a condition begins; `None` where there are more of them, or none.
fn only_condition(line: &[u8]) -> Option<usize> {
    let mut starts = (0..line.len()).filter(|at| condition(&line[*at..]).is_some() && begins_statement(line, *at));
    starts.next().filter(|_| starts.next().is_none())
}

/// The bytes of `if (…)`, `for (…)` and the like that a statement begins with; `None` where it is none of them, or goes on in
/// the next line.
fn condition(statement: &[u8]) -> Option<usize> {
    let keywords: [&[u8]; 4] = [b"if", b"for", b"while", b"switch"];
    let keyword = keywords.into_iter().find(|keyword| statement.starts_with(keyword))?;
    let blanks = statement[keyword.len()..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let opens = keyword.len() + blanks;
    let mut depth = 0_usize;
    for (at, byte) in statement.iter().enumerate().skip(opens) {
        depth = match byte {
            b'(' => depth + 1,
            b')' => depth.checked_sub(1)?,
            _ => depth,
        };
        if depth == 0 {
            return (at > opens).then_some(at + 1);
        }
    }
    None
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

/// `256 threads`, `16×16 threads`: the block that a branch was looked at in.
pub(super) fn block(branch: &Branch) -> String {
    let shape = BlockSize { x: branch.shape.x, y: branch.shape.y, z: branch.shape.z };
    format!("{shape} threads")
}

/// `in warp 0 lanes 0–15 jump and 16–31 do not, in blocks of 256 threads`; of a source line, `go one way` and `the other`.
fn witness(branch: &Branch, is_ptx: bool) -> String {
    let block = block(branch);
    match branch.split.witness {
        Some(Witness { warp, .. }) if branch.ways > 2 => {
            format!("the lanes of warp {warp} go different ways, in blocks of {block}")
        }
        Some(witness) => {
            let (taken, others) = lanes_in_words(witness);
            let (jump, stay) = if is_ptx { ("jump", "do not") } else { ("go one way", "the other") };
            format!("in warp {} lanes {taken} {jump} and {others} {stay}, in blocks of {block}", witness.warp)
        }
        None => format!("whole warps go different ways, in blocks of {block}"),
    }
}

/// What a finding that is not sure depends on, to be put at the end of its message.
pub(super) fn proviso(found: &Found<'_>) -> String {
    let is_low = found.branch.judgement.is_some_and(|judgement| judgement.confidence == Confidence::Low);
    match (is_low, found.shapes.known) {
        (false, _) => String::new(),
        (true, false) => format!(", if its blocks are of {}", block(found.branch)),
        (true, true) => ", as far as values known only at run time make it so".to_owned(),
    }
}

/// The weights of a branch's sides, the one that is taken first.
pub(super) fn weights(branch: &Branch) -> (f64, f64) {
    branch.sides.map_or((0.0, 0.0), |(taken, other)| (taken.weight, other.weight))
}

/// `about 40 instructions`, of a weight.
pub(super) fn instructions(weight: f64) -> String {
    format!("about {}", counted(rounded(weight), "instruction"))
}

/// A weight without its fraction.
pub(super) fn rounded(weight: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to what fits")]
    let whole = weight.round().clamp(0.0, f64::from(u32::MAX)) as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::{begins_statement, condition, only_condition};

    #[test]
    fn a_column_in_the_middle_of_a_statement_is_none_of_its_beginning() {
        let line = b"__device__ float f(float x) { if (x > 0) x = 1; else x = g(x); return x; }";
        let at = |text: &[u8]| memchr::memmem::find(line, text).expect("it stands there");
        assert!(begins_statement(line, at(b"if")) && begins_statement(line, at(b"x = g")));
        assert!(begins_statement(line, at(b"return")) && begins_statement(b"    x = y;", 4));
        assert!(!begins_statement(line, at(b"float x")) && !begins_statement(line, at(b"> 0")));
    }

    #[test]
    fn a_line_with_one_condition_is_told_from_one_with_two() {
        assert_eq!(only_condition(b"float f(int x) { if (x) g(); return x; }"), Some(17));
        assert_eq!(only_condition(b"float f(int x) { if (x) g(); while (x) h(); }"), None);
        assert_eq!(only_condition(b"float f(int x) { return x ? 1 : 2; }"), None);
    }

    #[test]
    fn a_condition_ends_where_its_parenthesis_closes() {
        let of = |text: &'static str| condition(text.as_bytes()).map(|end| &text[..end]);
        assert_eq!(of("if ((t & 31) < 16) { x = f(x); }"), Some("if ((t & 31) < 16)"));
        assert_eq!(of("for(int k = 0; k < n; k++) x += k;"), Some("for(int k = 0; k < n; k++)"));
        assert_eq!(of("switch (t % 4) {"), Some("switch (t % 4)"));
    }

    #[test]
    fn a_statement_without_a_condition_in_its_line_has_none() {
        assert_eq!(condition(b"x = t & 1 ? f(x) : g(x);"), None);
        assert_eq!(condition(b"if (t < 16 &&"), None);
        assert_eq!(condition(b"if constexpr (N > 1) {"), None);
        assert_eq!(condition(b"format(x);"), None);
        assert_eq!(condition(b"while"), None);
    }
}
