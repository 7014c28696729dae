//! Tokens to expressions, by the strength with which operators bind (Pratt, "Top Down Operator Precedence", 1973).

use super::super::lexer::{Kind, Token, partner};
use super::{Binary, Id, List, Node, Tokens, Tree, Unary, What};

/// Nodes on the longest way through a tree; what is deeper is opaque.
pub(super) const HIGHEST: u16 = 120;

/// Expressions within expressions that are followed.
const DEEPEST: u32 = 120;

/// Tokens between the angles of a template's arguments, at most: past that, `<` compares.
const LONGEST_ANGLES: usize = 200;

/// How strongly an operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    Comma,
    Assign,
    LogicalOr,
    LogicalAnd,
    Or,
    ExclusiveOr,
    And,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Unary,
}

impl Strength {
    /// The next stronger.
    fn above(self) -> Strength {
        use Strength::{
            And, Assign, Comma, Equality, ExclusiveOr, LogicalAnd, LogicalOr, Or, Product, Relation, Shift, Sum, Unary,
        };
        match self {
            Comma => Assign,
            Assign => LogicalOr,
            LogicalOr => LogicalAnd,
            LogicalAnd => Or,
            Or => ExclusiveOr,
            ExclusiveOr => And,
            And => Equality,
            Equality => Relation,
            Relation => Shift,
            Shift => Sum,
            Sum => Product,
            Product | Unary => Unary,
        }
    }
}

/// An operator that follows an operand, and the tokens that it takes.
enum Infix {
    Binary(Binary, Strength, usize),
    Assign(Option<Binary>, usize),
    Choice,
}

pub(super) struct Parser<'p> {
    pub(super) text: &'p [u8],
    pub(super) tokens: &'p [Token],
    pub(super) at: usize,
    pub(super) depth: u32,
    pub(super) tree: &'p mut Tree,
}

impl<'p> Parser<'p> {
    fn kind(&self) -> Option<Kind> {
        self.kind_at(self.at)
    }

    fn kind_at(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn word_at(&self, at: usize) -> &'p [u8] {
        self.tokens.get(at).filter(|token| token.kind == Kind::Word).map_or(b"", |token| token.of(self.text))
    }

    pub(super) fn add(&mut self, what: What, start: usize) -> Id {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let height = 1 + self.children(what);
        let (what, height) = if height > HIGHEST { (What::Opaque, 1) } else { (what, height) };
        self.tree.nodes.push(Node { what, tokens: (narrow(start), narrow(self.at)), height });
        Id(narrow(self.tree.nodes.len() - 1))
    }

    /// The height of the highest node that `what` is made of.
    fn children(&self, what: What) -> u16 {
        let height = |id: Id| self.tree.get(id).height;
        let highest = |list: List| self.tree.list(list).iter().map(|id| height(*id)).max().unwrap_or(0);
        match what {
            What::Number
            | What::String
            | What::Character
            | What::Name { .. }
            | What::SizeOf(_)
            | What::Lambda(_)
            | What::Opaque => 0,
            What::Member { base, .. } => height(base),
            What::Call { callee, arguments } | What::Construct { callee, arguments } => {
                height(callee).max(highest(arguments))
            }
            What::Launch { callee, config, arguments } => height(callee).max(highest(config)).max(highest(arguments)),
            What::Braces(list) => highest(list),
            What::Unary(_, of) | What::Postfix(_, of) | What::Cast(_, of) => height(of),
            What::Index { base: a, index: b } | What::Binary(_, a, b) | What::Assign(_, a, b) => {
                height(a).max(height(b))
            }
            What::Choice(a, b, c) => height(a).max(height(b)).max(height(c)),
        }
    }

    fn collect(&mut self, ids: &[Id]) -> List {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let start = narrow(self.tree.lists.len());
        self.tree.lists.extend_from_slice(ids);
        List { start, end: narrow(self.tree.lists.len()) }
    }

    /// An expression of operators that bind at least as strongly as `least`. It always takes a token, if there is one.
    pub(super) fn expression(&mut self, least: Strength) -> Id {
        let start = self.at;
        self.depth += 1;
        let mut left = if self.depth > DEEPEST { self.opaque(start) } else { self.prefix() };
        while let Some(infix) = self.infix() {
            left = match infix {
                Infix::Binary(op, strength, length) if strength >= least => {
                    self.at += length;
                    let right = self.expression(strength.above());
                    self.add(What::Binary(op, left, right), start)
                }
                Infix::Assign(op, length) if least <= Strength::Assign => {
                    self.at += length;
                    let right = self.expression(Strength::Assign);
                    self.add(What::Assign(op, left, right), start)
                }
                Infix::Choice if least <= Strength::Assign => {
                    self.at += 1;
                    let yes = self.expression(Strength::Comma);
                    if self.kind() != Some(Kind::Colon) {
                        self.depth -= 1;
                        return self.opaque(start);
                    }
                    self.at += 1;
                    let no = self.expression(Strength::Assign);
                    self.add(What::Choice(left, yes, no), start)
                }
                _ => break,
            };
        }
        self.depth -= 1;
        left
    }

