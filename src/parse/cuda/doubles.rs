//! Literals of type `double` that make a kernel compute in double precision what is else of single precision.
//!
//! Nothing is assumed: a literal counts where the operands beside it are of type `float` by their declarations, no constants,
//! and where compilers do not fold it away. A single operation on a `float` and a constant that a `float` holds exactly, whose
//! result becomes a `float`, is made in single precision, and so is a comparison with such a constant. A kernel that names
//! the type `double` wants it, and is left alone.

use std::collections::BTreeSet;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::declare::{Declared, First, declaration};
use super::expr::{self, Binary, Tree, Unary};
use super::fold::Fold;
use super::heads::{Head, is_upper};
use super::launches::split;
use super::lexer::Kind;
use super::macros::Macros;
use super::statement::{self, Body};
use super::value::number;

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

/// Whether a number is a literal of type `double`.
fn is_double(spelled: &[u8]) -> bool {
    memchr::memchr3(b'.', b'e', b'E', spelled).is_some()
        && constant(spelled, 0).is_some_and(|one| one.width == Width::Double)
}

/// The type of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Whole,
    Single,
    Double,
}

/// What is known when compiling, and the literals of type `double` that it is made of.
#[derive(Debug, Clone, PartialEq)]
struct Constant {
    value: f64,
    width: Width,
    literals: Vec<usize>,
}

impl Constant {
    /// Whether a `float` holds it.
    #[allow(clippy::cast_possible_truncation, reason = "whether anything is lost is the question")]
    #[allow(clippy::float_cmp, reason = "it is the same or not")]
    fn is_single(&self) -> bool {
        f64::from(self.value as f32) == self.value
    }

    /// Whether an operation with it, on the left or on the right, may be none.
    #[allow(clippy::float_cmp, reason = "0 and 1 are exact")]
    fn is_neutral(&self, op: Binary) -> bool {
        let size = self.value.abs();
        size == 0.0 || size == 1.0 && matches!(op, Binary::Multiply)
    }

    fn with(mut self, op: Binary, other: Constant) -> Option<Constant> {
        let width = self.width.max(other.width);
        let value = match op {
            Binary::Add => self.value + other.value,
            Binary::Subtract => self.value - other.value,
            Binary::Multiply => self.value * other.value,
            Binary::Divide if width == Width::Whole => (self.value / other.value).trunc(),
            Binary::Divide => self.value / other.value,
            _ => return None,
        };
        self.literals.extend(other.literals);
        #[allow(clippy::cast_possible_truncation, reason = "this is how C++ rounds")]
        let value = if width == Width::Single { f64::from(value as f32) } else { value };
        value.is_finite().then_some(Constant { value, width, literals: self.literals })
    }
}

/// A number as C++ spells it, unless its suffix asks for a type that is none of these.
fn constant(spelled: &[u8], at: usize) -> Option<Constant> {
    let is_hexadecimal = spelled.starts_with(b"0x") || spelled.starts_with(b"0X");
    if is_hexadecimal || memchr::memchr3(b'.', b'e', b'E', spelled).is_none() {
        #[allow(clippy::cast_precision_loss, reason = "larger ones are no matter")]
        return number(spelled).map(|value| Constant {
            value: value as f64,
            width: Width::Whole,
            literals: Vec::new(),
        });
    }
    let text: Vec<u8> = spelled.iter().filter(|byte| **byte != b'\'').copied().collect();
    let (digits, width) = match text.strip_suffix(b"f").or_else(|| text.strip_suffix(b"F")) {
        Some(digits) => (digits, Width::Single),
        None => (&text[..], Width::Double),
    };
    let value = std::str::from_utf8(digits).ok()?.parse::<f64>().ok().filter(|value| value.is_finite())?;
    #[allow(clippy::cast_possible_truncation, reason = "this is how C++ rounds")]
    let value = if width == Width::Single { f64::from(value as f32) } else { value };
    let literals = if width == Width::Double { vec![at] } else { Vec::new() };
    Some(Constant { value, width, literals })
}

/// What a variable is, or a value: as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Float,
    Whole,
    /// `float2` and the like.
    Vector,
    Other,
}

