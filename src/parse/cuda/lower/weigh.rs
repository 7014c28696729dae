//! What a call of a macro or a function of the same file costs: what its text costs where it stands in the caller.

use std::cell::RefCell;

use hashbrown::HashMap;
use memchr::memmem;

use super::super::lexer::{Kind, Token};
use super::emit::Output;
use super::follow::Lowering;
use super::{File, Unit};
use crate::model::{Jump, Way};
use crate::parse::ptx::{Body, Code, Op, Trips, weight};

/// What a call costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    /// Instructions of what can be seen.
    pub(super) known: u32,
    /// Calls in it of which nothing is known.
    pub(super) guesses: u32,
    /// Whether there is but one way through it, all of which is seen.
    pub(super) is_straight: bool,
}

impl Weight {
    /// That of a call of which nothing is known.
    pub(super) const GUESS: Weight = Weight { known: 0, guesses: 1, is_straight: false };
}

/// The weights of what a file defines, as far as they were asked for.
pub(super) struct Weights<'u> {
    /// The bytes of macros' bodies by name; of those that are defined more than once, `None`.
    macros: HashMap<&'u [u8], Option<(usize, usize)>>,
    known: RefCell<HashMap<&'u [u8], Weight>>,
}

/// A heavier one is no heavier for any report.
const MOST: u32 = 200;

/// Calls of which nothing is known that weigh as much.
const MOST_GUESSES: u32 = 10;

/// Loops within loops that are counted.
const NESTED: usize = 2;

/// What is to be done before a function can be weighed.
enum Step<'u> {
    /// Find out what it calls.
    Read(&'u [u8]),
    /// All that it calls is weighed.
    Weigh(&'u [u8]),
}

impl<'u> Weights<'u> {
    pub(super) fn new(unit: &Unit<'u>) -> Weights<'u> {
        let text = unit.text;
        let mut macros: HashMap<&[u8], Option<(usize, usize)>> = HashMap::new();
        for at in memmem::find_iter(text, b"define") {
            if let Some((name, body)) = defined(text, at) {
                macros.entry(name).and_modify(|known| *known = None).or_insert(Some(body));
            }
        }
        Weights { macros, known: RefCell::default() }
    }

    /// Whether a name is that of a macro with parameters.
    pub(super) fn defines(&self, name: &[u8]) -> bool {
        self.macros.contains_key(name)
    }

    /// What a call of `name` costs, of one that was learned.
    pub(super) fn of(&self, name: &[u8]) -> Weight {
        self.known.borrow().get(name).copied().unwrap_or(Weight::GUESS)
    }

    /// Weighs all that tokens name of what the file defines, and what that names in turn: each once, and those first that
    /// others call.
    pub(super) fn learn(&self, file: &File<'u>, tokens: &[Token]) {
        let mut open: Vec<Step<'u>> = self.named(file, tokens).map(Step::Read).collect();
        while let Some(step) = open.pop() {
            match step {
                Step::Read(name) => {
                    if self.known.borrow().contains_key(name) {
                        continue;
                    }
                    // What calls itself costs there what an unknown call does.
                    self.known.borrow_mut().insert(name, Weight::GUESS);
                    let Some((from, to)) = self.body(file, name) else { continue };
                    open.push(Step::Weigh(name));
                    open.extend(self.named(file, &file.tokens(&(from..to))).map(Step::Read));
                }
                Step::Weigh(name) => {
                    if let Some(weight) = self.weigh(file, name) {
                        self.known.borrow_mut().insert(name, weight);
                    }
                }
            }
        }
    }

    /// What tokens name of what the file defines, each as often as it is named.
    fn named<'n>(&'n self, file: &'n File<'u>, tokens: &'n [Token]) -> impl Iterator<Item = &'u [u8]> + 'n {
        let text = file.unit.text;
        let words = tokens.iter().filter(|token| token.kind == Kind::Word).map(move |token| token.of(text));
        words.filter(|name| self.macros.contains_key(name) || file.by_name.contains_key(name))
    }

    /// The bytes of the body that a name stands for, where it stands for one.
    fn body(&self, file: &File<'u>, name: &[u8]) -> Option<(usize, usize)> {
        match (self.macros.get(name), file.by_name.get(name)) {
            (Some(body), None) => *body,
            (None, Some(device)) => device.map(|device| (device.body.start, device.body.end)),
            _ => None,
        }
    }

    fn weigh(&self, file: &File<'u>, name: &[u8]) -> Option<Weight> {
        let (from, to) = self.body(file, name)?;
        let parameters = file.by_name.get(name).copied().flatten().map(|one| file.tokens(&one.parameters));
        let output = Lowering::alone(file, &(from..to), &parameters.unwrap_or_default())?;
        let weight = weight_of(&output)?;
        let tokens = file.tokens(&(from..to));
        let mut named = self.named(file, &tokens);
        let is_straight = weight.is_straight && named.all(|name| self.of(name).is_straight);
        Some(Weight { is_straight, ..weight })
    }
}

/// What the code of a function weighs, its loops counted as those of a side of a branch are.
fn weight_of(output: &Output) -> Option<Weight> {
    let mut text = Vec::with_capacity(output.text.len() + 64);
    output.write_body(&mut text);
    let mut body = Body::default();
    let flow = body.flow_of(&text, 0)?.clone();
    let code = Code::read(&text, 0, b"()", &flow, &mut body);
    let (mut all, mut guesses) = (0.0, 0.0);
    for (one, times) in code.instructions.iter().zip(times(&code)) {
        match one.op {
            Op::Call => guesses += times,
            _ => all += weight(&code, one) * times,
        }
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cut to what is small, and no less than 0"
    )]
    let whole = |weight: f64, most: u32| weight.round().clamp(0.0, f64::from(most)) as u32;
    let is_straight = guesses == 0.0 && code.flow.jumps.iter().all(goes_one_way);
    Some(Weight { known: whole(all, MOST), guesses: whole(guesses, MOST_GUESSES), is_straight })
}

