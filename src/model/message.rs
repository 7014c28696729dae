//! What the compiler said besides figures: warnings, advisories, errors.

use super::{Arch, Bytes, NameId, Place};

/// A message; one that repeats word for word is one message with a count.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What it is about.
    pub kind: MessageKind,
    /// The kernel or function that it names.
    pub kernel: Option<NameId>,
    /// The architecture that it names.
    pub arch: Option<Arch>,
    /// Its text, without tool, severity and place; an id of [`super::Report::texts`].
    pub text: NameId,
    /// Where the name of its kernel stands in the text, if it was taken out of it: a log may say the same of a hundred
    /// thousand kernels, and their names are kept anyway.
    pub name_at: Option<u16>,
    /// What stands before the text, as `ptxas x.ptx, line 8; error   : `; an id of [`super::Report::texts`].
    pub lead: Option<NameId>,
    /// Where it first stands.
    pub place: Place,
    /// How often it was printed.
    pub count: u64,
}

impl Message {
    /// A message that names nobody, printed once.
    #[must_use]
    pub fn new(kind: MessageKind, text: NameId, place: Place) -> Message {
        Message { kind, kernel: None, arch: None, text, name_at: None, lead: None, place, count: 1 }
    }

    /// The name that was taken out of its text, and where that was.
    #[must_use]
    pub fn name_apart(&self) -> Option<(u16, NameId)> {
        Some((self.name_at?, self.kernel?))
    }
}

/// What a message is about, told by its text: ptxas re-uses its code numbers between releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// `-warn-spills`: registers spilled, with the bytes of stores and loads.
    Spill {
        /// Bytes of spill stores.
        stores: Bytes,
        /// Bytes of spill loads.
        loads: Bytes,
    },
    /// `-warn-lmem-usage`: a stack frame of this size, or of an unread size.
    LocalMemory {
        /// Bytes of stack frame a thread.
        frame: Option<Bytes>,
    },
    /// The stack cannot be bounded.
    UnboundedStack,
    /// `.minnctapersm` or `.maxntid` is out of range or ignored.
    LaunchBounds,
    /// Which of several register limits won.
    RegisterCap,
    /// `setmaxnreg` is ignored.
    Setmaxnreg,
    /// wgmma instructions are serialised.
    WgmmaSerialized,
    /// A wgmma wait or arrive was injected.
    WgmmaInjected,
    /// More static shared memory than the target allows.
    SharedTooLarge {
        /// Bytes that the kernel declares.
        needed: Bytes,
        /// Bytes that a block may have.
        limit: Bytes,
    },
    /// Any other error or fatal error of a CUDA tool.
    Error,
    /// An error of another tool of the build.
    BuildError,
    /// A build tool says that a step failed.
    BuildStopped,
    /// Any other warning or advisory of ptxas, nvlink or nvcc.
    Warning,
    /// A line that looks like a record and could not be read.
    Unread(Unread),
}

impl MessageKind {
    /// Whether a build that says it has failed.
    #[must_use]
    pub fn fails_build(self) -> bool {
        matches!(self, Self::Error | Self::BuildError | Self::BuildStopped | Self::SharedTooLarge { .. })
    }
}

/// Why a line could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unread {
    /// The text is not of a known form.
    Form,
    /// A `Used` line holds an item of an unknown form; the rest was read.
    Item,
    /// A number is too large to be true, or below 0.
    Number,
    /// The log ends, or is torn, within the record.
    Cut,
    /// Figures whose kernel's name was not in the log.
    Nameless,
    /// A kernel whose figures were not in the log.
    NoFigures,
    /// A kernel or function whose stack and spills were not in the log.
    NoFrame,
    /// A line of over a mebibyte.
    LongLine,
    /// A message for which there was no room; its count is of all of them.
    NotKept,
}