/// A variable, or what a pointer or array leads to, so many steps away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Typed {
    base: Base,
    steps: usize,
    /// Whether its value is known at run time only. What is not certain is not.
    varies: bool,
}

/// A value of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Constant(Constant),
    Typed(Typed),
    /// An operation on a `float` and a constant that a `float` holds: of double precision unless it becomes a `float`.
    Once(Vec<usize>),
    /// A whole number that varies, with a literal: of type `double`.
    Mixed(Vec<usize>),
    /// Computed in double precision.
    Double,
}

const UNKNOWN: Value = Value::Typed(Typed { base: Base::Other, steps: 0, varies: false });

impl Value {
    fn typed(base: Base, varies: bool) -> Value {
        Value::Typed(Typed { base, steps: 0, varies })
    }

    fn varies(&self) -> bool {
        match self {
            Value::Constant(_) => false,
            Value::Typed(typed) => typed.varies,
            Value::Once(_) | Value::Mixed(_) | Value::Double => true,
        }
    }

    /// The base of a value that is no pointer.
    fn base(&self) -> Option<Base> {
        match self {
            Value::Typed(Typed { base, steps: 0, .. }) => Some(*base),
            _ => None,
        }
    }

    fn is_float_that_varies(&self) -> bool {
        self.base() == Some(Base::Float) && self.varies()
    }
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

    fn node(&mut self, tree: &Tree, id: expr::Id) -> Value {
        use expr::What;
        let node = tree.get(id);
        let start = node.tokens.0 as usize;
        match node.what {
            What::Number => constant(self.word(start), start).map_or(UNKNOWN, Value::Constant),
            What::Name { arguments: None } if node.tokens.1 - node.tokens.0 == 1 => {
                self.variables.get(self.word(start)).map_or(UNKNOWN, |typed| Value::Typed(*typed))
            }
            What::Member { base, arrow } => self.member(tree, base, arrow, node.tokens.1 as usize - 1),
            What::Index { base, index } => {
                self.node(tree, index);
                let base = self.node(tree, base);
                stepped(&base)
            }
            What::Unary(op, of) | What::Postfix(op, of) => {
                let value = self.node(tree, of);
                unary(op, value)
            }
            What::Binary(op, left, right) => {
                let (left, right) = (self.node(tree, left), self.node(tree, right));
                self.binary(op, left, right)
            }
            What::Assign(op, to, from) => {
                let (place, value) = (self.node(tree, to), self.node(tree, from));
                self.assign(tree, op, to, place, value)
            }
            What::Choice(condition, yes, no) => {
                self.node(tree, condition);
                let (yes, no) = (self.node(tree, yes), self.node(tree, no));
                choice(&yes, &no)
            }
            What::Cast(to, of) => {
                let value = self.node(tree, of);
                let typed = self.type_of(to.0 as usize..to.1 as usize);
                let varies = value.varies();
                self.becomes(typed, value);
                Value::Typed(Typed { varies, ..typed })
            }
            What::Call { callee, arguments } => self.call(tree, callee, tree.list(arguments)),
            What::Construct { arguments, .. } | What::Braces(arguments) => {
                let mut varies = false;
                for one in tree.list(arguments) {
                    varies |= self.node(tree, *one).varies();
                }
                Value::typed(Base::Other, varies)
            }
            What::Name { .. }
            | What::String
            | What::Character
            | What::Launch { .. }
            | What::SizeOf(_)
            | What::Lambda(_)
            | What::Opaque => UNKNOWN,
        }
    }

    fn member(&mut self, tree: &Tree, base: expr::Id, arrow: bool, name: usize) -> Value {
        let of = tree.get(base);
        let is_axis = matches!(self.word(name), b"x" | b"y" | b"z" | b"w");
        if is_axis && of.tokens.1 - of.tokens.0 == 1 {
            match self.word(of.tokens.0 as usize) {
                b"threadIdx" | b"blockIdx" => return Value::typed(Base::Whole, true),
                b"blockDim" | b"gridDim" => return Value::typed(Base::Whole, false),
                _ => {}
            }
        }
        let base = self.node(tree, base);
        let base = if arrow { stepped(&base) } else { base };
        let known = if base.base() == Some(Base::Vector) && is_axis { Base::Float } else { Base::Other };
        Value::typed(known, base.varies())
    }