/// Whether a jump leads on, whatever is computed.
fn goes_one_way(jump: &Jump) -> bool {
    !jump.guarded && !matches!(jump.way, Way::To(to) if to <= jump.at)
}

/// For each instruction how often it runs, as far as loops tell: one reaches from where something jumps back to, to the last that
/// does.
fn times(code: &Code<'_>) -> Vec<f64> {
    let mut loops: Vec<(u32, u32)> = code.back_jumps().collect();
    loops.sort_unstable_by_key(|(to, at)| (*to, std::cmp::Reverse(*at)));
    loops.dedup_by_key(|(to, _)| *to);
    let trips = Trips::new(code);
    let mut next = loops.into_iter().peekable();
    let mut open: Vec<(u32, f64)> = Vec::new();
    let mut times = Vec::with_capacity(code.instructions.len());
    for here in (0_u32..).take(code.instructions.len()) {
        while open.pop_if(|(at, _)| *at < here).is_some() {}
        while let Some((to, at)) = next.next_if(|(to, _)| *to == here) {
            open.push((at, trips.of(to, at)));
        }
        times.push(open.iter().rev().take(NESTED).map(|(_, trips)| trips).product());
    }
    times
}

/// The name of a macro with parameters, and the bytes of its body; `define` stands at `at`.
fn defined(text: &[u8], at: usize) -> Option<(&[u8], (usize, usize))> {
    let before = text[..at].iter().rposition(|byte| !matches!(byte, b' ' | b'\t'))?;
    (text[before] == b'#').then_some(())?;
    let rest = &text[at + b"define".len()..];
    let blanks = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let length = rest[blanks..].iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    let name = &rest[blanks..blanks + length];
    let list = blanks + length;
    (blanks > 0 && length > 0 && rest[list] == b'(').then_some(())?;
    let close = at + b"define".len() + list + memchr::memchr(b')', &rest[list..])?;
    Some((name, (close + 1, end_of_directive(text, close))))
}

