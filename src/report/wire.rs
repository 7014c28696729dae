//! Text that a program reads first and may show to somebody: what would steer a terminal, a table or a build service is
//! written so that it does not.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::model::symbol::is_harmful;

/// Takes JSON and writes it with escapes for characters that steer terminals, or change the direction of text; they stand
/// within strings alone, so that it says the same.
pub(super) struct Escaped<'o>(pub(super) &'o mut dyn Write);

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = bytes.is_ascii() && memchr::memchr(0x7f, bytes).is_none();
        match std::str::from_utf8(bytes) {
            Ok(text) if !is_plain && text.contains(is_of_string) => {
                let mut safe = String::with_capacity(text.len() + 8);
                for c in text.chars() {
                    if is_of_string(c) {
                        let mut units = [0; 2];
                        c.encode_utf16(&mut units).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
                    } else {
                        safe.push(c);
                    }
                }
                self.0.write_all(safe.as_bytes())?;
            }
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether a character is harmful and stands nowhere in JSON but in strings: line ends and tabs may be between.
fn is_of_string(c: char) -> bool {
    is_harmful(c) && !matches!(c, '\n' | '\r' | '\t')
}

/// Lines that another wrote around arguments, with escapes for what would steer a terminal, other than colours.
#[must_use]
pub fn harmless_lines(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if !is_of_string(c) || (c == '\u{1b}' && is_color(&text.as_bytes()[at + 1..])) {
            safe.push(c);
        } else {
            safe.extend(c.escape_unicode());
        }
    }
    safe
}

/// Whether what follows an escape sets a colour.
fn is_color(rest: &[u8]) -> bool {
    /// Bytes of the longest that is looked at.
    const LONGEST: usize = 24;
    let Some(rest) = rest.strip_prefix(b"[") else { return false };
    let end = rest.iter().take(LONGEST).position(|byte| !(byte.is_ascii_digit() || matches!(byte, b';' | b':')));
    end.is_some_and(|end| rest[end] == b'm')
}

/// A path as it may begin a line or a cell. GitHub takes lines that begin with `::` or `##[` for commands, and a spreadsheet
/// cells that begin with `=` and the like for formulas; a file in the working folder can be written in another way.
pub(super) fn first(path: &str) -> Cow<'_, str> {
    if path.starts_with("::") || path.starts_with("##[") || begins_formula(path) {
        Cow::Owned(format!("./{path}"))
    } else {
        Cow::Borrowed(path)
    }
}

/// Whether a spreadsheet would compute a cell of this text.
pub(super) fn begins_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_with_escapes() {
        let name = "k\u{9b}31m\u{202e}é\u{7f}\u{61c}\n\u{feff}";
        let mut out = Vec::new();
        serde_json::to_writer_pretty(Escaped(&mut out), &serde_json::json!({ "name": name })).expect("it is JSON");
        let text = String::from_utf8(out).expect("it is text");
        assert_eq!(text, "{\n  \"name\": \"k\\u009b31m\\u202eé\\u007f\\u061c\\n\\ufeff\"\n}");
        let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read["name"], name);
    }

    #[test]
    fn of_what_steers_a_terminal_colours_are_left() {
        assert_eq!(harmless_lines("\u{1b}[1;31merror\u{1b}[0m: é\n\tx"), "\u{1b}[1;31merror\u{1b}[0m: é\n\tx");
        assert_eq!(
            harmless_lines("\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}\u{202e}"),
            "\\u{1b}]0;x\\u{7}\\u{1b}[2J\\u{9b}\\u{202e}"
        );
    }

    #[test]
    fn paths_that_would_be_commands_or_formulas_are_written_in_another_way() {
        assert_eq!(first("::error::x.cu"), "./::error::x.cu");
        assert_eq!(first("##[group]"), "./##[group]");
        assert_eq!(first("=1+2.cu"), "./=1+2.cu");
        assert_eq!(first("-x.cu"), "./-x.cu");
        assert_eq!(first("a::b.cu"), "a::b.cu");
    }
}
