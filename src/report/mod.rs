//! Everything that is printed: pure functions of data to a writer.

pub mod gpus;
pub mod occupancy;
mod plot;
mod style;

pub use style::{DataFormat, Style};
