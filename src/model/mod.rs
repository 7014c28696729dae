//! Plain facts about kernels, as the compiler stated them; no opinion and no GPU figures.

mod arch;
mod bytes;
mod launch;

pub use arch::{Arch, ArchError, Suffix};
pub use bytes::Bytes;
pub use launch::{BlockSize, BlockSizeError, SizeError, parse_size};
