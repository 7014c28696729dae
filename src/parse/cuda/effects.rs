//! What happens to a variable between its declaration and a use: assignments, and whatever else may change it.

use std::ops::Range;
use std::rc::Rc;

use hashbrown::HashMap;

use super::code::Code;
use super::declare::Type;
use super::heads::is_upper;
use super::launches::Launch;
use super::lexer::Kind;
use super::scopes::{Block, DEEPEST, MOST_OVERLOADS, Scopes, Variable};

/// Something that may change a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    /// The variable's name there.
    pub(super) at: usize,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A part of it gets the value of these tokens. `is_plain` where the statement is nothing else.
    Assign { part: Vec<usize>, value: Range<usize>, is_plain: bool },
    /// A part of it gets a value that is not told.
    Change { part: Vec<usize> },
    /// From here on, anything may change it.
    Escape,
}

/// The words of a function, sorted, so that all uses of a name are found.
type Words = Vec<(u32, u32)>;

/// What is known of the uses of variables.
#[derive(Default)]
pub(super) struct Uses {
    words: HashMap<usize, Rc<Words>>,
    effects: HashMap<u32, Effects>,
}

/// What may change a variable, in order.
#[derive(Clone)]
pub(super) struct Effects {
    pub(super) all: Rc<[Effect]>,
    /// The first token from which on anything may change it.
    pub(super) escapes_at: usize,
    /// Whether anything changes it, other than what is given it to read.
    pub(super) is_changed: bool,
}

impl Uses {
    /// What may change the variable, in order.
    pub(super) fn effects(&mut self, scopes: &Scopes<'_>, launches: &[Launch], one: u32) -> Effects {
        if let Some(known) = self.effects.get(&one) {
            return known.clone();
        }
        let variable = &scopes.variables[one as usize];
        let all = self.read(scopes, launches, variable);
        let escapes = |effect: &&Effect| effect.what == What::Escape;
        let is_address = |at: usize| at > 0 && scopes.code.kind(at - 1) == Kind::And;
        let found = Effects {
            escapes_at: all.iter().find(escapes).map_or(usize::MAX, |effect| effect.at),
            is_changed: all.iter().any(|effect| effect.what != What::Escape || is_address(effect.at)),
            all,
        };
        self.effects.insert(one, found.clone());
        found
    }

    fn read(&mut self, scopes: &Scopes<'_>, launches: &[Launch], variable: &Variable) -> Rc<[Effect]> {
        let (code, text) = (scopes.code, scopes.text);
        let name = code.text(variable.declared.name, text);
        let end = variable.scope.and_then(|scope| code.partner(scope)).unwrap_or(code.tokens.len());
        let words = self.words(code, text, variable.scope);
        let hash = hash(name);
        let from = words.partition_point(|word| *word < (hash, variable.declared.name as u32 + 1));
        let uses = words[from..].iter().take_while(|(other, at)| *other == hash && (*at as usize) < end);
        let uses = uses.map(|(_, at)| *at as usize).filter(|at| code.text(*at, text) == name);
        let reader = Reader { scopes, launches, of: variable.declared.of };
        uses.filter_map(|at| reader.effect(at).map(|what| Effect { at, what })).collect()
    }

    /// The words of the outermost block around `scope`.
    fn words(&mut self, code: &Code, text: &[u8], scope: Option<usize>) -> Rc<Words> {
        let mut outermost = scope;
        for _ in 0..DEEPEST {
            match outermost.and_then(|scope| code.outer(scope)) {
                // A namespace or a class may hold a whole file: functions are enough.
                Some(outer) if code.kind(outer) != Kind::BraceOpen || is_body(code, outer) => outermost = Some(outer),
                _ => break,
            }
        }
        let key = outermost.unwrap_or(usize::MAX);
        if let Some(known) = self.words.get(&key) {
            return known.clone();
        }
        let range = match outermost {
            Some(open) => open..code.behind(open).max(code.partner(open).map_or(code.tokens.len(), |close| close)),
            None => 0..code.tokens.len(),
        };
        let words = range.filter(|at| code.kind(*at) == Kind::Word);
        let mut words: Words = words.map(|at| (hash(code.text(at, text)), at as u32)).collect();
        words.sort_unstable();
        let words = Rc::new(words);
        self.words.insert(key, words.clone());
        words
    }
}

