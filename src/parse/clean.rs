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
        let (consumed, character) = match byte {
            0x1b => {
                rest = &rest[escape_sequence(rest)..];
                continue;
            }
            0xe2 if rest.starts_with("‘".as_bytes()) || rest.starts_with("’".as_bytes()) => (3, Some('\'')),
            0xc2 if rest.starts_with("\u{a0}".as_bytes()) => (2, Some(' ')),
            b'&' => entity(rest).map_or((1, None), |(length, character)| (length, Some(character))),
            _ => (1, None),
        };
        match character.map(plain) {
            Some(character) => clean.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => clean.push(byte),
        }
        rest = &rest[consumed..];
    }
    clean.as_slice() != line
}

/// What a terminal shows for `character`.
fn plain(character: char) -> char {
    match character {
        '\u{a0}' => ' ',
        '‘' | '’' => '\'',
        other => other,
    }
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

/// The length of the entity at the start of `text`, and the character that it stands for.
fn entity(text: &[u8]) -> Option<(usize, char)> {
    const LONGEST: usize = 10;
    let name = &text[1..=text.iter().take(LONGEST).position(|b| *b == b';')?.checked_sub(1)?];
    let character = match name {
        b"nbsp" => '\u{a0}',
        b"lsquo" => '‘',
        b"rsquo" => '’',
        b"sbquo" => '‚',
        b"ldquo" => '“',
        b"rdquo" => '”',
        b"bdquo" => '„',
        b"prime" => '′',
        b"acute" => '´',
        b"grave" => '`',
        b"apos" => '\'',
        b"quot" => '"',
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        _ => numbered(name.strip_prefix(b"#")?)?,
    };
    Some((name.len() + 2, character))
}

/// The character of the number in `&#039;` or `&#x27;`.
fn numbered(digits: &[u8]) -> Option<char> {
    let (digits, radix) = match digits {
        [b'x' | b'X', hex @ ..] => (hex, 16),
        _ => (digits, 10),
    };
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    char::from_u32(number).filter(|character| !character.is_control())
}

/// What people and programs write for a plain quote: typography, its UTF-8 read as another encoding, an escape.
const QUOTES: [&str; 19] =
    ["\"", "`", "\\'", "\\\"", "‘", "’", "‚", "‛", "“", "”", "„", "‟", "′", "″", "´", "â€˜", "â€™", "â€œ", "â€\u{9d}"];

/// Writes `text` to `plain` with a plain quote wherever it has another; returns whether it has. For texts only in which a
/// plain quote is missed: those that a name or another sentence has of its own are no damage.
pub(crate) fn plain_quotes(text: &[u8], plain: &mut Vec<u8>) -> bool {
    plain.clear();
    let mut at = 0;
    while at < text.len() {
        match quote(text, at) {
            Some(length) => {
                plain.push(b'\'');
                at += length;
            }
            None => {
                plain.push(text[at]);
                at += 1;
            }
        }
    }
    plain.as_slice() != text
}

/// The length of the quote at `at`.
fn quote(text: &[u8], at: usize) -> Option<usize> {
    let byte = text[at];
    if byte.is_ascii_alphanumeric() || byte == b' ' {
        return None;
    }
    if (0x91..=0x94).contains(&byte) {
        // In Windows-1252 a quote by itself, in UTF-8 never without bytes like it.
        let is_ascii = |at: Option<usize>| at.and_then(|at| text.get(at)).is_none_or(u8::is_ascii);
        return (is_ascii(at.checked_sub(1)) && is_ascii(at.checked_add(1))).then_some(1);
    }
    QUOTES.iter().find(|quote| text[at..].starts_with(quote.as_bytes())).map(|quote| quote.len())
}

/// Whether `text` may hold what [`plain_quotes`] undoes.
pub(crate) fn may_have_other_quotes(text: &[u8]) -> bool {
    memchr::memchr3(b'"', b'`', b'\\', text).is_some() || !text.is_ascii()
}

/// Whether markup is in `text`. No name holds `</`.
pub(crate) fn holds_markup(text: &[u8]) -> bool {
    memchr::memchr_iter(b'<', text).any(|at| text.get(at + 1) == Some(&b'/'))
}

/// `text` without its tags.
pub(crate) fn without_markup(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'<', rest) {
        let is_tag = rest.get(start + 1).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'/');
        // Only the end of a tag is looked for, so that no byte is looked at for more than one of them.
        let (kept, next) = match is_tag {
            true => match memchr::memchr(b'>', &rest[start..]) {
                Some(end) => (start, start + end + 1),
                None => break,
            },
            false => (start + 1, start + 1),
        };
        plain.extend_from_slice(&rest[..kept]);
        rest = &rest[next..];
    }
    plain.extend_from_slice(rest);
    plain
}

