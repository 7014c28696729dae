//! Expressions of C++ as trees, without types: what cannot be told without them is opaque, and never a guess.

use super::lexer::{Kind, Token};

/// A node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// Nodes in a row: arguments and the like, as a range of [`Tree::list`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    start: u32,
    end: u32,
}

/// Tokens in a row, by their indices.
pub type Tokens = (u32, u32);

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A number, as its token spells it.
    Number,
    /// A string or several that stand side by side.
    String,
    /// A character.
    Character,
    /// A name, qualified or not. `arguments` are the tokens between the angles that it ends with.
    Name {
        /// What stands between the angles.
        arguments: Option<Tokens>,
    },
    /// `base.name` or `base->name`; the name is the last token.
    Member {
        /// The left side.
        base: Id,
        /// Whether it is a pointer.
        arrow: bool,
    },
    /// `callee(arguments)`
    Call {
        /// What is called.
        callee: Id,
        /// What it is given.
        arguments: List,
    },
    /// `callee<<<config>>>(arguments)`
    Launch {
        /// The kernel.
        callee: Id,
        /// Grid, block, dynamic shared memory and stream, as far as given.
        config: List,
        /// What the kernel is given.
        arguments: List,
    },
    /// `base[index]`
    Index {
        /// The array or pointer.
        base: Id,
        /// The index.
        index: Id,
    },
    /// `name{…}`
    Construct {
        /// The type.
        callee: Id,
        /// What it is made of.
        arguments: List,
    },
    /// `{…}`
    Braces(List),
    /// An operator before its operand.
    Unary(Unary, Id),
    /// An operator after its operand.
    Postfix(Unary, Id),
    /// An operator between its operands.
    Binary(Binary, Id, Id),
    /// `a = b`, or `a += b` and the like.
    Assign(Option<Binary>, Id, Id),
    /// `condition ? yes : no`
    Choice(Id, Id, Id),
    /// A cast in any spelling to a type that these tokens name.
    Cast(Tokens, Id),
    /// `sizeof` of what these tokens name.
    SizeOf(Tokens),
    /// A lambda, whose body these tokens are.
    Lambda(Tokens),
    /// What could not be understood, or is nested too deeply.
    Opaque,
}

/// An operator with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names an operator of C++")]
pub enum Unary {
    Plus,
    Minus,
    Not,
    Complement,
    Dereference,
    AddressOf,
    Increment,
    Decrement,
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each names an operator of C++")]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    ExclusiveOr,
    LogicalAnd,
    LogicalOr,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Comma,
}

/// A node with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub what: What,
    /// Its tokens.
    pub tokens: Tokens,
    /// Nodes on the longest way down from here. It is bounded, so that who walks the tree may recurse.
    pub height: u16,
}

/// Expressions of a function or a file.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    lists: Vec<Id>,
}

/// Nodes on the longest way through a tree; what is deeper is opaque.
const HIGHEST: u16 = 120;

/// Expressions within expressions that are followed.
const DEEPEST: u32 = 120;

/// Tokens between the angles of a template's arguments, at most: past that, `<` compares.
const LONGEST_ANGLES: usize = 200;

impl Tree {
    /// The node.
    #[must_use]
    pub fn get(&self, id: Id) -> Node {
        self.nodes[id.0 as usize]
    }

    /// The nodes of a list.
    #[must_use]
    pub fn list(&self, list: List) -> &[Id] {
        &self.lists[list.start as usize..list.end as usize]
    }

    /// Forgets all nodes, and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.lists.clear();
    }

    /// Reads the tokens `from..to` as one expression. Tokens that are left over make it opaque.
    pub fn parse(&mut self, text: &[u8], tokens: &[Token], from: usize, to: usize) -> Id {
        let mut parser = Parser { text, tokens: &tokens[..to.min(tokens.len())], at: from, depth: 0, tree: self };
        let start = parser.at;
        let id = parser.expression(Strength::Comma);
        if parser.at < parser.tokens.len() {
            parser.at = parser.tokens.len();
            return parser.add(What::Opaque, start);
        }
        id
    }

    /// Reads one expression without a comma of its own that begins at token `from`, as far as it goes within `to`.
    /// Returns it and the index of the token after it.
    pub fn parse_prefix(&mut self, text: &[u8], tokens: &[Token], from: usize, to: usize) -> (Id, usize) {
        let mut parser = Parser { text, tokens: &tokens[..to.min(tokens.len())], at: from, depth: 0, tree: self };
        let id = parser.expression(Strength::Assign);
        (id, parser.at)
    }
}

