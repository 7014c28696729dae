//! Arrays in the bodies of kernels: shared ones and local ones, their sizes, and whether they are indexed by what no
//! compiler knows.

use std::ops::Range;

use super::declare::{Declared, First, declaration};
use super::fold::Fold;
use super::lexer::Kind;
use super::value::{Term, size_of};
use crate::model::ArraySpace;

/// Arrays of a kernel that are told, at most.
const MOST: usize = 200;

/// Iterations of a loop that compilers unroll by themselves, at most.
const MOST_UNROLLED: i64 = 32;

/// An array as found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundArray {
    pub(super) name: Box<[u8]>,
    pub(super) space: ArraySpace,
    pub(super) bytes: Term,
    pub(super) line: u32,
    pub(super) is_indexed: bool,
}

/// The arrays of the body of a kernel.
pub(super) fn arrays(fold: &mut Fold<'_>, body: Range<usize>, line: impl Fn(usize) -> u32) -> Vec<FoundArray> {
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    let mut found = Vec::new();
    let mut declared = Vec::new();
    let mut at = body.start;
    let mut is_start = true;
    while at < body.end && declared.len() < MOST {
        let kind = code.kind(at);
        if is_start && kind == Kind::Word {
            for one in declaration(code, text, at, body.end).unwrap_or_default() {
                if one.is_shared || !one.dimensions.is_empty() && !one.is_const && !one.is_static && !one.is_extern {
                    declared.push(one);
                }
            }
        }
        is_start = matches!(kind, Kind::Semicolon | Kind::BraceOpen | Kind::BraceClose);
        at += 1;
    }
    let uses = Indices::of(fold, &declared, body);
    for (one, is_indexed) in declared.into_iter().zip(uses.0) {
        let name = code.text(one.name, text);
        let space = match (one.is_shared, one.is_extern) {
            (true, true) => ArraySpace::DynamicShared,
            (true, false) => ArraySpace::Shared,
            (false, _) => ArraySpace::Local,
        };
        let bytes = if space == ArraySpace::DynamicShared { Term::Unknown } else { bytes(fold, &one) };
        let line = line(code.tokens[one.name].start as usize);
        found.push(FoundArray { name: name.into(), space, bytes, line, is_indexed });
    }
    found
}

fn bytes(fold: &mut Fold<'_>, one: &Declared) -> Term {
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    let is_plain = one.written.clone().all(|at| code.kind(at) == Kind::Word)
        && code.kind(one.written.end) == Kind::Word
        && matches!(code.kind(one.name - 1), Kind::Word | Kind::Comma | Kind::ParenClose);
    let words = one.written.clone().map(|at| code.text(at, text));
    let words: Vec<&[u8]> = words.filter(|word| !matches!(*word, b"const" | b"volatile" | b"__shared__")).collect();
    let size = size_of(&words.join(&b' ')).filter(|_| is_plain);
    let Some(size) = size else { return Term::Unknown };
    let mut all = Term::Known(i64::from(size));
    for dimension in &one.dimensions {
        let dimension = if dimension.is_empty() { Term::Unknown } else { fold.number(dimension.clone()) };
        all = Term::binary(super::expr::Binary::Multiply, all, dimension);
    }
    all
}

/// Whether each array is indexed by what is no constant.
struct Indices(Vec<bool>);

