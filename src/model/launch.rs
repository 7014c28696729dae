//! What a launch is given besides the kernel: the size of a block, and sizes of memory as people write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Bytes;

/// Threads of the largest block that any GPU launches (CUDA Programming Guide, limits by compute capability).
const MAX_THREADS: u32 = 1024;

/// The largest third dimension of a block (CUDA Programming Guide, limits by compute capability).
const MAX_Z: u32 = 64;

/// The dimensions of a block, in threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockSize {
    /// Threads in x, which are next to each other in a warp.
    pub x: u32,
    /// Threads in y.
    pub y: u32,
    /// Threads in z.
    pub z: u32,
}

impl BlockSize {
    /// A block of these dimensions.
    ///
    /// # Errors
    /// When no GPU launches such a block.
    pub fn new(x: u32, y: u32, z: u32) -> Result<BlockSize, BlockSizeError> {
        let block = BlockSize { x, y, z };
        if [x, y, z].contains(&0) {
            return Err(BlockSizeError::Zero(block.to_string()));
        }
        let threads = u64::from(x).saturating_mul(u64::from(y)).saturating_mul(u64::from(z));
        if threads > u64::from(MAX_THREADS) {
            return Err(BlockSizeError::TooMany { block: block.to_string(), threads });
        }
        if z > MAX_Z {
            return Err(BlockSizeError::TooDeep(z));
        }
        Ok(block)
    }

    /// Threads of the block.
    #[must_use]
    pub fn threads(self) -> u32 {
        self.x * self.y * self.z
    }

    /// The dimensions in order, as JSON has them.
    #[must_use]
    pub fn dimensions(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

impl fmt::Display for BlockSize {
    /// `256`, `16×16` or `8×8×4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.x, self.y, self.z) {
            (x, 1, 1) => write!(f, "{x}"),
            (x, y, 1) => write!(f, "{x}×{y}"),
            (x, y, z) => write!(f, "{x}×{y}×{z}"),
        }
    }
}

/// The text is no block size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlockSizeError {
    /// A dimension is a number that no size can be.
    #[error("`{0}` is more than any GPU launches: a block has {MAX_THREADS} threads at most")]
    TooLarge(String),
    /// Not one to three numbers.
    #[error("`{0}` is no block size; write it as 256, 16,16 or 8,8,4")]
    Malformed(String),
    /// A dimension is zero.
    #[error("a block of {0} has no threads; every dimension is at least 1")]
    Zero(String),
    /// More threads than any GPU launches.
    #[error("a block of {block} has {threads} threads, and no GPU launches more than {MAX_THREADS}")]
    TooMany {
        /// The block.
        block: String,
        /// Its threads.
        threads: u64,
    },
    /// The third dimension is too large.
    #[error("a block has {MAX_Z} threads in z at most, not {0}")]
    TooDeep(u32),
}

impl FromStr for BlockSize {
    type Err = BlockSizeError;

    /// Reads `256`, `16,16` or `16x16`; what is left out is 1.
    fn from_str(text: &str) -> Result<BlockSize, BlockSizeError> {
        let malformed = || BlockSizeError::Malformed(text.to_owned());
        let mut sizes = [1; 3];
        for (index, part) in text.split([',', 'x', 'X', '×']).enumerate() {
            let size = sizes.get_mut(index).ok_or_else(malformed)?;
            *size = match digits(part.trim()).ok_or_else(malformed)? {
                Digits::Fit(number) => number,
                Digits::TooMany => return Err(BlockSizeError::TooLarge(text.to_owned())),
            };
        }
        BlockSize::new(sizes[0], sizes[1], sizes[2])
    }
}

/// A number without a sign.
enum Digits {
    Fit(u32),
    /// It is too large for a size of anything here.
    TooMany,
}

fn digits(text: &str) -> Option<Digits> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().map_or(Digits::TooMany, Digits::Fit))
}

/// The text is no size of memory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Not a number with a unit that is known.
    #[error("`{0}` is no size; write it in bytes, or as 48K, 48KB or 48KiB (1024 bytes each)")]
    Malformed(String),
    /// No block takes that much.
    #[error("`{0}` is more than any block can take: {most} bytes, which is 4 GiB less one, is the most", most = u32::MAX)]
    TooLarge(String),
}

/// Reads a size of memory: bytes, or `K`, `KB`, `KiB` (all 1024 bytes) and `M`, `MB`, `MiB` likewise. Case does not
/// matter.
///
/// # Errors
/// When the text is no size, or one of 4 GiB and more.
pub fn parse_size(text: &str) -> Result<Bytes, SizeError> {
    let malformed = || SizeError::Malformed(text.to_owned());
    let trimmed = text.trim();
    let end = trimmed.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1024,
        "m" | "mb" | "mib" => 1024 * 1024,
        _ => return Err(malformed()),
    };
    let number = match digits(number).ok_or_else(malformed)? {
        Digits::Fit(number) => number.checked_mul(factor),
        Digits::TooMany => None,
    };
    number.map(Bytes).ok_or_else(|| SizeError::TooLarge(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_in_one_to_three_dimensions() {
        let read = |text: &str| text.parse::<BlockSize>().map(BlockSize::dimensions);
        assert_eq!(read("256"), Ok([256, 1, 1]));
        assert_eq!(read("16,16"), Ok([16, 16, 1]));
        assert_eq!(read("16x16"), Ok([16, 16, 1]));
        assert_eq!(read("8, 8, 4"), Ok([8, 8, 4]));
        assert_eq!("8×8×4".parse::<BlockSize>().map(BlockSize::threads), Ok(256));
    }

    #[test]
    fn a_block_that_no_gpu_launches_says_why() {
        let error = |text: &str| text.parse::<BlockSize>().expect_err("a bad block").to_string();
        assert_eq!(error("0"), "a block of 0 has no threads; every dimension is at least 1");
        assert_eq!(error("33,32"), "a block of 33×32 has 1056 threads, and no GPU launches more than 1024");
        for text in ["4294967296", "1,99999999999999999999", "4294967296x0"] {
            let most = "is more than any GPU launches: a block has 1024 threads at most";
            assert_eq!(error(text), format!("`{text}` {most}"));
        }
        assert_eq!(error("1,1,65"), "a block has 64 threads in z at most, not 65");
        for text in ["", ",", "a", "-1", "1,2,3,4", "16*16", "1.5", "99999999999999999999,99999999999999999999,9"] {
            assert!(text.parse::<BlockSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_a_kibibyte_is_1024_bytes() {
        for text in ["48K", "48KB", "48KiB", "48kib", "48 KB", "49152", "49152 B"] {
            assert_eq!(parse_size(text), Ok(Bytes(49152)), "{text}");
        }
        assert_eq!(parse_size("1MiB"), Ok(Bytes(1 << 20)));
        assert_eq!(parse_size("0"), Ok(Bytes::ZERO));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "K", "-1", "1.5K", "48 KBps", "4G", "0x10"] {
            assert!(matches!(parse_size(text), Err(SizeError::Malformed(_))), "{text}");
        }
        for text in ["5000M", "4294967296", "18446744073709551615", "99999999999999999999 K"] {
            let error = parse_size(text).expect_err("too large").to_string();
            assert!(error.contains("4294967295 bytes"), "{error}");
        }
        assert_eq!(parse_size("4294967295"), Ok(Bytes(u32::MAX)));
    }
}