/// The end of the line of a directive, with those that it goes on in.
pub(super) fn end_of_directive(text: &[u8], at: usize) -> usize {
    let mut end = at;
    loop {
        end += memchr::memchr(b'\n', &text[end..]).unwrap_or(text.len() - end);
        let is_spliced = text[at..end].trim_ascii_end_of_line().ends_with(b"\\") && end < text.len();
        if !is_spliced {
            return end;
        }
        end += 1;
    }
}

/// Cutting the end of a line.
trait Line {
    /// Without blanks at its end.
    fn trim_ascii_end_of_line(&self) -> &Self;
}

impl Line for [u8] {
    fn trim_ascii_end_of_line(&self) -> &[u8] {
        let blanks = self.iter().rev().take_while(|byte| matches!(byte, b'\r' | b' ' | b'\t')).count();
        &self[..self.len() - blanks]
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::lexer::tokens;
    use super::super::functions;
    use super::*;

    fn weight(text: &str, name: &str) -> Weight {
        let text = &format!("{text}\n{name}");
        let all = functions(text.as_bytes(), &[]);
        let unit = Unit { text: text.as_bytes(), name: "k.cu", functions: &all, constants: &|_| None };
        let file = File::new(&unit);
        let mut named = Vec::new();
        tokens(text.as_bytes(), text.len() - name.len(), text.len(), &mut named);
        file.weights.learn(&file, &named);
        file.weights.of(name.as_bytes())
    }

    fn known(known: u32) -> Weight {
        Weight { known, guesses: 0, is_straight: true }
    }

    #[test]
    fn macros_and_functions_cost_what_their_text_does() {
        let text = "#define F(x) x = x * 2 + \\\n  1;\n#define G(x) F(x) F(x) \\\r\n F(x)\n# define H(x) f(x)\n\
                    #define K(x) ((x) > 0 ? (x) : -(x))\n#define L(x) do { x[0] = x[1]; } while (0)\n\
                    __device__ int f(int x) { return x - 1; }\n#define TWICE(x) 1 + 1\n#define TWICE(x) 1\n";
        let of = |name| weight(text, name);
        assert_eq!((of("F"), of("G"), of("H"), of("f")), (known(3), known(9), known(1), known(1)));
        assert_eq!((of("K"), of("L")), (known(3), known(3)));
        assert_eq!((of("TWICE"), of("unknown")), (Weight::GUESS, Weight::GUESS));
    }

    #[test]
    fn loops_of_a_function_are_counted() {
        let body = "s[0] = s[1] * 2.f;";
        let text = |code: &str| format!("__device__ void f(float* s, int n) {{ {code} }}");
        let once = weight(&text(body), "f").known;
        let looped = |turns: &str| weight(&text(&format!("for (int i = 0; i < {turns}; i++) {{ {body} }}")), "f").known;
        for (turns, count) in [("n", 8), ("3", 3), ("12", 12)] {
            let looped = looped(turns);
            assert!((count * once..3 * count * once).contains(&looped), "{turns}: {once} {looped}");
        }
        assert_eq!(weight(&text(&format!("do {{ {body} }} while (0);")), "f").known, once);
    }

    #[test]
    fn what_calls_itself_or_others_without_end_is_weighed_once() {
        let circle = "#define A(x) B(x) + B(x)\n#define B(x) A(x) + A(x)\n";
        for name in ["A", "B"] {
            assert!((4..=MOST_GUESSES).contains(&weight(circle, name).guesses), "{name}");
        }
        let wide: String =
            (0..40).map(|at| format!("#define M{at}(x) {}\n", format!("M{}(x); ", at + 1).repeat(50))).collect();
        assert_eq!(weight(&wide, "M0"), Weight { guesses: MOST_GUESSES, ..Weight::GUESS });
        let deep: String =
            (0..20_000).map(|at| format!("__device__ int f{at}(int x) {{ return f{}(x) + 1; }}\n", at + 1)).collect();
        assert_eq!(weight(&deep, "f0"), Weight { known: MOST, ..Weight::GUESS });
    }
}
