//! Statements as PTX: what decides branches is followed, the rest only costs.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::super::expr::{Id, Tree};
use super::super::lexer::{Kind, Token};
use super::super::statement::{self, Body, Tokens, What};
use super::chain::chains;
use super::declare::{Given, untracked};
use super::emit::{Label, Output};
use super::macros::Use;
use super::value::{Type, Value, Variable};
use super::{Device, File};

/// A function that is being lowered.
pub(super) struct Lowering<'l, 'u> {
    pub(super) file: &'l File<'u>,
    pub(super) tokens: Vec<Token>,
    /// Where macros are named, in order.
    uses: Vec<Use>,
    partners: Vec<u32>,
    pub(super) tree: Tree,
    pub(super) out: Output,
    names: HashMap<&'u [u8], Vec<Variable>>,
    /// Names that each open scope declares.
    scopes: Vec<Vec<&'u [u8]>>,
    untracked: HashSet<&'u [u8]>,
    labels: HashMap<&'u [u8], Label>,
    /// Labels that a `goto` named before they were put, or were put.
    placed: HashSet<Label>,
    /// Where `break` and `continue` lead.
    breaks: Vec<Label>,
    continues: Vec<Label>,
    cases: HashMap<statement::Id, Label>,
    /// Branches of `#if` that are open: what they decide is not looked at.
    muted: u32,
    /// Statements around this one that only some threads run, because of their index.
    pub(super) selected: u32,
    /// Operands that are not always evaluated.
    pub(super) conditional: u32,
    /// Bodies of functions that are being read in place of their calls.
    pub(super) inlined: u32,
    /// Functions that may still be read so.
    pub(super) inlining_left: u32,
    /// Members of parameters, by the parameter and the names.
    pub(super) members: HashMap<(u32, Vec<u8>), u32>,
    /// Returns, breaks and the like that were met.
    exits: u32,
    interest: Interest,
    steps: u32,
}

/// A branch whose second side is still to come.
struct Branch {
    /// Where that side begins, and where both meet.
    other: Label,
    end: Label,
    is_index: bool,
    /// What there was before it.
    barriers: usize,
    exits: u32,
    /// What was written before its first side, and before its second.
    start: u32,
    middle: u32,
}

/// Whether a branch may have something to report.
#[derive(Debug, Default)]
struct Interest {
    /// Two sides, a loop, a barrier within, an exchange.
    direct: bool,
    /// Some threads leave early, which matters where a barrier follows.
    leaves: bool,
}

/// The statements of a function are too many, nested too deeply, or torn by `#if`.
pub(super) struct NotFollowed;

/// Statements and expressions of one function at most.
const STEPS: u32 = 60_000;

/// Whether a body asks for a thread's place in the second dimension.
fn has_rows(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"threadIdx.y").is_some()
}

/// Instructions from which on a side may weigh enough for a report.
const SIDE: u32 = 16;

/// The same of the only side.
const ONLY: u32 = 64;

/// Declarations of volatile memory that are looked at.
const DECLARED: usize = 16;

/// Tokens from `volatile` to the name that it declares, at most.
const NEAR: usize = 16;

/// Iterations that are taken of a loop.
const TRIPS: u32 = 8;

impl<'l, 'u> Lowering<'l, 'u> {
    /// Lowers a function; nothing where none of its branches may have something to report, unless `every` one is asked for.
    pub(super) fn function(file: &'l File<'u>, one: &Device, every: bool) -> Result<Option<Output>, NotFollowed> {
        let code = file.expanded(&one.body);
        file.weights.learn(file, &code.0);
        let (mut this, body) = Lowering::begin(file, code).ok_or(NotFollowed)?;
        let parameters = file.tokens(&one.parameters);
        let given = if one.is_kernel { Given::Kernel(&one.passed) } else { Given::Unknown };
        this.parameters(&parameters, given);
        // What a kernel is given lies in global memory.
        this.reductions(if one.is_kernel { &[] } else { &parameters });
        this.all_statements(&body).ok_or(NotFollowed)?;
        // The names that exchange between lanes may stand for something else where another compiler reads something else.
        if !this.out.exchanges.is_empty() && file.is_one_of_several(one.body.start) {
            this.out.exchanges.clear();
        }
        let matters = every
            || this.interest.direct
            || (this.interest.leaves && !this.out.barriers.is_empty())
            || !this.out.exchanges.is_empty()
            // A block of rows, whose ends may be checked.
            || (one.is_kernel && file.unit.text.get(one.body.clone()).is_some_and(has_rows));
        Ok(matters.then_some(this.out))
    }