/// Whether a brace opens what runs: it stands behind parentheses, or a word that says so.
fn is_body(code: &Code, brace: usize) -> bool {
    brace > 0
        && matches!(
            code.kind(brace - 1),
            Kind::ParenClose | Kind::Semicolon | Kind::BraceOpen | Kind::BraceClose | Kind::BracketClose
        )
}

fn hash(word: &[u8]) -> u32 {
    word.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

struct Reader<'r, 's> {
    scopes: &'r Scopes<'s>,
    launches: &'r [Launch],
    of: Type,
}

impl Reader<'_, '_> {
    fn kind(&self, at: usize) -> Kind {
        self.scopes.code.kind(at)
    }

    fn word(&self, at: usize) -> &[u8] {
        self.scopes.code.text(at, self.scopes.text)
    }

    /// What the use at `at` does to the variable; nothing where it is only read, or another's member.
    fn effect(&self, at: usize) -> Option<What> {
        let before = if at == 0 { Kind::Other } else { self.kind(at - 1) };
        if matches!(before, Kind::Dot | Kind::Arrow | Kind::Scope) {
            return None;
        }
        let mut part = Vec::new();
        let mut next = at + 1;
        while self.kind(next) == Kind::Dot && self.kind(next + 1) == Kind::Word && part.len() < 3 {
            part.push(next + 1);
            next += 2;
        }
        match self.kind(next) {
            Kind::Assign => return Some(self.assignment(at, next, part)),
            Kind::PlusPlus | Kind::MinusMinus => return Some(What::Change { part }),
            kind if kind.is_compound_assignment() => return Some(What::Change { part }),
            // `n >>= 1`
            Kind::Greater if self.kind(next + 1) == Kind::GreaterEqual => return Some(What::Change { part }),
            // A method, or an element.
            Kind::ParenOpen if !part.is_empty() => return Some(What::Escape),
            // `config.attrs[0].id = …`
            Kind::BracketOpen if !part.is_empty() => return Some(What::Change { part }),
            Kind::BracketOpen | Kind::Arrow => return Some(What::Escape),
            // `Type n(…)` declares another of its name, which stands for it from there on.
            _ => {}
        }
        match before {
            Kind::PlusPlus | Kind::MinusMinus => return Some(What::Change { part }),
            Kind::And if self.takes_address(at) => return self.escapes_by_address(at).then_some(What::Escape),
            Kind::Greater if at >= 2 && self.kind(at - 2) == Kind::Greater => return Some(What::Escape),
            // `auto& r = n;`
            Kind::Assign
                if at >= 3
                    && self.kind(at - 2) == Kind::Word
                    && matches!(self.kind(at - 3), Kind::And | Kind::AndAnd) =>
            {
                return Some(What::Escape);
            }
            // `Type n;`
            Kind::Word if matches!(self.kind(next), Kind::Semicolon | Kind::Comma) && part.is_empty() => {
                let is_read =
                    matches!(self.word(at - 1), b"return" | b"case" | b"else" | b"sizeof" | b"throw" | b"co_return");
                return if is_read { None } else { Some(What::Escape) };
            }
            _ => {}
        }
        (self.is_argument(at, next) && !self.takes_by_value(at)).then_some(What::Escape)
    }

    fn assignment(&self, at: usize, equals: usize, part: Vec<usize>) -> What {
        let code = self.scopes.code;
        let is_start = at == 0 || matches!(self.kind(at - 1), Kind::Semicolon | Kind::BraceOpen | Kind::BraceClose);
        let is_statement = is_start && code.outer(at).is_none_or(|outer| self.kind(outer) == Kind::BraceOpen);
        let mut end = equals + 1;
        while end < code.tokens.len() {
            match self.kind(end) {
                Kind::Semicolon => break,
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => end = code.behind(end),
                Kind::ParenClose | Kind::BracketClose | Kind::BraceClose | Kind::Comma | Kind::Assign => {
                    return What::Change { part };
                }
                _ => end += 1,
            }
        }
        What::Assign { part, value: equals + 1..end, is_plain: is_statement }
    }

    /// Whether `&` before the token at `at` takes an address: no operand stands before it.
    fn takes_address(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(2) else { return true };
        match self.kind(before) {
            Kind::Word => matches!(self.word(before), b"return" | b"case" | b"else"),
            Kind::Number | Kind::ParenClose | Kind::BracketClose => {
                // `(void*)&n`: a cast before it.
                self.kind(before) == Kind::ParenClose && matches!(self.kind(before.saturating_sub(1)), Kind::Star)
            }
            _ => true,
        }
    }

    /// What launches by a call take by its address, they leave as it is.
    fn escapes_by_address(&self, at: usize) -> bool {
        let Some(open) = self.scopes.code.outer(at) else { return true };
        let is_config = self.of == Type::Config;
        !(is_config
            && open > 0
            && matches!(self.word(open - 1), name if name.starts_with(b"cuda") || name.starts_with(b"hip")))
    }

    /// Whether the variable, or a part of it, is all of an argument of a call, and no part of a launch.
    fn is_argument(&self, at: usize, next: usize) -> bool {
        let code = self.scopes.code;
        let alone = at > 0
            && matches!(self.kind(at - 1), Kind::Comma | Kind::ParenOpen | Kind::BraceOpen)
            && matches!(self.kind(next), Kind::Comma | Kind::ParenClose | Kind::BraceClose);
        if !alone || code.outer(at).is_none_or(|open| self.kind(open) != Kind::ParenOpen) {
            return false;
        }
        !self.is_in_launch(at)
    }

    fn is_in_launch(&self, at: usize) -> bool {
        let before = self.launches.partition_point(|launch| launch.at.start <= at);
        let Some(launch) = before.checked_sub(1).map(|index| &self.launches[index]) else { return false };
        match &launch.config {
            super::launches::Config::Values { grid, block, shared } => {
                let end = shared.as_ref().map_or(block.end, |shared| shared.end).max(block.end);
                (grid.start..end).contains(&at)
            }
            _ => launch.at.contains(&at),
        }
    }

    /// Whether the call that has the variable at `at` as an argument takes it by value.
    fn takes_by_value(&self, at: usize) -> bool {
        let code = self.scopes.code;
        let Some(open) = code.outer(at) else { return false };
        let Some(last) = open.checked_sub(1) else { return true };
        let name = match self.kind(last) {
            Kind::Word => last,
            // `k<<<…>>>(n)`: kernels take values.
            Kind::Greater
                if last >= 2 && self.kind(last - 1) == Kind::Greater && self.kind(last - 2) == Kind::Greater =>
            {
                return true;
            }
            Kind::Greater => match code.open_angle(last) {
                Some(angle) if angle > 0 => angle - 1,
                _ => return false,
            },
            // `(n)`, `f(a)(n)`, `a[i](n)`
            Kind::ParenClose | Kind::BracketClose => return false,
            _ => return true,
        };
        let callee = self.word(name);
        let before = if name == 0 { Kind::Other } else { self.kind(name - 1) };
        // `Type v(n)`, which constructs.
        let constructs =
            matches!(before, Kind::Word | Kind::Greater) && !super::declare::is_keyword(self.word(name - 1));
        if constructs || is_harmless(callee, matches!(before, Kind::Dot | Kind::Arrow)) {
            return true;
        }
        if matches!(before, Kind::Dot | Kind::Arrow) {
            return false;
        }
        let index = self.argument_index(open, at);
        let Some(declared) = self.scopes.functions.get(callee) else { return false };
        declared.len() <= MOST_OVERLOADS && declared.iter().all(|open| self.parameter_is_value(*open, index))
    }

    fn argument_index(&self, open: usize, at: usize) -> usize {
        let code = self.scopes.code;
        let mut here = open + 1;
        let mut index = 0;
        while here < at {
            match self.kind(here) {
                Kind::Comma => index += 1,
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => here = code.behind(here) - 1,
                _ => {}
            }
            here += 1;
        }
        index
    }

    fn parameter_is_value(&self, open: usize, index: usize) -> bool {
        let code = self.scopes.code;
        let end = code.partner(open).unwrap_or(open);
        let parts = super::launches::split(code, open + 1..end);
        let Some(part) = parts.get(index) else { return false };
        let mut words = part.clone();
        let is_const = part.clone().any(|at| self.word(at) == b"const");
        is_const || !words.any(|at| matches!(self.kind(at), Kind::And | Kind::AndAnd))
    }
}

/// What does not change its arguments.
fn is_harmless(callee: &[u8], is_method: bool) -> bool {
    if is_method {
        return matches!(callee, b"resize" | b"reserve" | b"push_back" | b"emplace_back" | b"at" | b"assign" | b"doit");
    }
    let has = |what: &[u8]| callee.windows(what.len()).any(|window| window == what);
    let is_check = is_upper(callee)
        && [&b"CHECK"[..], b"ASSERT", b"EXPECT", b"REQUIRE", b"PRINT", b"LOG", b"UNUSED"].iter().any(|what| has(what));
    let is_runtime = |prefix: &[u8]| {
        callee.strip_prefix(prefix).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))
    };
    is_check
        || [&b"cuda"[..], b"cu", b"hip", b"cublas", b"curand", b"cufft"].iter().any(|prefix| is_runtime(prefix))
        || matches!(
            callee,
            b"printf"
                | b"fprintf"
                | b"sprintf"
                | b"snprintf"
                | b"malloc"
                | b"calloc"
                | b"free"
                | b"memset"
                | b"memcpy"
                | b"assert"
                | b"min"
                | b"max"
                | b"dim3"
                | b"sizeof"
                | b"triple_chevron"
                | b"hipLaunchKernelGGL"
                | b"int"
                | b"unsigned"
                | b"float"
                | b"double"
                | b"long"
                | b"size_t"
                | b"make_int2"
                | b"make_uint2"
                | b"make_int3"
                | b"make_uint3"
                | b"ceil"
                | b"abs"
                | b"pow"
                | b"sqrt"
                | b"log2"
                | b"to_string"
                | b"if"
                | b"while"
                | b"for"
                | b"switch"
                | b"return"
                | b"checkCudaErrors"
                | b"checkCuda"
                | b"gpuErrchk"
                | b"void"
                | b"static_assert"
        )
}

