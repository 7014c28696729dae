//! What rules read off the text of a message: a word, a number, a name.

use crate::model::symbol;

/// Longest text that a message holds, in characters.
const LONGEST: usize = 400;

/// Whether `part` stands in `text`.
pub(super) fn has(text: &[u8], part: &str) -> bool {
    memchr::memmem::find(text, part.as_bytes()).is_some()
}

/// What stands between `start` and the next `end`.
pub(super) fn between<'a>(text: &'a [u8], start: &str, end: &str) -> Option<&'a [u8]> {
    let rest = after(text, start)?;
    Some(&rest[..memchr::memmem::find(rest, end.as_bytes())?])
}

fn after<'a>(text: &'a [u8], lead: &str) -> Option<&'a [u8]> {
    memchr::memmem::find(text, lead.as_bytes()).map(|at| &text[at + lead.len()..])
}

/// The number that follows `lead`, decimal or with `0x` before it.
pub(super) fn number_after(text: &[u8], lead: &str) -> Option<u32> {
    let rest = after(text, lead)?.trim_ascii_start();
    let (digits, radix) = rest.strip_prefix(b"0x").map_or((rest, 10), |digits| (digits, 16));
    let length = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    u32::from_str_radix(std::str::from_utf8(&digits[..length]).ok()?, radix).ok()
}

/// `text` without a code in parentheses and without a full stop, mangled names as people say them, safe to print.
pub(super) fn worded(text: &[u8]) -> String {
    let said = without_code(text).trim_ascii();
    let said = said.strip_suffix(b".").unwrap_or(said);
    let mut worded = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = memchr::memmem::find(rest, b"'_Z") {
        let Some(length) = memchr::memchr(b'\'', &rest[at + 1..]) else { break };
        worded.push_str(&String::from_utf8_lossy(&rest[..at]));
        worded.push_str(&format!("`{}`", symbol::short(&rest[at + 1..at + 1 + length])));
        rest = &rest[at + length + 2..];
    }
    worded.push_str(&String::from_utf8_lossy(rest));
    symbol::printable(&symbol::cut_middle(&worded, LONGEST)).into_owned()
}

fn without_code(text: &[u8]) -> &[u8] {
    let code = text.strip_prefix(b"(C").and_then(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest[digits..].strip_prefix(b")").filter(|_| digits > 0)
    });
    code.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_notations() {
        let text = b"uses too much shared data (0xc400 bytes, 0xc000 max) in line 267";
        assert_eq!(number_after(text, "data ("), Some(50176));
        assert_eq!(number_after(text, "in line"), Some(267));
        assert_eq!((number_after(text, "max"), number_after(text, "nowhere")), (None, None));
        assert_eq!(between(b"(0xc400 bytes, 0xc000 max)", "(", " bytes"), Some(&b"0xc400"[..]));
    }

    #[test]
    fn a_text_loses_its_code_and_its_full_stop_and_its_names_are_short() {
        assert_eq!(
            worded(b"(C7907) Unresolved extern function '_Z6ext_fnfi' in 'a.o'."),
            "Unresolved extern function `ext_fn` in 'a.o'"
        );
        assert_eq!(worded(b"Parsing error near '_Zx"), "Parsing error near '_Zx");
        assert_eq!(worded(b"(C++) x\x1b[2J"), "(C++) x\\u{1b}[2J");
    }
}
