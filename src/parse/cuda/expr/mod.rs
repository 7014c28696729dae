//! Expressions of C++ as trees, without types: what cannot be told without them is opaque, and never a guess.

mod parser;

use super::lexer::Token;
use parser::{Parser, Strength};

pub use parser::angles;

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

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::parser::HIGHEST;
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
