//! How text may look where it is going.

use std::fmt::Display;

/// What the receiving terminal or file can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether characters beyond ASCII may be drawn.
    pub unicode: bool,
    /// Whether colour may be used. It never carries information alone.
    pub color: bool,
    /// Columns of a line.
    pub width: usize,
}

impl Style {
    /// ASCII, without colour, 80 columns.
    pub const PLAIN: Style = Style { unicode: false, color: false, width: 80 };

    /// `text` emphasised, as what matters most in its place.
    #[must_use]
    pub fn strong(self, text: impl Display) -> String {
        self.painted("1", text)
    }

    /// `text` held back, as what is only there for completeness.
    #[must_use]
    pub fn faint(self, text: impl Display) -> String {
        self.painted("2", text)
    }

    /// `text` marked, as what the reader asked about.
    #[must_use]
    pub fn marked(self, text: impl Display) -> String {
        self.painted("1;36", text)
    }

    /// `text` as a warning.
    #[must_use]
    pub fn warning(self, text: impl Display) -> String {
        self.painted("33", text)
    }

    /// `text` after a warning word, broken into lines of the width; further lines stand in by four.
    #[must_use]
    pub fn paragraph(self, lead: &str, text: &str) -> String {
        const INDENT: usize = 4;
        let mut out = if lead.is_empty() { String::new() } else { self.warning(lead) };
        let mut column = lead.chars().count();
        for word in text.split(' ') {
            let length = word.chars().count();
            if column + 1 + length > self.width && column > INDENT {
                out.push('\n');
                out.push_str(&" ".repeat(INDENT));
                column = INDENT;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        out
    }

    /// `text` as a line of a section, standing in by two and broken into lines of the width.
    #[must_use]
    pub fn indented(self, text: &str) -> String {
        textwrap::fill(text, words(self.width).initial_indent("  ").subsequent_indent("    "))
    }

    /// `text` in lines of `width` columns.
    pub(super) fn wrapped(self, text: &str, width: usize) -> Vec<String> {
        textwrap::wrap(text, words(width)).into_iter().map(std::borrow::Cow::into_owned).collect()
    }

    fn painted(self, code: &str, text: impl Display) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    /// The first of two spellings where it can be shown, else the one in ASCII.
    #[must_use]
    pub fn choose<'a>(self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }
}

/// Lines are broken at blanks only: names and ranges stay whole.
fn words(width: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(width)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
}

/// The formats of commands that print figures and no findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum DataFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object.
    Json,
}
