//! Constants: what an expression is worth at its place, as far as that is certain. The work of one is bounded.

use std::ops::Range;

use super::aliases::Define;
use super::declare::{First, Type};
use super::effects::{Effect, Effects, Uses, What as Doing, comes_again_until, is_passed};
use super::expr::{Id, Node, Tree, What};
use super::heads::is_upper;
use super::launches::{Launch, split};
use super::lexer::{Kind, Token, tokens};
use super::macros::{Macros, Reach};
use super::scopes::{Meaning, Scopes};
use super::value::{Extreme, Term, Value, number, size_of};

/// Steps that one expression may take, with all that it is made of.
const MOST_STEPS: u32 = 200;

/// Values of values that are followed.
const DEEPEST: u32 = 24;

/// Effects on variables that are looked at for a file, at most; no file of a person's comes near it.
const EFFECTS: usize = 10_000_000;

/// Tokens of an expression, at most.
const LONGEST: usize = 300;

/// The parts of a launch's structure.
const CONFIG: [&[u8]; 3] = [b"gridDim", b"blockDim", b"dynamicSmemBytes"];

/// What a name means outside of a macro's body.
type Around<'a> = dyn Fn(&[u8]) -> Term + 'a;

/// Folds the expressions of a file, or of a macro's body.
pub(super) struct Fold<'s> {
    pub(super) scopes: Scopes<'s>,
    macros: &'s Macros<'s>,
    launches: &'s [Launch],
    uses: Uses,
    tree: Tree,
    steps: u32,
    depth: u32,
    /// Effects that may still be looked at.
    left: usize,
    /// What the names of a macro's body mean outside of it.
    around: Option<&'s Around<'s>>,
    /// Names that a macro takes as arguments.
    arguments: Vec<&'s [u8]>,
}

/// The tokens that a tree is of, and where they stand, for names to be looked up.
#[derive(Clone, Copy)]
struct Text<'a> {
    tokens: &'a [Token],
    /// Names mean what they mean at the token itself, or at this one.
    at: Option<usize>,
}

