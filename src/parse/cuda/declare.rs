//! Declarations of variables, read statement by statement: their names, their types as far as numbers matter, and what
//! they begin with.

use std::ops::Range;

use super::code::Code;
use super::lexer::Kind;

/// Tokens of a type, at most.
const LONGEST_TYPE: usize = 300;

/// A variable or a constant as declared. Everything is given by tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) name: usize,
    /// Whether it keeps its first value.
    pub(super) is_const: bool,
    /// Whether it keeps its value from one run of its block to the next.
    pub(super) is_static: bool,
    pub(super) of: Type,
    /// The words of its type.
    pub(super) written: Range<usize>,
    pub(super) first: First,
    /// Its dimensions, where it is an array: between their brackets.
    pub(super) dimensions: Vec<Range<usize>>,
    pub(super) is_shared: bool,
    pub(super) is_extern: bool,
}

/// What matters of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// A whole number that holds what fits into so many bits, besides a sign.
    Integer(u32),
    /// `auto`
    Auto,
    Dim3,
    /// The structure that a launch by a call takes.
    Config,
    /// Any other, a pointer or reference too: its value is nothing that is followed.
    Other,
}

/// What a variable begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum First {
    /// Nothing that is written.
    Nothing,
    /// `= value`
    Value(Range<usize>),
    /// What stands between its parentheses or braces.
    Parts(Range<usize>),
    /// The place of an enumerator in its list, behind the last one with a value.
    Enumerator { last: Option<Range<usize>>, behind: u32 },
    /// Something that is not told: a parameter, or part of a structured binding.
    Unknown,
}

/// The bits that a type of whole numbers holds besides a sign, by a word of its name.
pub(super) fn bits(word: &[u8]) -> Option<u32> {
    Some(match word {
        b"int" => 31,
        b"unsigned" => 32,
        b"signed" => 31,
        b"uint" | b"uint32_t" | b"u32" => 32,
        b"int32_t" | b"i32" => 31,
        b"long" | b"size_t" | b"ssize_t" | b"ptrdiff_t" | b"int64_t" | b"uint64_t" | b"uintptr_t" | b"intptr_t" => 63,
        b"short" | b"int16_t" => 15,
        b"uint16_t" | b"ushort" => 16,
        b"int8_t" | b"char" => 7,
        b"uint8_t" | b"uchar" => 8,
        _ => return None,
    })
}

/// The variables that a statement at `at` declares, if it declares any, and the token that its declarators end before.
pub(super) fn declaration(code: &Code, text: &[u8], at: usize, end: usize) -> Option<Vec<Declared>> {
    let mut reader = Reader { code, text, end, is_const: false, is_static: false, is_shared: false, is_extern: false };
    let (written, of, name) = reader.type_and_name(at)?;
    let mut found = Vec::new();
    if code.kind(name) == Kind::BracketOpen {
        let close = code.partner(name).filter(|close| *close > name)?;
        let words = (name + 1..close).filter(|at| code.kind(*at) == Kind::Word);
        found.extend(words.map(|at| reader.declared(at, written.clone(), Type::Other, First::Unknown)));
        return Some(found);
    }
    reader.declarators(name, written, of, &mut found);
    (!found.is_empty()).then_some(found)
}

struct Reader<'d> {
    code: &'d Code,
    text: &'d [u8],
    end: usize,
    is_const: bool,
    is_static: bool,
    is_shared: bool,
    is_extern: bool,
}

