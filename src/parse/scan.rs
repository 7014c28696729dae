//! Finds the few lines of a log that matter without looking at the others.
//!
//! Most of a build log is other tools' text. Whatever matters in it, a message of a CUDA tool, an error of any tool, a
//! figure of a listing, has one of a few words in it: these are searched for, at memory speed, and only a line with one of
//! them is ever split from its neighbours.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::needles::{Found, Needles};

/// Stack frames, and the padding of messages as browsers copy it.
static RARE: LazyLock<Needles> = LazyLock::new(|| {
    Needles::new(&[" bytes stack frame", "\u{a0}:", "&nbsp;:", "&#160;:"]).expect("bug: the signs are few")
});
static LISTING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("REG:"));

/// The padded form of all severities of the CUDA tools ends like this.
static PADDED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" :"));

/// What else a line that matters has in it: three bytes that are rare in a log, with what stands before and after them.
const SIGNS: [(&str, &str, &str); 17] = [
    // A severity whose padding a copy squeezed or made a tab.
    ("in", "fo:", ""),
    ("", "o\t:", ""),
    ("", "g\t:", ""),
    ("", "r\t:", ""),
    ("", "l\t:", ""),
    // `error:`, `error C2065:`, `CMake Error at x.txt:3 (message):`
    ("", "rro", ""),
    ("ERR", "OR:", ""),
    ("R", "EG:", ""),
    ("FAIL", "ED:", ""),
    // make
    ("", ": *", "** ["),
    // ninja
    ("nin", "ja:", " build stopped"),
    ("", "\t\t:", ""),
    ("", " \t:", ""),
    // `fatal:` without its padding.
    ("fat", "al:", ""),
    // `warning:` without its padding. Host compilers say it on every other line, so each is looked for with who says it:
    // the first three bytes of these are rare (`xas` would be on every line of ptxas), and only there are the others compared.
    ("ptxa", "s warning:", ""),
    ("", "; warning:", ""),
    ("", "nvlink warning:", ""),
];

static ALL: LazyLock<Needles> =
    LazyLock::new(|| Needles::new(&SIGNS.map(|(_, sign, _)| sign)).expect("bug: the signs are few"));

/// Whether `line` can hold figures of a `cuobjdump` listing.
pub(crate) fn holds_listing(line: &[u8]) -> bool {
    LISTING.find(line).is_some()
}

/// Whether `line` can hold the error of another tool.
pub(crate) fn holds_error(line: &[u8]) -> bool {
    PADDED.find(line).is_some() || next_sign(line, 0, line.len()).is_some()
}

/// Whether `line` may have been found by nothing but a rare sign.
pub(crate) fn holds_rare_sign(line: &[u8]) -> bool {
    RARE.are_in(line)
}

/// Walks the places that matter in one buffer, in order.
pub(crate) struct Scanner {
    end: usize,
    padded: Next,
    sign: Next,
    /// What has none of the usual signs: looked for in a log of which nothing else was read yet, or something like this.
    rare: Next,
}

/// The next place of one kind.
#[derive(Clone, Copy)]
enum Next {
    /// Before this position there is none, after it nobody has looked.
    SearchFrom(usize),
    At(usize),
}

impl Next {
    /// The first place at or after `from` and before `to`; `search` is asked only for what nobody has looked at, so that
    /// no byte is looked at twice.
    fn within(&mut self, from: usize, to: usize, search: impl Fn(usize, usize) -> Option<usize>) -> Option<usize> {
        let unseen = match *self {
            Next::At(at) if at >= from => return Some(at),
            Next::At(_) => from,
            Next::SearchFrom(searched) => from.max(searched),
        };
        if unseen >= to {
            return None;
        }
        let found = search(unseen, to);
        *self = found.map_or(Next::SearchFrom(to), Next::At);
        found
    }
}

impl Scanner {
    /// Over the first `end` bytes of a buffer.
    pub(crate) fn new(end: usize) -> Scanner {
        let start = Next::SearchFrom(0);
        Scanner { end, padded: start, sign: start, rare: start }
    }

