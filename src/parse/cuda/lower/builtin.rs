//! Calls: what the language and its libraries define, short functions of the same file, and all others, which are unknown.

use memchr::memmem;

use super::super::expr::{Binary, Id, List, What};
use super::super::lexer::{Kind, Token, tokens};
use super::super::statement::Tokens;
use super::follow::Lowering;
use super::value::{Group, Named, Type, Value, Variable, named};
use super::{Device, library};

/// Bytes of a function of the file that is read in place of its call, at most.
const SHORT: usize = 300;

/// Bytes before the name of a function that its type stands in, at most.
const TYPE: usize = 120;

impl<'u> Lowering<'_, 'u> {
    pub(super) fn call(&mut self, callee: Id, arguments: List, tokens: (u32, u32)) -> Value {
        if let What::Member { base, .. } = self.tree.get(callee).what {
            let method = self.method_name(callee);
            let base = self.expression(base);
            return self.method_call(base, method, arguments, tokens);
        }
        if !matches!(self.tree.get(callee).what, What::Name { .. }) {
            self.expression(callee);
            self.all(arguments);
            return self.unknown_call(arguments);
        }
        let name = self.last_word(callee);
        if self.find(name).is_some() {
            // A variable that is called is a lambda.
            self.all(arguments);
            return self.unknown_call(arguments);
        }
        if let Some(value) = self.barrier_call(name, arguments, tokens) {
            return value;
        }
        if let Some(value) = self.group_of(name, callee, arguments) {
            return value;
        }
        if let Some(helper) = self.file.by_name.get(name).copied() {
            let values = self.all(arguments);
            return match helper {
                Some(one) => {
                    if self.waits(one) {
                        self.barrier(tokens);
                        self.out.line(format_args!("bar.sync 0;"));
                    }
                    self.helper(name, one, &values, arguments)
                }
                None => self.unknown_call(arguments),
            };
        }
        if let Some(value) = self.exchange(name, arguments, tokens) {
            return value;
        }
        self.known_call(name, arguments)
    }

    /// The name of a method, without the angles behind it.
    fn method_name(&self, callee: Id) -> &'u [u8] {
        self.last_member(callee)
    }

    fn barrier(&mut self, tokens: (u32, u32)) {
        let byte = self.written(tokens.0 as usize).map_or(0, |token| token.start);
        let at = self.out.at();
        self.out.barriers.push((at, byte));
    }

    fn barrier_call(&mut self, name: &[u8], arguments: List, tokens: (u32, u32)) -> Option<Value> {
        match name {
            b"__syncthreads" | b"syncthreads" if self.tree.list(arguments).is_empty() => {
                self.barrier(tokens);
                self.out.line(format_args!("bar.sync 0;"));
            }
            b"__syncthreads_count" | b"__syncthreads_and" | b"__syncthreads_or" => {
                let value = self.all(arguments).first().copied().unwrap_or(Value::Unknown);
                let predicate = self.predicate(value).unwrap_or_else(|_| self.out.predicate());
                let result = self.out.register();
                self.barrier(tokens);
                self.out.line(format_args!("bar.red.popc.u32 %v{result}, 0, %p{predicate};"));
                return Some(Value::Register(result, Type::I32, false));
            }
            b"__barrier_sync" => {
                let value = self.all(arguments).first().copied();
                if let Some(Value::Constant(0, _)) = value {
                    self.barrier(tokens);
                    self.out.line(format_args!("bar.sync 0;"));
                }
            }
            b"sync" => {
                let value = self.all(arguments).first().copied();
                if let Some(Value::Group(Group::Block)) = value {
                    self.barrier(tokens);
                    self.out.line(format_args!("bar.sync 0;"));
                }
            }
            _ => return None,
        }
        Some(Value::Unknown)
    }

    /// What makes a group of cooperative groups.
    fn group_of(&mut self, name: &[u8], callee: Id, arguments: List) -> Option<Value> {
        Some(Value::Group(match name {
            b"this_thread_block" => Group::Block,
            b"this_grid" => Group::Grid,
            b"coalesced_threads" | b"this_cluster" | b"this_multi_grid" | b"labeled_partition"
            | b"binary_partition" => Group::Other,
            b"tiled_partition" => {
                let of = self.all(arguments).first().copied();
                let size = match self.tree.get(callee).what {
                    What::Name { arguments: Some(tokens) } => self.constant_of(tokens),
                    _ => None,
                };
                let size = size.and_then(|size| u32::try_from(size).ok());
                match (of, size) {
                    (Some(Value::Group(Group::Block | Group::Tile(_))), Some(size))
                        if size.is_power_of_two() && size <= 1024 =>
                    {
                        Group::Tile(size)
                    }
                    _ => Group::Other,
                }
            }
            _ => return None,
        }))
    }

    /// The value of tokens that are one number or one name.
    fn constant_of(&self, (from, to): (u32, u32)) -> Option<i64> {
        if to != from + 1 {
            return None;
        }
        let token = self.tokens.get(from as usize)?;
        match token.kind {
            Kind::Number => super::value::literal(token.of(self.text())).map(|(value, _)| value),
            _ => self.constant(token.of(self.text())),
        }
    }

    fn method_call(&mut self, base: Value, name: &[u8], arguments: List, tokens: (u32, u32)) -> Value {
        let values = self.all(arguments);
        let Value::Group(group) = base else { return self.unknown_call(arguments) };
        match (group, name) {
            (Group::Block, b"sync") => {
                self.barrier(tokens);
                self.out.line(format_args!("bar.sync 0;"));
                return Value::Unknown;
            }
            (Group::Tile(_), b"sync") => {
                self.out.line(format_args!("bar.warp.sync -1;"));
                return Value::Unknown;
            }
            (Group::Tile(32), b"any" | b"all") => return self.vote(values.first().copied(), false),
            (Group::Tile(32), b"ballot") => return self.vote(values.first().copied(), true),
            (Group::Tile(32), b"shfl") => {
                if let [value, Value::Constant(lane, _)] = values[..] {
                    return self.shuffled(value, lane);
                }
            }
            _ => {}
        }
        self.method(group, name).unwrap_or_else(|| self.unknown_call(arguments))
    }

    /// A value that all lanes of a warp vote on, which they then share.
    fn vote(&mut self, value: Option<Value>, is_ballot: bool) -> Value {
        let value = value.unwrap_or(Value::Unknown);
        let is_index = value.is_index();
        let predicate = match self.predicate(value) {
            Ok(predicate) => predicate,
            Err(_) => return Value::Unknown,
        };
        if is_ballot {
            let result = self.out.register();
            self.out.line(format_args!("vote.sync.ballot.b32 %v{result}, %p{predicate}, -1;"));
            return Value::Register(result, Type::U32, is_index);
        }
        let result = self.out.predicate();
        self.out.line(format_args!("vote.sync.any.pred %p{result}, %p{predicate}, -1;"));
        Value::Predicate(result, is_index)
    }

    /// The value that one lane of the warp has, which all then share.
    fn shuffled(&mut self, value: Value, lane: i64) -> Value {
        let is_index = value.is_index();
        let (from, kind) = match self.integer(value) {
            Some((register, kind, _)) => (register, kind),
            None => {
                let register = self.out.register();
                self.out.unknown(register);
                (register, Type::I32)
            }
        };
        let result = self.out.register();
        self.out.line(format_args!("shfl.sync.idx.b32 %v{result}, %v{from}, {lane}, 31, -1;"));
        Value::Register(result, kind, is_index)
    }

    fn exchange(&mut self, name: &'u [u8], arguments: List, tokens: (u32, u32)) -> Option<Value> {
        let old = match name {
            b"__shfl" => "shfl.idx.b32 %s, %s, 0, 31;",
            b"__shfl_down" => "shfl.down.b32 %s, %s, 1, 31;",
            b"__shfl_up" => "shfl.up.b32 %s, %s, 1, 0;",
            b"__shfl_xor" => "shfl.bfly.b32 %s, %s, 1, 31;",
            b"__any" => "vote.any.pred %q, %q;",
            b"__all" => "vote.all.pred %q, %q;",
            b"__ballot" => "vote.ballot.b32 %s, %q;",
            _ => "",
        };
        if !old.is_empty() {
            let values = self.all(arguments);
            // The names may stand for something else where what the compiler is decides. What stands in a function that is
            // called is told of that.
            let is_own = self.inlined == 0 && !self.is_muted();
            if self.file.knows_exchanges && is_own && !values.is_empty() {
                let byte = self.written(tokens.0 as usize).map_or(0, |token| token.start);
                let place = self.file.place(byte);
                self.out.place(place);
                let at = self.out.at();
                self.out.exchanges.push((at, name.into()));
                self.out.line(format_args!("{old}"));
            }
            return Some(match (name, values.as_slice()) {
                (b"__any" | b"__all", [value]) => self.vote(Some(*value), false),
                (b"__ballot", [value]) => self.vote(Some(*value), true),
                (b"__shfl", [value, Value::Constant(lane, _)]) => self.shuffled(*value, *lane),
                _ => Value::Unknown,
            });
        }
        match name {
            b"__any_sync" | b"__all_sync" | b"__ballot_sync" => {
                let values = self.all(arguments);
                Some(self.vote(values.get(1).copied(), name == b"__ballot_sync"))
            }
            b"__shfl_sync" => {
                let values = self.all(arguments);
                Some(match values[..] {
                    [_, value, Value::Constant(lane, _)]
                    | [_, value, Value::Constant(lane, _), Value::Constant(32, _)] => self.shuffled(value, lane),
                    _ => {
                        self.out.fill(1);
                        Value::Unknown
                    }
                })
            }
            b"__reduce_add_sync" | b"__reduce_min_sync" | b"__reduce_max_sync" | b"__reduce_and_sync"
            | b"__reduce_or_sync" | b"__reduce_xor_sync" => {
                let values = self.all(arguments);
                let value = values.get(1).copied().unwrap_or(Value::Unknown);
                Some(self.shuffled(value, 0))
            }
            _ => None,
        }
    }

    fn known_call(&mut self, name: &'u [u8], arguments: List) -> Value {
        match name {
            b"LaneId" | b"canonical_lane_idx" | b"__lane_id" => return self.read("%laneid", true),
            b"WarpId" | b"canonical_warp_idx" | b"canonical_warp_idx_sync" => return self.read("%warpid", true),
            b"RowMajorTid" => {
                self.all(arguments);
                return self.flat();
            }
            b"__activemask" => {
                let register = self.out.register();
                self.out.line(format_args!("activemask.b32 %v{register};"));
                return Value::Register(register, Type::U32, false);
            }
            b"elect_one_sync" => return self.elected(),
            b"__trap" | b"__builtin_unreachable" | b"__builtin_trap" => {
                self.out.line(format_args!("trap;"));
                return Value::Unknown;
            }
            b"__syncwarp" => {
                self.all(arguments);
                self.out.line(format_args!("bar.warp.sync -1;"));
                return Value::Unknown;
            }
            b"__threadfence" | b"__threadfence_block" | b"__threadfence_system" => {
                self.out.line(format_args!("membar.gl;"));
                return Value::Unknown;
            }
            b"__launch_bounds__" | b"__builtin_assume" | b"assert" | b"static_assert" => return Value::Unknown,
            _ => {}
        }
        let values = self.all(arguments);
        match (name, values.as_slice()) {
            (b"min" | b"umin", [a, b]) => self.chosen(Binary::Less, *a, *b),
            (b"max" | b"umax", [a, b]) => self.chosen(Binary::Greater, *a, *b),
            (b"__mul24" | b"__umul24", [a, b]) => self.binary(Binary::Multiply, *a, *b),
            (b"abs", [a]) if !self.type_of(*a).is_wide() => self.counted("abs.s32", *a),
            (b"__popc", [a]) => self.counted("popc.b32", *a),
            (b"__clz", [a]) => self.counted("clz.b32", *a),
            (b"__ffs", [a]) => self.first_set(*a),
            // `std::numeric_limits<T>::max()`
            (b"min" | b"max", []) => Value::Unknown,
            _ if self.file.weights.defines(name) => self.call_of(name, arguments),
            // `T(1)`
            (_, [Value::Constant(..)]) => {
                self.out.fill(1);
                Value::Unknown
            }
            _ => match library::cost(name) {
                Some(cost) => {
                    self.out.fill_weight(cost);
                    Value::Unknown
                }
                None if is_type(name) && values.len() <= 1 => {
                    self.out.fill(1);
                    Value::Unknown
                }
                None => self.unknown_call(arguments),
            },
        }
    }

    fn chosen(&mut self, op: Binary, a: Value, b: Value) -> Value {
        if let (Value::Constant(one, kind), Value::Constant(two, _)) = (a, b) {
            let number = if op == Binary::Less { one.min(two) } else { one.max(two) };
            return Value::Constant(number, kind);
        }
        let condition = self.binary(op, a, b);
        let kind = self.type_of(a).with(self.type_of(b));
        let (Value::Predicate(predicate, is_index), Some((one, _)), Some((two, _))) =
            (condition, self.integer_as(a, kind), self.integer_as(b, kind))
        else {
            return Value::Unknown;
        };
        let result = self.out.register();
        self.out.line(format_args!("selp.{} %v{result}, %v{one}, %v{two}, %p{predicate};", kind.bits()));
        Value::Register(result, kind, is_index)
    }

    fn counted(&mut self, op: &str, value: Value) -> Value {
        let Some((register, is_index)) = self.integer_as(value, Type::I32) else {
            self.out.fill(1);
            return Value::Unknown;
        };
        let result = self.out.register();
        self.out.line(format_args!("{op} %v{result}, %v{register};"));
        Value::Register(result, Type::I32, is_index)
    }

    /// The place of the lowest bit that is set, from 1; 0 where none is.
    fn first_set(&mut self, value: Value) -> Value {
        let reversed = self.counted("brev.b32", value);
        let zeros = self.counted("clz.b32", reversed);
        let place = self.binary(Binary::Add, zeros, Value::Constant(1, Type::I32));
        let value = self.typed(value, Type::I32);
        let none = self.binary(Binary::Equal, value, Value::Constant(0, Type::I32));
        let (Value::Predicate(none, _), Value::Register(place, kind, is_index)) = (none, place) else {
            return Value::Unknown;
        };
        let result = self.out.register();
        self.out.line(format_args!("selp.b32 %v{result}, 0, %v{place}, %p{none};"));
        Value::Register(result, kind, is_index)
    }

    fn elected(&mut self) -> Value {
        let predicate = self.out.predicate();
        self.out.line(format_args!("elect.sync _|%p{predicate}, -1;"));
        Value::Predicate(predicate, true)
    }

    /// A call of which nothing is known: it may change the variables that it is given.
    fn unknown_call(&mut self, arguments: List) -> Value {
        self.out.guess();
        self.forget_given(arguments);
        Value::Unknown
    }

    /// A call of a macro of the file.
    fn call_of(&mut self, name: &'u [u8], arguments: List) -> Value {
        self.out.fill_call(self.file.weights.of(name));
        self.forget_given(arguments);
        Value::Unknown
    }

    fn forget_given(&mut self, arguments: List) {
        for id in self.tree.list(arguments).to_vec() {
            if let What::Name { .. } = self.tree.get(id).what {
                let name = self.last_word(id);
                if self.find(name).is_some_and(|variable| !variable.is_constant) {
                    self.forget(name);
                }
            }
        }
    }

    /// Whether whoever calls a function of the file comes to a barrier in it: it is short and has but one way through.
    fn waits(&self, one: &Device) -> bool {
        let text = self.text();
        let names = text.get(one.body.clone()).is_some_and(|body| memmem::find(body, b"sync").is_some());
        if one.body.len() > SHORT || !(names || self.file.macros.is_any()) {
            return false;
        }
        let tokens = self.file.tokens(&one.body);
        let is_plain = tokens.iter().all(|token| {
            let may_part = matches!(token.kind, Kind::Directive | Kind::BraceOpen | Kind::Question)
                || matches!(token.kind, Kind::AndAnd | Kind::OrOr);
            !may_part && !matches!(token.of(text), b"if" | b"for" | b"while" | b"switch" | b"do" | b"goto" | b"return")
        });
        is_plain && tokens.iter().any(|token| token.of(text) == b"__syncthreads")
    }

    /// A function of the file: where its body is one `return`, that is its value.
    fn helper(&mut self, name: &'u [u8], one: &'u Device, values: &[Value], arguments: List) -> Value {
        let text = self.text();
        let parameters = text.get(one.parameters.clone()).unwrap_or_default();
        let has_references = parameters.contains(&b'&') || parameters.contains(&b'*');
        let body = text.get(one.body.clone()).unwrap_or_default();
        if body.len() <= SHORT && self.inlined < 4 && self.inlining_left > 0 {
            let reads = |what: &[u8]| memmem::find(body, what).is_some();
            let branches = reads(b"if") || reads(b"for") || reads(b"while") || reads(b"?");
            if reads(b"%laneid") && !branches {
                return self.read("%laneid", true);
            }
            if reads(b"%warpid") && !branches {
                return self.read("%warpid", true);
            }
            self.inlining_left -= 1;
            if let Some(value) = self.inlined_value(one, values) {
                return value;
            }
        }
        self.out.fill_call(self.file.weights.of(name));
        if has_references {
            self.forget_given(arguments);
        }
        Value::Unknown
    }

    fn inlined_value(&mut self, one: &'u Device, values: &[Value]) -> Option<Value> {
        let text = self.text();
        let tokens = self.file.tokens(&one.body);
        let [first, .., last] = tokens.as_slice() else { return None };
        let semicolons = tokens.iter().filter(|token| token.kind == Kind::Semicolon).count();
        let is_return = first.of(text) == b"return" && last.kind == Kind::Semicolon && semicolons == 1;
        let is_plain = tokens.iter().all(|token| !matches!(token.kind, Kind::Directive | Kind::BraceOpen));
        if !(is_return && is_plain) {
            return None;
        }
        let count = tokens.len();
        let mut names = Vec::new();
        let parameters = self.file.tokens(&one.parameters);
        for (at, declaration) in parameters.split(|token| token.kind == Kind::Comma).enumerate() {
            if declaration.is_empty() {
                continue;
            }
            let end = declaration.iter().position(|token| token.kind == Kind::Assign).unwrap_or(declaration.len());
            let name = declaration[..end].iter().rposition(|token| token.kind == Kind::Word)?;
            let value = values.get(at).copied().unwrap_or(Value::Unknown);
            let value = self.converted(value, &declaration[..name]);
            names.push((declaration[name].of(text), value));
        }
        let outer = self.enter(tokens);
        self.inlined += 1;
        for (name, value) in names {
            self.declare(name, Variable { holds: value, is_constant: true });
        }
        let value = self.evaluate((1, count - 1));
        self.inlined -= 1;
        self.leave_inlined(outer);
        Some(self.converted(value, &returned(text, one)))
    }

    /// A value as one of the type that tokens name: that of a parameter, or of what a function returns.
    fn converted(&mut self, value: Value, kind: &[Token]) -> Value {
        let text = self.text();
        if kind.iter().any(|token| token.kind == Kind::Star) {
            return Value::Unknown;
        }
        let is_left_out = |word: &[u8]| matches!(word, b"inline" | b"extern") || word.starts_with(b"__");
        let words = || kind.iter().filter(|token| token.kind == Kind::Word).map(|token| token.of(text));
        match named(words().filter(|word| !is_left_out(word))) {
            Named::Integer(kind) => self.typed(value, kind),
            _ if words().any(|word| matches!(word, b"float" | b"double" | b"half" | b"__half")) => Value::Unknown,
            // What a template makes of it, or a group.
            _ => value,
        }
    }

    /// `asm`: what it writes is unknown, unless it reads the number of the lane or the warp.
    pub(super) fn assembly(&mut self, (from, to): Tokens) {
        let text = self.text();
        let tokens = &self.tokens[from..to.min(self.tokens.len())];
        let mut template = Vec::new();
        let first = tokens.iter().position(|token| token.kind == Kind::ParenOpen).unwrap_or(0);
        for token in tokens.iter().skip(first).take_while(|token| !matches!(token.kind, Kind::Colon | Kind::Scope)) {
            if token.kind == Kind::String {
                template.extend_from_slice(token.of(text));
            }
        }
        let operands: Vec<&'u [u8]> = tokens
            .iter()
            .skip_while(|token| !matches!(token.kind, Kind::Colon | Kind::Scope))
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.of(text))
            .collect();
        let has = |what: &[u8]| memmem::find(&template, what).is_some();
        if is_block_barrier(&template) {
            let start = u32::try_from(from).unwrap_or(u32::MAX);
            self.barrier((start, start));
            self.out.line(format_args!("bar.sync 0;"));
        } else {
            self.out.fill(1);
        }
        let is_move = has(b"mov.") && template.iter().filter(|byte| **byte == b';').count() <= 1;
        let known = match operands.first() {
            Some(_) if is_move && has(b"%laneid") => Some("%laneid"),
            Some(_) if is_move && has(b"%warpid") => Some("%warpid"),
            Some(_) if is_move && has(b"%tid.x") => Some("%tid.x"),
            _ => None,
        };
        let value = match known {
            Some(special) => self.read(special, true),
            None if has(b"elect.sync") && operands.len() == 1 => self.elected(),
            None => Value::Unknown,
        };
        for (at, name) in operands.into_iter().enumerate() {
            match self.find(name).map(|variable| variable.holds) {
                Some(Value::Register(register, kind, was_index)) if at == 0 && value != Value::Unknown => {
                    self.store(register, kind, value);
                    let holds = Value::Register(register, kind, was_index || value.is_index());
                    self.set(name, Variable { holds, is_constant: false });
                }
                Some(_) => self.forget(name),
                None => {}
            }
        }
    }
}