    fn assign(&mut self, tree: &Tree, op: Option<Binary>, to: expr::Id, place: Value, value: Value) -> Value {
        let varies = value.varies() || op.is_some() && place.varies();
        let Value::Typed(typed) = place else { return UNKNOWN };
        let value = match op {
            Some(op) => self.binary(op, Value::Typed(typed), value),
            None => value,
        };
        self.becomes(typed, value);
        let mut node = tree.get(to);
        let is_whole = matches!(node.what, expr::What::Name { .. });
        while let expr::What::Index { base, .. } = node.what {
            node = tree.get(base);
        }
        if matches!(node.what, expr::What::Name { arguments: None })
            && node.tokens.1 - node.tokens.0 == 1
            && let Some(one) = self.variables.get_mut(self.word(node.tokens.0 as usize))
        {
            // What another element of an array holds is left as it was, and so is what a pointer leads to.
            one.varies = varies || !is_whole && one.varies || is_whole && one.steps > 0;
            if one.varies && self.pass == Pass::First {
                self.carried.insert(self.fold.scopes.code.text(node.tokens.0 as usize, self.fold.scopes.text));
            }
        }
        Value::Typed(Typed { varies, ..typed })
    }

    fn binary(&mut self, op: Binary, left: Value, right: Value) -> Value {
        match op {
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide => self.arithmetic(op, left, right),
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessEqual
            | Binary::Greater
            | Binary::GreaterEqual => {
                let varies = left.varies() || right.varies();
                self.compared(left, right);
                Value::typed(Base::Other, varies)
            }
            Binary::Comma => right,
            Binary::LogicalAnd | Binary::LogicalOr => Value::typed(Base::Other, left.varies() || right.varies()),
            Binary::Remainder
            | Binary::ShiftLeft
            | Binary::ShiftRight
            | Binary::And
            | Binary::Or
            | Binary::ExclusiveOr => {
                let varies = left.varies() || right.varies();
                let whole = |value: &Value| match value {
                    Value::Constant(one) => one.width == Width::Whole,
                    other => other.base() == Some(Base::Whole),
                };
                let base = if whole(&left) && whole(&right) { Base::Whole } else { Base::Other };
                Value::typed(base, varies)
            }
        }
    }

    fn arithmetic(&mut self, op: Binary, left: Value, right: Value) -> Value {
        let unknown = Value::typed(Base::Other, left.varies() || right.varies());
        let is_divided_by_one =
            matches!((&right, op), (Value::Constant(one), Binary::Divide) if one.value.abs() == 1.0);
        match (left, right) {
            (Value::Constant(one), Value::Constant(other)) => one.with(op, other).map_or(UNKNOWN, Value::Constant),
            // `p + 1` is the same pointer.
            (Value::Typed(one), _) | (_, Value::Typed(one)) if one.steps > 0 => Value::Typed(one),
            (Value::Typed(one), Value::Typed(other)) => {
                let base = match (one.base, other.base) {
                    (Base::Float, Base::Float | Base::Whole) | (Base::Whole, Base::Float) => Base::Float,
                    (Base::Whole, Base::Whole) => Base::Whole,
                    _ => Base::Other,
                };
                Value::typed(base, one.varies || other.varies)
            }
            (Value::Typed(one), Value::Constant(number)) | (Value::Constant(number), Value::Typed(one)) => {
                self.with_constant(op, one, number, is_divided_by_one)
            }
            (Value::Once(literals), Value::Constant(one)) | (Value::Constant(one), Value::Once(literals))
                if one.is_neutral(op) || is_divided_by_one =>
            {
                Value::Once(literals)
            }
            (Value::Typed(one), _) | (_, Value::Typed(one))
                if !(one.varies && matches!(one.base, Base::Float | Base::Whole)) =>
            {
                unknown
            }
            (Value::Mixed(mut literals), Value::Constant(one)) | (Value::Constant(one), Value::Mixed(mut literals)) => {
                literals.extend(one.literals);
                Value::Mixed(literals)
            }
            (Value::Mixed(mut literals), Value::Mixed(others)) => {
                literals.extend(others);
                Value::Mixed(literals)
            }
            (Value::Mixed(literals), Value::Typed(one)) | (Value::Typed(one), Value::Mixed(literals))
                if one.base == Base::Whole =>
            {
                Value::Mixed(literals)
            }
            // From here on a part is of double precision, or made of `float` and literals in several steps.
            (one, other) => {
                for value in [one, other] {
                    if !matches!(&value, Value::Constant(number) if number.is_neutral(op)) {
                        self.counted(value);
                    }
                }
                Value::Double
            }
        }
    }

