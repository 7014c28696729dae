//! What a CUDA C++ source declares and launches. What does not fold to a constant is unknown, and stays so.

use std::ops::Range;

use super::{BlockSize, Bytes, NameId, Quote};

/// A CUDA source as read. Its text is not kept: a tree of sources may be larger than memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unit {
    /// An index into [`super::Report::inputs`]; for a file that was only searched for what others name, one of
    /// [`super::Report::sources`], from [`super::Place::SOURCE`] on.
    pub input: u32,
    /// Its kernels, in order, prototypes included.
    pub declarations: Vec<Declaration>,
    /// Its launches, in order.
    pub launches: Vec<LaunchSite>,
    /// Device functions whose statements were not followed, where they were to be.
    pub not_followed: Option<NotFollowed>,
}

/// Functions of which nothing is said because they are too long, nested too deeply or torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFollowed {
    /// How many there are, at least 1.
    pub count: u32,
    /// The name of the first one.
    pub first: NameId,
    /// The line that it stands on.
    pub line: u32,
}

/// A kernel as a source declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Its name with the namespaces and classes around it, and the arguments of a specialisation: `ns::k`, `k<float>`.
    pub name: NameId,
    /// The identifier alone: `k`.
    pub base: NameId,
    /// Whether it stands below a `template <…>` that has parameters.
    pub is_template: bool,
    /// Whether its name was made by a macro, so that it is only known in part.
    pub is_macro_made: bool,
    /// How many parameters it has; `None` where a pack or a macro leaves that open.
    pub parameters: Option<u32>,
    /// How many parameters its template has likewise; `None` for what is none, too.
    pub template_parameters: Option<u32>,
    /// The line that names it, which a person goes to.
    pub quote: Quote,
    /// The bytes of the identifier in the text of that line.
    pub span: (usize, usize),
    /// The bytes of the whole declaration in the file, from its first attribute to its last brace.
    pub extent: Range<usize>,
    /// The lines of the same.
    pub lines: (u32, u32),
    /// Whether a body follows.
    pub is_definition: bool,
    /// What its attributes say of launches.
    pub bounds: SourceBounds,
    /// Arrays of its body that have a name: shared ones, and local ones.
    pub arrays: Vec<Array>,
    /// Literals of type `double` that make it compute in double precision what is else of single precision.
    pub doubles: Option<Doubles>,
}

/// Literals of type `double` among operands of type `float`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubles {
    /// How many there are, at least 1.
    pub count: u32,
    /// The first one as written.
    pub first: NameId,
    /// The line of the first one.
    pub quote: Quote,
    /// The bytes of the first one in the text of that line.
    pub span: (usize, usize),
}

/// A figure that a source may state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Stated {
    /// It does not.
    #[default]
    No,
    /// It states this.
    As(u32),
    /// It states one that does not fold to a constant.
    Unknown,
}

impl Stated {
    /// The figure, where it is known.
    #[must_use]
    pub fn known(self) -> Option<u32> {
        match self {
            Stated::As(figure) => Some(figure),
            Stated::No | Stated::Unknown => None,
        }
    }
}

/// What the attributes of a kernel say: `__launch_bounds__(threads, blocks, cluster)`, `__maxnreg__`,
/// `__cluster_dims__` and `__block_size__`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceBounds {
    /// Threads of the largest block.
    pub max_threads: Stated,
    /// Blocks that an SM is to hold.
    pub min_blocks: Stated,
    /// Blocks of the largest cluster.
    pub max_cluster: Stated,
    /// `__maxnreg__`: registers a thread at most.
    pub max_registers: Stated,
    /// `__block_size__`: the block of every launch.
    pub block: Option<BlockSize>,
    /// `__cluster_dims__`
    pub cluster: Option<[u32; 3]>,
}

/// An array in the body of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Its identifier.
    pub name: NameId,
    /// Where it lies.
    pub space: ArraySpace,
    /// Its size, where type and dimensions are known.
    pub bytes: Option<Bytes>,
    /// Its line in the file.
    pub line: u32,
    /// Whether it is read or written with an index that is no constant, other than that of a loop that unrolls.
    pub is_indexed: bool,
}

