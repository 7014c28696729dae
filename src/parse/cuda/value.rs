//! Values of expressions: a number, a number that depends on constants of other files, or nothing that is known.

use super::expr::{Binary, Unary};

/// A whole number, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Term {
    /// It is this.
    Known(i64),
    /// It follows from constants that the file does not define.
    Open(Box<Open>),
    /// It is what a function makes of ones and of nothing else, which is not known, and stands for one of what is counted.
    OfOne,
    /// Nothing is known of it.
    #[default]
    Unknown,
}

/// How a number follows from constants of other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Open {
    /// The constant itself.
    Name(Box<[u8]>),
    /// Of one operand.
    Unary(Unary, Term),
    /// Of two operands.
    Binary(Binary, Term, Term),
    /// The smaller (or larger) of two.
    Extreme(Extreme, Term, Term),
    /// The second or the third, as the first says.
    Choice(Term, Term, Term),
    /// Stored in so many bits, besides a sign.
    Fits(u32, Term),
}

/// Which of two is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says it")]
pub(super) enum Extreme {
    Smallest,
    Largest,
}

/// One or three numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    One(Term),
    /// `dim3`
    Three([Term; 3]),
}

impl Value {
    pub(super) const UNKNOWN: Value = Value::One(Term::Unknown);

    /// As a number; a `dim3` is none.
    pub(super) fn term(self) -> Term {
        match self {
            Value::One(term) => term,
            Value::Three(_) => Term::Unknown,
        }
    }

    /// As dimensions; of a number, the others are 1.
    pub(super) fn dimensions(self) -> [Term; 3] {
        match self {
            Value::One(Term::Unknown) => Default::default(),
            Value::One(Term::OfOne) => [Term::OfOne, Term::OfOne, Term::OfOne],
            Value::One(Term::Known(number)) => [Term::Known(number), Term::Known(1), Term::Known(1)],
            // What is not known may be a `dim3` after all.
            Value::One(open) => {
                let one = Term::choice(open.clone(), || Term::Known(1), || Term::Known(1));
                [open, one.clone(), one]
            }
            Value::Three(all) => all,
        }
    }
}

impl Term {
    /// The number, if it is known.
    #[must_use]
    pub(super) fn known(&self) -> Option<i64> {
        match self {
            Term::Known(number) => Some(*number),
            _ => None,
        }
    }

    /// The constant of another file.
    pub(super) fn name(name: &[u8]) -> Term {
        Term::Open(Box::new(Open::Name(name.into())))
    }

    pub(super) fn unary(op: Unary, of: Term) -> Term {
        match of {
            Term::Known(number) => unary(op, number).map_or(Term::Unknown, Term::Known),
            Term::Unknown | Term::OfOne => Term::Unknown,
            open => Term::Open(Box::new(Open::Unary(op, open))),
        }
    }

    pub(super) fn binary(op: Binary, left: Term, right: Term) -> Term {
        match (left, right) {
            (Term::Known(left), Term::Known(right)) => binary(op, left, right).map_or(Term::Unknown, Term::Known),
            (Term::Unknown | Term::OfOne, _) | (_, Term::Unknown | Term::OfOne) => Term::Unknown,
            (left, right) => Term::Open(Box::new(Open::Binary(op, left, right))),
        }
    }

    pub(super) fn extreme(which: Extreme, left: Term, right: Term) -> Term {
        match (left, right) {
            (Term::Known(left), Term::Known(right)) => Term::Known(match which {
                Extreme::Smallest => left.min(right),
                Extreme::Largest => left.max(right),
            }),
            (Term::Unknown | Term::OfOne, _) | (_, Term::Unknown | Term::OfOne) => Term::Unknown,
            (left, right) => Term::Open(Box::new(Open::Extreme(which, left, right))),
        }
    }

