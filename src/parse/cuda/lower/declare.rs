//! Declarations: which names hold integers that are followed.

use hashbrown::HashSet;

use super::super::expr::angles;
use super::super::lexer::{Kind, Token};
use super::super::statement::{Tokens, is_attribute, is_qualifier, is_storage};
use super::follow::Lowering;
use super::value::{Named, Type, Value, Variable, named};

/// One name that a declaration declares.
struct Declarator {
    name: usize,
    is_pointer: bool,
    is_reference: bool,
    is_array: bool,
    /// The token after the name and its dimensions.
    next: usize,
}

/// What is known of the arguments of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given<'g> {
    /// Nothing.
    Unknown,
    /// They are the same for all threads, and some are constants.
    Kernel(&'g [Option<i64>]),
}

impl Given<'_> {
    fn constant(self, position: u32) -> Option<i64> {
        let Given::Kernel(passed) = self else { return None };
        passed.get(position as usize).copied().flatten()
    }
}

impl<'u> Lowering<'_, 'u> {
    /// The names of parameters: those of kernels are the same for all threads, those of other functions are unknown.
    pub(super) fn parameters(&mut self, tokens: &[Token], given: Given<'_>) {
        let mut start = 0;
        let mut position = 0;
        while start < tokens.len() {
            let end = next_comma(self.text(), tokens, start);
            self.parameter(&tokens[start..end], position, given);
            position += 1;
            start = end + 1;
        }
        self.out.parameters = position;
    }

    fn parameter(&mut self, tokens: &[Token], position: u32, given: Given<'_>) {
        let text = self.text();
        let default = tokens.iter().position(|token| token.kind == Kind::Assign).unwrap_or(tokens.len());
        let tokens = &tokens[..default];
        let is_array = tokens.iter().any(|token| token.kind == Kind::BracketOpen);
        let is_pointer = tokens.iter().any(|token| matches!(token.kind, Kind::Star | Kind::And | Kind::AndAnd));
        let Some(at) = tokens.iter().rposition(|token| token.kind == Kind::Word && !is_qualifier(token.of(text)))
        else {
            return;
        };
        let name = tokens[at].of(text);
        if is_array || at == 0 {
            return self.declare(name, Variable::UNKNOWN);
        }
        let words = || tokens[..at].iter().filter(|token| token.kind == Kind::Word).map(|token| token.of(text));
        let is_constant = words().any(|word| word == b"const");
        let kind = if tokens[..at].iter().all(|token| matches!(token.kind, Kind::Word | Kind::Scope)) {
            named(words())
        } else {
            Named::Other
        };
        let is_float = words().any(|word| matches!(word, b"float" | b"double" | b"half" | b"__half"));
        let variable = match kind {
            _ if given == Given::Unknown || is_pointer || is_float || self.is_untracked(name) => Variable::UNKNOWN,
            Named::Integer(kind) => {
                let register = self.out.register();
                let read = kind.promoted();
                match given.constant(position) {
                    Some(value) => {
                        let value = read.wrapped(value);
                        self.out.line(format_args!("mov.{} %v{register}, {value};", read.bits()));
                    }
                    None => self.out.line(format_args!("ld.param.{} %v{register}, [p{position}];", read.name())),
                }
                Variable { holds: self.typed(Value::Register(register, read, false), kind), is_constant }
            }
            // Of another type it is the same for all threads as well.
            _ => Variable { holds: Value::Parameter(position, 0), is_constant: true },
        };
        self.declare(name, variable);
    }

    /// A declaration of variables.
    pub(super) fn declaration(&mut self, (from, to): Tokens) {
        let (start, is_shared, is_constant) = self.type_of_declaration(from, to);
        let text = self.text();
        let words: Vec<&'u [u8]> = self.tokens[from..start.min(to)]
            .iter()
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.of(text))
            .collect();
        let has_angles = self.tokens[from..start.min(to)].iter().any(|token| token.kind == Kind::Less);
        let kind = if has_angles { Named::Other } else { named(words.iter().copied()) };
        let mut at = start;
        while at < to {
            let Some(one) = self.declarator(at, to) else {
                self.out.fill(1);
                return;
            };
            let name = self.tokens[one.name].of(text);
            let (value, next) = self.initializer(&one, to);
            let is_plain = !(one.is_pointer || one.is_array || is_shared);
            let variable = match value {
                Some(Value::Group(group)) if !one.is_pointer => {
                    Variable { holds: Value::Group(group), is_constant: true }
                }
                _ if one.is_reference => {
                    if !is_constant {
                        self.alias(&one);
                    }
                    match value {
                        Some(known) if is_constant => self.variable(name, kind, Some(known), true),
                        _ => Variable::UNKNOWN,
                    }
                }
                _ if is_plain => self.variable(name, kind, value, is_constant),
                _ => Variable::UNKNOWN,
            };
            self.declare(name, variable);
            // What stands behind and is not understood ends the declaration.
            if self.kind_at(next) != Some(Kind::Comma) {
                return;
            }
            at = next + 1;
        }
    }

    /// What a plain variable holds.
    fn variable(&mut self, name: &[u8], kind: Named, value: Option<Value>, is_constant: bool) -> Variable {
        if self.is_muted() || self.is_untracked(name) {
            return Variable::UNKNOWN;
        }
        let kind = match (kind, value) {
            // Text and flags, mostly: what is read into one from memory decides nothing that can be told.
            (Named::Integer(Type::I8 | Type::U8 | Type::I16 | Type::U16), None | Some(Value::Unknown)) => {
                return Variable::UNKNOWN;
            }
            (Named::Integer(kind), _) => kind,
            (Named::Likely, Some(Value::Constant(_, kind) | Value::Register(_, kind, _))) => kind,
            (Named::Likely, Some(Value::Predicate(..))) => Type::Bool,
            (Named::Likely, Some(Value::Vector(vector))) => {
                return Variable { holds: Value::Vector(vector), is_constant: true };
            }
            (Named::Other, Some(Value::Vector(vector))) => {
                return Variable { holds: Value::Vector(vector), is_constant: true };
            }
            _ => return Variable::UNKNOWN,
        };
        let register = self.out.register();
        if is_constant && let Some(Value::Constant(value, _)) = value {
            return Variable { holds: Value::Constant(kind.wrapped(value), kind), is_constant };
        }
        let is_index = value.is_some_and(Value::is_index);
        let value = value.unwrap_or(Value::Unknown);
        self.store(register, kind, value);
        Variable { holds: Value::Register(register, kind, is_index), is_constant }
    }

    /// What a reference refers to changes under another name from then on, so that it is not followed.
    fn alias(&mut self, one: &Declarator) {
        let begins = matches!(self.kind_at(one.next), Some(Kind::Assign | Kind::ParenOpen | Kind::BraceOpen));
        let end = self.kind_at(one.next + 2);
        let ends = end.is_none_or(|kind| matches!(kind, Kind::Comma | Kind::Semicolon) || kind.closes());
        let name = self.word_at(one.next + 1);
        if begins && ends && self.find(name).is_some() {
            self.set(name, Variable::UNKNOWN);
        }
    }

    /// The token after the type, whether the variables are shared, and whether they are constant.
    fn type_of_declaration(&self, from: usize, to: usize) -> (usize, bool, bool) {
        let (mut at, mut is_shared, mut is_constant, mut is_named) = (from, false, false, false);
        while at < to {
            let word = self.word_at(at);
            match word {
                b"__shared__" | b"__constant__" | b"static" | b"extern" => is_shared = true,
                b"const" | b"constexpr" => is_constant = true,
                _ => {}
            }
            if is_attribute(word) && self.kind_at(at + 1) == Some(Kind::ParenOpen) {
                is_named |= word == b"decltype";
                at = self.partner(at + 1).map_or(to, |close| close + 1);
            } else if is_qualifier(word) {
                is_named |= !is_storage(word);
                at += 1;
            } else {
                break;
            }
        }
        if is_named {
            return (at, is_shared, is_constant);
        }
        // `ns::Type<arguments>`
        loop {
            if self.kind_at(at) == Some(Kind::Scope) {
                at += 1;
            }
            if self.kind_at(at) != Some(Kind::Word) || at >= to {
                break;
            }
            at += 1;
            if let Some((_, end)) = angles(self.text(), &self.tokens, at) {
                at = end as usize + 1;
            }
            if self.kind_at(at) != Some(Kind::Scope) {
                break;
            }
        }
        // `int const i`
        is_constant |= self.word_at(at) == b"const";
        (at.min(to), is_shared, is_constant)
    }

    fn declarator(&self, mut at: usize, to: usize) -> Option<Declarator> {
        let (mut is_pointer, mut is_reference) = (false, false);
        while at < to {
            match self.kind_at(at)? {
                Kind::Star => is_pointer = true,
                Kind::And | Kind::AndAnd => is_reference = true,
                Kind::Word if is_qualifier(self.word_at(at)) => {}
                _ => break,
            }
            at += 1;
        }
        if self.kind_at(at)? != Kind::Word || at >= to {
            return None;
        }
        let name = at;
        at += 1;
        let mut is_array = false;
        while self.kind_at(at) == Some(Kind::BracketOpen) && at < to {
            is_array = true;
            at = self.partner(at)? + 1;
        }
        Some(Declarator { name, is_pointer, is_reference, is_array, next: at })
    }

    /// What a variable is initialised with, and the token behind that.
    fn initializer(&mut self, one: &Declarator, to: usize) -> (Option<Value>, usize) {
        let at = one.next;
        match self.kind_at(at).filter(|_| at < to) {
            Some(Kind::Assign) => {
                let (id, next) = self.parse_prefix(at + 1, to);
                (Some(self.expression(id)), next)
            }
            Some(Kind::ParenOpen | Kind::BraceOpen) => {
                let Some(close) = self.partner(at).filter(|close| *close < to) else { return (None, to) };
                if close == at + 1 {
                    let is_brace = self.kind_at(at) == Some(Kind::BraceOpen);
                    return (is_brace.then_some(Value::Constant(0, Type::I32)), close + 1);
                }
                let (id, next) = self.parse_prefix(at + 1, close);
                let value = self.expression(id);
                if next == close {
                    return (Some(value), close + 1);
                }
                self.out.fill(1);
                (Some(Value::Unknown), close + 1)
            }
            _ => (None, at),
        }
    }
}

