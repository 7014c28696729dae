//! Expressions: integers are computed, and what else there is costs.

use super::super::expr::{Binary, Id, List, Unary, What};
use super::super::lexer::Kind;
use super::follow::Lowering;
use super::value::{Group, Named, Type, Value, Variable, Vector, literal, named};

impl<'u> Lowering<'_, 'u> {
    /// The value of an expression, whose code is written.
    pub(super) fn expression(&mut self, id: Id) -> Value {
        let node = self.tree.get(id);
        match node.what {
            What::Number => {
                let text = self.tokens[node.tokens.0 as usize].of(self.text());
                literal(text).map_or(Value::Unknown, |(value, kind)| Value::Constant(value, kind))
            }
            What::Name { .. } => self.name(id),
            What::Member { base, .. } => {
                let value = self.expression(base);
                self.member(value, id)
            }
            What::Call { callee, arguments } => self.call(callee, arguments, node.tokens),
            What::Index { .. } => {
                self.address(id);
                self.out.fill(1);
                self.out.line(format_args!("ld.global.f32 %f1, [%a];"));
                Value::Unknown
            }
            What::Unary(op, of) => self.unary(op, of),
            What::Postfix(op, of) => {
                let before = self.expression(of);
                // The value from before the change has to outlive it.
                let kept = self.copied(before);
                self.changed_by_one(op, of, before);
                kept
            }
            What::Binary(op @ (Binary::LogicalAnd | Binary::LogicalOr), a, b) => self.logical(op, a, b),
            What::Binary(Binary::Comma, a, b) => {
                self.expression(a);
                self.expression(b)
            }
            What::Binary(op, a, b) => {
                let one = self.expression(a);
                let two = self.expression(b);
                self.operated(op, one, two, b)
            }
            What::Assign(op, to, value) => self.assign(op, to, value),
            What::Choice(condition, yes, no) => self.choice(condition, yes, no),
            What::Cast(to, of) => {
                let value = self.expression(of);
                self.cast(to, value)
            }
            What::SizeOf(of) => self.size_of(of),
            What::Construct { arguments, .. } | What::Braces(arguments) => {
                self.all(arguments);
                self.out.fill(1);
                Value::Unknown
            }
            What::Launch { arguments, .. } => {
                self.all(arguments);
                self.out.guess();
                Value::Unknown
            }
            What::String | What::Character => Value::Unknown,
            What::Lambda(_) | What::Opaque => {
                self.opaque(node.tokens);
                Value::Unknown
            }
        }
    }

    pub(super) fn all(&mut self, list: List) -> Vec<Value> {
        let ids = self.tree.list(list).to_vec();
        ids.into_iter().map(|id| self.expression(id)).collect()
    }

    /// What is not understood may change what it names.
    fn opaque(&mut self, (from, to): (u32, u32)) {
        let text = self.text();
        let range = from as usize..(to as usize).min(self.tokens.len());
        let names: Vec<&[u8]> =
            self.tokens[range].iter().filter(|token| token.kind == Kind::Word).map(|token| token.of(text)).collect();
        for name in names {
            if self.find(name).is_some_and(|variable| !variable.is_constant) {
                self.forget(name);
            }
        }
        self.out.fill(1);
    }

    /// The last word of a name, without angles behind it.
    pub(super) fn last_word(&self, id: Id) -> &'u [u8] {
        let node = self.tree.get(id);
        let end = match node.what {
            What::Name { arguments: Some((from, _)) } => from as usize - 1,
            _ => node.tokens.1 as usize,
        };
        self.word_at(end.wrapping_sub(1))
    }

    fn name(&mut self, id: Id) -> Value {
        let node = self.tree.get(id);
        let is_plain = node.tokens.1 == node.tokens.0 + 1;
        let name = self.last_word(id);
        if is_plain && let Some(variable) = self.find(name) {
            return variable.holds;
        }
        match name {
            b"threadIdx" => Value::Vector(Vector::Thread),
            b"blockIdx" => Value::Vector(Vector::Block),
            b"blockDim" => Value::Vector(Vector::BlockSize),
            b"gridDim" => Value::Vector(Vector::GridSize),
            _ if is_plain && self.inlined == 0 || self.find(name).is_none() => {
                self.constant(name).map_or(Value::Unknown, |value| {
                    let fits = i32::try_from(value).is_ok();
                    Value::Constant(value, if fits { Type::I32 } else { Type::I64 })
                })
            }
            _ => Value::Unknown,
        }
    }

    fn member(&mut self, base: Value, id: Id) -> Value {
        let name = self.last_member(id);
        match (base, name) {
            (Value::Vector(vector), b"x" | b"y" | b"z") => self.special(vector, name[0]),
            (Value::Parameter(position, before), _) => {
                let mut key = before.to_le_bytes().to_vec();
                key.extend_from_slice(name);
                let next = u32::try_from(self.members.len() + 1).unwrap_or(u32::MAX);
                Value::Parameter(position, *self.members.entry((position, key)).or_insert(next))
            }
            _ => Value::Unknown,
        }
    }

    /// The name of a member: the word after its dot.
    pub(super) fn last_member(&self, id: Id) -> &'u [u8] {
        let node = self.tree.get(id);
        self.word_at((node.tokens.1 as usize).wrapping_sub(1))
    }

    fn special(&mut self, vector: Vector, axis: u8) -> Value {
        let name = match vector {
            Vector::Thread => "tid",
            Vector::Block => "ctaid",
            Vector::BlockSize => "ntid",
            Vector::GridSize => "nctaid",
        };
        let axis = char::from(axis);
        self.read(&format!("%{name}.{axis}"), vector == Vector::Thread)
    }

    /// A special register.
    pub(super) fn read(&mut self, special: &str, is_index: bool) -> Value {
        let register = self.out.register();
        self.out.line(format_args!("mov.u32 %v{register}, {special};"));
        Value::Register(register, Type::U32, is_index)
    }

    /// A register with the value as an integer, its type, and whether the index decides it.
    pub(super) fn integer(&mut self, value: Value) -> Option<(u32, Type, bool)> {
        match value {
            Value::Register(register, kind, is_index) => Some((register, kind, is_index)),
            Value::Constant(value, kind) => {
                let register = self.out.register();
                let value = kind.wrapped(value);
                self.out.line(format_args!("mov.{} %v{register}, {value};", kind.bits()));
                Some((register, kind, false))
            }
            Value::Predicate(predicate, is_index) => {
                let register = self.out.register();
                self.out.line(format_args!("selp.b32 %v{register}, 1, 0, %p{predicate};"));
                Some((register, Type::I32, is_index))
            }
            Value::Parameter(position, member) => {
                let register = self.out.register();
                let distance = 4 * u64::from(member);
                self.out.line(format_args!("ld.param.s32 %v{register}, [p{position}+{distance}];"));
                Some((register, Type::I32, false))
            }
            Value::Unknown | Value::Group(_) | Value::Vector(_) => None,
        }
    }

    /// The same in another type.
    pub(super) fn integer_as(&mut self, value: Value, to: Type) -> Option<(u32, bool)> {
        if let Value::Constant(number, _) = value {
            return self.integer(Value::Constant(to.wrapped(number), to)).map(|(register, ..)| (register, false));
        }
        let (register, from, is_index) = self.integer(value)?;
        if to.holds(from) && from.is_wide() == to.is_wide() || matches!(value, Value::Predicate(..)) && !to.is_wide() {
            return Some((register, is_index));
        }
        if to == Type::Bool {
            return Some((self.truth_of(register, from), is_index));
        }
        let same_width = if from.is_wide() == to.is_wide() { register } else { self.widened(register, from, to) };
        Some((self.narrowed(same_width, to), is_index))
    }

    /// 1 where a register is not 0, else 0.
    fn truth_of(&mut self, register: u32, kind: Type) -> u32 {
        let (predicate, truth) = (self.out.predicate(), self.out.register());
        self.out.line(format_args!("setp.ne.{} %p{predicate}, %v{register}, 0;", kind.name()));
        self.out.line(format_args!("selp.b32 %v{truth}, 1, 0, %p{predicate};"));
        truth
    }

    /// A register of 32 bits as one of 64, or the other way around.
    fn widened(&mut self, register: u32, from: Type, to: Type) -> u32 {
        let converted = self.out.register();
        self.out.line(format_args!("cvt.{}.{} %v{converted}, %v{register};", to.name(), from.name()));
        converted
    }

    /// What is left of a register in a type of fewer bits.
    fn narrowed(&mut self, register: u32, to: Type) -> u32 {
        let bits = 8 * to.bytes();
        if bits >= 32 {
            return register;
        }
        let narrow = self.out.register();
        if to.is_signed() {
            let above = 32 - bits;
            self.out.line(format_args!("shl.b32 %v{narrow}, %v{register}, {above};"));
            self.out.line(format_args!("shr.s32 %v{narrow}, %v{narrow}, {above};"));
        } else {
            self.out.line(format_args!("and.b32 %v{narrow}, %v{register}, {};", (1_u32 << bits) - 1));
        }
        narrow
    }

    /// A value as one of a type, as far as it is known.
    pub(super) fn typed(&mut self, value: Value, kind: Type) -> Value {
        if let Value::Constant(number, _) = value {
            return Value::Constant(kind.wrapped(number), kind);
        }
        match self.integer_as(value, kind) {
            Some((register, is_index)) => Value::Register(register, kind, is_index),
            None => Value::Unknown,
        }
    }

    /// A predicate that holds where a value is not 0; or whether that is so for all.
    pub(super) fn predicate(&mut self, value: Value) -> Result<u32, bool> {
        match value {
            Value::Predicate(predicate, _) => Ok(predicate),
            Value::Constant(value, _) => Err(value != 0),
            _ => {
                let (register, kind) = match self.integer(value) {
                    Some((register, kind, _)) => (register, kind),
                    None => {
                        let register = self.out.register();
                        self.out.unknown(register);
                        (register, Type::I32)
                    }
                };
                let predicate = self.out.predicate();
                self.out.line(format_args!("setp.ne.{} %p{predicate}, %v{register}, 0;", kind.name()));
                Ok(predicate)
            }
        }
    }

    fn copied(&mut self, value: Value) -> Value {
        let Value::Register(register, kind, is_index) = value else { return value };
        let copy = self.out.register();
        self.out.line(format_args!("mov.{} %v{copy}, %v{register};", kind.bits()));
        Value::Register(copy, kind, is_index)
    }

    fn unary(&mut self, op: Unary, of: Id) -> Value {
        if op == Unary::AddressOf {
            self.expression(of);
            return Value::Unknown;
        }
        let value = self.expression(of);
        match op {
            Unary::Plus => value,
            Unary::Not => match value {
                Value::Constant(value, _) => Value::Constant(i64::from(value == 0), Type::I32),
                Value::Predicate(predicate, is_index) => {
                    let negated = self.out.predicate();
                    self.out.line(format_args!("not.pred %p{negated}, %p{predicate};"));
                    Value::Predicate(negated, is_index)
                }
                _ => self.binary(Binary::Equal, value, Value::Constant(0, Type::I32)),
            },
            Unary::Minus => self.binary(Binary::Subtract, Value::Constant(0, Type::I32), value),
            Unary::Complement => self.binary(Binary::ExclusiveOr, value, Value::Constant(-1, Type::I32)),
            Unary::Increment | Unary::Decrement => self.changed_by_one(op, of, value),
            Unary::Dereference => {
                self.out.line(format_args!("ld.global.f32 %f1, [%a];"));
                Value::Unknown
            }
            Unary::AddressOf => Value::Unknown,
        }
    }

    /// What stands in an address: it is computed once for many accesses, or folded, so that it costs nothing of its own; but
    /// it may change variables, and call, and nothing folds a division.
    fn address(&mut self, id: Id) {
        let node = self.tree.get(id);
        match node.what {
            What::Index { base, index } => {
                self.address(base);
                if self.is_work(index) {
                    self.expression(index);
                }
            }
            What::Member { base, .. } | What::Unary(Unary::Dereference, base) => self.address(base),
            What::Name { .. } => {}
            _ if self.is_work(id) => {
                self.expression(id);
            }
            _ => {}
        }
    }

    /// Whether an expression does more than to compute a place: it divides, calls, reads or writes.
    fn is_work(&self, id: Id) -> bool {
        let (from, to) = self.tree.get(id).tokens;
        let range = from as usize..(to as usize).min(self.tokens.len());
        self.tokens[range].iter().any(|token| {
            let kind = token.kind;
            let is_step = matches!(kind, Kind::PlusPlus | Kind::MinusMinus);
            let reads_elsewhere = matches!(kind, Kind::ParenOpen | Kind::BracketOpen);
            let divides = matches!(kind, Kind::Slash | Kind::Percent);
            reads_elsewhere || divides || is_step || kind == Kind::Assign || kind.is_compound_assignment()
        })
    }

    fn changed_by_one(&mut self, op: Unary, of: Id, before: Value) -> Value {
        let op = if op == Unary::Increment { Binary::Add } else { Binary::Subtract };
        let after = self.binary(op, before, Value::Constant(1, Type::I32));
        self.write(of, after)
    }

    /// Writes to what an expression names.
    fn write(&mut self, to: Id, value: Value) -> Value {
        if !matches!(self.tree.get(to).what, What::Name { .. }) {
            self.out.line(format_args!("st.global.f32 [%a], %f1;"));
            return value;
        }
        let name = self.last_word(to);
        match self.find(name) {
            Some(Variable { holds: Value::Register(register, kind, was_index), is_constant }) => {
                self.store(register, kind, value);
                let is_index = was_index || value.is_index() || self.selected > 0;
                let holds = Value::Register(register, kind, is_index);
                self.set(name, Variable { holds, is_constant });
                holds
            }
            Some(Variable { holds: Value::Parameter(..) | Value::Vector(_) | Value::Group(_), .. }) => {
                self.set(name, Variable::UNKNOWN);
                Value::Unknown
            }
            _ => {
                self.out.fill(1);
                Value::Unknown
            }
        }
    }

    fn assign(&mut self, op: Option<Binary>, to: Id, of: Id) -> Value {
        let value = self.expression(of);
        let is_name = matches!(self.tree.get(to).what, What::Name { .. });
        if op.is_none() && is_name {
            return self.write(to, value);
        }
        let before = match (op, self.tree.get(to).what) {
            // Nothing is read.
            (None, What::Index { .. } | What::Unary(Unary::Dereference, _)) => {
                self.address(to);
                Value::Unknown
            }
            // `tensor(i, j) = x`: an element of a variable, not a function.
            (None, What::Call { callee, arguments }) if self.is_variable(callee) => {
                self.all(arguments);
                self.out.fill(1);
                Value::Unknown
            }
            _ => self.expression(to),
        };
        let value = match op {
            Some(op) => self.operated(op, before, value, of),
            None => value,
        };
        // A part of something that is the same for all threads is changed.
        if !is_name && let Value::Parameter(..) = before {
            let first = self.tree.get(to).tokens.0 as usize;
            let name = self.word_at(first);
            self.set(name, Variable::UNKNOWN);
        }
        self.write(to, value)
    }

    fn is_variable(&self, id: Id) -> bool {
        matches!(self.tree.get(id).what, What::Name { .. }) && self.find(self.last_word(id)).is_some()
    }

    fn logical(&mut self, op: Binary, a: Id, b: Id) -> Value {
        let one = self.expression(a);
        self.conditional += 1;
        let two = self.expression(b);
        self.conditional -= 1;
        let is_and = op == Binary::LogicalAnd;
        let decided = |value: Value| matches!(value, Value::Constant(number, _) if (number != 0) != is_and);
        if decided(one) || decided(two) {
            return Value::Constant(i64::from(!is_and), Type::I32);
        }
        let is_index = one.is_index() || two.is_index();
        if self.is_unknown(one) || self.is_unknown(two) {
            self.out.fill(1);
            return Value::Unknown;
        }
        match (self.predicate(one), self.predicate(two)) {
            (Ok(one), Ok(two)) => {
                let both = self.out.predicate();
                let op = if is_and { "and" } else { "or" };
                self.out.line(format_args!("{op}.pred %p{both}, %p{one}, %p{two};"));
                Value::Predicate(both, is_index)
            }
            // The other one decides.
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Value::Predicate(one, is_index),
            (Err(known), Err(_)) => Value::Constant(i64::from(known), Type::I32),
        }
    }

    fn is_unknown(&self, value: Value) -> bool {
        matches!(value, Value::Unknown | Value::Group(_) | Value::Vector(_))
    }

    fn choice(&mut self, condition: Id, yes: Id, no: Id) -> Value {
        let condition = self.expression(condition);
        self.conditional += 1;
        let yes = self.expression(yes);
        let no = self.expression(no);
        self.conditional -= 1;
        let decides = condition.is_index();
        match condition {
            Value::Constant(value, _) => return if value != 0 { yes } else { no },
            _ if [condition, yes, no].iter().any(|value| self.is_unknown(*value)) => {
                self.out.fill(1);
                return Value::Unknown;
            }
            _ => {}
        }
        let kind = self.type_of(yes).with(self.type_of(no));
        let Ok(predicate) = self.predicate(condition) else { return Value::Unknown };
        let (Some((one, a)), Some((two, b))) = (self.integer_as(yes, kind), self.integer_as(no, kind)) else {
            return Value::Unknown;
        };
        let chosen = self.out.register();
        self.out.line(format_args!("selp.{} %v{chosen}, %v{one}, %v{two}, %p{predicate};", kind.bits()));
        Value::Register(chosen, kind, decides || a || b)
    }

    pub(super) fn type_of(&self, value: Value) -> Type {
        match value {
            Value::Constant(_, kind) | Value::Register(_, kind, _) => kind,
            _ => Type::I32,
        }
    }

    fn cast(&mut self, to: (u32, u32), value: Value) -> Value {
        let text = self.text();
        let tokens = &self.tokens[to.0 as usize..(to.1 as usize).min(self.tokens.len())];
        let is_plain = tokens.iter().all(|token| matches!(token.kind, Kind::Word | Kind::Scope));
        let words = tokens.iter().filter(|token| token.kind == Kind::Word).map(|token| token.of(text));
        let is_bool = tokens.len() == 1 && tokens[0].of(text) == b"bool";
        match (named(words), value) {
            _ if !is_plain => Value::Unknown,
            (_, Value::Unknown | Value::Group(_) | Value::Vector(_)) => Value::Unknown,
            _ if is_bool => self.binary(Binary::NotEqual, value, Value::Constant(0, Type::I32)),
            (Named::Integer(kind), _) => self.typed(value, kind),
            (Named::Likely, value) => value,
            (Named::Other, _) => {
                self.out.fill(1);
                Value::Unknown
            }
        }
    }

    fn size_of(&self, of: (u32, u32)) -> Value {
        let text = self.text();
        let tokens = &self.tokens[of.0 as usize..(of.1 as usize).min(self.tokens.len())];
        if tokens.iter().any(|token| token.kind == Kind::Star) {
            return Value::Constant(8, Type::U64);
        }
        let words = tokens.iter().map(|token| token.of(text));
        match (tokens, named(words)) {
            ([token], _) if matches!(token.of(text), b"float") => Value::Constant(4, Type::U64),
            ([token], _) if matches!(token.of(text), b"double") => Value::Constant(8, Type::U64),
            (_, Named::Integer(kind)) => Value::Constant(i64::from(kind.bytes()), Type::U64),
            _ => Value::Unknown,
        }
    }

    /// An operator between two values, the second of which is written as `by`.
    fn operated(&mut self, op: Binary, one: Value, two: Value, by: Id) -> Value {
        let is_division = matches!(op, Binary::Divide | Binary::Remainder);
        if !is_division || !(self.is_unknown(one) || self.is_unknown(two)) {
            return self.binary(op, one, two);
        }
        let weight = match (self.divisor(two, by), op) {
            (Divisor::PowerOfTwo, _) => 1,
            (Divisor::Constant, Binary::Divide) => 6,
            (Divisor::Constant, _) => 8,
            (Divisor::Other, _) => 26,
        };
        self.out.fill_weight(weight);
        Value::Unknown
    }

    /// What is divided by, where the type is not known.
    fn divisor(&self, value: Value, by: Id) -> Divisor {
        let node = self.tree.get(by);
        match (value, node.what) {
            (Value::Constant(by, _), _) if by > 0 && by & (by - 1) == 0 => Divisor::PowerOfTwo,
            (Value::Constant(..), _) => Divisor::Constant,
            (_, What::Number) => {
                let text = self.tokens[node.tokens.0 as usize].of(self.text());
                if is_power_of_two(text) { Divisor::PowerOfTwo } else { Divisor::Other }
            }
            // No variable: a parameter of a template, or another constant of the compiler.
            (_, What::Name { .. }) if self.find(self.last_word(by)).is_none() => Divisor::Constant,
            _ => Divisor::Other,
        }
    }

    /// An operator between two values.
    pub(super) fn binary(&mut self, op: Binary, one: Value, two: Value) -> Value {
        if let (Value::Constant(a, one), Value::Constant(b, two)) = (one, two) {
            return folded(op, a, b, one.with(two));
        }
        if self.is_unknown(one) || self.is_unknown(two) {
            self.out.fill(1);
            return Value::Unknown;
        }
        let is_shift = matches!(op, Binary::ShiftLeft | Binary::ShiftRight);
        let kind = if is_shift { self.type_of(one).promoted() } else { self.type_of(one).with(self.type_of(two)) };
        if let (Binary::Divide | Binary::Remainder, Value::Constant(by, _)) = (op, two)
            && let Some(value) = self.divided(op, one, by, kind)
        {
            return value;
        }
        let Some((a, a_is_index)) = self.integer_as(one, kind) else { return Value::Unknown };
        let right = if is_shift { Type::U32 } else { kind };
        let Some((b, b_is_index)) = self.integer_as(two, right) else { return Value::Unknown };
        let b = match two {
            Value::Constant(value, _) => kind.wrapped(value).to_string(),
            _ => format!("%v{b}"),
        };
        let is_index = a_is_index || b_is_index;
        let (name, bits) = (kind.name(), kind.bits());
        if let Some(condition) = comparison(op) {
            let predicate = self.out.predicate();
            self.out.line(format_args!("setp.{condition}.{name} %p{predicate}, %v{a}, {b};"));
            return Value::Predicate(predicate, is_index);
        }
        let result = self.out.register();
        match op {
            Binary::Add => self.out.line(format_args!("add.{name} %v{result}, %v{a}, {b};")),
            Binary::Subtract => self.out.line(format_args!("sub.{name} %v{result}, %v{a}, {b};")),
            Binary::Multiply => self.out.line(format_args!("mul.lo.{name} %v{result}, %v{a}, {b};")),
            Binary::Divide => self.out.line(format_args!("div.{name} %v{result}, %v{a}, {b};")),
            Binary::Remainder => self.out.line(format_args!("rem.{name} %v{result}, %v{a}, {b};")),
            Binary::ShiftLeft => self.out.line(format_args!("shl.{bits} %v{result}, %v{a}, {b};")),
            Binary::ShiftRight => self.out.line(format_args!("shr.{name} %v{result}, %v{a}, {b};")),
            Binary::And => self.out.line(format_args!("and.{bits} %v{result}, %v{a}, {b};")),
            Binary::Or => self.out.line(format_args!("or.{bits} %v{result}, %v{a}, {b};")),
            _ => self.out.line(format_args!("xor.{bits} %v{result}, %v{a}, {b};")),
        }
        Value::Register(result, kind, is_index)
    }

    /// A division by a power of two, as compilers write it.
    fn divided(&mut self, op: Binary, value: Value, by: i64, kind: Type) -> Option<Value> {
        if by <= 0 || by & (by - 1) != 0 {
            return None;
        }
        let shift = by.trailing_zeros();
        let (from, is_index) = self.integer_as(value, kind)?;
        let (name, bits) = (kind.name(), kind.bits());
        if shift == 0 {
            let is_division = op == Binary::Divide;
            return Some(if is_division { Value::Register(from, kind, is_index) } else { Value::Constant(0, kind) });
        }
        let result = self.out.register();
        if !kind.is_signed() {
            match op {
                Binary::Divide => self.out.line(format_args!("shr.{name} %v{result}, %v{from}, {shift};")),
                _ => self.out.line(format_args!("and.{bits} %v{result}, %v{from}, {};", by - 1)),
            }
            return Some(Value::Register(result, kind, is_index));
        }
        // What is below zero is rounded up: as many are added before as are lost.
        let width = if kind.is_wide() { 64 } else { 32 };
        let unsigned = if kind.is_wide() { "u64" } else { "u32" };
        let (sign, less, sum) = (self.out.register(), self.out.register(), self.out.register());
        self.out.line(format_args!("shr.{name} %v{sign}, %v{from}, {};", width - 1));
        self.out.line(format_args!("shr.{unsigned} %v{less}, %v{sign}, {};", width - shift));
        self.out.line(format_args!("add.{name} %v{sum}, %v{from}, %v{less};"));
        match op {
            Binary::Divide => self.out.line(format_args!("shr.{name} %v{result}, %v{sum}, {shift};")),
            _ => {
                let rounded = self.out.register();
                self.out.line(format_args!("and.{bits} %v{rounded}, %v{sum}, {};", -by));
                self.out.line(format_args!("sub.{name} %v{result}, %v{from}, %v{rounded};"));
            }
        }
        Some(Value::Register(result, kind, is_index))
    }

    /// The number of a thread in its block, whatever the block's shape.
    pub(super) fn flat(&mut self) -> Value {
        let warp = self.read("%warpid", true);
        let lane = self.read("%laneid", true);
        let first = self.binary(Binary::ShiftLeft, warp, Value::Constant(5, Type::I32));
        self.binary(Binary::Or, first, lane)
    }

    /// The threads of a block.
    pub(super) fn threads(&mut self) -> Value {
        let [x, y, z] = ["%ntid.x", "%ntid.y", "%ntid.z"].map(|name| self.read(name, false));
        let plane = self.binary(Binary::Multiply, x, y);
        self.binary(Binary::Multiply, plane, z)
    }

    /// What a method of a group gives.
    pub(super) fn method(&mut self, group: Group, name: &[u8]) -> Option<Value> {
        Some(match (group, name) {
            (Group::Block, b"thread_rank") => self.flat(),
            (Group::Block, b"thread_index") => Value::Vector(Vector::Thread),
            (Group::Block, b"group_index") => Value::Vector(Vector::Block),
            (Group::Block, b"group_dim" | b"dim_threads") => Value::Vector(Vector::BlockSize),
            (Group::Block, b"size" | b"num_threads") => self.threads(),
            (Group::Tile(size), b"size" | b"num_threads") => Value::Constant(i64::from(size), Type::U32),
            (Group::Tile(size), b"thread_rank") => {
                let flat = self.flat();
                self.binary(Binary::And, flat, Value::Constant(i64::from(size) - 1, Type::U32))
            }
            (Group::Tile(size), b"meta_group_rank") => {
                let flat = self.flat();
                self.binary(Binary::Divide, flat, Value::Constant(i64::from(size), Type::U32))
            }
            (Group::Tile(size), b"meta_group_size") => {
                let threads = self.threads();
                self.binary(Binary::Divide, threads, Value::Constant(i64::from(size), Type::U32))
            }
            (Group::Grid, b"thread_rank") => {
                let (flat, threads) = (self.flat(), self.threads());
                let block = self.read("%ctaid.x", false);
                let first = self.binary(Binary::Multiply, block, threads);
                self.binary(Binary::Add, first, flat)
            }
            (Group::Grid, b"size" | b"num_threads") => {
                let threads = self.threads();
                let blocks = self.read("%nctaid.x", false);
                self.binary(Binary::Multiply, blocks, threads)
            }
            (Group::Grid, b"block_index") => Value::Vector(Vector::Block),
            _ => return None,
        })
    }
}