    /// The first place that matters at or after `from`; what has none of the usual signs matters if `rare` says so.
    pub(crate) fn find(&mut self, buffer: &[u8], from: usize, rare: bool) -> Option<usize> {
        let padded = self.padded.within(from, self.end, |from, to| padded_colon(&buffer[..to], from));
        let to = padded.unwrap_or(self.end);
        let sign = self.sign.within(from, to, |from, to| next_sign(&buffer[..self.end], from, to)).or(padded);
        let to = sign.unwrap_or(self.end);
        if !rare {
            return sign;
        }
        self.rare.within(from, to, |from, to| next_rare(&buffer[..to], from)).or(sign)
    }
}

fn padded_colon(text: &[u8], from: usize) -> Option<usize> {
    PADDED.find(&text[from..]).map(|at| from + at + 1)
}

fn next_rare(text: &[u8], from: usize) -> Option<usize> {
    RARE.first(text, from, text.len()).map(|found| found.start)
}

/// The first sign between `from` and `to`: its last byte, which is the colon where it has one.
fn next_sign(text: &[u8], from: usize, to: usize) -> Option<usize> {
    let mut from = from;
    loop {
        let Found { word, start, end } = ALL.first(text, from, to)?;
        let (before, sign, after) = SIGNS[word];
        let (head, tail) = (&text[..start], &text[end..]);
        if head.ends_with(before.as_bytes())
            && tail.starts_with(after.as_bytes())
            && (sign != "rro" || is_error(head, tail))
        {
            return Some(end - 1);
        }
        from = start + 1;
    }
}

/// Whether `rro` between these is of `error:`, `error C2065:`, `error #20-D :`, `CMake Error at`, or of what tools say of
/// nvcc: `# --error 0x89 --`, `nvcc error while executing`, and a row of Visual Studio's list of errors.
fn is_error(head: &[u8], tail: &[u8]) -> bool {
    const LONGEST: usize = 12;
    let Some(tail) = tail.strip_prefix(b"r") else { return false };
    if !head.ends_with(b"e") && !head.ends_with(b"E") {
        return false;
    }
    if tail.starts_with(b":") || [&b"CMake E"[..], b"# --e"].iter().any(|lead| head.ends_with(lead)) {
        return true;
    }
    if tail.starts_with(b" while executing") || tail.starts_with(b"\tMSB") {
        return true;
    }
    let Some(code) = tail.strip_prefix(b" ") else { return false };
    let length =
        code.iter().take(LONGEST).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'#' | b'-')).count();
    let after = &code[length..];
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

    fn found(text: &str, rare: bool) -> Vec<&str> {
        let mut scanner = Scanner::new(text.len());
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = scanner.find(text.as_bytes(), from, rare) {
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
            "ptxas error \t: x",
            "ptxas error  \t\t: x",
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
            "ptxas warning: x",
            "ptxas fatal: x",
            "ptxas x.ptx, line 8; warning: x",
            "ptxas x.ptx, line 8; fatal: x",
            "nvlink warning: x",
            "nvlink fatal: x",
            "nvcc fatal: x",
            "cuobjdump fatal: x",
            "  # --error 0x89 --",
            "nvcc error while executing x",
            "Error\tMSB3721\tx",
        ] {
            assert!(!found(line, false).is_empty(), "{line}");
        }
    }

    #[test]
    fn other_colons_are_passed_over() {
        for line in [
            "ns::k(int): warning: unused",
            "a.cpp:3:7: warning: unused",
            "make: warning: Clock skew detected.",
            "Total: 3",
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
    fn places_come_in_order_and_rare_signs_only_when_asked_for() {
        let text = "noise\nx REG:1\n    8 bytes stack frame\nptxas info: a : b\n tail";
        assert_eq!(found(text, false), [":1\n", ": a", ": b"]);
        assert_eq!(found(text, true), [":1\n", " by", ": a", ": b"]);
        let copied = "x\nptxas info&nbsp;&nbsp;: a\n";
        assert_eq!((found(copied, false), found(copied, true)), (vec![], vec!["&nb"]));
    }

    #[test]
    fn a_line_lies_between_line_feeds_or_carriage_returns() {
        let buffer = b"a\r\nbc\rd\n";
        assert_eq!((line_start(buffer, 0, 4), line_end(buffer, 4, 8)), (3, 5));
        assert_eq!((line_start(buffer, 0, 6), line_end(buffer, 6, 8)), (6, 7));
        assert_eq!((line_start(buffer, 4, 4), line_end(buffer, 7, 7)), (4, 7));
    }
}