/// How strongly an operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
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

struct Parser<'p> {
    text: &'p [u8],
    tokens: &'p [Token],
    at: usize,
    depth: u32,
    tree: &'p mut Tree,
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

    fn add(&mut self, what: What, start: usize) -> Id {
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
    fn expression(&mut self, least: Strength) -> Id {
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

    /// The token that closes the bracket at `at`.
    fn partner(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, token) in self.tokens.iter().enumerate().skip(at) {
            match token.kind {
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        None
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

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::*;

    /// The tree in brackets: every operator with its operands, names and numbers as written.
    fn shown(source: &str) -> String {
        let mut all = Vec::new();
        tokens(source.as_bytes(), 0, source.len(), &mut all);
        let mut tree = Tree::default();
        let id = tree.parse(source.as_bytes(), &all, 0, all.len());
        show(source, &all, &tree, id)
    }

    fn spelled<'t>(source: &'t str, all: &[Token], (from, to): Tokens) -> &'t str {
        match (all.get(from as usize), all.get((to as usize).wrapping_sub(1))) {
            (Some(first), Some(last)) if from < to => &source[first.start as usize..last.end as usize],
            _ => "",
        }
    }

    fn show(source: &str, all: &[Token], tree: &Tree, id: Id) -> String {
        let node = tree.get(id);
        let one = |id: Id| show(source, all, tree, id);
        let list = |list: List| tree.list(list).iter().map(|id| one(*id)).collect::<Vec<_>>().join(", ");
        let own = spelled(source, all, node.tokens);
        match node.what {
            What::Number | What::String | What::Character | What::Name { .. } => own.to_owned(),
            What::Member { base, arrow } => {
                let name = own.rsplit(['.', '>', ' ']).next().unwrap_or_default();
                format!("{}{}{name}", one(base), if arrow { "->" } else { "." })
            }
            What::Call { callee, arguments } => format!("{}({})", one(callee), list(arguments)),
            What::Launch { callee, config, arguments } => {
                format!("{}<<<{}>>>({})", one(callee), list(config), list(arguments))
            }
            What::Index { base, index } => format!("{}[{}]", one(base), one(index)),
            What::Construct { callee, arguments } => format!("{}{{{}}}", one(callee), list(arguments)),
            What::Braces(inner) => format!("{{{}}}", list(inner)),
            What::Unary(op, of) => format!("[{op:?} {}]", one(of)),
            What::Postfix(op, of) => format!("[{} {op:?}]", one(of)),
            What::Binary(op, a, b) => format!("[{} {op:?} {}]", one(a), one(b)),
            What::Assign(op, a, b) => format!("[{} = {op:?} {}]", one(a), one(b)),
            What::Choice(a, b, c) => format!("[{} ? {} : {}]", one(a), one(b), one(c)),
            What::Cast(to, of) => format!("[{}: {}]", spelled(source, all, to), one(of)),
            What::SizeOf(of) => format!("sizeof[{}]", spelled(source, all, of)),
            What::Lambda(body) => format!("lambda[{}]", spelled(source, all, body)),
            What::Opaque => format!("?{own}?"),
        }
    }

    #[test]
    fn operators_bind_as_in_cpp() {
        assert_eq!(shown("a + b * c - d"), "[[a Add [b Multiply c]] Subtract d]");
        assert_eq!(shown("a & 3 == 1"), "[a And [3 Equal 1]]");
        assert_eq!(shown("a || b && !c"), "[a LogicalOr [b LogicalAnd [Not c]]]");
        assert_eq!(shown("x = y += 1 << n"), "[x = None [y = Some(Add) [1 ShiftLeft n]]]");
        assert_eq!(shown("c ? a : d ? e : f"), "[c ? a : [d ? e : f]]");
        assert_eq!(shown("a, b"), "[a Comma b]");
        assert_eq!(shown("-a.x * *p++"), "[[Minus a.x] Multiply [Dereference [p Increment]]]");
    }

    #[test]
    fn angles_are_told_from_comparisons() {
        assert_eq!(shown("a < b && c > d"), "[[a Less b] LogicalAnd [c Greater d]]");
        assert_eq!(shown("i < n"), "[i Less n]");
        assert_eq!(shown("f<a, b>(x)"), "f<a, b>(x)");
        assert_eq!(shown("std::min<int>(a, b) < c"), "[std::min<int>(a, b) Less c]");
        assert_eq!(shown("A<B<C>>::value"), "A<B<C>>::value");
        assert_eq!(shown("q<T, (N > 4)>(x)"), "q<T, (N > 4)>(x)");
        assert_eq!(shown("size<2>(th.part(x))"), "size<2>(th.part(x))");
        assert_eq!(shown("x < 4 > -1"), "[[x Less 4] Greater [Minus 1]]");
    }

    #[test]
    fn greater_twice_shifts() {
        assert_eq!(shown("t >> 5 > 1"), "[[t ShiftRight 5] Greater 1]");
        assert_eq!(shown("s >>= 1"), "[s = Some(ShiftRight) 1]");
        assert_eq!(shown("a >= b"), "[a GreaterEqual b]");
    }

    #[test]
    fn launches_and_calls_hold_their_arguments() {
        assert_eq!(shown("t<<<ceil_div<int, 4>(n), dim3(8, 8)>>>(x)"), "t<<<ceil_div<int, 4>(n), dim3(8, 8)>>>(x)");
        assert_eq!(shown("k<T><<<g, 1 << 5, 0, s>>>()"), "k<T><<<g, [1 ShiftLeft 5], 0, s>>>()");
        assert_eq!(shown("block.thread_rank()"), "block.thread_rank()");
        assert_eq!(shown("dim3{32, 2}.x"), "dim3{32, 2}.x");
        assert_eq!(shown("a[i + 1][j]"), "a[[i Add 1]][j]");
        assert_eq!(shown("g.template get<0>()"), "g.get<0>()".replace("get<0>", "get"));
    }

    #[test]
    fn casts_in_every_spelling_are_casts() {
        assert_eq!(shown("(int)x + 1"), "[[int: x] Add 1]");
        assert_eq!(shown("(unsigned int)(a * b)"), "[unsigned int: [a Multiply b]]");
        assert_eq!(shown("static_cast<size_t>(n) * 4"), "[[size_t: n] Multiply 4]");
        assert_eq!(shown("unsigned(n)"), "[unsigned: n]");
        assert_eq!(shown("(float*)p"), "[float*: p]");
        assert_eq!(shown("(T)(x)"), "[T: x]");
        assert_eq!(shown("(a) - b"), "[a Subtract b]");
        assert_eq!(shown("(f)(x)"), "f(x)");
        assert_eq!(shown("sizeof(float) * n"), "[sizeof[float] Multiply n]");
    }

    #[test]
    fn what_is_not_understood_is_opaque_and_the_rest_is_kept() {
        assert_eq!(shown("f(new int[3], b)"), "f(?new int[3]?, b)");
        assert_eq!(shown("[&](int i) { return i; }"), "lambda[return i;]");
        assert_eq!(shown("a b"), "?a b?");
        assert_eq!(shown(""), "??");
        assert_eq!(shown("(a"), "?(a?");
    }

    #[test]
    fn deep_and_long_expressions_stay_bounded() {
        for text in ["(".repeat(100_000), "-".repeat(100_000), "a<".repeat(100_000), "a = ".repeat(100_000)] {
            let _ = shown(&text);
        }
        let sum = vec!["a"; 100_000].join(" + ");
        let mut all = Vec::new();
        tokens(sum.as_bytes(), 0, sum.len(), &mut all);
        let mut tree = Tree::default();
        let id = tree.parse(sum.as_bytes(), &all, 0, all.len());
        assert!(tree.get(id).height <= HIGHEST);
    }
}
