//! Literals of type `double` that make a kernel compute in double precision what is else of single precision.
//!
//! Nothing is assumed: a literal counts where the operands beside it are of type `float` by their declarations, no constants,
//! and where compilers do not fold it away. A single operation on a `float` and a constant that a `float` holds exactly, whose
//! result becomes a `float`, is made in single precision, and so is a comparison with such a constant. A kernel that names
//! the type `double` wants it, and is left alone.

mod expression;
mod functions;
mod number;
mod operators;

use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use self::number::{Base, Typed, UNKNOWN, Value, base_of, is_double};
use super::declare::{Declared, First, declaration};
use super::expr::Tree;
use super::fold::Fold;
use super::heads::Head;
use super::launches::split;
use super::lexer::Kind;
use super::macros::Macros;
use super::statement::{self, Body};

/// The literals of a kernel that make it compute in double precision, by their tokens, in order.
pub(super) fn doubles(fold: &Fold<'_>, head: &Head, body: Range<usize>) -> Vec<usize> {
    let (code, text) = (fold.scopes.code, fold.scopes.text);
    let is_literal = |at: usize| code.kind(at) == Kind::Number && is_double(code.text(at, text));
    if !body.clone().any(is_literal) {
        return Vec::new();
    }
    let wants = |at: usize| code.kind(at) == Kind::Word && names_double(code.text(at, text));
    if head.parameters.clone().any(wants) || body.clone().any(wants) {
        return Vec::new();
    }
    let Some(statements) = Body::parse(text, &code.tokens, (body.start, body.end)) else { return Vec::new() };
    let mut reader = Reader {
        fold,
        macros: fold.macros(),
        head,
        variables: HashMap::new(),
        tree: Tree::default(),
        found: BTreeSet::new(),
        carried: HashSet::new(),
        pass: Pass::Once,
    };
    reader.parameters(head.parameters.clone());
    reader.statement(&statements, statements.root);
    reader.found.into_iter().collect()
}

/// Whether a word is `double`, or a type of doubles: `double2`, `cuDoubleComplex`, `my_double`.
fn names_double(word: &[u8]) -> bool {
    memchr::memmem::find(word, b"ouble").is_some() || matches!(word, b"float64_t" | b"f64")
}

/// Loops are read twice: what varies at their ends varies at their beginnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Outside of loops.
    Once,
    /// In a loop, to learn what varies.
    First,
    /// In a loop, to find literals.
    Second,
}

/// A kernel while it is read.
struct Reader<'r, 's> {
    fold: &'r Fold<'s>,
    macros: &'r Macros<'s>,
    head: &'r Head,
    /// By name; of those that are declared in several ways, nothing is known.
    variables: HashMap<&'s [u8], Typed>,
    tree: Tree,
    found: BTreeSet<usize>,
    /// Variables that vary at some time in the loop that is read.
    carried: HashSet<&'s [u8]>,
    pass: Pass,
}