    pub(super) fn choice(condition: Term, yes: impl FnOnce() -> Term, no: impl FnOnce() -> Term) -> Term {
        match condition {
            Term::Known(0) => no(),
            Term::Known(_) => yes(),
            Term::Unknown | Term::OfOne => Term::Unknown,
            open => match (yes(), no()) {
                (Term::Unknown | Term::OfOne, _) | (_, Term::Unknown | Term::OfOne) => Term::Unknown,
                (yes, no) => Term::Open(Box::new(Open::Choice(open, yes, no))),
            },
        }
    }

    /// Stored in a variable of so many bits, besides a sign: unknown where it does not fit.
    pub(super) fn fits(self, bits: u32) -> Term {
        match self {
            Term::Known(number) if number.unsigned_abs() >> bits.min(63) != 0 => Term::Unknown,
            Term::Open(open) if bits < 31 => Term::Open(Box::new(Open::Fits(bits, Term::Open(open)))),
            other => other,
        }
    }

    /// With what `constant` says of each name; unknown where that says nothing.
    #[must_use]
    pub(super) fn settled(&self, constant: &mut dyn FnMut(&[u8]) -> Option<i64>) -> Option<i64> {
        let open = match self {
            Term::Known(number) => return Some(*number),
            Term::Unknown | Term::OfOne => return None,
            Term::Open(open) => open,
        };
        match &**open {
            Open::Name(name) => constant(name),
            Open::Unary(op, of) => unary(*op, of.settled(constant)?),
            Open::Binary(op, left, right) => binary(*op, left.settled(constant)?, right.settled(constant)?),
            Open::Extreme(which, left, right) => {
                let (left, right) = (Term::Known(left.settled(constant)?), Term::Known(right.settled(constant)?));
                Term::extreme(*which, left, right).known()
            }
            Open::Choice(condition, yes, no) => {
                if condition.settled(constant)? != 0 { yes } else { no }.settled(constant)
            }
            Open::Fits(bits, of) => Term::Known(of.settled(constant)?).fits(*bits).known(),
        }
    }
}

fn unary(op: Unary, of: i64) -> Option<i64> {
    match op {
        Unary::Plus => Some(of),
        Unary::Minus => of.checked_neg(),
        Unary::Not => Some(i64::from(of == 0)),
        Unary::Complement => Some(!of),
        Unary::Dereference | Unary::AddressOf | Unary::Increment | Unary::Decrement => None,
    }
}

fn binary(op: Binary, left: i64, right: i64) -> Option<i64> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 63);
    match op {
        Binary::Add => left.checked_add(right),
        Binary::Subtract => left.checked_sub(right),
        Binary::Multiply => left.checked_mul(right),
        Binary::Divide => left.checked_div(right),
        Binary::Remainder => left.checked_rem(right),
        Binary::ShiftLeft => left.checked_mul(1_i64.checked_shl(shift()?)?),
        Binary::ShiftRight => left.checked_shr(shift()?),
        Binary::And => Some(left & right),
        Binary::Or => Some(left | right),
        Binary::ExclusiveOr => Some(left ^ right),
        Binary::LogicalAnd => Some(i64::from(left != 0 && right != 0)),
        Binary::LogicalOr => Some(i64::from(left != 0 || right != 0)),
        Binary::Equal => Some(i64::from(left == right)),
        Binary::NotEqual => Some(i64::from(left != right)),
        Binary::Less => Some(i64::from(left < right)),
        Binary::LessEqual => Some(i64::from(left <= right)),
        Binary::Greater => Some(i64::from(left > right)),
        Binary::GreaterEqual => Some(i64::from(left >= right)),
        Binary::Comma => None,
    }
}

