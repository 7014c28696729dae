//! The statements of a function's body as a tree. What is nested too deeply, or torn by `#if`, is no tree: nothing is said.

mod declarations;

pub(super) use self::declarations::{is_attribute, is_qualifier, is_storage};
use super::directives::{Directive, directive};
use super::lexer::{Kind, Token, partner};

/// A statement of a [`Body`].
pub type Id = u32;

/// Tokens in a row, by their indices: the first, and the one after the last.
pub type Tokens = (usize, usize);

/// What a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Nothing that does anything: `;`, `using`, a type.
    Empty,
    /// `{ … }`
    Block(Vec<Id>),
    /// `if (condition) then else otherwise`
    If {
        /// A declaration before the condition: `if (int i = f(); i > 0)`.
        first: Option<Id>,
        /// The condition.
        condition: Tokens,
        /// `if constexpr`
        is_constant: bool,
        /// What runs where it holds.
        then: Id,
        /// What runs where it does not.
        otherwise: Option<Id>,
    },
    /// `for (first; condition; step) body`; `while` has only a condition.
    Loop {
        /// What runs before.
        first: Option<Id>,
        /// The condition, which holds where it is left out.
        condition: Tokens,
        /// What runs after each iteration.
        step: Tokens,
        /// The body.
        body: Id,
    },
    /// `do body while (condition);`
    Do {
        /// The body.
        body: Id,
        /// The condition.
        condition: Tokens,
    },
    /// A loop of which nothing is known: over a range, or one that a macro makes.
    Each(Id),
    /// `switch (value) body`
    Switch {
        /// What is compared.
        value: Tokens,
        /// The body, which holds the cases.
        body: Id,
    },
    /// `case value:`
    Case(Tokens),
    /// `default:`
    Default,
    /// `return value;`
    Return(Tokens),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `goto label;`, the token of its name.
    Goto(usize),
    /// `label:`
    Label(usize),
    /// A declaration of variables.
    Declaration(Tokens),
    /// An expression, which may be a macro that ends without `;`.
    Expression(Tokens),
    /// `asm`
    Assembly(Tokens),
    /// The branches of an `#if`, of which one is compiled.
    Variants(Vec<Id>),
}

/// A statement with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it is.
    pub what: What,
    /// All its tokens.
    pub tokens: Tokens,
}

/// The statements of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    statements: Vec<Statement>,
    /// The outermost block.
    pub root: Id,
}

/// Statements within statements that are followed.
const DEEPEST: u32 = 120;

impl Body {
    /// Reads the tokens `from..to`, which stand between the braces of a function. `None` where they are no statements, or
    /// nested too deeply.
    #[must_use]
    pub fn parse(text: &[u8], tokens: &[Token], (from, to): Tokens) -> Option<Body> {
        let mut parser =
            Parser { text, tokens: &tokens[..to.min(tokens.len())], at: from, depth: 0, statements: Vec::new() };
        let root = parser.sequence(from)?;
        (parser.at == parser.tokens.len()).then_some(Body { statements: parser.statements, root })
    }

    /// The statement.
    #[must_use]
    pub fn get(&self, id: Id) -> &Statement {
        &self.statements[id as usize]
    }
}

struct Parser<'p> {
    text: &'p [u8],
    tokens: &'p [Token],
    at: usize,
    depth: u32,
    statements: Vec<Statement>,
}

