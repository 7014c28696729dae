//! What `#if` and the like do to the tokens between them.

use std::ops::Range;

use super::conditions::{Conditions, Reader};
use super::lexer::{Kind, Token};

/// What a directive does to statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    /// `#if`, and whether its condition is a number.
    If(Option<bool>),
    /// `#elif`
    ElseIf,
    /// `#else`
    Else,
    /// `#endif`
    End,
    /// Any other.
    Other,
}

/// What a directive is, by its text.
pub(super) fn directive(text: &[u8]) -> Directive {
    let rest = text.strip_prefix(b"#").unwrap_or(text).trim_ascii_start();
    let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
    match &rest[..length] {
        b"if" => Directive::If(match rest[length..].trim_ascii() {
            b"0" => Some(false),
            b"1" => Some(true),
            _ => None,
        }),
        b"ifdef" | b"ifndef" => Directive::If(None),
        b"elif" | b"elifdef" | b"elifndef" => Directive::ElseIf,
        b"else" => Directive::Else,
        b"endif" => Directive::End,
        _ => Directive::Other,
    }
}

/// Takes out what no compiler of device code reads, so that it tears no brackets apart; and the `#if` itself, where no
/// condition is left.
pub(super) fn leave_out_dead(text: &[u8], tokens: &mut Vec<Token>, conditions: &Conditions) {
    let says = |at: usize| conditions.says(tokens[at].of(text), Reader::Device);
    let kinds: Vec<(usize, Directive, Option<bool>)> = (0..tokens.len())
        .filter(|at| tokens[*at].kind == Kind::Directive)
        .map(|at| (at, directive(tokens[at].of(text)), says(at)))
        .filter(|(_, kind, _)| *kind != Directive::Other)
        .collect();
    if kinds.iter().all(|(_, _, says)| says.is_none()) {
        return;
    }
    let mut dead: Vec<Range<usize>> = Vec::new();
    let mut open: Vec<Decided> = Vec::new();
    for (at, kind, known) in kinds {
        if let Directive::If(_) = kind {
            open.push(Decided { known, from: at, own: vec![at], is_met: false, is_decided: known.is_some() });
            continue;
        }
        let Some(one) = open.last_mut() else { return };
        // The branch that ends here.
        if one.known == Some(false) {
            dead.push(one.from + 1..at);
        }
        one.own.push(at);
        one.from = at;
        one.is_met |= one.known == Some(true);
        one.is_decided &= kind != Directive::ElseIf || one.is_met || known.is_some();
        // After the branch that is compiled, none is.
        one.known = match kind {
            _ if one.is_met => Some(false),
            Directive::Else if one.is_decided => Some(true),
            Directive::ElseIf => known,
            _ => None,
        };
        if kind == Directive::End
            && let Some(one) = open.pop()
            && one.is_decided
        {
            dead.extend(one.own.into_iter().map(|at| at..at + 1));
        }
    }
    if !open.is_empty() {
        return;
    }
    let mut is_dead = vec![false; tokens.len()];
    // One within another is no longer than it.
    dead.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut behind = 0;
    for range in dead {
        is_dead[range.start.max(behind)..range.end.max(behind)].fill(true);
        behind = behind.max(range.end);
    }
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        !is_dead[at - 1]
    });
}

/// The bytes under conditions that are not known and of which something else is read where they do not hold.
pub(super) fn alternatives(text: &[u8], conditions: &Conditions) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    super::lexer::tokens(text, 0, text.len(), &mut tokens);
    leave_out_dead(text, &mut tokens, conditions);
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut found: Vec<Range<usize>> = Vec::new();
    for token in tokens.iter().filter(|token| token.kind == Kind::Directive) {
        match directive(token.of(text)) {
            Directive::If(_) => open.push((token.start as usize, false)),
            Directive::ElseIf | Directive::Else => {
                if let Some((_, has_other)) = open.last_mut() {
                    *has_other = true;
                }
            }
            Directive::End => {
                if let Some((start, true)) = open.pop() {
                    // What is within is of this one.
                    found.truncate(found.partition_point(|inner| inner.start < start));
                    found.push(start..token.end as usize);
                }
            }
            Directive::Other => {}
        }
    }
    found
}

/// An `#if` that is open.
struct Decided {
    /// Whether its present branch is compiled.
    known: Option<bool>,
    /// The directive that begins that branch.
    from: usize,
    /// All its directives.
    own: Vec<usize>,
    /// Whether a branch before it is.
    is_met: bool,
    /// Whether all of it is.
    is_decided: bool,
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::*;

    #[test]
    fn what_is_one_of_several_is_found_with_all_that_is_within() {
        let found = |source: &str| {
            let all = alternatives(source.as_bytes(), &Conditions::default());
            all.into_iter().map(|range| source[range].replace('\n', " ")).collect::<Vec<_>>()
        };
        assert_eq!(
            found("#ifndef X_H\n#define X_H\na\n#if F(X)\nb\n#else\nc\n#endif\n#endif\n"),
            ["#if F(X) b #else c #endif"]
        );
        assert_eq!(
            found("#if X\na\n#if Y\nb\n#elif Z\nc\n#endif\n#else\nd\n#endif\n#ifdef W\n#endif"),
            ["#if X a #if Y b #elif Z c #endif #else d #endif"]
        );
        assert!(found("#if 0\na\n#else\nb\n#endif\n#ifdef X\n#endif").is_empty());
    }

    #[test]
    fn what_conditions_leave_out_is_taken_out() {
        let left = |source: &str| {
            let mut all = Vec::new();
            tokens(source.as_bytes(), 0, source.len(), &mut all);
            leave_out_dead(source.as_bytes(), &mut all, &Conditions::default());
            all.iter().map(|token| String::from_utf8_lossy(token.of(source.as_bytes()))).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(left("a\n#if 0\n{\n#else\nb\n#endif\nc"), "a b c");
        assert_eq!(left("#if 1\na\n#elif X\nb\n#else\nc\n#endif\nd"), "a d");
        assert_eq!(left("#if 0\na\n#elif X\nb\n#else\nc\n#endif"), "#if 0 #elif X b #else c #endif");
        assert_eq!(left("#if CUDA_VERSION < 9000\na\n#elif __CUDA_ARCH__ >= 700\nb\n#else\nc\n#endif"), "b");
        assert_eq!(left("#if X\na\n#elif defined(USE_ROCM)\nb\n#endif"), "#if X a #elif defined(USE_ROCM) #endif");
        assert_eq!(left("#if X\n#if 0\na\n#if Y\nb\n#endif\n#endif\nc\n#endif"), "#if X c #endif");
        assert_eq!(left("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#pragma unroll\n#endif"), "c #pragma unroll");
        for torn in ["#if 0\na", "#else\n#if 0\na\n#endif", "#endif"] {
            assert_eq!(left(torn), torn.replace('\n', " "), "{torn}");
        }
    }
}
