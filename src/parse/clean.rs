//! Undoes what terminals, browsers and loggers do to a line: colours, typographic quotes, HTML entities.
//!
//! Only a line that the plain reading did not understand comes here, so undamaged logs pay nothing.

/// Whether `line` holds a byte with which something starts that [`clean`] undoes.
pub(crate) fn may_need_it(line: &[u8]) -> bool {
    memchr::memchr3(0x1b, b'&', 0xe2, line).is_some() || memchr::memchr(0xc2, line).is_some()
}

/// Writes `line` to `clean` without ANSI escape sequences and with plain quotes; returns whether anything changed.
pub(crate) fn clean(line: &[u8], clean: &mut Vec<u8>) -> bool {
    clean.clear();
    let mut rest = line;
    while let Some(&byte) = rest.first() {
        let (consumed, replacement): (usize, &[u8]) = match byte {
            0x1b => (escape_sequence(rest), b""),
            0xe2 if rest.starts_with("‘".as_bytes()) || rest.starts_with("’".as_bytes()) => (3, b"'"),
            0xc2 if rest.starts_with("\u{a0}".as_bytes()) => (2, b" "),
            b'&' => entity(rest),
            _ => (1, &rest[..1]),
        };
        clean.extend_from_slice(replacement);
        rest = &rest[consumed..];
    }
    clean.as_slice() != line
}

/// Length of the escape sequence at the start of `text`: CSI (`ESC [ … letter`), OSC (`ESC ] … BEL`), or two bytes.
fn escape_sequence(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => text.iter().skip(2).position(|b| (0x40..=0x7e).contains(b)).map_or(text.len(), |end| end + 3),
        Some(b']') => text.iter().position(|b| *b == 0x07).map_or(text.len(), |end| end + 1),
        Some(_) => 2,
        None => 1,
    }
}

fn entity(text: &[u8]) -> (usize, &[u8]) {
    const ENTITIES: [(&[u8], &[u8]); 11] = [
        (b"&nbsp;", b" "),
        (b"&#160;", b" "),
        (b"&lsquo;", b"'"),
        (b"&rsquo;", b"'"),
        (b"&#39;", b"'"),
        (b"&#x27;", b"'"),
        (b"&apos;", b"'"),
        (b"&lt;", b"<"),
        (b"&gt;", b">"),
        (b"&amp;", b"&"),
        (b"&quot;", b"\""),
    ];
    ENTITIES
        .iter()
        .find(|(name, _)| text.starts_with(name))
        .map_or((1, &text[..1]), |(name, plain)| (name.len(), plain))
}

/// The line without a trailing `[C:\dir\x.vcxproj]`, which MSBuild appends to messages.
pub(crate) fn without_project(text: &[u8]) -> &[u8] {
    if !text.ends_with(b"proj]") {
        return text;
    }
    memchr::memmem::rfind(text, b" [").map_or(text, |at| text[..at].trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(line: &str) -> String {
        let mut out = Vec::new();
        clean(line.as_bytes(), &mut out);
        String::from_utf8(out).expect("clean text")
    }

    #[test]
    fn colours_quotes_and_entities_are_undone() {
        assert_eq!(cleaned("\x1b[1mptxas info\x1b[0m    : Used\x1b[K"), "ptxas info    : Used");
        assert_eq!(cleaned("\x1b]8;;file\x07link\x1b"), "link");
        assert_eq!(cleaned("function ‘k’ for &#39;sm_20&#39; &lt;3&gt; R&D"), "function 'k' for 'sm_20' <3> R&D");
        assert_eq!(cleaned("\x1b[31"), "");
    }

    #[test]
    fn only_the_project_suffix_goes() {
        assert_eq!(without_project(b"too much data [C:\\a b\\x.vcxproj]"), b"too much data");
        assert_eq!(without_project(b"364 bytes cmem[0]"), b"364 bytes cmem[0]");
    }
}
