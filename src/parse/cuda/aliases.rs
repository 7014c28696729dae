//! Macros that stand for `__global__`, `__device__` or launch bounds: without them, whole projects seem to have no kernel.

use hashbrown::HashMap;
use memchr::memmem;

use super::code::name_and_rest;
use super::lexer::{Kind, Token, tokens};
use crate::parse::needles::{Found, Needles};

/// What a macro stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Meaning {
    /// `__global__` is in it.
    pub global: bool,
    /// `__device__` is in it.
    pub device: bool,
    /// Bounds of launches are in it.
    pub bounds: bool,
    /// `friend` is in it.
    pub friend: bool,
}

impl Meaning {
    const GLOBAL: Meaning = Meaning { global: true, device: false, bounds: false, friend: false };
    const DEVICE: Meaning = Meaning { global: false, device: true, bounds: false, friend: false };

    fn and(self, other: Meaning) -> Meaning {
        Meaning {
            global: self.global || other.global,
            device: self.device || other.device,
            bounds: self.bounds || other.bounds,
            friend: self.friend || other.friend,
        }
    }
}

/// Macros of libraries whose headers a project includes without holding them.
const KNOWN: [(&str, Meaning); 13] = [
    ("RAFT_KERNEL", Meaning::GLOBAL),
    ("CUDF_KERNEL", Meaning::GLOBAL),
    ("_CCCL_KERNEL_ATTRIBUTES", Meaning::GLOBAL),
    ("CUTLASS_GLOBAL", Meaning::GLOBAL),
    ("GMX_KERNEL_ATTRIBUTE", Meaning::GLOBAL),
    ("C10_DEVICE", Meaning::DEVICE),
    ("C10_HOST_DEVICE", Meaning::DEVICE),
    ("CUTLASS_DEVICE", Meaning::DEVICE),
    ("CUTLASS_HOST_DEVICE", Meaning::DEVICE),
    ("CUTE_DEVICE", Meaning::DEVICE),
    ("CUTE_HOST_DEVICE", Meaning::DEVICE),
    ("_CCCL_DEVICE", Meaning::DEVICE),
    ("_CCCL_HOST_DEVICE", Meaning::DEVICE),
];

/// The attribute of a kernel that is written for a tile, and launched with one thread a block.
pub(super) const TILE: &[u8] = b"__tile_global__";

/// What a text must hold one of for more of it to be read, besides the names of macros.
const SIGNS: [&str; 8] = [
    "<<<",
    "<< <",
    "__global__",
    "__tile_global__",
    "__device__",
    "LaunchKernel",
    "LaunchCooperativeKernel",
    "triple_chevron",
];

/// The macros of a project.
#[derive(Debug, Clone)]
pub struct Aliases {
    names: HashMap<Box<[u8]>, Meaning>,
    finder: Option<Needles>,
}

impl Default for Aliases {
    fn default() -> Aliases {
        let names = KNOWN.iter().map(|(name, meaning)| (name.as_bytes().into(), *meaning)).collect();
        let mut aliases = Aliases { names, finder: None };
        aliases.build();
        aliases
    }
}

impl Aliases {
    /// Adds what files of a project define. Whether any is new, so that files read without it are to be read again where
    /// they hold its name. What stands for `__device__` alone counts in its own file only: whole libraries use such a name.
    pub fn add(&mut self, found: impl IntoIterator<Item = (Box<[u8]>, Meaning)>) -> bool {
        self.extend(found.into_iter().filter(|(_, meaning)| meaning.global || meaning.bounds))
    }

    /// Adds what a file defines, for itself.
    pub(super) fn extend(&mut self, found: impl IntoIterator<Item = (Box<[u8]>, Meaning)>) -> bool {
        let mut is_new = false;
        for (name, meaning) in found {
            let known = self.names.entry(name).or_default();
            is_new |= *known != known.and(meaning);
            *known = known.and(meaning);
        }
        if is_new {
            self.build();
        }
        is_new
    }