    fn with_constant(&mut self, op: Binary, one: Typed, number: Constant, is_divided_by_one: bool) -> Value {
        let unknown = Value::typed(Base::Other, one.varies);
        match (one.base, number.width) {
            (Base::Float, Width::Whole | Width::Single) => return Value::Typed(one),
            (Base::Whole, Width::Whole) => return Value::Typed(one),
            (Base::Whole, Width::Single) => return Value::typed(Base::Float, one.varies),
            (Base::Float | Base::Whole, Width::Double) if one.varies => {}
            _ => return unknown,
        }
        if number.is_neutral(op) || is_divided_by_one {
            // It is the other operand or a 0, and no operation.
            return unknown;
        }
        match one.base {
            Base::Whole => Value::Mixed(number.literals),
            _ if number.is_single() => Value::Once(number.literals),
            _ => {
                self.note(number.literals);
                Value::Double
            }
        }
    }

    /// A value takes part in an operation of double precision.
    fn counted(&mut self, value: Value) {
        match value {
            Value::Constant(one) => self.note(one.literals),
            Value::Once(literals) | Value::Mixed(literals) => self.note(literals),
            Value::Typed(_) | Value::Double => {}
        }
    }

    fn compared(&mut self, left: Value, right: Value) {
        let is_known = |value: &Value| match value {
            Value::Typed(one) => one.steps == 0 && one.varies && matches!(one.base, Base::Float | Base::Whole),
            _ => true,
        };
        if !is_known(&left) || !is_known(&right) {
            return;
        }
        let is_double = match (&left, &right) {
            (Value::Constant(one), other) | (other, Value::Constant(one)) => {
                one.width == Width::Double && !one.is_single() && other.is_float_that_varies()
                    || matches!(other, Value::Once(_) | Value::Double)
            }
            (Value::Mixed(_), other) | (other, Value::Mixed(_)) => {
                other.is_float_that_varies() || matches!(other, Value::Once(_) | Value::Double)
            }
            (Value::Typed(_), Value::Typed(_)) => false,
            _ => true,
        };
        if !is_double {
            return;
        }
        for value in [left, right] {
            // One that a `float` holds is no reason for a comparison of double precision.
            if !matches!(&value, Value::Constant(number) if number.is_single()) {
                self.counted(value);
            }
        }
    }

    fn call(&mut self, tree: &Tree, callee: expr::Id, arguments: &[expr::Id]) -> Value {
        let node = tree.get(callee);
        let is_word = matches!(node.what, expr::What::Name { .. }) && node.tokens.1 - node.tokens.0 == 1;
        let name = if is_word { self.word(node.tokens.0 as usize) } else { b"" };
        // What a macro makes of its arguments is not known, and what is printed is a `double` in any case.
        if is_word && (is_upper(name) || self.macros.has(name) || matches!(name, b"printf" | b"assert")) {
            return UNKNOWN;
        }
        let mut values: Vec<Value> = arguments.iter().map(|one| self.node(tree, *one)).collect();
        let varies = values.iter().any(Value::varies);
        let unknown = Value::typed(Base::Other, varies);
        if is_single_function(name) {
            return Value::typed(Base::Float, varies);
        }
        match (name, values.len()) {
            (b"pow", 2) => {
                let (Some(power), Some(base)) = (values.pop(), values.pop()) else { return unknown };
                self.power(base, power)
            }
            (b"fabs" | b"abs", 1) => match values.pop() {
                Some(Value::Double) => Value::Double,
                Some(value) if value.base() == Some(Base::Float) => value,
                _ => unknown,
            },
            (name, 1) if is_overloaded(name) => match values.pop() {
                Some(Value::Double) => Value::Double,
                Some(value) if value.base() == Some(Base::Float) => value,
                Some(Value::Once(literals)) => {
                    self.note(literals);
                    Value::Double
                }
                _ => unknown,
            },
            _ => unknown,
        }
    }

