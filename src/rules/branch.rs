//! What the rules on branches share: which branches one of them speaks of, one cause a line, and the words for lanes.

use hashbrown::HashMap;

use super::Context;
use super::limits::counted;
use crate::analyse::{BranchQuotes, Found, InlinedQuote};
use crate::finding::{Cause, Finding, Hit, Label, Level};
use crate::lanes::branch::Branch;
use crate::lanes::module::Told;
use crate::lanes::split::Witness;
use crate::lanes::verdict::{Advice, Confidence, Judgement, Verdict};
use crate::model::{BlockSize, Quote, percent, symbol};

/// Leaves a hit on every branch that `weigh` gives a weight and a cap for. Branches of one source line are one cause.
pub(super) fn each(
    context: &Context<'_>,
    hits: &mut Vec<Hit>,
    weigh: impl Fn(&Found<'_>, Judgement) -> Option<(f64, Level)>,
) {
    let mut places: HashMap<(&[u8], u32), usize> = HashMap::new();
    for (at, found) in context.branches() {
        let is_of_block = |judgement: &Judgement| judgement.verdict == Verdict::BarrierInDivergent;
        let judgement = found.branch.judgement.filter(|one| is_of_block(one) || !context.is_hip(found.module.input));
        let Some((weight, cap)) = judgement.and_then(|judgement| weigh(&found, judgement)) else { continue };
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
    ways(found) > 3 || found.branch.ways > 2
}

/// The ways that a branch leads, together with the comparisons with constants that it is one of.
pub(super) fn ways(found: &Found<'_>) -> u32 {
    let root = found.branch.chain.and_then(|root| found.beside.get(root as usize)).unwrap_or(found.branch);
    root.dispatches.max(found.branch.ways)
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

/// What a finding on a branch says.
pub(super) struct Message {
    /// The beginning, which says what happens to whom, and stands alone where there is little room.
    pub(super) what: String,
    /// The rest, which says more.
    pub(super) more: String,
    /// What stands at the branch.
    pub(super) label: Says,
}

/// A finding on a branch: where it stands, and what is known of it. What it depends on, where it is not sure, comes first.
pub(super) fn finding(context: &Context<'_>, hit: &Hit, message: Message) -> Finding {
    let Message { what, more, label } = message;
    let Some(found) = context.branch_of(hit) else { return Finding::new(what + &more) };
    let what = condition_of(&found) + &what;
    let finding = Finding::new(format!("{what}{more}")).brief(what);
    let branch = found.branch;
    // What jumps in the PTX may be what runs the side in the source, or what does not.
    let (label, in_ptx) = match label {
        Says::Lanes => (witness(&found, false), witness(&found, true)),
        Says::Text(text) => (text.clone(), text),
    };
    let quotes = context.quotes_of(hit);
    let column = found.locations.map_or(0, |locations| locations.outer.column as usize);
    let words = Words { source: label, ptx: in_ptx, beside: "the branch in the PTX" };
    let mut finding = placed(context, finding, quotes, column, words);
    finding.confidence = branch.judgement.map(|judgement| judgement.confidence.name());
    let costs = branch.sides.map(|(taken, other)| (taken.weight, other.weight));
    finding
        .fact("verdict", branch.judgement.map(|judgement| judgement.verdict.name()))
        .fact("block", size(branch).to_string())
        .fact("block_assumed", u64::from(found.shapes.told != Told::Fully))
        .fact("split_share", branch.split.of_all())
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
            let is_shown = !context.text(source).is_empty();
            let mut own = finding.label(Some(source_label(context, source, column, words.source)));
            // Where the source is not found, the line of the PTX is what is shown.
            own.ptx = Some(if is_shown { Label { text: words.beside.to_owned(), ..ptx } } else { ptx });
            own.beside.extend(inlined(context, quotes));
            own
        }
        None => Finding { ptx: Some(ptx.clone()), ..finding.label(Some(ptx)) },
    }
}

/// The line that a branch really stands in, where that was inlined into the one that it is shown at.
fn inlined(context: &Context<'_>, quotes: BranchQuotes) -> Option<Label> {
    let InlinedQuote { quote, column, function } = quotes.inlined?;
    let name = function.map(|name| format!(" `{}`", symbol::short(context.report.texts.get(name))));
    let text = format!("inlined from{}", name.unwrap_or_default());
    Some(source_label(context, quote, column as usize, text))
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
    is_first || [&b"else"[..], b"do", b"*/"].iter().any(|end| before.ends_with(end))
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

/// `every warp of k splits here`, the ending of a further verb, and `its`; `38 % of the warps of k split here`, none, and
/// `their`. Where not all warps come to the branch, it is those that do: `every warp of k that gets here splits`.
pub(super) fn warps_split(found: &Found<'_>, name: &str) -> (String, &'static str, &'static str) {
    let split = &found.branch.split;
    let are_all = split.among >= 0.995;
    if varies(found) {
        return (format!("warps of {name} split here"), "", "their");
    }
    if split.mean >= 0.995 {
        let splits = if are_all { "splits here" } else { "that gets here splits" };
        return (format!("every warp of {name} {splits}"), "s", "its");
    }
    let splits = if are_all { "split here" } else { "that get here split" };
    // A mean over what was tried, such as the turns of a loop around it.
    let about = if split.is_fixed { "" } else { "about " };
    (format!("{about}{} of the warps of {name} {splits}", percent(split.mean)), "", "their")
}

/// `blocks of 256 threads`, or where not all of that is told, `assuming 256 threads per block (no bound found)`: the block that
/// a branch was looked at in.
pub(super) fn block(found: &Found<'_>) -> String {
    let size = size(found.branch);
    let ending = if size.threads() == 1 { "" } else { "s" };
    let why = match found.shapes.told {
        Told::Fully => return format!("blocks of {size} thread{ending}"),
        Told::Partly => "only a part found",
        Told::Perhaps => "from launches of it or of an overload",
        Told::Bound => "only a bound found",
        Told::Nothing => "no bound found",
    };
    format!("assuming {size} thread{ending} per block ({why})")
}

fn size(branch: &Branch) -> BlockSize {
    BlockSize { x: branch.shape.x, y: branch.shape.y, z: branch.shape.z }
}

/// `warp 0: lanes 0–15 jump, lanes 16–31 do not; blocks of 256 threads`; of a source line, `go one way` and `the other`.
fn witness(found: &Found<'_>, is_ptx: bool) -> String {
    let (branch, block) = (found.branch, block(found));
    let Some(witness) = branch.split.witness else {
        return format!("whole warps go different ways; {block}");
    };
    let warp = witness.warp;
    if branch.ways > 2 {
        return format!("the lanes of warp {warp} go different ways; {block}");
    }
    let ((taken, takes_one), (others, stays_one)) = lanes(witness);
    let ways = if is_ptx {
        let (jump, stay) = (if takes_one { "jumps" } else { "jump" }, if stays_one { "does" } else { "do" });
        format!("{taken} {jump}, {others} {stay} not")
    } else {
        let go = if takes_one { "goes" } else { "go" };
        format!("{taken} {go} one way, {others} the other")
    };
    format!("warp {warp}: {ways}; {block}")
}

/// `lanes 0–30` and `lane 31`, which of them is a single one: those that take the branch, and the others.
fn lanes(witness: Witness) -> ((String, bool), (String, bool)) {
    let (taken, others) = lanes_in_words(witness);
    let named = |lanes: String, which: u32| {
        let is_one = which.count_ones() == 1;
        (format!("{} {lanes}", if is_one { "lane" } else { "lanes" }), is_one)
    };
    (named(taken, witness.taken & witness.active), named(others, witness.active & !witness.taken))
}

/// What a finding that is not sure depends on, as the beginning of its message.
fn condition_of(found: &Found<'_>) -> String {
    // That data differ is a condition already.
    if found.branch.judgement.is_some_and(|judgement| judgement.verdict == Verdict::DivergentData) {
        return String::new();
    }
    if varies(found) {
        return "depending on run-time values, ".to_owned();
    }
    if is_unsure(found) { format!("if its blocks are {}, ", size(found.branch)) } else { String::new() }
}

fn is_unsure(found: &Found<'_>) -> bool {
    found.branch.judgement.is_some_and(|judgement| judgement.confidence == Confidence::Low)
}

/// Whether numbers that are known only at run time decide how many warps part: shares are then those of the numbers that
/// were tried, and tell nobody anything.
pub(super) fn varies(found: &Found<'_>) -> bool {
    is_unsure(found) && found.shapes.known
}

/// The weights of a branch's sides, the one that is taken first.
pub(super) fn weights(branch: &Branch) -> (f64, f64) {
    branch.sides.map_or((0.0, 0.0), |(taken, other)| (taken.weight, other.weight))
}

/// `about 40 instructions`, of a weight.
pub(super) fn instructions(weight: f64) -> String {
    format!("about {}", counted(estimated(weight), "instruction"))
}

/// A weight as messages give it. It is an estimate, of which from 100 on no more than two digits say anything.
pub(super) fn estimated(weight: f64) -> u32 {
    let unit = 10_f64.powf((weight.max(1.0).log10().floor() - 1.0).max(0.0));
    rounded((weight / unit).round() * unit)
}

/// A weight without its fraction.
pub(super) fn rounded(weight: f64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to what fits")]
    let whole = weight.round().clamp(0.0, f64::from(u32::MAX)) as u32;
    whole
}

/// The lanes of a witness in words: `lanes 0–15 take it and 16–31 do not`.
fn lanes_in_words(witness: Witness) -> (String, String) {
    (ranges(witness.taken & witness.active), ranges(witness.active & !witness.taken))
}

/// `0–15`, `0, 2, 4, …`, in lanes.
fn ranges(lanes: u32) -> String {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < 32 {
        if lanes >> at & 1 == 0 {
            at += 1;
            continue;
        }
        let length = (lanes >> at).trailing_ones();
        parts.push(match length {
            1 => at.to_string(),
            2 => format!("{at}, {}", at + 1),
            _ => format!("{at}–{}", at + length - 1),
        });
        at += length;
    }
    if parts.len() > 3 {
        // Two ranges show what three lanes do.
        let is_range = parts.iter().any(|part| part.contains('–'));
        parts.truncate(if is_range { 2 } else { 3 });
        parts.push("…".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Witness, begins_statement, condition, estimated, lanes, only_condition};

    #[test]
    fn a_column_in_the_middle_of_a_statement_is_none_of_its_beginning() {
        let line = b"__device__ float f(float x) { if (x > 0) x = 1; else x = g(x); return x; }";
        let at = |text: &[u8]| memchr::memmem::find(line, text).expect("it stands there");
        assert!(begins_statement(line, at(b"if")) && begins_statement(line, at(b"x = g")));
        assert!(begins_statement(line, at(b"return")) && begins_statement(b"    x = y;", 4));
        assert!(begins_statement(b"/* x */ if (x) y();", 8));
        assert!(!begins_statement(line, at(b"float x")) && !begins_statement(line, at(b"> 0")));
    }

    #[test]
    fn an_estimate_has_two_digits_from_100_on() {
        let all = [0.4, 1.5, 99.4, 99.6, 100.0, 108.5, 144.0, 996.0, 1228.0, 22_209.0];
        assert_eq!(all.map(estimated), [0, 2, 99, 100, 100, 110, 140, 1000, 1200, 22_000]);
    }

    #[test]
    fn one_lane_is_in_the_singular() {
        let words = |active: u32, taken: u32| {
            let ((taken, _), (others, _)) = lanes(Witness { warp: 0, active, taken });
            (taken, others)
        };
        assert_eq!(words(u32::MAX, 1 << 31), ("lane 31".to_owned(), "lanes 0–30".to_owned()));
        assert_eq!(words(0b111, 0b110), ("lanes 1, 2".to_owned(), "lane 0".to_owned()));
    }

    #[test]
    fn a_line_with_one_condition_is_told_from_one_with_two() {
        assert_eq!(only_condition(b"float f(int x) { if (x) g(); return x; }"), Some(17));
        assert_eq!(only_condition(b"float f(int x) { if (x) g(); while (x) h(); }"), None);
        assert_eq!(only_condition(b"float f(int x) { return x ? 1 : 2; }"), None);
        assert_eq!(only_condition(b"/* a */ if (x) { for (;;) g(); }"), None);
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