impl<'s> Fold<'s> {
    /// The macros around.
    pub(super) fn macros(&self) -> &Macros<'s> {
        self.macros
    }

    pub(super) fn new(scopes: Scopes<'s>, macros: &'s Macros<'s>, launches: &'s [Launch]) -> Fold<'s> {
        let (uses, tree, arguments) = (Uses::default(), Tree::default(), Vec::new());
        Fold { scopes, macros, launches, uses, tree, steps: 0, depth: 0, left: EFFECTS, around: None, arguments }
    }

    /// Of a macro's body, whose arguments are these.
    pub(super) fn within(mut self, arguments: Vec<&'s [u8]>, around: &'s Around<'s>) -> Fold<'s> {
        self.arguments = arguments;
        self.around = Some(around);
        self
    }

    fn word(&self, at: usize) -> &'s [u8] {
        self.scopes.code.text(at, self.scopes.text)
    }

    /// The number that these tokens are worth.
    pub(super) fn number(&mut self, range: Range<usize>) -> Term {
        self.begin();
        self.value(range).term()
    }

    /// The dimensions that these tokens are worth, of a grid or a block.
    pub(super) fn dimensions(&mut self, range: Range<usize>) -> [Term; 3] {
        self.begin();
        self.three(range)
    }

    /// Grid, block and shared memory of the structure that these tokens name.
    pub(super) fn structure(&mut self, range: Range<usize>) -> ([Term; 3], [Term; 3], Term) {
        let unknown = ([Term::Unknown, Term::Unknown, Term::Unknown], Default::default(), Term::Unknown);
        let mut range = range;
        if self.scopes.code.kind(range.start) == Kind::And {
            range.start += 1;
        }
        if range.len() != 1 || self.scopes.code.kind(range.start) != Kind::Word {
            return unknown;
        }
        let at = range.start;
        let Meaning::Variable(one) = self.scopes.find(self.word(at), at) else { return unknown };
        if self.scopes.variables[one as usize].declared.of != Type::Config {
            return unknown;
        }
        let mut part = |index: usize| {
            self.begin();
            self.part_of_config(one, at, index)
        };
        let (grid, block) = (part(0).dimensions(), part(1).dimensions());
        (grid, block, part(2).term())
    }

    /// What a macro is worth, as far as that does not depend on where it is used.
    pub(super) fn macro_term(&mut self, name: &[u8]) -> Term {
        self.begin();
        let macros = self.macros;
        let end = self.scopes.code.tokens.len();
        self.of_macro(macros.get(name), end, true).map_or(Term::Unknown, Value::term)
    }

    /// What a constant is worth.
    pub(super) fn constant(&mut self, one: u32) -> Term {
        self.begin();
        let at = self.scopes.variables[one as usize].declared.name;
        self.variable(one, at).term()
    }

    /// Takes what is looked at from what may be looked at in all of a file.
    fn spend(&mut self, effects: usize) -> bool {
        self.left = self.left.saturating_sub(effects);
        self.left > 0
    }

    fn begin(&mut self) {
        self.steps = 0;
        self.depth = 0;
        self.tree.clear();
    }

    /// Tokens of the text as dimensions: a value, or several in braces.
    fn three(&mut self, range: Range<usize>) -> [Term; 3] {
        let code = self.scopes.code;
        if code.kind(range.start) == Kind::BraceOpen && code.behind(range.start) == range.end {
            return self.parts(range.start + 1..range.end - 1);
        }
        self.whole(range)
    }

    /// One value as dimensions. Of a number the others are 1, though nothing else is known of it.
    fn whole(&mut self, range: Range<usize>) -> [Term; 3] {
        let all = self.value(range.clone()).dimensions();
        if all == <[Term; 3]>::default() && self.is_number(range) {
            return [Term::Unknown, Term::Known(1), Term::Known(1)];
        }
        all
    }

    /// Whether the tokens are the name of a variable or a parameter that holds a number, and no `dim3`.
    fn is_number(&mut self, range: Range<usize>) -> bool {
        let name = self.word(range.start);
        if range.len() != 1 || self.arguments.contains(&name) || self.macros.has(name) {
            return false;
        }
        match self.scopes.find(name, range.start) {
            Meaning::Variable(one) => {
                let declared = &self.scopes.variables[one as usize].declared;
                matches!(declared.of, Type::Integer(_)) && declared.dimensions.is_empty()
            }
            Meaning::Hidden => self.scopes.is_number_parameter(name, range.start),
            Meaning::Several | Meaning::Nothing => false,
        }
    }

    /// One to three values, and 1 for those that are left out.
    fn parts(&mut self, range: Range<usize>) -> [Term; 3] {
        let parts = split(self.scopes.code, range);
        if let [only] = &parts[..] {
            return self.whole(only.clone());
        }
        let mut all = [Term::Known(1), Term::Known(1), Term::Known(1)];
        if parts.len() > 3 {
            return Default::default();
        }
        for (one, part) in all.iter_mut().zip(parts) {
            *one = self.value(part).term();
        }
        all
    }

    /// What tokens of the text are worth.
    fn value(&mut self, range: Range<usize>) -> Value {
        if range.is_empty() || range.len() > LONGEST || self.depth >= DEEPEST {
            return Value::UNKNOWN;
        }
        let code = self.scopes.code;
        let text = Text { tokens: &code.tokens, at: None };
        self.parsed(text, range)
    }

    fn parsed(&mut self, text: Text<'_>, range: Range<usize>) -> Value {
        // A tree counts its tokens by nodes: what is long takes many steps.
        self.depth += 1;
        let id = self.tree.parse(self.scopes.text, text.tokens, range.start, range.end);
        let value = self.evaluate(text, id, true);
        self.depth -= 1;
        value
    }

    fn evaluate(&mut self, text: Text<'_>, id: Id, is_whole: bool) -> Value {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Value::UNKNOWN;
        }
        let node = self.tree.get(id);
        let term = match node.what {
            What::Number => number(spelled(self.scopes.text, text, node)).map_or(Term::Unknown, Term::Known),
            What::Name { arguments: None } => return self.name(text, node, is_whole),
            What::Member { base, arrow: false } => self.member(text, node, base),
            What::Call { callee, arguments } | What::Construct { callee, arguments } => {
                return self.call(text, callee, arguments);
            }
            What::Braces(list) => match *self.tree.list(list) {
                [one] => return self.evaluate(text, one, true),
                [] => Term::Known(0),
                _ => Term::Unknown,
            },
            What::Unary(op, of) => Term::unary(op, self.evaluate(text, of, false).term()),
            What::Binary(op, left, right) => {
                let left = self.evaluate(text, left, false).term();
                if left == Term::Unknown {
                    return Value::UNKNOWN;
                }
                Term::binary(op, left, self.evaluate(text, right, false).term())
            }
            What::Choice(condition, yes, no) => match self.evaluate(text, condition, false).term() {
                Term::Unknown | Term::OfOne => Term::Unknown,
                Term::Known(0) => return self.evaluate(text, no, false),
                Term::Known(_) => return self.evaluate(text, yes, false),
                open => {
                    let (yes, no) = (self.evaluate(text, yes, false).term(), self.evaluate(text, no, false).term());
                    Term::choice(open, || yes, || no)
                }
            },
            What::Cast(to, of) => return self.cast(text, to, of),
            What::SizeOf(of) => {
                let words = (of.0 as usize..of.1 as usize).filter_map(|at| text.tokens.get(at));
                let words: Vec<&[u8]> = words.map(|token| token.of(self.scopes.text)).collect();
                let name = words.join(&b' ');
                let name = name.strip_prefix(b"const ").unwrap_or(&name);
                size_of(name).map_or(Term::Unknown, |bytes| Term::Known(i64::from(bytes)))
            }
            _ => Term::Unknown,
        };
        Value::One(term)
    }

    /// A cast to a type of whole numbers keeps what fits.
    fn cast(&mut self, text: Text<'_>, to: (u32, u32), of: Id) -> Value {
        let words = (to.0 as usize..to.1 as usize).filter_map(|at| text.tokens.get(at));
        let words: Vec<&[u8]> = words.map(|token| token.of(self.scopes.text)).collect();
        let mut bits = 0;
        for word in words {
            bits = match word {
                b"const" | b"std" | b"::" => bits,
                b"int" | b"signed" if bits == 0 => 31,
                b"unsigned" if bits == 0 => 32,
                b"int" | b"unsigned" | b"signed" => bits,
                b"int32_t" => 31,
                b"uint" | b"uint32_t" => 32,
                b"long" | b"size_t" | b"int64_t" | b"uint64_t" | b"ptrdiff_t" => 63,
                b"short" | b"int16_t" => 15,
                b"uint16_t" => 16,
                b"char" | b"int8_t" => 7,
                b"uint8_t" => 8,
                b"dim3" => return Value::Three(self.evaluate(text, of, true).dimensions()),
                _ => return Value::UNKNOWN,
            };
        }
        Value::One(self.evaluate(text, of, false).term().fits(bits))
    }

    /// `dim3(…)`, `min(…)` and the like.
    fn call(&mut self, text: Text<'_>, callee: Id, arguments: super::expr::List) -> Value {
        let name = self.tree.get(callee);
        let What::Name { .. } = name.what else { return Value::UNKNOWN };
        let last = self.last_word(text, name);
        let arguments = self.tree.list(arguments).to_vec();
        match last {
            b"dim3" => {
                if let [only] = arguments[..] {
                    return Value::Three(self.evaluate(text, only, true).dimensions());
                }
                if arguments.len() > 3 {
                    return Value::UNKNOWN;
                }
                let mut all = [Term::Known(1), Term::Known(1), Term::Known(1)];
                for (one, argument) in all.iter_mut().zip(arguments) {
                    *one = self.evaluate(text, argument, true).term();
                }
                Value::Three(all)
            }
            b"min" | b"max" if arguments.len() == 2 => {
                let which = if last == b"min" { Extreme::Smallest } else { Extreme::Largest };
                if self.is_defined(last) {
                    return Value::UNKNOWN;
                }
                let left = self.evaluate(text, arguments[0], true).term();
                let right = self.evaluate(text, arguments[1], true).term();
                Value::One(Term::extreme(which, left, right))
            }
            _ => {
                let mut is_one = |argument: &Id| self.evaluate(text, *argument, true) == Value::One(Term::Known(1));
                let is_of_one = !arguments.is_empty() && arguments.iter().all(&mut is_one);
                Value::One(if is_of_one { Term::OfOne } else { Term::Unknown })
            }
        }
    }

    /// Whether the file gives a name that the library has a meaning of its own.
    fn is_defined(&mut self, name: &[u8]) -> bool {
        self.scopes.learn_file();
        self.macros.get(name).next().is_some() || self.scopes.functions.contains_key(name)
    }

    fn last_word<'a>(&self, text: Text<'a>, name: Node) -> &'s [u8] {
        let tokens: &[Token] = text.tokens.get(name.tokens.0 as usize..name.tokens.1 as usize).unwrap_or_default();
        let mut last: &[u8] = b"";
        for token in tokens {
            match token.kind {
                Kind::Word => last = self.spelled(*token),
                Kind::Less => break,
                _ => {}
            }
        }
        last
    }

    fn spelled(&self, token: Token) -> &'s [u8] {
        self.scopes.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// Whether a word of an index may be other than constant.
    pub(super) fn may_vary(&mut self, at: usize) -> bool {
        let word = self.word(at);
        if matches!(word, b"true" | b"false" | b"sizeof") || is_constant_name(word) {
            return false;
        }
        if !self.reach(word, at).definitions.is_empty() {
            return false;
        }
        match self.scopes.find(word, at) {
            Meaning::Variable(one) => {
                let is_const = self.scopes.variables[one as usize].declared.is_const;
                self.begin();
                self.variable(one, at) == Value::UNKNOWN
                    && !(is_const && self.scopes.variables[one as usize].is_unordered)
            }
            // A template's parameter is spelled like a constant, or like any other.
            Meaning::Hidden => !self.scopes.is_template_parameter(word, at),
            Meaning::Several => false,
            Meaning::Nothing => matches!(word, b"threadIdx" | b"blockIdx"),
        }
    }

    /// The kernel that is launched by the name at `at`: that of a function, or what the variable of that name holds. `None`
    /// where it is a variable, and what that holds is not known.
    pub(super) fn kernel_of(&mut self, at: usize) -> Option<(Range<usize>, Option<Range<usize>>)> {
        let code = self.scopes.code;
        let name = self.word(at);
        if self.arguments.contains(&name) {
            return None;
        }
        let one = match self.scopes.find(name, at) {
            Meaning::Variable(one) => one,
            Meaning::Nothing => return Some((at..at + 1, None)),
            Meaning::Several | Meaning::Hidden => return None,
        };
        let variable = &self.scopes.variables[one as usize];
        let First::Value(range) = variable.declared.first.clone() else { return None };
        if variable.is_unordered && !variable.declared.is_const || !variable.declared.dimensions.is_empty() {
            return None;
        }
        if self.uses.effects(&self.scopes, self.launches, one).is_changed {
            return None;
        }
        super::launches::name_of(code, self.scopes.text, range)
    }

    fn member(&mut self, text: Text<'_>, node: Node, base: Id) -> Term {
        let last =
            text.tokens.get((node.tokens.1 as usize).wrapping_sub(1)).map_or(&b""[..], |token| self.spelled(*token));
        let Some(axis) = axis(last) else { return Term::Unknown };
        match self.evaluate(text, base, false) {
            Value::Three(all) => all[axis].clone(),
            Value::One(_) => Term::Unknown,
        }
    }

    fn name(&mut self, text: Text<'_>, node: Node, is_whole: bool) -> Value {
        let (from, to) = (node.tokens.0 as usize, node.tokens.1 as usize);
        let words: Vec<&'s [u8]> = (from..to)
            .filter_map(|at| text.tokens.get(at))
            .filter(|token| token.kind != Kind::Scope)
            .map(|token| self.spelled(*token))
            .collect();
        let at = text.at.unwrap_or(from);
        match words[..] {
            [b"true"] => Value::One(Term::Known(1)),
            [b"false"] => Value::One(Term::Known(0)),
            [name] => self.named(name, at, is_whole),
            [class, name] => match self.scopes.find_member(class, name) {
                Meaning::Variable(one) => self.variable(one, at),
                _ => Value::UNKNOWN,
            },
            _ => Value::UNKNOWN,
        }
    }

    /// What a name without others before it is worth at `at`.
    fn named(&mut self, name: &'s [u8], at: usize, is_whole: bool) -> Value {
        if self.arguments.contains(&name) {
            return Value::UNKNOWN;
        }
        let Reach { definitions, is_sure } = self.reach(name, at);
        if definitions.is_empty() {
            return self.declared(name, at);
        }
        let value = self.of_macro(definitions.into_iter(), at, is_whole).unwrap_or(Value::UNKNOWN);
        let is_all = is_sure || value == Value::UNKNOWN || self.scopes.find(name, at) == Meaning::Nothing;
        if is_all || self.declared(name, at) == value { value } else { Value::UNKNOWN }
    }

    /// What macros say of a name at `at`.
    fn reach(&self, name: &[u8], at: usize) -> Reach<'s> {
        let macros: &'s Macros<'s> = self.macros;
        // The body of a macro is used elsewhere.
        if self.around.is_some() {
            return macros.reach_anywhere(name);
        }
        macros.reach(name, at, self.scopes.code)
    }

    /// What a name is worth at `at` that no macro stands behind.
    fn declared(&mut self, name: &'s [u8], at: usize) -> Value {
        match self.scopes.find(name, at) {
            Meaning::Variable(one) => self.variable(one, at),
            Meaning::Several => {
                let mut agreed = None;
                for one in self.scopes.several(name, at).unwrap_or_default() {
                    let value = self.variable(one, at);
                    if agreed.as_ref().is_some_and(|agreed| *agreed != value) {
                        return Value::UNKNOWN;
                    }
                    agreed = Some(value);
                }
                agreed.unwrap_or(Value::UNKNOWN)
            }
            Meaning::Hidden => Value::UNKNOWN,
            Meaning::Nothing => match self.around {
                Some(around) => Value::One(around(name)),
                // It is this file that defines it, at another place.
                None if self.macros.has(name) => Value::UNKNOWN,
                None if is_constant_name(name) => Value::One(Term::name(name)),
                None => Value::UNKNOWN,
            },
        }
    }

    /// What a macro is worth, where all its definitions say the same. Without parentheses around it, its body would not
    /// stay together within an expression.
    fn of_macro<'m>(
        &mut self,
        definitions: impl Iterator<Item = &'m Define>,
        at: usize,
        is_whole: bool,
    ) -> Option<Value> {
        let text = self.scopes.text;
        let mut agreed: Option<Value> = None;
        for define in definitions {
            let (from, to) = if define.may_be_constant() { define.body } else { (0, 0) };
            self.steps += 1;
            if self.steps > MOST_STEPS || self.depth >= DEEPEST {
                return None;
            }
            let mut body = Vec::new();
            tokens(text, from, to, &mut body);
            if body.is_empty() || !is_whole && !stays_together(&body) {
                return None;
            }
            let length = body.len();
            let value = self.parsed(Text { tokens: &body, at: Some(at) }, 0..length);
            if value == Value::UNKNOWN || agreed.as_ref().is_some_and(|agreed| *agreed != value) {
                return None;
            }
            agreed = Some(value);
        }
        agreed
    }

    /// What a variable is worth at `at`.
    fn variable(&mut self, one: u32, at: usize) -> Value {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.depth >= DEEPEST {
            return Value::UNKNOWN;
        }
        let variable = &self.scopes.variables[one as usize];
        let declared = &variable.declared;
        if !declared.dimensions.is_empty() || declared.is_extern || declared.is_shared {
            return Value::UNKNOWN;
        }
        match declared.of {
            Type::Other | Type::Config => Value::UNKNOWN,
            Type::Integer(_) | Type::Auto | Type::Dim3 if declared.is_const => self.first(one, None),
            // Others may change it, or it keeps what an earlier run left.
            _ if variable.is_unordered || declared.is_static => Value::UNKNOWN,
            Type::Dim3 => Value::Three([0, 1, 2].map(|axis| self.part(one, at, Part::Axis(axis)).term())),
            Type::Auto => match self.part(one, at, Part::Whole) {
                // Its axes may have been changed one by one.
                Value::Three(_) => Value::Three([0, 1, 2].map(|axis| self.part(one, at, Part::Axis(axis)).term())),
                value => value,
            },
            Type::Integer(_) => self.part(one, at, Part::Whole),
        }
    }

    /// What a variable begins with, or that part of it.
    fn first(&mut self, one: u32, part: Option<usize>) -> Value {
        let declared = self.scopes.variables[one as usize].declared.clone();
        let value = match (declared.of, declared.first) {
            (Type::Dim3, First::Nothing) => Value::Three([Term::Known(1), Term::Known(1), Term::Known(1)]),
            (Type::Dim3, First::Value(range)) => Value::Three(self.three(range)),
            (Type::Dim3, First::Parts(range)) => Value::Three(self.parts(range)),
            (Type::Integer(bits), First::Value(range) | First::Parts(range)) => {
                Value::One(self.value(range).term().fits(bits))
            }
            (Type::Auto, First::Value(range) | First::Parts(range)) => self.value(range),
            (_, First::Enumerator { last, behind }) => {
                let last = last.map_or(Term::Known(0), |range| self.value(range).term());
                Value::One(Term::binary(super::expr::Binary::Add, last, Term::Known(i64::from(behind))))
            }
            _ => Value::UNKNOWN,
        };
        match part {
            Some(axis) => Value::One(value.dimensions()[axis].clone()),
            None => value,
        }
    }

    /// What that part of a variable is worth at `at`: what the last assignment before that whoever comes there has come
    /// past gave it, if nothing may have changed it since.
    fn part(&mut self, one: u32, at: usize, part: Part) -> Value {
        self.scopes.learn_file();
        let Effects { all: effects, escapes_at, .. } = self.uses.effects(&self.scopes, self.launches, one);
        let scope = self.scopes.variables[one as usize].scope;
        let again = comes_again_until(&mut self.scopes, scope, at);
        let before = effects.partition_point(|effect| effect.at < at);
        if escapes_at < at.max(again) {
            return Value::UNKNOWN;
        }
        for effect in effects[..before].iter().rev() {
            self.steps += 1;
            if self.steps > MOST_STEPS || !self.spend(1) {
                return Value::UNKNOWN;
            }
            let (changed, value, is_plain) = match &effect.what {
                Doing::Assign { part, value, is_plain } => (part, Some(value.clone()), *is_plain),
                Doing::Change { part } => (part, None, false),
                Doing::Escape => return Value::UNKNOWN,
            };
            let Some(hit) = self.hit(changed, part) else { continue };
            let Some(value) = value.filter(|_| is_plain && is_passed(&mut self.scopes, effect.at, at)) else {
                return Value::UNKNOWN;
            };
            let own = self.scopes.code.outer(effect.at);
            let again = comes_again_until(&mut self.scopes, own, at);
            if self.is_changed(&effects[before..], again, part) {
                return Value::UNKNOWN;
            }
            return self.assigned(one, value, hit, part);
        }
        if self.is_changed(&effects[before..], again, part) {
            return Value::UNKNOWN;
        }
        match part {
            Part::Whole => self.first(one, None),
            Part::Axis(axis) => self.first(one, Some(axis)),
            Part::Config(index) => self.first_of_config(one, index, None),
            Part::ConfigAxis(index, axis) => self.first_of_config(one, index, Some(axis)),
        }
    }

    /// Whether one of the effects before `until` changes that part; it may where there is too much to look at.
    fn is_changed(&mut self, later: &[Effect], until: usize, part: Part) -> bool {
        let later = &later[..later.partition_point(|effect| effect.at < until)];
        if !self.spend(later.len()) {
            return true;
        }
        later.iter().any(|effect| match &effect.what {
            Doing::Assign { part: changed, .. } | Doing::Change { part: changed } => self.hit(changed, part).is_some(),
            Doing::Escape => true,
        })
    }

    /// Whether a change of the part that these words name changes `part`, and if so, what of it: the whole, or an axis.
    fn hit(&self, changed: &[usize], part: Part) -> Option<Hit> {
        let names: Vec<&[u8]> = changed.iter().map(|at| self.word(*at)).collect();
        match (part, &names[..]) {
            (_, []) => Some(Hit::Whole),
            (Part::Whole, [_, ..]) => Some(Hit::Part),
            (Part::Axis(own), [name]) => match axis(name) {
                Some(axis) => (axis == own).then_some(Hit::Part),
                None => Some(Hit::Other),
            },
            (Part::Config(own) | Part::ConfigAxis(own, _), [name, rest @ ..]) => {
                let index = CONFIG.iter().position(|known| known == name)?;
                if index != own {
                    return None;
                }
                match (part, rest) {
                    (_, []) => Some(Hit::Part),
                    (Part::ConfigAxis(_, own), [name]) => match axis(name) {
                        Some(axis) => (axis == own).then_some(Hit::Axis),
                        None => Some(Hit::Other),
                    },
                    _ => Some(Hit::Other),
                }
            }
            _ => Some(Hit::Other),
        }
    }

    fn assigned(&mut self, one: u32, value: Range<usize>, hit: Hit, part: Part) -> Value {
        let of = self.scopes.variables[one as usize].declared.of;
        match (part, hit) {
            (Part::Whole, Hit::Whole) => match of {
                Type::Integer(bits) => Value::One(self.value(value).term().fits(bits)),
                _ => self.value(value),
            },
            (Part::Axis(axis), Hit::Whole) => Value::One(self.three(value)[axis].clone()),
            (Part::Axis(_), Hit::Part) | (Part::ConfigAxis(..), Hit::Axis) => Value::One(self.value(value).term()),
            (Part::ConfigAxis(_, axis), Hit::Part) => Value::One(self.three(value)[axis].clone()),
            (Part::Config(_), Hit::Part) => self.value(value),
            _ => Value::UNKNOWN,
        }
    }

    fn part_of_config(&mut self, one: u32, at: usize, index: usize) -> Value {
        match index {
            2 => Value::One(self.part(one, at, Part::Config(2)).term()),
            _ => Value::Three([0, 1, 2].map(|axis| self.part(one, at, Part::ConfigAxis(index, axis)).term())),
        }
    }

    /// `cudaLaunchConfig_t c = {grid, block, shared};` or `{.gridDim = grid};` or `{}`.
    fn first_of_config(&mut self, one: u32, index: usize, axis: Option<usize>) -> Value {
        let declared = self.scopes.variables[one as usize].declared.clone();
        let code = self.scopes.code;
        let range = match declared.first {
            First::Parts(range) => range,
            First::Value(range)
                if code.kind(range.start) == Kind::BraceOpen && code.behind(range.start) == range.end =>
            {
                range.start + 1..range.end - 1
            }
            _ => return Value::UNKNOWN,
        };
        let parts = split(code, range);
        let is_designated = parts.first().is_some_and(|part| code.kind(part.start) == Kind::Dot);
        let found = if is_designated {
            let own = parts.into_iter().find(|part| self.word(part.start + 1) == CONFIG[index]);
            own.filter(|part| code.kind(part.start + 2) == Kind::Assign).map(|part| part.start + 3..part.end)
        } else {
            parts.into_iter().nth(index)
        };
        match (found, axis) {
            (Some(range), Some(axis)) if range.len() > 1 || self.word(range.start) != b"0" => {
                Value::One(self.three(range)[axis].clone())
            }
            (Some(range), None) => self.value(range),
            // Left out, it is zero.
            (None, None) => Value::One(Term::Known(0)),
            _ => Value::UNKNOWN,
        }
    }
}

