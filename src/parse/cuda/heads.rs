//! The heads of device functions: attributes on either side of the name, names that macros make, prototypes and bodies.

use std::ops::Range;

use super::aliases::{Aliases, TILE};
use super::code::Code;
use super::lexer::Kind;

/// Steps through a head, at most, of which all that stands in one pair of brackets is one: what is longer is no head.
const LONGEST: usize = 4000;

/// A function that runs on the device, as its head declares it. Everything is given by tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Whether it is `__global__`.
    pub is_kernel: bool,
    /// Whether it is `__tile_global__`.
    pub is_tile: bool,
    /// The identifier that names it.
    pub name: usize,
    /// From the first namespace or class of the name as written to the last of its arguments: `ns::k<float>`.
    pub written: Range<usize>,
    /// Whether a macro makes the name, of which `name` then is the macro.
    pub is_macro_made: bool,
    /// Whether it stands below a `template <…>` that has parameters.
    pub is_template: bool,
    /// What stands between the angles of the only one of these.
    pub template: Option<Range<usize>>,
    /// Whether it only names a kernel that is declared elsewhere: as a friend, or to be instantiated.
    pub is_mention: bool,
    /// What stands between the parentheses.
    pub parameters: Range<usize>,
    /// What stands between the braces, where a body follows.
    pub body: Option<Range<usize>>,
    /// All of it, from its first attribute or `template` to its last brace or semicolon.
    pub all: Range<usize>,
    /// Attributes that take figures: the words, before their parentheses.
    pub attributes: Vec<usize>,
    /// Whether a macro among the attributes may set bounds, so that none being seen says nothing.
    pub may_hide_bounds: bool,
}

/// The head that the attribute at token `at` is part of: of a function, whether it has a body or not. Where there is none,
/// the token at which that is certain.
pub(super) fn head(code: &Code, text: &[u8], aliases: &Aliases, at: usize, in_macro: bool) -> Result<Head, usize> {
    let mut reader = Reader {
        code,
        text,
        aliases,
        attributes: Vec::new(),
        may_hide_bounds: false,
        is_kernel: false,
        is_tile: false,
        is_mention: false,
        here: at,
        in_macro,
    };
    reader.note(at);
    let (start, template) = reader.before(at);
    let Some(mut found) = reader.after(at) else { return Err(reader.here) };
    found.all.start = start;
    found.is_template = !template.is_empty();
    found.template = <[Range<usize>; 1]>::try_from(template).ok().map(|[one]| one);
    found.is_kernel = reader.is_kernel;
    found.is_tile = reader.is_tile;
    found.is_mention = reader.is_mention && found.body.is_none();
    found.attributes = reader.attributes;
    found.attributes.sort_unstable();
    found.may_hide_bounds = reader.may_hide_bounds;
    Ok(found)
}

struct Reader<'h> {
    code: &'h Code,
    text: &'h [u8],
    aliases: &'h Aliases,
    attributes: Vec<usize>,
    may_hide_bounds: bool,
    is_kernel: bool,
    is_tile: bool,
    is_mention: bool,
    /// How far it was read.
    here: usize,
    in_macro: bool,
}

