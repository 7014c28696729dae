//! The architecture that a kernel was compiled for, such as `sm_90a`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A compute capability with the feature suffix of the code, as in `sm_80`, `sm_90a`, `sm_103f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// Major compute capability: 9 in `sm_90`, 12 in `sm_120`.
    pub major: u8,
    /// Minor compute capability: always one digit.
    pub minor: u8,
    /// `a` or `f`, where the code uses features that only some devices have.
    pub suffix: Option<Suffix>,
}

/// What a suffix restricts code to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suffix {
    /// `a`: exactly this compute capability.
    Specific,
    /// `f`: this compute capability and later ones of the same family.
    Family,
}

impl Arch {
    /// The architecture of compute capability `major.minor`, without a suffix.
    #[must_use]
    pub const fn new(major: u8, minor: u8) -> Arch {
        Arch { major, minor, suffix: None }
    }

    /// The same compute capability without its suffix: the device that the limits belong to.
    #[must_use]
    pub const fn device(self) -> Arch {
        Arch::new(self.major, self.minor)
    }

    /// True from compute capability `major.minor` on.
    #[must_use]
    pub fn at_least(self, major: u8, minor: u8) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether a device of compute capability `device` runs machine code made for `self`: the same major version and
    /// no lower minor; with `a` only the very same, with `f` the later members of the family.
    #[must_use]
    pub fn runs_on(self, device: Arch) -> bool {
        match self.suffix {
            Some(Suffix::Specific) => self.device() == device.device(),
            Some(Suffix::Family) | None => self.major == device.major && self.minor <= device.minor,
        }
    }

    /// Whether PTX of the target `self` is compiled at load for a device of compute capability `device`: any later one, with
    /// `a` only the very same, with `f` the later members of the family.
    #[must_use]
    pub fn compiles_for(self, device: Arch) -> bool {
        match self.suffix {
            Some(_) => self.runs_on(device),
            None => self <= device.device(),
        }
    }

    /// Reads `sm_90a` or `compute_90a` from bytes; `None` for anything else.
    #[must_use]
    pub fn from_bytes(text: &[u8]) -> Option<Arch> {
        let rest = text.strip_prefix(b"sm_").or_else(|| text.strip_prefix(b"compute_"))?;
        let (digits, suffix) = match rest {
            [digits @ .., b'a'] => (digits, Some(Suffix::Specific)),
            [digits @ .., b'f'] => (digits, Some(Suffix::Family)),
            digits => (digits, None),
        };
        if !(2..=3).contains(&digits.len()) || digits[0] == b'0' || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = digits.iter().fold(0_u16, |n, d| n * 10 + u16::from(d - b'0'));
        Some(Arch { major: u8::try_from(number / 10).ok()?, minor: u8::try_from(number % 10).ok()?, suffix })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Some(Suffix::Specific) => "a",
            Some(Suffix::Family) => "f",
            None => "",
        };
        write!(f, "sm_{}{}{suffix}", self.major, self.minor)
    }
}

/// The text is no architecture name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no architecture; they look like sm_80, sm_90a or sm_103f")]
pub struct ArchError(String);

impl FromStr for Arch {
    type Err = ArchError;

    fn from_str(text: &str) -> Result<Arch, ArchError> {
        Arch::from_bytes(text.as_bytes()).ok_or_else(|| ArchError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arch(text: &str) -> Arch {
        text.parse().expect("a test names a good architecture")
    }

    #[test]
    fn names_survive_reading_and_writing() {
        for name in ["sm_10", "sm_13", "sm_52", "sm_80", "sm_90a", "sm_100f", "sm_103a", "sm_121"] {
            assert_eq!(arch(name).to_string(), name);
        }
        assert_eq!(arch("compute_120f").to_string(), "sm_120f");
    }

    #[test]
    fn what_is_no_architecture_is_refused() {
        for name in ["", "sm_", "sm_9", "sm_90x", "sm_9a0", "sm_0090", "sm_09", "sm_2550", "90", "gfx90a", "sm_٩٠"] {
            assert!(Arch::from_str(name).is_err(), "{name}");
        }
    }

    #[test]
    fn code_runs_on_later_minors_of_its_major_and_suffixed_code_on_less() {
        assert!(arch("sm_80").runs_on(arch("sm_86")));
        assert!(!arch("sm_86").runs_on(arch("sm_80")));
        assert!(!arch("sm_80").runs_on(arch("sm_90")));
        assert!(arch("sm_90a").runs_on(arch("sm_90")));
        assert!(!arch("sm_100a").runs_on(arch("sm_103")));
        assert!(arch("sm_100f").runs_on(arch("sm_103")));
        assert!(!arch("sm_100f").runs_on(arch("sm_120")));
    }

    #[test]
    fn ptx_is_compiled_for_every_later_device_and_with_a_suffix_for_less() {
        assert!(arch("sm_80").compiles_for(arch("sm_90")));
        assert!(arch("sm_80").compiles_for(arch("sm_80")));
        assert!(!arch("sm_90").compiles_for(arch("sm_80")));
        assert!(arch("sm_90a").compiles_for(arch("sm_90")));
        assert!(!arch("sm_90a").compiles_for(arch("sm_100")));
        assert!(arch("sm_100f").compiles_for(arch("sm_103")));
        assert!(!arch("sm_100f").compiles_for(arch("sm_120")));
    }
}
