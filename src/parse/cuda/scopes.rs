//! What names mean where: the brackets around a place, what their heads declare, and the variables of each block.

use std::ops::Range;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::code::{Code, NONE};
use super::declare::{Declared, bits, declaration, enumerators, is_keyword, parameters};
use super::lexer::Kind;

/// Brackets around a place that are looked into.
pub(super) const DEEPEST: usize = 64;

/// Tokens of the head of a block, at most.
const LONGEST_HEAD: usize = 400;

/// Functions of one name that are looked at; where there are more, none is.
pub(super) const MOST_OVERLOADS: usize = 16;

/// The scope of a file, which no bracket opens.
const FILE: u32 = NONE;

/// What a name means at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// This variable.
    Variable(u32),
    /// One of several constants of the file.
    Several,
    /// Something whose value is not known: a parameter, or what cannot be told.
    Hidden,
    /// Nothing that the file declares.
    Nothing,
}

/// A variable with the block that it belongs to.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) declared: Declared,
    /// The brace that opens the block, or the file.
    pub(super) scope: Option<usize>,
    /// Whether every order of uses and declarations is one: in a file or class.
    pub(super) is_unordered: bool,
}

/// What a block is the body of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// Of nothing that runs it more than once, or later.
    Plain,
    Switch,
    /// Of a loop.
    Loop,
    /// Of a function, a lambda, a macro: it may run at any time.
    Apart,
    Class,
    Namespace,
}

/// What stands before a place, back to the end of the statement before.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) block: Block,
    /// Tokens of names that it declares, without a value that is known.
    hidden: Vec<usize>,
    /// Where the parameters of its templates stand.
    template: Range<usize>,
    /// It is too long to be read.
    is_long: bool,
    pub(super) start: usize,
}

/// The scopes of a text or of a macro's body. They are looked into when a name is first asked for.
pub(super) struct Scopes<'s> {
    pub(super) code: &'s Code,
    pub(super) text: &'s [u8],
    /// Whether the text is a file, and not the body of a macro.
    is_file: bool,
    pub(super) variables: Vec<Variable>,
    uses_namespaces: Option<bool>,
    known: HashSet<u32>,
    by_name: HashMap<(u32, &'s [u8]), Vec<u32>>,
    befores: HashMap<u32, Rc<Before>>,
    arguments: HashMap<u32, Rc<Vec<usize>>>,
    /// Parameter lists of functions, by their opening parentheses.
    pub(super) functions: HashMap<&'s [u8], Vec<usize>>,
    /// Classes and namespaces by name: the brace, and whether it is a template's.
    named: HashMap<&'s [u8], Vec<(usize, bool)>>,
}

/// Declarations of one name that are compared, at most.
const FEW: usize = 64;

fn few(all: &[u32]) -> Option<Vec<u32>> {
    (all.len() <= FEW).then(|| all.to_vec())
}

