//! The bytes of PTX: blanks and comments, words, numbers, and where a statement ends.

use super::words::Word;

/// What a byte may be part of.
const WORD: u8 = 1;
/// A blank.
const BLANK: u8 = 2;
/// Stands in an operand list and needs no look: words, blanks, separators, signs.
const PLAIN: u8 = 4;

/// May be part of an opcode with its modifiers.
const OPCODE: u8 = 8;

/// The classes of all bytes.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let words = b"_$%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut at = 0;
    while at < words.len() {
        table[words[at] as usize] = WORD | PLAIN | OPCODE;
        at += 1;
    }
    let blanks = b" \t\r\n\x0b\x0c";
    at = 0;
    while at < blanks.len() {
        table[blanks[at] as usize] = BLANK | PLAIN;
        at += 1;
    }
    let others = b".,+-|!<>:=&~*^@?";
    at = 0;
    while at < others.len() {
        table[others[at] as usize] = PLAIN;
        at += 1;
    }
    table[b'.' as usize] |= OPCODE;
    table[b':' as usize] |= OPCODE;
    table
}

/// 1 for bytes that end a word, or that need a look.
static ENDS_WORD: [u8; 256] = others(WORD);
static ENDS_PLAIN: [u8; 256] = others(PLAIN);

const fn others(class: u8) -> [u8; 256] {
    let mut table = classes();
    let mut at = 0;
    while at < table.len() {
        table[at] = (table[at] & class == 0) as u8;
        at += 1;
    }
    table
}

/// One in each byte.
pub(super) const ONES: u64 = 0x0101_0101_0101_0101;

/// The highest bit of the first byte that is below `.` or a `;`, and perhaps of some behind it.
#[inline]
fn ends_opcode(eight: u64) -> u64 {
    let is_below = eight.wrapping_sub(ONES * u64::from(b'.')) & !eight;
    let others = eight ^ (ONES * u64::from(b';'));
    let is_end = others.wrapping_sub(ONES) & !others;
    (is_below | is_end) & (ONES * 0x80)
}

/// Whether the byte may be part of a word.
#[inline]
pub(super) fn is_in_word(byte: u8) -> bool {
    CLASS[byte as usize] & WORD != 0
}

/// Whether the byte may be part of a word, or of an opcode.
#[inline]
pub(super) fn is_in_opcode(byte: u8) -> bool {
    CLASS[byte as usize] & OPCODE != 0
}

/// Which of the bytes have a 1 in the table, one bit each: no branch depends on any of them.
#[inline]
fn mask(eight: u64, table: &[u8; 256]) -> u32 {
    let bit = |at: u32| u32::from(table[(eight >> (8 * at) & 0xff) as usize]) << at;
    (bit(0) | bit(1)) | (bit(2) | bit(3)) | (bit(4) | bit(5)) | (bit(6) | bit(7))
}

/// Why the text is not read on, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The byte that it is seen at.
    pub(super) at: usize,
    /// Bytes that it concerns.
    pub(super) length: usize,
    /// What is wrong.
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(at: usize, length: usize, message: impl Into<String>) -> Fault {
        Fault { at, length, message: message.into() }
    }
}

