//! Which job wrote a line, where what stands before the record says so.

/// The mark of a job at the start of `prefix`: `#17 ` of BuildKit, where it is the step, or `1>` of MSBuild and Visual
/// Studio, where it is the project.
pub(super) fn stream(prefix: &[u8]) -> Option<u32> {
    let text = prefix.trim_ascii_start();
    let (kind, rest) = match text.strip_prefix(b"#") {
        Some(rest) => (1, rest),
        None => (2, text),
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let after: &[u8] = if kind == 1 { b" " } else { b">" };
    if !(1..=6).contains(&digits) || !rest[digits..].starts_with(after) {
        return None;
    }
    let number = rest[..digits].iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0'));
    Some(number * 4 + kind)
}

/// `line` without what stands before it, where that is of the same form as `prefix`, which stood before the line above: a
/// time may have moved on.
pub(super) fn without<'l>(line: &'l [u8], prefix: &[u8]) -> &'l [u8] {
    after(line, prefix.trim_ascii_end()).unwrap_or(line)
}

fn after<'l>(line: &'l [u8], prefix: &[u8]) -> Option<&'l [u8]> {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (mut line, mut prefix) = (line, prefix);
    while let Some((first, rest)) = prefix.split_first() {
        let (expected, here) = (digits(prefix), digits(line));
        if (expected == 0) != (here == 0) {
            return None;
        }
        (line, prefix) = match expected {
            0 => (line.strip_prefix(std::slice::from_ref(first))?, rest),
            _ => (&line[here..], &prefix[expected..]),
        };
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_what_stood_before_the_one_above() {
        for (line, above, rest) in [
            ("1>_Z1k is", "1>", "_Z1k is"),
            ("1>    call", "1>  ", "    call"),
            ("#17 12.9 call", "#17 9.34 ", " call"),
            ("2026-03-04T05:00:01.1Z call", "2026-03-04T05:00:00.0022657Z ", " call"),
            ("call", "1>", "call"),
            ("1 call", "1> ", "1 call"),
            ("", "#1 2 ", ""),
            ("call", "", "call"),
        ] {
            let found = without(line.as_bytes(), above.as_bytes());
            assert_eq!(String::from_utf8_lossy(found), rest, "{line}");
        }
    }

    #[test]
    fn steps_and_projects_are_streams_and_time_stamps_are_none() {
        assert_ne!(stream(b"#17 12.34 "), stream(b"#18 0.1 "));
        assert_ne!(stream(b"  1>  "), stream(b"#1 0.5 "));
        assert_eq!(stream(b"#17 12.34 "), stream(b"#17 12.99 "));
        for none in ["2026-03-04T05:00:00.0022657Z ", "# ", "> ", "12 ", "[2/4] ", "", "    ", "1234567890>"] {
            assert_eq!(stream(none.as_bytes()), None, "{none}");
        }
    }
}
