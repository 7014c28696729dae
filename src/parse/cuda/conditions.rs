//! Conditions of `#if`: what they say where a CUDA compiler of today reads the text, as far as that is certain.
//!
//! What is asked for AMD's GPUs does not hold there, and versions of CUDA begin with the first that knows sm_70: older ones are
//! compiled by nobody whom a finding would help.

use hashbrown::HashSet;

use super::code::name_and_rest;
use super::lexer::{Kind, Token, partner, tokens};
use super::value::number;

/// The oldest version of CUDA that is thought of.
const OLDEST_CUDA: i64 = 9;

/// The first architecture whose lanes run independently.
const OLDEST_ARCH: i64 = 700;

/// Brackets within one another, at most.
const DEEPEST: u32 = 32;

/// Who reads the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Either compiler of a project: that for the host, or that for the GPU.
    Any,
    /// The compiler of device code, for sm_70 or later.
    Device,
}

/// What is known of names in the conditions of a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Conditions {
    /// The text is for AMD's GPUs: then nothing is known.
    pub(super) is_hip: bool,
    /// Names that the text defines itself, of those that would be known.
    own: HashSet<Box<[u8]>>,
}

impl Conditions {
    /// Those of a text for CUDA, or for HIP.
    pub(super) fn new(is_hip: bool) -> Conditions {
        Conditions { is_hip, own: HashSet::new() }
    }

    /// Those of a whole text, whatever it defines, and wherever.
    pub(super) fn of(text: &[u8], is_hip: bool) -> Conditions {
        let mut conditions = Conditions::new(is_hip);
        for at in memchr::memmem::find_iter(text, b"define") {
            let before = text[..at].trim_ascii_end();
            if before.ends_with(b"#") {
                conditions.define(&text[at + b"define".len()..]);
            }
        }
        conditions
    }

    /// Takes note of a `#define`.
    pub(super) fn define(&mut self, rest: &[u8]) {
        let name = word(rest.trim_ascii_start());
        let names = Names { conditions: self, reader: Reader::Device };
        if names.known(name).is_some() {
            self.own.insert(name.into());
        }
    }

    /// What the condition of `#if`, `#ifdef`, `#elif` and the like says, by the text of the directive.
    pub(super) fn says(&self, directive: &[u8], reader: Reader) -> Option<bool> {
        let (name, rest) = name_and_rest(directive);
        let names = Names { conditions: self, reader };
        match name {
            b"if" | b"elif" => names.condition(rest),
            b"ifdef" | b"elifdef" => names.is_defined(word(rest.trim_ascii_start())),
            b"ifndef" | b"elifndef" => names.is_defined(word(rest.trim_ascii_start())).map(|is_defined| !is_defined),
            _ => None,
        }
    }
}

/// The word that a text begins with.
pub(super) fn word(text: &[u8]) -> &[u8] {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    &text[..text.iter().take_while(|byte| is_word(byte)).count()]
}

/// A whole number between two others, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Between(i64, i64);

impl Between {
    const ANY: Between = Between(i64::MIN, i64::MAX);

    fn of(says: Option<bool>) -> Between {
        says.map_or(Between(0, 1), |says| Between(i64::from(says), i64::from(says)))
    }

    /// Whether it is true as a condition.
    fn says(self) -> Option<bool> {
        match self {
            Between(0, 0) => Some(false),
            Between(low, high) if low > 0 || high < 0 => Some(true),
            _ => None,
        }
    }

    /// Whether it is less than another.
    fn is_below(self, other: Between) -> Option<bool> {
        if self.1 < other.0 {
            return Some(true);
        }
        (self.0 >= other.1).then_some(false)
    }

    fn equals(self, other: Between) -> Option<bool> {
        if self.1 < other.0 || other.1 < self.0 {
            return Some(false);
        }
        (self.0 == self.1 && self == other).then_some(true)
    }
}

/// What a name is worth that a compiler defines, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    is_defined: Option<bool>,
    value: Between,
}

struct Names<'c> {
    conditions: &'c Conditions,
    reader: Reader,
}

impl Names<'_> {
    fn known(&self, name: &[u8]) -> Option<Known> {
        if self.conditions.is_hip || self.conditions.own.contains(name) {
            return None;
        }
        let is_device = self.reader == Reader::Device;
        let from = |low: i64, is_defined: Option<bool>| Some(Known { is_defined, value: Between(low, i64::MAX) });
        match name {
            // A header has to define the first two.
            b"CUDA_VERSION" | b"CUDART_VERSION" => from(OLDEST_CUDA * 1000, None),
            b"__CUDACC_VER_MAJOR__" => from(OLDEST_CUDA, is_device.then_some(true)),
            b"__CUDA_ARCH__" if is_device => from(OLDEST_ARCH, Some(true)),
            b"__CUDACC__" if is_device => Some(Known { is_defined: Some(true), value: Between::ANY }),
            _ if is_of_amd(name) => Some(Known { is_defined: Some(false), value: Between(0, 0) }),
            _ => None,
        }
    }

    fn is_defined(&self, name: &[u8]) -> Option<bool> {
        self.known(name)?.is_defined
    }

    fn condition(&self, text: &[u8]) -> Option<bool> {
        let mut found = Vec::new();
        tokens(text, 0, text.len(), &mut found);
        let mut parser = Parser { names: self, text, tokens: &found, at: 0, depth: 0 };
        let value = parser.either()?;
        if parser.at == found.len() { value.says() } else { None }
    }
}