/// The next `,` that stands in no bracket and in no angles, or the end.
fn next_comma(text: &[u8], tokens: &[Token], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while at < tokens.len() {
        match tokens[at].kind {
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => depth = depth.saturating_sub(1),
            Kind::Comma if depth == 0 => return at,
            Kind::Less => {
                if let Some((_, end)) = angles(text, tokens, at) {
                    at = end as usize;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Names whose variables may change in other ways than by assignment: their address is taken, or a lambda assigns to them.
pub(super) fn untracked<'u>(text: &'u [u8], tokens: &[Token], partners: &[u32]) -> HashSet<&'u [u8]> {
    let partner = |at: usize| partners.get(at).map(|at| *at as usize).filter(|other| *other > at);
    let mut found = HashSet::new();
    let mut lambda_end = 0;
    for at in 0..tokens.len() {
        let kind = |at: usize| tokens.get(at).map(|token| token.kind);
        let before = at.checked_sub(1).and_then(kind);
        let is_operand =
            matches!(before, Some(Kind::Word | Kind::Number | Kind::ParenClose | Kind::BracketClose | Kind::Greater));
        let is_return = at > 0 && tokens[at - 1].of(text) == b"return";
        match tokens[at].kind {
            Kind::And if (!is_operand || is_return) && kind(at + 1) == Some(Kind::Word) => {
                found.insert(tokens[at + 1].of(text));
            }
            Kind::BracketOpen
                if (!is_operand || is_return) && kind(at + 1) != Some(Kind::BracketOpen) && at >= lambda_end =>
            {
                lambda_end = partner(at)
                    .and_then(|close| {
                        (close..tokens.len().min(close + 64)).find(|at| kind(*at) == Some(Kind::BraceOpen))
                    })
                    .and_then(partner)
                    .unwrap_or(0);
            }
            Kind::Word if at < lambda_end => {
                let steps = |kind: Option<Kind>| matches!(kind, Some(Kind::PlusPlus | Kind::MinusMinus));
                let next = kind(at + 1);
                let is_assigned = next.is_some_and(|kind| kind == Kind::Assign || kind.is_compound_assignment());
                let is_changed = is_assigned || steps(next) || steps(before);
                if is_changed {
                    found.insert(tokens[at].of(text));
                }
            }
            _ => {}
        }
    }
    found
}
