//! Where kernels are launched, by `<<<…>>>` or by a call, and with what; by tokens, without any value.

use std::ops::Range;

use super::code::Code;
use super::heads::is_upper;
use super::lexer::{Kind, closes_launch};
use crate::model::LaunchForm;

/// Tokens of the template arguments of a call, at most.
const LONGEST: usize = 2000;

/// A launch. Everything is given by tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launch {
    /// The kernel.
    pub callee: Callee,
    /// How it is written.
    pub form: LaunchForm,
    /// Where it stands: what is launched, or the call.
    pub at: Range<usize>,
    /// What it is given.
    pub config: Config,
    /// The arguments of the kernel, where they stand there.
    pub passed: Option<Range<usize>>,
}

/// What is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee {
    /// A name, and what stands between the angles behind it.
    Name(Range<usize>, Option<Range<usize>>),
    /// What is no name: an element, a member, a call.
    Other,
}

/// How grid, block and memory are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Config {
    /// One expression each.
    Values {
        /// Blocks.
        grid: Range<usize>,
        /// Threads.
        block: Range<usize>,
        /// Dynamic shared memory; absent where it is left out, and zero.
        shared: Option<Range<usize>>,
    },
    /// Three numbers each, as the driver's interface has them.
    Numbers {
        /// Blocks.
        grid: [Range<usize>; 3],
        /// Threads.
        block: [Range<usize>; 3],
        /// Dynamic shared memory.
        shared: Range<usize>,
    },
    /// A structure, of which this is the expression.
    Structure(Range<usize>),
}

/// The launch that `<<<` at `at` opens, if it is one.
pub(super) fn chevrons(code: &Code, text: &[u8], at: usize, in_macro: bool) -> Option<Launch> {
    let before = at.checked_sub(1)?;
    if !matches!(code.kind(before), Kind::Word | Kind::Greater | Kind::ParenClose | Kind::BracketClose) {
        return None;
    }
    let (mut parts, close) = arguments(code, at, true).or_else(|| arguments(code, at, false))?;
    if parts.len() < 2 || parts.len() > 4 || parts.iter().any(Range::is_empty) {
        return None;
    }
    // In parentheses, a macro may have what the kernel is given.
    if !matches!(code.kind(close + 3), Kind::ParenOpen | Kind::ParenClose) && !in_macro {
        return None;
    }
    let shared = if parts.len() > 2 { Some(parts.swap_remove(2)) } else { None };
    let (block, grid) = (parts.swap_remove(1), parts.swap_remove(0));
    let (callee, start) = callee_before(code, text, at);
    let config = Config::Values { grid, block, shared };
    let passed = code.partner(close + 3).filter(|_| code.kind(close + 3) == Kind::ParenOpen).map(|end| close + 4..end);
    Some(Launch { callee, form: LaunchForm::Chevrons, at: start..at, config, passed })
}

/// What stands between `<<<` and `>>>`, split at commas, and the first `>`. A `<` opens a list of template arguments, or
/// where that leads nowhere, compares.
fn arguments(code: &Code, at: usize, has_angles: bool) -> Option<(Vec<Range<usize>>, usize)> {
    let mut parts = Vec::new();
    let mut start = at + 1;
    let mut here = start;
    let mut angles = 0_usize;
    // The next `<<<` ends it as well, so that no token is looked at for more than one of them.
    while here < code.tokens.len() {
        match code.kind(here) {
            Kind::Less if has_angles && code.kind(here - 1) == Kind::Word => angles += 1,
            Kind::Greater if angles > 0 => angles -= 1,
            Kind::Greater if closes_launch(&code.tokens, here) => {
                parts.push(start..here);
                return Some((parts, here));
            }
            Kind::Comma if angles == 0 => {
                parts.push(start..here);
                start = here + 1;
            }
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => {
                here = code.partner(here).filter(|partner| *partner > here)?;
            }
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose | Kind::Semicolon | Kind::Launch => return None,
            _ => {}
        }
        here += 1;
    }
    None
}