impl<'h> Reader<'h> {
    fn word(&self, at: usize) -> &'h [u8] {
        self.code.text(at, self.text)
    }

    /// Takes note of a word among the attributes.
    fn note(&mut self, at: usize) {
        let word = self.word(at);
        if takes_figures(word) {
            self.attributes.push(at);
            return;
        }
        let meaning = self.aliases.meaning(word);
        self.is_kernel |= meaning.global;
        self.is_tile |= word == TILE;
        // `template __global__ void k<4>();`, and not `A::template B<4>`: a template's own word is none of these.
        let instantiates = word == b"template" && (at == 0 || self.code.kind(at - 1) != Kind::Scope);
        self.is_mention |= meaning.friend || word == b"friend" || instantiates;
        self.may_hide_bounds |= meaning.bounds || names_bounds(word);
    }

    /// Reads back to the beginning: its first token, and its lists of template parameters that are not empty.
    fn before(&mut self, at: usize) -> (usize, Vec<Range<usize>>) {
        let mut start = at;
        let mut template = Vec::new();
        for _ in 0..LONGEST.min(at) {
            let Some(last) = start.checked_sub(1) else { break };
            match self.code.kind(last) {
                Kind::Word if matches!(self.word(last), b"public" | b"private" | b"protected") => break,
                Kind::Word => self.note(last),
                Kind::String | Kind::Scope | Kind::Star | Kind::And => {}
                Kind::ParenClose | Kind::BracketClose => match self.code.partner(last) {
                    Some(open) if open < last => {
                        start = open;
                        continue;
                    }
                    _ => break,
                },
                Kind::Greater => {
                    let Some(open) = self.code.open_angle(last) else { break };
                    if open > 0 && self.word(open - 1) == b"template" {
                        template.extend((open + 1 < last).then_some(open + 1..last));
                        start = open - 1;
                    } else {
                        start = open;
                    }
                    continue;
                }
                _ => break,
            }
            start = last;
        }
        // What a macro before it without `;` stands for is not known: `DEFINE(x) __global__ void k();` begins behind it.
        (start, template)
    }

    /// Reads on to the body or the end.
    fn after(&mut self, at: usize) -> Option<Head> {
        let code = self.code;
        let mut named: Option<Head> = None;
        let mut here = at + 1;
        let mut steps = 0;
        while here < code.tokens.len() && steps < LONGEST {
            steps += 1;
            self.here = here;
            match code.kind(here) {
                Kind::BraceOpen if named.is_some() => {
                    let mut head = named?;
                    let close = code.partner(here).filter(|close| *close > here);
                    head.body = Some(here + 1..close.unwrap_or(code.tokens.len()));
                    head.all.end = close.map_or(code.tokens.len(), |close| close + 1);
                    return Some(head);
                }
                Kind::Semicolon => {
                    let mut head = named?;
                    head.all.end = here + 1;
                    return Some(head);
                }
                Kind::Word => {
                    here = self.at_word(here, &mut named)?;
                    continue;
                }
                Kind::ParenOpen | Kind::BracketOpen => {
                    here = code.partner(here).filter(|close| *close > here)?;
                }
                Kind::Less => {
                    here = code.close_angle(here, here + LONGEST)?;
                }
                // `name##_f32`
                Kind::Hash => {}
                Kind::Arrow | Kind::Star | Kind::And | Kind::AndAnd | Kind::Scope | Kind::String | Kind::Ellipsis => {}
                // `= delete` and the like.
                Kind::Assign if named.is_some() => {}
                _ => return None,
            }
            here += 1;
        }
        // A macro may end before the body.
        named.filter(|_| self.in_macro && here >= code.tokens.len())
    }

    /// A word of the head: an attribute, part of a type, or the name. The token to go on with.
    fn at_word(&mut self, at: usize, named: &mut Option<Head>) -> Option<usize> {
        let code = self.code;
        let word = self.word(at);
        let mut behind = at + 1;
        if word != b"template"
            && code.kind(behind) == Kind::Less
            && let Some(close) = code.close_angle(behind, behind + LONGEST)
        {
            behind = close + 1;
        }
        let is_operator = word == b"operator";
        while is_operator && code.kind(behind) != Kind::ParenOpen && code.kind(behind) != Kind::Semicolon {
            behind += 1;
            if behind - at > 4 {
                return None;
            }
        }
        if code.kind(behind) != Kind::ParenOpen {
            self.note(at);
            return Some(behind);
        }
        if is_operator && code.partner(behind) == Some(behind + 1) && code.kind(behind + 2) == Kind::ParenOpen {
            behind += 2;
        }
        let close = code.partner(behind).filter(|close| *close > behind)?;
        if is_attribute(word) || self.aliases.meaning(word).bounds {
            self.note(at);
            return Some(close + 1);
        }
        if named.as_ref().is_some_and(|name| name.parameters.end + 1 == at && is_upper(word)) {
            // An attribute behind the parameters, unless what seemed to be a name was one before it.
            let before = named.as_ref().map_or(&b""[..], |name| self.word(name.name));
            if !is_upper(before) {
                return Some(close + 1);
            }
        }
        if let Some(before) = named.take() {
            self.note(before.name);
        }
        let mut parameters = behind + 1..close;
        let mut is_macro_made = false;
        let mut end = close + 1;
        if code.kind(end) == Kind::ParenOpen && !is_operator {
            let second = code.partner(end).filter(|second| *second > end)?;
            (parameters, is_macro_made, end) = (end + 1..second, true, second + 1);
        }
        let start = self.qualified(at);
        is_macro_made |= self.code.kind(at - 1) == Kind::Hash;
        let written_end = if is_macro_made && end != close + 1 { close + 1 } else { behind };
        let head = Head {
            is_kernel: false,
            is_tile: false,
            name: at,
            written: start..written_end,
            is_macro_made,
            is_template: false,
            template: None,
            is_mention: false,
            parameters,
            body: None,
            all: at..end,
            attributes: Vec::new(),
            may_hide_bounds: false,
        };
        *named = Some(head);
        Some(end)
    }

    /// The first token of the qualified name that ends with the word at `at`.
    fn qualified(&self, at: usize) -> usize {
        let mut start = at;
        // What a macro puts together.
        while start >= 2 && self.code.kind(start - 1) == Kind::Hash {
            start -= if self.code.kind(start - 2) == Kind::Word { 2 } else { 1 };
        }
        while start >= 2 && self.code.kind(start - 1) == Kind::Scope {
            let last = start - 2;
            start = match self.code.kind(last) {
                Kind::Word => last,
                Kind::Greater => match self.code.open_angle(last) {
                    Some(open) if open > 0 && self.code.kind(open - 1) == Kind::Word => open - 1,
                    _ => return start,
                },
                _ => return start,
            };
        }
        start
    }
}

