//! The bytes of PTX: blanks and comments, words, numbers, and where a statement ends.

/// What a byte may be part of.
const WORD: u8 = 1;
/// A blank.
const BLANK: u8 = 2;
/// Stands in an operand list and needs no look: words, blanks, separators, signs.
const PLAIN: u8 = 4;

/// The classes of all bytes.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let words = b"_$%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut at = 0;
    while at < words.len() {
        table[words[at] as usize] = WORD | PLAIN;
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
    table
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
            while self.at < self.text.len() && CLASS[self.text[self.at] as usize] & PLAIN != 0 {
                self.at += 1;
            }
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
