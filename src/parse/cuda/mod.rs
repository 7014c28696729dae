//! CUDA C++ sources: a lexer and scanners that tolerate every error, and know no types.

mod aliases;
mod arrays;
mod code;
mod conditions;
mod declare;
mod directives;
mod doubles;
mod effects;
pub mod expr;
mod file;
mod fold;
mod gather;
mod heads;
mod launches;
mod lexer;
pub mod lower;
mod macros;
mod scopes;
mod sniff;
mod source;
pub mod statement;
mod value;

pub use aliases::{Aliases, Meaning, NewNames};
pub use file::{Device, File, Scanner, scan};
pub use gather::{Gathered, gather};
pub use lexer::{Kind, Token, may_hold_device_code, tokens};
pub use sniff::{looks_like_source, may_become_source};
