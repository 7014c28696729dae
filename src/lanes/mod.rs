//! What the lanes of a warp do: which branches they disagree on because of the thread's index, and what that costs.

pub mod agree;
mod barriers;
pub mod cfg;
pub mod cost;
pub mod eval;
pub mod function;
pub mod graph;
pub mod hints;
pub mod lattice;
mod left_over;
pub mod module;
mod op;
pub mod region;
pub mod rows;
pub mod sample;
pub mod slice;
pub mod source;
pub mod steps;
#[cfg(test)]
mod testing;
pub mod turns;
pub mod uses;
pub mod value;
pub mod verdict;
pub mod warp;

/// The block that a function is looked at in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Threads in x, which are next to each other in a warp.
    pub x: u32,
    /// Threads in y.
    pub y: u32,
    /// Threads in z.
    pub z: u32,
    /// Whether the function is launched: its parameters are then the same for all threads.
    pub is_entry: bool,
}