impl Parser<'_> {
    fn kind(&self) -> Option<Kind> {
        self.kind_at(self.at)
    }

    fn kind_at(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn word_at(&self, at: usize) -> &[u8] {
        self.tokens.get(at).filter(|token| token.kind == Kind::Word).map_or(b"", |token| token.of(self.text))
    }

    fn directive_at(&self, at: usize) -> Option<Directive> {
        self.tokens.get(at).filter(|token| token.kind == Kind::Directive).map(|token| directive(token.of(self.text)))
    }

    fn add(&mut self, what: What, start: usize) -> Id {
        self.statements.push(Statement { what, tokens: (start, self.at) });
        u32::try_from(self.statements.len() - 1).unwrap_or(u32::MAX)
    }

    /// Statements up to a closing brace, the next branch of an `#if`, or the end.
    fn sequence(&mut self, start: usize) -> Option<Id> {
        let mut all = Vec::new();
        loop {
            match self.kind() {
                None | Some(Kind::BraceClose) => break,
                Some(Kind::Directive) => match self.directive_at(self.at) {
                    Some(Directive::ElseIf | Directive::Else | Directive::End) => break,
                    Some(Directive::Other) => self.at += 1,
                    _ => all.push(self.statement()?),
                },
                Some(_) => all.push(self.statement()?),
            }
        }
        Some(self.add(What::Block(all), start))
    }

    fn statement(&mut self) -> Option<Id> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let id = self.any()?;
        self.depth -= 1;
        Some(id)
    }

    fn any(&mut self) -> Option<Id> {
        self.at = self.behind_directives(self.at);
        let start = self.at;
        match self.kind()? {
            Kind::Semicolon => {
                self.at += 1;
                Some(self.add(What::Empty, start))
            }
            Kind::BraceOpen => {
                self.at += 1;
                let id = self.sequence(start)?;
                (self.kind() == Some(Kind::BraceClose)).then_some(())?;
                self.at += 1;
                self.statements[id as usize].tokens.1 = self.at;
                Some(id)
            }
            Kind::Directive => match self.directive_at(start)? {
                Directive::If(known) => self.variants(known),
                _ => None,
            },
            Kind::BracketOpen if self.kind_at(start + 1) == Some(Kind::BracketOpen) => {
                self.at = self.partner(start)? + 1;
                self.any_after_attribute()
            }
            Kind::Word => self.beginning_with_word(start),
            _ => self.simple(start),
        }
    }

    /// What follows `[[unlikely]]` and the like; a row of them takes no depth.
    fn any_after_attribute(&mut self) -> Option<Id> {
        while self.kind() == Some(Kind::BracketOpen) && self.kind_at(self.at + 1) == Some(Kind::BracketOpen) {
            self.at = self.partner(self.at)? + 1;
        }
        self.statement()
    }

    fn beginning_with_word(&mut self, start: usize) -> Option<Id> {
        match self.word_at(start) {
            b"if" => self.branch(start),
            b"for" => self.for_loop(start),
            b"while" => {
                let condition = self.bracketed(start + 1)?;
                let body = self.statement()?;
                let what = What::Loop { first: None, condition, step: (condition.1, condition.1), body };
                Some(self.add(what, start))
            }
            b"do" => {
                self.at += 1;
                let body = self.statement()?;
                (self.word_at(self.at) == b"while").then_some(())?;
                let condition = self.bracketed(self.at + 1)?;
                // A macro may leave it out.
                if self.kind() == Some(Kind::Semicolon) {
                    self.at += 1;
                }
                Some(self.add(What::Do { body, condition }, start))
            }
            b"switch" => {
                let value = self.bracketed(start + 1)?;
                let body = self.statement()?;
                Some(self.add(What::Switch { value, body }, start))
            }
            b"case" => {
                let end = self.case_end(start + 1)?;
                self.at = end + 1;
                Some(self.add(What::Case((start + 1, end)), start))
            }
            b"default" if self.kind_at(start + 1) == Some(Kind::Colon) => {
                self.at += 2;
                Some(self.add(What::Default, start))
            }
            b"return" => {
                let end = self.end_of_simple(start + 1)?;
                self.ended(end, What::Return((start + 1, end)), start)
            }
            b"break" => self.ended(start + 1, What::Break, start),
            b"continue" => self.ended(start + 1, What::Continue, start),
            b"goto" => self.ended(start + 2, What::Goto(start + 1), start),
            b"try" => {
                self.at += 1;
                self.statement()
            }
            b"catch" => {
                self.bracketed(start + 1)?;
                self.statement()?;
                Some(self.add(What::Empty, start))
            }
            b"else" | b"namespace" | b"template" | b"public" | b"private" | b"extern" if self.is_no_statement() => None,
            b"asm" | b"__asm__" | b"__asm" => {
                let end = self.end_of_simple(start)?;
                self.ended(end, What::Assembly((start, end)), start)
            }
            b"using" | b"typedef" | b"static_assert" | b"namespace" => {
                let end = self.end_of_simple(start)?;
                self.ended(end, What::Empty, start)
            }
            b"struct" | b"class" | b"union" | b"enum" if self.defines_type(start) => {
                let end = self.end_of_simple(start)?;
                self.ended(end, What::Empty, start)
            }
            _ if self.kind_at(start + 1) == Some(Kind::Colon) => {
                self.at += 2;
                Some(self.add(What::Label(start), start))
            }
            b"_Pragma" if self.kind_at(start + 1) == Some(Kind::ParenOpen) => {
                self.at = self.partner(start + 1)? + 1;
                self.statement()
            }
            // Only a macro stands before these: a pragma, an attribute, or nothing.
            _ if begins_statement(self.word_at(start + 1)) => {
                self.at += 1;
                self.statement()
            }
            _ => self.simple(start),
        }
    }

    /// Words that begin statements here only in ways that are followed.
    fn is_no_statement(&self) -> bool {
        match self.word_at(self.at) {
            b"else" | b"template" | b"public" | b"private" => true,
            // `namespace cg = cooperative_groups;` and `extern __shared__ …` are statements.
            b"namespace" => self.kind_at(self.at + 2) != Some(Kind::Assign),
            _ => self.kind_at(self.at + 1) == Some(Kind::String),
        }
    }

    /// Whether `struct` defines a type, and declares no variable of one.
    fn defines_type(&self, start: usize) -> bool {
        let after = (start + 1..start + 12).find(|at| {
            matches!(
                self.kind_at(*at),
                Some(Kind::BraceOpen | Kind::Semicolon | Kind::Assign | Kind::Comma | Kind::BracketOpen) | None
            )
        });
        after.is_some_and(|at| matches!(self.kind_at(at), Some(Kind::BraceOpen | Kind::Semicolon)))
    }

    /// An `if` with all that `else` leads to. `else if` takes no depth: there may be as many as a `switch` has cases.
    fn branch(&mut self, start: usize) -> Option<Id> {
        let mut chain = Vec::new();
        let mut start = start;
        let mut otherwise = loop {
            let (first, condition, is_constant) = self.head_of_branch(start)?;
            let then = self.statement()?;
            chain.push((start, first, condition, is_constant, then));
            let ahead = self.behind_directives(self.at);
            if self.word_at(ahead) != b"else" {
                break None;
            }
            self.at = self.behind_directives(ahead + 1);
            if self.word_at(self.at) != b"if" {
                break Some(self.statement()?);
            }
            start = self.at;
        };
        while let Some((start, first, condition, is_constant, then)) = chain.pop() {
            otherwise = Some(self.add(What::If { first, condition, is_constant, then, otherwise }, start));
        }
        otherwise
    }

    /// What stands before the condition of the `if` at `start`, the condition, and whether a compiler decides it.
    fn head_of_branch(&mut self, start: usize) -> Option<(Option<Id>, Tokens, bool)> {
        let is_constant = self.word_at(start + 1) == b"constexpr";
        let open = start + 1 + usize::from(is_constant);
        // A macro may choose between the two.
        let open = if self.kind_at(open) == Some(Kind::Word) { open + 1 } else { open };
        let is_constant = is_constant || open > start + 1;
        let mut condition = self.bracketed(open)?;
        let mut first = None;
        if let Some(semicolon) = self.find_semicolon(condition) {
            let end = self.at;
            self.at = semicolon;
            let what = self.kind_of_simple((condition.0, semicolon));
            first = Some(self.add(what, condition.0));
            self.at = end;
            condition.0 = semicolon + 1;
        }
        Some((first, condition, is_constant))
    }

    /// Past directives that say nothing about statements.
    fn behind_directives(&self, from: usize) -> usize {
        let mut at = from;
        while self.directive_at(at) == Some(Directive::Other) {
            at += 1;
        }
        at
    }

    fn for_loop(&mut self, start: usize) -> Option<Id> {
        let (from, to) = self.bracketed(start + 1)?;
        let after = self.at;
        let Some(one) = self.find_semicolon((from, to)) else {
            let body = self.statement()?;
            return Some(self.add(What::Each(body), start));
        };
        let two = self.find_semicolon((one + 1, to))?;
        self.at = one;
        let what = if from == one { What::Empty } else { self.kind_of_simple((from, one)) };
        let first = Some(self.add(what, from));
        self.at = after;
        let body = self.statement()?;
        Some(self.add(What::Loop { first, condition: (one + 1, two), step: (two + 1, to), body }, start))
    }

    /// The next `;` among tokens that stands in no bracket.
    fn find_semicolon(&self, (from, to): Tokens) -> Option<usize> {
        let mut depth = 0_usize;
        for at in from..to {
            match self.kind_at(at)? {
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => depth = depth.checked_sub(1)?,
                Kind::Semicolon if depth == 0 => return Some(at),
                _ => {}
            }
        }
        None
    }

    /// The tokens between the parentheses that open at `open`; what follows them is next. Attributes behind are passed over.
    fn bracketed(&mut self, open: usize) -> Option<Tokens> {
        (self.kind_at(open) == Some(Kind::ParenOpen)).then_some(())?;
        let close = self.partner(open)?;
        self.at = close + 1;
        while self.kind() == Some(Kind::BracketOpen) && self.kind_at(self.at + 1) == Some(Kind::BracketOpen) {
            self.at = self.partner(self.at)? + 1;
        }
        Some((open + 1, close))
    }

    fn partner(&self, at: usize) -> Option<usize> {
        partner(self.tokens, at)
    }

    fn case_end(&self, from: usize) -> Option<usize> {
        let (mut depth, mut choices) = (0_usize, 0_usize);
        for at in from..self.tokens.len() {
            match self.kind_at(at)? {
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => depth = depth.checked_sub(1)?,
                Kind::Question => choices += 1,
                Kind::Colon if depth == 0 && choices == 0 => return Some(at),
                Kind::Colon if depth == 0 => choices -= 1,
                Kind::Semicolon | Kind::Directive => return None,
                _ => {}
            }
        }
        None
    }

    fn ended(&mut self, semicolon: usize, what: What, start: usize) -> Option<Id> {
        self.at = semicolon;
        if self.kind() == Some(Kind::Semicolon) {
            self.at += 1;
        } else if matches!(what, What::Break | What::Continue | What::Goto(_)) {
            return None;
        }
        Some(self.add(what, start))
    }

    /// A statement without statements in it.
    fn simple(&mut self, start: usize) -> Option<Id> {
        if let Some(id) = self.macro_call(start) {
            return id;
        }
        let end = self.end_of_simple(start)?;
        let what = self.kind_of_simple((start, end));
        self.ended(end, what, start)
    }

    /// `NAME(…)` that no `;` ends: a macro which makes a statement, or a loop where one follows.
    fn macro_call(&mut self, start: usize) -> Option<Option<Id>> {
        if self.kind_at(start) != Some(Kind::Word) || self.kind_at(start + 1) != Some(Kind::ParenOpen) {
            return None;
        }
        if is_qualifier(self.word_at(start)) || is_attribute(self.word_at(start)) {
            return None;
        }
        let close = self.partner(start + 1)?;
        match self.kind_at(close + 1) {
            Some(Kind::BraceOpen) => {
                self.at = close + 1;
                let body = self.statement();
                Some(body.map(|body| self.add(What::Each(body), start)))
            }
            None | Some(Kind::Word | Kind::BraceClose | Kind::Directive) => {
                self.at = close + 1;
                Some(Some(self.add(What::Expression((start, close + 1)), start)))
            }
            _ => None,
        }
    }

    /// The `;` that ends a statement, or where it is missing before a closing brace.
    fn end_of_simple(&self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in from..self.tokens.len() {
            match self.kind_at(at)? {
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
                Kind::BraceClose if depth == 0 => return Some(at),
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => depth = depth.checked_sub(1)?,
                Kind::Semicolon if depth == 0 => return Some(at),
                _ => {}
            }
        }
        (depth == 0).then_some(self.tokens.len())
    }

    fn kind_of_simple(&self, tokens: Tokens) -> What {
        if self.is_declaration(tokens) { What::Declaration(tokens) } else { What::Expression(tokens) }
    }

    /// `#if … #elif … #else … #endif`
    fn variants(&mut self, known: Option<bool>) -> Option<Id> {
        let start = self.at;
        self.at += 1;
        let mut all = Vec::new();
        let mut known = known;
        let mut has_else = false;
        loop {
            if known == Some(false) {
                self.skip_branch()?;
            } else {
                let from = self.at;
                all.push(self.sequence(from)?);
            }
            let next = self.directive_at(self.at)?;
            self.at += 1;
            match next {
                Directive::ElseIf | Directive::Else => {
                    has_else |= next == Directive::Else;
                    // After the branch that is compiled, none is.
                    known = (known == Some(true)).then_some(false);
                }
                Directive::End => break,
                _ => return None,
            }
        }
        if all.is_empty() || !(has_else || known == Some(true)) {
            all.push(self.add(What::Block(Vec::new()), self.at));
        }
        if all.len() == 1 { all.pop() } else { Some(self.add(What::Variants(all), start)) }
    }

    /// To the next branch of an `#if`, whatever stands between.
    fn skip_branch(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.kind()?;
            match self.directive_at(self.at) {
                Some(Directive::If(_)) => depth += 1,
                Some(Directive::End) if depth > 0 => depth -= 1,
                Some(Directive::ElseIf | Directive::Else | Directive::End) if depth == 0 => return Some(()),
                _ => {}
            }
            self.at += 1;
        }
    }
}

