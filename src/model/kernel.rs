//! A kernel, or a device function, with the figures that the compiler printed for it.

use std::sync::Arc;

use super::{Arch, Bytes, NameId};

/// One kernel or device function as compiled for one architecture. Records that say the very same thing (one template
/// instantiated in many translation units) are one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// The name as printed; `None` where the log was cut before it.
    pub name: Option<NameId>,
    /// Whether it can be launched.
    pub kind: Kind,
    /// Architecture, where the record, a `(target: …)` suffix or a fatbin header tells it; for a device function, which
    /// ptxas prints without one, that of the entries of the same ptxas run.
    pub arch: Option<Arch>,
    /// The figures.
    pub resources: Resources,
    /// True where interleaved output leaves open which kernel the figures belong to.
    pub ambiguous: bool,
    /// Even stack and spills, which follow the kernel's name, may be another's.
    pub frame_ambiguous: bool,
    /// True where the compiler says that it cannot bound the stack.
    pub unbounded_stack: bool,
    /// Whether the figures of registers and shared memory are the linker's, and so final.
    pub linked: bool,
    /// Registers a thread that ptxas gave, where the linker gave another number.
    pub registers_before_link: Option<u32>,
    /// How many records said exactly this.
    pub records: u32,
    /// Where the figures stand.
    pub evidence: Evidence,
    /// What sources say of it, an index into [`super::Report::families`].
    pub family: Option<u32>,
}

impl Kernel {
    /// A kernel or function of which nothing else is known yet: no figures, no place, no doubt, no record.
    #[must_use]
    pub fn new(name: Option<NameId>, kind: Kind, arch: Option<Arch>) -> Kernel {
        Kernel {
            name,
            kind,
            arch,
            resources: Resources::default(),
            ambiguous: false,
            frame_ambiguous: false,
            unbounded_stack: false,
            linked: false,
            registers_before_link: None,
            records: 0,
            evidence: Evidence::default(),
            family: None,
        }
    }

    /// Whether sources are all that tells of it.
    #[must_use]
    pub fn is_declared_only(&self) -> bool {
        self.family.is_some() && self.records == 0 && self.evidence.first().is_none()
    }

    /// Whether a log has a record of it, so that its figures could be there: sources and PTX have none.
    #[must_use]
    pub fn is_in_log(&self) -> bool {
        let evidence = &self.evidence;
        let has_figures = evidence.frame.is_some() || evidence.usage.is_some();
        has_figures || (evidence.name.is_some() && evidence.head.is_none())
    }
}

/// What can be launched, and what can only be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A `__global__` function.
    Entry,
    /// A `__device__` function that was not inlined.
    Function,
}

/// Figures per thread (registers, stack, spills, local) or per block (shared). Absent is not zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resources {
    /// 32-bit registers a thread.
    pub registers: Option<u32>,
    /// Hardware barriers a block; 16 means that the compiler could not count them.
    pub barriers: Option<u32>,
    /// Stack frame of the function itself.
    pub stack: Option<Bytes>,
    /// Stack of the kernel and everything it calls.
    pub cumulative_stack: Option<Bytes>,
    /// Bytes of spill stores in the code (static, not per execution).
    pub spill_stores: Option<Bytes>,
    /// Bytes of spill loads in the code.
    pub spill_loads: Option<Bytes>,
    /// Static shared memory a block, without what the system reserves.
    pub static_shared: Option<Bytes>,
    /// Local memory outside the stack frame.
    pub local: Option<Bytes>,
    /// Bytes of each constant bank in printed order; `None` where no usage record was read.
    pub constant: Option<Arc<[(u8, Bytes)]>>,
    /// Bound textures.
    pub textures: Option<u32>,
    /// Bound surfaces.
    pub surfaces: Option<u32>,
    /// Bound samplers.
    pub samplers: Option<u32>,
    /// Time that ptxas took, in milliseconds.
    pub compile_time_ms: Option<f64>,
}

/// Figures of a linked kernel, to be joined with what ptxas said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Linked {
    /// The kernel as the tool lists it.
    pub kernel: Kernel,
    /// The tool.
    pub source: LinkSource,
}

/// Who listed a linked kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSource {
    /// `nvlink -v`
    Nvlink,
    /// `cuobjdump -res-usage`
    Cuobjdump,
}

/// The lines that the figures come from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Where the name was first printed.
    pub name: Option<Place>,
    /// The line of stack frame and spills.
    pub frame: Option<Quote>,
    /// The line of registers and shared memory.
    pub usage: Option<Quote>,
    /// The first line of its declaration in PTX.
    pub head: Option<Quote>,
}

impl Evidence {
    /// The first place that the record has.
    #[must_use]
    pub fn first(&self) -> Option<Place> {
        self.name.or(self.frame.map(|quote| quote.place)).or(self.usage.map(|quote| quote.place))
    }
}

/// A position in an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which input; an index into [`super::Report::inputs`], or [`Place::CONFIG`], or a source file from [`Place::SOURCE`]
    /// on.
    pub input: u32,
    /// Line, from 1.
    pub line: u32,
    /// Columns of prefix (time stamps, indentation) on the line before the record.
    pub column_offset: u32,
    /// Byte offset of the record in the input.
    pub offset: u64,
}

impl Place {
    /// The input of a place in the configuration, which is no input, and comes after all that are.
    pub const CONFIG: u32 = u32::MAX;

    /// The first of the source files, which are no inputs either: the others, of [`super::Report::sources`], follow.
    pub const SOURCE: u32 = 1 << 31;

    /// The columns that text takes: characters, as every report counts them.
    #[must_use]
    pub fn columns(text: &[u8]) -> u32 {
        let count = if text.is_ascii() { text.len() } else { String::from_utf8_lossy(text).chars().count() };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The place `bytes` of blanks further on the same line.
    #[must_use]
    pub fn after(self, bytes: usize) -> Place {
        let column_offset = self.column_offset.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        Place { column_offset, offset: self.offset + bytes as u64, ..self }
    }
}

/// A record with its text, kept because a log streams by and is not read twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    /// Where it stands.
    pub place: Place,
    /// Its text without the line's prefix; an id of [`super::Report::texts`].
    pub text: NameId,
}