/// Attributes whose figures say something about launches.
fn takes_figures(word: &[u8]) -> bool {
    matches!(word, b"__launch_bounds__" | b"__maxnreg__" | b"__cluster_dims__" | b"__block_size__")
}

/// What stands before parentheses in a head and is no name.
fn is_attribute(word: &[u8]) -> bool {
    takes_figures(word)
        || matches!(
            word,
            b"__attribute__"
                | b"__attribute"
                | b"__align__"
                | b"alignas"
                | b"__declspec"
                | b"decltype"
                | b"noexcept"
                | b"requires"
                | b"explicit"
                | b"__nv_pure__"
                | b"throw"
                | b"__launch_bounds"
                | b"__annotate__"
        )
}

/// Whether a macro of that name may set bounds of launches.
fn names_bounds(word: &[u8]) -> bool {
    let has = |what: &[u8]| word.windows(what.len()).any(|window| window.eq_ignore_ascii_case(what));
    is_upper(word) && (has(b"bounds") || has(b"launch") || has(b"occupancy") || has(b"maxnreg"))
}

/// Whether a word is spelled as macros are.
pub(super) fn is_upper(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_uppercase) && !word.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::super::conditions::Conditions;
    use super::*;

    fn read(text: &str, attribute: &str) -> Option<(Code, Head)> {
        let mut code = Code::default();
        code.read(text.as_bytes(), 0, text.len(), Conditions::default());
        let at = (0..code.tokens.len()).find(|at| code.text(*at, text.as_bytes()) == attribute.as_bytes())?;
        let head = head(&code, text.as_bytes(), &Aliases::default(), at, false).ok()?;
        Some((code, head))
    }

    fn name(text: &str) -> Option<String> {
        let (code, head) = read(text, "__global__")?;
        let words = head.written.map(|at| String::from_utf8_lossy(code.text(at, text.as_bytes())).into_owned());
        Some(words.collect())
    }

    #[test]
    fn the_name_is_found_among_attributes() {
        for (text, expected) in [
            ("__global__ void __launch_bounds__(128, 2) a(int* p) {}", "a"),
            ("__launch_bounds__(64) static __global__ void b() {}", "b"),
            ("template <> __global__ void e<float>(float* p) {}", "e<float>"),
            ("__global__ void __cluster_dims__(2,1,1) __maxnreg__(64) f() {}", "f"),
            ("__global__ BOUNDS(128) void j() {}", "j"),
            ("__global__ void NAME(m, _f32)(int n) {}", "NAME(m,_f32)"),
            ("__global__ void n(int);", "n"),
            ("__global__ void a::b<int>::k(int) {}", "a::b<int>::k"),
            ("__global__ void k(int a) ATTRIBUTE(x) {}", "k"),
            ("__global__ std::enable_if_t<(N > 1), void> k(int) {}", "k"),
            ("__global__ __attribute__((noinline)) void k(void (*f)(int)) {}", "k"),
        ] {
            assert_eq!(name(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_function_has_no_head() {
        for text in [
            "X(__global__, void)",
            "__global__",
            "__global__ void k(",
            "void f() { __global__ }",
            "__global__ int x = 3;",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
        assert!(read("__device__ int x[4];", "__device__").is_none());
        assert!(read("__device__ int x = f(3);", "__device__").is_none());
    }

    #[test]
    fn friends_and_instantiations_only_mention_a_kernel() {
        for (text, expected) in [
            ("friend __global__ void ns::k(int);", true),
            ("template <int N> friend __global__ void ns::k(int);", true),
            ("template __global__ void k<4>(int);", true),
            ("extern template __global__ void k<4>(int);", true),
            ("template <> __global__ void k<4>(int);", false),
            ("template <int N> __global__ void k(int);", false),
            ("__global__ void k(int);", false),
            ("friend __global__ void k(int) {}", false),
        ] {
            let head = read(text, "__global__").map(|(_, head)| head.is_mention);
            assert_eq!(head, Some(expected), "{text}");
        }
    }

    #[test]
    fn a_head_begins_with_its_first_attribute_or_template() {
        let text = "int x; template <int N> static __global__ void k() {} y";
        let (code, head) = read(text, "__global__").expect("a head");
        assert_eq!(code.text(head.all.start, text.as_bytes()), b"template");
        assert_eq!(code.text(head.all.end, text.as_bytes()), b"y");
        assert!(head.is_template && head.is_kernel);
    }
}