    /// What a word stands for.
    #[must_use]
    pub fn meaning(&self, word: &[u8]) -> Meaning {
        match word {
            b"__global__" | TILE => Meaning::GLOBAL,
            b"__device__" => Meaning::DEVICE,
            _ => self.names.get(word).copied().unwrap_or_default(),
        }
    }

    /// Whether a text may hold device code or a launch.
    #[must_use]
    pub fn may_be_in(&self, text: &[u8]) -> bool {
        self.finder.as_ref().is_none_or(|finder| finder.are_in(text))
    }

    /// What finds the names that `before` does not know, in files that were read with that: those are to be read again.
    #[must_use]
    pub fn newer_than(&self, before: &Aliases) -> NewNames {
        let new = self.names.iter().filter(|(name, meaning)| before.names.get(*name) != Some(meaning));
        let words: Vec<&[u8]> = new.map(|(name, _)| &**name).collect();
        NewNames(Needles::new(&words))
    }

    /// Where signs of device code and launches stand, by their first bytes.
    pub(super) fn places<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.finder.iter().flat_map(move |finder| finder.places(text)).map(|Found { start, end, .. }| (start, end))
    }

    fn build(&mut self) {
        let macros = self.names.iter().filter(|(_, meaning)| meaning.global || meaning.device);
        let mut words: Vec<&[u8]> = macros.map(|(name, _)| &**name).collect();
        words.extend(SIGNS.iter().map(|sign| sign.as_bytes()));
        // Of a name and the beginning of it the name counts.
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        self.finder = Needles::new(&words);
    }
}

/// Names of macros that became known after files were read.
#[derive(Debug, Clone)]
pub struct NewNames(Option<Needles>);

impl NewNames {
    /// Whether a text holds one of them.
    #[must_use]
    pub fn are_in(&self, text: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|finder| finder.are_in(text))
    }
}

/// What the macros that a text defines stand for. One that takes arguments stands for no `__global__`: what it is used
/// for cannot be told.
pub(super) fn find_aliases(text: &[u8], known: &Aliases) -> Vec<(Box<[u8]>, Meaning)> {
    let mut found = Vec::new();
    if memmem::find(text, b"define").is_none() {
        return found;
    }
    let mut body = Vec::new();
    for sign in [&b"__global__"[..], b"__device__", b"__launch_bounds__", b"__maxnreg__"] {
        let mut from = 0;
        while let Some(at) = memmem::find(&text[from..], sign) {
            from += at;
            if let Some(directive) = define_around(text, from) {
                found.extend(alias(directive, known, &mut body));
            }
            from += sign.len();
        }
    }
    found
}

/// The `#define` whose logical line holds the byte at `at`, where that is one.
fn define_around(text: &[u8], at: usize) -> Option<&[u8]> {
    const LONGEST: usize = 4096;
    let floor = at.saturating_sub(LONGEST);
    let mut start = at;
    loop {
        start = floor + memchr::memrchr(b'\n', &text[floor..start]).map_or(0, |newline| newline + 1);
        let before = text[floor..start].strip_suffix(b"\n").unwrap_or_default();
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        if start == floor || !before.ends_with(b"\\") {
            break;
        }
        start -= 1;
    }
    let mut end = at;
    loop {
        end += memchr::memchr(b'\n', &text[end..]).unwrap_or(text.len() - end);
        let own = &text[start..end];
        if end == text.len() || end - start > LONGEST || !own.strip_suffix(b"\r").unwrap_or(own).ends_with(b"\\") {
            break;
        }
        end += 1;
    }
    let line = text[start..end].trim_ascii_start();
    let (name, _) = name_and_rest(line);
    (line.starts_with(b"#") && name == b"define").then_some(line)
}

fn alias(directive: &[u8], known: &Aliases, body: &mut Vec<Token>) -> Option<(Box<[u8]>, Meaning)> {
    let definition = Define::of(directive, 0)?;
    body.clear();
    tokens(directive, definition.body.0, definition.body.1, body);
    meaning_of(directive, &definition, body, known).map(|meaning| (definition.name(directive).into(), meaning))
}

