//! Plain facts about kernels, as the compiler stated them; no opinion and no GPU figures.

use std::borrow::Cow;

mod arch;
mod arguments;
mod base;
mod bytes;
mod cuda;
mod family;
mod files;
mod flow;
mod grid;
mod kernel;
mod launch;
mod mangled;
mod message;
mod names;
mod nearest;
mod percent;
mod ptx;
pub mod symbol;
mod toolkit;

pub use arch::{Arch, ArchError, Suffix};
pub use arguments::{Alike, Arguments, alike};
pub use base::base;
pub use bytes::Bytes;
pub use cuda::{
    Array, ArraySpace, Declaration, Doubles, Impossible, LaunchForm, LaunchSite, NotFollowed, SourceBounds, Stated,
    Unit,
};
pub use family::{Family, Spot};
pub use files::Files;
pub use flow::{Flow, Jump, Way};
pub use grid::{AXES, Extent, ExtentError, GridSize, GridSizeError};
pub use kernel::{Evidence, Kernel, Kind, LinkSource, Linked, Place, Quote, Resources};
pub use launch::{BlockSize, BlockSizeError, SizeError, parse_size};
pub use message::{Message, MessageKind, Unread};
pub use names::{NameId, Names};
pub use nearest::nearest;
pub use percent::percent;
pub use ptx::{Bounds, Function, Module, Origin, Positions};
pub use toolkit::{Toolkit, ToolkitError};

/// Everything that was read from all inputs.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The inputs in the order in which they were read.
    pub inputs: Vec<InputFacts>,
    /// Symbol names.
    pub names: Names,
    /// Lines of evidence and texts of messages.
    pub texts: Names,
    /// Kernels and device functions, in the order in which their figures were completed.
    pub kernels: Vec<Kernel>,
    /// Figures of the linker and of `cuobjdump`, which are final for the kernels that they name.
    pub linked: Vec<Linked>,
    /// Messages, in the order of first occurrence.
    pub messages: Vec<Message>,
    /// PTX modules, in the order in which they were read.
    pub modules: Vec<Module>,
    /// CUDA C++ sources, in the order in which they were read.
    pub units: Vec<Unit>,
    /// What the sources say of each kernel that they declare.
    pub families: Vec<Family>,
    /// The names, as shown, of source files that findings have their place in.
    pub sources: Vec<String>,
    /// Whether kernels were left out that nobody asked about.
    pub is_filtered: bool,
    /// The name of the configuration as shown, where findings may have their place in it.
    pub config: Option<String>,
    /// The way from the root of the project, as a CI service names it, to the folder that relative paths begin at: empty, or
    /// with a `/` at its end.
    pub folder: String,
}

impl Report {
    /// The name of the file that `place` is in, as shown.
    #[must_use]
    pub fn file_of(&self, place: Place) -> &str {
        match place.input {
            Place::CONFIG => self.config.as_deref().unwrap_or_default(),
            source @ Place::SOURCE.. => self.sources.get((source - Place::SOURCE) as usize).map_or("", String::as_str),
            input => self.inputs.get(input as usize).map_or("", |input| &input.name),
        }
    }

    /// The sources by the names that a compiler may have for them.
    #[must_use]
    pub fn sources_by_name(&self) -> Files {
        let mut files = Files::default();
        for unit in &self.units {
            let name = self.file_of(Place { input: unit.input, ..Place::default() });
            files.add(name.as_bytes(), unit.input);
        }
        files
    }

    /// The text of a message as printed.
    #[must_use]
    pub fn said(&self, message: &Message) -> Cow<'_, [u8]> {
        self.line(message.text, message.name_apart())
    }

    /// A kept text, with the name in it that was taken out at a position.
    #[must_use]
    pub fn line(&self, text: NameId, name: Option<(u16, NameId)>) -> Cow<'_, [u8]> {
        let text = self.texts.get(text);
        let Some((at, name)) = name else { return Cow::Borrowed(text) };
        let (before, after) = text.split_at(usize::from(at).min(text.len()));
        Cow::Owned([before, self.names.get(name), after].concat())
    }
}

/// What is known of an input as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputFacts {
    /// The name as shown: a path as given, or `<stdin>`.
    pub name: String,
    /// Bytes read.
    pub bytes: u64,
    /// Records of figures that were read.
    pub records: u64,
    /// True when the input shows that CUDA code was compiled.
    pub compiles_cuda: bool,
    /// True when the input shows that device code was compiled separately, to be linked later.
    pub separate: bool,
    /// True when a command in the input compiles device code for debugging.
    pub debug: bool,
    /// True when it is all that a command printed, on both its streams.
    pub is_captured: bool,
    /// True when the input holds NUL bytes, as no log does.
    pub binary: bool,
    /// True when the input is PTX that could not be read to its end.
    pub torn: bool,
    /// True when the input is a CUDA C++ source.
    pub is_source: bool,
    /// True when it is one for HIP alone, whose warps may have 64 lanes.
    pub is_hip: bool,
    /// The toolkit that compiled it, where the input tells.
    pub toolkit: Option<Toolkit>,
}
