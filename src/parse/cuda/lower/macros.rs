//! Macros whose bodies are code: where one is named, or called with its arguments, that is what stands there.

use hashbrown::HashMap;

use super::super::aliases::Define;
use super::super::code::name_and_rest;
use super::super::lexer::{Kind, Token, partner, tokens};
use super::{Unit, emit, weigh};

/// Tokens of a body at most; a longer one is no short hand.
const LONGEST: usize = 64;

/// Bytes of one that is looked at.
const LONGEST_TEXT: usize = 1000;

/// Tokens of a call with its arguments at most.
const LONGEST_CALL: usize = 256;

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
    /// Tokens that it may still become.
    left: usize,
}

/// A macro where it is named: what it is defined as, and the tokens that this takes the place of.
struct Call<'c> {
    define: &'c Define,
    body: Vec<Token>,
    arguments: Vec<&'c [Token]>,
    length: usize,
}

impl<'u> Macros<'u> {
    pub(super) fn of(unit: &Unit<'u>) -> Macros<'u> {
        let text = unit.text;
        let mut by_name: HashMap<&[u8], Option<Define>> = HashMap::new();
        each_change(text, &mut |name, define| {
            by_name.entry(name).and_modify(|known| *known = None).or_insert(define);
        });
        // Constants have a value, whoever asks; and what CUDA itself has a function for is known better by its name.
        by_name.retain(|name, _| (unit.constants)(name).is_none() && !matches!(*name, b"min" | b"max" | b"abs"));
        Macros { text, by_name }
    }

    /// Whether there are some.
    pub(super) fn is_any(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// The tokens of a body with what its macros stand for, and where these are named.
    pub(super) fn expand(&self, body: Vec<Token>) -> (Vec<Token>, Vec<Use>) {
        if !(0..body.len()).any(|at| self.call(&body[at..], body[at].start).is_some()) {
            return (body, Vec::new());
        }
        let mut all = Vec::with_capacity(body.len() + LONGEST);
        let mut left = MOST_MORE;
        let mut uses = Vec::new();
        let mut at = 0;
        while let Some(token) = body.get(at) {
            let from = all.len();
            let mut named = Named { at: token.start, left: MOST.min(left) };
            match self.replace(&body[at..], &mut named, &mut Vec::new(), &mut all) {
                Some(length) => {
                    uses.push(Use { tokens: (from, all.len()), name: *token });
                    left = left.saturating_sub(all.len() - from);
                    at += length;
                }
                None => {
                    all.push(*token);
                    at += 1;
                }
            }
        }
        (all, uses)
    }

    /// Appends what the macro at the start of `tokens` stands for, if one is called there, and tells how many tokens that takes
    /// the place of. `open` are the macros whose bodies it stands in.
    fn replace(
        &self,
        tokens: &[Token],
        named: &mut Named,
        open: &mut Vec<&'u [u8]>,
        all: &mut Vec<Token>,
    ) -> Option<usize> {
        let name = tokens.first()?.of(self.text);
        if open.contains(&name) || open.len() == DEEPEST || named.left == 0 {
            return None;
        }
        let call = self.call(tokens, named.at)?;
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let mut replaced = Vec::with_capacity(argument.len());
            self.replace_all(argument, named, open, &mut replaced);
            arguments.push(replaced);
        }
        // Arguments may have become all that a name may become: what is called with them stays as it is.
        if named.left == 0 {
            return None;
        }
        let body = self.with_arguments(&call, &arguments);
        named.left = named.left.saturating_sub(body.len());
        open.push(name);
        self.replace_all(&body, named, open, all);
        open.pop();
        Some(call.length)
    }

    /// Appends `tokens`, with what their macros stand for.
    fn replace_all(&self, tokens: &[Token], named: &mut Named, open: &mut Vec<&'u [u8]>, all: &mut Vec<Token>) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += self.replace(&tokens[at..], named, open, all).unwrap_or_else(|| {
                all.push(*token);
                1
            });
        }
    }

    /// The body of a macro with its arguments in the places of its parameters.
    fn with_arguments(&self, call: &Call<'_>, arguments: &[Vec<Token>]) -> Vec<Token> {
        let parameters = call.define.arguments(self.text);
        let mut body = Vec::with_capacity(call.body.len());
        for token in &call.body {
            let word = token.of(self.text);
            match parameters.iter().position(|parameter| token.kind == Kind::Word && *parameter == word) {
                Some(at) => body.extend(arguments.get(at).into_iter().flatten()),
                None => body.push(*token),
            }
        }
        body
    }

    /// The macro that the first of `tokens` names at a byte of the file, where it is code; with its arguments, where it has
    /// parameters.
    fn call<'c>(&'c self, tokens: &'c [Token], at: u32) -> Option<Call<'c>> {
        let token = tokens.first().filter(|token| token.kind == Kind::Word)?;
        let define = self.by_name.get(token.of(self.text))?.as_ref()?;
        let (arguments, length) = match define.parameters {
            None => (Vec::new(), 1),
            Some(_) => self.arguments(define, tokens)?,
        };
        let body = self.body(define, at)?;
        Some(Call { define, body, arguments, length })
    }

    /// The arguments behind the name of a macro that has parameters, and how many tokens the call has.
    fn arguments<'c>(&self, define: &Define, tokens: &'c [Token]) -> Option<(Vec<&'c [Token]>, usize)> {
        tokens.get(1).filter(|token| token.kind == Kind::ParenOpen)?;
        let near = &tokens[..tokens.len().min(LONGEST_CALL)];
        let close = partner(near, 1)?;
        let mut arguments = Vec::new();
        let (mut depth, mut from) = (0_usize, 2);
        for at in 2..close {
            match near[at].kind {
                Kind::ParenOpen => depth += 1,
                Kind::ParenClose => depth = depth.saturating_sub(1),
                Kind::Comma if depth == 0 => {
                    arguments.push(&near[from..at]);
                    from = at + 1;
                }
                // A directive within a call is nothing that a reader would follow.
                Kind::Directive => return None,
                _ => {}
            }
        }
        arguments.push(&near[from..close]);
        (arguments.len() == define.arguments(self.text).len()).then_some((arguments, close + 1))
    }

    /// The body of a macro that is named at a byte of the file, where it is code.
    fn body(&self, define: &Define, at: u32) -> Option<Vec<Token>> {
        let (from, to) = define.body;
        // A macro holds from its definition on.
        (from < at as usize && to - from <= LONGEST_TEXT).then_some(())?;
        // What joins words or makes strings of them is nothing that stands in the text.
        let joins = define.parameters.is_some() && memchr::memchr(b'#', &self.text[from..to]).is_some();
        (!joins).then_some(())?;
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

/// The names of macros that may tell threads apart: a body that names one may do so, too.
pub(super) fn telling(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    each_change(text, &mut |name, define| {
        let body = define.map(|one| &text[one.body.0..one.body.1]);
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
    fn a_call_becomes_the_body_with_its_arguments() {
        assert_eq!(expanded("#define ODD(x) ((x) & 1)\nif (ODD(f(t, 2)))"), "if ( ( ( f ( t , 2 ) ) & 1 ) )");
        assert_eq!(
            expanded(
                "#define LOOP(i, n) for (int i = TID; i < (n); i += 32)\n#define TID threadIdx.x\nLOOP(k, m) a[k] = 0;"
            ),
            "for ( int k = threadIdx . x ; k < ( m ) ; k += 32 ) a [ k ] = 0 ;"
        );
        assert_eq!(expanded("#define LANE() (threadIdx.x % 32)\nLANE() + LANE"), "( threadIdx . x % 32 ) + LANE");
        // As the preprocessor does it: arguments first, and a body's own name is left.
        assert_eq!(expanded("#define A(x) (x + 1)\nA(A(y))"), "( ( y + 1 ) + 1 )");
        assert_eq!(expanded("#define A(x) B(x)\n#define B(x) A(x)\nA(y)"), "A ( y )");
        assert_eq!(expanded("#define TWICE(x) x x\n#define PAIR(x, y) TWICE(x) y\nPAIR(a, (b, c))"), "a a ( b , c )");
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
            "#define SYNC(x) wait(x)\nSYNC ( a , b )",
            "#define SYNC(x) wait(x)\nSYNC ( a",
            "#define JOIN(a, b) a##b\nJOIN ( x , y )",
            "#define SHOW(x) print(#x, x)\nSHOW ( y )",
            "#define ANY(...) f(__VA_ARGS__)\nANY ( a , b )",
            "#define max(a, b) ((a) > (b) ? (a) : (b))\nmax ( x , y )",
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
        let calls = "#define D(x) x x x x x x x x\n".to_owned() + &"D(".repeat(80) + "y" + &")".repeat(80);
        assert!(expanded(&calls).len() < 100_000, "{}", expanded(&calls).len());
        let deep: String = (0..50_000).map(|at| format!("#define M{at} M{}\n", at + 1)).collect();
        assert_eq!(expanded(&format!("{deep}M0")), "M16");
    }
}
