//! What a PTX module declares: its functions, how they are to be launched, and the files that its lines come from.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Arch, BlockSize, Flow, Kind, NameId, Spot};

/// A PTX file as read. Instructions stay in the text, and are read again by who analyses them.
#[derive(Clone)]
pub struct Module {
    /// An index into [`super::Report::inputs`].
    pub input: u32,
    /// The text, as it was read: it is not copied.
    pub text: Arc<Vec<u8>>,
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

    /// The file and the line that a function of this module begins at, as the compiler was told them: its first `.loc` that is
    /// of no inlined code.
    #[must_use]
    pub fn begins_at(&self, function: &Function) -> Option<(&[u8], u32)> {
        let body = self.text.get(function.body.clone())?;
        memchr::memmem::find_iter(body, b".loc").find_map(|at| {
            let rest = &body[at..];
            let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(1);
            let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u32>().ok();
            let (file, number) = number().zip(number())?;
            // Line 0 is none.
            let is_own = number > 0 && memchr::memmem::find(line, b"inlined_at").is_none();
            Some((self.file(file).filter(|_| is_own)?, number))
        })
    }

    /// Whether the file with this number is a header that comes with the toolkit or the system, and not the user's own.
    #[must_use]
    pub fn is_header_of_toolkit(&self, number: u32) -> bool {
        let Some(name) = self.file(number) else { return false };
        let mut parts = name.split(|byte| matches!(byte, b'/' | b'\\')).rev().peekable();
        let file = parts.next().unwrap_or_default();
        let mut is_toolkit = HEADERS.iter().any(|start| file.starts_with(start));
        while let Some(folder) = parts.next() {
            let folder = folder.to_ascii_lowercase();
            let above = parts.peek().copied();
            // The first of an absolute path: `/usr`.
            let is_top = above.is_some_and(|above| above.is_empty()) && name.starts_with(b"/");
            let is_wheel = folder == b"nvidia" && above.is_some_and(|above| above.ends_with(b"-packages"));
            is_toolkit |= is_wheel || (is_top && folder == b"usr") || TOOLKIT.contains(&folder.as_slice());
        }
        is_toolkit
    }
}

/// Folders that hold headers of the toolkit.
const TOOLKIT: [&[u8]; 7] = [
    b"cub",
    b"thrust",
    b"cccl",
    b"libcudacxx",
    b"nvidia gpu computing toolkit",
    b"cooperative_groups",
    b"x86_64-linux",
];

/// How the names of headers of the toolkit begin that device code comes from, wherever they lie.
const HEADERS: [&[u8]; 6] =
    [b"curand_", b"cuda_fp16.", b"cuda_bf16.", b"cuda_pipeline", b"cooperative_groups", b"sm_30_intrinsics."];

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
    /// Where control goes in it.
    pub flow: Flow,
    /// The declaration that it was made from, of a kernel in a source.
    pub declared: Option<Spot>,
    /// The kernels of its source that call it, where those are all known, by their declarations, and which of
    /// [`super::Report::kernels`] they are.
    pub callers: Vec<(Spot, Option<u32>)>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_toolkit_are_told_from_the_users_own() {
        let foreign = |name: &str| {
            let text = Arc::new(name.as_bytes().to_vec());
            let module = Module {
                input: 0,
                text,
                files: vec![(1, 0..name.len())],
                functions: Vec::new(),
                origin: Origin::Compiler,
            };
            module.is_header_of_toolkit(1)
        };
        assert!(foreign("/usr/local/cuda-13.0/include/cuda_fp16.hpp"));
        assert!(foreign("/env/lib/python3.11/site-packages/nvidia/cu13/include/cuda_bf16.hpp"));
        assert!(foreign("C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\include\\sm_30_intrinsics.hpp"));
        assert!(foreign("deps/cccl/cub/cub/block/block_reduce.cuh"));
        assert!(!foreign("/home/me/usr/helpers.cuh") && !foreign("src/cub.cuh") && !foreign("helpers.cuh"));
    }
}
