//! Finds the few lines of a log that matter without looking at the others.
//!
//! Most of a build log is other tools' text. Whatever matters in it, a message of a CUDA tool, an error of any tool, a
//! figure of a listing, has one of a few words in it: these are searched for, at memory speed, and only a line with one of
//! them is ever split from its neighbours.

use std::sync::LazyLock;

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem::Finder;

static FRAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" bytes stack frame"));
static LISTING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("REG:"));

/// What a line that matters has in it. Each begins with three bytes that are rare in a log, as these are what is looked at
/// first.
const SIGNS: [&str; 20] = [
    // The severities of the CUDA tools, padded with whatever a copy left of it.
    "  :",
    "\t :",
    "o :",
    "g :",
    "r :",
    "l :",
    " \t:",
    "\t\t:",
    "o\t:",
    "g\t:",
    "r\t:",
    "l\t:",
    "info:",
    "error:",
    "Error:",
    "ERROR:",
    "REG:",
    "FAILED:",
    // make
    ": *** [",
    // ninja
    "ja: build stopped",
];

/// What has to be looked at closer: `error C2065:`, `CMake Error at x.txt:3 (message):`.
const DOUBTFUL: [&str; 2] = ["error ", "e Error "];

static ALL: LazyLock<Searcher> = LazyLock::new(Searcher::new);

/// A search for all signs at once: with vector instructions, or without where the machine has none.
enum Searcher {
    Packed(packed::Searcher),
    Plain(AhoCorasick),
}

impl Searcher {
    fn new() -> Searcher {
        let signs = || SIGNS.iter().chain(&DOUBTFUL);
        match packed::Searcher::new(signs()) {
            Some(packed) => Searcher::Packed(packed),
            None => Searcher::Plain(
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostFirst)
                    .build(signs())
                    .expect("bug: the signs are fixed"),
            ),
        }
    }

    /// Which sign is the first at or after `from`, and where it starts and ends.
    fn first(&self, text: &[u8], from: usize) -> Option<(usize, usize, usize)> {
        let found = match self {
            Searcher::Packed(searcher) => searcher.find_in(text, (from..text.len()).into()),
            Searcher::Plain(searcher) => searcher.find(aho_corasick::Input::new(text).range(from..)),
        }?;
        Some((found.pattern().as_usize(), found.start(), found.end()))
    }
}

/// Whether `line` can hold figures of a `cuobjdump` listing.
pub(crate) fn holds_listing(line: &[u8]) -> bool {
    LISTING.find(line).is_some()
}

/// Whether `line` can hold the error of another tool.
pub(crate) fn holds_error(line: &[u8]) -> bool {
    next_sign(line, 0).is_some()
}

/// Walks the places that matter in one buffer, in order.
pub(crate) struct Scanner {
    end: usize,
    sign: Next,
    /// Stack frames, which have no sign: looked for in a log of which nothing else was read yet.
    frame: Next,
}

/// The next place of one kind.
#[derive(Clone, Copy)]
enum Next {
    /// Before this position there is none, after it nobody has looked.
    SearchFrom(usize),
    At(usize),
    Nowhere,
}

impl Next {
    /// The first place at or after `from`; `search` is asked only when it is not known, so that no byte is looked at twice.
    fn at_or_after(&mut self, from: usize, search: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let unseen = match *self {
            Next::At(at) if at >= from => return Some(at),
            Next::At(_) => from,
            Next::SearchFrom(searched) => from.max(searched),
            Next::Nowhere => return None,
        };
        let found = search(unseen);
        *self = found.map_or(Next::Nowhere, Next::At);
        found
    }
}

impl Scanner {
    /// Over the first `end` bytes of a buffer.
    pub(crate) fn new(end: usize, frames: bool) -> Scanner {
        Scanner { end, sign: Next::SearchFrom(0), frame: if frames { Next::SearchFrom(0) } else { Next::Nowhere } }
    }

