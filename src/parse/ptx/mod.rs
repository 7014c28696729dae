//! PTX, from any compiler: a module's functions with their declarations, and the instructions of one function at a time.

mod body;
mod instruction;
mod labels;
mod lexer;
mod location;
mod module;
mod opcode;
mod operand;
mod storage;
mod strings;
mod trips;
mod weight;
mod words;

pub use body::{Body, Statement, What};
pub use instruction::{Code, Cond, Guard, Instruction, Logic, Mods, Space, Type};
pub use location::{Inlined, Locations, Spot};
pub use module::{PtxFault, looks_like_ptx, may_become_ptx, read_ptx};
pub use opcode::Op;
pub use operand::{Operand, Reg, Special};
pub use strings::Strings;
pub use trips::Trips;
pub use weight::{CALL, TRIPS, is_slow, weight};