    fn infix(&self) -> Option<Infix> {
        use Strength::{And, Comma, Equality, ExclusiveOr, LogicalAnd, LogicalOr, Or, Product, Relation, Shift, Sum};
        let binary = |op, strength| Some(Infix::Binary(op, strength, 1));
        let assign = |op| Some(Infix::Assign(Some(op), 1));
        match self.kind()? {
            Kind::Comma => binary(Binary::Comma, Comma),
            Kind::Question => Some(Infix::Choice),
            Kind::Assign => Some(Infix::Assign(None, 1)),
            Kind::OrOr => binary(Binary::LogicalOr, LogicalOr),
            Kind::AndAnd => binary(Binary::LogicalAnd, LogicalAnd),
            Kind::Or => binary(Binary::Or, Or),
            Kind::Caret => binary(Binary::ExclusiveOr, ExclusiveOr),
            Kind::And => binary(Binary::And, And),
            Kind::Equal => binary(Binary::Equal, Equality),
            Kind::NotEqual => binary(Binary::NotEqual, Equality),
            Kind::Less => binary(Binary::Less, Relation),
            Kind::LessEqual => binary(Binary::LessEqual, Relation),
            Kind::GreaterEqual => binary(Binary::GreaterEqual, Relation),
            Kind::Greater => self.greater(),
            Kind::ShiftLeft => binary(Binary::ShiftLeft, Shift),
            Kind::Plus => binary(Binary::Add, Sum),
            Kind::Minus => binary(Binary::Subtract, Sum),
            Kind::Star => binary(Binary::Multiply, Product),
            Kind::Slash => binary(Binary::Divide, Product),
            Kind::Percent => binary(Binary::Remainder, Product),
            Kind::PlusAssign => assign(Binary::Add),
            Kind::MinusAssign => assign(Binary::Subtract),
            Kind::StarAssign => assign(Binary::Multiply),
            Kind::SlashAssign => assign(Binary::Divide),
            Kind::PercentAssign => assign(Binary::Remainder),
            Kind::AndAssign => assign(Binary::And),
            Kind::OrAssign => assign(Binary::Or),
            Kind::CaretAssign => assign(Binary::ExclusiveOr),
            Kind::ShiftLeftAssign => assign(Binary::ShiftLeft),
            _ => None,
        }
    }

    /// What `>` is part of: `>`, `>>` or `>>=`; three of them close a launch.
    fn greater(&self) -> Option<Infix> {
        let touches = |at: usize| match (self.tokens.get(at), self.tokens.get(at + 1)) {
            (Some(one), Some(next)) if one.end == next.start => Some(next.kind),
            _ => None,
        };
        match (touches(self.at), touches(self.at + 1)) {
            (Some(Kind::Greater), Some(Kind::Greater)) => None,
            (Some(Kind::Greater), _) => Some(Infix::Binary(Binary::ShiftRight, Strength::Shift, 2)),
            (Some(Kind::GreaterEqual), _) => Some(Infix::Assign(Some(Binary::ShiftRight), 2)),
            _ => Some(Infix::Binary(Binary::Greater, Strength::Relation, 1)),
        }
    }

    fn prefix(&mut self) -> Id {
        let start = self.at;
        let unary = match self.kind() {
            Some(Kind::Plus) => Unary::Plus,
            Some(Kind::Minus) => Unary::Minus,
            Some(Kind::Not) => Unary::Not,
            Some(Kind::Tilde) => Unary::Complement,
            Some(Kind::Star) => Unary::Dereference,
            Some(Kind::And) => Unary::AddressOf,
            Some(Kind::PlusPlus) => Unary::Increment,
            Some(Kind::MinusMinus) => Unary::Decrement,
            Some(Kind::ParenOpen) if self.is_cast() => return self.cast(),
            _ => {
                let operand = self.primary();
                return self.postfix(operand, start);
            }
        };
        self.at += 1;
        let operand = self.expression(Strength::Unary);
        self.add(What::Unary(unary, operand), start)
    }