/// The tokens of the type that a function returns, as far as they stand right before its name.
fn returned(text: &[u8], one: &Device) -> Vec<Token> {
    let before = text.get(..one.name.start).unwrap_or_default();
    let is_end = |byte: &u8| matches!(byte, b';' | b'{' | b'}' | b'>' | b')' | b':' | b'"' | b'/' | b'\\');
    let from = before
        .iter()
        .rev()
        .take(TYPE)
        .position(is_end)
        .map_or(before.len().saturating_sub(TYPE), |at| before.len() - at);
    let mut found = Vec::new();
    tokens(text, from, before.len(), &mut found);
    found
}

/// Whether the text of an `asm` holds a barrier for the whole block: number 0, without a number of threads.
fn is_block_barrier(template: &[u8]) -> bool {
    [&b"bar.sync"[..], b"barrier.sync"].iter().any(|word| {
        let Some(at) = memmem::find(template, word) else { return false };
        let rest = template[at + word.len()..].strip_prefix(b".aligned").unwrap_or(&template[at + word.len()..]);
        let end = rest.iter().position(|byte| matches!(byte, b';' | b'"')).unwrap_or(rest.len());
        rest[..end].trim_ascii() == b"0"
    })
}

/// Whether a name is likely that of a type, so that it converts and calls nothing.
pub(super) fn is_type(name: &[u8]) -> bool {
    if matches!(name, b"float" | b"double" | b"int" | b"unsigned" | b"half" | b"char" | b"bool" | b"size_t") {
        return true;
    }
    let is_letter = name.len() <= 2 && name.first().is_some_and(u8::is_ascii_uppercase);
    is_letter || [&b"_t"[..], b"_type", b"Type", b"_T"].iter().any(|end| name.ends_with(end))
}
