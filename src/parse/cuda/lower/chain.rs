//! Reductions through volatile shared memory whose steps nothing synchronises: `s[t] += s[t + 16]; s[t] += s[t + 8]; …`.

use super::super::lexer::{Kind, Token};

/// A chain of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// The byte of its first step.
    pub(super) at: u32,
    /// How many steps there are.
    pub(super) steps: u32,
}

/// Steps from which on it is a reduction of a warp.
const LEAST: u32 = 3;

/// Tokens of a step at most, from what is written to what is read.
const NEAR: usize = 24;

/// Finds the chains of a function, of whose names `is_volatile` tells those of volatile memory.
pub(super) fn chains(text: &[u8], tokens: &[Token], is_volatile: &dyn Fn(&[u8]) -> bool) -> Vec<Chain> {
    let mut found: Vec<Chain> = Vec::new();
    // Of which of them only one is compiled, or none, is not known.
    if tokens.iter().any(|token| token.kind == Kind::Directive && !token.of(text).starts_with(b"#pragma")) {
        return found;
    }
    let mut open: Option<(&[u8], &[u8], i64, Chain)> = None;
    let mut finish = |open: &mut Option<(&[u8], &[u8], i64, Chain)>| {
        found.extend(open.take().map(|(.., chain)| chain).filter(|chain| chain.steps >= LEAST));
    };
    for at in 0..tokens.len() {
        let word = if tokens[at].kind == Kind::Word { tokens[at].of(text) } else { b"" };
        if memchr::memmem::find(word, b"sync").is_some() || memchr::memmem::find(word, b"fence").is_some() {
            finish(&mut open);
            continue;
        }
        let Some((array, index, distance)) = step(text, tokens, at).filter(|(array, ..)| is_volatile(array)) else {
            continue;
        };
        match &mut open {
            Some((before, its, last, chain)) if *before == array && *its == index && distance * 2 == *last => {
                *last = distance;
                chain.steps += 1;
            }
            _ => {
                finish(&mut open);
                // Only what stays within a warp is without a barrier on purpose.
                if distance <= 32 {
                    open = Some((array, index, distance, Chain { at: tokens[at].start, steps: 1 }));
                }
            }
        }
    }
    finish(&mut open);
    found
}

/// `s[t] = … s[t + 16] …`: the array, the index, and the distance.
fn step<'t>(text: &'t [u8], tokens: &[Token], at: usize) -> Option<(&'t [u8], &'t [u8], i64)> {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let begins = [Kind::Word, Kind::BracketOpen, Kind::Word, Kind::BracketClose];
    let is_written = (0..4).all(|ahead| kind(at + ahead) == Some(begins[ahead]))
        && matches!(
            kind(at + 4),
            Some(Kind::Assign | Kind::PlusAssign | Kind::StarAssign | Kind::OrAssign | Kind::AndAssign)
        );
    if !is_written {
        return None;
    }
    let (array, index) = (tokens[at].of(text), tokens[at + 2].of(text));
    for here in at + 5..(at + NEAR).min(tokens.len()) {
        if tokens[here].kind == Kind::Semicolon {
            return None;
        }
        let read = [Kind::Word, Kind::BracketOpen, Kind::Word, Kind::Plus, Kind::Number, Kind::BracketClose];
        let is_read = (0..6).all(|ahead| kind(here + ahead) == Some(read[ahead]));
        if is_read && tokens[here].of(text) == array && tokens[here + 2].of(text) == index {
            let (distance, _) = super::value::literal(tokens[here + 4].of(text))?;
            return Some((array, index, distance));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::lexer::tokens;
    use super::*;

    fn steps(text: &str) -> Vec<u32> {
        let mut all = Vec::new();
        tokens(text.as_bytes(), 0, text.len(), &mut all);
        chains(text.as_bytes(), &all, &|name| name == b"s").iter().map(|chain| chain.steps).collect()
    }

    #[test]
    fn a_reduction_without_synchronisation_is_a_chain() {
        assert_eq!(steps("s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4];"), [4]);
        assert_eq!(
            steps("if (B >= 64) s[t] = v = v + s[t + 32]; if (B >= 32) s[t] = v = v + s[t + 16]; s[t] = v + s[t + 8];"),
            [3]
        );
        assert_eq!(steps("s[t] = max(s[t], s[t + 4]); s[t] = max(s[t], s[t + 2]); s[t] = max(s[t], s[t + 1]);"), [3]);
    }

    #[test]
    fn what_is_synchronised_or_of_other_memory_is_none() {
        assert!(steps("s[t] += s[t + 16]; __syncwarp(); s[t] += s[t + 8]; __syncwarp(); s[t] += s[t + 4];").is_empty());
        assert!(steps("d[t] += d[t + 16]; d[t] += d[t + 8]; d[t] += d[t + 4];").is_empty());
        assert!(steps("s[t] += s[t + 128]; s[t] += s[t + 64]; s[t] += s[t + 3];").is_empty());
        assert!(steps("#if X\ns[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4];\n#endif\n").is_empty());
    }
}