/// What a macro stands for: a few words, without anything that has a body itself.
pub(super) fn meaning_of(text: &[u8], define: &Define, body: &[Token], known: &Aliases) -> Option<Meaning> {
    const MOST_TOKENS: usize = 40;
    if body.len() > MOST_TOKENS || body.iter().any(|token| matches!(token.kind, Kind::BraceOpen | Kind::Semicolon)) {
        return None;
    }
    let mut meaning = Meaning::default();
    for token in body.iter().filter(|token| token.kind == Kind::Word) {
        match token.of(text) {
            b"__launch_bounds__" | b"__maxnreg__" => meaning.bounds = true,
            b"friend" => meaning.friend = true,
            word => meaning = meaning.and(known.meaning(word)),
        }
    }
    if define.parameters.is_some() {
        meaning.global = false;
        meaning.device = false;
    }
    (meaning != Meaning::default()).then_some(meaning)
}

/// The parts of a `#define`, by their bytes.
#[derive(Debug, Clone)]
pub(super) struct Define {
    name: (usize, usize),
    /// What stands between the parentheses of one that takes arguments.
    pub parameters: Option<(usize, usize)>,
    /// What it stands for.
    pub body: (usize, usize),
}

impl Define {
    /// Reads a directive that begins at byte `offset` of its file.
    pub(super) fn of(directive: &[u8], offset: usize) -> Option<Define> {
        let (name, rest) = name_and_rest(directive);
        if name != b"define" {
            return None;
        }
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let from = directive.len() - rest.len() + blanks;
        let length = rest[blanks..].iter().take_while(|byte| is_word(byte)).count();
        let end = from + length;
        if length == 0 {
            return None;
        }
        let mut parameters = None;
        let mut body = end;
        if directive.get(end) == Some(&b'(') {
            let close = end + memchr::memchr(b')', &directive[end..])?;
            parameters = Some((offset + end + 1, offset + close));
            body = close + 1;
        }
        Some(Define {
            name: (offset + from, offset + end),
            parameters,
            body: (offset + body, offset + directive.len()),
        })
    }

    /// The names of its arguments.
    pub(super) fn arguments<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        let Some((from, to)) = self.parameters else { return Vec::new() };
        text[from..to].split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect()
    }

    /// Its name.
    #[must_use]
    pub(super) fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.name.0..self.name.1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, Meaning)> {
        let all = find_aliases(text.as_bytes(), &Aliases::default());
        all.into_iter().map(|(name, meaning)| (String::from_utf8_lossy(&name).into_owned(), meaning)).collect()
    }

    #[test]
    fn a_macro_with_global_in_it_stands_for_a_kernel() {
        assert_eq!(found("#define MY_KERNEL __global__ static\n"), [("MY_KERNEL".to_owned(), Meaning::GLOBAL)]);
        assert_eq!(found("  #  define K \\\n  static \\\n __global__ void"), [("K".to_owned(), Meaning::GLOBAL)]);
    }

    #[test]
    fn macros_with_arguments_or_bodies_and_other_lines_are_no_aliases() {
        for text in [
            "#define K(x) __global__ void x",
            "#define K __global__ void k() {}",
            "// #define K __global__",
            "#ifdef __global__",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn bounds_are_known_of_macros_with_arguments_too() {
        let bounds = Meaning { bounds: true, ..Meaning::default() };
        assert_eq!(found("#define B(n) __launch_bounds__(n)"), [("B".to_owned(), bounds)]);
    }

    #[test]
    fn a_new_alias_is_noticed_once() {
        let mut aliases = Aliases::default();
        let before = aliases.clone();
        assert!(!aliases.may_be_in(b"KV i() {}"));
        assert!(aliases.add([(b"KV"[..].into(), Meaning::GLOBAL)]));
        assert!(!aliases.add([(b"KV"[..].into(), Meaning::GLOBAL)]));
        assert!(aliases.may_be_in(b"KV i() {}"));
        let new = aliases.newer_than(&before);
        assert!(new.are_in(b"KV i() {}") && !new.are_in(b"RAFT_KERNEL i() {}"));
    }
}