    /// Lowers what is called, for what it weighs; nothing where it cannot be followed.
    pub(super) fn alone(file: &'l File<'u>, body: &Range<usize>, parameters: &[Token]) -> Option<Output> {
        let (mut this, body) = Lowering::begin(file, file.expanded(body))?;
        this.parameters(parameters, Given::Unknown);
        this.all_statements(&body)?;
        Some(this.out)
    }

    fn begin(file: &'l File<'u>, (tokens, uses): (Vec<Token>, Vec<Use>)) -> Option<(Lowering<'l, 'u>, Body)> {
        let body = Body::parse(file.unit.text, &tokens, (0, tokens.len()))?;
        let partners = partners(&tokens);
        let untracked = untracked(file.unit.text, &tokens, &partners);
        let this = Lowering {
            file,
            tokens,
            uses,
            partners,
            tree: Tree::default(),
            out: Output::default(),
            names: HashMap::new(),
            scopes: vec![Vec::new()],
            untracked,
            labels: HashMap::new(),
            placed: HashSet::new(),
            breaks: Vec::new(),
            continues: Vec::new(),
            cases: HashMap::new(),
            muted: 0,
            selected: 0,
            conditional: 0,
            inlined: 0,
            inlining_left: 64,
            members: HashMap::new(),
            exits: 0,
            interest: Interest::default(),
            steps: 0,
        };
        Some((this, body))
    }

    /// Follows all statements of a body; nothing where these are too many.
    fn all_statements(&mut self, body: &Body) -> Option<()> {
        self.statement(body, body.root);
        let unplaced: Vec<Label> = self.labels.values().copied().filter(|label| !self.placed.contains(label)).collect();
        for label in unplaced {
            self.out.put(label);
        }
        (self.steps < STEPS).then_some(())
    }

    /// Steps of reductions through volatile memory, at the beginning, where all threads come to.
    fn reductions(&mut self, parameters: &[Token]) {
        let text = self.text();
        let declares = |tokens: &[Token], name: &[u8]| {
            let volatile = tokens.iter().position(|token| token.of(text) == b"volatile");
            volatile.is_some_and(|at| {
                let rest = tokens[at..].iter().take_while(|token| !matches!(token.kind, Kind::Comma | Kind::Semicolon));
                rest.take(NEAR).any(|token| token.of(text) == name)
            })
        };
        let all = parameters.split(|token| token.kind == Kind::Comma);
        let statements = self.tokens.split(|token| matches!(token.kind, Kind::Semicolon | Kind::BraceOpen));
        let volatile: Vec<&[Token]> = all
            .chain(statements)
            .filter(|tokens| tokens.iter().any(|token| token.of(text) == b"volatile"))
            .take(DECLARED)
            .collect();
        let is_volatile = |name: &[u8]| volatile.iter().any(|tokens| declares(tokens, name));
        let found = if volatile.is_empty() || !self.file.knows_exchanges {
            Vec::new()
        } else {
            chains(text, &self.tokens, &is_volatile)
        };
        for chain in found {
            let place = self.file.place(chain.at);
            self.out.place(place);
            let register = self.out.register();
            for _ in 0..chain.reads {
                self.out.line(format_args!("st.volatile.shared.f32 [%v{register}], %f1;"));
                let at = self.out.at();
                self.out.exchanges.push((at, b"volatile".as_slice().into()));
                self.out.line(format_args!("ld.volatile.shared.f32 %f1, [%v{register}+4];"));
            }
        }
    }

