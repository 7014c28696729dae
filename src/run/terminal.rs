//! What the terminal at standard output can show, as the environment tells it.

use std::ffi::OsString;

/// Whether characters beyond ASCII can be drawn: the locale is one of UTF-8, and the terminal has signs to draw with. A dumb
/// one may not, and the font of the Linux console has few.
pub(super) fn draws_unicode() -> bool {
    draws(|name| std::env::var_os(name), cfg!(windows) || cfg!(target_os = "macos"))
}

fn draws(variable: impl Fn(&str) -> Option<OsString>, is_always_utf8: bool) -> bool {
    let has_signs = variable("TERM").is_none_or(|term| term != "dumb" && term != "linux");
    // The first that is set decides, as the C library has it.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    let named = |value: OsString| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    };
    has_signs && (is_always_utf8 || locale.is_some_and(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(set: &[(&str, &str)]) -> bool {
        draws(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()), false)
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        assert!(drawn(&[("LANG", "en_US.UTF-8")]));
        assert!(drawn(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!drawn(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(drawn(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]));
        assert!(!drawn(&[]) && !drawn(&[("LANG", "POSIX")]));
    }

    #[test]
    fn a_terminal_without_signs_gets_ascii_whatever_the_locale() {
        for term in ["dumb", "linux"] {
            assert!(!drawn(&[("TERM", term), ("LANG", "en_US.UTF-8")]), "{term}");
        }
        assert!(drawn(&[("TERM", "xterm-256color"), ("LANG", "en_US.UTF-8")]));
        assert!(!draws(|_| Some("dumb".into()), true));
    }
}