impl<'s> Scopes<'s> {
    pub(super) fn new(code: &'s Code, text: &'s [u8], is_file: bool) -> Scopes<'s> {
        Scopes {
            code,
            text,
            is_file,
            variables: Vec::new(),
            uses_namespaces: None,
            known: HashSet::new(),
            by_name: HashMap::new(),
            befores: HashMap::new(),
            arguments: HashMap::new(),
            functions: HashMap::new(),
            named: HashMap::new(),
        }
    }

    fn word(&self, at: usize) -> &'s [u8] {
        self.code.text(at, self.text)
    }

    /// What `name` means at the token `at`.
    pub(super) fn find(&mut self, name: &'s [u8], at: usize) -> Meaning {
        if at >= self.code.tokens.len() {
            return self.find_in_file(name, at);
        }
        let mut here = at;
        for _ in 0..DEEPEST {
            let before = self.before(here);
            if before.is_long || before.hidden.iter().any(|hidden| self.word(*hidden) == name) {
                return Meaning::Hidden;
            }
            let Some(outer) = self.code.outer(here) else { return self.find_in_file(name, at) };
            if self.code.kind(outer) == Kind::BraceOpen {
                match self.find_in(name, outer, at) {
                    Meaning::Nothing => {}
                    found => return found,
                }
            } else if self.code.kind(outer) == Kind::ParenOpen && self.may_declare(outer, here) {
                let arguments = self.arguments(outer);
                if arguments.iter().any(|argument| self.word(*argument) == name) {
                    return Meaning::Hidden;
                }
            }
            here = outer;
        }
        Meaning::Hidden
    }

    /// Whether `name` is a template's parameter at the token `at`: its head declares it in angles.
    pub(super) fn is_template_parameter(&mut self, name: &[u8], at: usize) -> bool {
        self.parameter(name, at).is_some_and(|(_, is_template)| is_template)
    }

    /// Whether `name` is a parameter at the token `at`, of a function or a template, that is declared as a whole number.
    pub(super) fn is_number_parameter(&mut self, name: &[u8], at: usize) -> bool {
        let declared = self.parameter(name, at).and_then(|(declared, _)| declared.checked_sub(1));
        declared.is_some_and(|of| bits(self.word(of)).is_some())
    }

    /// Where the parameter `name` is declared, and whether it is a template's.
    fn parameter(&mut self, name: &[u8], at: usize) -> Option<(usize, bool)> {
        let mut here = at;
        for _ in 0..DEEPEST {
            let before = self.before(here);
            if let Some(hidden) = before.hidden.iter().find(|hidden| self.word(**hidden) == name) {
                return Some((*hidden, before.template.contains(hidden)));
            }
            here = self.code.outer(here)?;
        }
        None
    }

    /// What `name` means in the block that `scope` opens, at the token `at` within it.
    fn find_in(&mut self, name: &'s [u8], scope: usize, at: usize) -> Meaning {
        self.learn(scope);
        let Some(found) = self.by_name.get(&(scope as u32, name)) else { return Meaning::Nothing };
        self.choose(self.seen(found, at), at)
    }

    /// Those of one block that are declared before `at`: they are in order.
    fn seen<'f>(&self, found: &'f [u32], at: usize) -> &'f [u32] {
        let is_before = |one: &u32| {
            let variable = &self.variables[*one as usize];
            variable.is_unordered || variable.declared.name < at
        };
        &found[..found.partition_point(is_before)]
    }

    fn find_in_file(&mut self, name: &'s [u8], at: usize) -> Meaning {
        self.learn_file();
        let is_open = !self.is_file || self.uses_namespaces();
        let Some(found) = self.by_name.get(&(FILE, name)) else { return Meaning::Nothing };
        if is_open {
            return self.choose(self.seen(found, at), at);
        }
        // Two are as many as any number: of a file, none hides the others.
        let seen = found.iter().copied().filter(|one| self.is_seen_from(self.variables[*one as usize].scope, at));
        let seen: Vec<u32> = seen.take(2).collect();
        self.choose(&seen, at)
    }

    /// Whether a directive makes the names of other namespaces known.
    fn uses_namespaces(&mut self) -> bool {
        let text = self.text;
        *self.uses_namespaces.get_or_insert_with(|| memchr::memmem::find(text, b"using namespace").is_some())
    }

    /// Whether a name of the namespace that `scope` opens is known at `at` without it: within one of the same name.
    fn is_seen_from(&self, scope: Option<usize>, at: usize) -> bool {
        let Some(scope) = scope else { return true };
        let name = |brace: usize| self.word(brace.saturating_sub(1));
        let own = name(scope);
        // One without a name, or `extern "C"`.
        if own == b"namespace" || self.code.kind(scope.saturating_sub(1)) == Kind::String {
            return true;
        }
        let mut here = at;
        for _ in 0..DEEPEST {
            let Some(outer) = self.code.outer(here) else { return false };
            if outer == scope || self.code.kind(outer) == Kind::BraceOpen && name(outer) == own {
                return true;
            }
            here = outer;
        }
        false
    }

    /// The last of several declarations of one block. Where an `#if` decides between them, they must agree.
    fn choose(&self, seen: &[u32], at: usize) -> Meaning {
        let Some(last) = seen.last() else { return Meaning::Nothing };
        let variable = &self.variables[*last as usize];
        if seen.len() == 1 || !variable.is_unordered && self.code.counts_with(variable.declared.name, at) {
            return Meaning::Variable(*last);
        }
        Meaning::Several
    }

    /// All variables that `name` may mean where [`Scopes::find`] says that there are several; `None` where these are too many
    /// to be compared.
    pub(super) fn several(&mut self, name: &'s [u8], at: usize) -> Option<Vec<u32>> {
        let mut here = at;
        for _ in 0..DEEPEST {
            let Some(outer) = self.code.outer(here) else { break };
            if let Some(found) = self.by_name.get(&(outer as u32, name)) {
                return few(self.seen(found, at));
            }
            here = outer;
        }
        few(self.by_name.get(&(FILE, name)).map_or(&[], Vec::as_slice))
    }

    /// The constant `name` of the only class or namespace of the file called `class`, which is no template.
    pub(super) fn find_member(&mut self, class: &'s [u8], name: &'s [u8]) -> Meaning {
        self.learn_file();
        let Some([(brace, false)]) = self.named.get(class).map(Vec::as_slice) else { return Meaning::Hidden };
        let brace = *brace;
        self.learn(brace);
        match self.by_name.get(&(brace as u32, name)).map(Vec::as_slice) {
            Some([one]) => Meaning::Variable(*one),
            _ => Meaning::Hidden,
        }
    }

    /// Whether what stands in the parentheses that open at `open` may be declared there: in the head of a loop, or by a macro
    /// that is given a block.
    fn may_declare(&self, open: usize, inner: usize) -> bool {
        self.code.kind(inner) == Kind::BraceOpen || open > 0 && self.word(open - 1) == b"for"
    }

    /// Tokens of the words that are arguments by themselves in the parentheses that open at `open`: a macro may declare
    /// each of them.
    fn arguments(&mut self, open: usize) -> Rc<Vec<usize>> {
        if let Some(known) = self.arguments.get(&(open as u32)) {
            return known.clone();
        }
        let mut found = Vec::new();
        let end = self.code.partner(open).unwrap_or(open + 1).min(open + LONGEST_HEAD);
        let mut at = open + 1;
        while at < end {
            match self.code.kind(at) {
                Kind::Word => {
                    let alone = matches!(self.code.kind(at - 1), Kind::Comma | Kind::ParenOpen)
                        && matches!(self.code.kind(at + 1), Kind::Comma | Kind::ParenClose);
                    if alone {
                        found.push(at);
                    }
                }
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => at = self.code.behind(at) - 1,
                _ => {}
            }
            at += 1;
        }
        parameters(self.code, self.text, open + 1..end.min(open + 60), false, &mut found);
        let found = Rc::new(found);
        self.arguments.insert(open as u32, found.clone());
        found
    }

    /// What stands before the token `at`, back to the end of the statement before.
    pub(super) fn before(&mut self, at: usize) -> Rc<Before> {
        if let Some(known) = self.befores.get(&(at as u32)) {
            return known.clone();
        }
        let start = self.statement_start(at);
        let before = match start {
            None => Before { block: Block::Apart, hidden: Vec::new(), template: 0..0, is_long: true, start: at },
            Some(start) => self.read_before(start, at),
        };
        let before = Rc::new(before);
        self.befores.insert(at as u32, before.clone());
        before
    }

    /// The first token of the statement that the token `at` is part of.
    pub(super) fn statement_start(&self, at: usize) -> Option<usize> {
        let outer = self.code.outer(at);
        let floor = outer.map_or(0, |outer| outer + 1);
        let mut start = at;
        for _ in 0..LONGEST_HEAD {
            if start <= floor {
                return Some(floor.min(at));
            }
            let last = start - 1;
            match self.code.kind(last) {
                Kind::Semicolon => return Some(start),
                Kind::BraceOpen => return Some(start),
                Kind::BraceClose => {
                    let Some(open) = self.code.partner(last).filter(|open| *open < last) else { return Some(start) };
                    // `: member{value}` of a constructor goes on.
                    let is_member = open >= 2
                        && self.code.kind(open - 1) == Kind::Word
                        && matches!(self.code.kind(open - 2), Kind::Comma | Kind::Colon)
                        && matches!(self.code.kind(start), Kind::Comma | Kind::BraceOpen);
                    if !is_member {
                        return Some(start);
                    }
                    start = open;
                    continue;
                }
                Kind::ParenClose | Kind::BracketClose => {
                    start = self.code.partner(last).filter(|open| *open < last).unwrap_or(last);
                    continue;
                }
                _ => {}
            }
            start = last;
        }
        None
    }

    fn read_before(&self, start: usize, end: usize) -> Before {
        let mut hidden = Vec::new();
        let mut template = 0..0;
        let mut block = None;
        let mut has_group = false;
        let mut at = start;
        let note = |said: Block, over: &mut Option<Block>| match over {
            Some(Block::Loop | Block::Apart) => {}
            _ => *over = Some(said),
        };
        while at < end {
            match self.code.kind(at) {
                Kind::Word => match self.word(at) {
                    b"for" | b"while" | b"do" => note(Block::Loop, &mut block),
                    b"switch" => note(Block::Switch, &mut block),
                    b"if" | b"else" | b"try" | b"catch" => note(Block::Plain, &mut block),
                    b"namespace" => note(Block::Namespace, &mut block),
                    b"extern" if self.code.kind(at + 1) == Kind::String && at + 2 == end => {
                        note(Block::Namespace, &mut block)
                    }
                    b"class" | b"struct" | b"union" if !has_group => note(Block::Class, &mut block),
                    b"template" if self.code.kind(at + 1) == Kind::Less => {
                        if let Some(close) = self.code.close_angle(at + 1, end) {
                            parameters(self.code, self.text, at + 2..close, true, &mut hidden);
                            let from = if template.is_empty() { at } else { template.start };
                            template = from..close;
                            at = close;
                        }
                    }
                    _ => {}
                },
                Kind::ParenOpen => {
                    has_group = true;
                    let close = self.code.partner(at).filter(|close| *close > at).unwrap_or(end).min(end);
                    let is_condition =
                        at > start && matches!(self.word(at - 1), b"if" | b"while" | b"switch" | b"constexpr");
                    if is_condition {
                        let declared = (at + 2..close).filter(|at| {
                            self.code.kind(*at) == Kind::Word
                                && self.code.kind(at + 1) == Kind::Assign
                                && matches!(self.code.kind(at - 1), Kind::Word | Kind::Star | Kind::And)
                        });
                        hidden.extend(declared);
                    } else {
                        parameters(self.code, self.text, at + 1..close, false, &mut hidden);
                    }
                    at = close.max(at);
                }
                Kind::BracketOpen => {
                    note(Block::Apart, &mut block);
                    let close = self.code.partner(at).filter(|close| *close > at).unwrap_or(end).min(end);
                    parameters(self.code, self.text, at + 1..close, false, &mut hidden);
                    at = close.max(at);
                }
                _ => {}
            }
            at += 1;
        }
        let is_function = has_group && !matches!(block, Some(Block::Loop | Block::Switch | Block::Plain));
        let block = match block {
            Some(Block::Class) if is_function => Block::Apart,
            Some(block) => block,
            None if has_group => Block::Apart,
            None => Block::Plain,
        };
        Before { block, hidden, template, is_long: false, start }
    }

    /// Notes the variables of the block that `scope` opens.
    fn learn(&mut self, scope: usize) {
        if !self.known.insert(scope as u32) {
            return;
        }
        let block = self.before(scope).block;
        let end = self.code.partner(scope).filter(|end| *end > scope).unwrap_or(self.code.tokens.len());
        let is_unordered = matches!(block, Block::Class | Block::Namespace);
        let place = Place { scope: Some(scope), key: scope as u32, is_unordered };
        self.statements(scope + 1..end, place, &mut Vec::new());
    }

    /// Notes the variables of the file and of its namespaces.
    pub(super) fn learn_file(&mut self) {
        if !self.known.insert(FILE) {
            return;
        }
        let mut namespaces = vec![(None, 0..self.code.tokens.len())];
        while let Some((scope, range)) = namespaces.pop() {
            let place = Place { scope, key: FILE, is_unordered: self.is_file };
            self.statements(range, place, &mut namespaces);
        }
        let position = |one: &u32| self.variables[*one as usize].declared.name;
        for ((key, _), all) in &mut self.by_name {
            if *key == FILE {
                all.sort_unstable_by_key(position);
            }
        }
    }

    /// Notes the members of all classes that the file has names for.
    pub(super) fn learn_classes(&mut self) {
        self.learn_file();
        let mut braces: Vec<usize> = self.named.values().flatten().map(|(brace, _)| *brace).collect();
        braces.sort_unstable();
        for brace in braces {
            self.learn(brace);
        }
    }

    fn statements(&mut self, range: Range<usize>, place: Place, namespaces: &mut Vec<(Option<usize>, Range<usize>)>) {
        let mut at = range.start;
        while at < range.end {
            at = self.statement(at, range.end, place, namespaces).max(at + 1);
        }
    }

    /// Notes what the statement at `at` declares. The first token behind it.
    fn statement(
        &mut self,
        at: usize,
        end: usize,
        place: Place,
        namespaces: &mut Vec<(Option<usize>, Range<usize>)>,
    ) -> usize {
        let code = self.code;
        let is_file = place.key == FILE;
        let mut start = at;
        let mut is_template = false;
        while self.word(start) == b"template" && code.kind(start + 1) == Kind::Less {
            let Some(close) = code.close_angle(start + 1, (start + LONGEST_HEAD).min(end)) else { break };
            is_template = true;
            start = close + 1;
        }
        let mut here = start;
        if code.kind(start) == Kind::Word && start < end {
            match self.word(start) {
                b"enum" => return self.enumeration(start, end, place),
                b"class" | b"struct" | b"union" | b"namespace" | b"inline" | b"extern" => {
                    if let Some(brace) = self.brace_of_named(start, end) {
                        let close = code.partner(brace).filter(|close| *close > brace).unwrap_or(end);
                        let is_namespace = self.word(start) == b"namespace"
                            || self.word(start) == b"extern"
                            || self.word(start + 1) == b"namespace";
                        if is_namespace && is_file {
                            namespaces.push((Some(brace), brace + 1..close));
                        }
                        let name = (start + 1..brace).find(|at| {
                            code.kind(*at) == Kind::Word
                                && matches!(code.kind(at + 1), Kind::BraceOpen | Kind::Colon | Kind::Less)
                                || self.word(at + 1) == b"final"
                        });
                        if let Some(name) = name {
                            let is_special = is_template || code.kind(name + 1) == Kind::Less;
                            self.named.entry(self.word(name)).or_default().push((brace, is_special));
                        }
                        return close + 1;
                    }
                }
                _ => {}
            }
            if let Some(found) = declaration(code, self.text, start, end) {
                for declared in found {
                    if is_template {
                        continue;
                    }
                    let name = self.word(declared.name);
                    let one = self.variables.len() as u32;
                    let Place { scope, is_unordered, .. } = place;
                    self.variables.push(Variable { declared, scope, is_unordered });
                    self.by_name.entry((place.key, name)).or_default().push(one);
                }
            }
        }
        let mut function = None;
        while here < end {
            match code.kind(here) {
                Kind::Semicolon => {
                    self.note_function(function.filter(|_| place.is_unordered));
                    return here + 1;
                }
                Kind::BraceOpen => {
                    self.note_function(function.filter(|_| place.is_unordered));
                    // What is never closed reaches to the end.
                    let Some(close) = code.partner(here).filter(|close| *close > here) else { return end };
                    let behind = close + 1;
                    if !matches!(code.kind(behind), Kind::Semicolon | Kind::Comma) {
                        return behind;
                    }
                    here = behind - 1;
                }
                Kind::ParenOpen => {
                    if function.is_none() && here > start && code.kind(here - 1) == Kind::Word {
                        function = Some(here);
                    }
                    here = code.behind(here) - 1;
                }
                Kind::BracketOpen => here = code.behind(here) - 1,
                // `public:`, `case 1:`
                Kind::Colon if here - start <= 3 => return here + 1,
                Kind::Assign => function = Some(usize::MAX),
                _ => {}
            }
            here += 1;
        }
        here
    }

    fn note_function(&mut self, open: Option<usize>) {
        if let Some(open) = open.filter(|open| *open != usize::MAX) {
            let name = self.word(open - 1);
            if !is_keyword(name) {
                let known = self.functions.entry(name).or_default();
                if known.len() <= MOST_OVERLOADS {
                    known.push(open);
                }
            }
        }
    }

    /// The brace that opens the class or namespace declared at `start`, where that is what is declared.
    fn brace_of_named(&self, start: usize, end: usize) -> Option<usize> {
        let is_namespace = self.word(start) == b"namespace" || self.word(start + 1) == b"namespace";
        if self.word(start) == b"extern" {
            return (self.code.kind(start + 1) == Kind::String && self.code.kind(start + 2) == Kind::BraceOpen)
                .then_some(start + 2);
        }
        if self.word(start) == b"inline" && !is_namespace {
            return None;
        }
        let mut at = start + 1;
        while at < end.min(start + LONGEST_HEAD) {
            match self.code.kind(at) {
                Kind::BraceOpen => return Some(at),
                Kind::Word | Kind::Scope | Kind::Colon | Kind::Comma | Kind::Ellipsis => {}
                Kind::Less => at = self.code.close_angle(at, end)?,
                // `alignas(16)`, `[[nodiscard]]`
                Kind::ParenOpen
                    if matches!(self.word(at - 1), b"alignas" | b"__align__" | b"__attribute__" | b"decltype") =>
                {
                    at = self.code.behind(at) - 1;
                }
                Kind::BracketOpen => at = self.code.behind(at) - 1,
                _ => return None,
            }
            at += 1;
        }
        None
    }

    /// Notes the enumerators of an `enum`, which belong to what is around it. The first token behind it.
    fn enumeration(&mut self, at: usize, end: usize, place: Place) -> usize {
        let is_own = matches!(self.word(at + 1), b"class" | b"struct");
        let Some(brace) = (at + 1..end.min(at + 20))
            .find(|at| !matches!(self.code.kind(*at), Kind::Word | Kind::Colon | Kind::Scope))
        else {
            return at + 1;
        };
        if self.code.kind(brace) != Kind::BraceOpen {
            return at + 1;
        }
        let behind = self.code.behind(brace);
        if !is_own {
            for declared in enumerators(self.code, brace + 1..behind.saturating_sub(1)) {
                let name = self.word(declared.name);
                let one = self.variables.len() as u32;
                let Place { scope, is_unordered, .. } = place;
                self.variables.push(Variable { declared, scope, is_unordered });
                self.by_name.entry((place.key, name)).or_default().push(one);
            }
        }
        behind
    }

    /// The variables of the file and its classes, for others to use their constants.
    pub(super) fn shared(&self) -> impl Iterator<Item = u32> {
        (0..self.variables.len() as u32).filter(|one| self.variables[*one as usize].is_unordered)
    }
}

/// Where variables belong to.
#[derive(Clone, Copy)]
struct Place {
    scope: Option<usize>,
    key: u32,
    is_unordered: bool,
}