    pub(super) fn text(&self) -> &'u [u8] {
        self.file.unit.text
    }

    pub(super) fn kind_at(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    pub(super) fn word_at(&self, at: usize) -> &'u [u8] {
        self.tokens.get(at).filter(|token| token.kind == Kind::Word).map_or(b"", |token| token.of(self.text()))
    }

    /// The bracket that closes the one at `at`.
    pub(super) fn partner(&self, at: usize) -> Option<usize> {
        self.partners.get(at).map(|other| *other as usize).filter(|other| *other > at)
    }

    /// Whether what is decided here may not be compiled at all.
    pub(super) fn is_muted(&self) -> bool {
        self.muted > 0
    }

    pub(super) fn is_untracked(&self, name: &[u8]) -> bool {
        self.untracked.contains(name)
    }

    pub(super) fn declare(&mut self, name: &'u [u8], variable: Variable) {
        self.names.entry(name).or_default().push(variable);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name);
        }
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn close(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            if let Some(all) = self.names.get_mut(name) {
                all.pop();
            }
        }
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Variable> {
        self.names.get(name)?.last().copied()
    }

    pub(super) fn set(&mut self, name: &[u8], variable: Variable) {
        if let Some(last) = self.names.get_mut(name).and_then(|all| all.last_mut()) {
            *last = variable;
        }
    }

    /// A variable may have been changed by something that is not understood.
    pub(super) fn forget(&mut self, name: &[u8]) {
        match self.find(name).map(|variable| variable.holds) {
            Some(Value::Register(register, ..)) => self.out.unknown(register),
            Some(Value::Parameter(..)) => self.set(name, Variable::UNKNOWN),
            _ => {}
        }
    }

    pub(super) fn parse_prefix(&mut self, from: usize, to: usize) -> (Id, usize) {
        self.steps += 1;
        let text = self.text();
        self.tree.parse_prefix(text, &self.tokens, from, to)
    }

    /// The value of the expression that tokens are.
    pub(super) fn evaluate(&mut self, (from, to): Tokens) -> Value {
        self.steps += 1;
        if from >= to {
            return Value::Unknown;
        }
        let text = self.text();
        let id = self.tree.parse(text, &self.tokens, from, to);
        let value = self.expression(id);
        self.tree.clear();
        value
    }

    /// Takes note of where a statement stands; whether it is still followed.
    fn begin_statement(&mut self, body: &Body, id: statement::Id) -> bool {
        self.steps += 1;
        if self.steps > STEPS {
            return false;
        }
        if let Some(token) = self.written(body.get(id).tokens.0) {
            let place = self.file.place(token.start);
            self.out.place(place);
        }
        true
    }

    fn statement(&mut self, body: &Body, id: statement::Id) {
        if !self.begin_statement(body, id) {
            return;
        }
        let one = body.get(id);
        match &one.what {
            What::Empty => {}
            What::Block(all) => {
                self.open();
                all.iter().for_each(|id| self.statement(body, *id));
                self.close();
            }
            What::If { .. } => self.branches(body, id),
            What::Loop { first, condition, step, body: inner } => {
                self.open();
                if let Some(first) = first {
                    self.statement(body, *first);
                }
                self.looped(body, one.tokens, (*condition, *step), *inner);
                self.close();
            }
            What::Do { body: inner, condition } => self.do_loop(body, one.tokens, *inner, *condition),
            What::Each(inner) => self.each(body, *inner),
            What::Switch { value, body: inner } => self.switch(body, one.tokens, *value, *inner),
            What::Case(_) | What::Default => {
                if let Some(label) = self.cases.get(&id) {
                    self.out.put(*label);
                }
            }
            What::Return(value) => {
                if value.0 < value.1 {
                    self.evaluate(*value);
                }
                self.exits += 1;
                self.out.line(format_args!("ret;"));
            }
            What::Break => self.leave(self.breaks.last().copied()),
            What::Continue => self.leave(self.continues.last().copied()),
            What::Goto(name) => {
                let label = self.label_of(*name);
                self.leave(Some(label));
            }
            What::Label(name) => {
                let label = self.label_of(*name);
                if self.placed.insert(label) {
                    self.out.put(label);
                }
            }
            What::Declaration(tokens) => {
                self.declaration(*tokens);
                self.tree.clear();
            }
            What::Expression(tokens) => {
                self.evaluate(*tokens);
            }
            What::Assembly(tokens) => self.assembly(*tokens),
            What::Variants(all) => self.variants(body, all),
        }
    }

    fn label_of(&mut self, name: usize) -> Label {
        let name = self.word_at(name);
        match self.labels.get(name) {
            Some(label) => *label,
            None => {
                let label = self.out.label();
                self.labels.insert(name, label);
                label
            }
        }
    }

    fn leave(&mut self, to: Option<Label>) {
        self.exits += 1;
        if let Some(label) = to {
            self.out.jump(label);
        }
    }

    /// The token at `at` as it is written in the body: the name of the macro, of one that stands for it.
    pub(super) fn written(&self, at: usize) -> Option<Token> {
        let behind = self.uses.partition_point(|one| one.tokens.0 <= at);
        let named = behind.checked_sub(1).map(|one| &self.uses[one]).filter(|one| at < one.tokens.1);
        named.map(|one| one.name).or_else(|| self.tokens.get(at).copied())
    }

    /// The bytes of a statement.
    fn extent(&self, (from, to): Tokens) -> Range<u32> {
        let start = self.written(from).map_or(0, |token| token.start);
        let end = self.written(to.saturating_sub(1)).map_or(start, |token| token.end);
        start..end.max(start)
    }

    /// Jumps where `condition` is `wanted`.
    fn jump_if(&mut self, condition: Value, wanted: bool, label: Label, extent: &Range<u32>) {
        let condition = if self.is_muted() { Value::Unknown } else { condition };
        let predicate = match self.predicate(condition) {
            Ok(predicate) => predicate,
            Err(known) => {
                if known == wanted {
                    self.out.jump(label);
                }
                return;
            }
        };
        let at = self.out.at();
        self.out.branches.push((at, extent.clone()));
        let negation = if wanted { "" } else { "!" };
        self.out.line(format_args!("@{negation}%p{predicate} bra $L{label};"));
    }

    /// An `if` with all that `else` leads to, of which there may be many: each takes up where the one before left off.
    fn branches(&mut self, body: &Body, id: statement::Id) {
        let mut open = Vec::new();
        let mut id = id;
        while let What::If { first, condition, is_constant, then, otherwise } = &body.get(id).what {
            self.open();
            if let Some(first) = first {
                self.statement(body, *first);
            }
            let condition = if *is_constant { Value::Unknown } else { self.evaluate(*condition) };
            let branch = self.begin_branch(body, body.get(id).tokens, condition, (*then, *otherwise));
            let (other, end) = (branch.other, branch.end);
            open.push(branch);
            let Some(otherwise) = otherwise else {
                self.out.put(other);
                break;
            };
            self.out.jump(end);
            self.out.put(other);
            if !matches!(body.get(*otherwise).what, What::If { .. }) {
                self.statement(body, *otherwise);
                break;
            }
            id = *otherwise;
            if !self.begin_statement(body, id) {
                break;
            }
        }
        while let Some(branch) = open.pop() {
            self.end_branch(&branch);
            self.close();
        }
    }

    /// The side of a branch on which its condition holds.
    fn begin_branch(
        &mut self,
        body: &Body,
        tokens: Tokens,
        condition: Value,
        (then, otherwise): (statement::Id, Option<statement::Id>),
    ) -> Branch {
        let extent = self.extent(tokens);
        let (barriers, exits) = (self.out.barriers.len(), self.exits);
        let are_alike =
            otherwise.is_some_and(|otherwise| self.are_alike(body.get(then).tokens, body.get(otherwise).tokens));
        // What differs in values alone is one code for a compiler.
        let condition = if are_alike { Value::Unknown } else { condition };
        let (other, end) = (self.out.label(), self.out.label());
        self.jump_if(condition, false, other, &extent);
        let is_index = condition.is_index();
        self.selected += u32::from(is_index);
        let start = self.out.weight;
        self.statement(body, then);
        Branch { other, end, is_index, barriers, exits, start, middle: self.out.weight }
    }

    fn end_branch(&mut self, branch: &Branch) {
        self.out.put(branch.end);
        self.selected -= u32::from(branch.is_index);
        if branch.is_index && !self.is_muted() {
            let (start, middle) = (branch.start, branch.middle);
            let (one, two) = (middle - start, self.out.weight - middle);
            let is_heavy = one.min(two) >= SIDE || one.max(two) >= ONLY;
            self.interest.direct |= is_heavy || self.out.barriers.len() > branch.barriers;
            self.interest.leaves |= self.exits > branch.exits;
        }
    }

    fn looped(&mut self, body: &Body, tokens: Tokens, (condition, step): (Tokens, Tokens), inner: statement::Id) {
        let extent = self.extent(tokens);
        let place = self.file.place(extent.start);
        let (start, next, end) = (self.out.label(), self.out.label(), self.out.label());
        let barriers = self.out.barriers.len();
        let is_endless = condition.0 >= condition.1;
        let mut is_index = false;
        if !is_endless {
            let value = self.evaluate(condition);
            is_index = value.is_index();
            self.jump_if(value, false, end, &extent);
        }
        self.out.put(start);
        self.selected += u32::from(is_index);
        self.in_loop(body, inner, (end, next));
        // The condition is no part of the body, which may hold a barrier.
        self.out.jump(next);
        self.out.put(next);
        self.evaluate(step);
        self.selected -= u32::from(is_index);
        self.out.place(place);
        if is_endless {
            self.out.jump(start);
        } else {
            let value = self.evaluate(condition);
            is_index |= value.is_index();
            self.jump_if(value, true, start, &extent);
        }
        self.out.put(end);
        if is_index && !self.is_muted() {
            self.interest.direct |= self.out.barriers.len() > barriers || !self.is_wide(step);
        }
    }

    fn do_loop(&mut self, body: &Body, tokens: Tokens, inner: statement::Id, condition: Tokens) {
        let extent = self.extent(tokens);
        let place = self.written(condition.0).map_or((1, 1), |token| self.file.place(token.start));
        let (start, next, end) = (self.out.label(), self.out.label(), self.out.label());
        self.out.put(start);
        self.in_loop(body, inner, (end, next));
        // The condition is no part of the body, which may hold a barrier.
        self.out.jump(next);
        self.out.put(next);
        self.out.place(place);
        let value = self.evaluate(condition);
        self.interest.direct |= value.is_index() && !self.is_muted();
        self.jump_if(value, true, start, &extent);
        self.out.put(end);
    }

    fn in_loop(&mut self, body: &Body, inner: statement::Id, (end, next): (Label, Label)) {
        let weight = self.out.weight;
        self.breaks.push(end);
        self.continues.push(next);
        self.statement(body, inner);
        self.breaks.pop();
        self.continues.pop();
        let once = self.out.weight - weight;
        self.out.weight = weight.saturating_add(once.saturating_mul(TRIPS));
    }

    /// A loop that runs nobody knows how often.
    fn each(&mut self, body: &Body, inner: statement::Id) {
        let (start, end) = (self.out.label(), self.out.label());
        self.out.put(start);
        self.jump_if(Value::Unknown, false, end, &(0..0));
        self.in_loop(body, inner, (end, start));
        self.out.jump(start);
        self.out.put(end);
    }

    fn variants(&mut self, body: &Body, all: &[statement::Id]) {
        self.muted += 1;
        let end = self.out.label();
        for (at, id) in all.iter().enumerate() {
            let next = self.out.label();
            if at + 1 < all.len() {
                self.jump_if(Value::Unknown, false, next, &(0..0));
            }
            // What is declared in it holds behind it.
            match &body.get(*id).what {
                What::Block(inner) => inner.iter().for_each(|id| self.statement(body, *id)),
                _ => self.statement(body, *id),
            }
            self.out.jump(end);
            self.out.put(next);
        }
        self.out.put(end);
        self.muted -= 1;
    }

    fn switch(&mut self, body: &Body, tokens: Tokens, value: Tokens, inner: statement::Id) {
        let extent = self.extent(tokens);
        let (barriers, weight) = (self.out.barriers.len(), self.out.weight);
        let value = self.evaluate(value);
        let compared = self.integer(value);
        let end = self.out.label();
        let mut cases = Vec::new();
        cases_of(body, inner, &mut cases);
        let mut default = end;
        for id in cases {
            let label = self.out.label();
            self.cases.insert(id, label);
            match body.get(id).what {
                What::Case(value) => {
                    let case = self.evaluate(value);
                    let is_equal = match (compared, case) {
                        (Some((register, kind, is_index)), Value::Constant(case, _)) => {
                            let predicate = self.out.predicate();
                            let name = kind.name();
                            self.out.line(format_args!("setp.eq.{name} %p{predicate}, %v{register}, {case};"));
                            Value::Predicate(predicate, is_index)
                        }
                        _ => Value::Unknown,
                    };
                    self.jump_if(is_equal, true, label, &extent);
                }
                _ => default = label,
            }
        }
        self.out.jump(default);
        let selects = compared.is_some_and(|(_, _, is_index)| is_index);
        self.selected += u32::from(selects);
        self.breaks.push(end);
        self.statement(body, inner);
        self.selected -= u32::from(selects);
        self.breaks.pop();
        self.out.put(end);
        if selects && !self.is_muted() {
            self.interest.direct |= self.out.barriers.len() > barriers || self.out.weight - weight >= 2 * SIDE;
        }
    }

    /// Whether the step of a loop takes lanes further than a warp at a time, or by what nobody knows: all lanes then leave
    /// it within one iteration.
    fn is_wide(&self, (from, to): Tokens) -> bool {
        let sums = |at: &usize| matches!(self.kind_at(*at), Some(Kind::PlusAssign | Kind::MinusAssign));
        let Some(at) = (from..to).find(sums) else { return false };
        let amount = (at + 2 == to).then(|| match self.kind_at(at + 1) {
            Some(Kind::Number) => super::value::literal(self.tokens[at + 1].of(self.text())).map(|(value, _)| value),
            _ => self.constant(self.word_at(at + 1)),
        });
        amount.flatten().is_none_or(|amount| amount.abs() >= 32)
    }

    /// What a name stands for that is the same in the whole file.
    pub(super) fn constant(&self, name: &[u8]) -> Option<i64> {
        match name {
            b"" => None,
            b"warpSize" => Some(32),
            b"true" => Some(1),
            b"false" => Some(0),
            _ => match self.find(name) {
                Some(Variable { holds: Value::Constant(value, _), .. }) => Some(value),
                Some(_) => None,
                None => (self.file.unit.constants)(name),
            },
        }
    }

    /// Sets a register of a variable to a value.
    pub(super) fn store(&mut self, register: u32, kind: Type, value: Value) {
        let value = if self.conditional > 0 { Value::Unknown } else { value };
        match self.integer_as(value, kind) {
            Some((from, _)) => {
                let bits = kind.bits();
                self.out.line(format_args!("mov.{bits} %v{register}, %v{from};"));
            }
            None => self.out.unknown(register),
        }
    }
}