/// The value of a whole number as C++ spells it, with separators and a suffix.
pub(super) fn number(spelled: &[u8]) -> Option<i64> {
    let text: Vec<u8> = spelled.iter().filter(|byte| **byte != b'\'').map(u8::to_ascii_lowercase).collect();
    let suffix = text.iter().rev().take_while(|byte| matches!(byte, b'u' | b'l' | b'z')).count();
    let digits = &text[..text.len() - suffix];
    let (digits, base) = match digits {
        [b'0', b'x', digits @ ..] => (digits, 16),
        [b'0', b'b', digits @ ..] => (digits, 2),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    i64::from_str_radix(std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with(['+', '-']))?, base).ok()
}

/// Bytes of a value of a built-in type, where that is the same everywhere.
pub(super) fn size_of(name: &[u8]) -> Option<u32> {
    let (base, lanes) = match name {
        [base @ .., lanes @ b'1'..=b'4'] if is_vector_base(base) => (base, lanes - b'0'),
        _ => (name, 1),
    };
    let one = match base {
        b"bool" | b"char" | b"unsigned char" | b"signed char" | b"int8_t" | b"uint8_t" | b"uchar" => 1,
        b"short" | b"unsigned short" | b"int16_t" | b"uint16_t" | b"ushort" | b"half" | b"__half"
        | b"__nv_bfloat16" | b"short int" | b"nv_bfloat16" => 2,
        b"int" | b"unsigned" | b"unsigned int" | b"uint" | b"float" | b"int32_t" | b"uint32_t" | b"signed int"
        | b"half2" | b"__half2" | b"__nv_bfloat162" | b"nv_bfloat162" => 4,
        b"double"
        | b"long long"
        | b"unsigned long long"
        | b"long long int"
        | b"unsigned long long int"
        | b"int64_t"
        | b"uint64_t"
        | b"longlong"
        | b"ulonglong"
        | b"size_t"
        | b"cuDoubleComplex_part" => 8,
        b"cuFloatComplex" | b"cufftComplex" | b"cuComplex" => 8,
        b"cuDoubleComplex" | b"cufftDoubleComplex" => 16,
        _ => return None,
    };
    Some(one * u32::from(lanes))
}

/// Whether a word with 1 to 4 behind it is one of CUDA's vectors.
fn is_vector_base(base: &[u8]) -> bool {
    matches!(
        base,
        b"char"
            | b"uchar"
            | b"short"
            | b"ushort"
            | b"int"
            | b"uint"
            | b"float"
            | b"double"
            | b"longlong"
            | b"ulonglong"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_base_with_separators_and_suffixes() {
        for (text, expected) in [
            ("1024U", Some(1024)),
            ("1'024", Some(1024)),
            ("0x100u", Some(256)),
            ("0b101", Some(5)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("256ull", Some(256)),
            ("1.0", None),
            ("1e3", None),
            ("0x", None),
            ("08", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_would_overflow_or_divide_by_zero_is_unknown() {
        let known = Term::Known;
        assert_eq!(Term::binary(Binary::Divide, known(1), known(0)), Term::Unknown);
        assert_eq!(Term::binary(Binary::Multiply, known(i64::MAX), known(2)), Term::Unknown);
        assert_eq!(Term::binary(Binary::ShiftLeft, known(1), known(70)), Term::Unknown);
        assert_eq!(known(300).fits(8), Term::Unknown);
    }

    #[test]
    fn an_open_term_is_settled_by_its_constants() {
        let open = Term::binary(Binary::Multiply, Term::name(b"W"), Term::Known(4));
        assert_eq!(open.settled(&mut |name| (name == b"W").then_some(32)), Some(128));
        assert_eq!(open.settled(&mut |_| None), None);
    }

    #[test]
    fn sizes_of_builtin_types_and_vectors_are_known() {
        for (name, bytes) in [
            ("float", Some(4)),
            ("float4", Some(16)),
            ("double2", Some(16)),
            ("uchar", Some(1)),
            ("long", None),
            ("T", None),
            ("half2", Some(4)),
        ] {
            assert_eq!(size_of(name.as_bytes()), bytes, "{name}");
        }
    }
}
