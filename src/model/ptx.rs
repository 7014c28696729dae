//! What a PTX module declares: its functions, how they are to be launched, and the files that its lines come from.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Arch, BlockSize, Kind, NameId, Spot};

/// A PTX file as read. Instructions stay in the text, and are read again by who analyses them.
#[derive(Clone)]
pub struct Module {
    /// An index into [`super::Report::inputs`].
    pub input: u32,
    /// The text.
    pub text: Arc<[u8]>,
    /// The files that `.loc` numbers: the number, and the bytes of the name within its quotes.
    pub files: Vec<(u32, Range<usize>)>,
    /// Every function with a body, in order.
    pub functions: Vec<Function>,
    /// Whether a compiler wrote it, or it was made from a source.
    pub origin: Origin,
}

/// Where the text of a module comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// A compiler.
    #[default]
    Compiler,
    /// A CUDA C++ source, without what a compiler makes of it.
    Source(Arc<Positions>),
}

/// Where parts of a text that was made from a source stand in the source. All rise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions {
    /// Conditional branches: their bytes in the text, and the bytes of the statements that they are of.
    pub branches: Vec<(u32, Range<u32>)>,
    /// Barriers for the whole block, likewise with the byte that each stands at.
    pub barriers: Vec<(u32, u32)>,
    /// Exchanges between lanes that do not wait, likewise with the word that the source has.
    pub exchanges: Vec<(u32, Box<[u8]>)>,
}

impl Positions {
    /// The bytes of the statement that a branch is of.
    #[must_use]
    pub fn statement(&self, branch: u32) -> Option<&Range<u32>> {
        let at = self.branches.binary_search_by_key(&branch, |(at, _)| *at).ok()?;
        Some(&self.branches[at].1)
    }

    /// The byte that a barrier stands at.
    #[must_use]
    pub fn barrier(&self, barrier: u32) -> Option<u32> {
        let at = self.barriers.binary_search_by_key(&barrier, |(at, _)| *at).ok()?;
        Some(self.barriers[at].1)
    }

    /// Whether a barrier stands within these bytes.
    #[must_use]
    pub fn waits_within(&self, bytes: &Range<u32>) -> bool {
        self.barriers.iter().any(|(_, byte)| bytes.contains(byte))
    }

    /// The word that an exchange is written with.
    #[must_use]
    pub fn exchange(&self, exchange: u32) -> Option<&[u8]> {
        let at = self.exchanges.binary_search_by_key(&exchange, |(at, _)| *at).ok()?;
        Some(&self.exchanges[at].1)
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("input", &self.input).field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl Module {
    /// Where its parts stand in the source that it was made from.
    #[must_use]
    pub fn positions(&self) -> Option<&Positions> {
        match &self.origin {
            Origin::Compiler => None,
            Origin::Source(positions) => Some(positions),
        }
    }

    /// The name of the file with this number, as the compiler was told it.
    #[must_use]
    pub fn file(&self, number: u32) -> Option<&[u8]> {
        let at = self.files.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.text.get(self.files[at].1.clone())
    }
}

/// A function of a PTX module.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its symbol.
    pub name: NameId,
    /// Whether it can be launched.
    pub kind: Kind,
    /// The `.target` in force.
    pub arch: Option<Arch>,
    /// Where its `.entry` or `.func` stands: the byte, and the line from 1.
    pub head: (usize, u32),
    /// The bytes of its parameter list, brackets included; empty where there is none.
    pub parameters: Range<usize>,
    /// Its body, braces included.
    pub body: Range<usize>,
    /// The line of the body's first byte.
    pub body_line: u32,
    /// What its directives say of launches.
    pub bounds: Bounds,
    /// Bytes of static shared memory that it declares itself; `None` where that is not all, or not understood.
    pub shared: Option<u32>,
    /// Bytes of local memory that it declares; `None` where that is not understood.
    pub local: Option<u32>,
    /// The name of the first variable there.
    pub depot: Option<Range<usize>>,
    /// Whether it works on the tensor cores.
    pub tensor: bool,
    /// Its conditional branches.
    pub branches: u32,
    /// Its instructions.
    pub instructions: u32,
    /// Its calls.
    pub calls: u32,
    /// The declaration that it was made from, of a kernel in a source.
    pub declared: Option<Spot>,
    /// The kernel that it is, an index into [`super::Report::kernels`]; none where a filter left that out.
    pub kernel: Option<u32>,
}

/// What the performance directives of a function say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// `.reqntid`: the block of every launch.
    pub required: Option<BlockSize>,
    /// `.maxntid`: threads of the largest block; a product, which says nothing about shape.
    pub max_threads: Option<u32>,
    /// `.minnctapersm`
    pub min_blocks: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
}