impl<'d> Reader<'d> {
    fn word(&self, at: usize) -> &'d [u8] {
        self.code.text(at, self.text)
    }

    fn declared(&self, name: usize, written: Range<usize>, of: Type, first: First) -> Declared {
        Declared {
            name,
            is_const: self.is_const,
            is_static: self.is_static,
            of,
            written,
            first,
            dimensions: Vec::new(),
            is_shared: self.is_shared,
            is_extern: self.is_extern,
        }
    }

    /// The words of a type, what it is, and the token of the first name, or of the bracket of a structured binding.
    fn type_and_name(&mut self, at: usize) -> Option<(Range<usize>, Type, usize)> {
        let code = self.code;
        let mut here = at;
        let mut of = None;
        // Where the last word stands that may be the name, or still part of the type.
        let mut written: Option<Range<usize>> = None;
        let mut is_indirect = false;
        while here < self.end && here - at < LONGEST_TYPE {
            match code.kind(here) {
                Kind::Word => {
                    let word = self.word(here);
                    if !self.specifier(word) {
                        if is_keyword(word) {
                            return None;
                        }
                        if of.is_some() && !is_type_word(word) && code.kind(here + 1) != Kind::Scope {
                            return self.named(here, written?, of?, is_indirect);
                        }
                        of = Some(self.type_of(here, of));
                        let start = written.as_ref().map_or(here, |written| written.start);
                        written = Some(start..here + 1);
                    }
                    if matches!(word, b"alignas" | b"__align__" | b"__attribute__" | b"decltype")
                        && code.kind(here + 1) == Kind::ParenOpen
                    {
                        here = code.behind(here + 1);
                        continue;
                    }
                }
                Kind::Scope => of = Some(Type::Other),
                Kind::Less if of.is_some() => {
                    here = code.close_angle(here, (here + LONGEST_TYPE).min(self.end))?;
                    of = Some(Type::Other);
                }
                Kind::Star | Kind::And | Kind::AndAnd if of.is_some() => is_indirect = true,
                Kind::BracketOpen if of == Some(Type::Auto) => return Some((written?, Type::Other, here)),
                // `[[attribute]]`
                Kind::BracketOpen if of.is_none() && code.kind(here + 1) == Kind::BracketOpen => {
                    here = code.behind(here);
                    continue;
                }
                _ => return None,
            }
            here += 1;
        }
        None
    }

    fn named(
        &self,
        at: usize,
        written: Range<usize>,
        of: Type,
        is_indirect: bool,
    ) -> Option<(Range<usize>, Type, usize)> {
        let follows = self.code.kind(at + 1);
        let may_follow = matches!(
            follows,
            Kind::Assign
                | Kind::Semicolon
                | Kind::Comma
                | Kind::ParenOpen
                | Kind::BraceOpen
                | Kind::BracketOpen
                | Kind::Colon
        );
        may_follow.then_some((written, if is_indirect { Type::Other } else { of }, at))
    }

    /// Takes note of a word that is no part of the type's name.
    fn specifier(&mut self, word: &[u8]) -> bool {
        match word {
            b"const" | b"constexpr" | b"__constant__" => self.is_const = true,
            b"static" | b"thread_local" => self.is_static = true,
            b"extern" => self.is_extern = true,
            b"__shared__" => self.is_shared = true,
            b"inline" | b"volatile" | b"register" | b"mutable" | b"typename" | b"struct" | b"__device__"
            | b"__managed__" | b"__host__" | b"alignas" | b"__align__" | b"__attribute__" | b"constinit"
            | b"__restrict__" => {}
            _ => return false,
        }
        true
    }

    /// What a type is with this word added to what was before it.
    fn type_of(&self, at: usize, before: Option<Type>) -> Type {
        let word = self.word(at);
        let bits = match word {
            b"auto" => return Type::Auto,
            b"dim3" => return Type::Dim3,
            b"cudaLaunchConfig_t" | b"cudaLaunchConfig_st" | b"hipLaunchConfig_t" => return Type::Config,
            word => bits(word).unwrap_or(0),
        };
        match (bits, before) {
            (0, _) => Type::Other,
            // `std::size_t`, and `other::int`, which is none.
            (_, Some(Type::Other)) => {
                let is_std = at >= 2 && self.code.kind(at - 1) == Kind::Scope && self.word(at - 2) == b"std";
                if is_std { Type::Integer(bits) } else { Type::Other }
            }
            // `unsigned long`, `long int`, `unsigned char`
            (31 | 32, Some(Type::Integer(other))) => Type::Integer(other),
            (bits, _) => Type::Integer(bits),
        }
    }

    fn declarators(&self, name: usize, written: Range<usize>, of: Type, found: &mut Vec<Declared>) {
        let code = self.code;
        let mut at = name;
        let mut of = of;
        let base = of;
        loop {
            if code.kind(at) != Kind::Word || at >= self.end {
                return;
            }
            let mut one = self.declared(at, written.clone(), of, First::Nothing);
            let mut here = at + 1;
            while code.kind(here) == Kind::BracketOpen {
                let Some(close) = code.partner(here).filter(|close| *close > here) else { return };
                one.dimensions.push(here + 1..close);
                here = close + 1;
            }
            match code.kind(here) {
                Kind::Assign => {
                    let end = value_end(code, here + 1, self.end);
                    one.first = First::Value(here + 1..end);
                    here = end;
                }
                Kind::ParenOpen | Kind::BraceOpen => {
                    let Some(close) = code.partner(here).filter(|close| *close > here) else { return };
                    one.first = First::Parts(here + 1..close);
                    here = close + 1;
                }
                Kind::Colon => one.first = First::Unknown,
                _ => {}
            }
            let is_last = match code.kind(here) {
                Kind::Comma => false,
                Kind::Semicolon | Kind::Colon => true,
                // A function, or something that is no declaration after all.
                _ => return found.clear(),
            };
            found.push(one);
            if is_last {
                return;
            }
            here += 1;
            of = base;
            while matches!(code.kind(here), Kind::Star | Kind::And) || self.word(here) == b"const" {
                of = Type::Other;
                here += 1;
            }
            at = here;
        }
    }
}

