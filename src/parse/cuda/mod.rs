//! CUDA C++ sources: a lexer and scanners that tolerate every error, and know no types.

pub mod expr;
mod lexer;

pub use lexer::{Kind, Token, may_hold_device_code, tokens};
