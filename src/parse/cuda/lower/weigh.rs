//! What a call of a macro or a function of the same file costs, by the operators of its body.

use std::cell::RefCell;

use hashbrown::HashMap;
use memchr::memmem;

use super::super::lexer::{Kind, tokens};
use super::{Device, Unit};

/// The weights of what a file defines, as far as they were asked for.
pub(super) struct Weights<'u> {
    text: &'u [u8],
    /// The bytes of macros' bodies by name; of those that are defined more than once, `None`.
    macros: HashMap<&'u [u8], Option<(usize, usize)>>,
    known: RefCell<HashMap<&'u [u8], u32>>,
}

/// What a call of which nothing is known costs.
pub(super) const CALL: u32 = 20;

/// A heavier one is no heavier for any report.
const MOST: u32 = 200;

/// Bodies within bodies that are looked at.
const DEEPEST: u32 = 4;

impl<'u> Weights<'u> {
    pub(super) fn new(unit: &Unit<'u>) -> Weights<'u> {
        let text = unit.text;
        let mut macros: HashMap<&[u8], Option<(usize, usize)>> = HashMap::new();
        for at in memmem::find_iter(text, b"define") {
            if let Some((name, body)) = defined(text, at) {
                macros.entry(name).and_modify(|known| *known = None).or_insert(Some(body));
            }
        }
        Weights { text, macros, known: RefCell::default() }
    }

    /// What a call of `name` costs; `device` is the function of the file that it names.
    pub(super) fn of(
        &self,
        name: &'u [u8],
        device: Option<&'u Device>,
        devices: &HashMap<&'u [u8], Option<&'u Device>>,
    ) -> u32 {
        self.weigh(name, device, devices, 0)
    }

    fn weigh(
        &self,
        name: &'u [u8],
        device: Option<&'u Device>,
        devices: &HashMap<&'u [u8], Option<&'u Device>>,
        depth: u32,
    ) -> u32 {
        if let Some(known) = self.known.borrow().get(name) {
            return *known;
        }
        let body = match (self.macros.get(name), device) {
            (Some(body), None) => *body,
            (None, Some(device)) => Some((device.body.start, device.body.end)),
            _ => None,
        };
        let Some((from, to)) = body.filter(|(from, to)| depth < DEEPEST && to - from < 1 << 14) else { return CALL };
        // What calls itself costs what an unknown call does.
        self.known.borrow_mut().insert(name, CALL);
        let mut all = Vec::new();
        tokens(self.text, from, to, &mut all);
        let mut weight = 0_u32;
        for (at, token) in all.iter().enumerate() {
            let is_called = all.get(at + 1).is_some_and(|next| next.kind == Kind::ParenOpen);
            weight += match token.kind {
                Kind::Word if is_called => {
                    let inner = token.of(self.text);
                    let device = devices.get(inner).copied().flatten();
                    match inner {
                        b"if" | b"for" | b"while" | b"switch" | b"return" | b"sizeof" => 0,
                        _ if device.is_some() || self.macros.contains_key(inner) => {
                            self.weigh(inner, device, devices, depth + 1)
                        }
                        _ if inner.starts_with(b"__") => 1,
                        _ => CALL,
                    }
                }
                Kind::Plus | Kind::Minus | Kind::Star | Kind::Slash | Kind::Percent | Kind::BracketOpen => 1,
                Kind::PlusAssign | Kind::MinusAssign | Kind::StarAssign | Kind::SlashAssign | Kind::Question => 1,
                Kind::Less | Kind::Caret | Kind::ShiftLeft | Kind::PlusPlus | Kind::Equal | Kind::NotEqual => 1,
                _ => 0,
            };
            if weight > MOST {
                break;
            }
        }
        let weight = weight.clamp(1, MOST);
        self.known.borrow_mut().insert(name, weight);
        weight
    }
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
    use super::super::functions;
    use super::*;

    fn weight(text: &str, name: &'static str) -> u32 {
        let all = functions(text.as_bytes(), &[]);
        let unit = Unit { text: text.as_bytes(), name: "k.cu", functions: &all, constants: &|_| None };
        let weights = Weights::new(&unit);
        let name_of = |device: &Device| &text.as_bytes()[device.name.clone()];
        let devices: HashMap<&[u8], Option<&Device>> = all.iter().map(|one| (name_of(one), Some(one))).collect();
        weights.of(name.as_bytes(), devices.get(name.as_bytes()).copied().flatten(), &devices)
    }

    #[test]
    fn macros_and_functions_cost_what_their_operators_do() {
        let text = "#define F(x) x = x * 2 + \\\n  1;\n#define G(x) F(x) F(x) \\\r\n F(x)\n# define H(x) f(x)\n\
                    __device__ int f(int x) { return x - 1; }\n#define TWICE(x) 1 + 1\n#define TWICE(x) 1\n";
        assert_eq!((weight(text, "F"), weight(text, "G"), weight(text, "H"), weight(text, "f")), (2, 6, 1, 1));
        assert_eq!((weight(text, "TWICE"), weight(text, "unknown")), (CALL, CALL));
    }

    #[test]
    fn what_calls_itself_or_others_without_end_is_weighed_once() {
        let circle = "#define A(x) B(x) + B(x)\n#define B(x) A(x) + A(x)\n";
        assert_eq!(weight(circle, "A"), 2 * (2 * CALL + 1) + 1);
        let wide: String =
            (0..40).map(|at| format!("#define M{at}(x) {}\n", format!("M{}(x) ", at + 1).repeat(50))).collect();
        assert_eq!(weight(&wide, "M0"), MOST);
    }
}
