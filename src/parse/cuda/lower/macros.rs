//! Macros without parameters whose bodies are code: where one is named, that is what stands there.

use hashbrown::HashMap;

use super::super::aliases::Define;
use super::super::code::name_and_rest;
use super::super::lexer::{Kind, Token, tokens};
use super::{Unit, emit, weigh};

/// Tokens of a body at most; a longer one is no short hand.
const LONGEST: usize = 64;

/// Bytes of one that is looked at.
const LONGEST_TEXT: usize = 1000;

/// Tokens that one name may become, with the macros that its body names, and those more that a function may have.
const MOST: usize = 512;
const MOST_MORE: usize = 1 << 16;

/// Macros within macros.
const DEEPEST: usize = 16;

/// Names that are looked for in every function.
const MOST_TELLING: usize = 64;

/// The macros of a file of which each is defined once, whatever `#if`s decide.
pub(super) struct Macros<'u> {
    text: &'u [u8],
    by_name: HashMap<&'u [u8], Option<Define>>,
}

/// Where a macro is named: its tokens in the body, and the bytes of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    /// The first token that it became, and the one behind the last.
    pub(super) tokens: (usize, usize),
    /// The name.
    pub(super) name: Token,
}

/// A name that is being replaced.
#[derive(Debug, Clone, Copy)]
struct Named {
    /// Its byte.
    at: u32,
    /// The tokens from which on nothing more is replaced.
    most: usize,
}