/// What stands before `<<<` at `at`, and its first token.
fn callee_before(code: &Code, text: &[u8], at: usize) -> (Callee, usize) {
    let last = at - 1;
    if code.kind(last) == Kind::ParenClose {
        let Some(open) = code.partner(last).filter(|open| *open < last) else { return (Callee::Other, last) };
        let is_call = open > 0
            && matches!(code.kind(open - 1), Kind::Word | Kind::Greater | Kind::ParenClose | Kind::BracketClose);
        if is_call && !matches!(code.text(open - 1, text), b"else" | b"do" | b"return") {
            return (Callee::Other, if code.kind(open - 1) == Kind::Word { open - 1 } else { open });
        }
        return (named(code, text, open + 1..last).unwrap_or(Callee::Other), open);
    }
    if code.kind(last) == Kind::BracketClose {
        let open = code.partner(last).filter(|open| *open < last);
        return (Callee::Other, open.map_or(last, |open| open.saturating_sub(1)));
    }
    let (name, arguments) = match code.kind(last) {
        Kind::Greater => match code.open_angle(last) {
            Some(open) if open > 0 && code.kind(open - 1) == Kind::Word => (open - 1, Some(open + 1..last)),
            _ => return (Callee::Other, last),
        },
        _ => (last, None),
    };
    let start = qualified(code, text, name);
    if start > 0 && matches!(code.kind(start - 1), Kind::Dot | Kind::Arrow) {
        return (Callee::Other, start);
    }
    (Callee::Name(start..name + 1, arguments), start)
}

/// The first token of the qualified name whose last word stands at `at`.
fn qualified(code: &Code, text: &[u8], at: usize) -> usize {
    let mut start = at;
    loop {
        let Some(before) = start.checked_sub(1) else { return start };
        // `A::template k<T>`
        if code.text(before, text) == b"template" && before > 0 && code.kind(before - 1) == Kind::Scope {
            start = before;
            continue;
        }
        if code.kind(before) != Kind::Scope {
            return start;
        }
        start = match before.checked_sub(1).map(|last| (last, code.kind(last))) {
            Some((last, Kind::Word)) if !matches!(code.text(last, text), b"return" | b"else" | b"do") => last,
            Some((last, Kind::Greater)) => match code.open_angle(last) {
                Some(open) if open > 0 && code.kind(open - 1) == Kind::Word => open - 1,
                _ => return before,
            },
            _ => return before,
        };
    }
}

/// The name of a kernel that these tokens are, and its template arguments.
pub(super) fn name_of(code: &Code, text: &[u8], range: Range<usize>) -> Option<(Range<usize>, Option<Range<usize>>)> {
    match named(code, text, range)? {
        Callee::Name(name, arguments) => Some((name, arguments)),
        Callee::Other => None,
    }
}

/// The tokens as the name of a kernel: `k`, `&k`, `(void*)k<int>`, `reinterpret_cast<void*>(k)`.
fn named(code: &Code, text: &[u8], range: Range<usize>) -> Option<Callee> {
    let mut range = range;
    loop {
        match code.kind(range.start) {
            _ if range.is_empty() => return None,
            Kind::And => range.start += 1,
            Kind::ParenOpen if code.partner(range.start) == Some(range.end - 1) => {
                range = range.start + 1..range.end - 1
            }
            // A cast.
            Kind::ParenOpen => range.start = code.partner(range.start).filter(|close| *close < range.end)? + 1,
            Kind::Word
                if matches!(code.text(range.start, text), b"reinterpret_cast" | b"static_cast" | b"const_cast") =>
            {
                range.start = code.close_angle(range.start + 1, range.end)? + 1;
            }
            _ => break,
        }
    }
    let last = range.end - 1;
    let (name, arguments) = match code.kind(last) {
        Kind::Greater => {
            let open = code.open_angle(last).filter(|open| *open > range.start)?;
            (open - 1, Some(open + 1..last))
        }
        _ => (last, None),
    };
    (code.kind(name) == Kind::Word && qualified(code, text, name) == range.start)
        .then_some(Callee::Name(range.start..name + 1, arguments))
}