/// The token that ends an initial value which begins at `at`: a comma that is not in brackets or angles, or `;`.
fn value_end(code: &Code, at: usize, end: usize) -> usize {
    let mut here = at;
    let mut has_angles = true;
    while here < end {
        match code.kind(here) {
            Kind::Comma | Kind::Semicolon | Kind::ParenClose | Kind::BraceClose | Kind::BracketClose => return here,
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => here = code.behind(here) - 1,
            Kind::Less if has_angles && code.kind(here - 1) == Kind::Word => {
                match code.close_angle(here, (here + LONGEST_TYPE).min(end)) {
                    Some(close) => here = close,
                    None => has_angles = false,
                }
            }
            _ => {}
        }
        here += 1;
    }
    end
}

/// The enumerators between the braces of an `enum`.
pub(super) fn enumerators(code: &Code, range: Range<usize>) -> Vec<Declared> {
    let mut found = Vec::new();
    let mut at = range.start;
    let mut last = None;
    let mut behind = 0;
    while at < range.end && code.kind(at) == Kind::Word {
        let mut here = at + 1;
        if code.kind(here) == Kind::Assign {
            let end = value_end(code, here + 1, range.end);
            last = Some(here + 1..end);
            behind = 0;
            here = end;
        }
        found.push(Declared {
            name: at,
            is_const: true,
            is_static: true,
            of: Type::Integer(63),
            written: at..at,
            first: First::Enumerator { last: last.clone(), behind },
            dimensions: Vec::new(),
            is_shared: false,
            is_extern: false,
        });
        behind += 1;
        if code.kind(here) != Kind::Comma {
            break;
        }
        at = here + 1;
    }
    found
}

/// Names that the parentheses, brackets or angles `range` of a head declare, whatever their values are.
pub(super) fn parameters(code: &Code, text: &[u8], range: Range<usize>, is_template: bool, into: &mut Vec<usize>) {
    for at in range {
        if code.kind(at) != Kind::Word || at == 0 {
            continue;
        }
        let follows = matches!(
            code.kind(at + 1),
            Kind::Comma
                | Kind::ParenClose
                | Kind::Assign
                | Kind::BracketOpen
                | Kind::Colon
                | Kind::BracketClose
                | Kind::Semicolon
        ) || is_template && code.kind(at + 1) == Kind::Greater;
        let precedes = match code.kind(at - 1) {
            Kind::Word => !is_keyword(code.text(at - 1, text)),
            Kind::Star | Kind::And | Kind::AndAnd | Kind::Greater | Kind::Ellipsis => true,
            // `for (int i = 0, n = 4; …)`, `[n = 4]`, `[a, b]`
            Kind::Comma | Kind::BracketOpen => {
                matches!(code.kind(at + 1), Kind::Assign | Kind::Comma | Kind::BracketClose)
            }
            _ => false,
        };
        if follows && precedes {
            into.push(at);
        }
    }
}

/// Words that begin no declaration of a variable, and stand before no name.
pub(super) fn is_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"return"
            | b"else"
            | b"do"
            | b"if"
            | b"for"
            | b"while"
            | b"switch"
            | b"case"
            | b"default"
            | b"goto"
            | b"new"
            | b"delete"
            | b"throw"
            | b"using"
            | b"typedef"
            | b"template"
            | b"namespace"
            | b"class"
            | b"union"
            | b"enum"
            | b"operator"
            | b"friend"
            | b"sizeof"
            | b"break"
            | b"continue"
            | b"public"
            | b"private"
            | b"protected"
            | b"try"
            | b"catch"
            | b"asm"
            | b"static_assert"
            | b"co_return"
            | b"and"
            | b"or"
            | b"not"
    )
}

/// Words of which a type may have several.
fn is_type_word(word: &[u8]) -> bool {
    matches!(word, b"int" | b"unsigned" | b"signed" | b"long" | b"short" | b"char" | b"double")
}
