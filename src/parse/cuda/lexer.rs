//! Bytes of C++ to tokens. Comments and blanks are left out, a directive is one token, and no byte is an error.

use memchr::{memchr_iter, memchr2, memmem};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each names its own spelling")]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number, digit separators and suffix included.
    Number,
    /// A string, with its prefix; raw ones too.
    String,
    /// A character.
    Character,
    /// A whole preprocessor directive, from `#` to the end of its last line.
    Directive,
    ParenOpen,
    ParenClose,
    BracketOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
    Semicolon,
    Comma,
    Colon,
    /// `::`
    Scope,
    Question,
    Dot,
    Ellipsis,
    Arrow,
    /// `<<<`, which opens a launch; also as `<< <`, which formatters make of it.
    Launch,
    Less,
    LessEqual,
    /// One `>`: what closes a template list and what shifts is told apart by who reads it. `>>` is two of them.
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftLeftAssign,
    Assign,
    Equal,
    NotEqual,
    Not,
    Plus,
    PlusPlus,
    PlusAssign,
    Minus,
    MinusMinus,
    MinusAssign,
    Star,
    StarAssign,
    Slash,
    SlashAssign,
    Percent,
    PercentAssign,
    And,
    AndAnd,
    AndAssign,
    Or,
    OrOr,
    OrAssign,
    Caret,
    CaretAssign,
    Tilde,
    Hash,
    /// A byte that C++ has no use for here.
    Other,
}

impl Kind {
    /// Whether it is an operator that changes its left side by its right: `+=` and the like. `>>=` is two tokens.
    #[must_use]
    pub fn is_compound_assignment(self) -> bool {
        matches!(
            self,
            Kind::PlusAssign
                | Kind::MinusAssign
                | Kind::StarAssign
                | Kind::SlashAssign
                | Kind::PercentAssign
                | Kind::AndAssign
                | Kind::OrAssign
                | Kind::CaretAssign
                | Kind::ShiftLeftAssign
        )
    }

    /// Whether it opens a bracket that is surely one: `<` may compare.
    #[must_use]
    pub fn opens(self) -> bool {
        matches!(self, Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen)
    }

    /// Whether it closes one.
    #[must_use]
    pub fn closes(self) -> bool {
        matches!(self, Kind::ParenClose | Kind::BracketClose | Kind::BraceClose)
    }
}

/// The token that closes the bracket at `at`; brackets of all kinds count alike.
#[must_use]
pub(super) fn partner(tokens: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if token.kind.opens() {
            depth += 1;
        } else if token.kind.closes() {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(index);
            }
        }
    }
    None
}

/// A token, by its bytes. Files of 4 GiB and more are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
}

impl Token {
    /// Its text.
    #[must_use]
    pub fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Appends the tokens of `text[from..to]` to `into`; their bytes count from the start of `text`.
pub fn tokens(text: &[u8], from: usize, to: usize, into: &mut Vec<Token>) {
    let text = &text[..to.min(text.len())];
    let mut lexer = Lexer { text, at: from, line_begins: true };
    while let Some(token) = lexer.next() {
        into.push(token);
    }
}

struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    /// Nothing but blanks and comments stands before `at` on its line.
    line_begins: bool,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Option<Token> {
        self.skip();
        let start = self.at;
        let first = *self.text.get(start)?;
        let kind = match first {
            b'#' if self.line_begins => self.directive(),
            b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => self.word(),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            b'"' => self.quoted(b'"', Kind::String),
            b'\'' => self.quoted(b'\'', Kind::Character),
            _ => self.punctuation(first),
        };
        self.line_begins = kind == Kind::Directive;
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Some(Token { kind, start: narrow(start), end: narrow(self.at) })
    }