    fn primary(&mut self) -> Id {
        let start = self.at;
        let what = match self.kind() {
            Some(Kind::Number) => What::Number,
            Some(Kind::Character) => What::Character,
            Some(Kind::String) => {
                while self.kind_at(self.at + 1) == Some(Kind::String) {
                    self.at += 1;
                }
                What::String
            }
            Some(Kind::Word | Kind::Scope) => return self.name(),
            Some(Kind::ParenOpen) => return self.parenthesised(),
            Some(Kind::BraceOpen) => {
                return match self.arguments() {
                    Some(list) => self.add(What::Braces(list), start),
                    None => self.opaque(start),
                };
            }
            Some(Kind::BracketOpen) => return self.lambda(),
            _ => return self.opaque(start),
        };
        self.at += 1;
        self.add(what, start)
    }

    fn parenthesised(&mut self) -> Id {
        let start = self.at;
        self.at += 1;
        let inner = self.expression(Strength::Comma);
        if self.kind() != Some(Kind::ParenClose) {
            return self.opaque(start);
        }
        self.at += 1;
        inner
    }

    fn postfix(&mut self, mut operand: Id, start: usize) -> Id {
        loop {
            operand = match self.kind() {
                Some(Kind::ParenOpen) => {
                    let Some(arguments) = self.arguments() else { return self.opaque(start) };
                    self.add(What::Call { callee: operand, arguments }, start)
                }
                Some(Kind::BraceOpen) if matches!(self.tree.get(operand).what, What::Name { .. }) => {
                    let Some(arguments) = self.arguments() else { return self.opaque(start) };
                    self.add(What::Construct { callee: operand, arguments }, start)
                }
                Some(Kind::BracketOpen) => {
                    self.at += 1;
                    let index = self.expression(Strength::Comma);
                    if self.kind() != Some(Kind::BracketClose) {
                        return self.opaque(start);
                    }
                    self.at += 1;
                    self.add(What::Index { base: operand, index }, start)
                }
                Some(kind @ (Kind::Dot | Kind::Arrow)) => {
                    self.at += 1;
                    if self.word_at(self.at) == b"template" {
                        self.at += 1;
                    }
                    if self.kind() != Some(Kind::Word) {
                        return self.opaque(start);
                    }
                    self.at += 1;
                    let id = self.add(What::Member { base: operand, arrow: kind == Kind::Arrow }, start);
                    self.skip_angles();
                    id
                }
                Some(Kind::PlusPlus) => {
                    self.at += 1;
                    self.add(What::Postfix(Unary::Increment, operand), start)
                }
                Some(Kind::MinusMinus) => {
                    self.at += 1;
                    self.add(What::Postfix(Unary::Decrement, operand), start)
                }
                Some(Kind::Launch) => return self.launch(operand, start),
                _ => return operand,
            };
        }
    }

    fn launch(&mut self, callee: Id, start: usize) -> Id {
        self.at += 1;
        let mut config = Vec::new();
        loop {
            config.push(self.expression(Strength::Assign));
            if self.kind() != Some(Kind::Comma) {
                break;
            }
            self.at += 1;
        }
        let closes = (0..3).all(|ahead| self.kind_at(self.at + ahead) == Some(Kind::Greater));
        if !closes {
            return self.opaque(start);
        }
        self.at += 3;
        let arguments = if self.kind() == Some(Kind::ParenOpen) { self.arguments() } else { None };
        let config = self.collect(&config);
        let Some(arguments) = arguments else { return self.opaque(start) };
        self.add(What::Launch { callee, config, arguments }, start)
    }

    /// What stands between the bracket here and its partner, divided at commas.
    fn arguments(&mut self) -> Option<List> {
        let close = match self.kind()? {
            Kind::ParenOpen => Kind::ParenClose,
            _ => Kind::BraceClose,
        };
        self.at += 1;
        let mut found = Vec::new();
        while self.kind() != Some(close) {
            // `.x = 1` names the member that it sets.
            let is_designator = self.kind() == Some(Kind::Dot) && self.kind_at(self.at + 1) == Some(Kind::Word);
            if is_designator {
                return None;
            }
            found.push(self.expression(Strength::Assign));
            if self.kind() == Some(Kind::Ellipsis) {
                self.at += 1;
            }
            match self.kind()? {
                Kind::Comma => self.at += 1,
                kind if kind == close => {}
                _ => return None,
            }
        }
        self.at += 1;
        Some(self.collect(&found))
    }