/// How far what is done after a use at `at` may come before it again: to the end of the outermost loop around it within
/// `scope`, and to the end of all where it may run at any time.
pub(super) fn comes_again_until(scopes: &mut Scopes<'_>, scope: Option<usize>, at: usize) -> usize {
    let mut end = 0;
    let mut here = at;
    for _ in 0..DEEPEST {
        let before = scopes.before(here);
        let outer = scopes.code.outer(here);
        // What stands before a place in `scope` itself is the head of its own statement.
        match before.block {
            Block::Loop => end = end.max(statement_end(scopes.code, here)),
            Block::Apart if scopes.code.kind(here) == Kind::BraceOpen => return usize::MAX,
            _ => {}
        }
        if outer == scope || outer.is_none() {
            return end;
        }
        if scopes.code.kind(outer.unwrap_or(0)) != Kind::BraceOpen && scopes.code.kind(here) == Kind::BraceOpen {
            // A lambda among arguments.
            return usize::MAX;
        }
        here = outer.unwrap_or(0);
    }
    usize::MAX
}

/// The end of the statement that `at` stands in, or of the block that it opens.
fn statement_end(code: &Code, at: usize) -> usize {
    if code.kind(at) == Kind::BraceOpen {
        return code.partner(at).unwrap_or(usize::MAX);
    }
    let mut here = at;
    while here < code.tokens.len() {
        match code.kind(here) {
            Kind::Semicolon | Kind::BraceClose => return here,
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => here = code.behind(here),
            _ => here += 1,
        }
    }
    usize::MAX
}

/// Whether whoever comes to `at` has come past the assignment at `write` in the same run of the block around that.
pub(super) fn is_passed(scopes: &mut Scopes<'_>, write: usize, at: usize) -> bool {
    let Some(own) = scopes.code.outer(write) else { return scopes.code.counts_with(write, at) };
    let mut here = at;
    for _ in 0..DEEPEST {
        match scopes.code.outer(here) {
            Some(outer) if outer == own => {
                return scopes.code.counts_with(write, at) && scopes.before(own).block != Block::Switch;
            }
            Some(outer) => here = outer,
            None => return false,
        }
    }
    false
}
