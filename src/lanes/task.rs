//! What is to be looked at: a function, the block that it runs in, and which of its branches are judged.

use super::Shape;
use super::budget::Budget;
use super::cost::Callees;
use super::eval::Arguments;
use crate::parse::ptx::Code;

/// Which branches are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// Those that may part because of the index, and cost enough for a report.
    ByIndex,
    /// Those that may part because of data, too.
    ByData,
    /// All.
    All,
}

/// What is to be looked at.
#[derive(Clone, Copy)]
pub struct Task<'t> {
    /// The instructions.
    pub code: &'t Code<'t>,
    /// The block.
    pub shape: Shape,
    /// Whether that is known.
    pub shape_known: bool,
    /// What callers pass.
    pub arguments: &'t Arguments,
    /// How much may be computed.
    pub budget: Budget,
    /// Which branches are to be judged.
    pub which: Which,
    /// Whether the code was made from a source.
    pub is_source: bool,
    /// The functions of the module.
    pub callees: &'t Callees<'t>,
}