/// A part of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Axis(usize),
    Config(usize),
    ConfigAxis(usize, usize),
}

/// What of a part is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hit {
    /// The variable.
    Whole,
    /// That part.
    Part,
    /// That axis of that part.
    Axis,
    /// Something that is not understood.
    Other,
}

fn axis(name: &[u8]) -> Option<usize> {
    match name {
        b"x" => Some(0),
        b"y" => Some(1),
        b"z" => Some(2),
        _ => None,
    }
}

fn spelled<'a>(all: &'a [u8], text: Text<'_>, node: Node) -> &'a [u8] {
    text.tokens
        .get(node.tokens.0 as usize)
        .map_or(&[], |token| all.get(token.start as usize..token.end as usize).unwrap_or_default())
}

/// Whether the body of a macro stays together within an expression: one token, or brackets around it, perhaps behind a name.
fn stays_together(body: &[Token]) -> bool {
    if body.len() == 1 {
        return true;
    }
    let start = match body {
        [first, rest @ ..] if first.kind == Kind::Word && rest[0].kind == Kind::ParenOpen => 1,
        [first, ..] if first.kind == Kind::ParenOpen => 0,
        _ => return false,
    };
    let mut depth = 0_usize;
    for (at, token) in body.iter().enumerate().skip(start) {
        match token.kind {
            Kind::ParenOpen => depth += 1,
            Kind::ParenClose => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1 == body.len();
        }
    }
    false
}

/// Whether a name is spelled as constants of a project are: `BLOCK_SIZE`, `kThreads`.
pub(super) fn is_constant_name(name: &[u8]) -> bool {
    name.len() > 1 && is_upper(name) || matches!(name, [b'k', second, ..] if second.is_ascii_uppercase())
}
