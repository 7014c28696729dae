//! Bytes to facts. Nothing here fails on content: what cannot be read becomes a message that says so.

mod assemble;
mod block;
mod clean;
pub mod cuda;
mod decode;
mod envelope;
mod glued;
mod last_words;
mod listing;
mod log;
mod message;
pub mod needles;
mod nvcc;
mod partial;
mod prefix;
pub mod ptx;
mod quoted;
mod reader;
mod record;
mod scan;
mod sentences;
#[cfg(test)]
mod testing;
mod usage;
mod wrapped;

pub use decode::plain;
pub use log::{Echo, EchoMode, read_log};
pub use nvcc::note_command;
