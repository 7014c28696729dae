//! CUDA C++ sources: a lexer and scanners that tolerate every error, and know no types.

pub mod aliases;
pub mod code;
mod declare;
pub mod expr;
mod heads;
mod launches;
mod lexer;
mod source;

pub use aliases::Aliases;
pub use heads::Head;
pub use lexer::{Kind, Token, may_hold_device_code, tokens};
pub use source::Source;