impl Indices {
    fn of(fold: &mut Fold<'_>, declared: &[Declared], body: Range<usize>) -> Indices {
        let (code, text) = (fold.scopes.code, fold.scopes.text);
        let mut by_name: hashbrown::HashMap<&[u8], usize> = hashbrown::HashMap::new();
        for (index, one) in declared.iter().enumerate().filter(|(_, one)| !one.dimensions.is_empty()) {
            by_name.insert(code.text(one.name, text), index);
        }
        let mut found = vec![false; declared.len()];
        if by_name.is_empty() {
            return Indices(found);
        }
        let unrolled = unrolled(fold, body.clone());
        for at in body {
            if code.kind(at) != Kind::Word || code.kind(at + 1) != Kind::BracketOpen {
                continue;
            }
            let Some(index) = by_name.get(code.text(at, text)).copied() else { continue };
            if found[index] || declared[index].name == at {
                continue;
            }
            let mut open = at + 1;
            while code.kind(open) == Kind::BracketOpen {
                let Some(close) = code.partner(open).filter(|close| *close > open) else { break };
                found[index] |= varies(fold, open + 1..close, &unrolled);
                open = close + 1;
            }
        }
        Indices(found)
    }
}

/// Whether an index is no constant, when loops are unrolled.
fn varies(fold: &mut Fold<'_>, range: Range<usize>, unrolled: &[(usize, Range<usize>)]) -> bool {
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    for at in range {
        if code.kind(at) != Kind::Word {
            continue;
        }
        let word = code.text(at, text);
        let is_unrolled = unrolled.iter().any(|(name, within)| within.contains(&at) && code.text(*name, text) == word);
        if !is_unrolled && fold.may_vary(at) {
            return true;
        }
    }
    false
}

/// The variables of loops that are unrolled, and the tokens of those loops.
fn unrolled(fold: &mut Fold<'_>, body: Range<usize>) -> Vec<(usize, Range<usize>)> {
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    let mut found = Vec::new();
    for at in body.clone() {
        if code.text(at, text) != b"for" || code.kind(at + 1) != Kind::ParenOpen || found.len() >= MOST {
            continue;
        }
        let Some(close) = code.partner(at + 1).filter(|close| *close > at) else { continue };
        let Some(declared) = declaration(code, text, at + 2, close) else { continue };
        let [one] = &declared[..] else { continue };
        let end = match code.kind(close + 1) {
            Kind::BraceOpen => code.behind(close + 1),
            _ => (close + 1..body.end).find(|at| code.kind(*at) == Kind::Semicolon).unwrap_or(body.end),
        };
        if is_told_to_unroll(fold, at) || has_few_iterations(fold, one, close) {
            found.push((one.name, at..end));
        }
    }
    found
}

/// Whether a pragma before the loop, or a macro for one, asks to unroll it.
fn is_told_to_unroll(fold: &Fold<'_>, at: usize) -> bool {
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    let from = code.directives.partition_point(|directive| (directive.before as usize) < at);
    let before = code.directives[from..].iter().take_while(|directive| directive.before as usize == at);
    let mut before = before.map(|directive| directive.token.of(text));
    let is_unroll = |text: &[u8]| {
        let text = text.to_ascii_lowercase();
        memchr::memmem::find(&text, b"unroll").is_some() && !text.ends_with(b"unroll 1") && !text.ends_with(b"nounroll")
    };
    before.any(is_unroll)
        || at > 0 && code.kind(at - 1) == Kind::Word && is_unroll(code.text(at - 1, text))
        || at > 1
            && code.kind(at - 1) == Kind::ParenClose
            && (at.saturating_sub(4)..at).any(|at| is_unroll(code.text(at, text)))
}

/// Whether a loop runs from one constant to another one that is near.
fn has_few_iterations(fold: &mut Fold<'_>, one: &Declared, close: usize) -> bool {
    let code = fold.scopes.code;
    let First::Value(first) = one.first.clone() else { return false };
    let condition = first.end + 1;
    if code.kind(first.end) != Kind::Semicolon
        || code.kind(condition + 1) != Kind::Less && code.kind(condition + 1) != Kind::LessEqual
    {
        return false;
    }
    let Some(end) = (condition..close).find(|at| code.kind(*at) == Kind::Semicolon) else { return false };
    let (from, to) = (fold.number(first).known(), fold.number(condition + 2..end).known());
    matches!((from, to), (Some(from), Some(to)) if to.saturating_sub(from) <= MOST_UNROLLED)
}