    /// A name, or what begins with a keyword.
    fn name(&mut self) -> Id {
        let start = self.at;
        match self.word_at(start) {
            b"sizeof" | b"alignof" => return self.size_of(start),
            b"static_cast" | b"reinterpret_cast" | b"const_cast" | b"dynamic_cast" => return self.named_cast(start),
            b"new" | b"delete" | b"throw" | b"operator" | b"co_await" | b"co_yield" => return self.opaque(start),
            word if is_type_word(word) => return self.built_in(start),
            _ => {}
        }
        if self.kind() == Some(Kind::Scope) {
            self.at += 1;
        }
        let arguments = loop {
            match self.word_at(self.at) {
                b"" => return self.opaque(start),
                b"template" if self.kind_at(self.at + 1) == Some(Kind::Word) => {
                    self.at += 1;
                    continue;
                }
                b"operator" => return self.opaque(start),
                _ => self.at += 1,
            }
            let arguments = self.angles();
            if let Some((_, end)) = arguments {
                self.at = end as usize + 1;
            }
            if self.kind() != Some(Kind::Scope) {
                break arguments;
            }
            self.at += 1;
        };
        self.add(What::Name { arguments }, start)
    }

    /// `sizeof(type)` or `sizeof value`
    fn size_of(&mut self, start: usize) -> Id {
        self.at += 1;
        if self.kind() != Some(Kind::ParenOpen) {
            let operand = self.expression(Strength::Unary);
            let tokens = self.tree.get(operand).tokens;
            return self.add(What::SizeOf(tokens), start);
        }
        let Some(close) = self.partner(self.at) else { return self.opaque(start) };
        let inner = (self.narrow(self.at + 1), self.narrow(close));
        self.at = close + 1;
        self.add(What::SizeOf(inner), start)
    }

    /// `static_cast<type>(value)`
    fn named_cast(&mut self, start: usize) -> Id {
        self.at += 1;
        let Some(to) = self.angles() else { return self.opaque(start) };
        self.at = to.1 as usize + 1;
        if self.kind() != Some(Kind::ParenOpen) {
            return self.opaque(start);
        }
        let value = self.parenthesised();
        self.add(What::Cast(to, value), start)
    }

    /// `unsigned int(value)`, or a built-in type as an argument of something.
    fn built_in(&mut self, start: usize) -> Id {
        while is_type_word(self.word_at(self.at)) {
            self.at += 1;
        }
        let to = (self.narrow(start), self.narrow(self.at));
        if !matches!(self.kind(), Some(Kind::ParenOpen | Kind::BraceOpen)) {
            return self.add(What::Opaque, start);
        }
        match self.arguments() {
            Some(list) if self.tree.list(list).len() == 1 => {
                let value = self.tree.list(list)[0];
                self.add(What::Cast(to, value), start)
            }
            _ => self.add(What::Opaque, start),
        }
    }

    /// Whether the parenthesis here holds a type, and an operand follows.
    fn is_cast(&self) -> bool {
        let mut at = self.at + 1;
        let (mut words, mut is_built_in, mut is_pointer, mut is_plain) = (0, false, false, true);
        loop {
            match self.kind_at(at) {
                Some(Kind::Word) => {
                    let word = self.word_at(at);
                    is_built_in |= is_type_word(word) || word.ends_with(b"_t");
                    words += 1;
                    at += 1;
                    if let Some((_, end)) = angles(self.text, self.tokens, at) {
                        is_plain = false;
                        at = end as usize + 1;
                    }
                }
                Some(Kind::Scope) => at += 1,
                Some(Kind::Star | Kind::And | Kind::AndAnd) if words > 0 => {
                    is_pointer = true;
                    at += 1;
                }
                Some(Kind::ParenClose) if words > 0 => break,
                _ => return false,
            }
            if at - self.at > LONGEST_ANGLES {
                return false;
            }
        }
        let begins_operand = match self.kind_at(at + 1) {
            Some(
                Kind::Word | Kind::Number | Kind::String | Kind::Character | Kind::Scope | Kind::Tilde | Kind::Not,
            ) => true,
            // `(a) - b` subtracts, `(int) - b` negates.
            Some(Kind::Minus | Kind::Plus | Kind::Star | Kind::And) => is_built_in || is_pointer,
            // `(f)(x)` calls, `(T)(x)` casts: a name of one capital letter, or in angles, is a type's.
            Some(Kind::ParenOpen) => is_built_in || is_pointer || !is_plain || self.is_type_letter(at),
            _ => false,
        };
        let is_keyword = |word: &[u8]| matches!(word, b"this" | b"true" | b"false" | b"nullptr" | b"sizeof");
        begins_operand && !is_keyword(self.word_at(self.at + 1))
    }

    /// Whether the token before `close` is the conventional name of a type parameter.
    fn is_type_letter(&self, close: usize) -> bool {
        let word = self.word_at(close - 1);
        close == self.at + 2 && word.len() <= 2 && word.first().is_some_and(u8::is_ascii_uppercase)
    }

