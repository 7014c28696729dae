//! Tells declarations from expressions, without knowing any type.

use super::{Parser, Tokens};
use crate::parse::cuda::lexer::Kind;

impl Parser<'_> {
    /// Whether tokens begin with a type and a name that it declares.
    pub(super) fn is_declaration(&self, (from, to): Tokens) -> bool {
        let mut at = from;
        let mut is_type = false;
        while at < to {
            let word = self.word_at(at);
            if is_attribute(word) && self.kind_at(at + 1) == Some(Kind::ParenOpen) {
                let Some(close) = self.partner(at + 1) else { return false };
                at = close + 1;
            } else if is_qualifier(word) {
                is_type |= !is_storage(word);
                at += 1;
            } else {
                break;
            }
        }
        if !is_type || !self.declares(at, to) {
            // The name of a type.
            let Some(end) = self.qualified_name(at, to) else { return is_type || at > from };
            at = end;
        }
        self.declares(at, to)
    }

    /// Whether `* const & name` and what may follow a declared name stand here.
    fn declares(&self, mut at: usize, to: usize) -> bool {
        while at < to {
            match self.kind_at(at) {
                Some(Kind::Star | Kind::And | Kind::AndAnd) => at += 1,
                Some(Kind::Word) if is_qualifier(self.word_at(at)) => at += 1,
                _ => break,
            }
        }
        // `auto [a, b] = …`
        if self.kind_at(at) == Some(Kind::BracketOpen) && at > 0 && self.word_at(at - 1) == b"auto" {
            return true;
        }
        // `float (*row)[4]`
        let is_pointer = self.kind_at(at) == Some(Kind::ParenOpen) && self.kind_at(at + 1) == Some(Kind::Star);
        let is_name = self.kind_at(at) == Some(Kind::Word) && at < to;
        let follows = at + 1 >= to
            || matches!(
                self.kind_at(at + 1),
                Some(Kind::Assign | Kind::Comma | Kind::BracketOpen | Kind::ParenOpen | Kind::BraceOpen | Kind::Colon)
            );
        is_pointer || (is_name && follows)
    }

    /// Past `ns::Type<arguments>::inner`.
    fn qualified_name(&self, from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        loop {
            if self.kind_at(at) == Some(Kind::Scope) {
                at += 1;
            }
            if self.word_at(at) == b"template" {
                at += 1;
            }
            if self.kind_at(at) != Some(Kind::Word) || at >= to {
                return None;
            }
            at += 1;
            if let Some((_, end)) = crate::parse::cuda::expr::angles(self.text, self.tokens, at) {
                at = end as usize + 1;
            }
            if self.kind_at(at) != Some(Kind::Scope) {
                return Some(at);
            }
        }
    }
}

/// Words that stand before a type or are a part of it.
pub(in super::super) fn is_qualifier(word: &[u8]) -> bool {
    is_storage(word)
        || matches!(
            word,
            b"int"
                | b"unsigned"
                | b"signed"
                | b"char"
                | b"short"
                | b"long"
                | b"bool"
                | b"float"
                | b"double"
                | b"void"
                | b"auto"
                | b"size_t"
                | b"uint"
                | b"half"
                | b"decltype"
        )
}

/// Words that stand before a type and name none.
pub(in super::super) fn is_storage(word: &[u8]) -> bool {
    matches!(
        word,
        b"const"
            | b"constexpr"
            | b"static"
            | b"volatile"
            | b"register"
            | b"extern"
            | b"typename"
            | b"inline"
            | b"struct"
            | b"class"
            | b"enum"
            | b"union"
            | b"__shared__"
            | b"__restrict__"
            | b"__restrict"
            | b"__device__"
            | b"__constant__"
    )
}

/// Words before a declaration that take something in parentheses.
pub(in super::super) fn is_attribute(word: &[u8]) -> bool {
    matches!(word, b"__align__" | b"alignas" | b"__attribute__" | b"__declspec" | b"_Pragma" | b"decltype")
}
