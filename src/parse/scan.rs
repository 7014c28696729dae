//! Finds the few lines of a log that matter without looking at the others.
//!
//! Most of a build log is other tools' text. A handful of substring searches, each vectorised, passes over it at memory
//! speed; only a line that holds one of the needles is ever split from its neighbours.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Every message of a CUDA tool in its usual form holds the first; the others catch squeezed forms, other tools' errors,
/// and the listing of `cuobjdump`, which is not made of messages.
const NEEDLES: [&str; 4] = [" :", "ptxas info", "rror", "REG:"];

static FINDERS: LazyLock<[Finder<'static>; NEEDLES.len()]> = LazyLock::new(|| NEEDLES.map(Finder::new));

/// Whether `line` can hold figures of a `cuobjdump` listing.
pub(crate) fn holds_listing(line: &[u8]) -> bool {
    FINDERS[3].find(line).is_some()
}

/// Whether `line` can hold the error of another tool.
pub(crate) fn holds_error(line: &[u8]) -> bool {
    FINDERS[2].find(line).is_some()
}

/// Walks the occurrences of all needles in one buffer, in order.
pub(crate) struct Scanner {
    next: [usize; NEEDLES.len()],
    end: usize,
}

impl Scanner {
    /// Over the first `end` bytes of a buffer.
    pub(crate) fn new(end: usize) -> Scanner {
        // 0 is before every position that will be asked for, so each needle is searched for on first use.
        Scanner { next: [0; NEEDLES.len()], end }
    }

    /// The first occurrence of any needle at or after `from`.
    pub(crate) fn find(&mut self, buffer: &[u8], from: usize) -> Option<usize> {
        let mut first = usize::MAX;
        for (finder, next) in FINDERS.iter().zip(&mut self.next) {
            if *next <= from {
                *next = finder.find(&buffer[from..self.end]).map_or(usize::MAX, |at| from + at);
            }
            first = first.min(*next);
        }
        (first != usize::MAX).then_some(first)
    }
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

    #[test]
    fn needles_are_found_in_order_and_once_each() {
        let buffer = b"noise\nx REG:1\nptxas info: a : b\nerror\n tail";
        let mut scanner = Scanner::new(buffer.len());
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = scanner.find(buffer, from) {
            found.push(at);
            from = at + 1;
        }
        assert_eq!(found, [8, 14, 27, 33]);
    }

    #[test]
    fn a_line_lies_between_line_feeds_or_carriage_returns() {
        let buffer = b"a\r\nbc\rd\n";
        assert_eq!((line_start(buffer, 0, 4), line_end(buffer, 4, 8)), (3, 5));
        assert_eq!((line_start(buffer, 0, 6), line_end(buffer, 6, 8)), (6, 7));
        assert_eq!((line_start(buffer, 4, 4), line_end(buffer, 7, 7)), (4, 7));
    }
}