/// The text of a message without what others put behind it: a trailing `[C:\dir\x.vcxproj]` of MSBuild, `<br>` or the end of
/// an element, of a table's cell or of a comment, the `\n` of a string.
pub(crate) fn without_tail(text: &[u8]) -> &[u8] {
    let mut text = text;
    loop {
        let shorter = match text.last() {
            Some(b']') => without_project(text),
            Some(b'>') => without_tag(text),
            Some(b'n' | b'r') => text.strip_suffix(b"\\n").or_else(|| text.strip_suffix(b"\\r")).unwrap_or(text),
            Some(b'\'') => text.strip_suffix(b"\\n'").unwrap_or(text),
            Some(b'm') => without_colour(text),
            // The end of a cell, of a comment, of code in a text.
            Some(b'|') => text.strip_suffix(b" |").unwrap_or(text),
            Some(b'/') => text.strip_suffix(b" */").unwrap_or(text),
            Some(b'`') if memchr::memchr(b'`', text) == Some(text.len() - 1) => &text[..text.len() - 1],
            _ => text,
        };
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter.trim_ascii_end();
    }
}

/// `text` without the end of a colour whose escape character a copy lost: `[0m`.
fn without_colour(text: &[u8]) -> &[u8] {
    let inner = &text[..text.len() - 1];
    let digits = inner.iter().rev().take_while(|b| b.is_ascii_digit() || **b == b';').count();
    inner[..inner.len() - digits].strip_suffix(b"[").unwrap_or(text)
}

fn without_project(text: &[u8]) -> &[u8] {
    if !text.ends_with(b"proj]") {
        return text;
    }
    memchr::memmem::rfind(text, b" [").map_or(text, |at| &text[..at])
}

/// Only tags that cannot be the arguments of a template.
fn without_tag(text: &[u8]) -> &[u8] {
    const LONGEST: usize = 12;
    let near = text.len().saturating_sub(LONGEST);
    let Some(start) = memchr::memrchr(b'<', &text[near..]).map(|at| near + at) else { return text };
    let tag = &text[start + 1..text.len() - 1];
    let ends_element = tag.strip_prefix(b"/").is_some_and(|name| name.iter().all(u8::is_ascii_alphanumeric));
    let breaks = tag.strip_suffix(b"/").unwrap_or(tag).trim_ascii().eq_ignore_ascii_case(b"br");
    if ends_element || breaks { &text[..start] } else { text }
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
    fn entities_are_read_by_name_and_by_number() {
        assert_eq!(cleaned("&#039;a&#8217; &#x27;b&#X2019; &#8220;c&rdquo; &#160;&lt;d&gt;"), "'a' 'b' “c”  <d>");
        for other in ["&", "&;", "&#;", "&#x;", "&#0;", "&#27;", "&#xd800;", "&a b;", "&#99999999;", "R&D; &copy;"] {
            assert_eq!(cleaned(other), other);
        }
    }

    #[test]
    fn any_quote_can_be_made_a_plain_one() {
        let mut out = Vec::new();
        for text in ["“a”", "„a“", "′a′", "´a´", "`a`", "`a'", r"\'a\'", "\"a\"", "â€˜aâ€™", "‘a’"]
        {
            assert!(plain_quotes(text.as_bytes(), &mut out), "{text}");
            assert_eq!(out, b"'a'", "{text}");
        }
        assert!(plain_quotes(b"f \x91a\x92 b", &mut out));
        assert_eq!(out, b"f 'a' b");
        // Within a character of UTF-8 the same bytes are no quotes.
        assert!(!plain_quotes("Б 'a' \\ б".as_bytes(), &mut out));
    }

    #[test]
    fn only_what_others_put_behind_a_text_goes() {
        for (text, rest) in [
            (r"too much data [C:\a b\x.vcxproj]", "too much data"),
            ("364 bytes cmem[0]", "364 bytes cmem[0]"),
            ("_Z1aPf<br>", "_Z1aPf"),
            ("_Z1aPf<BR />", "_Z1aPf"),
            ("_Z1aPf</span></div>", "_Z1aPf"),
            ("k<float>", "k<float>"),
            ("k<float></p>", "k<float>"),
            (r"_Z1aPf\r\n", "_Z1aPf"),
            (r"_Z1aPf\n'", "_Z1aPf"),
            ("option", "option"),
            (">", ">"),
            ("<br>", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(without_tail(text.as_bytes())), rest, "{text}");
        }
    }

    #[test]
    fn tags_within_a_text_go() {
        let text = b"for '<b class=\"k\">_Z1aPf</b>' 1 < 2 a<";
        assert_eq!(String::from_utf8_lossy(&without_markup(text)), "for '_Z1aPf' 1 < 2 a<");
        assert!(holds_markup(text) && !holds_markup(b"k<b>(int*)"));
    }
}