/// A position in the text, which only moves on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t [u8], at: usize) -> Cursor<'t> {
        Cursor { text, at }
    }

    /// The byte that is next; 0 at the end.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Over blanks and comments.
    #[inline]
    pub(super) fn skip_blank(&mut self) -> Result<(), Fault> {
        // Compilers indent a statement by one tab.
        if let Some([b'\n', b'\t', _]) = self.text.get(self.at..self.at + 3) {
            self.at += 2;
        }
        if self.text.get(self.at).is_some_and(|byte| *byte > b'/') {
            return Ok(());
        }
        loop {
            while self.at < self.text.len() && CLASS[self.text[self.at] as usize] & BLANK != 0 {
                self.at += 1;
            }
            if self.peek() != b'/' || !self.skip_comment()? {
                return Ok(());
            }
        }
    }

    /// Over one comment, if there is one.
    pub(super) fn skip_comment(&mut self) -> Result<bool, Fault> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"//") {
            self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            return Ok(true);
        }
        if rest.starts_with(b"/*") {
            let end = memchr::memmem::find(&rest[2..], b"*/");
            let Some(end) = end else { return Err(Fault::new(self.at, 2, "this comment is not ended")) };
            self.at += end + 4;
            return Ok(true);
        }
        Ok(false)
    }

    /// The word that starts here: letters, digits, `_`, `$` and `%`. It may be empty.
    #[inline]
    pub(super) fn word(&mut self) -> &'t [u8] {
        let start = self.at;
        while self.at < self.text.len() && CLASS[self.text[self.at] as usize] & WORD != 0 {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// The same for words that a table may hold: they are short, and are read eight bytes at once.
    #[inline]
    pub(super) fn keyed_word(&mut self) -> Word<'t> {
        let rest = &self.text[self.at..];
        if let Some(eight) = rest.first_chunk::<8>() {
            let eight = u64::from_le_bytes(*eight);
            let others = mask(eight, &ENDS_WORD);
            if others != 0 {
                let length = others.trailing_zeros() as usize;
                self.at += length;
                return Word::short(&rest[..length], eight);
            }
        }
        Word::of(self.word())
    }

    /// What stands before a blank, a comma, a semicolon, a `$` or the like: an opcode with its modifiers, as far as compilers
    /// write one.
    #[inline]
    pub(super) fn opcode(&mut self) -> &'t [u8] {
        let start = self.at;
        while let Some(eight) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let ends = ends_opcode(u64::from_le_bytes(*eight));
            if ends != 0 {
                self.at += ends.trailing_zeros() as usize / 8;
                return &self.text[start..self.at];
            }
            self.at += 8;
        }
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|byte| *byte < b'.' || *byte == b';').unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    /// Over `byte`, if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte && !self.is_at_end();
        self.at += usize::from(is_next);
        is_next
    }

    /// A decimal number, if one is next.
    pub(super) fn number(&mut self) -> Option<u32> {
        let start = self.at;
        let mut value: u64 = 0;
        while self.peek().is_ascii_digit() {
            value = (value * 10 + u64::from(self.peek() - b'0')).min(u64::from(u32::MAX));
            self.at += 1;
        }
        (self.at > start).then(|| u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Over a string, whose opening quote is next.
    pub(super) fn skip_string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        match memchr::memchr2(b'"', b'\n', &self.text[self.at..]) {
            Some(end) if self.text[self.at + end] == b'"' => {
                self.at += end + 1;
                Ok(())
            }
            _ => Err(Fault::new(start, 1, "this string is not ended")),
        }
    }

    /// To the `;` that ends the statement that began at `start`; it is not taken.
    #[inline]
    pub(super) fn statement_end(&mut self, start: usize) -> Result<(), Fault> {
        let mut depth: u32 = 0;
        loop {
            self.skip_plain();
            match self.peek() {
                b';' if depth == 0 => return Ok(()),
                b'[' | b'(' | b'{' => depth += 1,
                b']' | b')' | b'}' if depth > 0 => depth -= 1,
                b'/' => {
                    if self.skip_comment()? {
                        continue;
                    }
                    return Err(self.stray(start));
                }
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                _ => return Err(self.stray(start)),
            }
            self.at += 1;
        }
    }

    /// Over bytes that need no look, eight at once: most of a module's bytes are such.
    #[inline]
    pub(super) fn skip_plain(&mut self) {
        while let Some(eight) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let others = mask(u64::from_le_bytes(*eight), &ENDS_PLAIN);
            if others != 0 {
                self.at += others.trailing_zeros() as usize;
                return;
            }
            self.at += 8;
        }
        while self.at < self.text.len() && CLASS[self.text[self.at] as usize] & PLAIN != 0 {
            self.at += 1;
        }
    }

    /// To the `;` that ends a statement of a text that was read without a fault.
    #[inline]
    pub(super) fn known_end(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += memchr::memchr3(b';', b'/', b'"', rest).unwrap_or(rest.len());
            let is_passed = match self.peek() {
                b'/' => self.skip_comment() == Ok(true),
                b'"' => self.skip_string().is_ok(),
                _ => false,
            };
            if !is_passed {
                return;
            }
        }
    }

    /// The byte here does not belong into the statement that began at `start`.
    fn stray(&self, start: usize) -> Fault {
        if self.is_at_end() {
            return Fault::new(start, self.word_at(start), "the file ends within this statement");
        }
        let byte = self.peek();
        match byte {
            b';' | b'}' | b']' | b')' => {
                Fault::new(start, self.word_at(start), "this statement is not ended, or its brackets do not match")
            }
            0x20..0x7f => Fault::new(self.at, 1, format!("`{}` does not belong here", char::from(byte))),
            _ => Fault::new(self.at, 1, format!("a byte {byte:#04x} does not belong here")),
        }
    }

    /// The length of the word at `at`, at least 1.
    pub(super) fn word_at(&self, at: usize) -> usize {
        let mut cursor = Cursor::new(self.text, at);
        cursor.word().len().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_blank(text: &str) -> Result<usize, usize> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        cursor.skip_blank().map(|()| cursor.at).map_err(|fault| fault.at)
    }

    #[test]
    fn blanks_and_comments_of_both_kinds_are_passed_over() {
        for (text, expected) in [
            ("", Ok(0)),
            (" \t\r\n\x0b\x0cx", Ok(6)),
            ("// a\nx", Ok(5)),
            ("// a", Ok(4)),
            ("/* a\n * b */x", Ok(12)),
            ("/**/x", Ok(4)),
            ("/* // */ // */\r\nx", Ok(16)),
            ("/x", Ok(0)),
            (" /* a", Err(1)),
            ("/*/", Err(0)),
        ] {
            assert_eq!(after_blank(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_word_is_letters_digits_and_what_names_hold() {
        for (text, word) in [("%r1,", "%r1"), ("$L__BB0_1:", "$L__BB0_1"), ("_Z1kPf(", "_Z1kPf"), (".x", ""), ("ä", "")]
        {
            assert_eq!(Cursor::new(text.as_bytes(), 0).word(), word.as_bytes(), "{text}");
        }
    }

    #[test]
    fn numbers_end_at_the_largest() {
        let number = |text: &str| Cursor::new(text.as_bytes(), 0).number();
        assert_eq!((number("42x"), number("x"), number("")), (Some(42), None, None));
        assert_eq!((number("4294967295"), number("99999999999999999999")), (Some(u32::MAX), Some(u32::MAX)));
    }

    #[test]
    fn a_statement_ends_at_the_semicolon_outside_of_all_brackets() {
        let end = |text: &str| {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            cursor.statement_end(0).map(|()| cursor.at).map_err(|fault| (fault.at, fault.message))
        };
        assert_eq!(end("mov %r1, 1; x"), Ok(10));
        assert_eq!(end("a /* ; */ b // ;\n ; x"), Ok(18));
        assert_eq!(end(".pragma \"a;b\"; x"), Ok(13));
        assert_eq!(end("call (r), f, (a, b); x"), Ok(19));
        let fault = |text: &str| end(text).map_err(|(at, message)| format!("{at}: {message}")).expect_err("a fault");
        assert_eq!(fault("mov %r1, 1"), "0: the file ends within this statement");
        assert_eq!(fault("ld %r1, [%r2; x"), "0: this statement is not ended, or its brackets do not match");
        assert_eq!(fault("mov %r1, 1 }"), "0: this statement is not ended, or its brackets do not match");
        assert_eq!(fault("mov %r1, #1;"), "9: `#` does not belong here");
        assert_eq!(fault("mov %r1, \u{1}1;"), "9: a byte 0x01 does not belong here");
        assert_eq!(fault(".pragma \"a\n;"), "8: this string is not ended");
        assert_eq!(fault("a / b;"), "2: `/` does not belong here");
    }

    #[test]
    fn the_end_of_a_statement_without_a_fault_is_the_same_without_a_look_at_the_rest() {
        for text in ["mov %r1, 1; x", "a /* ; */ b // ;\n ; x", ".pragma \"a;b\"; x", "ld %r1, [%r2+8]; x", ";", "ret;"]
        {
            let (mut one, mut other) = (Cursor::new(text.as_bytes(), 0), Cursor::new(text.as_bytes(), 0));
            assert_eq!(one.statement_end(0), Ok(()), "{text}");
            other.known_end();
            assert_eq!(one.at, other.at, "{text}");
        }
    }

    #[test]
    fn a_word_has_the_same_key_wherever_it_stands() {
        for text in
            ["mov", "mov.u32 %r1", "mov;", "ldmatrix", "ldmatrix.x", "griddepcontrol", "griddepcontrol.wait;", "", "."]
        {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            let word = cursor.keyed_word();
            let plain = Cursor::new(text.as_bytes(), 0).word();
            assert_eq!((word, cursor.at), (Word::of(plain), plain.len()), "{text}");
        }
    }

    #[test]
    fn an_opcode_ends_before_what_no_opcode_holds() {
        for (text, opcode) in [
            ("ld.global.nc.v4.f32 \t{%f1}, [%rd1];", "ld.global.nc.v4.f32"),
            ("ret;", "ret"),
            ("bar.sync\t0;", "bar.sync"),
            ("ld.shared::cta.u32 %r1, [a];", "ld.shared::cta.u32"),
            ("exit;             ", "exit"),
            ("mov.b64\x0b%rd1, 1;     ", "mov.b64"),
            ("trap", "trap"),
            ("$L__BB0_1: mov.u32 %r1, 1;", ""),
            ("ret$1: mov.u32 %r1, 1;", "ret"),
            ("membar.cta", "membar.cta"),
            ("", ""),
        ] {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            assert_eq!((cursor.opcode(), cursor.at), (opcode.as_bytes(), opcode.len()), "{text}");
        }
    }

    #[test]
    fn no_byte_is_taken_at_the_end() {
        let mut cursor = Cursor::new(b"", 0);
        assert!(!cursor.take(0) && cursor.is_at_end() && cursor.peek() == 0);
    }
}