/// The cases of a `switch`, without those of others in it.
fn cases_of(body: &Body, id: statement::Id, found: &mut Vec<statement::Id>) {
    match &body.get(id).what {
        What::Case(_) | What::Default => found.push(id),
        What::Block(all) | What::Variants(all) => all.iter().for_each(|id| cases_of(body, *id, found)),
        What::If { then, otherwise, .. } => {
            cases_of(body, *then, found);
            if let Some(otherwise) = otherwise {
                cases_of(body, *otherwise, found);
            }
        }
        What::Loop { body: inner, .. } | What::Do { body: inner, .. } | What::Each(inner) => {
            cases_of(body, *inner, found);
        }
        _ => {}
    }
}

/// For each bracket the one that closes it, and 0 for all other tokens.
fn partners(tokens: &[Token]) -> Vec<u32> {
    let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut partners = vec![0; tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => open.push(at),
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => {
                if let Some(start) = open.pop() {
                    partners[start] = narrow(at);
                }
            }
            _ => {}
        }
    }
    partners
}

/// What a lowering goes on with when the body of another function was read.
pub(super) struct Outer<'u> {
    tokens: Vec<Token>,
    uses: Vec<Use>,
    partners: Vec<u32>,
    tree: Tree,
    names: HashMap<&'u [u8], Vec<Variable>>,
    scopes: Vec<Vec<&'u [u8]>>,
    conditional: u32,
}

impl<'u> Lowering<'_, 'u> {
    /// Goes on with the tokens of another function, which knows none of the names.
    pub(super) fn enter(&mut self, tokens: Vec<Token>) -> Outer<'u> {
        let partners = partners(&tokens);
        Outer {
            tokens: std::mem::replace(&mut self.tokens, tokens),
            uses: std::mem::take(&mut self.uses),
            partners: std::mem::replace(&mut self.partners, partners),
            tree: std::mem::take(&mut self.tree),
            names: std::mem::take(&mut self.names),
            scopes: std::mem::replace(&mut self.scopes, vec![Vec::new()]),
            conditional: self.conditional,
        }
    }

    pub(super) fn leave_inlined(&mut self, outer: Outer<'u>) {
        self.tokens = outer.tokens;
        self.uses = outer.uses;
        self.partners = outer.partners;
        self.tree = outer.tree;
        self.names = outer.names;
        self.scopes = outer.scopes;
        self.conditional = outer.conditional;
    }
}
