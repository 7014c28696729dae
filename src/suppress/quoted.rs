//! Strings of a source or of PTX: what stands in one is no comment.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

/// The strings of a text, quotes included, in order. One that no quote ends is over with its line.
pub(super) fn quoted(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    // Where one raw string has no end, the next are not asked: each would be searched for to the end of the text.
    let mut has_raw = true;
    while let Some(next) = next(text, at) {
        at = match text[next] {
            b'/' => behind_comment(text, next),
            b'\'' if is_separator(text, next) => next + 1,
            quote => {
                let raw = if has_raw { raw_end(text, next) } else { None };
                let end = match raw {
                    Some(Some(end)) => end,
                    other => {
                        has_raw &= other.is_none();
                        end(text, next, quote)
                    }
                };
                if quote == b'"' {
                    found.push(next..end);
                }
                end
            }
        };
    }
    found
}

/// The next byte that may begin a string, a character or a comment.
fn next(text: &[u8], from: usize) -> Option<usize> {
    memchr::memchr3(b'"', b'\'', b'/', text.get(from..)?).map(|at| from + at)
}

fn behind_comment(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    match rest.get(1) {
        Some(b'/') => at + memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()),
        Some(b'*') => at + memmem::find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4),
        _ => at + 1,
    }
}

/// Whether `'` stands between digits, or in a word.
fn is_separator(text: &[u8], at: usize) -> bool {
    at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_')
}

/// Behind the quote that ends what the one at `at` begins.
fn end(text: &[u8], at: usize, quote: u8) -> usize {
    let mut here = at + 1;
    while let Some(byte) = text.get(here) {
        match byte {
            b'\\' => here += 1,
            b'\n' | b'\r' => return here,
            byte if *byte == quote => return here + 1,
            _ => {}
        }
        here += 1;
    }
    text.len()
}

/// The same for `R"name(…)name"`, if it has an end.
fn raw_end(text: &[u8], at: usize) -> Option<Option<usize>> {
    /// Bytes of the longest name that the language allows.
    const NAME: usize = 16;
    let before = text[..at].strip_suffix(b"R")?;
    let prefix = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    matches!(&before[before.len() - prefix..], b"" | b"u8" | b"u" | b"U" | b"L").then_some(())?;
    let rest = &text[at + 1..];
    let open = memchr(b'(', &rest[..rest.len().min(NAME + 1)])?;
    let close = [b")", &rest[..open], b"\""].concat();
    Some(memmem::find(&rest[open..], &close).map(|found| at + 1 + open + found + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(text: &str) -> Vec<&str> {
        quoted(text.as_bytes()).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn strings_are_told_from_comments_and_characters() {
        assert_eq!(strings(r#"a("b // c", "d\"e") // "f" "#), [r#""b // c""#, r#""d\"e""#]);
        assert_eq!(strings("/* \" */ '\"' \"a\" 1'000 \"b\""), ["\"a\"", "\"b\""]);
        assert_eq!(strings("it's // \"a\"\n\"b\""), ["\"b\""]);
        assert_eq!(strings("\"a\n\"b\""), ["\"a", "\"b\""]);
        assert_eq!(strings("x = R\"y(\n// \" )\" )y\" + \"z\""), ["\"y(\n// \" )\" )y\"", "\"z\""]);
        assert_eq!(strings("/* \"a\""), [""; 0]);
    }
}