/// Where an array lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArraySpace {
    /// `__shared__`
    Shared,
    /// `extern __shared__`, whose size is that of the launch.
    DynamicShared,
    /// A thread's own.
    Local,
}

/// How a launch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaunchForm {
    /// `k<<<grid, block>>>(…)`
    Chevrons,
    /// `cudaLaunchKernel`, `cudaLaunchKernelEx`, `cudaLaunchCooperativeKernel`, `hipLaunchKernelGGL` and the like.
    Call,
}

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchSite {
    /// What is launched, as written and without template arguments: `ns::k`; `None` where that is no name, or a variable
    /// whose value is not known.
    pub callee: Option<NameId>,
    /// The template arguments as written, blanks taken out: `float,4`.
    pub arguments: Option<NameId>,
    /// How many arguments the kernel is given; `None` where a pack, a macro or an array of pointers leaves that open.
    pub passed: Option<u32>,
    /// How it is written.
    pub form: LaunchForm,
    /// Blocks of the grid in each dimension, where constant.
    pub grid: [Option<u32>; 3],
    /// Whether each of these is 1, or what a function makes of nothing but ones: a launch for one of what is counted.
    pub is_of_one: bool,
    /// Threads of the block in each dimension, where constant.
    pub block: [Option<u32>; 3],
    /// A dimension that is constant and that no GPU launches, whatever the others are; of which then nothing is known above.
    pub impossible: Option<Impossible>,
    /// Dynamic shared memory a block; 0 where the launch leaves it out.
    pub dynamic_shared: Option<Bytes>,
    /// Its line, from the callee on.
    pub quote: Quote,
    /// The bytes of the callee in the text of that line.
    pub span: (usize, usize),
    /// The bytes of the block's expression in the file, and the line that it begins on.
    pub block_at: Option<(Range<usize>, u32)>,
    /// Whether it stands in a macro's body, where only constants are what they seem.
    pub in_macro: bool,
}

/// A dimension of a launch that no GPU launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impossible {
    /// Whether it is one of the block, and not of the grid.
    pub of_block: bool,
    /// x, y or z.
    pub axis: u8,
    /// The number as the source has it.
    pub number: i64,
}

impl Impossible {
    /// The number `number` as a dimension, if no GPU launches that. Dimensions are `unsigned int`: others are cut off, so that
    /// -1 is the largest of all.
    #[must_use]
    pub fn of(number: i64, of_block: bool, axis: u8) -> Option<Impossible> {
        /// Blocks of a grid in x, and in y and z, at most (CUDA Programming Guide, limits by compute capability).
        const MOST: (u32, u32) = (0x7fff_ffff, 65_535);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as the language does it")]
        let given = number as u32;
        let most = match (of_block, axis) {
            // How many threads there are in all is looked at where all are known.
            (true, _) if i64::from(given) == number => u32::MAX,
            (true, _) => 1024,
            (false, 0) => MOST.0,
            (false, _) => MOST.1,
        };
        (given == 0 || given > most).then_some(Impossible { of_block, axis, number })
    }
}

impl LaunchSite {
    /// The block, where all of it is constant and some GPU can launch it.
    #[must_use]
    pub fn block_size(&self) -> Option<BlockSize> {
        let [x, y, z] = self.block;
        BlockSize::new(x?, y?, z?).ok()
    }

    /// Blocks of the grid, where all of it is constant.
    #[must_use]
    pub fn blocks(&self) -> Option<u64> {
        self.grid.iter().try_fold(1_u64, |all, one| all.checked_mul(u64::from((*one)?)))
    }

    /// Threads of the block, where constant, whether a GPU can launch that many or not.
    #[must_use]
    pub fn threads(&self) -> Option<u64> {
        self.block.iter().try_fold(1_u64, |all, one| all.checked_mul(u64::from((*one)?)))
    }
}
