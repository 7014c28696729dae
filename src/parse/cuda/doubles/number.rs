//! What is known of a number: its type, whether it varies, and the literals that it is made of.

use crate::parse::cuda::expr::Binary;
use crate::parse::cuda::value::number;

/// Whether a number is a literal of type `double`.
pub(super) fn is_double(spelled: &[u8]) -> bool {
    memchr::memchr3(b'.', b'e', b'E', spelled).is_some()
        && constant(spelled, 0).is_some_and(|one| one.width == Width::Double)
}

/// The type of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    Whole,
    Single,
    Double,
}

/// What is known when compiling, and the literals of type `double` that it is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Constant {
    pub(super) value: f64,
    pub(super) width: Width,
    pub(super) literals: Vec<usize>,
}

impl Constant {
    /// Whether a `float` holds it.
    #[allow(clippy::cast_possible_truncation, reason = "whether anything is lost is the question")]
    #[allow(clippy::float_cmp, reason = "it is the same or not")]
    pub(super) fn is_single(&self) -> bool {
        f64::from(self.value as f32) == self.value
    }

    /// Whether an operation with it, on the left or on the right, may be none.
    #[allow(clippy::float_cmp, reason = "0 and 1 are exact")]
    pub(super) fn is_neutral(&self, op: Binary) -> bool {
        let size = self.value.abs();
        size == 0.0 || size == 1.0 && matches!(op, Binary::Multiply)
    }

    pub(super) fn with(mut self, op: Binary, other: Constant) -> Option<Constant> {
        let width = self.width.max(other.width);
        let value = match op {
            Binary::Add => self.value + other.value,
            Binary::Subtract => self.value - other.value,
            Binary::Multiply => self.value * other.value,
            Binary::Divide if width == Width::Whole => (self.value / other.value).trunc(),
            Binary::Divide => self.value / other.value,
            _ => return None,
        };
        self.literals.extend(other.literals);
        #[allow(clippy::cast_possible_truncation, reason = "this is how C++ rounds")]
        let value = if width == Width::Single { f64::from(value as f32) } else { value };
        value.is_finite().then_some(Constant { value, width, literals: self.literals })
    }
}

/// A number as C++ spells it, unless its suffix asks for a type that is none of these.
pub(super) fn constant(spelled: &[u8], at: usize) -> Option<Constant> {
    let is_hexadecimal = spelled.starts_with(b"0x") || spelled.starts_with(b"0X");
    if is_hexadecimal || memchr::memchr3(b'.', b'e', b'E', spelled).is_none() {
        #[allow(clippy::cast_precision_loss, reason = "larger ones are no matter")]
        return number(spelled).map(|value| Constant {
            value: value as f64,
            width: Width::Whole,
            literals: Vec::new(),
        });
    }
    let text: Vec<u8> = spelled.iter().filter(|byte| **byte != b'\'').copied().collect();
    let (digits, width) = match text.strip_suffix(b"f").or_else(|| text.strip_suffix(b"F")) {
        Some(digits) => (digits, Width::Single),
        None => (&text[..], Width::Double),
    };
    let value = std::str::from_utf8(digits).ok()?.parse::<f64>().ok().filter(|value| value.is_finite())?;
    #[allow(clippy::cast_possible_truncation, reason = "this is how C++ rounds")]
    let value = if width == Width::Single { f64::from(value as f32) } else { value };
    let literals = if width == Width::Double { vec![at] } else { Vec::new() };
    Some(Constant { value, width, literals })
}

/// What a variable is, or a value: as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Float,
    Whole,
    /// `float2` and the like.
    Vector,
    Other,
}

/// A variable, or what a pointer or array leads to, so many steps away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Typed {
    pub(super) base: Base,
    pub(super) steps: usize,
    /// Whether its value is known at run time only. What is not certain is not.
    pub(super) varies: bool,
}

/// A value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Constant(Constant),
    Typed(Typed),
    /// An operation on a `float` and a constant that a `float` holds: of double precision unless it becomes a `float`.
    Once(Vec<usize>),
    /// A whole number that varies, with a literal: of type `double`.
    Mixed(Vec<usize>),
    /// Computed in double precision.
    Double,
}

pub(super) const UNKNOWN: Value = Value::Typed(Typed { base: Base::Other, steps: 0, varies: false });

impl Value {
    pub(super) fn typed(base: Base, varies: bool) -> Value {
        Value::Typed(Typed { base, steps: 0, varies })
    }

    pub(super) fn varies(&self) -> bool {
        match self {
            Value::Constant(_) => false,
            Value::Typed(typed) => typed.varies,
            Value::Once(_) | Value::Mixed(_) | Value::Double => true,
        }
    }

    /// The base of a value that is no pointer.
    pub(super) fn base(&self) -> Option<Base> {
        match self {
            Value::Typed(Typed { base, steps: 0, .. }) => Some(*base),
            _ => None,
        }
    }

    pub(super) fn is_float_that_varies(&self) -> bool {
        self.base() == Some(Base::Float) && self.varies()
    }
}

pub(super) fn base_of(word: &[u8]) -> Base {
    match word {
        b"float" => Base::Float,
        b"float2" | b"float3" | b"float4" => Base::Vector,
        b"int" | b"unsigned" | b"signed" | b"long" | b"short" | b"char" | b"uint" | b"size_t" | b"int32_t"
        | b"uint32_t" | b"int64_t" | b"uint64_t" | b"int16_t" | b"uint16_t" | b"int8_t" | b"uint8_t" => Base::Whole,
        _ => Base::Other,
    }
}
