//! Finds the few lines of a log that matter without looking at the others.
//!
//! Most of a build log is other tools' text. Whatever matters in it, a message of a CUDA tool, an error of any tool, a
//! figure of a listing, has a colon, and what stands before the colon tells it from the others: so colons are searched
//! for, at memory speed, and only a line with one that counts is ever split from its neighbours.

use std::sync::LazyLock;

use memchr::memmem::Finder;

static FRAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" bytes stack frame"));
static LISTING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("REG:"));

/// Whether `line` can hold figures of a `cuobjdump` listing.
pub(crate) fn holds_listing(line: &[u8]) -> bool {
    LISTING.find(line).is_some()
}

/// Whether `line` can hold the error of another tool.
pub(crate) fn holds_error(line: &[u8]) -> bool {
    memchr::memchr_iter(b':', line).any(|at| matters(line, at))
}

/// Walks the places that matter in one buffer, in order.
pub(crate) struct Scanner {
    end: usize,
    colon: Next,
    /// Stack frames, which have no colon: looked for in a log of which nothing else was read yet.
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
        Scanner { end, colon: Next::SearchFrom(0), frame: if frames { Next::SearchFrom(0) } else { Next::Nowhere } }
    }

    /// The first place that matters at or after `from`.
    pub(crate) fn find(&mut self, buffer: &[u8], from: usize) -> Option<usize> {
        let text = &buffer[..self.end];
        let colon = self.colon.at_or_after(from, |from| mattering_colon(text, from));
        let frame = self.frame.at_or_after(from, |from| FRAME.find(&text[from..]).map(|at| from + at));
        [colon, frame].into_iter().flatten().min()
    }
}

fn mattering_colon(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b':', &text[at..])?;
        if matters(text, at) {
            return Some(at);
        }
        at += 1;
    }
}

/// Whether the colon at `colon` can be that of a message, an error or a listing.
fn matters(buffer: &[u8], colon: usize) -> bool {
    let (before, after) = buffer.split_at(colon);
    match before.last() {
        // The padded forms of all CUDA tools.
        Some(b' ' | b'\t') => true,
        // The same, squeezed by a copy.
        Some(b'o') => before.ends_with(b"info"),
        Some(b'r') => before.ends_with(b"error") || before.ends_with(b"Error"),
        Some(b'R') => before.ends_with(b"ERROR"),
        Some(b'G') => before.ends_with(b"REG"),
        Some(b'D') => before.ends_with(b"FAILED") || is_numbered_error(before),
        Some(b'0'..=b'9') => is_numbered_error(before),
        Some(b'a') => before.ends_with(b"ninja") && after.starts_with(b": build stopped"),
        Some(b']') => after.starts_with(b": *** ["),
        Some(b'e') => after.starts_with(b": *** [") || (ends_line(after) && before.ends_with(b".cmake")),
        // `CMake Error at CMakeLists.txt:3 (message):`
        Some(b')') => ends_line(after),
        Some(b't') => ends_line(after) && before.ends_with(b".txt"),
        _ => false,
    }
}

/// Whether the colon at the start of `after` is the last byte of its line.
fn ends_line(after: &[u8]) -> bool {
    matches!(after.get(1), None | Some(b'\n' | b'\r'))
}

/// `error C2065`, `error #20-D`
fn is_numbered_error(before: &[u8]) -> bool {
    const LONGEST: usize = 12;
    let is_code = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'#' | b'-');
    let tail = &before[before.len().saturating_sub(LONGEST + 1)..];
    let code = tail.iter().rposition(|b| !is_code(b));
    code.is_some_and(|blank| {
        tail[blank] == b' ' && before[..before.len() - (tail.len() - blank) + 1].ends_with(b"error ")
    })
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