/// The launch that the call of the word at `at` is, if it is one.
pub(super) fn call(code: &Code, text: &[u8], at: usize) -> Option<Launch> {
    let word = code.text(at, text);
    let open = match code.kind(at + 1) {
        Kind::Less => code.close_angle(at + 1, at + LONGEST)? + 1,
        _ => at + 1,
    };
    if code.kind(open) != Kind::ParenOpen {
        return None;
    }
    let close = code.partner(open).filter(|close| *close > open)?;
    // A declaration of the function itself, not a call.
    let is_declared = at > 0 && matches!(code.kind(at - 1), Kind::Word | Kind::Star | Kind::And | Kind::Greater);
    if is_declared
        && !matches!(code.text(at - 1, text), b"return" | b"else" | b"do")
        && !is_upper(code.text(at - 1, text))
    {
        return None;
    }
    let parts = split(code, open + 1..close);
    let declares = |part: &Range<usize>| {
        part.len() > 1 && code.kind(part.end - 2) == Kind::Word && code.kind(part.end - 1) == Kind::Word
    };
    if parts.iter().any(declares) {
        return None;
    }
    let part = |index: usize| parts.get(index).cloned();
    let values = |grid: usize, block: usize, shared: usize| {
        Some(Config::Values { grid: part(grid)?, block: part(block)?, shared: Some(part(shared)?) })
    };
    // From the argument with this number on.
    let rest = |first: usize| Some(part(first).map_or(close, |first| first.start)..close);
    let (kernel, config, passed) = match word {
        b"cudaLaunchKernel" | b"hipLaunchKernel" | b"cudaLaunchCooperativeKernel" | b"hipLaunchCooperativeKernel" => {
            let shared = part(4);
            (part(0)?, Config::Values { grid: part(1)?, block: part(2)?, shared }, None)
        }
        b"hipLaunchKernelGGL" => (part(0)?, values(1, 2, 3)?, rest(5)),
        b"cudaLaunchKernelEx" => (part(1)?, Config::Structure(part(0)?), rest(2)),
        b"cudaLaunchKernelExC" | b"hipLaunchKernelExC" => (part(1)?, Config::Structure(part(0)?), None),
        b"cuLaunchKernel" | b"cuLaunchCooperativeKernel" | b"hipModuleLaunchKernel" => {
            let grid = [part(1)?, part(2)?, part(3)?];
            let block = [part(4)?, part(5)?, part(6)?];
            (0..0, Config::Numbers { grid, block, shared: part(7)? }, None)
        }
        b"triple_chevron" => return thrust(code, text, at, open, parts),
        _ => return None,
    };
    let callee = if kernel.is_empty() { None } else { named(code, text, kernel) };
    Some(Launch { callee: callee.unwrap_or(Callee::Other), form: LaunchForm::Call, at: at..close + 1, config, passed })
}

/// `triple_chevron(grid, block, shared, stream).doit(kernel, …)`
fn thrust(code: &Code, text: &[u8], at: usize, open: usize, parts: Vec<Range<usize>>) -> Option<Launch> {
    let mut parts = parts.into_iter();
    let (grid, block, shared) = (parts.next()?, parts.next()?, parts.next());
    let behind = code.behind(open);
    let does = code.kind(behind) == Kind::Dot
        && code.text(behind + 1, text) == b"doit"
        && code.kind(behind + 2) == Kind::ParenOpen;
    if !does {
        return None;
    }
    let close = code.partner(behind + 2).filter(|close| *close > behind)?;
    let mut parts = split(code, behind + 3..close).into_iter();
    let kernel = parts.next();
    let passed = Some(parts.next().map_or(close, |first| first.start)..close);
    let callee = kernel.and_then(|kernel| named(code, text, kernel)).unwrap_or(Callee::Other);
    let config = Config::Values { grid, block, shared };
    Some(Launch { callee, form: LaunchForm::Call, at: at..close + 1, config, passed })
}

/// Tokens split at their commas, those within brackets and template arguments apart.
pub(super) fn split(code: &Code, range: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = range.start;
    let mut here = range.start;
    // A `<` that opens no list is not asked again whether the next one does: it is part of the same comparison.
    let mut has_angles = true;
    while here < range.end {
        match code.kind(here) {
            Kind::Comma => {
                parts.push(start..here);
                start = here + 1;
                has_angles = true;
            }
            Kind::Less if has_angles && here > range.start && code.kind(here - 1) == Kind::Word => {
                match code.close_angle(here, range.end) {
                    Some(close) => here = close,
                    None => has_angles = false,
                }
            }
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => {
                here = code.partner(here).filter(|partner| *partner > here && *partner < range.end).unwrap_or(here);
            }
            _ => {}
        }
        here += 1;
    }
    if start < range.end {
        parts.push(start..range.end);
    }
    parts
}
