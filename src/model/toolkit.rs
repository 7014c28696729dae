//! The release of the CUDA toolkit that compiled what was read.

use std::fmt;
use std::str::FromStr;

/// A release of the toolkit, as `13.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toolkit {
    /// 13 of `13.0`.
    pub major: u16,
    /// 0 of `13.0`.
    pub minor: u16,
}

impl Toolkit {
    /// The release at the beginning of `text`, as in `13.0, V13.0.88` and `12.4.131`.
    #[must_use]
    pub fn at_start(text: &[u8]) -> Option<Toolkit> {
        let (major, rest) = number(text)?;
        let (minor, _) = number(rest.strip_prefix(b".")?)?;
        Some(Toolkit { major, minor })
    }
}

/// A number of one to three digits, and what follows it.
fn number(text: &[u8]) -> Option<(u16, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    (1..=3).contains(&digits.len()).then(|| (digits.iter().fold(0, |n, digit| n * 10 + u16::from(digit - b'0')), rest))
}

impl fmt::Display for Toolkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The text is no release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no release of the CUDA toolkit; they look like 13.0")]
pub struct ToolkitError(String);

impl FromStr for Toolkit {
    type Err = ToolkitError;

    fn from_str(text: &str) -> Result<Toolkit, ToolkitError> {
        let read = Toolkit::at_start(text.as_bytes()).filter(|toolkit| toolkit.to_string() == text);
        read.ok_or_else(|| ToolkitError(super::symbol::printable(text).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_two_numbers() {
        assert_eq!(Toolkit::at_start(b"13.0, V13.0.88"), Some(Toolkit { major: 13, minor: 0 }));
        assert_eq!(Toolkit::at_start(b"12.4.131").map(|one| one.to_string()).as_deref(), Some("12.4"));
        for text in ["", "13", "13.", ".1", "x", "99999.0", "V13.0"] {
            assert_eq!(Toolkit::at_start(text.as_bytes()), None, "{text}");
        }
        assert!("13.0".parse::<Toolkit>().is_ok() && "13.0.1".parse::<Toolkit>().is_err());
    }
}
