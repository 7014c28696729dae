//! A size in bytes, so that a count of bytes is never mistaken for another number.

use std::fmt;
use std::ops::Add;

/// A number of bytes that belongs to one kernel or block: always far below 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u32);

impl Bytes {
    /// No bytes at all, as stated by the compiler; what is unknown is `None` instead.
    pub const ZERO: Bytes = Bytes(0);

    /// The plain count.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }

    /// True when the compiler stated zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Bytes {
    type Output = Bytes;

    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Bytes {
    /// Written as `852 B`; whole KiB from 4 KiB up as `48 KiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 4096 && n % 1024 == 0 => write!(f, "{} KiB", n / 1024),
            n => write!(f, "{n} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_kibibytes_are_shown_as_such_and_nothing_is_rounded() {
        assert_eq!(Bytes(852).to_string(), "852 B");
        assert_eq!(Bytes(1024).to_string(), "1024 B");
        assert_eq!(Bytes(49152).to_string(), "48 KiB");
        assert_eq!(Bytes(49153).to_string(), "49153 B");
    }
}