/// Whether a macro by its name tells that the text is compiled for AMD's GPUs.
fn is_of_amd(name: &[u8]) -> bool {
    let parts = || name.split(|byte| *byte == b'_');
    let is_for_cuda = parts().any(|part| matches!(part, b"NVIDIA" | b"NVCC" | b"CUDA"));
    !is_for_cuda && parts().any(|part| matches!(part, b"ROCM" | b"HIP" | b"HIPCC" | b"AMDGCN" | b"AMDGPU"))
}

/// Reads a condition, as long as it is made of comparisons; anything else makes it unknown.
struct Parser<'p> {
    names: &'p Names<'p>,
    text: &'p [u8],
    tokens: &'p [Token],
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn kind(&self) -> Option<Kind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn takes(&mut self, kind: Kind) -> bool {
        let is_next = self.kind() == Some(kind);
        self.at += usize::from(is_next);
        is_next
    }

    /// Conditions with `||` between them.
    fn either(&mut self) -> Option<Between> {
        let mut all = self.both()?;
        while self.takes(Kind::OrOr) {
            let says = match (all.says(), self.both()?.says()) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            all = Between::of(says);
        }
        Some(all)
    }

    /// Conditions with `&&` between them.
    fn both(&mut self) -> Option<Between> {
        let mut all = self.comparison()?;
        while self.takes(Kind::AndAnd) {
            let says = match (all.says(), self.comparison()?.says()) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            all = Between::of(says);
        }
        Some(all)
    }

    fn comparison(&mut self) -> Option<Between> {
        let left = self.operand()?;
        let Some(how) = self.kind().filter(|kind| {
            matches!(
                kind,
                Kind::Less | Kind::LessEqual | Kind::Greater | Kind::GreaterEqual | Kind::Equal | Kind::NotEqual
            )
        }) else {
            return Some(left);
        };
        self.at += 1;
        let right = self.operand()?;
        let not = |says: Option<bool>| says.map(|says| !says);
        Some(Between::of(match how {
            Kind::Less => left.is_below(right),
            Kind::Greater => right.is_below(left),
            Kind::LessEqual => not(right.is_below(left)),
            Kind::GreaterEqual => not(left.is_below(right)),
            Kind::Equal => left.equals(right),
            _ => not(left.equals(right)),
        }))
    }

    fn operand(&mut self) -> Option<Between> {
        let mut is_not = false;
        let mut is_inverted = false;
        while self.takes(Kind::Not) {
            is_not = true;
            is_inverted = !is_inverted;
        }
        let value = self.primary()?;
        Some(if is_not { Between::of(value.says().map(|says| says != is_inverted)) } else { value })
    }

    fn primary(&mut self) -> Option<Between> {
        let token = *self.tokens.get(self.at)?;
        self.at += 1;
        match token.kind {
            Kind::Number => number(token.of(self.text)).map(|value| Between(value, value)),
            Kind::ParenOpen => {
                self.depth += 1;
                let value = if self.depth > DEEPEST { None } else { self.either() };
                self.depth -= 1;
                value.filter(|_| self.takes(Kind::ParenClose))
            }
            Kind::Word if token.of(self.text) == b"defined" => self.defined(),
            Kind::Word => Some(self.name(token.of(self.text))),
            _ => None,
        }
    }

    /// `X` or `(X)` behind `defined`.
    fn defined(&mut self) -> Option<Between> {
        let is_bracketed = self.takes(Kind::ParenOpen);
        let name = self.tokens.get(self.at).filter(|token| token.kind == Kind::Word)?;
        self.at += 1;
        let says = self.names.is_defined(name.of(self.text));
        (!is_bracketed || self.takes(Kind::ParenClose)).then_some(Between::of(says))
    }

    /// A name, which may be a macro that is given something.
    fn name(&mut self, name: &[u8]) -> Between {
        if self.kind() == Some(Kind::ParenOpen) {
            self.at = partner(self.tokens, self.at).map_or(self.tokens.len(), |close| close + 1);
            return Between::ANY;
        }
        match name {
            b"true" => Between(1, 1),
            b"false" => Between(0, 0),
            _ => self.names.known(name).map_or(Between::ANY, |known| known.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(directive: &str, reader: Reader) -> Option<bool> {
        Conditions::default().says(directive.as_bytes(), reader)
    }

    fn both(directive: &str) -> [Option<bool>; 2] {
        [Reader::Any, Reader::Device].map(|reader| says(directive, reader))
    }

    const YES: [Option<bool>; 2] = [Some(true); 2];
    const NO: [Option<bool>; 2] = [Some(false); 2];
    const UNKNOWN: [Option<bool>; 2] = [None; 2];

    #[test]
    fn numbers_decide() {
        for (text, expected) in [
            ("#if 0", NO),
            ("#if 1 // on", YES),
            ("#  if (0)", NO),
            ("#if !0", YES),
            ("#elif true", YES),
            ("#if 0 && X", NO),
            ("#if X || 1", YES),
            ("#if X", UNKNOWN),
            ("#ifdef X", UNKNOWN),
            ("#if 2 + 2 == 4", UNKNOWN),
            ("#if", UNKNOWN),
            ("#if __has_include(<x.h>)", UNKNOWN),
            ("#if F(1, (2)) && 0", NO),
        ] {
            assert_eq!(both(text), expected, "{text}");
        }
    }

    #[test]
    fn versions_of_cuda_before_sm_70_are_nobodys() {
        for (text, expected) in [
            ("#if CUDA_VERSION < 9000", NO),
            ("#if (CUDART_VERSION >= 9000)", YES),
            ("#if 9000 <= CUDA_VERSION", YES),
            ("#if __CUDACC_VER_MAJOR__ < 9", NO),
            ("#if defined(CUDA_VERSION) && CUDA_VERSION < 9000", NO),
            ("#if defined CUDART_VERSION && CUDART_VERSION >= 9000", UNKNOWN),
            ("#if !defined(CUDA_VERSION) || CUDA_VERSION < 9000", UNKNOWN),
            ("#if CUDA_VERSION < 8000 || CUDA_VERSION == 7050", NO),
            ("#if CUDA_VERSION < 11000", UNKNOWN),
            ("#if CUDA_VERSION >= 12000", UNKNOWN),
            ("#if CUDA_VERSION <= 9000", UNKNOWN),
            ("#if CUDA_VERSION", YES),
        ] {
            assert_eq!(both(text), expected, "{text}");
        }
    }

    #[test]
    fn the_architecture_is_known_of_device_code_alone() {
        for (text, expected) in [
            ("#if __CUDA_ARCH__ < 700", Some(false)),
            ("#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 700", Some(false)),
            ("#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 300)", Some(true)),
            ("#if __CUDA_ARCH__ >= 800", None),
            ("#ifdef __CUDA_ARCH__", Some(true)),
            ("#ifndef __CUDACC__", Some(false)),
            ("#if !defined(__CUDACC__)", Some(false)),
        ] {
            assert_eq!(both(text), [None, expected], "{text}");
        }
    }

    #[test]
    fn what_is_for_amd_is_not_for_cuda() {
        for name in ["USE_ROCM", "USE_AMD_ROCM", "USE_HIP", "TENSORFLOW_USE_ROCM", "__HIP_PLATFORM_AMD__", "__HIPCC__"]
        {
            assert_eq!(both(&format!("#ifdef {name}")), NO, "{name}");
            assert_eq!(both(&format!("#ifndef {name} // x")), YES, "{name}");
            assert_eq!(both(&format!("#if {name} > 1 || defined({name})")), NO, "{name}");
        }
        for name in ["__HIP_PLATFORM_NVIDIA__", "__HIP_PLATFORM_NVCC__", "SHIPPING", "_M_AMD64", "CHIP"] {
            assert_eq!(both(&format!("#ifdef {name}")), UNKNOWN, "{name}");
        }
    }

    #[test]
    fn nothing_is_known_of_what_a_text_for_hip_asks_or_a_text_defines() {
        let mut own = Conditions::default();
        own.define(b" USE_HIP 1");
        assert_eq!(own.says(b"#ifdef USE_HIP", Reader::Any), None);
        assert_eq!(own.says(b"#ifdef USE_ROCM", Reader::Any), Some(false));
        assert_eq!(Conditions::new(true).says(b"#ifdef USE_ROCM", Reader::Any), None);
        assert_eq!(Conditions::new(true).says(b"#if 0", Reader::Any), Some(false));
    }

    #[test]
    fn brackets_without_end_are_nothing_that_is_known() {
        assert_eq!(both(&format!("#if {}1", "(".repeat(10_000))), UNKNOWN);
        assert_eq!(both(&format!("#if {}1{}", "(".repeat(10_000), ")".repeat(10_000))), UNKNOWN);
        assert_eq!(both(&format!("#if {}0", "!".repeat(10_000))), NO);
    }
}
