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

#[cfg(test)]
mod tests {
    use super::*;

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