/// What something is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Divisor {
    /// By it a number is shifted, or multiplied.
    PowerOfTwo,
    /// A constant of an integer's type, as far as is known, by which a number is multiplied.
    Constant,
    /// What only a run tells, or a constant by which a floating-point number is divided exactly.
    Other,
}

/// Whether a floating-point literal is a power of two, so that its inverse is exact.
fn is_power_of_two(literal: &[u8]) -> bool {
    let end = literal.iter().rposition(|byte| !matches!(byte, b'f' | b'F' | b'l' | b'L')).map_or(0, |at| at + 1);
    let number = std::str::from_utf8(&literal[..end]).ok().and_then(|text| text.parse::<f64>().ok());
    const FRACTION: u64 = (1 << 52) - 1;
    number.is_some_and(|number| number.is_normal() && number.to_bits() & FRACTION == 0)
}

fn comparison(op: Binary) -> Option<&'static str> {
    Some(match op {
        Binary::Equal => "eq",
        Binary::NotEqual => "ne",
        Binary::Less => "lt",
        Binary::LessEqual => "le",
        Binary::Greater => "gt",
        Binary::GreaterEqual => "ge",
        _ => return None,
    })
}

/// An operator between two constants.
fn folded(op: Binary, a: i64, b: i64, kind: Type) -> Value {
    let (a, b) = (kind.wrapped(a), kind.wrapped(b));
    let is_less = if kind == Type::U64 { a.cast_unsigned() < b.cast_unsigned() } else { a < b };
    let truth = |holds: bool| Value::Constant(i64::from(holds), Type::I32);
    let shift = u32::try_from(b).ok().filter(|by| *by < if kind.is_wide() { 64 } else { 32 });
    let number = match op {
        Binary::Equal => return truth(a == b),
        Binary::NotEqual => return truth(a != b),
        Binary::Less => return truth(is_less),
        Binary::LessEqual => return truth(is_less || a == b),
        Binary::Greater => return truth(!is_less && a != b),
        Binary::GreaterEqual => return truth(!is_less),
        Binary::Add => Some(a.wrapping_add(b)),
        Binary::Subtract => Some(a.wrapping_sub(b)),
        Binary::Multiply => Some(a.wrapping_mul(b)),
        Binary::Divide if kind == Type::U64 => a.cast_unsigned().checked_div(b.cast_unsigned()).map(u64::cast_signed),
        Binary::Remainder if kind == Type::U64 => {
            a.cast_unsigned().checked_rem(b.cast_unsigned()).map(u64::cast_signed)
        }
        Binary::Divide => a.checked_div(b),
        Binary::Remainder => a.checked_rem(b),
        Binary::ShiftLeft => shift.map(|by| a.wrapping_shl(by)),
        Binary::ShiftRight if kind == Type::U64 => shift.map(|by| (a.cast_unsigned() >> by).cast_signed()),
        Binary::ShiftRight => shift.map(|by| a >> by),
        Binary::And => Some(a & b),
        Binary::Or => Some(a | b),
        Binary::ExclusiveOr => Some(a ^ b),
        Binary::Comma | Binary::LogicalAnd | Binary::LogicalOr => None,
    };
    number.map_or(Value::Unknown, |number| Value::Constant(kind.wrapped(number), kind))
}
