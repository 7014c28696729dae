//! Records inside a quoted string: a field of a CSV table, a line of `docker logs` in JSON, a string of Python.

use memchr::memchr;

/// The lines of the string that begins with `text`, behind its quote; `None` where nothing shows that it is one.
pub(super) fn lines(text: &[u8]) -> Option<Vec<u8>> {
    // Nothing is undone that is not there.
    memchr::memchr2(b'"', b'\\', text)?;
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let (length, character) = match byte {
            b'"' if rest.starts_with(b"\"\"") => (2, Some('"')),
            b'"' => break,
            b'\\' => escape(rest),
            _ => (1, None),
        };
        match character {
            Some(character) => plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => plain.extend_from_slice(&rest[..length]),
        }
        rest = &rest[length..];
    }
    Some(plain)
}

/// Whether a line of a string begins behind `before`: it ends with the quote, or with an escaped line break.
pub(super) fn begins_line(before: &[u8]) -> bool {
    before.ends_with(b"\"") || ends_line(before)
}

/// Whether `text` ends with the escape of a line break.
pub(super) fn ends_line(text: &[u8]) -> bool {
    text.ends_with(b"\\n")
}

/// The length of the escape at the start of `text`, and what it stands for, if that is known.
fn escape(text: &[u8]) -> (usize, Option<char>) {
    let character = match text.get(1) {
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text).map_or((1, None), |character| (6, Some(character))),
        Some(same @ (b'"' | b'\'' | b'\\' | b'/')) => char::from(*same),
        _ => return (1, None),
    };
    (2, Some(character))
}

/// The character of `\u003c`.
fn unicode(text: &[u8]) -> Option<char> {
    let digits = std::str::from_utf8(text.get(2..6)?).ok()?;
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// What of `text` stands before the end of the string that it is in, or before an escape.
pub(super) fn up_to_end(text: &[u8]) -> &[u8] {
    let end = memchr(b'"', text).into_iter().chain(memchr(b'\\', text)).min();
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_quote_and_its_escapes_are_undone() {
        for (text, expected) in [
            (r#"a 'b'\n","stream":"stderr"}"#, Some("a 'b'\n")),
            (r#"a \'b\' \u003cc\u003e\\n"#, Some("a 'b' <c>\\n")),
            (r#"operator"""" b",1"#, Some(r#"operator"" b"#)),
            (r"a\x\u12", Some(r"a\x\u12")),
            ("a\\", Some("a\\")),
            ("a 'b'", None),
        ] {
            let found = lines(text.as_bytes()).map(|plain| String::from_utf8_lossy(&plain).into_owned());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