impl<'s> Reader<'_, 's> {
    fn word(&self, at: usize) -> &'s [u8] {
        self.fold.scopes.code.text(at, self.fold.scopes.text)
    }

    fn kind(&self, at: usize) -> Kind {
        self.fold.scopes.code.kind(at)
    }

    fn parameters(&mut self, range: Range<usize>) {
        for part in split(self.fold.scopes.code, range) {
            let is_end = |at: &usize| matches!(self.kind(*at), Kind::Assign | Kind::BracketOpen);
            let end = part.clone().find(is_end).unwrap_or(part.end);
            let Some(name) = end.checked_sub(1).filter(|name| *name > part.start && self.kind(*name) == Kind::Word)
            else {
                continue;
            };
            let arrays = (end..part.end).filter(|at| self.kind(*at) == Kind::BracketOpen).count();
            let typed = self.type_of(part.start..name);
            self.declare(name, Typed { steps: typed.steps + arrays, varies: true, ..typed });
        }
    }

    /// The type that these tokens spell.
    fn type_of(&self, range: Range<usize>) -> Typed {
        let mut base = None;
        let mut steps = 0;
        for at in range {
            match self.kind(at) {
                Kind::Word => match (self.word(at), base) {
                    (
                        b"const" | b"volatile" | b"static" | b"register" | b"constexpr" | b"__restrict__"
                        | b"__restrict" | b"restrict" | b"__grid_constant__" | b"__shared__" | b"extern",
                        _,
                    ) => {}
                    (word, None) => base = Some(base_of(word)),
                    (word, Some(Base::Whole)) if base_of(word) == Base::Whole => {}
                    _ => base = Some(Base::Other),
                },
                Kind::Star => steps += 1,
                Kind::And => {}
                _ => base = Some(Base::Other),
            }
        }
        Typed { base: base.unwrap_or(Base::Other), steps, varies: false }
    }

    fn declare(&mut self, name: usize, typed: Typed) {
        let one = self.variables.entry(self.word(name)).or_insert(typed);
        if (one.base, one.steps) != (typed.base, typed.steps) {
            *one = Typed { base: Base::Other, ..typed };
        }
        one.varies = typed.varies;
    }

    fn statement(&mut self, body: &Body, id: statement::Id) {
        use statement::What;
        let statement = body.get(id);
        let is_loop = matches!(statement.what, What::Loop { .. } | What::Do { .. });
        if is_loop && self.pass == Pass::Once {
            self.pass = Pass::First;
            self.within(body, statement);
            self.pass = Pass::Second;
            self.carry(statement.tokens);
            self.within(body, statement);
            self.pass = Pass::Once;
            self.carried.clear();
            return;
        }
        if is_loop && self.pass == Pass::Second {
            self.carry(statement.tokens);
        }
        self.within(body, statement);
    }

    /// Before a loop: what it adds to, and varies once it did, varies from its second iteration on.
    fn carry(&mut self, tokens: statement::Tokens) {
        for at in tokens.0..tokens.1 {
            let adds = matches!(
                self.kind(at + 1),
                Kind::PlusAssign | Kind::MinusAssign | Kind::StarAssign | Kind::SlashAssign
            );
            let name = self.word(at);
            if adds
                && self.carried.contains(name)
                && let Some(one) = self.variables.get_mut(name)
            {
                one.varies = true;
            }
        }
    }

    fn within(&mut self, body: &Body, statement: &statement::Statement) {
        use statement::What;
        let inner = |reader: &mut Self, id: statement::Id| reader.statement(body, id);
        match &statement.what {
            What::Block(all) | What::Variants(all) => all.iter().for_each(|one| inner(self, *one)),
            What::If { .. } => self.branches(body, statement),
            What::Loop { first, condition, step, body: inside } => {
                first.iter().for_each(|one| inner(self, *one));
                self.expression(condition.0..condition.1);
                inner(self, *inside);
                self.expression(step.0..step.1);
            }
            What::Do { body: inside, condition } => {
                inner(self, *inside);
                self.expression(condition.0..condition.1);
            }
            What::Switch { value, body: inside } => {
                self.expression(value.0..value.1);
                inner(self, *inside);
            }
            What::Declaration(tokens) => self.declaration(tokens.0, tokens.1),
            What::Expression(tokens) => self.expression(tokens.0..tokens.1),
            // What a loop over a range declares is not known, and may hide other names.
            What::Each(_)
            | What::Empty
            | What::Case(_)
            | What::Default
            | What::Return(_)
            | What::Break
            | What::Continue
            | What::Goto(_)
            | What::Label(_)
            | What::Assembly(_) => {}
        }
    }

    /// An `if` with all that `else` leads to, of which there may be many.
    fn branches(&mut self, body: &Body, statement: &statement::Statement) {
        let mut statement = statement;
        while let statement::What::If { first, condition, is_constant, then, otherwise } = &statement.what {
            first.iter().for_each(|one| self.statement(body, *one));
            self.expression(condition.0..condition.1);
            // One of the two is no code.
            if *is_constant {
                return;
            }
            self.statement(body, *then);
            let Some(otherwise) = otherwise else { return };
            statement = body.get(*otherwise);
            if !matches!(statement.what, statement::What::If { .. }) {
                return self.statement(body, *otherwise);
            }
        }
    }

    fn declaration(&mut self, from: usize, to: usize) {
        let (code, text) = (self.fold.scopes.code, self.fold.scopes.text);
        let end = if code.kind(to) == Kind::Semicolon { to + 1 } else { to };
        for one in declaration(code, text, from, end).unwrap_or_default() {
            let typed = self.declared(&one);
            let first = match &one.first {
                First::Value(range) => Some(range.clone()),
                First::Parts(range) if one.dimensions.is_empty() => Some(range.clone()),
                _ => None,
            };
            let value = first.map_or(UNKNOWN, |range| self.value(range));
            let varies = typed.varies || value.varies();
            if one.dimensions.is_empty() {
                self.becomes(typed, value);
            }
            self.declare(one.name, Typed { varies, ..typed });
        }
    }

    fn declared(&self, one: &Declared) -> Typed {
        let mut typed = self.type_of(one.written.clone());
        let mut before = one.name;
        while before > one.written.start && matches!(self.kind(before - 1), Kind::Star | Kind::And | Kind::Word) {
            before -= 1;
            if before < one.written.end {
                break;
            }
            typed.steps += usize::from(self.kind(before) == Kind::Star);
        }
        // What a pointer leads to may be written by others.
        typed.varies = one.is_shared || typed.steps > 0;
        typed.steps += one.dimensions.len();
        typed
    }

    /// A value goes where `typed` is kept.
    fn becomes(&mut self, typed: Typed, value: Value) {
        if (typed.base, typed.steps) == (Base::Whole, 0)
            && let Value::Once(literals) = value
        {
            self.note(literals);
        }
    }

    fn note(&mut self, literals: Vec<usize>) {
        if self.pass == Pass::First {
            return;
        }
        let code = self.fold.scopes.code;
        let name = self.head.name;
        // What stands in a branch of an `#if` may be no code.
        self.found.extend(literals.into_iter().filter(|at| code.counts_with(*at, name)));
    }

    fn expression(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.value(range);
        }
    }

    fn value(&mut self, range: Range<usize>) -> Value {
        let (code, text) = (self.fold.scopes.code, self.fold.scopes.text);
        let mut tree = std::mem::take(&mut self.tree);
        tree.clear();
        let id = tree.parse(text, &code.tokens, range.start, range.end);
        let value = self.node(&tree, id);
        self.tree = tree;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::aliases::Aliases;
    use super::super::file::scan;

    /// The number of literals of the first kernel, and the first one.
    fn of_file(text: &str) -> (u32, String) {
        let file = scan(text.as_bytes(), &Aliases::default());
        let doubles = file.declarations[0].doubles.as_ref();
        doubles.map_or((0, String::new()), |one| (one.count, String::from_utf8_lossy(&one.first).into_owned()))
    }

    fn of(body: &str) -> (u32, String) {
        of_file(&format!("__global__ void k(float* p, float x, float a, int i, int n) {{ {body} }}"))
    }

    #[track_caller]
    fn told(body: &str, count: u32) {
        assert_eq!(of(body).0, count, "{body}");
    }

    /// What nvcc 13 makes of these for sm_89 has `.f64` arithmetic.
    #[test]
    fn what_compilers_leave_in_double_precision_counts() {
        for (body, count) in [
            ("p[i] = x * 0.1;", 1),
            ("p[i] = x / 0.1;", 1),
            ("p[i] = 0.3 - x;", 1),
            ("if (x > 0.1) p[i] = a;", 1),
            ("if (x == 0.1) p[i] = a;", 1),
            ("p[i] = x * 0.5 + 1.0;", 2),
            ("p[i] = 1.0 / (1.0 + x);", 2),
            ("float y = x; y *= 0.1; p[i] = y;", 1),
            ("p[i] = (i + 0.5) * x;", 1),
            ("p[i] = (i / 2.0) - x;", 1),
            ("p[i] = 0.5 * x * a;", 1),
            ("p[i] = pow(x, 2.0);", 1),
            ("p[i] = pow(2.0, x);", 1),
            ("p[i] = (int)(x * 0.5);", 1),
            ("p[i] = static_cast<int>(x + 0.5);", 1),
            ("int k = x * 2.0; p[k] = a;", 1),
            ("if (x + 0.5 > a) p[i] = a;", 1),
            ("if (x * 0.5 > 0.25) p[i] = a;", 1),
            ("p[i] = (1.0 / 3.0) * x;", 2),
            ("p[i] = 2.0 * 3.14159 * x;", 2),
            ("p[i] += 0.5 * x;", 1),
            ("p[i] += 1e-6;", 1),
            ("p[i] = sqrt(1.0 - x);", 1),
            ("p[i] = exp(-0.5 * x);", 1),
            ("p[i] = expf(-0.5 * x * x);", 1),
            ("p[i] = x * 0.5 + n;", 1),
            ("p[i] = fabs(x) * 0.5 + 1.0;", 2),
            ("float s = 0; for (int j = 0; j < n; j++) s += 0.5 * p[j]; p[i] = s;", 1),
            ("atomicAdd(p, x * 0.1);", 1),
            ("p[i] = 1.0 / sqrtf(x) * a;", 1),
            ("float4 v = ((float4*)p)[i]; float y = p[i]; p[i] = y * .1;", 1),
            ("__shared__ float s[32]; s[i] = 0; p[i] = s[i] * 0.1;", 1),
            ("const float* q = p + i, *r = p; p[i] = r[1] * 0.1 + *q * 0.1;", 2),
        ] {
            told(body, count);
        }
    }

    /// What nvcc 13 makes of these for sm_89 has none.
    #[test]
    fn what_compilers_fold_away_is_silent() {
        for body in [
            "p[i] = x * 0.5;",
            "if (x > 0.5) p[i] = a;",
            "p[i] = a * x + 0.5;",
            "p[i] = 1.0 / x;",
            "float y = x; y *= 0.5; p[i] = y;",
            "p[i] = sqrtf(x * 0.5);",
            "p[i] = x > 0 ? 0.0 : x;",
            "p[i] = fmaxf(x, 0.0);",
            "p[i] = x + 0.0;",
            "p[i] = a + x * 1.0;",
            "p[i] = -1.0 * x;",
            "p[i] = 0.5 * (a + x);",
            "p[i] = (x * 0.5f) * 2.0;",
            "p[i] = x < 0.0 ? 0.0 : a * 2.0;",
            "p[i] = (float)(x * 0.5) + a;",
            "p[i] = -(x * 0.5);",
            "p[i] = (0.5 + 0.25) * x;",
            "p[i] = pow(x, 0.0);",
            "float y = 0.1; p[i] = y;",
            "const float third = 1.0 / 3.0; p[i] = third * x;",
            "float y = 2; p[i] = y * 0.1;",
            "p[i] = 0.1f * x;",
            "p[i] = x * (0.3f + 0.25);",
        ] {
            told(body, 0);
        }
    }

    #[test]
    fn what_is_not_known_to_be_of_single_precision_is_silent() {
        for body in [
            "double y = x; p[i] = y * 0.1;",
            "p[i] = (double)x * 0.1;",
            "real y = x; p[i] = y * 0.1;",
            "auto y = x; p[i] = y * 0.1;",
            "p[i] = LIMIT(x * 0.1);",
            "printf(\"%f\", x * 0.1);",
            "p[i] = other * 0.1;",
            "{ real y = x; } float y = x; p[i] = y * 0.1;",
            "auto f = [](auto x) { return x * 0.1; }; p[i] = f(x);",
            "if constexpr (N > 1) p[i] = x * 0.1;",
            "\n#ifdef SLOW\np[i] = x * 0.1;\n#endif\n",
            "p[i] = x * 0.1L;",
        ] {
            told(body, 0);
        }
    }

    #[test]
    fn templates_are_told_where_the_type_is_written() {
        let text = |of: &str| format!("template <typename T> __global__ void k({of}* p) {{ p[0] = p[1] * 0.1; }}");
        assert_eq!(of_file(&text("T")).0, 0);
        assert_eq!(of_file(&text("float")), (1, "0.1".to_owned()));
    }

    #[test]
    fn members_of_vectors_and_of_other_structures_are_told_apart() {
        let text =
            |of: &str| format!("__global__ void k({of}* p, {of} v) {{ p->x = v.y * 0.1; p[1].x = p[2].y * 0.1; }}");
        assert_eq!(of_file(&text("float4")).0, 2);
        assert_eq!(of_file(&text("Body")).0, 0);
    }
}
