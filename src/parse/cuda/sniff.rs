//! Tells CUDA source text from a log, by how it begins.

use super::lexer::may_hold_device_code;

/// Whether a text that begins so is CUDA source: it begins as C++ does, and device code follows.
#[must_use]
pub fn looks_like_source(start: &[u8]) -> bool {
    begins_as_source(start) == Some(true) && may_hold_device_code(start)
}

/// Whether a text of which no more than `start` has come may still be CUDA source, and is not known to be.
#[must_use]
pub fn may_become_source(start: &[u8]) -> bool {
    begins_as_source(start).is_none_or(|is_source| is_source && !may_hold_device_code(start))
}

/// Whether the first word behind comments is one that sources begin with, and logs do not; `None` where it has not come.
fn begins_as_source(start: &[u8]) -> Option<bool> {
    let mut rest = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    loop {
        rest = rest.trim_ascii_start();
        let behind = match rest {
            [] | [b'/'] => return None,
            [b'/', b'/', ..] => memchr::memchr2(b'\n', b'\r', rest)?,
            [b'/', b'*', ..] => memchr::memmem::find(&rest[2..], b"*/")? + 4,
            _ => break,
        };
        rest = &rest[behind..];
    }
    let end = memchr::memchr2(b'\n', b'\r', rest);
    let line = &rest[..end.unwrap_or(rest.len())];
    let (line, words) = match line.strip_prefix(b"#") {
        Some(name) => (name.trim_ascii_start(), &DIRECTIVES[..]),
        None => (line, &WORDS[..]),
    };
    if words.iter().any(|word| line.starts_with(word)) {
        return Some(true);
    }
    // The word itself may have come in part.
    if end.is_none() && words.iter().any(|word| word.starts_with(line)) { None } else { Some(false) }
}

const DIRECTIVES: [&[u8]; 7] = [b"include", b"pragma", b"define", b"if ", b"ifdef", b"ifndef", b"undef"];

const WORDS: [&[u8]; 9] = [
    b"__global__",
    b"__device__",
    b"__constant__",
    b"static __",
    b"template<",
    b"template <",
    b"extern \"C\"",
    b"using namespace",
    b"namespace ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_told_from_a_log_by_its_first_line_of_code() {
        for text in [
            "#include <cstdio>\n__global__ void k() {}\n",
            "/* licence\n */\n// more\n\n#pragma once\r\n__device__ int f();\n",
            "\u{feff}__global__ void k() {}\n",
            "template <int N>\n__global__ void k() {}\n",
        ] {
            assert!(looks_like_source(text.as_bytes()), "{text}");
            assert!(!may_become_source(text.as_bytes()), "{text}");
        }
        for text in [
            "nvcc -c k.cu\nk.cu(3): error: x\n__global__ void k() {\n",
            "#1 [internal] load\n__global__",
            "/usr/bin/nvcc -c k.cu\n<<<\n",
            "ptxas info    : Used 8 registers\n",
            "#include <x>\nint main() {}\n",
        ] {
            assert!(!looks_like_source(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_has_not_come_yet_is_waited_for_only_where_it_may_matter() {
        for text in ["", "\n", "/", "// a", "/* a", "#include <x>", "#include <x>\n", "#inc", "__glo"] {
            assert!(may_become_source(text.as_bytes()), "{text}");
        }
        for text in ["ptxas info\n", "[1/2] Building", "Password: ", "/usr/bin/make\n", "# 1 done\n", "# 1"] {
            assert!(!may_become_source(text.as_bytes()), "{text}");
        }
    }
}
