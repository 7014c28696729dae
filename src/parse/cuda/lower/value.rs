//! What is known of the value of an expression.

/// The type of an integer. One that is narrower than an `int` stands in a register as the `int` that C++ makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

impl Type {
    /// The type that C++ computes with.
    pub(super) fn promoted(self) -> Type {
        if self.bytes() < 4 { Type::I32 } else { self }
    }

    pub(super) fn bytes(self) -> u32 {
        match self {
            Type::Bool | Type::I8 | Type::U8 => 1,
            Type::I16 | Type::U16 => 2,
            Type::I32 | Type::U32 => 4,
            Type::I64 | Type::U64 => 8,
        }
    }

    /// As PTX spells it.
    pub(super) fn name(self) -> &'static str {
        match self.promoted() {
            Type::U32 => "u32",
            Type::I64 => "s64",
            Type::U64 => "u64",
            _ => "s32",
        }
    }

    /// Without a sign: `b32`.
    pub(super) fn bits(self) -> &'static str {
        if self.is_wide() { "b64" } else { "b32" }
    }

    pub(super) fn is_wide(self) -> bool {
        self.bytes() == 8
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// Whether a variable of this type holds all values of another.
    pub(super) fn holds(self, other: Type) -> bool {
        match (self, other) {
            (one, two) if one == two => true,
            (Type::Bool, _) => false,
            (_, Type::Bool) => true,
            _ => self.bytes() > other.bytes() && (self.is_signed() || !other.is_signed()),
        }
    }

    /// The type in which C++ computes with two.
    pub(super) fn with(self, other: Type) -> Type {
        let (one, two) = (self.promoted(), other.promoted());
        match (one.is_wide(), two.is_wide()) {
            (true, false) => one,
            (false, true) => two,
            _ if one.is_signed() => two,
            _ => one,
        }
    }

    /// A constant as a variable of this type holds it.
    pub(super) fn wrapped(self, value: i64) -> i64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "this is what C++ does")]
        match self {
            Type::Bool => i64::from(value != 0),
            Type::I8 => i64::from(value as i8),
            Type::U8 => i64::from(value as u8),
            Type::I16 => i64::from(value as i16),
            Type::U16 => i64::from(value as u16),
            Type::I32 => i64::from(value as i32),
            Type::U32 => i64::from(value as u32),
            Type::I64 | Type::U64 => value,
        }
    }
}

/// A group of cooperative groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Block,
    /// So many neighbouring threads, a power of two.
    Tile(u32),
    Grid,
    /// One of which nothing is known.
    Other,
}

/// A vector with an x, y and z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vector {
    Thread,
    Block,
    BlockSize,
    GridSize,
}

/// The value of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing is known, not even whether it is the same for all threads.
    Unknown,
    Constant(i64, Type),
    /// A register `%v…`, and whether the index of the thread is in it.
    Register(u32, Type, bool),
    /// A register `%p…`, likewise.
    Predicate(u32, bool),
    Group(Group),
    Vector(Vector),
    /// A member of a parameter of the kernel, which is the same for all threads: the parameter, and a number for the member.
    Parameter(u32, u32),
}

impl Value {
    /// Whether the index of the thread decides it.
    pub(super) fn is_index(self) -> bool {
        matches!(self, Value::Register(_, _, true) | Value::Predicate(_, true))
    }
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) holds: Value,
    /// Nothing assigns to it.
    pub(super) is_constant: bool,
}

impl Variable {
    pub(super) const UNKNOWN: Variable = Variable { holds: Value::Unknown, is_constant: true };
}

/// What the words of a type name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Integer(Type),
    /// `auto`, or a name that is likely that of an integer: the type of what it is made of.
    Likely,
    Other,
}

/// The type that words name.
pub(super) fn named<'w>(words: impl Iterator<Item = &'w [u8]>) -> Named {
    let (mut is_unsigned, mut is_signed, mut longs, mut likely) = (false, false, 0, false);
    let mut kind = None;
    for word in words {
        match word {
            b"const" | b"constexpr" | b"volatile" | b"static" | b"register" | b"typename" | b"__restrict__"
            | b"__device__" | b"std" | b"cuda" => {}
            b"unsigned" => is_unsigned = true,
            b"signed" => is_signed = true,
            b"long" => longs += 1,
            b"int" => kind = kind.or(Some(Type::I32)),
            b"char" => kind = Some(Type::I8),
            b"short" => kind = Some(Type::I16),
            b"auto" => likely = true,
            _ => match of_one_word(word) {
                Some(known) => kind = Some(known),
                None if is_likely(word) => likely = true,
                None => return Named::Other,
            },
        }
    }
    let is_integer = kind.is_some() || is_unsigned || is_signed || longs > 0;
    let kind = if longs > 0 { Type::I64 } else { kind.unwrap_or(Type::I32) };
    match (is_integer, likely) {
        (true, _) if is_unsigned => Named::Integer(without_sign(kind)),
        (true, _) => Named::Integer(kind),
        (false, true) => Named::Likely,
        (false, false) => Named::Other,
    }
}

