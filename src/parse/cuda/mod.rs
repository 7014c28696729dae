//! CUDA C++ sources: a lexer and scanners that tolerate every error, and know no types.

mod aliases;
mod arrays;
mod code;
mod declare;
mod effects;
pub mod expr;
mod file;
mod fold;
mod gather;
mod heads;
mod launches;
mod lexer;
mod macros;
mod scopes;
mod source;
mod value;

pub use aliases::{Aliases, Meaning, NewNames};
pub use file::{Device, File, Scanner, scan};
pub use gather::gather;
pub use lexer::{Kind, Token, may_hold_device_code, tokens};
