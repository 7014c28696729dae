//! Whether the two sides of a branch become one code in a compiler, so that no lanes part there.

use memchr::memmem;

use super::super::lexer::Kind;
use super::super::statement::Tokens;
use super::follow::Lowering;
use super::{builtin, library};

/// What a function of the library costs from which on it has ways of its own.
const WITH_WAYS: u32 = 100;

impl Lowering<'_, '_> {
    /// Whether two pieces of code are one for a compiler: they do the same with other values, or one does what the other does
    /// and then a little more.
    pub(super) fn are_alike(&self, one: Tokens, two: Tokens) -> bool {
        let (one, two) = (self.bare(one), self.bare(two));
        let synchronises = |(from, to): Tokens| (from..to).any(|at| memmem::find(self.word_at(at), b"sync").is_some());
        if synchronises(one) || synchronises(two) {
            return false;
        }
        let (all, others): (Vec<usize>, Vec<usize>) = ((one.0..one.1).collect(), (two.0..two.1).collect());
        if self.do_the_same(&all, &others) {
            return true;
        }
        if !(self.is_straight(one) && self.is_straight(two)) {
            return false;
        }
        self.do_the_same(&self.operations(one), &self.operations(two)) || self.goes_on(one, two)
    }

    /// The tokens of a statement without braces around it and without what ends it.
    fn bare(&self, (mut from, mut to): Tokens) -> Tokens {
        if self.kind_at(from) == Some(Kind::BraceOpen) && to > from + 1 {
            (from, to) = (from + 1, to - 1);
        }
        while to > from && self.kind_at(to - 1) == Some(Kind::Semicolon) {
            to -= 1;
        }
        (from, to)
    }

    fn is_called(&self, at: usize) -> bool {
        self.kind_at(at) == Some(Kind::Word) && self.kind_at(at + 1) == Some(Kind::ParenOpen)
    }

    /// Whether tokens are the same but for names and numbers, and call the same.
    fn do_the_same(&self, one: &[usize], two: &[usize]) -> bool {
        let is_alike = |(one, two): (&usize, &usize)| {
            self.kind_at(*one) == self.kind_at(*two)
                && (!self.is_called(*one) || self.word_at(*one) == self.word_at(*two))
        };
        one.len() == two.len() && one.iter().zip(two).all(is_alike)
    }

    /// Whether one begins with the whole of the other, word for word, and has no more behind it than that.
    fn goes_on(&self, one: Tokens, two: Tokens) -> bool {
        let (short, long) = if one.1 - one.0 <= two.1 - two.0 { (one, two) } else { (two, one) };
        let common = short.1 - short.0;
        let text = self.text();
        let is_same = |at: usize| self.tokens[short.0 + at].of(text) == self.tokens[long.0 + at].of(text);
        long.1 - long.0 <= 2 * common && (0..common).all(is_same)
    }

    /// The tokens that say what is done, without those that only say to what: the index of an element, and what is passed to a
    /// function of the file. Sides that differ in these run the same instructions on values that are selected before.
    fn operations(&self, (from, to): Tokens) -> Vec<usize> {
        let mut kept = Vec::new();
        let mut at = from;
        while at < to {
            kept.push(at);
            let is_list = match self.kind_at(at) {
                Some(Kind::BracketOpen) => true,
                Some(Kind::ParenOpen) => at > from && self.file.by_name.contains_key(self.word_at(at - 1)),
                _ => false,
            };
            let close = self.partner(at).filter(|close| is_list && *close < to);
            at = match close {
                Some(close) if !(at + 1..close).any(|inner| self.is_called(inner)) => close,
                _ => at + 1,
            };
        }
        kept
    }

    /// Whether tokens have but one way through, and call only what has.
    fn is_straight(&self, (from, to): Tokens) -> bool {
        (from..to).all(|at| match self.word_at(at) {
            b"if" | b"for" | b"while" | b"do" | b"switch" | b"goto" | b"return" | b"break" | b"continue" | b"asm" => {
                false
            }
            name if self.is_called(at) => {
                let weight = self.file.weights.of(name);
                let is_of_library = || library::cost(name).is_some_and(|cost| cost < WITH_WAYS);
                let has_effect = name.starts_with(b"atomic");
                !has_effect && (weight.is_straight || is_of_library() || builtin::is_type(name))
            }
            _ => true,
        })
    }
}