/// The integer type that one word names.
fn of_one_word(word: &[u8]) -> Option<Type> {
    Some(match word {
        b"bool" => Type::Bool,
        b"int8_t" => Type::I8,
        b"uint8_t" | b"uchar" | b"u8" => Type::U8,
        b"int16_t" | b"i16" => Type::I16,
        b"uint16_t" | b"ushort" | b"u16" => Type::U16,
        b"int32_t" | b"i32" => Type::I32,
        b"uint" | b"uint32_t" | b"u32" | b"uint_t" => Type::U32,
        b"int64_t" | b"ptrdiff_t" | b"ssize_t" | b"i64" => Type::I64,
        b"uint64_t" | b"size_t" | b"ulong" | b"uintptr_t" | b"u64" => Type::U64,
        _ => return None,
    })
}

fn without_sign(kind: Type) -> Type {
    match kind {
        Type::I8 => Type::U8,
        Type::I16 => Type::U16,
        Type::I32 => Type::U32,
        Type::I64 => Type::U64,
        other => other,
    }
}

/// Names that programs give to their types of indices.
fn is_likely(word: &[u8]) -> bool {
    let lower = word.to_ascii_lowercase();
    let has = |what: &[u8]| memchr::memmem::find(&lower, what).is_some();
    (has(b"index") || has(b"idx") || has(b"size") || has(b"offset")) && !has(b"float")
}

/// The value of an integer literal; `None` for a floating-point one.
pub(super) fn literal(text: &[u8]) -> Option<(i64, Type)> {
    let digits: Vec<u8> = text.iter().filter(|byte| **byte != b'\'').map(u8::to_ascii_lowercase).collect();
    let (radix, digits) = match digits.as_slice() {
        [b'0', b'x', rest @ ..] => (16, rest),
        [b'0', b'b', rest @ ..] => (2, rest),
        [b'0', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => (8, rest),
        all => (10, all),
    };
    let end = digits.iter().position(|byte| !char::from(*byte).is_digit(radix)).unwrap_or(digits.len());
    let suffix = &digits[end..];
    let is_unsigned = suffix.contains(&b'u');
    let longs = suffix.iter().filter(|byte| **byte == b'l').count();
    if end == 0 || suffix.len() != longs + usize::from(is_unsigned) {
        return None;
    }
    let value = u64::from_str_radix(std::str::from_utf8(&digits[..end]).ok()?, radix).ok()?;
    let kind = match (is_unsigned, longs > 0) {
        (false, false) if i32::try_from(value).is_ok() => Type::I32,
        (_, false) if u32::try_from(value).is_ok() && (is_unsigned || radix != 10) => Type::U32,
        (false, _) if i64::try_from(value).is_ok() => Type::I64,
        _ => Type::U64,
    };
    Some((value.cast_signed(), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_with_their_types() {
        for (text, expected) in [
            ("32", Some((32, Type::I32))),
            ("1'024U", Some((1024, Type::U32))),
            ("0xffffffff", Some((0xffff_ffff, Type::U32))),
            ("0x1Full", Some((31, Type::U64))),
            ("017", Some((15, Type::I32))),
            ("4294967296", Some((1 << 32, Type::I64))),
            ("0", Some((0, Type::I32))),
            ("1.5f", None),
            ("1e3", None),
            ("2.", None),
            ("1f", None),
        ] {
            assert_eq!(literal(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_words_of_a_type_tell_integers() {
        let of = |text: &'static str| named(text.split(' ').map(str::as_bytes));
        assert_eq!(of("const unsigned int"), Named::Integer(Type::U32));
        assert_eq!(of("unsigned long long"), Named::Integer(Type::U64));
        assert_eq!(of("std size_t"), Named::Integer(Type::U64));
        assert_eq!(of("unsigned char"), Named::Integer(Type::U8));
        assert_eq!(of("short int"), Named::Integer(Type::I16));
        assert_eq!(of("unsigned short"), Named::Integer(Type::U16));
        assert_eq!(of("const bool"), Named::Integer(Type::Bool));
        assert_eq!(of("auto"), Named::Likely);
        assert_eq!(of("IndexType"), Named::Likely);
        assert_eq!(of("float"), Named::Other);
        assert_eq!(of("long double"), Named::Other);
        assert_eq!(of("T"), Named::Other);
    }
}