    /// Leaves out blanks, comments, and line breaks that are spliced.
    fn skip(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                    let rest = &self.text[self.at..];
                    let blanks = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c));
                    self.at += blanks.unwrap_or(rest.len());
                }
                b'\n' => {
                    self.at += 1;
                    self.line_begins = true;
                }
                b'\\' => match splice(&self.text[self.at..]) {
                    0 => return,
                    length => self.at += length,
                },
                b'/' if self.byte(1) == b'/' => self.at = logical_line_end(self.text, self.at),
                b'/' if self.byte(1) == b'*' => {
                    self.at = comment_end(self.text, self.at + 2);
                }
                _ => return,
            }
        }
    }

    /// A directive ends with its logical line; comments in it may hold further lines.
    fn directive(&mut self) -> Kind {
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\\' | b'/' | b'"')) else {
                self.at = self.text.len();
                return Kind::Directive;
            };
            self.at += end;
            match (self.byte(0), self.byte(1)) {
                (b'\n', _) => return Kind::Directive,
                (b'\\', _) => self.at += splice(&self.text[self.at..]).max(1),
                (b'"', _) => {
                    self.quoted(b'"', Kind::String);
                }
                (b'/', b'/') => {
                    self.at = logical_line_end(self.text, self.at);
                    return Kind::Directive;
                }
                (b'/', b'*') => {
                    self.at = comment_end(self.text, self.at + 2);
                }
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        let rest = &self.text[start..];
        self.at = start + rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        let is_prefix =
            |word: &[u8]| matches!(word, b"R" | b"L" | b"u" | b"U" | b"u8" | b"LR" | b"uR" | b"UR" | b"u8R");
        match self.byte(0) {
            quote @ (b'"' | b'\'') if is_prefix(&self.text[start..self.at]) => {
                if self.text[self.at - 1] == b'R' && quote == b'"' {
                    return self.raw();
                }
                self.quoted(quote, if quote == b'"' { Kind::String } else { Kind::Character })
            }
            _ => Kind::Word,
        }
    }

    /// `R"mark( … )mark"`, at its quote.
    fn raw(&mut self) -> Kind {
        const LONGEST_MARK: usize = 16;
        let rest = &self.text[self.at + 1..];
        let open = rest.iter().take(LONGEST_MARK + 1).position(|byte| *byte == b'(');
        let Some(open) = open else { return self.quoted(b'"', Kind::String) };
        let close = [&b")"[..], &rest[..open], b"\""].concat();
        self.at =
            memmem::find(&rest[open..], &close).map_or(self.text.len(), |end| self.at + 1 + open + end + close.len());
        Kind::String
    }

    /// Up to the closing quote; one that is missing is taken to stand at the end of the line.
    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        self.at += 1;
        loop {
            match self.byte(0) {
                byte if byte == quote => {
                    self.at += 1;
                    return kind;
                }
                b'\\' => self.at += splice(&self.text[self.at..]).max(2),
                b'\n' => return kind,
                _ if self.at >= self.text.len() => {
                    self.at = self.text.len();
                    return kind;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Whether what stands here is the name of an operator: `operator<< <T>`.
    fn is_behind_operator(&self) -> bool {
        self.text[..self.at].trim_ascii_end().ends_with(b"operator")
    }

    fn number(&mut self) -> Kind {
        loop {
            match self.byte(0) {
                b'+' | b'-' if matches!(self.text[self.at - 1] | 0x20, b'e' | b'p') && self.has_exponent() => {
                    self.at += 1
                }
                b'\'' if self.byte(1).is_ascii_alphanumeric() => self.at += 1,
                byte if byte == b'.' || is_word(byte) => self.at += 1,
                _ => return Kind::Number,
            }
        }
    }

    /// Whether the letter just read begins an exponent: `e` in a hexadecimal number is a digit.
    fn has_exponent(&self) -> bool {
        let before = &self.text[..self.at];
        let start = before.iter().rposition(|byte| !is_word(*byte) && *byte != b'.').map_or(0, |at| at + 1);
        let is_hexadecimal = before[start..].starts_with(b"0x") || before[start..].starts_with(b"0X");
        let letter = before[before.len() - 1] | 0x20;
        is_hexadecimal == (letter == b'p')
    }

    fn punctuation(&mut self, first: u8) -> Kind {
        let (mut kind, mut length) = spelled(first, self.byte(1), self.byte(2));
        if kind == Kind::ShiftLeft && self.text[self.at..].starts_with(SPACED) && !self.is_behind_operator() {
            (kind, length) = (Kind::Launch, SPACED.len());
        }
        self.at += length;
        kind
    }
}

/// A launch as formatters write it that do not know CUDA.
const SPACED: &[u8] = b"<< <";

/// Whether the `>` at `at` is the first of three that close a launch: all touch, or formatters moved the last one away.
#[must_use]
pub(super) fn closes_launch(tokens: &[Token], at: usize) -> bool {
    let Some([one, two, three]) = tokens.get(at..at + 3) else { return false };
    let are_greater = [one, two, three].iter().all(|token| token.kind == Kind::Greater);
    are_greater && one.end == two.start && matches!(three.start.checked_sub(two.end), Some(0 | 1))
}

/// The longest operator that begins with these bytes, and its length.
fn spelled(first: u8, second: u8, third: u8) -> (Kind, usize) {
    match (first, second, third) {
        (b'<', b'<', b'<') => (Kind::Launch, 3),
        (b'<', b'<', b'=') => (Kind::ShiftLeftAssign, 3),
        (b'.', b'.', b'.') => (Kind::Ellipsis, 3),
        (b'<', b'<', _) => (Kind::ShiftLeft, 2),
        (b'<', b'=', _) => (Kind::LessEqual, 2),
        (b'>', b'=', _) => (Kind::GreaterEqual, 2),
        (b'=', b'=', _) => (Kind::Equal, 2),
        (b'!', b'=', _) => (Kind::NotEqual, 2),
        (b':', b':', _) => (Kind::Scope, 2),
        (b'-', b'>', _) => (Kind::Arrow, 2),
        (b'+', b'+', _) => (Kind::PlusPlus, 2),
        (b'-', b'-', _) => (Kind::MinusMinus, 2),
        (b'&', b'&', _) => (Kind::AndAnd, 2),
        (b'|', b'|', _) => (Kind::OrOr, 2),
        (b'+', b'=', _) => (Kind::PlusAssign, 2),
        (b'-', b'=', _) => (Kind::MinusAssign, 2),
        (b'*', b'=', _) => (Kind::StarAssign, 2),
        (b'/', b'=', _) => (Kind::SlashAssign, 2),
        (b'%', b'=', _) => (Kind::PercentAssign, 2),
        (b'&', b'=', _) => (Kind::AndAssign, 2),
        (b'|', b'=', _) => (Kind::OrAssign, 2),
        (b'^', b'=', _) => (Kind::CaretAssign, 2),
        _ => (single(first), 1),
    }
}

fn single(byte: u8) -> Kind {
    match byte {
        b'(' => Kind::ParenOpen,
        b')' => Kind::ParenClose,
        b'[' => Kind::BracketOpen,
        b']' => Kind::BracketClose,
        b'{' => Kind::BraceOpen,
        b'}' => Kind::BraceClose,
        b';' => Kind::Semicolon,
        b',' => Kind::Comma,
        b':' => Kind::Colon,
        b'?' => Kind::Question,
        b'.' => Kind::Dot,
        b'<' => Kind::Less,
        b'>' => Kind::Greater,
        b'=' => Kind::Assign,
        b'!' => Kind::Not,
        b'+' => Kind::Plus,
        b'-' => Kind::Minus,
        b'*' => Kind::Star,
        b'/' => Kind::Slash,
        b'%' => Kind::Percent,
        b'&' => Kind::And,
        b'|' => Kind::Or,
        b'^' => Kind::Caret,
        b'~' => Kind::Tilde,
        b'#' => Kind::Hash,
        _ => Kind::Other,
    }
}

/// Whether a byte is part of a word: looked up, as most bytes of a source are asked.
fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

const WORD: [bool; 256] = {
    let mut all = [false; 256];
    let mut at = 0;
    while at < all.len() {
        let byte = at as u8;
        all[at] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        at += 1;
    }
    all
};

/// The length of a spliced line break: a backslash, blanks, and the end of the line.
fn splice(rest: &[u8]) -> usize {
    let blanks = rest.iter().skip(1).take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    match rest.get(1 + blanks) {
        Some(b'\n') if rest[0] == b'\\' => blanks + 2,
        _ => 0,
    }
}

/// Where the comment ends whose words begin at `from`: behind its `*/`, or with the text. There are many, and most are short:
/// a search for one byte needs no preparation.
fn comment_end(text: &[u8], from: usize) -> usize {
    let closes = |at: &usize| *at > 0 && text[from + at - 1] == b'*';
    memchr_iter(b'/', &text[from..]).find(closes).map_or(text.len(), |at| from + at + 1)
}

/// The end of the line at `at`, spliced lines included; the line break is left.
fn logical_line_end(text: &[u8], mut at: usize) -> usize {
    loop {
        match memchr2(b'\n', b'\\', &text[at..]) {
            None => return text.len(),
            Some(end) if text[at + end] == b'\n' => return at + end,
            Some(end) => {
                let length = splice(&text[at + end..]);
                at += end + length.max(1);
            }
        }
    }
}

/// Whether a text may hold device code or a launch: most headers of a tree do not, and are not read further.
#[must_use]
pub fn may_hold_device_code(text: &[u8]) -> bool {
    let holds = |what: &[u8]| memmem::find(text, what).is_some();
    holds(b"<<<") || holds(SPACED) || holds(b"__global__") || holds(b"__device__")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexed(text: &str) -> Vec<(Kind, &str)> {
        let mut found = Vec::new();
        tokens(text.as_bytes(), 0, text.len(), &mut found);
        found.iter().map(|token| (token.kind, &text[token.start as usize..token.end as usize])).collect()
    }

    fn words(text: &str) -> Vec<&str> {
        lexed(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_launch_is_told_from_shifts_and_templates() {
        assert_eq!(
            words("k<<<g, 1 << 5>>>(x);"),
            ["k", "<<<", "g", ",", "1", "<<", "5", ">", ">", ">", "(", "x", ")", ";"]
        );
        assert_eq!(words("k << <g, 2>> >(x)"), ["k", "<< <", "g", ",", "2", ">", ">", ">", "(", "x", ")"]);
        assert_eq!(words("a << b < c << (x) <= d"), ["a", "<<", "b", "<", "c", "<<", "(", "x", ")", "<=", "d"]);
        assert_eq!(words("operator<< <T>(o)"), ["operator", "<<", "<", "T", ">", "(", "o", ")"]);
        assert_eq!(words("a >>= 2"), ["a", ">", ">=", "2"]);
        assert_eq!(words("A<B<C>> v"), ["A", "<", "B", "<", "C", ">", ">", "v"]);
    }

    #[test]
    fn numbers_hold_their_separators_suffixes_and_exponents() {
        assert_eq!(
            words("1'024 1024U 0x100u 1.5e-3f .5 0x1p-3 0xe+1"),
            ["1'024", "1024U", "0x100u", "1.5e-3f", ".5", "0x1p-3", "0xe", "+", "1"]
        );
    }

    #[test]
    fn what_strings_and_comments_hold_is_no_code() {
        assert_eq!(words("\"a\\\"<<<\" /* <<< */ x // <<<\n'\\''"), ["\"a\\\"<<<\"", "x", "'\\''"]);
        assert_eq!(words("R\"x(__global__ <<<)\")x\" y"), ["R\"x(__global__ <<<)\")x\"", "y"]);
        assert_eq!(words("// a \\\n still a comment\nx"), ["x"]);
        assert_eq!(words("\"open\nx"), ["\"open", "x"]);
    }

    #[test]
    fn a_directive_is_one_token_with_all_its_lines() {
        let text = "#define RUN(k) \\\n  k<<<1, 2>>>(\"//\") // said\nx # y\n  #if 0 /* a\n b */ c\nz";
        let found = lexed(text);
        let directives: Vec<&str> =
            found.iter().filter(|(kind, _)| *kind == Kind::Directive).map(|(_, text)| *text).collect();
        assert_eq!(directives, ["#define RUN(k) \\\n  k<<<1, 2>>>(\"//\") // said", "#if 0 /* a\n b */ c"]);
        assert_eq!(found.last(), Some(&(Kind::Word, "z")));
        assert!(found.contains(&(Kind::Hash, "#")));
    }

    #[test]
    fn line_splices_are_blanks() {
        assert_eq!(words("a \\\n b \\  \r\n c"), ["a", "b", "c"]);
    }

    #[test]
    fn any_bytes_are_read_to_their_end() {
        for bytes in [
            &b"\\"[..],
            b"R\"(",
            b"/*",
            b"'",
            b"\"\\",
            b"#",
            b"#\\",
            b"\x00\x01\xff",
            b"u8R\"aaaaaaaaaaaaaaaaaaaaaaaa",
            b"0x",
        ] {
            let mut found = Vec::new();
            tokens(bytes, 0, bytes.len(), &mut found);
            assert!(
                found.iter().all(|token| token.start < token.end && token.end as usize <= bytes.len()),
                "{bytes:?}"
            );
        }
    }
}