    /// The first place that matters at or after `from`.
    pub(crate) fn find(&mut self, buffer: &[u8], from: usize) -> Option<usize> {
        let text = &buffer[..self.end];
        let sign = self.sign.at_or_after(from, |from| next_sign(text, from));
        let frame = self.frame.at_or_after(from, |from| FRAME.find(&text[from..]).map(|at| from + at));
        [sign, frame].into_iter().flatten().min()
    }
}

/// The first sign at or after `from`: its last byte, which is the colon where it has one.
fn next_sign(text: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    loop {
        let (sign, start, end) = ALL.first(text, from)?;
        if sign < SIGNS.len() || is_numbered(&text[end..]) || text[..end].ends_with(b"CMake Error ") {
            return Some(end - 1);
        }
        from = start + 1;
    }
}

/// What follows `error ` in `error C2065:`, `error #20-D :`.
fn is_numbered(after: &[u8]) -> bool {
    const LONGEST: usize = 12;
    let code = after.iter().take(LONGEST).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'#' | b'-')).count();
    let after = &after[code..];
    after.strip_prefix(b" ").unwrap_or(after).starts_with(b":")
}

/// Where the line that holds `at` starts, not before `floor`.
pub(crate) fn line_start(buffer: &[u8], floor: usize, at: usize) -> usize {
    memchr::memrchr2(b'\n', b'\r', &buffer[floor..at]).map_or(floor, |end| floor + end + 1)
}

/// Where the line that holds `at` ends: at its line feed, its carriage return, or `ceiling`.
pub(crate) fn line_end(buffer: &[u8], at: usize, ceiling: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &buffer[at..ceiling]).map_or(ceiling, |end| at + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, frames: bool) -> Vec<&str> {
        let mut scanner = Scanner::new(text.len(), frames);
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = scanner.find(text.as_bytes(), from) {
            found.push(&text[at..(at + 3).min(text.len())]);
            from = at + 1;
        }
        found
    }

    #[test]
    fn colons_of_messages_errors_and_listings_are_found() {
        for line in [
            "ptxas info    : x",
            "ptxas info: x",
            "ptxas info\t: x",
            "x.cu(1): error: x",
            "a.cpp(3): error C2065: x",
            "x.cu(1): error #20-D: x",
            "CUDACOMPILE : x",
            "  REG:10 STACK:0",
            "FAILED: a.o",
            "ninja: build stopped: x",
            "make[3]: *** [a.o] Error 2",
            "ERROR: x",
            "RuntimeError: x",
            "CMake Error at x.txt:3 (message):",
            "CMake Error in x.txt:",
        ] {
            assert!(!found(line, false).is_empty(), "{line}");
        }
    }

    #[test]
    fn other_colons_are_passed_over() {
        for line in [
            "ns::k(int): warning: unused",
            "host.cpp:12:3: note",
            "[ 25%] Building a:b",
            "C:\\x",
            "make: Entering",
            "f(int): x",
            ":",
        ] {
            assert!(found(line, false).is_empty(), "{line}");
        }
    }

    #[test]
    fn places_come_in_order_and_frames_only_when_asked_for() {
        let text = "noise\nx REG:1\n    8 bytes stack frame\nptxas info: a : b\n tail";
        assert_eq!(found(text, false), [":1\n", ": a", ": b"]);
        assert_eq!(found(text, true), [":1\n", " by", ": a", ": b"]);
    }

    #[test]
    fn a_line_lies_between_line_feeds_or_carriage_returns() {
        let buffer = b"a\r\nbc\rd\n";
        assert_eq!((line_start(buffer, 0, 4), line_end(buffer, 4, 8)), (3, 5));
        assert_eq!((line_start(buffer, 0, 6), line_end(buffer, 6, 8)), (6, 7));
        assert_eq!((line_start(buffer, 4, 4), line_end(buffer, 7, 7)), (4, 7));
    }
}