    fn cast(&mut self) -> Id {
        let start = self.at;
        let Some(close) = self.partner(start) else { return self.opaque(start) };
        let to = (self.narrow(start + 1), self.narrow(close));
        self.at = close + 1;
        let value = self.expression(Strength::Unary);
        self.add(What::Cast(to, value), start)
    }

    /// `[captures](parameters) specifiers { body }`
    fn lambda(&mut self) -> Id {
        let start = self.at;
        let Some(close) = self.partner(start) else { return self.opaque(start) };
        let mut at = close + 1;
        while at < self.tokens.len() && at - close < LONGEST_ANGLES {
            match self.kind_at(at) {
                Some(Kind::BraceOpen) => {
                    let Some(end) = self.partner(at) else { break };
                    let body = (self.narrow(at + 1), self.narrow(end));
                    self.at = end + 1;
                    return self.add(What::Lambda(body), start);
                }
                Some(Kind::ParenOpen) => match self.partner(at) {
                    Some(end) => at = end + 1,
                    None => break,
                },
                Some(
                    Kind::Word
                    | Kind::Arrow
                    | Kind::Scope
                    | Kind::Star
                    | Kind::And
                    | Kind::Less
                    | Kind::Greater
                    | Kind::Comma,
                ) => at += 1,
                _ => break,
            }
        }
        self.opaque(start)
    }

    /// The tokens of template arguments that begin here.
    fn angles(&self) -> Option<Tokens> {
        angles(self.text, self.tokens, self.at)
    }

    fn skip_angles(&mut self) {
        if let Some((_, end)) = self.angles() {
            self.at = end as usize + 1;
        }
    }

    fn narrow(&self, at: usize) -> u32 {
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn partner(&self, at: usize) -> Option<usize> {
        partner(self.tokens, at)
    }

    /// What cannot be understood ends at the next comma, colon or closing bracket that is not its own. It takes a token at
    /// least, if one is left.
    fn opaque(&mut self, start: usize) -> Id {
        let mut depth = 0_usize;
        while let Some(kind) = self.kind() {
            match kind {
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose if depth == 0 => break,
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => depth -= 1,
                Kind::Comma | Kind::Semicolon | Kind::Colon if depth == 0 && self.at > start => break,
                _ => {}
            }
            self.at += 1;
        }
        self.add(What::Opaque, start)
    }
}

/// The tokens between the angles at `at`, where they hold the arguments of a template and not a comparison: what stands
/// between them can stand there, and what follows can follow.
#[must_use]
pub fn angles(text: &[u8], tokens: &[Token], at: usize) -> Option<Tokens> {
    if tokens.get(at)?.kind != Kind::Less {
        return None;
    }
    let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let (mut angles, mut brackets) = (1_usize, 0_usize);
    for (index, token) in tokens.iter().enumerate().skip(at + 1).take(LONGEST_ANGLES) {
        match token.kind {
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => brackets += 1,
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => brackets = brackets.checked_sub(1)?,
            Kind::Semicolon | Kind::Directive | Kind::Launch => return None,
            _ if brackets > 0 => {}
            Kind::Less => angles += 1,
            Kind::AndAnd if !closes(tokens, index) => return None,
            Kind::OrOr | Kind::Question | Kind::Assign => return None,
            Kind::Greater => {
                angles -= 1;
                if angles == 0 {
                    return may_follow(text, tokens.get(index + 1)).then(|| (narrow(at + 1), narrow(index)));
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether `&&` here ends a type, as a reference does.
fn closes(tokens: &[Token], at: usize) -> bool {
    matches!(tokens.get(at + 1).map(|token| token.kind), Some(Kind::Greater | Kind::Comma | Kind::Ellipsis))
}

/// Whether a token can follow the arguments of a template and not a comparison's right side.
fn may_follow(text: &[u8], next: Option<&Token>) -> bool {
    let Some(next) = next else { return true };
    match next.kind {
        Kind::Number | Kind::String | Kind::Character | Kind::Not | Kind::Tilde | Kind::Minus | Kind::Plus => false,
        // `a < b > c` compares twice, which nobody writes; `A<b> c` declares.
        Kind::Word => !matches!(next.of(text), b"sizeof" | b"true" | b"false"),
        _ => true,
    }
}

/// Whether a word is part of the name of a built-in type.
fn is_type_word(word: &[u8]) -> bool {
    matches!(
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
            | b"const"
            | b"volatile"
            | b"wchar_t"
            | b"__int128"
            | b"struct"
            | b"typename"
    )
}