    fn power(&mut self, base: Value, power: Value) -> Value {
        let unknown = Value::typed(Base::Other, base.varies() || power.varies());
        let is_double = match (&base, &power) {
            (value, Value::Constant(one)) | (Value::Constant(one), value) => {
                let is_trivial = one.is_neutral(Binary::Multiply);
                !is_trivial
                    && (matches!(value, Value::Once(_) | Value::Double)
                        || one.width == Width::Double && value.is_float_that_varies())
            }
            (Value::Once(_) | Value::Double, other) | (other, Value::Once(_) | Value::Double) => {
                other.is_float_that_varies() || matches!(other, Value::Once(_) | Value::Double)
            }
            _ => false,
        };
        if !is_double {
            return unknown;
        }
        self.counted(base);
        self.counted(power);
        Value::Double
    }
}

fn base_of(word: &[u8]) -> Base {
    match word {
        b"float" => Base::Float,
        b"float2" | b"float3" | b"float4" => Base::Vector,
        b"int" | b"unsigned" | b"signed" | b"long" | b"short" | b"char" | b"uint" | b"size_t" | b"int32_t"
        | b"uint32_t" | b"int64_t" | b"uint64_t" | b"int16_t" | b"uint16_t" | b"int8_t" | b"uint8_t" => Base::Whole,
        _ => Base::Other,
    }
}

/// What an array or a pointer leads to.
fn stepped(value: &Value) -> Value {
    match value {
        Value::Typed(typed) if typed.steps > 0 => Value::Typed(Typed { steps: typed.steps - 1, ..*typed }),
        other => Value::typed(Base::Other, other.varies()),
    }
}

fn unary(op: Unary, value: Value) -> Value {
    match (op, value) {
        (Unary::Dereference, value) => stepped(&value),
        (Unary::Minus, Value::Constant(one)) => Value::Constant(Constant { value: -one.value, ..one }),
        (Unary::Plus | Unary::Minus | Unary::Increment | Unary::Decrement, value) => value,
        (_, value) => Value::typed(Base::Other, value.varies()),
    }
}

/// What is chosen is of double precision where a part was computed so. Else compilers may do without.
fn choice(yes: &Value, no: &Value) -> Value {
    let is_float = |value: &Value| match value {
        Value::Constant(one) => one.width == Width::Single,
        other => other.base() == Some(Base::Float),
    };
    match (yes, no) {
        (one, other) if is_float(one) && is_float(other) => Value::typed(Base::Float, one.varies() || other.varies()),
        (Value::Double, Value::Double) => Value::Double,
        _ => Value::typed(Base::Other, yes.varies() || no.varies()),
    }
}

/// Functions of the CUDA math library that take and give `float`, whatever they are called with.
fn is_single_function(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"__").unwrap_or(name);
    let Some(base) = name.strip_suffix(b"f") else { return false };
    is_overloaded(base)
        || matches!(
            base,
            b"fabs"
                | b"pow"
                | b"fmax"
                | b"fmin"
                | b"fma"
                | b"fmod"
                | b"atan2"
                | b"hypot"
                | b"fdivide"
                | b"copysign"
                | b"fdim"
        )
}

/// Functions of one argument that are of single precision for a `float`, and of double precision for a `double`.
fn is_overloaded(name: &[u8]) -> bool {
    matches!(
        name,
        b"sqrt"
            | b"rsqrt"
            | b"cbrt"
            | b"exp"
            | b"exp2"
            | b"expm1"
            | b"log"
            | b"log2"
            | b"log10"
            | b"log1p"
            | b"sin"
            | b"cos"
            | b"tan"
            | b"asin"
            | b"acos"
            | b"atan"
            | b"sinh"
            | b"cosh"
            | b"tanh"
            | b"erf"
            | b"erfc"
            | b"floor"
            | b"ceil"
    )
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
