//! Whether two lists of template arguments, as written in a source and as read off a symbol, are the same.

/// What is known of two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alike {
    /// They are the same.
    Same,
    /// They may be: one has names whose meaning is not known, or leaves the last ones out.
    Perhaps,
    /// They differ.
    Other,
}

/// Compares `written`, which may leave out the last arguments, with `whole`. Blanks do not count.
#[must_use]
pub fn alike(written: &[u8], whole: &[u8]) -> Alike {
    Arguments::of(written).alike(&Arguments::of(whole))
}

/// A list of template arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Each, and whether it means the same everywhere.
    all: Vec<(bool, Vec<u8>)>,
}

impl Arguments {
    /// The list that `text` is. Blanks do not count.
    #[must_use]
    pub fn of(text: &[u8]) -> Arguments {
        let one = |part: &[u8]| plain(part).map_or_else(|| (false, part.to_vec()), |plain| (true, plain));
        Arguments { all: list(&without_blanks(text)).into_iter().map(one).collect() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether all of them mean the same everywhere.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.all.iter().all(|(is_plain, _)| *is_plain)
    }

    /// What the first `length` of them have in common with all lists that are the same so far, and with no other.
    #[must_use]
    pub fn key(&self, length: usize) -> Vec<u8> {
        let mut key = Vec::new();
        for (is_plain, text) in self.all.iter().take(length) {
            key.push(if *is_plain { b'=' } else { b'?' });
            key.extend_from_slice(text);
            // No argument holds it.
            key.push(b'\n');
        }
        key
    }

    /// Compares a list as written, which may leave out the last arguments, with a `whole` one.
    #[must_use]
    pub fn alike(&self, whole: &Arguments) -> Alike {
        if self.len() > whole.len() {
            // A list of another template, or a pack that the symbol writes otherwise.
            return Alike::Perhaps;
        }
        let mut all = if self.len() == whole.len() { Alike::Same } else { Alike::Perhaps };
        for ((is_plain, one), (is_other_plain, other)) in self.all.iter().zip(&whole.all) {
            if *is_plain && *is_other_plain {
                if one != other {
                    return Alike::Other;
                }
            } else if is_plain != is_other_plain || one != other {
                // As written both times, which no alias of a type would be, is the same.
                all = Alike::Perhaps;
            }
        }
        all
    }
}

fn without_blanks(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// The arguments of a list.
fn list(text: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

/// An argument that means the same everywhere: a number, `true`, a built-in type or one of CUDA's; `None` for any other.
fn plain(text: &[u8]) -> Option<Vec<u8>> {
    if let Some(number) = number(text) {
        return Some(number.to_string().into_bytes());
    }
    let end = text.iter().rposition(|byte| !matches!(byte, b'*' | b'&')).map_or(0, |at| at + 1);
    let (name, pointers) = text.split_at(end);
    let known = TYPES.iter().find(|(names, _)| names.iter().any(|one| one.as_bytes() == name))?;
    Some([known.1.as_bytes(), pointers].concat())
}

/// Built-in types by all their names, without blanks.
const TYPES: [(&[&str], &str); 22] = [
    (&["true"], "1"),
    (&["false"], "0"),
    (&["void"], "void"),
    (&["bool"], "bool"),
    (&["char"], "char"),
    (&["signedchar", "int8_t"], "signedchar"),
    (&["unsignedchar", "uint8_t", "uchar"], "unsignedchar"),
    (&["short", "shortint", "int16_t"], "short"),
    (&["unsignedshort", "unsignedshortint", "uint16_t", "ushort"], "unsignedshort"),
    (&["int", "signed", "signedint", "int32_t"], "int"),
    (&["unsigned", "unsignedint", "uint32_t", "uint"], "unsignedint"),
    (&["longlong", "longlongint"], "longlong"),
    (&["unsignedlonglong", "unsignedlonglongint"], "unsignedlonglong"),
    (&["float"], "float"),
    (&["double"], "double"),
    (&["float2"], "float2"),
    (&["float4"], "float4"),
    (&["double2"], "double2"),
    (&["half", "__half"], "half"),
    (&["half2", "__half2"], "half2"),
    (&["nv_bfloat16", "__nv_bfloat16"], "bfloat16"),
    (&["nv_bfloat162", "__nv_bfloat162"], "bfloat162"),
];

/// The value of `128`, `8u`, `-1`, `0x10`, `1'024`, `(4)`.
fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let digits: String = digits.trim_end_matches(['u', 'U', 'l', 'L']).chars().filter(|c| *c != '\'').collect();
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse::<i64>().ok()?,
        None => return None,
    };
    Some(sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_same_only_where_every_argument_is_known_to_be() {
        for (written, whole, expected) in [
            ("float,4", "float,4", Alike::Same),
            ("unsigned int, 4", "unsignedint,4", Alike::Same),
            ("half,8u", "__half,8", Alike::Same),
            ("true", "true", Alike::Same),
            ("true", "1", Alike::Same),
            ("float", "float,4", Alike::Perhaps),
            ("T,4", "float,4", Alike::Perhaps),
            ("kBlock", "128", Alike::Perhaps),
            ("float,8", "float,4", Alike::Other),
            ("double,N", "float,4", Alike::Other),
            ("Policy<int>", "Policy<int>", Alike::Same),
            ("Policy<T>", "Policy<int>", Alike::Perhaps),
            ("float*", "float", Alike::Other),
            ("", "float", Alike::Perhaps),
        ] {
            assert_eq!(alike(written.as_bytes(), whole.as_bytes()), expected, "{written} {whole}");
        }
    }
}
