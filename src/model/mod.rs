//! Plain facts about kernels, as the compiler stated them; no opinion and no GPU figures.

mod arch;
mod bytes;

pub use arch::{Arch, ArchError, Suffix};
pub use bytes::Bytes;