impl<'u> Macros<'u> {
    pub(super) fn of(unit: &Unit<'u>) -> Macros<'u> {
        let text = unit.text;
        let mut by_name: HashMap<&[u8], Option<Define>> = HashMap::new();
        each_change(text, &mut |name, define| {
            by_name.entry(name).and_modify(|known| *known = None).or_insert(define);
        });
        // Constants have a value, whoever asks.
        by_name.retain(|name, _| (unit.constants)(name).is_none());
        Macros { text, by_name }
    }

    /// Whether there are some.
    pub(super) fn is_any(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// The tokens of a body with what its macros stand for, and where these are named.
    pub(super) fn expand(&self, body: Vec<Token>) -> (Vec<Token>, Vec<Use>) {
        if !body.iter().any(|token| self.meaning(*token, token.start).is_some()) {
            return (body, Vec::new());
        }
        let mut all = Vec::with_capacity(body.len() + LONGEST);
        let mut left = MOST_MORE;
        let mut uses = Vec::new();
        for token in body {
            let from = all.len();
            let named = Named { at: token.start, most: from + MOST.min(left) };
            if self.put(token, named, &mut Vec::new(), &mut all) {
                uses.push(Use { tokens: (from, all.len()), name: token });
                left = left.saturating_sub(all.len() - from);
            }
        }
        (all, uses)
    }

    /// Appends what a token stands for; whether that is something else. `open` are the macros whose bodies it stands in.
    fn put(&self, token: Token, named: Named, open: &mut Vec<&'u [u8]>, all: &mut Vec<Token>) -> bool {
        let name = token.of(self.text);
        let is_open = open.contains(&name) || open.len() == DEEPEST || all.len() >= named.most;
        let Some(body) = self.meaning(token, named.at).filter(|_| !is_open) else {
            all.push(token);
            return false;
        };
        open.push(name);
        for inner in body {
            self.put(inner, named, open, all);
        }
        open.pop();
        true
    }

    /// The body of the macro that a token names at a byte of the file, where it is code.
    fn meaning(&self, token: Token, at: u32) -> Option<Vec<Token>> {
        let define = self.by_name.get(token.of(self.text)).filter(|_| token.kind == Kind::Word)?.as_ref()?;
        let (from, to) = define.body;
        // A macro holds from its definition on.
        (define.parameters.is_none() && from < at as usize && to - from <= LONGEST_TEXT).then_some(())?;
        let mut body = Vec::new();
        tokens(self.text, from, to, &mut body);
        let is_short = (1..=LONGEST).contains(&body.len());
        let is_code = body.iter().any(|token| token.kind == Kind::Word)
            && !body.iter().any(|token| matches!(token.of(self.text), b"_Pragma" | b"__attribute__" | b"__pragma"));
        (is_short && is_code && is_whole(&body)).then_some(body)
    }
}

/// Whether all brackets that open close.
fn is_whole(body: &[Token]) -> bool {
    let mut depth = 0_usize;
    for token in body {
        if token.kind.opens() {
            depth += 1;
        } else if token.kind.closes() {
            let Some(outer) = depth.checked_sub(1) else { return false };
            depth = outer;
        }
    }
    depth == 0
}

/// The names of macros without parameters that may tell threads apart: a body that names one may do so, too.
pub(super) fn telling(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    each_change(text, &mut |name, define| {
        let body = define.filter(|one| one.parameters.is_none()).map(|one| &text[one.body.0..one.body.1]);
        if found.len() < MOST_TELLING && body.is_some_and(emit::may_matter) {
            found.push(name);
        }
    });
    found
}

/// Calls `each` with every macro that is defined or undefined, and its definition where no `#if` decides about it.
fn each_change<'u>(text: &'u [u8], each: &mut dyn FnMut(&'u [u8], Option<Define>)) {
    let mut depth = 0_usize;
    let mut guard: Option<&[u8]> = None;
    for (at, own) in directives(text) {
        let (kind, rest) = name_and_rest(own);
        let before = guard.take();
        match kind {
            b"if" | b"ifdef" | b"ifndef" => {
                depth += 1;
                guard = (kind == b"ifndef" && depth == 1).then(|| first_word(rest));
            }
            b"endif" => depth = depth.saturating_sub(1),
            b"undef" => each(first_word(rest), None),
            b"define" => {
                let Some(define) = Define::of(own, at) else { continue };
                let name = define.name(text);
                // Around a whole file.
                if before == Some(name) && text[define.body.0..define.body.1].trim_ascii().is_empty() {
                    depth = 0;
                }
                each(name, Some(define).filter(|_| depth == 0));
            }
            _ => {}
        }
    }
}

/// The directives of a text, each with its first byte.
fn directives(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut line = 0;
    std::iter::from_fn(move || {
        while line < text.len() {
            let at = line + text[line..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            if text.get(at) == Some(&b'#') {
                let end = weigh::end_of_directive(text, at);
                line = end + 1;
                return Some((at, &text[at..end]));
            }
            line = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length + 1);
        }
        None
    })
}

fn first_word(text: &[u8]) -> &[u8] {
    text.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of the last line of a text.
    fn expanded(text: &str) -> String {
        let unit = Unit {
            text: text.as_bytes(),
            name: "k.cu",
            functions: &[],
            constants: &|name| (name == b"N").then_some(1),
        };
        let last = text.rfind('\n').map_or(0, |at| at + 1);
        let mut body = Vec::new();
        tokens(unit.text, last, text.len(), &mut body);
        let (all, _) = Macros::of(&unit).expand(body);
        all.iter().map(|token| String::from_utf8_lossy(token.of(unit.text))).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_name_becomes_what_it_is_defined_as() {
        assert_eq!(expanded("#define SYNC __syncthreads()\nSYNC;"), "__syncthreads ( ) ;");
        assert_eq!(
            expanded("# define TID threadIdx.x // mine\n#define FIRST (TID \\\n < 32)\nif (FIRST)"),
            "if ( ( threadIdx . x < 32 ) )"
        );
        assert_eq!(expanded("#ifndef K_H\n#define K_H\n#define SYNC wait();\nSYNC"), "wait ( ) ;");
        assert_eq!(expanded("#define A B\n#define B A + A\nA"), "A + A");
    }

    #[test]
    fn what_is_not_sure_or_no_code_stays() {
        for text in [
            "#define N 32 * M\nN",
            "#define FULL 0xffffffff\nFULL",
            "#define UNROLL _Pragma(\"unroll\")\nUNROLL",
            "#define MAYBE __attribute__((unused))\nMAYBE",
            "// \\ #define SYNC wait()\nSYNC",
            "#define BEGIN if (x) {\nBEGIN",
            "#define SYNC(x) wait(x)\nSYNC",
            "#define SYNC wait()\n#undef SYNC\nSYNC",
            "#define SYNC wait()\n#define SYNC other()\nSYNC",
            "#if X\n#define SYNC wait()\n#endif\nSYNC",
            "#ifndef SYNC\n#define SYNC wait()\n#endif\nSYNC",
        ] {
            assert_eq!(expanded(text), text.rsplit('\n').next().unwrap_or_default(), "{text}");
        }
        let wide: String =
            (0..40).map(|at| format!("#define M{at} {}\n", format!("M{} ", at + 1).repeat(50))).collect();
        assert!(expanded(&format!("{wide}M0")).len() < 10_000);
        assert!(expanded(&format!("{wide}{}", "M0 ".repeat(10_000))).len() < 1_000_000);
        let deep: String = (0..50_000).map(|at| format!("#define M{at} M{}\n", at + 1)).collect();
        assert_eq!(expanded(&format!("{deep}M0")), "M16");
    }
}
