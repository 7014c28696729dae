//! What the lanes of a warp do: which branches they disagree on because of the thread's index, and what that costs.
//!
//! To read in this order:
//!
//! * [`module`] looks at each function of a module, callers first, and [`function`] at each branch of one, pass after pass.
//! * What is looked at: [`mod@cfg`] has blocks, loops and what dominates what, [`graph`] where values come from, `decisions` what
//!   decides each branch, [`cost`] what its sides weigh, `barriers` what waits for the whole block.
//! * Level 1, cheap, for every value: [`lattice`].
//! * Level 2, values for every thread: [`eval`] computes them, `op` what one instruction does, `ways` which lanes go where,
//!   `unknowns` numbers that nobody knows before the kernel runs, [`steps`] loops, `leaving` what lanes leave them with.
//! * What is made of that: [`split`] counts how warps part, [`spread`] how far apart they leave a loop, by `turns`, `exits` and
//!   `counted`; `look` gathers the evidence on one branch, and [`verdict`] judges it, with [`loss`]; [`source`] is for code that
//!   was read off a source.

pub mod agree;
mod barriers;
pub mod branch;
pub mod budget;
pub mod calls;
pub mod cfg;
pub mod cost;
mod counted;
pub mod decisions;
mod dispatch;
pub mod eval;
mod exits;
pub mod function;
pub mod graph;
mod guards;
pub mod hints;
pub mod lattice;
mod leaving;
mod left_over;
mod look;
mod loops;
pub mod loss;
pub mod module;
mod op;
pub mod region;
mod roots;
pub mod rows;
pub mod sample;
pub mod slice;
pub mod source;
pub mod split;
pub mod spread;
pub mod steps;
pub mod task;
#[cfg(test)]
mod testing;
pub mod turns;
mod unknowns;
pub mod uses;
pub mod value;
pub mod verdict;
pub mod warp;
mod ways;

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