/// Words with which statements begin that hold others.
fn begins_statement(word: &[u8]) -> bool {
    matches!(word, b"for" | b"while" | b"do" | b"if" | b"switch")
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::*;

    fn shown(source: &str) -> String {
        let mut all = Vec::new();
        tokens(source.as_bytes(), 0, source.len(), &mut all);
        match Body::parse(source.as_bytes(), &all, (0, all.len())) {
            Some(body) => show(source, &all, &body, body.root),
            None => "none".to_owned(),
        }
    }

    fn show(source: &str, all: &[Token], body: &Body, id: Id) -> String {
        let one = |id: &Id| show(source, all, body, *id);
        let spelled = |(from, to): Tokens| match (all.get(from), all.get(to.wrapping_sub(1))) {
            (Some(first), Some(last)) if from < to => &source[first.start as usize..last.end as usize],
            _ => "",
        };
        match &body.get(id).what {
            What::Empty => "-".to_owned(),
            What::Block(list) => format!("{{{}}}", list.iter().map(one).collect::<Vec<_>>().join(" ")),
            What::If { first, condition, is_constant, then, otherwise } => {
                let first = first.as_ref().map_or_else(String::new, |first| format!("{}; ", one(first)));
                let otherwise = otherwise.as_ref().map_or_else(String::new, |id| format!(" else {}", one(id)));
                let word = if *is_constant { "static-if" } else { "if" };
                format!("{word}({first}{}) {}{otherwise}", spelled(*condition), one(then))
            }
            What::Loop { first, condition, step, body } => {
                let first = first.as_ref().map_or_else(String::new, one);
                format!("loop({first}; {}; {}) {}", spelled(*condition), spelled(*step), one(body))
            }
            What::Do { body, condition } => format!("do {} while {}", one(body), spelled(*condition)),
            What::Each(body) => format!("each {}", one(body)),
            What::Switch { value, body } => format!("switch({}) {}", spelled(*value), one(body)),
            What::Case(value) => format!("case {}:", spelled(*value)),
            What::Default => "default:".to_owned(),
            What::Return(value) => format!("return {}", spelled(*value)).trim_end().to_owned(),
            What::Break => "break".to_owned(),
            What::Continue => "continue".to_owned(),
            What::Goto(name) => format!("goto {}", spelled((*name, name + 1))),
            What::Label(name) => format!("{}:", spelled((*name, name + 1))),
            What::Declaration(tokens) => format!("<{}>", spelled(*tokens)),
            What::Expression(tokens) => spelled(*tokens).to_owned(),
            What::Assembly(_) => "asm".to_owned(),
            What::Variants(list) => format!("#[{}]", list.iter().map(one).collect::<Vec<_>>().join(" | ")),
        }
    }

    #[test]
    fn statements_of_every_kind_are_told_apart() {
        assert_eq!(shown("if (a) b(); else if (c) { d; } else e();"), "{if(a) b() else if(c) {d} else e()}");
        assert_eq!(shown("for (int i = 0; i < n; i++) x += i;"), "{loop(<int i = 0>; i < n; i++) x += i}");
        assert_eq!(shown("for (;;) { break; }"), "{loop(-; ; ) {break}}");
        assert_eq!(shown("while (a < b) continue;"), "{loop(; a < b; ) continue}");
        assert_eq!(shown("do { a(); } while (b); c;"), "{do {a()} while b c}");
        assert_eq!(shown("for (auto x : xs) f(x);"), "{each f(x)}");
        assert_eq!(
            shown("switch (t) { case N::A: f(); break; case b ? 1 : 2: default: g(); }"),
            "{switch(t) {case N::A: f() break case b ? 1 : 2: default: g()}}"
        );
        assert_eq!(shown("goto top; top: x++; return; "), "{goto top top: x++ return}");
        assert_eq!(shown("if constexpr (N > 1) f();"), "{static-if(N > 1) f()}");
        assert_eq!(shown("if (int i = f(); i > 0) g();"), "{if(<int i = f()>; i > 0) g()}");
        assert_eq!(shown("if (a) [[unlikely]] return;"), "{if(a) return}");
    }

    #[test]
    fn declarations_are_told_from_expressions() {
        for text in [
            "int i",
            "unsigned int i = 4, j",
            "const auto x = f()",
            "float a[4]",
            "T* p = q",
            "ns::A<int, 4> v(1)",
            "Foo bar{1}",
            "__shared__ float s[32]",
            "extern __shared__ __align__(16) char sm[]",
            "auto [a, b] = f()",
            "size_t n = 1",
            "float (*row)[4] = p",
            "volatile __shared__ int d[4]",
            "typename B::Temp t",
            "uint4 v = p[i]",
            "int const i = 1",
            "index_t i = 1",
        ] {
            assert_eq!(shown(&format!("{text};")), format!("{{<{text}>}}"));
        }
        for text in ["a = b", "f(x)", "a[i] = 1", "*p = 1", "x.y = 2", "a * b + c", "ns::f<int>(x)", "++i", "a < b"] {
            assert_eq!(shown(&format!("{text};")), format!("{{{text}}}"));
        }
    }

    #[test]
    fn a_macro_may_end_without_a_semicolon_or_make_a_loop() {
        assert_eq!(shown("SIDE_A(x) o[t] = x; W(x) }"), "none");
        assert_eq!(shown("SIDE_A(x) o[t] = x; W(x)"), "{SIDE_A(x) o[t] = x W(x)}");
        assert_eq!(shown("if (t & 1) { SIDE_A(x) } else { SIDE_B(x) }"), "{if(t & 1) {SIDE_A(x)} else {SIDE_B(x)}}");
        assert_eq!(shown("CUDA_KERNEL_LOOP(i, n) { f(i); }"), "{each {f(i)}}");
    }

    #[test]
    fn what_stands_before_a_loop_hides_nothing() {
        let plain = "{loop(; a; ) f() g()}";
        for before in ["UNROLL", "CUTLASS_PRAGMA_UNROLL\n", "_Pragma(\"unroll\")", "PRAGMA(unroll 4)", "unrolled"] {
            let expected =
                if before.starts_with("PRAGMA") { plain.replace("{l", "{PRAGMA(unroll 4) l") } else { plain.into() };
            assert_eq!(shown(&format!("{before} while (a) f(); g();")), expected, "{before}");
        }
        assert_eq!(shown("if (a) UNROLL for (;;) f(); else g();"), "{if(a) loop(-; ; ) f() else g()}");
        assert_eq!(shown("UNROLL do { f(); } while (a); LIKELY if (b) g();"), "{do {f()} while a if(b) g()}");
        assert_eq!(shown(&"_Pragma(\"x\")".repeat(10_000)), "none");
    }

    #[test]
    fn one_branch_of_an_if_directive_is_compiled() {
        assert_eq!(shown("#if A\na();\n#elif B\nb();\n#else\nc();\n#endif\n"), "{#[{a()} | {b()} | {c()}]}");
        assert_eq!(shown("#ifdef A\na();\n#endif\nb();"), "{#[{a()} | {}] b()}");
        assert_eq!(shown("#if 0\n}}}(\n#else\nc();\n#endif\n"), "{{c()}}");
        assert_eq!(shown("#if 1\nc();\n#else\n}\n#endif\n"), "{{c()}}");
        assert_eq!(shown("#if 0\n}\n#endif\n"), "{{}}");
        assert_eq!(shown("#pragma unroll\nfor (;;) f();"), "{loop(-; ; ) f()}");
        for torn in [
            "#if A\nif (x) {\n#else\nif (y) {\n#endif\nf(); }",
            "f(a,\n#if A\nb);\n#else\nc);\n#endif\n",
            "#if A\nf();",
            "#endif\n",
        ] {
            assert_eq!(shown(torn), "none", "{torn}");
        }
    }

    #[test]
    fn a_chain_of_else_if_takes_no_depth() {
        let chain = |links: usize| "if (a) b();".to_owned() + &" else if (c) d();".repeat(links);
        assert!(shown(&chain(60)).starts_with("{if(a) b() else if(c) d() else if"));
        let source = chain(10_000);
        let mut all = Vec::new();
        tokens(source.as_bytes(), 0, source.len(), &mut all);
        assert!(Body::parse(source.as_bytes(), &all, (0, all.len())).is_some());
    }

    #[test]
    fn what_is_too_deep_or_torn_is_no_tree() {
        for text in ["{".repeat(10_000), "if (a) ".repeat(10_000), "if (a) {".repeat(10_000), "[[a]]".repeat(10_000)] {
            assert_eq!(shown(&text), "none");
        }
        for text in ["if", "if (", "for (a; b) c;", "do", "do x; until", "case", "else", "switch (a", ")", "break"] {
            assert_eq!(shown(text), "none", "{text}");
        }
    }
}
