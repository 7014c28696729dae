//! Reductions through volatile shared memory whose steps nothing synchronises: `s[t] += s[t + 16]; s[t] += s[t + 8]; …`.

use super::super::lexer::{Kind, Token};

/// A chain of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// The byte of the first step that reads what another lane stored.
    pub(super) at: u32,
    /// How many steps there are.
    pub(super) steps: u32,
    /// How many of them read what another lane stored just before: the first one does where a store stands before it.
    pub(super) reads: u32,
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
    // What was stored since lanes waited for each other.
    let mut stored: Option<(&[u8], &[u8])> = None;
    let mut finish = |open: &mut Option<(&[u8], &[u8], i64, Chain)>| {
        found.extend(open.take().map(|(.., chain)| chain).filter(|chain| chain.steps >= LEAST));
    };
    for at in 0..tokens.len() {
        let word = if tokens[at].kind == Kind::Word { tokens[at].of(text) } else { b"" };
        if memchr::memmem::find(word, b"sync").is_some() || memchr::memmem::find(word, b"fence").is_some() {
            finish(&mut open);
            stored = None;
            continue;
        }
        let Some((array, index)) = written(text, tokens, at).filter(|(array, _)| is_volatile(array)) else {
            continue;
        };
        let before = stored.replace((array, index));
        let Some(distance) = read_beside(text, tokens, at, (array, index)) else { continue };
        match &mut open {
            Some((before, its, last, chain)) if *before == array && *its == index && distance * 2 == *last => {
                *last = distance;
                if chain.reads == 0 {
                    chain.at = tokens[at].start;
                }
                chain.steps += 1;
                chain.reads += 1;
            }
            _ => {
                finish(&mut open);
                // Only what stays within a warp is without a barrier on purpose.
                if distance <= 32 {
                    let reads = u32::from(before == Some((array, index)));
                    open = Some((array, index, distance, Chain { at: tokens[at].start, steps: 1, reads }));
                }
            }
        }
    }
    finish(&mut open);
    found
}

/// `s[t] = …`: the array and the index.
fn written<'t>(text: &'t [u8], tokens: &[Token], at: usize) -> Option<(&'t [u8], &'t [u8])> {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let begins = [Kind::Word, Kind::BracketOpen, Kind::Word, Kind::BracketClose];
    let is_written = (0..4).all(|ahead| kind(at + ahead) == Some(begins[ahead]))
        && matches!(
            kind(at + 4),
            Some(Kind::Assign | Kind::PlusAssign | Kind::StarAssign | Kind::OrAssign | Kind::AndAssign)
        );
    is_written.then(|| (tokens[at].of(text), tokens[at + 2].of(text)))
}

/// The distance at which the statement at `at` reads the array that it writes: `… s[t + 16] …`.
fn read_beside(text: &[u8], tokens: &[Token], at: usize, (array, index): (&[u8], &[u8])) -> Option<i64> {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    for here in at + 5..(at + NEAR).min(tokens.len()) {
        if tokens[here].kind == Kind::Semicolon {
            return None;
        }
        let read = [Kind::Word, Kind::BracketOpen, Kind::Word, Kind::Plus, Kind::Number, Kind::BracketClose];
        let is_read = (0..6).all(|ahead| kind(here + ahead) == Some(read[ahead]));
        if is_read && tokens[here].of(text) == array && tokens[here + 2].of(text) == index {
            return super::value::literal(tokens[here + 4].of(text)).map(|(distance, _)| distance);
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

    /// The bytes at which chains read what another lane stored, and how often they do.
    fn reads(text: &str) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        tokens(text.as_bytes(), 0, text.len(), &mut all);
        let found = chains(text.as_bytes(), &all, &|name| name == b"s");
        found.iter().map(|chain| (chain.at as usize, chain.reads)).collect()
    }

    #[test]
    fn the_first_step_counts_where_a_store_stands_before_it() {
        let steps = "s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4];";
        let second = steps.find("s[t] += s[t + 8]").expect("a second step");
        assert_eq!(reads(steps), [(second, 2)]);
        let after = |before: &str| reads(&format!("{before}{steps}"));
        for before in ["s[t] = v; ", "s[t] = v; if (t < 16) ", "s[t] += s[t + 32 * 2]; ", "s[t] += s[t + 64]; "] {
            assert_eq!(after(before), [(before.len(), 3)], "{before}");
        }
        for before in ["s[t] = v; __syncthreads(); ", "s[i] = v; ", "d[t] = v; ", "v = s[t]; "] {
            assert_eq!(after(before), [(before.len() + second, 2)], "{before}");
        }
    }

    #[test]
    fn what_is_synchronised_or_of_other_memory_is_none() {
        assert!(steps("s[t] += s[t + 16]; __syncwarp(); s[t] += s[t + 8]; __syncwarp(); s[t] += s[t + 4];").is_empty());
        assert!(steps("d[t] += d[t + 16]; d[t] += d[t + 8]; d[t] += d[t + 4];").is_empty());
        assert!(steps("s[t] += s[t + 128]; s[t] += s[t + 64]; s[t] += s[t + 3];").is_empty());
        assert!(steps("#if X\ns[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4];\n#endif\n").is_empty());
    }
}
